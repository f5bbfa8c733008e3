"""Points as objects: ``{"x": 145, "y": 122, "s": 1}``, and columns: ``{"x": [145, …], "y": [122, …]}``.

Names are what counts; quotes, commas and brackets may be missing or of another kind. An object is a point once it is
closed, so that a number which the token limit cuts is never used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inktraj.parse import parallel
from inktraj.parse.lexer import KEY, Lexed
from inktraj.parse.reading import CUT, GOOD, MALFORMED, Found, Reading, last_flags, listed, roots
from inktraj.parse.roles import FLAGS
from inktraj.parse.tuples import strokes_of
from inktraj.parse.vocabulary import X, Y, among

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


def read(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read points that are objects with x and y.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    n = len(lexed.opened)
    usable = free & (lexed.bracket >= 0) & (lexed.kind != KEY)
    ix, iy = np.flatnonzero(usable & among(lexed.label, X)), np.flatnonzero(usable & among(lexed.label, Y))
    if not len(ix) or not len(iy):
        return None
    n_x, n_y = np.bincount(lexed.bracket[ix], minlength=n), np.bincount(lexed.bracket[iy], minlength=n)
    touched = (n_x + n_y > 0) & (n_x <= 1) & (n_y <= 1) & (lexed.children == 0)
    good = touched & (n_x == 1) & (n_y == 1) & (lexed.closed >= 0)
    if not good.any():
        return None
    chosen = np.flatnonzero(touched)
    at_x, at_y = np.full(n, -1), np.full(n, -1)
    at_x[lexed.bracket[ix]], at_y[lexed.bracket[iy]] = ix, iy
    flags, flag_name = last_flags(lexed, FLAGS, usable)
    x, y, s = at_x[chosen], at_y[chosen], flags[chosen]
    fine = good[chosen]
    xy = np.stack([lexed.value[x], lexed.value[y]], axis=1)
    xy[~fine] = np.nan
    flag = np.where(fine & (s >= 0), lexed.value[s], np.nan)
    closed = lexed.closed[chosen]
    state = np.where(fine, GOOD, np.where(closed < 0, CUT, MALFORMED))
    span = np.stack([lexed.opened[chosen], np.where(closed < 0, len(lexed.text), closed + 1)], axis=1)
    both = np.stack([x, y, s], axis=1)
    ends = np.stack([np.where(both < 0, len(lexed), both).min(axis=1), both.max(axis=1)], axis=1)
    owner = lexed.parent[chosen]
    root = roots(lexed)
    return Found(
        "objects", xy, span, ends, state, flag, flag_name, strokes_of(lexed, owner),
        np.where(owner >= 0, root[owner], -1), named=True,
    ).reading()  # fmt: skip


def read_columns(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read objects that hold one list of x and one of y, and perhaps one of s: each object is a stroke, or the ink.

    Where no object does, columns that stand by themselves are read: see `parallel`.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    lists = (lexed.children == 0) & (lexed.shape == ord("[")) & (lexed.parent >= 0) & (lexed.junk == 0)
    may = lists & (lexed.numbers > 0)
    lists[may] &= free[lexed.first[may]]
    x, y = (_by_owner(lexed, lists & among(lexed.name, names)) for names in (X, Y))
    owner = np.flatnonzero((x >= 0) & (y >= 0))
    if not len(owner):
        return parallel.read(lexed, free)
    x, y = x[owner], y[owner]
    s = _by_owner(lexed, lists & among(lexed.name, parallel.FLAG_LISTS))[owner]
    # The last number of a list that is still open may be cut.
    n_x, n_y, n_s = (_safe(lexed, c) for c in (x, y, s))
    count = np.maximum(np.minimum(n_x, n_y), 0)
    if not count.any():
        return None
    which = np.repeat(np.arange(len(owner)), count)
    place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    at_x, at_y = lexed.first[x][which] + place, lexed.first[y][which] + place
    at_s = np.where(place < n_s[which], lexed.first[s][which] + place, -1)
    longer = np.where(n_x > n_y, x, y)
    odd = np.flatnonzero(n_x != n_y)
    broken = lexed.closed[owner] < 0
    rest = lexed.first[longer[odd]] + count[odd]
    last = lexed.first[longer[odd]] + lexed.numbers[longer[odd]] - 1
    dropped = listed(
        "cut" if broken.any() else "odd-count",
        "x and y differ in number: those without a partner are dropped",
        lexed.start[rest], lexed.end[last], lexed.text,
    )  # fmt: skip
    taken = free[at_x] & free[at_y]
    found = Found(
        "columns",
        np.stack([lexed.value[at_x], lexed.value[at_y]], axis=1),
        np.stack([lexed.start[at_x], lexed.end[at_x]], axis=1),
        np.stack([at_x, at_x], axis=1),
        flag=np.where(at_s >= 0, lexed.value[at_s], np.nan),
        flag_name=int(lexed.name[s[0]]) if s[0] >= 0 else 0,
        stroke=owner[which] if len(owner) > 1 else None,
        root=roots(lexed)[owner][which],
        also=np.stack([at_y, at_s], axis=1),
        named=True,
        dropped=dropped,
        broken=bool(broken.any()),
    ).reading()
    return found if taken.all() else None


def _safe(lexed: Lexed, column: IntArray) -> IntArray:
    """Return how many numbers of lists can be used; a list of −1 has none."""
    count = np.where(column >= 0, lexed.numbers[column], 0)
    last = np.where(count > 0, lexed.first[column] + count - 1, 0)
    return count - ((count > 0) & (lexed.closed[column] < 0) & lexed.may_be_cut(last))


def _by_owner(lexed: Lexed, chosen: BoolArray) -> IntArray:
    out = np.full(len(lexed.opened), -1)
    at = np.flatnonzero(chosen)
    out[lexed.parent[at]] = at
    return out
