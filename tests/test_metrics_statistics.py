"""Means, intervals, groups and paired comparisons, against SciPy and a slow twin."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from oracles_metrics_readability import drawn_means

from inktraj.errors import DataError
from inktraj.metrics import statistics
from inktraj.metrics.statistics import (
    aggregate,
    aggregate_all,
    bootstrap,
    group_places,
    mean,
    median,
    paired_bootstrap,
    summarize,
    summarize_all,
)

NAN = math.nan


# Means and intervals


def test_values_that_are_not_there_are_left_out():
    found = summarize([1.0, None, 3.0, NAN, 8.0])
    assert (found.mean, found.median, found.count, found.left_out) == (4.0, 3.0, 3, 2)
    assert mean([NAN]) is None
    assert median([]) is None


@pytest.mark.parametrize("values", [[], [NAN, NAN], [2.0], [2.0, NAN]])
def test_too_little_to_draw_from_gives_no_interval(values):
    found = summarize(values)
    assert (found.low, found.high) == (None, None)
    assert found.mean == (2.0 if 2.0 in values else None)


def test_one_cluster_gives_no_interval():
    assert summarize([1.0, 2.0, 3.0], clusters=["a", "a", "a"]).low is None
    assert summarize([1.0, 2.0, NAN], clusters=["a", "a", "b"]).low is None
    assert summarize([1.0, 2.0, 3.0], clusters=["a", "a", "b"]).low is not None


def test_the_interval_is_near_scipys(rng):
    values = rng.gamma(2.0, size=400)
    found = summarize(values, resamples=20_000)
    theirs = scipy.stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=rng)
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), rel=0.01)
    narrow = summarize(values, confidence=0.5)
    assert found.low < narrow.low < found.mean < narrow.high < found.high


@given(
    st.lists(st.tuples(st.floats(-10, 10) | st.just(NAN), st.sampled_from("abcd")), min_size=2, max_size=12),
    st.integers(0, 99),
)
def test_clusters_are_drawn_whole(samples, seed):
    values, clusters = zip(*samples, strict=True)
    found = summarize(values, clusters=clusters, resamples=50, seed=seed)
    held = {c for v, c in samples if not math.isnan(v)}
    if len(held) < 2:
        assert found.low is None
        return
    low, high = np.quantile(drawn_means(values, clusters, 50, seed), (0.025, 0.975))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


def test_single_samples_are_drawn_as_clusters_of_one(rng):
    values = rng.normal(size=30)
    assert summarize(values, seed=5) == summarize(values, seed=5, clusters=range(30))


def test_clusters_widen_the_interval_of_samples_that_go_together(rng):
    pages = np.repeat(np.arange(20), 30)
    values = rng.normal(size=20)[pages] + 0.1 * rng.normal(size=600)
    alone, together = summarize(values), summarize(values, clusters=pages.tolist())
    assert together.high - together.low > 3 * (alone.high - alone.low)


def test_the_seed_decides(rng):
    values = rng.normal(size=50)
    assert summarize(values, seed=1) == summarize(values, seed=1)
    assert summarize(values, seed=1) != summarize(values, seed=2)


def test_small_blocks_change_nothing(rng, monkeypatch):
    values = rng.normal(size=50)
    before = summarize(values)
    monkeypatch.setattr(statistics, "_BLOCK", 120)
    after = summarize(values)
    assert (before.low, before.high) == pytest.approx((after.low, after.high))


def test_draws_that_are_kept_are_those_that_are_made_anew(rng, monkeypatch):
    values = rng.normal(size=5000)
    kept = [summarize(values, seed=seed) for seed in (0, 1, 0)]
    monkeypatch.setattr(statistics, "_KEPT_DRAWS", 0)
    assert [summarize(values, seed=seed) for seed in (0, 1, 0)] == kept
    assert kept[0] == kept[2] != kept[1]


def test_figures_of_the_same_samples_share_their_draws(rng):
    table = {"a": rng.normal(size=40), "b": rng.normal(size=40)}
    table["b"][3] = NAN
    found = summarize_all(table, seed=3)
    for name, values in table.items():
        alone = summarize(values, seed=3)
        assert found[name].count == alone.count
        assert (found[name].low, found[name].high) == pytest.approx((alone.low, alone.high))
    assert summarize_all({}) == {}


def test_a_ratio_of_sums_has_an_interval(rng):
    hits, n = rng.integers(0, 5, size=60), rng.integers(5, 9, size=60)
    found = bootstrap(hits, per=n)
    assert found.value == pytest.approx(hits.sum() / n.sum())
    assert found.low < found.value < found.high
    assert bootstrap(np.append(hits, NAN), per=np.append(n, 1)).value == found.value
    assert bootstrap([1.0, 2.0], per=[0, 0]).value is None
    assert bootstrap(hits).value == pytest.approx(hits.mean())


def test_memory_stays_bounded(rng):
    values = rng.normal(size=18_700)
    tracemalloc.start()
    summarize(values, resamples=300)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": [1.0, math.inf]}, "values holds infinity"),
        ({"values": [[1.0]]}, r"shape \(1, 1\), expected \(n,\)"),
        ({"values": ["a"]}, "not an array of numbers"),
        ({"values": [1.0, 2.0], "clusters": ["a"]}, "1 clusters for 2 samples"),
        ({"values": [1.0, 2.0], "resamples": 0}, "resamples is a whole number above 0, not 0"),
        ({"values": [1.0, 2.0], "resamples": 2.5}, "resamples"),
        ({"values": [1.0, 2.0], "confidence": 95}, "per cent"),
    ],
)
def test_bad_input_is_told(options, message):
    with pytest.raises(DataError, match=message):
        summarize(**options)


def test_bad_weights_are_told():
    with pytest.raises(DataError, match="2 values per 1 numbers"):
        bootstrap([1, 2], per=[1])
    with pytest.raises(DataError, match="negative"):
        bootstrap([1, 2], per=[1, -1])
    with pytest.raises(DataError, match="not of the same samples"):
        summarize_all({"a": [1, 2], "b": [1]})


# Groups


def test_micro_and_macro_differ_where_groups_do():
    found = aggregate([1.0, 1.0, 1.0, 5.0, NAN], ["a", "a", "a", "b", "c"])
    assert found.micro.mean == 2.0
    assert found.macro.mean == 3.0
    assert (found.macro.count, found.macro.left_out) == (2, 1)  # c has no value
    assert {name: group.mean for name, group in found.groups.items()} == {"a": 1.0, "b": 5.0, "c": None}
    assert found.groups["c"].left_out == 1


def test_groups_stand_in_order():
    assert list(group_places(["b", 10, "a", 9], 4)) == [9, 10, "a", "b"]
    with pytest.raises(DataError, match="1 labels for 2 samples"):
        aggregate([1.0, 2.0], ["a"])


def test_clusters_go_with_their_samples_into_groups(rng):
    values, labels, pages = rng.normal(size=40), ["a", "b"] * 20, [i // 4 for i in range(40)]
    found = aggregate(values, labels, clusters=pages)
    assert found.groups["a"] == summarize(values[::2], clusters=pages[::2])
    both = aggregate_all({"x": values, "y": -values}, labels, clusters=pages)
    assert both["x"] == found
    assert both["y"].macro.mean == pytest.approx(-found.macro.mean)


# Two systems


def test_a_clear_difference_is_significant_and_none_is_not(rng):
    values = rng.normal(size=200)
    better = paired_bootstrap(values + 0.1, values + 0.01 * rng.normal(size=200))
    assert better.difference == pytest.approx(0.1, abs=0.01)
    assert 0 < better.low < better.difference < better.high
    assert better.p_value == pytest.approx(1 / 1001)
    same = paired_bootstrap(values, values)
    assert (same.difference, same.low, same.high, same.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_few_clusters_cannot_show_much(rng):
    values = rng.normal(size=40)
    assert paired_bootstrap(values + 1, values, clusters=["p", "q"] * 20).p_value == 0.5
    assert paired_bootstrap(values + 1, values, clusters=[i % 6 for i in range(40)]).p_value == 2**-5


def test_under_no_difference_p_values_are_even(rng):
    found = [paired_bootstrap(*rng.normal(size=(2, 40)), resamples=200, seed=seed).p_value for seed in range(150)]
    assert scipy.stats.kstest(found, "uniform").pvalue > 0.001


def test_the_interval_is_that_of_the_differences(rng):
    a, b = rng.normal(size=(2, 50))
    pages = [i // 5 for i in range(50)]
    found, alone = paired_bootstrap(a, b, clusters=pages), summarize(a - b, clusters=pages)
    assert (found.difference, found.low, found.high) == pytest.approx((alone.mean, alone.low, alone.high))


def test_samples_are_matched_by_name():
    a = {"w1": 1.0, "w2": 2.0, "w3": None}
    b = {"w3": 0.0, "w2": 1.0, "w1": 1.0}
    found = paired_bootstrap(a, b, clusters={"w1": "p", "w2": "q", "w3": "q"})
    assert (found.first, found.second, found.difference) == (1.5, 1.0, 0.5)
    assert (found.count, found.left_out) == (2, 1)


def test_ratios_are_compared_too():
    found = paired_bootstrap([1, 4], [0, 2], per=[1, 9])
    assert (found.first, found.second) == (0.5, 0.2)


def test_too_little_to_compare_gives_no_interval():
    found = paired_bootstrap([1.0, NAN], [2.0, 3.0])
    assert (found.difference, found.low, found.p_value, found.count) == (-1.0, None, None, 1)
    assert paired_bootstrap([], []).difference is None


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        ({"a": 1.0, "b": 1.0}, {"b": 1.0, "c": 1.0, "d": 1.0}, {}, "1 only in the first, 2 only in the second, 1 in"),
        ({"a": 1.0}, [1.0], {}, "give both in one form"),
        ([1.0], [1.0, 2.0], {}, "1 values of the first system and 2 of the second"),
        ({"a": 1.0}, {"a": 1.0}, {"clusters": {"b": 1}}, "1 samples have no entry"),
        ([1.0, 2.0], [1.0, 2.0], {"per": [1]}, "2 values per 1 numbers"),
    ],
)
def test_systems_that_cannot_be_paired_are_told(first, second, options, message):
    with pytest.raises(DataError, match=message):
        paired_bootstrap(first, second, **options)


@pytest.mark.parametrize("seed", [-1, 1.5, None, True, "a"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(DataError, match="seed is a whole number"):
        statistics.bootstrap([1, 2, 3], seed=seed)
