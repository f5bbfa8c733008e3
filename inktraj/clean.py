"""Page pixels → even paper and an ink mask, in the page's own pixel grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
BoolArray = NDArray[np.bool_]


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
