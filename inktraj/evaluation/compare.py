"""Several runs → one leaderboard, with what may be said of the differences.

Conventions
-----------
* A leaderboard ranks by one figure over all samples, by the paper's rule. Every row of every run is an entry.
* Entries are compared on the same samples only: those whose references, or whose signatures, differ are refused, and
  samples that are an error in one are left out of all, or a run that failed on hard words would lead.
* Each entry is compared with the leader by paired bootstrap (`inktraj.metrics.statistics.paired_bootstrap`). That is
  several tests, so p-values are corrected by Holm's step-down method (Holm 1979, "A simple sequentially rejective
  multiple test procedure"); intervals are not. The leader was chosen by the same samples, which flatters it: a
  difference that is barely significant is none yet.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from inktraj.errors import DataError, ParseError
from inktraj.evaluation.results import RUN, RUN_FORMAT, row_name
from inktraj.evaluation.summary import HEADLINES, figure_of, heading
from inktraj.evaluation.tables import Table, cell, escaped, interval, percent, say, short
from inktraj.io.files import read_text
from inktraj.metrics.statistics import PairedComparison
from inktraj.scoring.scores import Scores, Twice
from inktraj.scoring.writing import read_scores

FORMAT = "inktraj comparison 1"

SIGNIFICANT = 0.05
"""Corrected p-values below this are marked."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One row of one run.

    Parameters
    ----------
    name
        Model and frame, and the run's folder where that is needed to tell entries apart.
    folder
        The run's.
    model, frame, native, kinds, resolved
        As in `inktraj.evaluation.results.Row`.
    scores
        Of the samples that are an error in no entry.
    figures
        Of these scores.
    """

    name: str
    folder: Path
    model: str
    frame: str
    native: bool
    kinds: Mapping[str, int]
    resolved: tuple[str, ...]
    scores: Scores
    figures: Mapping[str, Twice]


@dataclass(frozen=True, slots=True)
class Difference:
    """An entry beside the leader.

    Parameters
    ----------
    all, valid
        Entry − leader in the ranking figure: over all samples, and over those that are ok in both.
    p_corrected
        Of `all`, by Holm over all entries of the leaderboard; None where there was too little to draw from.
    """

    all: PairedComparison
    valid: PairedComparison
    p_corrected: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A leaderboard.

    Parameters
    ----------
    figure
        Name of the one that ranks.
    entries
        The best first; those without a value last.
    differences
        To the first; None for itself, and for those without a value.
    samples
        In all, those that are an error in one entry included.
    """

    figure: str
    entries: tuple[Entry, ...]
    differences: tuple[Difference | None, ...]
    samples: int

    @property
    def table(self) -> Table:
        """The leaderboard as text."""
        named = [n for n in dict.fromkeys([self.figure, *HEADLINES]) if any(n in e.figures for e in self.entries)]
        labels = [heading(figure_of(name)) for name in named]
        head = ["", "error", "coverage", *labels, "− best", "p, Holm", "− best, ok in both"]
        rows = []
        for number, (entry, difference) in enumerate(zip(self.entries, self.differences, strict=True), 1):
            found = (entry.figures.get(name) for name in named)
            cells = [cell(None if twice is None else twice.all) for twice in found]
            counts = [str(entry.kinds.get("error", 0)), percent(entry.scores.coverage)]
            rows.append([f"{number}. {entry.name}", *counts, *cells, *_told(difference)])
        others = range(len(head) - 4, 3, -1)
        spare = (len(head) - 1, *others, *([] if any(row[1] != "0" for row in rows) else [1]))
        return Table(f"Leaderboard by {labels[0]}, {self._told_samples}", head, rows, spare=spare)

    @property
    def _told_samples(self) -> str:
        shared = len(self.entries[0].scores.words)
        if shared == self.samples:
            return f"all {shared} samples"
        return f"the {shared} of {self.samples} samples that are an error in no run"

    @property
    def notes(self) -> list[str]:
        """What must be known to read it."""
        first = self.entries[0].scores
        share = f"{100 * first.drawing.confidence:g} %"
        tests = sum(d is not None and d.p_corrected is not None for d in self.differences)
        return [
            f"{self._told_samples}; what is not ok scores the declared worst",
            f"difference to the first: paired bootstrap, {share} intervals (not corrected), {first.drawing.resamples} "
            f"draws, seed {first.drawing.seed}, of {first.drawn}",
            f"p: two-sided, corrected by Holm's method over {tests} comparisons; * below {SIGNIFICANT:g}. The first "
            "was chosen by the same samples, which flatters it.",
            *(str(signature) for signature in first.signatures),
            f"references: {first.references[:16]}…",
        ]

    def to_markdown(self) -> str:
        """Return it as Markdown."""
        table = self.table
        notes = (f"- `{note}`" if "|" in note else f"- {escaped(note)}" for note in self.notes)
        return "\n".join([f"# {escaped(table.title)}", "", *table.markdown(), "", *notes, ""])

    def to_json(self) -> dict[str, Any]:
        """Return it as plain numbers and names."""
        first = self.entries[0].scores
        return {
            "format": FORMAT,
            "figure": self.figure,
            "correction": "holm",
            "signatures": [str(signature) for signature in first.signatures],
            "references": first.references,
            "samples": self.samples,
            "compared": len(first.words),
            "drawing": asdict(first.drawing),
            "entries": [
                {
                    "rank": number,
                    "name": entry.name,
                    "run": str(entry.folder),
                    "model": entry.model,
                    "frame": entry.frame,
                    "native": entry.native,
                    "resolved": list(entry.resolved),
                    "kinds": dict(entry.kinds),
                    "coverage": entry.scores.coverage,
                    "figures": {name: asdict(twice) for name, twice in entry.figures.items()},
                    "difference": None if difference is None else asdict(difference),
                }
                for number, (entry, difference) in enumerate(zip(self.entries, self.differences, strict=True), 1)
            ],
        }

    def print(self, console: Any) -> None:
        """Print it on a ``rich.console.Console``."""
        self.table.print(console)
        for note in self.notes:
            say(console, note)


def _told(difference: Difference | None) -> list[str]:
    if difference is None:
        return ["", "", ""]
    p = difference.p_corrected
    mark = "" if p is None else f"{p:.3f}{' *' if p < SIGNIFICANT else ''}"
    return [_signed(difference.all), mark, _signed(difference.valid)]


def _signed(found: PairedComparison) -> str:
    sign = "+" if found.difference is not None and found.difference > 0 else ""
    return f"{sign}{short(found.difference)}\n{interval(found.low, found.high)}".rstrip()


def compare_runs(folders: Sequence[str | Path], *, figure: str = "dtw") -> Comparison:
    """Rank the rows of several runs.

    Parameters
    ----------
    folders
        Of finished runs.
    figure
        Name of the figure that ranks, one of `inktraj.scoring.figures.FIGURES` that says which side is better.

    Raises
    ------
    DataError
        A run cannot be read, there is only one row, no row has the figure, or rows may not be compared: the message
        names each and says why.
    """
    better = figure_of(figure).better
    if not better:
        raise DataError(f"{figure} is neither better when less nor when more, so nothing can be ranked by it")
    entries = [entry for folder in dict.fromkeys(map(Path, folders)) for entry in _entries(folder)]
    names = told_apart([entry.name for entry in entries], [entry.folder for entry in entries])
    entries = [replace(entry, name=name) for entry, name in zip(entries, names, strict=True)]
    if len(entries) < 2:
        raise DataError(f"a comparison needs two rows at least, and there are {len(entries)} in {len(folders)} runs")
    _check_comparable(entries)
    samples = len(entries[0].scores.words)
    entries = _on_shared(entries)

    def rank(entry: Entry) -> tuple[bool, float]:
        value = _value(entry, figure)
        return value is None, 0.0 if value is None else value if better == "less" else -value

    ranked = sorted(entries, key=rank)
    if _value(ranked[0], figure) is None:
        known = ", ".join(name for name in HEADLINES if name in ranked[0].figures)
        raise DataError(f"no run has the figure {figure!r} over all samples; there are such as {known}")
    return Comparison(figure, tuple(ranked), tuple(_differences(ranked, figure)), samples)


def _on_shared(entries: Sequence[Entry]) -> list[Entry]:
    """Leave out the samples that are an error in some entry; raises DataError where none is left."""
    errors = {word.name for entry in entries for word in entry.scores.words if word.status == "error"}
    if errors:
        words = entries[0].scores.words
        if all(word.name in errors for word in words):
            raise DataError(f"each of the {len(words)} samples is an error in one of the runs; run those again first")
        entries = [replace(entry, scores=entry.scores.without(errors)) for entry in entries]
    return [replace(entry, figures=entry.scores.figures) for entry in entries]


def _value(entry: Entry, figure: str) -> float | None:
    twice = entry.figures.get(figure)
    return None if twice is None else twice.all.mean


def _differences(ranked: Sequence[Entry], figure: str) -> Iterator[Difference | None]:
    best = ranked[0]
    found = [
        None if _value(entry, figure) is None else entry.scores.compare(best.scores)[figure] for entry in ranked[1:]
    ]
    corrected = holm([None if sides is None else sides["all"].p_value for sides in found])
    yield None
    for sides, p in zip(found, corrected, strict=True):
        yield None if sides is None else Difference(sides["all"], sides["valid"], p)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Correct p-values for their number by Holm's step-down method; None stands for a test that was not made.

    Examples
    --------
    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    made = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    out: list[float | None] = [None] * len(p_values)
    most = 0.0
    for rank, (p, i) in enumerate(made):
        most = max(most, min(1.0, p * (len(made) - rank)))
        out[i] = most
    return out


def _check_comparable(entries: Sequence[Entry]) -> None:
    """Raise DataError where entries differ from the first in what was measured, by what, or how."""
    first = entries[0]
    problems = [f"{entry.name} ({entry.folder}): {why}" for entry in entries[1:] for why in _unlike(first, entry)]
    if problems:
        raise DataError(
            f"{len(problems)} things keep these runs from being compared with {first.name} ({first.folder}): "
            + "; ".join(problems)
        )


def _unlike(first: Entry, other: Entry) -> Iterator[str]:
    names = [{word.name for word in entry.scores.words} for entry in (first, other)]
    if names[0] != names[1]:
        missing, more = len(names[0] - names[1]), len(names[1] - names[0])
        yield f"it has other samples ({missing} are missing, {more} are there besides); was one run limited?"
    own, others = ({s.metric: s for s in entry.scores.signatures} for entry in (first, other))
    if names[0] == names[1] and own == others and first.scores.references != other.scores.references:
        yield "its references have the same names but other strokes; another version of the data set?"
    for metric in dict.fromkeys([*own, *others]):
        if metric not in others:
            yield f"it has no {metric}"
        elif metric not in own:
            yield f"it has {metric} as well"
        elif found := own[metric].differences(others[metric]):
            yield f"{metric} was computed otherwise: {', '.join(found)}"


# Reading runs


def _entries(folder: Path) -> Iterator[Entry]:
    """Read a run's rows; raises DataError where it is none, or was written by another version."""
    with read_run(folder, RUN_FORMAT) as run:
        rows = [
            (
                str(row["model"]),
                str(row["frame"]),
                bool(row["native"]),
                dict(row["kinds"]),
                [str(id) for id in row["resolved"]],
                str(row["scores"]),
                str(row.get("read_as", "asked")),
            )
            for row in run["rows"]
        ]
    for model, frame, native, kinds, resolved, file, read_as in rows:
        name = row_name(model, frame, read_as)
        yield Entry(name, folder, model, frame, native, kinds, tuple(resolved), read_scores(folder / file), {})


@contextmanager
def read_run(folder: Path, form: str) -> Iterator[dict[str, Any]]:
    """Read a run's record, and tell of what is missing or of another kind where it is taken apart.

    Raises
    ------
    DataError
        There is no finished run.
    ParseError
        The record is damaged, or in another form than `form`.
    """
    place = folder / RUN
    if not place.is_file():
        what = "no such folder" if not folder.is_dir() else f"it has no {RUN}; expected the folder of a finished run"
        raise DataError(f"{folder}: {what}")
    try:
        run = json.loads(read_text(place))
        if run["format"] != form:
            raise ParseError(f"{place}: in the form {run['format']!r}, expected {form!r}; of another version?")
        yield run
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as err:
        raise ParseError(f"{place}: not what a run wrote ({type(err).__name__}: {err})") from err


def told_apart(names: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """Return names of runs, those of one name with what of their folders tells them apart."""
    count = Counter(names)
    ends = Counter((name, folder.name) for name, folder in zip(names, folders, strict=True))
    return [
        name if count[name] == 1 else f"{name} ({folder.name if ends[name, folder.name] == 1 else folder})"
        for name, folder in zip(names, folders, strict=True)
    ]
