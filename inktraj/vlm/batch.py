"""Many requests at once, answered within a day at half the price: Anthropic's and OpenAI's batches.

``submit_batch`` gives an id to keep; ``collect_batch`` looks whether it has ended, now or days later and from another
process, and returns each request's reply or error by the name it was given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from inktraj.errors import DataError
from inktraj.vlm.protocol import VLM, ProviderError, Reply, Request

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it stands.

    Parameters
    ----------
    id
        As the provider calls it.
    ended
        Whether it has; before that, `replies` is empty.
    replies
        By name; an error for each request which was not answered.
    """

    id: str
    ended: bool
    replies: Mapping[str, Reply | ProviderError]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one batch may hold.

    Parameters
    ----------
    requests
        So many at most.
    size
        Bytes of all requests together, as they are sent.
    """

    requests: int
    size: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A batch in the provider's list.

    Parameters
    ----------
    id
        As the provider calls it.
    requests
        How many it holds; None where that is not said (yet).
    """

    id: str
    requests: int | None


class BatchFailed(ProviderError):
    """A batch that ended without having answered any request."""


@runtime_checkable
class _Batches(Protocol):
    batch_limits: BatchLimits

    def submit(self, requests: Mapping[str, Request]) -> str: ...

    def recent(self, since: datetime) -> list[Listed]: ...

    def ended(self, batch_id: str) -> bool: ...

    def results(self, batch_id: str) -> Iterator[tuple[str, Reply | ProviderError]]: ...


def submit_batch(model: VLM, requests: Mapping[str, Request]) -> str:
    """Start a batch and return its id.

    It is not started again where it is not clear whether it was: a batch that runs twice costs twice.

    Parameters
    ----------
    model
        One of Anthropic's or OpenAI's.
    requests
        By name: 1 … 64 letters, digits, ``_`` and ``-``.

    Raises
    ------
    DataError
        No requests, another form of name, or a model without batches.
    ProviderError
        The provider refused, or did not answer.
    """
    if not requests:
        raise DataError("a batch has at least one request")
    if wrong := [name for name in requests if not _NAME.fullmatch(name)]:
        raise DataError(
            f"names in a batch are 1 to 64 letters, digits, _ and -, not {wrong[0]!r}; a hash in hex will do"
        )
    return _batches(model).submit(requests)


def batch_limits(model: VLM) -> BatchLimits:
    """Return what a batch of this model may hold; raises DataError for a model without batches."""
    return _batches(model).batch_limits


def recent_batches(model: VLM, since: datetime) -> list[Listed]:
    """List the batches of the key's account that were begun since then, to find one whose id was lost.

    Raises
    ------
    DataError
        A model without batches.
    ProviderError
        The provider did not answer.
    """
    return _batches(model).recent(since)


def collect_batch(model: VLM, batch_id: str, names: Collection[str] | None = None) -> Batch:
    """Look what has become of a batch.

    Parameters
    ----------
    model
        Of the same provider.
    batch_id
        From `submit_batch`.
    names
        Of all its requests: one that the provider says nothing about becomes an error, so that none is lost.

    Raises
    ------
    BatchFailed
        It ended, and answered nothing.
    ProviderError
        The batch is not known, or the provider did not answer.
    """
    batches = _batches(model)
    if not batches.ended(batch_id):
        return Batch(batch_id, False, {})
    replies = dict(batches.results(batch_id))
    for name in names or ():
        replies.setdefault(name, ProviderError(f"the batch {batch_id} holds no answer to {name}", retryable=True))
    return Batch(batch_id, True, replies)


def _batches(model: VLM) -> _Batches:
    if not isinstance(model, _Batches):
        raise DataError(f"{model.name} has no batches here; Anthropic's and OpenAI's models have")
    return model
