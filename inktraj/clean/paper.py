"""The paper: its level at each pixel, and how much darker everything on it is."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
BoolArray = NDArray[np.bool_]

MIN_CONTRAST = 0.045
"""Contrast against the paper (0 none, 1 black) below which nothing is ink."""
CLOSING_SHARE = 0.03
"""Width of the closing that finds the paper, as a share of the page's longer side."""
CLOSING_LEAST = 31
"""The same in pixels, at the least: wider than any stroke, also on a picture of one word."""
BLACK = 16
"""A page whose paper is darker than this grey level shows nothing: a covered lens, a blank black scan."""
OUTSIDE_SHARE = 0.35
"""What stays darker than this share of the paper is not paper: a scanner's border, the desk. Shadows are lighter."""


def disc(side: int) -> U8:
    """Return a round structuring element, `side` pixels across (odd)."""
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)), dtype=np.uint8)


def upright_gray(pixels: U8) -> U8:
    """Return the page in grey, dark on light.

    Of RGB that mixture of the channels is taken in which this page's ink stands out the most from its paper's
    texture: Fisher's linear discriminant between dark pixels and paper. Brown ink shows best in blue, blue in red.

    Parameters
    ----------
    pixels
        ``(h, w, 3)`` RGB or ``(h, w)`` uint8.
    """
    small, scale = _small(pixels)
    if _light_on_dark(
        small if small.ndim == 2 else np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.uint8), scale
    ):
        pixels, small = 255 - pixels, 255 - small
    if pixels.ndim == 2:
        return pixels
    contrast = (1 - small / np.maximum(_paper(small, scale), 1)).reshape(-1, 3)
    mean = contrast.mean(axis=1)
    ink = mean > max(0.5 * float(np.percentile(mean, 98)), MIN_CONTRAST)
    paper = np.abs(mean) < MIN_CONTRAST
    weights = np.array([0.299, 0.587, 0.114])
    if ink.sum() > 50 and paper.sum() > 50:
        spread = np.cov(contrast[paper].T) + 1e-4 * np.eye(3)
        best = np.maximum(np.linalg.solve(spread, contrast[ink].mean(axis=0)), 0)
        weights = best / best.sum() if best.sum() > 0 else weights
    gray = cv2.transform(pixels, weights[None].astype(np.float32))
    return np.asarray(gray, dtype=np.uint8).reshape(pixels.shape[:2])


def contrast_to_paper(gray: U8) -> F32:
    """Return ``(h, w)`` contrast against the paper in 0–1; 0 also where there is no paper."""
    h, w = gray.shape
    small, scale = _small(gray)
    closed = _paper(small, scale)
    paper = float(np.percentile(closed, 75))
    if paper < BLACK:
        return np.zeros((h, w), dtype=np.float32)
    count, labels = cv2.connectedComponents((closed < OUTSIDE_SHARE * paper).astype(np.uint8), connectivity=8)
    outside = at_edge(np.asarray(labels, dtype=np.int32), count)[labels]
    level = np.where(outside, paper, closed).astype(np.float32)
    # Never lighter than what was found: beside a sheet's edge the blur would turn the desk into ink.
    level = np.minimum(cv2.GaussianBlur(level, (0, 0), _closing_side(small, scale) / 3), level)
    level = np.maximum(cv2.resize(level, (w, h), interpolation=cv2.INTER_LINEAR), 1)
    contrast = (1 - gray / level).astype(np.float32)
    np.clip(contrast, 0, 1, out=contrast)
    grown = cv2.dilate(outside.astype(np.uint8), np.ones((5, 5), np.uint8))
    contrast[cv2.resize(grown, (w, h), interpolation=cv2.INTER_NEAREST) > 0] = 0
    return contrast


def at_edge(labels: NDArray[np.int32], count: int) -> BoolArray:
    """Return for each of `count` labels whether it touches the image's edge; the label 0 never does."""
    touching = np.zeros(count, dtype=bool)
    for edge in (labels[0], labels[-1], labels[:, 0], labels[:, -1]):
        touching[edge] = True
    touching[0] = False
    return touching


def _small(pixels: U8) -> tuple[U8, float]:
    """Shrink to at most 1000 px; paper has no finer features."""
    h, w = pixels.shape[:2]
    scale = min(1.0, 1000 / max(h, w))
    size = max(1, round(w * scale)), max(1, round(h * scale))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8), scale


def _closing_side(small: U8, scale: float) -> int:
    return int(max(5.0, CLOSING_SHARE * max(small.shape[:2]), CLOSING_LEAST * scale)) | 1


def _paper(small: U8, scale: float) -> U8:
    """Return the level of the paper at each pixel of a shrunk page: a closing wider than any stroke."""
    # A median first: the closing takes the brightest pixel in reach, which must not be a speck of noise.
    level = cv2.medianBlur(small, 3) if min(small.shape[:2]) > 3 else small
    return np.asarray(cv2.morphologyEx(level, cv2.MORPH_CLOSE, disc(_closing_side(small, scale))), dtype=np.uint8)


def _light_on_dark(small: U8, scale: float) -> bool:
    """Tell chalk on a board: nothing broad is light, but something thin is."""
    broad = cv2.morphologyEx(small, cv2.MORPH_OPEN, disc(_closing_side(small, scale)))
    lightest = float(np.percentile(broad, 99))
    return lightest < 110 and float(np.percentile(small, 99)) > lightest + 60
