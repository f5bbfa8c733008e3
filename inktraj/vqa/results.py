"""What a run or a scoring found: a result for each question, its figures, and the files that hold them."""

from __future__ import annotations

import csv
import gc
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from inktraj.evaluation.results import RUN
from inktraj.io.files import write_bytes
from inktraj.metrics.statistics import Summary, bootstrap, group_places, summarize_all
from inktraj.vlm import Reply
from inktraj.vqa.benchmark import Benchmark, Extra, Figure, Questions, Result, Status, group_of

FORMAT = "inktraj vqa 1"

SCORES = "scores.parquet"
"""The file with a row for each answer."""

SKIPPED = "skipped.csv"
"""The file of records of the data that are no questions; not there where all are."""

PER_CATEGORY = "per_category_metrics.csv"
"""The file of all figures over all answers and by each group, named as PalmLeaf-VQA's authors name theirs."""

STATUSES: tuple[Status, ...] = get_args(Status)


def data_digest(questions: Questions) -> str:
    """Return the SHA-256 of all ids, questions and golds: what two runs must share to be compared."""
    told = hashlib.sha256()
    for question in questions.items:
        told.update(f"{question.id}\0{question.text}\0{question.golds}\n".encode("utf-8", "surrogatepass"))
    return told.hexdigest()


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no cycles of garbage meanwhile: a million small objects have none, and looking takes a third of all."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Figures:
    """A figure over all results: micro, over questions; macro, the mean of its groups' means, None where it has none.

    Intervals are of whole images drawn.
    """

    figure: Figure
    micro: Summary
    macro: Summary | None

    @property
    def published_way(self) -> Summary:
        """That average by which the figure is published."""
        return self.macro if self.figure.average == "macro" and self.macro is not None else self.micro


@dataclass(frozen=True, eq=False)
class Outcome:
    """All that ``report.html``, ``summary.md`` and ``run.json`` tell.

    Parameters
    ----------
    benchmark, prompt
        What was asked, and by which prompt; "" where predictions do not say.
    system
        Whose answers they are.
    questions
        What the data hold.
    results
        One for each question that was to be answered, or for each of its answers.
    settings
        What decided the answers, as plain JSON.
    costs
        Tokens, dollars (None where not known) and seconds.
    left_out
        Questions that a limit left out, or that have no prediction where only answered ones are scored.
    stopped
        Why not all were asked; "" where all were.
    warnings
        What must be known to read the figures.
    replies
        Where a model was asked: its replies, by the question's id.
    """

    benchmark: Benchmark
    prompt: str
    system: str
    questions: Questions
    results: tuple[Result, ...]
    settings: Mapping[str, Any]
    costs: Mapping[str, Any] = field(default_factory=dict)
    left_out: int = 0
    stopped: str = ""
    warnings: Sequence[str] = ()
    replies: Mapping[str, Reply] = field(default_factory=dict)
    _grouped: dict[str, dict[str, NDArray[np.int64]]] = field(default_factory=dict, repr=False)
    _labels: dict[str, list[str]] = field(default_factory=dict, repr=False)

    @property
    def counts(self) -> dict[Status, int]:
        """How many results have each status."""
        found = Counter(result.status for result in self.results)
        return {status: found[status] for status in STATUSES}

    @cached_property
    def scored(self) -> tuple[Result, ...]:
        """All results but errors, which are in no figure."""
        return tuple(result for result in self.results if result.status != "error")

    @cached_property
    def flags(self) -> dict[str, int]:
        """How often each flag was raised."""
        return dict(sorted(Counter(flag for result in self.scored for flag in result.scored.flags).items()))

    @cached_property
    def groups(self) -> dict[str, dict[str, dict[str, Summary]]]:
        """Breakdown → group → figure → its average; results in no group of a breakdown are not in it."""
        over = [figure.over for figure in self.benchmark.figures if figure.over]
        out = {}
        for breakdown in dict.fromkeys([*self.benchmark.breakdowns, *over]):
            places = self._places(breakdown)
            out[breakdown] = {label: self._summaries(places[label]) for label in places}
        return out

    @cached_property
    def figures(self) -> tuple[Figures, ...]:
        """All figures, over all results but errors."""
        if not self.scored:
            return ()
        micro = self._summaries(np.arange(len(self.scored)))
        return tuple(Figures(f, micro[f.name], self._macro(f)) for f in self.benchmark.figures)

    def _macro(self, figure: Figure) -> Summary | None:
        """Return the mean of the groups' means: that of all results, each counted by 1 / the results of its group.

        Its interval is of whole images drawn: the groups (nine languages) are no sample of groups.
        """
        column = self._columns[figure.name]
        weights = np.full(len(column), np.nan)
        for places in self._places(figure.over).values() if figure.over else ():
            known = places[~np.isnan(column[places])]
            if len(known):
                weights[known] = 1 / len(known)
        count = int((~np.isnan(weights)).sum())
        if not count:
            return None
        found = bootstrap(column * weights, per=weights, clusters=self._clusters.tolist())
        return Summary(found.value, None, found.low, found.high, count, len(column) - count)

    def _places(self, breakdown: str) -> dict[str, NDArray[np.int64]]:
        """Return where the results of each group stand among the scored ones."""
        if breakdown not in self._grouped:
            labels = [label for label, scored in zip(self.labels(breakdown), self._known, strict=True) if scored]
            found = group_places(labels, len(labels))
            self._grouped[breakdown] = {label: places for label, places in found.items() if label}
        return self._grouped[breakdown]

    def _summaries(self, places: NDArray[np.int64]) -> dict[str, Summary]:
        columns = {name: column[places] for name, column in self._columns.items()}
        return summarize_all(columns, clusters=self._clusters[places].tolist())

    @cached_property
    def extras(self) -> tuple[Extra, ...]:
        """The benchmark's own tables."""
        return tuple(self.benchmark.extras(self.scored))

    def labels(self, breakdown: str) -> list[str]:
        """Return the group of each result."""
        if breakdown not in self._labels:
            self._labels[breakdown] = [group_of(result, breakdown) for result in self.results]
        return self._labels[breakdown]

    @cached_property
    def values(self) -> dict[str, NDArray[np.float64]]:
        """Figure → its value in each result; NaN where it has none."""
        every = [result.scored.values for result in self.results]
        names = [figure.name for figure in self.benchmark.figures]
        return {name: np.array([values.get(name) for values in every], dtype=np.float64) for name in names}

    @cached_property
    def images(self) -> list[str]:
        """What each result's question is about."""
        return [result.question.about for result in self.results]

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        """Which results are no errors."""
        return np.array([result.status != "error" for result in self.results], dtype=bool)

    @cached_property
    def _columns(self) -> dict[str, NDArray[np.float64]]:
        return {name: column[self._known] for name, column in self.values.items()}

    @cached_property
    def _clusters(self) -> NDArray[np.int64]:
        """A number for each image."""
        numbers: dict[str, int] = {}
        of = [numbers.setdefault(name, len(numbers)) for name in self.images]
        return np.array(of, dtype=np.int64)[self._known]

    def to_json(self) -> dict[str, Any]:
        """Return everything but the single results, as plain JSON."""
        return {
            "format": FORMAT,
            "benchmark": {
                "name": self.benchmark.name,
                "version": self.benchmark.version,
                "data": self.questions.version,
            },
            "data": {"questions": len(self.questions.items), "sha256": data_digest(self.questions)},
            "prompt": self.prompt,
            "system": self.system,
            "questions": len(self.results),
            "left_out": self.left_out,
            "statuses": self.counts,
            "flags": self.flags,
            "figures": {
                f.figure.name: {
                    "label": f.figure.label,
                    "share": f.figure.share,
                    "average": f.figure.average,
                    "over": f.figure.over,
                    "published_way": f.published_way.mean,
                    "micro": asdict(f.micro),
                    "macro": asdict(f.macro) if f.macro is not None else None,
                }
                for f in self.figures
            },
            "breakdowns": {
                breakdown: {
                    group: {name: asdict(summary) for name, summary in summaries.items()}
                    for group, summaries in groups.items()
                }
                for breakdown, groups in self.groups.items()
            },
            "quoted": [asdict(quoted) for quoted in self.benchmark.quoted],
            "signatures": [str(signature) for signature in self.benchmark.signatures()],
            "settings": dict(self.settings),
            "costs": dict(self.costs),
            "stopped": self.stopped,
            "warnings": list(self.warnings),
        }


@uncollected()
def write_outcome(outcome: Outcome, folder: Path) -> None:
    """Write ``run.json``, ``scores.parquet``, ``scores.csv``, ``per_category_metrics.csv``, ``skipped.csv``, the
    benchmark's own tables, ``summary.md`` and ``report.html``.

    Raises
    ------
    DataError
        One cannot be written.
    """
    from inktraj.vqa.report import report_html
    from inktraj.vqa.summary import summary_markdown

    _write_scores(outcome, folder)
    write_bytes(folder / PER_CATEGORY, csv_bytes(list(per_category(outcome))))
    (folder / SKIPPED).unlink(missing_ok=True)
    if skipped := outcome.questions.skipped:
        write_bytes(folder / SKIPPED, csv_bytes([["where", "reason"], *([s.where, s.reason] for s in skipped)]))
    for extra in outcome.extras:
        if extra.file:
            write_bytes(folder / extra.file, csv_bytes([extra.head, *extra.rows]))
    record = json.dumps(outcome.to_json(), indent=1, ensure_ascii=False, default=str)
    write_bytes(folder / RUN, record.encode("utf-8", "backslashreplace"))
    write_bytes(folder / "summary.md", summary_markdown(outcome).encode("utf-8", "backslashreplace"))
    write_bytes(folder / "report.html", report_html(outcome).encode("utf-8", "backslashreplace"))


def per_category(outcome: Outcome) -> Iterator[list[str | float | None]]:
    """Yield head and rows of all figures, in percent where they are shares: over all answers, and by each group."""
    figures = outcome.benchmark.figures
    yield ["System", "Prompt", "Breakdown", "Group", "Answers", *(figure.label for figure in figures)]
    whole = {f.figure.name: f.micro for f in outcome.figures}
    for breakdown, groups in {"all": {"all": whole} if whole else {}, **outcome.groups}.items():
        for group, summaries in groups.items():
            one = summaries[figures[0].name]
            means = [summaries[figure.name].mean for figure in figures]
            shown = [
                None if mean is None else round(100 * mean if figure.share else mean, 4)
                for mean, figure in zip(means, figures, strict=True)
            ]
            yield [outcome.system, outcome.prompt, breakdown, group, one.count + one.left_out, *shown]


def score_columns(outcome: Outcome) -> dict[str, Sequence[str | None] | NDArray[np.float64]]:
    """Return the table of single results."""
    results = outcome.results
    breakdowns = [name for name in outcome.benchmark.breakdowns if name != "language"]
    return {
        "id": [result.question.id for result in results],
        "image": outcome.images,
        "split": [result.question.split for result in results],
        "language": outcome.labels("language"),
        **{name: outcome.labels(name) for name in breakdowns},
        "status": [result.status for result in results],
        **outcome.values,
        "prediction": [result.prediction for result in results],
        "normalized": [result.scored.normalized for result in results],
        "reference": [" | ".join(result.question.golds) for result in results],
        "flags": [" ".join(result.scored.flags) for result in results],
        "reason": [result.reason for result in results],
    }


def _write_scores(outcome: Outcome, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    def column(values: Sequence[str | None] | NDArray[np.float64]) -> Any:
        if isinstance(values, np.ndarray):
            return pa.array(values, from_pandas=True)  # NaN is no value
        try:
            return pa.array(values, pa.string())
        except UnicodeEncodeError:
            return pa.array([_utf8(value) for value in values], pa.string())

    table = pa.table({name: column(values) for name, values in score_columns(outcome).items()})
    parquet, text = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet, compression="zstd")
    write_bytes(folder / SCORES, parquet.getvalue())
    pyarrow.csv.write_csv(table, text)
    write_bytes(folder / "scores.csv", text.getvalue())


def _utf8(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def csv_bytes(rows: Sequence[Sequence[str | float | int | None]]) -> bytes:
    """Return rows as CSV in UTF-8."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
