"""Dynamic time warping over anti-diagonals: exact, O(n) memory."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def align(a, b):  # type: ignore[no-untyped-def]
    """Return the least sum of distances over all monotone alignments, and the length of the optimal path."""
    n, m = len(a), len(b)
    last, row = np.full(m + 1, np.inf), np.full(m + 1, np.inf)
    last_length, row_length = np.zeros(m + 1), np.zeros(m + 1)
    last[0] = 0.0
    for i in range(n):
        row[0] = np.inf
        for j in range(m):
            best, length = last[j], last_length[j]
            if last[j + 1] < best:
                best, length = last[j + 1], last_length[j + 1]
            if row[j] < best:
                best, length = row[j], row_length[j]
            row[j + 1] = best + math.sqrt((a[i, 0] - b[j, 0]) ** 2 + (a[i, 1] - b[j, 1]) ** 2)
            row_length[j + 1] = length + 1
        last, row = row, last
        last_length, row_length = row_length, last_length
    return last[m], last_length[m]


@njit(cache=True, nogil=True)
def align_total(a, b):  # type: ignore[no-untyped-def]
    """Return the least sum of distances over all monotone alignments."""
    return align(a, b)[0]
