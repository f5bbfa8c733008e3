"""Slow, obvious twins of what `inktraj.agree` computes."""

from functools import cache
from itertools import product

import numpy as np


def fewest_edits(a, b, join_limit):
    """Fewest edits between two lists of words, by trying everything; a word may equal several of the other side."""

    @cache
    def best(i, j):
        if i == len(a) and j == len(b):
            return 0
        options = []
        if i < len(a):
            options.append(1 + best(i + 1, j))
        if j < len(b):
            options.append(1 + best(i, j + 1))
        if i < len(a) and j < len(b):
            options.append(1 + best(i + 1, j + 1))
        for di, dj in product(range(1, join_limit + 1), repeat=2):
            fits = min(di, dj) == 1 and i + di <= len(a) and j + dj <= len(b)
            if fits and "".join(a[i : i + di]) == "".join(b[j : j + dj]):
                options.append(best(i + di, j + dj))
        return min(options)

    return best(0, 0)


def covered_share(ink, by, tolerance):
    """Share of the pixels of `ink` with one of `by` within the tolerance, by measuring every pair; None without ink."""
    points, others = np.argwhere(ink), np.argwhere(by)
    if not len(points):
        return None
    if not len(others):
        return 0.0
    distances = np.sqrt(((points[:, None] - others[None]) ** 2).sum(axis=2)).min(axis=1)
    return float((distances <= tolerance).mean())
