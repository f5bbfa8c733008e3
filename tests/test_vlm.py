"""Models behind one protocol: image sizes, the table, keys, retries, and the real SDKs against a misbehaving server."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fake_provider import CACHED_TOKENS, INPUT_TOKENS, THINKING_TOKENS, TRANSPORT, FakeProvider

from inktraj.errors import DataError, MissingDependency
from inktraj.vlm import (
    VLM,
    ModelClosed,
    Picture,
    ProviderError,
    Reply,
    Request,
    Retry,
    RetryPolicy,
    Text,
    load_model,
    load_table,
    make_picture,
)
from inktraj.vlm.batch import collect_batch, submit_batch
from inktraj.vlm.keys import find_key, is_loopback, redact
from inktraj.vlm.replay import Replay
from inktraj.vlm.retry import Gate, Retrier, may_pass, retry_after

with pytest.MonkeyPatch.context() as patch:
    patch.delenv("INKTRAJ_MODELS", raising=False)  # not the machine's own
    TABLE = load_table()
KEY = "sk-planted-0123456789abcdef"
GOOD = "[(10, 20, 1), (30, 40, 0)]"
QUICK = RetryPolicy(attempts=4, first=0.01, total=20, seed=1)

WIRES = {
    "anthropic": ("claude", "anthropic", "ANTHROPIC_API_KEY"),
    "google": ("gemini", "google.genai", "GEMINI_API_KEY"),
    "openai": ("gpt", "openai", "OPENAI_API_KEY"),
}


def missing(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is None
    except ModuleNotFoundError:
        return True


@pytest.fixture(
    params=[
        pytest.param(wire, marks=pytest.mark.skipif(missing(package), reason=f"{package} is not installed"))
        for wire, (_, package, _) in WIRES.items()
    ]
)
def wire(request):
    return request.param


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    """No key or address of the machine's own gets into a test, and none out."""
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_", "MOONSHOT_", "VLLM_", "INKTRAJ_")):
            monkeypatch.delenv(name)


def connect(fake: FakeProvider, wire: str, **options) -> VLM:
    options = {"policy": QUICK, "timeout": 5.0} | options
    return load_model(WIRES[wire][0], base_url=fake.url(wire), **options)


def page(width: int = 40, height: int = 30) -> Picture:
    return make_picture(np.full((height, width), 255, np.uint8))


def question(text: str = "where is it?", **options) -> Request:
    return Request("system prompt", (Text("before"), page(), Text(text)), options.pop("max_tokens", 500), **options)


# Requests and replies


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Request("", (), 10), "at least one part"),
        (lambda: Request("", ("text",), 10), "Text or a Picture"),
        (lambda: Request("", (Text("a"),), 0), "at least 1"),
        (lambda: Picture(b"", 0, 3), "at least 1 px"),
        (lambda: Picture(b"", 3, 3, "image/gif"), "image/png"),
        (lambda: Reply("", "stop", 1, 1, "m"), "one of"),
    ],
)
def test_what_is_not_a_request_or_reply(make, told):
    with pytest.raises(DataError, match=told):
        make()


def test_the_digest_is_of_all_that_a_model_sees():
    base = Request("s", (Text("ab"), page()), 10)
    same = [replace(base, key="k"), replace(base, sample="w")]
    other = [
        replace(base, system=""),
        replace(base, parts=(Text("a"), Text("b"), page())),
        replace(base, parts=(page(), Text("ab"))),
        replace(base, parts=(Text("ab"), page(41))),
        replace(base, max_tokens=11),
        replace(base, temperature=0.0),
        replace(base, seed=0),
    ]
    assert {r.digest() for r in same} == {base.digest()}
    assert len({base.digest(), *(r.digest() for r in other)}) == 1 + len(other)


def test_a_picture_shows_no_bytes():
    assert repr(page()).endswith("40×30, image/png)")
    assert len(repr(question())) < 300


# Keys


def test_keys_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("SECOND_KEY", f" {KEY}\n")
    assert find_key(["FIRST_KEY", "SECOND_KEY"], None, "m") == KEY
    assert find_key(["FIRST_KEY"], "http://127.0.0.1:8000/v1", "m") == "none-needed"
    with pytest.raises(ProviderError, match="set FIRST_KEY or THIRD_KEY"):
        find_key(["FIRST_KEY", "THIRD_KEY"], "http://example.com", "m")


@pytest.mark.parametrize("key", ["sk bad", "sk\nbad", "sk-…"])
def test_a_key_that_cannot_be_one_is_not_quoted(key, monkeypatch):
    monkeypatch.setenv("SOME_KEY", key)
    with pytest.raises(ProviderError, match="the key in SOME_KEY") as caught:
        find_key(["SOME_KEY"], None, "m")
    assert key not in str(caught.value)


def test_loopback():
    near = ["http://localhost:8000", "http://127.8.0.1", "http://[::1]:80/v1", "http://a.localhost"]
    far = ["http://10.0.0.1", "http://localhost.com", "http://127.0.0.1.example.com", "https://api.openai.com"]
    assert all(map(is_loopback, near))
    assert not any(map(is_loopback, far))


def test_redaction():
    assert redact(f"a {KEY} b https://me:pw@proxy:80/x", [KEY, ""]) == "a [key] b https://proxy:80/x"


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a", "http://", "http://me:pw@a/v1", "http://a/v1?key=1"])
def test_addresses_that_are_refused(url):
    with pytest.raises(DataError, match="base URL") as caught:
        load_model("gpt", base_url=url)
    assert "pw" not in str(caught.value)


def test_a_missing_key_shows_at_once(wire):
    spec, _, name = WIRES[wire]
    with pytest.raises(ProviderError, match=name):
        load_model(spec)


# Names of models


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("cluade", "did you mean 'claude'"),
        ("nobody/model", "no model is called"),
        ("openai/", "no model is called"),
        ("", "no model is called"),
        ("replay:", "followed by a path"),
        ("replay:/nowhere.jsonl", "nowhere"),
        ("transformers:/nowhere", "config.json"),
    ],
)
def test_models_that_are_not_known(spec, told):
    with pytest.raises(DataError, match=told):
        load_model(spec)


def test_options_that_do_not_fit(tmp_path):
    with pytest.raises(DataError, match="no server, so base_url"):
        load_model("inktraj", base_url="http://127.0.0.1")
    with pytest.raises(DataError, match="coordinate frame"):
        load_model("claude", frame="pixels")
    with pytest.raises(DataError, match="timeout"):
        load_model("claude", timeout=0)
    with pytest.raises(DataError, match="JSON"):
        load_model("claude", extra={"a": object()})
    with pytest.raises(DataError, match="attempt"):
        RetryPolicy(attempts=0)


def test_our_own_recoverer_is_not_asked():
    own = load_model("inktraj")
    assert isinstance(own, VLM)
    assert (own.name, own.frame) == ("inktraj", "original-px")
    with pytest.raises(ProviderError, match=r"inktraj\.recover"):
        own.ask(question())
    json.dumps(own.describe())
    own.close()


def test_a_missing_package_says_how_to_install_it(wire, monkeypatch):
    package = WIRES[wire][1]
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"inktraj\[{wire}\]"):
        load_model(WIRES[wire][0], base_url="http://127.0.0.1:9")


def test_importing_loads_no_package_of_a_provider():
    code = "import inktraj.vlm, inktraj.vlm.batch, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert not {"anthropic", "openai", "google", "torch", "transformers", "cv2", "numpy"} & set(loaded.split())


ROOT = Path(__file__).parent.parent

# Retries


NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
IN_7_S = format_datetime(NOW + timedelta(seconds=7), usegmt=True)
AT_NOW = format_datetime(NOW, usegmt=True)


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, None, None),
        ({"Retry-After": "3"}, None, 3.0),
        ({"retry-after": " 0.5 "}, None, 0.5),
        ({"retry-after": "0"}, None, 0.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, None, 0.25),
        ({"retry-after": IN_7_S, "date": AT_NOW}, None, 7.0),
        ({"retry-after": AT_NOW, "date": IN_7_S}, None, 0.0),
        ({"retry-after": "-1"}, None, None),
        ({"retry-after": "nan"}, None, None),
        ({"retry-after": "inf"}, None, None),
        ({"retry-after": "soon"}, None, None),
        ({"retry-after": "Mon, 99 Foo"}, None, None),
        ({}, {"error": {"details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}}, 34.5),
        ({"retry-after": "2"}, {"error": {"details": [{"retryDelay": "34s"}]}}, 2.0),
        ({}, {"error": {"details": [{"retryDelay": "later"}]}}, None),
        ({}, {"error": "no"}, None),
        ({}, {"error": {"details": 4}}, None),
        ({}, [1], None),
    ],
)
def test_what_a_server_asks_to_wait_for(headers, body, seconds):
    assert retry_after(headers, body) == seconds


def test_a_date_without_the_servers_own_is_against_our_clock():
    told = retry_after({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)})
    assert told == pytest.approx(90, abs=3)


def test_which_statuses_may_pass():
    passing = [s for s in range(400, 600) if may_pass(s, {})]
    assert [s for s in passing if s < 500] == [408, 409, 425, 429]
    assert {500, 502, 503, 504, 529} <= set(passing)
    assert may_pass(400, {"X-Should-Retry": "true"})
    assert not may_pass(503, {"x-should-retry": "false"})


def failing(times: int, error: ProviderError):
    calls = []

    def ask() -> str:
        calls.append(time.monotonic())
        if len(calls) <= times:
            raise error
        return "done"

    return ask, calls


def test_waits_grow_are_drawn_and_can_be_repeated():
    def waits(seed: int) -> list[float]:
        heard: list[Retry] = []
        retrier = Retrier(RetryPolicy(attempts=6, first=0.001, longest=0.003, seed=seed), "m", heard.append)
        ask, calls = failing(5, ProviderError("no", retryable=True))
        assert retrier.call(ask, "word")[:2] == ("done", 6)
        assert [retry.attempt for retry in heard] == [1, 2, 3, 4, 5]
        assert {(retry.model, retry.sample) for retry in heard} == {("m", "word")}
        gaps = np.diff(calls)
        assert all(gap >= retry.wait for gap, retry in zip(gaps, heard, strict=True))
        return [retry.wait for retry in heard]

    first = waits(3)
    assert first == waits(3) != waits(4)
    assert all(0 <= wait <= most for wait, most in zip(first, [0.001, 0.002, 0.003, 0.003, 0.003], strict=True))
    spread = [Retrier(RetryPolicy(seed=s), "m")._wait(ProviderError("", retryable=True), 3) for s in range(300)]
    assert np.percentile(spread, [1, 50, 99]) == pytest.approx([0, 2, 4], abs=0.3)


def test_an_end_to_attempts():
    retrier = Retrier(RetryPolicy(attempts=3, first=0.001), "m")
    ask, calls = failing(9, ProviderError("busy", retryable=True, status=503))
    with pytest.raises(ProviderError, match=r"busy \(after 3 calls\)") as caught:
        retrier.call(ask)
    assert len(calls) == 3
    assert (caught.value.retryable, caught.value.status) == (True, 503)


def test_what_cannot_pass_is_not_tried_again():
    ask, calls = failing(9, ProviderError("wrong", status=400))
    with pytest.raises(ProviderError, match=r"^wrong$"):
        Retrier(QUICK, "m").call(ask)
    assert len(calls) == 1


def test_no_wait_goes_beyond_the_total():
    heard: list[Retry] = []
    retrier = Retrier(RetryPolicy(total=5), "m", heard.append)
    ask, calls = failing(9, ProviderError("busy", retryable=True, retry_after=3600))
    begun = time.monotonic()
    with pytest.raises(ProviderError, match="later than the limit of 5 s") as caught:
        retrier.call(ask)
    assert caught.value.retry_after == 3600
    with pytest.raises(ProviderError, match="asked to wait for another 3600 s"):
        retrier.call(ask)
    assert (len(calls), heard) == (1, [])
    assert time.monotonic() - begun < 1


def test_other_errors_pass():
    with pytest.raises(ZeroDivisionError):
        Retrier(QUICK, "m").call(lambda: 1 // 0)


def test_a_closed_gate_ends_all_waits():
    gate = Gate()
    gate.hold(60)
    with ThreadPoolExecutor(4) as pool:
        waits = [pool.submit(gate.pass_through) for _ in range(3)] + [pool.submit(gate.sleep, 60)]
        time.sleep(0.05)
        assert not any(wait.done() for wait in waits)
        gate.close()
        assert all(isinstance(wait.exception(timeout=2), ModelClosed) for wait in waits)
    with pytest.raises(ModelClosed):
        gate.pass_through()


def test_a_shorter_hold_does_not_shorten_a_longer_one():
    gate = Gate()
    gate.hold(60)
    gate.hold(1)
    assert 59 < gate.remaining() <= 60


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals are sent to a thread")
def test_ctrl_c_ends_a_wait():
    retrier = Retrier(RetryPolicy(), "m")
    ask, _ = failing(9, ProviderError("busy", retryable=True, retry_after=30))
    main = threading.main_thread().ident
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        retrier.call(ask)
    assert time.monotonic() - begun < 5
    timer.join()


# The real SDKs against the fake server


def test_a_reply_and_what_was_sent(wire):
    with FakeProvider(reported_model="resolved-2026") as fake:
        model = connect(fake, wire)
        assert isinstance(model, VLM)
        reply = model.ask(question())
        model.close()
    assert (reply.text, reply.stop_reason, reply.model, reply.attempts) == (GOOD, "end", "resolved-2026", 1)
    assert (reply.input_tokens, reply.output_tokens) == (INPUT_TOKENS, len(GOOD) + THINKING_TOKENS)
    assert (reply.cached_tokens, reply.thinking_tokens) == (CACHED_TOKENS, THINKING_TOKENS)
    assert 0 < reply.seconds < 5
    (asked,) = fake.requests
    assert asked.provider == wire
    assert asked.model == model.model_id == TABLE.models[WIRES[wire][0]].id
    assert asked.system == "system prompt"
    assert asked.order == ("text", "image", "text")
    assert asked.text == "before\nwhere is it?"
    assert asked.images == ((40, 30),)
    sent = {
        "anthropic": {"max_tokens": 500},
        "openai": {"max_completion_tokens": 500},
        "google": {"generationConfig": {"maxOutputTokens": 500}},
    }
    assert asked.params == sent[wire]  # and no temperature


def test_temperature_and_seed_only_when_asked_for(wire):
    with FakeProvider() as fake:
        model = connect(fake, wire, extra={"top_k": 3} if wire != "google" else {"generationConfig": {"topK": 3}})
        model.ask(question(temperature=0.25, seed=7))
        model.close()
    (asked,) = fake.requests
    sent = {
        "anthropic": {"max_tokens": 500, "temperature": 0.25, "top_k": 3},
        "openai": {"max_completion_tokens": 500, "temperature": 0.25, "seed": 7, "top_k": 3},
        "google": {"generationConfig": {"maxOutputTokens": 500, "temperature": 0.25, "seed": 7, "topK": 3}},
    }
    assert asked.params == sent[wire]
    assert json.loads(json.dumps(model.describe()))["model"] == model.model_id


def test_no_system_prompt_is_sent_where_there_is_none(wire):
    with FakeProvider() as fake:
        model = connect(fake, wire)
        model.ask(Request("", (Text("hello"),), 10))
        model.close()
    assert fake.requests[0].system == ""
    assert fake.requests[0].order == ("text",)


@pytest.mark.parametrize("fault", [f for f in TRANSPORT if f not in ("hang", "429-date")] + ["408", "409", "429-ms"])
def test_faults_that_pass_are_tried_again(wire, fault):
    heard: list[Retry] = []
    with FakeProvider(faults={"*": [fault, fault]}, retry_after=0.1) as fake:
        model = connect(fake, wire, on_retry=heard.append)
        reply = model.ask(question(sample="word-7"))
        model.close()
    assert (reply.text, reply.attempts) == (GOOD, 3)
    assert len(fake.requests) == 3  # the SDK has not retried by itself
    assert [(retry.attempt, retry.sample) for retry in heard] == [(1, "word-7"), (2, "word-7")]
    if fault in ("429", "429-ms"):
        assert all(retry.error.retry_after == pytest.approx(0.1) for retry in heard)
        gaps = np.diff([asked.time for asked in fake.requests])
        assert (gaps >= 0.1).all()
    else:
        assert all(retry.error.retry_after is None for retry in heard)


def test_a_date_is_waited_for(wire):
    with FakeProvider(faults={"*": ["429-date"]}, retry_after=0.2) as fake:
        heard: list[Retry] = []
        model = connect(fake, wire, on_retry=heard.append)
        model.ask(question())
        model.close()
    assert heard[0].error.retry_after in (1.0, 2.0)  # dates have whole seconds
    assert np.diff([asked.time for asked in fake.requests])[0] >= heard[0].error.retry_after


def test_google_names_the_wait_in_the_body():
    if missing("google.genai"):
        pytest.skip("google.genai is not installed")
    with FakeProvider(faults={"*": ["429-info"]}, retry_after=0.3) as fake:
        model = connect(fake, "google")
        model.ask(question())
        model.close()
    assert np.diff([asked.time for asked in fake.requests])[0] >= 0.3


def test_a_hanging_server(wire):
    with FakeProvider(faults={"*": ["hang"]}, hang=30) as fake:
        model = connect(fake, wire, timeout=0.3)
        begun = time.monotonic()
        assert model.ask(question()).attempts == 2
        assert 0.3 <= time.monotonic() - begun < 5
        model.close()


@pytest.mark.parametrize("status", ["400", "401", "403", "404", "413", "422"])
def test_faults_that_do_not_pass_are_not_tried_again(wire, status):
    with FakeProvider(faults={"*": [status] * 9}) as fake:
        model = connect(fake, wire)
        with pytest.raises(ProviderError) as caught:
            model.ask(question())
        model.close()
    assert (caught.value.status, caught.value.retryable) == (int(status), False)
    assert len(fake.requests) == 1
    if status == "401":
        assert WIRES[wire][2] in str(caught.value)


def test_an_empty_account_is_not_waited_for():
    if missing("openai"):
        pytest.skip("openai is not installed")
    with FakeProvider(faults={"*": ["429-spent"] * 9}) as fake:
        model = connect(fake, "openai")
        with pytest.raises(ProviderError, match="429"):
            model.ask(question())
        model.close()
    assert len(fake.requests) == 1


@pytest.mark.parametrize("fault", ["malformed", "deep", "html", "wrong", "503"])
def test_what_never_passes_is_an_error_and_no_answer(wire, fault):
    with FakeProvider(faults={"*": [fault] * 9}) as fake:
        model = connect(fake, wire)
        with pytest.raises(ProviderError, match="after 4 calls") as caught:
            model.ask(question())
        model.close()
    assert caught.value.retryable
    assert len(fake.requests) == QUICK.attempts


def test_nobody_there(wire):
    with FakeProvider() as fake:
        url = fake.url(wire)
    model = load_model(WIRES[wire][0], base_url=url, policy=QUICK)
    with pytest.raises(ProviderError, match=r"no answer from http://127\.0\.0\.1.* \(after 4 calls\)"):
        model.ask(question())
    model.close()


@pytest.mark.parametrize(
    ("fault", "stop", "text"),
    [
        ("empty", "end", ""),
        ("length", "length", GOOD[:-4]),
        ("refusal", "refusal", "I cannot help with that."),
        ("blocked", "refusal", ""),
    ],
)
def test_answers_that_are_no_errors(wire, fault, stop, text):
    with FakeProvider(faults={"*": [fault]}) as fake:
        model = connect(fake, wire)
        reply = model.ask(question())
        model.close()
    assert (reply.text, reply.stop_reason, reply.attempts) == (text, stop, 1)
    assert reply.raw_stop
    assert reply.input_tokens == INPUT_TOKENS


def test_keys_stay_in_the_environment(wire, monkeypatch):
    name = WIRES[wire][2]
    monkeypatch.setenv(name, KEY)
    told: list[str] = []
    with FakeProvider(faults={"*": ["500", "429", "malformed", "cut"]}, retry_after=0.01) as fake:
        model = connect(fake, wire, on_retry=lambda retry: told.append(f"{retry!r} {retry.error!s}"))
        with pytest.raises(ProviderError) as caught:
            model.ask(question())
        told += [repr(model), repr(caught.value), str(caught.value), json.dumps(model.describe())]
        with_401 = FakeProvider(faults={"*": ["401"]})
        with with_401, pytest.raises(ProviderError) as refused:
            connect(with_401, wire).ask(question())
        model.close()
    assert any(KEY in value for value in fake.requests[0].headers.values())  # it was sent, and quoted by the server
    assert "[key]" in str(refused.value)
    chain = [caught.value, refused.value]
    while chain:
        err = chain.pop()
        chain += [e for e in (err.__cause__, err.__context__) if e is not None]
        told += [str(err), repr(err), repr(err.__dict__)]
    assert not any(KEY in text for text in told)
    assert any("status 500" in text for text in told)


def test_an_address_from_the_environment_is_recorded(wire, monkeypatch):
    name = {"google": "GOOGLE_GEMINI_BASE_URL"}.get(wire, f"{wire.upper()}_BASE_URL")
    with FakeProvider() as fake:
        monkeypatch.setenv(name, fake.url(wire))
        model = load_model(WIRES[wire][0], policy=QUICK)
        assert model.ask(question()).text == GOOD
        assert model.base_url == fake.url(wire)
        assert fake.url(wire) not in str(model.describe())  # the same model behind another port answers the same
        model.close()


def test_no_key_is_invented_for_a_server_elsewhere(wire):
    with pytest.raises(ProviderError, match=r"http://192\.0\.2\.1"):
        load_model(WIRES[wire][0], base_url="http://192.0.2.1/v1")


def test_many_threads_and_many_faults(wire):
    words = [f"w{i}" for i in range(60)]
    policy = RetryPolicy(attempts=6, first=0.01, seed=2)
    kinds = ("429", "500", "529", "cut", "malformed", "html", "reset", "wrong")

    def answer(asked):
        return f"({asked.text.split()[-1][1:]}, 0, 1)"

    with FakeProvider(answer, rate=0.25, kinds=kinds, seed=5, retry_after=0.05) as fake:
        model = connect(fake, wire, policy=policy)
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda word: model.ask(question(word, sample=word)), words))
        model.close()
    assert [reply.text for reply in replies] == [f"({i}, 0, 1)" for i in range(60)]
    assert len(fake.served()) == 60
    assert len(fake.requests) == sum(reply.attempts for reply in replies) > 65
    assert max(asked.attempt for asked in fake.requests) <= 4
    assert fake.peak <= 8


def test_one_429_holds_all_threads(wire):
    with FakeProvider(identify=lambda _, text: text.split()[-1], faults={"w9": ["429"]}, retry_after=0.6) as fake:
        fake.pause = 0.01
        model = connect(fake, wire)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: model.ask(question(f"w{i}")), range(40)))
        model.close()
    (refused,) = fake.served("429")
    late = [asked.time - refused.time for asked in fake.requests if asked.time > refused.time + 0.08]
    assert len(late) >= 25
    assert min(late) >= 0.55


def test_closing_ends_waits(wire):
    with FakeProvider(faults={"*": ["429"] * 9}, retry_after=60) as fake:
        model = connect(fake, wire, policy=RetryPolicy())
        with ThreadPoolExecutor(3) as pool:
            asks = [pool.submit(model.ask, question(f"w{i}")) for i in range(3)]
            while not fake.requests:
                time.sleep(0.01)
            time.sleep(0.1)
            model.close()
            assert all(isinstance(ask.exception(timeout=5), ModelClosed) for ask in asks)
        with pytest.raises(ModelClosed):
            model.ask(question())


def test_closing_does_not_wait_for_a_silent_server(wire):
    with FakeProvider(faults={"*": ["hang"] * 9}, hang=30) as fake:
        model = connect(fake, wire, timeout=60)
        with ThreadPoolExecutor(1) as pool:
            ask = pool.submit(model.ask, question())
            while not fake.requests:
                time.sleep(0.01)
            begun = time.monotonic()
            model.close()
            assert isinstance(ask.exception(timeout=5), ModelClosed)
        assert time.monotonic() - begun < 3


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals are sent to a thread")
def test_ctrl_c_does_not_wait_for_a_silent_server(wire):
    with FakeProvider(faults={"*": ["hang"] * 9}, hang=30) as fake:
        model = connect(fake, wire, timeout=60)
        main = threading.main_thread().ident
        timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
        timer.start()
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            model.ask(question())
        assert time.monotonic() - begun < 5
        timer.join()
        model.close()


def test_compatible_servers(monkeypatch):
    if missing("openai"):
        pytest.skip("openai is not installed")
    monkeypatch.setenv("MOONSHOT_API_KEY", KEY)
    with FakeProvider() as fake:
        for spec, options in [
            ("kimi", {}),
            ("openai/Qwen/Qwen2.5-VL-7B-Instruct", {"max_tokens_param": "max_tokens"}),
            ("local/my-model", {"frame": "norm1", "image_detail": "low", "key_env": "MOONSHOT_API_KEY"}),
        ]:
            model = load_model(spec, base_url=fake.url("openai"), policy=QUICK, **options)
            model.ask(question())
            model.close()
            assert fake.requests[-1].params == {"max_tokens": 500}
            assert fake.requests[-1].headers["authorization"].startswith("Bearer ")
    kimi, qwen, local = fake.requests
    assert KEY in kimi.headers["authorization"]
    assert KEY not in qwen.headers["authorization"]
    assert KEY in local.headers["authorization"]
    assert qwen.model == "Qwen/Qwen2.5-VL-7B-Instruct"
    assert (model.frame, model.limits.rule, model.prices) == ("norm1", "none", ())


def test_a_refused_parameter_gets_a_hint():
    if missing("openai"):
        pytest.skip("openai is not installed")
    from inktraj.vlm.hosted import _HINTS

    with FakeProvider(faults={"*": ["400"]}) as fake:
        model = connect(fake, "openai")
        error = SimpleNamespace(status_code=400, body={"error": {"message": "unknown max_completion_tokens"}})
        assert _HINTS["max_completion_tokens"] in str(model._told(error))
        model.close()


# Batches


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_batches(name):
    if missing(name):
        pytest.skip(f"{name} is not installed")
    requests = {f"id-{i}": question(f"w{i}") for i in range(4)}

    def answer(asked):
        return f"({asked.text[-1]}, 0, 1)"

    with FakeProvider(answer, identify=lambda _, text: text.split()[-1], faults={"w2": ["500"]}) as fake:
        model = connect(fake, name)
        batch_id = submit_batch(model, requests)
        assert collect_batch(model, batch_id).ended is False
        batch = collect_batch(model, batch_id, [*requests, "id-lost"])
        assert batch.ended
        assert batch.replies.keys() == {*requests, "id-lost"}
        for i in (0, 1, 3):
            reply = batch.replies[f"id-{i}"]
            assert (reply.text, reply.stop_reason, reply.input_tokens) == (f"({i}, 0, 1)", "end", INPUT_TOKENS)
        failed = batch.replies["id-2"]
        assert isinstance(failed, ProviderError)
        assert failed.retryable
        assert "overloaded" in str(failed)
        assert "no answer" in str(batch.replies["id-lost"])
        with pytest.raises(ProviderError, match="404"):
            collect_batch(model, "batch_99")
        model.close()


def test_what_is_no_batch():
    with pytest.raises(DataError, match="at least one"):
        submit_batch(load_model("inktraj"), {})
    with pytest.raises(DataError, match="1 to 64"):
        submit_batch(load_model("inktraj"), {"a b": question()})
    with pytest.raises(DataError, match="no batches"):
        submit_batch(load_model("inktraj"), {"a": question()})


def test_a_batch_is_not_started_twice(wire):
    with FakeProvider() as fake:
        model = connect(fake, wire)
        calls = []

        def lost() -> None:
            calls.append(1)
            raise ConnectionResetError("gone")

        with pytest.raises(ProviderError, match="may have been carried out"):
            model.retried(lost, unanswered=False)
        assert len(calls) == 1
        with pytest.raises(ProviderError, match="after 4 calls"):
            model.retried(lost)
        model.close()


# Recorded replies


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_replay(tmp_path):
    asked = Request("s", (Text("a"),), 10)
    path = write(
        tmp_path / "replies.jsonl",
        {"sample": "w1", "text": "one", "stop_reason": "length", "model": "claude-opus-5-5", "output_tokens": 3},
        {"key": "k2", "sample": "w2", "text": "two", "score": 0.3},
        {"key": "k3", "sample": "w2", "text": "three"},
        {"id": asked.digest(), "text": "by content"},
        {"key": "k4", "error": "timed out"},
    )
    with path.open("a") as file:
        file.write('{"sample": "w5", "te')
    model = load_model(f"replay:{path}")
    assert isinstance(model, VLM)
    assert (model.model_id, model.frame, model.limits) == ("claude-opus-5-5", "sent-px", TABLE.limits["claude"])
    reply = model.ask(replace(asked, sample="w1"))
    assert reply == Reply("one", "length", None, 3, "claude-opus-5-5")
    assert model.ask(replace(asked, key="k2", sample="w2")).text == "two"
    assert model.ask(replace(asked, key="k3", sample="w2")).text == "three"
    assert model.ask(asked).text == "by content"
    with pytest.raises(ProviderError, match="several replies"):
        model.ask(replace(asked, sample="w2"))
    for name in ("k4", "w5", "w9"):
        with pytest.raises(ProviderError, match=f"no reply to '{name}'"):
            model.ask(replace(asked, sample=name, max_tokens=11))
    assert model.describe()["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert load_model(f"replay:{path}", frame="norm1").frame == "norm1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no replies"),
        ('{"sample": "a", "error": "x"}\n', "no replies"),
        ("{nonsense}\n{}\n", "line 1: not JSON"),
        ('{"sample": "a", "te', "line 1: not JSON"),
        ("[1]\n", "object is expected"),
        ('{"text": "a"}\n', "without a name"),
        ('{"sample": 3, "text": "a"}\n', "without a name"),
        ('{"sample": "a"}\n', "text is None"),
        ('{"sample": "a", "text": null}\n', "text is None"),
        ('{"sample": "a", "text": "t", "stop_reason": "stop"}\n', "stop reason"),
        ('{"sample": "a", "text": "t", "input_tokens": 1.5}\n', "input_tokens"),
        ('{"sample": "a", "text": "t", "seconds": "1"}\n', "seconds"),
        ('{"key": "a", "text": "t"}\n{"key": "a", "text": "u"}\n', "not the same"),
    ],
)
def test_recordings_that_are_refused(text, told, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=told):
        Replay(path)


def test_a_large_recording_is_read_quickly(tmp_path):
    path = write(tmp_path / "r.jsonl", *({"sample": f"w{i}", "text": "(1, 2, 0)" * 50} for i in range(19_000)))
    begun = time.perf_counter()
    model = Replay(path)
    asked = question()
    assert all(model.ask(replace(asked, sample=f"w{i}")).text for i in range(19_000))
    assert time.perf_counter() - begun < 5
