"""One page through all stages: segment → recover → place → render → agree."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import InktrajError
from inktraj.ink import Frame, Ink
from inktraj.page import Page, WordCrop
from inktraj.pseudolabel.parts import PartNames, Parts
from inktraj.pseudolabel.record import Pair, PseudoLabel, WordLabel
from inktraj.segmentation import Segmentation

U8 = NDArray[np.uint8]

THRESHOLD = 0.85
"""Share of words that must agree for a page to be kept: the rule of inkGround."""

TOLERANCE = 2.0
"""Pixels within which ink and strokes count as meeting, for ink recall and precision."""


@dataclass(slots=True, eq=False)
class Labelled:
    """What became of a page.

    Parameters
    ----------
    label
        The record.
    rendering
        ``(h, w)`` uint8, the recovered ink on white in the page's frame, one pen for all; None on failure.
    timings
        Seconds for each stage.
    trace
        The traceback, where a stage broke in a way that it should not.
    """

    label: PseudoLabel
    rendering: U8 | None = None
    timings: dict[str, float] = field(default_factory=dict)
    trace: str | None = None


def label_page(page: Page, *, threshold: float = THRESHOLD, parts: Parts | None = None) -> Labelled:
    """Recover the strokes of a page and check them.

    Parameters
    ----------
    page
        The page.
    threshold
        Least agreement (0–1) for the page to be kept.
    parts
        Segmenter, recoverer and recogniser; the embedded ones by default.

    Returns
    -------
    Labelled
        Always: where a stage fails, the label's verdict is ``"failed"`` and its reason says why.
    """
    done = Labelled(_failed(page, ""))
    stage = ["prepare"]
    try:
        _label(page, threshold, parts or PartNames().load(), done, stage)
    except (InktrajError, MemoryError) as err:
        done.label = _failed(page, f"{stage[0]}: {err or 'out of memory'}")
    except Exception as err:
        # A page must never end the run, whatever a part does; the traceback goes with the record.
        done.label = _failed(page, f"{stage[0]}: {type(err).__name__}: {err}")
        done.trace = traceback.format_exc()
    if done.label.verdict == "failed":
        done.rendering = None
    return done


def _label(page: Page, threshold: float, parts: Parts, done: Labelled, stage: list[str]) -> None:
    from inktraj.agree import check, ink_overlap
    from inktraj.rendering import coverage, render

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        stage[0], start = name, time.perf_counter()
        yield
        done.timings[name] = time.perf_counter() - start

    with timed("segment"):
        segmentation = parts.segmenter(page)
    with timed("recover"):
        words = [_recovered(crop, page.frame, parts) for crop in segmentation.words]
    ink = Ink.concat([word.ink for word in words], page.frame)
    pen = one_pen([word.ink for word in words], segmentation)
    with timed("render"):
        done.rendering = render(ink, pen=pen)
    with timed("agree"):
        verdict = check(page, segmentation, done.rendering, parts.recognizer, threshold=threshold)
    with timed("overlap"):
        recall, precision = ink_overlap(segmentation.cleaned.ink, coverage(ink, pen=pen), tolerance=TOLERANCE)
    done.label = PseudoLabel(
        page.id,
        page.source,
        page.sha256,
        "kept" if verdict.kept else "dropped",
        verdict.reason or f"agreement is at least {threshold:g}",
        page.width,
        page.height,
        verdict.agreement,
        verdict.line_agreement,
        verdict.word_agreement,
        recall,
        precision,
        pen,
        tuple(
            WordLabel(w.id, w.line, w.index, w.polygon, w.ink, r.original, r.rendered, r.match, w.confidence)
            for w, r in zip(words, verdict.words, strict=True)
        ),
        verdict.original,
        verdict.rendered,
        tuple(Pair(*pair) for pair in verdict.alignment),
    )


def _recovered(crop: WordCrop, frame: Frame, parts: Parts) -> WordLabel:
    candidates = parts.recoverer(crop)
    if not candidates:
        return WordLabel(crop.id, crop.line, crop.index, crop.polygon, Ink((), frame))
    ink = candidates[0].ink.transform(crop.to_page, frame)
    return WordLabel(crop.id, crop.line, crop.index, crop.polygon, ink, confidence=candidates[0].confidence)


def one_pen(inks: list[Ink], segmentation: Segmentation) -> float:
    """Return the page's one pen width in pixels: the median measured one, else the cleaned page's, at least 1."""
    measured = [w for ink in inks for w in ink.widths or ()]
    pen = float(np.median(np.concatenate(measured))) if measured else segmentation.cleaned.pen
    return round(max(pen, 1.0), 3)


def _failed(page: Page, reason: str) -> PseudoLabel:
    return PseudoLabel(page.id, page.source, page.sha256, "failed", reason, page.width, page.height)
