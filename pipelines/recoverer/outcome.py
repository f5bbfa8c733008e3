"""How far a way over the graph is from the recording: what training wants to be small."""

from __future__ import annotations

import numpy as np
from numba import njit

from inktraj.metrics.wavefront import align
from inktraj.recovery.policy import Way
from recoverer.samples import Sample

STEP = 0.02  # of the word's longer side
START_NEAR = 0.05  # of the longer side: a start no further off counts as found


@njit(cache=True, nogil=True)
def polyline(points, start, path, marks, step):
    """The way's points, spaced by about `step` within each stroke."""
    total = 0.0
    for t in range(len(path)):
        i = path[t] // 2
        for k in range(start[i], start[i + 1] - 1):
            total += np.hypot(points[k + 1, 0] - points[k, 0], points[k + 1, 1] - points[k, 1])
    out = np.empty((int(total / step) + 2 * len(marks) + 4, 2))
    m = 0
    for s in range(len(marks) - 1):
        due, x, y = 0.0, 0.0, 0.0
        fresh = True
        for t in range(marks[s], marks[s + 1]):
            i, back = path[t] // 2, path[t] % 2
            for k in range(start[i + 1] - start[i]):
                p = start[i] + k if back == 0 else start[i + 1] - 1 - k
                if fresh:
                    out[m] = points[p]
                    m += 1
                    fresh = False
                    due = step
                else:
                    d = np.hypot(points[p, 0] - x, points[p, 1] - y)
                    while d >= due and d > 0:
                        r = due / d
                        x, y = x + r * (points[p, 0] - x), y + r * (points[p, 1] - y)
                        if m < len(out):
                            out[m, 0], out[m, 1] = x, y
                            m += 1
                        d -= due
                        due = step
                    due -= d
                x, y = points[p]
        if due < 0.9 * step and m < len(out):
            out[m, 0], out[m, 1] = x, y
            m += 1
    return out[:m]


@njit(cache=True, nogil=True)
def outcome(points, start, path, marks, reference, n_strokes):
    """DTW in the reference's box, pen-up error and distance of the starts."""
    side = 1e-9
    for k in range(2):
        side = max(side, reference[:, k].max() - reference[:, k].min())
    way = polyline(points, start, path, marks, STEP * side)
    away = np.hypot(way[0, 0] - reference[0, 0], way[0, 1] - reference[0, 1]) / side
    total, length = align(way, reference)
    return total / length / side, abs(len(marks) - 1 - n_strokes), away


def outcome_of(sample: Sample, way: Way) -> tuple[float, int, float]:
    """`outcome` of a way found on a sample's graph."""
    lines = sample.lines
    return outcome(lines.points, lines.start, way.path, way.marks, sample.reference, len(sample.reference_marks) - 1)
