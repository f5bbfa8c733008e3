"""Writes examples/score: the demo pages' words as they were written, and as `scribe` and `tracer` recover them.

python pipelines/make_score_example.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from inktraj import Ink, WordCrop, segment
from inktraj.datasets import load_dataset
from inktraj.io import InkRecord, write_ink
from inktraj.recovery import recover
from inktraj.recovery.scribe import Scribe
from inktraj.recovery.tracer import Tracer


def rounded(ink: Ink) -> Ink:
    """The ink on a grid of 1/100 pixel, which is finer than any figure can see."""
    return Ink([np.round(stroke, 2) for stroke in ink.strokes], ink.frame)


def main() -> None:
    references: list[InkRecord] = []
    recoverers = {"scribe": Scribe(), "tracer": Tracer()}
    found: dict[str, list[InkRecord]] = {name: [] for name in recoverers}
    for page in load_dataset("demo").pages:
        words = segment(page.picture.open()).words
        for sample in page.samples:
            about = {"page": page.id, "writer": sample.writer}
            references.append(InkRecord(sample.id, rounded(sample.ink), sample.text, about))
            word = min(words, key=lambda word: off(sample.box, box_of(word)))
            if off(sample.box, box_of(word)) > 0.5 * (sample.box[3] - sample.box[1]):
                continue  # no word was found here: it is missing among the predictions
            for name, records in found.items():
                ink = recover(word, recoverer=recoverers[name]).transform(word.to_page, sample.ink.frame)
                records.append(InkRecord(sample.id, rounded(ink), "", about))
    out = Path(__file__).resolve().parents[1] / "examples" / "score"
    out.mkdir(exist_ok=True)
    write_ink(out / "reference.jsonl", references)
    for name, records in found.items():
        write_ink(out / f"{name}.jsonl", records)


def box_of(word: WordCrop) -> tuple[float, ...]:
    """The word's place on the page: x min, y min, x max, y max."""
    return word.shapely().bounds


def off(box: tuple[float, ...], other: tuple[float, ...]) -> float:
    """How far apart two boxes' sides are at most."""
    return max(abs(a - b) for a, b in zip(box, other, strict=True))


if __name__ == "__main__":
    main()
