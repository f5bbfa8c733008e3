"""Vision-language models, hosted and local, behind one protocol.

`load_model` gives a `VLM`; `VLM.ask` takes a `Request` and returns a `Reply`, or raises a `ProviderError` when all
retries have failed. No provider's package is imported before a model of its is loaded. See docs/models.md.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from typing import Any, get_args

from inktraj.errors import DataError
from inktraj.vlm.cost import Budget, Price, cost_of
from inktraj.vlm.limits import ImageLimits, fit, make_picture
from inktraj.vlm.protocol import (
    VLM,
    ModelClosed,
    Part,
    Picture,
    ProviderError,
    Reply,
    Request,
    StopReason,
    Text,
)
from inktraj.vlm.retry import OnRetry, Retry, RetryPolicy
from inktraj.vlm.table import Frame, Table, load_table

__all__ = [
    "VLM",
    "Budget",
    "ImageLimits",
    "ModelClosed",
    "Part",
    "Picture",
    "Price",
    "ProviderError",
    "Reply",
    "Request",
    "Retry",
    "RetryPolicy",
    "StopReason",
    "Table",
    "Text",
    "cost_of",
    "fit",
    "load_model",
    "load_table",
    "make_picture",
]


def load_model(
    spec: str,
    *,
    base_url: str | None = None,
    key_env: str | None = None,
    frame: str | None = None,
    limits: ImageLimits | None = None,
    timeout: float = 300.0,
    policy: RetryPolicy | None = None,
    on_retry: OnRetry | None = None,
    extra: Mapping[str, Any] | None = None,
    max_tokens_param: str | None = None,
    image_detail: str | None = None,
    device: str | None = None,
    models: str | os.PathLike[str] | Table | None = None,
) -> VLM:
    """Make a model ready to be asked.

    Parameters
    ----------
    spec
        A name of the table (``"claude"``), a provider and id (``"openai/NAME"``), ``"replay:FILE"``,
        ``"transformers:FOLDER"``, or ``"inktraj"`` for this package's own recoverer.
    base_url
        Another server that speaks the provider's interface; None: what the table says, else what the environment names
        for the provider's package (``ANTHROPIC_BASE_URL`` …), else the provider's own.
    key_env
        Environment variable with the key; None: as the table says.
    frame, limits
        Instead of what the table says; see `inktraj.vlm.VLM`.
    timeout
        Seconds that one call may go without a sign from the server.
    policy, on_retry
        How to retry, and what to call before each wait (in the asking thread).
    extra
        Fields added to the body of each request, such as thinking settings.
    max_tokens_param
        What an OpenAI-compatible server calls the limit of the answer, such as ``"max_tokens"``.
    image_detail
        Sent with each image to OpenAI-compatible servers.
    device
        For ``"transformers:…"``: where to run, such as ``"cuda"``; None: a GPU if there is one.
    models
        The user's table of models, or one that was loaded; None: see `inktraj.vlm.table.load_table`.

    Raises
    ------
    DataError
        An unknown name, or options that do not fit.
    ProviderError
        No key in the environment.
    MissingDependency
        The provider's package is not installed.
    """
    table = models if isinstance(models, Table) else load_table(models)
    kind, colon, rest = spec.partition(":")
    if frame is not None and frame not in get_args(Frame):
        raise DataError(f"a coordinate frame is one of {', '.join(get_args(Frame))}, not {frame!r}")
    local = spec == "inktraj" or (colon and kind in _EXAMPLES)
    remote = {"base_url": base_url, "key_env": key_env, "extra": extra, "max_tokens_param": max_tokens_param}
    if local and (given := [name for name, value in remote.items() if value is not None]):
        raise DataError(f"{spec} has no server, so {', '.join(given)} cannot be given")
    if spec == "inktraj":
        from inktraj.vlm.own import Own

        return Own()
    if local:
        if not rest:
            raise DataError(f"{kind}: is followed by a path, such as {kind}:{_EXAMPLES[kind]}")
        return _load_local(kind, rest, spec, frame, limits, device, table)

    from inktraj.vlm.hosted import Settings

    provider_name, model_id, prices, told_frame, told_limits = _look_up(spec, table)
    provider, family = table.providers[provider_name], table.family(model_id)
    settings = Settings(
        spec,
        model_id,
        frame or told_frame or family.frame,
        limits or table.limits[told_limits or family.limits],
        prices,
        base_url or provider.base_url,
        (key_env,) if key_env else provider.keys,
        timeout,
        policy or RetryPolicy(),
        on_retry,
        dict(extra or {}),
        max_tokens_param or provider.max_tokens_param,
        image_detail or family.image_detail,
    )
    match provider.wire:
        case "anthropic":
            from inktraj.vlm.anthropic import Anthropic

            return Anthropic(settings)
        case "google":
            from inktraj.vlm.google import Google

            return Google(settings)
        case "openai":
            from inktraj.vlm.openai import OpenAI

            return OpenAI(settings)


_EXAMPLES = {"replay": "replies.jsonl", "transformers": "/models/Qwen3-VL-8B-Instruct"}


def _load_local(
    kind: str, path: str, spec: str, frame: str | None, limits: ImageLimits | None, device: str | None, table: Table
) -> VLM:
    if kind == "replay":
        from inktraj.vlm.replay import Replay

        replay = Replay(path, name=spec)
        family = table.family(replay.model_id)
        replay.frame, replay.limits = frame or family.frame, limits or table.limits[family.limits]
        return replay
    from inktraj.vlm.transformers import Transformers

    return Transformers(path, name=spec, frame=frame, limits=limits, device=device, table=table)


def _look_up(spec: str, table: Table) -> tuple[str, str, tuple[Price, ...], str | None, str | None]:
    """Return provider, id, prices, frame and limits; of the last two None where the family says."""
    if entry := table.models.get(spec):
        return entry.provider, entry.id, entry.prices, entry.frame, entry.limits
    provider, slash, model_id = spec.partition("/")
    if slash and model_id and provider in table.providers:
        return provider, model_id, table.prices(provider, model_id), None, None
    names = [*table.models, "inktraj"]
    near = difflib.get_close_matches(spec, names, 1, 0.7)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise DataError(
        f"no model is called {spec!r}{hint}; known are {', '.join(names)}, and PROVIDER/ID with one of the providers "
        f"{', '.join(table.providers)}, replay:FILE and transformers:FOLDER"
    )
