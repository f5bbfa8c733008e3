"""This package's own recoverer as a row beside the models: it gets the same page and word, and no more.

On a page it finds the words by itself, reads each with the embedded recogniser, and takes the one that reads most like
the word asked for; of several, the one whose turn it is in reading order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from inktraj.agree import word_strips
from inktraj.datasets import Sample
from inktraj.errors import InktrajError
from inktraj.evaluation.prompts import Prompt
from inktraj.evaluation.results import Outcome
from inktraj.evaluation.views import region
from inktraj.ink import FloatArray
from inktraj.page import WordCrop
from inktraj.pseudolabel.label import working_page
from inktraj.recovery import recover
from inktraj.segmentation import segment

ALIKE = 0.4
"""Least similarity (normalised Levenshtein, case folded) of a reading with the word asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    crop: WordCrop
    to_page: FloatArray  # from the pixels of the page as it was worked on, which is smaller for very large ones
    reading: str


def recover_samples(samples: Iterable[Sample], prompt: Prompt) -> Iterator[Outcome]:
    """Recover samples in their order; those of one page beside each other, so that its words are found once."""
    from inktraj.ocr.ppocr import PPOCR

    reader: Any = None
    page_id, found, failure = "", [], ""
    for sample in samples:
        if prompt.input == "page" and sample.page_id != page_id:
            reader = reader or PPOCR()
            page_id, failure = sample.page_id, ""
            try:
                found = _words(sample, reader)
            except InktrajError as err:
                found, failure = [], str(err)
        if failure:
            yield Outcome(sample.id, "error", failure)
            continue
        try:
            yield _cropped(sample) if prompt.input == "crop" else _on_page(sample, found)
        except InktrajError as err:
            yield Outcome(sample.id, "error", str(err))


def _words(sample: Sample, reader: Any) -> list[_Found]:
    work, to_page = working_page(sample.page.open())
    segmentation = segment(work)
    readings = reader(word_strips(work.pixels, segmentation.lines))
    return [_Found(crop, to_page, r.text) for crop, r in zip(segmentation.words, readings, strict=True)]


def _on_page(sample: Sample, found: Sequence[_Found]) -> Outcome:
    wanted = sample.text.casefold()
    alike = [Levenshtein.normalized_similarity(word.reading.casefold(), wanted) for word in found]
    exact = [k for k, word in enumerate(found) if word.reading == sample.text]
    exact = exact or [k for k, value in enumerate(alike) if value == 1.0]
    if exact:
        # Where a reading is wrong somewhere, fewer or more are found than there are: the one as far along is meant.
        along = (sample.occurrence - 1) / max(sample.occurrences - 1, 1)
        chosen = exact[round(along * (len(exact) - 1)) if len(exact) != sample.occurrences else sample.occurrence - 1]
    elif alike and max(alike) >= ALIKE:
        chosen = max(range(len(alike)), key=lambda k: alike[k])
    else:
        return Outcome(sample.id, "invalid", f"none of the {len(found)} words found on the page reads like it")
    crop = found[chosen].crop
    there = found[chosen].to_page @ np.vstack([crop.to_page, [0, 0, 1]])
    ink = recover(crop, text=sample.text).transform(there, sample.ink.frame)
    if not ink.strokes:
        return Outcome(sample.id, "invalid", "no ink was found in the word")
    return Outcome(sample.id, "ok", ink=ink)


def _cropped(sample: Sample) -> Outcome:
    left, top, right, bottom = region(sample)
    ink = recover(sample.page.open().pixels[top:bottom, left:right], text=sample.text)
    if not ink.strokes:
        return Outcome(sample.id, "invalid", "no ink was found in the crop")
    return Outcome(sample.id, "ok", ink=ink.transform([[1, 0, left], [0, 1, top]], sample.ink.frame))
