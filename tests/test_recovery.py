"""Recovery: skeleton graph, the pen's way, and what comes out of `recover`."""

from itertools import pairwise

import cv2
import numpy as np
import oracles_recovery as oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from made_recoverer import crop_of_mask, drawn, weights_arrays, write_arrays

from inktraj.arclength import resample
from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.recovery import Recoverer, recover
from inktraj.recovery import graph as graphs
from inktraj.recovery.order import find_marks, writing_order
from inktraj.recovery.scribe import Scribe
from inktraj.recovery.smooth import _smooth
from inktraj.recovery.thinning import thin
from inktraj.recovery.tracer import Tracer
from inktraj.recovery.traversal import traverse

masks = arrays(np.bool_, st.tuples(st.integers(3, 24), st.integers(3, 24)))


def traced(mask, **options):
    return Tracer(**options)(crop_of_mask(mask))[0].ink


def circle(x, y, r, n=60):
    a = np.linspace(0, 2 * np.pi, n)
    return np.stack([x + r * np.cos(a), y + r * np.sin(a)], axis=1)


def skeletal(mask):
    padded = np.pad(mask, 1).astype(np.uint8)
    distance = cv2.distanceTransform(padded, cv2.DIST_L2, 5)
    return padded, distance


# ---------------------------------------------------------------- kernels against their twins


@settings(deadline=None, max_examples=60)
@given(masks)
def test_thinning_is_the_published_one(mask):
    padded = np.pad(mask, 1)
    np.testing.assert_array_equal(thin(padded), oracles.thin(padded))


def test_thinning_keeps_every_piece_of_ink_in_one_piece(rng):
    for _ in range(20):
        mask = np.pad(cv2.blur(rng.random((40, 60)), (5, 5)) > 0.5, 1)
        before = cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)[0]
        assert cv2.connectedComponents(thin(mask), connectivity=8)[0] == before


@settings(deadline=None, max_examples=60)
@given(masks)
def test_graph_has_the_nodes_and_edges_of_its_skeleton(mask):
    skeleton = thin(np.pad(mask, 1))
    nodes, ends, start, points = graphs._trace(skeleton, graphs.STEPS_Y, graphs.STEPS_X)
    assert (len(nodes), len(ends)) == oracles.count_graph(skeleton)
    assert len(start) == len(ends) + 1
    assert start[-1] == len(points)


@settings(deadline=None, max_examples=60)
@given(masks)
def test_every_skeleton_pixel_lies_on_an_edge_or_at_a_node(mask):
    skeleton = thin(np.pad(mask, 1))
    nodes, _, _, points = graphs._trace(skeleton, graphs.STEPS_Y, graphs.STEPS_X)
    where = np.concatenate([points, nodes])
    y, x = np.nonzero(skeleton)
    for px, py in zip(x, y, strict=True):
        nearest = np.abs(where - (px, py)).max(1).min()
        in_junction = len(oracles.path_neighbours(skeleton, py, px)) > 2
        assert nearest == 0 or in_junction


@settings(deadline=None, max_examples=40)
@given(arrays(np.float64, st.tuples(st.integers(2, 30), st.just(2)), elements=st.floats(-50, 50)), st.floats(0.3, 5))
def test_resampling_is_numpys(path, step):
    length = np.hypot(*np.diff(path, axis=0).T).sum()
    if length < 1e-3:
        return
    out = np.empty((int(length / step) + 10, 2))
    n = resample(path, len(path), step, out)
    np.testing.assert_allclose(out[:n], oracles.resample(path, step), atol=1e-6)


def test_smoothing_is_a_reflected_convolution(rng):
    path, weights = rng.normal(size=(40, 2)), np.array([0.4, 0.2, 0.1])
    out = np.empty_like(path)
    _smooth(path, len(path), weights, False, out)
    np.testing.assert_allclose(out, oracles.smooth(path, weights), atol=1e-12)
    np.testing.assert_allclose(out[[0, -1]], path[[0, -1]], atol=1e-12)


# ---------------------------------------------------------------- graph


def test_spurs_go_and_real_branches_stay():
    bar = drawn([(20, 50), (140, 50)], pen=9)
    bar[42:45, 70:73] = True  # a bump on the rim
    assert len(graphs.skeleton_graph(*skeletal(bar)).ends) == 1
    tee = drawn([(20, 50), (140, 50)], [(80, 50), (80, 90)], pen=9)
    assert len(graphs.skeleton_graph(*skeletal(tee)).ends) == 3


def test_a_slanted_crossing_becomes_one_junction():
    mask = drawn([(20, 20), (140, 90)], [(20, 90), (140, 20)], pen=6)
    graph = graphs.skeleton_graph(*skeletal(mask))
    assert sorted(graph.degree()) == [1, 1, 1, 1, 4]
    junction = graph.nodes[graph.degree() == 4][0] - 1
    np.testing.assert_allclose(junction, (80, 55), atol=1.0)


@pytest.mark.parametrize("pen", [3, 5, 8])
def test_ends_lie_one_radius_from_the_tip(pen):
    graph = graphs.skeleton_graph(*skeletal(drawn([(30, 40), (120, 70)], pen=pen)))
    ends = graph.nodes[np.argsort(graph.nodes[:, 0])] - 1
    np.testing.assert_allclose(ends, [(30, 40), (120, 70)], atol=1.2)


@settings(deadline=None, max_examples=40)
@given(masks)
def test_traversal_draws_every_edge(mask):
    padded, distance = skeletal(mask)
    graph = graphs.skeleton_graph(padded, distance, spur=0, merge=0, extend=False)
    path, offsets, component = traverse(graph, pen=2.0, height=20.0)
    lengths, degree = graph.lengths(), graph.degree()
    needed = {
        i
        for i, (a, b) in enumerate(graph.ends)
        if not (degree[a] > 2 and degree[b] > 2 and lengths[i] < 1.1 * (graph.radius[a] + graph.radius[b]))
    }
    assert needed <= {int(h) // 2 for h in path}
    for a, b in pairwise(offsets):  # within a stroke each edge begins where the last ended
        for h, c in zip(path[a : b - 1], path[a + 1 : b], strict=True):
            assert graph.ends[h // 2, 1 - h % 2] == graph.ends[c // 2, c % 2]
    assert len(component) == len(offsets) - 1


# ---------------------------------------------------------------- what a pen does


def ends_of(stroke):
    return stroke[[0, -1]]


def test_a_line_goes_from_left_to_right_and_a_stem_down():
    (stroke,) = traced(drawn([(130, 50), (20, 50)])).strokes
    np.testing.assert_allclose(ends_of(stroke), [(20, 50), (130, 50)], atol=1.2)
    (stroke,) = traced(drawn([(80, 100), (80, 10)])).strokes
    np.testing.assert_allclose(ends_of(stroke), [(80, 10), (80, 100)], atol=1.2)


def test_a_plus_sign_is_two_strokes_that_go_straight_through():
    ink = traced(drawn([(20, 55), (140, 55)], [(80, 10), (80, 100)]))
    assert len(ink.strokes) == 2
    spread = sorted(tuple(np.ptp(s, axis=0)) for s in ink.strokes)
    assert spread[0][0] < 2
    assert spread[0][1] > 85
    assert spread[1][1] < 2
    assert spread[1][0] > 115


def test_an_o_is_one_closed_stroke_from_the_top_against_the_clock():
    (stroke,) = traced(drawn(circle(80, 55, 35))).strokes
    np.testing.assert_array_equal(stroke[0], stroke[-1])
    assert stroke[0, 1] < 22
    assert stroke[len(stroke) // 4, 0] < 60  # first down on the left
    np.testing.assert_allclose(np.hypot(*(stroke - (80, 55)).T), 35, atol=0.7)


def test_a_t_is_its_stem_then_its_bar():
    ink = traced(drawn([(80, 10), (80, 90), (95, 100)], [(50, 40), (110, 40)]))
    assert len(ink.strokes) == 2
    stem, bar = ink.strokes
    assert np.ptp(stem[:, 1]) > 80
    np.testing.assert_allclose(ends_of(bar), [(50, 40), (110, 40)], atol=1.5)


def test_dots_and_bars_come_after_the_whole_body_or_after_their_run():
    i, bar_t = [(30, 50), (30, 95)], [(70, 15), (70, 95)]
    word = drawn(i, [(30, 25)], bar_t, [(55, 45), (85, 45)], [(120, 50), (120, 95)])
    x = [float(s[:, 0].mean()) for s in traced(word).strokes]
    np.testing.assert_allclose(x, [30, 70, 120, 30, 70], atol=2)
    x = [float(s[:, 0].mean()) for s in traced(word, marks="run").strokes]
    np.testing.assert_allclose(x, [30, 30, 70, 70, 120], atol=2)


def test_a_stem_is_drawn_down_and_up_again_without_a_lift():
    arch = [(40, 60), (50, 45), (65, 42), (78, 52), (80, 95)]
    ink = traced(drawn([(38, 10), (38, 95)], arch))
    assert len(ink.strokes) == 1
    (stroke,) = ink.strokes
    np.testing.assert_allclose(ends_of(stroke), [(38, 10), (80, 95)], atol=1.5)
    on_stem = (np.abs(stroke[:, 0] - 38) < 2) & (stroke[:, 1] > 70)
    assert np.diff(np.flatnonzero(on_stem)).max() == 1  # down and up in one go
    assert np.hypot(*np.diff(stroke[on_stem], axis=0).T).sum() > 40


@pytest.mark.parametrize("name", ["tracer", "scribe"])
def test_a_round_speck_is_one_point_with_its_width(name, tmp_path):
    recoverer = Tracer() if name == "tracer" else Scribe(weights=write_arrays(tmp_path / "w.npz", weights_arrays()))
    ink = recoverer(crop_of_mask(drawn([(60, 50)], [(90, 20), (90, 90)], pen=5)))[0].ink
    (dot,) = [k for k, s in enumerate(ink.strokes) if len(s) == 1]
    np.testing.assert_allclose(ink.strokes[dot][0], (60, 50), atol=0.5)
    assert abs(ink.widths[dot][0] - 6) < 1


@pytest.mark.parametrize("pen", [3, 4, 6, 9])
def test_widths_are_those_of_the_pen(pen):
    ink = traced(drawn([(20, 20), (140, 50)], pen=pen))
    middle = ink.widths[0][len(ink.widths[0]) // 2]
    assert abs(middle - pen) < 0.7


# ---------------------------------------------------------------- properties of the whole


def scribble(rng, n=3, pen=4):
    paths = []
    for k in range(n):
        t = np.linspace(0, 1, 60)
        x = 20 + 40 * k + 35 * t + 8 * np.sin(2 * np.pi * (2 * t + rng.random()))
        y = 55 + 30 * np.sin(2 * np.pi * (1.5 * t + rng.random()))
        paths.append(np.stack([x, y], axis=1))
    return drawn(*paths, pen=pen)


def drawn_again(ink: Ink, shape):
    canvas = np.zeros((shape[0] * 4, shape[1] * 4), np.uint8)
    for stroke, widths in zip(ink.strokes, ink.widths, strict=True):
        at = np.int32(np.round(stroke * 4 + 1.5))
        cv2.polylines(canvas, [at], False, 255, max(round(4 * float(np.median(widths))), 1))
    return cv2.resize(canvas, shape[::-1], interpolation=cv2.INTER_AREA) > 127


@pytest.mark.parametrize("end", [(60, 0), (60, 3), (60, 20), (60, 40), (60, 60), (10, 60), (0, 60)])
def test_a_line_of_one_pixel_is_one_stroke(end):
    mask = np.zeros((80, 80), np.uint8)
    cv2.line(mask, (5, 5), (5 + end[0], 5 + end[1]), 1, 1)
    (stroke,) = traced(mask > 0).strokes
    assert np.hypot(*(stroke[-1] - stroke[0])) == pytest.approx(np.hypot(*end), abs=2)


def test_a_circle_of_one_pixel_is_one_stroke():
    mask = np.zeros((80, 80), np.uint8)
    cv2.circle(mask, (40, 40), 30, 1, 1)
    (stroke,) = traced(mask > 0).strokes
    np.testing.assert_allclose(stroke[0], stroke[-1], atol=0.5)


def test_strokes_lie_on_the_ink_and_cover_it(rng):
    for _ in range(10):
        mask = scribble(rng)
        ink = traced(mask)
        outside = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 5)
        x, y = np.rint(np.concatenate(ink.strokes)).astype(int).T
        assert outside[y, x].max() <= 1
        again = drawn_again(ink, mask.shape)
        to_again = cv2.distanceTransform((~again).astype(np.uint8), cv2.DIST_L2, 5)
        assert (to_again[mask] <= 2).mean() >= 0.98
        assert (outside[again] <= 2).mean() >= 0.98


def test_each_piece_of_ink_gets_a_stroke(rng):
    for _ in range(5):
        mask = cv2.blur(rng.random((60, 90)), (4, 4)) > 0.56
        ink = traced(mask)
        count, labels = cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)
        near = cv2.dilate(labels.astype(np.uint16), np.ones((3, 3), np.uint8))
        x, y = np.rint(np.concatenate(ink.strokes)).astype(int).T
        found = set(labels[y, x]) | set(near[y, x].tolist())
        assert set(range(1, count)) <= found


def test_moving_the_ink_moves_the_strokes(rng):
    mask = scribble(rng)
    moved = np.zeros((mask.shape[0] + 40, mask.shape[1] + 50), np.bool_)
    moved[13 : 13 + mask.shape[0], 29 : 29 + mask.shape[1]] = mask
    a, b = traced(mask), traced(moved)
    assert len(a.strokes) == len(b.strokes)
    for p, q in zip(a.strokes, b.strokes, strict=True):
        np.testing.assert_allclose(q - p, np.broadcast_to((29, 13), p.shape), atol=1e-9)


def test_the_same_pixels_give_the_same_ink(rng):
    mask = scribble(rng)
    assert traced(mask) == traced(mask.copy())


def test_points_are_spaced_by_arc_length(rng):
    for stroke in traced(scribble(rng), step=3.0).strokes:
        steps = np.hypot(*np.diff(stroke, axis=0).T)
        assert steps.max() < 3.6


DEGENERATE = {
    "empty": np.zeros((50, 60), np.bool_),
    "full": np.ones((50, 60), np.bool_),
    "one pixel": np.ones((1, 1), np.bool_),
    "one row": np.ones((1, 5000), np.bool_),
    "one column": np.ones((5000, 1), np.bool_),
    "checkerboard": np.indices((300, 300)).sum(0) % 2 == 0,
    "coarse checkerboard": (np.indices((300, 300)) // 4).sum(0) % 2 == 0,
    "grid": (np.indices((400, 400)) % 7 == 0).any(0),
    "large grid": (np.indices((1500, 1500)) % 7 == 0).any(0),
    "large noise": np.random.default_rng(1).random((900, 900)) < 0.4,
    "noise": np.random.default_rng(1).random((300, 300)) < 0.5,
    "sparse noise": np.random.default_rng(1).random((300, 300)) < 0.05,
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_odd_pixels_end_in_an_honest_ink(name):
    mask = DEGENERATE[name]
    ink = traced(mask)
    assert (len(ink.strokes) > 0) == bool(mask.any())
    assert ink.frame == crop_of_mask(mask).frame
    if ink.strokes:
        x0, y0, x1, y1 = ink.bounds
        assert x0 >= -1
        assert y0 >= -1
        assert x1 <= mask.shape[1]
        assert y1 <= mask.shape[0]


def test_a_filled_blob_gives_little_ink():
    y, x = np.mgrid[:300, :400]
    ink = traced(((y - 150) / 120) ** 2 + ((x - 200) / 180) ** 2 < 1)
    assert len(ink.strokes) == 1
    assert ink.n_points < 150


# ---------------------------------------------------------------- the one door


def test_recover_reads_grey_and_rgb_alike():
    mask = drawn([(20, 20), (140, 90)])
    gray = np.where(mask, 60, 220).astype(np.uint8)
    assert recover(gray) == recover(np.repeat(gray[..., None], 3, axis=2))


def test_recover_inverts_light_ink_on_a_dark_ground():
    gray = np.where(drawn([(20, 20), (140, 90)]), 60, 220).astype(np.uint8)
    assert recover(255 - gray) == recover(gray)


def test_faint_ink_on_noisy_paper_stays_in_one_piece(rng):
    depth = cv2.GaussianBlur(drawn([(20, 30), (60, 80), (100, 30), (140, 80)]).astype(np.float32), (0, 0), 0.6)
    fade = np.linspace(1.0, 0.25, 160)  # a quill running dry
    gray = 200 - 120 * depth * fade + rng.normal(0, 3, depth.shape)
    ink = recover(np.clip(gray, 0, 255).astype(np.uint8))
    assert len(ink.strokes) == 1
    np.testing.assert_allclose(ends_of(ink.strokes[0]), [(20, 30), (140, 80)], atol=2.5)


def test_uneven_light_is_not_ink():
    light = np.linspace(120, 240, 160)[None].repeat(110, 0)
    assert recover(light.astype(np.uint8)).strokes == ()
    gray = np.where(drawn([(20, 50), (140, 60)]), light * 0.4, light).astype(np.uint8)
    assert len(recover(gray).strokes) == 1


def test_paper_noise_is_not_ink(rng):
    assert recover(np.clip(rng.normal(220, 4, (100, 200)), 0, 255).astype(np.uint8)).strokes == ()


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (np.zeros((10, 10)), "0–1"),
        (np.zeros((10, 10), np.bool_), "uint8"),
        (np.zeros((10, 10, 4), np.uint8), "alpha"),
        (np.zeros((0, 10), np.uint8), "h, w ≥ 1"),
        (np.zeros(10, np.uint8), r"\(h, w\)"),
        ([[1, 2]], "Page.open"),
        ("word.png", "Page.open"),
    ],
)
def test_wrong_pictures_are_refused_with_the_reason(image, says):
    with pytest.raises(DataError, match=says):
        recover(image)


@pytest.mark.parametrize("recoverer", ["tracer", Tracer, 5])
def test_what_is_no_recoverer_is_refused(recoverer):
    with pytest.raises(DataError, match="recoverer is a Recoverer"):
        recover(np.full((10, 10), 255, np.uint8), recoverer=recoverer)


@pytest.mark.parametrize("options", [{"step": 0.0}, {"step": float("nan")}, {"beam": 0}, {"marks": "never"}])
def test_wrong_options_are_refused(options):
    with pytest.raises(DataError):
        Tracer(**options)


def test_the_tracer_is_a_recoverer():
    tracer = Tracer()
    assert isinstance(tracer, Recoverer)
    assert tracer.name == "tracer"
    assert tracer.version
    (candidate,) = tracer(crop_of_mask(drawn([(20, 20), (100, 80)])), text="l", n_best=5)
    assert candidate.confidence is None


def test_order_of_no_strokes_is_empty():
    assert writing_order([], [], 10.0, 2.0) == []


def test_a_full_stop_is_no_mark():
    stem, stop = np.array([(10.0, 10.0), (10.0, 90.0)]), np.array([(30.0, 89.0)])
    assert not find_marks([stem, stop], 80.0, 4.0).any()
