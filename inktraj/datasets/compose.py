"""Recorded lines → a page image with its words as ink in the page's pixels.

Lines keep their own places on the whiteboard where these make a page; where they do not (a wiped board written anew, a
line far away), the lines are put below one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from inktraj.datasets.iamondb import RecordedLine
from inktraj.datasets.wordcuts import cut_words
from inktraj.datasets.writing import Word
from inktraj.errors import DataError
from inktraj.ink import FloatArray, Frame, Ink
from inktraj.page import U8
from inktraj.rendering import render

SCALE = 0.25
"""Pixels a whiteboard unit: lines become some 1400 px long and 60 px high."""
PEN = 4.0
"""Width of the drawn pen in pixels."""
MARGIN = 60
PITCH = 1.9
"""Distance of stacked lines, in heights of a line's ink without its farthest tenth."""

Placing = Literal["whiteboard", "stacked"]


@dataclass(frozen=True, slots=True, eq=False)
class ComposedPage:
    """A page: its pixels ``(h, w)`` uint8, its words, and how its lines were placed."""

    pixels: U8
    words: tuple[Word, ...]
    placing: Placing


def compose_page(lines: Sequence[RecordedLine], words: Sequence[Sequence[str]]) -> ComposedPage:
    """Draw lines as a page and cut them into words.

    Parameters
    ----------
    lines
        In reading order.
    words
        What each says.

    Raises
    ------
    DataError
        A line has fewer strokes than words, or the page would be of an absurd size.
    """
    placed, placing = _placed(lines)
    points = np.concatenate([s for line in placed for s in line])
    low = points.min(axis=0)
    width, height = (np.ceil((points.max(axis=0) - low) * SCALE) + 2 * MARGIN + 1).astype(int).tolist()
    frame = Frame(float(width), float(height))
    start = next((line.times[0][0] for line in lines if line.times is not None), 0.0)
    found: list[Word] = []
    for number, (line, strokes, texts) in enumerate(zip(lines, placed, words, strict=True)):
        pixels = [(s - low) * SCALE + MARGIN for s in strokes]
        try:
            cuts = cut_words(pixels, texts)
        except DataError as err:
            raise DataError(f"line {number + 1}: {err}") from err
        for k, (text, mine, sure) in enumerate(zip(texts, cuts.strokes, cuts.confidence, strict=True)):
            times = None if line.times is None else tuple(line.times[i] - start for i in mine)
            ink = Ink(tuple(pixels[i] for i in mine), frame, None, times, None if times is None else "recorded")
            found.append(Word(f"{number + 1:02d}-{k + 1:02d}", text, ink, number, cut_confidence=sure))
    page = Ink(tuple((s - low) * SCALE + MARGIN for line in placed for s in line), frame)
    return ComposedPage(render(page, pen=PEN), tuple(found), placing)


def _placed(lines: Sequence[RecordedLine]) -> tuple[list[list[FloatArray]], Placing]:
    spans = np.array([_span(line) for line in lines])
    height = float(np.median(spans[:, 1] - spans[:, 0])) or 1.0
    middles = spans.mean(axis=1)
    steps = np.diff(middles)
    if len(lines) == 1 or (steps.min() > 0.6 * height and steps.max() < 6 * height):
        return [list(line.strokes) for line in lines], "whiteboard"
    left = min(s[:, 0].min() for line in lines for s in line.strokes)
    out = []
    for number, (line, middle) in enumerate(zip(lines, middles, strict=True)):
        # Far away lines would make the page as wide as the board; an indent stays.
        start = min(s[:, 0].min() for s in line.strokes)
        indent = min(start - left, 2 * height)
        move = np.array([indent - start, number * PITCH * height - middle])
        out.append([s + move for s in line.strokes])
    return out, "stacked"


def _span(line: RecordedLine) -> tuple[float, float]:
    """Return between which heights most of a line's ink lies."""
    low, high = np.percentile(np.concatenate(line.strokes)[:, 1], (5, 95))
    return float(low), float(high)
