"""Strokes compared one by one: figures that tell a wrong order and a wrong direction from a wrong shape.

Conventions
-----------
* The prediction comes first, the reference second. An ink is flat: ``pred`` (n, 2) float64 points and ``pred_starts``
  (strokes + 1) int64 offsets, so that stroke k is ``pred[pred_starts[k]:pred_starts[k + 1]]``, n ≥ 1.
* Both are normalised and resampled alike before (`inktraj.metrics.normalization`), and pen-up jumps hold no points. The
  unit is the normalised one: with ``reference-box`` the reference's longer side is 1.
* DTW is the sum of Euclidean distances along the optimal path (``total``), that path's number of cells (``length``),
  and ``mean`` = total / length.
* A figure that has no value is NaN: order agreement under two matched strokes, direction agreement where no stroke
  has a direction.

Strokes are matched one to one, each predicted one as it was drawn or backwards, whichever is cheaper, so that what is
paid in all is least: a matched pair pays its DTW total; each of the |n − m| strokes left over pays its cheapest
alignment with any stroke of the other ink, in either direction. Of matchings that pay the same the one whose pairs pay
least is taken. Costs of both directions, and sums of two matchings, that are within 1e-9 of each other count as the
same; where both directions cost the same, the stroke runs forwards. This answers the objection that inkGround's own
discussion raises against DTW: that it punishes a valid alternative order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from inktraj.errors import DataError
from inktraj.metrics.assignment import augment, nearest, relax
from inktraj.metrics.points import FloatArray, IntArray, as_limit, as_points, as_strokes
from inktraj.metrics.wavefront import align

START_TOLERANCE = 0.05
"""Distance from the reference's first point, in units, within which a start counts as right."""
MIN_LENGTH = 0.05
"""Length in units up to which a reference stroke is too short for its direction to be judged."""
MAX_STROKE_PAIRS = 4_000_000
"""Predicted times reference strokes up to which strokes are matched; a worst case, all on one spot, takes a minute."""

_TIE = 1e-9  # relative difference between two sums which may come from the order of summation
_SLACK = 1 - 1e-9  # keeps a bound below the sum that it bounds, whatever the order of summation
_BOXED, _BOUNDED, _FORWARDS, _BACKWARDS, _EITHER = -2, -1, 0, 1, 2  # what is known of a pair of strokes


class StrokeScores(NamedTuple):
    """All figures of one pair of inks, each a float; lengths and distances in units.

    Parameters
    ----------
    dtw, dtw_total, dtw_length
        Of the joined strokes as they are: mean, sum, and cells of the path.
    tolerant_dtw, tolerant_total, tolerant_length
        Of the matched strokes: all that is paid over the cells of all paths paid for, see `tolerant_dtw`.
    order_cost, direction_cost, shape_cost
        The parts of `dtw`, see `decompose`.
    order_agreement
        Kendall's tau of the matched strokes, −1 … 1, or NaN.
    direction_agreement
        Share of judged strokes drawn in the reference's direction, or NaN.
    directed_strokes
        How many strokes were judged for their direction.
    start_distance, start_accuracy
        From the reference's first point; 1 where that is within the tolerance, else 0.
    penup_error, penup_error_size
        Predicted minus reference strokes, and its size.
    matched_strokes
        How many pairs of strokes there are.
    """

    dtw: float
    dtw_total: float
    dtw_length: float
    tolerant_dtw: float
    tolerant_total: float
    tolerant_length: float
    order_cost: float
    direction_cost: float
    shape_cost: float
    order_agreement: float
    direction_agreement: float
    directed_strokes: float
    start_distance: float
    start_accuracy: float
    penup_error: float
    penup_error_size: float
    matched_strokes: float


class TolerantDTW(NamedTuple):
    """What matched strokes pay: `mean` = `total` / `length`, in units, over `length` cells of all paths paid for."""

    mean: float
    total: float
    length: int


class Decomposition(NamedTuple):
    """A DTW mean and its parts: ``dtw = order + direction + shape`` up to rounding; parts may be a little negative."""

    dtw: float
    order: float
    direction: float
    shape: float


class _Pair(NamedTuple):
    """Two inks and what their strokes' costs are computed from; boxes are x min, y min, x max, y max."""

    pred: FloatArray
    backwards: FloatArray  # every stroke of `pred` in its place, turned round
    pred_starts: IntArray
    pred_boxes: FloatArray
    ref: FloatArray
    ref_starts: IntArray
    ref_boxes: FloatArray


class _Matching(NamedTuple):
    """Who is matched and who pays what: a pair's payment stands with its predicted stroke."""

    partner: IntArray  # reference stroke of each predicted one, or −1
    way: NDArray[np.int8]  # _FORWARDS, _BACKWARDS or _EITHER, of matched predicted strokes
    pred_total: FloatArray
    pred_length: IntArray
    ref_total: FloatArray  # of reference strokes that are left over, else 0
    ref_length: IntArray


# ---------------------------------------------------------------- what a pair of strokes costs


@njit(cache=True, nogil=True)
def _boxes(points, starts):  # type: ignore[no-untyped-def]
    out = np.empty((len(starts) - 1, 4))
    for k in range(len(out)):
        x0 = x1 = points[starts[k], 0]
        y0 = y1 = points[starts[k], 1]
        for i in range(starts[k] + 1, starts[k + 1]):
            x0, x1 = min(x0, points[i, 0]), max(x1, points[i, 0])
            y0, y1 = min(y0, points[i, 1]), max(y1, points[i, 1])
        out[k, 0], out[k, 1], out[k, 2], out[k, 3] = x0, y0, x1, y1
    return out


@njit(cache=True, nogil=True)
def _turned(points, starts):  # type: ignore[no-untyped-def]
    out = np.empty_like(points)
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            out[i] = points[starts[k] + starts[k + 1] - 1 - i]
    return out


@njit(cache=True, nogil=True)
def _pair(pred, pred_starts, ref, ref_starts):  # type: ignore[no-untyped-def]
    return _Pair(
        pred,
        _turned(pred, pred_starts),
        pred_starts,
        _boxes(pred, pred_starts),
        ref,
        ref_starts,
        _boxes(ref, ref_starts),
    )


@njit(cache=True, nogil=True)
def _box_bound(pair, i, j):  # type: ignore[no-untyped-def]
    """Bound a DTW total from below: every point of the longer stroke pays at least the gap between the boxes."""
    a, b = pair.pred_boxes[i], pair.ref_boxes[j]
    dx, dy = max(a[0] - b[2], b[0] - a[2], 0.0), max(a[1] - b[3], b[1] - a[3], 0.0)
    n = max(pair.pred_starts[i + 1] - pair.pred_starts[i], pair.ref_starts[j + 1] - pair.ref_starts[j])
    return math.sqrt(dx * dx + dy * dy) * n * _SLACK


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _to_box(points, begin, end, box):  # type: ignore[no-untyped-def]
    """Sum of the distances of the points inside a stroke, its two ends left out, to a box."""
    total = 0.0
    x0, y0, x1, y1 = box[0], box[1], box[2], box[3]
    for i in range(begin + 1, end - 1):
        dx, dy = max(x0 - points[i, 0], points[i, 0] - x1, 0.0), max(y0 - points[i, 1], points[i, 1] - y1, 0.0)
        total += math.sqrt(dx * dx + dy * dy)
    return total


@njit(cache=True, nogil=True)
def _distance(a, i, b, j):  # type: ignore[no-untyped-def]
    return math.sqrt((a[i, 0] - b[j, 0]) ** 2 + (a[i, 1] - b[j, 1]) ** 2)


@njit(cache=True, nogil=True)
def _bounds(pair, i, j):  # type: ignore[no-untyped-def]
    """Bound the DTW totals of both directions from below.

    A path has a cell in every row, and cells at both its ends, which are different cells unless both strokes are
    dots. So the ends' two distances, and of each row between at least that point's distance to the other's box, are
    paid; the same holds for columns.
    """
    a, b = pair.pred_starts[i], pair.pred_starts[i + 1]
    c, d = pair.ref_starts[j], pair.ref_starts[j + 1]
    inner = max(_to_box(pair.pred, a, b, pair.ref_boxes[j]), _to_box(pair.ref, c, d, pair.pred_boxes[i]))
    forwards = _distance(pair.pred, a, pair.ref, c)
    if b - a == 1 and d - c == 1:
        return forwards * _SLACK, forwards * _SLACK
    forwards += _distance(pair.pred, b - 1, pair.ref, d - 1)
    backwards = _distance(pair.pred, a, pair.ref, d - 1) + _distance(pair.pred, b - 1, pair.ref, c)
    return (forwards + inner) * _SLACK, (backwards + inner) * _SLACK


@njit(cache=True, nogil=True)
def _price(pair, i, j):  # type: ignore[no-untyped-def]
    """Return total, length and way of the cheaper direction; the other is not aligned where its bound is above that."""
    a, b = pair.pred_starts[i], pair.pred_starts[i + 1]
    ref = pair.ref[pair.ref_starts[j] : pair.ref_starts[j + 1]]
    if b - a == 1 or len(ref) == 1:
        total, length = align(pair.pred[a:b], ref)
        return total, length, _EITHER
    least, least_turned = _bounds(pair, i, j)
    if least <= least_turned:
        total, length = align(pair.pred[a:b], ref)
        if least_turned > total * (1 + 2 * _TIE):
            return total, length, _FORWARDS
        turned, turned_length = align(pair.backwards[a:b], ref)
    else:
        turned, turned_length = align(pair.backwards[a:b], ref)
        if least > turned * (1 + 2 * _TIE):
            return turned, turned_length, _BACKWARDS
        total, length = align(pair.pred[a:b], ref)
    if abs(total - turned) <= _TIE * max(total, turned):
        return total, length, _EITHER
    if turned < total:
        return turned, turned_length, _BACKWARDS
    return total, length, _FORWARDS


# ---------------------------------------------------------------- matching


@njit(cache=True, nogil=True)
def _refine(pair, across, cost, length, known, row, column):  # type: ignore[no-untyped-def]
    """Learn more of an entry of the cost matrix: a closer bound first, the cost itself next."""
    i, j = (column, row) if across else (row, column)
    if known[row, column] == _BOXED:
        bound, bound_turned = _bounds(pair, i, j)
        cost[row, column] = max(cost[row, column], min(bound, bound_turned))
        known[row, column] = _BOUNDED
    else:
        cost[row, column], length[row, column], known[row, column] = _price(pair, i, j)


@njit(cache=True, nogil=True)
def _cheapest(pair, across, cost, length, known, column):  # type: ignore[no-untyped-def]
    """Return the row of a column's least cost; only entries that may be the least are computed."""
    while True:
        row = 0
        for i in range(1, len(cost)):
            if cost[i, column] < cost[row, column]:
                row = i
        if known[row, column] >= _FORWARDS:
            return row
        _refine(pair, across, cost, length, known, row, column)


@njit(cache=True, nogil=True)
def _assign(pair, across, cost, length, known, v):  # type: ignore[no-untyped-def]
    """Return the column of each row: the least sum over a matrix which is computed as far as it matters.

    Entries start as lower bounds and only ever grow, to the true cost at most. A column enters the tree only by an
    entry that is computed, so every pair of the result is tight, u + v = cost, with its true cost. The prices are
    feasible, u + v ≤ entry, and stay so as entries grow; hence u + v ≤ true cost for all pairs. Columns left free
    have the price that they began with, and no column has a higher one. So every other assignment costs at least the
    sum of the prices, which this one costs: it is optimal for the true costs.
    """
    n, m = cost.shape
    u = np.zeros(n)
    row_of, column_of = np.full(m, -1, np.int64), np.full(n, -1, np.int64)
    distance, came_from, reached = np.empty(m), np.zeros(m, np.int64), np.empty(m, np.bool_)
    for row in range(n):
        distance[:] = np.inf
        reached[:] = False
        i, travelled = row, 0.0
        while True:
            relax(cost, i, travelled, u, v, distance, came_from, reached)
            column = nearest(row_of, distance, reached)
            while known[came_from[column], column] < _FORWARDS:
                _refine(pair, across, cost, length, known, came_from[column], column)
                # The entry has grown: look for the way to this column again, over all rows of the tree.
                distance[column] = cost[row, column] - u[row] - v[column]
                came_from[column] = row
                for j in range(m):
                    if reached[j]:
                        way = distance[j] - u[row_of[j]] + cost[row_of[j], column] - v[column]
                        if way < distance[column]:
                            distance[column], came_from[column] = way, row_of[j]
                column = nearest(row_of, distance, reached)
            reached[column] = True
            if row_of[column] < 0:
                break
            i, travelled = row_of[column], distance[column]
        augment(row, column, u, v, row_of, column_of, distance, came_from, reached)
    return column_of


@njit(cache=True, nogil=True)
def _match(pair):  # type: ignore[no-untyped-def]
    """Match the strokes of a pair of inks."""
    n_pred, n_ref = len(pair.pred_boxes), len(pair.ref_boxes)
    across = n_pred > n_ref  # rows are the strokes of the ink that has fewer
    n, m = min(n_pred, n_ref), max(n_pred, n_ref)
    cost, length = np.empty((n, m)), np.zeros((n, m), np.int32)
    known = np.full((n, m), _BOXED, np.int8)
    for row in range(n):
        for column in range(m):
            i, j = (column, row) if across else (row, column)
            cost[row, column] = _box_bound(pair, i, j)
    # A column left over pays its least cost. That is as if all columns had paid it and each pair only the rest, so
    # the least costs are the columns' first prices. With as many rows as columns none is left over: any prices do.
    # A column whose least cost is at the row that it is matched with would pay the same left over; prices lower by a
    # hair let those be matched that pay least.
    v, cheapest = np.zeros(m), np.zeros(m, np.int64)
    if n < m:
        for column in range(m):
            cheapest[column] = _cheapest(pair, across, cost, length, known, column)
            v[column] = cost[cheapest[column], column] * (1 - _TIE)
    column_of = _assign(pair, across, cost, length, known, v)
    result = _Matching(
        np.full(n_pred, -1, np.int64),
        np.full(n_pred, _EITHER, np.int8),
        np.zeros(n_pred),
        np.zeros(n_pred, np.int64),
        np.zeros(n_ref),
        np.zeros(n_ref, np.int64),
    )
    left = np.ones(m, np.bool_)
    for row in range(n):
        column = column_of[row]
        left[column] = False
        i, j = (column, row) if across else (row, column)
        result.partner[i], result.way[i] = j, known[row, column]
        result.pred_total[i], result.pred_length[i] = cost[row, column], length[row, column]
    totals, lengths = (result.pred_total, result.pred_length) if across else (result.ref_total, result.ref_length)
    for column in range(m):
        if left[column]:
            row = cheapest[column]
            totals[column], lengths[column] = cost[row, column], length[row, column]
    return result


# ---------------------------------------------------------------- figures


@njit(cache=True, nogil=True)
def _kendall(partner):  # type: ignore[no-untyped-def]
    """Kendall's tau-a of the matched strokes' places, NaN under two."""
    matched = partner[partner >= 0]
    k = len(matched)
    if k < 2:
        return np.nan
    surplus = 0
    for i in range(k):
        for j in range(i + 1, k):
            surplus += 1 if matched[i] < matched[j] else -1
    return surplus / (k * (k - 1) / 2)


@njit(cache=True, nogil=True)
def _direction(pair, matching, min_length):  # type: ignore[no-untyped-def]
    """Return the share of judged strokes that run as the reference's do, and how many were judged."""
    right, judged = 0, 0
    for i in range(len(matching.partner)):
        j = matching.partner[i]
        if j < 0 or matching.way[i] == _EITHER:
            continue
        length = 0.0
        for k in range(pair.ref_starts[j] + 1, pair.ref_starts[j + 1]):
            length += _distance(pair.ref, k - 1, pair.ref, k)
        if length > min_length:
            judged += 1
            right += matching.way[i] == _FORWARDS
    return (right / judged if judged else np.nan), judged


@njit(cache=True, nogil=True)
def _arranged(pair, matching, turn):  # type: ignore[no-untyped-def]
    """Predicted points with matched strokes in the reference's order, and in its direction where `turn`.

    A stroke left over stays behind the stroke that it followed; those before the first matched one stay first.
    """
    n = len(matching.partner)
    at = np.full(len(pair.ref_boxes), -1, np.int64)
    first = n  # the first matched one
    for i in range(n - 1, -1, -1):
        if matching.partner[i] >= 0:
            at[matching.partner[i]] = i
            first = i
    out = np.empty_like(pair.pred)
    out[: pair.pred_starts[first]] = pair.pred[: pair.pred_starts[first]]
    m = pair.pred_starts[first]
    for j in range(len(at)):
        i = at[j]
        while i >= 0:
            a, b = pair.pred_starts[i], pair.pred_starts[i + 1]
            if turn and matching.way[i] == _BACKWARDS:
                out[m : m + b - a] = pair.backwards[a:b]
            else:
                out[m : m + b - a] = pair.pred[a:b]
            m += b - a
            i = i + 1 if i + 1 < n and matching.partner[i + 1] < 0 else -1
    return out


@njit(cache=True, nogil=True)
def _parts(pair, matching, dtw):  # type: ignore[no-untyped-def]
    """Return what order, direction and shape cost of a DTW mean; alignments that would change nothing are left out."""
    in_order, turned, last = True, False, -1
    for i in range(len(matching.partner)):
        if matching.partner[i] >= 0:
            in_order = in_order and matching.partner[i] > last
            last = matching.partner[i]
            turned = turned or matching.way[i] == _BACKWARDS
    ordered = dtw
    if not in_order:
        total, length = align(_arranged(pair, matching, False), pair.ref)
        ordered = total / length
    shape = ordered
    if turned:
        total, length = align(_arranged(pair, matching, True), pair.ref)
        shape = total / length
    return dtw - ordered, ordered - shape, shape


@njit(cache=True, nogil=True)
def compare(  # type: ignore[no-untyped-def]
    pred, pred_starts, ref, ref_starts, total, length, start_tolerance, min_length
):
    """Return all figures of a pair of flat inks as `StrokeScores`; nothing is checked, see `score_strokes`.

    `total` and `length` are the DTW of the joined strokes where it is known already; a NaN `total` has it computed.
    """
    if math.isnan(total):
        total, length = align(pred, ref)
    pair = _pair(pred, pred_starts, ref, ref_starts)
    matching = _match(pair)
    tolerant_total = matching.pred_total.sum() + matching.ref_total.sum()
    tolerant_length = float(matching.pred_length.sum() + matching.ref_length.sum())
    order_cost, direction_cost, shape_cost = _parts(pair, matching, total / length)
    agreement, judged = _direction(pair, matching, min_length)
    start = _distance(pred, 0, ref, 0)
    surplus = float(len(pred_starts) - len(ref_starts))
    return StrokeScores(
        total / length,
        total,
        float(length),
        tolerant_total / tolerant_length,
        tolerant_total,
        tolerant_length,
        order_cost,
        direction_cost,
        shape_cost,
        _kendall(matching.partner),
        agreement,
        float(judged),
        start,
        1.0 if start <= start_tolerance else 0.0,
        surplus,
        abs(surplus),
        float(min(len(pred_starts), len(ref_starts)) - 1),
    )


# ---------------------------------------------------------------- the public door


@dataclass(frozen=True, slots=True, eq=False)
class StrokeMatching:
    """Which strokes belong together, and what they pay.

    Parameters
    ----------
    pairs
        Array (k, 2) int64 of predicted and reference stroke, in the reference's order; k is the smaller number of
        strokes.
    reversed
        (k,) bool: the predicted stroke runs against the reference's direction.
    directed
        (k,) bool: the two directions differ in cost; False for dots and whatever looks the same from both ends.
    totals, lengths
        (k,) DTW total in units and cells of its path, in the cheaper direction.
    unmatched_pred, unmatched_ref
        int64 indices of the strokes left over; one of the two is empty.
    unmatched_totals, unmatched_lengths
        What those pay: their cheapest alignment with any stroke of the other ink, and the cells of its path.
    """

    pairs: IntArray
    reversed: NDArray[np.bool_]
    directed: NDArray[np.bool_]
    totals: FloatArray
    lengths: IntArray
    unmatched_pred: IntArray
    unmatched_ref: IntArray
    unmatched_totals: FloatArray
    unmatched_lengths: IntArray

    @property
    def tolerant_dtw(self) -> TolerantDTW:
        """All that is paid, over the cells of all paths paid for."""
        total = float(self.totals.sum() + self.unmatched_totals.sum())
        length = int(self.lengths.sum() + self.unmatched_lengths.sum())
        return TolerantDTW(total / length, total, length)


def _checked(
    pred: ArrayLike, pred_starts: ArrayLike, ref: ArrayLike, ref_starts: ArrayLike
) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    flat = (*as_strokes(pred, pred_starts, "pred"), *as_strokes(ref, ref_starts, "ref"))
    n, m = len(flat[1]) - 1, len(flat[3]) - 1
    if n * m > MAX_STROKE_PAIRS:
        raise DataError(
            f"{n} predicted and {m} reference strokes make {n * m} pairs, at most {MAX_STROKE_PAIRS} can be matched; "
            "compare such inks in parts, by line or word"
        )
    return flat


def match_strokes(pred: ArrayLike, pred_starts: ArrayLike, ref: ArrayLike, ref_starts: ArrayLike) -> StrokeMatching:
    """Match strokes one to one, in either direction, so that what is paid in all is least.

    Parameters
    ----------
    pred, ref
        Points (n, 2) in units, n ≥ 1.
    pred_starts, ref_starts
        Offsets (strokes + 1) of their strokes.

    Raises
    ------
    DataError
        Arrays of another form, NaN, infinity, an empty ink, or more than `MAX_STROKE_PAIRS` pairs of strokes.
    """
    found = _match(_pair(*_checked(pred, pred_starts, ref, ref_starts)))
    strokes = np.flatnonzero(found.partner >= 0)
    strokes = strokes[np.argsort(found.partner[strokes])]
    unmatched_pred = np.flatnonzero(found.partner < 0)
    unmatched_ref = np.setdiff1d(np.arange(len(found.ref_total)), found.partner)
    return StrokeMatching(
        np.stack([strokes, found.partner[strokes]], axis=1),
        found.way[strokes] == _BACKWARDS,
        found.way[strokes] != _EITHER,
        found.pred_total[strokes],
        found.pred_length[strokes],
        unmatched_pred,
        unmatched_ref,
        np.concatenate([found.pred_total[unmatched_pred], found.ref_total[unmatched_ref]]),
        np.concatenate([found.pred_length[unmatched_pred], found.ref_length[unmatched_ref]]),
    )


def score_strokes(
    pred: ArrayLike,
    pred_starts: ArrayLike,
    ref: ArrayLike,
    ref_starts: ArrayLike,
    *,
    start_tolerance: float = START_TOLERANCE,
    min_length: float = MIN_LENGTH,
) -> StrokeScores:
    """Return all figures of this module at once: strokes are matched once, and DTW computed no more often than needed.

    Parameters
    ----------
    pred, pred_starts, ref, ref_starts
        The flat inks, see `match_strokes`.
    start_tolerance
        Distance in units within which the start counts as right.
    min_length
        Length in units above which a reference stroke's direction is judged.

    Raises
    ------
    DataError
        As of `match_strokes`, or a tolerance or length that is negative or NaN.
    """
    flat = _checked(pred, pred_starts, ref, ref_starts)
    limits = as_limit(start_tolerance, "start_tolerance"), as_limit(min_length, "min_length")
    scores: StrokeScores = compare(*flat, math.nan, 0, *limits)
    return scores


def tolerant_dtw(pred: ArrayLike, pred_starts: ArrayLike, ref: ArrayLike, ref_starts: ArrayLike) -> TolerantDTW:
    """DTW that forgives order and direction: matched strokes' totals and those of strokes left over, over their paths.

    The mean is the same kind of figure as DTW's own, and equals it where each ink is one stroke drawn the same way.
    Raises DataError as `match_strokes` does.
    """
    return match_strokes(pred, pred_starts, ref, ref_starts).tolerant_dtw


def order_agreement(pred: ArrayLike, pred_starts: ArrayLike, ref: ArrayLike, ref_starts: ArrayLike) -> float:
    """Kendall's tau-a of the matched strokes' places in both inks: 1 same order, −1 reversed, NaN under two matched.

    Raises DataError as `match_strokes` does.
    """
    # `pairs` stands in the reference's order, and tau is the same seen from either side.
    return float(_kendall(match_strokes(pred, pred_starts, ref, ref_starts).pairs[:, 0].copy()))


def direction_agreement(
    pred: ArrayLike, pred_starts: ArrayLike, ref: ArrayLike, ref_starts: ArrayLike, *, min_length: float = MIN_LENGTH
) -> float:
    """Share of matched strokes drawn in the reference's direction.

    Judged are reference strokes longer than `min_length` units which look different from their two ends to the
    stroke that they are matched with: not dots, not strokes matched with dots. NaN where there are none. Of closed
    loops the cheaper direction counts, however small the difference. Raises DataError as `match_strokes` does, or
    where `min_length` is negative or NaN.
    """
    pair = _pair(*_checked(pred, pred_starts, ref, ref_starts))
    return float(_direction(pair, _match(pair), as_limit(min_length, "min_length"))[0])


def start_distance(pred: ArrayLike, ref: ArrayLike) -> float:
    """Distance in units between the first points of two inks (n, 2); raises DataError as `as_points` does."""
    return float(_distance(as_points(pred, "pred"), 0, as_points(ref, "ref"), 0))


def start_accuracy(pred: ArrayLike, ref: ArrayLike, *, tolerance: float = START_TOLERANCE) -> float:
    """1 where the first points of two inks (n, 2) are within `tolerance` units, else 0.

    Raises DataError as `as_points` does, or where `tolerance` is negative or NaN.
    """
    return float(start_distance(pred, ref) <= as_limit(tolerance, "tolerance"))


def penup_error(pred: ArrayLike, pred_starts: ArrayLike, ref: ArrayLike, ref_starts: ArrayLike) -> int:
    """Predicted minus reference strokes: above 0 where the pen is lifted too often, below where too seldom.

    Raises DataError as `as_strokes` does.
    """
    return len(as_strokes(pred, pred_starts, "pred")[1]) - len(as_strokes(ref, ref_starts, "ref")[1])


def decompose(pred: ArrayLike, pred_starts: ArrayLike, ref: ArrayLike, ref_starts: ArrayLike) -> Decomposition:
    """Split a DTW mean into what order, direction and shape cost, by an oracle that repairs the first two.

    ``shape`` is the DTW mean once the matched strokes stand in the reference's order and run in its direction;
    ``direction`` is how much higher it is with their own directions in the reference's order; ``order`` is how much
    higher again it is as predicted. A predicted stroke left over stays behind the stroke that it followed, those before
    the first matched one stay first; it is never turned. Parts may be a little negative, as DTW may find a shorter
    way through a wrong order. Raises DataError as `match_strokes` does.
    """
    scores = score_strokes(pred, pred_starts, ref, ref_starts)
    return Decomposition(scores.dtw, scores.order_cost, scores.direction_cost, scores.shape_cost)
