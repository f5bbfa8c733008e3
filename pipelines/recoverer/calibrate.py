"""Confidence: how probable it is that a way is right, learned on words of held-out writers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inktraj.recovery.features import make_net
from inktraj.recovery.guide import scorers
from inktraj.recovery.policy import Way, find_ways
from inktraj.recovery.scribe import EFFORT
from inktraj.recovery.weights import COMPARED, chances, confidence_inputs
from recoverer.learn import guide_of
from recoverer.network import Network
from recoverer.outcome import outcome_of
from recoverer.samples import Sample

RIGHT = 0.003  # DTW in the reference's box: a way is right that is no further from the recording than the recording's
# own way over the graph, and so much; what the graph itself loses is no fault of the choice among ways


def _observe(networks: Sequence[Network], samples: Sequence[Sample]) -> tuple[np.ndarray, np.ndarray]:
    """Inputs ``(n, 5)`` of the best ways, and whether they are right."""
    guides = [guide_of(n) for n in networks]
    inputs, right = [], []
    for sample in samples:
        lines = sample.lines
        net = make_net(lines)
        go, start = scorers(guides, lines, net)
        effort = EFFORT["best"]
        ways = find_ways(net, go, start, width=effort.beam, n_starts=effort.starts, n_best=COMPARED)
        best = ways[0]
        inputs.append(confidence_inputs(best.score, chances(ways)[0], len(best.path), len(best.marks) - 1))
        dtw, *_ = outcome_of(sample, best)
        least, *_ = outcome_of(sample, Way(sample.path, sample.marks, 0.0))
        right.append(dtw <= least + RIGHT)
    return np.array(inputs, np.float64), np.array(right, np.float64)


def _fit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logistic regression with a little shrinkage, by Newton's method."""
    w = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + 0.1 * np.eye(len(w))
        step = np.linalg.solve(hessian, x.T @ (y - p) - 0.1 * w)
        w += step
        if np.abs(step).max() < 1e-8:
            break
    return w


def calibrate(networks: Sequence[Network], samples: Sequence[Sample]) -> tuple[np.ndarray, dict[str, float]]:
    """Fit on one half of the words and judge on the other.

    Returns
    -------
    coefficients
        For `inktraj.recovery.weights.confidence_inputs`, fitted on all.
    figures
        Brier score of the half that was not fitted, that of always saying the mean, and the expected calibration error
        over ten bins.
    """
    x, y = _observe(networks, samples)
    fitted, judged = slice(0, None, 2), slice(1, None, 2)
    p = 1 / (1 + np.exp(-x[judged] @ _fit(x[fitted], y[fitted])))
    bins = np.minimum((10 * p).astype(int), 9)
    gaps = [abs(p[bins == b].sum() - y[judged][bins == b].sum()) for b in range(10)]
    figures = {
        "brier": float(((p - y[judged]) ** 2).mean()),
        "brier_of_the_mean": float(y[judged].mean() * (1 - y[judged].mean())),
        "calibration_error": float(sum(gaps) / len(p)),
    }
    return _fit(x, y), figures
