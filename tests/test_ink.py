"""The trajectory: what an ink holds, refuses and becomes."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inktraj.errors import DataError
from inktraj.ink import Frame, Ink, order_color

FRAME = Frame(40, 30)
LINE, DOT = [[1.0, 2.0], [4.0, 6.0]], [[7.0, 8.0]]
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
STROKES = st.lists(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5), max_size=4)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "5", None])
def test_a_frame_has_a_size(value):
    with pytest.raises(DataError, match="width must be a positive number"):
        Frame(value, 5)
    with pytest.raises(DataError, match="height must be a positive number"):
        Frame(5, value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strokes": [LINE, []]}, r"stroke 1 has shape \(0,\), expected \(n, 2\)"),
        ({"strokes": [[[1, 2, 3]]]}, "expected"),
        ({"strokes": [[["a", "b"]]]}, "stroke 0 is not an array of numbers"),
        ({"strokes": [[[1, np.nan]]]}, "stroke 0 holds NaN or infinity"),
        ({"strokes": [LINE], "widths": [[1]]}, "widths must hold one number for each point"),
        ({"strokes": [LINE], "widths": [[1, -1]]}, "width is negative"),
        ({"strokes": [LINE, DOT], "times": [[0, 2], [1]]}, "times go backwards"),
        (
            {"strokes": [DOT], "times": [[0]], "times_source": "guessed"},
            "'guessed', expected recorded, estimated or None",
        ),
        ({"strokes": [DOT], "times_source": "recorded"}, "times_source is 'recorded', but there are no times"),
    ],
)
def test_what_is_no_ink_says_why(arguments, message):
    with pytest.raises(DataError, match=message):
        Ink(frame=FRAME, **arguments)


def test_an_ink_is_its_own():
    points = np.array(LINE)
    ink = Ink((points,), FRAME)
    points[:] = 0
    assert ink.strokes[0].tolist() == LINE
    with pytest.raises(ValueError, match="read-only"):
        ink.strokes[0][0] = 0


def test_equality():
    ink = Ink((LINE, DOT), FRAME, ([1, 2], [3]), ([0, 1], [2]))
    assert ink == Ink((LINE, DOT), FRAME, ([1, 2], [3]), ([0, 1], [2]))
    others = [
        Ink((LINE, DOT), FRAME),
        Ink((LINE, DOT), Frame(40, 31), ink.widths, ink.times),
        Ink((LINE, DOT), FRAME, ([1, 2], [4]), ink.times),
        Ink((LINE, DOT), FRAME, ink.widths, ([0, 1], [3])),
        Ink((DOT, LINE), FRAME, ([3], [1, 2]), ([0], [1, 2])),
        Ink((LINE, DOT), FRAME, ink.widths, ink.times, "estimated"),
    ]
    assert all(ink != other for other in others)
    assert ink != "ink"


@given(strokes=STROKES)
@settings(max_examples=50)
def test_points_with_starts_there_and_back(strokes):
    ink = Ink(tuple(strokes), FRAME)
    assert Ink.from_xys(ink.to_xys(), FRAME) == ink
    assert len(ink.to_xys()) == ink.n_points
    assert ink.to_xys()[:, 2].sum() == len(strokes)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[1, 2]], r"expected \(n, 3\)"),
        ([[1, 2, 0.5]], "s must be 0 or 1"),
        ([[1, 2, 0]], "first stroke's start is missing"),
    ],
)
def test_points_that_do_not_tell_their_strokes(points, message):
    with pytest.raises(DataError, match=message):
        Ink.from_xys(points, FRAME)


def test_measures():
    ink = Ink((LINE, DOT), FRAME, ([1, 2], [9]))
    assert (ink.n_points, ink.bounds, ink.length, ink.pen_width) == (3, (1, 2, 7, 8), 5, 2)
    empty = Ink((), FRAME)
    assert (empty.n_points, empty.length, empty.pen_width, empty.to_xys().shape) == (0, 0, None, (0, 3))
    with pytest.raises(DataError, match="no bounds"):
        _ = empty.bounds


def test_transform_moves_points_and_scales_widths():
    ink = Ink((LINE,), FRAME, ([1, 2],), ([0, 1],))
    moved = ink.transform([[2, 0, 10], [0, 8, -1]], Frame(99, 99))
    assert (moved.frame, moved.strokes[0].tolist()) == (Frame(99, 99), [[12, 15], [18, 47]])
    assert moved.widths is not None
    np.testing.assert_allclose(moved.widths[0], [4, 8])
    assert moved.times is not None
    assert moved.times[0].tolist() == [0, 1]
    assert moved.times_source is None
    estimated = Ink((LINE,), FRAME, None, ([0, 1],), "estimated")
    assert estimated.transform([[2, 0, 10], [0, 8, -1]], Frame(99, 99)).times_source == "estimated"
    for matrix in (np.eye(3), np.full((2, 3), np.nan)):
        with pytest.raises(DataError, match="an affine matrix"):
            ink.transform(matrix, FRAME)


def test_concat():
    a, b = Ink((LINE,), FRAME, ([1, 2],), ([0, 1],), "recorded"), Ink((DOT,), FRAME, ([3],))
    assert Ink.concat([a, b], FRAME) == Ink((LINE, DOT), FRAME, ([1, 2], [3]))
    assert Ink.concat([a, Ink((DOT,), FRAME)], FRAME).widths is None
    assert Ink.concat([], FRAME) == Ink((), FRAME)
    with pytest.raises(DataError, match="transform it first"):
        Ink.concat([a], Frame(1, 1))


def test_svg_shows_the_whole_frame_or_the_ink():
    ink = Ink((LINE, DOT), FRAME)
    root = ET.fromstring(ink.to_svg(color="red"))
    assert root.attrib["viewBox"] == "-0.5 -0.5 40 30"  # the first pixel's centre is (0, 0)
    paths = root.findall("{*}path")
    assert [p.attrib["d"] for p in paths] == ["M1.00 2.00 L4.00 6.00", "M7.00 8.00 l0 0"]
    assert {p.attrib["stroke"] for p in paths} == {"red"}
    assert ET.fromstring(ink.to_svg(width=1, crop=True)).attrib["viewBox"] == "-1 0 10 10"
    coloured = ET.fromstring(ink.to_svg()).findall("{*}path")
    assert [p.attrib["stroke"] for p in coloured] == [order_color(0, 2), order_color(1, 2)]


def test_replay_draws_one_stroke_after_another():
    root = ET.fromstring(Ink((LINE, DOT), FRAME).to_svg(replay=True))
    begins = [float(a.attrib["begin"].removesuffix("s")) for a in root.findall(".//{*}animate")]
    assert len(begins) == 2
    assert begins[0] == 0 < begins[1]


def replayed(ink):
    animations = ET.fromstring(ink.to_svg(replay=True)).findall(".//{*}animate")
    return [
        (*(float(a.attrib[k].removesuffix("s")) for k in ("begin", "dur")), a.attrib["values"].split(";"))
        for a in animations
    ]


def test_replay_keeps_the_pace_of_the_times():
    line = np.stack([np.arange(11.0), np.zeros(11)], axis=1)
    slow_start = 7e8 + np.append(np.linspace(0, 2, 6), np.linspace(2, 2.5, 6)[1:])
    (begin, lasting, offsets), dot = replayed(Ink((line, DOT), FRAME, None, (slow_start, [7e8 + 4])))
    assert (begin, lasting, dot[0]) == (0, 2.5, 4)
    assert [float(v) for v in offsets] == sorted(map(float, offsets), reverse=True)
    # Half of the way is drawn when four fifths of the time are over, and all at the end.
    assert float(offsets[0]) == 1.01
    assert float(np.interp(0.8, np.linspace(0, 1, len(offsets)), np.array(offsets, float))) == pytest.approx(
        0.5, abs=0.03
    )
    assert float(offsets[-1]) == 0
    (_, lasting, _), (begin, _, _) = replayed(Ink((line, DOT), FRAME, None, ((slow_start - 7e8) * 100, [500])))
    assert (lasting, begin) == (5, 10)  # sped up


def test_replay_of_times_that_stand_still():
    still = Ink((LINE, [[1, 1], [1, 1]]), FRAME, None, ([3, 3], [3, 4]))
    assert [offsets for _, _, offsets in replayed(still)] == [["1.01", "0"]] * 2
    assert all(lasting > 0 for _, lasting, _ in replayed(still))


def test_an_ink_shows_itself_in_notebooks():
    assert "times estimated" in Ink((LINE,), FRAME, None, ([0, 1],), "estimated")._repr_html_()
    assert "times of unknown source" in Ink((LINE,), FRAME, None, ([0, 1],))._repr_html_()
    assert "<svg" in Ink((LINE,), FRAME)._repr_html_()
    assert "empty ink" in Ink((), FRAME)._repr_html_()
