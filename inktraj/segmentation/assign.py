"""Ink → lines: every ink pixel that belongs to a line gets that line's number."""

from __future__ import annotations

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.segmentation.lines import FloatArray, Track

I32 = NDArray[np.int32]
BoolArray = NDArray[np.bool_]

BAND = 0.2
"""Half height of the band around a line's centre in which ink surely is the line's, in multiples of its height."""
REACH = 1.25
"""How far from a line's centre its ink may lie, in multiples of its height: capitals, long descenders."""


def assign(ink: BoolArray, tracks: list[Track]) -> I32:
    """Number the ink by line.

    Labels start in each line's central band and grow along the ink, all lines at one pace: a stroke that two
    lines share is divided where the ways from both are equally long, and nothing that does not touch it changes.
    Ink that touches no band (dots, accents, commas) goes to the line whose ink is nearest.

    Parameters
    ----------
    ink
        ``(h, w)`` bool.
    tracks
        The page's lines.

    Returns
    -------
    labels
        ``(h, w)`` int32: number of the line, −1 for paper and for ink of no line.
    """
    labels = np.full(ink.shape, -1, dtype=np.int32)
    reach = np.zeros(ink.shape, dtype=np.uint8)
    for number, track in enumerate(tracks):
        cv2.fillPoly(labels, [_band(track, BAND)], number)
        cv2.fillPoly(reach, [_band(track, REACH, 0.6)], 1)
    labels[~ink] = -1
    within = ink & (reach > 0)
    _grow(within.view(np.uint8), labels)
    orphans = within & (labels < 0)
    _drop_far(labels, tracks)
    _adopt(orphans, labels, np.array([t.height for t in tracks]))
    return labels


def _band(track: Track, half: float, beyond: float = 0.3) -> I32:
    """Return the polygon of a line's band: `half` heights to either side, `beyond` heights past the ends."""
    u = np.linspace(-beyond * track.height, track.length + beyond * track.height, 33)
    v = half * track.height
    upper = track.page(np.column_stack([u, np.full_like(u, -v)]))
    lower = track.page(np.column_stack([u[::-1], np.full_like(u, v)]))
    return np.round(np.concatenate([upper, lower])).astype(np.int32)


@njit(cache=True)
def _grow(ink: NDArray[np.uint8], labels: I32) -> None:
    """Spread the labels ≥ 0 over connected ink, breadth first, in place."""
    h, w = ink.shape
    total = 0
    for y in range(h):
        for x in range(w):
            if ink[y, x]:
                total += 1
    queue = np.empty(total + 1, dtype=np.int64)
    tail = 0
    for y in range(h):
        for x in range(w):
            if labels[y, x] >= 0 and ink[y, x]:
                queue[tail] = y * w + x
                tail += 1
    head = 0
    while head < tail:
        y = queue[head] // w
        x = queue[head] - y * w
        head += 1
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                b, a = y + dy, x + dx
                if 0 <= b < h and 0 <= a < w and ink[b, a] and labels[b, a] < 0:
                    labels[b, a] = labels[y, x]
                    queue[tail] = b * w + a
                    tail += 1


def _drop_far(labels: I32, tracks: list[Track]) -> None:
    """Take from each line the ink beyond its reach: drawings and frames that touch its letters."""
    ys, xs = np.nonzero(labels >= 0)
    owner = labels[ys, xs]
    order = np.argsort(owner, kind="stable")
    ys, xs, owner = ys[order], xs[order], owner[order]
    edges = np.searchsorted(owner, np.arange(len(tracks) + 1))
    for number, track in enumerate(tracks):
        part = slice(edges[number], edges[number + 1])
        local = track.local(np.column_stack([xs[part], ys[part]]).astype(np.float64))
        far = (np.abs(local[:, 1]) > REACH * track.height) | (local[:, 0] < -0.7 * track.height)
        far |= local[:, 0] > track.length + 0.7 * track.height
        labels[ys[part][far], xs[part][far]] = -1


def _adopt(orphans: BoolArray, labels: I32, heights: FloatArray) -> None:
    """Give each component of unlabelled ink to the line whose ink is nearest, within half a line's height."""
    if not (labels >= 0).any() or not orphans.any():
        return
    free = (labels < 0).astype(np.uint8)
    distance, nearest = cv2.distanceTransformWithLabels(free, cv2.DIST_L2, 3, labelType=cv2.DIST_LABEL_PIXEL)
    owner_of = np.full(int(nearest.max()) + 1, -1, dtype=np.int32)
    owned = labels >= 0
    owner_of[nearest[owned]] = labels[owned]
    count, parts = cv2.connectedComponents(orphans.astype(np.uint8), connectivity=8)
    ys, xs = np.nonzero(orphans)
    part = np.asarray(parts, dtype=np.int32)[ys, xs]
    far = np.asarray(distance, dtype=np.float64)[ys, xs]
    first = np.full(count, np.inf, dtype=np.float64)
    np.minimum.at(first, part, far)
    owner = np.full(count, -1, dtype=np.int32)
    closest = far <= first[part] + 1e-6
    owner[part[closest]] = owner_of[nearest[ys[closest], xs[closest]]]
    near = (owner >= 0) & (first <= 0.5 * heights[np.maximum(owner, 0)])
    labels[ys, xs] = np.where(near[part], owner[part], -1)
