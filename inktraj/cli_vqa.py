"""``inktraj vqa``: arguments and progress; the work is in `inktraj.vqa`."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from inktraj.cli_output import SOME_FAILED, complain, printing
from inktraj.errors import DataError

if TYPE_CHECKING:
    from inktraj.vqa import Benchmark

app = typer.Typer(
    help="Document visual question answering: MTVQA, PalmLeaf-VQA, IndoTabVQA, or a benchmark of your own.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[
    str,
    typer.Option(
        "--benchmark", help="mtvqa, palmleaf-vqa, indotabvqa, or file.py:attribute or module:attribute of your own."
    ),
]
Data = Annotated[Path, typer.Option(help="Folder of the local copy.")]
Split = Annotated[str | None, typer.Option(help="Part of the data; the benchmark's own choice unless given.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Option of the benchmark, as NAME=VALUE; may be repeated.")
]
Model = Annotated[Path | None, typer.Option(help="Folder of the sentence encoder of STS figures.")]
Encoder = Annotated[str | None, typer.Option(help="Sentence encoder of STS figures, by name: see inktraj vqa list.")]


@app.command()
def run(
    benchmark: Name,
    data: Data,
    model: Annotated[
        str,
        typer.Option(
            help="A name such as claude, gemini, kimi, gpt or qwen; PROVIDER/ID; replay:FILE; or transformers:FOLDER."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Run folder; vqa-MODEL-BENCHMARK-PROMPT unless given. Of several prompts: a folder of runs."),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(help="One of the benchmark's prompts, its first unless given; repeated, or all: several."),
    ] = None,
    split: Split = None,
    limit: Annotated[int | None, typer.Option(help="Questions at most, chosen by the seed.")] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of questions and of examples.")] = 0,
    shots: Annotated[
        int, typer.Option(help="Examples from the train split, of the question's language or category.")
    ] = 0,
    max_connections: MaxConnectionsOption = 8,
    max_cost: MaxCostOption = None,
    batch: BatchOption = False,
    poll: PollOption = 60.0,
    max_tokens: Annotated[int, typer.Option(help="Tokens of an answer at most, thinking included.")] = 4096,
    temperature: TemperatureOption = None,
    send_seed: SendSeedOption = False,
    base_url: BaseUrlOption = None,
    key_env: KeyEnvOption = None,
    max_tokens_param: MaxTokensParamOption = None,
    timeout: TimeoutOption = 300.0,
    attempts: AttemptsOption = 8,
    models: ModelsOption = None,
    sts_model: Model = None,
    sts_encoder: Encoder = None,
    settings: Settings = None,
) -> None:
    """Ask a model a benchmark's questions, score the answers, and write a run folder with a report.

    The same command goes on where it was stopped. Exit code 1 says that some questions could not be asked.
    """
    from inktraj.vqa.compare import compare_runs
    from inktraj.vqa.run import Plan, run_benchmark, run_prompts
    from inktraj.vqa.summary import print_tables

    bench = _benchmark(benchmark, sts_model, sts_encoder, settings)
    prompts = list(bench.prompts) if prompt == ["all"] else prompt or [next(iter(bench.prompts))]
    several = len(set(prompts)) > 1
    named = "-".join(folder_part(part) for part in ("vqa", model, bench.name, *([] if several else prompts[:1])))
    folder = out or Path(named)
    watched = asking_bar() if sys.stderr.isatty() else nullcontext((None, None, None))
    with interruptible(folder), watched as (_, progress, on_retry):
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
            prompt=prompts[0],
            split=split,
            limit=limit,
            shots=shots,
            seed=seed,
            max_tokens=max_tokens,
            temperature=temperature,
            send_seed=send_seed,
            connections=max_connections,
            max_cost=max_cost,
            batch=batch,
            poll=poll,
        )
        if several:
            outcomes = run_prompts(vlm, bench, data, folder, prompts, plan, progress=progress)
        else:
            outcomes = [run_benchmark(vlm, bench, data, folder, plan, progress=progress)]
    folders = [folder / outcome.prompt for outcome in outcomes] if several else [folder]
    with printing():
        if len(outcomes) > 1 and all(outcome.scored for outcome in outcomes):
            found = compare_runs(folders)
            found.write(folder)
            found.print(_console())
        else:
            for outcome in outcomes:
                print_tables(outcome, _console())
        for each in folders:
            typer.echo(f"report: {each / 'report.html'}")
    if errors := [result for outcome in outcomes for result in outcome.results if result.status == "error"]:
        why = outcomes[-1].stopped or errors[0].reason
        complain(f"{len(errors):,} questions could not be asked ({why}); the same command asks for them again")
        raise typer.Exit(SOME_FAILED)
    if len(outcomes) < len(set(prompts)):
        complain(f"{outcomes[-1].stopped}; the same command goes on with the other prompts")
        raise typer.Exit(SOME_FAILED)


@app.command()
def score(
    predictions: Annotated[
        Path, typer.Argument(help="JSON, JSON Lines, CSV, TSV or Parquet with ids and answers; or a run folder.")
    ],
    benchmark: Name,
    data: Data,
    split: Split = None,
    prompt: Annotated[
        str, typer.Option(help="The benchmark's prompt that was used; needed where the file has answers to several.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Folder for scores, tables and the report; none unless given.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="File for all figures; - for standard output.")
    ] = None,
    answered_only: Annotated[
        bool, typer.Option("--answered-only", help="Leave out questions without a prediction; else they are incorrect.")
    ] = False,
    several: Annotated[
        bool, typer.Option("--several", help="A question may have several answers; each is scored by itself.")
    ] = False,
    id_field: Annotated[str, typer.Option(help="Column with the ids; found by its usual names unless given.")] = "",
    answer_field: Annotated[
        str, typer.Option(help="Column with the predictions; found by its usual names unless given.")
    ] = "",
    sts_model: Model = None,
    sts_encoder: Encoder = None,
    settings: Settings = None,
) -> None:
    """Score predictions that were made elsewhere. Exit code 1 says that some of them are errors."""
    from inktraj.evaluation.folder import RunFolder
    from inktraj.io.files import write_text
    from inktraj.vqa.predictions import score_predictions
    from inktraj.vqa.results import uncollected, write_outcome
    from inktraj.vqa.summary import print_tables

    with uncollected():
        outcome = score_predictions(
            predictions,
            _benchmark(benchmark, sts_model, sts_encoder, settings),
            data,
            split=split,
            prompt=prompt,
            answered_only=answered_only,
            several=several,
            id_field=id_field,
            answer_field=answer_field,
        )
        if out is not None:
            with RunFolder(out, outcome.settings):
                write_outcome(outcome, out)
        told = json.dumps(outcome.to_json(), indent=1, ensure_ascii=False, default=str) + "\n"
        told = told.encode("utf-8", "backslashreplace").decode()  # half a character stays readable to JSON
        with printing():
            if str(json_file) == "-":
                typer.echo(told, nl=False)
            else:
                print_tables(outcome, _console())
                if json_file is not None:
                    write_text(json_file, told)
    if outcome.counts["error"]:
        raise typer.Exit(SOME_FAILED)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or of scorings that were written with --out.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for comparison.md and per_category_metrics.csv; none unless given.")
    ] = None,
) -> None:
    """Put runs of one benchmark side by side: of several prompts, of several models, or both."""
    from inktraj.vqa.compare import compare_runs

    found = compare_runs(runs)
    with printing():
        found.print(_console())
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise DataError(f"cannot write into {out}: {err.strerror or err}") from err
        found.write(out)


@app.command(name="list")
def list_() -> None:
    """List the benchmarks, with their prompts and options."""
    from inktraj.vqa import benchmark_names, load_benchmark

    for name in benchmark_names():
        bench = load_benchmark(name)
        typer.echo(f"{name}: {bench.title}")
        for prompt, told in bench.prompts.items():
            typer.echo(f"  --prompt {prompt}: {told}")
        for option, told in bench.options.items():
            typer.echo(f"  --set {option}=…: {told}")


def _benchmark(name: str, folder: Path | None, encoder: str | None, settings: list[str] | None) -> Benchmark:
    from inktraj.vqa import load_benchmark

    given = {"sts_model": folder, "sts_encoder": encoder}
    options = {key: str(value) for key, value in given.items() if value is not None}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise DataError(f"--set {setting}: expected NAME=VALUE")
        options[key] = value
    bench = load_benchmark(name)
    return bench.configured(**options) if options else bench


def _console() -> Any:
    from rich.console import Console

    return Console()
