"""One page through all stages: segment → recover → place → render → agree."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from inktraj.agree import THRESHOLD, check, ink_overlap
from inktraj.errors import InktrajError
from inktraj.ink import Frame, Ink
from inktraj.page import Page, WordCrop
from inktraj.pseudolabel.parts import PartNames, Parts
from inktraj.pseudolabel.record import PseudoLabel, WordLabel
from inktraj.segmentation import Segmentation

U8 = NDArray[np.uint8]
FloatArray = NDArray[np.float64]

TOLERANCE = 2.0
"""Pixels within which ink and strokes count as meeting, for ink recall and precision."""

WORKING_PIXELS = 8_000_000
"""Larger pages are shrunk to so many pixels (A4 at 290 dpi) for all stages, which bounds memory; strokes and rendering
are then put into the page's own pixels."""


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
    from inktraj.rendering import coverage, render

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        stage[0], start = name, time.perf_counter()
        yield
        done.timings[name] = time.perf_counter() - start

    with timed("segment"):
        work, to_page = working_page(page)
        segmentation = parts.segmenter(work)
    with timed("recover"):
        words = [_recovered(crop, work.frame, parts) for crop in segmentation.words]
    ink = Ink.concat([word.ink for word in words], work.frame)
    pen = one_pen([word.ink for word in words], segmentation)
    with timed("render"):
        drawn = render(ink, pen=pen)
    with timed("agree"):
        verdict = check(work, segmentation, drawn, parts.recognizer, threshold=threshold)
    with timed("overlap"):
        recall, precision = ink_overlap(segmentation.cleaned.ink, coverage(ink, pen=pen), tolerance=TOLERANCE)
    if work is not page:
        words = [_moved(word, to_page, page.frame) for word in words]
        pen = round(pen * float(np.sqrt(np.linalg.det(to_page[:, :2]))), 3)
        with timed("draw at full size"):
            drawn = render(Ink.concat([word.ink for word in words], page.frame), pen=pen)
    done.rendering = drawn
    done.label = PseudoLabel(
        page_id=page.id,
        source=page.source,
        sha256=page.sha256,
        verdict="kept" if verdict.kept else "dropped",
        reason=verdict.reason or f"agreement is at least {threshold:g}",
        width=page.width,
        height=page.height,
        agreement=verdict.agreement,
        line_agreement=verdict.line_agreement,
        word_agreement=verdict.word_agreement,
        ink_recall=recall,
        ink_precision=precision,
        pen=pen,
        words=tuple(
            replace(word, text=r.original, rendered_text=r.rendered, match=r.match)
            for word, r in zip(words, verdict.words, strict=True)
        ),
        transcript=verdict.original,
        rendered_transcript=verdict.rendered,
        alignment=verdict.alignment,
    )


def working_page(page: Page) -> tuple[Page, FloatArray]:
    """Shrink a page to at most `WORKING_PIXELS`.

    Returns
    -------
    work
        The page itself where it is small enough.
    to_page
        Affine ``(2, 3)`` from its pixels to the page's; exact.
    """
    import cv2

    shrink = np.sqrt(WORKING_PIXELS / (page.width * page.height))
    if shrink >= 1:
        return page, np.eye(2, 3)
    size = max(1, int(page.width * shrink)), max(1, int(page.height * shrink))
    pixels = np.asarray(cv2.resize(page.pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    fx, fy = page.width / size[0], page.height / size[1]
    # The images' edges meet, not the centres of their corner pixels, which are at 0.
    to_page = np.array([[fx, 0, (fx - 1) / 2], [0, fy, (fy - 1) / 2]])
    return replace(page, pixels=pixels), to_page


def _recovered(crop: WordCrop, frame: Frame, parts: Parts) -> WordLabel:
    candidates = parts.recoverer(crop)
    if not candidates:
        return WordLabel(crop.id, crop.line, crop.index, crop.polygon, Ink((), frame))
    ink = candidates[0].ink.transform(crop.to_page, frame)
    return WordLabel(crop.id, crop.line, crop.index, crop.polygon, ink, confidence=candidates[0].confidence)


def _moved(word: WordLabel, matrix: FloatArray, frame: Frame) -> WordLabel:
    polygon = word.polygon @ matrix[:, :2].T + matrix[:, 2]
    return replace(word, polygon=polygon, ink=word.ink.transform(matrix, frame))


def one_pen(inks: list[Ink], segmentation: Segmentation) -> float:
    """Return the page's one pen width in pixels: the median measured one, else the cleaned page's, at least 1."""
    measured = [w for ink in inks for w in ink.widths or ()]
    pen = float(np.median(np.concatenate(measured))) if measured else segmentation.cleaned.pen
    return round(max(pen, 1.0), 3)


def _failed(page: Page, reason: str) -> PseudoLabel:
    return PseudoLabel(page.id, page.source, page.sha256, "failed", reason, page.width, page.height)
