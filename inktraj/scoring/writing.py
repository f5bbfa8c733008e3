"""Scores as JSON, Markdown, CSV and Parquet; each file is written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from inktraj.errors import DataError, ParseError
from inktraj.io.files import read_bytes, write_bytes, write_text
from inktraj.metrics.signature import Signature
from inktraj.metrics.statistics import PairedComparison, Summary
from inktraj.scoring.figures import FIGURES
from inktraj.scoring.matching import STATUSES
from inktraj.scoring.scores import Drawing, Grouping, Groups, ScoredWord, Scores, Twice

FORMAT = "inktraj scores 1"
"""Name of the form of JSON and Parquet files."""

_WORD = ("name", "page", "writer", "dataset", "text", "length", "status", "reason", "reading")
_HEADLINES = ("dtw", "tolerant_dtw", "chamfer", "ink_f1", "ar", "cr", "style")
_LABELS = {figure.name: figure for figure in FIGURES}


def to_json(scores: Scores, by: Sequence[Grouping]) -> dict[str, Any]:
    """Return all figures as plain numbers and names."""
    groups = {grouping: _groups_json(scores.by(grouping)) for grouping in by}
    return {
        "format": FORMAT,
        **_told(scores),
        "words": len(scores.words),
        "counts": scores.counts,
        "coverage": scores.coverage,
        "drawn": scores.drawn,
        "figures": {name: asdict(twice) for name, twice in scores.figures.items()},
        "by": groups,
    }


def _told(scores: Scores) -> dict[str, Any]:
    return {
        "signatures": {s.metric: str(s) for s in scores.signatures},
        "references": scores.references,
        "intervals": asdict(scores.drawing),
        "groupings": list(scores.groupings),
        "warnings": list(scores.warnings),
        "predictions_without_reference": list(scores.unknown),
        "references_without_strokes": list(scores.empty),
        "unread": dict(scores.unread),
    }


def _groups_json(groups: Groups) -> dict[str, Any]:
    return {
        "groups": [
            {
                "label": label,
                "counts": group.counts,
                "coverage": group.coverage,
                "figures": {name: asdict(twice) for name, twice in group.figures.items()},
            }
            for label, group in groups.groups.items()
        ],
        "macro": {name: asdict(twice) for name, twice in groups.macro.items()},
    }


def table(scores: Scores) -> tuple[list[str], list[list[str]]]:
    """Return heading and rows of the main table as text: each told figure over all words, and over valid ones."""
    share = f"{100 * scores.drawing.confidence:g} %"
    valid = f"valid only ({_percent(scores.coverage)})"
    head = ["", "all", share, "median", valid, share, "median", "words"]
    rows = []
    for name, twice in scores.figures.items():
        figure = _LABELS[name]
        if figure.told and twice.valid.count + twice.all.count:
            counts = dict.fromkeys((twice.all.count or "–", twice.valid.count))
            words = " / ".join(map(str, counts))
            rows.append([_label(name), *_cells(twice.all), *_cells(twice.valid), words])
    return head, rows


def _label(name: str) -> str:
    return _LABELS[name].label + {"less": " ↓", "more": " ↑", "": ""}[_LABELS[name].better]


def _cells(summary: Summary) -> list[str]:
    interval = "" if summary.low is None else f"{_short(summary.low)} … {_short(summary.high)}"
    return [_short(summary.mean), interval, _short(summary.median) if summary.median is not None else ""]


def _short(value: float | None) -> str:
    """Write a number with four digits, or – for none."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"


def group_table(scores: Scores, grouping: Grouping) -> tuple[list[str], list[list[str]]]:
    """Return heading and rows of the headlines by group; each cell holds all, and valid only."""
    groups = scores.by(grouping)
    names = [name for name in _HEADLINES if name in groups.macro]
    head = [grouping, "words", "coverage", *(_LABELS[name].label for name in names)]
    rows = [
        [str(label), str(sum(g.counts.values())), _percent(g.coverage), *(_pair(g.figures[name]) for name in names)]
        for label, g in groups.groups.items()
    ]
    rows.append([f"macro ({len(groups.groups)})", "", "", *(_pair(groups.macro[name]) for name in names)])
    rows.append(
        ["micro", str(len(scores.words)), _percent(scores.coverage), *(_pair(scores.figures[name]) for name in names)]
    )
    return head, rows


def _pair(twice: Twice) -> str:
    all, valid = _short(twice.all.mean), _short(twice.valid.mean)
    return all if all == valid else f"{all} ({valid})"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def notes(scores: Scores) -> list[str]:
    """Return what must stand below the tables: counts, how intervals were made, signatures, warnings."""
    counts = scores.counts
    told = ", ".join(f"{counts[status]} {status}" for status in STATUSES)
    out = [f"{len(scores.words)} words: {told}; coverage {_percent(scores.coverage)}"]
    out.append(
        "all: missing and invalid words score the declared worst; valid only: they are left out"
        + ("; errors are in neither" if counts["error"] else "")
    )
    drawing = scores.drawing
    out.append(
        f"intervals: {100 * drawing.confidence:g} % bootstrap, {drawing.resamples} draws, seed {drawing.seed}, of "
        f"{scores.drawn}"
    )
    out += [str(signature) for signature in scores.signatures]
    for what, names in (
        ("predictions have no reference", scores.unknown),
        ("references have no strokes", scores.empty),
    ):
        if names:
            out.append(f"not scored: {len(names)} {what}, such as {names[0]!r}")
    if scores.unread:
        where = next(iter(scores.unread))
        out.append(f"not read: {len(scores.unread)} files or lines of the predictions, such as {where}")
    return out + [f"warning: {warning}" for warning in scores.warnings]


def comparison_table(comparison: Mapping[str, Mapping[Any, PairedComparison]]) -> tuple[list[str], list[list[str]]]:
    """Return heading and rows of what `Scores.compare` found, as text."""
    head = ["", "this", "other", "difference", "interval", "p", "valid on both", "interval", "p"]
    rows = []
    for name, sides in comparison.items():
        all, valid = sides["all"], sides["valid"]
        if _LABELS[name].told and valid.count + all.count:
            own = [_short(all.first), _short(all.second), *_difference(all)]
            rows.append([_label(name), *own, *_difference(valid)])
    return head, rows


def _difference(found: PairedComparison) -> list[str]:
    interval = "" if found.low is None else f"{_short(found.low)} … {_short(found.high)}"
    return [_short(found.difference), interval, "" if found.p_value is None else f"{found.p_value:.3f}"]


def to_markdown(scores: Scores, by: Sequence[Grouping]) -> str:
    """Return the tables in Markdown."""
    parts = ["# Scores", "", *_markdown(*table(scores)), ""]
    for grouping in by:
        parts += [f"## By {grouping}", "", "All words (valid only in brackets where it differs).", ""]
        parts += [*_markdown(*group_table(scores, grouping)), ""]
    parts += [f"- `{note}`" if "|" in note else f"- {_cell(note)}" for note in notes(scores)]
    return "\n".join([*parts, ""])


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    """Return text that stays in its table cell, whatever it holds."""
    for char, safe in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("\n", " "), ("\r", " ")):
        text = text.replace(char, safe)
    return text


def write_csv(scores: Scores, file: str | Path) -> None:
    """Write a row a word; an empty cell stands for no value."""
    out: list[str] = []
    # Only what may end a line is quoted, and a lone carriage return may; so the writer's own line ends hold one.
    row = SimpleNamespace(write=lambda text: out.append(text.removesuffix("\r\n") + "\n"))
    writer = csv.writer(row, lineterminator="\r\n")
    writer.writerow([*_WORD, *scores.columns])
    columns = [column.tolist() for column in scores.columns.values()]
    for k, word in enumerate(scores.words):
        values = ["" if math.isnan(column[k]) else repr(column[k]) for column in columns]
        writer.writerow([*(getattr(word, name) for name in _WORD), *values])
    write_text(file, "".join(out))


def write_parquet(scores: Scores, file: str | Path) -> None:
    """Write a row a word, with everything else in the file's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {name: pa.int32() if name == "length" else pa.string() for name in _WORD}
    arrays = {name: pa.array([getattr(word, name) for word in scores.words], kind) for name, kind in kinds.items()}
    arrays |= {name: pa.array(column, pa.float64(), from_pandas=True) for name, column in scores.columns.items()}
    told = json.dumps({"format": FORMAT, **_told(scores)}, ensure_ascii=False)
    data = io.BytesIO()
    pq.write_table(pa.table(arrays).replace_schema_metadata({"inktraj": told}), data, compression="zstd")
    write_bytes(file, data.getvalue())


def read_scores(file: str | Path) -> Scores:
    """Read what `Scores.to_parquet` wrote.

    Raises
    ------
    DataError
        The file cannot be read, or is no such file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_table(io.BytesIO(read_bytes(file)), use_threads=False)
        told = json.loads((found.schema.metadata or {})[b"inktraj"])
        if told["format"] != FORMAT:
            raise ParseError(f"{file}: in the form {told['format']!r}, expected {FORMAT!r}; of another version?")
        words = [ScoredWord(**word) for word in found.select(list(_WORD)).to_pylist()]
        if not {word.status for word in words} <= set(STATUSES) or len({word.name for word in words}) < len(words):
            raise ParseError(f"{file}: has words of an unknown status, or twice of one name; was it edited?")
        columns = {
            name: np.array(found[name].to_numpy(), dtype=np.float64) for name in found.column_names if name not in _WORD
        }
        return Scores(
            tuple(words),
            columns,
            tuple(Signature.parse(text) for text in told["signatures"].values()),
            told["references"],
            Drawing(**told["intervals"]),
            tuple(told["predictions_without_reference"]),
            tuple(told["references_without_strokes"]),
            told["unread"],
            tuple(told["warnings"]),
            tuple(told["groupings"]),
        )
    except DataError:
        raise
    except (pa.ArrowException, OSError, AttributeError, KeyError, TypeError, ValueError) as err:
        raise ParseError(f"{file}: not scores that inktraj wrote as Parquet ({type(err).__name__}: {err})") from err
