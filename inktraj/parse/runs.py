"""Flat lists of coordinates, ``[145, 122, 1, 150, 130, 0, …]``, and rows of numbers without brackets.

The number of columns is read off the list: three where each third number is 0 or 1 and the first is 1, else two. A
number that closes no point is dropped. In lists that are still open at the end of the reply, the last number is dropped
with its point: the token limit may have cut it.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from inktraj.parse import parallel, roles
from inktraj.parse.characters import codes
from inktraj.parse.lexer import BLANK, COMMA, NEWLINE, NUMBER, OTHER, PIPE, SEMICOLON, SLASH, Lexed
from inktraj.parse.reading import MALFORMED, Found, Problem, Reading, listed, roots
from inktraj.parse.tuples import COLUMNS
from inktraj.parse.vocabulary import among, labels

_TAG = re.compile(r"<(?:svg|ink|path|points?|trace|polyline)\b")  # numbers in tags are attributes
_HEADINGS = labels("strokes", "stroke", "points", "path", "ink", "trajectory", "coordinates", "answer", "output")

_STROKES = labels("strokes", "stroke", "ink", "paths")
_BOX = 4  # so many numbers may be a box, or a line from here to there

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


def read(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read lists that hold all coordinates one after another.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    flat = (lexed.children == 0) & (lexed.junk == 0) & (lexed.shape != ord("{"))
    flat &= ~among(lexed.name, COLUMNS) & ~parallel.are_columns(lexed)
    strange = np.zeros(len(flat), dtype=bool)
    inside = lexed.bracket >= 0
    strange[lexed.bracket[inside & (~free | (lexed.label != 0) | (lexed.kind != NUMBER))]] = True
    flat &= ~strange
    long = flat & (lexed.numbers >= 4)
    if not long.any():
        return None
    # Short lists beside long ones are short strokes; an open list at the end may be short too.
    beside = np.zeros(len(flat), dtype=bool)
    beside[lexed.parent[long & (lexed.parent >= 0)]] = True
    flat &= long | np.where(lexed.parent >= 0, beside[lexed.parent], False)
    chosen = np.flatnonzero(flat & (lexed.numbers > 0))
    chosen = chosen[~_is_box(lexed, chosen)]
    last = lexed.first[chosen] + lexed.numbers[chosen] - 1
    at_end = (lexed.closed[chosen] < 0) & lexed.may_be_cut(last)
    count = lexed.numbers[chosen] - at_end
    columns = _columns(lexed, lexed.first[chosen], count, lexed.closed[chosen] < 0)
    stroke = chosen if len(chosen) > 1 or lexed.depth[chosen[0]] > 1 else None
    found = _points(lexed, "flat", lexed.first[chosen], count, columns, stroke)
    if found is None:
        return None
    found.root = roots(lexed)[lexed.bracket[found.ends[:, 0]]]
    _doubt(lexed, found, chosen, columns)
    last = last[at_end]
    why = "the last number of an open list may be cut; dropped"
    found.dropped += listed("cut", why, lexed.start[last], lexed.end[last], lexed.text)
    found.broken = bool((lexed.closed[chosen] < 0).any())
    return found.reading()


def _is_box(lexed: Lexed, chosen: IntArray) -> BoolArray:
    """Whether a list by itself, beside longer ones, is a box: x0, y0, x1 > x0, y1 > y0."""
    count = lexed.numbers[chosen]
    box = (count == _BOX) & (lexed.parent[chosen] < 0) & bool((count > _BOX).any())
    box[box] = (lexed.value[lexed.first[chosen[box]] + 2] > lexed.value[lexed.first[chosen[box]]]) & (
        lexed.value[lexed.first[chosen[box]] + 3] > lexed.value[lexed.first[chosen[box]] + 1]
    )
    return np.asarray(box)


def _doubt(lexed: Lexed, found: Found, chosen: IntArray, columns: int) -> None:
    """Take no box for points, and tell of lists that may as well be all x and all y."""
    count, parent = lexed.numbers[chosen], lexed.parent[chosen]
    if columns != 2:
        return
    called = (parent >= 0).all() and among(lexed.name[parent], _STROKES).all()
    if (
        (count == _BOX).all()
        and not called
        and (lexed.closed[chosen] >= 0).all()
        and _is_even(lexed, lexed.first[chosen]).all()
    ):
        found.state = np.full(len(found.xy), MALFORMED)
        return
    pairs = len(chosen) % 2 == 0 and (parent >= 0).all() and (count[::2] == count[1::2]).all()
    if pairs and _is_even(lexed, lexed.first[chosen]).all() and (np.bincount(parent)[parent] == 2).all():
        start, end = lexed.opened[chosen[::2]], lexed.closed[chosen[1::2]]
        end = np.where(end < 0, len(lexed.text), end + 1)
        why = "two lists of one length: each is read as x, y, x, y …, but they may be all x and all y"
        found.dropped += listed("columns", why, start, end, lexed.text)


def _is_even(lexed: Lexed, first: IntArray) -> BoolArray:
    """Whether nothing sets pairs apart in runs of four numbers: not ``1 2, 3 4`` or ``1,2 3,4``."""
    return np.asarray(lexed.gap[first + 1] == lexed.gap[first + 2])


def _columns(lexed: Lexed, first: IntArray, count: IntArray, open_end: BoolArray) -> int:
    """Return 3 where each third number of all lists is 0 or 1, else 2."""
    thirds = _indices(first + 2, count // 3, 3)
    flags = lexed.value[thirds]
    if not len(thirds) or not ((flags == 0) | (flags == 1)).all():
        return 2
    if len(thirds) > 2 or _by_threes(lexed, first, count):
        return 3
    # One or two triples may as well be pairs. In an open list the very first flag tells, else what the number allows.
    rest = np.where(open_end, 0, count)
    return 3 if flags[0] == 1 and ((rest % 3 == 0).all() or (rest % 2 != 0).any()) else 2


def _by_threes(lexed: Lexed, first: IntArray, count: IntArray) -> bool:
    """Whether spaces part each three numbers and commas those within: ``12,22,1 30,40,0``."""
    at = _indices(first, count, 1)
    place = at - np.repeat(first, np.maximum(count, 0))
    later = place > 0
    comma = (lexed.gap[at] & COMMA) != 0
    return bool((comma[later] == (place[later] % 3 != 0)).all()) and bool((place >= 3).any())


def _indices(first: IntArray, count: IntArray, step: int) -> IntArray:
    """Return first[i] + step · (0 … count[i] − 1), one run after another."""
    count = np.maximum(count, 0)
    which = np.repeat(np.arange(len(first)), count)
    return first[which] + step * (np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count))


def _points(
    lexed: Lexed, dialect: str, first: IntArray, count: IntArray, columns: int, stroke: IntArray | None
) -> Found | None:
    """Cut runs of numbers into points; what is left over at the end of a run is dropped."""
    number = np.maximum(count, 0) // columns
    at = _indices(first, number, columns)
    if not len(at):
        return None
    last = at + columns - 1
    found = Found(
        dialect,
        np.stack([lexed.value[at], lexed.value[at + 1]], axis=1),
        np.stack([lexed.start[at], lexed.end[last]], axis=1),
        np.stack([at, last], axis=1),
        flag=lexed.value[last] if columns == 3 else None,
        stroke=None if stroke is None else np.repeat(stroke, number),
    )
    odd = np.flatnonzero(count % columns != 0)
    rest, end = first[odd] + columns * number[odd], first[odd] + count[odd] - 1
    found.dropped = listed(
        "odd-count", f"numbers that make no whole point of {columns}; dropped",
        lexed.start[rest], lexed.end[end], lexed.text, count[odd] % columns,
    )  # fmt: skip
    return found


def read_rows(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read numbers without brackets and names: a point a line (``145 122 1``), or all in one line.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    usable = free & (lexed.kind == NUMBER) & (lexed.bracket < 0) & ((lexed.label == 0) | among(lexed.label, _HEADINGS))
    if _TAG.search(lexed.text):
        usable &= ~_in_tags(lexed)
    # "1." or "2)" or "3:" begins an item of a list.
    usable &= ~(np.isin(lexed.follow, (ord("."), ord(")"), ord(":"))) & _begins_row(lexed))
    at = np.flatnonzero(usable)
    if len(at) < 2:
        return None
    broken = (np.append(0, np.diff(at)) != 1) | (lexed.words[at] > 0) | ((lexed.gap[at] & OTHER) != 0)
    broken[0] = True
    for ends in (NEWLINE, NEWLINE | SEMICOLON | PIPE | SLASH):  # points parted by lines, by another sign, or by none
        first = np.flatnonzero(broken | ((lexed.gap[at] & ends) != 0))
        count = np.diff(np.append(first, len(at)))
        if (count > 5).any() or (ends != NEWLINE and (count > 3).any()):
            continue
        k = int(np.bincount(count, minlength=4)[2:].argmax()) + 2
        row = (count == k) & ~_has_slashes(lexed, at, first, count)
        if row.any():
            found = _table(lexed, at[first[row]], k)
            if found is not None:
                return found.reading()
            if k < 4:
                return None
    return _one_line(lexed, at, broken)


def _in_tags(lexed: Lexed) -> BoolArray:
    """Whether a number stands within a tag: an attribute."""
    code, at = codes(lexed.text), np.arange(len(lexed.text))
    opens = np.maximum.accumulate(np.where(code == ord("<"), at, -1))
    closes = np.maximum.accumulate(np.where(code == ord(">"), at, -1))
    return np.asarray((opens > closes)[lexed.start])


def _has_slashes(lexed: Lexed, at: IntArray, first: IntArray, count: IntArray) -> BoolArray:
    """Whether a slash stands within a row: a date, a fraction."""
    within = (lexed.gap[at] & SLASH) != 0
    within[first] = False
    return np.asarray(np.add.reduceat(within.astype(np.int64), first) > 0)


def _table(lexed: Lexed, start: IntArray, k: int) -> Found | None:
    """Read rows of k numbers, one for each point; None where they are no points."""
    table = lexed.value[start[:, None] + np.arange(k)]
    heading = roles.line_before(lexed.text, int(lexed.start[start[0]]))
    role = roles.by_heading(heading, k) or roles.by_values(table)
    if ";" in heading and role and role.named and (lexed.gap[start[0] + 1] & SEMICOLON) == 0:
        return None  # x;y and 12,5;22,5: decimal commas
    if role is None or (len(start) == 1 and not (role.named or (k == 3 and roles.is_flag(table[:, 2])))):
        return None
    last = start + k - 1
    found = Found(
        "rows",
        table[:, [role.x, role.y]],
        np.stack([lexed.start[start], lexed.end[last]], axis=1),
        np.stack([start, last], axis=1),
        flag=table[:, role.s] if role.s >= 0 and k > role.s else None,
        flag_name=role.name,
        named=role.named,
    )
    if role.note:
        found.notes = [Problem("columns", int(found.span[0, 0]), role.note)]
    return found


def _begins_row(lexed: Lexed) -> BoolArray:
    begins = (lexed.gap & NEWLINE) != 0
    begins[:1] = True
    return np.asarray(begins)


def _one_line(lexed: Lexed, at: IntArray, broken: BoolArray) -> Reading | None:
    """Read long runs of numbers; lines are strokes where there are several."""
    new = broken | ((lexed.gap[at] & (NEWLINE | SEMICOLON | PIPE | BLANK)) != 0)
    first = np.flatnonzero(new)
    count = np.diff(np.append(first, len(at)))
    long = count >= 4
    if not long.any():
        return None
    first, count = first[long], count[long]
    open_end = lexed.may_be_cut(at[first + count - 1])
    columns = _columns(lexed, at[first], count, open_end)
    stroke = at[first] if len(first) > 1 and columns == 2 else None
    found = _points(lexed, "rows", at[first], count, columns, stroke)
    if found is None:
        return None
    if columns == 2 and (count == _BOX).all() and _is_even(lexed, at[first]).all():
        found.state = np.full(len(found.xy), MALFORMED)
    return found.reading()
