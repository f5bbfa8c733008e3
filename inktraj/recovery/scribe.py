"""The learned recoverer: it writes a word's ink as the people did whose pens it was trained on.

The ink's skeleton graph says where the pen can have gone, a guide network reads the whole graph, a policy scores each
choice of the pen, and a beam search returns the most probable ways; see docs/recovery.md.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.page import WordCrop
from inktraj.recovery import Candidate, Decision
from inktraj.recovery.features import Lines, lines_of, make_net
from inktraj.recovery.graph import SkeletonGraph, components
from inktraj.recovery.guide import scorers
from inktraj.recovery.order import writing_order
from inktraj.recovery.parts import LARGEST, Direction, Part, divide
from inktraj.recovery.policy import find_ways, taken
from inktraj.recovery.smooth import build_strokes
from inktraj.recovery.tracer import Tracer
from inktraj.recovery.vectorize import WordGraph, vectorize
from inktraj.recovery.weights import COMPARED, load_weights

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

Quality = Literal["fast", "best"]
ScribeMarks = Literal["learned", "word", "run"]

MOST_EDGES = 1200  # more are no word: drawn by geometry


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to search: hypotheses kept, set-downs followed from each, and networks asked."""

    beam: int
    starts: int
    networks: int


EFFORT: dict[Quality, Effort] = {"fast": Effort(2, 2, 1), "best": Effort(4, 3, 8)}


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Half-edges of the whole graph, offsets of the strokes, log-probability and confidence."""

    path: I64
    marks: I64
    score: float
    confidence: float
    choices: tuple[I64, I64, F64]  # see `inktraj.recovery.policy.taken`


class Scribe:
    """Recovers strokes with a trained policy; docs/recovery.md says how well.

    Parameters
    ----------
    quality
        ``"best"`` or ``"fast"``: how hard to search.
    direction
        The way the writing runs: ``"ltr"``, ``"rtl"`` or ``"ttb"``. The policy is trained on left-to-right Latin
        script; the others turn the ink for it and are untrained.
    marks
        Where dots and bars go: ``"learned"``, when the policy says; ``"word"``, after the whole word's body; ``"run"``,
        each after the run of joined ink that it belongs to.
    beam
        Hypotheses kept; None: as the quality says.
    step
        Arc length between the points of a stroke in pixels; None: half the pen's width, but 1–3 px.
    explain
        Note every choice of the pen with its probability in `Candidate.decisions`.
    weights
        A weights file of the trainer; None: the one which ships with the package.

    Raises
    ------
    DataError
        An option is not one of the above, or the weights cannot be read.
    """

    name = "scribe"

    def __init__(
        self,
        *,
        quality: Quality = "best",
        direction: Direction = "ltr",
        marks: ScribeMarks = "learned",
        beam: int | None = None,
        step: float | None = None,
        explain: bool = False,
        weights: str | os.PathLike[str] | None = None,
    ) -> None:
        for what, value, known in (("quality", quality, Quality), ("direction", direction, Direction),
                                   ("marks", marks, ScribeMarks)):  # fmt: skip
            if value not in get_args(known):
                raise DataError(f"{what} is one of {get_args(known)}, not {value!r}")
        if beam is not None and not _is_count(beam):
            raise DataError(f"beam is how many hypotheses are kept, at least 1, not {beam!r}")
        if step is not None and not (isinstance(step, int | float | np.number) and step > 0):
            raise DataError(f"step is the arc length between points in pixels, above 0, not {step!r}")
        self.quality, self.direction, self.marks, self.explain = quality, direction, marks, explain
        self.effort = EFFORT[quality] if beam is None else replace(EFFORT[quality], beam=int(beam))
        self.step = step
        self.weights = load_weights(weights)
        options = {"direction": direction, "marks": marks, "beam": beam, "step": step}
        usual = {"direction": "ltr", "marks": "learned", "beam": None, "step": None}
        unusual = "".join(f" {name} {value}" for name, value in options.items() if value != usual[name])
        self.version = f"1 {quality} {self.weights.checksum[:8]}{unusual}"

    def __call__(self, crop: WordCrop, *, text: str | None = None, n_best: int = 1) -> list[Candidate]:
        """Return up to `n_best` candidates with confidence; see `inktraj.recovery.Recoverer`.

        `text` helps to tell the letters apart. Ink that is no writing (a connected piece of very many edges) is drawn
        by the geometric tracer: one candidate, without confidence.
        """
        if not isinstance(crop, WordCrop):
            raise DataError(f"a recoverer takes a WordCrop, not {type(crop).__name__}; crop_of(picture) makes one")
        if not _is_count(n_best):
            raise DataError(f"n_best is how many candidates are wanted, at least 1, not {n_best!r}")
        if not isinstance(text, str | None):
            raise DataError(f"text is what the word says, a str or None, not {type(text).__name__}")
        word = vectorize(crop.mask)
        if word is None:
            return [Candidate(Ink((), crop.frame, ()))]
        lines = lines_of(word)
        component, _ = components(len(lines.nodes), lines.ends)
        if len(lines.ends) > MOST_EDGES or np.bincount(component).max() > LARGEST:
            tracer = Tracer(step=self.step, marks="run" if self.marks == "learned" else self.marks)
            return tracer(crop, text=text, n_best=n_best)
        parts = divide(lines, component, self.direction)
        found = [self._ways(part, text if len(parts) == 1 else None, n_best) for part in parts]
        graph = _whole(word, lines)
        out: list[Candidate] = []
        for way in _joined(found):
            candidate = self._candidate(crop, word, graph, component, way)
            if all(candidate.ink != other.ink for other in out):  # ways may differ in the place of marks alone
                out.append(candidate)
            if len(out) == n_best:
                break
        return out

    def _ways(self, part: Part, text: str | None, n_best: int) -> list[_Drawn]:
        """The most probable ways to draw one part, best first."""
        net = make_net(part.lines)
        go, start = scorers(self.weights.guides[: self.effort.networks], part.lines, net, text)
        effort = self.effort
        width = max(effort.beam, n_best)
        ways = find_ways(net, go, start, width=width, n_starts=effort.starts, n_best=max(n_best, COMPARED))
        out = []
        for way, sure in zip(ways[:n_best], self.weights.confidences(ways), strict=False):
            choices = taken(net, go, start, way.path, way.marks) if self.explain else _NO_CHOICES
            out.append(_Drawn(part.in_whole(way.path), way.marks, way.score, sure, choices))
        return out

    def _candidate(
        self, crop: WordCrop, word: WordGraph, graph: SkeletonGraph, component: I64, way: _Drawn
    ) -> Candidate:
        pen, k = word.pen, word.factor
        step = self.step or float(np.clip(pen / k / 2, 1, 3))
        points, offsets, widths = build_strokes(graph, word.distance, way.path, way.marks, pen=pen, step=step * k)
        lone = np.flatnonzero(np.diff(offsets) == 1)  # dots are as wide as their area says: the raster has lines only
        widths[offsets[lone]] = 2 * graph.radius[graph.ends[way.path[way.marks[lone]] // 2, 0]]
        points, widths = word.in_crop(points), widths / k
        strokes = [points[a:b] for a, b in itertools.pairwise(offsets)]
        order = list(range(len(strokes)))
        if self.marks != "learned":
            owner = component[way.path[way.marks[:-1]] // 2]
            order = writing_order(strokes, owner.tolist(), word.height / k, pen / k, self.marks)
        ink = Ink(
            tuple(strokes[i] for i in order),
            crop.frame,
            tuple(widths[offsets[i] : offsets[i + 1]] for i in order),
        )
        return Candidate(ink, way.confidence, tuple(_decisions(word, graph, way, order)))


class FastScribe(Scribe):
    """`Scribe` with ``quality="fast"``, for where a part is given by its name."""

    def __init__(self) -> None:
        super().__init__(quality="fast")


def _is_count(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


_NO_CHOICES = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
_KINDS: tuple[Literal["set-down", "go-on", "lift"], ...] = ("set-down", "go-on", "lift")


def _whole(word: WordGraph, lines: Lines) -> SkeletonGraph:
    """The graph whose edges the half-edges number, dots included, in raster pixels."""
    k, low = word.height, word.origin
    return SkeletonGraph(lines.nodes * k + low, lines.radius * k, lines.ends, lines.start, lines.points * k + low)


def _joined(found: Sequence[list[_Drawn]]) -> list[_Drawn]:
    """Ways of the whole from ways of its parts, best first: all best, then one part's next best at a time."""
    best = [ways[0] for ways in found]
    choices = [best]
    others = [(ways[0].score - way.score, k, way) for k, ways in enumerate(found) for way in ways[1:]]
    for _, k, way in sorted(others, key=lambda other: other[0]):
        choices.append([*best[:k], way, *best[k + 1 :]])
    return [_concatenated(ways) for ways in choices]


def _concatenated(ways: Sequence[_Drawn]) -> _Drawn:
    if len(ways) == 1:
        return ways[0]
    shift = np.concatenate([[0], np.cumsum([len(way.path) for way in ways])])
    return _Drawn(
        np.concatenate([way.path for way in ways]),
        np.concatenate([way.marks[:-1] + s for way, s in zip(ways, shift[:-1], strict=True)] + [shift[-1:]]),
        sum(way.score for way in ways),
        float(np.prod([way.confidence for way in ways])),
        (
            np.concatenate([way.choices[0] + s for way, s in zip(ways, shift[:-1], strict=True)]),
            np.concatenate([way.choices[1] for way in ways]),
            np.concatenate([way.choices[2] for way in ways]),
        ),
    )


def _decisions(word: WordGraph, graph: SkeletonGraph, way: _Drawn, order: list[int]) -> list[Decision]:
    """The choices along a way, in the order of its strokes."""
    at, kind, chance = way.choices
    stroke = np.searchsorted(way.marks, at, side="right") - 1
    after = (kind > 0).astype(np.int64)  # a set-down is where a half-edge begins, the others where it ends
    node = graph.ends[way.path[at] // 2, (way.path[at] % 2) ^ after]
    places = word.in_crop(graph.nodes[node])
    rank = np.argsort(order)
    out = [
        (int(rank[s]), 2 * int(t) + int(a), Decision(_KINDS[k], int(rank[s]), (float(x), float(y)), float(np.exp(c))))
        for s, t, a, k, (x, y), c in zip(stroke, at, after, kind, places, chance, strict=True)
    ]
    return [decision for *_, decision in sorted(out, key=lambda row: row[:2])]
