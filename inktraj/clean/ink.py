"""The ink: strokes by hysteresis on the contrast, eyes kept open, hairlines followed, dirt left out."""

from __future__ import annotations

import cv2
import numpy as np

from inktraj.clean.paper import F32, MIN_CONTRAST, BoolArray, at_edge, disc

LEVEL_PERCENTILE = 95
"""The ink's own level, among all that stands out from the paper: ruling and texture may be most of it."""
BODY_SHARE, HIGH_SHARE, HAIR_SHARE = 0.3, 0.5, 0.06
"""Thresholds as shares of the ink's level near by: of a stroke, of what is ink for sure, and of a hairline above the
paper beside it."""
DARK_SHARE = 0.4
"""Share of the page's ink level from which on a pixel is dark by the whole page's measure."""
PEN_BOUND_SHARE, PEN_LEAST_BOUND = 0.024, 24.0
"""No pen is wider than this share of the image's longer side, or than this many pixels where that is more."""
SMOOTHING = 0.6
"""Sigma in pixels of the blur before thresholds: against sensor noise, without closing small eyes."""
NOISE_SIGMAS = 6.5
"""How many standard deviations of the paper's noise ink must stand out."""
EYE_PENS = 1.6
"""Width up to which an eye in the ink (of e, a, o) is looked for, in pens."""
EYE_SHARE = 0.15
"""How much paler than what encloses it an eye is, as a share of the stroke's peak."""
BRIDGE = 3
"""Reach in pixels of the halo beside a dark stroke."""
EDGE_SHARE = 0.48
"""Where a stroke ends sideways, as a share of its own peak: cuts off the blurred halo of thick strokes."""


def find_ink(contrast: F32) -> tuple[BoolArray, float, BoolArray]:
    """Find the ink.

    Parameters
    ----------
    contrast
        ``(h, w)`` against the paper, 0–1.

    Returns
    -------
    ink
        ``(h, w)`` bool.
    pen
        Width of the strokes in pixels; 0 where there are none.
    dark
        ``(h, w)`` bool, those pixels of strokes that are dark by the whole page's measure.
    """
    smooth = _f32(cv2.GaussianBlur(contrast, (0, 0), SMOOTHING))
    noise = 1.4826 * float(np.median(np.abs(cv2.Laplacian(smooth[::2, ::2], cv2.CV_32F)))) / 4.5
    floor = max(MIN_CONTRAST, NOISE_SIGMAS * noise)
    core = smooth > floor
    nothing = np.zeros(contrast.shape, dtype=bool)
    if core.sum() < 4:
        return nothing, 0.0, nothing
    # The ink's level where the ink is: from the whole page, and from near by.
    level = _level(smooth, core)
    near = _near_level(smooth, core, level)
    sure = smooth > np.maximum(floor, HIGH_SHARE * near)
    strong = smooth > np.maximum(floor, BODY_SHARE * near)
    pen = pen_width(connected(strong, sure))
    if not pen:
        return nothing, 0.0, nothing
    # The body of the strokes, with its edge at a share of the stroke's own peak, not of the page's.
    peak = _f32(cv2.dilate(smooth, disc(2 * round(pen / 2) + 1)))
    body = strong & (smooth > EDGE_SHARE * peak)
    # Eyes are paler than both their sides, if often darker than half of the peak.
    closed = _f32(cv2.morphologyEx(smooth, cv2.MORPH_CLOSE, disc(max(3, round(EYE_PENS * pen) | 1))))
    body &= closed - smooth < EYE_SHARE * peak
    # Hairlines: thinner than the pen and darker than both their sides, however faint. Bleed-through is broad.
    ridge = smooth - _f32(cv2.morphologyEx(smooth, cv2.MORPH_OPEN, disc(max(3, round(pen) | 1))))
    hair = ridge > np.maximum(floor, HAIR_SHARE * near)
    crest = hair & (ridge > EDGE_SHARE * _f32(cv2.dilate(ridge, disc(3))))
    strokes = body | _leading_away(crest & ~body, body, pen)
    strokes |= _bridges(hair & ~strokes, strokes)
    ink = connected(strokes, body & sure)
    return ink, pen_width(ink), body & (smooth > DARK_SHARE * level)


def _level(smooth: F32, core: BoolArray) -> float:
    """Return the contrast of the page's ink, without what touches the image's edge: scanner borders are darker."""
    count, labels = cv2.connectedComponents((smooth > 0.5).astype(np.uint8), connectivity=8)
    border = at_edge(np.asarray(labels, dtype=np.int32), count)[labels]
    inside = core & ~border
    return float(np.percentile(smooth[inside if inside.any() else core], LEVEL_PERCENTILE))


def _leading_away(crest: BoolArray, body: BoolArray, pen: float) -> BoolArray:
    """Keep the hairlines that lead away from the strokes' body; the others are its own rough edge."""
    reach = max(2.5, 0.5 * pen)
    y, x = np.mgrid[-int(reach) : int(reach) + 1, -int(reach) : int(reach) + 1]
    ball = (x**2 + y**2 <= reach**2).astype(np.uint8)
    beside = cv2.dilate(np.pad(body.astype(np.uint8), 1, constant_values=1), ball)[1:-1, 1:-1] > 0
    return connected(crest, crest & ~beside)


def _bridges(hair: BoolArray, strokes: BoolArray) -> BoolArray:
    """Return what joins a pale stroke to a dark one, in whose halo the pale one has no edge of its own."""
    count, labels = cv2.connectedComponents(strokes.astype(np.uint8), connectivity=8)
    around = disc(2 * BRIDGE + 1)
    number = _f32(labels)
    highest = cv2.dilate(number, around)
    lowest = count - cv2.dilate(np.where(strokes, count - number, 0).astype(np.float32), around)
    return np.asarray(hair & (highest > lowest), dtype=np.bool_)


def connected(mask: BoolArray, seeds: BoolArray) -> BoolArray:
    """Return the components of a mask that hold a seed."""
    count, labels = cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)
    keep = np.zeros(count, dtype=bool)
    keep[labels[seeds]] = True
    keep[0] = False
    return np.asarray(keep[labels], dtype=np.bool_)


def thickness(mask: BoolArray) -> F32:
    """Return for each pixel of a mask its distance to the nearest pixel outside; the image's edge is outside."""
    padded = np.pad(mask.astype(np.uint8), 1)
    return _f32(cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1])


def pen_width(mask: BoolArray) -> float:
    """Return the width of the strokes in pixels; 0 for an empty mask.

    The mean distance to the outside of a stroke w pixels wide is (w + 1)² / 4w where w is odd and (w + 2) / 4
    where it is even; masks are something between. Every pixel counts, so that thin left-overs weigh little; but not
    those of solid areas, which no pen draws, and what is three times as thick as usual.
    """
    distance = thickness(mask)
    widest = max(PEN_LEAST_BOUND, PEN_BOUND_SHARE * max(mask.shape)) / 2
    core = distance > widest
    if core.any():
        # What a disc of that size covers inside the mask: the solid area, without what is attached to it.
        mask = mask & (cv2.distanceTransform((~core).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE) > widest)
    inside = distance[mask]
    if not inside.size:
        return 0.0
    twice = 2 * float(inside[inside <= 3 * np.median(inside)].mean()) - 1
    odd, even = twice + np.sqrt(max(twice**2 - 1, 0.0)), 2 * twice
    return max(1.0, float(odd + even) / 2)


def writing_only(ink: BoolArray, dark: BoolArray, pen: float) -> BoolArray:
    """Drop specks, and what is too solid or too close to the image's edge to be writing.

    Parameters
    ----------
    ink, dark, pen
        As of `find_ink`.
    """
    if not pen:
        return ink
    h, w = ink.shape
    mask = ink.astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    area = stats[:, cv2.CC_STAT_AREA]
    keep = area >= max(3.0, 0.45 * pen**2)
    # A dot is as dark as the page's writing; small and pale is paper.
    keep &= (np.bincount(labels[dark], minlength=count) > 0.1 * area) | (area > 20 * pen**2)
    # Scanner borders and the page's own edge: long, and mostly within a narrow frame along the image's edge.
    frame = max(4, round(0.03 * max(h, w)))
    inner = np.bincount(labels[frame:-frame, frame:-frame].ravel(), minlength=count)
    long = (stats[:, cv2.CC_STAT_WIDTH] > 0.1 * w) | (stats[:, cv2.CC_STAT_HEIGHT] > 0.1 * h)
    keep &= ~(long & at_edge(np.asarray(labels, dtype=np.int32), count) & (inner < 0.5 * area))
    # Solid areas: torn edges, shadows, stamps' fields. A word with a blot in it keeps what is thinner.
    distance = thickness(ink)
    core = np.bincount(labels[distance > 1.5 * pen], minlength=count)
    keep &= (core < 0.3 * area) | (core < 4 * pen**2)
    keep[0] = False
    writing = np.asarray(keep[labels], dtype=np.bool_)
    solid = (distance > 2.5 * pen) & writing
    if solid.any():
        writing &= cv2.dilate(solid.astype(np.uint8), disc(2 * round(2.5 * pen + 3) + 1)) == 0
    return writing


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
    return _f32(cv2.resize(near, (cols * block, rows * block), interpolation=cv2.INTER_LINEAR)[:h, :w])


def _f32(values: object) -> F32:
    return np.asarray(values, dtype=np.float32)
