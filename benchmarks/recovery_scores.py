"""The figures of `recovery.py`: how far a recovered word is from its recording, and how so over many words.

Figures are in the reference box (the recording's longer side is 1): both inks are resampled every 0.01 along the arc,
strokes are joined in order with no pen-up bridge, and DTW is the mean Euclidean cost along the optimal path.
`tolerant_dtw` matches strokes one to one in either direction before it measures.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numba import njit
from scipy.optimize import linear_sum_assignment

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pipelines"))

from recordings import SUPERSAMPLING, Words, picture, resample

Row = dict[str, float]  # the figures of one word

STEP = 0.01  # arc-length step in the reference box
START_TOLERANCE = 0.05
CLOSE = 0.01  # a word below this DTW is as good as written over
WARM_UP = 10  # words recovered before the clock runs, so that nothing compiles under it


@njit(cache=True, fastmath=True)
def dtw(a, b):
    """Mean Euclidean cost along the optimal path."""
    n, m = a.shape[0], b.shape[0]
    last, row = np.full(m + 1, np.inf), np.full(m + 1, np.inf)
    last_length, row_length = np.zeros(m + 1), np.zeros(m + 1)
    last[0] = 0.0
    for i in range(n):
        row[0] = np.inf
        for j in range(m):
            best, length = last[j], last_length[j]
            if last[j + 1] < best:
                best, length = last[j + 1], last_length[j + 1]
            if row[j] < best:
                best, length = row[j], row_length[j]
            row[j + 1] = best + np.sqrt((a[i, 0] - b[j, 0]) ** 2 + (a[i, 1] - b[j, 1]) ** 2)
            row_length[j + 1] = length + 1
        last, row = row, last
        last_length, row_length = row_length, last_length
    return last[m] / last_length[m]


@njit(cache=True, fastmath=True)
def mean_nearest(a, b):
    """Mean distance from the points of `a` to the nearest of `b`."""
    total = 0.0
    for i in range(a.shape[0]):
        best = np.inf
        for j in range(b.shape[0]):
            best = min(best, (a[i, 0] - b[j, 0]) ** 2 + (a[i, 1] - b[j, 1]) ** 2)
        total += np.sqrt(best)
    return total / a.shape[0]


def tolerant_dtw(reference: list[np.ndarray], found: list[np.ndarray]) -> tuple[float, float]:
    """Strokes matched one to one in either direction (those left over pay their nearest); share drawn forwards."""
    forward = np.array([[dtw(r, f) for f in found] for r in reference])
    backward = np.array([[dtw(r, np.ascontiguousarray(f[::-1])) for f in found] for r in reference])
    cost = np.minimum(forward, backward)
    weight = np.array([len(r) for r in reference], float)
    rows, columns = linear_sum_assignment(cost * weight[:, None])
    paid, length = float((cost[rows, columns] * weight[rows]).sum()), float(weight[rows].sum())
    for i in set(range(len(reference))) - set(rows.tolist()):
        paid, length = paid + cost[i].min() * weight[i], length + weight[i]
    for j in set(range(len(found))) - set(columns.tolist()):
        paid, length = paid + cost[:, j].min() * len(found[j]), length + len(found[j])
    long = weight[rows] > 5
    right = forward[rows, columns][long] <= backward[rows, columns][long]
    return paid / length, float(right.mean()) if len(right) else float("nan")


def score(reference: list[np.ndarray], found: list[np.ndarray]) -> Row:
    """All figures of one word; both inks in pixels."""
    points = np.concatenate(reference)
    low = points.min(0)
    scale = 1 / max((points.max(0) - low).max(), 1e-6)
    r = [resample((s - low) * scale, STEP) for s in reference]
    f = [resample((s - low) * scale, STEP) for s in found] or [np.ones((1, 2))]
    a, b = np.concatenate(r), np.concatenate(f)
    tolerant, direction = tolerant_dtw(r, f)
    return {
        "dtw": dtw(a, b),
        "chamfer": (mean_nearest(a, b) + mean_nearest(b, a)) / 2,
        "tolerant_dtw": tolerant,
        "penup_error": abs(len(found) - len(reference)),
        "penup_surplus": len(found) - len(reference),
        "start": float(np.hypot(*(a[0] - b[0])) < START_TOLERANCE),
        "direction": direction,
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
