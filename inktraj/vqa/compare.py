"""Runs of one benchmark side by side: of several prompts, of several models, or both.

Everything is read from the run folders. Each run is compared with the first in the benchmark's first figure, by paired
bootstrap over the questions that both have an answer to, whole images drawn; p-values are corrected by Holm's method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inktraj.errors import DataError
from inktraj.evaluation.compare import SIGNIFICANT, holm, read_run, told_apart
from inktraj.evaluation.tables import Table, escaped, say
from inktraj.io.files import write_bytes
from inktraj.metrics.statistics import PairedComparison, Summary, mean, paired_bootstrap
from inktraj.vqa.benchmark import Figure, Quoted
from inktraj.vqa.records import read_records
from inktraj.vqa.results import FORMAT, PER_CATEGORY, SCORES, STATUSES, csv_bytes
from inktraj.vqa.summary import NOTE, cell, label, quoted_table, shown

COMPARISON = "comparison.md"


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One run: its name and folder, its ``run.json``, and by question its split and gold, its image, the first figure.

    Of a question with several answers the figure is their mean. Questions that could not be asked have neither image
    nor figure.
    """

    name: str
    folder: Path
    run: Mapping[str, Any]
    asked: Mapping[str, tuple[str, str]]
    images: Mapping[str, str]
    values: Mapping[str, float | None]

    @property
    def digest(self) -> str:
        """The digest of all questions and golds of the data; "" where the run does not tell."""
        told = self.run.get("data") or self.run["settings"].get("data") or {}
        return str(told.get("sha256", ""))

    def summary(self, figure: str) -> Summary:
        """Return a figure, averaged the way it is published."""
        told = self.run["figures"][figure]
        return Summary(**(told["macro"] if told["average"] == "macro" and told["macro"] else told["micro"]))


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Runs in the order in which they were named, and how each differs from the first; p-values are corrected."""

    entries: tuple[Entry, ...]
    differences: tuple[PairedComparison | None, ...]
    notes: tuple[str, ...]

    @property
    def figures(self) -> list[Figure]:
        """The benchmark's figures, as the first run tells of them."""
        told = self.entries[0].run["figures"]
        return [
            Figure(name, each["label"], "", each["average"], each["over"], each["share"]) for name, each in told.items()
        ]

    @property
    def tables(self) -> Iterator[Table]:
        """All measured tables."""
        figures, names = self.figures, [entry.name for entry in self.entries]
        rows = []
        for entry, difference in zip(self.entries, self.differences, strict=True):
            counts = [f"{entry.run['questions']:,}", f"{entry.run['statuses']['error']:,}"]
            cells = [cell(figure, entry.summary(figure.name)) for figure in figures]
            rows.append([entry.name, *counts, *cells, *_told(figures[0], difference)])
        head = ["", "answers", "errors", *map(label, figures), f"{figures[0].label} − first", "p, Holm"]
        yield Table("Side by side", head, rows, spare=(*range(len(figures) + 2, 3, -1), 2, 1))
        statuses = [status for status in STATUSES if any(entry.run["statuses"][status] for entry in self.entries)]
        counted = [[s, *(f"{entry.run['statuses'][s]:,}" for entry in self.entries)] for s in statuses]
        yield Table("What became of the questions", ["", *names], counted)
        for breakdown in self.entries[0].run["breakdowns"]:
            of = [entry.run["breakdowns"].get(breakdown, {}) for entry in self.entries]
            groups = list(dict.fromkeys(group for groups in of for group in groups))
            rows = [[group, *(_group_cell(figures[0], groups.get(group)) for groups in of)] for group in groups]
            yield Table(f"{label(figures[0])} by {breakdown}", [breakdown, *names], rows)

    @property
    def quoted(self) -> Iterator[tuple[Table, str]]:
        """Tables that others published, each with its note."""
        for each in self.entries[0].run["quoted"]:
            yield quoted_table(Quoted(**each))

    def to_markdown(self) -> str:
        """Return it as Markdown."""
        parts = [f"# {escaped(self.entries[0].run['benchmark']['name'])}: runs compared", ""]
        for table in self.tables:
            parts += [f"## {escaped(table.title)}", "", *table.markdown(), ""]
        parts += [NOTE, "", *(f"- {escaped(note)}" for note in self.notes), ""]
        for table, note in self.quoted:
            parts += [f"## {escaped(table.title)}", "", escaped(note), "", *table.markdown(), ""]
        return "\n".join(parts)

    def print(self, console: Any) -> None:
        """Print it on a ``rich.console.Console``."""
        for table in self.tables:
            table.print(console)
        for note in self.notes:
            say(console, note)

    def write(self, folder: Path) -> None:
        """Write ``comparison.md``, and ``per_category_metrics.csv`` with the rows of all runs."""
        write_bytes(folder / COMPARISON, self.to_markdown().encode("utf-8", "backslashreplace"))
        rows = [list(record.values()) for e in self.entries for _, record in read_records(e.folder / PER_CATEGORY)]
        first = next(record for _, record in read_records(self.entries[0].folder / PER_CATEGORY))
        write_bytes(folder / PER_CATEGORY, csv_bytes([list(first), *rows]))


def compare_runs(folders: Sequence[str | Path]) -> Comparison:
    """Compare runs, or scorings that were written into folders.

    Raises
    ------
    DataError
        There are fewer than two, one is no finished run, or they are of several benchmarks, splits, data with other
        questions or golds, or versions of the rules.
    """
    read = [_entry(folder) for folder in dict.fromkeys(map(Path, folders))]
    names = told_apart([entry.name for entry in read], [entry.folder for entry in read])
    entries = [replace(entry, name=name) for entry, name in zip(read, names, strict=True)]
    if len(entries) < 2:
        raise DataError(f"a comparison needs two runs at least, not {len(entries)}")
    first = entries[0]
    for entry in entries[1:]:
        sides = [{**run["benchmark"], **dict(enumerate(run["signatures"], 1))} for run in (entry.run, first.run)]
        for key in dict.fromkeys([*sides[0], *sides[1]]):
            there, here = (side.get(key, "none") for side in sides)
            if there != here:
                what = f"signature {key}" if isinstance(key, int) else key
                told = f"{what} is {there} there and {here} in {first.folder}"
                raise DataError(f"{entry.folder} cannot be compared: {told}")
        if told := _other_data(entry, first):
            raise DataError(f"{entry.folder} cannot be compared: {told}")
    found: list[PairedComparison | None] = [None, *(_difference(entry, first) for entry in entries[1:])]
    corrected = holm([None if each is None else each.p_value for each in found])
    differences = [each and replace(each, p_value=p) for each, p in zip(found, corrected, strict=True)]
    return Comparison(tuple(entries), tuple(differences), tuple(_notes(entries, found)))


def _other_data(entry: Entry, first: Entry) -> str:
    """Say in what the data of two runs differ; "" where they do not.

    Golds that differ are named; what is in neither run's answers shows in the digest of all questions only.
    """
    splits, others = ({split for split, _ in each.asked.values()} for each in (entry, first))
    if splits.isdisjoint(others):
        return f"it is of the split {_listed(splits)} and {first.folder} of {_listed(others)}"
    for id, (split, gold) in entry.asked.items():
        other_split, other_gold = first.asked.get(id, (split, gold))
        if split != other_split:
            return f"the question {id} is of the split {split} there and of {other_split} in {first.folder}"
        if gold != other_gold:
            return f"the gold of {id} is {gold!r} there and {other_gold!r} in {first.folder}"
    if entry.digest and first.digest and entry.digest != first.digest:
        return (
            f"its data are others than those of {first.folder} (SHA-256 of ids, questions and golds: "
            f"{entry.digest[:12]}… and {first.digest[:12]}…); run or score both on one copy"
        )
    return ""


def _listed(splits: set[str]) -> str:
    return ", ".join(sorted(splits)) or "(none)"


def _difference(entry: Entry, first: Entry) -> PairedComparison:
    both = [id for id in first.values if id in entry.values]
    if not both:
        raise DataError(f"{entry.folder} and {first.folder} have no question in common that both have an answer to")
    sides = [{id: side.values[id] for id in both} for side in (entry, first)]
    return paired_bootstrap(*sides, clusters={id: first.images[id] for id in both})


def _notes(entries: Sequence[Entry], differences: Sequence[PairedComparison | None]) -> Iterator[str]:
    yield (
        "difference to the first: micro, over the questions that both have an answer to, 95 % paired bootstrap, whole "
        f"images drawn; p corrected by Holm's method, * below {SIGNIFICANT:g}"
    )
    first = len(entries[0].values)
    for entry, difference in zip(entries, differences, strict=True):
        own = len(entry.values)
        if difference is not None and not difference.count == first == own:
            yield f"{entry.name}: {difference.count:,} questions are in both, of the first's {first:,} and its {own:,}"
    of: dict[str, list[str]] = {}
    for entry in entries:
        for warning in entry.run["warnings"]:
            of.setdefault(warning, []).append(entry.name)
    for warning, names in of.items():
        yield warning if len(names) == len(entries) else f"{', '.join(names)}: {warning}"


def _told(figure: Figure, difference: PairedComparison | None) -> list[str]:
    if difference is None or difference.difference is None:
        return ["", ""]
    sign, p = "+" if difference.difference > 0 else "", difference.p_value
    interval = "" if difference.low is None else f"\n{shown(figure, difference.low)} … {shown(figure, difference.high)}"
    mark = "" if p is None else f"{p:.3f}{' *' if p < SIGNIFICANT else ''}"
    return [f"{sign}{shown(figure, difference.difference)}{interval}", mark]


def _group_cell(figure: Figure, group: Mapping[str, Any] | None) -> str:
    return "–" if group is None else cell(figure, Summary(**group[figure.name]))


def _entry(folder: Path) -> Entry:
    with read_run(folder, FORMAT) as run:
        first = next(iter(run["figures"]), None)
        if first is None:
            raise DataError(f"{folder}: no question of this run could be asked, so there is nothing to compare")
        asked: dict[str, tuple[str, str]] = {}
        images: dict[str, str] = {}
        values: dict[str, list[float | None]] = {}
        settings = run["settings"]
        split = settings.get("split") or settings.get("data", {}).get("split", "")
        for _, row in read_records(folder / SCORES):
            asked[row["id"]] = row["split"] or split, row["reference"]
            if row["status"] != "error":
                images[row["id"]] = row["image"]
                values.setdefault(row["id"], []).append(row[first])
        name = f"{run['system']}, {run['prompt']}" if run["prompt"] else run["system"]
    return Entry(name, folder, run, asked, images, {id: v[0] if len(v) == 1 else mean(v) for id, v in values.items()})
