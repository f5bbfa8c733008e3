"""Replies that models give beside an answer, or in its place: nothing that is read wrongly may be called valid."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import oracles_parse
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inktraj.parse import parse, roles
from inktraj.parse.alignment import NONE, UNCLEAR, align, folded, sure_pairs
from inktraj.parse.lexer import KEY, lex
from inktraj.parse.result import Status
from inktraj.parse.vocabulary import packed

BENCHMARKS = str(Path(__file__).parent.parent / "benchmarks")
sys.path.insert(0, BENCHMARKS)
try:
    import parse as benchmark
    import parse_cases
finally:
    sys.path.remove(BENCHMARKS)

CASES = benchmark.replies()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_replies_written_by_hand(case):
    found = benchmark.read(case)
    assert benchmark.is_right(found, case), (found, case["text"])
    assert found.status == case["status"]
    if found.used and found.status == "incomplete":
        assert found.dropped or "page" in case
    if found.status == "valid":
        assert not found.dropped


def test_the_replies_cover_what_they_should():
    assert len({case["name"] for case in CASES}) == len(CASES) > 400
    assert set(get_args(Status)) == {case["status"] for case in CASES}


WRITERS = [name for name in parse_cases.DIALECTS if name not in parse_cases.EXTRA]
BEFORE = [
    "The word is at (10, 20)-(100, 60).\n\n",
    "From (0,0) at the top-left to (924,1307): ",
    "Bounding box: [10, 20, 100, 60]\n",
    "Corners: (10, 20), (100, 20), (100, 60), (10, 60)\n\n",
    "I looked in the box [10, 20, 100, 50].\n\n",
    '{"bbox": [10, 20, 100, 60]}\n',
    "Width: 924\nHeight: 1307\n\n",
    "1. The word has 5 letters.\n2. It is about 90 px wide.\n\n",
    "For example, (100, 200, 1) starts a stroke.\n\n",
    "Format: [(x1, y1, 1), (x2, y2, 0), ...]\n\n",
    "/* box 10 20 100 60 */\n",
    "Position: x=10, y=20, width=90, height=40\n\n",
    "top-left (10, 20), bottom-right (100, 60)\n\n",
    "The baseline is at y = 60 and the x-height line at y = 35.\n\n",
    "Crop: 10 20 100 60\n\n",
    "Das Wort liegt bei (10, 20) bis (100, 60).\n\n",
]
BEHIND = [
    "\n\nThe word is in the box (10, 20) to (100, 60).",
    "\n\nBounding box: [10, 20, 100, 60]",
    "\n\nTotal: 2 strokes, 12 points.",
    "\n\nThe pen starts at (12, 22) and ends at (70, 45).",
    "\n\nThe first point is (12, 22, 1).",
    "\n\n- Start: (12, 22)\n- End: (70, 45)",
    "\n\n(Width 924, height 1307)",
    "\n\nNote: x runs from 10 to 100, y from 20 to 60.",
    "\n\nAlternatively:\n[[10,20,1],[30,40,0],[50,60,0]]",
]


@settings(max_examples=300, deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(WRITERS),
    st.sampled_from(["", *BEFORE]),
    st.sampled_from(["", *BEHIND]),
    st.booleans(),
)
def test_a_box_or_a_size_beside_an_answer_is_never_taken_for_ink(rng, name, before, behind, fenced):
    strokes = parse_cases.made_ink(rng)
    text = parse_cases.DIALECTS[name](strokes)
    text = f"```\n{text}\n```" if fenced else text
    size = (parse_cases.WIDTH, parse_cases.HEIGHT)
    found = parse(before + text + behind, frame="sent-px", sent_size=size, stop_reason="end")
    right = [s.tolist() for s in found.strokes] == [[list(map(float, p)) for p in s] for s in strokes]
    assert right or found.status != "valid", before + text + behind
    if not before and not behind:
        assert right
        assert found.status == "valid"


def as_written(strokes):
    return [[list(map(float, p)) for p in s] for s in strokes]


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(WRITERS), st.sampled_from(["\n\n", "\n```\n```\n", "\n"]))
def test_an_answer_given_twice_is_read_once(rng, name, between):
    strokes = parse_cases.made_ink(rng)
    text = parse_cases.DIALECTS[name](strokes)
    size = (parse_cases.WIDTH, parse_cases.HEIGHT)
    found = parse(text + between + text, frame="sent-px", sent_size=size, stop_reason="end")
    right = [s.tolist() for s in found.strokes] == as_written(strokes)
    assert right or found.status != "valid" or (between == "\n" and text[0] not in "[{<"), text
    if name in ("tuples", "lists"):
        assert right
        assert found.numbers.left >= found.numbers.used


COORDINATES = st.integers(0, 699)
POINTS = st.lists(st.tuples(COORDINATES, COORDINATES), min_size=3, max_size=24, unique=True)
STROKES = st.builds(
    lambda points, size: [points[i : i + size] for i in range(0, len(points) - 2, size)], POINTS, st.integers(3, 8)
)


def columns_of_each(strokes, form):
    return "\n".join(
        form.format(axis, k, ", ".join(str(p[i]) for p in stroke))
        for k, stroke in enumerate(strokes, 1)
        for i, axis in enumerate("xy")
    )


@settings(max_examples=100, deadline=None)
@given(STROKES, st.sampled_from(["{0}{1} = [{2}]", "{0} = [{2}]", "{0} = np.array([{2}])", "{0}: {2}"]))
def test_columns_by_themselves_are_points(strokes, form):
    found = parse(columns_of_each(strokes, form), frame="sent-px", sent_size=(700, 700), stop_reason="end")
    assert [s.tolist() for s in found.strokes] == as_written(strokes)
    assert (found.status, found.dialect) == ("valid", "columns")


@given(STROKES, st.integers(1, 20))
def test_columns_that_are_cut_give_no_point_that_was_not_there(strokes, cut):
    text = columns_of_each(strokes, "{0} = [{2}]")[:-cut]
    found = parse(text, frame="sent-px", sent_size=(700, 700), stop_reason="length")
    assert found.status == "truncated"
    for stroke, whole in zip(found.strokes, strokes, strict=False):
        assert stroke.tolist() == as_written([whole])[0][: len(stroke)]


@pytest.mark.parametrize(
    "form", [("MOVE {} {}", "LINE {} {}"), ("G0 X{} Y{}", "G1 X{} Y{}"), ("G00 X{} Y{}", "G01 X{} Y{}")]
)
@given(strokes=STROKES)
def test_plotters_commands_tell_strokes(form, strokes):
    text = "\n".join(form[k > 0].format(*p) for stroke in strokes for k, p in enumerate(stroke))
    found = parse(text, frame="sent-px", sent_size=(700, 700), stop_reason="end")
    assert [s.tolist() for s in found.strokes] == as_written(strokes)
    assert found.starts_known


@pytest.mark.parametrize(
    "text", ["G91\nG0 X12 Y22\nG1 X30 Y40", "G0 X12 Y22\nG0 X30 Y40", "G0 X12 Y22\nG2 X30 Y40 I1 J2"]
)
def test_commands_that_are_not_followed_leave_doubt(text):
    found = parse(text, frame="sent-px", sent_size=(700, 700), stop_reason="end")
    assert found.status == "incomplete"
    assert "transform" in {p.kind for p in found.dropped}


@pytest.mark.parametrize(
    "name", ["parallel np", "X coordinates lists", "xml triples", "gcode", "label xy stroke", "cv2"]
)
def test_no_cut_gives_a_point_that_the_whole_reply_has_not(name):
    case = next(c for c in CASES if c["name"].split(",")[0] == name and c["status"] == "valid")
    whole = {tuple(p) for s in benchmark.read(case).strokes for p in s.tolist()}
    for end in range(len(case["text"])):
        found = benchmark.read({**case, "text": case["text"][:end], "stop_reason": "length"})
        assert {tuple(p) for s in found.strokes for p in s.tolist()} <= whole, case["text"][:end]


# Words of a page.


@pytest.mark.parametrize(
    ("answered", "asked", "expected"),
    [
        ("cat sat the mat", "the cat sat the mat", [1, 2, 3, 4]),
        ("A A", "a A", [0, 1]),
        ("The the", "the The", [1, 0]),
        ("the end", "the end.", [0, 1]),
        ("“Hello,” world", "hello world!", [0, 1]),
        ("the the", "the the the", [UNCLEAR, UNCLEAR]),
        ("the the cat", "the cat", [UNCLEAR, UNCLEAR, 1]),
        ("cat the", "the cat", [1, 0]),
        ("the dog cat", "the cat", [0, NONE, 1]),
        ("", "the", []),
        ("the", "", [NONE]),
        ("( 1)", "( 1)", [0, 1]),
    ],
)
def test_words_are_aligned(answered, asked, expected):
    assert align(answered.split(), asked.split()) == expected


WORDS = st.lists(st.sampled_from("abcd"), max_size=6)


@settings(max_examples=150, deadline=None)
@given(WORDS, WORDS)
def test_pairs_are_those_that_all_alignments_have(a, b):
    ids = [np.array([ord(w[0]) for w in words], dtype=np.int64) for words in (a, b)]
    found = sure_pairs(*ids, *(np.zeros_like(i) for i in ids))
    assert [None if j == UNCLEAR else j for j in found.tolist()] == oracles_parse.sure_pairs(a, b)


@given(st.lists(st.sampled_from(["the", "The", "cat", "end.", "end"]), max_size=8))
def test_each_word_answers_for_itself(words):
    # Equal words are as often answered as asked for: the k-th for the k-th.
    assert align(words, words) == list(range(len(words)))


PAGE_WORDS = ["the", "The", "a", "A", "cat", "end.", "end"]
PAGE_FORMS = {
    "objects": lambda page: json.dumps([{"word": w, "bbox": [1, 2, 300, 40], "strokes": s} for w, s in page]),
    "lines": lambda page: "\n".join(f"{w}: {json.dumps(s)}" for w, s in page),
    "headings": lambda page: "\n\n".join(f"**{w}**\n{json.dumps(s)}" for w, s in page),
}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(PAGE_WORDS), st.booleans()), min_size=1, max_size=8),
    st.sampled_from(sorted(PAGE_FORMS)),
)
def test_a_page_with_words_left_out_gives_no_word_the_ink_of_another(words, form):
    asked = [word for word, _ in words]
    ink = [[[[10 * k + 5, 20], [10 * k + 9, 31 + k]]] for k in range(len(words))]
    page = [(word, ink[k]) for k, (word, answered) in enumerate(words) if answered]
    found = parse(PAGE_FORMS[form](page), frame="sent-px", sent_size=(300, 200), stop_reason="end", words=asked)
    for k, word in found.words.items():
        assert [s.tolist() for s in word.strokes] in ([], ink[k])
    if len(page) == len(words):
        assert len(found.words) == len(words)


def test_many_words_are_aligned_in_time():
    words = [f"w{i % 90}" for i in range(4000)]
    assert align(words[1:], words)[:3] == [1, 2, 3]


def test_words_are_compared_without_signs_around_them():
    assert folded("“End.”") == folded("end") == "end"
    assert folded("(") == "("
    assert folded("well-known") == "well-known"


# Columns.


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[12, 22, 1], [30, 40, 0]], (0, 1, 2)),
        ([[0, 12, 22], [0, 30, 40], [1, 50, 60]], (1, 2, 0)),
        ([[1, 12, 22], [0, 30, 40]], (1, 2, 0)),
        ([[1, 12, 22], [2, 30, 40], [3, 50, 60]], (1, 2, -1)),
        ([[12, 22, 0.5], [30, 40, 0.6]], (0, 1, 2)),
        ([[1, 12, 22, 1], [2, 30, 40, 0]], (1, 2, 3)),
        ([[12, 22, 0, 1], [30, 40, 16, 0], [50, 60, 33, 0]], (0, 1, 3)),
        ([[12, 22, 1, 0], [30, 40, 0, 16], [50, 60, 0, 33]], (0, 1, 2)),
        ([[1, 1, 12, 22], [1, 2, 30, 40], [2, 1, 50, 60]], (2, 3, 0)),
        ([[1, 1, 12, 22], [2, 1, 30, 40], [3, 2, 50, 60]], (2, 3, 1)),
        ([[10, 20, 100, 50]], None),
        ([[10, 20, 100, 50], [110, 20, 200, 50]], None),
        ([[1, 2, 3, 4, 5, 6]], None),
    ],
)
def test_columns_by_their_values(table, expected):
    found = roles.by_values(np.array(table, dtype=float))
    assert (found and (found.x, found.y, found.s)) == expected


@pytest.mark.parametrize(
    ("line", "k", "expected"),
    [
        ("x,y,s", 3, (0, 1, 2)),
        ("| Stroke | Point | X | Y |", 4, (2, 3, 0)),
        ("y\tx", 2, (1, 0, -1)),
        ("stroke,x,y,p", 4, (1, 2, 0)),
        ("x y pen", 3, (0, 1, 2)),
        ("x,y,t", 3, (0, 1, -1)),
        ("x,y", 3, None),
        ("dx,dy,pen", 3, None),
        ("x1,y1,x2,y2", 4, None),
        ("the word is here", 4, None),
    ],
)
def test_columns_by_a_heading(line, k, expected):
    found = roles.by_heading(line, k)
    assert (found and (found.x, found.y, found.s)) == expected


# The lexer.


def test_numbers_in_comments_are_no_coordinates():
    lexed = lex("[1, /* 2,\n 3 */ 4, // 5\n 6] <!-- 7 --> 8")
    assert lexed.value[lexed.kind != KEY].tolist() == [1, 4, 6, 8]


def test_prose_in_json_is_passed_over_and_lists_in_quotes_are_not():
    text = '{"analysis": "the word spans (1,2) to (3,4)", "points": "5,6 7,8 9,10"}'
    lexed = lex(text)
    assert lexed.value[lexed.kind != KEY].tolist() == [5, 6, 7, 8, 9, 10]


def test_a_bracket_knows_the_function_before_it():
    lexed = lex("Point(1, 2) at (3, 4) plt.figure(figsize=(5, 6))")
    assert lexed.call.tolist() == [packed("Point"), 0, packed("figure"), 0]
    assert lexed.name.tolist() == [0, 0, 0, packed("figsize")]
