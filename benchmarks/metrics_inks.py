"""Made trajectories for `metrics.py`: as long and as curved as handwriting, seeded, no data needed."""

from __future__ import annotations

import numpy as np

Points = np.ndarray  # (n, 2) float64, in pixels

STROKE = 49  # points of a stroke on average, as in inkGround
NOISE = 2.0  # pixels by which a predicted point is off


def stroke(rng: np.random.Generator, n: int, x: float, y: float, size: float) -> Points:
    """A loopy curve to the right of (x, y)."""
    t = np.linspace(0, 1, n)
    out = np.stack([x + 1.5 * size * t, np.full(n, y)], axis=1)
    for k in range(1, 6):
        a, b, p, q = rng.normal(size=4)
        out[:, 0] += size * a / k * np.sin(2 * np.pi * k * t + p)
        out[:, 1] += size * b / k * np.sin(2 * np.pi * k * t + q)
    return out


def word(rng: np.random.Generator, n: int, size: float = 40.0) -> list[Points]:
    """Strokes of `n` points in all, beside each other; the larger, the longer their loops."""
    out, x = [], 0.0
    while n > 0:
        count = int(min(n, max(8, rng.normal(STROKE, 15))))
        out.append(stroke(rng, count, x, 0.0, size))
        n, x = n - count, x + 30
    return out


def page(rng: np.random.Generator, n: int) -> list[Points]:
    """Strokes of `n` points in all, in lines over a page of 2000 pixels."""
    out, x, y = [], 60.0, 60.0
    while n > 0:
        count = int(min(n, max(8, rng.normal(STROKE, 15))))
        out.append(stroke(rng, count, x, y, 12.0))
        n, x = n - count, x + 45
        if x > 1900:
            x, y = 60.0, y + 80
    return out


def predicted(rng: np.random.Generator, points: Points, n: int) -> Points:
    """`n` points along the same way at another pace, each a little off."""
    pace = np.cumsum(rng.gamma(2.0, 1.0, n))
    at = (pace - pace[0]) / max(pace[-1] - pace[0], 1e-9) * (len(points) - 1)
    way = [np.interp(at, np.arange(len(points)), points[:, axis]) for axis in (0, 1)]
    return np.ascontiguousarray(np.stack(way, axis=1) + rng.normal(0, NOISE, (n, 2)))


def pairs(count: int, low: int, high: int, seed: int) -> list[tuple[Points, Points]]:
    """Predictions and references of `low` to `high` points."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        n = int(rng.integers(low, high + 1))
        m = int(np.clip(n * rng.uniform(0.8, 1.25), low, high))
        reference = np.concatenate(word(rng, n))
        out.append((predicted(rng, reference, m), reference))
    return out
