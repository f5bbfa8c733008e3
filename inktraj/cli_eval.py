"""``inktraj eval``: arguments and progress; the work is in `inktraj.evaluation`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from inktraj.cli_asking import (
    AttemptsOption,
    BaseUrlOption,
    BatchOption,
    KeyEnvOption,
    MaxConnectionsOption,
    MaxCostOption,
    MaxTokensParamOption,
    ModelsOption,
    PollOption,
    SendSeedOption,
    TemperatureOption,
    TimeoutOption,
    asking_bar,
    folder_part,
    interruptible,
    model_of,
)
from inktraj.cli_output import COMPILES, SOME_FAILED, complain, printing
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
from inktraj.errors import DataError

if TYPE_CHECKING:
    from inktraj.evaluation import EvaluationRun, Watcher
    from inktraj.evaluation.asking import Tally
    from inktraj.vlm.retry import OnRetry

app = typer.Typer(
    help="Evaluate vision-language models on trajectory recovery.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def evaluate(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Option(
            help="A name such as claude, gemini, kimi, gpt or qwen; PROVIDER/ID; replay:FILE; transformers:FOLDER; or "
            "inktraj, this package's own recoverer."
        ),
    ] = None,
    data: Annotated[str, typer.Option(help="Name or folder of the data set.")] = "demo",
    out: Annotated[Path | None, typer.Option(help="Run folder; eval-MODEL-DATA unless given.")] = None,
    split: Annotated[str | None, typer.Option(help="Only this part of the data set.")] = None,
    images: Annotated[
        Path | None, typer.Option(help="Where a pseudo-label run's page images are now, if they have moved.")
    ] = None,
    input: Annotated[str, typer.Option(help="What is shown: page or crop.")] = "page",
    per: Annotated[str, typer.Option(help="A request for each word, or for all of a page: word or page.")] = "word",
    form: Annotated[str, typer.Option(help="How points are to be written: tuples or tokens.")] = "tuples",
    frame: Annotated[
        list[str] | None,
        typer.Option(help="Coordinate frame asked for: native, shared, or its name; may be repeated."),
    ] = None,
    read_as: Annotated[str, typer.Option(help="Frame in which answers are read: asked or auto.")] = "asked",
    example: Annotated[bool, typer.Option(help="Show an example in the prompt.")] = True,
    limit: Annotated[int | None, typer.Option(help="Samples at most, chosen by the seed.")] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of samples and of the example.")] = 0,
    max_connections: MaxConnectionsOption = 8,
    max_cost: MaxCostOption = None,
    batch: BatchOption = False,
    poll: PollOption = 60.0,
    max_tokens: Annotated[int, typer.Option(help="Tokens of an answer at most, for each word.")] = 8192,
    temperature: TemperatureOption = None,
    send_seed: SendSeedOption = False,
    base_url: BaseUrlOption = None,
    key_env: KeyEnvOption = None,
    max_tokens_param: MaxTokensParamOption = None,
    timeout: TimeoutOption = 300.0,
    attempts: AttemptsOption = 8,
    models: ModelsOption = None,
    recognizer: Annotated[
        str, typer.Option(help="Reads the drawn predictions for AR and CR: ppocr, or none.")
    ] = "none",
    style: Annotated[Path | None, typer.Option(help="Model of train-style that knows the writers.")] = None,
    any_occurrence: Annotated[
        bool, typer.Option("--any-occurrence", help="Score repeated words against the occurrence that fits best.")
    ] = False,
    placed: Annotated[bool, typer.Option(help="Also DTW after the best translation and scale.")] = True,
    space: SpaceOption = "reference-box",
    step: StepOption = "default",
    bridge: BridgeOption = False,
    tolerance: ToleranceOption = None,
    worst: WorstOption = "far-corner",
    by: ByOption = None,
    clusters: ClustersOption = "page",
    resamples: ResamplesOption = 1000,
    threads: Annotated[int, typer.Option(help="For scoring; 0 for one a core.")] = 1,
) -> None:
    """Ask a model for the strokes of every word, score them, and write a run folder with a report.

    The same command goes on where it was stopped. Exit code 1 says that some samples could not be asked.
    """
    if context.invoked_subcommand is not None:
        return
    if model is None:
        raise DataError("no model was named: --model claude, --model inktraj, …")
    from inktraj.evaluation import Plan, Prompt, evaluate_model
    from inktraj.evaluation.summary import print_table
    from inktraj.scoring import Drawing

    folder = out or Path(f"eval-{folder_part(model)}-{folder_part(data)}")
    with interruptible(folder), _watched(sys.stderr.isatty()) as (watcher, on_retry):
        vlm = model_of(
            model,
            base_url=base_url,
            key_env=key_env,
            max_tokens_param=max_tokens_param,
            timeout=timeout,
            attempts=attempts,
            on_retry=on_retry,
            models=models,
        )
        plan = Plan(
            prompt=Prompt(cast(Any, input), cast(Any, per), cast(Any, form), example),
            frames=tuple(frame or ["native"]),
            read_as=read_as,
            limit=limit,
            seed=seed,
            max_tokens=max_tokens,
            temperature=temperature,
            send_seed=send_seed,
            connections=max_connections,
            max_cost=max_cost,
            batch=batch,
            poll=poll,
            recognizer=None if recognizer == "none" else recognizer,
            style=style,
            evaluation=evaluation_of(space, step, bridge, tolerance, worst),
            drawing=Drawing(cast(Any, clusters), resamples),
            by=cast(Any, tuple(by or ())),
            any_occurrence=any_occurrence,
            placed=placed,
            threads=threads,
        )
        run = evaluate_model(vlm, data, folder, plan, split=split, images=images, watcher=watcher)
    from rich.console import Console

    with printing():
        print_table(run, Console())
        typer.echo(f"report: {run.folder / 'report.html'}")
    _tell_errors(run)


def _tell_errors(run: EvaluationRun) -> None:
    outcomes = [outcome for row in run.rows for outcome in row.outcomes if outcome.kind == "error"]
    unasked = [outcome for outcome in outcomes if outcome.ink is None]
    if unasked:
        why = run.stopped or unasked[0].reason
        complain(f"{len(unasked)} samples could not be asked ({why}); the same command asks for them again")
    if len(outcomes) > len(unasked):
        first = next(outcome for outcome in outcomes if outcome.ink is not None)
        complain(f"{len(outcomes) - len(unasked)} samples could not be scored; the first, {first.id}: {first.reason}")
    if outcomes:
        raise typer.Exit(SOME_FAILED)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    json_file: Annotated[
        Path | None, typer.Option("--json", help="File for all figures; - for standard output.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="File for the table; - for standard output.")] = None,
) -> None:
    """Rank runs on the same references, with the significance of their differences."""
    from inktraj.evaluation.compare import compare_runs
    from inktraj.io.files import write_text

    found = compare_runs(runs)
    if str(json_file) != "-" and str(markdown) != "-":
        from rich.console import Console

        with printing():
            found.print(Console())
    for target, text in (
        (json_file, json.dumps(found.to_json(), indent=1, ensure_ascii=False) + "\n"),
        (markdown, found.to_markdown()),
    ):
        if str(target) == "-":
            with printing():
                typer.echo(text, nl=False)
        elif target is not None:
            write_text(target, text)


@contextmanager
def _watched(terminal: bool) -> Iterator[tuple[Watcher, OnRetry | None]]:
    """Progress on a terminal: of asking, then of the stages of scoring."""
    from inktraj.evaluation import Watcher

    if not terminal:
        yield Watcher(), None
        return
    with asking_bar() as (bar, progress, on_retry):
        stages: dict[str, Any] = {}

        class Shown(Watcher):
            def asking(self, tally: Tally, total: int) -> None:
                progress(tally, total)

            def scoring(self, stage: str, done: int, total: int) -> None:
                if stage not in stages:
                    stages[stage] = bar.add_task(stage, total=total, told="")
                bar.update(stages[stage], completed=done, total=total, told="" if done else COMPILES)

        yield Shown(), on_retry
