"""Codec: InkSight's vocabulary exactly, round trips within half a token, and no loss without a word."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inktraj.codec import (
    INKSIGHT,
    START,
    VOCABULARY_SIZE,
    XY,
    XYS,
    CodecSpec,
    Square,
    decode,
    encode,
    from_tokens,
    to_tokens,
    tokens_from_text,
    tokens_to_text,
)
from inktraj.errors import DataError
from inktraj.ink import Frame, Ink

FRAME = Frame(224, 224, "inksight")

frames = st.builds(Frame, st.floats(1, 5000), st.floats(1, 5000), st.sampled_from(["px", "mm", "inksight"]))
pairs = st.tuples(st.integers(0, 224), st.integers(0, 224))
token_strokes = st.lists(st.lists(pairs, min_size=1, max_size=6), max_size=5)


@st.composite
def inks(draw: st.DrawFn) -> Ink:
    frame = draw(frames)
    edge = 0.5 if frame.unit == "px" else 0.0
    share = st.floats(0, 1, allow_subnormal=False)
    strokes = draw(st.lists(st.lists(st.tuples(share, share), min_size=1, max_size=6), max_size=5))
    return Ink(tuple(np.array(s) * (frame.width, frame.height) - edge for s in strokes), frame)


def flat(strokes: list[list[tuple[int, int]]]) -> list[int]:
    """The slow, obvious twin: the published layout written out."""
    return [t for s in strokes for t in [450, *[v for x, y in s for v in (x, 225 + y)]]]


def test_vocabulary_is_that_of_the_paper() -> None:
    assert (START, VOCABULARY_SIZE) == (450, 451)
    ink = Ink(([[0, 0], [224, 224]], [[12, 7]]), FRAME)
    assert to_tokens(ink) == [450, 0, 225, 224, 449, 450, 12, 232]
    assert encode(ink).startswith("<ink_token_450><ink_token_0><ink_token_225><ink_token_224>")


def test_longer_side_fills_the_square_and_the_other_is_centred() -> None:
    """A word image 448 wide and 100 high: scale 1/2, 50 tokens high, 87 tokens of padding above and below."""
    square = Square.around(Frame(448, 100))
    assert square.scale == 0.5
    corners = np.array([[-0.5, -0.5], [447.5, 99.5]]) * square.scale + (square.x_offset, square.y_offset)
    np.testing.assert_allclose(corners, [[0, 87], [224, 137]])
    tall = Square.around(Frame(100, 448, "mm"))
    assert (tall.x_offset, tall.y_offset) == (87, 0)


@given(inks())
@settings(deadline=None)
def test_tokens_bring_ink_back_within_half_a_token(ink: Ink) -> None:
    decoded = from_tokens(to_tokens(ink), ink.frame)
    assert decoded.problems == ()
    assert decoded.ink.frame == ink.frame
    half = 0.5 / Square.around(ink.frame).scale
    assert [len(s) for s in decoded.ink.strokes] == [len(s) for s in ink.strokes]
    for a, b in zip(decoded.ink.strokes, ink.strokes, strict=True):
        assert np.abs(a - b).max() <= half * (1 + 1e-9) + 1e-9


@given(token_strokes, frames)
@settings(deadline=None)
def test_valid_tokens_come_back_exactly(strokes: list[list[tuple[int, int]]], frame: Frame) -> None:
    tokens = flat(strokes)
    assert to_tokens(from_tokens(tokens, frame).ink) == tokens
    assert tokens_from_text(tokens_to_text(tokens)) == (tokens, ())
    assert encode(decode(tokens_to_text(tokens), frame).ink) == tokens_to_text(tokens)


@given(inks(), st.sampled_from([XYS, XY, CodecSpec("xys", side=224), CodecSpec("xy", side=1000)]))
@settings(deadline=None)
def test_text_forms_bring_ink_back_within_half_a_unit(ink: Ink, spec: CodecSpec) -> None:
    text = encode(ink, spec)
    decoded = decode(text, ink.frame, spec)
    assert decoded.problems == ()
    half = 0.5 / (1 if spec.side is None else Square.around(ink.frame, spec.side).scale)
    assert [len(s) for s in decoded.ink.strokes] == [len(s) for s in ink.strokes]
    for a, b in zip(decoded.ink.strokes, ink.strokes, strict=True):
        assert np.abs(a - b).max() <= half * (1 + 1e-9) + 1e-9
    assert encode(decoded.ink, spec, clip=True) == text


@given(st.lists(st.integers(-3, 460), max_size=40))
@settings(deadline=None)
def test_every_token_is_used_or_reported(tokens: list[int]) -> None:
    decoded = from_tokens(tokens, FRAME)
    dropped = sum("dropped" in p.why for p in decoded.problems)
    used = 2 * decoded.ink.n_points + len(decoded.ink.strokes)
    assumed = sum("assumed" in p.why for p in decoded.problems)
    assert used - assumed + dropped == len(tokens)
    assert [p.position for p in decoded.problems] == sorted(p.position for p in decoded.problems)


@given(st.text(alphabet="<ink_token_450> (1,2)[]xys-.\n", max_size=60), st.sampled_from([INKSIGHT, XYS, XY]))
@settings(deadline=None)
def test_any_text_decodes_without_an_exception(text: str, spec: CodecSpec) -> None:
    decoded = decode(text, FRAME, spec)
    assert all(0 <= p.position < len(text) and p.seen for p in decoded.problems)


@pytest.mark.parametrize(
    ("tokens", "points", "problems"),
    [
        ([], [], []),
        ([450, 1, 226, 2], [(1, 1)], [(3, "an x without its y")]),
        ([450, 1, 2, 227], [(2, 2)], [(1, "an x without its y")]),
        ([450, 226, 1, 226], [(1, 1)], [(1, "a y where an x")]),
        ([450, 1, 226, 451, 2, 227], [(1, 1), (2, 2)], [(3, "outside 0–450")]),
        ([450, 1, -5, 226, 2, 227], [(2, 2)], [(1, "without its y"), (2, "outside"), (3, "a y where")]),
        ([1, 226], [(1, 1)], [(0, "no stroke start")]),
        ([450, 450, 1, 226], [(1, 1)], [(0, "without a point")]),
        ([450, 1, 226, 450], [(1, 1)], [(3, "without a point")]),
    ],
)
def test_malformed_tokens(tokens: list[int], points: list[tuple[int, int]], problems: list[tuple[int, str]]) -> None:
    decoded = from_tokens(tokens, FRAME)
    assert [tuple(p) for s in decoded.ink.strokes for p in s] == points
    assert [p.position for p in decoded.problems] == [at for at, _ in problems]
    for problem, (at, why) in zip(decoded.problems, problems, strict=True):
        assert why in problem.why
        assert problem.seen == str(tokens[at])


@pytest.mark.parametrize(
    ("text", "spec", "points", "problems"),
    [
        ("ink: <ink_token_450><ink_token_1> <ink_token_226></s>", INKSIGHT, [(1, 1)], [(0, "ink:"), (49, "</s>")]),
        ("<ink_token_450><ink_token_1", INKSIGHT, [], [(0, "450"), (15, "<ink_token_1")]),
        ("<ink_token_" + "9" * 9000 + ">", INKSIGHT, [], [(0, "999999999")]),
        ("[(145,122,1), (146, 124, 0)]", XYS, [(145, 122), (146, 124)], []),
        ("[[145,122,1],[146,124,0]]", XYS, [(145, 122), (146, 124)], []),
        ("[(145.5,1.2e2,1.0)", XYS, [(145.5, 120)], []),
        ("[(1,2,1), (3,4", XYS, [(1, 2)], [(10, "(3,4")]),
        ("[(1,2,1), (3,4), (5,6,0)]", XYS, [(1, 2), (5, 6)], [(10, "(3,4)")]),
        ("(1,2,0)", XYS, [(1, 2)], [(0, "(1,2,0)")]),
        ("(1,2,1),(3,4,7)", XYS, [(1, 2), (3, 4)], [(8, "(3,4,7)")]),
        ("(1e999,2,1)(3,4,0)", XYS, [(3, 4)], [(0, "(1e999,2,1)")]),
        ("(1,2,1)(300,4,0)", XYS, [(1, 2), (300, 4)], [(7, "(300,4,0)")]),
        ("(1,2,1)(300,4,0)", CodecSpec("xys", side=224), [(1, 2)], [(7, "(300,4,0)")]),
        ("s x145y122 x146y124 s x1y2", XY, [(145, 122), (146, 124), (1, 2)], []),
        ("s x145y122x146y124", XY, [(145, 122), (146, 124)], []),
        ("x145y122", XY, [(145, 122)], [(0, "x145y122")]),
        ("s s x1y2 s", XY, [(1, 2)], [(0, "s"), (9, "s")]),
        ("Here's it: s x1y2 x3", XY, [(1, 2)], [(0, "Here's it:"), (18, "x3")]),
    ],
)
def test_malformed_text(
    text: str, spec: CodecSpec, points: list[tuple[float, float]], problems: list[tuple[int, str]]
) -> None:
    decoded = decode(text, FRAME, spec)
    assert [tuple(p) for s in decoded.ink.strokes for p in s] == points
    assert [(p.position, p.seen) for p in decoded.problems] == problems


def test_a_dropped_first_point_still_lifts_the_pen() -> None:
    decoded = decode("(1,1,1)(999,2,1)(3,3,0)", FRAME, CodecSpec("xys", side=224))
    assert [len(s) for s in decoded.ink.strokes] == [1, 1]


def test_points_outside_the_square_are_refused_or_clipped() -> None:
    ink = Ink(([[0, 0], [300, 5]],), FRAME)
    with pytest.raises(DataError, match=r"point 1 of stroke 0 at \(300, 5\)"):
        to_tokens(ink)
    assert to_tokens(ink, clip=True)[3] == 224
    barely = Ink(([[224.4, -0.4]],), FRAME)
    assert to_tokens(barely) == [450, 224, 225]


def test_wrong_tokens_and_specs_are_refused() -> None:
    with pytest.raises(DataError, match="'<ink_token_1>', expected an integer"):
        from_tokens(["<ink_token_1>"], FRAME)  # type: ignore[list-item]
    with pytest.raises(DataError, match="token 1 is 451"):
        tokens_to_text([450, 451])
    assert from_tokens(np.array([450, 1, 226]), FRAME).problems == ()  # type: ignore[arg-type]
    for bad in ({"name": "other"}, {"name": "xys", "version": 2}, {"name": "inksight"}, {"name": "xy", "side": 0}):
        with pytest.raises(DataError):
            CodecSpec(**bad)  # type: ignore[arg-type]


def test_empty_ink() -> None:
    empty = Ink((), FRAME)
    assert (encode(empty), encode(empty, XYS), encode(empty, XY)) == ("", "[]", "")
    assert all(decode(encode(empty, s), FRAME, s).ink == empty for s in (INKSIGHT, XYS, XY))


@pytest.mark.parametrize(
    "text", ["(" + "1" * 200_000, "(" * 100_000, "x" * 100_000, "<ink_token_" * 20_000, "[1,1" * 50_000]
)
def test_long_junk_takes_linear_time(text: str) -> None:
    begin = time.process_time()
    for spec in (INKSIGHT, XYS, XY):
        decode(text, FRAME, spec)
    assert time.process_time() - begin < 2
