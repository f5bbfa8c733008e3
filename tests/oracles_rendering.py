"""The slow, obvious twin of `inktraj.rendering`: every sample against every segment."""

from __future__ import annotations

import numpy as np


def outside(x, y, strokes, radii):
    """Return how far each sample (x, y) is outside the pen: min over discs along the strokes of distance − radius."""
    best = np.full(np.shape(x), np.inf)
    for points, r in zip(strokes, radii, strict=True):
        for i in range(max(len(points) - 1, 1)):
            (ax, ay), (bx, by) = points[i], points[min(i + 1, len(points) - 1)]
            ra, rb = r[i], r[min(i + 1, len(points) - 1)]
            if ra == rb:
                length2 = (bx - ax) ** 2 + (by - ay) ** 2
                t = np.clip(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length2, 0, 1) if length2 else 0.0
                best = np.minimum(best, np.hypot(x - ax - t * (bx - ax), y - ay - t * (by - ay)) - ra)
            else:
                for t in np.linspace(0, 1, 1001):
                    d = np.hypot(x - ax - t * (bx - ax), y - ay - t * (by - ay))
                    best = np.minimum(best, d - ra - t * (rb - ra))
    return best


def shares(width, height, strokes, radii, n, tolerance=1e-9):
    """Return the least and the greatest share of touched samples of each pixel, ties within `tolerance` either way."""
    steps = (np.arange(n) + 0.5) / n - 0.5
    x = (np.arange(width)[:, None] + steps).ravel()
    y = (np.arange(height)[:, None] + steps).ravel()
    d = outside(*np.meshgrid(x, y), strokes, radii)

    def mean(inside):
        return inside.reshape(height, n, width, n).mean(axis=(1, 3))

    return mean(d <= -tolerance), mean(d <= tolerance)
