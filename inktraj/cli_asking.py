"""What ``inktraj eval`` and ``inktraj vqa`` share of asking models: options, progress, and how Ctrl-C ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inktraj.cli_output import INTERRUPTED, complain

if TYPE_CHECKING:
    from inktraj.evaluation.asking import Tally
    from inktraj.vlm import VLM, Retry
    from inktraj.vlm.retry import OnRetry

MaxConnectionsOption = Annotated[int, typer.Option(help="Requests at once.")]
MaxCostOption = Annotated[float | None, typer.Option(help="Dollars of this run after which nothing more is asked.")]
BatchOption = Annotated[
    bool, typer.Option("--batch", help="Ask through the provider's batches: half the price, within a day.")
]
PollOption = Annotated[float, typer.Option(help="Seconds between looks at batches.")]
TemperatureOption = Annotated[float | None, typer.Option(help="Sent only where given: newer models refuse it.")]
SendSeedOption = Annotated[bool, typer.Option("--send-seed", help="Send the seed to the model, too.")]
BaseUrlOption = Annotated[str | None, typer.Option(help="Another server that speaks the provider's interface.")]
KeyEnvOption = Annotated[str | None, typer.Option(help="Environment variable that holds the key.")]
MaxTokensParamOption = Annotated[
    str | None, typer.Option(help="What an OpenAI-compatible server calls the limit of an answer.")
]
TimeoutOption = Annotated[float, typer.Option(help="Seconds that a call may go without a sign.")]
AttemptsOption = Annotated[int, typer.Option(help="Calls for one request at most.")]
ModelsOption = Annotated[Path | None, typer.Option(help="Table of models of your own (TOML).")]


def model_of(
    name: str,
    *,
    base_url: str | None,
    key_env: str | None,
    max_tokens_param: str | None,
    timeout: float,
    attempts: int,
    models: Path | None,
    on_retry: OnRetry | None,
) -> VLM:
    """Return the model that the options name."""
    from inktraj.vlm import RetryPolicy, load_model

    return load_model(
        name,
        base_url=base_url,
        key_env=key_env,
        max_tokens_param=max_tokens_param,
        timeout=timeout,
        policy=RetryPolicy(attempts=attempts),
        on_retry=on_retry,
        models=models,
    )


def folder_part(name: str) -> str:
    """Return the end of a name or path with letters, digits and ``-._`` only, for the name of a run folder."""
    return "".join(c if c.isalnum() or c in "-._" else "-" for c in Path(name).name) or "run"


@contextmanager
def interruptible(folder: Path) -> Iterator[None]:
    """End the command where Ctrl-C is pressed, and say what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        complain(f"interrupted; the replies that came are kept in {folder}, and the same command goes on")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def asking_bar() -> Iterator[tuple[Any, Callable[[Tally, int], None], OnRetry]]:
    """Show replies, tokens, dollars and retries on standard error, a terminal.

    Yields rich's ``Progress``, for more bars, and what is to be told how far asking is, of how many, and of retries.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from inktraj.io.terminal import printable

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}")
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        asking = bar.add_task("asking", total=None, told="")
        retries = 0

        def progress(tally: Tally, total: int) -> None:
            done = tally.recorded + tally.answered + tally.errors
            cost = f", ${tally.dollars:.2f}" if tally.dollars else ""
            told = f"{tally.input_tokens + tally.output_tokens:,} tokens{cost}" if tally.answered else ""
            told += f", {retries} retries" if retries else ""
            told += f", {tally.errors} errors" if tally.errors else ""
            told += f" {tally.waiting} in batches" if tally.waiting else ""
            bar.update(asking, completed=done, total=total, told=told)

        def on_retry(retry: Retry) -> None:
            nonlocal retries
            retries += 1
            if retry.wait >= 5:
                told = printable(f"{retry.model}: {retry.error}; waiting {retry.wait:.0f} s")
                bar.console.print(told, style="dim", markup=False, highlight=False)

        yield bar, progress, on_retry
