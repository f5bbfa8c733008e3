"""DTW and Chamfer: against slow twins, tslearn and SciPy, on random, tied and degenerate input."""

import threading
from pathlib import Path

import numpy as np
import oracles_metrics as oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import cKDTree

from inktraj.errors import DataError
from inktraj.metrics import nearest, trajectory, wavefront
from inktraj.metrics.trajectory import chamfer, dtw, dtw_batch, dtw_total, nearest_distances

INKS = Path(__file__).parents[2] / "shared" / "data" / "unipen_words.npz"

# Points on a small lattice: ties, repeated points and crossings abound.
lattice = st.integers(1, 12).flatmap(lambda n: arrays(np.float64, (n, 2), elements=st.integers(0, 3).map(float)))
scattered = st.integers(1, 12).flatmap(
    lambda n: arrays(np.float64, (n, 2), elements=st.floats(-1e6, 1e6, allow_nan=False))
)


def walk(rng, n):
    return np.cumsum(rng.normal(size=(n, 2)), axis=0)


def exact(pairs_of, examples=150):
    return lambda test: settings(max_examples=examples, deadline=None)(given(pairs_of, pairs_of)(test))


@exact(lattice | scattered)
def test_dtw_is_that_of_the_full_matrix(a, b):
    for squared, cost in ((False, "euclidean"), (True, "squared")):
        total, path = oracles.dtw(a, b, squared)
        found = dtw(a, b, cost=cost, path=True)
        assert found.total == pytest.approx(total, rel=1e-12, abs=1e-12)
        assert dtw_total(a, b, cost=cost) == found.total
        assert found.length == len(found.path)
        if squared:  # sums of whole numbers are exact on the lattice, so ties are ties
            continue
        assert found.mean == pytest.approx(total / found.length, rel=1e-12, abs=1e-12)
        assert oracles.cost_matrix(a, b)[tuple(found.path.T)].sum() == pytest.approx(total, rel=1e-12, abs=1e-12)
        assert len(path) > 0


@exact(lattice)
def test_ties_go_diagonally_then_up_then_left(a, b):
    total, path = oracles.dtw(a, b, squared=True)
    found = dtw(a, b, cost="squared", path=True)
    assert found.total == total
    assert found.path.tolist() == [list(cell) for cell in path]
    assert found.length == len(path)


@exact(lattice)
def test_a_band_is_tslearns(a, b):
    for band in (0, 1, 3):
        total, path = oracles.dtw(a, b, squared=True, band=band)
        found = dtw(a, b, cost="squared", band=band, path=True)
        assert found.total == total
        assert found.path.tolist() == [list(cell) for cell in path]
        assert found.length == len(path)


def test_dtw_agrees_with_tslearn(rng):
    metrics = pytest.importorskip("tslearn.metrics")
    for n, m in ((1, 1), (1, 7), (5, 9), (60, 40), (200, 230)):
        a, b = walk(rng, n), walk(rng, m)
        assert dtw_total(a, b, cost="squared") == pytest.approx(metrics.dtw(a, b) ** 2, rel=1e-9)
        path, total = metrics.dtw_path_from_metric(a, b, metric="euclidean")
        found = dtw(a, b, path=True)
        assert found.total == pytest.approx(total, rel=1e-9)
        assert found.path.tolist() == [list(cell) for cell in path]
        for radius in (0, 2, 20):
            banded = metrics.dtw(a, b, global_constraint="sakoe_chiba", sakoe_chiba_radius=radius)
            assert dtw_total(a, b, cost="squared", band=radius) == pytest.approx(banded**2, rel=1e-9)
    tied_a, tied_b = rng.integers(0, 3, (40, 2)).astype(float), rng.integers(0, 3, (31, 2)).astype(float)
    path, _ = metrics.dtw_path(tied_a, tied_b)
    assert dtw(tied_a, tied_b, cost="squared", path=True).path.tolist() == [list(cell) for cell in path]


@pytest.mark.parametrize("sizes", [(1, 1), (1, 50), (50, 1), (300, 3), (257, 255), (400, 900)])
def test_long_and_lopsided_pairs(sizes, rng):
    a, b = walk(rng, sizes[0]), walk(rng, sizes[1])
    found = dtw(a, b, path=True)
    assert found.length == len(found.path)
    assert oracles.cost_matrix(a, b)[tuple(found.path.T)].sum() == pytest.approx(found.total, rel=1e-12)
    steps = np.diff(found.path, axis=0)
    assert found.path[0].tolist() == [0, 0]
    assert found.path[-1].tolist() == [sizes[0] - 1, sizes[1] - 1]
    assert set(map(tuple, steps.tolist())) <= {(1, 1), (1, 0), (0, 1)}
    back = dtw(b, a)
    assert back.total == pytest.approx(found.total, rel=1e-12)


@exact(lattice | scattered)
def test_pruning_changes_nothing(a, b):
    there, back = oracles.nearest(a, b), oracles.nearest(b, a)
    for squared in (False, True):
        assert wavefront.warp_pruned(a, b, squared, there, back, True) == wavefront.warp(a, b, squared, -1, True)
        assert wavefront.warp_pruned(a, b, squared, there, back, None)[0] == wavefront.warp(a, b, squared, -1, None)[0]


def test_pruning_changes_nothing_on_long_pairs(rng):
    reference = walk(rng, 1500)
    order = np.concatenate([np.arange(700, 1500), np.arange(700)])
    others = {
        "close": reference + rng.normal(0, 0.3, reference.shape),
        "at another pace": np.repeat(reference, 2, axis=0)[rng.random(3000) < 0.7],
        "another": walk(rng, 1400),
        "another order": reference[order],
        "reversed": np.ascontiguousarray(reference[::-1]),
        "far": reference + 1e4,
        "the same": reference,
        "one point": reference[:1] + 3.0,
    }
    for name, other in others.items():
        there, back = nearest_distances(other, reference)
        pruned = wavefront.warp_pruned(other, reference, False, there, back, True)
        assert pruned == wavefront.warp(other, reference, False, -1, True), name
        found = dtw(other, reference)
        assert (found.total, found.length) == pruned, name


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(lattice | scattered, lattice | scattered), min_size=0, max_size=25), st.booleans())
def test_batches_are_the_pairs_one_by_one(pairs, squared):
    cost = "squared" if squared else "euclidean"
    found = dtw_batch([a for a, _ in pairs], [b for _, b in pairs], cost=cost)
    alone = [dtw(a, b, cost=cost) for a, b in pairs]
    assert found.totals.tolist() == [one.total for one in alone]
    assert found.lengths.tolist() == [one.length for one in alone]
    assert found.means.tolist() == [one.mean for one in alone]
    totals = dtw_batch([a for a, _ in pairs], [b for _, b in pairs], cost=cost, lengths=False)
    assert totals.totals.tolist() == found.totals.tolist()
    with pytest.raises(DataError, match="lengths"):
        _ = totals.means


@pytest.mark.parametrize("threads", [1, 2, 0])
def test_batches_of_all_sizes_and_threads(threads, rng):
    sizes = [(1, 1), (49, 49), (50, 3), (319, 320), (321, 7), (600, 500), (1100, 1000), (8, 8), (16, 2000)] * 3
    a = [walk(rng, n) for n, _ in sizes]
    b = [walk(rng, m) for _, m in sizes]
    found = dtw_batch(a, b, threads=threads)
    assert found.totals.tolist() == [dtw(p, q).total for p, q in zip(a, b, strict=True)]
    assert found.lengths.tolist() == [dtw(p, q).length for p, q in zip(a, b, strict=True)]


def test_pairs_can_be_turned_round(rng):
    a = [walk(rng, n) for n in (5, 30, 400)]
    b = [walk(rng, n) for n in (9, 31)]
    starts = [np.cumsum([0, *map(len, parts)]) for parts in (a, b)]
    first, second = np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
    totals, lengths = np.empty(6), np.empty(6)
    wavefront.align_pairs(
        *(np.concatenate(a), starts[0], first, np.concatenate(b), starts[1], second),
        *(np.ones(6, bool), False, totals, lengths),
    )
    alone = [dtw(a[i][::-1], b[j]) for i, j in zip(first, second, strict=True)]
    assert totals.tolist() == [one.total for one in alone]
    assert lengths.tolist() == [one.length for one in alone]


@exact(lattice | scattered)
def test_nearest_is_that_of_all_pairs(a, b):
    out = np.empty(len(a))
    assert nearest.distances(a, b, out)
    np.testing.assert_allclose(out, oracles.nearest(a, b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_nearest_agrees_with_scipy(seed):
    rng = np.random.default_rng(seed)
    page = walk(rng, 3000)
    column = np.column_stack([np.zeros(2000), np.arange(2000.0)])
    sets = {
        "beside each other": (page + rng.normal(0, 0.2, page.shape), page),
        "in no order": (rng.random((2000, 2)), rng.random((1500, 2))),
        "far aside": (page + np.array([1e6, 10.0]), page),
        "far above": (page - np.array([0.0, 1e4]), page),
        "a column and a row": (column, column[:, ::-1]),
        "a column far from a column": (column + np.array([1e5, 0.3]), column),
        "all one point": (page, np.ones((50, 2))),
        "two clusters": (page, np.concatenate([page[:100], page[:100] + 1e7])),
        "very small": (page * 1e-90, page[::-1] * 1e-90),
        "very large": (page * 1e90, page[::-3] * 1e90),
    }
    for name, (a, b) in sets.items():
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        there, back = nearest_distances(a, b)
        scale = max(np.abs(a).max(), np.abs(b).max())
        np.testing.assert_allclose(there / scale, cKDTree(b / scale).query(a / scale)[0], 1e-9, 1e-12, err_msg=name)
        np.testing.assert_allclose(back / scale, cKDTree(a / scale).query(b / scale)[0], 1e-9, 1e-12, err_msg=name)


def test_a_search_stops_at_its_budget(rng):
    a = rng.random((500, 2))
    out = np.full(500, -1.0)
    assert not nearest.distances(a + 100, a, out, 50)
    assert (out == -1).any()


def test_chamfer_of_two_squares():
    a = [(0, 0), (1, 0), (1, 1), (0, 1)]
    b = [(3, 0), (4, 0), (4, 1), (3, 1)]
    found = chamfer(a, b)
    assert (found.pred_to_ref, found.ref_to_pred, found.mean, found.hausdorff) == (2.5, 2.5, 2.5, 3.0)
    assert found.squared == (4 + 9) / 2
    lopsided = chamfer([(0, 0)], [(0, 0), (3, 4)])
    assert (lopsided.pred_to_ref, lopsided.ref_to_pred, lopsided.squared, lopsided.hausdorff) == (0, 2.5, 6.25, 5)


@exact(scattered, 60)
def test_chamfer_is_symmetric_and_zero_on_itself(a, b):
    there, back = chamfer(a, b), chamfer(b, a)
    assert (there.pred_to_ref, there.hausdorff) == (back.ref_to_pred, back.hausdorff)
    assert chamfer(a, a[::-1]).hausdorff == 0


BAD = {
    "NaN": ([[0, np.nan]], "NaN or infinity"),
    "infinity": ([[0, np.inf]], "NaN or infinity"),
    "empty": (np.zeros((0, 2)), "empty"),
    "no points at all": ([], "shape"),
    "three columns": ([[1, 2, 1]], r"shape \(1, 3\)"),
    "one dimension": ([1, 2, 3], "shape"),
    "text": ([["a", "b"]], "not an array of numbers"),
    "ragged": ([[1, 2], [3]], "not an array of numbers"),
    "too large to be squared": ([[1e200, 0]], "expected coordinates below"),
    "complex": ([[1j, 0]], "not an array of numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_points(name):
    points, message = BAD[name]
    for function in (dtw, dtw_total, chamfer, nearest_distances):
        with pytest.raises(DataError, match=message):
            function(points, [[0, 0]])
        with pytest.raises(DataError, match=message):
            function([[0, 0]], points)
    with pytest.raises(DataError, match=message):
        dtw_batch([[[0, 0]], points], [[[0, 0]], [[0, 0]]])
    with pytest.raises(DataError, match=r"refs\[1\]"):
        dtw_batch([[[0, 0]], [[0, 0]]], [[[0, 0]], points])


def test_an_ink_in_the_place_of_points_is_told():
    from inktraj import Frame, Ink

    with pytest.raises(DataError, match="pred is an ink, expected points"):
        dtw(Ink([[(0, 0)]], Frame(9, 9)), [[0, 0]])


def test_bad_options():
    with pytest.raises(DataError, match="cost is 'manhattan'"):
        dtw([[0, 0]], [[0, 0]], cost="manhattan")
    for band in (-1, 1.5, True):
        with pytest.raises(DataError, match="band"):
            dtw([[0, 0]], [[0, 0]], band=band)
    with pytest.raises(DataError, match="2 predictions and 1 references"):
        dtw_batch([[[0, 0]], [[0, 0]]], [[[0, 0]]])
    for threads in (-1, 1.5, True):
        with pytest.raises(DataError, match="threads"):
            dtw_batch([[[0, 0]]], [[[0, 0]]], threads=threads)


def test_one_point_each():
    found = dtw([[0, 0]], [[3, 4]], path=True)
    assert (found.total, found.length, found.mean, found.path.tolist()) == (5.0, 1, 5.0, [[0, 0]])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint64, np.float32])
def test_small_integers_do_not_overflow(dtype):
    low, high = (0, 100) if np.dtype(dtype).kind == "u" else (-100, 100)
    a = np.array([[low, low], [high, high]], dtype)
    b = np.array([[high, high], [low, low]], dtype)
    apart = float(np.hypot(high - low, high - low))
    assert dtw_total(a, b) == pytest.approx(2 * apart)
    assert chamfer(a[:1], b[:1]).hausdorff == pytest.approx(apart)
    assert dtw_batch([a], [b]).totals[0] == pytest.approx(2 * apart)


def test_other_layouts_are_taken(rng):
    a, b = walk(rng, 30), walk(rng, 40)
    expected = dtw_total(a, b)
    assert dtw_total(np.asfortranarray(a), b[:, :].tolist()) == expected
    assert dtw_total(np.repeat(a, 2, axis=0)[::2], b) == expected
    read_only = a.copy()
    read_only.setflags(write=False)
    assert dtw_total(read_only, b) == expected
    assert dtw_batch([read_only], [b]).totals[0] == expected
    assert chamfer(read_only, b) == chamfer(a, b)


def test_ten_million_points_take_memory_in_their_number():
    import tracemalloc

    n = 10_000_000
    t = np.arange(n, dtype=np.float64)
    points = np.column_stack([t * 1e-4, np.sin(t * 1e-3)])
    few = points[:: n // 4]
    tracemalloc.start()
    found = dtw(points, few)
    peak = tracemalloc.get_traced_memory()[1]
    assert found.length >= n
    assert peak < 8 * points.nbytes
    tracemalloc.reset_peak()
    assert chamfer(points, few).ref_to_pred == 0
    assert tracemalloc.get_traced_memory()[1] < 8 * points.nbytes
    tracemalloc.stop()


def test_a_long_path_takes_little_memory(rng):
    import tracemalloc

    a, b = walk(rng, 6000), walk(rng, 5000)
    dtw(a[:5], b[:5], path=True)
    tracemalloc.start()
    found = dtw(a, b, path=True)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000  # the full matrix has 240 MB
    tracemalloc.stop()
    assert oracles.cost_matrix(a[:3], b[:3]).shape == (3, 3)
    assert np.hypot(*(a[found.path[:, 0]] - b[found.path[:, 1]]).T).sum() == pytest.approx(found.total)


def test_an_error_in_a_thread_is_raised():
    def work(item):
        raise DataError(f"item {item}")

    with pytest.raises(DataError, match="item"):
        trajectory.for_each(work, [1, 2, 3], 2)


@pytest.mark.skipif(not INKS.exists(), reason=f"{INKS} is absent: recorded ink is not part of the project")
def test_recorded_words(rng):
    metrics = pytest.importorskip("tslearn.metrics")
    with np.load(INKS, allow_pickle=False) as data:
        offsets, strokes = data["stroke_offsets"], data["word_offsets"]
        words = []
        for k in rng.integers(0, len(strokes) - 1, 12):
            delta = data["delta"][offsets[strokes[k]] : offsets[strokes[k + 1]]]
            words.append(np.cumsum(delta, axis=0, dtype=np.int16))
    for a, b in zip(words[::2], words[1::2], strict=True):
        path, total = metrics.dtw_path_from_metric(a.astype(float), b.astype(float), metric="euclidean")
        found = dtw(a, b, path=True)
        assert found.total == pytest.approx(total, rel=1e-9)
        assert found.length == len(path)
        there, _ = nearest_distances(a, b)
        np.testing.assert_allclose(there, cKDTree(b).query(a)[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("band", [1 << 62, (1 << 63) - 1, 1 << 70])
def test_a_band_wider_than_any_sequence_is_no_band(band):
    a, b = np.arange(12.0).reshape(6, 2), np.arange(8.0).reshape(4, 2)
    assert dtw(a, b, band=band, path=True).path.tolist() == dtw(a, b, path=True).path.tolist()
    assert dtw(a, b, band=band).total == dtw(a, b).total


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (np.ma.array([[0.0, 0.0], [9.0, 9.0]], mask=[[0, 0], [1, 1]]), "masked"),
        (np.array([[1 + 5j, 2]]), "complex"),
    ],
)
def test_points_that_would_lose_something_are_refused(points, told):
    for measure in (lambda: dtw(points, [(0, 0)]), lambda: dtw_batch([[(0, 0)], points], [[(0, 0)]] * 2)):
        with pytest.raises(DataError, match=told):
            measure()


def test_an_error_in_a_thread_ends_the_work_soon():
    done = []

    def work(item):
        if item == 0:
            raise DataError("stop")
        threading.Event().wait(0.01)
        done.append(item)

    with pytest.raises(DataError, match="stop"):
        trajectory.for_each(work, range(500), 2)
    assert len(done) < 100
