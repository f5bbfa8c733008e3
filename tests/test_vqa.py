"""`inktraj vqa`: benchmarks, requests, runs with faults, predictions made elsewhere, figures, the report."""

import base64
import csv
import html.parser
import importlib.metadata
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import vqa_copies
from fake_provider import FakeProvider
from typer.testing import CliRunner

from inktraj.cli import app
from inktraj.errors import DataError, ParseError, RunError
from inktraj.vlm import Picture, RetryPolicy, load_model
from inktraj.vqa import Benchmark, Figure, Image, Question, Questions, Scored, load_benchmark
from inktraj.vqa import registry as registries
from inktraj.vqa.asking import Asking, Prompt, Shots, Task
from inktraj.vqa.manifest import layout_of, read_layout
from inktraj.vqa.mtvqa import INSTRUCTION, MTVQA
from inktraj.vqa.predictions import Prediction, read_predictions, score_predictions
from inktraj.vqa.records import Cells, find_image, image_bytes, read_records, text_of
from inktraj.vqa.report import report_html
from inktraj.vqa.results import write_outcome
from inktraj.vqa.run import Plan, run_benchmark

ROOT = Path(__file__).parents[1]
QUICK = RetryPolicy(first=0.01, longest=0.05, seed=0, attempts=3)
SHIPPED = [name for name, place in registries.SHIPPED.items() if find_spec(place.partition(":")[0])]
PROMPTS = [(name, prompt) for name in SHIPPED for prompt in load_benchmark(name).prompts]


def question(gold="gold", id="q", language="DE", **more):
    return Question(id, None, "what?", (gold,) if isinstance(gold, str) else gold, language, **more)


@pytest.fixture
def copy(tmp_path):
    return vqa_copies.mtvqa(tmp_path / "copy")


def provider(package="anthropic", **options):
    """A server, where the package that is to speak to it is installed."""
    pytest.importorskip({"google": "google.genai"}.get(package, package))
    return FakeProvider(**options)


def model_of(fake, **options):
    return load_model("claude", base_url=fake.url("anthropic"), policy=QUICK, **options)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")


# ---------------------------------------------------------------- manifests and records


@pytest.mark.parametrize("path", sorted((ROOT / "data_manifests/vqa").glob("*.toml")), ids=lambda path: path.stem)
def test_every_manifest_can_be_used(path):
    layout = read_layout(path.stem)
    assert layout.name == path.stem
    assert layout.url.startswith("https://")
    assert path.stem in registries.SHIPPED


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": 3}, "name is 3"),
        ({"colour": "red"}, "unknown colour"),
        ({"fields": []}, "fields is"),
        ({"fields": {"id": []}}, "fields, id"),
        ({"statistics": {"images": "many"}}, "images is 'many'"),
    ],
)
def test_a_manifest_with_a_fault_is_refused(change, told):
    whole = dict.fromkeys(["name", "title", "version", "licence", "citation", "url"], "x")
    assert layout_of(whole, "here").name == "x"
    with pytest.raises(ParseError, match=f"here.*{told}"):
        layout_of({**whole, **change}, "here")


def test_a_manifest_of_the_data_names_fields_that_there_are(tmp_path):
    (tmp_path / "manifest.toml").write_text('[fields]\nfrage = "question"\n', encoding="utf-8")
    with pytest.raises(ParseError, match="no field 'frage'; the fields are id, image, language"):
        read_layout("mtvqa", tmp_path)
    (tmp_path / "manifest.toml").write_text("[title]\nde = 'MTVQA'\n", encoding="utf-8")
    with pytest.raises(ParseError, match=r"title is .*, expected a text"):
        read_layout("mtvqa", tmp_path)


def test_records_are_read_alike(tmp_path):
    rows = [{"id": "1", "answer": "é"}, {"id": "2", "answer": ""}]
    bom = "\ufeff"
    (tmp_path / "a.jsonl").write_text(bom + "\n".join(map(json.dumps, rows)) + "\n\n", "utf-8")
    (tmp_path / "a.json").write_text(bom + json.dumps({"version": 1, "data": rows}), "utf-8")
    (tmp_path / "b.json").write_text(json.dumps({row["id"]: {"answer": row["answer"]} for row in rows}), "utf-8")
    (tmp_path / "a.csv").write_text(bom + "id,answer\r\n1,é\r\n2,\r\n", "utf-8")
    (tmp_path / "a.tsv").write_text("id\tanswer\n1\té\n2\t\n", "utf-8")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for path in sorted(tmp_path.iterdir()):
        assert [record for _, record in read_records(path)] == rows, path.name
    (tmp_path / "a.xml").write_text("<a/>", "utf-8")
    with pytest.raises(DataError, match="end in one of"):
        list(read_records(tmp_path / "a.xml"))
    (tmp_path / "bad.jsonl").write_text('{"id": 1}\n[1]\n', "utf-8")
    with pytest.raises(ParseError, match="line 2"):
        list(read_records(tmp_path / "bad.jsonl"))
    told = []
    assert len(list(read_records(tmp_path / "bad.jsonl", damaged=lambda *why: told.append(why)))) == 1
    assert told[0][0] == "bad.jsonl, line 2"


def test_values_as_text():
    assert [text_of(v) for v in (None, float("nan"), 3.0, 3.5, True, "x", "", 7)] == [
        *(None, None, "3", "3.5", "yes", "x", "", "7"),
    ]


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.json", DEEP, "not JSON"),
        ("a.jsonl", '{"id": ' + DEEP, "line 1: not a record"),
        ("a.json", '{"id": 1}\n{"id": 2}\n', r"a file with one record a line is called \.jsonl"),
        ("a.json", "[1, 2]", "expected a list of objects"),
        ("a.json", '{"a": [], "b": []}', "expected a list of objects"),
        ("a.jsonl", '{"id": ' + "9" * 5000 + "}", "line 1: not a record"),
    ],
)
def test_files_that_are_not_what_they_are_called(name, text, told, tmp_path):
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(ParseError, match=told):
        list(read_records(tmp_path / name))


def test_an_image_never_lies_outside(tmp_path):
    inside = tmp_path / "copy"
    (inside / "images").mkdir(parents=True)
    (inside / "images" / "a.png").write_bytes(vqa_copies.png(1))
    (tmp_path / "secret.png").write_bytes(vqa_copies.png(1))
    assert find_image(inside, "images\\a.png") == find_image(inside, "a.png") == inside / "images/a.png"
    assert find_image(inside, "../secret.png") is None
    assert find_image(inside, str(tmp_path / "secret.png")) is None
    with pytest.raises(DataError, match="no base64"):
        image_bytes("###", "row 1")
    with pytest.raises(DataError, match="expected bytes"):
        image_bytes(3, "row 1")
    with pytest.raises(DataError, match="there is no image, expected bytes"):
        image_bytes(None, "row 1")
    with pytest.raises(DataError, match="the image x: not an image"):
        Image("x", b"no image").pixels()
    with pytest.raises(DataError, match="cannot be read"):
        Image("x", tmp_path / "none.png").pixels()


def test_cells_are_read_forwards_and_again(tmp_path):
    rows = [{"n": k} for k in range(100)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=30)
    cells = Cells(tmp_path / "a.parquet", "n")
    order = [0, 3, 2, 90, 80, 5, 99, 0]
    assert [cells(k) for k in order] == order
    with pytest.raises(DataError, match="no row 101"):
        cells(100)
    assert cells(4) == 4
    with pytest.raises(DataError, match="cannot be read"):
        Cells(tmp_path / "a.parquet", "other")(0)


# ---------------------------------------------------------------- requests


def asking_of(copy, fake=None, count=0, seed=0, **options):
    bench = MTVQA()
    wanted = bench.load(copy, "test").items
    shots = Shots.choose(bench, bench.load(copy, "train").items, wanted, count, seed) if count else None
    pytest.importorskip("anthropic")
    model = load_model("claude", base_url="http://127.0.0.1:9", policy=QUICK)
    return Asking(model, bench, shots, options.pop("max_tokens", 100), **options), wanted


def test_both_prompts(copy):
    asking, wanted = asking_of(copy)
    before = asking(Task((wanted[0],), Prompt("before")))
    after = asking(Task((wanted[0],), Prompt("after")))
    assert before.request.parts[-1].text == f"{INSTRUCTION} AR 0 0 0?"
    assert after.request.parts[-1].text == f"AR 0 0 0?\n{INSTRUCTION}"
    assert isinstance(before.request.parts[0], Picture)
    assert before.place.original == (48, 32)
    assert before.key != after.key


def test_keys_hang_on_all_that_decides_the_answer(copy):
    asking, wanted = asking_of(copy)
    task = Task((wanted[0],), Prompt("before"))
    same = asking(task).key
    assert asking_of(copy)[0](task).key == same
    others = [
        asking(Task((wanted[1],), Prompt("before"))).key,
        asking_of(copy, max_tokens=101)[0](task).key,
        asking_of(copy, temperature=0.0)[0](task).key,
        asking_of(copy, count=2)[0](task).key,
        asking_of(copy, count=2, seed=5)[0](task).key,
    ]
    assert len({same, *others}) == 1 + len(others)


def test_examples_are_of_the_language_and_of_other_images(copy):
    asking, wanted = asking_of(copy, count=3)
    for q in wanted:
        shots = asking.shots.of(q)
        assert len(shots) == 3
        assert {shot.language for shot in shots} == {q.language}
        assert {shot.split for shot in shots} == {"train"}
        assert len({shot.image for shot in shots}) == 3
    request = asking(Task((wanted[0],), Prompt("after"))).request
    kinds = [isinstance(part, Picture) for part in request.parts]
    assert kinds == [True, False] * 4
    assert request.parts[1].text.endswith(f"Answer: {asking.shots.of(wanted[0])[0].golds[0]}")
    train = MTVQA().load(copy, "train").items
    mine = train[0]
    assert mine not in Shots.choose(MTVQA(), train, [mine], 3, 0).of(mine)
    with pytest.raises(DataError, match="4 examples of the language 'AR' need 5 images in the train split, not 4"):
        asking_of(copy, count=4)


def test_a_question_without_its_image_is_not_asked():
    pytest.importorskip("anthropic")
    model = load_model("claude", base_url="http://127.0.0.1:9", policy=QUICK)
    asking = Asking(model, MTVQA(), None, 100)
    with pytest.raises(DataError, match="has no image"):
        asking(Task((question(),), Prompt("before")))


# ---------------------------------------------------------------- runs


def truth(bench, copy):
    """Answers by what is asked."""
    items = bench.load(copy, bench.default_split).items

    def answer(asked):
        best = max((q for q in items if q.text in asked.text), key=lambda q: len(q.text))
        return ", ".join(best.golds)

    return answer


@pytest.mark.parametrize(("name", "prompt"), PROMPTS, ids=str)
def test_a_run_of_every_benchmark_and_prompt(name, prompt, tmp_path):
    bench = load_benchmark(name)
    copy = vqa_copies.COPIES[name](tmp_path / "copy")
    with provider(answer=truth(bench, copy), kinds=("429", "500", "cut"), rate=0.2, retry_after=0.01) as fake:
        outcome = run_benchmark(model_of(fake), bench, copy, tmp_path / "run", Plan(prompt=prompt, connections=4))
        asked = fake.served()
    count = len(bench.load(copy, bench.default_split).items)
    assert outcome.counts["ok"] == len(outcome.results) == count
    assert len(asked) == count
    head = outcome.figures[0]
    assert head.published_way.mean is not None
    right = [r for r in outcome.results if r.scored.values[head.figure.name] == 1]
    if name == "mtvqa":
        assert len(right) == count
    assert right
    assert all(entry.asked.images for entry in asked) != ("text-only" in prompt)
    run = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert run["prompt"] == prompt
    assert run["figures"][head.figure.name]["published_way"] == head.published_way.mean
    assert set(bench.breakdowns) & set(run["breakdowns"])
    table = pq.read_table(tmp_path / "run" / "scores.parquet")
    assert table.num_rows == count
    with open(tmp_path / "run" / "scores.csv", encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == count
    for extra in outcome.extras:
        assert not extra.file or (tmp_path / "run" / extra.file).is_file()
    assert "## Figures" in (tmp_path / "run" / "summary.md").read_text("utf-8")
    assert prompt in outcome.settings["benchmark"]["prompt"]


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("package", ["anthropic", "openai", "google"])
def test_each_provider_package_asks_each_benchmark(package, name, tmp_path):
    bench, copy = load_benchmark(name), vqa_copies.COPIES[name](tmp_path / "copy")
    with provider(package, answer=truth(bench, copy), kinds=("429", "500", "cut"), rate=0.2, retry_after=0.01) as fake:
        model = load_model(f"{package}/fake", base_url=fake.url(package), policy=QUICK)
        outcome = run_benchmark(model, bench, copy, tmp_path / "run", Plan(limit=6))
        assert {asked.order[-1] for asked in fake.requests} == {"text"}
        assert {len(asked.images) for asked in fake.requests} == {1}
    assert outcome.counts["ok"] == 6
    assert outcome.scored[0].scored.values[bench.figures[0].name] == 1


def run(fake, copy, out, **options):
    return run_benchmark(model_of(fake), "mtvqa", copy, out, Plan(**{"connections": 3} | options))


def test_no_answer_is_incorrect_and_an_error_is_none(copy, tmp_path):
    def named(system, text):
        return text.removesuffix("\n" + INSTRUCTION).removeprefix(INSTRUCTION + " ")

    faults = {
        "AR 0 0 0?": ["refusal"],
        "AR 0 0 1?": ["empty"],
        "DE 0 0 0?": ["length"],
        "JA 0 0 0?": ["400"] * 3,
        "JA 0 0 1?": ["500"] * 3,
    }
    answer = truth(MTVQA(), copy)
    with provider(answer=answer, identify=named, faults=faults) as fake:
        outcome = run(fake, copy, tmp_path / "run")
        assert outcome.counts == {
            **{"ok": 7, "truncated": 1, "empty": 1, "refused": 1, "unparsable": 0, "missing": 0, "error": 2}
        }
        by_id = {result.question.id: result for result in outcome.results}
        assert [by_id[id].status for id in ("AR-0-1", "AR-0-2", "JA-4-1", "JA-4-2")] == [
            *("refused", "empty", "error", "error")
        ]
        for id in ("AR-0-1", "AR-0-2"):
            assert by_id[id].prediction is None
            assert set(by_id[id].scored.values.values()) == {0.0}
            assert by_id[id].reason
        exact = {f.figure.name: f for f in outcome.figures}["exact"]
        assert exact.micro.count == 10  # errors are in no figure
        assert exact.micro.mean == pytest.approx(7 / 10)
        assert exact.macro.mean == pytest.approx((2 / 4 + 3 / 4 + 2 / 2) / 3)
        assert any("2 questions could not be asked" in warning for warning in outcome.warnings)
        rows = [json.loads(line) for line in (tmp_path / "run" / "samples.jsonl").read_text("utf-8").splitlines()]
        assert {row["ids"][0] for row in rows if row["stop_reason"] == "refusal"} == {"AR-0-1"}
        again = score_predictions(tmp_path / "run", "mtvqa", copy)
        assert (again.counts, again.figures, again.system) == (outcome.counts, outcome.figures, "run")
        errors = (tmp_path / "run" / "errors.jsonl").read_text("utf-8").splitlines()
        assert sorted(json.loads(line)["ids"][0] for line in errors) == ["JA-4-1", "JA-4-2"]

        fake.faults = {}
        before = len(fake.requests)
        outcome = run(fake, copy, tmp_path / "run")
        assert len(fake.requests) - before == 2  # only the errors are asked again
        assert outcome.counts["error"] == 0
        assert outcome.costs["replies"] == 12


def test_a_run_goes_on_where_it_was_stopped(copy, tmp_path):
    with provider(answer=truth(MTVQA(), copy)) as fake:
        first = run(fake, copy, tmp_path / "run", limit=5, seed=3)
        assert (len(first.results), first.left_out) == (5, 7)
        assert len(fake.requests) == 5
        whole = run(fake, copy, tmp_path / "run", seed=3)
        assert len(fake.requests) == 12
        again = run(fake, copy, tmp_path / "run", seed=3)
        assert len(fake.requests) == 12
        assert again.to_json() | {"costs": 0} == whole.to_json() | {"costs": 0}
        with pytest.raises(RunError, match="prompt"):
            run(fake, copy, tmp_path / "run", seed=3, prompt="after")
        pq.write_table(pa.Table.from_pylist(vqa_copies.mtvqa_rows(each=1)), copy / "data/test-00000-of-00001.parquet")
        with pytest.raises(RunError, match=r"data\.questions is 12 there and 6 now"):
            run(fake, copy, tmp_path / "run", seed=3)


def test_the_budget_ends_a_run_and_says_so(copy, tmp_path):
    with provider(answer=truth(MTVQA(), copy)) as fake:
        outcome = run(fake, copy, tmp_path / "run", max_cost=0.001, connections=1)
    assert 0 < outcome.counts["ok"] < 12
    assert "were spent" in outcome.stopped
    assert outcome.counts["error"] == 12 - outcome.counts["ok"]
    assert "not asked" in outcome.results[-1].reason


def test_examples_are_sent(copy, tmp_path):
    with provider(answer=lambda asked: asked.text) as fake:
        run(fake, copy, tmp_path / "run", shots=2, limit=3)
        assert {len(asked.images) for asked in fake.requests} == {3}
        assert all(asked.text.count("Answer: gold") == 2 for asked in fake.requests)


def test_batches(copy, tmp_path):
    with provider(answer=truth(MTVQA(), copy)) as fake:
        outcome = run(fake, copy, tmp_path / "run", batch=True, poll=0.01)
    assert outcome.counts["ok"] == 12


def test_recorded_replies_are_scored_without_images(copy, tmp_path):
    items = MTVQA().load(copy, "test").items
    lines = [json.dumps({"sample": q.id, "text": q.golds[0], "model": "m"}) for q in items[:-1]]
    (tmp_path / "replies.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    outcome = run_benchmark(f"replay:{tmp_path / 'replies.jsonl'}", "mtvqa", copy, tmp_path / "run")
    assert (outcome.counts["ok"], outcome.counts["error"]) == (11, 1)
    assert outcome.system == "m, replayed"
    assert "- dollars: not known\n" in (tmp_path / "run" / "summary.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"prompt": "nice"}, "has no prompt 'nice'; its prompts are before, after"),
        ({"limit": 0}, "limit is 0"),
        ({"shots": -1}, "shots is -1"),
        ({"poll": 0}, "poll is 0"),
        ({"batch": True, "max_cost": 1}, "limit of cost"),
        ({"split": "val"}, "no split 'val'"),
    ],
)
def test_bad_plans(options, told, copy, tmp_path):
    with pytest.raises(DataError, match=told):
        run_benchmark("claude", "mtvqa", copy, tmp_path / "run", Plan(**options))
    assert not (tmp_path / "run").exists()


def test_the_own_recoverer_answers_nothing(copy, tmp_path):
    with pytest.raises(DataError, match="answers no questions"):
        run_benchmark("inktraj", "mtvqa", copy, tmp_path / "run")


# ---------------------------------------------------------------- predictions made elsewhere


def predictions_of(copy):
    return {q.id: q.golds[0] for q in MTVQA().load(copy, "test").items}


@pytest.mark.parametrize("form", ["jsonl", "json", "map", "csv", "tsv", "parquet", "samples", "beside-gold"])
def test_forms_of_predictions(form, copy, tmp_path):
    found = predictions_of(copy)
    rows = [{"id": id, "answer": text} for id, text in found.items()]
    path = tmp_path / f"p.{form}"
    if form == "jsonl":
        path.write_text("\ufeff" + "\n".join(map(json.dumps, rows)), "utf-8")
    elif form in ("json", "map"):
        path = tmp_path / "p.json"
        path.write_text(json.dumps(rows if form == "json" else found), "utf-8")
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif form == "samples":
        path = tmp_path / "samples.jsonl"
        path.write_text(
            "\n".join(
                json.dumps({"key": "k", "ids": [id], "text": t, "stop_reason": "end"}) for id, t in found.items()
            ),
            "utf-8",
        )
    else:
        path = tmp_path / ("p.tsv" if form != "csv" else "p.csv")
        if form == "beside-gold":
            rows = [{"index": r["id"], "answer": "another", "prediction": r["answer"]} for r in rows]
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="," if form == "csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)
    outcome = score_predictions(path, "mtvqa", copy)
    assert outcome.counts["ok"] == 12
    assert outcome.figures[0].published_way.mean == 1
    assert outcome.system == path.name


def test_what_does_not_match_is_told(copy):
    found = predictions_of(copy)
    given = [Prediction(id, text) for id, text in list(found.items())[:6]]
    given += [Prediction("XX-1-1", "a"), given[0], Prediction(list(found)[6], " "), Prediction(list(found)[7], None)]
    given += [Prediction(list(found)[8], None, error="503"), Prediction(list(found)[9], "no", "refusal")]
    outcome = score_predictions(given, "mtvqa", copy)
    counts = {status: n for status, n in outcome.counts.items() if n}
    assert counts == {"ok": 6, "empty": 2, "refused": 1, "missing": 2, "error": 1}
    told = " ".join(outcome.warnings)
    for part in (
        "1 predictions are for no question, such as XX-1-1",
        "stand in predictions twice",
        "2 of 12 questions",
    ):
        assert part in told
    assert outcome.figures[1].micro.count == 11
    assert outcome.figures[1].micro.mean == pytest.approx(6 / 11)
    only = score_predictions(given, "mtvqa", copy, answered_only=True)
    assert (len(only.results), only.left_out, only.counts["missing"]) == (10, 2, 0)


def test_several_answers_to_one_question(copy):
    id = next(iter(predictions_of(copy)))
    given = [Prediction(id, "gold AR00"), Prediction(id, "no"), Prediction(id, "gold AR00")]
    with pytest.raises(DataError, match=f"two predictions for {id} that differ: 'gold AR00' and 'no'"):
        score_predictions(given, "mtvqa", copy)
    outcome = score_predictions(given, "mtvqa", copy, several=True, answered_only=True)
    assert len(outcome.results) == 3
    assert outcome.figures[0].micro.mean == pytest.approx(2 / 3)


def test_predictions_of_something_else(copy, tmp_path):
    with pytest.raises(DataError, match=r"no id is a question's; its ids are 1 …, the questions' are AR-0-1"):
        score_predictions([Prediction("1", "a")], "mtvqa", copy)
    (tmp_path / "p.csv").write_text("a,b\n1,2\n", "utf-8")
    with pytest.raises(DataError, match="no column with ids: sought was id, ids"):
        read_predictions(tmp_path / "p.csv")
    assert read_predictions(tmp_path / "p.csv", id_field="a", answer_field="b") == [Prediction("1", "2")]
    with pytest.raises(DataError, match="sought was c"):
        read_predictions(tmp_path / "p.csv", id_field="a", answer_field="c")
    (tmp_path / "p.jsonl").write_text('{"id": null, "answer": "a"}\n', "utf-8")
    with pytest.raises(DataError, match="line 1 has no id"):
        read_predictions(tmp_path / "p.jsonl")


def test_true_answers_are_not_taken_for_predictions(copy, tmp_path):
    path = tmp_path / "p.jsonl"
    rows = [{"id": id, "question": "?", "answer": text, "said": "no"} for id, text in predictions_of(copy).items()]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    with pytest.raises(DataError, match="may be the true one"):
        score_predictions(path, "mtvqa", copy)
    assert score_predictions(path, "mtvqa", copy, answer_field="said").figures[0].micro.mean == 0
    assert score_predictions(path, "mtvqa", copy, answer_field="answer").figures[0].micro.mean == 1


def test_no_predictions_are_no_scores(copy, tmp_path):
    for name, text in (("p.jsonl", ""), ("p.csv", "id,answer\n"), ("p.json", "[]"), ("p.json", "{}")):
        (tmp_path / name).write_text(text, "utf-8")
        with pytest.raises(DataError, match=f"{name} holds no prediction"):
            score_predictions(tmp_path / name, "mtvqa", copy)


def test_answers_to_several_prompts_in_one_file(copy, tmp_path):
    found = predictions_of(copy)
    rows = [{"id": id, "prompt": prompt, "answer": a} for id, a in found.items() for prompt in ("before", "after")]
    for row in rows:
        row["answer"] += "!" if row["prompt"] == "after" else ""
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    with pytest.raises(DataError, match="answers to the prompts before, after; name one of them with --prompt"):
        score_predictions(path, "mtvqa", copy)
    for prompt, exact in (("before", 1), ("after", 0)):
        outcome = score_predictions(path, "mtvqa", copy, prompt=prompt)
        assert (outcome.prompt, outcome.counts["ok"]) == (prompt, 12)
        assert outcome.figures[2].micro.mean == exact
    with pytest.raises(DataError, match="no prompt 'nice'"):
        score_predictions(path, "mtvqa", copy, prompt="nice")
    path.write_text("\n".join(json.dumps(row) for row in rows if row["prompt"] == "after"), "utf-8")
    assert score_predictions(path, "mtvqa", copy).prompt == "after"
    with pytest.raises(DataError, match="answers to the prompts after; name"):
        score_predictions(path, "mtvqa", copy, prompt="before")
    # A column of that name may hold the words of the prompt.
    path.write_text("\n".join(json.dumps({**row, "prompt": f"Say: {row['id']}"}) for row in rows[::2]), "utf-8")
    assert score_predictions(path, "mtvqa", copy).prompt == ""


def test_a_run_folder_can_be_scored_again(copy, tmp_path):
    with provider(answer=truth(MTVQA(), copy)) as fake:
        outcome = run(fake, copy, tmp_path / "run", prompt="after")
    again = score_predictions(tmp_path / "run", "mtvqa", copy)
    assert again.prompt == "after"
    assert again.figures == outcome.figures


def test_a_folder_holds_the_scores_of_one_benchmark(copy, tmp_path):
    arguments = ["vqa", "score", "--out", str(tmp_path / "out")]
    (tmp_path / "p.csv").write_text("id,answer\nAR-0-1,a\ntest-0-en,100\n", "utf-8")
    other = vqa_copies.indotab(tmp_path / "other")
    for name, data, code in (("mtvqa", copy, 0), ("mtvqa", copy, 0), ("indotabvqa", other, 2)):
        done = runner.invoke(app, [*arguments, str(tmp_path / "p.csv"), "--benchmark", name, "--data", str(data)])
        assert done.exit_code == (0 if code == 0 else 1)
    assert "benchmark.name is" in str(done.exception)


def test_intervals_do_not_hang_on_whether_the_images_are_there(tmp_path):
    copy = vqa_copies.palmleaf(tmp_path / "copy")
    items = load_benchmark("palmleaf-vqa").load(copy, "test").items
    given = [Prediction(q.id, q.golds[0] if k % 3 else "-") for k, q in enumerate(items)]
    with_images = score_predictions(given, "palmleaf-vqa", copy)
    for path in (copy / "images").iterdir():
        path.unlink()
    without = score_predictions(given, "palmleaf-vqa", copy)
    assert all(result.question.image is None for result in without.results)
    assert without.figures == with_images.figures
    assert without.groups == with_images.groups


def test_micro_and_macro_as_worked_out_by_hand(copy):
    """Three right of four in Arabic, one of four in German, none of one in Japanese."""
    found = predictions_of(copy)
    wrong = {"AR-1-2", "DE-2-1", "DE-2-2", "DE-3-1", "JA-4-1"}
    given = [Prediction(id, "no" if id in wrong else text) for id, text in found.items()]
    given = [p for p in given if not p.id.startswith("JA") or p.id == "JA-4-1"]
    outcome = score_predictions(given, "mtvqa", copy, answered_only=True)
    official, vlmevalkit, exact = outcome.figures
    assert exact.micro.mean == pytest.approx(4 / 9)
    assert exact.macro.mean == pytest.approx((3 / 4 + 1 / 4 + 0) / 3)
    assert exact.macro.low < exact.macro.mean < exact.macro.high
    assert official.published_way.mean == official.macro.mean == pytest.approx(1 / 3)
    assert vlmevalkit.published_way.mean == vlmevalkit.micro.mean == pytest.approx(4 / 9)
    groups = {name: summaries["exact"] for name, summaries in outcome.groups["language"].items()}
    assert {name: (s.count, s.mean) for name, s in groups.items()} == {"AR": (4, 0.75), "DE": (4, 0.25), "JA": (1, 0.0)}


# ---------------------------------------------------------------- the report


class Resources(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.loaded, self.scripts = [], 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.loaded += [v for k, v in attrs if k in ("src", "href") or k.startswith("on")]


def test_the_report_loads_nothing_and_shows_replies_as_text(copy, tmp_path):
    evil = '</script><script>alert(1)</script><img src=x onerror=alert(1)> \u2028 \ud800 & "'
    items = MTVQA().load(copy, "test").items
    given = [Prediction(q.id, evil if k == 0 else q.golds[0]) for k, q in enumerate(items)]
    outcome = score_predictions(given, "mtvqa", copy)
    (tmp_path / "out").mkdir()
    write_outcome(outcome, tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text("utf-8")
    seen = Resources()
    seen.feed(text)
    assert seen.loaded == []
    assert seen.scripts == 2
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    rows = json.loads(data)["rows"]
    assert len(rows) == 12
    assert rows[0][4] == evil
    assert "default-src 'none'" in text
    assert "GPT-4o" in text
    assert "27.8" in text


def test_a_long_list_is_cut_and_says_so(copy, monkeypatch):
    from inktraj.vqa import report

    monkeypatch.setattr(report, "LISTED", 5)
    outcome = score_predictions([Prediction(*pair) for pair in predictions_of(copy).items()], "mtvqa", copy)
    text = report_html(outcome)
    assert "5 of 12 answers, drawn by chance" in text


# ---------------------------------------------------------------- a benchmark of one's own


def ledgers():
    """The example of the documentation."""
    page = (ROOT / "docs/vqa.md").read_text("utf-8")
    (code,) = (c for c in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE) if "Benchmark" in c)
    return code


@pytest.fixture
def fourth(tmp_path, monkeypatch):
    code = ledgers()
    assert len(code.splitlines()) < 120
    (tmp_path / "ledgers.py").write_text(code, "utf-8")
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    for split, count in (("test", 4), ("train", 6)):
        rows = ["id,image,archive,year"]
        for k in range(count):
            name = f"{split}{k}.png"
            (folder / "images" / name).write_bytes(vqa_copies.png(30 * k + len(split)))
            rows.append(f"{split}{k},{name},{'north' if k % 2 else 'south'},{1700 + k}")
        (folder / f"{split}.csv").write_text("\n".join([*rows, "x,,north,"]) + "\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    sys.modules.pop("ledgers", None)


def test_a_fourth_benchmark_takes_one_file(fourth, tmp_path, monkeypatch):
    years = iter(["In 1700.", "1701 or 1702", "Nobody knows.", "1703"])
    with provider(answer=lambda asked: next(years)) as fake:
        plan = Plan(prompt="year", shots=2, connections=1)
        outcome = run_benchmark(model_of(fake), "ledgers:Ledgers", fourth, tmp_path / "run", plan)
        assert all("Answer with four digits." in asked.text for asked in fake.requests)
    assert [r.status for r in outcome.results] == ["ok", "ok", "unparsable", "ok"]
    (figure,) = outcome.figures
    assert (figure.micro.mean, figure.macro.mean) == (0.5, 0.5)
    assert any("1 records of the data are no questions" in warning for warning in outcome.warnings)
    with open(tmp_path / "run/skipped.csv", encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["where", "reason"], ["test.csv, line 6", "no year"]]
    assert "figure:year" in (tmp_path / "run/summary.md").read_text("utf-8")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path))])
    assert load_benchmark("ledgers.py:Ledgers").title == outcome.benchmark.title

    entry = importlib.metadata.EntryPoint("ledgers", "ledgers:Ledgers", registries.GROUP)
    monkeypatch.setattr(registries, "entry_points", lambda group: importlib.metadata.EntryPoints([entry]))
    assert "ledgers" in registries.benchmark_names()
    assert load_benchmark("ledgers").name == "ledgers"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("mtvq", "no benchmark 'mtvq'; known are mtvqa"),
        ("nowhere:Thing", r"cannot be imported: .*; a file of your own can be named as nowhere\.py:Thing"),
        ("nowhere.py:Thing", "cannot be imported: .*No such file"),
        ("inktraj.vqa:Nothing", "cannot be imported"),
        ("inktraj.errors:InktrajError", "expected a subclass"),
        ("inktraj.vqa:", "no benchmark"),
    ],
)
def test_benchmarks_that_are_none(spec, told):
    with pytest.raises(DataError, match=told):
        load_benchmark(spec)


def test_a_file_that_is_no_python_is_told_of(tmp_path):
    (tmp_path / "mine.py").write_text("class Mine(:\n", "utf-8")
    with pytest.raises(DataError, match=r"cannot be imported: invalid syntax .*mine\.py, line 1"):
        load_benchmark(f"{tmp_path / 'mine.py'}:Mine")


def test_a_benchmark_without_an_option_says_so():
    with pytest.raises(DataError, match="mtvqa has no option 'colour'"):
        MTVQA().configured(colour="red")


class Odd(Benchmark):
    """A benchmark whose figures apply to some questions only, whose answers are grouped by what they are."""

    name, title = "odd", "odd"
    prompts = {"only": "the only one"}  # noqa: RUF012
    figures = (Figure("right", "right", "Right."), Figure("error", "error", "Its size.", share=False))
    breakdowns = ("size", "kind")

    def load(self, folder, split):
        items = [question(str(k), f"q{k}", groups={"kind": "even"} if k % 2 == 0 else {}) for k in range(6)]
        return Questions(tuple(items))

    def score(self, prediction, question):
        if not (prediction or "").isdigit():
            return Scored({"right": 0.0}, status="unparsable")
        error = abs(int(prediction) - int(question.golds[0]))
        return Scored({"right": float(error == 0), "error": float(error)}, groups={"size": f"off by {error}"})


def test_figures_that_do_not_apply_and_groups_of_answers(tmp_path):
    given = [Prediction(f"q{k}", text) for k, text in enumerate(["0", "1", "3", "5", "x", ""])]
    outcome = score_predictions(given, Odd(), tmp_path)
    right, error = outcome.figures
    assert (right.micro.mean, right.micro.count) == (pytest.approx(2 / 6), 6)
    assert (error.micro.mean, error.micro.count, error.micro.left_out) == (pytest.approx(3 / 4), 4, 2)
    assert right.macro is None
    assert list(outcome.groups["size"]) == ["off by 0", "off by 1", "off by 2"]
    assert {name: s["right"].count for name, s in outcome.groups["kind"].items()} == {"even": 3}
    assert outcome.counts["unparsable"] == 1
    assert outcome.counts["empty"] == 1
    write_outcome(outcome, tmp_path)
    assert "0.7500" in (tmp_path / "summary.md").read_text("utf-8")


# ---------------------------------------------------------------- the command line

runner = CliRunner()


def test_run_and_score_by_command(copy, tmp_path):
    with provider(answer=truth(MTVQA(), copy)) as fake:
        arguments = [
            "vqa",
            "run",
            "--benchmark",
            "mtvqa",
            "--data",
            copy,
            "--model",
            "claude",
            "--out",
            tmp_path / "run",
        ]
        done = runner.invoke(app, [*map(str, arguments), "--limit", "6", "--base-url", fake.url("anthropic")])
        assert done.exit_code == 0, done.output
        assert "report:" in done.output
        assert len(fake.requests) == 6
        fake.faults = {"*": ["400"]}
        done = runner.invoke(app, [*map(str, arguments), "--attempts", "1", "--base-url", fake.url("anthropic")])
        assert done.exit_code == 1
        assert "6 questions could not be asked" in done.output
    samples = tmp_path / "run" / "samples.jsonl"
    arguments = ["vqa", "score", samples, "--benchmark", "mtvqa", "--data", copy, "--answered-only"]
    done = runner.invoke(app, [*map(str, arguments), "--json", "-", "--out", str(tmp_path / "scored")])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["figures"]["exact"]["micro"]["mean"] == 1
    assert found["left_out"] == 6
    assert (tmp_path / "scored" / "report.html").is_file()
    done = runner.invoke(app, [*map(str, arguments), "--json", str(tmp_path / "f.json")])
    assert done.exit_code == 0
    assert json.loads((tmp_path / "f.json").read_text("utf-8"))["figures"] == found["figures"]


def test_options_by_command(copy, tmp_path):
    (tmp_path / "p.jsonl").write_text('{"id": "AR-0-1", "answer": "a"}\n{"id": "AR-0-2", "error": "503"}\n', "utf-8")
    arguments = ["vqa", "score", str(tmp_path / "p.jsonl"), "--benchmark", "mtvqa", "--data", str(copy)]
    assert runner.invoke(app, arguments).exit_code == 1
    for option, told in ((["--set", "x=1"], "no option 'x'"), (["--set", "x"], "expected NAME=VALUE")):
        done = runner.invoke(app, [*arguments, *option])
        assert isinstance(done.exception, DataError)
        assert told in str(done.exception)


def test_half_a_character_ends_no_command(copy, tmp_path):
    (tmp_path / "p.jsonl").write_text(
        '{"id": "AR-0-1", "answer": "\\ud800 a"}\n{"id": "\\ud800", "answer": ""}\n', "utf-8"
    )
    arguments = [
        "vqa",
        "score",
        tmp_path / "p.jsonl",
        "--benchmark",
        "mtvqa",
        "--data",
        copy,
        "--out",
        tmp_path / "out",
    ]
    done = runner.invoke(app, [*map(str, arguments), "--json", "-"])
    assert done.exit_code == 0, done.output
    assert any("such as \ud800;" in warning for warning in json.loads(done.output)["warnings"])
    assert pq.read_table(tmp_path / "out" / "scores.parquet")["prediction"][0].as_py() == "\\ud800 a"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("more", [[], ["--json", "-"]], ids=["tables", "json"])
def test_a_full_disk_behind_standard_output_is_told_of(more, copy, tmp_path):
    (tmp_path / "p.jsonl").write_text('{"id": "AR-0-1", "answer": "a"}\n', "utf-8")
    arguments = ["vqa", "score", tmp_path / "p.jsonl", "--benchmark", "mtvqa", "--data", copy, *more]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "inktraj", *map(str, arguments)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
    assert done.returncode == 2
    assert done.stderr == "inktraj: standard output: cannot be written (No space left on device)\n"


def test_list_by_command():
    if len(SHIPPED) < len(registries.SHIPPED):
        pytest.skip("a shipped benchmark is not there yet")
    done = runner.invoke(app, ["vqa", "list"])
    assert done.exit_code == 0
    for name, prompt in PROMPTS:
        assert name in done.output
        assert f"--prompt {prompt}:" in done.output


# ---------------------------------------------------------------- examples of other images


def examples_of(benchmark, copy, count, split="test"):
    """The split's questions, each with its examples."""
    bench = load_benchmark(benchmark)
    wanted = bench.load(copy, split).items
    shots = Shots.choose(bench, bench.load(copy, "train").items, wanted, count, 0)
    return [(q, shots.of(q)) for q in wanted]


def leaks(found):
    return [q.id for q, shots in found if any(s.image.read() == q.image.read() for s in shots)]


def test_examples_of_a_train_split_that_is_asked_itself(copy):
    """The data are read twice, so that no image of the one is an object of the other."""
    found = examples_of("mtvqa", copy, 3, "train")
    assert {len(shots) for _, shots in found} == {3}
    assert leaks(found) == []


def test_examples_of_one_table_that_is_asked_itself(tmp_path):
    rows = [(k, base64.b64encode(vqa_copies.png(9 * k)).decode(), f"{k}?", "a", "DE") for k in range(6)]
    with open(tmp_path / "MTVQA_TRAIN.tsv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([("index", "image", "question", "answer", "category"), *rows])
    found = examples_of("mtvqa", tmp_path, 5, "train")
    assert {len(shots) for _, shots in found} == {5}
    assert leaks(found) == []


def test_examples_where_train_and_test_hold_the_same_bytes(tmp_path):
    for split in ("train", "test"):
        rows = [{**row, "id": f"{split}{row['id']}"} for row in vqa_copies.mtvqa_rows(each=3)]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{split}.parquet")
    found = examples_of("mtvqa", tmp_path, 2)
    assert {len(shots) for _, shots in found} == {2}
    assert leaks(found) == []
    with pytest.raises(DataError, match="3 examples of the language 'AR' need 4 images in the train split, not 3"):
        examples_of("mtvqa", tmp_path, 3)


@pytest.mark.parametrize("form", ["{}.png", "images/{}.png", "{}", "./images/{}.png"])
def test_examples_where_train_names_a_file_in_another_way(form, tmp_path):
    (tmp_path / "images").mkdir()
    for k in range(4):
        (tmp_path / "images" / f"{k}.png").write_bytes(vqa_copies.png(9 * k))
    for split, name in (("train", form), ("test", "{}.png")):
        records = [
            {"id": f"{split}{k}", "image": name.format(k), "question": f"{split} {k}?", "answer": "a", "language": "en"}
            for k in range(4)
        ]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    found = examples_of("indotabvqa", tmp_path, 3)
    assert {len(shots) for _, shots in found} == {3}
    assert leaks(found) == []


def pictured(id, text, content, **more):
    return Question(id, Image(f"{id} {content}", content) if content else None, text, ("gold",), "DE", **more)


def test_no_example_is_the_question_itself():
    train = [pictured(f"q{k}", f"{k}?", bytes([k])) for k in range(4)]
    # The question of one example stands at the image of another.
    mine = pictured("q0", "0?", bytes([1]))
    shots = Shots.choose(MTVQA(), train, [mine], 2, 0).of(mine)
    assert sorted(shot.id for shot in shots) == ["q2", "q3"]
    with pytest.raises(DataError, match="3 examples of the language 'DE' cannot be had for the question q0"):
        Shots.choose(MTVQA(), train, [mine], 3, 0).of(mine)
    # Where the image is not there its name tells.
    mine = pictured("other", "what?", b"", image_name=train[2].about)
    assert train[2] not in Shots.choose(MTVQA(), train, [mine], 3, 0).of(mine)


def test_images_are_read_once_and_not_all_of_them():
    read = []

    def image(k):
        return Image(f"{k}", lambda: read.append(k) or bytes([k]))

    train = [Question(f"q{k}", image(k), f"{k}?", ("gold",), "DE") for k in range(50)]
    shots = Shots.choose(MTVQA(), train, train, 2, 0)
    assert len(read) == 4
    for _ in range(2):
        for q in train:
            shots.of(q)
    assert sorted(read) == list(range(50))


@pytest.mark.parametrize(
    ("prediction", "right"),
    [("(-5)", 0), ("[-5]", 0), ('"-5"', 0), ("x=-5", 0), ("$-5", 0), ("(5)", 1), ("3-5", 1), ("10%-5%", 1), ("- 5", 1)],
)
def test_a_sign_belongs_to_its_number(prediction, right):
    values = load_benchmark("indotabvqa").score(prediction, question("5", language="en")).values
    assert (values["in_match"], values["in_match_tokens"]) == (1, right)
