"""A server on 127.0.0.1 that speaks as Anthropic, OpenAI and Google do, and misbehaves on command.

Each request is known by its content, so that its n-th attempt meets what was planned for it, whatever the order in
which threads come. Faults are planned by hand (`faults`: key → what its first, second … attempt meets), or drawn
(`rate`, `kinds`, `seed`; at most `most` in a row for one request). `answer` writes the replies.

    with FakeProvider(answer=lambda asked: "(1, 2, 1)") as fake:
        model = load_model("claude", base_url=fake.url("anthropic"))
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import json
import random
import re
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STATUSES = {400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529}
TRANSPORT = ("429", "429-date", "429-bare", "500", "503", "529", "hang", "cut", "malformed", "html", "reset", "wrong")
"""Faults after which a request is worth making again."""
STOPS = {"length", "refusal", "blocked"}
INPUT_TOKENS, CACHED_TOKENS, THINKING_TOKENS = 1600, 100, 7


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    time: float
    path: str
    provider: str
    model: str
    system: str
    text: str
    order: tuple[str, ...]
    images: tuple[tuple[int, int], ...]
    params: Mapping[str, Any]
    key: str
    attempt: int
    headers: Mapping[str, str] = field(repr=False)


@dataclass
class Answered:
    """What became of it."""

    asked: Asked
    fault: str
    time: float = 0.0


class FakeProvider:
    """The server; a context manager.

    Parameters
    ----------
    answer
        Writes the reply to a request.
    identify
        Names a request by its system prompt and text; None: a hash of all its content.
    faults
        What each attempt of a request meets, by its key ("*": any other): "" or the text of a reply gone wrong.
        See `TRANSPORT`; also statuses such as "400", "slow", and on a well-formed reply: "empty", "length",
        "refusal", "blocked", "wrong-frame" (numbers above 1 are 7 times as large).
    rate, kinds, seed, most
        Faults that are drawn.
    retry_after
        Seconds named with a 429; rounded up for "429-date", as dates have whole seconds.
    pause
        Seconds before each answer; "slow" takes 5 times as long, "hang" sleeps for `hang` seconds.
    """

    def __init__(
        self,
        answer: Callable[[Asked], str] = lambda asked: "[(10, 20, 1), (30, 40, 0)]",
        *,
        identify: Callable[[str, str], str] | None = None,
        faults: Mapping[str, Sequence[str]] | None = None,
        rate: float = 0.0,
        kinds: Sequence[str] = TRANSPORT,
        seed: int = 0,
        most: int = 3,
        retry_after: float = 0.2,
        pause: float = 0.0,
        hang: float = 1.5,
        reported_model: str | None = None,
    ) -> None:
        self.answer, self.identify, self.faults = answer, identify, dict(faults or {})
        self.rate, self.kinds, self.seed, self.most = rate, tuple(kinds), seed, most
        self.retry_after, self.pause, self.hang, self.reported_model = retry_after, pause, hang, reported_model
        self.log: list[Answered] = []
        self.lock = threading.Lock()
        self.attempts: Counter[str] = Counter()
        self.in_flight = self.peak = 0
        self.batches: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        # Looks at a batch before it ends. "refused"; "failed" as a whole; "lost": begun, and not answered; "silent".
        self.batch_polls, self.batch_fault = 1, ""
        self.stopping = threading.Event()

    def __enter__(self) -> FakeProvider:
        fake = self

        class Handler(_Handler):
            provider = fake

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()

    def url(self, wire: str) -> str:
        """Base URL as the provider's package wants it."""
        root = f"http://127.0.0.1:{self.server.server_address[1]}"
        return f"{root}/v1" if wire == "openai" else root

    @property
    def requests(self) -> list[Asked]:
        with self.lock:
            return [entry.asked for entry in self.log]

    def served(self, fault: str = "") -> list[Answered]:
        """Requests that met this fault; "": that were answered properly."""
        with self.lock:
            return [entry for entry in self.log if entry.fault == fault]

    def fault(self, key: str, attempt: int) -> str:
        plan = self.faults.get(key, self.faults.get("*", ()))
        if attempt <= len(plan):
            return plan[attempt - 1]
        if attempt > self.most:
            return ""
        draw = random.Random(f"{self.seed} {key} {attempt}")
        return draw.choice(self.kinds) if draw.random() < self.rate else ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    provider: FakeProvider

    def log_message(self, *_: object) -> None: ...

    def send(self, status: int, body: Any, headers: Mapping[str, str] | None = None, kind: str = "") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", kind or "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["content-length"]))
        try:
            if self.path.endswith(("/batches", "/files")):
                return self.start_batch(data)
            return self.ask(json.loads(data))
        except (BrokenPipeError, ConnectionResetError):
            return None  # the client has given up

    def ask(self, body: dict[str, Any]) -> None:
        fake = self.provider
        wire = "anthropic" if "/messages" in self.path else "google" if "generateContent" in self.path else "openai"
        asked = self.read(wire, body)
        fault = fake.fault(asked.key, asked.attempt)
        entry = Answered(asked, fault)
        with fake.lock:
            fake.log.append(entry)
            fake.in_flight += 1
            fake.peak = max(fake.peak, fake.in_flight)
        try:
            if pause := fake.pause * (5 if fault == "slow" else 1):
                fake.stopping.wait(pause)
            self.misbehave(asked, fault) or self.reply(asked, fault)
        finally:
            with fake.lock:
                fake.in_flight -= 1
                entry.time = time.time()

    def read(self, wire: str, body: dict[str, Any]) -> Asked:
        fake = self.provider
        texts, order, images = [], [], []
        system = ""
        for role, part in _parts(wire, body):
            picture = _picture(part)
            if picture is not None:
                images.append(struct.unpack(">II", picture[16:24]) if picture[:4] == b"\x89PNG" else (0, 0))
                order.append("image")
            elif role == "system":
                system += part["text"]
            else:
                texts.append(part["text"])
                order.append("text")
        text = "\n".join(texts)
        content = {name: body.get(name) for name in ("messages", "contents", "system", "systemInstruction")}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
        key = fake.identify(system, text) if fake.identify else digest
        with fake.lock:
            fake.attempts[key] += 1
            attempt = fake.attempts[key]
        params = {name: value for name, value in body.items() if name not in content and name != "model"}
        model = body.get("model") or re.search(r"models/(.+):", self.path)[1]
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Asked(
            time.time(),
            self.path,
            wire,
            model,
            system,
            text,
            tuple(order),
            tuple(images),
            params,
            key,
            attempt,
            headers,
        )

    def misbehave(self, asked: Asked, fault: str) -> bool:
        """Answer wrongly; False where there is nothing to do but to reply."""
        fake = self.provider
        headers: dict[str, str] = {}
        if fault == "hang":
            fake.stopping.wait(fake.hang)
            self.close_connection = True
        elif fault in ("cut", "reset"):
            if fault == "cut":
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "1000")
                self.end_headers()
                self.wfile.write(b'{"id": "1", "content": [{"type": "te')
                self.wfile.flush()
            self.close_connection = True
        elif fault == "malformed":
            self.send(200, b'{"id": "msg_1", "content": [{"type": "te')
        elif fault == "deep":
            self.send(200, b"[" * 200_000)
        elif fault == "html":
            self.send(200, b"<html><body>Bad gateway</body></html>", kind="text/html")
        elif fault == "wrong":
            self.send(200, {"object": "something else"})
        elif fault[:3].isdigit():
            status = int(fault[:3])
            assert status in STATUSES, fault
            if fault == "429":
                headers["retry-after"] = f"{fake.retry_after:g}"
            elif fault == "429-ms":
                headers["retry-after-ms"] = f"{fake.retry_after * 1000:g}"
            elif fault == "429-date":
                headers["retry-after"] = email.utils.formatdate(time.time() + fake.retry_after + 1, usegmt=True)
            self.send(status, _error(asked, status, fault, fake.retry_after), headers)
        else:
            return False
        return True

    def reply(self, asked: Asked, fault: str) -> None:
        text = "" if fault in ("empty", "blocked") else self.provider.answer(asked)
        if fault == "length":
            text = text[: max(1, len(text) - 4)]
        elif fault == "refusal":
            text = "I cannot help with that."
        elif fault == "wrong-frame":
            text = re.sub(r"\d+", lambda found: str(7 * int(found[0]) if int(found[0]) > 1 else found[0]), text)
        model = self.provider.reported_model or f"{asked.model}-2026"
        self.send(200, _REPLIES[asked.provider](text, fault if fault in STOPS else "", model))

    def start_batch(self, data: bytes) -> None:
        fake = self.provider
        with fake.lock:
            name = f"batch_{len(fake.batches) + len(fake.files)}"
            if self.path.endswith("/files"):
                fake.files[name] = re.search(rb"(\{.*\})", data, re.DOTALL)[1]
                return self.send(200, {"id": name, "object": "file", "bytes": len(data), "purpose": "batch"})
            if fake.batch_fault == "refused":
                return self.send(400, {"error": {"type": "invalid_request_error", "message": "too large"}})
            body = json.loads(data)
            size = len(body.get("requests") or fake.files[body["input_file_id"]].splitlines())
            fake.batches[name] = {"body": body, "polls": 0, "size": size, "at": time.time()}
        if fake.batch_fault == "lost":
            self.close_connection = True
            return None
        self.send(200, self.batch(name))

    def batch(self, name: str) -> dict[str, Any]:
        fake = self.provider
        kept = fake.batches[name]
        ended = kept["polls"] > fake.batch_polls
        failed = fake.batch_fault == "failed" and ended
        if "/messages/" in self.path:
            return {
                "id": name,
                "type": "message_batch",
                "created_at": datetime.fromtimestamp(kept["at"], UTC).isoformat(),
                "request_counts": dict.fromkeys(["succeeded", "errored", "canceled", "expired"], 0)
                | {"processing": kept["size"]},
                "processing_status": "ended" if ended else "in_progress",
                "results_url": f"{fake.url('anthropic')}/v1/messages/batches/{name}/results" if ended else None,
            }
        status = {"id": name, "object": "batch", "status": "completed" if ended else "in_progress"}
        status |= {"created_at": int(kept["at"]), "request_counts": {"total": kept["size"]}}
        if failed:
            errors = {"data": [{"code": "token_limit_exceeded", "message": "too many tokens are enqueued"}]}
            return status | {"status": "failed", "errors": errors, "output_file_id": None, "error_file_id": None}
        return status | ({"output_file_id": f"out-{name}", "error_file_id": None} if ended else {})

    def do_GET(self) -> None:
        fake = self.provider
        if fake.batch_fault == "silent":
            self.close_connection = True
            return None
        if self.path.partition("?")[0].endswith("/batches"):
            listed = [self.batch(name) for name in reversed(fake.batches)]
            return self.send(200, {"object": "list", "data": listed, "has_more": False})
        name = re.search(r"(batch_\d+)", self.path)
        if name is None or name[1] not in fake.batches:
            return self.send(404, {"error": {"type": "not_found_error", "message": "no such batch"}})
        if self.path.endswith(("/results", "/content")):
            lines = list(self.outcomes(fake.batches[name[1]]["body"]))
            return self.send(
                200, "".join(json.dumps(line) + "\n" for line in lines).encode(), kind="application/x-jsonl"
            )
        fake.batches[name[1]]["polls"] += 1
        return self.send(200, self.batch(name[1]))

    def outcomes(self, body: dict[str, Any]) -> Any:
        """Lines of a batch's results, last request first, as no order is promised."""
        fake = self.provider
        if "requests" in body:
            for entry in reversed(body["requests"]):
                asked = self.read("anthropic", entry["params"])
                fault = fake.fault(asked.key, 1)
                if fault == "expired":
                    yield {"custom_id": entry["custom_id"], "result": {"type": "expired"}}
                elif fault == "500":
                    error = {"type": "error", "error": {"type": "api_error", "message": "overloaded"}}
                    yield {"custom_id": entry["custom_id"], "result": {"type": "errored", "error": error}}
                else:
                    message = _anthropic(fake.answer(asked), fault, asked.model)
                    yield {"custom_id": entry["custom_id"], "result": {"type": "succeeded", "message": message}}
            return
        for line in reversed(fake.files[body["input_file_id"]].splitlines()):
            entry = json.loads(line)
            asked = self.read("openai", entry["body"])
            fault = fake.fault(asked.key, 1)
            if fault == "expired":
                error = {"code": "batch_expired", "message": "This request could not be executed in time."}
                yield {"custom_id": entry["custom_id"], "response": None, "error": error}
            elif fault == "500":
                failed = {"status_code": 500, "body": {"error": {"message": "overloaded"}}}
                yield {"custom_id": entry["custom_id"], "response": failed}
            else:
                body = _openai(fake.answer(asked), "", asked.model)
                yield {"custom_id": entry["custom_id"], "response": {"status_code": 200, "body": body}}


def _parts(wire: str, body: dict[str, Any]) -> Any:
    """Yield (role, part) in the order in which the model reads them."""
    if wire == "google":
        for part in (body.get("systemInstruction") or {}).get("parts", []):
            yield "system", part
        for content in body["contents"]:
            for part in content["parts"]:
                yield "user", part
        return
    messages = body["messages"]
    if body.get("system"):
        messages = [{"role": "system", "content": body["system"]}, *messages]
    for message in messages:
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield message["role"], part


def _picture(part: dict[str, Any]) -> bytes | None:
    if part.get("type") == "image":
        return base64.b64decode(part["source"]["data"], validate=True)
    if part.get("type") == "image_url":
        head, _, data = part["image_url"]["url"].partition(";base64,")
        assert head.startswith("data:image/"), head
        return base64.b64decode(data, validate=True)
    if "inlineData" in part:
        return base64.urlsafe_b64decode(part["inlineData"]["data"])
    return None


def _error(asked: Asked, status: int, fault: str, retry_after: float) -> dict[str, Any]:
    # Providers quote what they were sent; here even the key.
    key = (
        asked.headers.get("x-api-key") or asked.headers.get("x-goog-api-key") or asked.headers.get("authorization", "")
    )
    message = f"status {status} for key {key.removeprefix('Bearer ')}"
    if asked.provider == "google":
        error: dict[str, Any] = {"code": status, "message": message, "status": "ERROR", "details": []}
        if fault == "429-info":
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{retry_after:g}s"}]
        return {"error": error}
    code = "insufficient_quota" if fault == "429-spent" else None
    return {"type": "error", "error": {"type": "some_error", "message": message, "code": code}}


def _anthropic(text: str, stop: str, model: str) -> dict[str, Any]:
    reasons = {"length": "max_tokens", "refusal": "refusal", "blocked": "refusal"}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "thinking", "thinking": "(9, 9, 1)", "signature": ""}]
        + ([{"type": "text", "text": text}] if text else []),
        "stop_reason": reasons.get(stop, "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": INPUT_TOKENS - CACHED_TOKENS,
            "output_tokens": len(text) + THINKING_TOKENS,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": CACHED_TOKENS,
            "output_tokens_details": {"thinking_tokens": THINKING_TOKENS},
        },
    }


def _openai(text: str, stop: str, model: str) -> dict[str, Any]:
    reasons = {"length": "length", "blocked": "content_filter"}
    refused = {"content": None, "refusal": text} if stop == "refusal" else {"content": text or None, "refusal": None}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", **refused}, "finish_reason": reasons.get(stop, "stop")}
        ],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": len(text) + THINKING_TOKENS,
            "total_tokens": INPUT_TOKENS + len(text) + THINKING_TOKENS,
            "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
            "completion_tokens_details": {"reasoning_tokens": THINKING_TOKENS},
        },
    }


def _google(text: str, stop: str, model: str) -> dict[str, Any]:
    usage = {
        "promptTokenCount": INPUT_TOKENS,
        "cachedContentTokenCount": CACHED_TOKENS,
        "candidatesTokenCount": len(text),
        "thoughtsTokenCount": THINKING_TOKENS,
        "totalTokenCount": INPUT_TOKENS + len(text) + THINKING_TOKENS,
    }
    if stop == "blocked":
        return {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage, "modelVersion": model}
    reasons = {"length": "MAX_TOKENS", "refusal": "PROHIBITED_CONTENT"}
    parts = [{"text": "(9, 9, 1)", "thought": True}] + ([{"text": text}] if text else [])
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reasons.get(stop, "STOP"), "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


_REPLIES = {"anthropic": _anthropic, "openai": _openai, "google": _google}
