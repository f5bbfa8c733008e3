"""Anthropic's Messages interface, and its batches."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from inktraj.vlm.batch import BatchLimits, Listed
from inktraj.vlm.hosted import Hosted, Malformed, count, total
from inktraj.vlm.protocol import ProviderError, Reply, Request, StopReason, Text

_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class Anthropic(Hosted):
    """A model behind Anthropic's Messages interface."""

    provider = "anthropic"
    package = "anthropic"
    extra_name = "anthropic"
    url_env = "ANTHROPIC_BASE_URL"
    batch_limits = BatchLimits(100_000, 256_000_000)

    def _connect(self, key: str) -> Any:
        # With a timeout of its own the client does not refuse long answers that are not streamed.
        return self._sdk.Anthropic(api_key=key, base_url=self.base_url, max_retries=0, timeout=self.settings.timeout)

    def _ask(self, request: Request) -> Reply:
        body = self.body(request)
        known = {name: body.pop(name) for name in ("model", "max_tokens", "messages")}
        return read_message(self._client.messages.create(**known, extra_body=body))

    def body(self, request: Request) -> dict[str, Any]:
        """Return the body that asks a request.

        What newer versions of the SDK no longer name, such as the temperature, is passed around it.
        """
        content: list[dict[str, Any]] = []
        for part in request.parts:
            if isinstance(part, Text):
                content.append({"type": "text", "text": part.text})
            else:
                data = base64.b64encode(part.data).decode()
                source = {"type": "base64", "media_type": part.media_type, "data": data}
                content.append({"type": "image", "source": source})
        body: dict[str, Any] = {
            "model": self.model_id,
            "max_tokens": request.max_tokens,
            "messages": [{"role": "user", "content": content}],
        }
        if request.system:
            body["system"] = request.system
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return body | dict(self.settings.extra)

    def submit(self, requests: Mapping[str, Request]) -> str:
        """Start a batch; see `inktraj.vlm.batch`."""
        asked = [{"custom_id": name, "params": self.body(request)} for name, request in requests.items()]
        create = self._client.messages.batches.create
        batch = self.retried(lambda: create(requests=asked), "batch", unanswered=False)
        if not isinstance(getattr(batch, "id", None), str):
            raise Malformed("a batch without an id")
        return str(batch.id)

    def recent(self, since: datetime) -> list[Listed]:
        """List the batches begun since then; see `inktraj.vlm.batch`."""

        def listed() -> list[Listed]:
            found = []
            for batch in self._client.messages.batches.list(limit=100):  # the newest first
                if batch.created_at < since:
                    break
                counts = batch.request_counts
                numbers = [counts.processing, counts.succeeded, counts.errored, counts.canceled, counts.expired]
                found.append(Listed(batch.id, sum(numbers)))
            return found

        return self.retried(listed, "batches")

    def ended(self, batch_id: str) -> bool:
        """Whether a batch has ended."""
        batch = self.retried(lambda: self._client.messages.batches.retrieve(batch_id), batch_id)
        return bool(getattr(batch, "processing_status", None) == "ended")

    def results(self, batch_id: str) -> Iterator[tuple[str, Reply | ProviderError]]:
        """Yield what came of each request of an ended batch."""
        entries = self.retried(lambda: list(self._client.messages.batches.results(batch_id)), batch_id)
        for entry in entries:
            outcome = entry.result
            if outcome.type == "succeeded":
                try:
                    yield entry.custom_id, read_message(outcome.message)
                except ProviderError as err:
                    yield entry.custom_id, err
            else:
                error = getattr(getattr(outcome, "error", None), "error", None)
                told = self.clean(str(getattr(error, "message", "") or outcome.type))
                retryable = getattr(error, "type", "") != "invalid_request_error"
                yield entry.custom_id, ProviderError(f"{outcome.type} in the batch: {told}", retryable=retryable)


def read_message(message: Any) -> Reply:
    """Read a message of the SDK's, which checks nothing in it."""
    content = getattr(message, "content", None)
    if not isinstance(content, list):
        raise Malformed(f"no message with content, but {type(message).__name__}")
    text = "".join(block.text for block in content if block.type == "text" and isinstance(block.text, str))
    usage = message.usage
    details = getattr(usage, "output_tokens_details", None)  # a plain dict in versions that do not know it
    stop = message.stop_reason
    return Reply(
        text,
        _STOPS.get(stop, "other"),
        total(
            getattr(usage, "input_tokens", None),
            getattr(usage, "cache_creation_input_tokens", None),
            getattr(usage, "cache_read_input_tokens", None),
        ),
        count(getattr(usage, "output_tokens", None)),
        message.model if isinstance(message.model, str) else "",
        raw_stop=str(stop or ""),
        cached_tokens=count(getattr(usage, "cache_read_input_tokens", None)),
        thinking_tokens=count(
            details.get("thinking_tokens") if isinstance(details, dict) else getattr(details, "thinking_tokens", None)
        ),
    )
