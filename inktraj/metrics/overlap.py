"""How much ink two trajectories have in common, whatever the order and the direction of the pen.

Conventions
-----------
* The prediction comes first, the reference second; flat inks as in `inktraj.metrics.strokes`; lengths in units.
* Precision is the share of the prediction's points that are near the reference, recall the share of the reference's
  points that are near the prediction. With points spaced evenly these are shares of ink.
* AIoU and LDTW are those of PEN-Net (Z. Chen, D. Yang, J. Liang, X. Liu, Y. Wang, Z. Peng, S. Huang, "Complex
  Handwriting Trajectory Recovery: Evaluation Metrics and Algorithm", ACCV 2022, arXiv 2210.15879), **as we read it**:
  the paper's aims are kept, but its public code trains the model and has no figures, so that its numbers cannot be
  matched digit by digit.
* In pictures the centre of the upper left pixel is (0, 0).

AIoU here: the predicted trajectory is drawn one pixel thin and widened step by step, pixel distance by pixel distance,
by a disc; each step has an intersection over union with the reference's glyph, and the best of them counts. So the
width of the pen, which a trajectory does not have, has no influence. An exact Euclidean distance transform of the thin
drawing holds all steps: at radius r the widened drawing is where the distance is at most r, so one histogram of
distances over the glyph's pixels and one over the others give every step's figure.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from inktraj.errors import DataError
from inktraj.metrics.points import FloatArray, IntArray, as_limit, as_points, as_strokes
from inktraj.metrics.wavefront import align

TOLERANCE = 0.02
"""Distance in units within which ink counts as near."""
PEN_WIDTH = 0.03
"""Width in units of the pen that draws a reference's own ink for AIoU: of a word 100 px high and 300 px wide, 9 px."""
RESOLUTION = 256
"""Pixels per unit at which inks are drawn for AIoU."""
MAX_SIDE = 2048
"""Pixels that a glyph's longer side may have; at this size a comparison takes 250 MB at most."""

_FAR = 1 << 30  # above all distances on a canvas of thrice that side, and their squares
_MARGIN = 8  # radius of a first look, in pixels; the best one is seldom larger
_WINDOW = 32  # radius up to which trying all columns within it is the faster way to distances


class InkOverlap(NamedTuple):
    """Shares of ink near the other ink, 0 … 1, and their harmonic mean (0 where both are 0)."""

    precision: float
    recall: float
    f1: float


class AdaptiveIoU(NamedTuple):
    """Best intersection over union, 0 … 1, and the radius in units at which it is reached."""

    iou: float
    radius: float


# ---------------------------------------------------------------- near points


@njit(cache=True, nogil=True)
def share_within(distances, tolerance):  # type: ignore[no-untyped-def]
    """Return the share of distances (n,), n ≥ 1, that are at most `tolerance`."""
    near = 0
    for d in distances:
        near += d <= tolerance
    return near / len(distances)


@njit(cache=True, nogil=True)
def harmonic_mean(a, b):  # type: ignore[no-untyped-def]
    """Return the harmonic mean of two shares, 0 where both are 0."""
    return 2 * a * b / (a + b) if a + b > 0 else 0.0


def _distances(values: ArrayLike, name: str) -> FloatArray:
    try:
        out = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as err:
        raise DataError(f"{name} is not an array of numbers: {err}") from err
    if out.ndim != 1 or not len(out):
        raise DataError(f"{name} has shape {out.shape}, expected (n,), n ≥ 1: one distance for each point")
    if not np.isfinite(out).all() or (out < 0).any():
        raise DataError(f"{name} holds NaN, infinity or negative numbers, expected distances")
    return out


def ink_overlap(pred_to_ref: ArrayLike, ref_to_pred: ArrayLike, *, tolerance: float = TOLERANCE) -> InkOverlap:
    """Precision, recall and F1 of ink from distances that a Chamfer distance has computed already.

    Parameters
    ----------
    pred_to_ref
        (n,) distance in units of each predicted point to the nearest reference point, n ≥ 1.
    ref_to_pred
        (m,) distance of each reference point to the nearest predicted one, m ≥ 1.
    tolerance
        Distance up to which, and at which, a point counts as near. Points stand for the ink between them: a tolerance
        below their spacing (0.01 by default) finds ink missing that is there.

    Raises
    ------
    DataError
        Not two arrays of distances, an empty one, or a negative or NaN tolerance.
    """
    near, near_ref = _distances(pred_to_ref, "pred_to_ref"), _distances(ref_to_pred, "ref_to_pred")
    limit = as_limit(tolerance, "tolerance")
    precision, recall = float(share_within(near, limit)), float(share_within(near_ref, limit))
    return InkOverlap(precision, recall, float(harmonic_mean(precision, recall)))


# ---------------------------------------------------------------- drawing and distances


@njit(cache=True, nogil=True)
def _cut(points, i, j, box):  # type: ignore[no-untyped-def]
    """Return whether the segment of points i and j meets a box, and the ends of its part inside."""
    x, y = points[i, 0], points[i, 1]
    dx, dy = points[j, 0] - x, points[j, 1] - y
    begin, end = 0.0, 1.0
    for axis in range(2):
        at, d = (x, dx) if axis == 0 else (y, dy)
        if d == 0:
            if not box[axis] <= at <= box[axis + 2]:
                return False, x, y, x, y
            continue
        t, s = (box[axis] - at) / d, (box[axis + 2] - at) / d
        begin, end = max(begin, min(t, s)), min(end, max(t, s))
    if begin > end:
        return False, x, y, x, y
    # Rounding may put the ends outside again, of a segment from very far away by much.
    x0, y0 = min(max(x + begin * dx, box[0]), box[2]), min(max(y + begin * dy, box[1]), box[3])
    x1, y1 = min(max(x + end * dx, box[0]), box[2]), min(max(y + end * dy, box[1]), box[3])
    return True, x0, y0, x1, y1


@njit(cache=True, nogil=True)
def _extent(points, starts, box):  # type: ignore[no-untyped-def]
    """Return the box of what lies inside a box, and how many pixels the rest would take, drawn one pixel thin.

    Points are in pixels. The result's box is empty, x min > x max, where nothing lies inside.
    """
    found = np.array([np.inf, np.inf, -np.inf, -np.inf])
    beyond = 0.0
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            j = max(i - 1, starts[k])  # a stroke's first point is a segment of no length: so dots are drawn
            hit, x0, y0, x1, y1 = _cut(points, j, i, box)
            if hit:
                found[0], found[1] = min(found[0], x0, x1), min(found[1], y0, y1)
                found[2], found[3] = max(found[2], x0, x1), max(found[3], y0, y1)
            elif i == j:
                beyond += 1.0
            long = max(abs(points[i, 0] - points[j, 0]), abs(points[i, 1] - points[j, 1]))
            beyond += long - (max(abs(x1 - x0), abs(y1 - y0)) if hit else 0.0)
    return found, beyond


@njit(cache=True, nogil=True)
def _draw(points, starts, box, x, y, canvas):  # type: ignore[no-untyped-def]
    """Draw what lies inside a box, one pixel thin, on a canvas (h, w) whose first pixel is at (x, y)."""
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            hit, x0, y0, x1, y1 = _cut(points, max(i - 1, starts[k]), i, box)
            if not hit:
                continue
            # One pixel a step along the longer axis: a line without gaps, no more than a pixel thick.
            n = math.ceil(max(abs(x1 - x0), abs(y1 - y0)))
            for s in range(n + 1):
                t = s / n if n else 0.0
                canvas[math.floor(y0 + t * (y1 - y0) + 0.5) - y, math.floor(x0 + t * (x1 - x0) + 0.5) - x] = True


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def squared_distances_within(drawn, radius):  # type: ignore[no-untyped-def]
    """Return `squared_distances` up to `radius` pixels, and more than its square beyond; float32, exact.

    Every column within the radius is tried, all pixels of a row at a time: for small radii many times as fast.
    """
    height, width = drawn.shape
    far = np.float32(radius + 1)
    out = np.empty((height, width), np.float32)
    for column in range(width):
        out[0, column] = np.float32(0) if drawn[0, column] else far
    for row in range(1, height):
        for column in range(width):
            step = out[row - 1, column] + np.float32(1)
            out[row, column] = np.float32(0) if drawn[row, column] else step if step < far else far
    for row in range(height - 2, -1, -1):
        for column in range(width):
            step = out[row + 1, column] + np.float32(1)
            out[row, column] = step if step < out[row, column] else out[row, column]
    level = np.full(width + 2 * radius, far * far, np.float32)
    for row in range(height):
        for column in range(width):
            level[radius + column] = out[row, column] * out[row, column]
            out[row, column] = far * far
        for k in range(2 * radius + 1):
            apart = np.float32((k - radius) ** 2)
            for column in range(width):
                way = level[np.uint64(column) + np.uint64(k)] + apart
                out[row, column] = way if way < out[row, column] else out[row, column]
    return out


@njit(cache=True, nogil=True)
def squared_distances(drawn):  # type: ignore[no-untyped-def]
    """Return the squared Euclidean distance of each pixel to the nearest drawn one; exact, int32.

    Down the columns, then the lower envelope of parabolas along each row (P. Felzenszwalb and D. Huttenlocher,
    "Distance Transforms of Sampled Functions", Theory of Computing 8, 2012). `drawn` (h, w) holds a True.
    """
    height, width = drawn.shape
    out = np.empty((height, width), np.int32)
    for column in range(width):
        out[0, column] = 0 if drawn[0, column] else _FAR
    for row in range(1, height):
        for column in range(width):
            out[row, column] = 0 if drawn[row, column] else min(out[row - 1, column] + 1, _FAR)
    for row in range(height - 2, -1, -1):
        for column in range(width):
            out[row, column] = min(out[row, column], out[row + 1, column] + 1)
    at, begins, level = np.empty(width, np.int64), np.empty(width + 1), np.empty(width, np.int64)
    for row in range(height):
        k = -1
        for column in range(width):
            if out[row, column] >= _FAR:  # nothing drawn in this column
                continue
            level[column] = np.int64(out[row, column]) ** 2
            begin = -np.inf
            while k >= 0:
                apart = 2 * (column - at[k])
                begin = (level[column] + column**2 - level[at[k]] - at[k] ** 2) / apart
                if begin > begins[k]:
                    break
                k -= 1
            if k < 0:
                begin = -np.inf
            k += 1
            at[k], begins[k] = column, begin
        begins[k + 1] = np.inf
        k = 0
        for column in range(width):
            while begins[k + 1] < column:
                k += 1
            out[row, column] = (column - at[k]) ** 2 + level[at[k]]
    return out


@njit(cache=True, nogil=True)
def _best_overlap(glyph, squared, beyond, margin):  # type: ignore[no-untyped-def]
    """Return the best overlap over radii up to `margin`, its squared radius, and a bound for all larger radii.

    `squared` (h, w) are squared distances to a drawing that stays `margin` pixels off the borders, so that all that
    it covers at such a radius is on the canvas. At larger radii no less of what is not glyph is covered, and no more
    than all of the glyph.
    """
    most = margin * margin
    counts = np.zeros((2, most + 1), np.int64)  # pixels at each distance: not glyph, glyph
    ink = 0
    for row in range(glyph.shape[0]):
        for column in range(glyph.shape[1]):
            on, d = int(glyph[row, column]), int(squared[row, column])
            ink += on
            if d <= most:
                counts[on, d] += 1
    spilled, covered = counts[0].cumsum(), counts[1].cumsum()
    best, best_at, union = 0.0, 0, 0.0
    for d in range(most + 1):
        union = ink + spilled[d] + beyond * (2 * math.sqrt(d) + 1)
        if covered[d] / union > best:
            best, best_at = covered[d] / union, d
    return best, best_at, (ink / union if covered[most] < ink else 0.0)


# ---------------------------------------------------------------- AIoU and LDTW


def _positive(value: float, name: str) -> float:
    if not 0 < value < math.inf:
        raise DataError(f"{name} is {value!r}, expected a positive number")
    return float(value)


def _within(drawn: NDArray[np.bool_], radius: int) -> NDArray[Any]:
    """Squared distances that are exact up to a radius, the faster way."""
    distances: NDArray[Any] = squared_distances_within(drawn, radius) if radius <= _WINDOW else squared_distances(drawn)
    return distances


def _glyph(ref: FloatArray, starts: IntArray, radius: float) -> tuple[NDArray[np.bool_], FloatArray]:
    """Draw an ink in pixels with a round pen; returns the picture and where its first pixel is."""
    pad = math.ceil(radius) + 1
    low, high = np.floor(ref.min(axis=0)), np.ceil(ref.max(axis=0))
    width, height = (high - low).astype(np.int64) + 2 * pad + 1
    drawn = np.zeros((height, width), np.bool_)
    box = np.concatenate([low, high])
    _draw(ref, starts, box, int(low[0]) - pad, int(low[1]) - pad, drawn)
    return _within(drawn, pad) <= radius * radius, low - pad


def _best(pred: FloatArray, starts: IntArray, mask: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the best overlap of an ink, in the mask's pixels, and its radius."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    top, bottom, left, right = int(rows[0]), int(rows[-1]), int(columns[0]), int(columns[-1])
    limit = (max(bottom - top, right - left) + 2) // 2
    box = np.array([left - limit, top - limit, right + limit, bottom + limit], np.float64)
    extent, beyond = _extent(pred, starts, box)
    if extent[0] > extent[2]:
        return 0.0, 0.0
    margin = min(_MARGIN, limit)
    while True:
        x, y = min(left, math.floor(extent[0]) - margin), min(top, math.floor(extent[1]) - margin)
        width = max(right, math.ceil(extent[2]) + margin) - x + 1
        height = max(bottom, math.ceil(extent[3]) + margin) - y + 1
        glyph, drawn = np.zeros((2, height, width), np.bool_)
        glyph[top - y : bottom - y + 1, left - x : right - x + 1] = mask[top : bottom + 1, left : right + 1]
        _draw(pred, starts, box, x, y, drawn)
        overlap, squared_radius, bound = _best_overlap(glyph, _within(drawn, margin), beyond, margin)
        if bound <= overlap or margin == limit:
            return float(overlap), math.sqrt(squared_radius)
        margin = min(2 * margin if margin < _WINDOW else limit, limit)


def aiou(
    pred: ArrayLike,
    pred_starts: ArrayLike,
    mask: ArrayLike,
    *,
    scale: float = 1.0,
    offset: tuple[float, float] = (0.0, 0.0),
) -> AdaptiveIoU:
    """Adaptive intersection over union of a trajectory with a glyph's picture, after PEN-Net: our reading of it.

    Parameters
    ----------
    pred, pred_starts
        The flat predicted ink: points (n, 2), n ≥ 1, and offsets (strokes + 1).
    mask
        (h, w) bool: the reference's glyph, True where there is ink.
    scale, offset
        Pixels per unit, and where the unit's origin is in pixels: pixel = point · scale + offset.

    Notes
    -----
    Radii go up to half the longer side of the glyph: no stroke is wider than its glyph. Predicted ink farther than that
    from the glyph's box can cover none of it and is not drawn; it adds its length times the drawing's width to the
    union, so that it is paid for, and an ink far away costs no memory. What is dilated across the picture's border
    counts.

    Raises
    ------
    DataError
        A malformed or empty ink; a mask that is not (h, w) bool, has no ink, or whose ink's box has a side of more
        than `MAX_SIDE` pixels; a scale that is not positive, an offset that is not finite.
    """
    points, starts = as_strokes(pred, pred_starts, "pred")
    picture = np.asarray(mask)
    if picture.ndim != 2 or picture.dtype != np.bool_:
        raise DataError(
            f"the mask has shape {picture.shape} and type {picture.dtype}, expected (h, w) bool, True for ink"
        )
    if not picture.any():
        raise DataError("the mask holds no ink; an overlap with nothing has no value")
    for axis in (0, 1):
        side = int(np.ptp(np.flatnonzero(picture.any(axis=axis)))) + 1
        if side > MAX_SIDE:
            raise DataError(f"the mask's ink is {side} px long, at most {MAX_SIDE} px are compared; scale it down")
    shift = np.asarray(offset, np.float64)
    if shift.shape != (2,) or not np.isfinite(shift).all():
        raise DataError(f"offset is {offset!r}, expected two finite numbers")
    factor = _positive(scale, "scale")
    iou, radius = _best(points * factor + shift, starts, picture)
    return AdaptiveIoU(iou, radius / factor)


def aiou_inks(
    pred: ArrayLike,
    pred_starts: ArrayLike,
    ref: ArrayLike,
    ref_starts: ArrayLike,
    *,
    pen_width: float = PEN_WIDTH,
    resolution: float = RESOLUTION,
) -> AdaptiveIoU:
    """`aiou` against the reference's own ink, drawn with a round pen; an ink against itself gives 1.

    Parameters
    ----------
    pred, pred_starts, ref, ref_starts
        The flat inks in units.
    pen_width
        Width in units of the pen that draws the reference.
    resolution
        Pixels per unit. The grid hangs on the reference's box.

    Raises
    ------
    DataError
        A malformed or empty ink, a width or resolution that is not positive, or a reference whose picture would have
        a side of more than `MAX_SIDE` pixels.
    """
    points, starts = as_strokes(pred, pred_starts, "pred")
    reference, reference_starts = as_strokes(ref, ref_starts, "ref")
    factor, radius = _positive(resolution, "resolution"), _positive(pen_width, "pen_width") / 2 * resolution
    low, high = reference.min(axis=0), reference.max(axis=0)
    side = float((high - low).max()) * factor + 2 * radius
    if not side <= MAX_SIDE - 4:
        raise DataError(
            f"at {resolution:g} px per unit the reference is {side:.0f} px long, at most {MAX_SIDE - 4} px are drawn; "
            "are the inks normalised? Otherwise lower the resolution"
        )
    glyph, origin = _glyph((reference - low) * factor, reference_starts, radius)
    iou, best = _best((points - low) * factor - origin, starts, glyph)
    return AdaptiveIoU(iou, best / factor)


def ldtw(pred: ArrayLike, ref: ArrayLike) -> float:
    """Length-independent DTW, after PEN-Net: the DTW total over the number of cells of its path.

    This is the mean cost along the optimal path, as `inktraj.metrics.trajectory.dtw` gives it; PEN-Net's is in the
    coordinates of its characters, which is ``Normalization("none")``.

    Parameters
    ----------
    pred, ref
        Points (n, 2) and (m, 2) in units, n, m ≥ 1.

    Raises
    ------
    DataError
        Arrays of another form, empty, or with NaN or infinity.
    """
    total, length = align(as_points(pred, "pred"), as_points(ref, "ref"))
    return float(total / length)
