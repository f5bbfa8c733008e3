"""One unit for two inks, all figures of a prediction, and what an output that cannot be used scores."""

import math

import numpy as np
import oracles_metrics as oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inktraj.errors import DataError
from inktraj.ink import Frame, Ink
from inktraj.metrics import evaluation as module
from inktraj.metrics import normalization
from inktraj.metrics.evaluation import Evaluation, evaluate
from inktraj.metrics.normalization import Normalization
from inktraj.metrics.strokes import score_strokes
from inktraj.metrics.trajectory import chamfer, dtw

FRAME = Frame(400, 200)
RAW = Normalization("none")

stroke_arrays = st.integers(1, 8).flatmap(
    lambda n: arrays(np.float64, (n, 2), elements=st.floats(0, 200, allow_nan=False, width=32))
)
drawings = st.lists(stroke_arrays, min_size=1, max_size=5)


def ink(*strokes, frame=FRAME):
    return Ink(strokes, frame)


def word():
    return ink([(20, 30), (60, 30), (60, 80)], [(100, 40), (100, 80)], [(40, 10)])


# ---------------------------------------------------------------- one unit


def test_the_reference_box_is_the_unit():
    done = Normalization(step=None).apply(ink([(20, 30), (100, 70)]), ink([(20, 30), (100, 50)]))
    assert done.ref.tolist() == [[0, 0], [1, 0.25]]
    assert done.pred.tolist() == [[0, 0], [1, 0.5]]
    assert (done.scale, done.origin) == (1 / 80, (20, 30))


def test_height_page_and_none():
    ref = ink([(20, 30), (100, 50)])
    assert Normalization("height", None).apply(None, ref).ref.tolist() == [[0, 0], [4, 1]]
    assert Normalization("page", None).apply(None, ref).ref.tolist() == [[0.05, 0.075], [0.25, 0.125]]
    assert Normalization("none", None).apply(None, ref).ref.tolist() == [[20, 30], [100, 50]]


def test_default_steps():
    assert [Normalization(space).step for space in normalization.SPACES] == [0.01, 0.001, 0.01, None]
    assert Normalization("none", 2.0).step == 2.0


@settings(max_examples=60, deadline=None)
@given(drawings, st.floats(0.5, 30))
def test_points_are_spaced_evenly(strokes, step):
    done = Normalization("none", step).apply(None, ink(*strokes))
    parts = np.split(done.ref, done.ref_starts[1:-1])
    assert len(parts) == len(strokes)
    for part, stroke in zip(parts, strokes, strict=True):
        np.testing.assert_allclose(part, oracles.spaced(stroke, step), atol=1e-6)
    assert done.ref_line is done.ref


def test_bridges_put_points_on_the_way_between_strokes():
    ref = ink([(0, 0), (0, 4)], [(6, 4), (6, 0)])
    done = Normalization("none", 2.0, bridge=True).apply(None, ref)
    assert done.ref_line.tolist() == [[0, 0], [0, 2], [0, 4], [2, 4], [4, 4], [6, 4], [6, 2], [6, 0]]
    assert done.ref.tolist() == [[0, 0], [0, 2], [0, 4], [6, 4], [6, 2], [6, 0]]
    assert done.ref_starts.tolist() == [0, 3, 6]
    assert (
        Normalization("none", None, bridge=True).apply(None, ref).ref_line.tolist() == done.ref[[0, 2, 3, 5]].tolist()
    )


def test_bad_normalizations():
    with pytest.raises(DataError, match="expected one of reference-box"):
        Normalization("box")
    for step in (0, -1, math.nan, math.inf, "1"):
        with pytest.raises(DataError, match="step"):
            Normalization(step=step)


def test_references_that_cannot_be_the_unit():
    for strokes in ([[(5, 5)]], [[(5, 5), (5, 5)]]):
        with pytest.raises(DataError, match="dot"):
            Normalization().apply(None, ink(*strokes))
        assert len(Normalization("page").apply(None, ink(*strokes)).ref) == 1
    with pytest.raises(DataError, match="height is 0"):
        Normalization("height").apply(None, ink([(0, 0), (9, 0)]))
    with pytest.raises(DataError, match="reference is empty"):
        Normalization().apply(word(), ink())


def test_frames_must_be_the_same():
    with pytest.raises(DataError, match=r"Ink\.transform"):
        evaluate(ink([(0, 0)], frame=Frame(400, 200, "mm")), word())


# ---------------------------------------------------------------- figures


def test_an_ink_against_itself_is_perfect():
    scores = evaluate(word(), word())
    assert scores.status == "valid"
    zero = ("dtw", "chamfer", "hausdorff", "tolerant_dtw", "order_cost", "direction_cost", "shape_cost", "ldtw")
    assert [getattr(scores, name) for name in (*zero, "start_distance", "penup_error")] == [0] * 10
    one = ("order_agreement", "direction_agreement", "start_accuracy", "ink_precision", "ink_recall", "ink_f1", "aiou")
    assert [getattr(scores, name) for name in one] == [1] * 7
    assert (scores.pred_strokes, scores.ref_strokes) == (3, 3)


@settings(max_examples=40, deadline=None)
@given(drawings, drawings)
def test_all_figures_are_those_of_their_own_functions(first, second):
    pred, ref = ink(*first), ink(*second)
    scores = Evaluation(RAW).score(pred, ref)
    done = RAW.apply(pred, ref)
    alignment, near = dtw(done.pred, done.ref), chamfer(done.pred, done.ref)
    strokes = score_strokes(done.pred, done.pred_starts, done.ref, done.ref_starts)
    assert (scores.dtw, scores.dtw_total, scores.dtw_length) == (alignment.mean, alignment.total, alignment.length)
    assert scores.chamfer == pytest.approx(near.mean)
    assert scores.chamfer_pred_to_ref == pytest.approx(near.pred_to_ref)
    assert scores.chamfer_ref_to_pred == pytest.approx(near.ref_to_pred)
    assert scores.chamfer_squared == pytest.approx(near.squared)
    assert scores.hausdorff == near.hausdorff
    for name in ("tolerant_dtw", "order_cost", "direction_cost", "shape_cost", "start_distance", "start_accuracy"):
        assert getattr(scores, name) == getattr(strokes, name), name
    for name in ("order_agreement", "direction_agreement"):
        expected = getattr(strokes, name)
        assert getattr(scores, name) == (None if math.isnan(expected) else expected), name
    assert scores.penup_error == len(first) - len(second)
    assert scores.ldtw == scores.dtw  # the frame's unit and the points as they are: the same figure here
    assert scores.order_cost + scores.direction_cost + scores.shape_cost == pytest.approx(scores.dtw, abs=1e-9)


def test_long_words_are_pruned_to_the_same_figures(rng):
    strokes = [np.cumsum(rng.normal(size=(150, 2)), axis=0) + 100 for _ in range(4)]
    pred, ref = ink(*(s + rng.normal(0, 0.2, s.shape) for s in strokes)), ink(*strokes)
    assert sum(map(len, strokes)) ** 2 >= module.PRUNE_KNOWN_FROM
    alignment = dtw(np.concatenate(pred.strokes), np.concatenate(strokes))
    scores = Evaluation(RAW).score(pred, ref)
    assert (scores.dtw_total, scores.dtw_length) == (alignment.total, alignment.length)


def test_the_unit_does_not_hang_on_the_frame():
    big = word().transform([[3, 0, 7], [0, 3, 9]], Frame(1300, 700))
    other = ink([(22, 30), (60, 36), (60, 80)], [(104, 40), (100, 80)])
    scores = evaluate(other, word())
    scaled = evaluate(other.transform([[3, 0, 7], [0, 3, 9]], Frame(1300, 700)), big)
    for name in ("dtw", "chamfer", "tolerant_dtw", "start_distance", "aiou"):
        assert getattr(scaled, name) == pytest.approx(getattr(scores, name), abs=1e-9), name
    assert scaled.ldtw == pytest.approx(3 * scores.ldtw)


def test_bridges_count_the_pens_way():
    ref = ink([(0, 0), (10, 0)], [(10, 10), (0, 10)])
    other = ink([(0, 0), (10, 0)], [(0, 10), (10, 10)])
    plain = Evaluation(Normalization("none", 1.0)).score(other, ref)
    bridged = Evaluation(Normalization("none", 1.0, bridge=True)).score(other, ref)
    assert bridged.dtw_length > plain.dtw_length
    assert (bridged.order_cost, bridged.direction_cost, bridged.shape_cost) == (None, None, None)
    assert bridged.tolerant_dtw == plain.tolerant_dtw == 0


def test_a_dot_has_no_direction_and_no_aiou():
    scores = Evaluation(RAW).score(ink([(5, 5)]), ink([(5, 6)]))
    assert (scores.order_agreement, scores.direction_agreement, scores.aiou) == (None, None, None)
    assert scores.dtw == 1


def test_without_pen_net():
    scores = Evaluation(pen_net=False).score(word(), word())
    assert (scores.aiou, scores.ldtw) == (None, None)
    missing = Evaluation(pen_net=False).score(None, word())
    assert (missing.aiou, missing.ldtw) == (None, None)


# ---------------------------------------------------------------- outputs that cannot be used


def test_missing_and_invalid_are_told_apart():
    assert evaluate(None, word()).status == "missing"
    assert evaluate(None, word(), status="invalid").status == "invalid"
    empty = evaluate(ink(), word())
    assert (empty.status, empty.reason) == ("invalid", "the ink is empty")
    with pytest.raises(DataError, match="status"):
        evaluate(word(), word(), status="invalid")
    with pytest.raises(DataError, match="status"):
        evaluate(None, word(), status="valid")
    with pytest.raises(DataError, match="status"):
        evaluate(None, word(), status="lost")


@pytest.mark.parametrize("space", normalization.SPACES)
def test_what_is_not_valid_scores_a_point_in_the_far_corner(space):
    evaluation = Evaluation(Normalization(space))
    ref = ink([(20, 30), (60, 30), (60, 80)], [(100, 40), (100, 80)])
    worst = evaluation.score(None, ref)
    corner = evaluation.normalization.apply(None, ref)
    at = corner.far_corner[0] / corner.scale + corner.origin
    assert at.tolist() in [[20, 30], [100, 30], [20, 80], [100, 80]]
    point = evaluation.score(ink([at]), ref)
    for name in ("dtw", "dtw_total", "chamfer", "chamfer_squared", "hausdorff", "start_distance", "ldtw"):
        assert getattr(worst, name) == pytest.approx(getattr(point, name)), name
    assert worst.tolerant_dtw == worst.dtw
    zero = ("order_agreement", "direction_agreement", "start_accuracy", "ink_precision", "ink_recall", "ink_f1", "aiou")
    assert [getattr(worst, name) for name in zero] == [0] * 7
    assert (worst.penup_error, worst.penup_error_size, worst.pred_strokes, worst.ref_strokes) == (-2, 2, 0, 2)
    assert (worst.order_cost, worst.direction_cost, worst.shape_cost) == (None, None, None)
    assert worst.chamfer_pred_to_ref is None  # that of the point is 0: nothing predicted would be perfect


@pytest.mark.parametrize(
    ("strokes", "figures"),
    [
        ([[(0, 0), (9, 9)]], ("order_agreement",)),
        ([[(0, 0), (1, 0)], [(9, 9), (9, 8)]], ("direction_agreement",)),
        ([[(5, 5)]], ("order_agreement", "direction_agreement", "aiou")),
    ],
)
def test_what_no_prediction_could_be_given_counts_for_none(strokes, figures):
    evaluation, ref = Evaluation(RAW, min_length=2), ink(*strokes)
    for scores in (evaluation.score(ref, ref), evaluation.score(None, ref)):
        names = ("order_agreement", "direction_agreement", "aiou")
        assert tuple(name for name in names if getattr(scores, name) is None) == figures


def test_the_worst_can_be_given():
    worst = Evaluation(worst=1.5).score(None, word())
    names = ("dtw", "tolerant_dtw", "chamfer", "chamfer_ref_to_pred", "hausdorff", "start_distance")
    assert [getattr(worst, name) for name in names] == [1.5] * 6
    assert worst.chamfer_squared == 2.25
    assert worst.ldtw == pytest.approx(1.5 * 80)  # the reference's longer side is 80 pixels
    assert "invalid:1.5" in str(Evaluation(worst=1.5).signature)


def test_an_ink_that_runs_away_is_invalid_and_takes_no_memory():
    scores = evaluate(ink([(0, 0), (1e12, 1e12)]), word())
    assert scores.status == "invalid"
    assert "would have" in scores.reason
    with pytest.raises(DataError, match="reference would have"):
        evaluate(word(), ink([(0, 0), (1e12, 1)], [(0, 0)] * 2, frame=FRAME), Evaluation(Normalization("page")))


def test_an_ink_of_a_million_dots_is_invalid(monkeypatch):
    monkeypatch.setattr(module, "MAX_STROKE_PAIRS", 20)
    scores = evaluate(ink(*[[(k, 0)] for k in range(10)]), word())
    assert (scores.status, scores.reason) == ("invalid", "its 10 strokes are too many to be matched with 3")


def test_huge_coordinates_are_the_predictions_fault_or_an_error():
    huge = ink([(0, 0), (1e150, 0)])
    for evaluation in (Evaluation(), Evaluation(RAW)):
        scores = evaluation.score(huge, word())
        assert scores.status == "invalid"
        assert "the prediction holds 1e+150; such coordinates cannot be squared" in scores.reason
    with pytest.raises(DataError, match="reference holds 1e\\+150"):
        evaluate(word(), huge, Evaluation(RAW))


# ---------------------------------------------------------------- many


@pytest.mark.parametrize("threads", [1, 2])
def test_many_in_order(threads):
    preds = [ink([(20 + k, 30), (60, 30 + k)]) if k % 7 else None for k in range(150)]
    evaluation = Evaluation(pen_net=False)
    scores = evaluation.score_all([(pred, word()) for pred in preds], threads=threads)
    assert scores == [evaluation.score(pred, word()) for pred in preds]


def test_an_error_names_its_pair():
    with pytest.raises(DataError, match="pair 1: the reference is empty"):
        Evaluation().score_all([(word(), word()), (word(), ink())])
    assert Evaluation().score_all([]) == []


def test_the_signature_says_what_was_done():
    text = str(Evaluation().signature)
    assert text.startswith(
        "trajectory|cost:euclidean|average:path|norm:reference-box|step:0.01|bridge:no|invalid:far-corner|tol:0.02|"
    )
    others = [
        Evaluation(Normalization("height")),
        Evaluation(Normalization(step=0.02)),
        Evaluation(Normalization(bridge=True)),
        Evaluation(tolerance=0.1),
        Evaluation(start_tolerance=0.1),
        Evaluation(min_length=0.1),
        Evaluation(worst=1),
        Evaluation(pen_net=False),
    ]
    assert len({text, *(str(other.signature) for other in others)}) == 1 + len(others)


def test_bad_settings():
    for name in ("tolerance", "start_tolerance", "min_length", "worst"):
        for value in (-1, math.nan, math.inf, "much", True):
            with pytest.raises(DataError, match=name):
                Evaluation(**{name: value})


@pytest.mark.parametrize("space", ["page", "none"])
def test_a_dot_that_is_missing_is_as_far_off_as_the_frame_allows(space):
    for dot, corner in ((30, 40), (400, 200)), ((390, 40), (0, 200)):
        missing = evaluate(None, ink([dot]), Evaluation(Normalization(space)))
        away = math.dist(dot, corner) * (1 / 400 if space == "page" else 1)
        found = [missing.dtw, missing.chamfer, missing.hausdorff, missing.start_distance, missing.tolerant_dtw]
        assert found == pytest.approx([away] * 5)
        assert missing.ldtw == pytest.approx(math.dist(dot, corner))


def test_settings_that_are_the_same_have_one_signature():
    signatures = {
        str(Evaluation(Normalization("none", step)).signature) for step in (1, 1.0, np.float32(1), np.int64(1))
    }
    assert len(signatures) == 1
    assert Evaluation(Normalization(bridge=np.True_)).signature == Evaluation(Normalization(bridge=True)).signature


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"step": True}, "step is True"),
        ({"step": "0.1"}, "step is '0.1'"),
        ({"bridge": "no"}, "bridge is 'no'"),
        ({"bridge": 1}, "bridge is 1"),
    ],
)
def test_spacing_of_another_type_is_refused(settings, told):
    with pytest.raises(DataError, match=told):
        Normalization(**settings)


@pytest.mark.parametrize("name", ["tolerance", "start_tolerance", "min_length", "worst"])
@pytest.mark.parametrize("value", [None, [1.0], np.array([1.0]), True, "1"])
def test_limits_of_another_type_are_refused(name, value):
    with pytest.raises(DataError, match=f"{name} is"):
        Evaluation(**{name: value})
