"""Writes a data set in the page form: ``manifest.toml``, ``pages.jsonl`` and ``images/``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inktraj.ink import FloatArray, Ink

IMAGES = "images"
DECIMALS = 2
"""Decimals of coordinates in pixels; times have as many more as a millisecond needs."""


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """A word to be written: name within the page, text, strokes in the page's frame, and what else is known of it.

    `cut_confidence` says of a word that was cut from a recorded line how sure the cut is.
    """

    id: str
    text: str
    ink: Ink
    line: int | None = None
    polygon: FloatArray | None = None
    cut_confidence: float | None = None


def page_record(
    id: str,
    image: str,
    sha256: str,
    size: tuple[int, int],
    words: Iterable[Word],
    *,
    writer: str = "",
    split: str = "",
    extra: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a page as it stands in ``pages.jsonl`` (`inktraj.datasets.records`)."""
    return {
        "page_id": id,
        "image": image,
        "sha256": sha256,
        "width": size[0],
        "height": size[1],
        "writer": writer,
        "split": split,
        **(extra or {}),
        "words": [_word(word) for word in words],
    }


def _word(word: Word) -> dict[str, Any]:
    ink = word.ink
    out: dict[str, Any] = {"id": word.id, "line": word.line, "text": word.text}
    if word.polygon is not None:
        out["polygon"] = np.asarray(word.polygon).round(DECIMALS).tolist()
    out["strokes"] = [[x, y, int(s)] for x, y, s in ink.to_xys().round(DECIMALS).tolist()]
    if ink.widths is not None:
        out["widths"] = _flat(ink.widths, DECIMALS)
    if ink.times is not None:
        out["times"] = _flat(ink.times, 3)
        out["times_source"] = ink.times_source
    if word.cut_confidence is not None:
        out["cut_confidence"] = round(word.cut_confidence, 3)
    return out


def _flat(arrays: Sequence[FloatArray], decimals: int) -> list[float]:
    return np.concatenate([np.zeros(0), *arrays]).round(decimals).tolist()  # type: ignore[no-any-return]


def json_line(record: dict[str, Any]) -> str:
    """Return a record as one line; NaN is an error, since JSON has none."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
