"""Page pixels → even paper and an ink mask, in the page's own pixel grid.

The steps, each of which keeps every pixel in its place:

1. *Paper level*: a grey closing wider than any stroke, smoothed. Dividing by it evens light and shadow.
2. *Not paper*: regions that stay dark after the closing and touch the image's edge (scanner borders, the desk).
3. *Ink*: hysteresis on the contrast against the paper. The upper threshold is a share of the ink's own level,
   measured where the ink is, so that faint ink is found on its own terms; paper texture and bleed-through stay
   below it. The lower one is half of the local peak, which puts the ink's edge where the pen's was.
4. *Ruling*: long thin lines, straight or gently bent, in either direction. Pixels of a rule are removed column
   by column, but not where a stroke crosses it or is darker than it.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from inktraj.clean.ink import find_ink, pen_width, writing_only
from inktraj.clean.paper import U8, BoolArray, contrast_to_paper, upright_gray
from inktraj.clean.ruling import rules
from inktraj.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Cleaned:
    """A cleaned page; every array has the page's height and width, so the map to the page is the identity.

    Parameters
    ----------
    gray
        ``(h, w)`` uint8: paper 255, ink dark; light, texture, ruling and borders evened out.
    ink
        ``(h, w)`` bool: handwriting ink.
    pen
        Median pen width in pixels; 0 where there is no ink.
    skew
        Angle of the text lines in degrees, positive when they fall to the right.
    """

    gray: U8
    ink: BoolArray
    pen: float
    skew: float


def clean(pixels: U8) -> Cleaned:
    """Separate a page's handwriting from its paper.

    Parameters
    ----------
    pixels
        ``(h, w, 3)`` uint8 RGB or ``(h, w)`` grey. Dark ink on light paper; light ink on dark is inverted first.

    Raises
    ------
    DataError
        Pixels of another type or shape.
    """
    form = pixels.ndim in (2, 3) and (pixels.ndim == 2 or pixels.shape[2] == 3)
    if pixels.dtype != np.uint8 or not form or not pixels.size:
        raise DataError(
            f"a page to clean is uint8 (h, w) or RGB (h, w, 3), not {pixels.dtype} of shape {pixels.shape}; "
            "does it need scaling to 0–255, or its alpha composited?"
        )
    contrast = contrast_to_paper(upright_gray(pixels))
    ink, pen, dark = find_ink(contrast)
    if pen:
        # One direction after the other: where squared lines cross, the second finds what the first left.
        contrast[rules(contrast, dark, pen)] = 0
        contrast[rules(np.ascontiguousarray(contrast.T), np.ascontiguousarray(dark.T), pen).T] = 0
        ink, pen, dark = find_ink(contrast)
    ink = writing_only(ink, dark, pen)
    even = np.round(255 * (1 - contrast)).astype(np.uint8)
    return Cleaned(even, ink, pen_width(ink), _skew(ink))


def _skew(ink: BoolArray) -> float:
    """Return the lines' slope in degrees: the shear whose row sums vary the most."""
    h, w = ink.shape
    scale = min(1.0, 600 / max(h, w))
    small = cv2.resize(ink.astype(np.float32), (max(1, round(w * scale)), max(1, round(h * scale))))
    ys, xs = np.nonzero(small > 0.2)
    if len(ys) < 50:
        return 0.0

    def sharpness(degrees: float) -> float:
        rows = np.round(ys - np.tan(np.radians(degrees)) * (xs - small.shape[1] / 2)).astype(np.int64)
        counts = np.bincount(rows - rows.min()).astype(np.float64)
        return float((np.diff(counts) ** 2).sum())

    coarse = max(np.arange(-10, 10.5, 0.5), key=sharpness)
    return float(max(np.arange(coarse - 0.5, coarse + 0.55, 0.1), key=sharpness))
