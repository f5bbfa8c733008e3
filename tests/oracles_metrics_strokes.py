"""Slow, obvious twins of the kernels for strokes and for shared ink."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np


def align(a, b):
    """DTW total and path length by the full table; ties diagonal, up, left."""
    total = np.full((len(a) + 1, len(b) + 1), np.inf)
    length = np.zeros(total.shape, int)
    total[0, 0] = 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            before = min([(i - 1, j - 1), (i - 1, j), (i, j - 1)], key=lambda at: total[at])
            total[i, j] = total[before] + np.hypot(*(a[i - 1] - b[j - 1]))
            length[i, j] = length[before] + 1
    return total[-1, -1], length[-1, -1]


def cheaper(p, r):
    """Cost in the cheaper direction."""
    return min(align(p, r)[0], align(p[::-1], r)[0])


def least_paid(pred, ref):
    """The least that can be paid, over all ways to match the strokes of two lists."""
    cost = np.array([[cheaper(p, r) for r in ref] for p in pred])
    if len(pred) > len(ref):
        cost = cost.T
    rows, columns = range(cost.shape[0]), range(cost.shape[1])
    alone = cost.min(axis=0)
    return min(
        sum(cost[i, j] for i, j in zip(rows, chosen, strict=True)) + sum(alone[j] for j in set(columns) - set(chosen))
        for chosen in permutations(columns, len(rows))
    )


def decompose(pred, ref, pairs, turned):
    """DTW mean and its parts of two lists of strokes, given the pairs and which of them are reversed."""
    partner = {int(i): int(j) for i, j in pairs}
    flipped = {int(pair[0]) for pair, turn in zip(pairs, turned, strict=True) if turn}
    keys, last = [], -1
    for i in range(len(pred)):  # a stroke without a partner sorts behind the one before it
        last = partner.get(i, last)
        keys.append((last, i))
    order = [i for _, i in sorted(keys)]

    def mean(strokes):
        total, length = align(np.concatenate(strokes), np.concatenate(ref))
        return total / length

    dtw = mean(pred)
    ordered = mean([pred[i] for i in order])
    shape = mean([pred[i][::-1] if i in flipped else pred[i] for i in order])
    return dtw, dtw - ordered, ordered - shape, shape


def squared_distances(drawn):
    """Squared distance of each pixel to the nearest drawn one, by trying them all."""
    at = np.argwhere(drawn)
    everywhere = np.indices(drawn.shape).reshape(2, -1).T
    return ((everywhere[:, None] - at[None]) ** 2).sum(-1).min(1).reshape(drawn.shape)


def thin(points, starts, shape, x, y):
    """Pixels (h, w) under strokes in pixels; the first pixel is at (x, y)."""
    out = np.zeros(shape, bool)
    for begin, end in pairwise(starts):
        stroke = points[begin:end]
        for a, b in pairwise(stroke) if len(stroke) > 1 else [(stroke[0], stroke[0])]:
            n = int(np.ceil(np.abs(b - a).max()))
            for t in np.arange(n + 1) / max(n, 1):
                column, row = np.floor(a + t * (b - a) + 0.5).astype(int) - (x, y)
                out[row, column] = True
    return out


def aiou(points, starts, mask):
    """Best overlap over all radii up to half the glyph's longer side, on a canvas on which everything fits."""
    rows, columns = np.nonzero(mask)
    limit = (max(np.ptp(rows), np.ptp(columns)) + 2) // 2
    low = np.floor(np.minimum(points.min(0), 0)).astype(int) - limit
    high = np.ceil(np.maximum(points.max(0), (mask.shape[1], mask.shape[0]))).astype(int) + limit + 1
    glyph = np.zeros((high - low)[::-1], bool)
    glyph[-low[1] : -low[1] + mask.shape[0], -low[0] : -low[0] + mask.shape[1]] = mask
    squared = squared_distances(thin(points, starts, glyph.shape, *low))
    return max(
        (squared[glyph] <= d).sum() / (glyph | (squared <= d)).sum() for d in np.unique(squared) if d <= limit * limit
    )
