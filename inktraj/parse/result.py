"""What `parse` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inktraj.ink import Frame, Ink
from inktraj.parse.frames import FrameName
from inktraj.parse.reading import Problem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Status = Literal["valid", "incomplete", "invalid", "refused", "empty", "truncated"]


class Numbers(NamedTuple):
    """What became of the numbers in a reply: found = used + dropped + left."""

    found: int
    """All that stand in the reply, those in names and prose too."""
    used: int
    """Those of the points that are returned."""
    dropped: int
    """Those within the answer that no returned point has."""
    left: int
    """Those outside of the answer."""


NO_NUMBERS = Numbers(0, 0, 0, 0)


class Leftover(NamedTuple):
    """Text outside of the answer."""

    position: int
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A model's reply as ink.

    Parameters
    ----------
    status
        ``valid``: all that was meant as a point is here. ``incomplete``: something meant as a point was lost, or words
        of the page are missing. ``truncated``: cut off, most often at the token limit; what was closed before is here.
        ``invalid``: no points. ``refused``: the model says that it will not. ``empty``: nothing, or an empty list.
    strokes
        Arrays ``(n, 2)`` of x, y in pixels of the image as sent, n ≥ 1.
    dialect, dialect_why
        The form of the answer, and what showed it.
    frame, frame_why
        The frame in which the points were written ("" without points); ``given``, or how sure the guess is.
    starts_known, starts_why
        Whether the reply says where strokes start, and what says it; all points are one stroke if nothing does.
    used
        Number of points in `strokes`.
    dropped, notes
        What the answer holds and `strokes` does not; what was read in a way worth telling. Both in order of position.
    left
        Text outside of the answer, white space and code fences apart.
    out_of_range
        Share of the points outside of the image by more than half a pixel; 0 without points.
    numbers
        What became of all numbers of the reply.
    spans
        ``(used, 2)``: where in the reply each point stands, from, to.
    words
        Replies for a page: the result of each asked word that was answered, by its place in the list of asked words.
    """

    status: Status
    strokes: tuple[FloatArray, ...] = ()
    dialect: str = ""
    dialect_why: str = ""
    frame: FrameName | Literal["", "inksight"] = ""
    frame_why: str = ""
    starts_known: bool = False
    starts_why: str = ""
    used: int = 0
    dropped: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    left: tuple[Leftover, ...] = ()
    out_of_range: float = 0.0
    numbers: Numbers = NO_NUMBERS
    spans: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    words: Mapping[int, Parsed] = field(default_factory=dict)

    @property
    def leftover(self) -> str:
        """The text outside of the answer, its pieces on lines of their own."""
        return "\n".join(piece.text for piece in self.left)

    def ink(self, width: float, height: float) -> Ink:
        """Return the strokes as ink in the frame of the image as sent, ``width`` × ``height`` pixels."""
        return Ink(self.strokes, Frame(width, height))
