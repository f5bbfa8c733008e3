"""More nodes: edges are cut at sharp corners and at the tops of arches, where pens are set down and lifted too.

A loop that closes on its own start leaves no junction: the start of an a, a D or a P lies within an edge. Cut there, a
stroke can begin or end at the bend; going on over such a node is going straight on.
"""

from __future__ import annotations

import itertools

import numpy as np
from numba import njit

from inktraj.recovery.graph import SkeletonGraph

ARM = 1.5  # pens from a point to where its direction is measured, on both sides
CORNER = 0.8  # radians: less is no corner
RISE = 0.06  # heights by which an arch goes down on both sides of its top within `REACH`
REACH = 0.2  # heights
APART = 1.2  # pens between two nodes


@njit(cache=True, nogil=True)
def _cuts(start, points, pen, height, out):  # type: ignore[no-untyped-def]
    """Indices into `points` at which to cut, in ascending order; returns how many."""
    n_cuts = 0
    for i in range(len(start) - 1):
        a, b = start[i], start[i + 1]
        n = b - a
        if n < 5:
            continue
        along = np.zeros(n)
        for k in range(1, n):
            p = a + k
            along[k] = along[k - 1] + np.hypot(points[p, 0] - points[p - 1, 0], points[p, 1] - points[p - 1, 1])
        if along[n - 1] < 2 * APART * pen:
            continue
        bend, top = np.zeros(n), np.zeros(n, np.bool_)
        left, right, far_left, far_right = 0, 0, 0, 0
        for k in range(n):
            while along[k] - along[left] > ARM * pen:
                left += 1
            while right < n - 1 and along[right] - along[k] < ARM * pen:
                right += 1
            ux, uy = points[a + k, 0] - points[a + left, 0], points[a + k, 1] - points[a + left, 1]
            vx, vy = points[a + right, 0] - points[a + k, 0], points[a + right, 1] - points[a + k, 1]
            bend[k] = abs(np.arctan2(ux * vy - uy * vx, ux * vx + uy * vy))
            while along[k] - along[far_left] > REACH * height:
                far_left += 1
            while far_right < n - 1 and along[far_right] - along[k] < REACH * height:
                far_right += 1
            y = points[a + k, 1]
            before = points[a + far_left : a + k + 1, 1]
            after = points[a + k : a + far_right + 1, 1]
            risen = min(before.max(), after.max()) > y + RISE * height
            top[k] = risen and before.min() >= y and after.min() >= y
        # the sharpest corners first, then tops, each at its distance from the others and the ends
        score = bend.copy()
        for k in range(n):
            if bend[k] < CORNER:
                score[k] = 0.01 * (1 + bend[k]) if top[k] else 0.0
        first, gap = n_cuts, APART * pen
        for k in np.argsort(-score, kind="mergesort"):
            if score[k] <= 0:  # no bend, or one beside a sharper bend
                continue
            if along[k] >= gap and along[n - 1] - along[k] >= gap:
                out[n_cuts] = a + k
                n_cuts += 1
            left, right = k, k
            while left >= 0 and along[k] - along[left] < gap:
                score[left] = 0.0
                left -= 1
            while right < n and along[right] - along[k] < gap:
                score[right] = 0.0
                right += 1
        out[first:n_cuts] = np.sort(out[first:n_cuts])
    return n_cuts


def cut_at_bends(graph: SkeletonGraph, pen: float, height: float) -> SkeletonGraph:
    """Cut the edges of a graph at corners and tops.

    Parameters
    ----------
    graph
        The graph; unchanged.
    pen, height
        Pen width and height of the ink, in the graph's pixels.

    Returns
    -------
    SkeletonGraph
        The same paths with more nodes, of degree 2.
    """
    cuts = np.empty(len(graph.points), np.int64)
    cuts = cuts[: _cuts(graph.start, graph.points, float(pen), float(height), cuts)]
    if not len(cuts):
        return graph
    # each cut's point belongs to both of its edges
    order = np.sort(np.concatenate([np.arange(len(graph.points)), cuts]))
    owner = np.searchsorted(graph.start, cuts, side="right") - 1
    extra = np.bincount(owner, minlength=len(graph.ends))
    new_start = np.sort(
        np.concatenate([graph.start + np.concatenate([[0], np.cumsum(extra)]), cuts + 1 + np.arange(len(cuts))])
    )
    node = len(graph.nodes) + np.arange(len(cuts))
    chain: list[tuple[int, int]] = []
    at = 0
    for i, (a, b) in enumerate(graph.ends.tolist()):
        inner = node[at : at + int(extra[i])].tolist()
        at += int(extra[i])
        stops = [a, *inner, b]
        chain += list(itertools.pairwise(stops))
    typical = float(np.median(graph.radius)) if len(graph.radius) else pen / 2
    return SkeletonGraph(
        np.concatenate([graph.nodes, graph.points[cuts]]),
        np.concatenate([graph.radius, np.full(len(cuts), min(typical, pen / 2))]),
        np.array(chain, np.int64),
        new_start.astype(np.int64),
        graph.points[order],
    )
