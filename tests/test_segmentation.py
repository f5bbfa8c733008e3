"""Segmentation: its parts on drawn masks, and whole pages against their truth."""

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import oracles_segmentation as oracles
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment

import inktraj
from inktraj.clean import Cleaned
from inktraj.errors import DataError
from inktraj.ink import Frame, Ink
from inktraj.page import Page
from inktraj.rendering import coverage
from inktraj.segmentation import Segmentation, Segmenter, segment
from inktraj.segmentation import words as words_module
from inktraj.segmentation.assign import _grow, assign
from inktraj.segmentation.inkgap import InkGapSegmenter, _crop
from inktraj.segmentation.lines import Track, bent, tracks_from_quads
from inktraj.segmentation.outline import outline
from inktraj.segmentation.strip import STRIP_HEIGHT, strip, strip_scale
from inktraj.segmentation.words import Units, breaks, gap_threshold, group, reader_trust, seen_spaces, slant, units

EXAMPLES = Path(__file__).parents[1] / "examples/pages"


# --- the entry ---


@pytest.mark.parametrize("given", [np.zeros((4, 4, 3), np.uint8), "page.png", Path("page.png"), None])
def test_only_pages_are_segmented(given):
    with pytest.raises(DataError, match=r"segment takes a Page, not \w+; use inktraj.Page\(pixels\)"):
        segment(given)


# --- tracks ---


def level(y, x0=0.0, x1=300.0, height=40.0, **options):
    return Track(np.array([x0, float(y)]), np.array([x1, float(y)]), height, **options)


points = arrays(np.float64, st.tuples(st.integers(1, 8), st.just(2)), elements=st.floats(-2000, 2000))
tracks = st.builds(
    lambda x, y, length, turn, height, bend: Track(
        np.array([x, y]), np.array([x + length * np.cos(turn), y + length * np.sin(turn)]), height, tuple(bend)
    ),
    st.floats(-500, 500),
    st.floats(-500, 500),
    st.floats(10, 2000),
    st.floats(-0.6, 0.6),
    st.floats(5, 200),
    st.lists(st.floats(-50, 50), min_size=1, max_size=3),
)


@given(tracks, points)
def test_local_and_page_are_inverse(track, at):
    np.testing.assert_allclose(track.page(track.local(at)), at, atol=1e-6)
    np.testing.assert_allclose(track.local(track.page(at)), at, atol=1e-6)


def test_local_coordinates_run_along_the_line_and_downwards():
    track = Track(np.array([10.0, 20.0]), np.array([10.0 + 80, 20.0 + 60]), 30)
    assert track.length == pytest.approx(100)
    np.testing.assert_allclose(track.local(np.array([[10.0, 20.0], [90.0, 80.0]])), [[0, 0], [100, 0]], atol=1e-9)
    np.testing.assert_allclose(track.page(np.array([[0.0, 5.0]])), [[10 - 3, 20 + 4]])
    assert track.local(np.array([[10.0, 30.0]]))[0, 1] > 0


def quad(x0, x1, y, height=40.0, slope=0.0):
    """Corners of a piece of a line whose centre runs through (0, y)."""
    a, b = y + slope * x0, y + slope * x1
    half = height / 2
    return [[x0, a - half], [x1, b - half], [x1, b + half], [x0, a + half]]


def ends(found):
    return [(round(float(t.start[0])), round(float(t.start[1])), round(float(t.end[0]))) for t in found]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_pieces_of_one_line_are_joined(order):
    pieces = [quad(0, 200, 50), quad(230, 400, 53), quad(420, 600, 48)]
    found = tracks_from_quads(np.array([pieces[i] for i in order]))
    assert ends(found) == [(0, 50, 600)]
    assert found[0].height == pytest.approx(40)


def test_the_same_line_found_twice_is_one():
    found = tracks_from_quads(np.array([quad(0, 600, 50), quad(3, 597, 52, height=36), quad(300, 590, 51)]))
    assert ends(found) == [(0, 50, 600)]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (quad(0, 600, 50), quad(0, 600, 95)),
        (quad(0, 250, 50), quad(400, 650, 50)),
        (quad(0, 250, 50), quad(270, 520, 85)),
        (quad(0, 250, 50), quad(270, 400, 50, height=12)),
        (quad(0, 250, 50), quad(260, 500, -50, slope=0.4)),
    ],
    ids=["two lines", "columns", "stepped", "small print", "turned"],
)
def test_pieces_of_two_lines_stay_apart(a, b):
    assert len(tracks_from_quads(np.array([a, b]))) == 2


def test_lines_are_read_from_top_to_bottom_and_beside_each_other_from_the_left():
    quads = [quad(0, 300, 50 + 60 * i) for i in range(4)] + [quad(450, 600, 46)]
    for seed in range(4):
        shuffled = np.random.default_rng(seed).permutation(np.array(quads))
        assert ends(tracks_from_quads(shuffled)) == [
            (0, 50, 300),
            (450, 46, 600),
            *((0, y, 300) for y in (110, 170, 230)),
        ]


def test_a_side_note_is_read_with_the_line_that_it_stands_beside():
    lines = [quad(150, 700, 50 + 70 * i) for i in range(4)]
    assert ends(tracks_from_quads(np.array([quad(0, 45, 190, height=30), *lines]))) == [
        (150, 50, 700),
        (150, 120, 700),
        (0, 190, 45),
        (150, 190, 700),
        (150, 260, 700),
    ]


@pytest.mark.parametrize("slope", [-0.05, 0.05])
def test_sloped_lines_keep_their_order(slope):
    quads = np.array([quad(x, x + 250, 100 + 60 * i, slope=slope) for i in range(5) for x in (0, 265, 530)])
    found = tracks_from_quads(np.random.default_rng(1).permutation(quads))
    assert [round(float(t.start[1])) for t in found] == [100, 160, 220, 280, 340]


def test_no_quads_no_lines():
    assert tracks_from_quads(np.zeros((0, 4, 2))) == []


@pytest.mark.parametrize("corners", [quad(0, 20, 50, height=200), quad(5, 5, 5, height=0), quad(0, 10, 5, height=2)])
def test_upright_and_vanishing_quads_are_no_lines(corners):
    assert tracks_from_quads(np.array([corners], dtype=float)) == []


def test_a_track_bends_to_its_ink():
    u = np.linspace(0, 800, 4000)
    rise = 14 * np.sin(np.pi * u / 800)
    jitter = np.random.default_rng(0).uniform(-8, 8, len(u))
    track = bent(level(100, 0, 800), np.column_stack([u, 100 + rise + jitter]))
    np.testing.assert_allclose(track.centre(u), rise, atol=3)
    assert bent(level(100, 0, 800), np.zeros((0, 2))).bend == (0.0,)


# --- ink to lines ---


@given(
    arrays(np.bool_, st.tuples(st.integers(1, 14), st.integers(1, 14))).flatmap(
        lambda ink: st.tuples(st.just(ink), arrays(np.int32, ink.shape, elements=st.sampled_from([-1] * 9 + [0, 1, 2])))
    )
)
@settings(max_examples=150)
def test_labels_grow_to_the_nearest_along_the_ink(case):
    ink, seeds = case
    seeds[~ink] = -1
    labels = seeds.copy()
    _grow(ink.view(np.uint8), labels)
    nearest = oracles.nearest_labels(ink, seeds)
    for at in np.ndindex(ink.shape):
        assert labels[at] in (nearest[at] or {-1})
    np.testing.assert_array_equal(labels[seeds >= 0], seeds[seeds >= 0])


LINES = [level(60, 20, 380), level(120, 20, 380)]


def two_lines():
    """Two rows of upright bars, 24 px high, around the centres of `LINES`."""
    ink = np.zeros((200, 400), bool)
    for y in (60, 120):
        for x in range(30, 370, 20):
            ink[y - 12 : y + 12, x : x + 4] = True
    return ink


def test_every_bar_goes_to_its_line():
    ink = two_lines()
    labels = assign(ink, LINES)
    np.testing.assert_array_equal(labels >= 0, ink)
    assert (labels[:90][ink[:90]] == 0).all()
    assert (labels[90:][ink[90:]] == 1).all()


def test_a_descender_that_touches_the_line_below_is_divided_and_nothing_else_changes():
    before = assign(two_lines(), LINES)
    ink = two_lines()
    ink[60:120, 150:154] = True
    labels = assign(ink, LINES)
    others = two_lines()
    others[:, 150:154] = False
    np.testing.assert_array_equal(labels[others], before[others])
    shared = labels[48:132, 152]
    assert np.count_nonzero(np.diff(shared)) == 1
    assert 48 + int(np.argmax(shared == 1)) == pytest.approx(90, abs=3)


@pytest.mark.parametrize(("y", "line"), [(40, 0), (80, 0), (99, 1), (140, 1)])
def test_a_dot_goes_to_the_line_whose_ink_is_nearest(y, line):
    ink = two_lines()
    ink[y : y + 4, 71:75] = True
    assert (assign(ink, LINES)[y : y + 4, 71:75] == line).all()


def test_ink_far_from_every_line_is_of_no_line():
    ink = two_lines()
    ink[185:195, 100:200] = True
    ink[110:190, 250:253] = True  # a frame that touches the lower line
    labels = assign(ink, LINES)
    assert (labels[185:195, 100:200] == -1).all()
    assert (labels[180:190, 250:253] == -1).all()


def test_a_dot_far_from_all_ink_is_of_no_line():
    ink = two_lines()
    ink[12:16, 71:75] = True
    assert (assign(ink, LINES)[12:16, 71:75] == -1).all()


def test_ink_beyond_a_lines_reach_is_not_its_own():
    ink = two_lines()
    ink[58:62, 370:398] = True  # from the end of the upper line
    ink[58:165, 394:398] = True  # down past the end of the lower one
    labels = assign(ink, LINES)
    assert (labels[58:100, 394:398] == 0).all()
    assert (labels[115:165, 394:398] != 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_labels_are_on_ink_only(seed):
    rng = np.random.default_rng(seed)
    ink = cv2.GaussianBlur(rng.normal(0, 1, (220, 400)), (0, 0), 2) > 0.12
    before = ink.copy()
    labels = assign(ink, [*LINES, Track(np.array([-50.0, 190.0]), np.array([500.0, 150.0]), 30, (5.0, -5.0, 0.0))])
    np.testing.assert_array_equal(ink, before)
    assert labels.shape == ink.shape
    assert labels.dtype == np.int32
    assert set(np.unique(labels)) <= {-1, 0, 1, 2}
    assert (labels[~ink] == -1).all()


@pytest.mark.parametrize("ink", [np.zeros((50, 60), bool), np.ones((50, 60), bool), np.ones((1, 1), bool)])
@pytest.mark.parametrize("found", [[], [level(20, 5, 50, 20)], [level(900, 5, 50, 20)]], ids=["none", "one", "outside"])
def test_lines_of_plain_masks(ink, found):
    labels = assign(ink, found)
    assert labels.shape == ink.shape
    assert (labels[~ink] == -1).all()
    assert (labels < max(len(found), 1)).all()


# --- words ---


@pytest.mark.parametrize(("letters", "spaces"), [(0.05, 0.35), (0.1, 0.6), (0.2, 0.7), (0.0, 0.3)])
@pytest.mark.parametrize("count", [30, 300])
def test_the_threshold_lies_between_letters_and_words(letters, spaces, count):
    rng = np.random.default_rng(count)
    near, wide = rng.normal(letters, 0.03, count), rng.normal(spaces, 0.05, count // 3)
    threshold = gap_threshold(rng.permutation(np.concatenate([near, wide])))
    assert np.mean(near < threshold) > 0.98
    assert np.mean(wide > threshold) > 0.98


@pytest.mark.parametrize("gaps", [[], [0.2], [np.nan, np.inf], [0.25] * 50, [-3.0, 9.0], [0.0] * 5])
def test_the_threshold_is_sane_however_few_the_gaps(gaps):
    assert 0.08 < gap_threshold(np.array(gaps)) < 0.85


def row(gaps, width=20.0, height=40.0):
    """Parts of equal width with these gaps, in multiples of the height, between them."""
    left = np.cumsum([0.0, *(width + np.asarray(gaps) * height)])
    spans = np.column_stack([left[:-1] + width, left[1:]])
    none = np.zeros(0, np.int64)
    return Units(none, none, none, none, np.asarray(gaps, float), spans, np.zeros(0)), float(left[-1] + width)


def read_spaces(places, length, columns=100):
    """The reader's probabilities with a narrow peak at each place, in pixels."""
    at = (np.arange(columns) + 0.5) * length / columns
    return (
        np.sum([np.exp(-0.5 * ((at - p) / (0.6 * length / columns)) ** 2) for p in places] or [0 * at], axis=0) * 0.95
    )


def test_each_space_goes_to_its_gap():
    parts, length = row([0.05, 0.4, 0.1, 0.02, 0.5, 0.08])
    middles = parts.spans.mean(axis=1)
    seen = seen_spaces(parts, read_spaces(middles[[1, 4]], length), length)
    assert (seen[[1, 4]] > 0.5).all()
    assert (seen[[0, 2, 3, 5]] == 0).all()


def test_a_space_misplaced_by_two_steps_still_finds_the_wide_gap():
    parts, length = row([0.02, 0.4, 0.02, 0.02])
    for shift in (-2, 2):
        seen = seen_spaces(parts, read_spaces([parts.spans[1].mean() + shift * length / 100], length), length)
        assert seen.argmax() == 1
        assert np.count_nonzero(seen) == 1


@pytest.mark.parametrize("gaps", [[0.3, 0.05], [0.05, 0.3]])
def test_a_space_between_two_gaps_goes_to_the_wider(gaps):
    parts, length = row([0.0] * 10 + gaps + [0.0] * 10, width=6)
    wide, narrow = 10 + int(np.argmax(gaps)), 10 + int(np.argmin(gaps))
    seen = seen_spaces(parts, read_spaces([parts.spans[narrow].mean()], length, columns=15), length)
    assert seen[wide] > 0.5
    assert seen[narrow] == 0


def test_a_space_where_there_is_no_gap_goes_to_none():
    parts, length = row([0.3, 0.3], width=200)
    assert not seen_spaces(parts, read_spaces([100], length), length).any()


@pytest.mark.parametrize("gaps", [[], [0.3]])
def test_nothing_seen_in_nothing(gaps):
    parts, length = row(gaps)
    for p in (np.zeros(0), np.zeros(40)):
        assert seen_spaces(parts, p, length).tolist() == [0.0] * len(gaps)


def test_without_trust_the_gaps_alone_decide():
    gaps = np.array([0.1, 0.29, 0.31, 0.9])
    for seen in (np.zeros(4), np.ones(4)):
        assert breaks(gaps, seen, 0.3, 0.0).tolist() == [False, False, True, True]


def test_with_trust_the_reader_decides():
    gaps = np.array([0.0, 0.02, 0.35, 0.3 * words_module.UNSEEN + 0.01])
    assert breaks(gaps, np.ones(4), 0.3, 1.0).tolist() == [True, True, True, True]
    assert breaks(gaps, np.zeros(4), 0.3, 1.0).tolist() == [False, False, False, True]


@given(arrays(np.float64, 6, elements=st.floats(-0.2, 1.2)), st.floats(0.1, 0.8), st.floats(0, 1))
def test_more_seen_never_joins(gaps, threshold, trust):
    last = np.zeros(6, bool)
    for p in (0.0, 0.2, 0.5, 1.0):
        now = breaks(gaps, np.full(6, p), threshold, trust)
        assert (now >= last).all()
        last = now


def test_trust_is_the_share_of_wide_gaps_seen():
    gaps = np.array([0.1, 0.1, 0.8, 0.9])
    assert reader_trust(gaps, np.array([0, 0, 1.0, 1.0]), 0.3) == 1
    assert reader_trust(gaps, np.array([1.0, 1.0, 0, 0]), 0.3) == 0
    assert 0 < reader_trust(gaps, np.array([0, 0, 0.3, 0.3]), 0.3) < 1
    assert reader_trust(np.zeros(0), np.zeros(0), 0.3) == 0


def bars(places, dots=(), lean=0.0, tall=20):
    """Bars at these places around y = 60, leaning by `lean`, with dots above some places: labels of one line."""
    ink = np.zeros((120, 400), np.uint8)
    for x in places:
        shift = lean * tall / 2
        cv2.line(ink, (round(x - shift), 60 + tall // 2), (round(x + shift), 60 - tall // 2), 1, 4)
    for x in dots:
        cv2.circle(ink, (x, 36), 3, 1, -1)
    return np.where(ink > 0, 0, -1).astype(np.int32)


def test_parts_are_in_order_with_their_gaps():
    labels = bars([40, 60, 130, 150])
    parts = units(labels, 0, (0, 0, 400, 120), level(60), 0.0)
    assert len(parts.ys) == (labels == 0).sum()
    np.testing.assert_allclose(parts.gaps, [16 / 40, 66 / 40, 16 / 40], atol=3 / 40)
    assert (np.diff([parts.xs[parts.part == i].mean() for i in range(4)]) > 0).all()
    np.testing.assert_allclose(parts.spans[:, 1] - parts.spans[:, 0], parts.gaps * 40, atol=1)


@pytest.mark.parametrize("lean", [-0.4, 0.5])
def test_leaning_letters_are_set_upright_before_gaps_are_measured(lean):
    labels = bars(range(40, 360, 20), lean=lean, tall=24)
    parts = units(labels, 0, (0, 0, 400, 120), level(60), lean)
    for i in range(16):
        assert np.ptp(parts.upright[parts.part == i]) < 7
    np.testing.assert_allclose(parts.gaps, 16 / 40, atol=2.5 / 40)


@pytest.mark.parametrize("shift", [-3, 0, 3])
def test_dots_go_with_the_letter_below(shift):
    labels = bars([40, 60, 130, 150], dots=[60 + shift, 130 + shift])
    parts = units(labels, 0, (0, 0, 400, 120), level(60), 0.0)
    word = group(parts, np.array([False, True, False]), 40.0)
    assert set(word.tolist()) == {0, 1}
    np.testing.assert_array_equal(word, parts.xs > 95)


def test_far_marks_go_with_no_word():
    labels = bars([40, 60], dots=[200])
    parts = units(labels, 0, (0, 0, 400, 120), level(60), 0.0)
    word = group(parts, np.array([False]), 40.0)
    np.testing.assert_array_equal(word == -1, parts.xs > 150)


def test_marks_alone_make_no_word():
    parts = units(bars([], dots=[60, 90]), 0, (0, 0, 400, 120), level(60), 0.0)
    assert (group(parts, np.zeros(0, bool), 40.0) == -1).all()


@pytest.mark.parametrize("lean", [-0.3, 0.0, 0.3, 0.6])
def test_slant_is_how_far_letters_lean_to_the_right(lean):
    labels = bars(range(30, 370, 18), lean=lean, tall=44)
    ys, xs = np.nonzero(labels == 0)
    local = level(60).local(np.column_stack([xs, ys]).astype(float))
    assert slant([local], [40.0]) == pytest.approx(lean, abs=0.11)
    assert slant([], []) == 0


# --- outlines ---


@given(
    arrays(np.bool_, st.tuples(st.integers(1, 25), st.integers(1, 25)), elements=st.sampled_from([False] * 7 + [True])),
    st.integers(1, 5),
    st.integers(0, 8),
)
@settings(max_examples=150)
def test_an_outline_is_valid_and_holds_all_ink(mask, margin, reach):
    mask[0, -1] = True
    polygon = outline(mask, (100, -30), margin, reach)
    shape = shapely.Polygon(polygon)
    assert shape.is_valid
    assert not np.array_equal(polygon[0], polygon[-1])
    ys, xs = np.nonzero(mask)
    assert shapely.contains_xy(shape, xs + 100, ys - 30).all()


@pytest.mark.parametrize(
    "mask",
    [
        np.ones((1, 1), bool),
        np.ones((1, 40), bool),
        np.ones((40, 1), bool),
        np.eye(30, dtype=bool),
        np.pad(np.zeros((20, 60), bool), 2, constant_values=True),
        np.repeat([[True, False, True]], [3, 90, 3], axis=1),
    ],
    ids=["pixel", "row", "column", "diagonal", "ring", "two pieces"],
)
def test_outlines_of_simple_masks_are_tight(mask):
    shape = shapely.Polygon(outline(mask, (0, 0), 3, 10))
    ys, xs = np.nonzero(mask)
    assert shape.is_valid
    assert shapely.contains_xy(shape, xs, ys).all()
    hull = shapely.MultiPoint(np.column_stack([xs, ys])).convex_hull
    assert shape.within(hull.buffer(3 * 1.5 + 1))


# --- strips ---


def sloped(slope, bend=(0.0,), height=40.0):
    return Track(np.array([60.0, 150.0]), np.array([460.0, 150.0 + 400 * slope]), height, bend)


@pytest.mark.parametrize("bend", [(0.0,), (-40.0, 40.0, 0.0)], ids=["straight", "bent"])
@pytest.mark.parametrize("slope", [-0.2, 0.0, 0.15])
@pytest.mark.parametrize("height", [25.0, 40.0, 110.0])
def test_a_strip_straightens_its_line(slope, bend, height):
    track = sloped(slope, bend, height)
    gray = np.full((360, 560), 255, np.uint8)
    marks = np.array([40.0, 120.0, 300.0])
    path = track.page(np.column_stack([np.linspace(0, track.length, 200), np.zeros(200)]))
    cv2.polylines(gray, [np.int32(np.round(path * 16))], False, 0, max(2, round(height / 20)), cv2.LINE_AA, 4)
    for x, y in track.page(np.column_stack([marks, np.full(3, -0.3 * height)])):
        cv2.circle(gray, (round(x * 16), round(y * 16)), round(height / 16 * 16), 0, -1, cv2.LINE_AA, 4)
    image = strip(gray, np.ones(gray.shape, bool), track)
    assert image.shape == (STRIP_HEIGHT, round(track.length * strip_scale(track)))
    dark = 255.0 - image
    middle = dark[18:30]
    centre = (middle * np.arange(18, 30)[:, None]).sum(axis=0) / np.maximum(middle.sum(axis=0), 1)
    np.testing.assert_allclose(centre[3:-3], 23.5, atol=0.7)
    top = dark[:18].sum(axis=0)
    for u in marks:
        c = round(u * strip_scale(track))
        near = np.arange(c - 6, c + 7)
        assert (top[near] * near).sum() / top[near].sum() == pytest.approx(u * strip_scale(track) - 0.5, abs=0.6)


def test_a_strip_is_white_outside_its_own_ink_and_outside_the_page():
    gray = np.zeros((360, 560), np.uint8)
    own = np.zeros(gray.shape, bool)
    own[:, :260] = True
    image = strip(gray, own, sloped(0.0))
    half = round(200 * strip_scale(sloped(0.0)))
    assert (image[:, : half - 2] == 0).all()
    assert (image[:, half + 2 :] == 255).all()
    beyond = Track(np.array([500.0, 150.0]), np.array([900.0, 150.0]), 40)
    assert (strip(gray, np.ones(gray.shape, bool), beyond)[:, 80:] == 255).all()
    outside = Track(np.array([2000.0, 150.0]), np.array([2400.0, 150.0]), 40)
    assert (strip(gray, np.ones(gray.shape, bool), outside) == 255).all()


# --- whole pages ---


TRUTH = json.loads((EXAMPLES / "truth.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=range(len(TRUTH)), ids=[entry["image"] for entry in TRUTH])
def example(request):
    entry = TRUTH[request.param]
    page = Page.open(EXAMPLES / entry["image"])
    return page, segment(page), entry


def place(crop):
    """Page rows and columns of a crop's ink, by its map."""
    ys, xs = np.nonzero(crop.mask)
    at = np.column_stack([xs, ys]) @ crop.to_page[:, :2].T + crop.to_page[:, 2]
    np.testing.assert_array_equal(at, np.round(at))
    return at[:, 1].astype(int), at[:, 0].astype(int)


def painted(found, shape):
    """The number of the word at each pixel, −1 for none."""
    labels = np.full(shape, -1)
    for n, word in enumerate(found.words):
        labels[place(word)] = n
    return labels


def pairs(found, truth, shape):
    """One-to-one pairs (true, found) of words whose ink has an intersection over union of at least a half."""
    labels = painted(found, shape)
    sizes = np.bincount(labels[labels >= 0], minlength=len(found.words))
    overlap = np.zeros((len(truth), len(sizes)))
    for i, word in enumerate(truth):
        mask = coverage(Ink.from_xys(word["strokes"], Frame(*shape[::-1])), pen=word["pen"])
        common = np.bincount(labels[mask & (labels >= 0)], minlength=len(sizes))
        overlap[i] = common / (mask.sum() + sizes - common)
    rows, columns = linear_sum_assignment(-np.where(overlap >= 0.5, 1 + overlap, 0))
    return [(r, c) for r, c in zip(rows.tolist(), columns.tolist(), strict=True) if overlap[r, c] >= 0.5]


def test_the_words_of_an_example_page_are_found_in_reading_order(example):
    page, found, entry = example
    assert_words_found(found, entry["words"], page.pixels.shape[:2])
    assert len(found.words) <= 1.05 * len(entry["words"])
    matched = pairs(found, entry["words"], page.pixels.shape[:2])
    lines = {(entry["words"][r]["line"], found.words[c].line) for r, c in matched}
    assert len(lines) == len({a for a, _ in lines}) == len({b for _, b in lines})


def test_the_ink_of_an_example_page_is_all_in_its_words(example):
    page, found, entry = example
    true = np.zeros(page.pixels.shape[:2], bool)
    for word in entry["words"]:
        true |= coverage(Ink.from_xys(word["strokes"], page.frame), pen=word["pen"])
    near = cv2.dilate((painted(found, true.shape) >= 0).astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    assert (true & near).sum() > 0.99 * true.sum()


def test_crops_lie_on_the_pages_ink_and_share_none(example):
    page, found, _ = example
    taken = np.zeros(page.pixels.shape[:2], int)
    for word in found.words:
        at = place(word)
        assert found.cleaned.ink[at].all()
        np.testing.assert_array_equal(word.image[word.mask], found.cleaned.gray[at])
        taken[at] += 1
        edge = np.concatenate([word.image[0], word.image[-1], word.image[:, 0], word.image[:, -1]])
        assert (edge == 255).all()
    assert taken.max() == 1


def test_outlines_hold_their_words(example):
    _, found, _ = example
    for word in found.words:
        shape = word.shapely()
        ys, xs = place(word)
        assert shape.is_valid
        assert shapely.contains_xy(shape, xs, ys).all()


def test_lines_and_words_are_numbered_and_lie_on_their_baseline(example):
    _, found, _ = example
    names = [word.id for word in found.words]
    assert len(set(names)) == len(names)
    for n, line in enumerate(found.lines):
        assert line.index == n
        assert [(word.line, word.index) for word in line.words] == [(n, i) for i in range(len(line.words))]
        assert (np.diff(line.baseline[:, 0]) > 0).all()
        assert line.height > 0
        shape = shapely.Polygon(line.polygon)
        assert shape.is_valid
        rows, columns = (np.concatenate(v) for v in zip(*(place(word) for word in line.words), strict=True))
        assert shapely.contains_xy(shape.buffer(1), columns, rows).mean() > 0.98
        base = np.interp(columns, line.baseline[:, 0], line.baseline[:, 1])
        assert (rows <= base + 2).mean() > 0.75  # descenders are below it, no more


def test_a_crop_shows_no_ink_of_the_word_that_it_touches():
    gray = np.full((60, 80), 255, np.uint8)
    gray[20:40, 20:60] = 30
    gray[19, 20:60] = 200  # a soft edge
    ys, xs = np.nonzero(gray == 30)
    left = xs < 40
    crop = _crop(Cleaned(gray, gray == 30, 20.0, 0.0), ys[left], xs[left], 0, 0)
    shown = place(replace(crop, mask=crop.image < 255))
    np.testing.assert_array_equal(np.unique(shown[1][gray[shown] == 30]), np.arange(20, 40))
    assert (gray[shown] == 200).sum() in (20, 21)


def moved(entry, rows, columns):
    """An example page and its truth, with each point (x, y) moved to (columns(x, y), rows(x, y))."""
    page = Page.open(EXAMPLES / entry["image"])
    words = []
    for word in entry["words"]:
        x, y, start = np.array(word["strokes"]).T
        words.append({**word, "strokes": np.column_stack([columns(x, y), rows(x, y), start])})
    return page, words


def assert_words_found(found, words, shape):
    matched = pairs(found, words, shape)
    assert len(matched) >= 0.97 * len(words)
    order = [c for _, c in sorted(matched)]
    assert order == sorted(order)


def test_a_page_turned_by_two_degrees_gives_the_same_words():
    page = Page.open(EXAMPLES / TRUTH[0]["image"])
    (a, b, c), (d, e, f) = turn = cv2.getRotationMatrix2D((page.width / 2, page.height / 2), -2, 1.0)
    page, words = moved(TRUTH[0], lambda x, y: d * x + e * y + f, lambda x, y: a * x + b * y + c)
    pixels = cv2.warpAffine(page.pixels, turn, (page.width, page.height), borderMode=cv2.BORDER_REPLICATE)
    found = segment(Page(pixels))
    assert_words_found(found, words, pixels.shape[:2])
    assert found.cleaned.skew > 0  # falling to the right


def test_bent_lines_give_the_same_words_and_bent_baselines():
    def sag(x):
        return 30 * np.sin(np.pi * np.asarray(x) / 1240)

    page, words = moved(TRUTH[1], lambda x, y: y + sag(x), lambda x, y: x)
    x, y = np.meshgrid(np.arange(page.width), np.arange(page.height))
    from_y = (y - sag(x)).astype(np.float32)
    pixels = cv2.remap(page.pixels, x.astype(np.float32), from_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    found = segment(Page(pixels))
    assert_words_found(found, words, pixels.shape[:2])
    for line in found.lines:
        if np.ptp(line.baseline[:, 0]) > 800:
            x = np.linspace(line.baseline[0, 0], line.baseline[-1, 0], 50)
            flat = np.interp(x, *line.baseline.T) - sag(x)
            np.testing.assert_allclose(flat, np.polyval(np.polyfit(x, flat, 1), x), atol=5)


def test_same_page_same_words_and_the_pixels_are_not_touched():
    pixels = letters(1.8)
    before = pixels.copy()
    one, two = segment(Page(pixels)), segment(Page(before))
    np.testing.assert_array_equal(pixels, before)
    assert [word.id for word in one.words] == [word.id for word in two.words]
    for a, b in zip(one.words, two.words, strict=True):
        np.testing.assert_array_equal(a.image, b.image)
        np.testing.assert_array_equal(a.mask, b.mask)
        np.testing.assert_array_equal(a.to_page, b.to_page)


def test_the_embedded_segmenter_names_itself_and_another_takes_its_place():
    embedded = InkGapSegmenter()
    assert isinstance(embedded, Segmenter)
    assert (embedded.name, embedded.version) == ("inkgap", embedded.version)
    page = Page(np.full((40, 60, 3), 255, np.uint8))
    answer = Segmentation((), embedded(page).cleaned)
    assert inktraj.segment(page, segmenter=lambda given: answer if given is page else None) is answer


@pytest.mark.parametrize("grey", [255, 190, 0])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (1, 500), (400, 600)], ids=str)
def test_a_blank_page_has_no_lines(shape, grey):
    found = segment(Page(np.full((*shape, 3), grey, np.uint8)))
    assert found.lines == ()
    assert found.words == []
    assert found.cleaned.ink.shape == shape


def drawing():
    rng = np.random.default_rng(2)
    pixels = np.full((700, 900, 3), 245, np.uint8)
    for _ in range(40):
        cv2.circle(pixels, rng.integers(0, 900, 2).tolist(), int(rng.integers(20, 200)), (30, 30, 30), 3, cv2.LINE_AA)
    return pixels


def letters(scale):
    pixels = np.full((500, 900, 3), 245, np.uint8)
    for i in range(3):
        at = (60, 120 + 120 * i)
        cv2.putText(pixels, "some written words", at, cv2.FONT_HERSHEY_SCRIPT_SIMPLEX, scale, (30,) * 3, 3, cv2.LINE_AA)
    return pixels


ODD = {
    "noise": np.random.default_rng(1).integers(0, 256, (600, 800, 3), dtype=np.uint8),
    "drawing": drawing(),
    "light on dark": 255 - letters(1.8),
    "cut by every edge": np.ascontiguousarray(letters(1.8)[100:390, 100:500]),
    "a thin slice": np.ascontiguousarray(letters(1.8)[110:122]),
    "one letter": np.ascontiguousarray(letters(1.8)[60:150, 50:100]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_pages_do_not_fail(name):
    found = segment(Page(ODD[name]))
    shape = ODD[name].shape[:2]
    assert painted(found, shape).shape == shape
    for word in found.words:
        assert word.mask.any()
        assert word.shapely().is_valid


def test_typed_script_is_cut_at_its_spaces():
    assert [len(line.words) for line in segment(Page(letters(1.8))).lines] == [3, 3, 3]


def test_a_handwritten_note(shared_data):
    found = segment(Page.open(shared_data / "pages/inksight/page.jpg"))
    assert len(found.lines) in (1, 2)
    assert len(found.words) in (9, 10)  # the full stop may stand alone


def test_lines_detected_where_no_ink_lies_on_them_give_no_words(monkeypatch):
    pixels = np.full((300, 600, 3), 255, np.uint8)
    cv2.line(pixels, (120, 150), (150, 170), (0, 0, 0), 4)
    quad = np.array([[[50, 60], [550, 60], [550, 160], [50, 160]]], np.float64)  # the ink is at its lower edge
    monkeypatch.setattr("inktraj.ppocr.detect_lines", lambda image: (quad, np.ones(1)))
    found = segment(Page(pixels))
    assert found.cleaned.ink.any()
    assert found.lines == ()
