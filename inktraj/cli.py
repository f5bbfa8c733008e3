"""The command line: arguments, progress and exit codes; every command's work is in the package.

Everything heavy is imported inside the commands, so that ``inktraj --help`` costs little.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer

from inktraj.cli_data import app as data_app
from inktraj.cli_eval import app as eval_app
from inktraj.cli_output import COMPILES, INTERRUPTED, SOME_FAILED, UNUSABLE, complain
from inktraj.cli_scoring import (
    BridgeOption,
    ByOption,
    ClustersOption,
    ResamplesOption,
    SpaceOption,
    StepOption,
    ToleranceOption,
    WorstOption,
    evaluation_of,
)
from inktraj.cli_vqa import app as vqa_app
from inktraj.errors import DataError, InktrajError, RunError

if TYPE_CHECKING:
    from inktraj.ink import Ink
    from inktraj.io import InkRecord
    from inktraj.io.images import Source
    from inktraj.page import U8, Page, WordCrop
    from inktraj.pseudolabel import Progress, RunSummary
    from inktraj.style import StyleModel

_FULL = frozenset([errno.ENOSPC, errno.EFBIG, errno.EDQUOT])
"""What a disk, or a limit, says that has no room; where compiled code is kept, too."""

WORDS = "words.jsonl"
_TEMPORARY = ".tmp-"

app = typer.Typer(
    name="inktraj",
    help="Give the pen movement back to photos of handwriting.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Segmenter = Annotated[str, typer.Option(help="'inkgap', or module:attribute of your own.")]
Recoverer = Annotated[str, typer.Option(help="'scribe', 'scribe-fast', 'tracer', or module:attribute of your own.")]
Recognizer = Annotated[str, typer.Option(help="'ppocr', or module:attribute of your own.")]

app.add_typer(data_app, name="data")
app.add_typer(eval_app, name="eval")
app.add_typer(vqa_app, name="vqa")


def main() -> None:
    """Run the command line; errors that inktraj raises on purpose are told without a traceback."""
    try:
        app()
    except InktrajError as err:
        if isinstance(err.__cause__, BrokenPipeError):
            _end(SOME_FAILED)  # the reader, such as head, has what it wanted
        complain(str(err))
        _end(UNUSABLE)
    except OSError as err:
        if err.errno not in _FULL:
            raise
        complain(f"cannot write {err.filename or 'all that was to be written'}: {err.strerror}")
        _end(UNUSABLE)


def _end(code: int) -> NoReturn:
    """Exit; what is left for a standard output that takes no more has nowhere to go."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        from inktraj import __version__

        typer.echo(f"inktraj {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it.")] = False,
) -> None:
    pass


@app.command()
def build_pseudolabels(
    pages: Annotated[list[str], typer.Argument(help="Folders, image or PDF files, patterns, zip or tar files.")],
    out: Annotated[Path, typer.Option(help="Folder for the data set; taken up again where it is not finished.")],
    threshold: Annotated[float, typer.Option(help="Least share of words that agree for a page to be kept.")] = 0.85,
    workers: Annotated[int, typer.Option(help="Processes, one thread each; 0 works in this one.")] = 1,
    segmenter: Segmenter = "inkgap",
    recoverer: Recoverer = "scribe",
    recognizer: Recognizer = "ppocr",
    seed: Annotated[int, typer.Option(help="For parts that draw random numbers.")] = 0,
    limit: Annotated[int | None, typer.Option(help="Only the first so many pages.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Remove the results in OUT first.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Do pages that failed before again.")] = False,
    page_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time for one page, after which it fails; 0 for no limit.")
    ] = 600,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Turn page photos into a data set of checked stroke trajectories.

    Exit code 1 says that some page failed, as its record in OUT says, or could not be read again.
    """
    from inktraj.pseudolabel import build_pseudolabels as build

    terminal = sys.stderr.isatty() and not quiet
    try:
        with _bar(terminal) as progress:
            summary = build(
                pages,
                out,
                threshold=threshold,
                workers=workers,
                segmenter=segmenter,
                recoverer=recoverer,
                recognizer=recognizer,
                seed=seed,
                limit=limit,
                overwrite=overwrite,
                retry_failed=retry_failed,
                page_timeout=page_timeout,
                progress=progress,
            )
    except KeyboardInterrupt:
        complain(f"interrupted; finished pages are kept in {out}, and the same command goes on with the others")
        raise typer.Exit(INTERRUPTED) from None
    if not quiet:
        _tell(summary, terminal)
    if summary.unread:
        complain(
            f"{len(summary.unread)} pages could not be read now, such as {summary.unread[0]}; what an earlier run made "
            "of them is kept"
        )
    if summary.failed or summary.unread:
        raise typer.Exit(SOME_FAILED)


@contextmanager
def _bar(terminal: bool) -> Iterator[Callable[[Progress], None] | None]:
    if not terminal:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = ("{task.fields[words]} words", "{task.fields[kept]} kept", "{task.fields[failed]} failed")
    with Bar(
        TextColumn("pages"),
        BarColumn(),
        MofNCompleteColumn(),
        *map(TextColumn, columns),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task("pages", total=None, words=0, kept="–", failed=0)

        def show(state: Progress) -> None:
            share = f"{state.kept / state.done:.0%}" if state.done else "–"
            if not state.page_id:
                # Pages of an earlier run came at once; counting them would make the time left too short.
                bar.reset(task, total=state.total, completed=state.reused)
            bar.update(task, completed=state.done, words=state.words, kept=share, failed=state.failed)

        yield show


def _tell(summary: RunSummary, terminal: bool) -> None:
    def share(value: float | None) -> str:
        return "–" if value is None else f"{value:.1%}"

    rows = [
        ("pages", f"{summary.pages} ({summary.reused} of them done before)" if summary.reused else str(summary.pages)),
        ("kept", f"{summary.kept} ({share(summary.kept_share)})"),
        ("dropped", str(summary.dropped)),
        ("failed", str(summary.failed)),
        ("words", str(summary.words)),
        ("agreement", share(summary.agreement)),
        ("ink recall", f"{share(summary.ink_recall)} on kept pages"),
        ("ink precision", f"{share(summary.ink_precision)} on kept pages"),
        ("time", f"{summary.seconds:.1f} s"),
    ]
    if summary.skipped:
        path, reason = summary.skipped[0]
        rows.append(("passed over", f"{len(summary.skipped)} files, such as {path}: {reason}"))
    if summary.left_out:
        rows.append(("left out", f"{len(summary.left_out)} pages of earlier runs that are no longer among the pages"))
    if summary.redone:
        name, reason = summary.redone[0]
        rows.append(("done again", f"{len(summary.redone)} pages with damaged results, such as {name}: {reason}"))
    rows.append(("see", str(summary.out / "report.html")))
    if not terminal:
        typer.echo("; ".join(f"{name} {value}" for name, value in rows), err=True)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False)
    for name, value in rows:
        table.add_row(name, Text(value))
    Console(stderr=True).print(table)


@app.command()
def segment(
    pages: Annotated[list[str], typer.Argument(help="Image or PDF files, folders, patterns, archives; - for stdin.")],
    out: Annotated[Path | None, typer.Option(help="Folder for word pictures and words.jsonl.")] = None,
    segmenter: Segmenter = "inkgap",
) -> None:
    """Find the words of pages: a JSON line for each, in reading order, on standard output or in OUT.

    Exit code 1 says that some page could not be used, 2 that none could; OUT is then as it was.
    """
    from inktraj.pseudolabel.parts import load_part
    from inktraj.pseudolabel.run import check_apart, check_outside

    part = load_part("segmenter", segmenter)
    sources, missing = _sources(pages)
    if out is not None:
        check_apart((place for place in pages if place != "-"), out)
        check_outside(filter(None, sources), out)
    with _words_kept(out) as (write, folder):

        def do(source: Source | None) -> None:
            page = _page(source)
            for crop in part(page).words:
                write(json.dumps(_word(page, crop, folder), ensure_ascii=False) + "\n")

        failed = _failures(sources, do)
    if failed or missing:
        raise typer.Exit(SOME_FAILED)


def _facing(recoverer: str, direction: str) -> Any:
    """The learned recoverer for another direction of writing; it alone has one."""
    from inktraj.errors import DataError
    from inktraj.recovery.scribe import Quality, Scribe

    qualities: dict[str, Quality] = {"scribe": "best", "scribe-fast": "fast"}
    if recoverer not in qualities:
        raise DataError(f"--direction {direction} is for the recoverers {' and '.join(qualities)}, not for {recoverer}")
    return Scribe(quality=qualities[recoverer], direction=cast(Any, direction))


@app.command()
def recover(
    images: Annotated[list[str], typer.Argument(help="Pictures of one word each; - for standard input.")],
    form: Annotated[str | None, typer.Option("--format", help="jsonl (default), inkml or svg.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the ink; its suffix chooses the form.")] = None,
    recoverer: Recoverer = "scribe",
    text: Annotated[str | None, typer.Option(help="What the word says, where known: a hint for the recoverer.")] = None,
    direction: Annotated[str, typer.Option(help="The way the writing runs: ltr, rtl or ttb (scribe only).")] = "ltr",
    times: Annotated[bool, typer.Option("--times", help="Add times by a speed model, marked as estimated.")] = False,
) -> None:
    """Recover the strokes of word pictures: ink on standard output or in OUT.

    Exit code 1 says that some picture could not be used, 2 that none could; OUT is then as it was.
    """
    from inktraj.errors import DataError
    from inktraj.io import InkRecord, write_ink
    from inktraj.pseudolabel.parts import load_part
    from inktraj.recovery import recover as recovered

    if out is not None:
        nowhere = BytesIO()
        nowhere.name = str(out)
        write_ink(nowhere, (), form)  # a form that is not known is told before the work is done
    part = load_part("recoverer", recoverer) if direction == "ltr" else _facing(recoverer, direction)
    records: list[InkRecord] = []

    def do(source: Source | None) -> None:
        page = _page(source)
        ink = recovered(page.pixels, recoverer=part, text=text, times=times)
        records.append(InkRecord(page.id, ink, text or ""))

    sources, missing = _sources(images)
    if text is not None and len(sources) > 1:
        raise DataError(f"--text is what one picture says, and there are {len(sources)} pictures; give them one by one")
    failed = _failures(sources, do)
    for record in records:
        if not record.ink.strokes:
            complain(f"{record.id}: no ink found")
    if out is None:
        write_ink(sys.stdout.buffer, records, form or "jsonl")
    else:
        write_ink(out, records, form)
    if failed or missing:
        raise typer.Exit(SOME_FAILED)


@app.command()
def render(
    inks: Annotated[list[str], typer.Argument(help="InkML, JSONL or SVG files; - for standard input.")],
    out: Annotated[Path, typer.Option(help="PNG file (- for standard output), or a folder for several pictures.")],
    pen: Annotated[float | None, typer.Option(help="Pen width in pixels; the ink's median by default.")] = None,
    local_widths: Annotated[bool, typer.Option("--local-widths", help="Draw the ink's own widths.")] = False,
    pen_up: Annotated[bool, typer.Option("--pen-up", help="Show where the pen moved in the air.")] = False,
    each: Annotated[bool, typer.Option("--each", help="A picture for each ink, not for each page or file.")] = False,
    form: Annotated[str | None, typer.Option("--from", help="Form of the files: inkml, jsonl or svg.")] = None,
) -> None:
    """Draw ink as PNG, dark on white.

    The inks of one page, or of one file that tells of no pages, are drawn together.
    """
    from inktraj.io import read_ink
    from inktraj.rendering import render as rendered

    pictures: dict[str, list[InkRecord]] = {}
    stems: set[str] = set()
    names: set[str] = set()
    for place in inks:
        stem = _free("ink" if place == "-" else Path(place).stem, stems)
        for record in read_ink(sys.stdin.buffer if place == "-" else place, form):
            page = record.extra.get("page") or stem
            pictures.setdefault(_free(record.id or page, names) if each else page, []).append(record)
    if not pictures:
        raise DataError(f"no ink in {', '.join(inks)}: there is nothing to draw")
    folder = each or len(pictures) > 1
    if folder and out.suffix.lower() == ".png":
        raise DataError(f"{out}: several pictures go into a folder; give a folder's name, not one that ends in .png")
    if folder:
        _make_folder(out)
    elif str(out) != "-" and out.suffix.lower() != ".png":
        raise DataError(f"{out}: the picture is a PNG; give it a name that ends in .png")
    files: set[str] = set()
    for name, records in pictures.items():
        ink = _together(name, [record.ink for record in records])
        pixels = rendered(ink, pen=pen, widths="local" if local_widths else "constant", pen_up=pen_up)
        _write_png(out / f"{_free(_safe(name), files)}.png" if folder else out, pixels)


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="InkML, JSONL or SVG file; - for standard input.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="File to write; - for standard output.")],
    form: Annotated[str | None, typer.Option("--from", help="Form of IN, where its name does not tell.")] = None,
    to: Annotated[str | None, typer.Option("--to", help="Form of OUT: inkml, jsonl or svg.")] = None,
) -> None:
    """Convert ink between InkML, JSONL and SVG."""
    from inktraj.io import read_ink, write_ink

    if target == "-" and to is None:
        raise DataError("standard output has no suffix that names its form; say --to inkml, --to jsonl or --to svg")
    records = read_ink(sys.stdin.buffer if source == "-" else source, form)
    write_ink(sys.stdout.buffer if target == "-" else target, records, to)


@app.command()
def score(
    pred: Annotated[str, typer.Argument(help="Predicted ink: a file, a folder, a pseudo-label data set; - for stdin.")],
    ref: Annotated[str, typer.Argument(help="Reference ink, in any of these forms.")],
    space: SpaceOption = "reference-box",
    step: StepOption = "default",
    bridge: BridgeOption = False,
    tolerance: ToleranceOption = None,
    worst: WorstOption = "far-corner",
    recognizer: Annotated[
        str, typer.Option(help="Reads the drawn predictions for AR, CR, CER, WER: 'ppocr', or module:attribute.")
    ] = "none",
    unit: Annotated[str, typer.Option(help="What a character is: codepoint or combining.")] = "codepoint",
    unicode: Annotated[str, typer.Option(help="Normalisation of texts: nfc, nfkc or none.")] = "nfc",
    case: Annotated[str, typer.Option(help="Case of texts: keep or fold.")] = "keep",
    punctuation: Annotated[str, typer.Option(help="Punctuation of texts: keep or drop.")] = "keep",
    filtered_by: Annotated[str | None, typer.Option(help="Recogniser that chose the references, and version.")] = None,
    style: Annotated[Path | None, typer.Option(help="Model of train-style that knows the references' writers.")] = None,
    by: ByOption = None,
    clusters: ClustersOption = "page",
    resamples: ResamplesOption = 1000,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    threads: Annotated[int, typer.Option(help="Over pairs; 0 for one a core.")] = 1,
    compare: Annotated[Path | None, typer.Option(help="Scores of another system, written with --parquet.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="File for all figures; - for standard output.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="File with a row a word; - for standard output.")] = None,
    parquet: Annotated[Path | None, typer.Option(help="The same, to be compared with later.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="File for the tables; - for standard output.")] = None,
    form: Annotated[str | None, typer.Option("--from", help="Form of PRED: inkml, jsonl or svg.")] = None,
    ref_form: Annotated[str | None, typer.Option("--ref-from", help="Form of REF: inkml, jsonl or svg.")] = None,
) -> None:
    """Score predicted ink against references, matched by page and word id.

    Exit code 1 says that some ink could not be used: it could not be read or compared, or has no reference.
    """
    from inktraj.metrics.readability import TextRules
    from inktraj.pseudolabel.parts import load_part
    from inktraj.scoring import Drawing, read_scores
    from inktraj.scoring import score as scored
    from inktraj.scoring.report import show, write

    if pred == ref == "-":
        raise DataError("PRED and REF cannot both be standard input")
    targets = {"json": json_file, "csv": csv, "parquet": parquet, "markdown": markdown}
    _check_targets(targets, [pred, ref, *([] if compare is None else [str(compare)])])
    other = None if compare is None else read_scores(compare)
    options: dict[str, Any] = {
        "evaluation": evaluation_of(space, step, bridge, tolerance, worst),
        "rules": TextRules(cast(Any, unit), cast(Any, unicode), cast(Any, case), cast(Any, punctuation)),
        "drawing": Drawing(cast(Any, clusters), resamples, seed=seed),
        "recognizer": None if recognizer == "none" else load_part("recognizer", recognizer),
        "references_filtered_by": filtered_by,
        "style": style,
        "by": by or (),
        "threads": threads,
        "pred_form": form,
        "ref_form": ref_form,
    }
    sides = [sys.stdin.buffer if place == "-" else place for place in (pred, ref)]
    with _stages(sys.stderr.isatty()) as progress:
        scores = scored(*sides, **options, progress=progress)
    comparison = None if other is None else scores.compare(other)
    write(scores, comparison, targets)
    show(scores, comparison, sys.stderr if Path("-") in targets.values() else sys.stdout)
    for where, reason in scores.unread.items():
        complain(f"not used: {reason if where in reason else f'{where}: {reason}'}")
    if scores.unread or scores.unknown or scores.counts["error"]:
        raise typer.Exit(SOME_FAILED)


@contextmanager
def _stages(terminal: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show a bar for each stage of scoring, on a terminal."""
    if not terminal:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            first = stage == "trajectories" and not done
            bar.update(tasks[stage], completed=done, description=f"{stage} ({COMPILES})" if first else stage)

        yield show


def _check_targets(targets: dict[str, Path | None], inputs: list[str]) -> None:
    """Raise DataError where files cannot be written as asked for, before the work is done."""
    files = [path if path == Path("-") else path.resolve() for path in targets.values() if path is not None]
    if targets["parquet"] == Path("-"):
        raise DataError("--parquet needs a file's name; Parquet does not go to standard output")
    if len(set(files)) < len(files):
        raise DataError("two of --json, --csv, --parquet and --markdown have the same name")
    for path in files:
        if path != Path("-") and (path.is_dir() or not path.absolute().parent.is_dir()):
            raise DataError(f"{path}: cannot be written, for it is a folder or its folder does not exist")
        if path.exists() and any(_holds(Path(place), path) for place in inputs if place != "-"):
            raise DataError(f"{path} is one of the inputs, and would be overwritten")


def _holds(place: Path, path: Path) -> bool:
    """Whether an input is a file, or is a folder that holds it."""
    return place.exists() and (place.samefile(path) or path.is_relative_to(place.resolve()))


@app.command()
def train_style(
    source: Annotated[Path, typer.Argument(help="FOLDER/WRITER/FILE, ink whose records say their writer, or .npz.")],
    out: Annotated[Path, typer.Option(help="File for the model, .onnx.")],
    network: Annotated[
        str | None, typer.Option(help="Train none, but enrol the writers in this one: 'shipped', or a file.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only words that are of this split.")] = None,
    least_words: Annotated[int, typer.Option(help="Writers with fewer are left out.")] = 5,
    held_out: Annotated[float, typer.Option(help="Share of a writer's words to calibrate by, not learned from.")] = 0.2,
    pictures: Annotated[int, typer.Option(help="Pictures of words to train on.")] = 240_000,
    seed: Annotated[int, typer.Option(help="Of the training and of the choice of words to hold out.")] = 0,
    threads: Annotated[int, typer.Option(help="Of the training.")] = 1,
    recoverer: Recoverer = "tracer",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Train a classifier of writers, whose probabilities are the style score.

    Stopped, the same command goes on from OUT.checkpoint. Exit code 1 says that some file could not be used.
    """
    from inktraj.pseudolabel.parts import load_part
    from inktraj.recovery import recover as recovered
    from inktraj.style import StyleModel, StyleNetwork, read_samples

    part = load_part("recoverer", recoverer)
    if out.is_dir():
        raise DataError(f"{out} is a folder; name the model's file")
    if not out.parent.is_dir():
        raise DataError(f"{out} cannot be written: there is no folder {out.parent}")
    samples = read_samples(source, split=split, from_image=lambda path: recovered(_pixels(path), recoverer=part))
    inks = samples.by_writer()
    few = [name for name, words in inks.items() if len(words) < least_words]
    for text in samples.failed:
        complain(text)
    if samples.skipped:
        complain(f"passed over: {len(samples.skipped)}, such as {samples.skipped[0]}")
    if few:
        complain(f"writers with fewer than {least_words} words, left out: {len(few)}, such as {few[0]!r}")
    inks = {name: words for name, words in inks.items() if len(words) >= least_words}
    if network is not None:
        known = StyleNetwork.load(None if network == "shipped" else network)
        model = StyleModel.enrol(inks, network=known, share=held_out, least=least_words, seed=seed)
    else:
        model = _trained(inks, out, held_out, least_words, pictures, seed, threads, quiet)
    model.save(out)
    if not quiet:
        told = model.calibration
        complain(
            f"{out}: {len(model.writers)} writers; of {told.words} held-out words {told.accuracy:.1%} named right, "
            f"ceiling {told.ceiling:.3f}, floor {told.floor:.3f}, calibration error {told.error_after:.3f}, "
            f"model {model.hash[:12]}"
        )
    if samples.failed:
        raise typer.Exit(SOME_FAILED)


def _pixels(path: Path) -> U8:
    from inktraj.io.images import read_image

    return read_image(path).pixels


def _trained(
    inks: dict[str, list[Ink]],
    out: Path,
    share: float,
    least: int,
    pictures: int,
    seed: int,
    threads: int,
    quiet: bool,
) -> StyleModel:
    """Train with a line now and then, keeping the state beside OUT."""
    from inktraj.style.training import Recipe, Step, train_model

    told = 0

    def progress(step: Step) -> None:
        nonlocal told
        tenth = 10 * step.pictures // step.total
        if tenth > told and not quiet:
            told = tenth
            complain(f"{step.pictures} of {step.total} pictures, {step.accuracy:.1%} of the last ones named right")

    checkpoint = out.with_name(out.name + ".checkpoint")
    recipe = Recipe(pictures=pictures, seed=seed)
    try:
        model = train_model(
            inks, recipe, share=share, least=least, checkpoint=checkpoint, threads=threads, progress=progress
        )
    except KeyboardInterrupt:
        complain(
            f"interrupted; the same command goes on from {checkpoint}"
            if checkpoint.exists()
            else "interrupted within the first minute, of which nothing is kept"
        )
        raise typer.Exit(INTERRUPTED) from None
    checkpoint.unlink(missing_ok=True)
    return model


def _sources(places: list[str]) -> tuple[list[Source | None], int]:
    """Name the pages of all places, with ids that are unique among all; None stands for standard input.

    Places without pages are told of, and their number is returned.
    """
    from inktraj.io.images import find_sources

    taken = {"page"} if "-" in places else set()  # what a page from standard input is called
    sources: list[Source | None] = []
    failed = 0
    for place in places:
        if place == "-":
            sources.append(None)
            continue
        try:
            sources += [replace(source, id=_free(source.id, taken)) for source in find_sources(place)]
        except DataError as err:
            complain(str(err))
            failed += 1
    return sources, failed


def _page(source: Source | None) -> Page:
    from inktraj.io.images import load, read_image
    from inktraj.page import Page

    image = read_image(sys.stdin.buffer) if source is None else load(source)
    return Page(image.pixels, id=image.id, source=image.source, sha256=image.sha256)


def _failures(sources: list[Source | None], do: Callable[[Source | None], None]) -> int:
    """Do something with each page and tell of those with which it fails; return their number.

    Where it fails with all, the command ends here, so that nothing takes the place of earlier results.
    """
    failed = 0
    for source in sources:
        try:
            do(source)
        except DataError as err:
            complain(str(err))
            failed += 1
    if failed == len(sources):
        raise typer.Exit(UNUSABLE)
    return failed


def _word(page: Page, crop: WordCrop, folder: Path | None) -> dict[str, Any]:
    name = None
    if folder is not None:
        name = f"{_safe(f'{page.id}__{crop.id}')}.png"
        _write_png(folder / name, crop.image)
    return {
        "page_id": page.id,
        "id": crop.id,
        "line": crop.line,
        "index": crop.index,
        "polygon": crop.polygon.round(2).tolist(),
        "width": crop.image.shape[1],
        "height": crop.image.shape[0],
        "to_page": crop.to_page.tolist(),
        "image": name,
    }


def _together(name: str, inks: list[Ink]) -> Ink:
    from inktraj.ink import Ink

    frames = {ink.frame for ink in inks}
    if len(frames) > 1:
        raise DataError(
            f"the {len(inks)} inks of {name!r} lie in {len(frames)} different frames and cannot be drawn together; "
            "use --each for a picture of each"
        )
    return Ink.concat(inks, inks[0].frame)


def _free(name: str, taken: set[str]) -> str:
    """Return the name, or a numbered one where it is taken, on a case-blind disk too; from then on it is taken."""
    number, free = 2, name
    while free.casefold() in taken:
        number, free = number + 1, f"{name}-{number}"
    taken.add(free.casefold())
    return free


def _safe(name: str) -> str:
    """Return a file name without the characters that would lead elsewhere."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name).lstrip(".") or "ink"


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise DataError(f"{path}: cannot be made a folder ({err.strerror}); is there a file of that name?") from err


@contextmanager
def _words_kept(out: Path | None) -> Iterator[tuple[Callable[[str], object], Path | None]]:
    """Give where lines and pictures of words go: standard output and nowhere, or a folder beside what is in OUT.

    When the block ends well, the new files take the place of an earlier run's; else OUT stays as it was.
    """
    if out is None:
        yield sys.stdout.write, None
        return
    _make_folder(out)
    try:
        old = _earlier_pictures(out)
        with TemporaryDirectory(prefix=_TEMPORARY, dir=out) as name:
            folder = Path(name)
            with (folder / WORDS).open("w", encoding="utf-8", newline="\n") as file:
                yield file.write, folder
            new = {path.name for path in folder.glob("*.png")}
            for picture in new:
                os.replace(folder / picture, out / picture)
            os.replace(folder / WORDS, out / WORDS)
            for picture in old - new:
                (out / picture).unlink(missing_ok=True)
    except OSError as err:
        raise DataError(f"{out}: cannot be written ({err.strerror or err})") from err


def _earlier_pictures(out: Path) -> set[str]:
    """Return the names of the pictures of an earlier run; DataError where OUT holds anything but such a run's words."""
    others = sorted(path.name for path in out.iterdir() if not path.name.startswith(_TEMPORARY))
    if not others:
        return set()
    try:
        words = [json.loads(line) for line in (out / WORDS).read_text(encoding="utf-8").splitlines()]
        names = {word["image"] for word in words if word["page_id"] and word["polygon"]}
        if all(name == _safe(name) and name.endswith(".png") for name in names):
            return names
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    raise DataError(
        f"the folder {out} holds files that are not of an earlier run of segment ({others[0]!r}, …); nothing was "
        "touched. Name an empty or a new folder with --out"
    )


def _write_png(path: Path, pixels: U8) -> None:
    import cv2

    data = cv2.imencode(".png", pixels)[1].tobytes()
    if str(path) == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        path.write_bytes(data)
    except OSError as err:
        raise RunError(f"{path}: cannot be written ({err.strerror})") from err
