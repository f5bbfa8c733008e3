"""Which pieces of ink the policy draws together, and which way they face while it does.

The policy learned words that run from left to right. Ink of another direction is turned for it: mirrored, where writing
runs from right to left; block by block, where it runs down a column. More ink than a word has is drawn in groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inktraj.recovery.features import Lines

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

Direction = Literal["ltr", "rtl", "ttb"]

LARGEST = 160  # edges that are drawn together, if the ink can be divided
LIE_DOWN = 2.5  # times higher than wide: a block that is itself a column of joined writing
UPRIGHT, MIRRORED = np.eye(2), np.diag([-1.0, 1.0])
LYING = np.array([[0.0, -1.0], [1.0, 0.0]])  # the top becomes the left


@dataclass(frozen=True, slots=True)
class Part:
    """Some edges of a graph as a graph of their own.

    Parameters
    ----------
    edges
        Their numbers in the whole graph.
    lines
        The graph as the policy sees it.
    """

    edges: I64
    lines: Lines

    def in_whole(self, half_edges: I64) -> I64:
        """Half-edges of the part as half-edges of the whole graph."""
        return np.asarray(2 * self.edges[half_edges // 2] + half_edges % 2, np.int64)


def _subgraph(lines: Lines, edges: I64) -> Lines:
    used, ends = np.unique(lines.ends[edges], return_inverse=True)
    sizes = lines.start[edges + 1] - lines.start[edges]
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    at = np.repeat(lines.start[edges] - start[:-1], sizes) + np.arange(start[-1])
    return Lines(
        np.ascontiguousarray(lines.nodes[used]),
        lines.radius[used],
        ends.reshape(-1, 2).astype(np.int64),
        start,
        np.ascontiguousarray(lines.points[at]),
        lines.thickness[at],
        lines.dot[edges],
        lines.pen,
    )


def _placed(lines: Lines, turn: F64, unit: float) -> Lines:
    """Turn a graph, make `unit` its new unit of length, and put its upper left corner at (0, 0)."""
    points, nodes = lines.points @ turn / unit, lines.nodes @ turn / unit
    low = points.min(0)
    return lines._replace(points=points - low, nodes=nodes - low, radius=lines.radius / unit, pen=lines.pen / unit)


def _boxes(lines: Lines, component: I64) -> F64:
    """x0, x1, y0, y1 of each component."""
    owner = np.repeat(component, np.diff(lines.start))
    out = np.empty((int(component.max()) + 1, 4))
    for k, (axis, pick, empty) in enumerate([(0, np.minimum, np.inf), (0, np.maximum, -np.inf),
                                             (1, np.minimum, np.inf), (1, np.maximum, -np.inf)]):  # fmt: skip
        out[:, k] = empty
        pick.at(out[:, k], owner, lines.points[:, axis])
    return out


def _blocks(low: F64, high: F64) -> list[I64]:
    """Components that overlap along an axis, in ascending order."""
    order = np.argsort(low, kind="stable")
    reach = np.maximum.accumulate(high[order])
    return [np.asarray(b) for b in np.split(order, np.flatnonzero(low[order][1:] > reach[:-1]) + 1)]


def _groups(sizes: I64, middle: F64) -> list[I64]:
    """Places in the arrays from left to right, as many components together as `LARGEST` edges allow."""
    order = np.argsort(middle, kind="stable")
    group = np.zeros(len(order), np.int64)
    filled, n = 0, 0
    for k, c in enumerate(order):
        if filled and filled + sizes[c] > LARGEST:
            filled, n = 0, n + 1
        filled += int(sizes[c])
        group[k] = n
    return [np.asarray(g) for g in np.split(order, np.flatnonzero(np.diff(group)) + 1)]


def _facings(box: F64, direction: Direction, pen: float) -> list[tuple[I64, F64, float]]:
    """Blocks of components in the order of writing, with the turn ``(2, 2)`` of each and its unit of length."""
    if direction != "ttb":
        return [(np.arange(len(box)), MIRRORED if direction == "rtl" else UPRIGHT, 1.0)]
    out = []
    for block in _blocks(box[:, 2], box[:, 3]):
        width = float(box[block, 1].max() - box[block, 0].min()) + pen  # of the ink, as a word's height is
        height = float(box[block, 3].max() - box[block, 2].min()) + pen
        lying = height > LIE_DOWN * max(width, 6 * pen)
        out.append((block, LYING if lying else UPRIGHT, max(width if lying else height, 6 * pen)))
    return out


def divide(lines: Lines, component: I64, direction: Direction) -> list[Part]:
    """Divide a graph into the parts which the policy draws one after the other.

    Parameters
    ----------
    lines, component
        The graph, and ``(e,)`` the component of each edge.
    direction
        ``"ltr"``, ``"rtl"`` or ``"ttb"``: the way the writing runs.
    """
    box = _boxes(lines, component)
    sizes = np.bincount(component)
    centre = np.stack([box[:, 0] + box[:, 1], box[:, 2] + box[:, 3]], 1) / 2
    out = []
    for block, turn, unit in _facings(box, direction, lines.pen):
        for group in _groups(sizes[block], (centre[block] @ turn)[:, 0]):
            edges = np.flatnonzero(np.isin(component, block[group]))
            out.append(Part(edges, _placed(_subgraph(lines, edges), turn, unit)))
    return out
