import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles_rendering import shares

from inktraj.errors import DataError
from inktraj.ink import Frame, Ink
from inktraj.rendering import DEFAULT_PEN, coverage, render

FRAME = Frame(23.0, 17.0)


def random_ink(rng, frame=FRAME, strokes=3):
    points = [rng.uniform(-4, (frame.width + 4, frame.height + 4), (rng.integers(1, 6), 2)) for _ in range(strokes)]
    return Ink(points, frame, [rng.uniform(0.6, 6, len(p)) for p in points])


def assert_greys_match(image, ink, radii, n, tolerance=1e-9):
    low, high = shares(image.shape[1], image.shape[0], ink.strokes, radii, n, tolerance)
    darkness = (255 - image.astype(float)) / 255
    assert (darkness >= low - 0.5 / 255 - 1e-9).all()
    assert (darkness <= high + 0.5 / 255 + 1e-9).all()


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n=st.sampled_from([1, 2, 3, 4, 8]), pen=st.floats(0.5, 9))
def test_constant_pen_is_the_set_of_samples_within_half_its_width_of_a_segment(seed, n, pen):
    ink = random_ink(np.random.default_rng(seed))
    image = render(ink, pen=pen, supersample=n)
    assert_greys_match(image, ink, [np.full(len(s), pen / 2) for s in ink.strokes], n)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_local_widths_are_the_union_of_discs_along_the_stroke(seed):
    ink = random_ink(np.random.default_rng(seed), strokes=2)
    image = render(ink, widths="local")
    # The oracle samples 1001 discs a segment, up to 40 px apart by 0.04 px: its edge is 1e-3 px inside the true one.
    assert_greys_match(image, ink, [w / 2 for w in ink.widths], 4, tolerance=2e-3)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), pen=st.floats(0.5, 9))
def test_coverage_is_the_pixel_centres_within_the_pen(seed, pen):
    ink = random_ink(np.random.default_rng(seed))
    low, high = shares(23, 17, ink.strokes, [np.full(len(s), pen / 2) for s in ink.strokes], 1)
    mask = coverage(ink, pen=pen)
    assert mask.dtype == np.bool_
    assert (mask >= low.astype(bool)).all()
    assert (mask <= high.astype(bool)).all()


def test_bands_join_without_a_seam(monkeypatch):
    ink = random_ink(np.random.default_rng(7), strokes=6)
    whole, mask = render(ink, pen_up=True), coverage(ink)
    monkeypatch.setattr("inktraj.rendering._BAND_PIXELS", 1)
    assert np.array_equal(render(ink, pen_up=True), whole)
    assert np.array_equal(coverage(ink), mask)


def test_darkness_moves_with_a_fraction_of_a_pixel():
    centres = []
    for shift in (0.0, 0.25, 0.5, 0.75):
        image = render(Ink([[(8.0 + shift, 2.0), (8.0 + shift, 14.0)]], FRAME), pen=3)
        row = 255.0 - image[8]
        centres.append((row * np.arange(len(row))).sum() / row.sum())
    assert np.allclose(centres, [8.0, 8.25, 8.5, 8.75], atol=1e-2)


def test_a_dot_is_a_filled_disc_of_the_right_area():
    image = render(Ink([[(11.2, 8.3)]], FRAME), pen=8)
    assert (255.0 - image).sum() / 255 == pytest.approx(np.pi * 16, rel=0.01)
    assert image[8, 11] == 0


def test_one_point_repeated_is_the_dot():
    dot = render(Ink([[(11.2, 8.3)]], FRAME), pen=8)
    assert np.array_equal(render(Ink([[(11.2, 8.3)] * 3], FRAME), pen=8), dot)


def test_a_disc_that_holds_its_neighbour_hides_it():
    pair = Ink([[(9.0, 8.0), (10.0, 8.0)]], FRAME, [(2.0, 9.0)])
    alone = Ink([[(10.0, 8.0)]], FRAME, [(9.0,)])
    assert np.array_equal(render(pair, widths="local"), render(alone, widths="local"))


def test_hairlines_do_not_vanish():
    image = render(Ink([[(2.3, 3.1), (20.9, 13.7)]], FRAME, [(0.0, 0.0)]), widths="local")
    assert (image < 255).any(axis=0)[3:20].all()


def test_empty_ink_is_bare_paper():
    assert (render(Ink((), FRAME), paper=200) == 200).all()
    assert not coverage(Ink((), FRAME)).any()


def test_the_image_is_the_frame_rounded_up():
    assert render(Ink((), Frame(10.2, 6.0))).shape == (6, 11)


def test_strokes_outside_clip():
    far = Ink([[(-50.0, -50.0), (-40.0, 90.0)], [(1e300, 5.0)], [(-1e300, 8.0), (1e300, 8.0)]], FRAME)
    image = render(far, pen=2, pen_up=True)
    assert (image[8] == 0).all()
    assert (image[0] == 255).all()


def test_default_pen_is_the_median_width_or_the_documented_one():
    points = [[(3.0, 3.0), (18.0, 9.0), (5.0, 14.0)]]
    known, unknown = Ink(points, FRAME, [(1.0, 4.0, 5.0)]), Ink(points, FRAME)
    assert np.array_equal(render(known), render(unknown, pen=4))
    assert np.array_equal(render(unknown), render(unknown, pen=DEFAULT_PEN))


def test_size_stretches_the_frame_about_pixel_edges():
    ink = Ink([[(3.0, 3.0), (18.0, 9.0)]], FRAME, [(3.0, 3.0)])
    twice = render(ink, size=(46, 34))
    mapped = ink.transform([[2, 0, 0.5], [0, 2, 0.5]], Frame(46, 34))
    assert np.array_equal(twice, render(mapped))


def test_other_units_start_at_the_images_edge():
    mm = render(Ink([[(1.0, 1.0)]], Frame(2.0, 2.0, "mm")), size=(20, 20), pen=6)
    px = render(Ink([[(9.5, 9.5)]], Frame(20.0, 20.0)), pen=6)
    assert np.array_equal(mm, px)


def test_pen_ups_are_lifted_unless_asked_for():
    ink = Ink([[(3.0, 8.0), (5.0, 8.0)], [(18.0, 8.0), (20.0, 8.0)]], FRAME)
    assert render(ink, pen=3)[8, 11] == 255
    shown = render(ink, pen=3, pen_up=True)
    assert 100 < shown[8, 11] < 200
    assert shown[8, 4] == shown[8, 19] == 0
    assert np.array_equal(shown[:, 19:], render(ink, pen=3)[:, 19:])


def test_light_ink_on_dark_paper():
    image = render(Ink([[(11.0, 8.0)]], FRAME), pen=6, paper=10, color=240)
    assert image[8, 11] == 240
    assert image[0, 0] == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pen": 0.0}, "positive number"),
        ({"pen": float("nan")}, "positive number"),
        ({"widths": "local"}, "this one has none"),
        ({"widths": "median"}, '"constant" or "local"'),
        ({"supersample": 0}, "from 1 to 8"),
        ({"supersample": 2.5}, "from 1 to 8"),
        ({"size": (0, 10)}, "both positive"),
        ({"size": (10.5, 10)}, "whole pixels"),
        ({"size": (20_000, 20_000)}, "20000×20000 pixels has more than the 200 megapixels"),
        ({"size": (10**5000, 1)}, "over 10⁹×1 pixels"),
        ({"paper": 256}, "paper is a grey"),
        ({"color": -1}, "color is a grey"),
    ],
)
def test_bad_arguments_say_what_was_expected(arguments, message):
    with pytest.raises(DataError, match=message):
        render(Ink([[(1.0, 1.0)]], FRAME), **arguments)


@pytest.mark.parametrize("side", [2e4, 1e12, 1e300])
def test_a_frame_beyond_all_rasters_is_refused(side):
    with pytest.raises(DataError, match="more than the 200 megapixels"):
        render(Ink([np.array([[1.0, 1.0], [5.0, 5.0]])], Frame(side, side)))


def test_a_frame_of_too_many_pixels_is_refused():
    with pytest.raises(DataError, match="another unit"):
        coverage(Ink([[(1.0, 1.0)]], Frame(1e6, 1e6)))
