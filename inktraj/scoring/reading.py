"""Predictions → pictures → what a recogniser reads in them.

A prediction is drawn from its own strokes only, whatever its place and size: its box is scaled to `HEIGHT`, but so that
its width is at most `LONGEST` times that, and drawn dark on white with one round pen. So a hyphen is not blown up to a
letter's height.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.ink import Frame, Ink

if TYPE_CHECKING:
    from inktraj.ocr import Recognizer

U8 = NDArray[np.uint8]

HEIGHT = 64
"""Height in pixels of a word's box in its picture."""

LONGEST = 8
"""Wider boxes than this many times their height are scaled by their width."""

MARGIN = 12
"""White pixels around the box."""

PEN = 4.0
"""Width of the pen in pixels."""

_DOT = 1e-100  # extent up to which an ink is drawn as a dot: its scale could not be computed

DRAWING = f"h{HEIGHT}-p{PEN:g}-m{MARGIN}"
"""What a signature says of the pictures."""


def read_inks(inks: Sequence[Ink], recognizer: Recognizer) -> list[str]:
    """Draw inks and have them read, one text for each.

    Raises
    ------
    DataError
        An ink is empty, or the recogniser gives another number of readings.
    """
    readings = recognizer([picture(ink) for ink in inks])
    if len(readings) != len(inks):
        raise DataError(f"{recognizer.name} gave {len(readings)} readings for {len(inks)} pictures")
    return [reading.text for reading in readings]


def picture(ink: Ink) -> U8:
    """Draw one ink as the recogniser sees it: ``(h, w)`` uint8, dark on white."""
    from inktraj.rendering import render

    left, top, right, bottom = ink.bounds
    largest = max(bottom - top, (right - left) / LONGEST)
    scale = HEIGHT / largest if largest > _DOT else 1.0
    width, height = (round(scale * side) + 2 * MARGIN + 1 for side in (right - left, bottom - top))
    moved = [[scale, 0, MARGIN - scale * left], [0, scale, MARGIN - scale * top]]
    return render(ink.transform(moved, Frame(width, height)), pen=PEN)
