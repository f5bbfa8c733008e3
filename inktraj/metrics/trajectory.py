"""How far two sequences of points are apart: DTW and Chamfer, exact.

Conventions
-----------
* Sequences are arrays ``(n, 2)``, x and y, n ≥ 1; the prediction comes first, the reference second. Nothing is scaled
  or resampled here: see `inktraj.metrics.normalization`, and `inktraj.metrics.evaluate` for inks.
* DTW aligns the two monotonically, first to first and last to last; a cell of the path costs the Euclidean distance
  of its two points. ``total`` is the least sum, ``length`` the number of cells of its path, ``mean`` = total / length,
  the headline: it neither grows with the number of points nor hangs on how densely they lie.
* Where paths tie, predecessors are taken diagonally, else from the prediction's point before, else from the
  reference's, as tslearn's ``dtw_path`` does. The total does not depend on it; length and mean may.
* Chamfer is the mean of the two directed means of nearest-neighbour distances; it knows no order.
* Float64 throughout. Threads go over pairs, never inside one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from inktraj.errors import DataError
from inktraj.metrics import nearest, wavefront
from inktraj.metrics.points import FloatArray, IntArray, as_points

Cost = Literal["euclidean", "squared"]
COSTS: tuple[Cost, ...] = get_args(Cost)

PRUNE_FROM = 4_000_000
"""Cells of a pair from which on nearest neighbours are looked for first, to leave out what they rule out. At this size
pairs near each other gain a factor of three, and pairs of which nothing can be left out lose a quarter; at a page's
size it is a factor of ten and more against a twentieth."""

_WIDEST = 1 << 40  # no sequence is longer, and sums of such bands do not overflow

SEARCH_SHARE = 0.02
"""Points looked at for neighbours, as a share of the cells, at which that search is given up."""


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The optimal alignment of two sequences.

    Parameters
    ----------
    total
        Sum of the costs along the path: distances, or squared distances, in the points' unit.
    length
        Cells on the path.
    path
        The cells, ``(length, 2)`` int64 of indices into prediction and reference; None unless asked for.
    """

    total: float
    length: int
    path: IntArray | None = None

    @property
    def mean(self) -> float:
        """Mean cost along the path."""
        return self.total / self.length


@dataclass(frozen=True, slots=True)
class Chamfer:
    """Nearest-neighbour distances of two sets of points, in their unit.

    Parameters
    ----------
    pred_to_ref, ref_to_pred
        Mean distance from a point of the one to the nearest of the other.
    squared
        Mean of the two directed means of squared distances.
    hausdorff
        The largest of all nearest-neighbour distances, either way.
    """

    pred_to_ref: float
    ref_to_pred: float
    squared: float
    hausdorff: float

    @property
    def mean(self) -> float:
        """Mean of the two directed means."""
        return (self.pred_to_ref + self.ref_to_pred) / 2


def dtw(
    pred: ArrayLike, ref: ArrayLike, *, cost: Cost = "euclidean", band: int | None = None, path: bool = False
) -> Alignment:
    """Align two sequences by dynamic time warping.

    Parameters
    ----------
    pred, ref
        Points, ``(n, 2)`` and ``(m, 2)``.
    cost
        ``"euclidean"``, or ``"squared"``: the total is then the square of tslearn's ``dtw`` and equals aeon's
        ``dtw_distance``.
    band
        Radius of the Sakoe–Chiba band in points, as tslearn's ``sakoe_chiba_radius``: |i − j| ≤ band, widened by
        |n − m| on the longer side; None for no band.
    path
        Return the path, too: takes twice the time and O(min(n, m) √(n + m)) memory instead of O(n + m).

    Raises
    ------
    DataError
        Arrays of another form, empty, or holding NaN, infinity or numbers too large to be squared; a negative band.

    Notes
    -----
    H. Sakoe and S. Chiba, "Dynamic programming algorithm optimization for spoken word recognition", IEEE Trans. ASSP
    26, 1978, with symmetric steps of equal weight. Pairs of `PRUNE_FROM` cells and more are pruned exactly.
    """
    a, b = as_points(pred, "pred"), as_points(ref, "ref")
    squared, radius = _options(cost, band)
    total, length = _warp(a, b, squared, radius, True)
    cells = wavefront.trace(a, b, squared, radius) if path else None
    return Alignment(float(total), int(length), cells)


def dtw_total(pred: ArrayLike, ref: ArrayLike, *, cost: Cost = "euclidean", band: int | None = None) -> float:
    """Return the total of `dtw` alone, in about two thirds of the time: the figure that other libraries return."""
    squared, radius = _options(cost, band)
    return float(_warp(as_points(pred, "pred"), as_points(ref, "ref"), squared, radius, None)[0])


@dataclass(frozen=True, slots=True, eq=False)
class Alignments:
    """The optimal alignments of many pairs: totals ``(pairs,)`` float64, and lengths, or None where not asked for."""

    totals: FloatArray
    lengths: IntArray | None

    @property
    def means(self) -> FloatArray:
        """Mean costs along the paths; DataError where lengths were not asked for."""
        if self.lengths is None:
            raise DataError("the means need the paths' lengths; ask for them: dtw_batch(…, lengths=True)")
        return self.totals / self.lengths


def dtw_batch(
    preds: Sequence[ArrayLike],
    refs: Sequence[ArrayLike],
    *,
    cost: Cost = "euclidean",
    lengths: bool = True,
    threads: int = 1,
) -> Alignments:
    """Align many pairs, short ones several at a time.

    Parameters
    ----------
    preds, refs
        As many arrays ``(n, 2)`` each; pair k is preds[k] and refs[k].
    cost
        As of `dtw`.
    lengths
        Also the lengths of the paths, for the means.
    threads
        Threads over pairs; 0 for one a core.

    Raises
    ------
    DataError
        Different numbers of predictions and references, or an array that `dtw` refuses; the message says which.
    """
    squared, _ = _options(cost, None)
    if len(preds) != len(refs):
        raise DataError(f"there are {len(preds)} predictions and {len(refs)} references, expected pairs")
    a, a_starts = _joined(preds, "preds")
    b, b_starts = _joined(refs, "refs")
    totals = np.empty(len(preds))
    counts = np.empty(len(preds)) if lengths else None

    def part(pairs: IntArray) -> None:
        own, own_counts = np.empty(len(pairs)), np.empty(len(pairs)) if lengths else None
        same = np.zeros(len(pairs), np.bool_)
        wavefront.align_pairs(a, a_starts, pairs, b, b_starts, pairs, same, squared, own, own_counts)
        totals[pairs] = own
        if counts is not None:
            counts[pairs] = own_counts

    large = np.diff(a_starts) * np.diff(b_starts) >= PRUNE_FROM
    for_each(part, _portions(np.flatnonzero(~large), np.diff(a_starts) * np.diff(b_starts), threads), threads)

    def alone(pair: int) -> None:
        first, second = a[a_starts[pair] : a_starts[pair + 1]], b[b_starts[pair] : b_starts[pair + 1]]
        totals[pair], length = _warp(first, second, squared, -1, True if lengths else None)
        if counts is not None:
            counts[pair] = length

    for_each(alone, np.flatnonzero(large).tolist(), threads)
    return Alignments(totals, None if counts is None else counts.astype(np.int64))


def chamfer(pred: ArrayLike, ref: ArrayLike) -> Chamfer:
    """Measure how far the points of each sequence are from the nearest of the other.

    Parameters
    ----------
    pred, ref
        Points, ``(n, 2)`` and ``(m, 2)``.

    Raises
    ------
    DataError
        Arrays of another form, empty, or holding NaN, infinity or numbers too large to be squared.
    """
    there, back = nearest_distances(pred, ref)
    return Chamfer(
        float(there.mean()),
        float(back.mean()),
        float(np.square(there).mean() + np.square(back).mean()) / 2,
        float(max(there.max(), back.max())),
    )


def nearest_distances(pred: ArrayLike, ref: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the distance from each point to the nearest of the other sequence: ``(n,)`` and ``(m,)``.

    Raises DataError as `chamfer` does.
    """
    a, b = as_points(pred, "pred"), as_points(ref, "ref")
    there, back = np.empty(len(a)), np.empty(len(b))
    nearest.distances(a, b, there)
    nearest.distances(b, a, back)
    return there, back


def _options(cost: str, band: int | None) -> tuple[bool, int]:
    if cost not in COSTS:
        raise DataError(f"the cost is {cost!r}, expected one of {', '.join(COSTS)}")
    if band is None:
        return cost == "squared", -1
    if isinstance(band, bool) or not isinstance(band, (int, np.integer)) or band < 0:
        raise DataError(f"the band is {band!r}, expected a whole number of points, 0 or more, or None")
    return cost == "squared", min(int(band), _WIDEST)


def _warp(a: FloatArray, b: FloatArray, squared: bool, band: int, lengths: Literal[True] | None) -> tuple[float, float]:
    cells = len(a) * len(b)
    if band < 0 and cells >= PRUNE_FROM:
        there, back = np.empty(len(a)), np.empty(len(b))
        budget = int(cells * SEARCH_SHARE)
        if nearest.distances(a, b, there, budget) and nearest.distances(b, a, back, budget):
            found: tuple[float, float] = wavefront.warp_pruned(a, b, squared, there, back, lengths)
            return found
    full: tuple[float, float] = wavefront.warp(a, b, squared, band, lengths)
    return full


def _joined(arrays: Sequence[ArrayLike], name: str) -> tuple[FloatArray, IntArray]:
    """Return the sequences one after another, and where each begins."""
    starts = np.zeros(len(arrays) + 1, np.int64)
    if not len(arrays):
        return np.zeros((0, 2)), starts
    # One check over all points costs little; which array is at fault is looked for only when there is one.
    try:
        points = np.concatenate(arrays, dtype=np.float64)
        sizes = np.fromiter(map(len, arrays), np.int64, len(arrays))  # type: ignore[arg-type]
        # NaN and infinity come through the sum of squares, and too large numbers are; it needs no memory.
        with np.errstate(over="ignore", invalid="ignore"):
            fine = (
                type(points) is np.ndarray
                and points.ndim == 2
                and points.shape[1] == 2
                and sizes.min() > 0
                and np.vdot(points, points) <= 1e200
            )
    except (TypeError, ValueError):
        fine = False
    if not fine:
        checked = [as_points(array, f"{name}[{k}]") for k, array in enumerate(arrays)]
        points, sizes = np.concatenate(checked), np.array([len(array) for array in checked])
    np.cumsum(sizes, out=starts[1:])
    return points, starts


def _portions(pairs: IntArray, cells: IntArray, threads: int) -> list[IntArray]:
    """Cut the pairs into parts of about equal work: one for one thread, else a few a thread."""
    count = worker_count(threads)
    if count == 1 or not len(pairs):
        return [pairs] if len(pairs) else []
    # Sorted by size, so that the pairs of one part fit beside each other; dealt out, so that parts are alike.
    pairs = pairs[np.argsort(cells[pairs], kind="stable")]
    work = np.cumsum(cells[pairs])
    cuts = np.searchsorted(work, work[-1] * np.arange(1, 4 * count) / (4 * count))
    return [part for part in np.split(pairs, cuts) if len(part)]


def worker_count(threads: int) -> int:
    """Return how many threads to use: as many as given, or one a core for 0."""
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 0:
        raise DataError(f"threads is {threads!r}, expected a whole number, 0 for one a core")
    if threads:
        return int(threads)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def for_each(work: Callable[[Any], object], items: Sequence[Any], threads: int) -> None:
    """Do the work for all items, in as many threads; the first error is raised."""
    count = worker_count(threads)
    if count == 1 or len(items) < 2:
        for item in items:
            work(item)
        return
    with ThreadPoolExecutor(count) as pool:
        try:
            for done in [pool.submit(work, item) for item in items]:
                done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)  # what has not begun would keep an interrupt waiting
            raise
