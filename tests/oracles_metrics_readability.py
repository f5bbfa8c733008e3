"""Slow, obvious twins of `inktraj.metrics.readability` and `inktraj.metrics.statistics`."""

from functools import cache

import numpy as np


def all_alignments(target, reading):
    """Every way to turn the target into the reading, as counts (hits, substitutions, deletions, insertions)."""

    @cache
    def ways(i, j):
        if i == len(target) and j == len(reading):
            return frozenset([(0, 0, 0, 0)])
        out = set()
        if i < len(target) and j < len(reading):
            same = target[i] == reading[j]
            out |= {(h + same, s + (not same), d, n) for h, s, d, n in ways(i + 1, j + 1)}
        if i < len(target):
            out |= {(h, s, d + 1, n) for h, s, d, n in ways(i + 1, j)}
        if j < len(reading):
            out |= {(h, s, d, n + 1) for h, s, d, n in ways(i, j + 1)}
        return frozenset(out)

    return ways(0, 0)


def edits(target, reading):
    """The counts of the alignments with the fewest edits and, among these, the most hits."""
    ways = all_alignments(target, reading)
    fewest = min(s + d + i for _, s, d, i in ways)
    shortest = [way for way in ways if sum(way[1:]) == fewest]
    most = max(way[0] for way in shortest)
    return {way for way in shortest if way[0] == most}


def drawn_means(values, clusters, resamples, seed):
    """Means of values over clusters drawn with replacement, one by one, from the same random numbers."""
    names = list(dict.fromkeys(clusters))
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(resamples):
        taken = [names[i] for i in rng.integers(0, len(names), size=len(names))]
        held = [v for name in taken for v, c in zip(values, clusters, strict=True) if c == name and not np.isnan(v)]
        if held:
            out.append(np.mean(held))
    return np.array(out)
