"""The geometric recoverer: the pen's way is read from the ink's skeleton, with rules and no learning."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from inktraj.ink import Frame, Ink
from inktraj.page import WordCrop
from inktraj.recovery import Candidate
from inktraj.recovery.graph import skeleton_graph
from inktraj.recovery.smooth import build_strokes
from inktraj.recovery.traversal import Costs, traverse

BoolArray = NDArray[np.bool_]
F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]

FINE_HEIGHT = 144  # thin ink is enlarged towards this height before thinning …
FINE_PEN = 9.0  # … or until the pen is so wide, whichever comes first
LARGEST_AREA = 4_000_000  # pixels looked at; larger crops are shrunk


@dataclass(frozen=True, slots=True)
class _Piece:
    """One stroke with what decides its place in the order; all in the crop's pixels."""

    points: F64
    widths: F64
    component: int


def _specks(mask: BoolArray, pen: float) -> tuple[BoolArray, list[_Piece]]:
    """Take round specks out of the ink; each becomes a stroke of one point."""
    count, labels, stats, centres = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    extent = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT])
    area = stats[:, cv2.CC_STAT_AREA]
    round_ = (extent <= max(2.0, 1.7 * pen)) & (area >= 0.5 * extent**2)
    round_ |= extent <= 2
    round_[0] = False
    if not round_.any():
        return mask, []
    dots = [
        _Piece(centres[i][None], np.array([2 * np.sqrt(area[i] / np.pi)]), -int(i)) for i in np.flatnonzero(round_)
    ]
    return mask & ~round_[labels], dots


def _pen_width(mask: BoolArray) -> float:
    """A first guess of the pen's width in pixels: area over half the rim."""
    ink = mask.astype(np.uint8)
    inner = cv2.erode(ink, np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.uint8), borderValue=0)
    area = int(ink.sum())
    return 2.0 * area / max(area - int(inner.sum()), 1)


def _enlarged(mask: BoolArray, factor: float) -> U8:
    """Resize a mask with smooth outlines and a margin of one empty pixel."""
    height, width = mask.shape
    size = (max(round(width * factor), 1), max(round(height * factor), 1))
    soft = mask.astype(np.float32)
    if factor > 1:
        soft = cv2.GaussianBlur(cv2.copyMakeBorder(soft, 2, 2, 2, 2, cv2.BORDER_CONSTANT, value=0), (0, 0), 0.6)[2:-2, 2:-2]
    soft = cv2.resize(soft, size, interpolation=cv2.INTER_CUBIC if factor > 1 else cv2.INTER_AREA)
    level = 0.47 if factor > 1 else 0.4
    return np.pad((soft > level).astype(np.uint8), 1)


def _without_pinholes(ink: U8, largest: float) -> U8:
    count, labels, stats, _ = cv2.connectedComponentsWithStats(1 - ink, connectivity=4)
    small = stats[:, cv2.CC_STAT_AREA] <= largest
    small[0] = False
    return ink | small[labels].astype(np.uint8) if small.any() else ink


def _delayed(piece: _Piece, height: float, pen: float, body: list[_Piece]) -> bool:
    return False


class Tracer:
    """Recovers strokes from the ink's skeleton; see docs/recovery.md for what it can and cannot do.

    Parameters
    ----------
    step
        Arc length between the points of a stroke in pixels; None: half the pen's width, 1–3 px.
    beam
        Hypotheses kept while the pen's way is searched.
    costs
        What the pen's moves cost.
    """

    name = "tracer"
    version = "1"

    def __init__(self, *, step: float | None = None, beam: int = 16, costs: Costs | None = None) -> None:
        self.step = step
        self.beam = beam
        self.costs = costs or Costs()

    def __call__(self, crop: WordCrop, *, text: str | None = None, n_best: int = 1) -> list[Candidate]:
        """Return one candidate; `text` is not used. See `inktraj.recovery.Recoverer`."""
        strokes, widths = self._trace(crop.mask)
        return [Candidate(Ink(tuple(strokes), crop.frame, tuple(widths)))]

    def _trace(self, mask: BoolArray) -> tuple[list[F64], list[F64]]:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        if not len(rows):
            return [], []
        corner = np.array([columns[0], rows[0]], float)
        ink = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        height = float(ink.shape[0])
        pen = _pen_width(ink)
        lines, pieces = _specks(ink, pen)
        if lines.any():
            pieces = self._lines(lines, pen, height) + pieces
        pieces = _ordered(pieces, max(height, 6 * pen), pen)
        return [p.points + corner for p in pieces], [p.widths for p in pieces]

    def _lines(self, ink: BoolArray, pen: float, height: float) -> list[_Piece]:
        factor = float(np.clip(min(FINE_HEIGHT / height, FINE_PEN / pen), 0.1, 3.0))
        factor = min(factor, float(np.sqrt(LARGEST_AREA / ink.size)))
        fine = _enlarged(ink, factor)
        fine = _without_pinholes(fine, 0.1 * (pen * factor) ** 2)
        scale = np.array([(fine.shape[1] - 2) / ink.shape[1], (fine.shape[0] - 2) / ink.shape[0]])
        distance = np.asarray(cv2.distanceTransform(fine, cv2.DIST_L2, cv2.DIST_MASK_5), np.float32)
        graph = skeleton_graph(fine, distance)
        k = float(scale.mean())
        width = max(2 * float(np.median(graph.radius)), 1.0) if len(graph.radius) else pen * k
        path, offsets, component = traverse(
            graph, pen=pen * k, height=max(height * k, 6 * pen * k), beam=self.beam, costs=self.costs
        )
        step = self.step or float(np.clip(pen / 2, 1, 3))
        points, marks, widths = build_strokes(graph, distance, path, offsets, pen=pen * k, step=step * k)
        points = (points - 1 + 0.5) / scale - 0.5
        widths = widths / k
        pieces = [
            _Piece(points[a:b], widths[a:b], int(c))
            for a, b, c in zip(marks[:-1], marks[1:], component, strict=True)
        ]
        lone = np.flatnonzero(graph.degree() == 0)
        pieces += [
            _Piece((graph.nodes[v][None] - 0.5) / scale - 0.5, np.array([2 * graph.radius[v] / k]), -1_000_000 - int(v))
            for v in lone
        ]
        return pieces


def _ordered(pieces: list[_Piece], height: float, pen: float) -> list[_Piece]:
    left: dict[int, float] = {}
    for p in pieces:
        x = float(p.points[:, 0].min())
        left[p.component] = min(left.get(p.component, np.inf), x)
    return sorted(pieces, key=lambda p: left[p.component])
