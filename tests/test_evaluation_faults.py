"""Runs that are stopped, edited by hand, or meet data that cannot be used: nothing is lost, paid twice, or guessed."""

import json
import shutil
from pathlib import Path

import pytest
from test_evaluation import FAST, Scribble
from typer.testing import CliRunner

from inktraj.cli_asking import asking_bar
from inktraj.cli_output import complain
from inktraj.datasets import load_dataset
from inktraj.errors import DataError, ParseError, RunError
from inktraj.evaluation import Plan, evaluate_model
from inktraj.evaluation.compare import compare_runs
from inktraj.evaluation.examples import Examples
from inktraj.evaluation.run import choose_samples
from inktraj.vlm import Price, ProviderError, Reply
from inktraj.vlm.retry import Retry

DEMO = Path(__file__).parents[1] / "examples" / "demo"
MANIFEST = """name = "mine"
version = "1"
title = "Mine"
layout = "pages"
references = "recorded"
licence = "none"
citation = "none"
url = ""
"""


@pytest.fixture(scope="module")
def demo():
    return load_dataset("demo")


def run(model, data, out, **options):
    return evaluate_model(model, data, out, Plan(**(FAST | options)))


def copied(folder, edit=lambda pages: None):
    """Make a data set of the demo's pages, edited."""
    shutil.copytree(DEMO / "images", folder / "images")
    pages = [json.loads(line) for line in (DEMO / "pages.jsonl").read_text().splitlines()]
    edit(pages)
    (folder / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    (folder / "manifest.toml").write_text(MANIFEST)
    return folder


# ---------------------------------------------------------------- limits of cost


def test_replies_of_earlier_runs_are_counted_where_a_limit_of_cost_ends_this_one(demo, tmp_path):
    model = Scribble(demo)
    model.prices = (Price(3.0, 15.0),)  # 1500 and 800 tokens: $0.0165 each
    first = run(model, demo, tmp_path, limit=40)
    assert first.costs["dollars"] == pytest.approx(40 * 0.0165)
    second = run(model, demo, tmp_path, max_cost=0.02, connections=1)
    assert len(model.asked) == second.costs["replies"] == 42
    assert second.costs["dollars"] == pytest.approx(42 * 0.0165)
    assert second.costs["dollars_of_this_run"] == pytest.approx(2 * 0.0165)
    assert (second.rows[0].kinds["ok"], second.rows[0].kinds["error"]) == (42, 50)
    assert "$0.03 of at most $0.02 were spent" in second.stopped


def test_a_limit_of_cost_that_cannot_be_kept_says_so(demo, tmp_path):
    class Silent(Scribble):
        def ask(self, request):
            reply = super().ask(request)
            return Reply(reply.text, "end", None, None, reply.model)

    model = Silent(demo)
    model.prices = (Price(3.0, 15.0),)
    found = run(model, demo, tmp_path, max_cost=1.0, connections=1)
    assert len(model.asked) == 1
    assert found.stopped == "what a reply cost is not known, so the limit of $1.00 cannot be kept"


# ---------------------------------------------------------------- the folder


@pytest.mark.parametrize(
    "change",
    [
        {"text": None},
        {"text": 5},
        {"text": {"a": 1}},
        {"ids": []},
        {"ids": "abc"},
        {"key": None},
        {"model": None},
        {"input_tokens": "12"},
        {"input_tokens": True},
        {"seconds": "x"},
        {"sent": [-5, 1]},
        {"sent": [5]},
        {"corner": [10**400, 0]},
        "[" * 100_000,
        "\0" * 10,
        "[1, 2]",
    ],
)
def test_a_line_that_is_no_reply_is_told_and_nothing_is_asked(change, demo, tmp_path):
    model = Scribble(demo)
    run(model, demo, tmp_path, limit=3)
    place = tmp_path / "samples.jsonl"
    lines = place.read_text().splitlines()
    lines[1] = change if isinstance(change, str) else json.dumps(json.loads(lines[1]) | change)
    place.write_text("\n".join(lines) + "\n")
    with pytest.raises(ParseError, match="line 2: not a reply as"):
        run(model, demo, tmp_path, limit=3)
    assert len(model.asked) == 3


def test_two_replies_to_one_request(demo, tmp_path):
    model = Scribble(demo)
    before = run(model, demo, tmp_path, limit=3)
    place = tmp_path / "samples.jsonl"
    text = place.read_text()
    place.write_text(text + text)
    again = run(model, demo, tmp_path, limit=3)
    assert again.costs["replies"] == 3
    assert again.rows[0].scores.figures == before.rows[0].scores.figures
    place.write_text(text + text.replace('"text": "[(', '"text": "[(9, 9, 1), ('))
    with pytest.raises(ParseError, match="two replies with the key"):
        run(model, demo, tmp_path, limit=3)
    assert len(model.asked) == 3


def test_what_a_kill_left_half_written_is_no_stranger(demo, tmp_path):
    left = tmp_path / ".inktraj-0123456789abcdef.tmp"
    left.write_text('{"format": "inktr')
    assert run(Scribble(demo), demo, tmp_path, limit=2).rows[0].kinds["ok"] == 2
    assert not left.exists()
    (tmp_path / "settings.json").unlink()
    with pytest.raises(RunError, match="not of a run"):
        run(Scribble(demo), demo, tmp_path, limit=2)


@pytest.mark.parametrize("text", ["[1]", "null", '{"a"', "[" * 100_000])
def test_damaged_settings(text, demo, tmp_path):
    run(Scribble(demo), demo, tmp_path, limit=2)
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(ParseError, match="damaged"):
        run(Scribble(demo), demo, tmp_path, limit=2)


def test_what_scores_is_looked_at_before_anything_is_asked(demo, tmp_path):
    model = Scribble(demo)
    for options, told in (
        ({"recognizer": "pp-ocr"}, "no recogniser 'pp-ocr'"),
        ({"threads": -1}, "threads is -1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"style": tmp_path / "none.onnx"}, "none.onnx"),
    ):
        with pytest.raises(DataError, match=told):
            run(model, demo, tmp_path / "run", **options)
    assert not model.asked
    assert not (tmp_path / "run").exists()


def test_ctrl_c_says_where_the_replies_are(monkeypatch, tmp_path):
    from inktraj import evaluation
    from inktraj.cli import app

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "evaluate_model", stopped)
    done = CliRunner().invoke(app, ["eval", "--model", "inktraj", "--out", str(tmp_path / "run")])
    assert done.exit_code == 130
    assert f"kept in {tmp_path / 'run'}" in done.output


# ---------------------------------------------------------------- data


def test_a_page_that_cannot_be_opened_costs_its_own_words_only(demo, tmp_path):
    shown = Examples.choose(demo, 0).samples[0].page_id
    folder = copied(tmp_path / "data")
    (folder / "images" / f"{shown}.jpg").write_bytes(b"\xff\xd8\xff")
    data = load_dataset(folder)
    assert shown not in {sample.page_id for sample in Examples.choose(data, 0).samples}
    found = run(Scribble(data), data, tmp_path / "run")
    lost = {outcome.id for outcome in found.rows[0].outcomes if outcome.kind == "error"}
    assert lost == {sample.id for sample in data if sample.page_id == shown}
    assert found.rows[0].kinds["ok"] == len(data) - len(lost)
    # The page is mended: another example would be chosen, but the one that was shown stays, so nothing is paid anew.
    shutil.copy(DEMO / "images" / f"{shown}.jpg", folder / "images")
    again = Scribble(data)
    assert run(again, data, tmp_path / "run").rows[0].kinds["ok"] == len(data)
    assert set(again.asked) == lost


def test_examples_where_no_page_can_be_opened(demo, tmp_path):
    folder = copied(tmp_path / "data")
    shutil.rmtree(folder / "images")
    chosen = Examples.choose(load_dataset(folder), 0).samples
    assert len({sample.writer for sample in chosen}) == len(chosen) > 1


def test_a_reference_far_off_its_page_does_not_end_the_run(tmp_path):
    def far(pages):
        pages[0]["words"][0]["strokes"][0][0] = 1e300

    data = load_dataset(copied(tmp_path / "data", far))
    found = run(
        Scribble(data, write=lambda text, request: "[(1, 2, 1), (30, 40, 0)]"), data, tmp_path / "run", limit=92
    )
    assert (found.rows[0].kinds["ok"], found.rows[0].kinds["error"]) == (91, 1)
    assert (tmp_path / "run" / "report.html").is_file()


def test_text_with_half_a_character_is_no_sample(tmp_path):
    def halve(pages):
        pages[0]["words"][3]["text"] = "a\ud800b"

    data = load_dataset(copied(tmp_path / "data", halve))
    assert len(data) == 91
    assert "half a character" in str(data.skipped[0])


# ---------------------------------------------------------------- what is scored, and how


def dots(pages):
    """Make two words of the first page one and the same, the second of them a point, which is no unit."""
    first, second = pages[0]["words"][:2]
    second["text"] = first["text"]
    second["strokes"] = second["strokes"][:1]


def test_a_reference_that_is_no_unit_is_an_error_of_its_own(tmp_path):
    data = load_dataset(copied(tmp_path / "data", dots))
    found = run(Scribble(data), data, tmp_path / "run")
    (lost,) = [outcome for outcome in found.rows[0].outcomes if outcome.kind == "error"]
    assert lost.id == data.ids[1]
    assert lost.ink is not None
    assert "longer side" in lost.reason
    assert found.rows[0].kinds["ok"] == len(data) - 1 == found.rows[0].scores.counts["valid"]
    # Scored against any occurrence, it is met by the other one.
    found = run(Scribble(data), data, tmp_path / "run", any_occurrence=True)
    assert found.rows[0].kinds["ok"] == len(data)
    assert [outcome.scored_as for outcome in found.rows[0].outcomes[:2]] == ["", data.ids[0]]


def test_any_occurrence_is_compared_with_its_like_only(demo, tmp_path):
    model = Scribble(demo, lambda text, request: text.replace("1)", "1 )"))
    for name, options in (("a", {}), ("b", {"any_occurrence": True}), ("c", {"any_occurrence": True})):
        run(model, demo, tmp_path / name, **options)
    assert len(compare_runs([tmp_path / "b", tmp_path / "c"]).entries) == 2
    with pytest.raises(DataError, match="it has occurrence as well"):
        compare_runs([tmp_path / "a", tmp_path / "b"])


def test_answers_read_by_their_numbers_are_named_so(demo, tmp_path):
    for name in ("asked", "auto"):
        found = run(Scribble(demo), demo, tmp_path / name, limit=5, read_as=name)
        assert ("read as auto" in found.rows[0].name) == (name == "auto")
        assert ("read as auto" in (tmp_path / name / "summary.md").read_text()) == (name == "auto")
    names = {entry.name for entry in compare_runs([tmp_path / "asked", tmp_path / "auto"]).entries}
    assert names == {"scribble, sent-px", "scribble, sent-px, read as auto"}


def test_errors_are_left_out_of_all_that_are_compared(demo, tmp_path):
    """A run that could not ask for the words on which it is bad does not lead."""

    class Failing(Scribble):
        def ask(self, request):
            if "note1" in request.sample:
                raise ProviderError("overloaded", status=529)
            return super().ask(request)

    def bad_there(text, request):
        return "[(1, 1, 1), (900, 900, 0)]" if "note1" in request.sample else text

    run(Scribble(demo, bad_there), demo, tmp_path / "whole")
    run(Failing(demo, lambda text, request: text.replace("(1", "(2")), demo, tmp_path / "failing")
    found = compare_runs([tmp_path / "failing", tmp_path / "whole"])
    assert [entry.folder.name for entry in found.entries] == ["whole", "failing"]
    shared = sum("note1" not in sample.id for sample in demo)
    assert {len(entry.scores.words) for entry in found.entries} == {shared}
    assert f"the {shared} of 92 samples that are an error in no run" in found.table.title
    assert [row[1] for row in found.table.rows] == ["0", str(92 - shared)]
    assert found.to_json()["compared"] == shared


def test_nothing_is_compared_where_each_sample_is_an_error_somewhere(demo, tmp_path):
    class Failing(Scribble):
        there = True

        def ask(self, request):
            if ("note1" in request.sample) == self.there:
                raise ProviderError("overloaded", status=529)
            return super().ask(request)

    for name in ("one", "other"):
        model = Failing(demo)
        model.there = name == "one"
        run(model, demo, tmp_path / name)
    with pytest.raises(DataError, match="an error in one of the runs"):
        compare_runs([tmp_path / "one", tmp_path / "other"])


def test_a_higher_limit_holds_the_lower_one(demo):
    few, more = ({s.id for s in choose_samples(demo, Plan(limit=limit, seed=5))} for limit in (20, 30))
    assert few < more


def test_a_grouping_that_cannot_be_is_told_before_anything_is_asked(tmp_path):
    def nameless(pages):
        for page in pages:
            page.pop("writer", None)

    data = load_dataset(copied(tmp_path / "data", nameless))
    model = Scribble(data)
    with pytest.raises(DataError, match="cannot be grouped by writer"):
        run(model, data, tmp_path / "run", by=("writer",))
    assert not model.asked
    assert run(model, data, tmp_path / "run", limit=3, by=("page",)).rows[0].scores.groupings == ("page",)


def test_points_beside_the_image_are_warned_of(demo, tmp_path):
    found = run(Scribble(demo, lambda text, request: "[(90000, 5, 1), (90010, 9, 0)]"), demo, tmp_path, limit=3)
    (warning,) = [warning for warning in found.warnings if "outside of the image" in warning]
    assert "100%" in warning
    assert "--read-as auto" in warning


def test_results_of_other_frames_do_not_stay(demo, tmp_path):
    for frames in (("native", "norm1000"), ("native",), ("native", "norm1000")):
        run(Scribble(demo), demo, tmp_path, limit=3, frames=frames)
        rows = json.loads((tmp_path / "run.json").read_text())["rows"]
        named = {row[kind] for row in rows for kind in ("scores", "predictions")}
        assert {path.name for kind in ("scores*", "predictions*") for path in tmp_path.glob(kind)} == named


def test_earlier_results_stay_where_new_ones_cannot_be_written(demo, tmp_path, monkeypatch):
    run(Scribble(demo), demo, tmp_path, limit=3)
    before = {name: (tmp_path / name).read_bytes() for name in ("scores.parquet", "predictions.jsonl")}

    def full(*_):
        raise DataError("no space")

    monkeypatch.setattr("inktraj.evaluation.run.write_ink", full)
    monkeypatch.setattr("inktraj.scoring.scores.Scores.to_parquet", full)
    with pytest.raises(DataError, match="no space"):
        run(Scribble(demo), demo, tmp_path, limit=3, frames=("native", "norm1000"))
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_a_split_is_told(tmp_path):
    def parted(pages):
        for number, page in enumerate(pages):
            page["split"] = "test" if number % 2 else "train"

    folder = copied(tmp_path / "data", parted)
    (folder / "manifest.toml").write_text(MANIFEST + '[splits]\ntest = ""\ntrain = ""\n')
    data = load_dataset(folder, split="test")
    found = run(Scribble(data), data, tmp_path / "run", limit=3)
    assert found.settings["dataset"]["split"] == "test"
    assert "mine 1, test: 3 samples" in (tmp_path / "run" / "summary.md").read_text()
    other = load_dataset(folder, split="train")
    with pytest.raises(RunError, match=r'dataset\.split is "test" there and "train" now'):
        run(Scribble(other), other, tmp_path / "run", limit=3)


# ---------------------------------------------------------------- what a server may say


def test_what_a_server_says_does_not_steer_a_terminal(capsys):
    complain("it said \x1b[31mred\x1b[0m, \x07 and \u202eback; नमस्\u200dते\nis kept")
    told = capsys.readouterr().err
    assert told == "inktraj: it said \ufffd[31mred\ufffd[0m, \ufffd and \ufffdback; नमस्\u200dते\nis kept\n"


def test_markup_in_what_a_server_says_is_text(capsys):
    with asking_bar() as (_, _, on_retry):
        on_retry(Retry("m", 1, 6.0, ProviderError("slow [/bold] down \x1b[2J"), "s"))
    assert "slow [/bold] down" in capsys.readouterr().err
