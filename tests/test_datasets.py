"""Data sets: manifests, samples, the demo set, pseudo-label folders, IAM-OnDB's form, checks and counts."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest

from inktraj import cli
from inktraj.datasets import load_dataset, manifests, read_manifest
from inktraj.datasets.compose import MARGIN, PEN, SCALE, compose_page
from inktraj.datasets.iamondb import (
    RecordedLine,
    find_forms,
    read_line,
    read_splits,
    read_text_lines,
    words_of,
    writer_of,
)
from inktraj.datasets.manifest import demo_folder
from inktraj.datasets.opening import FOLDER_VARIABLE, find
from inktraj.datasets.prepare import prepare
from inktraj.datasets.records import image_by_source, image_within
from inktraj.datasets.statistics import draw, statistics
from inktraj.datasets.verification import verify
from inktraj.errors import DataError, ParseError, RunError
from inktraj.ink import Frame, Ink
from inktraj.pseudolabel import build_pseudolabels
from inktraj.rendering import coverage
from inktraj.scoring.sources import read_words

ROOT = Path(__file__).resolve().parent.parent
MANIFESTS = sorted((ROOT / "data_manifests").glob("*.toml"))
IAM = ROOT / "tests" / "data" / "datasets" / "iam-ondb"
DEMO = ROOT / "examples" / "demo"
FAKES = {"segmenter": "fake_parts:Bars", "recoverer": "fake_parts:Middle", "recognizer": "fake_parts:Parrot"}


# Manifests


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_every_manifest_can_be_used(path):
    manifest = read_manifest(path)
    assert manifest.name == path.stem
    assert replace(manifests()[manifest.name], place="") == replace(manifest, place="")  # the package may be elsewhere
    assert manifest.licence
    assert manifest.citation
    assert manifest.url.startswith("https://") or not manifest.url


def test_the_published_figures_of_inkground_are_recorded():
    figures = manifests()["inkground"].statistics
    assert figures == {
        "pages": 537,
        "words": 18700,
        "strokes": 163400,
        "words_per_page": 34.89,
        "strokes_per_page": 304.3,
        "points_per_stroke": 49,
        "fewest_words": 2,
        "most_words": 140,
    }


MANIFEST = """\
name = "mine"
version = "1"
title = "t"
layout = "pages"
references = "recorded"
licence = "l"
citation = "c"
url = ""
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mine"', 'name = "My set"', "small letters"),
        ('layout = "pages"', 'layout = "folders"', "one of pages, pseudo-labels, iam-ondb"),
        ('references = "recorded"', 'references = "true"', "one of recorded, pseudo-label"),
        ('licence = "l"', "", "licence is None"),
        ('licence = "l"', 'licence = ""', "licence is empty"),
        ('version = "1"', "version = 1", "version is 1, expected a text"),
        ('url = ""', 'url = ""\nlicense = "l"', "unknown license"),
        ('url = ""', 'url = ""\nstatistics = {pages = "4"}', "pages is '4', expected a number"),
        ('url = ""', 'url = ""\nstatistics = {pages = true}', "pages is True"),
        ('url = ""', 'url = ""\nsplits = ["a"]', "expected a table"),
        ('url = ""', 'url = ""\nfiles = [{path = "../a"}]', "does not lie within"),
        ('url = ""', 'url = ""\nfiles = [{path = "/a"}]', "does not lie within"),
        ('url = ""', 'url = ""\nfiles = [{path = "a", size = 3}]', "unknown size"),
        ('url = ""', 'url = ""\nfiles = [{path = "a", count = 0}]', "whole number from 1"),
        ('url = ""', 'url = ""\nfiles = [{path = "a", sha256 = "12"}]', "64 hexadecimal"),
        ('url = ""', f'url = ""\nfiles = [{{path = "*", sha256 = "{"0" * 64}"}}]', "several files"),
        ('url = ""', "url = ", "not TOML"),
    ],
)
def test_a_manifest_with_a_fault_is_refused(tmp_path, old, new, message):
    path = tmp_path / "mine.toml"
    path.write_text(MANIFEST, encoding="utf-8")
    assert read_manifest(path).name == "mine"
    path.write_text(MANIFEST.replace(old, new), encoding="utf-8")
    with pytest.raises(ParseError, match=message):
        read_manifest(path)


# The demo set and what a data set is


@pytest.fixture(scope="module")
def demo():
    return load_dataset("demo")


def test_the_demo_set_is_whole(demo):
    found = verify("demo")
    assert found.problems == found.skipped == ()
    figures = manifests()["demo"].statistics
    assert found.counts["words"] == figures["words"] == len(demo)
    assert figures["strokes"] == sum(len(sample.ink.strokes) for sample in demo)
    assert 60 <= len(demo) <= 100
    assert len(demo.pages) == 4
    assert sum(path.stat().st_size for path in DEMO.rglob("*") if path.is_file()) < 1_500_000


def test_a_dataset_is_a_sequence_of_samples(demo):
    assert demo.name == "demo"
    assert demo.references == "recorded"
    assert demo.filtered_by == ""
    assert [sample.id for sample in demo] == list(demo.ids)
    assert demo[-1].id == demo[len(demo) - 1].id == demo.ids[-1]
    assert [sample.id for sample in demo[3:40:7]] == list(demo.ids[3:40:7])
    assert demo.by_id(demo.ids[30]).text == demo[30].text
    assert repr(demo) == "<Dataset demo 1: 92 samples on 4 pages>"
    with pytest.raises(IndexError):
        demo[len(demo)]
    with pytest.raises(DataError, match="no sample 'x'"):
        demo.by_id("x")


def test_samples_tell_of_their_word_and_its_place(demo):
    page = demo.pages[0]
    texts = [sample.text for sample in page.samples]
    assert texts[:4] == ["Dear", "Nora,", "the", "plums"]
    assert [sample.index for sample in page.samples] == list(range(len(texts)))
    for i, sample in enumerate(page.samples):
        assert sample.occurrence == texts[: i + 1].count(sample.text)
        assert sample.occurrences == texts.count(sample.text)
        assert sample.page_id == page.id == "note1"
        assert sample.writer == page.writer == "hand1"
        assert sample.ink.frame == Frame(1000, 720) == page.picture.frame
        x0, y0, x1, y1 = sample.box
        a, b, c, d = sample.ink.bounds
        assert x0 <= a <= c <= x1
        assert y0 <= b <= d <= y1
    assert max(sample.occurrences for sample in page.samples) == 4
    assert [sample.line for sample in page.samples] == sorted(sample.line for sample in page.samples)
    assert len({sample.writer for sample in demo}) == 4


def test_scoring_calls_the_same_words_the_same(demo):
    assert list(read_words(DEMO / "pages.jsonl").words) == list(demo.ids)


def test_the_true_strokes_lie_on_the_ink_of_the_photo(demo):
    for page in demo.pages:
        gray = cv2.cvtColor(page.picture.open().pixels, cv2.COLOR_RGB2GRAY)
        dark = cv2.medianBlur(gray, 51).astype(int) - gray > 12
        middle = coverage(Ink.concat([sample.ink for sample in page.samples], page.picture.frame), pen=1.5)
        assert (middle & dark).sum() / middle.sum() > 0.95, page.id


def test_the_demo_set_comes_from_its_recipe(demo):
    pytest.importorskip("HersheyFonts", reason='the page generator needs pip install "inktraj[pages]"')
    spec = importlib.util.spec_from_file_location("make_demo", ROOT / "pipelines" / "make_demo.py")
    recipe = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    try:
        spec.loader.exec_module(recipe)
    finally:
        sys.path[:] = path
    _, _, words = recipe.make(1)
    samples = demo.pages[1].samples
    assert [word.text for word in words] == [sample.text for sample in samples]
    # Not to the last digit: another version of NumPy or OpenCV may round differently.
    for word, sample in zip(words, samples, strict=True):
        assert np.allclose(word.ink.bounds, sample.ink.bounds, atol=0.5)


def test_data_sets_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with pytest.raises(DataError, match=r"is known but was not found.*Unpack"):
        load_dataset("iam-ondb")
    shutil.copytree(DEMO, tmp_path / "iam-ondb")
    (tmp_path / "iam-ondb" / "manifest.toml").write_text(MANIFEST, encoding="utf-8")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert find("iam-ondb").root == tmp_path / "iam-ondb"
    with pytest.raises(DataError, match="known are: demo, iam-ondb, inkground, pseudo-labels"):
        load_dataset("no-such-set")
    with pytest.raises(DataError, match="no such folder"):
        load_dataset(tmp_path / "nothing")
    with pytest.raises(DataError, match="no data set, expected"):
        load_dataset(tmp_path)
    assert load_dataset(tmp_path / "iam-ondb").name == "mine"


# A folder of pages with faults


@pytest.fixture
def folder(tmp_path):
    """A copy of the demo set with the manifest of one's own, to be spoilt."""
    shutil.copytree(DEMO, tmp_path / "mine")
    (tmp_path / "mine" / "manifest.toml").write_text(MANIFEST, encoding="utf-8")
    return tmp_path / "mine"


def change(folder, edit):
    """Rewrite the page records after `edit` has changed the list of them."""
    records = [json.loads(line) for line in (folder / "pages.jsonl").read_text(encoding="utf-8").splitlines()]
    edit(records)
    (folder / "pages.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


def test_words_that_cannot_be_asked_for_are_told_and_still_count_as_occurrences(folder):
    def edit(records):
        words = records[0]["words"]
        words[2]["strokes"] = []  # the first "the"
        words[3]["text"] = "  "
        words[4]["cut_confidence"] = 0.3
        words[5]["cut_confidence"] = 0.7

    change(folder, edit)
    data = load_dataset(folder)
    assert len(data) == 89
    assert [str(problem) for problem in data.skipped] == [
        "word 'note1__w02': it has no strokes",
        "word 'note1__w03': it has no text by which it could be asked for",
        "word 'note1__w04': where it begins and ends in its line is not sure (0.30, expected 0.5 or more)",
    ]
    second = data.by_id("note1__w11")
    assert (second.text, second.occurrence, second.occurrences, second.index) == ("the", 2, 2, 11)


def test_a_page_without_words_is_told(folder):
    change(folder, lambda records: records[1].update(words=[]))
    data = load_dataset(folder)
    assert len(data.pages) == 3
    assert [str(problem) for problem in data.skipped] == ["page 'note2': it has no word with text and strokes"]


def test_pages_without_any_word_are_no_data_set(folder):
    change(folder, lambda records: [record.update(words=[]) for record in records])
    with pytest.raises(DataError, match="no word in it to be asked for; such as page 'note1'"):
        load_dataset(folder)


def test_a_byte_order_mark_and_empty_lines_do_no_harm(folder):
    lines = (folder / "pages.jsonl").read_bytes()
    (folder / "pages.jsonl").write_bytes(b"\xef\xbb\xbf" + lines.replace(b"\n", b"\n\n"))
    data = load_dataset(folder)
    assert [sample.id for sample in data] == list(load_dataset("demo").ids)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda r: r[1].update(page_id="note1"), "line 2: the page 'note1' is there twice, before in line 1"),
        (lambda r: r[0]["words"][1].update(id="w00"), "the word 'note1__w00' is there twice"),
        (lambda r: r[1].update(page_id=7), "page_id is 7"),
        (lambda r: r[1].update(words=None), "no page record"),
        (lambda r: r[1].update(words=[3]), "a word is not an object"),
        (lambda r: r[1].update(writer=3), "writer is 3, expected a string"),
        (lambda r: r[1]["words"][0].update(text=3), "text is 3"),
        (lambda r: r[1]["words"][0].update(strokes="x"), "strokes a str"),
    ],
)
def test_a_page_list_with_a_fault_is_refused_at_once(folder, edit, message):
    change(folder, edit)
    with pytest.raises(DataError, match=message):
        load_dataset(folder)
    assert message.split(",")[0] in verify(folder).problems[0].reason


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda r: r[1].update(width=0), "a page of 0×720 pixels"),
        (lambda r: r[1]["words"][0]["strokes"][0].__setitem__(2, 0), "first stroke's start is missing"),
        (lambda r: r[1]["words"][0]["strokes"][0].__setitem__(0, "x"), "expected a list of"),
        (lambda r: r[1]["words"][0].update(polygon=[[1, "a"]]), "outline of word"),
        (lambda r: r[1].update(image="../demo.jpg"), "lies outside"),
    ],
)
def test_a_page_with_a_fault_is_told_when_it_is_read(folder, edit, message):
    change(folder, edit)
    data = load_dataset(folder)
    assert len(data.pages[0].samples) == 26
    with pytest.raises(DataError, match=message):
        data.pages[1]
    assert [message in problem.reason for problem in verify(folder).problems] == [True]


def test_a_list_that_is_cut_short_or_gone_is_refused(folder):
    whole = (folder / "pages.jsonl").read_bytes()
    (folder / "pages.jsonl").write_bytes(whole[:-50])
    with pytest.raises(ParseError, match=r"line 4: not JSON.*cut short"):
        load_dataset(folder)
    (folder / "pages.jsonl").unlink()
    with pytest.raises(DataError, match=r"there is no pages\.jsonl in it"):
        load_dataset(folder)


def test_a_list_that_changes_under_way_is_noticed(folder):
    data = load_dataset(folder)
    change(folder, lambda records: records.reverse())
    with pytest.raises(DataError, match=r"open it again|not JSON"):
        data.pages[2]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.unlink(), r"its image images/note2\.jpg was not found"),
        (lambda path: shutil.copy(path.with_name("note1.jpg"), path), "has the digest a9112f"),
        (lambda path: path.write_bytes(b"<html>"), "note2"),
    ],
)
def test_an_image_that_is_not_the_right_one_is_refused(folder, spoil, message):
    spoil(folder / "images" / "note2.jpg")
    data = load_dataset(folder)
    assert data.pages[1].samples[0].text == "Bus"
    with pytest.raises(DataError, match=message):
        data.pages[1].picture.open()
    assert len(verify(folder).problems) == 1


def test_an_image_of_another_size_is_refused(folder):
    change(folder, lambda records: records[1].update(sha256="", width=999))
    with pytest.raises(DataError, match="1000×720 pixels, expected 999×720"):
        load_dataset(folder).pages[1].picture.open()


def test_words_beside_the_page_are_a_problem(folder):
    change(folder, lambda records: records[1].update(sha256="", width=1000, height=720, words=records[1]["words"]))
    change(folder, lambda r: [p.__setitem__(0, p[0] + 5000) for p in r[1]["words"][0]["strokes"]])
    change(folder, lambda r: r[1]["words"][0].pop("polygon"))
    assert [str(p) for p in verify(folder).problems] == ["note2: 1 words lie outside of the page, such as note2__w00"]


def test_splits_are_kept_apart(folder):
    change(folder, lambda records: [r.update(split=s) for r, s in zip(records, ["a", "b", "a", ""], strict=True)])
    assert [page.id for page in load_dataset(folder, split="a").pages] == ["note1", "note3"]
    assert load_dataset(folder, split="b")[0].split == "b"
    assert len(load_dataset(folder).pages) == 4
    with pytest.raises(DataError, match="no page is of the split 'c'; there are: a, b"):
        load_dataset(folder, split="c")


def test_what_a_manifest_says_of_files_is_looked_at(folder):
    rules = f'[[files]]\npath = "images/*.jpg"\ncount = 5\n[[files]]\npath = "pages.jsonl"\nsha256 = "{"0" * 64}"\n'
    rules += '[[files]]\npath = "lists/*"\n'
    (folder / "manifest.toml").write_text(MANIFEST + rules, encoding="utf-8")
    reasons = [problem.reason for problem in verify(folder).problems]
    assert len(reasons) == 3
    assert reasons[0] == "there are 4, expected 5"
    assert "expected 000000000000" in reasons[1]
    assert reasons[2] == "there is no such file"


# Pseudo-label folders


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A finished run over two pages with three words each, one of which cannot be read alike."""
    root = tmp_path_factory.mktemp("labelled")
    (root / "pages").mkdir()
    for name, gray in (("letter", 50), ("note", 60)):
        pixels = np.full((60, 200), 255, np.uint8)
        for x in (10, 70, 130):
            pixels[20:34, x : x + 40] = gray
        cv2.imwrite(str(root / "pages" / f"{name}.png"), pixels)
    build_pseudolabels(root / "pages", root / "out", workers=0, **FAKES)
    return root


def test_a_pseudo_label_run_is_a_data_set(labelled):
    data = load_dataset(labelled / "out")
    assert data.name == "out"
    assert data.references == "pseudo-label"
    assert data.filtered_by
    assert data.filtered_by == json.loads((labelled / "out" / "settings.json").read_text())["recognizer"]
    assert len(data.pages) + data.not_kept == 2
    words = read_words(labelled / "out", reference=True).words
    assert [sample.id for sample in data] == [name for name, word in words.items() if word.text and word.ink.strokes]
    assert data[0].ink == words[data[0].id].ink
    assert data.pages[0].picture.open().width == 200
    assert verify(labelled / "out").problems == ()


def test_pages_that_were_not_kept_are_counted(labelled, tmp_path):
    shutil.copytree(labelled / "out", tmp_path / "out")
    change(tmp_path / "out", lambda records: records[1].update(verdict="dropped"))
    data = load_dataset(tmp_path / "out")
    assert (len(data.pages), data.not_kept) == (1, 1)


def test_page_images_may_have_moved(labelled, tmp_path):
    shutil.copytree(labelled, tmp_path / "moved")
    change(tmp_path / "moved" / "out", lambda r: [p.update(source=f"/gone/{Path(p['source']).name}") for p in r])
    data = load_dataset(tmp_path / "moved" / "out")
    with pytest.raises(DataError, match=r"/gone/letter\.png was not found.*--images"):
        data.pages[0].picture.open()
    assert len(verify(tmp_path / "moved" / "out").problems) == 2
    there = load_dataset(tmp_path / "moved" / "out", images=tmp_path / "moved" / "pages")
    assert there.pages[0].picture.open().height == 60


def test_images_are_found_in_archives_and_behind_page_numbers(tmp_path):
    from inktraj.datasets.records import image_by_source

    (tmp_path / "a.zip").write_bytes(b"")
    (tmp_path / "b.tif").write_bytes(b"")
    (tmp_path / "c#page=2").write_bytes(b"")
    look = image_by_source(None)

    def found(told):
        source = look({"page_id": "p", "source": told}, tmp_path)
        return source and (Path(source.path).name, source.member, source.index)

    assert found(str(tmp_path / "a.zip!x/y.png")) == ("a.zip", "x/y.png", 0)
    assert found("b.tif#page=3") == ("b.tif", None, 2)
    assert found("c#page=2") == ("c#page=2", None, 0)
    assert found("d.tif") is None
    assert found("") is None


def test_a_run_that_is_not_finished_is_refused(labelled, tmp_path):
    shutil.copytree(labelled / "out", tmp_path / "out")
    (tmp_path / "out" / "pages.jsonl").unlink()
    with pytest.raises(DataError, match="is it finished"):
        load_dataset(tmp_path / "out")


# IAM-OnDB's form


@pytest.fixture
def iam(tmp_path):
    """A copy of the small set in IAM-OnDB's form, to be spoilt."""
    shutil.copytree(IAM, tmp_path / "iam")
    return tmp_path / "iam"


LINE = "lineStrokes/a01/a01-000/a01-000u-01.xml"
TEXT = "ascii/a01/a01-000/a01-000u.txt"


def test_forms_are_found_with_their_lines_and_text():
    forms, problems = find_forms(IAM)
    assert problems == []
    assert [form.id for form in forms] == ["a01-000u", "b02-013z"]
    assert [path.name for path in forms[0].lines] == ["a01-000u-01.xml", "a01-000u-02.xml"]
    assert read_text_lines(forms[0].text) == ["Dear Nora,", "Love, Edith"]
    line, problems = read_line(forms[0].lines[0])
    assert problems == []
    assert len(line.strokes) == len(line.times) == 4
    assert line.strokes[0].shape[1] == 2
    assert line.times[0][0] == 100.0
    assert (writer_of(IAM, "a01-000u"), writer_of(IAM, "z09-000a"), writer_of(IAM, "?")) == ("10001", "", "")


def edit_file(path, old, new):
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"</StrokeSet>", b"", "not well-formed XML"),
        (
            b"<WhiteboardCaptureSession>",
            b"<WhiteboardCaptureSession><ink/></WhiteboardCaptureSession>",
            "not well-formed",
        ),
        (b' time="100.00"', b"", "time of a point is None"),
        (b'<Point x="', b'<Point x="twelve" a="', "x of a point is 'twelve'"),
        (b'<Point x="', b'<Point x="nan" a="', "x of a point is 'nan'"),
        (b"top_left", b"bottom_right", "corner is 'bottom_right', expected 'top_left'"),
        (b'<SensorLocation corner="top_left"/>', b"", "corner is 'not told'"),
        (
            b"<WhiteboardCaptureSession>",
            b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><WhiteboardCaptureSession>&b;',
            "its own entities",
        ),
        (b"ISO-8859-1", b"no-such-code", "encoding"),
    ],
)
def test_a_line_file_with_a_fault_is_refused(iam, old, new, message):
    edit_file(iam / LINE, old, new)
    with pytest.raises(ParseError, match=message):
        read_line(iam / LINE)
    (problem,) = verify(iam).problems
    assert problem.place == "a01-000u"
    assert message in problem.reason


@pytest.mark.parametrize("data", [b"", b"\n", b"<ink></ink>", b"\x89PNG"])
def test_other_files_are_no_lines(iam, data):
    (iam / LINE).write_bytes(data)
    with pytest.raises(ParseError):
        read_line(iam / LINE)


def test_a_line_without_strokes_is_refused(iam):
    (iam / LINE).write_text(
        '<WhiteboardCaptureSession><WhiteboardDescription><SensorLocation corner="top_left"/></WhiteboardDescription>'
        "<StrokeSet/></WhiteboardCaptureSession>"
    )
    with pytest.raises(DataError, match="no stroke in it"):
        read_line(iam / LINE)


def test_empty_strokes_and_times_that_go_back_are_told(iam):
    edit_file(iam / LINE, b"<StrokeSet>", b"<StrokeSet><Stroke/>")
    edit_file(iam / LINE, b'time="100.03"', b'time="99.00"')
    line, problems = read_line(iam / LINE)
    assert line.times is None
    assert [problem.reason for problem in problems] == [
        "a stroke without points is left out",
        "times go backwards and are left out",
    ]


def test_transcripts_may_be_latin_1_and_have_a_byte_order_mark(iam):
    text = "OCR:\nx\nCSR:\n\nDéar &quot;Nora&quot;,\r\n\r\n  Love \n"
    for data in (text.encode("latin-1"), text.encode(), b"\xef\xbb\xbf" + text.encode()):
        (iam / TEXT).write_bytes(data)
        assert read_text_lines(iam / TEXT) == ['Déar "Nora",', "Love"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 sections"),
        ("OCR:\na\n", "0 sections"),
        ("CSR:\na\nCSR:\nb", "2 sections"),
        ("OCR:\na\nCSR:\n\n", "empty"),
    ],
)
def test_transcripts_without_lines_as_written_are_refused(iam, text, message):
    (iam / TEXT).write_text(text)
    with pytest.raises(ParseError, match=message):
        read_text_lines(iam / TEXT)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a MOVE to", ["a", "MOVE", "to"]),
        ("Mr . Gaitskell , from", ["Mr.", "Gaitskell,", "from"]),
        ("( a ) b", ["(a)", "b"]),
        (". a", [".", "a"]),
        ("he said - no", ["he", "said", "-", "no"]),
        ("a (", ["a("]),
        ("(", ["("]),
        ("", []),
    ],
)
def test_marks_alone_go_to_their_words(line, words):
    assert words_of(line) == words


def test_lists_of_forms_give_the_splits(iam):
    patterns = manifests()["iam-ondb"].splits
    assert read_splits(iam, patterns, ["a01-000u", "b02-013z"]) == ({"a01-000u": "test", "b02-013z": "train"}, [])
    (iam / "testset_v.txt").write_bytes(b"\xef\xbb\xbfa01-000u\r\nc03-000a\r\n")
    of, problems = read_splits(iam, patterns, ["a01-000u", "b02-013z"])
    assert of["a01-000u"] == "validation"
    assert sorted(problem.reason for problem in problems) == [
        "1 of its forms have no line files: c03-000a",
        "it is of the split validation too; that counts",
    ]


def test_what_is_odd_in_a_copy_is_told(iam):
    (iam / "lineStrokes" / "a01" / "readme.txt").write_text("x")
    (iam / "ascii" / "c03-000a.txt").write_text("CSR:\na")
    shutil.copy(iam / TEXT, iam / "ascii" / "a01-000u.txt")
    (iam / "lineStrokes" / "x").mkdir()
    shutil.copy(iam / LINE, iam / "lineStrokes" / "x" / "a01-000u-01.xml")
    (iam / "ascii" / "b02" / "b02-013" / "b02-013z.txt").unlink()
    reasons = " | ".join(problem.reason for problem in verify(iam).problems)
    for told in (
        "no line file, expected",
        "no line file of this form",
        "the text is there twice",
        "the line is there twice",
    ):
        assert told in reasons
    assert "there is no text of this form" in reasons
    with pytest.raises(DataError, match="there are no line files"):
        find_forms(iam / "ascii")


def test_iam_ondb_is_opened_by_its_pages_only():
    with pytest.raises(DataError, match="inktraj data prepare"):
        load_dataset(IAM)


# Pages of lines


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    out = tmp_path_factory.mktemp("prepared") / "out"
    return prepare(IAM, out)


def test_lines_become_pages_with_their_words(prepared):
    assert (prepared.pages, prepared.reused, prepared.words, prepared.problems) == (2, 0, 13, ())
    data = load_dataset(prepared.out)
    assert data.name == "iam-ondb"
    assert data.references == "recorded"
    assert (
        " ".join(sample.text for sample in data) == "Dear Nora, Love, Edith old bridge. Take the path by the river, not"
    )
    assert [page.writer for page in data.pages] == ["10001", "10002"]
    assert [page.split for page in data.pages] == ["test", "train"]
    assert verify(prepared.out).problems == ()
    for page in data.pages:
        dark = page.picture.open().pixels.min(axis=2) < 128
        middle = coverage(Ink.concat([sample.ink for sample in page.samples], page.picture.frame), pen=1)
        assert (middle & dark).sum() == middle.sum()
        assert not (dark & ~coverage(Ink.concat([s.ink for s in page.samples], page.picture.frame), pen=PEN + 2)).any()


def test_prepared_words_are_those_that_were_recorded(prepared):
    line, _ = read_line(IAM / LINE)
    first, second = load_dataset(prepared.out)[:2]
    assert (first.text, second.text) == ("Dear", "Nora,")
    for sample, places in ((first, (0, 1)), (second, (2, 3))):
        assert sample.ink.times_source == "recorded"
        for stroke, times, i in zip(sample.ink.strokes, sample.ink.times, places, strict=True):
            assert np.allclose(stroke - first.ink.strokes[0][0], (line.strokes[i] - line.strokes[0][0]) * SCALE)
            assert np.allclose(times, line.times[i] - line.times[0][0], atol=1e-3)


def files_of(out):
    return {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_a_stopped_run_is_taken_up_and_gives_the_same_files(prepared, tmp_path):
    def stop(done, total):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(IAM, tmp_path / "out", progress=stop)
    assert not (tmp_path / "out" / "pages.jsonl").exists()
    again = prepare(IAM, tmp_path / "out")
    assert (again.pages, again.reused) == (2, 1)
    assert files_of(tmp_path / "out") == files_of(prepared.out)


def test_what_a_kill_or_a_hand_left_is_done_anew(prepared, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / ".inktraj-0123456789abcdef.tmp").write_text('{"format": "inktr')
    assert prepare(IAM, out).reused == 0
    record = out / "forms" / "a01-000u.json"
    record.write_bytes(record.read_bytes()[:50])
    (out / "images" / "b02-013z.png").unlink()
    assert prepare(IAM, out).reused == 0
    (out / ".inktraj-0123456789abcdef.tmp").unlink()
    assert files_of(out) == files_of(prepared.out)
    shutil.rmtree(out)
    out.mkdir()
    (out / "forms").mkdir()
    with pytest.raises(RunError, match="not of an earlier run"):
        prepare(IAM, out)


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000])
def test_a_name_that_no_file_can_have_is_not_found(name, tmp_path):
    page = json.loads((DEMO / "pages.jsonl").read_text().splitlines()[0]) | {"image": name, "source": name}
    for finder in (image_within, image_by_source(None), image_by_source(tmp_path)):
        assert finder(page, tmp_path) is None


@pytest.mark.parametrize(
    ("change", "word", "told"),
    [
        ({"pen": 1e308}, {}, "pen is 1e"),
        ({"pen": -1}, {}, "pen is -1"),
        ({"pen": "2"}, {}, "pen is '2'"),
        ({}, {"writer": 5}, "writer is 5, expected a string"),
    ],
)
def test_records_that_would_fail_later(change, word, told, tmp_path):
    page = json.loads((DEMO / "pages.jsonl").read_text().splitlines()[0]) | change
    page["words"][0] |= word
    (tmp_path / "pages.jsonl").write_text(json.dumps(page) + "\n")
    shutil.copy(DEMO.parents[1] / "data_manifests" / "demo.toml", tmp_path / "manifest.toml")
    with pytest.raises(ParseError, match=told):
        load_dataset(tmp_path)


def test_a_pattern_that_cannot_be_searched_for(tmp_path):
    text = (ROOT / "data_manifests" / "demo.toml").read_text()
    (tmp_path / "manifest.toml").write_text(text.replace('path = "README.md"', 'path = "images/**x"'))
    with pytest.raises(ParseError, match=r"a \*\* that is not a whole folder"):
        read_manifest(tmp_path / "manifest.toml")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_no_forms(limit, tmp_path):
    with pytest.raises(DataError, match=f"limit is {limit}, expected at least 1"):
        prepare(IAM, tmp_path / "out", limit=limit)


def test_a_form_whose_counts_differ_is_told_and_not_guessed(iam, tmp_path):
    edit_file(iam / TEXT, b"\nLove, Edith\n", b"\n")
    done = prepare(iam, tmp_path / "out")
    assert done.pages == 1
    (problem,) = done.problems
    assert problem.place == "a01-000u"
    assert "2 line files and 1 lines of text" in problem.reason
    assert json.loads((tmp_path / "out" / "problems.jsonl").read_bytes())["place"] == "a01-000u"
    # Put right, the form is done by the same command.
    shutil.copy(IAM / TEXT, iam / TEXT)
    done = prepare(iam, tmp_path / "out")
    assert (done.pages, done.reused, done.problems) == (2, 1, ())


@pytest.mark.parametrize(
    ("path", "old", "new"), [(LINE, b'<Point x="', b'<Point x="1'), (TEXT, b"\nLove, Edith", b"\nLove, Edit")]
)
def test_a_page_whose_source_has_changed_is_made_anew(iam, tmp_path, path, old, new):
    prepare(iam, tmp_path / "out")
    before = files_of(tmp_path / "out")
    assert prepare(iam, tmp_path / "out").reused == 2
    edit_file(iam / path, old, new)
    assert prepare(iam, tmp_path / "out").reused == 1
    assert files_of(tmp_path / "out")[Path("pages.jsonl")] != before[Path("pages.jsonl")]


def test_problems_of_earlier_runs_are_told_again(iam, tmp_path):
    edit_file(iam / LINE, b'time="100.03"', b'time="99.00"')
    shutil.rmtree(iam / "original" / "b02")
    first, second = (prepare(iam, tmp_path / "out").problems for _ in range(2))
    assert first == second
    assert [problem.reason for problem in first] == [
        "times go backwards and are left out",
        "the writers of 1 forms are not known: there is no original of them",
    ]
    assert load_dataset(tmp_path / "out")[0].ink.times is None


def test_a_copy_without_a_usable_form_is_refused(iam, tmp_path):
    shutil.rmtree(iam / "ascii")
    with pytest.raises(DataError, match=r"no form of 2 could be used; the first: a01-000u"):
        prepare(iam, tmp_path / "out")


def test_more_words_than_strokes_are_told(iam, tmp_path):
    edit_file(iam / TEXT, b"CSR: \n\nDear Nora,", b"CSR: \n\na b c d e f g h i j")
    (problem,) = prepare(iam, tmp_path / "out").problems
    assert "line 1: 4 strokes cannot be cut into the 10 words" in problem.reason


def test_a_folder_of_something_else_is_left_alone(iam, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("x")
    with pytest.raises(RunError, match=r"'letter\.txt'.*nothing was touched"):
        prepare(iam, tmp_path / "out", overwrite=True)
    with pytest.raises(RunError, match="is a file"):
        prepare(iam, tmp_path / "out" / "letter.txt")
    prepare(IAM, tmp_path / "pages", limit=1)
    with pytest.raises(RunError, match="pages of other settings: source"):
        prepare(iam, tmp_path / "pages")
    assert prepare(iam, tmp_path / "pages", overwrite=True).pages == 2
    (tmp_path / "pages" / "prepare.json").write_text("{")
    with pytest.raises(RunError, match="is damaged"):
        prepare(iam, tmp_path / "pages")


def line_at(x, y, length=400.0, height=100.0):
    """A line of two strokes."""
    wave = np.array([[0, 0], [0.2, 1], [0.4, 0]]) * (length, height) + (x, y)
    return RecordedLine((wave, wave + np.array([0.6 * length, 0])), None)


@pytest.mark.parametrize(
    ("tops", "placing"),
    [
        ((0, 200, 400), "whiteboard"),
        ((0, 210, 370), "whiteboard"),
        ((0, 200, 30), "stacked"),  # written anew above
        ((0, 10, 20), "stacked"),  # over one another
        ((0, 200, 4000), "stacked"),  # far away
    ],
)
def test_lines_keep_their_places_where_these_make_a_page(tops, placing):
    page = compose_page([line_at(50, top) for top in tops], [["ab", "cd"]] * 3)
    assert page.placing == placing
    assert len(page.words) == 6
    first, *_, last = (word.ink for word in page.words)
    assert first.bounds[:2] == (MARGIN, MARGIN)
    height = page.pixels.shape[0]
    assert last.bounds[3] == pytest.approx(height - MARGIN - 1, abs=1)
    tops_now = [word.ink.bounds[1] for word in page.words[::2]]
    if placing == "whiteboard":
        assert np.allclose(np.diff(tops_now), np.diff(tops) * SCALE)
    else:
        assert (np.diff(tops_now) > 100 * SCALE).all()
        assert height < 300


# Counting


def test_statistics_count_what_is_there(demo):
    found = statistics(demo)
    samples = list(demo)
    strokes = [stroke for sample in samples for stroke in sample.ink.strokes]
    figures = found.figures
    assert figures["pages"] == 4
    assert figures["words"] == len(samples) == sum(found.words_per_page)
    assert figures["strokes"] == len(strokes) == sum(found.strokes_per_page)
    assert figures["points"] == sum(map(len, strokes))
    assert figures["words_per_page"] == len(samples) / 4
    assert figures["points_per_stroke"] == pytest.approx(np.mean([len(stroke) for stroke in strokes]))
    assert (figures["fewest_words"], figures["most_words"]) == (21, 26)
    assert figures["writers"] == 4
    assert found.points_per_stroke == Counter(map(len, strokes))
    assert found.top_words[:2] == (("the", 8), ("as", 6))
    assert len(found.top_words) == 20
    assert json.loads(json.dumps(found.to_json()))["figures"]["words"] == len(samples)


def test_words_are_counted_whatever_their_case_and_marks(folder):
    texts = ["You", "you", "you!", '"I', "-", "love,"]

    def edit(records):
        del records[1:]
        del records[0]["words"][len(texts) :]
        for word, text in zip(records[0]["words"], texts, strict=True):
            word["text"] = text

    change(folder, edit)
    found = statistics(load_dataset(folder))
    assert found.top_words == (("you", 3), ("I", 1), ("love", 1))
    assert found.figures["different_words"] == 3


def test_the_drawing_is_one_svg_with_all_counts(demo):
    found = statistics(demo)
    root = ElementTree.fromstring(draw(found))
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "the: 8"
    counts = [int(title.rsplit(": ", 1)[1]) for title in titles]
    assert sum(counts[20:]) == 4 + 4 + found.figures["strokes"]


# The command line


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*args):
        monkeypatch.setattr(sys, "argv", ["inktraj", "data", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return call


def test_list_tells_what_is_known_and_where(run, monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    code, out, _ = run("list")
    assert code == 0
    assert "demo 1: Made notes with their true pen movement, shipped with the package\n" in out
    assert str(demo_folder()) in out
    assert "not found; Unpack" in out
    rows = json.loads(run("list", "--json")[1])
    assert {row["name"]: row["found"] for row in rows}["demo"] == str(demo_folder())


def test_verify_tells_all_problems(run, folder):
    assert run("verify", "demo")[:2] == (
        0,
        f"demo in {demo_folder()}: files 6; pages 4; words 92; strokes 295; skipped 0; not kept 0\n"
        "all is as it should be\n",
    )
    (folder / "images" / "note2.jpg").unlink()
    change(folder, lambda records: records[2].update(words=[]))
    code, out, err = run("verify", folder)
    assert code == 1
    assert "pages 3; words 70; strokes " in out
    assert "no sample: page 'note3'" in err
    assert "problem: page 2: page 'note2': its image images/note2.jpg was not found" in err
    told = json.loads(run("verify", folder, "--json")[1])
    assert len(told["problems"]) == len(told["skipped"]) == 1
    code, out, err = run("verify", "inkground")
    assert (code, out) == (2, "")
    assert "is known but was not found" in err


def test_prepare_and_stats(run, iam, tmp_path):
    assert run("prepare", iam, "--out", tmp_path / "out")[:2] == (0, f"{tmp_path / 'out'}: 2 pages, 13 words\n")
    (iam / "ascii" / "x.txt").write_text("CSR:\na")
    code, out, err = run("prepare", iam, "--out", tmp_path / "out")
    assert (code, out) == (1, f"{tmp_path / 'out'}: 2 pages (2 of them done before), 13 words\n")
    assert "there is no line file of this form" in err
    assert run("prepare", iam, "--out", tmp_path / "one", "--limit", "1")[1].endswith("1 pages, 4 words\n")
    code, out, _ = run("stats", tmp_path / "out", "--svg", tmp_path / "s.svg")
    assert code == 0
    assert re.search(r"^words per page +6\.50 +34\.89$", out, re.MULTILINE)
    assert "most frequent: the 2" in out
    assert (tmp_path / "s.svg").read_text().startswith("<svg")
    told = json.loads(run("stats", tmp_path / "out", "--split", "test", "--json")[1])
    assert told["figures"]["words"] == 4


def test_prepare_can_be_interrupted(run, tmp_path, monkeypatch):
    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("inktraj.datasets.prepare.read_line", interrupt)
    code, _, err = run("prepare", IAM, "--out", tmp_path / "out")
    assert code == 130
    assert "the same command goes on" in err


def test_folders_that_are_not_there_or_not_for_this_are_told(tmp_path, folder):
    with pytest.raises(DataError, match="no such folder"):
        prepare(tmp_path / "none", tmp_path / "out")
    with pytest.raises(DataError, match="holds its images itself"):
        load_dataset(folder, images=tmp_path)
