"""Page pixels → even paper and an ink mask, in the page's own pixel grid.

The steps, each of which keeps every pixel in its place:

1. *Paper level*: a grey closing wider than any stroke, smoothed. Dividing by it evens light and shadow.
2. *Not paper*: regions that stay dark after the closing and touch the image's edge (scanner borders, the desk).
3. *Ink*: hysteresis on the contrast against the paper. The upper threshold is a share of the ink's own level,
   measured where the ink is, so that faint ink is found on its own terms; paper texture and bleed-through stay
   below it. The lower one is half of the local peak, which puts the ink's edge where the pen's was.
4. *Ruling*: long thin lines, straight or gently bent, in either direction. Pixels of a rule are removed column
   by column, but not where a stroke crosses it or is darker than it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
BoolArray = NDArray[np.bool_]
Grey = TypeVar("Grey", U8, F32)

MIN_CONTRAST = 0.045
"""Contrast against the paper (0 none, 1 black) below which nothing is ink."""
CLOSING_SHARE = 0.03
"""Width of the closing that finds the paper, as a share of the page's longer side."""
LEVEL_PERCENTILE = 95
"""The ink's own level, among all that stands out from the paper: ruling and texture may be most of it."""
OUTSIDE_SHARE = 0.35
"""What stays darker than this share of the paper is not paper: a scanner's border, the desk. Shadows are lighter."""
BODY_SHARE, HIGH_SHARE, HAIR_SHARE = 0.3, 0.5, 0.06
"""Thresholds as shares of the ink's level near by: of a stroke, of what is ink for sure, and of a hairline above the
paper beside it."""
SMOOTHING = 0.6
"""Sigma in pixels of the blur before thresholds: against sensor noise, without closing small counters."""
COUNTER_PENS = 1.6
"""Width up to which an eye in the ink is looked for, in pens."""
COUNTER_SHARE = 0.15
"""How much paler than what encloses it a small counter is, as a share of the stroke's peak."""
EDGE_SHARE = 0.5
"""Where a stroke ends sideways, as a share of its own peak: cuts off the blurred halo of thick strokes."""
RULE_SHARE = 0.3
"""A line is ruling from this share of the page's width (or height) on."""
SHEARS = (0.0, 0.035, -0.035, 0.07, -0.07)
"""Slopes at which ruling is looked for, level first; each covers its neighbourhood."""


@dataclass(frozen=True, slots=True, eq=False)
class Cleaned:
    """A cleaned page; every array has the page's height and width, so the map to the page is the identity.

    Parameters
    ----------
    gray
        ``(h, w)`` uint8: paper 255, ink dark; light, texture, ruling and borders evened out.
    ink
        ``(h, w)`` bool: handwriting ink.
    pen
        Median pen width in pixels; 0 where there is no ink.
    skew
        Angle of the text lines in degrees, positive when they fall to the right.
    """

    gray: U8
    ink: BoolArray
    pen: float
    skew: float


def clean(pixels: U8) -> Cleaned:
    """Separate a page's handwriting from its paper.

    Parameters
    ----------
    pixels
        ``(h, w, 3)`` uint8 RGB or ``(h, w)`` grey, dark ink on light paper.
    """
    contrast, outside = _contrast(_gray(pixels) if pixels.ndim == 3 else pixels)
    ink, pen, sure = _ink(contrast)
    if pen:
        # One direction after the other: where squared lines cross, the second finds what the first left.
        contrast[_rules(contrast, sure, pen)] = 0
        contrast[_rules(np.ascontiguousarray(contrast.T), np.ascontiguousarray(sure.T), pen).T] = 0
        ink, pen, sure = _ink(contrast)
    ink = _writing_only(ink, sure, pen)
    even = np.round(255 * (1 - contrast)).astype(np.uint8)
    even[outside] = 255
    return Cleaned(even, ink, pen, _skew(ink))


def _gray(pixels: U8) -> U8:
    """Return the mixture of the channels in which this page's ink stands out the most from its paper's texture.

    Fisher's linear discriminant between dark pixels and paper: brown ink shows best in blue, blue ink in red.
    """
    scale = min(1.0, 1000 / max(pixels.shape[:2]))
    small = cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    level = np.maximum(_paper(small)[0], 1)
    contrast = (1 - small / level).reshape(-1, 3)
    mean = contrast.mean(axis=1)
    strong = 0.5 * float(np.percentile(mean, 98))
    ink, paper = mean > max(strong, MIN_CONTRAST), np.abs(mean) < MIN_CONTRAST
    weights = np.array([0.299, 0.587, 0.114])
    if ink.sum() > 50 and paper.sum() > 50:
        spread = np.cov(contrast[paper].T) + 1e-4 * np.eye(3)
        best = np.maximum(np.linalg.solve(spread, contrast[ink].mean(axis=0)), 0)
        weights = best / best.sum() if best.sum() > 0 else weights
    return np.asarray(cv2.transform(pixels, weights[None].astype(np.float32)), dtype=np.uint8).reshape(pixels.shape[:2])


def _paper(small: U8) -> tuple[U8, int]:
    """Return the level of the paper at each pixel, and the side of the closing that found it."""
    side = max(5, round(CLOSING_SHARE * max(small.shape[:2])) | 1)
    # A median first: the closing takes the brightest pixel in reach, which must not be a speck of noise.
    level = cv2.medianBlur(small, 3) if min(small.shape[:2]) > 3 else small
    return np.asarray(cv2.morphologyEx(level, cv2.MORPH_CLOSE, _disc(side)), dtype=np.uint8), side


def _contrast(gray: U8) -> tuple[F32, BoolArray]:
    """Return contrast against the paper in 0–1 and the mask of what is not paper."""
    h, w = gray.shape
    scale = min(1.0, 1000 / max(h, w))
    small = cv2.resize(gray, (max(1, round(w * scale)), max(1, round(h * scale))), interpolation=cv2.INTER_AREA)
    level, side = _paper(small)
    paper = float(np.percentile(level, 75))
    count, labels = cv2.connectedComponents((level < OUTSIDE_SHARE * paper).astype(np.uint8), connectivity=8)
    outside = _at_edge(labels, count)[labels]
    level = np.where(outside, paper, level).astype(np.float32)
    # Never lighter than what was found: beside a sheet's edge the blur would turn the desk into ink.
    smooth = np.minimum(cv2.GaussianBlur(level, (0, 0), side / 3), level)
    smooth = cv2.resize(smooth, (w, h), interpolation=cv2.INTER_LINEAR)
    contrast = 1 - gray.astype(np.float32) / np.maximum(smooth, 1)
    np.clip(contrast, 0, 1, out=contrast)
    grown = cv2.dilate(outside.astype(np.uint8), np.ones((5, 5), np.uint8))
    full = cv2.resize(grown, (w, h), interpolation=cv2.INTER_NEAREST).astype(bool)
    contrast[full] = 0
    return contrast, full


def _ink(contrast: F32) -> tuple[BoolArray, float, BoolArray]:
    """Return the ink mask, the pen width (0 for none), and the pixels that are ink by the page's measure."""
    smooth = cv2.GaussianBlur(contrast, (0, 0), SMOOTHING)
    noise = 1.4826 * float(np.median(np.abs(cv2.Laplacian(smooth[::2, ::2], cv2.CV_32F)))) / 4.5
    floor = max(MIN_CONTRAST, 5 * noise)
    core = smooth > floor
    if core.sum() < 4:
        return np.zeros(contrast.shape, dtype=bool), 0.0, core
    # The ink's level where the ink is: a high percentile of contrast, from the whole page and from near by.
    level = float(np.percentile(smooth[core], LEVEL_PERCENTILE))
    near = _near_level(smooth, core, level)
    sure = smooth > np.maximum(floor, HIGH_SHARE * near)
    pen = _pen_width(_connected((smooth > np.maximum(floor, BODY_SHARE * near)), sure))
    if not pen:
        return np.zeros(contrast.shape, dtype=bool), 0.0, core
    # The body of the strokes, with its edge at a share of the stroke's own peak, not of the page's.
    peak = cv2.dilate(smooth, _disc(2 * round(pen / 2) + 1))
    body = (smooth > np.maximum(floor, BODY_SHARE * near)) & (smooth > EDGE_SHARE * peak)
    # Small counters (of e, a, o) are paler than both their sides, if often darker than half of the peak.
    probe = _disc(max(3, round(pen) | 1))
    eye = _disc(max(3, round(COUNTER_PENS * pen) | 1))
    body &= cv2.morphologyEx(smooth, cv2.MORPH_CLOSE, eye) - smooth < COUNTER_SHARE * peak
    # Hairlines: thinner than the pen and darker than both their sides, however faint. Bleed-through is broad.
    hair = smooth - cv2.morphologyEx(smooth, cv2.MORPH_OPEN, probe)
    hair = (hair > np.maximum(floor, HAIR_SHARE * near)) & (hair > EDGE_SHARE * cv2.dilate(hair, _disc(3)))
    mask = _connected(body | _reaching_out(hair, body, pen), body & sure)
    return mask, _pen_width(mask), body & (smooth > 0.4 * level)


def _reaching_out(hair: BoolArray, body: BoolArray, pen: float) -> BoolArray:
    """Keep the hairlines that lead away from the strokes' body; the others are its own rough edge."""
    rest = (hair & ~body).astype(np.uint8)
    away = cv2.distanceTransform((~body).astype(np.uint8), cv2.DIST_L2, 3)
    return _connected(rest > 0, (rest > 0) & (away > max(2.5, 0.5 * pen)))


def _disc(side: int) -> U8:
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)), dtype=np.uint8)


def _near_level(smooth: F32, core: BoolArray, level: float) -> F32:
    """Return the ink level around each pixel: block maxima blurred over several lines of text."""
    h, w = smooth.shape
    block = max(8, round(max(h, w) / 120))
    rows, cols = -(-h // block), -(-w // block)
    padded = np.zeros((rows * block, cols * block), dtype=np.float32)
    padded[:h, :w] = np.where(core, smooth, 0)
    peaks = padded.reshape(rows, block, cols, block).max(axis=(1, 3))
    weight = (peaks > 0).astype(np.float32)
    sigma = 4.0
    share = cv2.GaussianBlur(weight, (0, 0), sigma)
    near = cv2.GaussianBlur(peaks, (0, 0), sigma) / np.maximum(share, 1e-3)
    # Where there is no dark ink near by, paper texture must not become the measure.
    near = np.clip(near, 0.4 * level, level)
    return cv2.resize(near.astype(np.float32), (cols * block, rows * block), interpolation=cv2.INTER_LINEAR)[:h, :w]


def _connected(mask: BoolArray, seeds: BoolArray) -> BoolArray:
    """Return the components of a mask that hold a seed."""
    count, labels = cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)
    keep = np.zeros(count, dtype=bool)
    keep[labels[seeds]] = True
    keep[0] = False
    return np.asarray(keep[labels], dtype=np.bool_)


def _pen_width(mask: BoolArray) -> float:
    """Return the median width of the strokes: twice the distance transform on its ridges."""
    distance = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 3)
    ridge = (distance >= cv2.dilate(distance, np.ones((3, 3), np.uint8)) - 1e-3) & (distance > 0)
    if not ridge.any():
        return 0.0
    return max(1.0, 2 * float(np.median(distance[ridge])) - 0.5)


def _writing_only(ink: BoolArray, sure: BoolArray, pen: float) -> BoolArray:
    """Drop specks, and what is too solid or too close to the image's edge to be writing."""
    if not pen:
        return ink
    h, w = ink.shape
    mask = ink.astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    area = stats[:, cv2.CC_STAT_AREA]
    keep = area >= max(3.0, 0.45 * pen**2)
    # A dot is as dark as the page's writing; small and pale is paper.
    keep &= (np.bincount(labels[sure], minlength=count) > 0.1 * area) | (area > 40 * pen**2)
    # Scanner borders and the page's own edge: long, and mostly within a narrow frame along the image's edge.
    frame = max(4, round(0.03 * max(h, w)))
    inner = np.bincount(labels[frame:-frame, frame:-frame].ravel(), minlength=count)
    long = (stats[:, cv2.CC_STAT_WIDTH] > 0.1 * w) | (stats[:, cv2.CC_STAT_HEIGHT] > 0.1 * h)
    keep &= ~(long & _at_edge(labels, count) & (inner < 0.5 * area))
    # Solid areas: torn edges, shadows, stamps' fields. A word with a blot in it keeps what is thinner.
    distance = cv2.distanceTransform(mask, cv2.DIST_L2, 3)
    core = np.bincount(labels[distance > 1.5 * pen], minlength=count)
    keep &= (core < 0.3 * area) | (core < 4 * pen**2)
    keep[0] = False
    mask = keep[labels].astype(np.uint8)
    solid = ((distance > 2.5 * pen) & (mask > 0)).astype(np.uint8)
    if solid.any():
        mask[cv2.dilate(solid, _disc(2 * int(2.5 * pen + 3) + 1)) > 0] = 0
    return mask > 0


def _at_edge(labels: NDArray[np.int32], count: int) -> BoolArray:
    """Return for each label whether it touches the image's edge."""
    touching = np.zeros(count, dtype=bool)
    for edge in (labels[0], labels[-1], labels[:, 0], labels[:, -1]):
        touching[edge] = True
    touching[0] = False
    return touching


def _rules(contrast: F32, sure: BoolArray, pen: float) -> BoolArray:
    """Return the pixels of horizontal ruling."""
    out = np.zeros(contrast.shape, dtype=bool)
    dark = float(np.median(contrast[sure])) if sure.any() else 1.0
    for curve in _dark_rules(contrast, pen) + _faint_rules(contrast, sure, pen):
        _erase(_extended(curve, contrast), contrast, pen, dark, out)
    return out


def _halved(values: F32) -> F32:
    """Half the resolution is enough to find rules, and evens noise."""
    h, w = values.shape
    return np.asarray(cv2.resize(values, (max(1, w // 2), max(1, h // 2)), interpolation=cv2.INTER_AREA))


def _dark_rules(contrast: F32, pen: float) -> list[NDArray[np.float64]]:
    """Find rules that can be followed by eye: arrays ``(n, 2)`` of x (whole, ascending) and y of the centre."""
    small = _halved(contrast)
    low, middle = np.percentile(small[::2, ::2], [10, 50])
    marks = (small > np.clip(middle + 2.5 * (middle - low), 0.8 * MIN_CONTRAST, 0.15)).astype(np.uint8)
    # Thin parts only: a tall run of marks is writing or a shadow, not ruling.
    thick = max(4, round(0.6 * pen) + 4)
    thin = marks & ~cv2.morphologyEx(marks, cv2.MORPH_OPEN, np.ones((thick, 1), np.uint8))
    curves = _unbroken(thin, thick, max(25, small.shape[1] // 25))
    return [2 * curve + 0.5 for curve in curves if _between_words(curve, marks)]


def _faint_rules(contrast: F32, sure: BoolArray, pen: float) -> list[NDArray[np.float64]]:
    """Find rules too faint to follow, by averaging the paper along them; arrays as of `_dark_rules`.

    Only paper without ink takes part, so that a line of words, whose feet make a line too, leaves no trace.
    """
    small = _halved(contrast)
    # Three pen widths around strong ink: the hairlines that join letters lie in them.
    written = cv2.dilate(_halved(sure.astype(np.float32)), _disc(2 * round(1.6 * pen) + 1)) > 0.1
    paper = np.where(written, 0, 1).astype(np.float32)
    values = np.minimum(small, 0.3) * paper
    h, w = small.shape
    span = max(15, w // 25)
    # The paper's texture, as it is left after averaging over the span.
    texture = 1.4826 * float(np.median(np.abs(small - cv2.blur(small, (3, 3)))[::2, ::2]))
    least = max(0.008, 4 * texture / np.sqrt(span))
    found = np.zeros((h, w), dtype=np.uint8)
    for slope in SHEARS:
        weight = cv2.blur(_shear(paper, -slope), (span, 1))
        mean = np.where(weight > 0.15, cv2.blur(_shear(values, -slope), (span, 1)) / np.maximum(weight, 0.15), np.nan)
        # A ridge: darker than what lies four and five rows above and below.
        ridge = np.full_like(mean, np.nan)
        flank = np.fmax(np.fmax(mean[:-10], mean[1:-9]), np.fmax(mean[10:], mean[9:-1]))
        ridge[5:-5] = mean[5:-5] - flank
        with np.errstate(invalid="ignore"):
            found |= _shear((ridge > least).astype(np.uint8), slope)
    return [2 * curve + 0.5 for curve in _unbroken(found, 4, 2 * span) + _straight(found)]


def _between_words(curve: NDArray[np.float64], marks: U8) -> bool:
    """Tell ruling from the feet of a line of words: it is also there where nothing is written above or below it."""
    h, w = marks.shape
    columns = np.arange(int(curve[0, 0]), min(w, int(curve[-1, 0]) + 1))
    rows = np.round(np.interp(columns, curve[:, 0], curve[:, 1])).astype(np.int64)
    strip = marks[np.clip(rows + np.arange(-11, 12)[:, None], 0, h - 1), columns]
    free = ~(strip[:6].any(axis=0) | strip[17:].any(axis=0))
    covered = strip[9:14].any(axis=0) & free
    # And it is spread over the whole length.
    spread = len(np.unique(np.flatnonzero(covered) * 10 // len(columns)))
    return bool(free.sum() > 0.1 * len(columns) and covered.sum() > 0.85 * free.sum() and spread >= 5)


def _unbroken(thin: U8, thick: int, run: int) -> list[NDArray[np.float64]]:
    """Find lines that run on for long, straight or bent, and take them out of the 0/1 mask."""
    w = thin.shape[1]
    curves = []
    for slope in SHEARS:
        level = cv2.dilate(_shear(thin, -slope), np.ones((3, 1), np.uint8))
        long = cv2.morphologyEx(level, cv2.MORPH_OPEN, np.ones((1, run), np.uint8))
        long = _shear(cv2.morphologyEx(long, cv2.MORPH_CLOSE, np.ones((1, 3 * run), np.uint8)), slope)
        count, labels, stats, _ = cv2.connectedComponentsWithStats(long, connectivity=8)
        for i in range(1, count):
            x, y, length, height, area = stats[i]
            if length < RULE_SHARE * w or area > length * (thick + 5):
                continue
            part = labels[y : y + height, x : x + length] == i
            total = part.sum(axis=0)
            used = np.flatnonzero(total)
            centre = (part * np.arange(height)[:, None]).sum(axis=0)[used] / total[used] + y
            grown = cv2.dilate(part.astype(np.uint8), np.ones((5, 1), np.uint8))
            thin[y : y + height, x : x + length][grown > 0] = 0
            curves.append(np.column_stack([used + float(x), centre]))
    return curves


def _straight(mask: U8) -> list[NDArray[np.float64]]:
    """Find nearly straight lines by how much of the width they cover, however often they are interrupted."""
    h, w = mask.shape
    ys, xs = np.nonzero(mask)
    if len(ys) < RULE_SHARE * w:
        return []
    slopes = np.arange(-0.08, 0.0801, 0.004)
    half = int(np.ceil(0.08 * w / 2)) + 2
    votes = np.stack(
        [np.bincount(np.round(ys - s * (xs - w / 2)).astype(np.int64) + half, minlength=h + 2 * half) for s in slopes]
    ).astype(np.float32)
    # A rule is one to three pixels thick here: what covers the width within two rows is one.
    votes += np.roll(votes, 1, axis=1)
    curves = []
    while True:
        s, row = divmod(int(votes.argmax()), votes.shape[1])
        if votes[s, row] < 0.4 * w:
            return curves
        votes[:, max(0, row - 6) : row + 7] = 0
        on = np.abs(ys - slopes[s] * (xs - w / 2) + half - row) <= 3
        columns = np.arange(w, dtype=np.float64)
        curves.append(np.column_stack([columns, np.polyval(np.polyfit(xs[on], ys[on], 2), columns)]))


def _shear(values: Grey, slope: float) -> Grey:
    """Move each column down by `slope` times its distance from the middle; zeros come in, nothing wraps."""
    h, w = values.shape
    matrix = np.array([[1, 0, 0], [slope, 1, -slope * w / 2]])
    return cast(Grey, cv2.warpAffine(values, matrix, (w, h), flags=cv2.INTER_NEAREST, borderValue=0))


def _extended(curve: NDArray[np.float64], contrast: F32) -> NDArray[np.float64]:
    """Follow a rule beyond both ends of the found piece, as long as there is something along its course."""
    h, w = contrast.shape
    step = 24
    pieces = [curve]
    for sign in (-1, 1):
        end = curve[0] if sign < 0 else curve[-1]
        inner = curve[:400] if sign < 0 else curve[-400:]
        slope = float(np.polyfit(inner[:, 0], inner[:, 1], 1)[0]) if len(inner) > 1 else 0.0
        x, y, misses = float(end[0]), float(end[1]), 0
        while misses < 4:
            columns = (x + sign * np.arange(1, step + 1)).astype(np.int64)
            columns = columns[(columns >= 0) & (columns < w)]
            rows = np.round(y + slope * (columns - x)).astype(np.int64) + np.arange(-6, 7)[:, None]
            if not len(columns) or rows.min() < 0 or rows.max() >= h:
                break
            # The median over the columns: what stands there in most of them, not a stroke that crosses.
            profile = np.median(contrast[rows, columns], axis=1)
            best = 4 + int(profile[4:9].argmax())
            flank = max(profile[best - 4], profile[best + 4])
            seen = profile[best] > max(0.8 * MIN_CONTRAST, 1.5 * flank)
            misses = 0 if seen else misses + 1
            x, y = float(columns[-1]), y + slope * float(columns[-1] - x) + (0.5 * (best - 6) if seen else 0.0)
            if seen:
                pieces.insert(0, np.array([[x, y]])) if sign < 0 else pieces.append(np.array([[x, y]]))
    return np.concatenate(pieces)


def _erase(curve: NDArray[np.float64], contrast: F32, pen: float, dark: float, out: BoolArray) -> None:
    """Mark one rule's pixels in `out`, but not those of strokes that cross it or are darker than it."""
    h, w = contrast.shape
    columns = np.arange(max(0, int(curve[0, 0]) - 8), min(w, int(curve[-1, 0]) + 10))
    reach = int(np.ceil(max(10.0, 3 * pen)))
    offset = np.arange(-reach, reach + 1)[:, None]
    rows = np.round(np.interp(columns, curve[:, 0], curve[:, 1])).astype(np.int64)[None, :] + offset
    inside = (rows >= 0) & (rows < h)
    rows = np.clip(rows, 0, h - 1)
    values = np.where(inside, contrast[rows, columns], 0)
    # Follow the rule: its darkest row near the fitted centre, smoothed, since paper bends and pens wander.
    near = slice(reach - 3, reach + 4)
    strength = values[near].max(axis=0)
    seen = strength > 0.8 * MIN_CONTRAST
    if seen.sum() < 0.3 * len(columns):
        return
    # Where writing covers the rule the column is darker and its run longer: the lower third is the rule's own.
    level = float(np.percentile(strength[seen], 30))
    on = values > 0.4 * level
    start = np.argmax(np.where(on[near], -np.abs(offset[near]) + 9, 0), axis=0) + reach - 3
    held = on[start, np.arange(len(columns))]
    index = np.arange(2 * reach + 1)[:, None]
    off = ~on
    top = np.where(off & (index < start), index, -1).max(axis=0)
    bottom = np.where(off & (index > start), index, 2 * reach + 1).min(axis=0)
    thickness = bottom - top - 1
    typical = float(np.percentile(thickness[held], 30)) if held.any() else 0.0
    if not 0 < typical <= max(8.0, 2.5 * pen):
        return
    crossed = thickness > typical + max(2.0, 0.6 * typical)
    run = (index > top) & (index < bottom) & held
    # The rule's blurred flanks go with it, or its edges would stay as two thin lines.
    run = cv2.dilate(run.astype(np.uint8), np.ones((3, 1), np.uint8)).astype(bool)
    clear = held & ~crossed
    if level < 0.5 * dark and clear.any():
        # Strokes are darker than this rule. On its rows stays what is clearly darker, and what has ink right above
        # and below: a crossing stroke, without the stubs of the rule on both its sides.
        place = np.arange(len(columns))
        own = np.interp(place, place[clear], (top + bottom)[clear] / 2)
        strokes = values > 0.5 * dark
        step = 0.5 * typical + 3
        above, below = (np.clip(np.round(own + sign * step).astype(np.int64), 0, 2 * reach) for sign in (-1, 1))
        keep = (values > 0.6 * (level + dark)) | (strokes[above, place] & strokes[below, place])
        erase = (np.abs(index - own) <= 0.5 * typical + 2) & inside & ~keep
    else:
        erase = run & inside & ~crossed & (values <= level + max(0.12, 0.35 * level))
    out[rows[erase], np.broadcast_to(columns, rows.shape)[erase]] = True


def _skew(ink: BoolArray) -> float:
    """Return the lines' slope in degrees: the shear whose row sums vary the most."""
    h, w = ink.shape
    scale = min(1.0, 600 / max(h, w))
    small = cv2.resize(ink.astype(np.float32), (max(1, round(w * scale)), max(1, round(h * scale))))
    ys, xs = np.nonzero(small > 0.2)
    if len(ys) < 50:
        return 0.0

    def sharpness(degrees: float) -> float:
        rows = np.round(ys - np.tan(np.radians(degrees)) * (xs - small.shape[1] / 2)).astype(np.int64)
        counts = np.bincount(rows - rows.min()).astype(np.float64)
        return float((np.diff(counts) ** 2).sum())

    coarse = max(np.arange(-10, 10.5, 0.5), key=sharpness)
    return float(max(np.arange(coarse - 0.5, coarse + 0.55, 0.1), key=sharpness))
