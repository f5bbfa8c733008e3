"""Strokes one by one: matching, order, direction, start, pen-ups, and what each costs of a DTW."""

import sys
from pathlib import Path

import numpy as np
import oracles_metrics_strokes as oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import kendalltau

from inktraj.arclength import resample
from inktraj.errors import DataError
from inktraj.metrics import strokes as module
from inktraj.metrics.strokes import (
    compare,
    decompose,
    direction_agreement,
    match_strokes,
    order_agreement,
    penup_error,
    score_strokes,
    start_accuracy,
    start_distance,
    tolerant_dtw,
)
from inktraj.metrics.wavefront import align

sys.path.insert(0, str(Path(__file__).parents[1] / "pipelines"))

coordinates = st.integers(-3, 3).map(float)  # a coarse grid, so that ties and equal strokes come up
inks = st.lists(
    st.integers(1, 5).flatmap(lambda n: arrays(np.float64, (n, 2), elements=coordinates)), min_size=1, max_size=4
)


def flat(strokes):
    return np.concatenate(strokes), np.cumsum([0, *map(len, strokes)])


def both(pred, ref):
    return (*flat(pred), *flat(ref))


def line(x0, y0, x1, y1, n=21):
    return np.linspace((x0, y0), (x1, y1), n)


def word(rng, n, *, points=30):
    """Strokes that wind beside each other, and a little over each other."""
    out = []
    for k in range(n):
        walk = np.cumsum(np.cumsum(rng.normal(size=(points, 2)), axis=0), axis=0)
        walk -= walk.min(axis=0)
        out.append(walk / walk.max() * 0.3 + (0.15 * k, 0))
    return out


def shuffled(rng, strokes):
    """The strokes in another order, some turned round; the order and which were turned."""
    order, turned = rng.permutation(len(strokes)), rng.random(len(strokes)) < 0.5
    return [strokes[i][::-1] if turned[i] else strokes[i] for i in order], order, turned


# ---------------------------------------------------------------- matching against its twin


@settings(max_examples=150)
@given(inks, inks)
def test_matching_pays_the_least(pred, ref):
    found = match_strokes(*both(pred, ref))
    assert found.tolerant_dtw.total == pytest.approx(oracles.least_paid(pred, ref), rel=1e-9, abs=1e-12)
    assert len(found.pairs) == min(len(pred), len(ref))
    everyone = [*found.pairs[:, 0], *found.unmatched_pred], [*found.pairs[:, 1], *found.unmatched_ref]
    assert list(map(sorted, everyone)) == [list(range(len(pred))), list(range(len(ref)))]
    assert (np.diff(found.pairs[:, 1]) > 0).all()
    for (i, j), turned, directed, total, length in zip(
        found.pairs, found.reversed, found.directed, found.totals, found.lengths, strict=True
    ):
        expected = oracles.align(pred[i][::-1] if turned else pred[i], ref[j])
        assert (total, length) == (pytest.approx(expected[0], rel=1e-12), expected[1])
        forwards, backwards = oracles.align(pred[i], ref[j])[0], oracles.align(pred[i][::-1], ref[j])[0]
        assert directed == (abs(forwards - backwards) > 1e-9 * max(forwards, backwards))
        assert turned == (directed and backwards < forwards)
    for k, i in enumerate(found.unmatched_pred):
        assert found.unmatched_totals[k] == pytest.approx(min(oracles.cheaper(pred[i], r) for r in ref), rel=1e-12)
    for k, j in enumerate(found.unmatched_ref):
        assert found.unmatched_totals[k] == pytest.approx(min(oracles.cheaper(p, ref[j]) for p in pred), rel=1e-12)


@settings(max_examples=60)
@given(inks, inks)
def test_parts_are_those_of_the_slow_twin(pred, ref):
    found = match_strokes(*both(pred, ref))
    expected = oracles.decompose(pred, ref, found.pairs, found.reversed)
    # Path lengths of equal totals may differ where the sums are rounded differently, so means may too: rarely.
    np.testing.assert_allclose(decompose(*both(pred, ref)), expected, rtol=1e-9, atol=1e-9)


def least_by_scipy(cost):
    """The least that can be paid, with what strokes left over pay taken off their pairs first."""
    n, m = cost.shape
    alone = cost.min(axis=0 if n <= m else 1, keepdims=True)
    rows, columns = linear_sum_assignment(cost - alone if n != m else cost)
    return cost[rows, columns].sum() + np.delete(alone.ravel(), columns if n <= m else rows).sum()


@pytest.mark.parametrize(("n", "m"), [(30, 30), (30, 24), (24, 30), (60, 1), (1, 60)])
def test_bounds_leave_the_matching_optimal(rng, n, m):
    ref = word(rng, max(n, m), points=12)
    pred = [s + rng.normal(0, 0.05, s.shape) for s in ref][:n]
    pred, ref = shuffled(rng, pred)[0], ref[:m]
    cost = np.array([[min(align(p, r)[0], align(p[::-1].copy(), r)[0]) for r in ref] for p in pred])
    assert match_strokes(*both(pred, ref)).tolerant_dtw.total == pytest.approx(least_by_scipy(cost), rel=1e-9)


@pytest.mark.parametrize("shape", [(7, 1), (9, 14), (14, 9), (40, 41), (300, 300)])
@pytest.mark.parametrize("spread", [3, 1000])  # few places: many dots lie on each other, and ties abound
def test_many_dots_are_matched_as_by_scipy(rng, shape, spread):
    pred, ref = (rng.integers(0, spread, (n, 2)).astype(float) for n in shape)
    found = match_strokes(*both(pred[:, None], ref[:, None]))
    assert found.tolerant_dtw.total == pytest.approx(least_by_scipy(cdist(pred, ref)), rel=1e-9)
    again = match_strokes(*both(pred[:, None], ref[:, None]))
    np.testing.assert_array_equal(found.pairs, again.pairs)


@settings(max_examples=100)
@given(inks, inks)
def test_bounds_are_below_the_costs(pred, ref):
    p, s, r, t = both(pred, ref)
    pair = module._pair(p, s.astype(np.int64), r, t.astype(np.int64))
    for i, a in enumerate(pred):
        for j, b in enumerate(ref):
            forwards, backwards = align(a, b)[0], align(a[::-1].copy(), b)[0]
            least, least_backwards = module._bounds(pair, i, j)
            assert least <= forwards
            assert least_backwards <= backwards
            assert module._box_bound(pair, i, j) <= min(forwards, backwards)


# ---------------------------------------------------------------- what the figures say


def test_ink_against_itself_is_perfect(rng):
    ink = flat(word(rng, 7))
    scores = score_strokes(*ink, *ink)
    assert scores.dtw == scores.tolerant_dtw == scores.shape_cost == 0
    assert scores.order_cost == scores.direction_cost == scores.penup_error == scores.start_distance == 0
    assert scores.order_agreement == scores.direction_agreement == scores.start_accuracy == 1
    assert scores.matched_strokes == scores.directed_strokes == 7


def test_order_and_direction_cost_dtw_but_not_tolerant_dtw(rng):
    ref = word(rng, 8)
    pred, order, turned = shuffled(rng, ref)
    scores = score_strokes(*both(pred, ref))
    assert scores.dtw > 0.05
    assert scores.tolerant_dtw == scores.shape_cost == 0
    assert scores.order_cost + scores.direction_cost == pytest.approx(scores.dtw, rel=1e-12)
    assert scores.order_agreement == pytest.approx(kendalltau(order, np.arange(8)).statistic, abs=1e-12)
    assert scores.direction_agreement == pytest.approx(1 - turned.mean())
    found = match_strokes(*both(pred, ref))
    np.testing.assert_array_equal(order[found.pairs[:, 0]], found.pairs[:, 1])
    np.testing.assert_array_equal(found.reversed, turned)


def test_a_wrong_order_alone_is_all_order(rng):
    ref = word(rng, 4)
    scores = score_strokes(*both(ref[::-1], ref))
    assert (scores.direction_cost, scores.shape_cost) == (0, 0)
    assert scores.order_cost == scores.dtw > 0
    assert scores.order_agreement == -1


def test_a_wrong_direction_alone_is_all_direction(rng):
    ref = word(rng, 4)
    scores = score_strokes(*both([s[::-1] for s in ref], ref))
    assert (scores.order_cost, scores.shape_cost) == (0, 0)
    assert scores.direction_cost == scores.dtw > 0
    assert scores.direction_agreement == 0


def test_a_wrong_shape_alone_is_all_shape(rng):
    ref = word(rng, 4)
    scores = score_strokes(*both([s + 0.01 for s in ref], ref))
    assert (scores.order_cost, scores.direction_cost) == (0, 0)
    assert scores.shape_cost == scores.dtw == pytest.approx(scores.tolerant_dtw) != 0


def test_parts_sum_to_the_dtw(rng):
    for n, m in [(6, 6), (6, 4), (4, 6)]:
        ref = word(rng, 6)
        pred = [s + rng.normal(0, 0.02, s.shape) for s in shuffled(rng, ref)[0][:n]]
        parts = decompose(*both(pred, ref[:m]))
        total, length = align(np.concatenate(pred), np.concatenate(ref[:m]))
        assert parts.dtw == total / length
        assert parts.order + parts.direction + parts.shape == pytest.approx(parts.dtw, rel=1e-14)


def test_tolerant_dtw_is_dtw_where_each_ink_is_one_stroke(rng):
    ref = word(rng, 1)
    pred = [ref[0] + rng.normal(0, 0.01, ref[0].shape)]
    total, length = align(pred[0], ref[0])
    assert tolerant_dtw(*both(pred, ref)) == (total / length, total, length)


def test_a_stroke_left_over_pays_its_nearest_in_either_direction():
    ref = [line(0, 0, 1, 0), line(0, 1, 1, 1)]
    extra = line(1, 0.9, 0, 0.9)  # beside the second, the other way round
    found = match_strokes(*both([ref[0], extra, ref[1]], ref))
    np.testing.assert_array_equal(found.pairs, [[0, 0], [2, 1]])
    np.testing.assert_array_equal(found.unmatched_pred, [1])
    assert found.unmatched_totals[0] == pytest.approx(21 * 0.1)
    assert found.tolerant_dtw.mean == pytest.approx(21 * 0.1 / (3 * 21))
    missing = match_strokes(*both([ref[0]], [ref[0], extra]))
    np.testing.assert_array_equal(missing.unmatched_ref, [1])
    assert missing.unmatched_lengths[0] == 21


def test_what_strokes_left_over_pay_is_part_of_what_is_minimised():
    ref = [np.array([[0.0, 0.0]]), np.array([[5.0, 0.0]])]
    pred = [np.array([[0.0, 0.0]]), np.array([[0.0, 0.0]]), np.array([[11.0, 0.0]])]
    # The first two alone are the cheapest pairs, 0 + 5, but the third would pay 6 then. It pays 6 as a partner too.
    found = match_strokes(*both(pred, ref))
    np.testing.assert_array_equal(found.pairs, [[0, 0], [2, 1]])
    assert found.tolerant_dtw == (2, 6, 3)


def test_a_stroke_left_over_stays_behind_the_one_it_followed():
    a, b = line(0, 0, 1, 0), line(0, 1, 1, 1)
    extra, lead = line(0, 0.1, 1, 0.1), line(0, 1.1, 1, 1.1)
    pred, ref = [lead, b, a, extra], [a, b]
    found = match_strokes(*both(pred, ref))
    np.testing.assert_array_equal(found.pairs, [[2, 0], [1, 1]])
    put = np.concatenate([lead, a, extra, b])
    total, length = align(put, np.concatenate(ref))
    assert decompose(*both(pred, ref)).shape == total / length


def test_a_closed_loop_goes_the_cheaper_way():
    turn = np.linspace(0, 2 * np.pi, 40)
    loop = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    scores = score_strokes(*both([loop[::-1] + np.array([0.01, 0.02])], [loop]))
    assert scores.direction_agreement == 0
    assert scores.tolerant_dtw < scores.dtw


def test_what_looks_the_same_from_both_ends_has_no_direction_and_is_not_reversed():
    there = line(0, 0, 1, 0)
    back = np.concatenate([there, there[-2::-1]])
    for pred, ref in [([back + 0.1], [back]), ([np.array([[0.3, 0.1]])], [there]), ([there], [np.ones((1, 2))])]:
        found = match_strokes(*both(pred, ref))
        assert not found.reversed[0]
        assert not found.directed[0]
        assert np.isnan(direction_agreement(*both(pred, ref)))


def test_short_strokes_are_not_judged_for_their_direction():
    short, long = line(0, 0, 0.05, 0, 6), line(0, 1, 1, 1)
    pred, ref = [short[::-1], long], [short, long]
    assert direction_agreement(*both(pred, ref)) == 1
    assert direction_agreement(*both(pred, ref), min_length=0.04) == 0.5
    assert np.isnan(direction_agreement(*both(pred, ref), min_length=1))
    assert score_strokes(*both(pred, ref), min_length=0.04).directed_strokes == 2


def test_order_of_one_stroke_has_no_value(rng):
    ref = word(rng, 3)
    assert np.isnan(order_agreement(*both(ref[:1], ref)))
    assert order_agreement(*both(ref[:2], ref)) == 1


def test_order_agreement_is_kendalls_tau(rng):
    for _ in range(20):
        ref = word(rng, 9)
        order = rng.permutation(9)
        expected = kendalltau(order, np.arange(9)).statistic
        assert order_agreement(*both([ref[i] for i in order], ref)) == pytest.approx(expected, abs=1e-12)


def test_start():
    pred, ref = np.array([[3.0, 4.0], [9.0, 9.0]]), np.zeros((5, 2))
    assert start_distance(pred, ref) == 5
    assert start_accuracy(pred, ref) == 0
    assert start_accuracy(pred, ref, tolerance=5) == 1  # at the tolerance counts


def test_penup_error_is_signed(rng):
    ref = word(rng, 5)
    assert penup_error(*both(ref[:3], ref)) == -2
    assert penup_error(*both(ref, ref[:3])) == 2
    scores = score_strokes(*both(ref[:3], ref))
    assert (scores.penup_error, scores.penup_error_size, scores.matched_strokes) == (-2, 2, 3)


def test_dots_on_dots():
    dots = [np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]])]
    scores = score_strokes(*both(dots[::-1], dots))
    assert scores.tolerant_dtw == 0
    assert scores.order_agreement == -1
    assert np.isnan(scores.direction_agreement)
    assert scores.tolerant_length == 2


def test_all_figures_at_once_are_those_of_one_at_a_time(rng):
    ref = word(rng, 7)
    pred = [s + rng.normal(0, 0.01, s.shape) for s in shuffled(rng, ref)[0]][:6]
    args = both(pred, ref)
    scores, found = score_strokes(*args), match_strokes(*args)
    assert (scores.tolerant_dtw, scores.tolerant_total, scores.tolerant_length) == pytest.approx(found.tolerant_dtw)
    assert scores.order_agreement == order_agreement(*args)
    assert scores.direction_agreement == direction_agreement(*args)
    assert scores.start_distance == start_distance(args[0], args[2])
    assert scores.start_accuracy == start_accuracy(args[0], args[2])
    assert scores.penup_error == penup_error(*args)
    assert (scores.dtw, scores.order_cost, scores.direction_cost, scores.shape_cost) == decompose(*args)
    assert scores.matched_strokes == len(found.pairs)
    given = compare(*args, scores.dtw_total, scores.dtw_length, 0.05, 0.05)
    assert given == scores  # a DTW that is known is not computed again, and changes nothing


def test_the_same_inks_give_the_same_pairs(rng):
    stroke = word(rng, 1)[0]
    pred, ref = [stroke] * 4, [stroke] * 4
    np.testing.assert_array_equal(match_strokes(*both(pred, ref)).pairs, [[k, k] for k in range(4)])


# ---------------------------------------------------------------- malformed input

GOOD = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])


@pytest.mark.parametrize(
    ("points", "starts", "message"),
    [
        pytest.param(np.zeros((0, 2)), [0, 0], "empty", id="no points"),
        pytest.param(np.zeros((3, 3)), [0, 3], r"shape \(3, 3\)", id="three columns"),
        pytest.param(np.zeros(6), [0, 3], r"shape \(6,\)", id="one axis"),
        pytest.param([[0, 0], [np.nan, 1]], [0, 2], "NaN", id="NaN"),
        pytest.param([[0, 0], [np.inf, 1]], [0, 2], "infinity", id="infinity"),
        pytest.param([[0, 0], [1e200, 1]], [0, 2], "1e100", id="squares overflow"),
        pytest.param([["a", "b"]], [0, 1], "not an array of numbers", id="text"),
        pytest.param(GOOD, [0, 2], "number of points", id="offsets end early"),
        pytest.param(GOOD, [0, 4], "number of points", id="offsets end late"),
        pytest.param(GOOD, [1, 3], "run from 0", id="offsets begin late"),
        pytest.param(GOOD, [0], "last offset missing", id="one offset"),
        pytest.param(GOOD, np.zeros(0, int), "be empty", id="no offsets"),
        pytest.param(GOOD, [0, 2, 2, 3], "does not rise after stroke 1", id="empty stroke"),
        pytest.param(GOOD, [0, 2, 1, 3], "does not rise after stroke 1", id="offsets fall"),
        pytest.param(GOOD, [0.0, 3.0], "whole numbers", id="offsets are floats"),
        pytest.param(GOOD, [[0, 3]], "whole numbers", id="offsets have two axes"),
    ],
)
@pytest.mark.parametrize(
    "function", [match_strokes, score_strokes, tolerant_dtw, order_agreement, penup_error, decompose]
)
def test_malformed_inks_are_refused(function, points, starts, message):
    with pytest.raises(DataError, match=message) as caught:
        function(points, starts, GOOD, [0, 3])
    assert "pred" in str(caught.value)
    with pytest.raises(DataError, match=message) as caught:
        function(GOOD, [0, 3], points, starts)
    assert "ref" in str(caught.value)


def test_starts_of_malformed_inks_are_refused():
    for points in (np.zeros((0, 2)), [[np.nan, 0]], [0, 1]):
        with pytest.raises(DataError, match="pred"):
            start_distance(points, GOOD)
        with pytest.raises(DataError, match="ref"):
            start_accuracy(GOOD, points)


@pytest.mark.parametrize("value", [-1, np.nan])
def test_impossible_limits_are_refused(value):
    with pytest.raises(DataError, match="tolerance"):
        start_accuracy(GOOD, GOOD, tolerance=value)
    with pytest.raises(DataError, match="min_length"):
        direction_agreement(GOOD, [0, 3], GOOD, [0, 3], min_length=value)
    with pytest.raises(DataError, match="start_tolerance"):
        score_strokes(GOOD, [0, 3], GOOD, [0, 3], start_tolerance=value)


def test_more_strokes_than_can_be_matched_are_refused():
    dots, starts = np.zeros((4000, 2)), np.arange(4001)
    with pytest.raises(DataError, match="16000000 pairs"):
        match_strokes(dots, starts, dots, starts)


def test_other_number_types_and_memory_layouts_are_taken(rng):
    points, starts = flat(word(rng, 3))
    expected = score_strokes(points, starts, points[::-1], starts)
    views = np.asfortranarray(points), starts.astype(np.uint8), points[::-1], starts.tolist()
    assert score_strokes(*views) == expected
    whole = (points * 100).astype(np.int16)
    assert score_strokes(whole, starts, whole, starts).dtw == 0


# ---------------------------------------------------------------- real inks


@pytest.fixture(scope="module")
def recorded(shared_data):
    """Recorded words of several strokes in their reference box, resampled."""
    recordings = pytest.importorskip("recordings")
    words = recordings.Words(shared_data / "unipen_words.npz")
    out = []
    for index in words.choose("test", None, 80) if "test" in words.split else range(80):
        strokes = words.strokes(int(index))
        points = np.concatenate(strokes)
        low, size = points.min(axis=0), np.ptp(points, axis=0).max()
        if len(strokes) > 1 and size > 0:
            out.append([spaced((s - low) / size) for s in strokes])
    assert len(out) > 20
    return out


def spaced(stroke, step=0.01):
    out = np.empty((int(np.hypot(*np.diff(stroke, axis=0).T).sum() / step) + 3, 2))
    return out[: resample(stroke, len(stroke), step, out)]


def test_recorded_words_shuffled_and_reversed_cost_order_and_direction_only(rng, recorded):
    for ref in recorded:
        pred = shuffled(rng, ref)[0]
        scores = score_strokes(*both(pred, ref))
        assert scores.tolerant_total <= 1e-9
        # Strokes that differ by rounding from both ends are a tie, so nothing is left for the shape but rounding.
        assert scores.shape_cost <= 1e-9
        assert scores.order_cost + scores.direction_cost == pytest.approx(scores.dtw, abs=1e-9)


def test_recorded_words_with_noise_keep_their_pairs(rng, recorded):
    for ref in recorded:
        pred = [s + rng.normal(0, 1e-4, s.shape) for s in ref]
        scores = score_strokes(*both(pred, ref))
        assert scores.tolerant_dtw <= 5e-4
        assert scores.shape_cost <= 5e-4
        assert scores.start_accuracy == 1


# ---------------------------------------------------------------- documentation


def test_the_documented_example_says_what_is_returned():
    page = (Path(__file__).parents[1] / "docs" / "metrics_order.md").read_text(encoding="utf-8")
    names = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    args = [names[name] for name in ("pred", "pred_starts", "ref", "ref_starts")]
    found = match_strokes(*args)
    assert f".pairs      # {found.pairs.tolist()}" in page
    assert f".reversed   # {found.reversed.tolist()}" in page
    assert f".mean        # {tolerant_dtw(*args).mean}" in page
    assert f"# {order_agreement(*args)}\n" in page
    parts = decompose(*args)
    assert f"dtw {parts.dtw:.2f} = order {parts.order:.2f} + direction {parts.direction:.2f}" in page
    assert parts.shape == 0
