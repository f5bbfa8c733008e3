"""The embedded recogniser: PP-OCR through onnxruntime, one thread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inktraj import ppocr
from inktraj.ocr import Reading


class PPOCR:
    """PP-OCRv6 small, from the `rapidocr` wheel.

    Attributes
    ----------
    name, version
        ``"ppocr"``, and the versions of the models and of the packages which run them.
    """

    name = "ppocr"

    def __init__(self) -> None:
        self.version = ppocr.model_version()

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> list[Reading]:
        """Read RGB ``(h, w, 3)`` or grey ``(h, w)`` uint8 images of one line or word each, in order."""
        return [Reading(text, confidence) for text, confidence in ppocr.read(images)]
