"""Points spaced evenly along a path."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def resample(path, n, step, out):  # type: ignore[no-untyped-def]
    """Points of path[:n] spaced evenly, as near to `step` as the length allows, ends kept; returns how many."""
    total = 0.0
    for k in range(n - 1):
        total += np.hypot(path[k + 1, 0] - path[k, 0], path[k + 1, 1] - path[k, 1])
    if total < 1e-9:
        out[0] = path[0]
        return 1
    count = max(int(np.rint(total / step)), 1)
    spacing = total / count
    out[0] = path[0]
    m, along = 1, 0.0
    for k in range(n - 1):
        dx, dy = path[k + 1, 0] - path[k, 0], path[k + 1, 1] - path[k, 1]
        d = np.hypot(dx, dy)
        while m < count and m * spacing <= along + d:
            t = (m * spacing - along) / d
            out[m, 0], out[m, 1] = path[k, 0] + t * dx, path[k, 1] + t * dy
            m += 1
        along += d
    out[m] = path[n - 1]
    return m + 1
