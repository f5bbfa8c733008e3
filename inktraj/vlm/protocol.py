"""What is asked of a vision-language model, and what comes back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from inktraj.errors import DataError, InktrajError
from inktraj.vlm.cost import Price
from inktraj.vlm.limits import ImageLimits

StopReason = Literal["end", "length", "refusal", "other"]

IMAGE_TYPES = frozenset(["image/png", "image/jpeg"])


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text of a request."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """An image of a request.

    Parameters
    ----------
    data
        The file's bytes, as they are sent; `inktraj.vlm.make_picture` makes them.
    width, height
        In pixels.
    media_type
        ``"image/png"``, or ``"image/jpeg"`` where a PNG would be more bytes than the model takes.
    """

    data: bytes
    width: int
    height: int
    media_type: str = "image/png"

    def __post_init__(self) -> None:
        if self.media_type not in IMAGE_TYPES:
            raise DataError(f"a picture is one of {sorted(IMAGE_TYPES)}, not {self.media_type!r}")
        if self.width < 1 or self.height < 1:
            raise DataError(f"a picture has a width and height of at least 1 px, not {self.width}×{self.height}")

    def __repr__(self) -> str:
        return f"Picture({len(self.data)} bytes, {self.width}×{self.height}, {self.media_type})"


Part = Text | Picture


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    Parameters
    ----------
    system
        The system prompt; "" for none.
    parts
        Texts and pictures of the one user turn, in the order in which the model reads them.
    max_tokens
        Most tokens of the answer, thinking included.
    temperature, seed
        Sent only where given: newer models refuse a temperature. Anthropic's interface has no seed; there it is not
        sent.
    key, sample
        What the caller calls this request; never sent to a model. `inktraj.vlm.replay` finds replies by them.
    """

    system: str
    parts: tuple[Part, ...]
    max_tokens: int
    temperature: float | None = None
    seed: int | None = None
    key: str = ""
    sample: str = ""

    def __post_init__(self) -> None:
        if not self.parts or not all(isinstance(part, Text | Picture) for part in self.parts):
            raise DataError("a request has at least one part, each a Text or a Picture")
        if self.max_tokens < 1:
            raise DataError(f"max_tokens is at least 1, not {self.max_tokens}")

    def digest(self) -> str:
        """Return the SHA-256 of all that a model gets to see: system prompt, parts and settings, not the names."""
        told = hashlib.sha256()
        settings = [self.system, self.max_tokens, self.temperature, self.seed]
        told.update(json.dumps(settings).encode())
        for part in self.parts:
            kind = "text" if isinstance(part, Text) else part.media_type
            data = part.text.encode("utf-8", "surrogatepass") if isinstance(part, Text) else part.data
            told.update(f"\0{kind} {len(data)}\0".encode() + data)
        return told.hexdigest()


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    Parameters
    ----------
    text
        All of the answer's text, thinking excluded; "" where the model said nothing. For a refusal what the provider
        gives of it, which may be nothing.
    stop_reason
        Why it ended: ``"end"``, ``"length"`` (the token limit), ``"refusal"`` (the model, or a filter on the prompt or
        the answer), or ``"other"``.
    input_tokens, output_tokens
        As billed: cached input and thinking included. None where the server does not say.
    model
        The model's id as the server reports it; what was asked for where it reports none.
    seconds
        Time the answering call took; waits and failed calls before it are not part of it.
    attempts
        Calls made, the answering one included.
    raw_stop
        The reason in the provider's own words.
    cached_tokens, thinking_tokens
        Part of the input and of the output tokens; None where the server does not say.
    """

    text: str
    stop_reason: StopReason
    input_tokens: int | None
    output_tokens: int | None
    model: str
    seconds: float = 0.0
    attempts: int = 1
    raw_stop: str = ""
    cached_tokens: int | None = None
    thinking_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.stop_reason not in get_args(StopReason):
            raise DataError(f"a stop reason is one of {get_args(StopReason)}, not {self.stop_reason!r}")


class ProviderError(InktrajError):
    """A model that could not be asked, or did not answer: never the same thing as a wrong answer.

    Parameters
    ----------
    message
        What happened; holds no key.
    retryable
        Whether the same request may succeed later. Errors that `VLM.ask` raises have been retried already.
    retry_after
        Seconds the provider asks to wait for.
    status
        The HTTP status; None where there was none.
    attempts
        Calls made.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        attempts: int = 1,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status
        self.attempts = attempts


class ModelClosed(ProviderError):
    """The model was closed while a request waited for its turn; nothing is wrong with the request."""


@runtime_checkable
class VLM(Protocol):
    """A vision-language model.

    Attributes
    ----------
    name
        As the user called it.
    model_id
        As the provider calls it.
    frame
        The coordinate frame that it writes best: ``"sent-px"``, ``"original-px"``, ``"norm1000"``,
        ``"norm1000-yx"``, ``"norm1"`` or ``"percent"``; ``"unknown"`` for a local model of a kind that is not known.
    limits
        What its images may be; `inktraj.vlm.fit` keeps to them.
    prices
        Dollars per million tokens, by date; empty where they are not known.
    """

    name: str
    model_id: str
    frame: str
    limits: ImageLimits
    prices: tuple[Price, ...]

    def ask(self, request: Request) -> Reply:
        """Ask and wait for the answer; may be called from several threads at once.

        Raises
        ------
        ProviderError
            After all retries; `ModelClosed` where `close` was called meanwhile.
        """
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return what decides the answers, for records and a cache: provider, id, settings; no key."""
        ...

    def close(self) -> None:
        """End waits in other threads and let connections go; asking afterwards raises `ModelClosed`."""
        ...
