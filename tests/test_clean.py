"""Cleaning: pages drawn here, so that every ink pixel is known."""

import time

import cv2
import numpy as np
import pytest

from inktraj.clean import clean
from inktraj.errors import DataError
from inktraj.ink import Frame, Ink
from inktraj.rendering import render

SIZE = (800, 560)  # width, height


def letters(count, rng):
    """A joined word: loops and arches about 1 high and 0.8 wide, some with an ascender or a descender; no dots."""
    points, x = [], 0.0
    for _ in range(count):
        t = np.linspace(0, 2 * np.pi, 40)
        up, down = rng.choice([1, 1, 1.9]), rng.choice([0, 0, 0.8])
        y = -0.5 * (1 - np.cos(t)) * up + down * np.clip(np.sin(2 * t), 0, None) * (t > np.pi)
        points.append(np.stack([x + 0.8 * t / (2 * np.pi) + rng.uniform(0.1, 0.35) * np.sin(t), y], axis=1))
        x += 0.8
    return np.concatenate(points)


def writing(pen=4.0, tilt=0.0, seed=1, size=SIZE):
    """Lines of joined words, their letters nine pens high, turned by `tilt` degrees (positive: falling)."""
    rng = np.random.default_rng(seed)
    width, height = size
    unit = 9 * pen
    strokes = []
    for y in np.arange(0.12 * height + unit, 0.9 * height, 4 * unit):
        x = 0.12 * width
        while True:
            word = unit * letters(rng.integers(2, 6), rng) + [x, y]
            if word[:, 0].max() > 0.88 * width:
                break
            strokes.append(word)
            x = word[:, 0].max() + 0.9 * unit
    c, s, middle = np.cos(np.radians(tilt)), np.sin(np.radians(tilt)), np.array(size) / 2
    return Ink([(stroke - middle) @ [[c, s], [-s, c]] + middle for stroke in strokes], Frame(*size))


def page(ink, *, pen=4.0, paper=(244, 242, 236), color=(40, 40, 45), noise=2.0, light=1.0, under=None, seed=0):
    """RGB pixels of an ink on paper, and its mask; `light` multiplies the paper, `under` is darkness below the ink."""
    dark = 255 - render(ink, pen=pen)
    share = dark[..., None] / 255.0
    ground = np.asarray(paper, float) * (1 if under is None else (1 - under[..., None]))
    pixels = ground * (1 - share) + np.minimum(ground, color) * share
    pixels *= np.broadcast_to(light, dark.shape)[..., None]
    pixels += np.random.default_rng(seed).normal(0, noise, dark.shape)[..., None]
    return np.clip(pixels, 0, 255).round().astype(np.uint8), dark >= 128


def lines_drawn(curves, thickness, darkness, size=SIZE):
    """Darkness of antialiased curves, arrays (n, 2)."""
    image = np.zeros(size[::-1], np.uint8)
    for curve in curves:
        cv2.polylines(image, [np.int32(np.round(np.asarray(curve) * 16))], False, 255, thickness, cv2.LINE_AA, 4)
    return darkness / 255 * image


def near(mask, reach=1):
    return cv2.dilate(mask.astype(np.uint8), np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)) > 0


def quality(found, truth):
    """Recall and precision of ink pixels, each with a tolerance of one pixel."""
    recall = (truth & near(found)).sum() / truth.sum()
    precision = (found & near(truth)).sum() / max(found.sum(), 1)
    return recall, precision


def assert_found(found, truth, recall=0.97, precision=0.95):
    got = quality(found, truth)
    assert got[0] >= recall
    assert got[1] >= precision


# --- paper and light ---


@pytest.mark.parametrize("noise", [0.0, 2.0, 6.0])
@pytest.mark.parametrize("grey", [255, 236, 170])
def test_plain_paper_has_no_ink(noise, grey):
    pixels, _ = page(Ink((), Frame(*SIZE)), paper=(grey, grey, grey), noise=noise)
    cleaned = clean(pixels)
    assert not cleaned.ink.any()
    assert cleaned.pen == 0
    assert cleaned.skew == 0
    assert cleaned.gray.min() > 200


def gradient(size=SIZE):
    x, y = np.meshgrid(np.linspace(0, 1, size[0]), np.linspace(0, 1, size[1]))
    return 1 - 0.35 * x - 0.2 * y


def shadow(size=SIZE, depth=0.45, edge=1.5):
    light = np.ones(size[::-1], np.float32)
    corner = np.array([[0.45, 0], [1, 0], [1, 1], [0.7, 1]]) * size
    cv2.fillPoly(light, [corner.astype(np.int32)], 1 - depth)
    return cv2.GaussianBlur(light, (0, 0), edge)


LIGHTS = {"gradient": gradient(), "hard shadow": shadow(), "soft shadow": shadow(edge=25.0)}


@pytest.mark.parametrize("name", LIGHTS)
def test_light_does_not_change_the_ink(name):
    ink = writing()
    even, truth = page(ink)
    uneven, _ = page(ink, light=LIGHTS[name])
    plain, lit = clean(even).ink, clean(uneven).ink
    assert_found(plain, truth)
    assert_found(lit, truth)
    assert_found(lit, plain, 0.99, 0.99)


@pytest.mark.parametrize("name", LIGHTS)
def test_paper_is_evened_to_white(name):
    pixels, truth = page(writing(), light=LIGHTS[name])
    paper = clean(pixels).gray[~near(truth, 4)]
    assert np.percentile(paper, 2) > 225


@pytest.mark.parametrize("color", [(120, 80, 45), (30, 50, 150), (150, 150, 150), (10, 10, 10)], ids=str)
@pytest.mark.parametrize("paper", [(240, 225, 190), (250, 250, 250)], ids=["cream", "white"])
def test_inks_and_papers(color, paper):
    pixels, truth = page(writing(), color=color, paper=paper, noise=3)
    assert_found(clean(pixels).ink, truth)


@pytest.mark.parametrize("channel", [0, 1, 2])
def test_texture_in_one_colour_is_not_ink(channel):
    pixels, truth = page(writing(), color=(90, 90, 90))
    grain = cv2.GaussianBlur(np.random.default_rng(2).normal(0, 1, SIZE[::-1]), (0, 0), 1.2)
    pixels[..., channel] = np.clip(pixels[..., channel] + 50 * grain / grain.std(), 0, 255)
    assert_found(clean(pixels).ink, truth, precision=0.97)


def test_pale_bleed_through_is_not_ink():
    ink = writing()
    behind = cv2.GaussianBlur((255 - render(writing(seed=5), pen=5.0))[:, ::-1].astype(np.float32) / 255, (0, 0), 3)
    pixels, truth = page(ink, under=0.13 * np.roll(behind, 60, axis=0))
    assert_found(clean(pixels).ink, truth, precision=0.97)


@pytest.mark.parametrize(("thickness", "darkness"), [(1, 0.5), (2, 0.35)])
@pytest.mark.parametrize("blur", [0.4, 0.9])
def test_a_faint_hairline_on_a_dark_stroke_is_kept(thickness, darkness, blur):
    ink = writing()
    feet = [(x, 0.95 * SIZE[1]) for x in (200, 400, 600)]
    hair = lines_drawn([[(x, y - 30), (x + 40, y - 70)] for x, y in feet], thickness, darkness)
    stems = Ink([*ink.strokes, *([(x, y), (x, y - 34)] for x, y in feet)], ink.frame)
    pixels, truth = page(stems, under=cv2.GaussianBlur(hair, (0, 0), blur))
    found, on = clean(pixels).ink, hair > 0.5 * darkness
    assert quality(found, truth)[0] >= 0.97
    assert (on & near(found)).sum() / on.sum() > 0.9


# --- ruling ---


def level(y, bow=0.0, angle=0.0, size=SIZE):
    x = np.linspace(0, size[0] - 1, 60)
    share = 2 * x / size[0] - 1
    return np.stack([x, y + bow * (1 - share**2) + np.tan(np.radians(angle)) * (x - size[0] / 2)], axis=1)


def ruling(**options):
    return [level(y, **options) for y in range(20, SIZE[1], 36)]


def squared(angle=0.0):
    across = [level(y, angle=angle) for y in range(-30, SIZE[1] + 30, 30)]
    down = [
        np.stack([x - np.tan(np.radians(angle)) * (np.array([0, SIZE[1]]) - SIZE[1] / 2), np.array([0, SIZE[1]])], 1)
        for x in range(-20, SIZE[0] + 30, 30)
    ]
    return across + down


RULINGS = {
    "straight": ruling(),
    **{f"{angle} degrees": ruling(angle=angle) for angle in (1, 2, 3, -2)},
    "bent": ruling(bow=12),
    "squared": squared(),
    "squared, 1 degree": squared(1.0),
    "one margin line": [np.array([[80, 0], [80, SIZE[1]]])],
}


@pytest.mark.parametrize("darkness", [0.12, 0.3, 0.5])
@pytest.mark.parametrize("name", RULINGS)
def test_ruling_goes_and_strokes_that_cross_it_stay(name, darkness):
    pixels, truth = page(writing(), under=lines_drawn(RULINGS[name], 2, darkness))
    assert_found(clean(pixels).ink, truth, 0.97, 0.9)


@pytest.mark.parametrize("bow", [0, 16, 30])
def test_strokes_stay_even_where_ruling_does(bow):
    pixels, truth = page(writing(), under=lines_drawn(ruling(bow=bow), 1, 0.5))
    assert quality(clean(pixels).ink, truth)[0] >= 0.97


@pytest.mark.parametrize("color", [(200, 60, 70), (90, 120, 220)], ids=["red", "blue"])
def test_a_coloured_margin_line_is_not_ink(color):
    pixels, truth = page(writing())
    line = near(np.zeros(SIZE[::-1], bool))
    line[:, 80:82] = True
    pixels[line & ~near(truth, 0)] = color
    assert_found(clean(pixels).ink, truth, 0.97, 0.97)


@pytest.mark.parametrize("darkness", [0.3, 0.6])
def test_ruled_paper_without_writing_has_no_ink(darkness):
    pixels, _ = page(Ink((), Frame(*SIZE)), under=lines_drawn(ruling(), 2, darkness))
    assert clean(pixels).ink.mean() < 0.0005


# --- what is not paper ---


@pytest.mark.parametrize("sides", ["left", "left top", "left top right bottom"])
def test_a_scanners_border_is_not_ink(sides):
    pixels, truth = page(writing())
    for side in sides.split():
        strip = {"left": np.s_[:, :25], "right": np.s_[:, -25:], "top": np.s_[:25], "bottom": np.s_[-25:]}[side]
        pixels[strip] = 8
    cleaned = clean(pixels)
    assert_found(cleaned.ink, truth)
    assert not cleaned.ink[:, :24].any()
    assert cleaned.gray[:, :24].min() > 200 or "left" not in sides


# --- pen and skew ---


@pytest.mark.parametrize("pen", [2, 3, 4, 5, 7, 9])
def test_pen_width_is_the_one_drawn(pen):
    size = (1200, 800) if pen > 5 else SIZE
    pixels, truth = page(writing(pen, size=size), pen=pen)
    cleaned = clean(pixels)
    assert cleaned.pen == pytest.approx(pen, rel=0.25)
    assert_found(cleaned.ink, truth)


@pytest.mark.parametrize("tilt", [-5, -1, 0, 0.5, 3])
def test_skew_is_positive_for_falling_lines(tilt):
    size = (1200, 800)
    pixels, _ = page(writing(3.0, tilt, size=size), pen=3.0)
    assert clean(pixels).skew == pytest.approx(tilt, abs=0.75)


# --- form ---


@pytest.mark.parametrize("pen", [3, 6])
def test_a_single_word_fills_its_page(pen):
    word = [pen * 9 * letters(3, np.random.default_rng(1)) + [12 * pen / 3, 24 * pen / 3 + 30]]
    pixels, truth = page(Ink(word, Frame(30 * pen, 24 * pen)), pen=pen)
    assert_found(clean(pixels).ink, truth)


@pytest.mark.parametrize("scale", [0.5, 2.5])
def test_size_of_the_photo_does_not_matter(scale):
    pixels, truth = page(writing(6.0), pen=6.0)
    size = tuple(round(scale * v) for v in SIZE)
    scaled = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    expected = cv2.resize(255 * truth.astype(np.uint8), size, interpolation=cv2.INTER_AREA) >= 128
    cleaned = clean(scaled)
    assert_found(cleaned.ink, expected)
    assert cleaned.pen == pytest.approx(6 * scale, rel=0.25)


@pytest.mark.parametrize("grey", [False, True], ids=["rgb", "grey"])
def test_arrays_are_the_pages_own_grid(grey):
    pixels, truth = page(writing())
    given = np.ascontiguousarray(pixels[..., 1]) if grey else pixels
    before = given.copy()
    cleaned = clean(given)
    assert cleaned.gray.shape == cleaned.ink.shape == SIZE[::-1]
    assert cleaned.gray.dtype == np.uint8
    assert cleaned.ink.dtype == np.bool_
    np.testing.assert_array_equal(given, before)
    assert_found(cleaned.ink, truth)


def test_same_page_same_result():
    pixels, _ = page(writing(), light=LIGHTS["hard shadow"], under=lines_drawn(RULINGS["squared"], 2, 0.3))
    one, two = clean(pixels), clean(pixels.copy())
    np.testing.assert_array_equal(one.ink, two.ink)
    np.testing.assert_array_equal(one.gray, two.gray)
    assert (one.pen, one.skew) == (two.pen, two.skew)


def test_memory_layout_does_not_matter():
    pixels, _ = page(writing())
    for view in (np.asfortranarray(pixels), np.ascontiguousarray(pixels[..., ::-1])[..., ::-1]):
        np.testing.assert_array_equal(clean(view).ink, clean(pixels).ink)


SMALL = [(1, 1), (1, 500), (500, 1), (2, 2), (3, 3), (5, 40), (17, 3)]


@pytest.mark.parametrize("fill", ["white", "black", "noise", "one dot"])
@pytest.mark.parametrize("shape", [*SMALL, (300, 400)], ids=str)
def test_odd_pages_end_without_failing(shape, fill):
    pixels = np.full((*shape, 3), 255, np.uint8)
    if fill == "black":
        pixels[:] = 0
    elif fill == "noise":
        pixels = np.random.default_rng(3).integers(0, 256, (*shape, 3), dtype=np.uint8)
    elif fill == "one dot":
        pixels[shape[0] // 2, shape[1] // 2] = 0
    for given in (pixels, np.ascontiguousarray(pixels[..., 0])):
        cleaned = clean(given)
        assert cleaned.gray.shape == cleaned.ink.shape == shape
        assert np.isfinite([cleaned.pen, cleaned.skew]).all()
        assert (cleaned.pen > 0) >= cleaned.ink.any()
        if fill in ("white", "black"):
            assert not cleaned.ink.any()


@pytest.mark.parametrize(
    "bad",
    [
        np.full((40, 60, 3), 0.9),
        np.full((40, 60, 3), 250, np.uint16),
        np.full((40, 60, 4), 250, np.uint8),
        np.full((40, 60, 1), 250, np.uint8),
        np.full(60, 250, np.uint8),
        np.zeros((0, 60, 3), np.uint8),
    ],
    ids=["float", "uint16", "rgba", "one channel", "one-dimensional", "empty"],
)
def test_pixels_of_another_form_are_refused(bad):
    with pytest.raises(DataError):
        clean(bad)


@pytest.mark.parametrize("kind", ["noise", "drawing", "light on dark", "salt and pepper"])
def test_pages_that_are_no_writing_end_soon(kind):
    rng = np.random.default_rng(4)
    pixels = np.full((900, 1200, 3), 250, np.uint8)
    if kind == "noise":
        pixels = rng.integers(0, 256, pixels.shape, dtype=np.uint8)
    elif kind == "salt and pepper":
        pixels[rng.random(pixels.shape[:2]) < 0.05] = 0
    elif kind == "light on dark":
        pixels = 255 - page(writing(size=(1200, 900)))[0]
    else:
        for _ in range(60):
            cv2.circle(pixels, rng.integers(0, 900, 2).tolist(), int(rng.integers(10, 300)), (0, 0, 0), 3)
    begin = time.process_time()
    cleaned = clean(pixels)
    assert time.process_time() - begin < 10
    assert cleaned.ink.shape == (900, 1200)


@pytest.mark.parametrize("radius", [60, 140])
def test_a_solid_blot_changes_neither_the_pen_nor_the_writing(radius):
    ink = writing()
    pixels, truth = page(ink)
    pen = clean(pixels).pen
    blotted = np.pad(pixels, ((0, 400), (0, 0), (0, 0)), mode="edge")
    cv2.circle(blotted, (SIZE[0] // 2, len(pixels) + 200), radius, (20, 20, 20), -1)
    cleaned = clean(blotted)
    assert cleaned.pen == pytest.approx(pen, rel=0.15)
    assert_found(cleaned.ink[: len(pixels)], truth)


def test_a_page_of_nothing_but_a_blot_has_no_ink():
    pixels = np.full((900, 900, 3), 250, np.uint8)
    cv2.circle(pixels, (450, 450), 200, (10, 10, 10), -1)
    cleaned = clean(pixels)
    assert cleaned.pen == 0
    assert not cleaned.ink.any()
