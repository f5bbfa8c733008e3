"""All trajectory figures of a prediction and its reference at once.

Conventions
-----------
* Both inks are brought to one unit first (`Normalization`); figures are in that unit unless they say otherwise.
* A prediction is ``valid``, or ``missing`` (nothing was given for this word), or ``invalid`` (something was given that
  cannot be used: it could not be parsed, has no points, or absurdly many). One that is not valid scores the declared
  worst: DTW, tolerant DTW, Chamfer, Hausdorff, start distance and LDTW as those of one point in the far corner of the
  reference's box (`Prepared.far_corner`; of a dot, which has no box, of the frame), or a given number of units; every
  agreement, accuracy, precision, recall and AIoU 0, which of Kendall's tau is chance; no stroke at all. inkGround
  scores invalid outputs with a maximum, and gives no number for it.
* A figure without value is None: see `inktraj.metrics.strokes`. Where the reference alone leaves a figure without value
  (the order of one stroke), it has none for a prediction that is not valid either. The distance from predicted points
  to the reference, and the parts of a DTW, have no worst: nothing was predicted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numba import njit

from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.metrics import nearest, wavefront
from inktraj.metrics.normalization import Normalization, Prepared, TooLong
from inktraj.metrics.overlap import PEN_WIDTH, RESOLUTION, TOLERANCE, aiou_inks, harmonic_mean, share_within
from inktraj.metrics.points import FloatArray
from inktraj.metrics.signature import Signature, Value
from inktraj.metrics.strokes import MAX_STROKE_PAIRS, MIN_LENGTH, START_TOLERANCE, compare
from inktraj.metrics.trajectory import for_each

Status = Literal["valid", "missing", "invalid"]
STATUSES: tuple[Status, ...] = get_args(Status)

PRUNE_KNOWN_FROM = 100_000
"""Cells from which on it pays to prune where nearest neighbours are known anyhow."""


@dataclass(frozen=True, slots=True)
class TrajectoryScores:
    """The figures of one prediction; lengths in units of the normalisation, shares from 0 to 1.

    Parameters
    ----------
    status, reason
        Whether the prediction could be used, and why not.
    dtw, dtw_total, dtw_length
        Mean cost along the optimal path (the headline), its sum, and its cells.
    chamfer, chamfer_pred_to_ref, chamfer_ref_to_pred, chamfer_squared, hausdorff
        See `inktraj.metrics.Chamfer`. The second is None for a prediction that is not valid.
    tolerant_dtw
        DTW of strokes matched one to one in either direction, see `inktraj.metrics.tolerant_dtw`.
    order_cost, direction_cost, shape_cost
        What order, direction and shape cost of `dtw`; they sum to it. None where pen-up jumps are bridged, and for a
        prediction that is not valid.
    order_agreement, direction_agreement
        Kendall's tau of matched strokes; share of strokes drawn in the reference's direction.
    start_distance, start_accuracy
        From the reference's first point; 1 where that is within the tolerance, else 0.
    penup_error
        Predicted minus reference strokes.
    pred_strokes, ref_strokes
        Their numbers.
    ink_precision, ink_recall, ink_f1
        Shares of points within the tolerance of the other ink, and their harmonic mean.
    aiou, ldtw
        PEN-Net's. `inktraj.metrics.aiou_inks`, whose unit is the reference's longer side here (None for a dot); the
        mean cost along the path of the points as they are, in the **frame's** unit. None unless asked for.
    """

    status: Status
    reason: str
    dtw: float
    dtw_total: float
    dtw_length: int
    chamfer: float
    chamfer_pred_to_ref: float | None
    chamfer_ref_to_pred: float
    chamfer_squared: float
    hausdorff: float
    tolerant_dtw: float
    order_cost: float | None
    direction_cost: float | None
    shape_cost: float | None
    order_agreement: float | None
    direction_agreement: float | None
    start_distance: float
    start_accuracy: float
    penup_error: int
    pred_strokes: int
    ref_strokes: int
    ink_precision: float
    ink_recall: float
    ink_f1: float
    aiou: float | None
    ldtw: float | None

    @property
    def penup_error_size(self) -> int:
        """How many strokes too many or too few."""
        return abs(self.penup_error)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is computed and how: one of these scores all pairs that are to be compared.

    Parameters
    ----------
    normalization
        Unit and spacing of the points.
    tolerance
        Units within which ink counts as found.
    start_tolerance
        Units within which the first point counts as right.
    min_length
        Units from which on a stroke's direction is judged.
    worst
        ``"far-corner"``, or what DTW and all distances of a prediction that is not valid are, in units.
    pen_net
        Also AIoU and LDTW.

    Raises
    ------
    DataError
        A tolerance, length or worst value that is negative or no number.
    """

    normalization: Normalization = field(default_factory=Normalization)
    tolerance: float = TOLERANCE
    start_tolerance: float = START_TOLERANCE
    min_length: float = MIN_LENGTH
    worst: float | Literal["far-corner"] = "far-corner"
    pen_net: bool = True

    def __post_init__(self) -> None:
        for name in ("tolerance", "start_tolerance", "min_length", "worst"):
            value = getattr(self, name)
            if name == "worst" and value == "far-corner":
                continue
            number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            if not number or not 0 <= value < math.inf:
                raise DataError(f"{name} is {value!r}, expected a number of units, 0 or more")

    @property
    def signature(self) -> Signature:
        """What two figures must have in common to be compared."""
        pen: dict[str, Value] = {"pen": PEN_WIDTH, "res": RESOLUTION} if self.pen_net else {}
        return Signature.of(
            "trajectory",
            cost="euclidean",
            average="path",
            **self.normalization.fields(),
            invalid=self.worst if self.worst == "far-corner" else float(self.worst),
            tol=float(self.tolerance),
            start=float(self.start_tolerance),
            minlen=float(self.min_length),
            aiou=self.pen_net,
            **pen,
        )

    def score(self, pred: Ink | None, ref: Ink, status: Status | None = None) -> TrajectoryScores:
        """Score one prediction.

        Parameters
        ----------
        pred
            The predicted ink; None where there is none.
        ref
            The reference, in the same frame.
        status
            ``"missing"`` or ``"invalid"`` to say why there is no prediction; None makes None missing.

        Raises
        ------
        DataError
            The reference cannot be used, the inks are in different frames, or the status does not fit.
        """
        for name, ink in (("pred", pred), ("ref", ref)):
            if not isinstance(ink, Ink) and not (ink is None and name == "pred"):
                raise DataError(f"{name} is {type(ink).__name__}, expected an Ink; dtw and chamfer take points")
        if status is not None and (status not in STATUSES or (status == "valid") != (pred is not None)):
            raise DataError(f"the status is {status!r} where the prediction is {'None' if pred is None else 'an ink'}")
        reason = ""
        if len(ref.strokes) ** 2 > MAX_STROKE_PAIRS:
            raise DataError(
                f"the reference has {len(ref.strokes)} strokes, too many to be matched; compare it in parts, by word"
            )
        if pred is not None and len(pred.strokes) * len(ref.strokes) > MAX_STROKE_PAIRS:
            reason = f"its {len(pred.strokes)} strokes are too many to be matched with {len(ref.strokes)}"
            pred, status = None, "invalid"
        elif pred is None:
            status = status or "missing"
            reason = "nothing was given" if status == "missing" else "what was given could not be used"
        elif not pred.strokes:
            pred, status, reason = None, "invalid", "the ink is empty"
        try:
            prepared = self.normalization.apply(pred, ref)
        except TooLong as err:
            if pred is None:
                raise
            prepared = self.normalization.apply(None, ref)
            pred, status, reason = None, "invalid", str(err)
        if pred is None:
            assert status is not None
            return self._worst(prepared, ref, status, reason)
        return self._valid(prepared, pred, ref)

    def score_all(self, pairs: Iterable[tuple[Ink | None, Ink]], *, threads: int = 1) -> list[TrajectoryScores]:
        """Score many predictions, in their order; threads go over pairs, 0 for one a core.

        Raises DataError as `score` does, and names the pair.
        """
        todo = list(pairs)
        out: list[TrajectoryScores | None] = [None] * len(todo)

        def part(numbers: Sequence[int]) -> None:
            for k in numbers:
                try:
                    out[k] = self.score(*todo[k])
                except DataError as err:
                    raise type(err)(f"pair {k}: {err}") from err

        for_each(part, [range(k, min(k + 64, len(todo))) for k in range(0, len(todo), 64)], threads)
        return [scores for scores in out if scores is not None]

    def _valid(self, prepared: Prepared, pred: Ink, ref: Ink) -> TrajectoryScores:
        """The figures of a valid prediction."""
        bridged = self.normalization.bridge
        (mean, total, length), (there, back, squared, furthest), strokes, (precision, recall, f1) = _figures(
            *(prepared.pred, prepared.pred_starts, prepared.ref, prepared.ref_starts),
            *(prepared.pred_line, prepared.ref_line, bridged),
            *(float(self.tolerance), float(self.start_tolerance), float(self.min_length)),
        )
        ldtw = None
        if self.pen_net:
            raw, raw_length = wavefront.align(np.concatenate(pred.strokes), np.concatenate(ref.strokes))
            ldtw = float(raw / raw_length)
        return TrajectoryScores(
            status="valid",
            reason="",
            dtw=mean,
            dtw_total=total,
            dtw_length=int(length),
            chamfer=(there + back) / 2,
            chamfer_pred_to_ref=there,
            chamfer_ref_to_pred=back,
            chamfer_squared=squared,
            hausdorff=furthest,
            tolerant_dtw=strokes.tolerant_dtw,
            # Bridges hold no strokes to be put in order, so the parts would not sum to the DTW.
            order_cost=None if bridged else strokes.order_cost,
            direction_cost=None if bridged else strokes.direction_cost,
            shape_cost=None if bridged else strokes.shape_cost,
            order_agreement=_known(strokes.order_agreement),
            direction_agreement=_known(strokes.direction_agreement),
            start_distance=strokes.start_distance,
            start_accuracy=strokes.start_accuracy,
            penup_error=len(pred.strokes) - len(ref.strokes),
            pred_strokes=len(pred.strokes),
            ref_strokes=len(ref.strokes),
            ink_precision=precision,
            ink_recall=recall,
            ink_f1=f1,
            aiou=_aiou(prepared) if self.pen_net else None,
            ldtw=ldtw,
        )

    def _worst(self, prepared: Prepared, ref: Ink, status: Status, reason: str) -> TrajectoryScores:
        """The figures of a prediction that is not valid."""
        point, line = prepared.far_corner, prepared.ref_line
        away = np.hypot(*(line - point).T)
        if not away.max() > 0:
            point = _frame_corner(prepared, ref)
            away = np.hypot(*(line - point).T)
        there, mean, furthest = float(away.min()), float(away.mean()), float(away.max())
        chamfer, squared = (there + mean) / 2, float((there**2 + np.square(away).mean()) / 2)
        start = float(np.hypot(*(prepared.ref[0] - point[0])))
        corner = point / prepared.scale + prepared.origin
        ldtw = float(np.hypot(*(np.concatenate(ref.strokes) - corner).T).mean())
        if self.worst != "far-corner":
            mean = chamfer = furthest = start = float(self.worst)
            squared, ldtw = mean**2, mean / prepared.scale
        strokes = np.split(prepared.ref, prepared.ref_starts[1:-1])
        longest = max(float(np.hypot(*np.diff(stroke, axis=0).T).sum()) for stroke in strokes)
        return TrajectoryScores(
            status=status,
            reason=reason,
            dtw=mean,
            dtw_total=mean * len(line),
            dtw_length=len(line),
            chamfer=chamfer,
            chamfer_pred_to_ref=None,
            chamfer_ref_to_pred=mean,
            chamfer_squared=squared,
            hausdorff=furthest,
            tolerant_dtw=mean,
            order_cost=None,
            direction_cost=None,
            shape_cost=None,
            order_agreement=0.0 if len(strokes) > 1 else None,
            direction_agreement=0.0 if longest > self.min_length else None,
            start_distance=start,
            start_accuracy=0.0,
            penup_error=-len(strokes),
            pred_strokes=0,
            ref_strokes=len(strokes),
            ink_precision=0.0,
            ink_recall=0.0,
            ink_f1=0.0,
            aiou=0.0 if self.pen_net and np.ptp(prepared.ref, axis=0).max() > 0 else None,
            ldtw=ldtw if self.pen_net else None,
        )


def evaluate(
    pred: Ink | None, ref: Ink, evaluation: Evaluation | None = None, *, status: Status | None = None
) -> TrajectoryScores:
    """Score one prediction; see `Evaluation.score`, and `Evaluation` for what can be set.

    Examples
    --------
    >>> from inktraj import Frame, Ink
    >>> from inktraj.metrics import evaluate
    >>> frame = Frame(100, 50)
    >>> ref = Ink([[(0, 0), (100, 0)], [(0, 50), (100, 50)]], frame)
    >>> scores = evaluate(Ink([ref.strokes[1], ref.strokes[0]], frame), ref)
    >>> round(scores.dtw, 3), scores.tolerant_dtw, scores.chamfer, scores.order_agreement
    (0.5, 0.0, 0.0, -1.0)
    """
    return (evaluation or Evaluation()).score(pred, ref, status)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _frame_corner(prepared: Prepared, ref: Ink) -> FloatArray:
    """The frame's corner that is farthest from a dot, ``(1, 2)`` in units: at the dot itself all would be perfect."""
    dot, size = ref.strokes[0][0], np.array([ref.frame.width, ref.frame.height])
    corner: FloatArray = (np.where(dot > size / 2, 0.0, size) - prepared.origin)[None] * prepared.scale
    return corner


def _aiou(prepared: Prepared) -> float | None:
    """AIoU of two inks whose reference's longer side is drawn `RESOLUTION` pixels long; None where that is a dot."""
    side = float(np.ptp(prepared.ref, axis=0).max())
    if not side > 0:
        return None
    return aiou_inks(prepared.pred / side, prepared.pred_starts, prepared.ref / side, prepared.ref_starts).iou


@njit(cache=True, nogil=True)
def _figures(  # type: ignore[no-untyped-def]
    pred, pred_starts, ref, ref_starts, pred_line, ref_line, bridged, tolerance, start_tolerance, min_length
):
    """Return DTW (mean, total, length), Chamfer (both ways, squared, Hausdorff), `StrokeScores`, and shared ink."""
    there, back = np.empty(len(pred_line)), np.empty(len(ref_line))
    nearest.distances(pred_line, ref_line, there)
    nearest.distances(ref_line, pred_line, back)
    if len(pred_line) * len(ref_line) >= PRUNE_KNOWN_FROM:
        total, length = wavefront.warp_pruned(pred_line, ref_line, False, there, back, True)
    else:
        total, length = wavefront.warp(pred_line, ref_line, False, -1, True)
    strokes = compare(
        pred, pred_starts, ref, ref_starts, np.nan if bridged else total, length, start_tolerance, min_length
    )
    squared = ((there * there).mean() + (back * back).mean()) / 2
    precision, recall = share_within(there, tolerance), share_within(back, tolerance)
    return (
        (total / length, total, length),
        (there.mean(), back.mean(), squared, max(there.max(), back.max())),
        strokes,
        (precision, recall, harmonic_mean(precision, recall)),
    )
