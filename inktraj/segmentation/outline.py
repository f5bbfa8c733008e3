"""Ink → the polygon that follows it."""

from __future__ import annotations

import cv2
import numpy as np
import shapely
from numpy.typing import NDArray

from inktraj.clean.paper import disc

FloatArray = NDArray[np.float64]


def outline(mask: NDArray[np.bool_], origin: tuple[int, int], margin: int, reach: int) -> FloatArray:
    """Return one polygon around a word's ink.

    Parameters
    ----------
    mask
        ``(h, w)`` bool, the word's ink; not empty.
    origin
        x, y of the mask's upper left pixel on the page.
    margin
        Distance in pixels between ink and outline, at least 1.
    reach
        Gaps of up to twice this many pixels are bridged as they are; wider ones by the hull of what they divide.

    Returns
    -------
    polygon
        ``(n, 2)`` float64 page coordinates, open, valid, without holes; holds every ink pixel's centre.
    """
    pad = margin + 2 * reach + 1
    ink = np.pad(mask.astype(np.uint8), pad)
    grown = cv2.dilate(ink, disc(2 * margin + 1))
    for step in (0, reach // 2, reach, 2 * reach):
        closed = cv2.morphologyEx(grown, cv2.MORPH_CLOSE, disc(2 * step + 1)) if step else grown
        contours, _ = cv2.findContours(closed, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        if len(contours) == 1:
            break
    offset = np.asarray(origin, dtype=np.float64) - pad
    rings = [shapely.Polygon(c[:, 0, :] + offset) for c in contours if len(c) > 2]
    shape = rings[0] if len(rings) == 1 else shapely.union_all(rings).convex_hull
    # Simplifying may cut into the margin, never through it to the ink; a contour that touches itself is opened.
    simple = shape.simplify(0.6 * margin)
    if simple.geom_type != "Polygon" or not simple.is_valid:
        simple = shape.buffer(0.25).simplify(0.2)
    if simple.geom_type != "Polygon" or not simple.is_valid:
        simple = shape.convex_hull
    return np.asarray(simple.exterior.coords, dtype=np.float64)[:-1]
