"""Exact distances from the points of one set to the nearest of another, by a uniform grid.

How it is fast
--------------
The points of a trajectory lie beside each other, so the nearest to one query is a good guess for the next: it bounds
the circle that must be searched. Points are stored cell by cell, cells row by row: what a circle may hold of one row of
cells is one contiguous run of points.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_jit = njit(cache=True, nogil=True, error_model="numpy")

ALL = 1 << 62
"""A budget that is never spent."""


@_jit
def _grid(points):  # type: ignore[no-untyped-def]
    """Sort the points into a grid of about one cell a point, and of at most some 4 √n rows.

    Returns the corner, cells a unit along x and y, their numbers, where each cell's points start, and x and y of the
    points cell by cell.
    """
    n = len(points)
    left, right, top, bottom = points[0, 0], points[0, 0], points[0, 1], points[0, 1]
    for i in range(n):
        left, right = min(left, points[i, 0]), max(right, points[i, 0])
        top, bottom = min(top, points[i, 1]), max(bottom, points[i, 1])
    width, height = right - left, bottom - top
    size = max(math.sqrt(width * height / n), max(width, height) / (4.0 * n))
    # A column of points would have as many rows as points, each to be looked at for a query that is far from all.
    size_y = max(size, height / (4.0 * math.sqrt(n)))
    per_x = 1.0 / size if size > 0 else 1.0
    per_y = 1.0 / size_y if size_y > 0 else 1.0
    columns, rows = int(width * per_x) + 1, int(height * per_y) + 1
    starts = np.zeros(rows * columns + 1, np.int64)
    cell = np.empty(n, np.int64)
    for i in range(n):
        row = min(int((points[i, 1] - top) * per_y), rows - 1)
        cell[i] = row * columns + min(int((points[i, 0] - left) * per_x), columns - 1)
        starts[cell[i] + 1] += 1
    for k in range(rows * columns):
        starts[k + 1] += starts[k]
    x, y = np.empty(n), np.empty(n)
    free = starts[:-1].copy()
    for i in range(n):
        at = free[cell[i]]
        free[cell[i]] += 1
        x[at], y[at] = points[i, 0], points[i, 1]
    return left, top, per_x, per_y, columns, rows, starts, x, y


@_jit
def _clip(value, high):  # type: ignore[no-untyped-def]
    """Return the cell number of a position that may lie outside: 0 … high, and no overflow however far it is."""
    return int(min(max(value, 0.0), float(high)))


@_jit
def distances(queries, points, out, budget=ALL):  # type: ignore[no-untyped-def]
    """Write into out[i] the distance from queries[i] to the nearest of points; both ``(·, 2)`` float64, not empty.

    Returns False, and leaves the rest of `out` as it was, once more than `budget` points and rows were looked at.
    """
    left, top, per_x, per_y, columns, rows, starts, x, y = _grid(points)
    right, row_height = left + columns / per_x, 1.0 / per_y
    near_enough = (2.0 / per_x) ** 2
    looked = 0
    near_x, near_y = x[0], y[0]
    for i in range(len(queries)):
        qx, qy = queries[i, 0], queries[i, 1]
        best = (qx - near_x) ** 2 + (qy - near_y) ** 2
        if best > near_enough:
            # A second guess, for queries that jump: the points stored beside the query's own cell.
            row, column = _clip((qy - top) * per_y, rows - 1), _clip((qx - left) * per_x, columns - 1)
            beside = starts[row * columns + column]
            for at in range(max(beside - 1, 0), min(beside + 1, len(x))):
                squared = (qx - x[at]) ** 2 + (qy - y[at]) ** 2
                if squared < best:
                    best, near_x, near_y = squared, x[at], y[at]
        # Only a part of the circle lies over a grid that is beside it: what is left of its height there.
        aside = max(left - qx, qx - right, 0.0)
        reach = math.sqrt(max(best - aside * aside, 0.0))
        first, last = _clip((qy - reach - top) * per_y, rows - 1), _clip((qy + reach - top) * per_y, rows - 1)
        half = math.sqrt(best)
        low, high = _clip((qx - half - left) * per_x, columns - 1), _clip((qx + half - left) * per_x, columns - 1)
        wide = last - first > 4 or high - low > 16
        for row in range(first, last + 1):
            if wide:
                # The circle is much narrower than its box in most rows, and shrinks as nearer points are found.
                beyond = max(top + row * row_height - qy, qy - top - (row + 1) * row_height, 0.0)
                half = math.sqrt(max(best - beyond * beyond, 0.0))
                low = _clip((qx - half - left) * per_x, columns - 1)
                high = _clip((qx + half - left) * per_x, columns - 1)
            start, end = np.uint64(starts[row * columns + low]), np.uint64(starts[row * columns + high + 1])
            looked += 1 + int(end - start)
            for at in range(start, end):
                squared = (qx - x[at]) ** 2 + (qy - y[at]) ** 2
                if squared < best:
                    best, near_x, near_y = squared, x[at], y[at]
        if looked > budget:
            return False
        out[i] = math.sqrt(best)
    return True
