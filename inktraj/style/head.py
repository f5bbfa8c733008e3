"""Embeddings of known writers → calibrated probabilities of writers.

A writer is a normal distribution about his mean embedding, and all writers share one covariance (linear discriminant
analysis), with equal prior probabilities. That has a closed form, needs no random numbers, and works for two writers as
for hundreds. The covariance is shrunk to a sphere as far as the number of words asks for (oracle approximating
shrinkage; Chen, Wiesel, Eldar, Hero 2010).

A distribution so fitted is too sure of itself; one temperature, fitted on held-out words, makes its probabilities those
with which it is right (Guo, Pleiss, Sun, Weinberger 2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

BINS = 15
_COLDEST, _HOTTEST = 1e-2, 1e3


@dataclass(frozen=True, slots=True)
class Head:
    """A linear map to the writers' logits: ``embeddings @ weight.T + bias``.

    Parameters
    ----------
    weight, bias
        ``(writers, d)`` and ``(writers,)``.
    centroids
        The writers' mean embeddings, of length 1, ``(writers, d)``.
    """

    weight: F64
    bias: F64
    centroids: F64

    def logits(self, embeddings: F32) -> F64:
        """Logits of every writer for embeddings ``(n, d)``: ``(n, writers)``."""
        return np.asarray(embeddings @ self.weight.T + self.bias)

    def cooled(self, temperature: float) -> Head:
        """The head whose logits are divided by the temperature."""
        return Head(self.weight / temperature, self.bias / temperature, self.centroids)


def fit_head(embeddings: F32, labels: I64, writers: int) -> Head:
    """Fit the writers' distributions.

    Parameters
    ----------
    embeddings
        ``(n, d)``.
    labels
        ``(n,)``, the writer of each, 0 … ``writers`` − 1; each writer has one at least.
    """
    x = embeddings.astype(np.float64)
    means = np.stack([x[labels == k].mean(axis=0) for k in range(writers)])
    covariance = _shrunk((x - means[labels]), len(x) - writers)
    weight = np.linalg.solve(covariance, means.T).T
    norms = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return Head(weight, -0.5 * (weight * means).sum(axis=1), means / norms)


def _shrunk(residuals: F64, freedom: int) -> F64:
    """Covariance of residuals ``(n, d)`` with so many degrees of freedom, shrunk to a sphere."""
    d = residuals.shape[1]
    sample = residuals.T @ residuals / max(freedom, 1)
    size, square = float(np.trace(sample)), float((sample**2).sum())
    if size < 1e-12:  # one word a writer, or the same again and again
        return np.eye(d)
    above = (1 - 2 / d) * square + size**2
    below = (max(freedom, 1) + 1 - 2 / d) * (square - size**2 / d)
    share = 1.0 if below <= 0 else min(1.0, above / below)
    # Some of the sphere always stays, so that directions in which nothing was seen to vary do not decide everything.
    share = max(share, 1e-3)
    return np.asarray((1 - share) * sample + share * size / d * np.eye(d))


def log_softmax(logits: F64) -> F64:
    """Log-probabilities ``(n, writers)``."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def fit_temperature(logits: F64, labels: I64) -> float:
    """Return by what to divide the logits so that the labels become most probable; 1 where there are none.

    The mean log-probability has one maximum over the inverse temperature; it is found by golden section.
    """
    if not len(labels):
        return 1.0
    rows = np.arange(len(labels))

    def loss(log_temperature: float) -> float:
        return -float(log_softmax(logits / np.exp(log_temperature))[rows, labels].mean())

    ratio = (np.sqrt(5) - 1) / 2
    low, high = np.log(_COLDEST), np.log(_HOTTEST)
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = loss(a), loss(b)
    while high - low > 1e-4:
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = loss(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = loss(b)
    return float(np.exp((low + high) / 2))


def calibration_error(probabilities: F64, labels: I64) -> float:
    """Expected calibration error of the most probable writer: `BINS` equal bins of confidence, weighted by size.

    Parameters
    ----------
    probabilities
        ``(n, writers)``, n ≥ 1.
    labels
        ``(n,)``.
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    gap = np.bincount(place, right - confidence, BINS)
    return float(np.abs(gap).sum() / len(labels))
