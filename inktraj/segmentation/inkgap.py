"""The embedded segmenter: lines from the PP-OCR detector, words from the gaps in their ink."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from inktraj import ppocr
from inktraj.clean import Cleaned, clean
from inktraj.page import Line, Page, WordCrop
from inktraj.segmentation import Segmentation
from inktraj.segmentation.assign import assign
from inktraj.segmentation.lines import FloatArray, Track, bent, tracks_from_quads
from inktraj.segmentation.outline import outline
from inktraj.segmentation.strip import strip
from inktraj.segmentation.words import Units, breaks, gap_threshold, group, reader_trust, seen_spaces, slant, units

I32 = NDArray[np.int32]
MARGIN = 4
"""White pixels around a word's ink in its crop."""


class InkGapSegmenter:
    """Finds lines with the PP-OCR detector and words by the gaps between parts of the ink."""

    name = "inkgap"
    version = "1"

    def __call__(self, page: Page) -> Segmentation:
        """Return the page's lines and words.

        Parameters
        ----------
        page
            Dark ink on light paper.
        """
        cleaned = clean(page.pixels)
        if not cleaned.ink.any():
            return Segmentation((), cleaned)
        tracks = _tracks(_quads(page, cleaned), cleaned)
        if not tracks:
            return Segmentation((), cleaned)
        labels = assign(cleaned.ink, tracks)
        boxes = _boxes(labels, len(tracks))
        if not boxes:  # lines were detected, but the ink near them is of none
            return Segmentation((), cleaned)
        lean = _page_slant(labels, tracks, boxes)
        parts = {n: units(labels, n, boxes[n], tracks[n], lean) for n in boxes}
        divides = _divides(cleaned, labels, tracks, parts)
        lines: list[Line] = []
        for n, part in parts.items():
            word = group(part, divides[n], tracks[n].height)
            crops = _crops(cleaned, part, word, len(lines))
            if crops:
                lines.append(_line(tracks[n], part, crops, len(lines)))
        return Segmentation(tuple(lines), cleaned)


def _quads(page: Page, cleaned: Cleaned) -> FloatArray:
    """Detect lines on the page as it is and as cleaned: each finds some that the other overlooks."""
    found = [ppocr.detect_lines(image)[0] for image in (page.pixels, cleaned.gray)]
    return np.concatenate(found)


def _tracks(quads: FloatArray, cleaned: Cleaned) -> list[Track]:
    """Return the lines that hold ink, each bent to follow it."""
    tracks = []
    h, w = cleaned.ink.shape
    for track in tracks_from_quads(quads):
        ends = np.array([[0, -0.6], [0, 0.6], [1, -0.6], [1, 0.6]]) * [track.length, track.height]
        corners = track.page(ends)
        x0, y0 = np.maximum(corners.min(axis=0).astype(int), 0)
        x1, y1 = np.minimum(corners.max(axis=0).astype(int) + 1, [w, h])
        ys, xs = np.nonzero(cleaned.ink[y0:y1, x0:x1])
        if len(ys):
            tracks.append(bent(track, np.column_stack([xs + x0, ys + y0]).astype(np.float64)))
    return tracks


def _divides(
    cleaned: Cleaned, labels: I32, tracks: list[Track], parts: dict[int, Units]
) -> dict[int, NDArray[np.bool_]]:
    """Decide for each line which of its gaps divide words."""
    paper = ~cleaned.ink
    strips = [strip(cleaned.gray, paper | (labels == n), tracks[n]) for n in parts]
    read = ppocr.space_probabilities(strips)
    seen = {n: seen_spaces(parts[n], p, tracks[n].length) for n, p in zip(parts, read, strict=True)}
    gaps = np.concatenate([p.gaps for p in parts.values()])
    threshold = gap_threshold(gaps)
    trust = reader_trust(gaps, np.concatenate(list(seen.values())), threshold)
    return {n: breaks(parts[n].gaps, seen[n], threshold, trust) for n in parts}


def _boxes(labels: I32, count: int) -> dict[int, tuple[int, int, int, int]]:
    """Return x0, y0, x1, y1 of each line that has ink."""
    ys, xs = np.nonzero(labels >= 0)
    owner = labels[ys, xs]
    low = np.full((count, 2), np.iinfo(np.int64).max)
    high = np.full((count, 2), -1)
    for axis, values in enumerate((xs, ys)):
        np.minimum.at(low[:, axis], owner, values)
        np.maximum.at(high[:, axis], owner, values)
    return {
        n: (int(low[n, 0]), int(low[n, 1]), int(high[n, 0]) + 1, int(high[n, 1]) + 1)
        for n in range(count)
        if high[n, 0] >= 0
    }


def _page_slant(labels: I32, tracks: list[Track], boxes: dict[int, tuple[int, int, int, int]]) -> float:
    local, heights = [], []
    for n, (x0, y0, x1, y1) in boxes.items():
        ys, xs = np.nonzero(labels[y0:y1, x0:x1] == n)
        local.append(tracks[n].local(np.column_stack([xs + x0, ys + y0]).astype(np.float64)))
        heights.append(tracks[n].height)
    return slant(local, heights)


def _crops(cleaned: Cleaned, part: Units, word: NDArray[np.int64], line: int) -> list[WordCrop]:
    crops: list[WordCrop] = []
    for w in range(int(word.max(initial=-1)) + 1):
        here = word == w
        # Less than half a dot of the pen is dirt.
        if here.sum() < max(4.0, 0.4 * cleaned.pen**2):
            continue
        crops.append(_crop(cleaned, part.ys[here], part.xs[here], line, len(crops)))
    return crops


def _crop(cleaned: Cleaned, ys: NDArray[np.int64], xs: NDArray[np.int64], line: int, index: int) -> WordCrop:
    x0, y0 = int(xs.min()) - MARGIN, int(ys.min()) - MARGIN
    mask = np.zeros((int(ys.max()) - y0 + MARGIN + 1, int(xs.max()) - x0 + MARGIN + 1), dtype=bool)
    mask[ys - y0, xs - x0] = True
    image = np.full(mask.shape, 255, dtype=np.uint8)
    # The word's own ink and its soft edge, without that of its neighbours.
    soft = cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    sy, sx = np.nonzero(soft)
    py, px = sy + y0, sx + x0
    h, w = cleaned.gray.shape
    ok = (py >= 0) & (py < h) & (px >= 0) & (px < w)
    own = mask[sy, sx] | ~cleaned.ink[np.clip(py, 0, h - 1), np.clip(px, 0, w - 1)]
    ok &= own
    image[sy[ok], sx[ok]] = cleaned.gray[py[ok], px[ok]]
    margin = max(2, round(0.5 * cleaned.pen))
    polygon = outline(mask, (x0, y0), margin, round(min(0.1 * mask.shape[0] + cleaned.pen, 40)))
    to_page = np.array([[1.0, 0.0, x0], [0.0, 1.0, y0]])
    return WordCrop(image, mask, to_page, polygon, id=f"l{line:03d}w{index:03d}", line=line, index=index)


def _line(track: Track, part: Units, crops: list[WordCrop], index: int) -> Line:
    local = track.local(np.column_stack([part.xs, part.ys]).astype(np.float64))
    low, high = np.percentile(local[:, 1], [0.5, 99.5])
    u = np.linspace(local[:, 0].min() - 2, local[:, 0].max() + 2, 2 if track.bend == (0.0,) else 17)
    upper = track.page(np.column_stack([u, np.full_like(u, low - 2)]))
    lower = track.page(np.column_stack([u, np.full_like(u, high + 2)]))
    base = track.page(np.column_stack([u, np.full_like(u, _baseline(local[:, 1], track.height))]))
    return Line(np.concatenate([upper, lower[::-1]]), base, tuple(crops), index, track.height)


def _baseline(v: FloatArray, height: float) -> float:
    """Return where the rows' ink falls off the most below the centre: the foot of the small letters."""
    bins = np.linspace(-0.6, 0.6, 61)
    counts = np.histogram(v / height, bins)[0].astype(np.float64)
    counts = np.convolve(counts, np.ones(5) / 5, mode="same")
    fall = -np.diff(counts)
    middle = bins[1:-1]
    fall[(middle < 0) | (middle > 0.45)] = -np.inf
    return float(middle[int(fall.argmax())] * height)
