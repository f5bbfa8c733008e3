"""The geometric recoverer: the pen's way is read from the ink's skeleton, with rules and no learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import cv2
import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.page import WordCrop
from inktraj.recovery import Candidate
from inktraj.recovery.graph import F32, SkeletonGraph, skeleton_graph
from inktraj.recovery.order import Marks, writing_order
from inktraj.recovery.smooth import build_strokes
from inktraj.recovery.traversal import Costs, traverse

BoolArray = NDArray[np.bool_]
F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]

FINE_HEIGHT = 144  # ink is brought to this height before thinning …
FINE_PEN = (4.0, 9.0)  # … but the pen to such a width
LARGEST_AREA = 2_000_000  # pixels looked at; larger crops are shrunk
MOST_EDGES = 20_000  # a finer skeleton is texture, no writing: it is looked at more coarsely
MOST_SPECKS = 20_000  # the largest are kept; a page has not so many dots


@dataclass(frozen=True, slots=True)
class _Piece:
    """One stroke with what decides its place in the order; all in the crop's pixels."""

    points: F64
    widths: F64
    component: int


def _specks(mask: BoolArray, pen: float) -> tuple[BoolArray, list[_Piece]]:
    """Take round specks out of the ink; each becomes a stroke of one point."""
    _, labels, stats, centres = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    extent = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT])
    area = stats[:, cv2.CC_STAT_AREA]
    round_ = (extent <= max(2.0, 1.7 * pen)) & (area >= 0.5 * extent**2)
    round_ |= extent <= 2
    round_[0] = False
    if not round_.any():
        return mask, []
    specks = np.flatnonzero(round_)
    specks = np.sort(specks[np.argsort(-area[specks], kind="stable")[:MOST_SPECKS]])
    dots = [_Piece(centres[i][None], np.array([2 * np.sqrt(area[i] / np.pi)]), -int(i)) for i in specks]
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
    soft: NDArray[Any] = mask.astype(np.float32)
    if factor > 1:
        soft = cv2.GaussianBlur(cv2.copyMakeBorder(soft, 2, 2, 2, 2, cv2.BORDER_CONSTANT, value=0), (0, 0), 0.6)[
            2:-2, 2:-2
        ]
    soft = cv2.resize(soft, size, interpolation=cv2.INTER_CUBIC if factor > 1 else cv2.INTER_AREA)
    level = 0.47 if factor > 1 else 0.4
    region = soft > level
    if not region.any():  # lines far thinner than a pixel of the smaller picture
        region = soft > 0
    return np.pad(region.astype(np.uint8), 1)


def _without_pinholes(ink: U8, largest: float) -> U8:
    _, labels, stats, _ = cv2.connectedComponentsWithStats(1 - ink, connectivity=4)
    small = stats[:, cv2.CC_STAT_AREA] <= largest
    small[0] = False
    return ink | small[labels].astype(np.uint8) if small.any() else ink


def _graph(ink: BoolArray, factor: float, pen: float) -> tuple[SkeletonGraph, F32, F64]:
    """The skeleton graph of the resized ink, its distance map, and the true scale along x and y."""
    fine = _enlarged(ink, factor)
    scale = np.array([(fine.shape[1] - 2) / ink.shape[1], (fine.shape[0] - 2) / ink.shape[0]])
    fine = _without_pinholes(fine, 0.1 * pen**2 * float(scale.prod()))
    distance = np.asarray(cv2.distanceTransform(fine, cv2.DIST_L2, cv2.DIST_MASK_5), np.float32)
    return skeleton_graph(fine, distance), distance, scale


class Tracer:
    """Recovers strokes from the ink's skeleton; docs/recovery.md says what it can and cannot do.

    Parameters
    ----------
    step
        Arc length between the points of a stroke in pixels; None: half the pen's width, but 1–3 px.
    marks
        Where dots and bars go: ``"word"``, after the whole word's body; ``"run"``, each after the run of joined ink
        that it belongs to.
    beam
        Hypotheses kept while the pen's way is searched.
    costs
        What the pen's moves cost.

    Raises
    ------
    DataError
        `step` or `beam` is not positive, or `marks` is another word.
    """

    name = "tracer"
    version = "1"

    def __init__(
        self, *, step: float | None = None, marks: Marks = "word", beam: int = 12, costs: Costs | None = None
    ) -> None:
        if step is not None and not step > 0:
            raise DataError(f"step is the arc length between points in pixels, above 0, not {step!r}")
        if beam < 1:
            raise DataError(f"beam is how many hypotheses are kept, at least 1, not {beam!r}")
        if marks not in get_args(Marks):
            raise DataError(f"marks is one of {get_args(Marks)}, not {marks!r}")
        self.step = step
        self.marks: Marks = marks
        self.beam = beam
        self.costs = costs or Costs()

    def __call__(self, crop: WordCrop, *, text: str | None = None, n_best: int = 1) -> list[Candidate]:
        """Return one candidate; `text` is not used. See `inktraj.recovery.Recoverer`."""
        mask = crop.mask
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        if not len(rows):
            return [Candidate(Ink((), crop.frame, ()))]
        corner = np.array([columns[0], rows[0]], float)
        pieces = self._pieces(mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
        strokes = tuple(p.points + corner for p in pieces)
        return [Candidate(Ink(strokes, crop.frame, tuple(p.widths for p in pieces)))]

    def _pieces(self, ink: BoolArray) -> list[_Piece]:
        """The strokes of an ink region cut to its bounding box, in writing order."""
        pen = _pen_width(ink)
        height = max(float(ink.shape[0]), 6 * pen)
        lines, pieces = _specks(ink, pen)
        if lines.any():
            pieces = self._lines(lines, pen, height) + pieces
        order = writing_order([p.points for p in pieces], [p.component for p in pieces], height, pen, self.marks)
        return [pieces[i] for i in order]

    def _lines(self, ink: BoolArray, pen: float, height: float) -> list[_Piece]:
        """The strokes of what is no speck, component by component."""
        factor = float(np.clip(FINE_HEIGHT / ink.shape[0], FINE_PEN[0] / pen, FINE_PEN[1] / pen))
        factor = min(factor, 3.0, float(np.sqrt(LARGEST_AREA / ink.size)))
        graph, distance, scale = _graph(ink, factor, pen)
        while len(graph.ends) > MOST_EDGES:
            factor /= 2
            graph, distance, scale = _graph(ink, factor, pen)
        k = float(np.sqrt(scale.prod()))
        path, offsets, component = traverse(graph, pen=pen * k, height=height * k, beam=self.beam, costs=self.costs)
        step = self.step or float(np.clip(pen / 2, 1, 3))
        points, marks, widths = build_strokes(graph, distance, path, offsets, pen=pen * k, step=step * k)
        points, widths = (points - 0.5) / scale - 0.5, widths / k
        strokes = [
            _Piece(points[a:b], widths[a:b], int(c)) for a, b, c in zip(marks[:-1], marks[1:], component, strict=True)
        ]
        lone = np.flatnonzero(graph.degree() == 0)
        places = (graph.nodes[lone] - 0.5) / scale - 0.5
        strokes += [
            _Piece(at[None], np.array([2 * graph.radius[v] / k]), len(graph.ends) + int(v))
            for v, at in zip(lone, places, strict=True)
        ]
        return strokes
