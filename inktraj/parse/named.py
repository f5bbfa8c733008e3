"""Points as named numbers in a row: ``x145y122 x150y130``, ``x=145, y=122``, with or without marks for strokes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.lexer import KEY, Lexed
from inktraj.parse.reading import CUT, GOOD, MALFORMED, Found, Reading, roots
from inktraj.parse.vocabulary import X, Y, among, labels

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_S = labels("s", "pen", "p", "start")


def read(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read each x that a y follows (or the other way round), and an s behind them or before.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    n = len(lexed)
    usable = free & (lexed.kind != KEY)
    is_x, is_y = usable & among(lexed.label, X), usable & among(lexed.label, Y)
    axes = np.flatnonzero(is_x | is_y)
    if not len(axes) or not is_x.any() or not is_y.any():
        return None
    leads_x = bool(is_x[axes[0]])
    lead, follow = (is_x, is_y) if leads_x else (is_y, is_x)
    heads = np.flatnonzero(lead)
    paired = (heads + 1 < n) & follow[np.minimum(heads + 1, n - 1)]
    if not paired.any():
        return None
    lonely = np.flatnonzero(follow & ~np.append(False, lead[:-1]))
    at = np.concatenate([heads, lonely])
    fine = np.concatenate([paired, np.zeros(len(lonely), dtype=bool)])
    second = np.where(fine, np.minimum(at + 1, n - 1), at)
    x, y = (at, second) if leads_x else (second, at)
    xy = np.where(fine[:, None], np.stack([lexed.value[x], lexed.value[y]], axis=1), np.nan)
    at_end = (lexed.end[second] >= len(lexed.text.rstrip(" \n\t,;.:=xXyY\"'-"))) & ~fine
    state = np.where(fine, GOOD, np.where(at_end, CUT, MALFORMED))
    flag, first, last, name = _flags(lexed, usable, at, second, fine)
    root = roots(lexed)
    bracket = lexed.bracket[at]
    # The letter before belongs to the point: it stands directly before its first number.
    start = lexed.start[first] - ((lexed.start[first] > 0) & (lexed.label[first] != 0))
    return Found(
        "x145y122",
        xy,
        np.stack([start, lexed.end[last]], axis=1),
        np.stack([first, last], axis=1),
        state,
        flag,
        name,
        None,
        np.where(bracket >= 0, root[bracket] if len(root) else -1, -1),
        named=True,
    ).reading()


def _flags(
    lexed: Lexed, usable: BoolArray, at: IntArray, second: IntArray, fine: BoolArray
) -> tuple[FloatArray, IntArray, IntArray, int]:
    """Return each point's s, its first and last number with that, and the name that s has."""
    n = len(lexed)
    is_s = usable & among(lexed.label, _S)
    flag = np.full(len(at), np.nan)
    after = fine & (second + 1 < n) & is_s[np.minimum(second + 1, n - 1)]
    before = fine & (at > 0) & is_s[np.maximum(at - 1, 0)]
    behind = after.sum() >= before.sum()
    chosen = after if behind else before
    place = np.where(chosen, second + 1 if behind else at - 1, 0)
    flag[chosen] = lexed.value[place[chosen]]
    first = np.where(chosen & ~behind, place, at)
    last = np.where(chosen & behind, place, second)
    name = int(lexed.label[place[chosen][0]]) if chosen.any() else 0
    return flag, first, last, name
