"""Slow and obvious twins of the kernels of inktraj.parse."""

from __future__ import annotations

import re

NUMBER = re.compile(r"(?:(?<![0-9)\].}])(?<![A-Za-z]{2})[-+])?(?:\d+(?:\.\d+)?|(?<!\.)\.\d+)(?:[eE][-+]?\d+)?")


def numbers(text: str) -> list[tuple[int, int, float]]:
    """Start, end and value of each number in a text without words, quotes, comments and thousands separators."""
    return [(m.start(), m.end(), float(m[0])) for m in NUMBER.finditer(text)]


def brackets(text: str) -> list[tuple[int, int, int]]:
    """Where each bracket opens and closes (−1: nowhere), and where the one around it opens (−1: there is none)."""
    found, stack = [], []
    for i, c in enumerate(text):
        if c in "([{":
            found.append([i, -1, found[stack[-1]][0] if stack else -1])
            stack.append(len(found) - 1)
        elif c in ")]}" and stack:
            found[stack.pop()][1] = i
    return [tuple(f) for f in found]


def longest_loop(rows: list, loops: int) -> tuple[int, int]:
    """Longest end of a list that repeats at least so many times, and its shortest period."""
    n = len(rows)
    for length in range(n, 1, -1):
        end = rows[n - length :]
        for period in range(1, length // loops + 1):
            if all(end[i] == end[i + period] for i in range(length - period)):
                return length, period
    return 0, 0


def sure_pairs(a: list, b: list) -> list[int | None]:
    """Partner in b of each of a that is the same in all alignments in order which pair the most; None: none is."""

    def alignments(i: int, j: int) -> list[tuple[tuple[int, int], ...]]:
        if i == len(a) or j == len(b):
            return [()]
        found = alignments(i + 1, j) + alignments(i, j + 1)
        if a[i] == b[j]:
            found += [((i, j), *rest) for rest in alignments(i + 1, j + 1)]
        return found

    every = set(alignments(0, 0))
    best = [dict(pairs) for pairs in every if len(pairs) == max(map(len, every))]
    used = [{pairs[i] for pairs in best if i in pairs} for i in range(len(a))]
    alone = [{i for pairs in best for i, k in pairs.items() if k == j} for j in range(len(b))]
    return [next(iter(js)) if len(js) == 1 and len(alone[next(iter(js))]) == 1 else None for js in used]
