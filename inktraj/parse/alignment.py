"""Which asked word each named word of a page's reply stands for.

Words are compared without case, quotes and punctuation around them (``end`` answers ``end.``). Where a word is answered
as often as it was asked for, the k-th answer is for its k-th occurrence; answers that agree in case too come first.
Where not, the order of all words on the page decides: of all ways to align the answers with the asked words in order
that pair the most of them, a pair is taken only if it is in each; what order cannot tell is left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.parse.characters import plain

IntArray = NDArray[np.int64]

NONE, UNCLEAR = -1, -2
"""The word of an answer that was not asked for, and of one that may be for several."""

_AROUND = re.compile(r"^[\W_]+|[\W_]+$")
_MOST = 4_000_000  # pairs of words that are compared in order
_PAIR = 1 << 20  # what a pair is worth, beside one for equal case and punctuation


def folded(word: str) -> str:
    """Return a word as it is compared: without case, and without signs around it unless it is all signs."""
    bare = plain(word).strip()
    return (_AROUND.sub("", bare) or bare).casefold()


def align(answered: Sequence[str], asked: Sequence[str]) -> list[int]:
    """Return the place in `asked` of each answered word, or `NONE` or `UNCLEAR`.

    Parameters
    ----------
    answered, asked
        Words in order.
    """
    groups: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, words in enumerate((answered, asked)):
        for i, word in enumerate(words):
            groups[folded(word)][side].append(i)
    out = [NONE] * len(answered)
    unsettled = []
    for theirs, ours in groups.values():
        if len(theirs) == len(ours):
            for i, j in _by_case(theirs, ours, answered, asked):
                out[i] = j
        elif theirs and ours:
            unsettled += theirs
    if not unsettled:
        return out
    names = {name: i for i, name in enumerate(groups)}
    a, b = (np.array([names[folded(w)] for w in words], dtype=np.int64) for words in (answered, asked))
    spelled: dict[str, int] = {}
    s, t = (
        np.array([spelled.setdefault(plain(w).strip(), len(spelled)) for w in words], dtype=np.int64)
        for words in (answered, asked)
    )
    partner = sure_pairs(a, b, s, t) if len(a) * len(b) <= _MOST else np.full(len(a), UNCLEAR)
    for i in unsettled:
        out[i] = int(partner[i])
    return out


def _by_case(
    theirs: list[int], ours: list[int], answered: Sequence[str], asked: Sequence[str]
) -> list[tuple[int, int]]:
    """Pair the k-th answer with the k-th occurrence, of each spelling by itself where all spellings agree."""
    first = sorted((plain(answered[i]).strip(), i) for i in theirs)
    second = sorted((plain(asked[j]).strip(), j) for j in ours)
    if [spelling for spelling, _ in first] == [spelling for spelling, _ in second]:
        return [(i, j) for (_, i), (_, j) in zip(first, second, strict=True)]
    return list(zip(theirs, ours, strict=True))


@njit(cache=True, nogil=True)
def sure_pairs(a: IntArray, b: IntArray, s: IntArray, t: IntArray) -> IntArray:
    """Return the partner in `b` of each of `a` in every best alignment.

    Parameters
    ----------
    a, b
        ``(n,)``, ``(m,)``: words, equal where they may be paired.
    s, t
        ``(n,)``, ``(m,)``: their spellings, equal where a pair is worth a little more.

    Returns
    -------
    IntArray
        ``(n,)``: `UNCLEAR` where the best alignments differ, or pair it with none.
    """
    n, m = len(a), len(b)
    head, tail = np.zeros((n + 1, m + 1), np.int64), np.zeros((n + 1, m + 1), np.int64)
    for i in range(n):
        for j in range(m):
            best = max(head[i, j + 1], head[i + 1, j])
            if a[i] == b[j]:
                best = max(best, head[i, j] + _PAIR + (s[i] == t[j]))
            head[i + 1, j + 1] = best
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            best = max(tail[i + 1, j], tail[i, j + 1])
            if a[i] == b[j]:
                best = max(best, tail[i + 1, j + 1] + _PAIR + (s[i] == t[j]))
            tail[i, j] = best
    partner, count, takers = np.full(n, UNCLEAR), np.zeros(n, np.int64), np.zeros(m, np.int64)
    for i in range(n):
        for j in range(m):
            if a[i] == b[j] and head[i, j] + _PAIR + (s[i] == t[j]) + tail[i + 1, j + 1] == head[n, m]:
                partner[i] = j
                count[i] += 1
                takers[j] += 1
    for i in range(n):
        if count[i] != 1 or takers[partner[i]] != 1:
            partner[i] = UNCLEAR
    return partner
