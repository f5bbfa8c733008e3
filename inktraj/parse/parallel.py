"""Columns by themselves: ``x = [12, 30]``, ``y = [22, 40]``, ``s = [1, 0]``, and lines ``x: 12, 30`` and ``y: 22, 40``.

The first x belongs to the first y, the second to the second: each pair of columns is a stroke, if there are several.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.lexer import COMMA, NUMBER, PIPE, SEMICOLON, SPACE, Lexed
from inktraj.parse.reading import Found, Problem, Reading, listed
from inktraj.parse.roles import FLAGS
from inktraj.parse.vocabulary import X, Y, among, labels, packed, words_in

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
Words = NDArray[np.uint64]

FLAG_LISTS = np.sort(np.concatenate([FLAGS, labels("starts", "flags")]))
"""Names of a column that says where strokes start."""
_ARRAYS = words_in("array asarray list tuple tensor")
_OPENERS = (ord("["), ord("("))
_AXIS_WORDS = words_in("coordinates coords values positions")
_AXIS = re.compile(r"\b([xy])[ \-_]?(?:coord|value|pos)\w*+[^\w\n]{1,8}\Z", re.IGNORECASE)
_COLUMNS = np.sort(np.concatenate([X, Y, FLAG_LISTS]))
_NAMES = np.sort(np.concatenate([X, _AXIS_WORDS]))
_LONGEST = 40  # characters of such a name, and so many are looked at
_MOST = 100
_FEWEST = 3  # numbers in columns without s: two may be a range, x from 12 to 30


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns in the order of the text: the first number of each, how many it has, its name, whether it is closed."""

    first: IntArray
    count: IntArray
    name: Words
    closed: BoolArray

    def __getitem__(self, chosen: BoolArray | IntArray) -> _Columns:
        return _Columns(self.first[chosen], self.count[chosen], self.name[chosen], self.closed[chosen])


def read(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read columns that stand in no object.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    for found in (_lists(lexed), _lines(lexed, free)):
        x, y, s = (found[among(found.name, names)] for names in (X, Y, FLAG_LISTS))
        n = min(len(x.first), len(y.first))
        if n:
            made = _points(lexed, x[np.arange(n)], y[np.arange(n)], s)
            if made is not None and free[made.ends[:, 0]].all() and free[made.also[:, 0]].all():
                return made
    return None


def are_columns(lexed: Lexed) -> BoolArray:
    """Return which brackets are lists that bear the name of a coordinate or of s, and are no points by themselves.

    Parameters
    ----------
    lexed
        What the lexer found.
    """
    out = np.zeros(len(lexed.opened), dtype=bool)
    found = _lists(lexed)
    axes = among(found.name, _COLUMNS)
    out[lexed.bracket[found.first[axes]]] = True
    return out


def _lists(lexed: Lexed) -> _Columns:
    """Return lists with a name that are in no other list, or are given to a function that makes an array."""
    if not among(lexed.name, _NAMES).any():
        return _Columns(np.zeros(0, np.int64), np.zeros(0, np.int64), lexed.name[:0], np.zeros(0, bool))
    plain = (lexed.children == 0) & (lexed.numbers > 1) & (lexed.junk == 0) & np.isin(lexed.shape, _OPENERS)
    around = np.maximum(lexed.parent, 0)
    array = (lexed.parent >= 0) & (lexed.children[around] == 1) & (lexed.parent[around] < 0) if len(around) else plain
    array &= among(lexed.call[around], _ARRAYS)
    name = np.where(array, lexed.name[around], np.where(lexed.parent < 0, lexed.name, np.uint64(0)))
    name = _spelled_out(lexed.text, lexed.opened, name)
    at = np.flatnonzero(plain & (name != 0))
    count = lexed.numbers[at]
    may_be_cut = (lexed.closed[at] < 0) & lexed.may_be_cut(lexed.first[at] + count - 1)
    return _Columns(lexed.first[at], count - may_be_cut, name[at], lexed.closed[at] >= 0)


def _lines(lexed: Lexed, free: BoolArray) -> _Columns:
    """Return runs of numbers in no bracket, the first of which has a name."""
    usable = free & (lexed.kind == NUMBER) & (lexed.bracket < 0)
    separators = COMMA | SPACE | SEMICOLON | PIPE
    goes_on = usable & (lexed.label == 0) & ((lexed.gap & ~separators) == 0) & (lexed.words == 0)
    head = np.flatnonzero(~goes_on)
    count = np.diff(np.append(head, len(lexed)))
    long = usable[head] & (lexed.label[head] != 0) & (count > 1)
    head, count = head[long], count[long]
    name = _spelled_out(lexed.text, lexed.start[head], lexed.label[head])
    return _Columns(head, count, name, np.ones(len(head), dtype=bool))


def _spelled_out(text: str, position: IntArray, name: Words) -> Words:
    """Return names where "X coordinates" is x."""
    at = np.flatnonzero(among(name, _AXIS_WORDS))[:_MOST]
    if not len(at):
        return name
    name = name.copy()
    for i in at.tolist():
        said = _AXIS.search(text, max(int(position[i]) - _LONGEST, 0), int(position[i]))
        if said:
            name[i] = packed(said[1])
    return name


def _points(lexed: Lexed, x: _Columns, y: _Columns, s: _Columns) -> Reading | None:
    paired = len(s.first) == len(x.first)
    count = np.maximum(np.minimum(x.count, y.count), 0)
    if count.sum() < (2 if paired else _FEWEST):
        return None
    which = np.repeat(np.arange(len(count)), count)
    place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    at_x, at_y = x.first[which] + place, y.first[which] + place
    at_s = np.full(len(which), -1)
    if paired:
        at_s = np.where(place < s.count[which], s.first[which] + place, -1)
    bracket = lexed.bracket[at_x]
    odd = np.flatnonzero(x.count != y.count)
    longer = np.where(x.count > y.count, x.first, y.first)[odd]
    last = longer + np.maximum(x.count, y.count)[odd] - 1
    broken = not (x.closed.all() and y.closed.all() and s.closed.all())
    dropped = listed(
        "cut" if broken else "odd-count",
        "x and y differ in number: those without a partner are dropped",
        lexed.start[longer + count[odd]], lexed.end[last], lexed.text,
    )  # fmt: skip
    if len(s.first) and not paired:
        why = "columns of s that are not as many as those of x; not used"
        dropped.append(Problem("columns", int(lexed.start[x.first[0]]), why))
    return Found(
        "columns",
        np.stack([lexed.value[at_x], lexed.value[at_y]], axis=1),
        np.stack([lexed.start[at_x], lexed.end[at_x]], axis=1),
        np.stack([at_x, at_x], axis=1),
        flag=np.where(at_s >= 0, lexed.value[at_s], np.nan),
        flag_name=int(s.name[0]) if paired else 0,
        stroke=x.first[which] if len(count) > 1 else None,
        root=_roots(lexed, bracket),
        also=np.stack([at_y, at_s], axis=1),
        named=True,
        dropped=dropped,
        broken=broken,
    ).reading()


def _roots(lexed: Lexed, bracket: IntArray) -> IntArray:
    """Return the outermost bracket around each bracket that is at most two deep; −1 for none."""
    if not len(lexed.opened):
        return bracket
    around = np.where(bracket >= 0, lexed.parent[bracket], -1)
    return np.asarray(np.where(around >= 0, around, bracket))
