"""Image → text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Reading:
    """What a recogniser read in one image: the text ("" for nothing) and its confidence in 0–1."""

    text: str
    confidence: float


@runtime_checkable
class Recognizer(Protocol):
    """Reads images of single lines or words; `name` and `version` are recorded with every result."""

    name: str
    version: str

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> list[Reading]:
        """Read RGB ``(h, w, 3)`` or grey ``(h, w)`` uint8 images; one reading for each, in order."""
        ...
