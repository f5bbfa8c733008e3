"""A line's ink → words, by the gaps between its parts."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from inktraj.segmentation.lines import FloatArray, Track

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

CORE = 0.32
"""Half height, in multiples of the line's, of the zone in which gaps are measured: most of it is x-height."""
ROWS = 8
"""Rows into which that zone is cut when a gap is measured."""
SEEN, UNSEEN = -0.4, 2.2
"""By what the usual gap between words is multiplied where the reader is sure of a space, and sure of none."""
PRIOR_GAP, PRIOR_SPREAD = 0.30, 0.45
"""The gap, in multiples of the line's height, that usually divides words from letters; and its spread (log)."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The connected parts of one line's ink, ordered along the line.

    Parameters
    ----------
    ys, xs
        ``(n,)`` page coordinates of the line's ink pixels.
    part
        ``(n,)`` number of each pixel's part, in order along the line; −1 for parts outside the core zone.
    side
        ``(n,)`` number of a part outside the core zone (dots, accents), −1 for the others.
    gaps
        ``(parts − 1,)`` white between each part and the next, in multiples of the line's height.
    spans
        ``(parts − 1, 2)`` where along the line each gap begins and ends, in pixels, ascending.
    upright
        ``(n,)`` place along the line, in pixels, of each pixel after the slant is taken out.
    """

    ys: I64
    xs: I64
    part: I64
    side: I64
    gaps: FloatArray
    spans: FloatArray
    upright: FloatArray


def slant(locals_: list[FloatArray], heights: list[float]) -> float:
    """Return how far letters lean, as shift along the line per pixel upwards: where columns are most distinct."""
    if not locals_:
        return 0.0
    candidates = np.arange(-0.6, 1.3, 0.1)
    score = np.zeros(len(candidates))
    for local, height in zip(locals_, heights, strict=True):
        near = local[np.abs(local[:, 1]) < 0.6 * height]
        near = near[:: max(1, len(near) // 4000)]
        if len(near) < 50:
            continue
        for i, s in enumerate(candidates):
            column = ((near[:, 0] + s * near[:, 1]) / max(2.0, 0.04 * height)).astype(np.int64)
            counts = np.bincount(column - column.min()).astype(np.float64)
            score[i] += (counts**2).sum() / len(near)
    best = int(score.argmax())
    return float(candidates[best])


def units(labels: I32, number: int, box: tuple[int, int, int, int], track: Track, lean: float) -> Units:
    """Cut one line's ink into parts and measure the gaps.

    Parameters
    ----------
    labels
        ``(h, w)`` line numbers of the page's ink.
    number
        The line.
    box
        x0, y0, x1, y1 that hold the line's ink.
    track
        Where the line runs.
    lean
        The page's slant.
    """
    x0, y0, x1, y1 = box
    mask = (labels[y0:y1, x0:x1] == number).astype(np.uint8)
    count, parts = cv2.connectedComponents(mask, connectivity=8)
    ys, xs = np.nonzero(mask)
    part = parts[ys, xs].astype(np.int64) - 1
    count -= 1
    local = track.local(np.column_stack([xs + x0, ys + y0]).astype(np.float64))
    upright = local[:, 0] + lean * local[:, 1]
    core = np.abs(local[:, 1]) <= CORE * track.height
    pixels = np.bincount(part, minlength=count)
    inside = np.bincount(part[core], minlength=count)
    # A part belongs to the core when a fair share of it does: the tip of a descender from above does not.
    main = inside > 0.15 * pixels
    left = np.full(count, np.inf)
    right = np.full(count, -np.inf)
    np.minimum.at(left, part[core], upright[core])
    np.maximum.at(right, part[core], upright[core])
    order = np.flatnonzero(main)
    order = order[np.argsort(left[order] + right[order], kind="stable")]
    rank = np.full(count, -1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    side = np.where(main, -1, np.arange(count))
    gaps, spans = _gaps(upright[core], local[core, 1], rank[part[core]], len(order), track.height)
    return Units(ys + y0, xs + x0, rank[part], side[part], gaps, spans, upright)


def _gaps(upright: FloatArray, v: FloatArray, rank: I64, count: int, height: float) -> tuple[FloatArray, FloatArray]:
    """Measure the white between consecutive parts, in multiples of the line's height, and where it lies in pixels.

    Half of it is the distance between the parts' extreme columns, half the median over the rows in which both
    sides have ink near by: so neither one long stroke nor one open letter decides alone.
    """
    if count < 2:
        return np.zeros(0), np.zeros((0, 2))
    keep = rank >= 0
    upright, v, rank = upright[keep], v[keep], rank[keep]
    row = np.clip(((v / (CORE * height) + 1) / 2 * ROWS).astype(np.int64), 0, ROWS - 1)
    left = np.full((ROWS, count), np.inf)
    right = np.full((ROWS, count), -np.inf)
    np.minimum.at(left, (row, rank), upright)
    np.maximum.at(right, (row, rank), upright)
    # Everything before against everything after: parts may overlap along the line.
    before = np.maximum.accumulate(right, axis=1)[:, :-1]
    after = np.minimum.accumulate(left[:, ::-1], axis=1)[:, ::-1][:, 1:]
    edges = np.column_stack([before.max(axis=0), after.min(axis=0)])
    extreme = edges[:, 1] - edges[:, 0]
    white = after - before
    # A row whose white is wider than the gap itself by a line's height says nothing of this gap.
    white[~np.isfinite(white)] = np.nan
    white[white > extreme + 1.0 * height] = np.nan
    filled = np.where(np.isnan(white).all(axis=0), extreme, white)
    middle = np.nanmedian(filled, axis=0)
    return np.asarray((0.5 * extreme + 0.5 * middle) / height, dtype=np.float64), np.sort(edges, axis=1)


def gap_threshold(gaps: FloatArray) -> float:
    """Return the gap that divides words from letters on one page.

    Otsu's criterion over the page's own gaps, weighed by a prior on where such a gap lies; the fewer gaps there
    are, the more the prior says.

    Parameters
    ----------
    gaps
        All gaps of the page, in multiples of their line's height.
    """
    gaps = np.clip(gaps[np.isfinite(gaps)], -0.2, 1.2)
    candidates = np.exp(np.linspace(np.log(0.1), np.log(0.8), 57))
    prior = -0.5 * (np.log(candidates / PRIOR_GAP) / PRIOR_SPREAD) ** 2
    if len(gaps) < 3:
        return float(candidates[prior.argmax()])
    score = np.zeros(len(candidates))
    for i, t in enumerate(candidates):
        wide = gaps > t
        share = wide.mean()
        if 0 < share < 1:
            between = share * (1 - share) * (gaps[wide].mean() - gaps[~wide].mean()) ** 2
            score[i] = between / max(float(gaps.var()), 1e-9)
    # The share of variance explained, as the likelihood of two groups of equal spread would weigh it.
    fit = -0.5 * len(gaps) * np.log(np.maximum(1 - score, 1e-3))
    return float(candidates[(fit + 2 * prior).argmax()])


def seen_spaces(parts: Units, probabilities: FloatArray, length: float) -> FloatArray:
    """Return for each gap the probability with which the reader sees a space in it.

    Each space that the reader sees goes to one gap: the nearest, the wider of two. The reader places it within
    some three of its time steps.

    Parameters
    ----------
    parts
        The line's parts.
    probabilities
        ``(columns,)`` from `inktraj.ppocr.space_probabilities`, over the whole line.
    length
        The line's length in pixels.
    """
    seen = np.zeros(len(parts.gaps))
    if not len(seen):
        return seen
    step = length / max(len(probabilities), 1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], probabilities > 0.05, [0]]).astype(np.int64)))
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        p = probabilities[first:last]
        place = (float((np.arange(first, last) * p).sum() / p.sum()) + 0.5) * step
        away = np.maximum(0, np.maximum(parts.spans[:, 0] - place, place - parts.spans[:, 1])) / step
        best = int((away - 4 * np.clip(parts.gaps, -0.1, 0.5)).argmin())
        if away[best] <= 3:
            seen[best] = max(seen[best], float(p.max()))
    return seen


def breaks(gaps: FloatArray, seen: FloatArray, threshold: float, trust: float) -> NDArray[np.bool_]:
    """Decide which gaps divide words.

    Parameters
    ----------
    gaps
        ``(n,)`` in multiples of the line's height.
    seen
        ``(n,)`` probability of a space as read.
    threshold
        The gap that divides words where the reader has no say.
    trust
        How much the reader is heard, 0–1. At 1 a gap in which it sees a space divides words however small, and
        one in which it sees none must be `UNSEEN` times as wide as usual.
    """
    # Where there is no space the reader's probability is next to nothing, so two fifths are as good as certain.
    factor = 1 + trust * ((UNSEEN - 1) + (SEEN - UNSEEN) * np.minimum(1, 2.5 * seen))
    return np.asarray(gaps > threshold * factor, dtype=np.bool_)


def reader_trust(gaps: FloatArray, seen: FloatArray, threshold: float) -> float:
    """Return how much the reader is to be heard on a page: the share of clearly wide gaps in which it sees a space.

    A reader that does not know the script, or cannot read the hand, sees few, and the gaps alone decide.
    """
    wide = gaps > 1.5 * threshold
    return float(min(1.0, seen[wide].mean() / 0.7)) if wide.any() else 0.0


def group(parts: Units, divides: NDArray[np.bool_], height: float) -> I64:
    """Return for each of a line's pixels the number of its word, in order along the line.

    Parts outside the core zone go with the word under (or over) which they stand.
    """
    count = len(parts.gaps) + 1 if (parts.part >= 0).any() else 0
    if not count:
        return np.full(len(parts.ys), -1, dtype=np.int64)
    word_of = np.concatenate([[0], np.cumsum(divides)]).astype(np.int64)
    word = np.where(parts.part >= 0, word_of[np.maximum(parts.part, 0)], -1)
    words = int(word_of[-1]) + 1
    left = np.full(words, np.inf)
    right = np.full(words, -np.inf)
    np.minimum.at(left, word[word >= 0], parts.upright[word >= 0])
    np.maximum.at(right, word[word >= 0], parts.upright[word >= 0])
    loose = np.flatnonzero(parts.side >= 0)
    loose = loose[np.argsort(parts.side[loose], kind="stable")]
    starts = np.flatnonzero(np.diff(parts.side[loose], prepend=-1))
    for here in np.split(loose, starts[1:]) if len(loose) else []:
        middle = float(np.median(parts.upright[here]))
        away = np.maximum(0, np.maximum(left - middle, middle - right))
        nearest = int(away.argmin())
        if away[nearest] <= 0.6 * height:
            word[here] = nearest
    return word
