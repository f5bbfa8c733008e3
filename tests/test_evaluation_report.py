"""An evaluation's tables and report: what they tell, and that no model's reply can do anything in them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from inktraj.datasets import load_dataset
from inktraj.errors import DataError
from inktraj.evaluation import report
from inktraj.evaluation.compare import RUN_FORMAT, compare_runs, holm
from inktraj.evaluation.report import write_report
from inktraj.evaluation.results import KINDS, EvaluationRun, Outcome, Row
from inktraj.evaluation.summary import print_table, summary_markdown, tell
from inktraj.ink import Ink
from inktraj.io.html import packed_strokes
from inktraj.metrics import Evaluation
from inktraj.ocr import Reading
from inktraj.scoring import score_pairs
from inktraj.scoring.matching import Pair
from inktraj.scoring.sources import Word
from inktraj.vlm import Reply

HOSTILE = (
    'Here: (1,2,1) </script><script>alert(1)</script><img src=x onerror=alert(2)> "\u2028\ud800 &amp; <!-- index -->'
)


class Parrot:
    """Reads the same in every picture."""

    name, version = "parrot", "1"

    def __call__(self, images):
        return [Reading("the", 1.0) for _ in images]


def perturbed(ink: Ink, rng, error: float, place: float) -> Ink:
    """The ink with noise, moved, with strokes in another order."""
    strokes = [s + rng.normal(0, error, s.shape) + place for s in ink.strokes]
    rng.shuffle(strokes)
    return Ink(strokes, ink.frame)


def outcome(sample, kind, rng, error=2.0, text="(1,2,1)"):
    reply = Reply(text, "end", 1200, 300, "maker/model-1", raw_stop="end_turn")
    if kind == "ok":
        far = 2000.0 if rng.random() < 0.04 else rng.normal(0, 4)
        ink = perturbed(sample.ink, rng, error, far)
        return Outcome(sample.id, "ok", "", ink, lambda: reply, "tuples", "norm1000", rng.random() < 0.9, 0.25, 1)
    if kind == "error":
        return Outcome(sample.id, "error", "the server answered 529 (overloaded) 6 times")
    return Outcome(sample.id, kind, f"this one is {kind} <b>&", recall=lambda: reply)


def make_row(
    samples, kinds, rng, *, model="claude", frame="sent-px", native=True, error=2.0, text="(1,2,1)", **options
):
    outcomes = tuple(outcome(s, k, rng, error, text) for s, k in zip(samples, kinds, strict=True))
    statuses = {"ok": "valid", "error": "error", "incomplete": "missing"}
    pairs = [
        Pair(Word(o.id, s.page_id, s.ink, s.text, s.writer), o.ink, statuses.get(o.kind, "invalid"), o.reason)
        for s, o in zip(samples, outcomes, strict=True)
    ]
    return Row(model, frame, native, outcomes, score_pairs(pairs, **options), ("maker/model-1",))


def make_run(folder, *, rows=2, text="(1,2,1)", seed=3, **options) -> EvaluationRun:
    """A run over the demo set: three quarters of the answers are ok, the others of every other kind."""
    rng = np.random.default_rng(seed)
    dataset = load_dataset("demo")
    samples = list(dataset)
    kinds = [KINDS[1 + i // 4 % (len(KINDS) - 1)] if i % 4 == 3 else "ok" for i in range(len(samples))]
    frames = [("sent-px", True), ("norm1000", False), ("percent", False)][:rows]
    made = tuple(
        make_row(samples, kinds, rng, frame=frame, native=native, error=1.5 + 2 * i, text=text, **options)
        for i, (frame, native) in enumerate(frames)
    )
    costs = {"run": {"input_tokens": 12000, "dollars": 0.1234}, "all": {"input_tokens": 99999, "dollars": None}}
    settings = {"model": "claude", "prompt": {"input": "page", "per": "word"}, "seed": 0, "temperature": None}
    return EvaluationRun(folder, dataset, made, settings, costs, limited=5, warnings=("the key is <new>",))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), text=HOSTILE, recognizer=Parrot())


class Page(HTMLParser):
    """Elements with their attributes, and the texts of scripts and of everything else."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.data, self.scripts, self.shown = [], {}, [], ""
        self._script = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._script = dict(attrs) | {"tag": tag}

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._script = None

    def handle_data(self, data):
        if self._script is None:
            self.shown += data
        elif self._script.get("type") == "application/json":
            self.data[self._script["id"]] = json.loads(data)
        elif self._script["tag"] == "script":
            self.scripts.append(data)


@pytest.fixture(scope="module")
def page(run):
    return Page(write_report(run).read_text(encoding="utf-8"))


# The report


def test_replies_are_inert_and_whole(run, page):
    """One script of ours, no element that a reply brought, and the reply as it came."""
    assert len(page.scripts) == 1
    assert "alert(" not in page.scripts[0]
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    replies = {id: text for id, text in page.data.items() if id.startswith("r")}
    assert list(replies.values()) == [HOSTILE]  # each once, though 184 answers hold it
    text = (run.folder / "report.html").read_text(encoding="utf-8")
    assert text.count("<script>") == text.count("</script>") - text.count('<script type="application/json"') == 1
    assert "the key is <new>" in page.shown


def test_nothing_is_loaded_and_only_our_script_may_run(run, page):
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "base", "object", "embed")
        assert not {"src", "href", "action", "style", "srcset"} & attributes.keys()
    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:; ")
    own = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{own}'" in policy
    assert "unsafe" not in policy
    text = (run.folder / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"'\s]*", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"@import|url\(|fetch\(|XMLHttp|innerHTML|insertAdjacent|document\.write|eval\(", text)


def test_every_id_that_the_script_asks_for_is_there_once(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'\$\("([\w-]+)"\)', page.scripts[0])) <= set(ids)


def test_the_index_tells_of_every_outcome(run, page):
    index = page.data["index"]
    assert [row["name"] for row in index["rows"]] == [row.name for row in run.rows]
    for row, told in zip(run.rows, index["rows"], strict=True):
        assert [index["ids"][s] for s in told["sample"]] == [o.id for o in row.outcomes]
        assert [index["kinds"][k] for k in told["kind"]] == [o.kind for o in row.outcomes]
        assert [index["reasons"][k] for k, o in zip(told["reason"], row.outcomes, strict=True) if o.reason] == [
            o.reason for o in row.outcomes if o.reason
        ]
        values = [np.nan if v is None else v for v in told["values"]["dtw"]]
        np.testing.assert_allclose(values, row.scores.columns["dtw"], rtol=1e-4)
        assert [index["texts"][s] for s in told["sample"]] == [word.text for word in row.scores.words]


def test_strokes_are_where_they_were_as_far_as_can_be_seen(run, page):
    for k, outcome in enumerate(run.rows[0].outcomes):
        detail, sample = page.data[f"d0-{k}"], run.dataset.by_id(outcome.id)
        step = 0.4 * max(detail["word"][2:]) / report.SIDE + 0.1
        for strokes, flats in (
            (sample.ink.strokes, detail["ref"]),
            (outcome.ink and outcome.ink.strokes, detail.get("pred")),
        ):
            if strokes is None:
                assert flats is None
                continue
            for stroke, flat in zip(strokes, flats, strict=True):
                shown = np.cumsum(np.reshape(flat, (-1, 2)), axis=0) / 10
                assert len(shown) <= len(stroke)
                assert max(distance_to_path(point, shown) for point in stroke) <= step


def test_a_stroke_that_ends_where_it_began_keeps_its_start():
    around = np.array([(0, 0), (5, 5), (10, 0), (5, -5), (0, 0)], dtype=float)
    dot = np.full((3, 2), 7.0)
    there_and_back = np.array([(0, 0), (9, 0), (9, 0), (4, 0), (0, 0)], dtype=float)
    flats = packed_strokes([around, dot, there_and_back], 0.1)
    shown = [(np.cumsum(np.reshape(flat, (-1, 2)), axis=0) / 10).tolist() for flat in flats]
    assert shown[0] == around.tolist()
    assert shown[1] == [[7, 7]]
    assert shown[2] == [[0, 0], [9, 0], [0, 0]]


def distance_to_path(point, path):
    if len(path) == 1:
        return np.hypot(*(point - path[0]))
    a, b = path[:-1], path[1:]
    along = np.clip(((point - a) * (b - a)).sum(1) / np.maximum(((b - a) ** 2).sum(1), 1e-12), 0, 1)
    return np.hypot(*(a + along[:, None] * (b - a) - point).T).min()


def test_pictures_show_the_page_where_they_say(run, page):
    import cv2

    detail, sample = page.data["d0-0"], run.dataset[0]
    left, top, width, height = detail["at"]
    shown = cv2.imdecode(np.frombuffer(base64.b64decode(detail["img"]), np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert max(shown.shape[:2]) <= report.SIDE
    cut = sample.page.open().pixels[int(top + 0.5) :, int(left + 0.5) :][: int(height), : int(width)]
    small = cv2.resize(cut, shown.shape[1::-1], interpolation=cv2.INTER_AREA)
    assert np.abs(small.astype(int) - shown).mean() < 4
    x, y, w, h = detail["view"]
    ink = np.concatenate([*sample.ink.strokes, *run.rows[0].outcomes[0].ink.strokes])
    assert ((ink > (x, y)) & (ink < (x + w, y + h))).all()


def test_ink_far_off_the_page_does_not_make_the_word_a_speck(run, page):
    sample = run.dataset[0]
    far = Outcome(sample.id, "ok", ink=Ink([[(1e300, 5.0), (0.0, -1e300)], [(9, 9)]], sample.ink.frame))
    data = report._data(sample, far, sample.page.open().pixels)
    assert data["view"][2] < 1.6 * sample.page.width
    json.dumps(data, allow_nan=False)
    assert data["beyond"]
    beside = Outcome(sample.id, "ok", ink=Ink([[(-900, -900), (-800, -800)]], sample.ink.frame))
    data = report._data(sample, beside, None)
    assert data["pred"] == [[-9000, -9000, 1000, 1000]]
    assert data["view"] == data["word"]
    assert data["beyond"]


def test_size_is_bounded_and_told(run, monkeypatch, tmp_path):
    monkeypatch.setattr(report, "PICTURES", 20)
    monkeypatch.setattr(report, "PICTURE_BYTES", 60_000)
    monkeypatch.setattr(report, "OTHER_BYTES", 20_000)
    path = write_report(replace(run, folder=tmp_path))
    page = Page(path.read_text(encoding="utf-8"))
    details = [data for id, data in page.data.items() if re.fullmatch(r"d\d-\d+", id)]
    pictured = [data for data in details if "img" in data]
    assert 0 < len(pictured) <= 20
    assert len(pictured) < len(details) < 184
    assert sum(len(json.dumps(d, separators=(",", ":"))) for d in details) < 80_000
    assert f"{len(pictured)} of 184 answers have a picture" in page.shown
    assert f"{184 - len(details)} have their figures only" in page.shown
    # The worst ink of each row is among those with a picture.
    for r, row in enumerate(run.rows):
        dtw = [v if o.ink is not None else -1 for v, o in zip(row.scores.columns["dtw"], row.outcomes, strict=True)]
        assert "img" in page.data[f"d{r}-{int(np.argmax(dtw))}"]


def test_pages_that_are_gone_leave_strokes_and_a_note(run, tmp_path):
    class Gone:
        ids = run.dataset.store.ids

        def read(self, number):
            made = run.dataset.store.read(number)
            picture = replace(made.picture, source=None, told="<b>gone.jpg")
            return replace(made, picture=picture, samples=tuple(replace(s, page=picture) for s in made.samples))

    page = Page(
        write_report(replace(run, folder=tmp_path, dataset=replace(run.dataset, store=Gone()))).read_text("utf-8")
    )
    details = [data for id, data in page.data.items() if id.startswith("d")]
    assert len(details) == 184
    assert not any("img" in data for data in details)
    assert "4 pages could not be opened, such as: page 'note1': its image <b>gone.jpg was not found" in page.shown


def test_a_report_without_any_ink(tmp_path):
    rng = np.random.default_rng(0)
    dataset = load_dataset("demo")
    samples = list(dataset)[:6]
    row = make_row(samples, ["ok", *["refused"] * 5], rng)
    run = EvaluationRun(tmp_path, dataset, (row,), {}, limited=len(dataset) - 6)
    page = Page(write_report(run).read_text("utf-8"))
    assert page.data["index"]["rows"][0]["kind"] == [0, 3, 3, 3, 3, 3]
    assert "–" in summary_markdown(run)


# Tables


def test_summary_has_a_line_for_each_row_and_what_is_needed_to_read_it(run):
    text = summary_markdown(run)
    for row in run.rows:
        assert len(re.findall(rf"^\| {row.name}", text, re.MULTILINE)) == 3
        for signature in map(str, row.scores.signatures):
            assert f"- `{signature}`" in text
    line = next(line for line in text.splitlines() if line.startswith("| claude, sent-px"))
    counts = [run.rows[0].kinds[kind] for kind in KINDS]
    assert line == f"| claude, sent-px (native) | 92 | {' | '.join(map(str, counts))} | 77.5% | 25.0% |"
    figures = run.rows[0].scores.figures
    assert f"{figures['dtw'].all.mean:.4f}<br>" in text
    assert f"{figures['chamfer'].valid.mean:.4f}<br>" in text
    assert "- run: dollars: $0.1234" in text
    assert "- all: dollars: not known" in text
    assert "- temperature: none" in text
    assert "- prompt: per: word" in text
    assert "- the key is &lt;new>" in text
    assert "92 samples of 97" in text
    quoted = text.split("## Published")[1]
    assert "| Gemini-3.1-Pro | IAM-OnDB | 0.088 | 0.047 | 0.856 | – |" in quoted
    assert "cannot be compared" in quoted
    assert "0.812" not in text.split("## Published")[0]


def test_where_all_is_ok_there_is_one_table_of_figures(run):
    samples = list(run.dataset.pages[0].samples)
    row = make_row(samples, ["ok"] * len(samples), np.random.default_rng(2))
    text = summary_markdown(replace(run, rows=(row,)))
    assert "All samples, by the paper's rule" in text
    assert "Ok samples only" not in text


def test_an_ink_that_could_not_be_scored_is_told_of(run):
    row = run.rows[0]
    word = replace(row.scores.words[0], status="invalid", reason="its 9999 strokes are too many")
    scores = replace(row.scores, words=(word, *row.scores.words[1:]))
    text = summary_markdown(replace(run, rows=(replace(row, scores=scores),)))
    assert "1 inks that came could not be scored, such as that of note1__w00 (invalid: its 9999 strokes are too" in text


def test_tables_hold_whatever_a_server_calls_itself(run):
    evil = "a|b\n| c <img src=x> [x](javascript:1) `\x1b[31m"
    changed = replace(run, rows=tuple(replace(row, model=evil, resolved=(evil,)) for row in run.rows))
    text = summary_markdown(changed)
    rows = [line for line in text.splitlines() if line.startswith("| a")]
    assert len(rows) == 6
    assert all(line.count("|") == text.splitlines()[text.splitlines().index(line) - 2].count("|") for line in rows[::2])
    assert "<img" not in text
    assert "[x](" not in text
    out = io.StringIO()
    print_table(changed, Console(file=out, width=150))
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize("width", [200, 120, 80, 60])
def test_terminal_tables_keep_their_headlines_however_narrow(run, width):
    out = io.StringIO()
    print_table(run, Console(file=out, width=width))
    text = out.getvalue()
    table = text.split("All samples, by the paper's rule")[1].split("Ok samples only")[0]
    for name in ("DTW", "Chamfer", "AR", "CR"):
        assert name in table
    value = f"{run.rows[0].scores.figures['dtw'].all.mean:.4f}"
    assert value in table
    assert ("…" in table) == (width >= 120)
    assert "Published: quoted from" in text


def test_figures_are_computed_once_where_they_are_given(run, monkeypatch):
    rows = tell(run)
    monkeypatch.setattr("inktraj.evaluation.summary.tell", lambda run: pytest.fail("computed again"))
    assert summary_markdown(run, rows)


# Comparing runs


def write_run(folder, run: EvaluationRun, **changes):
    """What compare reads of a run folder."""
    folder.mkdir()
    rows = []
    for row in run.rows:
        file = f"scores-{row.frame}.parquet"
        row.scores.to_parquet(folder / file)
        kept = {"model": row.model, "frame": row.frame, "native": row.native, "kinds": row.kinds}
        rows.append(kept | {"scores": file, "resolved": list(row.resolved)})
    (folder / "run.json").write_text(json.dumps({"format": RUN_FORMAT, "rows": rows, **changes}))
    return folder


@pytest.fixture(scope="module")
def folders(run, tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    other = make_run(root, rows=1, seed=5, recognizer=Parrot())
    other = replace(other, rows=(replace(other.rows[0], model="gemini"),))
    return [write_run(root / "a", run), write_run(root / "b", other)]


def test_leaderboard_is_in_order_and_compares_with_the_first(folders):
    found = compare_runs(folders, figure="chamfer")
    means = [entry.figures["chamfer"].all.mean for entry in found.entries]
    assert means == sorted(means)
    assert {entry.name for entry in found.entries} == {"claude, sent-px", "claude, norm1000", "gemini, sent-px"}
    assert found.differences[0] is None
    best = found.entries[0].scores
    plain = [entry.scores.compare(best)["chamfer"]["all"] for entry in found.entries[1:]]
    assert [difference.all for difference in found.differences[1:]] == plain
    assert [difference.p_corrected for difference in found.differences[1:]] == holm([p.p_value for p in plain])
    assert all(difference.all.difference >= 0 for difference in found.differences[1:])


def test_more_is_better_for_readability(run, folders):
    found = compare_runs(folders, figure="direction_agreement")
    means = [entry.figures["direction_agreement"].all.mean for entry in found.entries]
    assert means == sorted(means, reverse=True)


def test_comparison_is_told_in_every_form(folders):
    found = compare_runs(folders)
    text = found.to_markdown()
    assert len(re.findall(r"^\| [123]\. ", text, re.MULTILINE)) == 3
    assert "Holm's method over 2 comparisons" in text
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert [entry["rank"] for entry in told["entries"]] == [1, 2, 3]
    assert told["entries"][1]["difference"]["p_corrected"] == found.differences[1].p_corrected
    for width in (70, 200):
        out = io.StringIO()
        found.print(Console(file=out, width=width))
        assert "p, Holm" in out.getvalue()
        assert out.getvalue().count("sent-px") >= 2


def test_rows_of_one_name_are_told_apart_by_their_runs(run, folders, tmp_path):
    twin = write_run(tmp_path / "twin", run)
    names = [entry.name for entry in compare_runs([folders[0], twin]).entries]
    assert sorted(names) == [f"claude, {frame} ({at})" for frame in ("norm1000", "sent-px") for at in ("a", "twin")]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_holm_agrees_with_its_definition(count, rng):
    p = rng.random(count) ** 3
    order = np.argsort(p)
    expected = np.empty(count)
    for rank, i in enumerate(order):
        expected[i] = max(min(1, (count - j) * p[order[j]]) for j in range(rank + 1))
    np.testing.assert_allclose(holm(p.tolist()), expected)
    assert holm([None, *p.tolist(), None])[1:-1] == holm(p.tolist())


def test_runs_that_were_measured_otherwise_are_refused_with_every_reason(run, folders, tmp_path):
    rng = np.random.default_rng(1)
    samples = list(run.dataset)
    kinds = ["ok"] * len(samples)
    moved = [replace(s, ink=Ink([stroke + 1 for stroke in s.ink.strokes], s.ink.frame)) for s in samples]
    rows = {
        "strict": make_row(samples, kinds, rng, recognizer=Parrot(), evaluation=Evaluation(tolerance=0.01)),
        "unread": make_row(samples, kinds, rng),
        "fewer": make_row(samples[:50], kinds[:50], rng, recognizer=Parrot()),
        "moved": make_row(moved, kinds, rng, recognizer=Parrot()),
    }
    others = [write_run(tmp_path / name, replace(run, rows=(row,))) for name, row in rows.items()]
    with pytest.raises(DataError) as caught:
        compare_runs([folders[1], *others])
    text = str(caught.value)
    assert text.startswith("4 things keep these runs from being compared with gemini, sent-px")
    assert re.search(r"strict\): trajectory was computed otherwise: tol \(0.02 and 0.01\)", text)
    assert re.search(r"unread\): it has no readability", text)
    assert re.search(r"fewer\): it has other samples \(42 are missing, 0 are there besides\)", text)
    assert re.search(r"moved\): its references have the same names but other strokes", text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda at: at / "nothing", "no such folder"),
        (lambda at: at, "has no run.json; expected the folder of a finished run"),
        (lambda at: written(at, "{"), "not what a run wrote"),
        (lambda at: written(at, "[]"), "not what a run wrote"),
        (lambda at: written(at, '{"format": "inktraj evaluation 9", "rows": []}'), "of another version"),
        (lambda at: written(at, json.dumps({"format": RUN_FORMAT, "rows": [{}]})), "KeyError: 'model'"),
        (lambda at: written(at, json.dumps({"format": RUN_FORMAT, "rows": []})), "two rows at least, and there are 0"),
    ],
)
def test_folders_that_are_no_runs(tmp_path, make, message):
    with pytest.raises(DataError, match=message):
        compare_runs([make(tmp_path)])


def written(folder, text):
    (folder / "run.json").write_text(text)
    return folder


def test_figures_by_which_nothing_can_be_ranked(folders):
    with pytest.raises(DataError, match="there is no figure 'dwt'; known are dtw"):
        compare_runs(folders, figure="dwt")
    with pytest.raises(DataError, match="neither better when less nor when more"):
        compare_runs(folders, figure="penup_error")
    with pytest.raises(DataError, match=r"no run has the figure 'style'.*such as dtw, chamfer"):
        compare_runs(folders, figure="style")


def test_without_enough_pages_there_is_no_p_value(run, tmp_path):
    rng = np.random.default_rng(1)
    samples = list(run.dataset.pages[0].samples)[:1]
    rows = tuple(make_row(samples, ["ok"], rng, frame=frame) for frame in ("sent-px", "percent"))
    found = compare_runs([write_run(tmp_path / "one", replace(run, rows=rows))])
    assert found.differences[1].p_corrected is None
    assert "over 0 comparisons" in found.to_markdown()
