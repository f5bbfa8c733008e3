"""Coordinate frames in which models write points, and the guess where nothing says which.

Conventions
-----------
* Pixels: the centre of the upper left pixel is (0, 0), so an image w × h spans −0.5 … w − 0.5 and −0.5 … h − 0.5.
* ``norm1000``, ``norm1`` and ``percent`` run over that span from edge to edge, each axis by itself:
  x = 0 is the left edge (−0.5 px), x = 1000 the right edge (w − 0.5 px).
* ``original-px`` are pixels of the image before it was resized to what was sent; edges fall on edges.
* ``norm1000-yx`` is ``norm1000`` with y written first (Gemini). It swaps only numbers that bear no names: where a
  reply says which one is x, that holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inktraj.errors import DataError

FrameName = Literal["sent-px", "original-px", "norm1000", "norm1000-yx", "norm1", "percent"]
FRAME_NAMES: tuple[FrameName, ...] = get_args(FrameName)
"""Names of the frames."""

Size = tuple[float, float]
FloatArray = NDArray[np.float64]

_FULL = {"norm1000": 1000.0, "norm1000-yx": 1000.0, "norm1": 1.0, "percent": 100.0}


@dataclass(frozen=True, slots=True)
class CoordinateFrame:
    """The frame in which points are written.

    Parameters
    ----------
    name
        One of `FRAME_NAMES`.
    """

    name: FrameName

    def __post_init__(self) -> None:
        if self.name not in FRAME_NAMES:
            raise DataError(f"no coordinate frame is named {self.name!r}, expected one of {', '.join(FRAME_NAMES)}")

    def to_sent(self, points: ArrayLike, sent_size: Size, original_size: Size | None = None) -> FloatArray:
        """Return points in pixels of the image as sent.

        Parameters
        ----------
        points
            Array ``(n, 2)`` as written: x, y, but y, x in ``norm1000-yx``.
        sent_size, original_size
            Width and height in pixels of the image as sent, and before it was resized. The latter is needed in
            ``original-px`` only.
        """
        array = _points(points)
        if self.name == "sent-px":
            return array
        scale, swap = self._scale(sent_size, original_size)
        shift = 0.5 if self.name == "original-px" else 0.0
        return np.asarray((array[:, ::-1] if swap else array) + shift) * scale - 0.5

    def from_sent(self, points: ArrayLike, sent_size: Size, original_size: Size | None = None) -> FloatArray:
        """Return points as they are written in this frame, not rounded: the inverse of `to_sent`."""
        array = _points(points)
        if self.name == "sent-px":
            return array
        scale, swap = self._scale(sent_size, original_size)
        shift = 0.5 if self.name == "original-px" else 0.0
        out = (array + 0.5) / scale - shift
        return np.ascontiguousarray(out[:, ::-1]) if swap else out

    def _scale(self, sent_size: Size, original_size: Size | None) -> tuple[FloatArray, bool]:
        """Return pixels of the sent image for one unit along x and y, and whether y is written first."""
        sent = checked_size(sent_size, "sent_size")
        if self.name == "original-px":
            if original_size is None:
                raise DataError("the frame original-px needs original_size, the image's size before it was resized")
            return sent / checked_size(original_size, "original_size"), False
        return sent / _FULL[self.name], self.name == "norm1000-yx"


def _points(points: ArrayLike) -> FloatArray:
    array = np.array(points, dtype=np.float64)
    if array.size == 0:
        return np.zeros((0, 2))
    if array.ndim != 2 or array.shape[1] != 2:
        raise DataError(f"points have shape {array.shape}, expected (n, 2)")
    return array


def checked_size(size: Sequence[float], name: str) -> FloatArray:
    """Return a size as an array of width and height; raises DataError where it is none."""
    try:
        array = np.array(size, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.shape != (2,) or not (np.isfinite(array).all() and (array > 0).all()):
        raise DataError(f"{name} is {size!r}, expected a width and a height in pixels, both positive")
    return array


def guess(points: FloatArray, sent_size: Size, original_size: Size | None, dialect: str) -> tuple[FrameName, str]:
    """Name the frame that fits written points best, and how sure that is.

    Parameters
    ----------
    points
        Array ``(n, 2)`` as written, n ≥ 1.
    sent_size, original_size
        Width and height in pixels.
    dialect
        What they were written in: Molmo's forms have frames of their own.

    Returns
    -------
    name, why
        `why` begins with ``certain``, ``likely`` or ``guess``.
    """
    sent = checked_size(sent_size, "sent_size")
    top = points.max(axis=0)
    most, whole = float(top.max()), bool((points == np.rint(points)).all())
    if dialect == "molmo" and most <= 100:
        return "percent", "likely: Molmo's points are in per cent, and none is above 100"
    if dialect == "molmo-coords":
        return "norm1000", "likely: Molmo's coords are on 0–1000"
    if most <= 1 and not whole:
        return "norm1", "certain: fractions of 1"
    fits_sent = bool((top <= sent).all())
    if most > 1000:
        if fits_sent:
            return "sent-px", "certain: above 1000, and within the image as sent"
        if original_size is not None and (top <= checked_size(original_size, "original_size")).all():
            return "original-px", "likely: outside of the image as sent, within the original"
        return "sent-px", "guess: above 1000, and outside of the image as sent"
    if most <= 100 and not whole and (sent > 200).all():
        return "percent", "guess: decimal numbers up to 100"
    if not fits_sent:
        return "norm1000", "likely: outside of the image as sent, and up to 1000"
    if (sent >= 1000).all() and most > 900:
        return "sent-px", "guess: 0–1000 would fit as well"
    if (top > 0.5 * sent).any():
        return "sent-px", "likely: within the image as sent, and over more than half of it"
    return "sent-px", "guess: small numbers, which many frames would fit"
