"""What all models behind a server share: key, retries, and errors of one kind without keys in them."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from inktraj.errors import DataError, MissingDependency
from inktraj.vlm.cost import Price
from inktraj.vlm.keys import check_url, find_key, redact
from inktraj.vlm.limits import ImageLimits
from inktraj.vlm.protocol import ModelClosed, ProviderError, Reply, Request
from inktraj.vlm.retry import OnRetry, Retrier, RetryPolicy, may_pass, refused, retry_after

T = TypeVar("T")

_MOST_TOLD = 600
_HINTS = {
    "max_completion_tokens": ' (this server may know the limit as max_tokens: max_tokens_param="max_tokens")',
    "max_tokens": ' (this server may know the limit by another name: max_tokens_param="max_completion_tokens")',
    "temperature": " (newer models take no temperature: ask for none)",
}
_TRANSPORTS = frozenset(["httpx", "httpx2", "httpcore", "requests", "urllib3", "aiohttp"])


@dataclass(frozen=True, slots=True)
class Settings:
    """Which model, where, and how it is asked; `inktraj.vlm.load_model` fills this in from the table and its options.

    Parameters
    ----------
    name
        As the user called it.
    model_id
        As the provider calls it.
    frame, limits, prices
        See `inktraj.vlm.VLM`.
    base_url
        None: the one that the environment names for the provider's package, else the provider's own.
    key_env
        Environment variables of which the first that is set holds the key.
    timeout
        Seconds that one call may go without a sign from the server.
    policy, on_retry
        Of retries. The callback is called in the asking thread.
    extra
        Fields added to the body of every request as they are, such as thinking settings.
    max_tokens_param
        What an OpenAI-compatible server calls the limit of the answer.
    image_detail
        Sent with each image to OpenAI-compatible servers; None: not sent.
    """

    name: str
    model_id: str
    frame: str
    limits: ImageLimits
    prices: tuple[Price, ...] = ()
    base_url: str | None = None
    key_env: tuple[str, ...] = ()
    timeout: float = 300.0
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    on_retry: OnRetry | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    max_tokens_param: str = "max_completion_tokens"
    image_detail: str | None = None

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise DataError(f"a timeout is more than 0 s, not {self.timeout}")
        try:
            json.dumps(self.extra)
        except (TypeError, ValueError) as err:
            raise DataError(f"extra fields of a request are what JSON can hold: {err}") from err
        if self.base_url is not None:
            object.__setattr__(self, "base_url", check_url(self.base_url))


class Malformed(ProviderError):
    """An answer that came with success and is not in the provider's form; retried."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the server's answer cannot be read: {what}", retryable=True, status=200)


class Hosted(ABC):
    """A model behind a server; a provider adds the wire form.

    A thread-safe client is made at once, so that a missing package or key shows before a run begins.
    """

    provider: ClassVar[str]
    package: ClassVar[str]
    extra_name: ClassVar[str]
    url_env: ClassVar[str]
    """Environment variable from which the package takes another address; read here, so that it is recorded."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.name = settings.name
        self.model_id = settings.model_id
        self.frame = settings.frame
        self.limits = settings.limits
        self.prices = settings.prices
        self._sdk = sdk(self.package, self.extra_name, f"asking {settings.name}")
        told = settings.base_url or os.environ.get(self.url_env)
        self.base_url = check_url(told) if told else None
        key = find_key(settings.key_env, self.base_url, settings.name)
        self._secrets = (key, *(os.environ.get(name, "").strip() for name in settings.key_env))
        self._retrier = Retrier(settings.policy, settings.name, settings.on_retry)
        self._client = self._connect(key)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.provider}/{self.model_id}>"

    def ask(self, request: Request) -> Reply:
        """Ask and wait for the answer; see `inktraj.vlm.VLM`."""

        def once() -> Reply:
            return self.call(lambda: self._ask(request))

        reply, attempts, seconds = self._retrier.call(once, request.sample or request.key)
        return Reply(
            reply.text,
            reply.stop_reason,
            reply.input_tokens,
            reply.output_tokens,
            reply.model or self.model_id,
            seconds,
            attempts,
            reply.raw_stop,
            reply.cached_tokens,
            reply.thinking_tokens,
        )

    def describe(self) -> dict[str, Any]:
        """Return what decides the answers; see `inktraj.vlm.VLM`. The address is not of it: servers move."""
        return {
            "provider": self.provider,
            "model": self.model_id,
            "extra": dict(self.settings.extra),
        }

    def close(self) -> None:
        """End waits in other threads and let connections go."""
        self._retrier.gate.close()
        self._client.close()

    def retried(self, ask: Callable[[], T], what: str = "", *, unanswered: bool = True) -> T:
        """Return what another call of the client gives, under the same retries.

        With `unanswered` False only what the server has refused is tried again: a call that got no answer, one that
        cannot be read, or an error of a server on the way may have done its work, which twice would cost twice.
        """

        def once() -> T:
            try:
                return self.call(ask)
            except ProviderError as err:
                if unanswered or not err.retryable or refused(err.status):
                    raise
                told = f"{err}; it may have been carried out all the same, so it is not tried again"
                error = ProviderError(told, status=err.status)
            raise error

        return self._retrier.call(once, what)[0]

    def call(self, ask: Callable[[], T]) -> T:
        """Call once; whatever the SDK raises becomes a `ProviderError`.

        It is raised outside of the handler, so that the SDK's error, which may hold the request and its key, is not
        shown below it.
        """
        try:
            return self._retrier.gate.run(ask)
        except ProviderError as err:
            error = err
        except Exception as err:
            told = ModelClosed(f"{self.name} was closed") if self._retrier.gate.closed else self._told(err)
            if told is None:
                raise
            error = told
        raise error

    def clean(self, text: str) -> str:
        """Return a text of the provider's without keys, on one line, cut to what a record needs."""
        line = " ".join(redact(text, self._secrets).split())
        return line if len(line) <= _MOST_TOLD else line[: _MOST_TOLD - 1] + "…"

    def _told(self, err: Exception) -> ProviderError | None:
        """Return what an error of the SDK means; None where it is none of the SDK's."""
        status = getattr(err, "status_code", None) or getattr(err, "code", None)
        response = getattr(err, "response", None)
        kind = type(err).__name__
        modules = {base.__module__.partition(".")[0] for base in type(err).__mro__}
        body = getattr(err, "body", None) or getattr(err, "details", None)
        if kind in ("APIResponseValidationError", "UnknownApiResponseError", "ValidationError"):
            return Malformed(self.clean(f"{kind}: {err}"))
        if isinstance(err, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
            return Malformed(f"not JSON ({type(err).__name__})")
        if isinstance(status, int):
            headers = getattr(response, "headers", None) or {}
            passing = may_pass(status, headers) and not _is_spent(body)
            text = f"{self.name} answered with status {status}: {self.clean(_message(body) or str(err))}"
            if status in (401, 403):
                text += f" (is the key in {' or '.join(self.settings.key_env)} right?)"
            elif status in (400, 422):
                text += next((hint for word, hint in _HINTS.items() if word in text), "")
            wait = retry_after(headers, body) if passing else None
            return ProviderError(text, retryable=passing, retry_after=wait, status=status)
        if kind in ("APIConnectionError", "APITimeoutError") or modules & _TRANSPORTS or isinstance(err, OSError):
            cause = type(err.__cause__).__name__ if err.__cause__ else kind
            where = self.base_url or "the provider"
            text = self.clean(f"{cause}: {err.__cause__ or err}")
            return ProviderError(f"no answer from {where} for {self.name}: {text}", retryable=True)
        if self.package.partition(".")[0] in modules:
            return ProviderError(f"{self.name} cannot be asked: {self.clean(f'{kind}: {err}')}")
        return None

    @abstractmethod
    def _connect(self, key: str) -> Any:
        """Return a client of the SDK that does not retry."""

    @abstractmethod
    def _ask(self, request: Request) -> Reply:
        """Ask once; a `Malformed` answer is raised, `model` may be ""."""


def sdk(package: str, extra: str, purpose: str) -> Any:
    """Import a provider's package.

    Raises
    ------
    MissingDependency
        It is not installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as err:
        if err.name is None or not f"{package}.".startswith(f"{err.name}."):
            raise
        raise MissingDependency(package, extra, purpose) from err


def count(value: Any) -> int | None:
    """Return a number of tokens; None where a server left it out or sent something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def total(*values: Any) -> int | None:
    """Return the sum of numbers of tokens; the first must be there, of the others those that are."""
    counts = [count(value) for value in values]
    return None if counts[0] is None else sum(number or 0 for number in counts)


def _message(body: Any) -> str:
    """Return the provider's own words from an error's body."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and isinstance(inner.get("message"), str):
            return str(inner["message"])
        return str(inner) if isinstance(inner, str) else ""
    return body if isinstance(body, str) else ""


def _is_spent(body: Any) -> bool:
    """Whether a "too many requests" means that the account has no money left, which no waiting changes."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    return isinstance(inner, dict) and "insufficient_quota" in (inner.get("code"), inner.get("type"))
