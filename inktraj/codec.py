"""Ink ↔ tokens: InkSight's vocabulary, ``(x, y, s)`` tuples, and ``x145y122`` text.

Conventions
-----------
* InkSight (Mitrevski et al., "InkSight: Offline-to-Online Handwriting Conversion by Teaching
  Vision-Language Models to Read and Write", arXiv:2402.05804, section on the ink tokenizer) has 2·N + 3 = 451
  tokens for N = 224: the token of x is x, that of y is 225 + y, both for integers 0–224, and 450 starts a
  stroke. A stroke is its start token, then x and y of each point in turn. Written: ``<ink_token_N>``.
* The frame is scaled, proportions kept, so that its longer side covers 0–224, and centred along the other:
  token = scale · coordinate + offset (`Square`). The frame is covered from edge to edge, so in pixel frames,
  where the centre of the upper left pixel is (0, 0), token 0 stands for −0.5 px. Offsets are exact, not
  rounded to whole pixels as in a padded image.
* Tuples and text, as in inkGround's prompt (its appendix A shows ``(145,122,1)`` and ``x145y122``), are written
  in the frame's own coordinates, rounded to integers, unless a square's side is asked for by
  ``CodecSpec(name, side=224)``. Tuples have s = 1 at a stroke's first point, else 0:
  ``[(145,122,1), (146,124,0)]``. Text has a lone ``s`` before each stroke: ``s x145y122 x146y124``.
* Encoding moves a point by at most half a token along x and y. Widths and times are not encoded.
* Decoding keeps what can be used and reports everything else as a `Problem`; it makes up no point.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from inktraj.errors import DataError
from inktraj.ink import Frame, Ink

SIDE = 224
"""Largest coordinate of InkSight's vocabulary."""

START = 2 * (SIDE + 1)
"""InkSight's token for the start of a stroke: 450."""

VOCABULARY_SIZE = START + 1
"""Number of InkSight's tokens: 451."""


@dataclass(frozen=True, slots=True)
class CodecSpec:
    """Names one way of writing ink as tokens; two results compare only where their specs are equal.

    Parameters
    ----------
    name
        ``"inksight"``, ``"xys"`` (tuples) or ``"xy"`` (``x145y122`` text).
    version
        Rises when the meaning of the written form changes.
    side
        Coordinates run over 0 … side in a square around the frame; None for the frame's own coordinates.
    """

    name: str
    version: int = 1
    side: int | None = None

    def __post_init__(self) -> None:
        if self.name not in ("inksight", "xys", "xy"):
            raise DataError(f"no codec is named {self.name!r}, expected 'inksight', 'xys' or 'xy'")
        if self.version != 1:
            raise DataError(f"codec {self.name} has no version {self.version}, expected 1; written by a newer inktraj?")
        if self.name == "inksight" and self.side != SIDE:
            raise DataError(f"InkSight's vocabulary has the side {SIDE}, not {self.side}")
        if self.side is not None and self.side < 1:
            raise DataError(f"a square's side must be at least 1, not {self.side}")


INKSIGHT = CodecSpec("inksight", side=SIDE)
"""InkSight's 451 tokens."""

XYS = CodecSpec("xys")
"""``(x, y, s)`` tuples in the frame's own coordinates."""

XY = CodecSpec("xy")
"""``x145y122`` text in the frame's own coordinates."""


@dataclass(frozen=True, slots=True)
class Square:
    """The map from a frame to token coordinates: token = scale · (x, y) + (x_offset, y_offset)."""

    scale: float
    x_offset: float
    y_offset: float

    @classmethod
    def around(cls, frame: Frame, side: int = SIDE) -> Square:
        """Fit a frame into 0 … side: longer side filled, centred along the shorter one.

        Parameters
        ----------
        frame
            Frames in ``"px"`` begin at −0.5 (the edge of the first pixel), others at 0.
        side
            Largest token coordinate.
        """
        scale = side / max(frame.width, frame.height)
        edge = 0.5 if frame.unit == "px" else 0.0
        return cls(
            scale,
            (side - scale * frame.width) / 2 + scale * edge,
            (side - scale * frame.height) / 2 + scale * edge,
        )


_IDENTITY = Square(1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that decoding could not use as it stood.

    Parameters
    ----------
    position
        Index of the token, or of the character where text was decoded, from 0.
    seen
        What stands there.
    why
        What was expected, and what was done.
    """

    position: int
    seen: str
    why: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded ink and, in order of position, everything that could not be used as it stood."""

    ink: Ink
    problems: tuple[Problem, ...] = ()


def encode(ink: Ink, spec: CodecSpec = INKSIGHT, *, clip: bool = False) -> str:
    """Write ink as text in one of the three forms.

    Parameters
    ----------
    ink
        In any frame.
    spec
        `INKSIGHT`, `XYS`, `XY`, or one with another side.
    clip
        Move points outside a square to its edge instead of raising.

    Raises
    ------
    DataError
        A point lies outside the square, and `clip` is not set.
    """
    strokes = _quantized(ink, spec.side, clip)
    if spec.name == "inksight":
        return tokens_to_text(_tokens(strokes))
    if spec.name == "xys":
        return "[" + ", ".join(f"({x},{y},{int(i == 0)})" for s in strokes for i, (x, y) in enumerate(s)) + "]"
    return " ".join("s " + " ".join(f"x{x}y{y}" for x, y in s) for s in strokes)


def decode(text: str, frame: Frame, spec: CodecSpec = INKSIGHT) -> Decoded:
    """Read ink from text in one of the three forms.

    Parameters
    ----------
    text
        As `encode` writes it, or as a model replied; what is not of the form is reported.
    frame
        The frame of the result: that of the ink or image which was encoded.
    spec
        The form.

    Returns
    -------
    Decoded
        The ink in `frame` without widths and times; positions of problems count characters.
    """
    if spec.name == "inksight":
        tokens, starts, problems = _scan_tokens(text)
        decoded = from_tokens(tokens, frame)
        problems += [replace(p, position=starts[p.position]) for p in decoded.problems]
        ink = decoded.ink
    else:
        scan = _scan_tuples if spec.name == "xys" else _scan_xy
        strokes, problems = _Reader(scan(text), spec, frame).read()
        ink = _placed(strokes, frame, spec.side)
    return Decoded(ink, tuple(sorted(problems, key=lambda p: p.position)))


def to_tokens(ink: Ink, *, clip: bool = False) -> list[int]:
    """Return InkSight's tokens of an ink.

    Parameters
    ----------
    ink
        In the frame of its word image.
    clip
        Move points outside the square to its edge instead of raising.

    Raises
    ------
    DataError
        A point lies outside the square, and `clip` is not set.
    """
    return _tokens(_quantized(ink, SIDE, clip))


def from_tokens(tokens: Iterable[int], frame: Frame) -> Decoded:
    """Read ink from InkSight's tokens.

    Parameters
    ----------
    tokens
        Integers 0–450; whatever breaks the order start, x, y, x, y … is reported.
    frame
        The frame of the word image which was encoded.

    Returns
    -------
    Decoded
        Every complete point is kept; positions of problems count tokens.
    """
    strokes: list[list[tuple[float, float]]] = []
    problems: list[Problem] = []
    x: tuple[int, int] | None = None  # position and value of an x that waits for its y
    opened: int | None = None  # position of a start that waits for its first point

    def drop_x() -> None:
        if x is not None:
            problems.append(Problem(x[0], str(x[1]), "an x without its y; dropped"))

    def drop_start() -> None:
        if opened is not None:
            problems.append(Problem(opened, str(START), "a stroke start without a point; dropped"))

    for position, token in enumerate(_integers(tokens)):
        if token == START:
            drop_x()
            drop_start()
            x, opened = None, position
        elif 0 <= token <= SIDE:
            drop_x()
            x = (position, token)
        elif SIDE < token < START:
            if x is None:
                problems.append(Problem(position, str(token), "a y where an x or a stroke start was expected; dropped"))
                continue
            if opened is None and not strokes:
                problems.append(Problem(x[0], str(x[1]), "no stroke start before the first point; one is assumed"))
            if opened is not None or not strokes:
                strokes.append([])
            strokes[-1].append((x[1], token - SIDE - 1))
            x = opened = None
        else:
            drop_x()
            x = None
            problems.append(Problem(position, str(token), f"a token outside 0–{START}; dropped"))
    drop_x()
    drop_start()
    return Decoded(_placed(strokes, frame, SIDE), tuple(sorted(problems, key=lambda p: p.position)))


def tokens_to_text(tokens: Iterable[int]) -> str:
    """Write tokens as ``<ink_token_450><ink_token_12>…``; raises DataError where one is not in 0–450."""
    out = []
    for position, token in enumerate(_integers(tokens)):
        if not 0 <= token <= START:
            raise DataError(f"token {position} is {token}, expected 0–{START}")
        out.append(f"<ink_token_{token}>")
    return "".join(out)


def tokens_from_text(text: str) -> tuple[list[int], tuple[Problem, ...]]:
    """Read ``<ink_token_450><ink_token_12>…``; text in between is reported, white space is not."""
    tokens, _, problems = _scan_tokens(text)
    return tokens, tuple(problems)


def _integers(tokens: Iterable[int]) -> Iterator[int]:
    for position, token in enumerate(tokens):
        try:
            yield operator.index(token)
        except TypeError as err:
            raise DataError(f"token {position} is {token!r}, expected an integer; text goes to `decode`") from err


Points = Sequence[tuple[int, int]]


def _quantized(ink: Ink, side: int | None, clip: bool) -> list[Points]:
    square = _IDENTITY if side is None else Square.around(ink.frame, side)
    out: list[Points] = []
    for i, stroke in enumerate(ink.strokes):
        points = np.rint(stroke * square.scale + (square.x_offset, square.y_offset))
        if side is not None:
            outside = np.flatnonzero(((points < 0) | (points > side)).any(axis=1))
            if len(outside) and not clip:
                x, y = stroke[outside[0]]
                frame = f"{ink.frame.width:g}×{ink.frame.height:g} {ink.frame.unit}"
                raise DataError(
                    f"point {outside[0]} of stroke {i} at ({x:g}, {y:g}) lies outside the square around its frame "
                    f"({frame}); is it meant in another frame? clip=True moves it to the edge"
                )
            points = points.clip(0, side)
        out.append([(int(x), int(y)) for x, y in points])
    return out


def _tokens(strokes: list[Points]) -> list[int]:
    out = []
    for stroke in strokes:
        out.append(START)
        for x, y in stroke:
            out += (x, SIDE + 1 + y)
    return out


def _placed(strokes: list[list[tuple[float, float]]], frame: Frame, side: int | None) -> Ink:
    square = _IDENTITY if side is None else Square.around(frame, side)
    offset = (square.x_offset, square.y_offset)
    return Ink(tuple((np.array(s, dtype=np.float64) - offset) / square.scale for s in strokes), frame)


# Text forms. A scanner yields (position, seen, values): values are None where the text is not of the form.

_TOKEN = re.compile(r"<ink_token_(\d+)>")
_NUMBER = r"\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*"
_TUPLE = re.compile(rf"\({_NUMBER},{_NUMBER},{_NUMBER}\)|\[{_NUMBER},{_NUMBER},{_NUMBER}\]")
_XY = re.compile(r"(?P<start>(?<!\S)s(?!\S))|x(?P<x>-?\d+)y(?P<y>-?\d+)")
_SHOWN = 40  # characters of unknown text that a problem shows


def _gaps(text: str, pattern: re.Pattern[str], between: str) -> Iterator[tuple[int, str, re.Match[str] | None]]:
    """Yield the matches of a pattern, and each stretch of other text that is not only of characters in `between`."""
    end = 0
    for match in [*pattern.finditer(text), None]:
        gap = text[end : match.start() if match else len(text)]
        rest = gap.strip(between)
        if rest:
            at = end + gap.index(rest)
            yield at, rest if len(rest) <= _SHOWN else rest[:_SHOWN] + "…", None
        if match:
            yield match.start(), match.group(), match
            end = match.end()


def _scan_tokens(text: str) -> tuple[list[int], list[int], list[Problem]]:
    tokens, starts, problems = [], [], []
    for position, seen, match in _gaps(text, _TOKEN, " \t\r\n"):
        if match is None:
            problems.append(Problem(position, seen, "not <ink_token_N>; passed over"))
        else:
            digits = match.group(1).lstrip("0") or "0"
            tokens.append(int(digits[:9]))  # enough to be out of range; Python refuses numbers of 5,000 digits
            starts.append(position)
    return tokens, starts, problems


Scanned = Iterator[tuple[int, str, tuple[float, float, float] | bool | None]]


def _scan_tuples(text: str) -> Scanned:
    for position, seen, match in _gaps(text, _TUPLE, " \t\r\n,[]"):
        yield position, seen, None if match is None else _triple(match)


def _triple(match: re.Match[str]) -> tuple[float, float, float]:
    x, y, s = (float(g) for g in match.groups() if g is not None)
    return x, y, s


def _scan_xy(text: str) -> Scanned:
    """Yield True for a stroke start, and points with s = 0."""
    for position, seen, match in _gaps(text, _XY, " \t\r\n,;"):
        if match is None:
            yield position, seen, None
        elif match["start"]:
            yield position, seen, True
        else:
            yield position, seen, (float(match["x"]), float(match["y"]), 0.0)


class _Reader:
    """Gathers scanned points into strokes."""

    def __init__(self, scanned: Scanned, spec: CodecSpec, frame: Frame) -> None:
        self.scanned = scanned
        self.tuples = spec.name == "xys"
        edge = 1.0  # rounding may move a point on the frame's edge by half a unit
        self.low = (0.0, 0.0) if spec.side is not None else (-edge, -edge)
        self.high = (spec.side, spec.side) if spec.side is not None else (frame.width + edge, frame.height + edge)
        self.bounded = spec.side is not None
        self.strokes: list[list[tuple[float, float]]] = []
        self.problems: list[Problem] = []

    def read(self) -> tuple[list[list[tuple[float, float]]], list[Problem]]:
        """Return strokes in written coordinates, and the problems."""
        opened: tuple[int, str] | None = None  # a start that waits for its first point
        for position, seen, values in self.scanned:
            if values is None:
                form = "(x, y, s)" if self.tuples else "xNyN or s"
                self._report(position, seen, f"not {form}; passed over")
            elif isinstance(values, bool):
                if opened:
                    self._report(*opened, "a stroke start without a point; dropped")
                opened = position, seen
            elif self._usable(position, seen, values):
                start = opened is not None or values[2] == 1
                if not start and not self.strokes:
                    self._report(position, seen, "no stroke start before the first point; one is assumed")
                if start or not self.strokes:
                    self.strokes.append([])
                self.strokes[-1].append(values[:2])
                opened = None
            elif values[2] == 1:
                opened = opened or (position, seen)
        if opened:
            self._report(*opened, "a stroke start without a point; dropped")
        return self.strokes, self.problems

    def _usable(self, position: int, seen: str, values: tuple[float, float, float]) -> bool:
        x, y, s = values
        if s not in (0, 1):
            self._report(position, seen, "s is neither 0 nor 1; taken as 0")
        if not (math.isfinite(x) and math.isfinite(y)):
            self._report(position, seen, "a coordinate beyond all numbers; dropped")
            return False
        inside = self.low[0] <= x <= self.high[0] and self.low[1] <= y <= self.high[1]
        if not inside:
            kept = "dropped" if self.bounded else "kept"
            self._report(position, seen, f"outside the {'square' if self.bounded else 'frame'}; {kept}")
        return inside or not self.bounded

    def _report(self, position: int, seen: str, why: str) -> None:
        self.problems.append(Problem(position, seen, why))
