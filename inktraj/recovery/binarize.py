"""A grey picture of one word → its ink, for images which no segmenter has cleaned.

Ink is what is darker than half the depth of the strokes around it (so that the width stays true), joined to something
clearly darker than the paper's noise (hysteresis): faint and quill strokes stay in one piece where one global
threshold would shatter them.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
BoolArray = NDArray[np.bool_]
F32 = NDArray[np.float32]

HALF_DEPTH = 0.45  # of the local ink depth: an antialiased edge is crossed in its middle
FAINT = 0.15  # of the word's ink depth: fainter is paper
SURE = 0.3  # of the word's ink depth: each piece of ink must be so dark somewhere


def _paper(gray: F32) -> F32:
    """The paper's level around each pixel: a closing by half the crop's shorter side, on a coarse grid."""
    height, width = gray.shape
    grid = 4 if min(height, width) >= 24 else 1
    small = cv2.dilate(gray, np.ones((grid, grid), np.uint8))[::grid, ::grid]
    reach = int(np.clip(min(small.shape) // 2, 3, 25)) | 1
    padded = cv2.copyMakeBorder(small, reach, reach, reach, reach, cv2.BORDER_REPLICATE)  # a slope stays one at the rim
    padded = cv2.morphologyEx(padded, cv2.MORPH_CLOSE, np.ones((reach, reach), np.uint8))
    small = padded[reach:-reach, reach:-reach]
    small = cv2.GaussianBlur(small, (0, 0), 1.0)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.float32)


def is_light_on_dark(gray: U8) -> bool:
    """Whether the ground (most of the rim and of the whole) is nearer to the dark end."""
    low, high = np.percentile(gray, (2, 98))
    if high - low < 8:
        return False
    rim = np.concatenate([gray[0], gray[-1], gray[:, 0], gray[:, -1]])
    middle = (float(low) + float(high)) / 2
    return float(np.median(rim)) < middle and float(np.median(gray)) < middle


def binarize(gray: U8) -> BoolArray:
    """Find the ink of one word.

    Parameters
    ----------
    gray
        ``(h, w)`` uint8, dark ink on lighter paper.

    Returns
    -------
    ndarray
        ``(h, w)`` bool. Nothing is ink where nothing stands out of the paper's noise.
    """
    soft: F32 = np.asarray(cv2.GaussianBlur(gray.astype(np.float32), (0, 0), 0.6), dtype=np.float32)
    depth = _paper(soft) - soft
    depth = np.maximum(depth - float(np.percentile(depth, 20)), 0)  # the closing follows the noise's upper rim
    steps = np.abs(np.diff(soft, axis=1)) if gray.shape[1] > 1 else np.abs(np.diff(soft, axis=0))
    noise = 1.5 * float(np.median(steps)) if steps.size else 0.0
    dark = float(np.percentile(depth, 99.5))
    if dark < max(6.0, 4 * noise):
        return np.zeros(gray.shape, np.bool_)
    ink = depth[depth > max(0.3 * dark, 4 * noise)]
    level = float(np.median(ink)) if ink.size else dark
    local = cv2.dilate(cv2.blur(depth, (3, 3)), np.ones((5, 5), np.uint8))  # so that no single noisy pixel sets it
    threshold = np.maximum(HALF_DEPTH * local, max(FAINT * level, 4 * noise))
    maybe = depth > threshold
    count, labels, stats, _ = cv2.connectedComponentsWithStats(maybe.astype(np.uint8), connectivity=8)
    keep = np.zeros(count, np.bool_)
    keep[np.unique(labels[maybe & (depth > max(SURE * level, 5 * noise))])] = True
    keep &= stats[:, cv2.CC_STAT_AREA] >= 4
    keep[0] = False
    return np.asarray(keep[labels], dtype=np.bool_)
