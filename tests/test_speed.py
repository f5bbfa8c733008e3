"""Estimated times: what the speed model keeps to, degenerate ink by name, and the mark that never gets lost."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from itertools import pairwise
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inktraj.errors import DataError, ParseError
from inktraj.ink import Frame, Ink
from inktraj.io import InkRecord, read_ink, write_ink
from inktraj.page import WordCrop
from inktraj.recovery import Candidate, recover
from inktraj.recovery.speed import DWELL, LIFT, with_times

FRAME = Frame(400, 100)
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
WHOLE = st.integers(0, 60)
GRID_STROKES = st.lists(st.lists(st.tuples(WHOLE, WHOLE), min_size=1, max_size=12), min_size=1, max_size=5)
STROKES = st.lists(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12), max_size=5)


def timed(*strokes, **options):
    ink = with_times(Ink(strokes, FRAME), **options)
    assert ink.times_source == "estimated"
    assert ink.times is not None
    return ink.times


def speeds(stroke, times):
    """Speed at the middle of each step."""
    return np.hypot(*np.diff(stroke, axis=0).T) / np.diff(times)


def line(*corners, step=0.5):
    """A path along straight lines in steps of the same length."""
    parts = [np.asarray(corners[:1], float)]
    for a, b in pairwise(corners):
        n = round(float(np.hypot(b[0] - a[0], b[1] - a[1])) / step)
        parts.append(np.linspace(a, b, n + 1)[1:])
    return np.concatenate(parts)


def arc(x, y, r, start, end, step=0.5):
    a = np.linspace(start, end, max(round(abs(end - start) * r / step), 2))
    return np.stack([x + r * np.cos(a), y + r * np.sin(a)], axis=1)


def hook(r):
    """A stem of 100 units and a half circle behind it."""
    return np.concatenate([line((0, 0), (0, 100)), arc(r, 100, r, np.pi, 0)[1:]])


# The model


def test_curves_are_slower_than_straights_of_the_same_stroke():
    stroke = hook(12)
    (times,) = timed(stroke, height=100)
    v = speeds(stroke, times)
    stem, bend = v[60:150], v[205:260]
    assert stem.min() > 1.5 * bend.max()


def test_on_circles_speed_follows_the_two_thirds_power_law():
    """Speeds midway on large and small circles are to each other as (κ + 1)^(−1/3)."""
    middle = []
    radii = np.array([15.0, 25.0, 50.0, 100.0])
    for r in radii:
        circle = arc(0, 0, r, 0, 2 * np.pi)
        v = speeds(circle, timed(circle, height=100)[0])
        middle.append(np.median(v[len(v) // 3 : -len(v) // 3]))
    law = (100 / radii + 1) ** (-1 / 3)
    np.testing.assert_allclose(np.array(middle) / middle[-1], law / law[-1], rtol=0.02)


def test_the_pen_is_slow_at_ends_and_where_it_turns_back():
    stroke = line((0, 0), (0, 100), (0, 20))
    v = speeds(stroke, timed(stroke, height=100)[0])
    assert v[100] > 3 * max(v[0], v[199], v[200], v[-1])


def test_sharper_corners_are_slower():
    least = []
    for degrees in (0, 30, 60, 90, 120, 150, 180):
        a = np.radians(degrees)
        stroke = line((0, 0), (0, 100), (100 * np.sin(a), 100 + 100 * np.cos(a)))
        v = speeds(stroke, timed(stroke, height=100)[0])
        least.append(v[150:250].min())
    assert np.all(np.diff(least) < 0)


def test_a_straight_stroke_speeds_up_and_slows_down_alike():
    stroke = line((0, 0), (0, 100))
    v = speeds(stroke, timed(stroke, height=100)[0])
    np.testing.assert_allclose(v, v[::-1], rtol=1e-9)
    assert (np.diff(v[: len(v) // 2]) >= -1e-9).all()


def test_times_do_not_depend_much_on_how_densely_a_stroke_is_sampled():
    for path in (line((0, 0), (0, 100)), line((0, 0), (0, 100), (80, 60)), arc(0, 0, 30, 0, 6.28)):
        whole = [timed(p, height=100)[0][-1] for p in (path[::20], path[::4], path, line(*path[::10], step=0.01))]
        assert max(whole) < 1.2 * min(whole)


def test_the_air_takes_longer_the_farther():
    gaps = []
    for distance in (1, 10, 50, 300):
        a, b = timed([[0, 0], [0, 100]], [[distance, 100], [distance, 0]], height=100)
        gaps.append(b[0] - a[-1])
    assert gaps[0] > LIFT
    assert np.all(np.diff(gaps) > 0)
    assert gaps[-1] < 0.5


def test_a_word_of_five_letters_takes_a_second_or_two(shared_data):
    with np.load(shared_data / "unipen_words.npz") as archive:
        text = archive["text"]
        words = np.flatnonzero((np.char.str_len(text) == 5) & (archive["split"] == "train"))[:100]
        offsets, strokes = archive["word_offsets"], archive["stroke_offsets"]
        points = np.cumsum(archive["delta"][: strokes[offsets[words[-1] + 1]]], axis=0, dtype=np.int16).astype(float)
    lasting = []
    for word in words:
        marks = strokes[offsets[word] : offsets[word + 1] + 1]
        times = timed(*(points[a:b] for a, b in pairwise(marks) if b > a))
        lasting.append(times[-1][-1])
    quick, slow = np.percentile(lasting, [10, 90])
    assert 1 < quick < slow < 3


# What holds for every ink


@given(STROKES)
@settings(deadline=None, max_examples=150)
def test_times_of_any_ink(strokes):
    ink = Ink(tuple(strokes), FRAME)
    got = with_times(ink)
    assert replace(got, times=None, times_source=None) == ink
    assert got.times_source == "estimated"
    assert got.times is not None
    assert [t[0] for t in got.times[:1]] == [0][: len(strokes)]
    assert all((np.diff(t) > 0).all() for t in got.times)
    assert all(b[0] - a[-1] >= LIFT * (1 - 1e-9) for a, b in pairwise(got.times))
    assert all(len(t) == 1 or t[-1] - t[0] >= DWELL * (1 - 1e-9) for t in got.times)
    assert with_times(got) == got


@given(GRID_STROKES, st.floats(0.01, 100), st.booleans())
@settings(deadline=None, max_examples=100)
def test_a_word_drawn_larger_or_mirrored_takes_the_same_time(strokes, size, mirrored):
    scale = np.array([-size if mirrored else size, size])
    a, b = timed(*strokes), timed(*(np.array(s) * scale for s in strokes))
    for p, q in zip(a, b, strict=True):
        np.testing.assert_allclose(p, q, rtol=1e-6)


def test_isochrony_is_broken_by_a_given_height():
    stroke = hook(12)
    assert timed(stroke, height=50)[0][-1] > 1.1 * timed(stroke, height=100)[0][-1]
    a, b = timed(stroke, height=100)[0], timed(stroke * 3 + 17, height=300)[0]
    np.testing.assert_allclose(a, b, rtol=1e-9)


def test_a_million_points_are_quick(rng):
    walk = np.cumsum(rng.normal(size=(1_000_000, 2)), axis=0)
    strokes = np.split(walk, range(1000, 1_000_000, 1000))
    with_times(Ink((walk[:100],), FRAME))
    start = perf_counter()
    (*_, last) = timed(*strokes, height=100)
    assert perf_counter() - start < 5  # 0.7 s on an idle core
    assert np.isfinite(last).all()


# Degenerate ink


def test_empty_ink():
    assert timed() == ()
    assert timed(height=3) == ()


def test_a_single_dot():
    assert timed([[5, 5]])[0].tolist() == [0]


def test_a_dot_dwells_before_the_next_stroke():
    dots = timed([[0, 0]], [[9, 0]])
    assert dots[1][0] > DWELL + LIFT
    short, dot = timed([[0, 0], [0, 0]], [[9, 0]]), dots[1][0]
    assert short[0].tolist() == pytest.approx([0, DWELL])
    assert short[1][0] == pytest.approx(dot)


def test_a_dot_of_many_equal_points_is_passed_evenly():
    (times,) = timed([[3, 4]] * 5)
    np.testing.assert_allclose(times, np.linspace(0, DWELL, 5))


def test_repeated_points_take_next_to_no_time():
    plain = line((0, 0), (0, 100), (40, 100))
    doubled = np.repeat(plain, 3, axis=0)
    a, b = timed(plain)[0], timed(doubled)[0]
    np.testing.assert_allclose(a, b[::3], atol=1e-5 * len(plain))
    assert (np.diff(b) > 0).all()


def test_a_stroke_of_two_points():
    (times,) = timed([[0, 0], [0, 100]])
    assert 0.1 < times[1] < 0.25
    (horizontal,) = timed([[0, 0], [100, 0]], height=100)
    assert horizontal[1] == pytest.approx(times[1])


def test_a_dash_has_no_height():
    (times,) = timed(line((0, 50), (100, 50)))
    assert times[-1] < 1.5


def test_a_closed_ring_begins_and_ends_slowly():
    ring = arc(0, 0, 50, 0, 2 * np.pi)
    ring[-1] = ring[0]
    v = speeds(ring, timed(ring)[0])
    assert 0.2 < timed(ring)[0][-1] < 1
    assert v[len(v) // 2] > 2 * max(v[0], v[-1])


def test_colons_and_specks_far_apart():
    assert timed([[0, 0]], [[0, 9]])[1][0] < 1
    assert timed([[0, 0], [1e-9, 0]], [[9, 0]])[1][0] < 1


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e300, 1.7e308])
def test_numbers_at_the_edge_of_all_numbers(size):
    times = timed([[-size, -size], [size, size], [size, 0]], [[0, 0]])
    assert np.isfinite(np.concatenate(times)).all()
    assert times[-1][0] < 5


@pytest.mark.parametrize("height", [0, -1, np.nan, np.inf, "7", None])
def test_a_height_is_positive(height):
    if height is None:
        assert timed([[0, 0], [0, 9]], height=None)
        return
    for strokes in ((), ([[0, 0], [0, 9]],)):
        with pytest.raises(DataError, match="height must be a positive number"):
            with_times(Ink(strokes, FRAME), height=height)


def test_a_height_in_another_unit_is_noticed():
    with pytest.raises(DataError, match="another unit than the ink's frame"):
        with_times(Ink(([[0, 0], [0, 90]],), FRAME), height=0.002)


# The mark


@pytest.mark.parametrize("source", ["recorded", None])
def test_times_that_may_be_recorded_are_not_replaced(source):
    ink = Ink(([[0, 0], [0, 9]],), FRAME, None, ([0, 1],), source)
    with pytest.raises(DataError, match="which estimated ones would replace"):
        with_times(ink)
    assert with_times(replace(ink, times=None, times_source=None)).times_source == "estimated"


@given(STROKES.filter(bool), st.sampled_from(["inkml", "jsonl", "svg"]))
@settings(deadline=None, max_examples=60)
def test_the_mark_comes_back_from_every_form(strokes, form):
    file = io.BytesIO()
    write_ink(file, [InkRecord("w", with_times(Ink(tuple(strokes), FRAME)))], form)
    (record,) = read_ink(io.BytesIO(file.getvalue()), form)
    assert record.ink.times_source == "estimated"
    assert record.ink.times is not None
    assert "timesSource" not in record.extra
    assert all((np.diff(t) > 0).all() for t in record.ink.times)  # points stay apart at a microsecond's precision
    # … also when it is moved, and from form to form.
    file = io.BytesIO()
    write_ink(file, [replace(record, ink=record.ink.transform([[2, 0, 1], [0, 2, 1]], FRAME))], "jsonl")
    assert read_ink(io.BytesIO(file.getvalue()), "jsonl")[0].ink.times_source == "estimated"


BEFORE = {
    "jsonl": '{"id": "w", "frame": {"width": 9, "height": 9}, "strokes": [[1, 2, 1], [3, 4, 0]], "times": [0, 1]}',
    "inkml": '<ink><traceFormat><channel name="X"/><channel name="Y"/><channel name="T"/></traceFormat>'
    "<traceGroup><trace>1 2 0, 3 4 1000</trace></traceGroup></ink>",
    "svg": '<svg xmlns="http://www.w3.org/2000/svg"><g id="w" data-text="" data-frame="9 9 px">'
    '<path d="M1 2L3 4" data-times="0 1"/></g></svg>',
}


@pytest.mark.parametrize("form", BEFORE)
def test_files_that_do_not_say_where_their_times_come_from_claim_nothing(form):
    (record,) = read_ink(io.StringIO(BEFORE[form]), form)
    assert record.ink.times is not None
    assert record.ink.times[0].tolist() == [0, 1]
    assert record.ink.times_source is None
    file = io.StringIO()
    write_ink(file, [record], form)
    assert "source=" not in file.getvalue()
    assert "times_source" not in file.getvalue()
    assert "timesSource" not in file.getvalue()


def test_a_source_that_is_none_of_ours():
    line = BEFORE["jsonl"].replace('"times"', '"times_source": "tablet", "times"')
    with pytest.raises(ParseError, match="line 1: times_source is 'tablet', expected recorded, estimated or None"):
        read_ink(io.StringIO(line), "jsonl")
    drawing = BEFORE["svg"].replace("data-text", 'data-times-source="tablet" data-text')
    with pytest.raises(ParseError, match="times_source is 'tablet'"):
        read_ink(io.StringIO(drawing), "svg")
    # Annotations of other people's InkML may be called so and mean something else.
    note = '<annotation type="timesSource">tablet</annotation><trace>'
    (record,) = read_ink(io.StringIO(BEFORE["inkml"].replace("<trace>", note)), "inkml")
    assert (record.ink.times_source, record.extra["timesSource"]) == (None, "tablet")
    file = io.StringIO()
    write_ink(file, [record], "inkml")
    (again,) = read_ink(io.StringIO(file.getvalue()), "inkml")
    assert (again.ink.times_source, again.extra["timesSource"]) == (None, "tablet")


def test_a_source_without_times():
    line = json.dumps({**json.loads(BEFORE["jsonl"]), "times": None, "times_source": "estimated"})
    with pytest.raises(ParseError, match="but there are no times"):
        read_ink(io.StringIO(line), "jsonl")
    note = '<annotation type="timesSource">estimated</annotation><trace>'
    backwards = BEFORE["inkml"].replace("<trace>", note).replace("1000", "-1000")
    (record,) = read_ink(io.StringIO(backwards), "inkml")
    assert (record.ink.times, record.ink.times_source) == (None, None)
    assert "backwards" in record.extra["times"]


# Recovery


class Given:
    """A recoverer that has its ink at hand."""

    name, version = "given", "1"

    def __init__(self, ink):
        self.ink = ink

    def __call__(self, crop: WordCrop, *, text=None, n_best=1):
        return [Candidate(self.ink)]


def test_recover_adds_times_on_request():
    picture = np.full((60, 90), 255, np.uint8)
    picture[10:50, 20:24] = 0
    picture[46:50, 20:70] = 0
    plain, timed = recover(picture), recover(picture, times=True)
    assert plain.times is None
    assert timed.times_source == "estimated"
    assert replace(timed, times=None, times_source=None) == plain
    assert recover(np.full((9, 9), 255, np.uint8), times=True).times == ()


def test_recover_keeps_a_recoverers_own_times():
    own = Ink(([[0, 0], [0, 9]],), FRAME, None, ([3, 4],), "recorded")
    assert recover(np.zeros((9, 9), np.uint8), recoverer=Given(own), times=True) == own
