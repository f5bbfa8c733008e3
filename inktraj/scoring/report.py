"""Scores on a terminal and in the files that were asked for."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from inktraj.errors import DataError
from inktraj.io.files import name_of, write_text
from inktraj.io.terminal import printable
from inktraj.metrics.statistics import PairedComparison
from inktraj.scoring.scores import Scores
from inktraj.scoring.writing import comparison_table, group_table, notes, table

Comparison = Mapping[str, Mapping[Any, PairedComparison]]

_WIDTH = 140  # columns where there is no terminal that says

# What a narrow terminal does without, step by step: columns of the main table and of a comparison.
_SPARE = ((), (3, 6), (2, 3, 5, 6))
_SPARE_COMPARED = ((), (7,), (4, 7), (1, 2, 4, 7))


def write(scores: Scores, comparison: Comparison | None, targets: Mapping[str, Path | None]) -> None:
    """Write files by form: ``json``, ``csv``, ``parquet``, ``markdown``; ``-`` stands for standard output.

    Raises
    ------
    DataError
        A file cannot be written; one that was there then stays as it was.
    """
    for form, path in targets.items():
        if path is None:
            continue
        target: Any = sys.stdout if path == Path("-") else path
        if form == "json":
            told = scores.to_json()
            if comparison is not None:
                told["comparison"] = {n: {k: asdict(c) for k, c in sides.items()} for n, sides in comparison.items()}
            write_text(target, json.dumps(told, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
        elif form == "csv":
            scores.to_csv(target)
        elif form == "parquet":
            scores.to_parquet(target)
        else:
            write_text(target, scores.to_markdown())


def show(scores: Scores, comparison: Comparison | None, file: TextIO) -> None:
    """Print the tables, and what must be known to read them; DataError where the file takes no more."""
    try:
        if isinstance(file, TextIOWrapper) and not _takes(file.encoding):
            file.reconfigure(errors="replace")  # a table with other arrows is better than none
        _show(scores, comparison, file)
        file.flush()  # a full disk must be told of here and not at the exit
    except OSError as err:
        raise DataError(f"{name_of(file)}: cannot be written ({err.strerror or err})") from err


def _takes(encoding: str) -> bool:
    """Say whether an encoding holds all that a table may hold."""
    return codecs.lookup(encoding).name.startswith("utf")


def _show(scores: Scores, comparison: Comparison | None, file: TextIO) -> None:
    from rich.console import Console

    console = Console(file=file, width=None if file.isatty() else _WIDTH, soft_wrap=False)
    _print(console, "", *table(scores), spare=_SPARE)
    for grouping in scores.groupings:
        _print(console, f"by {grouping}: all words (valid only, where it differs)", *group_table(scores, grouping))
    if comparison is not None:
        _print(console, "this − other, on the same words", *comparison_table(comparison), spare=_SPARE_COMPARED)
    for note in notes(scores):
        console.print(printable(note), markup=False, highlight=False, soft_wrap=True)


def _print(
    console: Any,
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    spare: Sequence[tuple[int, ...]] = ((),),
) -> None:
    """Print a table, without the spare columns where that is needed to hold each row in one line."""
    unbounded = console.options.update(max_width=10_000)
    for left_out in spare:
        kept = [i for i in range(len(head)) if i not in left_out]
        drawn = _drawn(title, [head[i] for i in kept], [[row[i] for i in kept] for row in rows])
        if console.measure(drawn, options=unbounded).maximum <= console.width:
            break
    console.print(drawn)


def _drawn(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for number, name in enumerate(head):
        drawn.add_column(Text(name), justify="left" if number == 0 else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    return drawn
