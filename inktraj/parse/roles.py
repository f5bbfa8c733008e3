"""Which column of a point is x, which y, and which says where strokes start: by a heading, else by the values.

By values, where points have more than two numbers (c0, c1, …):

* a last number that is 0 or 1 at each point is s, and c0, c1 are x, y; of four or five numbers it must begin with 1;
* a c0 that counts the points (0, 1, 2, … or 1, 2, 3, …) is passed over;
* a c0 that is 0 or 1 at each point, or that begins with 0 or 1 and goes up by 1 now and then, is s or the number of
  the stroke, unless the last number is a pressure (a fraction of 1);
* in between may stand a time (it never falls) or a pressure, which are passed over.

Anything else of four or more numbers is no point: boxes and lines have four as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.vocabulary import X, Y, labels, packed

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

FLAGS = labels(
    *("s", "start", "isstart", "strokestart", "startofstroke", "new", "newstroke", "begin", "first", "flag"),
    *("pen", "pendown", "down", "penstate", "state", "pressed", "touch", "p"),
    *("penup", "up", "lift", "end", "endofstroke", "isend", "strokeend", "last", "stop"),
    *("action", "type", "event", "op", "cmd", "command", "mode", "status"),
    *("stroke", "strokeid", "strokeindex", "strokenumber", "strokeno", "strokenum"),
)
"""Names of what says where strokes start."""

NUMBERS = labels("stroke", "strokeid", "strokeindex", "strokenumber", "strokeno", "strokenum")
"""Those of them that are a stroke's own number."""

_NAME = re.compile(r"[^\W\d][\w ]*|#")
_LONGEST = 200  # characters of a line that may be a heading


@dataclass(frozen=True, slots=True)
class Roles:
    """Columns of x, y and s (−1: none), the name of s, what is worth telling, and whether x and y are named."""

    x: int
    y: int
    s: int = -1
    name: int = 0
    note: str = ""
    named: bool = False


PLAIN = {2: Roles(0, 1), 3: Roles(0, 1, 2)}
"""Roles where nothing says otherwise, by the number of columns."""

_STROKE = packed("stroke")


def by_values(table: FloatArray) -> Roles | None:
    """Tell columns by their values; None where these are no points.

    Parameters
    ----------
    table
        Array ``(n, k)``, n ≥ 1: a row for each point.
    """
    n, k = table.shape
    if k < 3:
        return PLAIN[2] if k == 2 else None
    first, last = table[:, 0], table[:, -1]
    if k == 3:
        return _three(table)
    if k > 5:
        return None
    if is_flag(last) and last[0] == 1:
        if counts_up(first) and k == 4:
            return Roles(1, 2, 3, note="the first number counts the points")
        if k == 4 and is_number(first) and (np.diff(first) == last[1:]).all():
            return Roles(1, 2, 3, note="the first number is the stroke's")
        if all(is_time(c) or is_pressure(c) for c in table[:, 2:-1].T):
            return Roles(0, 1, k - 1, note="the numbers between y and s are passed over")
        return None
    if k == 4 and is_flag(table[:, 2]) and table[0, 2] == 1 and (is_time(last) or is_pressure(last)):
        return Roles(0, 1, 2, note="the last of four numbers is passed over")
    if k == 4 and n > 1 and is_number(first) and _counts_within(table[:, 1], first):
        return Roles(2, 3, 0, _STROKE, "the first numbers are the stroke's and the point's")
    if k == 4 and n > 1 and counts_up(first) and is_number(table[:, 1]):
        return Roles(2, 3, 1, _STROKE, "the first numbers are the point's and the stroke's")
    return None


def _three(table: FloatArray) -> Roles:
    n = len(table)
    first, last = table[:, 0], table[:, 2]
    if n < 2 or is_flag(last) or (is_pressure(last) and not is_pressure(table[:, 1])):
        return PLAIN[3]
    if n > 2 and counts_up(first):
        return Roles(1, 2, note="the first number counts the points")
    if is_time(first) and first[0] == 0 and last[0] != 0 and not is_number(first):
        return Roles(1, 2, note="the first number is a time")
    if is_number(first) and not counts_up(first):
        return Roles(1, 2, 0, _STROKE, "the first number is the stroke's")
    if is_flag(first) and first.any():
        return Roles(1, 2, 0, note="the first number is s")
    return PLAIN[3]


def is_flag(column: FloatArray) -> bool:
    """Whether all values are 0 or 1."""
    return bool(((column == 0) | (column == 1)).all())


def is_number(column: FloatArray) -> bool:
    """Whether values begin with 0 or 1 and then stay or go up by one: the number of a stroke."""
    step = np.diff(column)
    return bool(column[0] in (0, 1) and ((step == 0) | (step == 1)).all() and (column[-1] > 1 or _rises(column)))


def _rises(column: FloatArray) -> bool:
    """Tell stroke numbers 0 0 1 1 (or 1 1 1) from flags: a 1 is followed by no 0."""
    return bool(column[-1] == 1 and (column[0] == 1 or (column == 0).sum() > 1))


def is_time(column: FloatArray) -> bool:
    """Whether values of three points or more never fall, and rise."""
    return len(column) > 2 and bool((np.diff(column) >= 0).all()) and bool(column[-1] > column[0])


def is_pressure(column: FloatArray) -> bool:
    """Whether all values are within 0 and 1, and not all whole."""
    return bool(((column >= 0) & (column <= 1)).all()) and not is_flag(column)


def counts_up(column: FloatArray) -> bool:
    """Whether values count from 0 or 1 on."""
    return len(column) > 1 and column[0] in (0, 1) and bool((np.diff(column) == 1).all())


def _counts_within(column: FloatArray, number: FloatArray) -> bool:
    """Whether values count up from 0 or 1 anew with each number."""
    new = np.append(True, np.diff(number) != 0)
    step = np.diff(column)
    return bool(np.isin(column[new], (0, 1)).all() and (step[~new[1:]] == 1).all() and (~new).any())


def by_heading(line: str, k: int) -> Roles | None:
    """Tell columns by a line of names: ``stroke,x,y`` or ``| # | X | Y |``.

    Parameters
    ----------
    line
        The line before the first point.
    k
        How many numbers each point has.

    Returns
    -------
    Roles or None
        None where the line is no heading for k numbers, or names no x and y.
    """
    if len(line) > _LONGEST:
        return None
    parts = [p.strip(" *`_()[]\"'") for p in re.split(r"[,;|\t&]", line.strip(" |*`"))]
    if len(parts) == 1:
        parts = parts[0].split()
    if len(parts) != k or not all(_NAME.match(p) for p in parts):
        return None
    names = [packed(p.partition("(")[0].replace(" ", "")) for p in parts]
    xs, ys = ([i for i, name in enumerate(names) if name in wanted] for wanted in (X, Y))
    if len(xs) != 1 or len(ys) != 1:
        return None
    flags = sorted((_rank(name), i) for i, name in enumerate(names) if name in FLAGS)
    s = flags[0][1] if flags else -1
    plain = xs[0] == 0 and ys[0] == 1 and s in (-1, 2) and k < 4
    return Roles(xs[0], ys[0], s, names[s] if s >= 0 else 0, "" if plain else "a heading names the columns", True)


def _rank(name: int) -> int:
    """Order names by how surely they say where strokes start: p may be a pressure."""
    return 2 if name == packed("p") else 1 if name in NUMBERS else 0


def line_before(text: str, position: int) -> str:
    """Return the last line before a position that has letters, at most three lines up; "" if there is none."""
    end = position
    for _ in range(4):
        start = text.rfind("\n", max(end - _LONGEST, 0), end)
        line = text[start + 1 : end]
        if any(c.isalpha() for c in line):
            return line if start >= 0 or end <= _LONGEST else ""
        if start < 0:
            break
        end = start
    return ""
