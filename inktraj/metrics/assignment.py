"""Linear assignment: every row of a cost matrix gets a column of its own, as cheaply as can be.

Conventions
-----------
* A matrix (n, m) of finite costs, of any sign; where it has more rows than columns, every column gets a row.
* Shortest augmenting paths with dual prices (R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for
  dense and sparse linear assignment problems", Computing 38, 1987): O(n² m) for n ≤ m, exact up to rounding.
* Among columns that are equally near, a free one is taken before a taken one, then the first: the same matrix always
  gives the same pairs.

`relax`, `nearest` and `augment` are the steps of the search. `solve` takes them over a finished matrix;
`inktraj.metrics.strokes` takes the same steps over one whose entries it computes only when they matter.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from inktraj.errors import DataError


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


@njit(cache=True, nogil=True)
def solve(cost):  # type: ignore[no-untyped-def]
    """Return the column of each row of a finite float64 matrix (n, m), n ≤ m."""
    n, m = cost.shape
    u, v = np.zeros(n), np.zeros(m)
    row_of, column_of = np.full(m, -1, np.int64), np.full(n, -1, np.int64)
    distance, came_from, reached = np.empty(m), np.zeros(m, np.int64), np.empty(m, np.bool_)
    for row in range(n):
        distance[:] = np.inf
        reached[:] = False
        i, travelled = row, 0.0
        while True:
            relax(cost, i, travelled, u, v, distance, came_from, reached)
            column = nearest(row_of, distance, reached)
            reached[column] = True
            if row_of[column] < 0:
                break
            i, travelled = row_of[column], distance[column]
        augment(row, column, u, v, row_of, column_of, distance, came_from, reached)
    return column_of


def linear_assignment(cost: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair rows and columns one to one so that the sum of their costs is least.

    Parameters
    ----------
    cost
        Matrix (n, m) of finite numbers; n or m may be 0.

    Returns
    -------
    rows, columns
        Two arrays of length min(n, m), in the order of the rows, as of ``scipy.optimize.linear_sum_assignment``.

    Raises
    ------
    DataError
        Not a matrix of numbers, or one with NaN or infinity.
    """
    try:
        matrix = np.ascontiguousarray(cost, dtype=np.float64)
    except (TypeError, ValueError) as err:
        raise DataError(f"costs are not a matrix of numbers: {err}") from err
    if matrix.ndim != 2:
        raise DataError(f"costs have shape {matrix.shape}, expected (n, m)")
    if not np.isfinite(matrix).all():
        raise DataError("costs hold NaN or infinity; give a pair that must not be a large finite cost instead")
    if len(matrix) <= matrix.shape[1]:
        return np.arange(len(matrix)), solve(matrix)
    rows = solve(np.ascontiguousarray(matrix.T))
    columns = np.argsort(rows, kind="stable")
    return rows[columns], columns
