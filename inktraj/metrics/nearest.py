"""Exact nearest neighbours of one set of points in another."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def distances(a, b, out):  # type: ignore[no-untyped-def]
    """Write into out[i] the distance from a[i] to the nearest of b."""
    for i in range(len(a)):
        best = np.inf
        for j in range(len(b)):
            best = min(best, (a[i, 0] - b[j, 0]) ** 2 + (a[i, 1] - b[j, 1]) ** 2)
        out[i] = math.sqrt(best)
