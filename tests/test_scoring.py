"""Predictions against references: names in every form, what is missing or broken, figures, files, the command."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import inktraj
from inktraj import cli
from inktraj.errors import DataError, ParseError
from inktraj.ink import Frame, Ink
from inktraj.io import InkRecord, write_ink
from inktraj.metrics import Evaluation, Normalization
from inktraj.metrics.readability import TextRules
from inktraj.scoring import Drawing, read_scores, report, score
from inktraj.scoring.reading import HEIGHT, LONGEST, MARGIN, picture
from inktraj.scoring.sources import read_words

FRAME = Frame(400, 100)
NAMES = ("p1__w0", "p1__w1", "p2__w0")
TEXTS = ("ab", "cde", "f")


def ink(seed, shift=0.0):
    rng = np.random.default_rng(seed)
    starts = [np.array([20 * k + 10, 40]) for k in range(3)]
    strokes = [start + np.cumsum(rng.normal(2, 3, size=(12, 2)), axis=0) for start in starts]
    return Ink(tuple(s.round(2) + shift for s in strokes), FRAME)


INKS = tuple(ink(k) for k in range(3))


def records(shift=0.0, inks=INKS, **extra):
    out = []
    for name, text, one in zip(NAMES, TEXTS, inks, strict=True):
        page, id = name.split("__")
        moved = Ink(tuple(s + shift for s in one.strokes), one.frame)
        out.append(InkRecord(id, moved, text, {"page": page, "writer": f"of {page}", **extra}))
    return out


def as_jsonl(root):
    write_ink(root / "all.jsonl", records())
    return root / "all.jsonl"


def as_jsonl_of_full_names(root):
    write_ink(root / "all.jsonl", [InkRecord(n, i, t) for n, i, t in zip(NAMES, INKS, TEXTS, strict=True)])
    return root / "all.jsonl"


def as_shards(root):
    for k, record in enumerate(records()):
        write_ink(root / f"part-{k}.jsonl", [record])
    return root


def as_pages_of_inkml(root):
    found = [InkRecord(r.id, r.ink, r.text) for r in records()]
    write_ink(root / "p1.inkml", found[:2])
    # A page with one word is told apart from a file for one word by what the record says.
    write_ink(root / "p2.inkml", [records()[2]])
    return root


def as_words_of_svg(root):
    for name, one in zip(NAMES, INKS, strict=True):
        paths = "".join(f'<polyline points="{" ".join(f"{x + 0.5},{y + 0.5}" for x, y in s)}"/>' for s in one.strokes)
        (root / f"{name}.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 100">{paths}</svg>'
        )
    (root / ".hidden.svg").write_text("<svg")
    (root / "notes.txt").write_text("no ink")
    return root


def page_lines(inks=INKS, verdict="kept"):
    words = [
        {"id": name.split("__")[1], "text": text, "strokes": one.to_xys().tolist()}
        for name, text, one in zip(NAMES, TEXTS, inks, strict=True)
    ]
    size = {"width": 400, "height": 100}
    pages = [
        {"page_id": "p1", **size, "verdict": "kept", "words": words[:2]},
        {"page_id": "p2", **size, "verdict": verdict, "words": words[2:]},
        {"page_id": "p3", "width": None, "height": None, "verdict": "failed", "words": []},
    ]
    return "".join(json.dumps(page) + "\n" for page in pages)


def as_data_set(root, verdict="kept"):
    (root / "records").mkdir()
    (root / "inkml").mkdir()
    write_ink(root / "inkml" / "p1.inkml", records()[:2])
    (root / "settings.json").write_text(json.dumps({"recognizer": "parrot 1"}))
    (root / "pages.jsonl").write_text(page_lines(verdict=verdict))
    return root


FORMS = [as_jsonl, as_jsonl_of_full_names, as_shards, as_pages_of_inkml, as_words_of_svg, as_data_set]


# Names


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_words_have_the_same_names_in_every_form(form, tmp_path):
    found = read_words(form(tmp_path), reference=True)
    assert tuple(found.words) == NAMES
    for name, one in zip(NAMES, INKS, strict=True):
        np.testing.assert_allclose(np.concatenate(found.words[name].ink.strokes), np.concatenate(one.strokes))
    scores = score(records(), tmp_path / "all.jsonl" if (tmp_path / "all.jsonl").is_file() else tmp_path)
    assert scores.counts == {"valid": 3, "missing": 0, "invalid": 0, "error": 0}
    assert scores.figures["dtw"].all.mean == pytest.approx(0, abs=1e-6)


def test_words_that_are_there_twice_are_named(tmp_path):
    write_ink(tmp_path / "a.jsonl", records())
    write_ink(tmp_path / "b.jsonl", records()[1:])
    with pytest.raises(DataError, match=r"2 words are there twice: 'p1__w1', 'p2__w0' \(the first in .*a\.jsonl"):
        score(tmp_path, records())


def test_two_files_of_one_nameless_word_belong_together(tmp_path):
    write_ink(tmp_path / "word.jsonl", [InkRecord("", INKS[0])])
    assert score(tmp_path / "word.jsonl", records()[:1]).counts["valid"] == 1
    write_ink(tmp_path / "word.jsonl", [InkRecord("p9__w9", INKS[0])])
    with pytest.raises(DataError, match=r"'p9__w9'.*has the name of one of the records.*'p1__w0'"):
        score(tmp_path / "word.jsonl", records()[:1])


def test_nameless_words_among_others_are_refused(tmp_path):
    write_ink(tmp_path / "words.jsonl", [InkRecord("a", INKS[0]), InkRecord("", INKS[1])])
    with pytest.raises(DataError, match="the ink 1 has no id"):
        score(records(), tmp_path / "words.jsonl")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "there is no ink in this folder"),
        ({"a.jsonl": ""}, "there is no ink in it"),
        ({"records/p1.json": "{}", "settings.json": "{}"}, "not finished"),
        ({"a.svg": "<svg"}, "not well-formed"),
    ],
)
def test_references_without_ink_are_told(files, message, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        score(records(), tmp_path)


def test_references_without_strokes_are_not_scored():
    empty = InkRecord("w9", Ink((), FRAME), "x", {"page": "p1"})
    scores = score(records(), [*records(), empty])
    assert scores.empty == ("p1__w9",)
    assert len(scores.words) == 3
    with pytest.raises(DataError, match="none of its 1 words has strokes"):
        score(records(), [empty])


def test_only_kept_pages_of_a_data_set_are_references(tmp_path):
    scores = score(records(), as_data_set(tmp_path, verdict="dropped"))
    assert [word.name for word in scores.words] == ["p1__w0", "p1__w1"]
    assert scores.unknown == ("p2__w0",)
    assert any("1 words of the references are of pages that were not kept" in warning for warning in scores.warnings)
    assert score(tmp_path, records()).counts["valid"] == 3  # predictions may be of any page


# What is missing or broken


def test_missing_invalid_and_unknown_are_told_apart():
    given = records()
    given[1] = InkRecord("w1", Ink((), FRAME), "", {"page": "p1"})
    given[2] = InkRecord("w7", INKS[2], "", {"page": "p2"})
    scores = score(given, records())
    assert [word.status for word in scores.words] == ["valid", "invalid", "missing"]
    assert scores.words[1].reason == "the ink is empty"
    assert scores.unknown == ("p2__w7",)
    assert scores.coverage == pytest.approx(1 / 3)


def test_a_broken_line_costs_its_word_only(tmp_path):
    lines = as_jsonl_of_full_names(tmp_path).read_text().splitlines()
    lines[0] = lines[0][:150]  # cut short
    lines[1] = json.dumps({"id": NAMES[1], "strokes": "none", "frame": {"width": 1, "height": 1}})
    (tmp_path / "all.jsonl").write_text("\n".join([*lines, "[]", '{"id": 3']))
    scores = score(tmp_path / "all.jsonl", records())
    assert [word.status for word in scores.words] == ["invalid", "invalid", "valid"]
    assert scores.words[0].reason.startswith(f"{tmp_path / 'all.jsonl'}, line 1, column")
    assert "strokes is a string" in scores.words[1].reason
    assert [where.rpartition(", ")[2] for where in scores.unread] == ["line 1", "line 2", "line 4", "line 5"]


@pytest.mark.parametrize(
    "line",
    [b'{"id": "\\q", "x', b'{"id": "\xff"', b"[" * 100_000, b"\xff", b'{"words": {}}', b'{"words": [3]}', b"null"],
)
def test_lines_of_any_kind_are_told(line, tmp_path):
    path = as_jsonl(tmp_path)
    path.write_bytes(path.read_bytes() + line)
    scores = score(path, records())
    assert scores.counts["valid"] == 3
    assert list(scores.unread) == [f"{path}, line 4"]


def test_names_that_no_file_can_hold_are_mended(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        json.dumps(
            {"id": "w\ud800", "text": "\udc00", "frame": {"width": 9, "height": 9}, "strokes": [[1, 2, 1], [3, 4, 0]]}
        )
    )
    scores = score(tmp_path / "a.jsonl", tmp_path / "a.jsonl")
    assert (scores.words[0].name, scores.words[0].text) == ("w\ufffd", "\ufffd")
    scores.to_parquet(tmp_path / "a.parquet")
    scores.to_csv(tmp_path / "a.csv")


def test_a_frame_that_claims_to_be_moved_anyhow_is_told():
    with pytest.raises(ParseError, match="moved is 'far', expected two numbers"):
        score([InkRecord("w", INKS[0], "", {"frame": "inferred", "moved": "far"})], [InkRecord("w", INKS[0])])


def test_a_broken_word_of_a_page_costs_itself_only(tmp_path):
    lines = page_lines().splitlines()
    page = json.loads(lines[0])
    page["words"][0]["strokes"][0] = [1, "2", 1]
    (tmp_path / "pages.jsonl").write_text("\n".join([json.dumps(page), *lines[1:]]))
    scores = score(tmp_path / "pages.jsonl", records())
    assert [word.status for word in scores.words] == ["invalid", "valid", "valid"]
    assert "point 0" in scores.words[0].reason


def test_a_broken_file_makes_its_words_invalid(tmp_path):
    as_words_of_svg(tmp_path)
    (tmp_path / f"{NAMES[0]}.svg").write_text("<svg")
    scores = score(tmp_path, records())
    assert [word.status for word in scores.words] == ["invalid", "valid", "valid"]
    assert list(scores.unread) == [NAMES[0]]


def test_a_broken_page_makes_all_its_words_invalid(tmp_path):
    as_pages_of_inkml(tmp_path)
    (tmp_path / "p1.inkml").write_text("<ink")
    assert [word.status for word in score(tmp_path, records()).words] == ["invalid", "invalid", "valid"]


def test_predictions_of_which_nothing_can_be_read_are_no_result(tmp_path):
    (tmp_path / "all.jsonl").write_text("{}\n{}\n")
    with pytest.raises(DataError, match=r"no word of .*all\.jsonl \(such as"):
        score(tmp_path / "all.jsonl", records())


def test_a_prediction_in_another_frame_is_its_own_fault():
    given = records()
    given[0] = InkRecord("w0", Ink(INKS[0].strokes, Frame(800, 100)), "", {"page": "p1"})
    scores = score(given, records())
    assert scores.words[0].status == "invalid"
    assert "reference in Frame(width=400" in scores.words[0].reason
    assert scores.coverage == pytest.approx(2 / 3)
    assert scores.figures["dtw"].all.mean > scores.figures["dtw"].valid.mean
    other = [InkRecord(r.id, Ink(r.ink.strokes, Frame(800, 100)), "", r.extra) for r in records()]
    with pytest.raises(DataError, match="no word could be scored; of the first, 'p1__w0'"):
        score(other, records())


def test_what_cannot_be_compared_is_an_error_and_not_wrong():
    dot = [InkRecord("w0", Ink([[(5, 5)]], FRAME), "", {"page": "p1"}), *records()[1:]]
    scores = score(records(), dot)
    assert scores.words[0].status == "error"
    assert "dot" in scores.words[0].reason
    assert scores.coverage == 1.0
    assert (scores.figures["dtw"].all.count, scores.figures["dtw"].all.left_out) == (2, 1)


def test_a_file_without_a_frame_is_meant_in_the_others(tmp_path):
    one = Ink(tuple(s - 60 for s in INKS[0].strokes), FRAME)  # some coordinates are negative, and moved when read
    traces = "".join(f"<trace>{', '.join(f'{x:.2f} {y:.2f}' for x, y in s)}</trace>" for s in one.strokes)
    (tmp_path / "w.inkml").write_text(f'<ink xmlns="http://www.w3.org/2003/InkML">{traces}</ink>')
    known = [InkRecord("w", one)]
    for sides in ((tmp_path / "w.inkml", known), (known, tmp_path / "w.inkml")):
        scores = score(*sides)
        assert scores.counts["valid"] == 1
        assert scores.figures["dtw"].all.mean == pytest.approx(0, abs=1e-9)
    both = score(tmp_path, tmp_path)
    assert both.figures["dtw"].all.mean == 0


def test_other_units_are_an_error():
    given = [InkRecord("w", Ink(INKS[0].strokes, Frame(400, 100, "mm")), "", {"frame": "inferred"})]
    with pytest.raises(DataError, match="the prediction is in 'mm', the reference in 'px'"):
        score(given, [InkRecord("w", INKS[0])])


# Figures


def test_figures_are_those_of_the_pairs(rng):
    evaluation = Evaluation(Normalization("height", step=0.02), tolerance=0.1, worst=3)
    inks = [ink(k, 2.0) for k in range(3)]
    given = [*records(inks=inks)[:2], InkRecord("w0", Ink((), FRAME), "", {"page": "p2"})]
    scores = score(given, records(), evaluation=evaluation)
    pairs = [(inks[0], INKS[0]), (inks[1], INKS[1]), (None, INKS[2])]
    alone = [evaluation.score(*pair) for pair in pairs]
    for name in ("dtw", "tolerant_dtw", "chamfer", "ink_f1", "order_agreement", "aiou", "penup_error_size"):
        values = [getattr(one, name) for one in alone]
        assert scores.figures[name].all.mean == pytest.approx(np.mean(values)), name
        assert scores.figures[name].valid.mean == pytest.approx(np.mean(values[:2])), name
        assert scores.figures[name].all.count == 3
    assert scores.figures["dtw"].all.median == pytest.approx(np.median([one.dtw for one in alone]))
    assert alone[2].dtw == 3
    assert scores.signatures == (evaluation.signature,)
    # The parts of a DTW have no worst: over all words they have no value at all, not one of the valid words only.
    assert scores.figures["shape_cost"].all.mean is None
    assert scores.figures["shape_cost"].valid.mean == pytest.approx(np.mean([one.shape_cost for one in alone[:2]]))


def test_threads_change_nothing():
    many = [InkRecord(f"w{k}", ink(k)) for k in range(150)]
    given = [InkRecord(f"w{k}", ink(k, 1.5)) for k in range(150)]
    one, two = score(given, many), score(given, many, threads=2)
    for name, column in one.columns.items():
        np.testing.assert_array_equal(column, two.columns[name], err_msg=name)


def test_progress_tells_every_stage():
    told = []
    score(records(), records(), recognizer=Parrot(*TEXTS), style=Hands(), progress=lambda *state: told.append(state))
    assert {stage for stage, _, _ in told} == {"trajectories", "readability", "style"}
    assert ("trajectories", 3, 3) in told
    assert ("readability", 3, 3) in told


def test_intervals_are_of_pages_where_there_are_some():
    assert "2 pages, which are few" in score(records(), records()).drawn
    assert score(records(), records(), drawing=Drawing("word")).drawn == "words"
    assert score(records()[:2], records()[:2]).drawn == "words, for all are of one page"
    nameless = [InkRecord(n, i) for n, i in zip(NAMES, INKS, strict=True)]
    assert score(nameless, nameless, drawing=Drawing("writer")).drawn == "words, for no reference tells its writer"
    with pytest.raises(DataError, match="clusters are page, writer, word, not 'line'"):
        score(records(), records(), drawing=Drawing("line"))


class Parrot:
    """Reads what it is told, one text a picture."""

    name, version = "parrot", "1"

    def __init__(self, *texts):
        self.texts = list(texts)
        self.seen = []

    def __call__(self, images):
        self.seen += images
        return [SimpleNamespace(text=self.texts.pop(0), confidence=1.0) for _ in images]


def test_readability_is_of_what_is_read_in_the_predictions():
    given = records()
    del given[1]
    parrot = Parrot("aXX", "f")
    scores = score(given, records(), recognizer=parrot, rules=TextRules(case="fold"))
    assert [word.reading for word in scores.words] == ["aXX", None, "f"]
    assert len(parrot.seen) == 2
    figures = scores.figures
    # "ab" read "axx": a hit, a substitution, an insertion; "cde" missing; "f" right.
    assert figures["cr"].all.mean == pytest.approx(2 / 6)
    assert figures["ar"].all.mean == pytest.approx((2 - 1) / 6)
    assert figures["cer"].all.mean == pytest.approx(5 / 6)
    assert figures["cr"].valid.mean == pytest.approx(2 / 3)
    assert figures["ar_macro"].all.mean == pytest.approx((0 + 0 + 1) / 3)
    assert figures["wer"].all.mean == pytest.approx(2 / 3)
    assert str(scores.signatures[1]).startswith("readability|unit:codepoint|unicode:nfc|case:fold|")
    assert scores.signatures[1]["recognizer"] == "parrot 1"
    assert scores.warnings == ()


def test_words_without_a_text_have_no_readability():
    refs = [InkRecord(r.id, r.ink, "" if k else "ab", r.extra) for k, r in enumerate(records())]
    scores = score(records(), refs, recognizer=Parrot("ab", "cde", "f"))
    assert (scores.figures["ar"].all.mean, scores.figures["ar"].all.count) == (1.0, 1)
    with pytest.raises(DataError, match="none has one"):
        score(records(), [InkRecord(r.id, r.ink, "", r.extra) for r in refs], recognizer=Parrot())


def test_a_recogniser_that_chose_the_references_is_warned_of(tmp_path):
    scores = score(records(), as_data_set(tmp_path), recognizer=Parrot(*TEXTS))
    assert any("independent recogniser" in warning for warning in scores.warnings)
    told = score(records(), tmp_path, recognizer=Parrot(*TEXTS), references_filtered_by="other 2")
    assert told.warnings == ()


def test_a_recogniser_of_another_number_of_readings_is_told():
    class Short(Parrot):
        def __call__(self, images):
            return []

    with pytest.raises(DataError, match="parrot gave 0 readings for 3 pictures"):
        score(records(), records(), recognizer=Short())


def test_the_embedded_recogniser_reads_a_drawn_word():
    bar = [[(30, 20), (90, 20)], [(60, 20), (60, 90)]]  # a T
    ring = [(140 + 25 * np.cos(t), 60 + 30 * np.sin(t)) for t in np.linspace(0, 6.3, 40)]
    word = InkRecord("w", Ink((*map(np.array, bar), np.array(ring)), FRAME), "TO")
    scores = score([word], [word], recognizer="ppocr", rules=TextRules(case="fold"))
    assert scores.words[0].reading.casefold() in ("to", "t0")
    with pytest.raises(DataError, match="there is no recogniser 'tesseract'"):
        score([word], [word], recognizer="tesseract")


@pytest.mark.parametrize(
    ("strokes", "size"),
    [
        ([[(0, 0), (100, 50)]], (128, 64)),
        ([[(5, 5)]], (0, 0)),
        ([[(0, 0), (100, 0)]], (LONGEST * HEIGHT, 0)),
        ([[(-1e6, -3e6), (1e6, 1e6)]], (32, 64)),
        ([[(0, 0), (0, 1e-3)]], (0, 64)),
    ],
)
def test_words_of_any_size_are_drawn_alike(strokes, size):
    drawn = picture(Ink(tuple(map(np.array, strokes)), FRAME))
    assert drawn.shape == (size[1] + 2 * MARGIN + 1, size[0] + 2 * MARGIN + 1)
    assert drawn.min() == 0
    assert (drawn[:5] == 255).all()


class Hands:
    """A style model that knows two writers."""

    hash = "0123456789abcdef"

    def check_known(self, writers):
        if set(writers) - {"of p1", "of p2"}:
            raise DataError("not known")

    def score(self, inks, writers):
        assert len(inks) == 1
        chance = {"of p1": 0.5, "of p2": 0.9}[writers[0]]
        return [SimpleNamespace(probability=chance, top1=chance > 0.6, cosine=0.3, ceiling=0.9, floor=None)]


def test_style_is_of_the_references_writer():
    scores = score(records()[1:], records(), style=Hands())
    assert scores.figures["style"].all.mean == pytest.approx((0 + 0.5 + 0.9) / 3)
    assert scores.figures["style"].valid.mean == pytest.approx(0.7)
    assert scores.figures["style_top1"].all.mean == pytest.approx(1 / 3)
    assert scores.figures["style_cosine"].all.mean is None
    assert scores.figures["style_ceiling"].valid.mean == pytest.approx(0.9)
    assert scores.figures["style_floor"].valid.mean is None
    assert scores.signatures[1]["model"] == "0123456789ab"
    with pytest.raises(DataError, match="not known"):
        score(records(), records(writer="else"), style=Hands())
    with pytest.raises(DataError, match="3 have none, such as 'p1__w0'"):
        score(records(), records(writer=""), style=Hands())


# Groups


def test_groups_are_named_and_micro_and_macro_differ():
    given = records(inks=[ink(0, 3.0), ink(1, 3.0), INKS[2]])
    scores = score(given, records())
    found = scores.by("writer")
    assert list(found.groups) == ["of p1", "of p2"]
    means = [group.figures["dtw"].all.mean for group in found.groups.values()]
    assert found.macro["dtw"].all.mean == pytest.approx(np.mean(means))
    assert scores.figures["dtw"].all.mean == pytest.approx((2 * means[0] + means[1]) / 3)
    assert found.groups["of p1"].counts["valid"] == 2
    assert list(scores.by("length").groups) == [1, 2, 3]
    assert list(scores.by("page").groups) == ["p1", "p2"]


def test_groups_that_nobody_tells_of_are_refused_before_the_work():
    with pytest.raises(DataError, match="no reference tells its dataset, which stands in a record's extra, as 'datas"):
        score(records(), records(), by=["dataset"])
    with pytest.raises(DataError, match="grouped by writer, page, length, dataset, not by 'hand'"):
        score(records(), records(), by=["hand"])
    refs = [
        InkRecord(r.id, r.ink, r.text, {"page": r.extra["page"], "dataset": "d" * k}) for k, r in enumerate(records())
    ]
    assert list(score(records(), refs).by("dataset").groups) == ["d", "dd", "unknown"]


# Files


@pytest.fixture
def scores():
    given = records(shift=1.5)
    return score(given[:2], records(), recognizer=Parrot("ab", "c\nd"), by=["page"])


def test_json_holds_everything_and_no_nan(scores):
    told = json.loads(json.dumps(scores.to_json(), allow_nan=False))
    assert told["format"] == "inktraj scores 1"
    assert told["counts"] == {"valid": 2, "missing": 1, "invalid": 0, "error": 0}
    assert told["figures"]["dtw"]["valid"]["count"] == 2
    assert told["figures"]["shape_cost"]["all"]["mean"] is None
    assert [group["label"] for group in told["by"]["page"]["groups"]] == ["p1", "p2"]
    assert set(told["signatures"]) == {"trajectory", "readability"}
    assert scores.to_json(by=())["by"] == {}


def test_markdown_has_every_figure_twice(scores):
    text = scores.to_markdown()
    assert "| DTW ↓ |" in text
    assert "valid only (66.7%)" in text
    assert "## By page" in text
    assert "3 words: 2 valid, 1 missing, 0 invalid, 0 error; coverage 66.7%" in text
    assert f"`{scores.signatures[0]}`" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows[:10]} == {rows[0].count("|")}


def test_csv_has_a_row_a_word(scores, tmp_path):
    scores.to_csv(tmp_path / "a.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text(encoding="utf-8"))))
    assert [row["name"] for row in rows] == list(NAMES)
    assert [row["status"] for row in rows] == ["valid", "valid", "missing"]
    assert rows[1]["reading"] == "c\nd"
    assert float(rows[0]["dtw"]) == scores.columns["dtw"][0]
    assert rows[2]["shape_cost"] == ""


def test_parquet_comes_back(scores, tmp_path):
    scores.to_parquet(tmp_path / "a.parquet")
    found = read_scores(tmp_path / "a.parquet")
    assert found.words == scores.words
    assert found.to_json() == scores.to_json()
    for name, column in scores.columns.items():
        np.testing.assert_array_equal(column, found.columns[name])


@pytest.mark.parametrize("content", [b"", b"PAR1", b"{}"])
def test_other_files_are_no_scores(content, tmp_path):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(ParseError, match="not scores that inktraj wrote"):
        read_scores(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="cannot be read"):
        read_scores(tmp_path / "b.parquet")


def test_parquet_of_others_is_no_scores(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for meta in (None, {"inktraj": "{}"}, {"inktraj": '{"format": "inktraj scores 1"}'}):
        pq.write_table(pa.table({"name": ["a"]}).replace_schema_metadata(meta), tmp_path / "a.parquet")
        with pytest.raises(ParseError, match="not scores"):
            read_scores(tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"name": ["a"]}).replace_schema_metadata({"inktraj": '{"format": "x"}'}), tmp_path / "a.parquet"
    )
    with pytest.raises(ParseError, match="in the form 'x'"):
        read_scores(tmp_path / "a.parquet")


# Comparing


def test_two_systems_are_compared_on_the_same_words():
    better, worse = score(records(), records()), score(records(shift=4.0)[:2], records())
    found = better.compare(worse)
    assert found["dtw"]["all"].difference == pytest.approx(-worse.figures["dtw"].all.mean)
    assert (found["dtw"]["all"].count, found["dtw"]["valid"].count, found["dtw"]["valid"].left_out) == (3, 2, 1)
    assert found["dtw"]["valid"].second == pytest.approx(worse.figures["dtw"].valid.mean)
    assert found["dtw"]["all"].p_value >= 0.5  # of two pages nothing follows
    parts = found["shape_cost"]
    assert (parts["all"].difference, parts["all"].count, parts["valid"].count) == (None, 0, 2)


def test_micro_figures_are_compared_as_such():
    one = score(records(), records(), recognizer=Parrot("ab", "cde", "f"))
    two = score(records(), records(), recognizer=Parrot("xx", "cde", "f"))
    assert one.compare(two)["ar"]["all"].difference == pytest.approx(2 / 6)


def test_what_may_not_be_compared_is_refused():
    one = score(records(), records())
    with pytest.raises(DataError, match=r"step \(0.01 and 0.02\)"):
        one.compare(score(records(), records(), evaluation=Evaluation(Normalization(step=0.02))))
    with pytest.raises(DataError, match="one has trajectory, the other trajectory, style"):
        one.compare(score(records(), records(), style=Hands()))
    with pytest.raises(DataError, match="1 only in the first, 0 only in the second"):
        one.compare(score(records(), records()[:2]))
    with pytest.raises(DataError, match="same names, but other strokes"):
        one.compare(score(records(), records(shift=1.0)))
    read = score(records(), records(), recognizer=Parrot(*TEXTS))
    mended = [InkRecord(r.id, r.ink, r.text.upper(), r.extra) for r in records()]
    with pytest.raises(DataError, match="3 references have another text, such as 'p1__w0'"):
        read.compare(score(records(), mended, recognizer=Parrot(*TEXTS)))
    assert one.compare(score(records(), mended))["dtw"]["all"].difference == 0  # nobody has read them
    styled, swapped = (score(records(), records(writer=w), style=Hands()) for w in ("of p1", "of p2"))
    with pytest.raises(DataError, match="3 references have another writer"):
        styled.compare(swapped)


# The command


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*args):
        monkeypatch.setattr(sys, "argv", ["inktraj", "score", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return call


@pytest.fixture
def sides(tmp_path):
    write_ink(tmp_path / "pred.jsonl", records(shift=2.0))
    write_ink(tmp_path / "ref.jsonl", records())
    return tmp_path / "pred.jsonl", tmp_path / "ref.jsonl"


def test_the_command_prints_a_table(run, sides):
    code, out, err = run(*sides, "--by", "page", "--by", "length")
    assert (code, err) == (0, "")
    for text in (
        "DTW ↓",
        "valid only (100.0%)",
        "by page",
        "by length",
        "macro (2)",
        "3 valid, 0 missing",
        "trajectory|",
    ):
        assert text in out


@pytest.mark.parametrize(("width", "medians", "intervals"), [(140, 2, 2), (100, 0, 2), (80, 0, 0)])
def test_a_narrow_terminal_does_without_medians_then_intervals(width, medians, intervals, scores, monkeypatch):
    monkeypatch.setattr(report, "_WIDTH", width)
    out = io.StringIO()
    report.show(scores, None, out)
    head = next(line for line in out.getvalue().splitlines() if "valid only (" in line)
    assert (head.count("median"), head.count("95 %")) == (medians, intervals)
    rows = [line for line in out.getvalue().splitlines() if line.startswith((" DTW", " AR"))]
    assert len(rows) == 6
    assert max(map(len, rows)) <= width


def test_the_command_writes_what_the_library_does(run, sides, tmp_path):
    files = {form: tmp_path / f"out.{form}" for form in ("json", "csv", "parquet", "markdown")}
    options = [word for form, path in files.items() for word in (f"--{form}", path)]
    assert run(*sides, "--by", "writer", "--recognizer", "fake_parts:Parrot", *options)[0] == 0
    from fake_parts import Parrot as Fake

    same = inktraj.score(*sides, by=["writer"], recognizer=Fake())
    assert json.loads(files["json"].read_text(encoding="utf-8")) == json.loads(json.dumps(same.to_json()))
    assert files["markdown"].read_text(encoding="utf-8") == same.to_markdown()
    assert inktraj.read_scores(files["parquet"]).words == same.words
    code, out, _ = run(*sides, "--recognizer", "fake_parts:Parrot", "--compare", files["parquet"])
    assert code == 0
    assert "this − other" in out


def test_data_goes_to_standard_output_alone(run, sides):
    code, out, err = run(*sides, "--json", "-", "--seed", "3", "--worst", "2", "--step", "none", "--space", "page")
    assert code == 0
    told = json.loads(out)
    assert told["intervals"]["seed"] == 3
    assert "|norm:page|step:none|bridge:no|invalid:2.0|" in told["signatures"]["trajectory"]
    assert "DTW ↓" in err


def test_a_space_brings_its_own_step(run, sides):
    for space, step in (("none", "none"), ("page", "0.001"), ("reference-box", "0.01")):
        assert f"|norm:{space}|step:{step}|" in run(*sides, "--space", space)[1]


def test_standard_input_may_be_one_side(run, sides, monkeypatch):
    pred, ref = sides
    for form in ((), ("--from", "jsonl")):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pred.read_bytes())))
        assert run("-", ref, *form)[0] == 0


def test_exit_codes_tell_of_what_was_not_used(run, sides):
    pred, ref = sides
    lines = pred.read_text().splitlines()
    pred.write_text("\n".join(lines[:2]))
    assert run(pred, ref)[0] == 0  # a missing word is a result
    pred.write_text("\n".join([*lines, "{"]))
    code, _, err = run(pred, ref)
    assert code == 1
    assert "not used: " in err
    assert "line 4" in err
    ref.write_text("\n".join(ref.read_text().splitlines()[:2]))
    pred.write_text("\n".join(lines))
    code, out, _ = run(pred, ref)
    assert code == 1
    assert "not scored: 1 predictions have no reference, such as 'p2__w0'" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--space", "box"], "the normalisation is 'box'"),
        (["--step", "fine"], "--step is 'fine', expected a number or none or default"),
        (["--worst", "high"], "--worst is 'high', expected a number or far-corner"),
        (["--tolerance", "-1"], "tolerance"),
        (["--case", "lower"], "case is 'lower'"),
        (["--by", "hand"], "not by 'hand'"),
        (["--clusters", "line"], "not 'line'"),
        (["--resamples", "0"], "resamples"),
        (["--recognizer", "nothing"], "there is no recognizer 'nothing'"),
        (["--style", "none.onnx"], "none.onnx"),
        (["--compare", "none.parquet"], "none.parquet"),
        (["--parquet", "-"], "does not go to standard output"),
        (["--json", "no/such/folder.json"], "its folder does not exist"),
        (["--json", "x", "--csv", "x"], "the same name"),
        (["--csv", "{ref}"], "would be overwritten"),
    ],
)
def test_wrong_options_are_told_and_nothing_is_written(options, message, run, sides, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = run(*sides, *(option.format(ref=sides[1]) for option in options))
    assert code == 2
    assert message in err
    assert out == ""
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_both_sides_from_standard_input_are_refused(run):
    assert "cannot both be standard input" in run("-", "-")[2]


def test_a_full_disk_keeps_the_earlier_file(run, sides, tmp_path, monkeypatch):
    (tmp_path / "out.json").write_text("earlier")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    code, _, err = run(*sides, "--json", tmp_path / "out.json")
    assert code == 2
    assert "No space left" in err
    assert (tmp_path / "out.json").read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "pred.jsonl", "ref.jsonl"]


def test_csv_of_texts_with_carriage_returns_is_read_back(tmp_path):
    texts = ("a\rb", 'c,"d"\n|e\r\n', "f")
    mine = [InkRecord(r.id, r.ink, text, r.extra) for r, text in zip(records(), texts, strict=True)]
    score(mine, mine).to_csv(tmp_path / "words.csv")
    data = (tmp_path / "words.csv").read_bytes()
    assert data.count(b"\r\n") == 1
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert [row["text"] for row in rows] == list(texts)
    assert [row["dtw"] for row in rows] == ["0.0"] * 3


def test_scores_that_were_damaged_are_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = tmp_path / "scores.parquet"
    score(records(), records()).to_parquet(file)
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole) - 4000, len(whole))] = rng.integers(256)
        file.write_bytes(damaged)
        with contextlib.suppress(DataError):  # any other error is a fault
            inktraj.read_scores(file)
    file.write_bytes(whole)
    table = pq.read_table(file)
    told = json.loads(table.schema.metadata[b"inktraj"])
    for name, column in (("status", ["valid", "valid", "perfect"]), ("name", ["a", "a", "b"])):
        place = table.column_names.index(name)
        pq.write_table(table.set_column(place, name, pa.array(column)), file)
        with pytest.raises(ParseError, match=r"unknown status, or twice of one name"):
            inktraj.read_scores(file)
    pq.write_table(table.replace_schema_metadata({"inktraj": json.dumps(told | {"signatures": []})}), file)
    with pytest.raises(ParseError, match="not scores that inktraj wrote"):
        inktraj.read_scores(file)


@pytest.mark.parametrize("options", [{"seed": -1}, {"resamples": 0}, {"confidence": 95}, {"clusters": "line"}])
def test_options_of_intervals_are_checked_before_the_work(options):
    with pytest.raises(DataError):
        Drawing(**options)


def test_frames_that_are_the_unit_are_part_of_the_references():
    wide = [InkRecord(r.id, Ink(r.ink.strokes, Frame(800, 100)), r.text, r.extra) for r in records()]
    page = Evaluation(Normalization("page"))
    with pytest.raises(DataError, match="the references have the same names, but other"):
        score(wide, wide, evaluation=page).compare(score(records(), records(), evaluation=page))
    assert score(wide, wide).compare(score(records(), records()))["dtw"]["all"].difference == 0


def test_an_ink_without_extent_is_drawn_as_a_dot():
    dot = picture(Ink([[(5, 5)]], FRAME))
    assert np.array_equal(picture(Ink([[(0, 0), (1e-320, 0)]], FRAME)), dot)


@pytest.mark.parametrize("target", ["nowhere", "loop.jsonl"])
def test_links_that_lead_nowhere_are_told_of(tmp_path, target):
    as_shards(tmp_path)
    (tmp_path / "loop.jsonl").symlink_to(target)
    with pytest.raises(DataError, match=r"loop\.jsonl: no file that can be read"):
        score(records(), tmp_path)
    found = score(tmp_path, records())
    assert list(found.unread) == ["loop"]
    assert found.counts["valid"] == 3


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    as_shards(tmp_path)
    (tmp_path / "more").mkdir()
    scan = os.scandir

    def closed(path):
        if str(path).endswith("more"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(DataError, match=r"more: cannot be read \(Permission denied\)"):
        read_words(tmp_path)


def test_file_names_that_are_no_text_are_written(tmp_path):
    try:
        for name in (b"\xff.jsonl", b"p\xfe.svg"):
            (tmp_path / os.fsdecode(name)).write_text('{"id": "p1__w0"}\nbad\n')
    except OSError:
        pytest.skip("this file system takes names of text only")
    found = score(tmp_path, records())
    assert found.counts["invalid"] == 1
    found.to_parquet(tmp_path / "scores.parquet")
    found.to_csv(tmp_path / "scores.csv")
    assert inktraj.read_scores(tmp_path / "scores.parquet").unread == found.unread
    json.dumps(found.to_json(), ensure_ascii=False).encode()


def test_tables_are_shown_whatever_the_terminal_takes():
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    report.show(score(records(), records()), None, out)
    assert b"DTW ?" in out.buffer.getvalue()


def test_a_full_disk_is_told_of_by_the_table():
    scores = score(records(), records())
    with open("/dev/full", "w", encoding="utf-8") as full:
        with pytest.raises(DataError, match="cannot be written"):
            report.show(scores, None, full)
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # else closing it fails again


def test_names_do_not_steer_the_terminal():
    named = records(writer="\x1b[2J\nanna")
    out = io.StringIO()
    report.show(score(named, named, by=["writer"]), None, out)
    assert "\ufffd[2J\ufffdanna" in out.getvalue()
    assert "\x1b" not in out.getvalue()
