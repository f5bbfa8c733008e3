"""The figures of `recovery.py`: how far a recovered word is from its recording, and how so over many words.

The figures are those of `inktraj.metrics` with its defaults: in the reference box (the recording's longer side is 1),
both inks resampled every 0.01 along the arc, strokes joined in order with no pen-up bridge, and DTW the mean Euclidean
cost along the optimal path.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pipelines"))

from recordings import SUPERSAMPLING, Words, picture

from inktraj import Frame, Ink
from inktraj.metrics import Evaluation

Row = dict[str, float]  # the figures of one word

CLOSE = 0.01  # a word below this DTW is as good as written over
WARM_UP = 10  # words recovered before the clock runs, so that nothing compiles under it


EVALUATION = Evaluation(pen_net=False)
ANYWHERE = Frame(1, 1)  # figures are in the reference's own box; where that lies does not matter


def score(reference: list[np.ndarray], found: list[np.ndarray]) -> Row:
    """All figures of one word; both inks in pixels."""
    scores = EVALUATION.score(Ink(found, ANYWHERE), Ink(reference, ANYWHERE))
    return {
        "dtw": scores.dtw,
        "chamfer": scores.chamfer,
        "tolerant_dtw": scores.tolerant_dtw,
        "penup_error": scores.penup_error_size,
        "penup_surplus": scores.penup_error,
        "start": scores.start_accuracy,
        "direction": float("nan") if scores.direction_agreement is None else scores.direction_agreement,
    }


def ink_overlap(mask: np.ndarray, ink) -> dict[str, float]:
    """Shares of mask and of drawing (strokes at their median width) within 2 px of the other."""
    canvas = np.zeros(tuple(SUPERSAMPLING * n for n in mask.shape), np.uint8)
    if ink.strokes:
        pen = max(round(SUPERSAMPLING * float(np.median(np.concatenate(ink.widths)))), 1)
        for stroke in ink.strokes:
            at = np.int32(np.round(stroke * SUPERSAMPLING + (SUPERSAMPLING - 1) / 2))
            cv2.polylines(canvas, [at], False, 255, pen)
            cv2.circle(canvas, at[0].tolist(), pen // 2, 255, -1)
    drawn = cv2.resize(canvas, mask.shape[::-1], interpolation=cv2.INTER_AREA) > 127
    near = [cv2.distanceTransform((~m).astype(np.uint8), cv2.DIST_L2, 5) <= 2 for m in (mask, drawn)]
    return {
        "ink_recall": float(near[1][mask].mean()) if mask.any() else 1.0,
        "ink_precision": float(near[0][drawn].mean()) if drawn.any() else 1.0,
    }


def measure(
    words: Words, indices: np.ndarray, recoverer: Any, *, tell_text: bool = False, **look: Any
) -> tuple[list[Row], list[str]]:
    """Return the figures of each word, and what went wrong; `look` says how the words are drawn, see `picture`.

    With `tell_text` the recoverer is told what each word says.
    """
    from inktraj.recovery import crop_of, recover

    rows, failures = [], []
    for turn, index in enumerate([*indices[:WARM_UP].tolist(), *indices.tolist()]):
        image, reference = picture(words, index, **look)
        begin = time.perf_counter()
        try:
            ink = recover(image, recoverer=recoverer, text=str(words.text[index]) if tell_text else None)
        except Exception as err:  # a failure is counted and named, never scored as a bad word
            ink, failure = None, f"word {index}: {type(err).__name__}: {err}"
        spent = (time.perf_counter() - begin) * 1000
        if turn < min(WARM_UP, len(indices)):
            continue
        if ink is None:
            failures.append(failure)
            continue
        overlap = ink_overlap(crop_of(image).mask, ink)
        rows.append(score(reference, list(ink.strokes)) | overlap | {"ms": spent, "index": index})
    return rows, failures


def figures_of(rows: list[Row], failures: list[str]) -> dict[str, float | int | None]:
    """Return the figures over all words; None where no word has the figure."""

    def column(name: str) -> np.ndarray:
        return np.array([row[name] for row in rows], float)

    if not rows:
        raise SystemExit("\n".join(["no word was recovered", *failures[:5]]))
    direction = column("direction")
    return {
        "words": len(rows),
        "failures": len(failures),
        "dtw_mean": float(column("dtw").mean()),
        "dtw_median": float(np.median(column("dtw"))),
        "dtw_under_001": float((column("dtw") < CLOSE).mean()),
        "chamfer_mean": float(column("chamfer").mean()),
        "chamfer_median": float(np.median(column("chamfer"))),
        "tolerant_dtw_mean": float(column("tolerant_dtw").mean()),
        "tolerant_dtw_median": float(np.median(column("tolerant_dtw"))),
        "penup_error_mean": float(column("penup_error").mean()),
        "penup_error_signed_mean": float(column("penup_surplus").mean()),
        "start_accuracy": float(column("start").mean()),
        "direction_accuracy": None if np.isnan(direction).all() else float(np.nanmean(direction)),
        "ink_recall": float(column("ink_recall").mean()),
        "ink_precision": float(column("ink_precision").mean()),
        "ms_per_word": float(np.median(column("ms"))),
        "ms_per_word_p99": float(np.percentile(column("ms"), 99)),
        "ms_max": float(column("ms").max()),
    }
