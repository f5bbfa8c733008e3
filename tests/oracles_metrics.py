"""Slow and obvious twins of the kernels of `inktraj.metrics`."""

from itertools import pairwise

import numpy as np


def cost_matrix(a, b, squared=False):
    costs = np.array([[(p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for q in b] for p in a], float)
    return costs if squared else np.sqrt(costs)


def in_band(i, j, n, m, band):
    """tslearn's Sakoe–Chiba mask, written cell by cell."""
    if band is None:
        return True
    if n > m:
        return j - band <= i <= j + (n - m) + band
    return i - band <= j <= i + (m - n) + band


def dtw(a, b, squared=False, band=None):
    """Total and path, by the full matrix; ties go diagonally, else from (i − 1, j), else from (i, j − 1)."""
    n, m = len(a), len(b)
    cost = cost_matrix(a, b, squared)
    total = np.full((n, m), np.inf)
    came = {}
    for i in range(n):
        for j in range(m):
            if not in_band(i, j, n, m, band):
                continue
            if i == j == 0:
                total[i, j] = cost[i, j]
                continue
            ways = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
            sums = [total[w] if min(w) >= 0 else np.inf for w in ways]
            best = int(np.argmin(sums))
            total[i, j] = sums[best] + cost[i, j]
            came[i, j] = ways[best]
    if not np.isfinite(total[-1, -1]):
        return np.inf, []
    path = [(n - 1, m - 1)]
    while path[-1] != (0, 0):
        path.append(came[path[-1]])
    return total[-1, -1], path[::-1]


def nearest(queries, points):
    return cost_matrix(queries, points).min(axis=1)


def spaced(stroke, step):
    """Points evenly spaced along a stroke, both ends kept."""
    stroke = np.asarray(stroke, float)
    along = np.concatenate([[0.0], np.cumsum([np.hypot(*(q - p)) for p, q in pairwise(stroke)])])
    if along[-1] < 1e-9:
        return stroke[:1]
    at = np.linspace(0, along[-1], max(round(along[-1] / step), 1) + 1)
    return np.column_stack([np.interp(at, along, stroke[:, k]) for k in (0, 1)])
