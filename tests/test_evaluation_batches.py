"""`inktraj eval --batch`: real SDKs, a server with batches, kills and lost answers; nothing may be paid twice."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fake_provider import INPUT_TOKENS, THINKING_TOKENS, FakeProvider
from typer.testing import CliRunner

from inktraj.cli import app
from inktraj.datasets import load_dataset
from inktraj.errors import DataError, ParseError, RunError
from inktraj.evaluation import Plan, Prompt, batches, evaluate_model
from inktraj.evaluation.batches import LEDGER, Ledger, Queued
from inktraj.evaluation.views import Place
from inktraj.vlm import ImageLimits, RetryPolicy, load_model
from inktraj.vlm.batch import BatchLimits, recent_batches

ROOT = Path(__file__).parents[1]
QUICK = RetryPolicy(attempts=3, first=0.01, longest=0.05, seed=0)
CROP = Prompt(input="crop", example=False)
ANSWER = "[(10, 20, 1), (30, 40, 0)]"


@pytest.fixture(scope="module")
def demo():
    return load_dataset("demo")


@pytest.fixture(params=["anthropic", "openai"])
def wire(request):
    pytest.importorskip(request.param)
    return request.param


def connect(fake, wire, name=None):
    name = name or {"anthropic": "claude", "openai": "openai/gpt-6.1-sol"}[wire]
    small = ImageLimits("box", long_edge=200)
    return load_model(name, base_url=fake.url(wire), policy=QUICK, limits=small, frame="sent-px")


def plan(limit=6, **options):
    return Plan(**{"prompt": CROP, "limit": limit, "batch": True, "poll": 0.02, "placed": False} | options)


def ledger(folder):
    return [json.loads(line) for line in (folder / LEDGER).read_text().splitlines()]


def states(folder):
    return [(record["number"], record["state"]) for record in ledger(folder)]


def stop(*_):
    raise KeyboardInterrupt


def run(fake, wire, demo, out, limit=6, **options):
    model = connect(fake, wire)
    try:
        return evaluate_model(model, demo, out, plan(limit, **options))
    finally:
        model.close()


def test_all_is_asked_in_a_batch(wire, demo, tmp_path):
    with FakeProvider() as fake:
        found = run(fake, wire, demo, tmp_path / "run")
        assert found.rows[0].kinds["ok"] == 6
        assert len(fake.batches) == 1
        assert [asked.key for asked in fake.requests] == []  # nothing was asked one by one
        assert states(tmp_path / "run") == [(0, "begun"), (0, "started"), (0, "over")]
        # Another run goes on from the journal, and batches only what is new.
        again = run(fake, wire, demo, tmp_path / "run", 9)
        assert again.rows[0].kinds["ok"] == 9
        old = {outcome.id for outcome in found.rows[0].outcomes}
        new = sum(outcome.id not in old for outcome in again.rows[0].outcomes)
        assert sum(kept["size"] for kept in fake.batches.values()) == 6 + new
        # The same run without batches reads the same replies.
        alone = run(fake, wire, demo, tmp_path / "run", 9, batch=False)
        assert alone.rows[0].kinds["ok"] == 9
        assert fake.requests == []
    replies = [json.loads(line) for line in (tmp_path / "run" / "samples.jsonl").read_text().splitlines()]
    assert all(reply["batch"].startswith("batch_") and reply["text"] == ANSWER for reply in replies)


def test_a_batch_costs_half(demo, tmp_path):
    pytest.importorskip("anthropic")
    with FakeProvider() as fake:
        model = connect(fake, "anthropic")
        one = evaluate_model(model, demo, tmp_path / "one", plan(batch=False))
        many = evaluate_model(model, demo, tmp_path / "many", plan())
    (price, *_) = [p for p in model.prices if p.since <= datetime.now(UTC).date()]
    output = len(ANSWER) + THINKING_TOKENS
    uncached = 6 * (INPUT_TOKENS * price.input + output * price.output) / 1e6
    assert 0.8 * uncached < one.costs["dollars"] <= uncached
    assert many.costs["dollars"] == pytest.approx(one.costs["dollars"] / 2, rel=1e-4)
    assert many.costs["dollars_of_this_run"] == many.costs["dollars"]
    assert (many.costs["input_tokens"], many.costs["output_tokens"]) == (6 * INPUT_TOKENS, 6 * output)


def test_batches_are_split(wire, demo, tmp_path, monkeypatch):
    with FakeProvider() as fake:
        model = connect(fake, wire)
        model.batch_limits = BatchLimits(4, 10**9)
        evaluate_model(model, demo, tmp_path / "requests", plan(10))
        assert sorted(kept["size"] for kept in fake.batches.values()) == [2, 4, 4]
        fake.batches.clear()
        model.batch_limits = BatchLimits(1000, 120_000)
        evaluate_model(model, demo, tmp_path / "bytes", plan(10))
        assert len(fake.batches) > 1
        for kept in fake.batches.values():
            body = kept["body"]
            sent = json.dumps(body).encode() if "requests" in body else fake.files[body["input_file_id"]]
            assert len(sent) <= 120_000
            assert kept["size"] < 10
        assert sum(kept["size"] for kept in fake.batches.values()) == 10


@pytest.mark.parametrize("fault", ["500", "expired"])
def test_what_fails_in_a_batch_is_asked_again_by_the_next_run(wire, fault, demo, tmp_path):
    turns = iter(range(100))
    with FakeProvider(faults={"*": [fault]}) as fake:
        fake.identify = lambda system, text: "bad" if next(turns) % 3 == 0 else "good"
        fake.faults = {"bad": [fault]}
        first = run(fake, wire, demo, tmp_path / "run")
        assert first.rows[0].kinds == first.rows[0].kinds | {"ok": 4, "error": 2}
        assert any("batch" in outcome.reason for outcome in first.rows[0].outcomes if outcome.kind == "error")
        assert first.rows[0].scores.counts["error"] == 2
        fake.faults = {}
        second = run(fake, wire, demo, tmp_path / "run")
        assert second.rows[0].kinds["ok"] == 6
        assert [kept["size"] for kept in fake.batches.values()] == [6, 2]


def test_a_batch_that_fails_as_a_whole(demo, tmp_path):
    pytest.importorskip("openai")
    with FakeProvider() as fake:
        fake.batch_fault = "failed"
        with pytest.raises(DataError, match=r"no word could be scored.* too many tokens are enqueued"):
            run(fake, "openai", demo, tmp_path / "run")
        fake.batch_fault = ""
        second = run(fake, "openai", demo, tmp_path / "run")
        assert second.rows[0].kinds["ok"] == 6


def test_a_refused_batch(wire, demo, tmp_path):
    with FakeProvider() as fake:
        fake.batch_fault = "refused"
        with pytest.raises(RunError, match="too large"):
            run(fake, wire, demo, tmp_path / "run")
        assert states(tmp_path / "run") == [(0, "begun"), (0, "over")]
        fake.batch_fault = ""
        assert run(fake, wire, demo, tmp_path / "run").rows[0].kinds["ok"] == 6


KILLED = """
import sys
sys.path.insert(0, {tests!r})
import test_evaluation_batches as t
t.run(type("Fake", (), {{"url": lambda self, wire: {url!r}}})(), {wire!r}, t.load_dataset("demo"), t.Path({out!r}))
"""


def test_killed_after_submission_it_collects_the_same_batch(wire, demo, tmp_path):
    out = tmp_path / "run"
    with FakeProvider() as fake:
        fake.batch_polls = 10**6
        code = KILLED.format(tests=str(ROOT / "tests"), url=fake.url(wire), wire=wire, out=str(out))
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=ROOT)
        for _ in range(600):
            if (out / LEDGER).exists() and (out / LEDGER).read_bytes().count(b"\n") == 2:
                break
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert states(out) == [(0, "begun"), (0, "started")]
        with pytest.raises(RunError, match=r"6 requests .* go on with --batch"):
            run(fake, wire, demo, out, batch=False)
        fake.batch_polls = 0
        found = run(fake, wire, demo, out)
        assert found.rows[0].kinds["ok"] == 6
        assert len(fake.batches) == 1
        assert fake.requests == []


@pytest.mark.parametrize("moment", ["before", "long before", "after", "torn", "lost"])
def test_stopped_while_a_batch_is_begun(wire, moment, demo, tmp_path, monkeypatch):
    """Whether it was is looked up: neither lost nor begun, and paid, twice."""
    out = tmp_path / "run"
    with FakeProvider() as fake:
        fake.batch_polls = 0
        run(fake, wire, demo, tmp_path / "another run")  # with a batch of the same size

        with monkeypatch.context() as patch:
            if "before" in moment:
                patch.setattr(batches, "submit_batch", stop)
            elif moment == "lost":
                fake.batch_fault = "lost"
            else:
                patch.setattr(Ledger, "started", stop)
            with pytest.raises(RunError if moment == "lost" else KeyboardInterrupt):
                run(fake, wire, demo, out, seed=1)
        if moment == "torn":
            with open(out / LEDGER, "ab") as file:
                file.write(b'{"number": 0, "state": "sta')
        else:
            assert states(out) == [(0, "begun")]
        begun = len(fake.batches)
        assert begun == (1 if "before" in moment else 2)
        fake.batch_fault, fake.batch_polls = "", 0 if moment == "before" else 3
        if moment == "long before":
            # While the other run's batch goes on, it may be this one: the run waits for its results, and asks no more.
            with pytest.raises(DataError, match="its batch was never begun"):
                run(fake, wire, demo, out, seed=1)
            assert len(fake.batches) == 1
        found = run(fake, wire, demo, out, seed=1)
        assert len(fake.batches) == 2
        assert found.rows[0].kinds["ok"] == 6
        assert all(state in ("begun", "started", "over") for _, state in states(out))
        assert Ledger(out).open == {}


def test_stopped_while_replies_are_filed(wire, demo, tmp_path, monkeypatch):
    out = tmp_path / "run"
    with FakeProvider() as fake:
        from inktraj.evaluation.journal import Journal

        add, added = Journal.add, []

        def some(self, answer):
            if len(added) == 3:
                stop()
            added.append(answer)
            add(self, answer)

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "add", some)
            with pytest.raises(KeyboardInterrupt):
                run(fake, wire, demo, out)
        # Asked for fewer samples, all that is paid for is still filed.
        found = run(fake, wire, demo, out, limit=1)
        assert found.rows[0].kinds["ok"] == 1
        assert len((out / "samples.jsonl").read_text().splitlines()) == 6
        assert len(fake.batches) == 1
        assert found.costs["replies_of_this_run"] == 3


def test_a_batch_that_the_provider_does_not_know_is_not_begun_again(wire, demo, tmp_path):
    out = tmp_path / "run"
    with FakeProvider() as fake:
        fake.batch_polls = 10**6
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batches, "wait", stop)
            with pytest.raises(KeyboardInterrupt):
                run(fake, wire, demo, out)
        kept = dict(fake.batches)
        fake.batches.clear()
        with pytest.raises(DataError, match=f"no such batch.* remove {LEDGER}"):
            run(fake, wire, demo, out)
        assert fake.batches == {}
        fake.batches.update(kept)
        fake.batch_polls = 0
        assert run(fake, wire, demo, out).rows[0].kinds["ok"] == 6
        assert len(fake.batches) == 1


def test_a_silent_provider_ends_the_wait_not_the_batch(wire, demo, tmp_path):
    out = tmp_path / "run"
    with FakeProvider() as fake:
        fake.batch_fault = "silent"
        with pytest.raises(RunError, match="batches go on meanwhile"):
            run(fake, wire, demo, out)
    assert states(out) == [(0, "begun"), (0, "started")]


def test_recent_batches(wire, demo, tmp_path):
    with FakeProvider() as fake:
        run(fake, wire, demo, tmp_path / "run")
        model = connect(fake, wire)
        now = datetime.now(UTC)
        (listed,) = recent_batches(model, now - timedelta(minutes=1))
        assert (listed.id, listed.requests) == (next(iter(fake.batches)), 6)
        assert recent_batches(model, now + timedelta(minutes=1)) == []


def test_what_has_no_batches(demo, tmp_path):
    for model in ("inktraj", f"replay:{replies(tmp_path)}"):
        with pytest.raises(DataError, match="no batches"):
            evaluate_model(model, demo, tmp_path / "run", plan())
    assert not (tmp_path / "run").exists()
    with pytest.raises(DataError, match="limit of cost"):
        Plan(batch=True, max_cost=1.0)
    with pytest.raises(DataError, match="poll"):
        Plan(poll=0)


def replies(folder):
    path = folder / "replies.jsonl"
    path.write_text('{"sample": "a", "text": "b"}\n')
    return path


def test_the_ledger(tmp_path):
    request = Queued("k", ("a", "b"), "sent-px", Place((1, 2), (3, 4), (5, 6)))
    book = Ledger(tmp_path)
    first, second = book.begin([request]), book.begin([])
    book.started(first, "x")
    book.over(second, "refused")
    again = Ledger(tmp_path)
    assert again.open.keys() == {0}
    assert (again.open[0].requests, again.open[0].id) == ((request,), "x")
    assert again.known == {"x"}
    assert again.begin([]).number == 2
    path = tmp_path / LEDGER
    path.write_bytes(path.read_bytes() + b'{"number": 7, "state": "over"}\n')
    with pytest.raises(ParseError, match="line 6"):
        Ledger(tmp_path)


def test_the_command(demo, tmp_path, monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.chdir(tmp_path)
    with FakeProvider() as fake:
        options = ["--model", "openai/fake", "--base-url", fake.url("openai"), "--limit", "3", "--input", "crop"]
        done = CliRunner().invoke(app, ["eval", *options, "--batch", "--poll", "0.02"])
        assert done.exit_code == 0, done.output
        assert len(fake.batches) == 1
        assert fake.requests == []
