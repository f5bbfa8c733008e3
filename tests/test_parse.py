"""Replies of models: golden replies of every dialect, cut and damaged; what holds for any text."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles_parse import brackets, longest_loop, numbers

from inktraj.codec import INKSIGHT, XY, XYS, decode, encode
from inktraj.errors import DataError
from inktraj.ink import Frame, Ink
from inktraj.io import InkRecord
from inktraj.io.inkml import write_inkml
from inktraj.io.svg_path import parse_path
from inktraj.parse import DIALECTS, FRAME_NAMES, CoordinateFrame, Parsed, parse
from inktraj.parse.characters import codes, plain
from inktraj.parse.frames import guess
from inktraj.parse.lexer import lex
from inktraj.parse.repetition import _longest_loop
from inktraj.parse.vocabulary import among, labels

BENCHMARKS = str(Path(__file__).parent.parent / "benchmarks")
sys.path.insert(0, BENCHMARKS)
try:
    import parse as benchmark
    import parse_cases
finally:
    sys.path.remove(BENCHMARKS)

REPLIES = sorted((Path(__file__).parent / "data" / "parse").glob("*.txt"))


def read(path: Path) -> tuple[dict, str]:
    """A golden reply: what is expected, in the first line, and the reply behind it, as it is."""
    with path.open(encoding="utf-8", newline="") as file:
        head, _, reply = file.read().partition("\n")
    return json.loads(head), reply


def parsed(head: dict, reply: str):
    return parse(
        reply,
        frame=head.get("frame", "sent-px"),
        sent_size=head.get("size", (800, 600)),
        original_size=head.get("original"),
        stop_reason=head.get("stop"),
        echo=head.get("echo", ""),
        words=head.get("words"),
    )


@pytest.mark.parametrize("path", REPLIES, ids=lambda path: path.stem)
def test_golden_replies(path):
    head, reply = read(path)
    found = parsed(head, reply)
    expected = head.get("strokes", [])
    assert [s.tolist() for s in found.strokes] == [[pytest.approx(p) for p in s] for s in expected], found
    assert found.status == head["status"]
    if expected:
        assert found.dialect == head["dialect"]
        assert found.frame == head.get("reported", head.get("frame", "sent-px"))
        assert found.dialect_why
        assert found.frame_why
        assert found.starts_known == head.get("known", found.starts_known)
        assert found.starts_why == head.get("starts", found.starts_why)
    if "dropped" in head:
        assert sorted(p.kind for p in found.dropped) == sorted(head["dropped"])
    elif head["status"] == "valid":
        assert not found.dropped
    assert set(head.get("notes", [])) <= {p.kind for p in found.notes}
    if "answered" in head:
        assert sorted(found.words) == head["answered"]


CUT_ANYWHERE = [
    *("tuples", "lists", "nested_lists", "fenced_json", "strokes_with_points", "strokes_in_prose"),
    *("objects", "objects_in_strokes", "columns", "flat_with_s", "flat_pairs", "text"),
    *("text_without_marks", "text_thousands", "rows", "rows_csv", "molmo", "molmo_coords"),
    *("inksight", "svg_path", "svg_paths", "svg_relative", "inkml", "inkml_with_time"),
    *("thousands", "decimal_commas", "scientific_notation", "full_width"),
]


@pytest.mark.parametrize("name", CUT_ANYWHERE)
def test_a_cut_reply_gives_no_point_that_the_whole_one_has_not(name):
    head, reply = read(next(path for path in REPLIES if path.stem == name))
    whole = {tuple(p) for s in parsed(head, reply).strokes for p in s.tolist()}
    assert whole
    for end in range(len(reply)):
        found = parsed({**head, "stop": "length"}, reply[:end])
        points = {tuple(p) for s in found.strokes for p in s.tolist()}
        assert points <= whole, reply[:end]
        assert points == whole or found.status not in ("valid", "incomplete"), reply[:end]


# What holds for any text.

PIECES = [
    *"[({])},;|/:=#`.-+\\'\"\nxys10MLlhZCe",
    *("[[", "]]", "\n\n", ", ", "```json", "//", "...", "…", "\\n", "\t"),
    *('"x":', '"y":', '"s":', '"pen":"down"', '"word":"the"', '"strokes":', '"point":[1,2]', "null", "NaN", "true"),
    *(
        "145",
        "12.5",
        "-3",
        "1e5",
        "1,234",
        "1_000",
        "9" * 20,
        "−",
        "１２",
        "145 122 1",
        "(1,2,1)",
        "(3,4,0)",
        "[5,6]",
        "x1y2",
    ),
    *(
        '{"x":1,"y":2}',
        '{"x":[1,2],"y":[3,4]}',
        "1 2\n3 4\n",
        "[1,2,1,3,4,0]",
        "Stroke 1:",
        "Stroke 2:",
        "2.",
        "hello",
        "the",
    ),
    *(
        "Final answer:",
        "wait",
        "<think>",
        "</think>",
        "<answer>",
        "I cannot",
        "<points ",
        "<point ",
        'x1="12.5"',
        'coords="1 1 2 3',
    ),
    *(
        "<ink_token_450>",
        "<ink_token_12>",
        "<ink_token_300>",
        "<path ",
        'd="M 1 2',
        '<polyline points="',
        "<trace>",
        "</trace>",
    ),
    *("<ink>", "</ink>", 'orientation="-ve"', "'1\"2", "penUp"),
]
REPLY = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60)
STOPS = st.sampled_from([None, "end", "length", "refusal", "other"])


def check(text: str, found: Parsed) -> None:
    """Statuses say what is there, every point is finite, and every number is accounted for."""
    account = found.numbers
    assert account.found == account.used + account.dropped + account.left
    assert min(account) >= 0
    assert found.used == sum(len(s) for s in found.strokes) == len(found.spans)
    assert all(np.isfinite(s).all() and s.shape[1] == 2 and len(s) and not s.flags.writeable for s in found.strokes)
    assert (found.used > 0) == bool(found.frame)
    if found.status in ("valid", "incomplete"):
        assert found.used
    if found.status in ("invalid", "refused", "empty"):
        assert not found.used
    assert 0 <= found.out_of_range <= 1
    covered = np.zeros(len(text) + 1, dtype=bool)
    stretches = [*found.spans.tolist(), *((p.position, p.position + len(p.text)) for p in found.left)]
    stretches += [(p.position, p.position + len(p.seen)) for p in (*found.dropped, *found.notes)]
    for start, end in stretches:
        assert 0 <= start <= end <= len(text)
        covered[start:end] = True
    if found.dialect != "columns":  # their spans are those of x
        for match in re.finditer("[0-9]+", text):
            assert covered[match.start() : match.end()].all(), match


@settings(max_examples=600)
@given(REPLY, st.sampled_from(["auto", *FRAME_NAMES]), STOPS, st.sampled_from(["auto"] * 5 + list(DIALECTS)))
def test_any_text_gives_a_result_that_accounts_for_it(text, frame, stop, dialect):
    found = parse(text, frame=frame, sent_size=(300, 200), original_size=(600, 400), stop_reason=stop, dialect=dialect)
    check(text, found)
    if stop == "length":
        assert found.status not in ("invalid", "empty") or not found.used


@settings(max_examples=200)
@given(
    REPLY,
    STOPS,
    st.lists(st.sampled_from(["the", "hello", "1", "x"]), max_size=4),
    st.sampled_from(["", "(1,2,1)(3,4,0)"]),
)
def test_any_text_may_stand_for_a_page(text, stop, words, echo):
    found = parse(text, sent_size=(300, 200), stop_reason=stop, words=words, echo=echo)
    assert found.used == sum(r.used for r in found.words.values())
    assert set(found.words) <= set(range(len(words)))
    assert found.numbers.found == found.numbers.used + found.numbers.dropped + found.numbers.left
    if found.status == "valid":
        assert all(found.words[i].status == "valid" for i in range(len(words)))


@pytest.mark.parametrize("name", parse_cases.hostile(10))
def test_hostile_text_takes_linear_time(name):
    text = parse_cases.hostile(250_000)[name]
    parse(text[:5000], sent_size=(1000, 800))
    # The benchmark holds 0.2 s for four times as much; this is to tell linear from quadratic on any machine.
    start = time.process_time()
    check_size = parse(text, sent_size=(1000, 800), stop_reason="length", words=None)
    assert time.process_time() - start < 0.5
    assert len(check_size.dropped) < 1000


# Kernels against slow twins, and against what others say.


@settings(max_examples=300)
@given(st.text(alphabet="01234.-+eE ,;[](){}\n", max_size=40))
def test_the_lexer_finds_the_numbers_and_brackets_that_its_twin_finds(text):
    lexed = lex(text)
    digits = [i for i in range(len(lexed)) if lexed.kind[i] != 2]
    assert [(lexed.start[i], lexed.end[i], lexed.value[i]) for i in digits] == [
        (a, b, pytest.approx(v, rel=1e-15)) for a, b, v in numbers(text)
    ]
    around = [lexed.opened[p] if p >= 0 else -1 for p in lexed.parent]
    assert list(zip(lexed.opened, lexed.closed, around, strict=True)) == brackets(text)


@given(st.floats(-1e100, 1e100))
def test_numbers_are_read_as_python_reads_them(value):
    lexed = lex(f"({value!r})")
    assert lexed.value.tolist() == [pytest.approx(value, rel=1e-15, abs=1e-200)]


@settings(max_examples=200)
@given(st.lists(st.integers(0, 2), max_size=24), st.integers(2, 4))
def test_the_longest_loop_is_that_of_its_twin(rows, loops):
    ids = np.array(rows[::-1], dtype=np.int64).reshape(-1, 1)
    assert _longest_loop(ids, loops) == longest_loop(rows, loops)


@given(st.lists(st.sampled_from(["x", "y", "s", "strokes", "q"])))
def test_labels_are_looked_up_as_numpy_does(words):
    found = np.concatenate([np.zeros(0, dtype=np.uint64), *(labels(w) for w in words)])
    wanted = labels("x", "strokes")
    assert among(found, wanted).tolist() == np.isin(found, wanted).tolist()


POINTS = st.tuples(st.integers(0, 299), st.integers(0, 199))
INK = st.lists(st.lists(POINTS, min_size=1, max_size=6), min_size=1, max_size=5)


@given(INK)
@pytest.mark.parametrize("spec", [XYS, XY, INKSIGHT], ids=lambda spec: spec.name)
def test_what_the_codec_writes_is_read_as_the_codec_reads_it(spec, strokes):
    frame = Frame(300, 200)
    text = encode(Ink(tuple(strokes), frame), spec)
    # Without any s of 0, and with several points, s says nothing: see `starts`.
    found = parse(text, frame="sent-px", sent_size=(300, 200), stop_reason="end")
    expected = decode(text, frame, spec).ink.strokes
    if all(len(s) == 1 for s in strokes) and len(strokes) > 4 and spec == XYS:
        assert not found.starts_known
        expected = (np.concatenate(expected),)
    assert found.status == "valid"
    assert [len(s) for s in found.strokes] == [len(s) for s in expected]
    np.testing.assert_allclose(np.concatenate(found.strokes), np.concatenate(expected), atol=1e-9)


@given(INK)
def test_inkml_of_the_writer_is_read(strokes):
    file = io.StringIO()
    write_inkml(file, [InkRecord("a", Ink(tuple(strokes), Frame(300, 200)))])
    found = parse(file.getvalue(), frame="sent-px", sent_size=(300, 200), dialect="inkml")
    assert [s.tolist() for s in found.strokes] == [[list(map(float, p)) for p in s] for s in strokes]


COMMANDS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("LlM"), st.integers(0, 99), st.integers(-9, 99)),
        st.tuples(st.sampled_from("HhVv"), st.integers(-9, 99)),
    ),
    min_size=1,
    max_size=8,
)


@given(COMMANDS)
def test_paths_are_followed_as_the_svg_reader_follows_them(commands):
    data = "M 5 6 L 7 8 " + " ".join(f"{c[0]} {' '.join(map(str, c[1:]))}" for c in commands)
    data += " L 1 1" if commands[-1][0] == "M" else ""
    expected = [s.tolist() for s in parse_path(data)]
    found = parse(f'<path d="{data}"/>', frame="sent-px", sent_size=(300, 200)).strokes
    # SVG draws nothing for M alone, and a line of no length is two points; here both are a dot that the model wrote.
    lone = [s.tolist() for s in found if len(s) > 1]
    assert lone == [s for s in expected if len(s) > 2 or (len(s) == 2 and s[0] != s[1])]


BROKEN = [
    '[{"x": 1, "y": 2, "s": 1}, {"x": 3, "y": 4, "s": 0},]',
    "[{'x': 1, 'y': 2, 's': 1} {'x': 3, 'y': 4, 's': 0}",
    '{"strokes": [{x: 1, y: 2, s: 1}, {x: 3, y: 4, s: 0}]',
    '[{"x": 1 "y": 2 "s": 1}, {"x": 3, "y": 4, "s": 0}]',
    '[{"x": "1", "y": "2", "s": "1"}, {"x": "3", "y": "4", "s": "0"}]]',
    '```json\n[{"x": 1, "y": 2, "s": 1},\n // the second\n {"x": 3, "y": 4, "s": 0}]\n```',
]


@pytest.mark.parametrize("text", BROKEN)
def test_broken_objects_hold_the_points_that_json_repair_finds(text):
    json_repair = pytest.importorskip("json_repair", reason="json-repair is compared with where it is installed")
    repaired = json_repair.loads(text)
    rows = repaired["strokes"] if isinstance(repaired, dict) else repaired
    while isinstance(rows[0], list):
        rows = rows[0]
    expected = [[float(row["x"]), float(row["y"])] for row in rows]
    found = parse(text, frame="sent-px", sent_size=(300, 200), stop_reason="end")
    assert [p for s in found.strokes for p in s.tolist()] == expected == [[1, 2], [3, 4]]


# Frames.


@given(st.lists(st.tuples(st.floats(-5, 2000), st.floats(-5, 2000)), max_size=5), st.sampled_from(FRAME_NAMES))
def test_frames_have_an_exact_inverse(points, name):
    frame = CoordinateFrame(name)
    there = frame.from_sent(points, (924, 1307), (2480, 3508))
    assert there.shape == (len(points), 2)
    np.testing.assert_allclose(frame.to_sent(there, (924, 1307), (2480, 3508)), np.reshape(points, (-1, 2)), atol=1e-9)


def test_frames_span_the_image_from_edge_to_edge():
    corners = [(0, 0), (1000, 1000)]
    assert CoordinateFrame("norm1000").to_sent(corners, (200, 100)).tolist() == [[-0.5, -0.5], [199.5, 99.5]]
    assert CoordinateFrame("norm1000-yx").to_sent([(500, 0)], (200, 100)).tolist() == [[-0.5, 49.5]]
    assert CoordinateFrame("percent").to_sent([(50, 100)], (200, 100)).tolist() == [[99.5, 99.5]]
    assert CoordinateFrame("norm1").from_sent([(199.5, -0.5)], (200, 100)).tolist() == [[1, 0]]
    assert CoordinateFrame("original-px").to_sent([(0, 0), (1, 3)], (200, 100), (400, 200)).tolist() == [
        [-0.25, -0.25],
        [0.25, 1.25],
    ]


@pytest.mark.parametrize(
    ("points", "original", "dialect", "name", "sure"),
    [
        ([(0.1, 0.9)], None, "tuples", "norm1", "certain"),
        ([(500, 990)], None, "tuples", "norm1000", "likely"),
        ([(300, 200)], None, "tuples", "sent-px", "likely"),
        ([(10, 20)], None, "tuples", "sent-px", "guess"),
        ([(12.5, 99.1)], None, "tuples", "percent", "guess"),
        ([(12.5, 99.1)], None, "molmo", "percent", "likely"),
        ([(73, 160)], None, "molmo-coords", "norm1000", "likely"),
        ([(1500, 1100)], (1600, 1200), "tuples", "original-px", "likely"),
        ([(1500, 1100)], None, "tuples", "sent-px", "guess"),
    ],
)
def test_guessed_frames(points, original, dialect, name, sure):
    found, why = guess(np.array(points, dtype=float), (400, 300), original, dialect)
    assert found == name
    assert why.startswith(sure)


def test_share_outside_of_the_image():
    found = parse("(1,1,1), (400,300,0), (401,20,0), (5,-3,0)", frame="sent-px", sent_size=(400, 300))
    assert found.out_of_range == 0.5


# Arguments, and what else the result says.


def test_arguments_that_make_no_sense():
    with pytest.raises(DataError, match="no dialect is named 'yaml'"):
        parse("", sent_size=(1, 1), dialect="yaml")
    with pytest.raises(DataError, match="no coordinate frame is named 'norm999'"):
        parse("", sent_size=(1, 1), frame="norm999")
    with pytest.raises(DataError, match="needs original_size"):
        parse("", sent_size=(1, 1), frame="original-px")
    with pytest.raises(DataError, match="needs original_size"):
        CoordinateFrame("original-px").to_sent([(1, 1)], (1, 1))
    for size in ((0, 1), (1, np.nan), (1, 2, 3), "ab"):
        with pytest.raises(DataError, match="sent_size"):
            parse("", sent_size=size)
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        CoordinateFrame("sent-px").to_sent([1, 2, 3], (1, 1))


def test_a_named_dialect_reads_nothing_else():
    text = "(1,2,1) x3y4"
    assert parse(text, sent_size=(9, 9), frame="sent-px", dialect="tuples").strokes[0].tolist() == [[1, 2]]
    found = parse(text, sent_size=(9, 9), frame="sent-px", dialect="x145y122")
    assert found.strokes[0].tolist() == [[3, 4]]
    assert found.dialect_why == "given"


def test_text_outside_of_the_answer_is_kept_as_it_is_written():
    text = "Voilà – 3 strokes：\n[[1,2,1],[3,4,0]]\nThat’s all."
    found = parse(text, sent_size=(9, 9))
    assert [(p.position, p.text) for p in found.left] == [(0, "Voilà – 3 strokes："), (37, "That’s all.")]
    assert found.leftover == "Voilà – 3 strokes：\nThat’s all."
    assert found.numbers == (7, 6, 0, 1)
    assert found.spans.tolist() == [[20, 27], [28, 35]]


def test_ink_of_a_reply():
    ink = parse("(1,2,1), (3,4,0), (5,6,1)", sent_size=(90, 80), frame="sent-px").ink(90, 80)
    assert ink == Ink(([(1, 2), (3, 4)], [(5, 6)]), Frame(90, 80))


@given(st.text(max_size=40))
def test_plain_text_keeps_every_position(text):
    assert len(plain(text)) == len(text) == len(codes(text))
    assert plain(plain(text)) == plain(text)


def test_problems_are_few_however_many_there_are():
    found = parse("(1,2,1), " + "".join(f"(3,x,0), (5,{i},0), " for i in range(5000)), sent_size=(9, 9))
    assert len(found.dropped) == 101
    assert sum(p.count for p in found.dropped) == 5000


def test_the_benchmark_reads_what_it_makes_and_sees_what_is_wrong():
    cases = parse_cases.build(count=1, seed=7)
    assert len(cases) > 200
    found = [benchmark.read(case) for case in cases]
    assert all(benchmark.is_right(f, c) for f, c in zip(found, cases, strict=True))
    case = {"text": "(1,2,1), (3,4,0)", "frame": "sent-px", "width": 9, "height": 9, "stop_reason": "end"}
    for wrong in ([[[1, 2], [3, 5]]], [[[1, 2]], [[3, 4]]], [[[1, 2]]], []):
        assert not benchmark.is_right(benchmark.read(case), {**case, "strokes": wrong})
    assert not benchmark.is_right(benchmark.read(case), {**case, "status": "invalid"})
