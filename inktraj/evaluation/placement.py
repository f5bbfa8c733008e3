"""DTW after the best translation and scale: tells ink in the wrong place, or of the wrong size, from a wrong shape.

The best placement is sought by turns: the optimal alignment of the placed ink with the reference gives pairs of points,
these the translation and scale that bring them closest (least squares), and so on until DTW gains nothing. It starts
from the ink as it is, and from the ink whose box has the reference's centre and size, and takes the better end. Each
turn lowers the squared distances of its own pairs, so this finds a good placement and not certainly the best one: the
figure is an upper bound of the oracle's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inktraj.ink import Ink
from inktraj.metrics import Normalization, dtw, wavefront
from inktraj.metrics.normalization import TooLong

Vector = NDArray[np.float64]

TURNS = 6
GAIN = 0.005
"""Share of the DTW by which a turn must lower it for another to follow."""

COARSE = 2.5
"""How many times farther apart points are while the placement is sought; the figure is taken with all of them."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The best placement found: x′ = scale · x + dx, y′ = scale · y + dy in the frame, and the mean DTW after it."""

    dtw: float
    scale: float
    dx: float
    dy: float


def best_placement(pred: Ink, ref: Ink, normalization: Normalization) -> Placement:
    """Search for translation and scale.

    Parameters
    ----------
    pred, ref
        In one frame, not empty.
    normalization
        In whose unit DTW is.

    Raises
    ------
    DataError
        As of `Normalization.apply`.
    """
    coarse = normalization
    if isinstance(normalization.step, float):
        coarse = replace(normalization, step=COARSE * normalization.step)
    starts = [(1.0, np.zeros(2)), *filter(None, [_by_boxes(pred, ref)])]
    found = [_descend(pred, ref, coarse, *start) for start in starts]
    scale, shift = min(found, key=lambda end: end[0])[1:]
    ends = [(scale, shift), (1.0, np.zeros(2))]
    return min((_placed(pred, ref, normalization, *end) for end in ends), key=lambda placement: placement.dtw)


def _placed(pred: Ink, ref: Ink, normalization: Normalization, scale: float, shift: Vector) -> Placement:
    """The figure of one placement."""
    placed = pred.transform([[scale, 0, shift[0]], [0, scale, shift[1]]], pred.frame)
    try:
        prepared = normalization.apply(placed, ref)
    except TooLong:
        return Placement(np.inf, scale, float(shift[0]), float(shift[1]))
    mean = dtw(prepared.pred_line, prepared.ref_line).mean
    return Placement(mean, scale, float(shift[0]), float(shift[1]))


def _by_boxes(pred: Ink, ref: Ink) -> tuple[float, Vector] | None:
    own, other = np.array(pred.bounds).reshape(2, 2), np.array(ref.bounds).reshape(2, 2)
    size, wanted = float(np.hypot(*(own[1] - own[0]))), float(np.hypot(*(other[1] - other[0])))
    if not size > 0 or not wanted > 0:
        return None
    scale = wanted / size
    return scale, other.mean(axis=0) - scale * own.mean(axis=0)


def _descend(
    pred: Ink, ref: Ink, normalization: Normalization, scale: float, shift: Vector
) -> tuple[float, float, Vector]:
    """Go down from a placement; returns the mean DTW, scale and shift at the best turn."""
    best = np.inf, scale, shift
    for _ in range(TURNS):
        placed = pred.transform([[scale, 0, shift[0]], [0, scale, shift[1]]], pred.frame)
        try:
            prepared = normalization.apply(placed, ref)
        except TooLong:
            break
        path = wavefront.trace(prepared.pred_line, prepared.ref_line, False, -1)
        a, b = prepared.pred_line[path[:, 0]], prepared.ref_line[path[:, 1]]
        mean = float(np.hypot(*(a - b).T).mean())
        gained = mean < best[0] * (1 - GAIN)
        if mean < best[0]:
            best = mean, scale, shift
        if not gained:
            break
        # In units; the step is then brought back to the frame of the ink as it was predicted.
        a_mean, b_mean = a.mean(axis=0), b.mean(axis=0)
        spread = float(np.square(a - a_mean).sum())
        factor = float(((a - a_mean) * (b - b_mean)).sum()) / spread if spread > 0 else 1.0
        if not factor > 0:
            break
        moved = (b_mean - factor * a_mean) / prepared.scale + (1 - factor) * np.array(prepared.origin)
        scale, shift = scale * factor, factor * shift + moved
    return best
