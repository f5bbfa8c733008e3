"""Options of asking models, which ``inktraj eval`` and ``inktraj vqa`` share, and what they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from inktraj.vlm import VLM
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
