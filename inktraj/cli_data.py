"""``inktraj data``: what data sets there are, whether they are whole, what is in them; and IAM-OnDB's pages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inktraj.cli_output import INTERRUPTED, SOME_FAILED, complain

if TYPE_CHECKING:
    from inktraj.datasets.sample import Problem
    from inktraj.datasets.statistics import Statistics

SHOWN = 20
"""Problems that are told on a terminal; --json has all."""

app = typer.Typer(
    help="Data sets for evaluation.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to standard output.")]
Images = Annotated[Path | None, typer.Option(help="Folder in which a pseudo-label run's page images are now.")]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """Tell which data sets are known, and where they were found."""
    from inktraj.datasets import manifests
    from inktraj.datasets.opening import FOLDER_VARIABLE, find

    rows = [find(name) for name in manifests()]
    if as_json:
        _json(
            [
                {
                    "name": row.manifest.name,
                    "version": row.manifest.version,
                    "title": row.manifest.title,
                    "layout": row.manifest.layout,
                    "references": row.manifest.references,
                    "licence": row.manifest.licence,
                    "citation": row.manifest.citation,
                    "url": row.manifest.url,
                    "found": None if row.root is None else str(row.root),
                }
                for row in rows
            ]
        )
        return
    for row in rows:
        typer.echo(f"{row.manifest.name} {row.manifest.version}: {row.manifest.title}")
        typer.echo(f"  references: {row.manifest.references}; licence: {row.manifest.licence}")
        where = row.root or f"not found; {row.manifest.notes or f'looked for in {FOLDER_VARIABLE}'}"
        typer.echo(f"  {where}")


@app.command()
def verify(
    place: Annotated[str, typer.Argument(help="Name or folder of a data set; a local copy of IAM-OnDB too.")],
    images: Images = None,
    as_json: AsJson = False,
) -> None:
    """Look at every file of a data set: counts, digests, words, images. Exit code 1 where something is wrong."""
    from inktraj.datasets.verification import verify as look

    with _bar("verified") as progress:
        found = look(place, images=images, progress=progress)
    if as_json:
        _json(
            {
                "name": found.manifest.name,
                "root": str(found.root),
                "counts": dict(found.counts),
                "problems": [str(problem) for problem in found.problems],
                "skipped": [str(problem) for problem in found.skipped],
            }
        )
    else:
        counts = "; ".join(f"{name.replace('_', ' ')} {count}" for name, count in found.counts.items())
        typer.echo(f"{found.manifest.name} in {found.root}: {counts}")
        _tell("no sample", found.skipped)
        _tell("problem", found.problems)
        if not found.problems:
            typer.echo("all is as it should be")
    if found.problems:
        raise typer.Exit(SOME_FAILED)


@app.command()
def prepare(
    place: Annotated[Path, typer.Argument(help="Folder of a local copy of IAM-OnDB.")],
    out: Annotated[Path, typer.Option(help="Folder for the data set; a stopped run in it is taken up.")],
    limit: Annotated[int | None, typer.Option(help="Only the first so many forms.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Remove an earlier run's pages first.")] = False,
) -> None:
    """Make a data set of pages and words from IAM-OnDB's recorded lines.

    Exit code 1 says that a form could not be used, or is not all as it should be; OUT/problems.jsonl tells all.
    """
    from inktraj.datasets.prepare import prepare as make

    try:
        with _bar("forms") as progress:
            done = make(place, out, limit=limit, overwrite=overwrite, progress=progress)
    except KeyboardInterrupt:
        complain(f"interrupted; finished pages are kept in {out}, and the same command goes on")
        raise typer.Exit(INTERRUPTED) from None
    before = f" ({done.reused} of them done before)" if done.reused else ""
    typer.echo(f"{done.out}: {done.pages} pages{before}, {done.words} words")
    if done.problems:
        _tell("problem", done.problems)
        raise typer.Exit(SOME_FAILED)


@app.command()
def stats(
    place: Annotated[str, typer.Argument(help="Name or folder of a data set.")],
    split: Annotated[str | None, typer.Option(help="Only this part of it.")] = None,
    svg: Annotated[Path | None, typer.Option(help="File for word frequencies and histograms.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell the figures that inkGround publishes of itself, beside its own."""
    from inktraj.datasets import load_dataset, manifests
    from inktraj.datasets.statistics import draw, statistics
    from inktraj.io.files import write_text

    data = load_dataset(place, split=split)
    with _bar("pages") as progress:
        found = statistics(data, progress)
    if svg is not None:
        write_text(svg, draw(found))
    if as_json:
        _json(found.to_json())
    else:
        _table(found, manifests()["inkground"].statistics)
    _tell("no sample", data.skipped)


def _table(found: Statistics, published: Any) -> None:
    head = ("", found.name, "inkGround")
    figures = found.figures.items()
    rows = [(name.replace("_", " "), _number(value), _number(published.get(name))) for name, value in figures]
    wide = [max(len(row[i]) for row in [head, *rows]) for i in range(3)]
    for row in [head, *rows]:
        typer.echo(f"{row[0]:<{wide[0]}}  {row[1]:>{wide[1]}}  {row[2]:>{wide[2]}}".rstrip())
    typer.echo("most frequent: " + ", ".join(f"{word} {count}" for word, count in found.top_words))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def _tell(what: str, problems: tuple[Problem, ...]) -> None:
    for problem in problems[:SHOWN]:
        complain(f"{what}: {problem}")
    if len(problems) > SHOWN:
        complain(f"{len(problems) - SHOWN} more")


def _json(data: Any) -> None:
    typer.echo(json.dumps(data, ensure_ascii=False, indent=1))


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
