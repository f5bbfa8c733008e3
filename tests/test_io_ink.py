"""Ink exchange: InkML, JSONL and SVG bring ink back to the stated precision, and say where a file is wrong."""

from __future__ import annotations

import io
import json
import os
import tempfile
import threading
import tracemalloc
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inktraj.errors import DataError, ParseError
from inktraj.ink import Frame, Ink
from inktraj.io import InkRecord, read_ink, sniff_ink, write_ink
from inktraj.io.files import number, number_list
from inktraj.io.inkml import read_inkml, write_inkml
from inktraj.io.jsonl import read_jsonl, write_jsonl
from inktraj.io.svg import IgnoredElements, read_svg, write_svg
from inktraj.io.svg_path import FLATNESS, parse_path

FORMS = {"inkml": (read_inkml, write_inkml), "jsonl": (read_jsonl, write_jsonl), "svg": (read_svg, write_svg)}

words = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff", include_characters="\n\t\r"),
    max_size=12,
)
coordinates = st.floats(-1e5, 1e5, allow_subnormal=False)


@st.composite
def records(draw: st.DrawFn) -> InkRecord:
    frame = Frame(
        draw(st.floats(1e-3, 1e5)), draw(st.floats(1e-3, 1e5)), draw(st.sampled_from(["px", "mm", "my unit"]))
    )
    lengths = draw(st.lists(st.integers(1, 4), max_size=3))
    strokes = [np.array(draw(st.lists(st.tuples(coordinates, coordinates), min_size=n, max_size=n))) for n in lengths]
    ends = np.cumsum(lengths)[:-1]
    count = sum(lengths)
    widths = times = source = None
    if lengths and draw(st.booleans()):
        values = draw(st.lists(st.floats(0, 100, allow_subnormal=False), min_size=count, max_size=count))
        widths = tuple(np.split(np.array(values), ends))
    if lengths and draw(st.booleans()):
        values = sorted(draw(st.lists(st.floats(0, 2e9), min_size=count, max_size=count)))
        times = tuple(np.split(np.array(values), ends))
        source = draw(st.sampled_from([None, "recorded", "estimated"]))
    extra = draw(st.dictionaries(words.filter(str.strip), words, max_size=2))
    return InkRecord(draw(words), Ink(tuple(strokes), frame, widths, times, source), draw(words), extra)


def assert_close(a: InkRecord, b: InkRecord, digits: float = 5e-7) -> None:
    """Seven significant digits are within 5e-7 of a value; times within a microsecond."""
    assert (a.text, dict(a.extra), a.ink.frame) == (b.text, dict(b.extra), b.ink.frame)
    assert a.ink.times_source == b.ink.times_source
    assert [len(s) for s in a.ink.strokes] == [len(s) for s in b.ink.strokes]
    for p, q in zip(a.ink.strokes, b.ink.strokes, strict=True):
        np.testing.assert_allclose(p, q, rtol=digits, atol=1e-300)
    for name, rtol, atol in (("widths", digits, 1e-300), ("times", 1e-15, 1e-6)):
        u, v = getattr(a.ink, name), getattr(b.ink, name)
        assert (u is None) == (v is None)
        for p, q in zip(u or (), v or (), strict=True):
            np.testing.assert_allclose(p, q, rtol=rtol, atol=atol)


def there_and_back(form: str, given_records: list[InkRecord]) -> list[InkRecord]:
    read, write = FORMS[form]
    file = io.BytesIO()
    write(file, given_records)
    return read(io.BytesIO(file.getvalue()))


@given(st.lists(records(), max_size=3))
@settings(deadline=None, max_examples=60)
@pytest.mark.parametrize("form", FORMS)
def test_each_form_brings_records_back(form: str, given_records: list[InkRecord]) -> None:
    got = there_and_back(form, given_records)
    assert len(got) == len(given_records)
    for a, b in zip(got, given_records, strict=True):
        assert_close(a, b, 0 if form == "jsonl" else 5e-7)
        # InkML has to name a record without an id, as a data set's key may not be empty there.
        assert a.id == b.id or (form == "inkml" and not b.id)


@given(st.lists(records(), max_size=3))
@settings(deadline=None, max_examples=30)
def test_the_forms_agree_with_each_other(given_records: list[InkRecord]) -> None:
    """InkML → SVG → JSONL: the second rounding to seven digits finds nothing left to round."""
    first = there_and_back("inkml", given_records)
    last = there_and_back("jsonl", there_and_back("svg", first))
    for a, b in zip(last, first, strict=True):
        assert_close(a, b, 1e-15)


WORD = InkRecord(
    "w1",
    Ink(([[1, 2], [3.25, 4], [5, 6]], [[7, 8]]), Frame(40, 30), ([1, 2, 1], [3]), ([0, 0.5, 1], [1.25])),
    "né",
    {"page": "p1"},
)


def test_what_inkml_looks_like_to_another_parser() -> None:
    file = io.StringIO()
    write_inkml(file, [WORD])
    space = {"i": "http://www.w3.org/2003/InkML"}
    root = ElementTree.fromstring(file.getvalue().encode())
    assert [c.get("name") for c in root.iterfind(".//i:channel", space)] == ["X", "Y", "W", "T"]
    group = root.find("i:traceGroup", space)
    assert group is not None
    assert group.get("{http://www.w3.org/XML/1998/namespace}id") == "w1"
    assert group.findtext("i:annotation[@type='truth']", namespaces=space) == "né"
    assert [t.text for t in group.iterfind("i:trace", space)] == [
        "1 2 1 0.000, 3.25 4 2 500.000, 5 6 1 1000.000",
        "7 8 3 1250.000",
    ]


def test_what_svg_looks_like() -> None:
    file = io.StringIO()
    write_svg(file, [WORD])
    text = file.getvalue()
    assert 'viewBox="-0.5 -0.5 40.0 30.0"' in text
    assert '<path d="M1 2L3.25 4 5 6"' in text
    assert '<path d="M7 8l0 0"' in text
    ElementTree.fromstring(text)


def test_jsonl_line() -> None:
    file = io.StringIO()
    write_jsonl(file, [WORD])
    assert json.loads(file.getvalue()) == {
        "id": "w1",
        "text": "né",
        "frame": {"width": 40, "height": 30, "unit": "px"},
        "strokes": [[1, 2, 1], [3.25, 4, 0], [5, 6, 0], [7, 8, 1]],
        "widths": [1, 2, 1, 3],
        "times": [0, 0.5, 1, 1.25],
        "extra": {"page": "p1"},
    }


@given(st.lists(st.floats(-1e300, 1e300), max_size=5))
def test_numbers_are_written_as_one_at_a_time(values: list[float]) -> None:
    assert number_list(np.array(values)) == " ".join(number(v) for v in values)


def test_two_equal_points_are_no_dot() -> None:
    ink = Ink(([[1, 1], [1, 1]], [[1, 1]]), Frame(4, 4))
    for form in FORMS:
        assert there_and_back(form, [InkRecord("a", ink)])[0].ink == ink


# Paths, streams, suffixes


@pytest.mark.parametrize("form", FORMS)
def test_paths_and_file_objects(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"ink.{form}"
    write_ink(path, [WORD])
    for source in (path, str(path), io.BytesIO(path.read_bytes()), io.StringIO(path.read_text(encoding="utf-8"))):
        assert_close(read_ink(source)[0], WORD)
    with path.open("rb") as file:
        assert read_ink(file)[0].id == "w1"
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as file:
        write_ink(file, [WORD], form)
        file.seek(0)
        assert read_ink(file, form)[0].text == "né"
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert_close(read_ink(tmp_path / "bom")[0], WORD)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_written_whole_or_left_as_it_was(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"ink.{form}"
    write_ink(path, [WORD])
    before = path.read_bytes()
    path.chmod(0o640)
    (tmp_path / f"link.{form}").symlink_to(path.name)
    bad = InkRecord("a", WORD.ink, "\ud800")
    if form != "jsonl":
        with pytest.raises(DataError):
            write_ink(path, [WORD, bad])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"cannot be written \(No space left"):
            write_ink(path, [WORD, WORD])
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"ink.{form}", f"link.{form}"]
    write_ink(tmp_path / f"link.{form}", [WORD, WORD])
    assert (tmp_path / f"link.{form}").is_symlink()
    assert len(path.read_bytes()) > len(before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"ink.{form}", f"link.{form}"]
    with pytest.raises(DataError, match="No such file"):
        write_ink(tmp_path / "nowhere" / f"ink.{form}", [WORD])
    with pytest.raises(DataError, match="cannot be written"):
        write_ink(tmp_path, [WORD], form)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
def test_pipes_and_open_files_are_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.svg")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "fifo.svg").read_bytes()))
    reader.start()
    write_ink(tmp_path / "fifo.svg", [WORD])
    reader.join()
    assert_close(read_ink(io.BytesIO(got[0]))[0], WORD)
    assert (tmp_path / "fifo.svg").is_fifo()
    if os.path.isdir("/dev/fd"):
        with open(tmp_path / "open.svg", "wb") as file:
            write_ink(f"/dev/fd/{file.fileno()}", [WORD], "svg")
            assert os.fstat(file.fileno()).st_size == len(got[0])  # the same file, not another in its place


def test_the_form_is_named_by_suffix_or_content_or_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="its suffix names no form"):
        write_ink(tmp_path / "ink.txt", [WORD])
    with pytest.raises(DataError, match="no form of ink is named 'xml'"):
        write_ink(tmp_path / "ink.svg", [WORD], "xml")
    with pytest.raises(ParseError, match="neither InkML nor SVG nor JSONL"):
        read_ink(io.BytesIO(b"\x89PNG..."))
    assert sniff_ink(b'<?xml version="1.0"?><!-- about <svg> --><i:ink xmlns:i="x">') in ("inkml", "svg")
    with pytest.raises(DataError, match="cannot be read"):
        read_ink(tmp_path / "missing.svg")
    with pytest.raises(DataError, match="cannot be written"):
        write_ink(tmp_path / "missing" / "ink.svg", [WORD])


@pytest.mark.parametrize("form", ["inkml", "svg"])
@pytest.mark.parametrize("text", ["a\x00b", "a\x1fb", "\ud800", "\uffff"])
def test_characters_that_xml_cannot_hold_are_refused(form: str, text: str) -> None:
    with pytest.raises(DataError, match=r"U\+"):
        FORMS[form][1](io.BytesIO(), [InkRecord("a", WORD.ink, text)])


# InkML by others


def inkml(body: str, root: str = '<ink xmlns="http://www.w3.org/2003/InkML">') -> list[InkRecord]:
    return read_inkml(io.StringIO(f"{root}\n{body}</ink>"))


def points(record: InkRecord) -> list[list[list[float]]]:
    return [s.tolist() for s in record.ink.strokes]


CROHME = """<traceFormat><channel name="X" type="decimal"/><channel name="Y" type="decimal"/></traceFormat>
<annotation type="truth">$x+1$</annotation><annotation type="writer">w7</annotation>
<trace id="0">1 2, 3 4</trace><trace id="1">
5 6, 7 8
</trace><trace id="2">9 10</trace>
<traceGroup xml:id="3"><annotation type="truth">Segmentation</annotation>
  <traceGroup xml:id="4"><annotation type="truth">x</annotation>
    <traceView traceDataRef="0"/><traceView traceDataRef="1"/><annotationXML href="x_1"/></traceGroup>
  <traceGroup xml:id="5"><annotation type="truth">1</annotation><traceView traceDataRef="2"/></traceGroup>
</traceGroup>"""


def test_crohme() -> None:
    first, second = inkml(CROHME)
    assert (first.id, first.text, points(first)) == ("4", "x", [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    assert (second.id, second.text, points(second)) == ("5", "1", [[[9, 10]]])
    assert first.extra["ink.truth"] == "$x+1$"
    assert first.extra["frame"] == "inferred"
    assert first.ink.frame == Frame(8, 9)


def test_inksight_style_traces_without_groups() -> None:
    body = '<annotation type="textField">hello</annotation><trace>1 2,3 4</trace><trace>5 6</trace>'
    (record,) = inkml(body)
    assert (record.id, record.text, len(record.ink.strokes)) == ("ink", "hello", 2)


@pytest.mark.parametrize("root", ["<ink>", '<ink xmlns="other">', '<i:ink xmlns:i="http://www.w3.org/2003/InkML">'])
def test_namespaces(root: str) -> None:
    prefix = "i:" if "i:ink" in root else ""
    body = f"{root}<{prefix}trace>1 2</{prefix}trace></{prefix}ink>"
    assert points(read_inkml(io.StringIO(body))[0]) == [[[1, 2]]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 2, 3 4", [[1, 2], [3, 4]]),
        ("1 2,3 4,", [[1, 2], [3, 4]]),
        ("1.5 2e1, .5 4.", [[1.5, 20], [0.5, 4]]),
        ("!1 !2, 3 4", [[1, 2], [3, 4]]),
        ("10 20, '1 '2, 3 4, 1 1", [[10, 20], [11, 22], [14, 26], [15, 27]]),
        ("""1125 18432,'23'43,"7"-8,3-5,7 -3,6 2,6 8,3 6""", None),
        ("#10 #fF, 1 2", [[16, 255], [1, 2]]),
        ("5 6, * 7, 8 *", [[5, 6], [5, 7], [8, 7]]),
        ("10 20, '1'2, !5 3", [[10, 20], [11, 22], [5, 25]]),
    ],
)
def test_values(text: str, expected: list[list[float]] | None) -> None:
    if expected is None:
        # The standard's example: both columns by first, then by second differences.
        x, y, vx, vy = 1125 + 23, 18432 + 43, 23, 43
        expected = [[1125, 18432], [x, y]]
        for ax, ay in ((7, -8), (3, -5), (7, -3), (6, 2), (6, 8), (3, 6)):
            vx, vy = vx + ax, vy + ay
            x, y = x + vx, y + vy
            expected.append([x, y])
    (record,) = inkml(f"<trace>{text}</trace>")
    assert points(record) == [expected]


CONTEXTS = """<definitions>
<traceFormat xml:id="f"><channel name="T" units="s"/><channel name="Y" orientation="-ve" units="mm"/>
<channel name="X" units="mm"/>
<intermittentChannels><channel name="B1" type="boolean"/></intermittentChannels></traceFormat>
<context xml:id="c" traceFormatRef="#f"/></definitions>"""


def test_contexts_channels_and_orientation() -> None:
    (record,) = inkml(CONTEXTS + '<trace contextRef="#c">0.5 1 2 T, 0.75 3 4</trace>')
    assert points(record) == [[[2, 2], [4, 0]]]
    assert record.ink.times is not None
    assert record.ink.times[0].tolist() == [0.5, 0.75]
    assert record.ink.frame.unit == "mm"
    assert record.extra["moved"] == "0 3"


def test_pen_up_and_continued_traces() -> None:
    body = """<trace xml:id="a" continuation="begin">1 1</trace><trace type="penUp">50 50</trace>
    <trace xml:id="b" continuation="middle" priorRef="#a">2 2</trace><trace>9 9</trace>
    <trace continuation="end" priorRef="#b">3 3</trace><trace></trace>"""
    assert points(inkml(body)[0]) == [[[1, 1], [2, 2], [3, 3]], [[9, 9]]]


def test_times_that_go_backwards_are_dropped_with_a_note() -> None:
    body = '<traceFormat><channel name="X"/><channel name="Y"/><channel name="T"/></traceFormat>'
    (record,) = inkml(body + "<trace>1 1 5</trace><trace>2 2 4</trace>")
    assert record.ink.times is None
    assert "backwards" in record.extra["times"]


BILLION = '<!DOCTYPE ink [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><ink><annotation>&b;</annotation></ink>'
EXTERNAL = '<!DOCTYPE ink [<!ENTITY x SYSTEM "file:///etc/passwd">]><ink><annotation>&x;</annotation></ink>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no element found"),
        ("<ink><trace>1 2</ink>", "line 1, column 18: not well-formed"),
        ("<html/>", "root is <html>"),
        ("<WhiteboardCaptureSession/>", "IAM-OnDB"),
        ("<ink>\n<trace>1 2 3</trace></ink>", r"line 2: point 0 has 3 numbers, expected 2 \(X Y"),
        ("<ink><trace>1 2, 3</trace></ink>", "point 1 has 1 numbers"),
        ("<ink><trace>1 x</trace></ink>", "'x' is not a value"),
        ("<ink><trace>1 ?</trace></ink>", "point 0 is unknown"),
        ("<ink><trace>* 1</trace></ink>", "point 0 is unknown"),
        ("<ink><trace>1e999 1</trace></ink>", "beyond all numbers"),
        (f"<ink><trace>#{'F' * 400} 1</trace></ink>", "beyond all numbers"),
        ("<ink><trace contextRef='#no'>1 2</trace></ink>", "'#no', which is not here"),
        ("<ink><traceGroup><traceView traceDataRef='#no'/></traceGroup></ink>", "refers to 'no'"),
        ("<ink><traceFormat><channel name='X'/></traceFormat><trace>1</trace></ink>", "expected X and Y"),
        ("<ink><trace continuation='end' priorRef='#a'>1 2</trace></ink>", "was not read before"),
        (
            "<ink><trace xml:id='a'>1 2</trace><trace continuation='middle' priorRef='#a'>3 4</trace>"
            "<trace continuation='end'>5 6</trace></ink>",
            "was not read before",
        ),
        ("<ink><traceGroup><annotation type='frame'>big</annotation></traceGroup></ink>", "the frame is 'big'"),
        (BILLION, "entities"),
        (EXTERNAL, "entities"),
        ("<ink>" * 300 + "</ink>" * 300, "nested deeper"),
        ("<?xml version='1.0' encoding='no-such'?><ink/>", "encoding"),
    ],
)
def test_malformed_inkml(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as error:
        read_inkml(io.BytesIO(text.encode()))
    assert "<stream>" in str(error.value)


def test_a_plain_doctype_is_harmless() -> None:
    assert read_inkml(
        io.StringIO("<!DOCTYPE ink SYSTEM 'http://nowhere.invalid/ink.dtd'><ink><trace>1 2</trace></ink>")
    )


# JSONL


def test_page_records_of_a_data_set() -> None:
    page = {
        "page_id": "p1",
        "width": 100,
        "height": 50,
        "verdict": "kept",
        "words": [
            {"id": "w1", "text": "a", "strokes": [[1, 2, 1], [3, 4, 0]], "widths": [2, 2.5]},
            {"id": "p1-w2", "text": None, "strokes": [], "widths": None},
            {"id": "p10", "text": "", "strokes": [], "widths": None},
        ],
    }
    failed = {"page_id": "p2", "width": None, "height": None, "words": []}
    first, second, third = read_jsonl(io.StringIO(f"{json.dumps(page)}\n\n{json.dumps(failed)}\n"))
    assert (first.id, first.text, first.ink.frame) == ("p1__w1", "a", Frame(100, 50))
    assert first.extra == {"page": "p1", "verdict": "kept"}
    assert first.ink.widths is not None
    assert (second.id, second.text, second.ink.strokes) == ("p1-w2", "", ())
    assert third.id == "p1__p10"  # begins like the page's id, but does not name it


FRAME = '"frame":{"width":9,"height":9}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2, column 2: not JSON"),
        ("[1]", "line 2: a list, expected an object"),
        ('{"id":"a"}', "frame is missing"),
        ('{"frame":{"width":0,"height":9},"strokes":[]}', "width must be a positive number"),
        ('{"frame":{"width":"9","height":9},"strokes":[]}', "expected two numbers"),
        (f"{{{FRAME}}}", "strokes is missing"),
        (f'{{{FRAME},"strokes":[[1,2]]}}', r"point 0 is \[1, 2\]"),
        (f'{{{FRAME},"strokes":[[1,2,1],[1,"2",0]]}}', "point 1 is"),
        (f'{{{FRAME},"strokes":[[1,true,1]]}}', "point 0 is"),
        (f'{{{FRAME},"strokes":[[1,NaN,1]]}}', "NaN is not a JSON number"),
        (f'{{{FRAME},"strokes":[[1,1e999,1]]}}', "infinity"),
        (f'{{{FRAME},"strokes":[[1,2,0]]}}', "first stroke's start is missing"),
        (f'{{{FRAME},"strokes":[[1,2,5]]}}', "s must be 0 or 1"),
        (f'{{{FRAME},"strokes":[[1,2,1]],"widths":[1,2]}}', "2 widths for 1 points"),
        (f'{{{FRAME},"strokes":[[1,2,1],[1,2,0]],"times":[2,1]}}', "times go backwards"),
        (f'{{{FRAME},"strokes":[],"text":5}}', "text is a number"),
        ('{"words":[5],"width":9,"height":9}', "words is not a list of objects"),
        ('{"words":[{"strokes":[[1]]}],"width":9,"height":9}', r"word 0 \(w0\): strokes, point 0"),
        ("[" * 100_000, "nested too deeply"),
        ('{"frame":{"width":1' + "0" * 400 + ',"height":9},"strokes":[]}', "line 2"),
    ],
)
def test_malformed_jsonl(line: str, message: str) -> None:
    good = '{"frame":{"width":9,"height":9},"strokes":[]}'
    with pytest.raises(ParseError, match=message):
        read_jsonl(io.StringIO(f"{good}\n{line}\n"))


def test_text_that_is_not_utf8_is_placed() -> None:
    with pytest.raises(ParseError, match=r"line 2: byte 4 \(0xe9\) is not UTF-8"):
        read_jsonl(io.BytesIO(b"\n{a:\xe9}"))


# SVG by others


def svg(body: str, attributes: str = 'viewBox="0 0 100 50"') -> InkRecord:
    (record,) = read_svg(io.StringIO(f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{body}</svg>'))
    return record


def test_drawing_of_somebody_else() -> None:
    body = '<g transform="translate(10,20)"><path d="M0.5 0.5 L1.5,1.5"/><line x1="1" y1="2" x2="3" y2="4"/></g>'
    record = svg(body)
    assert record.ink.frame == Frame(100, 50)
    assert points(record) == [[[10, 20], [11, 21]], [[10.5, 21.5], [12.5, 23.5]]]


def test_frame_of_a_drawing_without_view_box() -> None:
    assert svg('<path d="M1 1L2 2"/>', 'width="30px" height="20"').ink.frame == Frame(30, 20)
    record = svg('<path d="M-3 1L2 2"/>', 'width="100%"')
    assert record.extra == {"frame": "inferred", "moved": "4 0"}
    assert record.ink.bounds == (0.5, 0.5, 5.5, 1.5)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("M1 2L3 4", [[[1, 2], [3, 4]]]),
        ("M1,2,3,4", [[[1, 2], [3, 4]]]),
        ("m1 2 3 4l-1-1", [[[1, 2], [4, 6], [3, 5]]]),
        ("M1 2H5V7h-1v-1", [[[1, 2], [5, 2], [5, 7], [4, 7], [4, 6]]]),
        ("M0 0L1 0 1 1Z", [[[0, 0], [1, 0], [1, 1], [0, 0]]]),
        ("M1 1L2 1zl0 5", [[[1, 1], [2, 1], [1, 1]], [[1, 1], [1, 6]]]),
        ("M1 1L2 1Zm1 1l1 1", [[[1, 1], [2, 1], [1, 1]], [[2, 2], [3, 3]]]),
        ("M.5.5L1e1-2", [[[0.5, 0.5], [10, -2]]]),
        ("M1 1l0 0", [[[1, 1]]]),
        ("M1 1L1 1", [[[1, 1], [1, 1]]]),
        ("M1 1L2 2M9 9", [[[1, 1], [2, 2]]]),
        ("", []),
    ],
)
def test_path_data(data: str, expected: list[list[list[float]]]) -> None:
    assert [p.tolist() for p in parse_path(data)] == expected


@pytest.mark.parametrize(
    ("data", "controls"),
    [
        ("M0 0C0 60 100 -60 100 0", [(0, 0), (0, 60), (100, -60), (100, 0)]),
        ("M5 5c0 60 100 -60 100 0", [(5, 5), (5, 65), (105, -55), (105, 5)]),
        ("M0 0Q50 90 100 0", [(0, 0), (50, 90), (100, 0)]),
        ("M0 0S20 90 100 0", [(0, 0), (0, 0), (20, 90), (100, 0)]),
    ],
)
def test_curves_are_flat_to_the_stated_distance(data: str, controls: list[tuple[float, float]]) -> None:
    """The slow, obvious twin: De Casteljau's construction at 2,000 places, each near a line of ours."""
    (path,) = parse_path(data)
    t = np.linspace(0, 1, 2000)[:, None]
    layers = [np.broadcast_to(np.array(c, float), (2000, 2)) for c in controls]
    while len(layers) > 1:
        layers = [(1 - t) * a + t * b for a, b in pairwise(layers)]
    assert len(path) < 200
    np.testing.assert_allclose(path[[0, -1]], [controls[0], controls[-1]])
    assert max(distance_to_line(p, path) for p in layers[0]) <= FLATNESS


def distance_to_line(p: Any, line: Any) -> float:
    a, d = line[:-1], np.diff(line, axis=0)
    share = (((p - a) * d).sum(axis=1) / (d**2).sum(axis=1)).clip(0, 1)[:, None]
    return float(np.hypot(*(a + share * d - p).T).min())


def test_many_curves_take_no_more_memory_than_their_points_need() -> None:
    tracemalloc.start()
    try:
        (path,) = parse_path("M0 0" + "c1 1 50 2 3 3" * 5000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(path) > 100_000
    np.testing.assert_allclose(path[-1], [15_000, 15_000])
    assert peak < 4 * path.nbytes  # points as Python objects took 10 times as much as in an array


def test_smooth_curves_go_on_where_the_last_one_pointed() -> None:
    whole = parse_path("M0 0C0 5 5 10 10 10 15 10 20 15 20 20M0 0Q5 9 10 0 15 -9 20 0")
    short = parse_path("M0 0C0 5 5 10 10 10S20 15 20 20M0 0Q5 9 10 0T20 0")
    for a, b in zip(whole, short, strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        ("translate(5)", (8, 4)),
        ("translate(5 6)", (8, 10)),
        ("scale(2)", (6, 8)),
        ("scale(2,-1)", (6, -4)),
        ("matrix(1 2 3 4 5 6)", (20, 28)),
        ("rotate(90)", (-4, 3)),
        ("rotate(90 3 0)", (-1, 0)),
        ("skewX(45)", (7, 4)),
        ("skewY(45)", (3, 7)),
        ("translate(1,0) scale(2)", (7, 8)),
        ("", (3, 4)),
    ],
)
def test_transforms(transform: str, expected: tuple[float, float]) -> None:
    record = svg(f'<polyline points="3,4 3,4" transform="{transform}"/>')
    np.testing.assert_allclose(record.ink.strokes[0][0] + 0.5, expected, atol=1e-12)


def test_shapes_and_what_is_not_drawn() -> None:
    body = """<defs><path d="M0 0L9 9"/></defs>
    <polygon points="1 1 2 1 2 2"/><polyline points=""/>"""
    assert points(svg(body)) == [[[0.5, 0.5], [1.5, 0.5], [1.5, 1.5], [0.5, 0.5]]]


def test_what_is_left_out_is_counted() -> None:
    with pytest.warns(IgnoredElements, match="1 <circle>, 2 <text>"):
        record = svg('<path d="M0 0L1 1"/><text>a</text><circle r="3"/><g><text>b</text></g>')
    assert len(record.ink.strokes) == 1


@pytest.mark.parametrize(
    "hidden",
    [
        'display="none"',
        'style="display:none"',
        'style="stroke: red; Display : NONE !important" display="inline"',
        'visibility="hidden"',
        'visibility="collapse"',
        'style="visibility:hidden"',
    ],
)
def test_hidden_strokes_are_left_out_and_counted(hidden: str) -> None:
    with pytest.warns(IgnoredElements, match="left out 1 hidden <path>: no strokes, or not seen"):
        assert points(svg(f'<path d="M0 0L9 9" {hidden}/><path d="M1 1L2 1"/>')) == [[[0.5, 0.5], [1.5, 0.5]]]
    group = f'<g {hidden}><path d="M0 0L9 9"/><g><path d="M0 0L8 9"/><line x2="3"/></g></g>'
    with pytest.warns(IgnoredElements, match="1 hidden <line>, 2 hidden <path>"):
        assert points(svg(f'{group}<path d="M1 1L2 1"/>')) == [[[0.5, 0.5], [1.5, 0.5]]]


def test_what_is_seen_within_what_is_hidden() -> None:
    body = '<path d="M0 0L9 9"/><g style="visibility:visible"><path d="M1 1L2 1" style="stroke:red"/></g>'
    with pytest.warns(IgnoredElements, match="1 hidden <path>"):
        assert points(svg(f'<g visibility="hidden">{body}</g>')) == [[[0.5, 0.5], [1.5, 0.5]]]
    body = '<path d="M0 0L9 9" visibility="visible"/>'
    with pytest.warns(IgnoredElements, match="1 hidden <path>"):
        assert points(svg(f'<g display="none">{body}</g><path d="M1 1L2 1"/>')) == [[[0.5, 0.5], [1.5, 0.5]]]


def test_own_records_beside_other_strokes() -> None:
    file = io.StringIO()
    write_svg(file, [WORD])
    text = file.getvalue().replace("</svg>", '<path d="M0 0L1 1"/></svg>')
    own, other = read_svg(io.StringIO(text))
    assert_close(own, WORD)
    assert points(other) == [[[0, 0], [1, 1]]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('<path d="L1 2"/>', "begin with 'L'"),
        ('<path d="M1"/>', "'M' at position 0 has 1 numbers"),
        ('<path d="M1 2 3"/>', "has 3 numbers"),
        ('<path d="M1 2 L"/>', "has 0 numbers"),
        ('<path d="M1 2 Z5"/>', "has 1 numbers"),
        ('<path d="M1 2 X5"/>', "'X5' at position 5"),
        ('<path d="M1 2A5 5 0 0 1 9 9"/>', "elliptic arc at position 4"),
        ('<path d="M1 2L1e999 3"/>', "beyond all coordinates"),
        ('<polyline points="1 2 3"/>', "3 numbers, expected pairs"),
        ('<polyline points="1 b"/>', "'b' at position 2"),
        ('<line x1="5mm"/>', "is not a number"),
        ('<path d="M0 0L1 1" transform="spin(5)"/>', "spin"),
        ('<path d="M0 0L1 1" transform="scale(1 2 3)"/>', "scale with 3 numbers"),
        ('<path d="M0 0L1 1" transform="scale 5"/>', "not of SVG's grammar"),
        ('<g data-text="a" data-frame="9"/>', "not as inktraj writes it"),
        ('<g data-text="a" data-frame="9 9 px" data-extra="5"/>', "not as inktraj writes it"),
        ('<g data-text="a" data-frame="9 9 px"><path d="M0 0L1 1" data-widths="1"/></g>', "one number for each point"),
    ],
)
def test_malformed_svg(body: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as error:
        svg("\n" + body)
    assert "<stream>, line 2" in str(error.value)


def test_a_transform_beyond_all_coordinates() -> None:
    with pytest.raises(ParseError, match="NaN or infinity"):
        svg('<path d="M0 0L1e300 1" transform="scale(1e300)"/>')


@pytest.mark.parametrize("attributes", ['viewBox="0 0 5"', 'viewBox="0 0 0 5"', 'viewBox="a"'])
def test_malformed_view_box(attributes: str) -> None:
    with pytest.raises(ParseError):
        svg('<path d="M0 0L1 1"/>', attributes)


def test_svg_root() -> None:
    with pytest.raises(ParseError, match="root is <html>"):
        read_svg(io.StringIO("<html/>"))
    assert read_svg(io.StringIO("<svg/>")) == []


@pytest.mark.parametrize("form", FORMS)
def test_damaged_files_never_escape_as_other_errors(rng: np.random.Generator, form: str) -> None:
    file = io.BytesIO()
    FORMS[form][1](file, [WORD, InkRecord("w2", WORD.ink, "b")])
    data = np.frombuffer(file.getvalue() + (CONTEXTS + CROHME).encode() * (form == "inkml"), np.uint8)
    useful = np.frombuffer(b"0123456789-.,'\"<>/= {}[]MLCQZelx#*?TF\n\xff\x00", np.uint8)
    for _ in range(400):
        damaged = data.copy()
        where = rng.integers(0, len(data), 3)
        damaged[where] = rng.choice(useful, 3)
        cut = damaged[: rng.integers(1, len(data))] if rng.random() < 0.2 else damaged
        try:
            got = read_ink(io.BytesIO(cut.tobytes()), form)
        except (ParseError, IgnoredElements):
            continue
        assert all(isinstance(r, InkRecord) for r in got)
