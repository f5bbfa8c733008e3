"""The embedded PP-OCR detector and reader, from the `rapidocr` wheel; one thread, no download.

The models are PP-OCRv6 small (Apache-2.0, PaddlePaddle). The detector is asked for whole lines: the page is
shrunk to `DETECTOR_SIDE` on its longer side, which is both fast and better than the package's default, and
the angle classifier is off, since it turns lines of handwriting upside down.
"""

from __future__ import annotations

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

    Parameters
    ----------
    images
        RGB ``(h, w, 3)`` or grey ``(h, w)`` uint8.
    """
    from rapidocr.ch_ppocr_rec import TextRecInput

    if not images:
        return []
    out = _engine()._load_rec_model()(TextRecInput(img=[_bgr(image) for image in images]))
    return [(str(text), float(score)) for text, score in zip(out.txts, out.scores, strict=True)]
