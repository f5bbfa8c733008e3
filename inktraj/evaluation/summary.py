"""An evaluation in tables: for the terminal, and as ``summary.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inktraj.errors import DataError
from inktraj.evaluation.published import NOTE, PUBLISHED, SOURCE
from inktraj.evaluation.results import KINDS, EvaluationRun, Row
from inktraj.evaluation.tables import Table, cell, escaped, flat, percent, say
from inktraj.scoring.figures import FIGURES, Figure
from inktraj.scoring.scores import Twice
from inktraj.scoring.writing import group_table

HEADLINES = ("dtw", "dtw_placed", "chamfer", "tolerant_dtw", "ar", "cr", "style")
"""Figures of the tables, where the scores have them."""

_KNOWN = {figure.name: figure for figure in FIGURES}

_SHORT = {"dtw_placed": "DTW, placed", "tolerant_dtw": "DTW, matched", "ref_strokes": "strokes, reference"}

BY_RULE = "All samples, by the paper's rule: what is not ok scores the declared worst"
OK_ONLY = "Ok samples only, with their share of all"


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A row and its figures, which take a while to compute."""

    row: Row
    figures: Mapping[str, Twice]

    @property
    def name(self) -> str:
        """The row's name; its best frame is marked."""
        return self.row.name + (" (native)" if self.row.native and self.row.frame else "")


def tell(run: EvaluationRun) -> list[Told]:
    """Compute all rows' figures."""
    return [Told(row, row.scores.figures) for row in run.rows]


def figure_of(name: str) -> Figure:
    """Return the figure of that name; raises DataError where there is none."""
    if name not in _KNOWN:
        raise DataError(f"there is no figure {name!r}; known are {', '.join(_KNOWN)}")
    return _KNOWN[name]


def headlines(rows: Sequence[Told]) -> list[Figure]:
    """Return the headline figures that some row has a value of, in the order of the tables."""
    there = {name for told in rows for name, twice in told.figures.items() if twice.all.count or twice.valid.count}
    return [_KNOWN[name] for name in HEADLINES if name in there]


def heading(figure: Figure, *, arrow: bool = True) -> str:
    """Name a figure in few letters, with an arrow to the better side."""
    label = _SHORT.get(figure.name, figure.label.removesuffix(", micro"))
    return label + ({"less": " ↓", "more": " ↑", "": ""}[figure.better] if arrow else "")


def kinds_table(rows: Sequence[Told]) -> Table:
    """Return how many samples have each outcome."""
    head = ["", "samples", *KINDS, "coverage", "outside image"]
    cells = [
        [
            told.name,
            str(len(told.row.outcomes)),
            *(str(told.row.kinds[kind]) for kind in KINDS),
            percent(told.row.scores.coverage),
            percent(told.row.out_of_range),
        ]
        for told in rows
    ]
    return Table("What became of the samples", head, cells, spare=(10, 1, 9))


def figures_table(rows: Sequence[Told], *, valid: bool) -> Table:
    """Return the headlines, over all samples or over valid ones only."""
    figures = headlines(rows)
    head = ["", *(["coverage"] if valid else []), *map(heading, figures)]
    cells = []
    for told in rows:
        found = (told.figures.get(figure.name) for figure in figures)
        summaries = [None if twice is None else twice.valid if valid else twice.all for twice in found]
        first = [percent(told.row.scores.coverage)] if valid else []
        cells.append([told.name, *first, *map(cell, summaries)])
    return Table(OK_ONLY if valid else BY_RULE, head, cells)


def tables(rows: Sequence[Told]) -> Iterator[Table]:
    """Return the measured tables; that of ok samples only where it says something else."""
    yield kinds_table(rows)
    yield figures_table(rows, valid=False)
    if any(twice.all != twice.valid for told in rows for twice in told.figures.values()):
        yield figures_table(rows, valid=True)
    for told in rows:
        yield from groups_tables(told)


def groups_tables(told: Told) -> Iterator[Table]:
    """Return a row's figures by what was asked for."""
    for grouping in told.row.scores.groupings:
        title = f"{told.name}, by {grouping}: all samples (ok only, where it differs)"
        yield Table(title, *group_table(told.row.scores, grouping))


def published_table() -> Table:
    """Return the quoted figures."""
    names = [name for name in HEADLINES if any(name in row.figures for row in PUBLISHED)]
    head = ["model", "data set", *(heading(_KNOWN[name]) for name in names)]
    cells = [[row.model, row.dataset, *(row.figures.get(name, "–") for name in names)] for row in PUBLISHED]
    return Table(f"Published: quoted from {SOURCE}", head, cells)


def facts(run: EvaluationRun) -> Iterator[str]:
    """Say what was evaluated on."""
    dataset = run.dataset
    asked = max((len(row.outcomes) for row in run.rows), default=0)
    of = f" of {asked + run.limited}; {run.limited} were left out by a limit" if run.limited else ""
    part = f", {dataset.split}" if dataset.split else ""
    yield f"{dataset.name} {dataset.version}{part}: {asked} samples{of}"
    recorded = "were recorded as they were written" if dataset.references == "recorded" else "are pseudo-labels"
    yield f"its references {recorded}" + (f", chosen by {dataset.filtered_by}" if dataset.filtered_by else "")
    for row in run.rows:
        if row.resolved:
            yield f"{row.name}: answered by {', '.join(row.resolved)}"


def warnings(run: EvaluationRun) -> list[str]:
    """Return everything that must be known to read the figures, each thing once."""
    out = [f"not all samples were asked for: {run.stopped}"] if run.stopped else []
    out += run.warnings
    for row in run.rows:
        out += row.scores.warnings
        status = {word.name: word for word in row.scores.words}
        lost = [
            word
            for outcome in row.outcomes
            if outcome.kind == "ok" and (word := status.get(outcome.id)) is not None and word.status != "valid"
        ]
        if lost:
            what = f"{row.name}: {len(lost)} inks that came could not be scored, such as that of {lost[0].name}"
            out.append(f"{what} ({lost[0].status}: {lost[0].reason})")
    return list(dict.fromkeys(out))


def method(run: EvaluationRun) -> Iterator[str]:
    """Say how intervals were made, and give the signatures."""
    ways = {
        f"intervals: {100 * drawing.confidence:g} % bootstrap, {drawing.resamples} draws, seed {drawing.seed}, of "
        f"{row.scores.drawn}"
        for row in run.rows
        for drawing in [row.scores.drawing]
    }
    yield from sorted(ways)
    yield from dict.fromkeys(str(signature) for row in run.rows for signature in row.scores.signatures)


def costs(run: EvaluationRun) -> list[tuple[str, str]]:
    """Return name and text of all costs."""
    return list(flat(run.costs, "not known"))


def settings(run: EvaluationRun) -> list[tuple[str, str]]:
    """Return name and text of all settings but the signatures, which `method` gives."""
    return list(flat({name: value for name, value in run.settings.items() if name != "signatures"}, "none"))


def title(run: EvaluationRun) -> str:
    """Name the run."""
    models = ", ".join(dict.fromkeys(row.model for row in run.rows)) or "no model"
    return f"{models} on {run.dataset.name}"


def summary_markdown(run: EvaluationRun, rows: Sequence[Told] | None = None) -> str:
    """Return ``summary.md``; `rows` are what `tell` gave, where it was called before."""
    rows = tell(run) if rows is None else rows
    parts = [f"# {escaped(title(run))}", "", *_items(facts(run)), ""]
    told = warnings(run)
    if told:
        parts += ["## Warnings", "", *_items(told), ""]
    for table in tables(rows):
        parts += [f"## {escaped(table.title)}", "", *table.markdown(), ""]
    parts += ["`error` samples could not be asked for or scored, and are in no figure.", ""]
    parts += [
        "## How it was measured",
        "",
        *(f"- `{line}`" if "|" in line else f"- {line}" for line in method(run)),
        "",
    ]
    for name, pairs in (("Costs", costs(run)), ("Settings", settings(run))):
        if pairs:
            parts += [f"## {name}", "", *_items(f"{label}: {text}" for label, text in pairs), ""]
    quoted = published_table()
    return "\n".join([*parts, f"## {quoted.title}", "", NOTE, "", *quoted.markdown(), ""])


def _items(lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    return (f"- {escaped(line)}" for line in lines)


def print_table(run: EvaluationRun, console: Any, rows: Sequence[Told] | None = None) -> None:
    """Print the tables, and what must be known to read them.

    Parameters
    ----------
    run
        To be told of.
    console
        A ``rich.console.Console``; a narrow one leaves out intervals, then columns.
    rows
        What `tell` gave, where it was called before.
    """
    rows = tell(run) if rows is None else rows
    for line in (title(run), *facts(run)):
        say(console, line)
    for table in tables(rows):
        table.print(console)
    for line in method(run):
        say(console, line)
    for label, text in costs(run):
        say(console, f"{label}: {text}")
    for warning in warnings(run):
        say(console, f"warning: {warning}")
    published_table().print(console)
    say(console, NOTE)
