"""How far a recovered trajectory is from the one that was written, whether it can be read, and how sure a mean is.

One door for inks, `evaluate` (and `Evaluation` for what can be set), one for texts, `score_text`; and a function for
each figure, on plain arrays:

>>> from inktraj.metrics import chamfer, dtw
>>> alignment = dtw([(0, 0), (1, 0), (2, 0)], [(0, 1), (2, 1)], path=True)
>>> alignment.total, alignment.length, alignment.path.tolist()
(3.414213562373095, 3, [[0, 0], [1, 0], [2, 1]])
>>> chamfer([(0, 0), (2, 0)], [(0, 1), (2, 1)]).mean
1.0

Conventions
-----------
* x right, y down. The prediction comes first, the reference second.
* Each module opens with its own conventions: `normalization` (units and spacing of points), `trajectory` (DTW,
  Chamfer), `strokes` (order, direction, pen-ups), `overlap` (shared ink, AIoU), `readability` (AR, CR, CER, WER),
  `evaluation` (all figures of an ink, and what an output that cannot be used scores), `statistics` (means and
  intervals).
* Every set of figures carries a `Signature`; figures are only compared where it is the same.
"""

from __future__ import annotations

from inktraj.metrics.evaluation import Evaluation, TrajectoryScores, evaluate
from inktraj.metrics.normalization import Normalization, Prepared
from inktraj.metrics.overlap import aiou, aiou_inks, ink_overlap, ldtw
from inktraj.metrics.readability import TextRules, score_text, score_texts
from inktraj.metrics.signature import Signature, require_same
from inktraj.metrics.strokes import (
    decompose,
    direction_agreement,
    match_strokes,
    order_agreement,
    penup_error,
    score_strokes,
    start_accuracy,
    start_distance,
    tolerant_dtw,
)
from inktraj.metrics.trajectory import (
    Alignment,
    Alignments,
    Chamfer,
    chamfer,
    dtw,
    dtw_batch,
    dtw_total,
    nearest_distances,
)

__all__ = [
    "Alignment",
    "Alignments",
    "Chamfer",
    "Evaluation",
    "Normalization",
    "Prepared",
    "Signature",
    "TextRules",
    "TrajectoryScores",
    "aiou",
    "aiou_inks",
    "chamfer",
    "decompose",
    "direction_agreement",
    "dtw",
    "dtw_batch",
    "dtw_total",
    "evaluate",
    "ink_overlap",
    "ldtw",
    "match_strokes",
    "nearest_distances",
    "order_agreement",
    "penup_error",
    "require_same",
    "score_strokes",
    "score_text",
    "score_texts",
    "start_accuracy",
    "start_distance",
    "tolerant_dtw",
]
