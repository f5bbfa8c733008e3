"""The embedded PP-OCR detector and reader, from the `rapidocr` wheel; one thread, no download.

The models are PP-OCRv6 small (Apache-2.0, PaddlePaddle). The detector is asked for whole lines: the page is
shrunk to `DETECTOR_SIDE` on its longer side, which is both fast and better than the package's default, and
the angle classifier is off, since it turns lines of handwriting upside down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError

U8 = NDArray[np.uint8]

DETECTOR_SIDE = 960
"""Longer side, in pixels, of the page as the detector sees it."""

READER_HEIGHT = 48
"""Height, in pixels, of an image as the reader sees it."""

NARROWEST = 48
"""Least width, in pixels, of an image as the reader sees it; narrower ones are padded."""

WIDEST = 60.0
"""Largest width over height; wider images are squeezed to it. No line of text is near it."""

MODEL = "PP-OCRv6-small"


def model_version() -> str:
    """Name and version of the models, for the records."""
    return f"{MODEL} (rapidocr {version('rapidocr')}, onnxruntime {version('onnxruntime')})"


@cache
def _engine() -> Any:
    # The package's public call reads one image at a time and first shrinks it; its two models are used
    # directly instead (`_load_det_model`, `_load_rec_model`), which the tests of this module hold in place.
    from rapidocr import RapidOCR

    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.use_cls": False,
            "Det.limit_type": "max",
            "Det.limit_side_len": DETECTOR_SIDE,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def _bgr(image: U8) -> U8:
    if (
        image.dtype != np.uint8
        or image.ndim not in (2, 3)
        or not image.size
        or (image.ndim == 3 and image.shape[2] != 3)
    ):
        raise DataError(f"an image to read is uint8 (h, w) or (h, w, 3), not {image.dtype} of shape {image.shape}")
    return np.ascontiguousarray(np.repeat(image[..., None], 3, axis=2) if image.ndim == 2 else image[..., ::-1])


def detect_lines(image: U8) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find the lines of text in a page.

    Parameters
    ----------
    image
        RGB ``(h, w, 3)`` or grey ``(h, w)`` uint8.

    Returns
    -------
    quads
        ``(n, 4, 2)`` float64 corners in page pixels: upper left, upper right, lower right, lower left as read.
    scores
        ``(n,)`` in 0–1.
    """
    found = _engine()._load_det_model()(_bgr(image))
    if found.boxes is None or not len(found.boxes):
        return np.zeros((0, 4, 2)), np.zeros(0)
    return np.asarray(found.boxes, dtype=np.float64).reshape(-1, 4, 2), np.asarray(found.scores, dtype=np.float64)


def read(images: Sequence[U8]) -> list[tuple[str, float]]:
    """Read images of one line or word each; return (text, confidence) for each, in order.

    Each image is scaled to the reader's height of `READER_HEIGHT` and read by itself, at its own width: one
    thread gains nothing from a batch, and what is read in an image does not depend on its neighbours.

    Parameters
    ----------
    images
        RGB ``(h, w, 3)`` or grey ``(h, w)`` uint8.

    Raises
    ------
    DataError
        An image is of another form.
    """
    if not images:
        return []
    reader = _engine()._load_rec_model()
    out = []
    for image in images:
        steps = reader.session(_reader_input(_bgr(image)))
        ((text, confidence),), _ = reader.postprocess_op(steps)
        out.append((str(text), float(confidence)))
    return out


def _reader_input(bgr: U8) -> NDArray[np.float32]:
    """Return ``(1, 3, READER_HEIGHT, width)``: values in −1 … 1, padded with middle grey to whole time steps."""
    import cv2

    width = _width(bgr)
    # INTER_AREA averages where it shrinks; the package's own bilinear resize drops thin strokes there.
    small = cv2.resize(bgr, (width, READER_HEIGHT), interpolation=cv2.INTER_AREA)
    padded = np.zeros((1, 3, READER_HEIGHT, -(-max(width, NARROWEST) // 8) * 8), dtype=np.float32)
    padded[0, :, :, :width] = small.transpose(2, 0, 1) / np.float32(127.5) - 1
    return padded


def _width(bgr: U8) -> int:
    """Return the width in pixels at which the reader sees an image, without padding."""
    ratio: float = min(bgr.shape[1] / bgr.shape[0], WIDEST)
    return max(1, math.ceil(READER_HEIGHT * ratio))


def space_probabilities(images: Sequence[U8]) -> list[NDArray[np.float64]]:
    """Tell where in images of one line each the reader sees a space between words.

    Parameters
    ----------
    images
        RGB ``(h, w, 3)`` or grey ``(h, w)`` uint8.

    Returns
    -------
    list of ndarray
        For each image the probability of a space in equal columns from left to right, ``(columns,)`` in 0–1.
        The columns are the reader's own time steps, about eight pixels each at a height of 48.
    """
    reader = _engine()._load_rec_model()
    space = reader.postprocess_op.dict[" "]
    out: list[NDArray[np.float64]] = []
    for image in images:
        bgr = _bgr(image)
        padded = _reader_input(bgr)
        steps = reader.session(padded)[0]
        used = max(1, round(len(steps) * _width(bgr) / padded.shape[3]))
        out.append(np.asarray(steps[:used, space], dtype=np.float64))
    return out
