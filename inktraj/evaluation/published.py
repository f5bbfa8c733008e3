"""Figures that others have published, quoted as they stand there; nothing here was measured by this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

SOURCE = "Sidra Hanif: inkGround, arXiv:2610.38720v1"
"""Where the figures stand: its tables 1 and 2 and §5.3."""

NOTE = (
    "Quoted, not measured here. How distances are normalised, and what an invalid output scores as its maximum, is not "
    "published, and its readability is that of DeepSeek-OCR, which also chose inkGround's references: these figures "
    "cannot be compared with measured ones one by one, only how models rank."
)
"""What must be known to read them."""


@dataclass(frozen=True, slots=True)
class Published:
    """Figures of one model on one data set.

    Parameters
    ----------
    dataset, model
        As they are called there.
    figures
        By name, as texts, for some are given as bounds.
    """

    dataset: str
    model: str
    figures: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


PUBLISHED = (
    Published("inkGround", "Gemini-3.1-Pro", MappingProxyType({"ar": "0.812", "cr": "0.826"})),
    Published("inkGround", "Kimi-K3", MappingProxyType({"ar": "0.581", "cr": "0.591"})),
    Published("inkGround", "each of four open models", MappingProxyType({"ar": "< 0.08", "cr": "< 0.08"})),
    Published("IAM-OnDB", "Gemini-3.1-Pro", MappingProxyType({"dtw": "0.088", "chamfer": "0.047", "ar": "0.856"})),
)
"""All that the paper's text tells in numbers."""
