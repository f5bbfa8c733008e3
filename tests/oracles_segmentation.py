"""Slow, obvious twins of the segmentation kernels."""

from __future__ import annotations

import numpy as np


def steps_from(seeds, ink):
    """Count the steps over ink, to any of eight neighbours, from the seeds to each pixel; inf where there is no way."""
    steps = np.full(ink.shape, np.inf)
    front = {(y, x) for y, x in np.argwhere(seeds & ink).tolist()}
    count = 0
    while front:
        for pixel in front:
            steps[pixel] = count
        around = {(y + dy, x + dx) for y, x in front for dy in (-1, 0, 1) for dx in (-1, 0, 1)}
        front = {
            (y, x)
            for y, x in around
            if 0 <= y < ink.shape[0] and 0 <= x < ink.shape[1] and ink[y, x] and np.isinf(steps[y, x])
        }
        count += 1
    return steps


def nearest_labels(ink, labels):
    """Return for each pixel the set of labels to which it is nearest along the ink; empty where none is reached."""
    numbers = np.unique(labels[labels >= 0]).tolist()
    steps = {n: steps_from(labels == n, ink) for n in numbers}
    out = np.empty(ink.shape, dtype=object)
    for y, x in np.ndindex(ink.shape):
        least = min((steps[n][y, x] for n in numbers), default=np.inf)
        out[y, x] = {n for n in numbers if steps[n][y, x] == least} if np.isfinite(least) else set()
    return out
