"""Points as brackets of two or three numbers: ``(145, 122, 1)``, ``[145, 122]``, nested in any way.

Only closed brackets are points: a number that the token limit cuts never looks like a whole one. Lists inside of lists
are strokes (``[[[1, 2], [3, 4]], [[5, 6]]]``); one list of points says nothing of strokes unless points have an s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inktraj.parse import roles
from inktraj.parse.lexer import Lexed
from inktraj.parse.mentions import ONE_POINT
from inktraj.parse.reading import CUT, GOOD, MALFORMED, Found, Problem, Reading, last_flags, roots
from inktraj.parse.vocabulary import X, Y, among, labels

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

COLUMNS = np.sort(np.concatenate([X, Y, labels("s", "starts", "flags", "pen")]))
"""Names of lists that hold one number of each point."""
_ONE_STROKE = labels("stroke")
_OPENERS = (ord("["), ord("("))


def read(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read points that are brackets of numbers.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    leaf = (lexed.children == 0) & (lexed.numbers > 0) & np.isin(lexed.shape, _OPENERS)
    leaf &= ~among(lexed.name, COLUMNS)
    strange = np.zeros(len(leaf), dtype=bool)  # brackets with numbers that are taken, or have names
    strange[lexed.bracket[(lexed.bracket >= 0) & (~free | (lexed.label != 0))]] = True
    leaf &= ~strange
    if not leaf.any():
        return None
    good = leaf & (lexed.closed >= 0) & (lexed.junk == 0) & ((lexed.numbers == 2) | (lexed.numbers == 3))
    good &= ~_beside_runs(lexed, leaf, good)
    good, role = _columns(lexed, leaf, good)
    root = roots(lexed)
    wrong = leaf & ~good & _belongs(lexed, leaf, good, root)
    chosen = np.flatnonzero(good | wrong)
    if not good.any():
        return None
    return _points(lexed, free, chosen, good, root, role)


def _beside_runs(lexed: Lexed, leaf: BoolArray, good: BoolArray) -> BoolArray:
    """Whether a bracket of two numbers is a short run of coordinates beside longer ones: ``[[1,2,3,4],[5,6]]``."""
    run = leaf & (lexed.numbers >= 4) & (lexed.parent >= 0) & (lexed.shape == _OPENERS[0])
    if not run.any():
        return np.asarray(run)
    runs = np.bincount(lexed.parent[run], minlength=len(leaf))
    fine = good & (lexed.parent >= 0)
    points = np.bincount(lexed.parent[fine], minlength=len(leaf))
    return np.asarray(fine & (runs[lexed.parent] >= points[lexed.parent]))


def _columns(lexed: Lexed, leaf: BoolArray, good: BoolArray) -> tuple[BoolArray, roles.Roles]:
    """Return which brackets are points, and what their numbers mean: see `roles`."""
    whole = leaf & (lexed.closed >= 0) & (lexed.junk == 0)
    for k in (4, 5):
        long = whole & (lexed.numbers == k)
        if long.sum() > good.sum():
            role = _roles(lexed, long, k)
            return (good, roles.PLAIN[3]) if role is None else (long, role)
    triple = good & (lexed.numbers == 3)
    if triple.any() and triple.sum() == good.sum():
        return good, _roles(lexed, triple, 3) or roles.PLAIN[3]
    if good.any() and not triple.any():
        return good, _roles(lexed, good, 2) or roles.PLAIN[2]
    return good, roles.PLAIN[3]


def _roles(lexed: Lexed, chosen: BoolArray, k: int) -> roles.Roles | None:
    at = np.flatnonzero(chosen)
    heading = roles.by_heading(roles.line_before(lexed.text, int(lexed.opened[at[0]])), k)
    return heading or roles.by_values(lexed.value[lexed.first[at][:, None] + np.arange(k)])


def _belongs(lexed: Lexed, leaf: BoolArray, good: BoolArray, root: IntArray) -> BoolArray:
    """Whether a bracket that is no point was meant as one: it stands among points, or looks like them."""
    holds = np.zeros(len(leaf), dtype=bool)
    holds[lexed.parent[good & (lexed.parent >= 0)]] = True
    sibling = np.asarray(np.where(lexed.parent >= 0, holds[lexed.parent], False))
    shape = np.bincount(lexed.shape[good], minlength=256).argmax()
    alike = (lexed.parent < 0) & (lexed.shape == shape) & (lexed.numbers >= 2) & (lexed.numbers <= 5)
    rooted = np.zeros(len(leaf), dtype=bool)
    rooted[root[good]] = True
    open_end = (lexed.closed < 0) & rooted[root] & (lexed.numbers <= 3)
    last_open = (lexed.closed < 0) & (np.arange(len(leaf)) == len(leaf) - 1)
    return np.asarray(sibling | alike | open_end | last_open)


def _points(
    lexed: Lexed, free: BoolArray, chosen: IntArray, good: BoolArray, root: IntArray, role: roles.Roles
) -> Reading:
    first, count = lexed.first[chosen], lexed.numbers[chosen]
    fine = good[chosen]
    top = len(lexed) - 1
    x, y, s = (np.minimum(first + k, top) for k in (role.x, role.y, max(role.s, 0)))
    xy = np.stack([lexed.value[x], lexed.value[y]], axis=1)
    xy[~fine] = np.nan
    flag = np.where(fine & (count > role.s) & (role.s >= 0), lexed.value[s], np.nan)
    notes = [Problem("columns", int(lexed.opened[chosen[0]]), role.note)] if role.note else []
    closed = lexed.closed[chosen]
    state = np.where(fine, GOOD, np.where(closed < 0, CUT, MALFORMED))
    span = np.stack([lexed.opened[chosen], np.where(closed < 0, len(lexed.text), closed + 1)], axis=1)
    ends = np.stack([first, first + count - 1], axis=1)
    owner, flag_name = lexed.parent[chosen].copy(), role.name
    alone = _wrapped(lexed, chosen)
    if alone.any():  # {"point": [145, 122], "s": 1}
        named, flag_name = last_flags(lexed, roles.FLAGS, free)
        around = owner[alone]
        has = named[around] >= 0
        flag[alone] = np.where(has & np.isnan(flag[alone]), lexed.value[named[around]], flag[alone])
        closing = lexed.closed[around]
        whole = (closing >= 0) & (state[alone] == GOOD)
        span[alone, 0] = np.where(whole, lexed.opened[around], span[alone, 0])
        span[alone, 1] = np.where(whole, closing + 1, span[alone, 1])
        ends[alone, 0] = np.where(has & whole, np.minimum(ends[alone, 0], named[around]), ends[alone, 0])
        ends[alone, 1] = np.where(has & whole, np.maximum(ends[alone, 1], named[around]), ends[alone, 1])
        owner[alone] = lexed.parent[around]
    stroke = strokes_of(lexed, owner)
    dropped = _crosswise(lexed, owner, flag) if role == roles.PLAIN[3] else []
    return Found(
        "tuples",
        xy,
        span,
        ends,
        state,
        flag,
        flag_name,
        stroke,
        np.where(owner >= 0, root[owner], -1),
        named=role.named,
        notes=notes,
        dropped=dropped,
    ).reading()


def _crosswise(lexed: Lexed, owner: IntArray, flag: NDArray[np.float64]) -> list[Problem]:
    """Tell of lists that all hold two brackets of three numbers that are no s: all x, then all y."""
    if (owner < 0).any() or not np.isfinite(flag).all() or roles.is_flag(flag) or roles.is_pressure(flag):
        return []
    held = np.bincount(owner)
    if (held[owner] != 2).any():
        return []
    why = "two lists of three numbers: each is read as a point, but they may be all x and all y"
    return [Problem("columns", int(lexed.opened[owner[0]]), why)]


def _wrapped(lexed: Lexed, chosen: IntArray) -> BoolArray:
    """Whether a bracket is the only one in a ``{}``, which then stands for one point."""
    parent = lexed.parent[chosen]
    brace = (parent >= 0) & (lexed.shape[parent] == ord("{")) & (lexed.children[parent] == 1)
    return np.asarray(brace) & among(lexed.name[chosen], ONE_POINT)


def strokes_of(lexed: Lexed, owner: IntArray) -> IntArray:
    """Return which stroke each point is of by the lists that hold the points (−1: they do not say).

    Parameters
    ----------
    lexed
        What the lexer found.
    owner
        ``(n,)``: the bracket that directly holds each point, −1 for none.
    """
    held = owner >= 0
    lists = held & np.isin(lexed.shape[owner], _OPENERS)
    parent = np.where(lists, lexed.parent[owner], -1)
    nested = lists & (lexed.depth[owner] >= 2) & (lexed.closed[owner] != lexed.opened[owner])
    siblings = np.zeros(len(owner), dtype=bool)
    if lists.any():
        # {"stroke1": [[1, 2]], "stroke2": [[3, 4]]}: lists side by side in one object.
        pairs = np.unique(np.stack([owner[lists], parent[lists]], axis=1), axis=0)
        inside = pairs[pairs[:, 1] >= 0, 1]
        many = np.zeros(len(lexed.opened) + 1, dtype=np.int64)
        np.add.at(many, inside, 1)
        siblings = lists & (parent >= 0) & (many[parent] > 1)
    one = lists & among(lexed.name[owner], _ONE_STROKE)
    objects = held & ~lists & (lexed.children[owner] > 1)
    one |= objects & bool((objects == held).all()) & bool(held.all())  # objects that hold points side by side
    return np.where(nested | siblings | one, owner, -1)
