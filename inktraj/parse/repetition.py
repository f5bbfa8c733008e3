"""Runaway repetition: a model that writes the same points over and over until its token limit."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

LOOPS = 3
"""So many passes make a loop in a reply that was cut; one more in a reply that ended by itself."""

_FEWEST = 12  # points in all passes of a loop


def first_pass(rows: FloatArray, cut: bool) -> tuple[int, int]:
    """Return how many rows to keep of a list that ends in a loop, and how many rows one pass has.

    Parameters
    ----------
    rows
        Array ``(n, k)``: what is written for each point, flags too.
    cut
        Whether the reply was cut at the token limit: then the last pass may be a part of one, and fewer are enough.

    Returns
    -------
    kept, period
        All rows and 0 where the list does not end in a loop.
    """
    n = len(rows)
    if n < _FEWEST:
        return n, 0
    ids = np.ascontiguousarray(rows[::-1]).view(np.int64)
    length, period = _longest_loop(ids, LOOPS if cut else LOOPS + 1)
    if length < (_FEWEST if cut else 2 * _FEWEST):
        return n, 0
    return n - length + period, period


@njit(cache=True, nogil=True)
def _same(ids: NDArray[np.int64], i: int, k: int) -> bool:
    same = True
    for j in range(ids.shape[1]):
        same &= ids[i, j] == ids[k, j]
    return same


@njit(cache=True, nogil=True)
def _longest_loop(ids: NDArray[np.int64], loops: int) -> tuple[int, int]:
    """Return the longest beginning of the rows `ids` that repeats at least `loops` times, and its period.

    Knuth, Morris and Pratt's failure function gives the shortest period of every beginning in one pass.
    """
    n = len(ids)
    border = np.zeros(n + 1, np.int64)
    length, period = 0, 0
    k = 0
    for i in range(1, n):
        while k > 0 and not _same(ids, i, k):
            k = border[k]
        if _same(ids, i, k):
            k += 1
        border[i + 1] = k
        p = i + 1 - k
        if i + 1 >= loops * p:
            length, period = i + 1, p
    return length, period
