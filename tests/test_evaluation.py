"""`inktraj eval`: prompts, views, the journal, asking with faults and kills, outcomes, the whole way to a report."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_provider import FakeProvider
from typer.testing import CliRunner

from inktraj import vlm
from inktraj.cli import app
from inktraj.datasets import load_dataset
from inktraj.errors import DataError, ParseError, RunError
from inktraj.evaluation import Plan, Prompt, evaluate_model
from inktraj.evaluation import journal as journals
from inktraj.evaluation.examples import Examples, thinned
from inktraj.evaluation.placement import best_placement
from inktraj.evaluation.prompts import describe, form_text, frame_text, points_text, task_text
from inktraj.evaluation.run import choose_samples
from inktraj.evaluation.tasks import Asking, tasks_of
from inktraj.evaluation.views import CROP_SIDE, Place, view_page, view_word
from inktraj.ink import Frame, Ink
from inktraj.io.images import find_sources
from inktraj.metrics import Normalization
from inktraj.parse import FRAME_NAMES, CoordinateFrame, parse
from inktraj.vlm import ImageLimits, Picture, Reply, RetryPolicy

ROOT = Path(__file__).parents[1]
SMALL = ImageLimits("box", long_edge=700)
QUICK = RetryPolicy(first=0.01, longest=0.05, seed=0)
FAST = {"placed": False, "connections": 4}


# Connections that a server broke off warn when they are collected, which is made to happen in here.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
OPEN = []


def load_model(*arguments, **options):
    """A model that is closed at the end of the test; the SDKs' sockets would warn at any time after it."""
    OPEN.append(vlm.load_model(*arguments, **options))
    return OPEN[-1]


@pytest.fixture(autouse=True)
def closed_models():
    yield
    while OPEN:
        OPEN.pop().close()
    gc.collect()


@pytest.fixture(scope="module")
def demo():
    return load_dataset("demo")


class Scribble:
    """A model that writes what it is told to: the truth, or whatever `write` makes of it."""

    name = model_id = "scribble"
    frame = "sent-px"
    limits = SMALL
    prices = ()

    def __init__(self, dataset, write=None, frame="sent-px", prompt=None, stop="end"):
        self.frame = frame
        self.samples = {sample.id: sample for sample in dataset} | {page.id: page for page in dataset.pages}
        self.write = write or (lambda text, request: text)
        self.prompt = prompt or Prompt()
        self.stop = stop
        self.asked = []
        self.lock = threading.Lock()

    def describe(self):
        return {"provider": "scribble", "model": "scribble", "frame": self.frame}

    def ask(self, request):
        with self.lock:
            self.asked.append(request.sample)
        picture = [part for part in request.parts if isinstance(part, Picture)][-1]
        there = self.samples[request.sample]
        frame = CoordinateFrame(self.frame)
        if self.prompt.per == "page":
            size = there.picture.width, there.picture.height
            place = Place((picture.width, picture.height), size, (0, 0))
            words = [
                json.loads(points_text(place.as_sent(s.ink), self.prompt, frame, place.sent, place.original, s.text))[0]
                for s in there.samples
            ]
            text = json.dumps(words)
        else:
            view = (view_word if self.prompt.input == "crop" else view_page)(there, self.limits, blind=True)
            place = view.place
            text = points_text(place.as_sent(there.ink), self.prompt, frame, place.sent, place.original, there.text)
        return Reply(self.write(text, request), self.stop, 1500, 800, "scribble-1")

    def close(self):
        pass


def run(model, demo, out, **options):
    return evaluate_model(model, demo, out, Plan(**(FAST | options)))


# ---------------------------------------------------------------- prompts and views


@pytest.mark.parametrize("name", FRAME_NAMES)
@pytest.mark.parametrize("form", ["tuples", "tokens"])
def test_an_ink_is_written_as_it_is_read(name, form, demo):
    sample = demo[0]
    view = view_word(sample, SMALL, blind=True)
    ink = view.place.as_sent(sample.ink)
    frame = CoordinateFrame(name)
    text = points_text(ink, Prompt(form=form), frame, view.sent, view.original, sample.text)
    found = parse(text, frame=frame, sent_size=view.sent, original_size=view.original, stop_reason="end")
    assert (found.status, len(found.strokes)) == ("valid", len(ink.strokes))
    grid = {"norm1": 0.05, "percent": 0.6, "original-px": 4}.get(name, 1)
    back = view.place.on_page(found.ink(*view.sent), sample.ink.frame)
    assert best_placement(back, sample.ink, Normalization()).dtw < 0.03
    for stroke, other in zip(found.strokes, ink.strokes, strict=True):
        assert np.hypot(*(stroke[0] - other[0])) <= 1.5 * grid
        assert np.hypot(*(stroke[-1] - other[-1])) <= 1.5 * grid


@pytest.mark.parametrize("name", FRAME_NAMES)
def test_every_frame_is_told(name):
    told = frame_text(CoordinateFrame(name), (640, 480), (2480, 1860))
    assert ("640" in told) == (name == "sent-px")
    assert ("2480" in told) == (name == "original-px")
    assert ("y is written before x" in told) == (name == "norm1000-yx")


def test_a_word_is_named_by_its_occurrence():
    assert "“" not in task_text(Prompt(), [("love", 1, 1)])
    assert '"love" on it' in task_text(Prompt(), [("love", 1, 1)])
    assert "3 times; take number 2" in task_text(Prompt(), [("love", 2, 3)])
    assert '2. "say \\"no\\""' in task_text(Prompt(per="page"), [("I", 1, 1), ('say "no"', 1, 1)])
    assert "(y, x, s)" in form_text(Prompt(), CoordinateFrame("norm1000-yx"))


def test_bad_prompts():
    for options in ({"input": "line"}, {"per": "line"}, {"form": "xml"}, {"input": "crop", "per": "page"}):
        with pytest.raises(DataError):
            Prompt(**options)


def test_strokes_are_described():
    frame = Frame(200, 100)
    bar = Ink([[(0, 50), (100, 50)], [(50, 0)], [(0, 0), (50, 0), (50, 50), (0, 50), (0, 2)]], frame)
    told = describe(bar)
    assert told.startswith("3 strokes: a straight line that begins 0% along and leads right; a dot 50% along; a closed")


def test_views_and_the_way_back(demo):
    for sample in list(demo)[::17]:
        for view in (view_page(sample, SMALL), view_word(sample, SMALL)):
            assert max(view.sent) <= max(700, 1)
            back = view.place.on_page(view.place.as_sent(sample.ink), sample.ink.frame)
            for a, b in zip(back.strokes, sample.ink.strokes, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-9)
        word = view_word(sample, ImageLimits())
        assert max(word.sent) == CROP_SIDE
        assert view_word(sample, ImageLimits(), blind=True).place == word.place
        inside = word.place.as_sent(sample.ink)
        x0, y0, x1, y1 = inside.bounds
        assert 0 <= x0 < x1 <= word.sent[0]
        assert 0 <= y0 < y1 <= word.sent[1]


def test_the_example_is_of_another_hand(demo):
    examples = Examples.choose(demo, 0)
    for sample in demo:
        shown = examples.for_sample(sample)
        assert shown is not None
        assert (shown.writer or shown.page_id) != (sample.writer or sample.page_id)
    assert Examples.choose(demo, 0).samples[0].id == examples.samples[0].id
    thin = thinned(examples.samples[0].ink)
    assert thin.n_points <= 90
    assert [s[0].tolist() for s in thin.strokes] == [s[0].tolist() for s in examples.samples[0].ink.strokes]


def test_keys_hang_on_all_that_decides_the_answer(demo):
    frame = CoordinateFrame("sent-px")

    def key(model=None, prompt=None, tokens=100, temperature=None, sample=3):
        prompt = prompt or Prompt()
        examples = Examples.choose(demo, 0) if prompt.example else None
        asking = Asking(model or Scribble(demo), prompt, examples, tokens, temperature)
        (task,) = tasks_of([demo[sample]], prompt, [frame])
        return asking(task).key

    same = key()
    assert key() == same
    others = [
        key(model=Scribble(demo, frame="norm1")),
        key(prompt=Prompt(form="tokens")),
        key(prompt=Prompt(input="crop")),
        key(prompt=Prompt(example=False)),
        key(tokens=101),
        key(temperature=0.0),
        key(sample=4),
    ]
    assert len({same, *others}) == 1 + len(others)


# ---------------------------------------------------------------- the journal


def answer(key="k", ids=("a__1",)):
    return journals.Answer(
        key, ids, "sent-px", Place((10, 20), (30, 40), (5, 6)), Reply("[(1,2,1)] ✓", "end", 10, None, "m", 1.5), "now"
    )


def test_the_journal_keeps_what_was_whole(tmp_path):
    journal = journals.Journal(tmp_path)
    journal.add(answer())
    journal.add(answer())  # once is enough
    journal.add(answer("k2", ("a__2", "a__3")))
    whole = (tmp_path / journals.REPLIES).read_bytes()
    with open(tmp_path / journals.REPLIES, "ab") as file:
        file.write(whole[:57])
    again = journals.Journal(tmp_path)
    assert set(again.keys) == {"k", "k2"}
    assert (tmp_path / journals.REPLIES).read_bytes() == whole
    assert list(journals.read_answers(tmp_path)) == [answer(), answer("k2", ("a__2", "a__3"))]


def test_a_last_line_without_its_end_only_is_kept(tmp_path):
    journal = journals.Journal(tmp_path)
    journal.add(answer())
    path = tmp_path / "samples.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert journals.Journal(tmp_path).keys == journal.keys
    assert path.read_bytes() == whole
    path.write_bytes(whole + whole[:-2])
    assert journals.Journal(tmp_path).keys == journal.keys
    assert path.read_bytes() == whole


def test_a_damaged_line_is_told(tmp_path):
    journals.Journal(tmp_path).add(answer())
    path = tmp_path / journals.REPLIES
    path.write_bytes(b'{"key": 3}\n' + path.read_bytes())
    with pytest.raises(ParseError, match="line 1"):
        journals.Journal(tmp_path)


def test_errors_are_not_answers(tmp_path):
    journal = journals.Journal(tmp_path)
    journal.add_error(("a__1",), "sent-px", "no luck", 500)
    assert journals.read_errors(tmp_path) == [{"ids": ["a__1"], "frame": "sent-px", "error": "no luck", "status": 500}]
    assert list(journals.read_answers(tmp_path)) == []
    assert journals.Journal(tmp_path).keys == {}
    assert journals.read_errors(tmp_path) == []


# ---------------------------------------------------------------- runs


def test_the_truth_scores_as_the_truth(demo, tmp_path):
    found = run(Scribble(demo, prompt=Prompt(input="crop")), demo, tmp_path / "run", prompt=Prompt(input="crop"))
    (row,) = found.rows
    assert row.kinds["ok"] == len(demo)
    assert row.scores.figures["dtw"].all.mean < 0.02
    assert row.scores.figures["order_agreement"].all.mean > 0.99
    assert row.out_of_range == 0
    assert row.resolved == ("scribble-1",)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"run.json", "samples.jsonl", "scores.parquet", "summary.md", "report.html"} <= names
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["rows"][0]["kinds"]["ok"] == len(demo)
    assert record["costs"]["input_tokens"] == 1500 * len(demo)
    assert record["costs"]["dollars"] is None


@pytest.mark.parametrize("frame", FRAME_NAMES)
def test_frames_make_the_way_there_and_back(frame, demo, tmp_path):
    model = Scribble(demo, frame=frame)
    found = run(model, demo, tmp_path / "run", limit=6, frames=(frame,))
    assert found.rows[0].kinds["ok"] == 6
    assert found.rows[0].native
    assert found.rows[0].scores.figures["dtw"].all.mean < 0.05


def test_native_and_shared_frames_are_rows_of_their_own(demo, tmp_path):
    model = Scribble(demo, frame="norm1000")
    found = run(model, demo, tmp_path / "run", limit=4, frames=("native", "shared"))
    assert [(row.frame, row.native) for row in found.rows] == [("norm1000", True), ("sent-px", False)]
    assert len(model.asked) == 8
    # It goes on writing 0 … 1000 where pixels were asked for: read as asked it is off, as its numbers say it is not.
    assert found.rows[1].scores.figures["dtw"].all.mean > 0.3
    assert (tmp_path / "run" / "scores-norm1000.parquet").is_file()


def test_all_words_of_a_page_in_one_request(demo, tmp_path):
    prompt = Prompt(per="page")
    model = Scribble(demo, prompt=prompt)
    found = run(model, demo, tmp_path / "run", prompt=prompt)
    assert len(model.asked) == len(demo.pages)
    assert found.rows[0].kinds["ok"] == len(demo)
    assert found.rows[0].scores.figures["dtw"].all.mean < 0.1


def test_words_that_an_answer_leaves_out_are_incomplete(demo, tmp_path):
    prompt = Prompt(per="page")

    def half(text, request):
        words = json.loads(text)
        return json.dumps(words[: len(words) // 2])

    found = run(Scribble(demo, half, prompt=prompt), demo, tmp_path / "run", prompt=prompt)
    kinds = found.rows[0].kinds
    assert kinds["ok"] + kinds["incomplete"] == len(demo)
    assert kinds["incomplete"] >= len(demo) // 2
    assert found.rows[0].scores.counts["missing"] == kinds["incomplete"]


def test_every_kind_of_answer_is_counted(demo, tmp_path):
    wanted = ["", "I'm sorry, but I can't help with that.", "The word is on the page.", "[]", "[(1,2,1),(3,"]
    kinds = ["empty", "refused", "invalid", "empty", "truncated"]
    samples = list(demo)[:5]
    by_id = {sample.id: text for sample, text in zip(samples, wanted, strict=True)}
    model = Scribble(demo, lambda text, request: by_id.get(request.sample, text))

    def ask(request, ask=model.ask):
        reply = ask(request)
        return replace(reply, stop_reason="length") if reply.text.endswith(",") else reply

    model.ask = ask
    found = run(model, demo, tmp_path / "run")
    assert [outcome.kind for outcome in found.rows[0].outcomes[:5]] == kinds
    assert all(outcome.reason for outcome in found.rows[0].outcomes[:5])
    assert found.rows[0].kinds["ok"] == len(demo) - 5
    assert found.rows[0].scores.counts == {"valid": len(demo) - 5, "missing": 0, "invalid": 5, "error": 0}
    assert found.rows[0].scores.figures["dtw"].all.mean > found.rows[0].scores.figures["dtw"].valid.mean


def test_the_example_repeated_is_no_answer(demo, tmp_path):
    def echo(text, request):
        example = next(p.text for p in request.parts if hasattr(p, "text") and "The answer:" in p.text)
        return example.split("The answer:\n")[1].split("\n\n")[0]

    found = run(Scribble(demo, echo), demo, tmp_path / "run", limit=5)
    assert found.rows[0].kinds["ok"] == 0
    assert found.rows[0].kinds["invalid"] == 5


def test_placement_tells_place_from_shape(demo, tmp_path):
    def shifted(text, request):
        points = json.loads(text.replace("(", "[").replace(")", "]"))
        return str([(x + 40, y + 40, s) for x, y, s in points])

    found = run(Scribble(demo, shifted), demo, tmp_path / "run", limit=6, placed=True)
    figures = found.rows[0].scores.figures
    assert figures["dtw"].valid.mean > 0.3
    assert figures["dtw_placed"].valid.mean < 0.1


def test_any_occurrence_takes_the_one_that_fits(demo, tmp_path):
    repeated = [sample for sample in demo if sample.occurrences > 1]
    assert repeated
    others = {}
    for sample in repeated:
        others[sample.id] = next(
            o for o in demo if o.page_id == sample.page_id and o.text == sample.text and o.id != sample.id
        )

    model = Scribble(demo)
    model.samples |= others
    strict = run(model, demo, tmp_path / "strict")
    loose = run(model, demo, tmp_path / "loose", any_occurrence=True)
    assert loose.rows[0].scores.figures["dtw"].all.mean < strict.rows[0].scores.figures["dtw"].all.mean


def test_a_first_page_that_cannot_be_opened_ends_nothing(demo, tmp_path, monkeypatch):
    lost = demo.pages[0].id

    def view(sample, limits, *, blind=False):
        if sample.page_id == lost:
            raise DataError("the image is damaged")
        return view_page(sample, limits, blind=blind)

    monkeypatch.setattr("inktraj.evaluation.tasks.view_page", view)
    found = run(Scribble(demo), demo, tmp_path / "run", prompt=Prompt(example=False))
    kinds = found.rows[0].kinds
    assert kinds["error"] == len(demo.pages[0].samples)
    assert kinds["ok"] == len(demo) - kinds["error"]
    assert "Find the word" in (tmp_path / "run" / "prompt.txt").read_text()


def test_a_second_run_asks_nothing_again(demo, tmp_path):
    first = Scribble(demo)
    run(first, demo, tmp_path / "run", limit=5)
    second = Scribble(demo)
    found = run(second, demo, tmp_path / "run", limit=9)
    assert len(second.asked) == 9 - len(set(first.asked) & {o.id for o in found.rows[0].outcomes})
    assert found.rows[0].kinds["ok"] == 9


def test_a_folder_is_not_used_for_other_questions(demo, tmp_path):
    run(Scribble(demo), demo, tmp_path / "run", limit=2)
    with pytest.raises(RunError, match="prompt"):
        run(Scribble(demo), demo, tmp_path / "run", limit=2, prompt=Prompt(form="tokens"))
    with pytest.raises(RunError, match="model"):
        run(Scribble(demo, frame="norm1"), demo, tmp_path / "run", limit=2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("dear")
    with pytest.raises(RunError, match="not of a run"):
        run(Scribble(demo), demo, tmp_path / "other", limit=2)
    assert [p.name for p in (tmp_path / "other").iterdir()] == ["thesis.tex"]
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is a file"):
        run(Scribble(demo), demo, tmp_path / "file", limit=2)


def test_bad_plans():
    for options in ({"frames": ("mm",)}, {"frames": ()}, {"limit": 0}, {"read_as": "guess"}, {"connections": 0}):
        with pytest.raises(DataError):
            Plan(**options)


# ---------------------------------------------------------------- real SDKs, and a server that misbehaves


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A data set of 500 words on small pages, in the form that `build-pseudolabels` writes pages."""
    import cv2

    from inktraj.rendering import render

    root = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(0)
    (root / "images").mkdir()
    lines = []
    frame = Frame(400, 300)
    for page in range(10):
        words = []
        inks = []
        for k in range(50):
            x, y = 8 + 39 * (k % 10), 20 + 50 * (k // 10)
            stroke = np.array([x, y]) + np.cumsum(rng.normal(0, 2, (12, 2)), axis=0).clip(-8, 24)
            inks.append(Ink([stroke], frame))
            words.append((f"w{k:02d}", spelt(50 * page + k), inks[-1]))
        cv2.imwrite(str(root / "images" / f"p{page}.png"), render(Ink.concat(inks, frame), pen=2.0))
        lines.append((f"p{page}", words))
    return made_dataset(root, frame, lines)


def spelt(number):
    """A word of its own for each number."""
    return "w" + "".join("abcdefghij"[int(digit)] for digit in str(number))


def made_dataset(root, frame, pages):
    """Pages of words as a `Dataset`, without its files' form."""
    from inktraj.datasets.sample import Dataset, PagePicture, Sample, SamplePage

    made = []
    for page_id, words in pages:
        (source,) = find_sources(root / "images" / f"{page_id}.png")
        picture = PagePicture(page_id, source, int(frame.width), int(frame.height))
        samples = tuple(
            Sample(f"{page_id}__{id}", picture, text, 1, 1, ink, k, 0, ink.bounds, page_id)
            for k, (id, text, ink) in enumerate(words)
        )
        made.append(SamplePage(picture, samples, page_id))

    class Store:
        ids = tuple(tuple(s.id for s in page.samples) for page in made)

        def read(self, number):
            return made[number]

    return Dataset("many", "1", Store(), "recorded")


def writer(dataset):
    """A server's answers: the truth for the word that the prompt asks for."""
    samples = {sample.text: sample for sample in dataset}

    def answer(asked):
        text = next(word for word in reversed(asked.text.split('"')) if word in samples)
        sample = samples[text]
        view = view_page(sample, ImageLimits(), blind=True)
        ink = view.place.as_sent(sample.ink)
        return points_text(ink, Prompt(), CoordinateFrame("sent-px"), view.sent, view.original, text)

    return answer


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google"])
def test_500_samples_with_faults(provider, many, tmp_path, monkeypatch):
    pytest.importorskip({"google": "google.genai"}.get(provider, provider))
    kinds = ("429", "500", "529", "cut", "malformed", "hang")
    with FakeProvider(writer(many), rate=0.1, kinds=kinds, seed=1, retry_after=0.1, hang=0.6) as fake:
        model = load_model(f"{provider}/fake", base_url=fake.url(provider), timeout=0.4, policy=QUICK, frame="sent-px")
        found = evaluate_model(model, many, tmp_path / "run", Plan(connections=16, placed=False))
        asked = fake.requests
    (row,) = found.rows
    assert sum(row.kinds.values()) == 500
    assert row.kinds["ok"] == 500
    assert row.scores.figures["dtw"].all.mean < 0.1
    served = fake.served("")
    assert len({a.asked.key for a in served}) == len(served) == 500  # none twice
    assert len(asked) > 520  # and some were asked again
    lines = (tmp_path / "run" / "samples.jsonl").read_bytes().splitlines()
    assert len(lines) == 500
    # A connection that breaks off early may be counted by us alone.
    assert found.costs["retries"] >= len(asked) - 500 > 20


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {root!r}]
import test_evaluation as t
from inktraj.evaluation import Plan, evaluate_model
from inktraj.vlm import load_model
many = t.remade(Path({folder!r}))
model = load_model("openai/fake", base_url={url!r}, frame="sent-px", policy=t.QUICK)
evaluate_model(model, many, {out!r}, Plan(connections=8, placed=False))
"""


def remade(root):
    """The 500 words, from what `test_killed_twice` wrote down."""
    pages = json.loads((root / "pages.json").read_text())
    frame = Frame(400, 300)
    return made_dataset(root, frame, [(p, [(i, t, Ink(s, frame)) for i, t, s in words]) for p, words in pages])


def test_killed_twice_and_run_again_it_is_as_if_undisturbed(many, tmp_path):
    pytest.importorskip("openai")
    folder = Path(str(many.pages[0].picture.source.path)).parents[1]
    pages = [
        (page.id, [(s.id.split("__")[1], s.text, [k.tolist() for k in s.ink.strokes]) for s in page.samples])
        for page in many.pages
    ]
    (folder / "pages.json").write_text(json.dumps(pages))
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with FakeProvider(writer(many), rate=0.05, kinds=("500", "429"), seed=2, retry_after=0.05, pause=0.02) as fake:
        code = KILLED.format(
            tests=str(ROOT / "tests"),
            root=str(ROOT),
            folder=str(folder),
            url=fake.url("openai"),
            out=str(tmp_path / "a"),
        )
        journal = tmp_path / "a" / "samples.jsonl"
        for enough in (60, 200):
            process = subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=ROOT)
            for _ in range(600):
                if journal.exists() and journal.read_bytes().count(b"\n") >= enough:
                    break
                assert process.poll() is None
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert enough <= journal.read_bytes().count(b"\n") < 500
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, cwd=ROOT)
        once = evaluate_model(
            load_model("openai/fake", base_url=fake.url("openai"), frame="sent-px", policy=QUICK),
            many,
            tmp_path / "b",
            Plan(connections=8, placed=False),
        )
    keys = [json.loads(line)["key"] for line in journal.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 500
    first = json.loads((tmp_path / "a" / "run.json").read_text())["rows"][0]
    assert first["kinds"] == once.rows[0].kinds
    assert first["figures"] == json.loads((tmp_path / "b" / "run.json").read_text())["rows"][0]["figures"]


def test_what_cannot_be_asked_is_an_error_and_asked_again(many, tmp_path):
    pytest.importorskip("openai")
    with FakeProvider(writer(many), rate=0.4, kinds=("400",), seed=3, most=1) as fake:
        model = load_model("openai/fake", base_url=fake.url("openai"), frame="sent-px", policy=QUICK)
        first = evaluate_model(model, many, tmp_path / "run", Plan(limit=20, placed=False))
        assert 0 < first.rows[0].kinds["error"] < 20
        assert first.rows[0].scores.counts["error"] == first.rows[0].kinds["error"]
        second = evaluate_model(model, many, tmp_path / "run", Plan(limit=20, placed=False))
    assert second.rows[0].kinds["ok"] == 20


def test_a_wrong_key_ends_the_run(many, tmp_path):
    pytest.importorskip("openai")
    with FakeProvider(writer(many), faults={"*": ["401"] * 3}) as fake:
        model = load_model("openai/fake", base_url=fake.url("openai"), frame="sent-px", policy=QUICK)
        with pytest.raises(RunError, match="refused for good"):
            evaluate_model(model, many, tmp_path / "run", Plan(placed=False))
        assert len(fake.requests) < 60


@pytest.mark.parametrize(("input", "ends"), [("crop", True), ("page", False)])
def test_malformed_requests_end_the_run_unless_it_may_be_the_image(many, tmp_path, input, ends):
    pytest.importorskip("openai")
    # Eight requests each, that show eight crops, or at most four pages.
    frames, limit = (("native",), 8) if ends else (("native", "norm1000"), 4)
    plan = Plan(prompt=Prompt(input=input, example=False), frames=frames, limit=limit, placed=False)
    told, error = (RunError, "refused for good") if ends else (DataError, "no word could be scored")
    with FakeProvider(writer(many), faults={"*": ["400"] * 3}) as fake:
        model = load_model("openai/fake", base_url=fake.url("openai"), frame="sent-px", policy=QUICK)
        with pytest.raises(told, match=error):
            evaluate_model(model, many, tmp_path / "run", plan)
        assert ends or len(fake.requests) == 8
    # Nothing was answered, so the folder is free for a model that works; and then no longer for others.
    with FakeProvider(writer(many)) as fake:
        model = load_model("openai/other", base_url=fake.url("openai"), frame="sent-px", policy=QUICK)
        assert evaluate_model(model, many, tmp_path / "run", plan).rows[0].kinds["ok"] == limit
        model = load_model("openai/third", base_url=fake.url("openai"), frame="sent-px", policy=QUICK)
        with pytest.raises(RunError, match=r'model\.model is "other" there and "third" now\.'):
            evaluate_model(model, many, tmp_path / "run", plan)


def test_a_server_may_move_and_retries_of_errors_are_counted(many, tmp_path):
    pytest.importorskip("openai")
    plan = Plan(limit=4, placed=False)
    words = [sample.text for sample in choose_samples(many, plan)]

    def word(system, text):
        return next(part for part in reversed(text.split('"')) if part in words)

    for faults, errors, retries in (({words[0]: ["500"] * 99}, 1, QUICK.attempts - 1), ({}, 0, 0)):
        with FakeProvider(writer(many), identify=word, faults=faults) as fake:
            model = load_model("openai/fake", base_url=fake.url("openai"), frame="sent-px", policy=QUICK)
            found = evaluate_model(model, many, tmp_path / "run", plan)
            assert (found.rows[0].kinds["error"], found.rows[0].kinds["ok"]) == (errors, 4 - errors)
            assert found.costs["retries"] == retries
            assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["server"] == fake.url("openai")


def test_a_budget_is_kept(many, tmp_path, monkeypatch):
    pytest.importorskip("anthropic")
    with FakeProvider(writer(many), pause=0.01) as fake:
        model = load_model("claude", base_url=fake.url("anthropic"), frame="sent-px", policy=QUICK)
        found = evaluate_model(model, many, tmp_path / "run", Plan(max_cost=0.1, connections=2, placed=False))
    kinds = found.rows[0].kinds
    assert 0 < kinds["ok"] < 100
    assert kinds["error"] == 500 - kinds["ok"]
    assert "were spent" in found.stopped
    assert found.costs["dollars"] < 0.2


def test_answers_that_are_ok_in_part_are_counted(demo, tmp_path):
    model = Scribble(demo, lambda text, request: f"[{text.strip('[]')}, (1, nan, 0)]")
    found = evaluate_model(model, demo, tmp_path / "run", Plan(limit=3, placed=False))
    assert found.rows[0].kinds["ok"] == 3
    (warning,) = [warning for warning in found.warnings if "ok in part" in warning]
    assert "scribble, sent-px: 3 answers" in warning
    assert found.rows[0].outcomes[0].id in warning


# ---------------------------------------------------------------- the command


def test_the_command_runs_on_a_fresh_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["eval", "--model", "inktraj", "--limit", "12", "--input", "crop"])
    assert done.exit_code == 0, done.output
    assert "demo" in done.output
    assert (tmp_path / "eval-inktraj-demo" / "report.html").is_file()
    other = CliRunner().invoke(app, ["eval", "--model", "inktraj", "--limit", "12", "--out", "page"])
    assert other.exit_code == 0, other.output
    ranked = CliRunner().invoke(app, ["eval", "compare", "eval-inktraj-demo", "page", "--markdown", "-"])
    assert ranked.exit_code == 0, ranked.output
    assert ranked.output.count("inktraj") >= 2


def test_the_command_without_a_model():
    done = CliRunner().invoke(app, ["eval"])
    assert isinstance(done.exception, DataError)
    assert "--model" in str(done.exception)
