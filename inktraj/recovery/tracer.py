"""The geometric recoverer: the pen's way is read from the ink's skeleton, with rules and no learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.page import WordCrop
from inktraj.recovery import Candidate
from inktraj.recovery.order import Marks, writing_order
from inktraj.recovery.smooth import build_strokes
from inktraj.recovery.traversal import Costs, traverse
from inktraj.recovery.vectorize import WordGraph, vectorize

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Piece:
    """One stroke with what decides its place in the order; all in the crop's pixels."""

    points: F64
    widths: F64
    component: int


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
        word = vectorize(crop.mask)
        if word is None:
            return [Candidate(Ink((), crop.frame, ()))]
        pieces = self._lines(word) + _dots(word)
        height, pen = word.height / word.factor, word.pen / word.factor
        order = writing_order([p.points for p in pieces], [p.component for p in pieces], height, pen, self.marks)
        strokes, widths = [pieces[i].points for i in order], [pieces[i].widths for i in order]
        return [Candidate(Ink(tuple(strokes), crop.frame, tuple(widths)))]

    def _lines(self, word: WordGraph) -> list[_Piece]:
        """The strokes of what is no dot, component by component."""
        graph, k = word.graph, word.factor
        path, offsets, component = traverse(graph, pen=word.pen, height=word.height, beam=self.beam, costs=self.costs)
        step = self.step or float(np.clip(word.pen / k / 2, 1, 3))
        points, marks, widths = build_strokes(graph, word.distance, path, offsets, pen=word.pen, step=step * k)
        points, widths = word.in_crop(points), widths / k
        return [
            _Piece(points[a:b], widths[a:b], int(c)) for a, b, c in zip(marks[:-1], marks[1:], component, strict=True)
        ]


def _dots(word: WordGraph) -> list[_Piece]:
    """Strokes of one point: lines that thinned to one, and round specks."""
    graph = word.graph
    lone = np.flatnonzero(graph.degree() == 0)
    pieces = [
        _Piece(at[None], np.array([2 * graph.radius[v] / word.factor]), len(graph.ends) + int(v))
        for v, at in zip(lone, word.in_crop(graph.nodes[lone]), strict=True)
    ]
    specks = zip(word.in_crop(word.specks), word.speck_areas, strict=True)
    return pieces + [
        _Piece(at[None], np.array([2 * np.sqrt(area / np.pi)]), -1 - k) for k, (at, area) in enumerate(specks)
    ]
