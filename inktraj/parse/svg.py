"""SVG paths: ``<path d="M 10 20 L 30 40"/>``, polylines, and bare path data.

M, L, H, V and Z are read, absolute and relative. Of a curve (C, S, Q, T, A) only its end is a point on the pen's way;
it is kept, and the curve reported. Transforms are not applied.
"""

from __future__ import annotations

import re

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.parse.characters import codes
from inktraj.parse.lexer import Lexed
from inktraj.parse.reading import CUT, GOOD, Found, Problem, Reading, listed

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_PATH = re.compile(r"\bd\s*+=\s*+[\"']\s*+([^\"'<>]*+)([\"']?)")
_BARE = re.compile(
    r"[Mm](?<![A-Za-z][Mm])[\s,]*+(?=[-+.\d])"
    r"(?:[-+.\d\s,]|[eE](?=[-+\d])|[MLHVZCSQTAmlhvzcsqta](?![A-Za-z]))*+"
)
_POLYLINE = re.compile(r"<(?:polyline|polygon|line)\b[^<>]*?\bpoints\s*+=\s*+[\"']([^\"'<>]*+)([\"']?)")
_ARGUMENTS = np.zeros(256, dtype=np.int64)
for _letter, _count in {"m": 2, "l": 2, "h": 1, "v": 1, "z": 0, "c": 6, "s": 4, "q": 4, "t": 2, "a": 7}.items():
    _ARGUMENTS[ord(_letter)] = _ARGUMENTS[ord(_letter.upper())] = _count


def read(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read paths and polylines.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    paths, bare = _paths(lexed.text)
    if not paths:
        return None
    begin, end, closed = np.array(paths, dtype=np.int64).T
    path = np.searchsorted(begin, lexed.start, side="right") - 1
    at = np.flatnonzero((path >= 0) & (lexed.start < end[np.maximum(path, 0)]) & free)
    if len(at) < 2:
        return None
    letters = _commands(lexed.text, begin, end)
    # Lines of one text, one number or command after another.
    place = np.concatenate([lexed.start[at], letters])
    order = np.argsort(place, kind="stable")
    is_letter = (np.arange(len(place)) >= len(at))[order]
    code = codes(lexed.text)[place[order]]
    value = np.where(is_letter, 0.0, np.concatenate([lexed.value[at], np.zeros(len(letters))])[order])
    number = np.concatenate([at, np.full(len(letters), -1)])[order]
    which = np.searchsorted(begin, place[order], side="right") - 1
    xy, info, lost = _walk(is_letter, code, value, which, number, _ARGUMENTS)
    first, last, stroke, curve = info.T
    if not len(xy):
        return None
    point = _without_dots(xy, stroke, curve)
    last = np.where(np.append(~point[1:], False), np.append(last[1:], 0), last)
    found = Found(
        "svg", xy[point], np.stack([lexed.start[first], lexed.end[last]], axis=1)[point],
        np.stack([first, last], axis=1)[point], stroke=stroke[point], named=True,
    )  # fmt: skip
    _report(lexed, found, lost, info, closed, end, bare)
    return found.reading()


def _paths(text: str) -> tuple[list[tuple[int, int, bool]], bool]:
    """Return where path data stands, and whether it stands there without a tag."""
    found = []
    if "=" in text:
        found = [(m.start(1), m.end(1), bool(m[2])) for m in _PATH.finditer(text) if m[1][:1] in ("M", "m", "")]
        found += [(m.start(1), m.end(1), bool(m[2])) for m in _POLYLINE.finditer(text)]
    found = sorted(p for p in found if p[1] > p[0])
    if found:
        return found, False
    return [(m.start(), m.end(), m.end() < len(text)) for m in _BARE.finditer(text)], True


def _commands(text: str, begin: IntArray, end: IntArray) -> IntArray:
    """Return where commands stand within the paths; the e of an exponent is none."""
    code = codes(text)
    inside = np.zeros(len(code) + 1, dtype=np.int64)
    np.add.at(inside, begin, 1)
    np.add.at(inside, end, -1)
    lower = code | 32
    letter = (lower >= 97) & (lower <= 122) & (np.cumsum(inside[:-1]) > 0) & (lower != 101)
    return np.flatnonzero(letter)


@njit(cache=True, nogil=True)
def _walk(is_letter, code, value, which, number, arguments):  # type: ignore[no-untyped-def]
    """Follow the pen; return points, their first and last number, stroke, and whether a curve ends there."""
    n = len(code)
    xy, info = np.empty((n + 1, 2)), np.empty((n + 1, 4), np.int64)
    lost = np.empty(n, np.int64)
    held = np.empty(7)
    count, n_lost, n_held, first = 0, 0, 0, -1
    command, path, stroke = 0, -1, 0
    x, y, x0, y0 = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        if which[i] != path or is_letter[i]:
            for k in range(n_held):
                lost[n_lost] = number[i - n_held + k]
                n_lost += 1
            n_held = 0
        if which[i] != path:
            path = which[i]
            command = 80  # a polyline: pairs of numbers, without a command
            x, y = 0.0, 0.0
            stroke += 1
        if is_letter[i]:
            command = code[i]
            if (command == 122 or command == 90) and count > 0 and number[i - 1] >= 0:
                x, y = x0, y0
                xy[count] = (x, y)
                info[count] = (number[i - 1], number[i - 1], stroke, 0)
                count += 1
            continue
        wanted = 2 if command == 80 else arguments[command]
        if wanted == 0:
            lost[n_lost] = number[i]
            n_lost += 1
            continue
        if n_held == 0:
            first = number[i]
        held[n_held] = value[i]
        n_held += 1
        if n_held < wanted:
            continue
        relative = command >= 97
        low = command | 32
        if low == 104:
            x = held[0] + (x if relative else 0.0)
        elif low == 118:
            y = held[0] + (y if relative else 0.0)
        else:
            x = held[wanted - 2] + (x if relative else 0.0)
            y = held[wanted - 1] + (y if relative else 0.0)
        if low == 109:
            stroke += 1
            x0, y0 = x, y
            command = 108 if relative else 76  # more numbers behind M are lines
        curved = low == 99 or low == 115 or low == 113 or low == 116 or low == 97
        xy[count] = (x, y)
        info[count] = (first, number[i], stroke, 1 if curved else 0)
        count += 1
        n_held = 0
    for k in range(n_held):
        lost[n_lost] = number[n - n_held + k]
        n_lost += 1
    return xy[:count], info[:count], lost[:n_lost]


def _without_dots(xy: NDArray[np.float64], stroke: IntArray, curve: IntArray) -> BoolArray:
    """Leave out the second point of a stroke that is one line of no length: ``M 3 4 l 0 0`` is a dot."""
    keep = np.ones(len(xy), dtype=bool)
    begins = np.append(True, stroke[1:] != stroke[:-1])
    ends = np.append(stroke[1:] != stroke[:-1], True)
    second = np.flatnonzero(~begins & ends & np.append(False, begins[:-1]))
    keep[second[(xy[second] == xy[second - 1]).all(axis=1) & (curve[second] == 0)]] = False
    return keep


def _report(
    lexed: Lexed, found: Found, lost: IntArray, info: IntArray, closed: IntArray, end: IntArray, bare: bool
) -> None:
    """Tell of curves, of numbers that make no command, and of what is cut."""
    first, last, _, curve = info.T
    curved = np.flatnonzero(curve)
    found.dropped += listed(
        "curve", "a curve: only its end is kept", lexed.start[first[curved]], lexed.end[last[curved]], lexed.text
    )
    found.broken = not closed[-1] and not bare
    at_end = found.broken or end[-1] >= len(lexed.text.rstrip())
    found.dropped += listed(
        "cut" if at_end and len(lost) < 7 else "odd-count", "numbers that make no whole command; dropped",
        lexed.start[lost], lexed.end[lost], lexed.text,
    )  # fmt: skip
    if found.broken and lexed.may_be_cut(last[-1:])[0]:  # its last number may be cut
        found.state = np.where(found.ends[:, 1] == last[-1], CUT, GOOD)
        found.xy = np.where(found.state[:, None] == CUT, np.nan, found.xy)
    if "transform" in lexed.text and not bare:
        found.dropped.append(
            Problem("transform", lexed.text.index("transform"), "a transform is not applied", "transform")
        )
