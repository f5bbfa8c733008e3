"""Shared ink: precision, recall, F1, AIoU and LDTW."""

import math

import numpy as np
import oracles_metrics_strokes as oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inktraj.errors import DataError
from inktraj.metrics import overlap as module
from inktraj.metrics.overlap import aiou, aiou_inks, ink_overlap, ldtw, squared_distances
from inktraj.metrics.strokes import as_strokes

masks = arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 12))).filter(np.any)
points = st.integers(1, 6).flatmap(
    lambda n: arrays(np.float64, (n, 2), elements=st.floats(-30, 40, allow_nan=False, width=32))
)


def flat(*strokes):
    return np.concatenate(strokes), np.cumsum([0, *map(len, strokes)])


def line(x0, y0, x1, y1, n=21):
    return np.linspace((x0, y0), (x1, y1), n)


ZIGZAG = flat(line(0, 0, 0.5, 0.3), line(0.5, 0.3, 1, 0), line(0.2, 0.1, 0.2, 0.1, 1))


# ---------------------------------------------------------------- near points


def test_ink_near_and_far():
    found = ink_overlap([0.0, 0.01, 0.02, 0.5], [0.0, 0.03])
    assert found == (0.75, 0.5, 0.6)  # at the tolerance counts as near
    assert ink_overlap([0.0, 0.01, 0.02, 0.5], [0.0, 0.03], tolerance=1) == (1, 1, 1)
    assert ink_overlap([1.0], [1.0]) == (0, 0, 0)
    assert ink_overlap([0, 1], [0], tolerance=0).precision == 0.5


@pytest.mark.parametrize(
    ("distances", "message"),
    [
        pytest.param([], "n ≥ 1", id="empty"),
        pytest.param([[0.1]], "shape", id="two axes"),
        pytest.param([np.nan], "NaN", id="NaN"),
        pytest.param([np.inf], "infinity", id="infinity"),
        pytest.param([-0.1], "negative", id="negative"),
        pytest.param(["far"], "not an array of numbers", id="text"),
    ],
)
def test_malformed_distances_are_refused(distances, message):
    with pytest.raises(DataError, match=message) as caught:
        ink_overlap(distances, [0.1])
    assert "pred_to_ref" in str(caught.value)
    with pytest.raises(DataError, match=message) as caught:
        ink_overlap([0.1], distances)
    assert "ref_to_pred" in str(caught.value)


@pytest.mark.parametrize("tolerance", [-0.1, math.nan])
def test_impossible_tolerances_are_refused(tolerance):
    with pytest.raises(DataError, match="tolerance"):
        ink_overlap([0.1], [0.1], tolerance=tolerance)


# ---------------------------------------------------------------- kernels against their twins


@settings(max_examples=200)
@given(masks)
def test_distances_are_exact(drawn):
    np.testing.assert_array_equal(squared_distances(drawn), oracles.squared_distances(drawn))


@settings(max_examples=200)
@given(masks | st.just(np.zeros((3, 4), bool)), st.integers(0, 14))
def test_near_distances_are_exact(drawn, radius):
    found = module.squared_distances_within(drawn, radius)
    exact = oracles.squared_distances(drawn) if drawn.any() else np.full(drawn.shape, 1000)
    near = exact <= radius**2
    np.testing.assert_array_equal(found[near], exact[near])
    assert (found[~near] > radius**2).all()


def test_distances_on_a_large_canvas_are_exact(rng):
    drawn = np.zeros((3, 6000), bool)
    drawn[1, 0] = True
    squared = squared_distances(drawn)
    np.testing.assert_array_equal(squared, (np.arange(3)[:, None] - 1) ** 2 + np.arange(6000)[None] ** 2)
    np.testing.assert_array_equal(squared_distances(drawn.T.copy()), squared.T)


@settings(max_examples=100)
@given(st.lists(points, min_size=1, max_size=3))
def test_drawing_is_thin_and_has_no_gaps(strokes):
    ink = flat(*strokes)
    low = np.floor(ink[0].min(axis=0)).astype(int)
    width, height = np.ceil(ink[0].max(axis=0)).astype(int) - low + 1
    box = np.array([low[0], low[1], low[0] + width - 1, low[1] + height - 1], float)
    canvas = np.zeros((height, width), bool)
    module._draw(ink[0], as_strokes(*ink, "ink")[1], box, *low, canvas)
    np.testing.assert_array_equal(canvas, oracles.thin(*ink, canvas.shape, *low))


@settings(max_examples=150)
@given(masks, points)
def test_aiou_is_that_of_the_slow_twin(mask, stroke):
    rows, columns = np.nonzero(mask)
    limit = (max(np.ptp(rows), np.ptp(columns)) + 2) // 2
    low, high = np.array([columns.min(), rows.min()]) - limit, np.array([columns.max(), rows.max()]) + limit
    inside = np.clip(stroke, low, high)  # what is farther off is not drawn, and tested by itself
    found = aiou(*flat(inside), mask)
    assert found.iou == pytest.approx(oracles.aiou(inside, [0, len(inside)], mask), rel=1e-12)


@pytest.mark.parametrize("away", [0, 6, 12, 20, 30, 40])
def test_aiou_of_distant_ink_is_that_of_the_slow_twin(rng, away):
    """The best radius is larger the farther the ink is, and looked for with wider and wider margins."""
    mask = np.zeros((70, 90), bool)
    mask[30:36, 5:85] = True
    stroke = np.stack([np.linspace(5, 84, 30), 32 + away + rng.normal(0, 1, 30).clip(-2, 2)], axis=1)
    assert aiou(*flat(stroke), mask).iou == pytest.approx(oracles.aiou(stroke, [0, 30], mask), rel=1e-12)


# ---------------------------------------------------------------- AIoU


def test_ink_against_itself_overlaps_wholly():
    found = aiou_inks(*ZIGZAG, *ZIGZAG)
    assert found.iou == 1
    assert found.radius == pytest.approx(module.PEN_WIDTH / 2, abs=1 / module.RESOLUTION)


@pytest.mark.parametrize("pen_width", [0.002, 0.03, 0.1, 0.5])
def test_the_pens_width_has_no_influence(pen_width):
    assert aiou_inks(*ZIGZAG, *ZIGZAG, pen_width=pen_width).iou == 1


def test_order_direction_and_place_have_no_influence():
    turned = flat(line(1, 0, 0.5, 0.3), line(0.2, 0.1, 0.2, 0.1, 1), line(0.5, 0.3, 0, 0))
    assert aiou_inks(*turned, *ZIGZAG).iou > 0.99
    moved = (ZIGZAG[0] + 1000, ZIGZAG[1])
    assert aiou_inks(*moved, *moved).iou == 1


def test_worse_shapes_overlap_less(rng):
    found = [aiou_inks(ZIGZAG[0] + (0, d), ZIGZAG[1], *ZIGZAG).iou for d in (0, 0.005, 0.01, 0.03, 0.1, 0.3)]
    assert (np.diff(found) < 0).all()


def test_a_mask_is_met_where_scale_and_offset_put_the_ink():
    mask = np.zeros((60, 200), bool)
    mask[28:33, 50:151] = True  # a bar five pixels high, whose axis is row 30
    found = aiou(*flat(line(0, 0, 1, 0)), mask, scale=100, offset=(50, 30))
    assert found.iou > 0.98  # round ends
    assert found.radius == pytest.approx(0.02, abs=0.003)
    assert aiou(*flat(line(0, 0, 1, 0)), mask, scale=100, offset=(50, 40)).iou < 0.5


def test_a_disc_is_met_by_a_dot():
    y, x = np.indices((41, 41)) - 20
    found = aiou([[20.0, 20.0]], [0, 1], x * x + y * y <= 17 * 17)
    assert found.iou == 1
    assert found.radius == pytest.approx(17, abs=0.1)


def test_a_dot_against_a_dot():
    assert aiou_inks([[0.3, 0.3]], [0, 1], [[0.3, 0.3]], [0, 1]).iou == 1


def test_what_is_widened_across_the_pictures_border_counts():
    mask = np.ones((5, 101), bool)  # the whole picture is ink
    along_the_border = aiou(*flat(line(0, 0, 100, 0)), mask)
    along_the_axis = aiou(*flat(line(0, 2, 100, 2)), mask)
    assert along_the_axis.iou > 0.95
    assert along_the_border.iou < 0.65


def test_ink_far_away_is_paid_for_and_costs_no_memory():
    ref = flat(line(0, 0, 1, 0.2))
    far = flat(ref[0], line(1e6, 0, 1e6 + 1, 0.2))
    found = aiou_inks(*far, *ref)
    assert 0.45 < found.iou < 0.55  # twice the ink
    near = aiou_inks(*flat(ref[0], line(0, 0.6, 1, 0.8)), *ref)  # drawn in part
    assert near.iou == pytest.approx(found.iou, abs=0.03)
    only_far = aiou_inks(*flat(line(1e6, 0, 1e6 + 1, 0)), *ref)
    assert only_far == (0, 0)
    assert 0.95 < aiou_inks(*flat(ref[0], [[1e6, 0.0]]), *ref).iou < 1  # a dot is a little ink
    across = aiou_inks(*flat(np.array([[0.0, 0.0], [1e100, 1e99]])), *ref)
    assert across.iou < 1e-90


def test_an_ink_missing_half_overlaps_half():
    half = flat(line(0, 0, 0.5, 0, 11))
    assert 0.45 < aiou_inks(*half, *flat(line(0, 0, 1, 0))).iou < 0.6


INK = flat(line(0, 0, 1, 0))
MASK = np.ones((3, 3), bool)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        pytest.param(np.zeros((3, 3), bool), "no ink", id="blank"),
        pytest.param(np.zeros((0, 3), bool), "no ink", id="no pixels"),
        pytest.param(np.ones((3, 3)), "float64", id="floats"),
        pytest.param(np.ones((3, 3, 3), bool), "shape", id="colour"),
        pytest.param(np.ones((1, 2049), bool), "2049 px long", id="too wide"),
        pytest.param(np.ones((2049, 1), bool), "2049 px long", id="too high"),
    ],
)
def test_unusable_masks_are_refused(mask, message):
    with pytest.raises(DataError, match=message):
        aiou(*INK, mask)


def test_a_small_glyph_on_a_large_picture_is_taken():
    mask = np.zeros((1, 5000), bool)
    mask[0, 4000:4003] = True
    assert aiou([[4001.0, 0.0]], [0, 1], mask).iou == pytest.approx(3 / 5)  # a plus, of which three are ink


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": 0}, "scale"),
        ({"scale": math.nan}, "scale"),
        ({"scale": math.inf}, "scale"),
        ({"offset": (1.0,)}, "offset"),
        ({"offset": (1.0, math.nan)}, "offset"),
    ],
)
def test_impossible_maps_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        aiou(*INK, MASK, **arguments)


@pytest.mark.parametrize(("name", "value"), [("pen_width", 0), ("pen_width", math.nan), ("resolution", -1)])
def test_impossible_pens_are_refused(name, value):
    with pytest.raises(DataError, match=name):
        aiou_inks(*INK, *INK, **{name: value})


def test_inks_that_were_not_normalised_are_refused():
    with pytest.raises(DataError, match="are the inks normalised"):
        aiou_inks(*INK, INK[0] * 1000, INK[1])
    with pytest.raises(DataError, match="are the inks normalised"):
        aiou_inks(*INK, *INK, pen_width=1000)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        pytest.param((np.zeros((0, 2)), [0, 0]), "empty", id="empty"),
        pytest.param(([[np.nan, 0]], [0, 1]), "NaN", id="NaN"),
        pytest.param(([[np.inf, 0]], [0, 1]), "infinity", id="infinity"),
        pytest.param(([[0, 0, 0]], [0, 1]), "shape", id="three columns"),
        pytest.param(([[0, 0]], [0, 2]), "number of points", id="offsets do not cover"),
    ],
)
def test_malformed_inks_are_refused(bad, message):
    with pytest.raises(DataError, match=message):
        aiou(*bad, MASK)
    with pytest.raises(DataError, match=message):
        aiou_inks(*bad, *INK)
    with pytest.raises(DataError, match=message):
        aiou_inks(*INK, *bad)
    if message != "number of points":
        with pytest.raises(DataError, match=message):
            ldtw(bad[0], INK[0])
        with pytest.raises(DataError, match=message):
            ldtw(INK[0], bad[0])


# ---------------------------------------------------------------- LDTW


def test_ldtw_is_total_over_length(rng):
    a, b = rng.normal(size=(17, 2)), rng.normal(size=(23, 2))
    total, length = oracles.align(a, b)
    assert ldtw(a, b) == pytest.approx(total / length, rel=1e-12)
    assert ldtw(a, a) == 0
    assert ldtw([[0, 0]], [[3, 4], [3, 4]]) == 5


def test_ldtw_does_not_grow_with_the_number_of_points():
    for n in (10, 100, 1000):
        assert ldtw(line(0, 0, 1, 0, n), line(0, 0.1, 1, 0.1, n)) == pytest.approx(0.1)
