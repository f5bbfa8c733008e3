"""Several prompts in one command, runs side by side, and runs that are killed."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import vqa_copies
from fake_provider import FakeProvider
from typer.testing import CliRunner

from inktraj.cli import app
from inktraj.errors import DataError, ParseError, RunError
from inktraj.metrics.statistics import paired_bootstrap
from inktraj.vlm import RetryPolicy, load_model
from inktraj.vqa import load_benchmark
from inktraj.vqa.compare import compare_runs
from inktraj.vqa.predictions import Prediction, score_predictions
from inktraj.vqa.results import write_outcome
from inktraj.vqa.run import Plan, run_benchmark, run_prompts

QUICK = RetryPolicy(first=0.01, longest=0.05, seed=0, attempts=3)
runner = CliRunner()


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")


@pytest.fixture
def leaves(tmp_path):
    return vqa_copies.palmleaf(tmp_path / "copy")


def provider(**options):
    pytest.importorskip("anthropic")
    return FakeProvider(**options)


def model_of(fake):
    return load_model("claude", base_url=fake.url("anthropic"), policy=QUICK)


def by_prompt(asked):
    """Right where the form of the answer is told; else with more words than a label has."""
    text = asked.text
    answers = {"Which script": "Khmer", "How many lines": "5", "binding holes": "yes", "condition": "cracks, stains"}
    right = next(answer for words, answer in answers.items() if words in text)
    constrained = "and nothing else" in text
    return right if constrained else {"Khmer": "it looks like Khmer writing"}.get(right, right)


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_both_prompts_in_one_command(leaves, tmp_path):
    out = tmp_path / "runs"
    arguments = ["vqa", "run", "--benchmark", "palmleaf-vqa", "--data", leaves, "--model", "claude", "--out", out]
    arguments += ["--prompt", "open", "--prompt", "constrained"]
    with provider(answer=by_prompt) as fake:
        done = runner.invoke(app, [*map(str, arguments), "--base-url", fake.url("anthropic")])
        assert done.exit_code == 0, done.output
        assert len(fake.requests) == 24
        again = runner.invoke(app, [*map(str, arguments), "--base-url", fake.url("anthropic")])
        assert again.exit_code == 0
        assert len(fake.requests) == 24
    assert "Side by side" in done.output
    assert done.output.count("report.html") == 2
    found = compare_runs([out / "open", out / "constrained"])
    assert [entry.name for entry in found.entries] == ["claude, open", "claude, constrained"]
    assert [entry.summary("em").mean for entry in found.entries] == [pytest.approx(9 / 12), 1]
    # One question of four is another by the prompt on each of three leaves.
    change = found.differences[1]
    assert (change.difference, change.count, change.first) == (pytest.approx(0.25), 12, 1)
    rows = rows_of(out / "per_category_metrics.csv")
    em = {(row["Prompt"], row["Breakdown"], row["Group"]): row["EM"] for row in rows}
    assert em["open", "all", "all"] == "75.0"
    assert em["constrained", "all", "all"] == "100.0"
    assert em["open", "category", "script or collection"] == "0.0"
    assert em["open", "task", "classification"] == "0.0"
    assert {row["Breakdown"] for row in rows} == {"all", "collection", "category", "task", "cardinality"}
    assert rows[: len(rows) // 2] == rows_of(out / "open" / "per_category_metrics.csv")
    text = (out / "comparison.md").read_text("utf-8")
    measured, _, quoted = text.partition("## As published")
    assert "| script or collection | 0.00" in measured
    assert "58.00" not in measured
    for row in (("Gemini 3.5 Flash", "constrained", "58.00", "67.25", "93.88"), ("open", "43.03"), ("87.50", "92.40")):
        assert " | ".join(row) in quoted


def test_prompts_are_checked_before_anything_is_asked(leaves, tmp_path):
    with provider(answer=by_prompt) as fake:
        with pytest.raises(DataError, match="no prompt 'nice'"):
            run_prompts(model_of(fake), "palmleaf-vqa", leaves, tmp_path / "runs", ["open", "nice"])
        run_benchmark(model_of(fake), "palmleaf-vqa", leaves, tmp_path / "one", Plan(limit=1))
        with pytest.raises(RunError, match="is the folder of one run"):
            run_prompts(model_of(fake), "palmleaf-vqa", leaves, tmp_path / "one", ["open", "constrained"])
        assert len(fake.requests) == 1


def test_a_budget_is_for_all_prompts(leaves, tmp_path):
    price = 0.0064  # of a reply, about
    plan = Plan(connections=1, max_cost=18 * price)
    arguments = ["--benchmark", "palmleaf-vqa", "--data", leaves, "--model", "claude", "--out", tmp_path / "cli"]
    with provider(answer=by_prompt) as fake:
        outcomes = run_prompts(model_of(fake), "palmleaf-vqa", leaves, tmp_path / "a", ["open", "constrained"], plan)
        assert [outcome.stopped != "" for outcome in outcomes] == [False, True]
        assert 16 <= len(fake.requests) <= 20
        outcomes = run_prompts(
            model_of(fake), "palmleaf-vqa", leaves, tmp_path / "b", ["open", "constrained"], Plan(max_cost=0.001)
        )
        assert len(outcomes) == 1
        arguments += ["--base-url", fake.url("anthropic"), "--prompt", "all", "--max-cost", "0.001"]
        done = runner.invoke(app, ["vqa", "run", *map(str, arguments)])
        assert done.exit_code == 1
        assert "questions could not be asked ($0.0" in done.output


def scored(folder, rights, benchmark="mtvqa", **options):
    """Write what comes of right and wrong answers to the questions of a copy."""
    copy = folder.parent / f"copy-{benchmark}"
    if not copy.exists():
        vqa_copies.COPIES[benchmark](copy)
    items = load_benchmark(benchmark).load(copy, options.get("split", "test")).items
    given = [Prediction(q.id, q.golds[0] if right else "-") for q, right in zip(items, rights, strict=False)]
    outcome = score_predictions(given, benchmark, copy, answered_only=True, **options)
    folder.mkdir()
    write_outcome(outcome, folder)
    return folder


def test_differences_are_of_common_questions_and_of_whole_images(tmp_path):
    first = scored(tmp_path / "a", [1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0])
    second = scored(tmp_path / "b", [1, 1, 1, 0, 1, 1, 1, 0, 1, 1])
    third = scored(tmp_path / "c", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    found = compare_runs([first, second, third])
    assert [entry.name for entry in found.entries] == ["predictions (a)", "predictions (b)", "predictions (c)"]
    left = [1.0, 1, 1, 0, 1, 1, 1, 0, 1, 1]
    expected = paired_bootstrap(left, [1.0, 1, 0, 0, 1, 0, 1, 0, 1, 1], clusters=[k // 2 for k in range(10)])
    assert found.differences[1].difference == expected.difference == pytest.approx(0.2)
    assert (found.differences[1].low, found.differences[1].high) == (expected.low, expected.high)
    assert found.differences[1].p_value >= expected.p_value  # corrected for two tests
    assert found.differences[0] is None
    assert any("10 questions are in both, of the first's 12 and its 10" in note for note in found.notes)
    text = found.to_markdown()
    assert "+20.00" in text
    assert "| ok | 12 | 10 | 12 |" in text


def test_of_several_answers_to_a_question_the_mean_is_compared(tmp_path):
    first = scored(tmp_path / "a", [0] * 12)
    items = load_benchmark("mtvqa").load(tmp_path / "copy-mtvqa", "test").items
    given = [Prediction(q.id, text) for q in items for text in (q.golds[0], "-", "-", "-")]
    outcome = score_predictions(given, "mtvqa", tmp_path / "copy-mtvqa", several=True)
    (tmp_path / "x" / "a").mkdir(parents=True)
    write_outcome(outcome, tmp_path / "x" / "a")
    found = compare_runs([first, tmp_path / "x" / "a"])
    assert (found.differences[1].difference, found.differences[1].count) == (0.25, 12)
    assert [entry.name for entry in found.entries] == [f"predictions ({tmp_path / at})" for at in ("a", "x/a")]


def test_runs_that_cannot_be_compared(tmp_path):
    run = scored(tmp_path / "a", [1, 0, 1])
    with pytest.raises(DataError, match="two runs at least, not 1"):
        compare_runs([run, run])
    with pytest.raises(DataError, match="no such folder"):
        compare_runs([run, tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"has no run\.json"):
        compare_runs([run, tmp_path / "empty"])
    with pytest.raises(DataError, match="cannot be compared: name is indotabvqa there and mtvqa in"):
        compare_runs([run, scored(tmp_path / "b", [1] * 12, "indotabvqa")])
    other = scored(tmp_path / "c", [1, 0, 1])
    told = json.loads((other / "run.json").read_text("utf-8"))
    for change, error in (({"format": "x"}, "in the form 'x'"), ({"figures": {}}, "nothing to compare")):
        (other / "run.json").write_text(json.dumps(told | change), "utf-8")
        with pytest.raises(DataError, match=error):
            compare_runs([run, other])
    (other / "run.json").write_text("{", "utf-8")
    with pytest.raises(ParseError, match="not what a run wrote"):
        compare_runs([run, other])


def test_of_a_first_run_with_fewer_questions_it_is_told(tmp_path):
    few, all_of_them = scored(tmp_path / "a", [1, 0, 1]), scored(tmp_path / "b", [1] * 12)
    for runs, told in (((few, all_of_them), "3 and its 12"), ((all_of_them, few), "12 and its 3")):
        notes = compare_runs(runs).notes
        assert any(f"3 questions are in both, of the first's {told}" in note for note in notes)
    again = scored(tmp_path / "c", [0] * 12)
    assert not any("are in both, of" in note for note in compare_runs([all_of_them, again]).notes)


def test_other_splits_are_not_compared(tmp_path):
    test, train = (scored(tmp_path / split, [1, 0, 1], split=split) for split in ("test", "train"))
    with pytest.raises(DataError, match=r"it is of the split train and .*test of test"):
        compare_runs([test, train])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"answer": "101 or so"}, "the gold of test-0-id is '101 or so' there and '100' in"),
        ({"question": "Berapa?"}, r"its data are others .*SHA-256 of ids, questions and golds: \w{12}… and \w{12}…"),
    ],
)
@pytest.mark.parametrize("as_run", [False, True], ids=["scored", "run"])
def test_other_data_are_not_compared(as_run, change, told, tmp_path):
    """The same ids, with another gold or another question."""
    runs = []
    for name in ("one", "other"):
        copy = vqa_copies.indotab(tmp_path / name)
        if name == "other":
            path = copy / "test.jsonl"
            first, *rest = path.read_text("utf-8").splitlines()
            path.write_text("\n".join([json.dumps({**json.loads(first), **change}), *rest]), "utf-8")
        items = load_benchmark("indotabvqa").load(copy, "test").items
        runs.append(tmp_path / f"run-{name}")
        if as_run:
            replies = tmp_path / f"{name}.jsonl"
            lines = [json.dumps({"sample": q.id, "text": q.golds[0], "model": "m"}) for q in items]
            replies.write_text("\n".join(lines), "utf-8")
            run_benchmark(f"replay:{replies}", "indotabvqa", copy, runs[-1])
        else:
            runs[-1].mkdir()
            write_outcome(score_predictions([Prediction(items[0].id, "100")], "indotabvqa", copy), runs[-1])
    with pytest.raises(DataError, match=f"run-other cannot be compared: {told}"):
        compare_runs(runs)


def test_a_run_and_a_scoring_of_one_copy_are_compared(leaves, tmp_path):
    with provider(answer=by_prompt) as fake:
        run_benchmark(model_of(fake), "palmleaf-vqa", leaves, tmp_path / "run", Plan(limit=5))
    told = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert told["data"]["sha256"] == told["settings"]["data"]["sha256"]
    outcome = score_predictions(tmp_path / "run", "palmleaf-vqa", leaves)
    (tmp_path / "scored").mkdir()
    write_outcome(outcome, tmp_path / "scored")
    found = compare_runs([tmp_path / "run", tmp_path / "scored"])
    assert (found.differences[1].difference, found.differences[1].count) == (0, 5)


def test_compare_by_command(tmp_path):
    runs = [str(scored(tmp_path / name, [1, 0, 1], prompt=name)) for name in ("before", "after")]
    done = runner.invoke(app, ["vqa", "compare", *runs, "--out", str(tmp_path / "both")])
    assert done.exit_code == 0, done.output
    assert "predictions, after" in done.output
    assert {row["Prompt"] for row in rows_of(tmp_path / "both" / "per_category_metrics.csv")} == {"before", "after"}
    assert "## Side by side" in (tmp_path / "both" / "comparison.md").read_text("utf-8")
    (tmp_path / "file").touch()
    done = runner.invoke(app, ["vqa", "compare", *runs, "--out", str(tmp_path / "file" / "x")])
    assert isinstance(done.exception, DataError)


# ---------------------------------------------------------------- killed and interrupted


def started(copy, out, fake):
    arguments = ["vqa", "run", "--benchmark", "palmleaf-vqa", "--data", copy, "--model", "claude", "--out", out]
    arguments += ["--prompt", "open", "--prompt", "constrained", "--base-url", fake.url("anthropic")]
    root = Path(__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-m", "inktraj", *map(str, arguments), "--max-connections", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root), "NO_PROXY": "127.0.0.1"},
    )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill", "interrupt"])
def test_a_run_that_was_killed_goes_on(how, leaves, tmp_path):
    out, journal = tmp_path / "runs", tmp_path / "runs" / "constrained" / "samples.jsonl"
    with provider(answer=by_prompt, pause=0.03) as fake:
        process = started(leaves, out, fake)
        end = time.monotonic() + 60
        while not journal.exists() or journal.read_bytes().count(b"\n") < 2:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(how)
        _, told = process.communicate()
        assert process.returncode == (-signal.SIGKILL if how == signal.SIGKILL else 130)
        if how == signal.SIGINT:
            assert "the same command goes on" in told
        else:
            with open(journal, "ab") as file:  # what a kill within a line leaves
                file.write(b'{"key": "cut')
        before = journal.read_bytes().count(b"\n")
        assert 2 <= before < 12
        fake.pause = 0
        asked = len(fake.requests)
        outcomes = run_prompts(model_of(fake), "palmleaf-vqa", leaves, out, ["open", "constrained"])
        assert len(fake.requests) - asked == 12 - before
        unbroken = run_prompts(model_of(fake), "palmleaf-vqa", leaves, tmp_path / "new", ["open", "constrained"])
    for one, other in zip(outcomes, unbroken, strict=True):
        assert one.results == other.results
        assert one.to_json()["figures"] == other.to_json()["figures"]
