"""Steps of linear assignment: every row of a cost matrix gets a column of its own, as cheaply as can be.

Conventions
-----------
* Shortest augmenting paths with dual prices (R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for
  dense and sparse linear assignment problems", Computing 38, 1987): O(n² m) for n ≤ m, exact up to rounding.
* Among columns that are equally near, a free one is taken before a taken one, then the first: the same matrix always
  gives the same pairs.

`inktraj.metrics.strokes` takes these steps over a matrix whose entries it computes only when they matter.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def relax(cost, i, travelled, u, v, distance, came_from, reached):  # type: ignore[no-untyped-def]
    """Offer the ways from row i, itself `travelled` away, to all columns that the tree has not reached."""
    base = travelled - u[i]
    for j in range(cost.shape[1]):
        if not reached[j]:
            way = base + cost[i, j] - v[j]
            if way < distance[j]:
                distance[j] = way
                came_from[j] = i


@njit(cache=True, nogil=True)
def nearest(row_of, distance, reached):  # type: ignore[no-untyped-def]
    """Return the nearest column outside the tree; among equals a free one, then the first."""
    best, at = np.inf, -1
    for j in range(len(distance)):
        if reached[j] or distance[j] > best:
            continue
        if distance[j] < best or (row_of[j] < 0 and row_of[at] >= 0):
            best, at = distance[j], j
    return at


@njit(cache=True, nogil=True)
def augment(row, column, u, v, row_of, column_of, distance, came_from, reached):  # type: ignore[no-untyped-def]
    """Give `row` a column along the path that ends at the free `column`, and bring the prices up to date."""
    travelled = distance[column]
    u[row] += travelled
    for j in range(len(distance)):
        if reached[j] and j != column:
            u[row_of[j]] += travelled - distance[j]
            v[j] -= travelled - distance[j]
    j = column
    while True:
        i = came_from[j]
        row_of[j] = i
        column_of[i], j = j, column_of[i]
        if i == row:
            return
