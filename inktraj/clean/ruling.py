"""Ruling: finding printed or drawn lines, and taking them out from under the writing."""

from __future__ import annotations

from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from inktraj.clean.paper import F32, MIN_CONTRAST, U8, BoolArray, disc

FloatArray = NDArray[np.float64]
Grey = TypeVar("Grey", U8, F32)

RULE_SHARE = 0.3
"""A line is ruling from this share of the page's width (or height) on."""
SHEARS = (0.0, 0.035, -0.035, 0.07, -0.07)
"""Slopes at which ruling is looked for, level first; each covers its neighbourhood."""


def rules(contrast: F32, dark: BoolArray, pen: float) -> BoolArray:
    """Find the pixels of horizontal ruling.

    Parameters
    ----------
    contrast
        ``(h, w)`` against the paper, 0–1.
    dark, pen
        As of `inktraj.clean.ink.find_ink`.
    """
    out = np.zeros(contrast.shape, dtype=bool)
    if min(contrast.shape) < 40:
        return out
    ink_level = float(np.median(contrast[dark])) if dark.any() else 1.0
    for curve in _dark_rules(contrast, pen) + _faint_rules(contrast, dark, pen):
        _erase(_extended(curve, contrast), contrast, pen, ink_level, out)
    return out


def _halved(values: F32) -> F32:
    """Half the resolution is enough to find rules, and evens noise."""
    h, w = values.shape
    return np.asarray(cv2.resize(values, (max(1, w // 2), max(1, h // 2)), interpolation=cv2.INTER_AREA), np.float32)


def _dark_rules(contrast: F32, pen: float) -> list[FloatArray]:
    """Find rules that can be followed by eye: arrays ``(n, 2)`` of x (whole, ascending) and y of the centre."""
    small = _halved(contrast)
    low, middle = np.percentile(small[::2, ::2], [10, 50])
    marks = (small > np.clip(middle + 2.5 * (middle - low), 0.8 * MIN_CONTRAST, 0.15)).astype(np.uint8)
    # Thin parts only: a tall run of marks is writing or a shadow, not ruling.
    thick = max(4, round(0.6 * pen) + 4)
    tall = np.asarray(cv2.morphologyEx(marks, cv2.MORPH_OPEN, np.ones((thick, 1), np.uint8)), dtype=np.uint8)
    thin = marks & ~tall
    curves = _unbroken(thin, thick, max(25, small.shape[1] // 25)) + _straight(thin)
    return [2 * curve + 0.5 for curve in curves if _between_words(curve, marks)]


def _faint_rules(contrast: F32, dark: BoolArray, pen: float) -> list[FloatArray]:
    """Find rules too faint to follow, by averaging the paper along them; arrays as of `_dark_rules`.

    Only paper without ink takes part, so that a line of words, whose feet make a line too, leaves no trace.
    """
    small = _halved(contrast)
    # Three pen widths around dark ink: the hairlines that join letters lie in them.
    written = cv2.dilate(_halved(dark.astype(np.float32)), disc(2 * round(1.6 * pen) + 1)) > 0.1
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


def _between_words(curve: FloatArray, marks: U8) -> bool:
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


def _unbroken(thin: U8, thick: int, run: int) -> list[FloatArray]:
    """Find lines that run on for long, straight or bent, and take them out of the 0/1 mask."""
    w = thin.shape[1]
    curves: list[FloatArray] = []
    for slope in SHEARS:
        level = cv2.dilate(_shear(thin, -slope), np.ones((3, 1), np.uint8))
        long = cv2.morphologyEx(level, cv2.MORPH_OPEN, np.ones((1, run), np.uint8))
        closed = np.asarray(cv2.morphologyEx(long, cv2.MORPH_CLOSE, np.ones((1, 3 * run), np.uint8)), dtype=np.uint8)
        long = _shear(closed, slope)
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


def _straight(mask: U8) -> list[FloatArray]:
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
    curves: list[FloatArray] = []
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
    moved = cv2.warpAffine(values, matrix, (w, h), flags=cv2.INTER_NEAREST, borderValue=0)
    return np.asarray(moved, dtype=values.dtype)


def _extended(curve: FloatArray, contrast: F32) -> FloatArray:
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


def _erase(curve: FloatArray, contrast: F32, pen: float, ink_level: float, out: BoolArray) -> None:
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
    if level < 0.5 * ink_level and clear.any():
        # Strokes are darker than this rule. On its rows stays what is clearly darker, and what has ink right above
        # and below: a crossing stroke, without the stubs of the rule on both its sides.
        place = np.arange(len(columns))
        own = np.interp(place, place[clear], (top + bottom)[clear] / 2)
        strokes = values > 0.5 * ink_level
        step = 0.5 * typical + 3
        above, below = (np.clip(np.round(own + sign * step).astype(np.int64), 0, 2 * reach) for sign in (-1, 1))
        keep = (values > 0.6 * (level + ink_level)) | (strokes[above, place] & strokes[below, place])
        erase = (np.abs(index - own) <= 0.5 * typical + 2) & inside & ~keep
    else:
        erase = run & inside & ~crossed & (values <= level + max(0.12, 0.35 * level))
    out[rows[erase], np.broadcast_to(columns, rows.shape)[erase]] = True
