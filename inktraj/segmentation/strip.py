"""A line straightened into an upright strip, for the reader."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from inktraj.segmentation.lines import Track

U8 = NDArray[np.uint8]

STRIP_HEIGHT = 48
"""Height of a strip in pixels: what the reader works at."""
STRIP_REACH = 0.6
"""What a strip shows above and below the line's centre, in multiples of the line's height."""


def strip(gray: U8, own: NDArray[np.bool_], track: Track) -> U8:
    """Return a line straightened, ``(48, w)`` uint8, with the ink of other lines left out.

    Parameters
    ----------
    gray
        ``(h, w)`` uint8, the cleaned page.
    own
        ``(h, w)`` bool: where the page's pixels are shown; elsewhere the strip is white.
    track
        The line. Column c of the strip lies at u = (c + 0.5) / scale with `strip_scale`.
    """
    scale = strip_scale(track)
    columns = max(8, round(track.length * scale))
    u = (np.arange(columns) + 0.5) / scale
    v = ((np.arange(STRIP_HEIGHT) + 0.5) / STRIP_HEIGHT * 2 - 1) * STRIP_REACH * track.height
    grid = track.page(np.column_stack([np.tile(u, STRIP_HEIGHT), np.repeat(v, columns)]))
    x0, y0 = np.floor(grid.min(axis=0)).astype(int) - 2
    x1, y1 = np.ceil(grid.max(axis=0)).astype(int) + 3
    x0, y0 = max(x0, 0), max(y0, 0)
    part = np.where(own[y0:y1, x0:x1], gray[y0:y1, x0:x1], 255).astype(np.uint8)
    if not part.size:
        return np.full((STRIP_HEIGHT, columns), 255, dtype=np.uint8)
    # Shrinking by more than two: smooth first, or hairlines fall through the grid.
    if scale < 0.5:
        part = np.asarray(cv2.GaussianBlur(part, (0, 0), 0.35 / scale), dtype=np.uint8)
    maps = (grid - [x0, y0]).astype(np.float32).reshape(STRIP_HEIGHT, columns, 2)
    shown = cv2.remap(part, maps[..., 0], maps[..., 1], cv2.INTER_LINEAR, borderValue=255)
    return np.asarray(shown, dtype=np.uint8)


def strip_scale(track: Track) -> float:
    """Strip pixels per page pixel."""
    return STRIP_HEIGHT / (2 * STRIP_REACH * track.height)
