"""Paths over the graph → smooth strokes, spaced by arc length, with their local width."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.arclength import resample
from inktraj.recovery.graph import F32, I64, SkeletonGraph

F64 = NDArray[np.float64]

TRIM = 0.8  # radii of a junction that a path through it leaves out: it cuts the corner, as the pen did
FINE = 1.0  # pixels between points while a path is smoothed


@njit(cache=True)
def _smooth(path, n, weights, closed, out):  # type: ignore[no-untyped-def]
    """Convolve path[:n] with a symmetric kernel into out; beyond the ends it goes on point-mirrored, or round."""
    r = len(weights) - 1
    for k in range(n):
        x, y = weights[0] * path[k, 0], weights[0] * path[k, 1]
        for j in range(1, r + 1):
            for side in range(-1, 2, 2):
                i = k + side * j
                if closed:
                    i %= n - 1
                    px, py = path[i, 0], path[i, 1]
                elif i < 0:
                    i = min(-i, n - 1)
                    px, py = 2 * path[0, 0] - path[i, 0], 2 * path[0, 1] - path[i, 1]
                elif i >= n:
                    i = max(2 * (n - 1) - i, 0)
                    px, py = 2 * path[n - 1, 0] - path[i, 0], 2 * path[n - 1, 1] - path[i, 1]
                else:
                    px, py = path[i, 0], path[i, 1]
                x += weights[j] * px
                y += weights[j] * py
        out[k, 0], out[k, 1] = x, y


@njit(cache=True)
def _append_edge(h, skip_start, skip_end, start, points, out, n):  # type: ignore[no-untyped-def]
    """Append a half-edge's path without the given arc lengths at its start and end; at least one point stays."""
    i = h // 2
    a, b = start[i], start[i + 1]
    count = b - a
    length = 0.0
    for k in range(a, b - 1):
        length += np.hypot(points[k + 1, 0] - points[k, 0], points[k + 1, 1] - points[k, 1])
    along = 0.0
    for k in range(count):
        p = a + k if h % 2 == 0 else b - 1 - k
        if k > 0:
            q = p - 1 if h % 2 == 0 else p + 1
            along += np.hypot(points[p, 0] - points[q, 0], points[p, 1] - points[q, 1])
        if along < skip_start - 1e-9 or along > length - skip_end + 1e-9:
            continue
        if n > 0 and out[n - 1, 0] == points[p, 0] and out[n - 1, 1] == points[p, 1]:
            continue
        out[n] = points[p]
        n += 1
    return n


@njit(cache=True)
def _strokes(path, offsets, radius, degree, ends, start, points, length, weights, step):  # type: ignore[no-untyped-def]
    """Build all strokes into one array; returns points and offsets."""
    total, longest = 0, 0
    for s in range(len(offsets) - 1):
        size, ink = 4, 0.0
        for t in range(offsets[s], offsets[s + 1]):
            i = path[t] // 2
            size += start[i + 1] - start[i]
            ink += length[i]
        longest = max(longest, size + int(2 * ink / min(FINE, step)) + 8)
        total += int(2 * ink / step) + 4 * (offsets[s + 1] - offsets[s]) + 8
    raw, even, soft = np.empty((longest, 2)), np.empty((longest, 2)), np.empty((longest, 2))
    joined = np.empty((2 * longest + 8, 2))
    out = np.empty((total, 2))
    marks = np.zeros(len(offsets), np.int64)
    n_out = 0
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        t, n_joined = first, 0
        while t < last:  # a piece between two turns in dead ends
            u, n = t, 0
            while True:
                h = path[u]
                i, side = h // 2, h % 2
                v, w = ends[i, side], ends[i, 1 - side]
                through_v = u > t and degree[v] > 2
                through_w = u + 1 < last and path[u + 1] != (h ^ 1) and degree[w] > 2
                skip_v = min(TRIM * radius[v], 0.4 * length[i]) if through_v else 0.0
                skip_w = min(TRIM * radius[w], 0.4 * length[i]) if through_w else 0.0
                n = _append_edge(h, skip_v, skip_w, start, points, raw, n)
                u += 1
                if u == last or path[u] == (h ^ 1):
                    break
            h = path[t]
            ring = u == t + 1 and t == first and u == last and ends[h // 2, 0] == ends[h // 2, 1]
            ring = ring and degree[ends[h // 2, 0]] == 2
            n = resample(raw, n, FINE, even)
            if n > 3:
                _smooth(even, n, weights, ring, soft)
                if ring:
                    soft[n - 1] = soft[0]
            else:
                soft[:n] = even[:n]
            n = resample(soft, n, step, even)
            for k in range(n):
                if k == 0 and n_joined > 0:
                    continue
                joined[n_joined] = even[k]
                n_joined += 1
            t = u
        for k in range(n_joined):
            out[n_out] = joined[k]
            n_out += 1
        marks[s + 1] = n_out
    return out[:n_out].copy(), marks


@njit(cache=True)
def _local_widths(distance, points):  # type: ignore[no-untyped-def]
    """Ink width at points: twice the largest distance to the rim near by (a path may be a pixel off the middle)."""
    height, width = distance.shape
    out = np.empty(len(points))
    for k in range(len(points)):
        x = min(max(points[k, 0], 0.0), width - 1.0)
        y = min(max(points[k, 1], 0.0), height - 1.0)
        u, v = int(x), int(y)
        best = 0.0
        for j in range(max(v - 1, 0), min(v + 3, height)):
            for i in range(max(u - 1, 0), min(u + 3, width)):
                best = max(best, distance[j, i])
        out[k] = max(2.0 * best - 0.5, 1.0)
    return out


def build_strokes(
    graph: SkeletonGraph, distance: F32, path: I64, offsets: I64, *, pen: float, step: float
) -> tuple[F64, I64, F64]:
    """Turn traversals into points.

    Parameters
    ----------
    graph, path, offsets
        The graph and its strokes as half-edges, from `traverse`.
    distance
        ``(h, w)``, each pixel's distance to the nearest paper pixel.
    pen
        Pen width in pixels; the smoothing's reach follows it.
    step
        Arc length between points, in pixels.

    Returns
    -------
    points, offsets, widths
        ``(n, 2)``; stroke ``k`` is ``points[offsets[k]:offsets[k + 1]]``; ``(n,)`` local widths.
    """
    sigma = min(max(0.15 * pen, 0.8), 4.0)
    weights = np.exp(-0.5 * (np.arange(int(3 * sigma) + 1) / sigma) ** 2)
    weights /= weights[0] + 2 * weights[1:].sum()
    points, marks = _strokes(
        path,
        offsets,
        graph.radius,
        graph.degree(),
        graph.ends,
        graph.start,
        graph.points,
        graph.lengths(),
        weights,
        step,
    )
    return points, marks, _local_widths(distance, points)
