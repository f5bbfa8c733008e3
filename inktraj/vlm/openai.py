"""OpenAI's chat completions, which many servers speak, and its batches."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from inktraj.vlm.batch import BatchFailed, BatchLimits, Listed
from inktraj.vlm.hosted import Hosted, Malformed, count
from inktraj.vlm.protocol import ProviderError, Reply, Request, StopReason, Text

_STOPS: dict[str, StopReason] = {"stop": "end", "length": "length", "content_filter": "refusal"}
_ENDED = frozenset(["completed", "failed", "expired", "cancelled"])


class OpenAI(Hosted):
    """A model behind OpenAI's chat completions, or behind any server that speaks them."""

    provider = "openai"
    package = "openai"
    extra_name = "openai"
    url_env = "OPENAI_BASE_URL"
    batch_limits = BatchLimits(50_000, 200_000_000)

    def _connect(self, key: str) -> Any:
        return self._sdk.OpenAI(api_key=key, base_url=self.base_url, max_retries=0, timeout=self.settings.timeout)

    def describe(self) -> dict[str, Any]:
        """Return what decides the answers; see `inktraj.vlm.VLM`."""
        return super().describe() | {"image_detail": self.settings.image_detail}

    def _ask(self, request: Request) -> Reply:
        body = self.body(request)
        known = {name: body.pop(name) for name in ("model", "messages")}
        return read_completion(self._client.chat.completions.create(**known, extra_body=body))

    def body(self, request: Request) -> dict[str, Any]:
        """Return the body that asks a request."""
        content: list[dict[str, Any]] = []
        for part in request.parts:
            if isinstance(part, Text):
                content.append({"type": "text", "text": part.text})
                continue
            data = base64.b64encode(part.data).decode()
            image = {"url": f"data:{part.media_type};base64,{data}"}
            if self.settings.image_detail:
                image["detail"] = self.settings.image_detail
            content.append({"type": "image_url", "image_url": image})
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        body: dict[str, Any] = {"model": self.model_id, "messages": messages}
        body[self.settings.max_tokens_param] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.seed is not None:
            body["seed"] = request.seed
        return body | dict(self.settings.extra)

    def submit(self, requests: Mapping[str, Request]) -> str:
        """Start a batch; see `inktraj.vlm.batch`."""
        lines = [
            {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": self.body(request)}
            for name, request in requests.items()
        ]
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        file = self.retried(
            lambda: self._client.files.create(file=("batch.jsonl", data, "application/jsonl"), purpose="batch"), "batch"
        )
        batch = self.retried(
            lambda: self._client.batches.create(
                input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
            ),
            "batch",
            unanswered=False,
        )
        if not isinstance(getattr(batch, "id", None), str):
            raise Malformed("a batch without an id")
        return str(batch.id)

    def recent(self, since: datetime) -> list[Listed]:
        """List the batches begun since then; see `inktraj.vlm.batch`."""

        def listed() -> list[Listed]:
            found = []
            for batch in self._client.batches.list(limit=100):  # no order is promised
                if batch.created_at >= since.timestamp():
                    total = getattr(batch.request_counts, "total", None)
                    found.append(Listed(batch.id, total or None))  # 0 until the file was looked through
            return found

        return self.retried(listed, "batches")

    def ended(self, batch_id: str) -> bool:
        """Whether a batch has ended."""
        batch = self.retried(lambda: self._client.batches.retrieve(batch_id), batch_id)
        return getattr(batch, "status", None) in _ENDED

    def results(self, batch_id: str) -> Iterator[tuple[str, Reply | ProviderError]]:
        """Yield what came of each request of an ended batch; requests it never got to are not named."""
        batch = self.retried(lambda: self._client.batches.retrieve(batch_id), batch_id)
        files = [file for file in (batch.output_file_id, batch.error_file_id) if file]
        if not files and batch.status == "failed":
            errors = getattr(batch.errors, "data", None) or []
            told = "; ".join(str(error.message) for error in errors) or "no reason given"
            raise BatchFailed(f"the batch {batch_id} failed: {self.clean(told)}")
        for file in files:
            for line in filter(None, self._read(file).splitlines()):
                yield self._result(line)

    def _read(self, file: str) -> str:
        return str(self.retried(lambda: self._client.files.content(file).text, file))

    def _result(self, line: str) -> tuple[str, Reply | ProviderError]:
        entry = json.loads(line)
        name = str(entry["custom_id"])
        response = entry.get("response") or {}
        status = response.get("status_code")
        body = response.get("body") or entry
        if status == 200:
            try:
                return name, read_completion(self._sdk.types.chat.ChatCompletion.model_construct(**body))
            except ProviderError as err:
                return name, err
        error = body.get("error") if isinstance(body, dict) else None
        told = error.get("message") if isinstance(error, dict) else None
        text = self.clean(str(told or "no reason given"))
        retryable = status is None or status == 429 or status >= 500
        return name, ProviderError(f"failed in the batch: {text}", retryable=retryable, status=status)


def read_completion(completion: Any) -> Reply:
    """Read a completion of the SDK's, which checks nothing in it."""
    choices: Any = getattr(completion, "choices", None)
    message = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
    if message is None:
        raise Malformed(f"no completion with a choice, but {type(completion).__name__}")
    choice = choices[0]
    usage = getattr(completion, "usage", None)
    refusal = getattr(message, "refusal", None)
    text = message.content
    if isinstance(text, list):  # some servers answer in parts, as they are asked
        text = "".join(part.get("text") or "" for part in text if isinstance(part, dict))
    stop = choice.finish_reason
    for told, value in (("content", text), ("refusal", refusal), ("finish_reason", stop)):
        if value is not None and not isinstance(value, str):
            raise Malformed(f"a completion whose {told} is {type(value).__name__}, expected text")
    return Reply(
        text or refusal or "",
        "refusal" if refusal else _STOPS.get(stop, "other"),
        count(getattr(usage, "prompt_tokens", None)),
        count(getattr(usage, "completion_tokens", None)),
        completion.model if isinstance(getattr(completion, "model", None), str) else "",
        raw_stop=str(stop or ""),
        cached_tokens=count(getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)),
        thinking_tokens=count(getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)),
    )
