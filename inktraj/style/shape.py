"""An ink → the picture of its shape alone, which is all that the style network sees.

Conventions
-----------
* Strokes are a set of lines here: their order, direction, sampling, times and widths change nothing, nor do the ink's
  place and size. A recording and strokes recovered from a photo are drawn alike.
* The size comes from how far the ink is spread about its mean height, so that one long descender does not shrink the
  rest; slant, proportions and the letters' shapes are kept.
* A round pen of one width draws it. What is finer than the pen, such as a tablet's coarse steps, is smoothed away.
* Ink is 255, paper 0. Widths are multiples of `WIDTH_STEP`: words of one width are looked at together without anything
  being added to any of them, so that a word's picture and scores do not depend on its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from inktraj.arclength import resample
from inktraj.errors import DataError
from inktraj.ink import FloatArray, Frame, Ink
from inktraj.rendering import render

U8 = NDArray[np.uint8]

VERSION = "shape-1"
"""Changes whenever the same ink would give another picture."""

HEIGHT, WIDTH_STEP, WIDEST = 64, 16, 512
MARGIN = 2
SPREAD = 9.0
"""Standard deviation (px) of the ink about its mean height."""
PEN = 2.0
SMOOTH = 1.5
"""Standard deviation (px) of the smoothing along the arc."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a picture is varied in training; as it is here, not at all.

    Parameters
    ----------
    slant, stretch
        x becomes ``stretch`` · x + ``slant`` · y.
    size, pen, smooth
        Factors of `SPREAD`, `PEN` and `SMOOTH`.
    """

    slant: float = 0.0
    stretch: float = 1.0
    size: float = 1.0
    pen: float = 1.0
    smooth: float = 1.0


PLAIN = Look()


def check_ink(ink: Ink) -> None:
    """Raise DataError for a picture, a record or anything else that is no ink."""
    if not isinstance(ink, Ink):
        raise DataError(
            f"style is of an Ink, not of a {type(ink).__name__}; a picture is recovered first (inktraj.recover), a "
            "record's ink is its .ink"
        )


def picture(ink: Ink, look: Look = PLAIN) -> U8:
    """Draw the shape of an ink.

    Returns
    -------
    ndarray
        ``(HEIGHT, w)`` uint8; w is a multiple of `WIDTH_STEP`, at most `WIDEST`.

    Raises
    ------
    DataError
        The ink is empty, or it is no ink.
    """
    check_ink(ink)
    if not ink.strokes:
        raise DataError("an ink without strokes has no shape")
    matrix = np.array([[look.stretch, 0.0], [look.slant, 1.0]])
    strokes = [s @ matrix for s in ink.strokes] if look is not PLAIN else list(ink.strokes)
    # What smoothing takes away must not count for the size: the ink is measured before, roughly, and after.
    lines = [_smoothed(s, SMOOTH * look.smooth) for s in _scaled(strokes, look.size)]
    lines = _scaled(lines, look.size)
    low, high = _bounds(lines)
    middle, _ = _heights(lines)
    # The mean height comes to the middle, unless a long ascender or descender would then be cut.
    top = np.clip((HEIGHT - 1) / 2 - middle, HEIGHT - 1 - MARGIN - high[1], MARGIN - low[1])
    width = WIDTH_STEP * ceil((high[0] - low[0] + 2 * MARGIN + 1) / WIDTH_STEP)
    shift = np.array([(width - 1) / 2 - (low[0] + high[0]) / 2, top])
    placed = tuple(s + shift for s in lines)
    return render(Ink(placed, Frame(width, HEIGHT)), pen=PEN * look.pen, paper=0, color=255)


def _scaled(strokes: list[FloatArray], size: float) -> list[FloatArray]:
    """Strokes from 0 on, at the scale that gives them their spread, or at a smaller one that lets them fit."""
    low, high = _bounds(strokes)
    extent = np.maximum(high - low, 1e-9 * max(1.0, float(np.abs([low, high]).max())))
    room = np.array([WIDEST, HEIGHT]) - (2 * MARGIN + 1)
    _, spread = _heights(strokes)
    scale = float(min(size * SPREAD / max(spread, 1e-9 * extent.max()), *(room / extent)))
    return [(s - low) * scale for s in strokes]


def _bounds(strokes: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    points = np.concatenate(strokes)
    return points.min(axis=0), points.max(axis=0)


def _heights(strokes: list[FloatArray]) -> tuple[float, float]:
    """Mean and standard deviation of y along the strokes, by arc length; of the points, where there are only dots."""
    length = np.concatenate([np.hypot(*np.diff(s, axis=0).T) for s in strokes])
    total = float(length.sum())
    if not total > 0:
        y = np.concatenate([s[:, 1] for s in strokes])
        return float(y.mean()), float(y.std())
    start, end = (np.concatenate([s[part, 1] for s in strokes]) for part in (slice(-1), slice(1, None)))
    mean = float(length @ (start + end)) / (2 * total)
    start, end = start - mean, end - mean
    return mean, float(np.sqrt(length @ (start * start + start * end + end * end) / (3 * total)))


def _smoothed(stroke: FloatArray, sigma: float) -> FloatArray:
    """Points a pixel apart, smoothed along the arc; the ends stay."""
    length = float(np.hypot(*np.diff(stroke, axis=0).T).sum())
    out = np.empty((int(length) + 3, 2))
    points = out[: resample(np.ascontiguousarray(stroke), len(stroke), 1.0, out)]
    reach = min(ceil(3 * sigma), len(points) - 1)
    if reach < 1:
        return points
    # Turned about its ends the line goes on straight, so that smoothing leaves them where they are.
    before, after = 2 * points[0] - points[reach:0:-1], 2 * points[-1] - points[-2 : -2 - reach : -1]
    longer = np.concatenate([before, points, after])
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    kernel /= kernel.sum()
    return np.stack([np.convolve(longer[:, axis], kernel, "valid") for axis in (0, 1)], axis=1)
