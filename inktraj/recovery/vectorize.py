"""Ink mask → the graph of pen paths, in a raster of comfortable size: what every recoverer starts from.

Thin lines and small words are enlarged before thinning, so that the skeleton keeps small loops; large ones are shrunk,
so that no crop costs more than `LARGEST_AREA` pixels. Round specks are taken out first: they are dots, not lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from inktraj.recovery.graph import F32, F64, I64, U8, SkeletonGraph, skeleton_graph

BoolArray = NDArray[np.bool_]

FINE_HEIGHT = 144  # ink is brought to this height before thinning …
FINE_PEN = (4.0, 9.0)  # … but the pen to such a width
HAIRLINE = 2.05  # pixels: so thin a line is all rim, and falls apart where its pixels touch by corners only
LARGEST_AREA = 2_000_000  # pixels looked at; larger crops are shrunk
MOST_EDGES = 20_000  # a finer skeleton is texture, no writing: it is looked at more coarsely
MOST_SPECKS = 20_000  # the largest are kept; a page has not so many dots


@dataclass(frozen=True, slots=True, eq=False)
class WordGraph:
    """The graph of a word's pen paths, in the pixels of a resized raster of its ink.

    Parameters
    ----------
    graph
        Lines, and nodes without an edge for blots that thinned to one pixel; of no nodes where all ink is specks.
    distance
        ``(h, w)``, each raster pixel's distance to the nearest paper pixel.
    scale
        ``(2,)`` raster pixels per crop pixel along x and y.
    corner
        ``(2,)`` x, y of the ink's upper left pixel in the crop.
    pen, height
        Pen width, and height of the ink (at least six pens), in raster pixels.
    specks, speck_areas
        ``(n, 2)`` centres of round specks in raster pixels, and their areas in crop pixels.
    """

    graph: SkeletonGraph
    distance: F32
    scale: F64
    corner: F64
    pen: float
    height: float
    specks: F64
    speck_areas: I64

    @property
    def factor(self) -> float:
        """Raster pixels per crop pixel, the mean of both axes."""
        return float(np.sqrt(self.scale.prod()))

    @property
    def origin(self) -> F64:
        """``(2,)`` the upper left corner of lines and dots, in raster pixels."""
        lone = self.graph.nodes[self.graph.degree() == 0]
        return np.asarray(np.concatenate([self.graph.points, lone, self.specks]).min(0))

    def in_crop(self, points: F64) -> F64:
        """Raster points ``(n, 2)`` in the crop's pixels."""
        return np.asarray((points - 0.5) / self.scale - 0.5 + self.corner)


def _find_specks(mask: BoolArray, pen: float) -> tuple[BoolArray, F64, I64]:
    """Take round specks out of the ink; returns the rest, and the specks' centres and areas."""
    _, labels, stats, centres = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    extent = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT])
    area = stats[:, cv2.CC_STAT_AREA]
    round_ = (extent <= max(2.0, 1.7 * pen)) & (area >= 0.5 * extent**2)
    round_ |= extent <= 2
    round_[0] = False
    specks = np.flatnonzero(round_)
    if not len(specks):
        return mask, np.zeros((0, 2)), np.zeros(0, np.int64)
    specks = np.sort(specks[np.argsort(-area[specks], kind="stable")[:MOST_SPECKS]])
    return mask & ~round_[labels], centres[specks].astype(np.float64), area[specks].astype(np.int64)


def _pen_width(mask: BoolArray) -> float:
    """A first guess of the pen's width in pixels: area over half the rim."""
    ink = mask.astype(np.uint8)
    inner = cv2.erode(ink, np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.uint8), borderValue=0)
    area = int(ink.sum())
    return 2.0 * area / max(area - int(inner.sum()), 1)


def _enlarged(mask: BoolArray, factor: float, pen: float) -> U8:
    """Resize a mask with smooth outlines and a margin of one empty pixel."""
    height, width = mask.shape
    size = (max(round(width * factor), 1), max(round(height * factor), 1))
    soft: NDArray[Any] = mask.astype(np.float32)
    if factor > 1:
        soft = cv2.GaussianBlur(cv2.copyMakeBorder(soft, 2, 2, 2, 2, cv2.BORDER_CONSTANT, value=0), (0, 0), 0.6)[
            2:-2, 2:-2
        ]
    soft = cv2.resize(soft, size, interpolation=cv2.INTER_CUBIC if factor > 1 else cv2.INTER_AREA)
    level = 0.4 if factor <= 1 else 0.47 if pen > HAIRLINE else 0.33
    region = soft > level
    if not region.any():  # lines far thinner than a pixel of the smaller picture
        region = soft > 0
    return np.pad(region.astype(np.uint8), 1)


def _without_pinholes(ink: U8, largest: float) -> U8:
    _, labels, stats, _ = cv2.connectedComponentsWithStats(1 - ink, connectivity=4)
    small = stats[:, cv2.CC_STAT_AREA] <= largest
    small[0] = False
    return ink | small[labels].astype(np.uint8) if small.any() else ink


def _graph_at(ink: BoolArray, factor: float, pen: float) -> tuple[SkeletonGraph, F32, F64]:
    """The skeleton graph of the resized ink, its distance map, and the true scale along x and y."""
    fine = _enlarged(ink, factor, pen)
    scale = np.array([(fine.shape[1] - 2) / ink.shape[1], (fine.shape[0] - 2) / ink.shape[0]])
    fine = _without_pinholes(fine, 0.1 * pen**2 * float(scale.prod()))
    distance = np.asarray(cv2.distanceTransform(fine, cv2.DIST_L2, cv2.DIST_MASK_5), np.float32)
    return skeleton_graph(fine, distance), distance, scale


def vectorize(mask: BoolArray) -> WordGraph | None:
    """Build the graph of a word's ink.

    Parameters
    ----------
    mask
        ``(h, w)`` bool, True is ink.

    Returns
    -------
    WordGraph or None
        None where the mask holds no ink.
    """
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        return None
    corner = np.array([columns[0], rows[0]], float)
    ink = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    pen = _pen_width(ink)
    height = max(float(ink.shape[0]), 6 * pen)
    lines, specks, areas = _find_specks(ink, pen)
    factor = float(np.clip(FINE_HEIGHT / ink.shape[0], FINE_PEN[0] / pen, FINE_PEN[1] / pen))
    factor = min(factor, 3.0, float(np.sqrt(LARGEST_AREA / ink.size)))
    if lines.any():
        graph, distance, scale = _graph_at(lines, factor, pen)
        while len(graph.ends) > MOST_EDGES:
            factor /= 2
            graph, distance, scale = _graph_at(lines, factor, pen)
    else:
        none = np.zeros((0, 2))
        graph = SkeletonGraph(none, np.zeros(0), np.zeros((0, 2), np.int64), np.zeros(1, np.int64), none)
        distance, scale = np.zeros((1, 1), np.float32), np.array([factor, factor])
    k = float(np.sqrt(scale.prod()))
    return WordGraph(graph, distance, scale, corner, pen * k, height * k, (specks + 0.5) * scale + 0.5, areas)
