"""SVG path data → polylines (SVG 1.1, section 8.3)."""

from __future__ import annotations

import math
import re
from array import array
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import ParseError

FloatArray = NDArray[np.float64]

FLATNESS = 0.05
"""Largest distance, in the path's own units, between a curve and the line that stands for it."""

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_SPACE = re.compile(r"[\s,]*")
_ARGUMENTS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "Z": 0}
_MOST = 1000  # segments that stand for one curve


def parse_numbers(text: str) -> FloatArray:
    """Return the numbers of a list separated by spaces or commas; raises ParseError at anything else."""
    out, at = [], _end(_SPACE, text, 0)
    while at < len(text):
        match = _NUMBER.match(text, at)
        if match is None:
            raise ParseError(f"{text[at : at + 20]!r} at position {at} is not a number")
        out.append(float(match[0]))
        if math.isinf(out[-1]):
            raise ParseError(f"{match[0][:20]!r} at position {at} is beyond all coordinates")
        at = _end(_SPACE, text, match.end())
    return np.array(out, dtype=np.float64)


def parse_path(data: str) -> list[FloatArray]:
    """Return a path's subpaths as polylines.

    Parameters
    ----------
    data
        The attribute ``d``: commands M, L, H, V, C, S, Q, T, Z, absolute and relative.

    Returns
    -------
    list of arrays
        ``(n, 2)`` each. A subpath that is one relative line of no length, ``M 3 4 l0 0``, is a dot: one point.
        A lone M draws nothing, as in SVG.

    Raises
    ------
    ParseError
        Not of SVG's grammar, elliptic arcs (A), or a number beyond all coordinates.
    """
    pen = _Pen()
    for command, numbers, at in _commands(data):
        if pen.subpath is None and command not in "Mm":
            raise ParseError(f"path data begin with {command!r}, expected M")
        try:
            pen.draw(command, numbers)
        except OverflowError as err:
            raise ParseError(f"the command {command!r} at position {at} goes beyond all coordinates") from err
    return pen.finished()


def _commands(data: str) -> list[tuple[str, list[float], int]]:
    """Return each command with its numbers; a repeated one is written out, and points after M are lines."""
    out = []
    at = _end(_SPACE, data, 0)
    while at < len(data):
        command, start = data[at], at
        if command in "Aa":
            raise ParseError(f"an elliptic arc at position {at}, which is not read; turn it into Bézier curves first")
        if command.upper() not in _ARGUMENTS:
            raise ParseError(f"{data[at : at + 20]!r} at position {at} is not a command of path data")
        numbers: list[float] = []
        at = _end(_SPACE, data, at + 1)
        while (match := _NUMBER.match(data, at)) is not None:
            numbers.append(float(match[0]))
            at = _end(_SPACE, data, match.end())
        size = _ARGUMENTS[command.upper()]
        if (len(numbers) % size if size else len(numbers)) or (size and not numbers):
            raise ParseError(f"the command {command!r} at position {start} has {len(numbers)} numbers, not {size} each")
        for i in range(0, max(len(numbers), 1), size or 1):
            out.append((command, numbers[i : i + size], start))
            command = {"M": "L", "m": "l"}.get(command, command)
    return out


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


class _Pen:
    """The current point, and the subpaths drawn so far."""

    def __init__(self) -> None:
        self.done: list[FloatArray] = []
        self.subpath: array[float] | None = None  # x, y, x, y …: curves may come to millions of points
        self.dot = False  # the subpath so far is a point and a relative line of no length
        self.at = 0j
        self.control: tuple[str, complex] | None = None  # kind and last control point of the curve before

    def draw(self, command: str, numbers: list[float]) -> None:
        """Carry out one command."""
        kind = command.upper()
        origin = self.at if command.islower() else 0j
        points = [complex(x, y) + origin for x, y in zip(numbers[::2], numbers[1::2], strict=False)]
        if not all(math.isfinite(v) for v in numbers):
            raise OverflowError
        control = None
        if kind == "M":
            self._lift()
            self.subpath = _begun(points[0])
        elif kind == "Z":
            self._close()
            return
        elif kind == "L":
            self._line(points[0], dot=command == "l" and numbers == [0, 0])
        elif kind == "H":
            self._line(complex(numbers[0] + origin.real, self.at.imag))
        elif kind == "V":
            self._line(complex(self.at.real, numbers[0] + origin.imag))
        else:
            control = self._curve(kind, points)
        path = self._open()
        self.at = complex(path[-2], path[-1])
        self.control = control

    def finished(self) -> list[FloatArray]:
        """Return all subpaths."""
        self._lift()
        return self.done

    def _open(self) -> array[float]:
        """Return the subpath being drawn; after Z, a new one begins where the last one did."""
        if not self.subpath:
            self.subpath = _begun(self.at)
        return self.subpath

    def _line(self, point: complex, dot: bool = False) -> None:
        path = self._open()
        self.dot = dot and len(path) == 2
        path.append(point.real)
        path.append(point.imag)
        self.at = point

    def _close(self) -> None:
        if self.subpath:
            self._line(complex(self.subpath[0], self.subpath[1]))
            self._lift()
        self.subpath = array("d")
        self.control = None

    def _lift(self) -> None:
        if self.subpath and len(self.subpath) > 2:
            points = np.array(self.subpath, dtype=np.float64).reshape(-1, 2)
            self.done.append(points[:1] if self.dot and len(points) == 2 else points)
        self.dot = False

    def _curve(self, kind: str, points: list[complex]) -> tuple[str, complex]:
        """Draw a Bézier curve as lines; quadratic ones are raised to cubic ones."""
        start, family = self.at, "C" if kind in "CS" else "Q"
        if kind in "ST":
            before = self.control
            mirrored = 2 * start - before[1] if before and before[0] == family else start
            points = [mirrored, *points]
        last = points[-2]
        if family == "Q":
            control, end = points
            points = [start + 2 / 3 * (control - start), end + 2 / 3 * (control - end), end]
        p0, p1, p2, p3 = start, *points
        # A chord of one of n equal parts is at most max|second difference| · 6 / (8 n²) off (Wang's bound).
        bend = max(abs(p0 - 2 * p1 + p2), abs(p1 - 2 * p2 + p3))
        parts = min(max(math.ceil(math.sqrt(0.75 * bend / FLATNESS)), 1), _MOST)
        path = self._open()
        path.frombytes((_bernstein(parts) @ [(p.real, p.imag) for p in (p0, p1, p2, p3)]).tobytes())
        path.append(p3.real)
        path.append(p3.imag)
        self.dot = False
        return family, last


def _begun(point: complex) -> array[float]:
    return array("d", (point.real, point.imag))


@lru_cache(maxsize=_MOST)
def _bernstein(parts: int) -> FloatArray:
    """Return the weights ``(parts - 1, 4)`` of a cubic curve's four points at its inner points."""
    t = np.linspace(0, 1, parts + 1)[1:-1]
    return np.stack([(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3], axis=1)
