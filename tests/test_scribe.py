"""The learned recoverer: what holds with any weights, odd pixels, and weights files that are no such files."""

import json
from dataclasses import asdict
from itertools import pairwise

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from made_recoverer import SMALL, a_word, arc, crop_of_mask, drawn, weights_arrays, write_arrays

from inktraj.errors import DataError
from inktraj.recovery import Recoverer, scribe
from inktraj.recovery.features import lines_of, make_net
from inktraj.recovery.parts import divide
from inktraj.recovery.scribe import LARGEST, MOST_EDGES, Scribe
from inktraj.recovery.vectorize import vectorize
from inktraj.recovery.weights import load_weights


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module", params=[0, 1, 2], ids="weights {}".format)
def weights(request, folder):
    """Three different files of random weights."""
    return write_arrays(folder / f"{request.param}.npz", weights_arrays(10 * request.param, networks=2))


@pytest.fixture(scope="module")
def some_weights(folder):
    return write_arrays(folder / "some.npz", weights_arrays(5))


@pytest.fixture(params=["loops", "nit", "scattered"])
def mask(request, rng):
    if request.param == "nit":
        return a_word()
    if request.param == "loops":
        t = np.linspace(0, 1, 150)
        x = 15 + 115 * t + 18 * np.sin(6 * np.pi * t)
        return drawn(np.stack([x, 55 - 35 * np.cos(6 * np.pi * t)], 1), pen=3)
    return drawn(*(rng.uniform(10, 100, (3, 2)) * (1.4, 1) for _ in range(3)), [(10, 10)], arc(120, 80, 12))


def again(ink, shape):
    """Return the mask of the strokes, drawn with their widths."""
    canvas = np.zeros((shape[0] * 4, shape[1] * 4), np.uint8)
    for stroke, widths in zip(ink.strokes, ink.widths, strict=True):
        at = np.int32(np.round(stroke * 4 + 1.5))
        width = float(np.median(widths))
        cv2.polylines(canvas, [at], False, 255, max(round(4 * width), 1))
        if len(at) == 1:
            cv2.circle(canvas, at[0].tolist(), round(2 * width), 255, -1)
    return cv2.resize(canvas, shape[::-1], interpolation=cv2.INTER_AREA) > 127


def distance_to(mask):
    return cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)


def recalled_and_precise(ink, mask):
    """Return the share of ink that strokes lie on, and the share of strokes that lie on ink, to within two pixels."""
    redrawn = again(ink, mask.shape)
    return (distance_to(redrawn)[mask] <= 2).mean(), (distance_to(mask)[redrawn] <= 2).mean()


def moved(mask, x, y):
    return np.pad(mask, ((y, 5), (x, 3)))


def all_probabilities(candidate):
    return np.array([d.probability for d in candidate.decisions])


# ---------------------------------------------------------------- what holds with any weights


def test_it_is_a_recoverer_that_tells_its_weights_apart(weights, some_weights):
    one, other = Scribe(weights=weights), Scribe(weights=some_weights)
    assert isinstance(one, Recoverer)
    assert one.name == "scribe"
    assert one.version != other.version
    assert Scribe(weights=weights, quality="fast").version != one.version


@pytest.mark.parametrize("quality", ["fast", "best"])
def test_all_ink_is_drawn_and_nothing_else(weights, mask, quality):
    for candidate in Scribe(weights=weights, quality=quality)(crop_of_mask(mask), n_best=3):
        recalled, precise = recalled_and_precise(candidate.ink, mask)
        assert recalled >= 0.97
        assert precise >= 0.97


@pytest.mark.parametrize("direction", ["rtl", "ttb"])
def test_all_ink_is_drawn_in_every_direction(some_weights, mask, direction):
    ink = Scribe(weights=some_weights, direction=direction)(crop_of_mask(mask))[0].ink
    assert min(recalled_and_precise(ink, mask)) >= 0.97


def test_the_same_pixels_give_the_same_candidates(weights, mask):
    options = {"weights": weights, "explain": True}
    crop = crop_of_mask(mask)
    assert Scribe(**options)(crop, n_best=3) == Scribe(**options)(crop_of_mask(mask.copy()), n_best=3)


def test_asking_for_more_candidates_does_not_change_the_best(weights, mask):
    recover = Scribe(weights=weights)
    assert recover(crop_of_mask(mask))[0].ink == recover(crop_of_mask(mask), n_best=4)[0].ink


def test_moving_the_ink_moves_the_strokes(weights, mask):
    recover = Scribe(weights=weights, explain=True)
    (one,), (other,) = recover(crop_of_mask(mask)), recover(crop_of_mask(moved(mask, 29, 13)))
    assert one.confidence == other.confidence
    assert len(one.ink.strokes) == len(other.ink.strokes)
    for p, q in zip(one.ink.strokes, other.ink.strokes, strict=True):
        np.testing.assert_allclose(q - p, np.broadcast_to((29, 13), p.shape), atol=1e-9)
    for d, e in zip(one.decisions, other.decisions, strict=True):
        np.testing.assert_allclose(np.subtract(e.place, d.place), (29, 13), atol=1e-9)


def test_candidates_differ_and_come_by_their_probability(weights, mask):
    candidates = Scribe(weights=weights, explain=True)(crop_of_mask(mask), n_best=6)
    assert 1 < len(candidates) <= 6
    for k, one in enumerate(candidates):
        assert all(one.ink != other.ink for other in candidates[:k])
    score = [np.log(all_probabilities(c)).sum() for c in candidates]
    assert all(a >= b - 1e-4 for a, b in pairwise(score))


@pytest.mark.parametrize("marks", ["word", "run"])
def test_candidates_differ_where_marks_are_put_in_order(weights, marks):
    candidates = Scribe(weights=weights, marks=marks)(crop_of_mask(three_stems_two_dots()), n_best=6)
    assert len(candidates) > 1
    assert all(a.ink != b.ink for k, a in enumerate(candidates) for b in candidates[:k])


def test_confidence_is_a_probability(weights, mask):
    for candidate in Scribe(weights=weights)(crop_of_mask(mask), n_best=6):
        assert 0 < candidate.confidence < 1


def test_one_candidate_is_what_is_asked_for_by_default(some_weights):
    assert len(Scribe(weights=some_weights)(crop_of_mask(a_word()))) == 1


def check_told(candidate):
    """Each stroke's decisions are a set-down where it begins, moves, and a lift where it ends; a dot is set down."""
    stroke = [d.stroke for d in candidate.decisions]
    assert stroke == sorted(stroke)
    assert set(stroke) == set(range(len(candidate.ink.strokes)))
    for s, points in enumerate(candidate.ink.strokes):
        own = [d for d in candidate.decisions if d.stroke == s]
        is_dot = len(points) == 1
        assert [d.kind for d in own] == ["set-down", *([] if is_dot else ["go-on"] * (len(own) - 2) + ["lift"])]
        # ends are smoothed, and a junction's blot is left out
        np.testing.assert_allclose(own[0].place, points[0], atol=6)
        np.testing.assert_allclose(own[-1].place, points[-1], atol=6)


def test_a_stroke_is_a_set_down_then_moves_then_a_lift(weights, mask):
    for candidate in Scribe(weights=weights, explain=True)(crop_of_mask(mask), n_best=3):
        check_told(candidate)


def test_decisions_are_made_on_the_ink_with_a_probability(weights, mask):
    (candidate,) = Scribe(weights=weights, explain=True)(crop_of_mask(mask))
    chance = all_probabilities(candidate)
    assert chance.min() > 0
    assert chance.max() <= 1 + 1e-9
    away = distance_to(mask)
    for d in candidate.decisions:
        x, y = np.rint(d.place).astype(int)
        assert away[y, x] <= 2


def test_decisions_are_told_on_request_only(some_weights):
    assert Scribe(weights=some_weights)(crop_of_mask(a_word()))[0].decisions == ()


def test_widths_are_those_of_the_pen(some_weights):
    (candidate,) = Scribe(weights=some_weights)(crop_of_mask(drawn([(20, 20), (140, 50)], pen=6)))
    (widths,) = candidate.ink.widths
    assert abs(np.median(widths) - 6) < 0.7


def test_points_are_spaced_as_asked(some_weights, mask):
    for stroke in Scribe(weights=some_weights, step=5.0)(crop_of_mask(mask))[0].ink.strokes:
        assert np.hypot(*np.diff(stroke, axis=0).T).max(initial=0) < 6


# ---------------------------------------------------------------- direction of writing


def has_twin(candidate, others, back):
    """Whether one of the most probable others draws the same strokes as a candidate, `back` being their way home.

    Thinning is not symmetric, so that features and with them probabilities differ a little. The search keeps one of two
    ways that differ in the order of their strokes alone: which one may then differ too.
    """
    mine = by_start(candidate.ink.strokes)
    best = np.log(all_probabilities(others[0])).sum()
    for other in others:
        near = np.log(all_probabilities(other)).sum() > best - 0.5
        if near and len(other.ink.strokes) == len(candidate.ink.strokes):
            pairs = zip(mine, by_start(map(back, other.ink.strokes)), strict=True)
            if all(np.abs(evenly(p) - evenly(q)).max() < 4 for p, q in pairs):
                return True
    return False


def by_start(strokes):
    return sorted(strokes, key=lambda s: tuple(np.rint(s[0] / 10)))


def evenly(stroke):
    return stroke[np.rint(np.linspace(0, len(stroke) - 1, 12)).astype(int)]


WORDS = [
    [[(20, 20), (60, 90), (100, 20), (140, 90)]],
    [[(30, 20), (30, 90)], [(70, 30), (120, 80)], [(140, 20)]],
    [arc(50, 55, 30, -60, 240), [(100, 20), (100, 90)], [(80, 50), (130, 45)]],
]


@pytest.mark.parametrize("paths", WORDS)
def test_from_right_to_left_is_the_mirror_of_from_left_to_right(weights, paths):
    mask = drawn(*paths)
    mirrored = np.ascontiguousarray(mask[:, ::-1])
    (straight,) = Scribe(weights=weights, explain=True, beam=64)(crop_of_mask(mask))
    candidates = Scribe(weights=weights, explain=True, beam=64, direction="rtl")(crop_of_mask(mirrored), n_best=8)
    assert has_twin(straight, candidates, lambda q: (mask.shape[1] - 1, 0) + q * (-1, 1))


def turned(lines, turn):
    """Return a graph mirrored or turned about the origin, its upper left corner at (0, 0) again."""
    points, nodes = lines.points @ turn, lines.nodes @ turn
    return lines._replace(points=points - points.min(0), nodes=nodes - points.min(0))


def test_the_policy_sees_mirrored_ink_as_it_sees_straight_ink():
    lines = lines_of(vectorize(a_word()))
    component = make_net(lines).component
    (straight,) = divide(lines, component, "ltr")
    (mirrored,) = divide(turned(lines, np.diag([-1.0, 1.0])), component, "rtl")
    np.testing.assert_array_equal(mirrored.edges, straight.edges)
    for name, wanted in straight.lines._asdict().items():
        np.testing.assert_allclose(getattr(mirrored.lines, name), wanted, atol=1e-12)


def test_the_policy_sees_a_joined_column_as_it_sees_a_word():
    lines = lines_of(vectorize(drawn([(20, 20), (60, 70), (100, 20), (140, 70), (180, 20), (220, 70)], size=(240, 90))))
    component = make_net(lines).component
    (straight,) = divide(lines, component, "ltr")
    (column,) = divide(turned(lines, np.array([[0.0, 1.0], [-1.0, 0.0]])), component, "ttb")
    unit = straight.lines.pen / column.lines.pen
    assert abs(unit - 1) < 0.03  # in one case the height of the ink, in the other that of its middle line and a pen
    np.testing.assert_allclose(column.lines.points * unit, straight.lines.points, atol=1e-9)


def test_from_top_to_bottom_draws_block_by_block(weights):
    marks = [[(60, 15), (100, 15), (100, 35)], [(70, 30), (85, 30)]], [[(60, 60), (110, 60)], [(85, 50), (85, 75)]]
    third = [arc(85, 110, 15), [(130, 100), (130, 125)]]
    mask = drawn(*(path for block in (*marks, third) for path in block), size=(160, 140))
    (candidate,) = Scribe(weights=weights, direction="ttb", explain=True)(crop_of_mask(mask))
    check_told(candidate)
    block = [int(np.searchsorted([43, 87], stroke[:, 1].mean())) for stroke in candidate.ink.strokes]
    assert block == sorted(block)
    assert set(block) == {0, 1, 2}


def test_a_column_of_joined_writing_is_drawn_as_a_word_on_its_side(weights):
    lying = drawn([(20, 20), (60, 90), (100, 20), (140, 90), (180, 20), (220, 90), (260, 20)], size=(280, 110))
    upright = np.ascontiguousarray(np.rot90(lying, -1))  # the word's start is at the top
    (one,) = Scribe(weights=weights, explain=True, beam=64)(crop_of_mask(lying))
    candidates = Scribe(weights=weights, explain=True, beam=64, direction="ttb")(crop_of_mask(upright), n_best=8)
    assert has_twin(one, candidates, lambda q: np.stack([q[:, 1], lying.shape[0] - 1 - q[:, 0]], 1))


# ---------------------------------------------------------------- options


def three_stems_two_dots():
    return drawn(*([(x, 50), (x, 95)] for x in (30, 70, 120)), [(30, 25)], [(120, 25)])


def test_dots_come_after_the_word_or_after_their_letter(weights):
    for marks, wanted in {"word": [30, 70, 120, 30, 120], "run": [30, 30, 70, 120, 120]}.items():
        ink = Scribe(weights=weights, marks=marks)(crop_of_mask(three_stems_two_dots()))[0].ink
        np.testing.assert_allclose([s[:, 0].mean() for s in ink.strokes], wanted, atol=2)
        assert [len(s) == 1 for s in ink.strokes].count(True) == 2


def test_ordering_marks_changes_the_order_alone(weights):
    crop = crop_of_mask(three_stems_two_dots())
    learned = Scribe(weights=weights, explain=True)(crop)[0]
    for marks in ("word", "run"):
        ordered = Scribe(weights=weights, marks=marks, explain=True)(crop)[0]
        rows = sorted(map(np.ndarray.tolist, ordered.ink.strokes))
        assert rows == sorted(map(np.ndarray.tolist, learned.ink.strokes))
        check_told(ordered)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"quality": "slow"}, r"quality is one of .*'fast', 'best'.* not 'slow'"),
        ({"direction": "btt"}, "direction is one of .*'ttb'.* not 'btt'"),
        ({"marks": "never"}, "marks is one of .*'learned'.* not 'never'"),
        ({"beam": 0}, "beam is how many hypotheses are kept, at least 1, not 0"),
        ({"beam": 2.5}, "at least 1, not 2.5"),
        ({"beam": True}, "at least 1, not True"),
        ({"step": "2"}, "above 0, not '2'"),
        ({"step": 0.0}, "step is the arc length .* above 0, not 0.0"),
        ({"step": -1.0}, "above 0, not -1.0"),
        ({"step": float("nan")}, "above 0, not nan"),
    ],
)
def test_wrong_options_are_refused_with_the_reason(some_weights, options, says):
    with pytest.raises(DataError, match=says):
        Scribe(weights=some_weights, **options)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"n_best": 0}, "at least 1, not 0"),
        ({"n_best": 2.0}, "at least 1, not 2.0"),
        ({"n_best": "3"}, "at least 1, not '3'"),
        ({"text": b"nit"}, "a str or None, not bytes"),
    ],
)
def test_what_cannot_be_asked_for_is_told(some_weights, asked, says):
    with pytest.raises(DataError, match=says):
        Scribe(weights=some_weights)(crop_of_mask(a_word()), **asked)


@pytest.mark.parametrize("beam", [1, 3, 40, np.int64(3)])
def test_any_beam_draws_all_ink(some_weights, beam):
    ink = Scribe(weights=some_weights, beam=beam)(crop_of_mask(a_word()))[0].ink
    assert min(recalled_and_precise(ink, a_word())) >= 0.97


def test_a_wider_beam_finds_no_worse_a_way(weights, mask):
    def best(beam):
        return np.log(all_probabilities(Scribe(weights=weights, beam=beam, explain=True)(crop_of_mask(mask))[0])).sum()

    assert best(64) >= best(1) - 1e-4


TEXTS = ["nit", "", " \t\n", "nit nit", "ñîţ", "نيت", "手書き", "🖋️", "\x00\ud800", "n" * 5000, "n", "?!…"]


@pytest.mark.parametrize("text", TEXTS, ids=[ascii(t[:8]) for t in TEXTS])
def test_any_text_is_taken_as_a_hint(some_weights, text):
    (candidate,) = Scribe(weights=some_weights)(crop_of_mask(a_word()), text=text)
    assert min(recalled_and_precise(candidate.ink, a_word())) >= 0.97
    assert 0 < candidate.confidence < 1


def test_text_is_looked_at_and_no_text_is_none(some_weights):
    def tell(text):
        return all_probabilities(Scribe(weights=some_weights, explain=True)(crop_of_mask(a_word()), text=text)[0])

    without = tell(None)
    np.testing.assert_array_equal(tell(""), without)
    np.testing.assert_array_equal(tell("   "), without)
    assert len(tell("nit")) != len(without) or not np.allclose(tell("nit"), without)


# ---------------------------------------------------------------- odd pixels


def blob(height, width):
    y, x = np.mgrid[:height, :width]
    return ((2 * y / height - 1) ** 2 + (2 * x / width - 1) ** 2) < 0.9


def rings():
    y, x = np.mgrid[:600, :600]
    return np.hypot(y - 300, x - 300) % 24 < 5


def underlined():
    under = np.pad(a_word(), ((0, 20), (20, 60)))
    under[112:116, 5:-5] = True
    return under


def a_drawing():
    """Return a picture of a page's size: houses, hatching, a frame."""
    canvas = np.zeros((1400, 1000), np.uint8)
    cv2.rectangle(canvas, (20, 20), (980, 1380), 255, 4)
    for x in range(80, 900, 170):
        roof = np.array([(x, 700), (x + 60, 600), (x + 120, 700), (x, 700), (x, 850), (x + 120, 850), (x + 120, 700)])
        cv2.polylines(canvas, [roof], False, 255, 5)
        for k in range(0, 120, 12):
            cv2.line(canvas, (x + k, 720), (x + k - 10, 840), 255, 2)
    cv2.circle(canvas, (500, 300), 150, 255, 6)
    return canvas > 0


def random_strokes():
    random = np.random.default_rng(3)
    return drawn(*(random.uniform(5, 295, (9, 2)) for _ in range(7)), pen=3, size=(300, 300))


ODD = {
    "nothing": lambda: np.zeros((50, 60), np.bool_),
    "all ink": lambda: np.ones((300, 400), np.bool_),
    "one pixel": lambda: np.ones((1, 1), np.bool_),
    "one pixel in a page": lambda: np.pad(np.ones((1, 1), np.bool_), 700),
    "one row": lambda: np.ones((1, 5000), np.bool_),
    "one column": lambda: np.ones((5000, 1), np.bool_),
    "a long line": lambda: np.pad(np.ones((3, 5000), np.bool_), 4),
    "a huge blob": lambda: blob(1500, 2200),
    "checkerboard": lambda: np.indices((2000, 2000)).sum(0) % 2 == 0,
    "coarse checkerboard": lambda: (np.indices((600, 600)) // 4).sum(0) % 2 == 0,
    "grid": lambda: (np.indices((400, 400)) % 9 == 0).any(0),
    "rings": rings,
    "noise": lambda: np.random.default_rng(1).random((400, 400)) < 0.5,
    "sparse noise": lambda: np.random.default_rng(1).random((300, 300)) < 0.03,
    "specks": lambda: np.pad(np.kron(np.eye(60, dtype=bool), np.ones((3, 3), np.bool_)), 2),
    "a drawing": a_drawing,
    "underlined": underlined,
    "random strokes": random_strokes,
}


@pytest.fixture
def work(monkeypatch):
    """How many edges each search of the learned recoverer was given."""
    seen = []

    def counted(net, *rest, **effort):
        seen.append(len(net.ends))
        return find_ways(net, *rest, **effort)

    find_ways = scribe.find_ways
    monkeypatch.setattr(scribe, "find_ways", counted)
    return seen


def check_honest(candidates, mask):
    ink = candidates[0].ink
    assert ink.frame == crop_of_mask(mask).frame
    assert (len(ink.strokes) > 0) == bool(mask.any())
    if not ink.strokes:
        return
    points = np.concatenate(ink.strokes)
    assert np.isfinite(points).all()
    assert all((w > 0).all() for w in ink.widths)
    assert points.min() >= -1
    assert points[:, 0].max() <= mask.shape[1]
    assert points[:, 1].max() <= mask.shape[0]


@pytest.mark.parametrize("name", ODD)
def test_odd_pixels_end_in_an_honest_ink(some_weights, work, name):
    mask = ODD[name]()
    check_honest(Scribe(weights=some_weights)(crop_of_mask(mask)), mask)
    assert max(work, default=0) <= LARGEST
    assert sum(work) <= MOST_EDGES


@pytest.mark.parametrize("direction", ["rtl", "ttb"])
@pytest.mark.parametrize("name", ["one pixel", "one row", "one column", "sparse noise", "specks", "underlined"])
def test_odd_pixels_end_in_an_honest_ink_in_every_direction(some_weights, work, name, direction):
    mask = ODD[name]()
    check_honest(Scribe(weights=some_weights, direction=direction)(crop_of_mask(mask)), mask)
    assert sum(work) <= MOST_EDGES


def test_ink_that_is_no_word_is_left_to_geometry(some_weights, work):
    (candidate,) = Scribe(weights=some_weights, explain=True)(crop_of_mask(ODD["grid"]()))
    assert work == []
    assert candidate.confidence is None
    assert candidate.decisions == ()


def test_much_ink_is_drawn_in_groups_from_left_to_right(some_weights, work):
    stems = drawn(*([(x, 20), (x + 3, 60)] for x in range(10, 2010, 10)), pen=3, size=(2030, 80))
    (candidate,) = Scribe(weights=some_weights, explain=True)(crop_of_mask(stems), text="help")
    check_told(candidate)
    assert len(work) > 1
    x = np.array([s[:, 0].mean() for s in candidate.ink.strokes])
    first = np.cumsum([0, *work])
    groups = [x[a:b] for a, b in pairwise(first)]
    assert all(a.max() < b.min() for a, b in pairwise(groups))
    assert len(candidate.ink.strokes) == 200


@settings(deadline=None, max_examples=60)
@given(arrays(np.bool_, st.tuples(st.integers(1, 26), st.integers(1, 26))), st.sampled_from(["ltr", "rtl", "ttb"]))
def test_any_pixels_end_in_an_honest_ink(some_weights, mask, direction):
    candidates = Scribe(weights=some_weights, direction=direction, explain=True)(crop_of_mask(mask), n_best=2)
    for candidate in candidates:
        check_honest([candidate], mask)
    if mask.any():
        x, y = np.rint(np.concatenate(candidates[0].ink.strokes)).astype(int).T
        drawn_ = np.zeros_like(mask)
        drawn_[np.clip(y, 0, mask.shape[0] - 1), np.clip(x, 0, mask.shape[1] - 1)] = True
        assert distance_to(mask)[drawn_].max() <= 3


# ---------------------------------------------------------------- weights files


def test_a_weights_file_is_read_back(folder):
    made = weights_arrays(3, networks=3)
    read = load_weights(write_arrays(folder / "three.npz", made))
    assert len(read.guides) == 3
    assert read.guides[0].config == SMALL
    np.testing.assert_array_equal(read.guides[2].weights["letter.weight"], made["2/letter.weight"])
    np.testing.assert_array_equal(read.guides[1].weights["go.w1.weight"], made["1/go.w1.weight"].T)
    np.testing.assert_array_equal(read.calibration, made["confidence"])


def test_a_file_that_has_changed_is_read_again(folder):
    path = write_arrays(folder / "changing.npz", weights_arrays(3))
    first = load_weights(path).checksum
    write_arrays(path, weights_arrays(4))
    assert load_weights(path).checksum != first


def without(name):
    made = weights_arrays(0)
    del made[name]
    return made


def changed(**arrays):
    return weights_arrays(0) | {name.replace("__", "/", 1).replace("__", "."): a for name, a in arrays.items()}


def sizes(**changes):
    return changed(config=np.array(json.dumps(asdict(SMALL) | changes)))


WRONG_FILES = {
    "no format": (without("format"), "holds no array 'format'"),
    "other format": (changed(format=np.array("inktraj scribe 0")), "not of this version"),
    "no config": (without("config"), "holds no array 'config'"),
    "config is no JSON": (changed(config=np.array("wide")), "not a weights file"),
    "config of other sizes": (sizes(stride=3), "stride"),
    "a size of 0": (sizes(depth=0), "whole numbers from 1"),
    "a size of 1.5": (sizes(depth=1.5), "whole numbers from 1"),
    "heads do not divide": (sizes(heads=3), "multiple of the heads"),
    "deeper than its arrays": (sizes(depth=3), "holds no array '0/layers.2"),
    "far deeper than its arrays": (sizes(depth=10**12), "too few for 1000000000000 layers"),
    "config without end": (changed(config=np.array("[" * 100_000)), "not a weights file"),
    "less deep than its arrays": (sizes(depth=1), "holds an array '0/layers.1"),
    "another width": (sizes(width=18), "array '0/mean'|array '0/letter.weight'"),
    "no calibration": (without("confidence"), "holds no array 'confidence'"),
    "short calibration": (changed(confidence=np.zeros(4, np.float32)), r"'confidence' .*\(4,\).*\(5,\)"),
    "no network": ({k: a for k, a in weights_arrays(0).items() if "/" not in k}, "its 0 arrays are too few"),
    "an array is missing": (without("1/start.w2.bias"), "holds no array '1/start.w2.bias'"),
    "an unknown array": (changed(**{"0__go__w4__bias": np.zeros(3, np.float32)}), "an array '0/go.w4.bias'"),
    "a network's number is missing": (
        {k.replace("1/", "2/"): a for k, a in weights_arrays(0).items()},
        "an array '2/",
    ),
    "wrong shape": (changed(**{"0__go__w1__weight": np.zeros((8, 3), np.float32)}), r"'0/go.w1.weight' .*\(8, 3\)"),
    "transposed": (
        changed(**{"0__enter__weight": weights_arrays(0)["0/enter.weight"].T}),
        r"'0/enter.weight' .*shape \(86, 16\), not float of shape \(16, 86\)",
    ),
    "integers": (changed(**{"0__norm__bias": np.zeros(16, np.int64)}), "'0/norm.bias' is int64"),
    "not finite": (changed(**{"0__norm__bias": np.full(16, np.nan, np.float32)}), "'0/norm.bias' .*not finite"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_wrong_weights_are_refused_when_they_are_read(tmp_path, name):
    arrays_, says = WRONG_FILES[name]
    path = write_arrays(tmp_path / "weights.npz", arrays_)
    with pytest.raises(DataError, match=says) as caught:
        Scribe(weights=path)
    assert str(path) in str(caught.value)


def test_files_that_are_no_weights_are_refused(tmp_path, some_weights):
    whole = some_weights.read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0x55
    np.save(tmp_path / "bare.npy", np.zeros(3))
    objects = tmp_path / "objects.npz"
    np.savez(objects, format=np.array([{}], object))
    method = bytearray(whole)
    method[whole.index(b"PK\1\2") + 10] = 77  # of compression, in the archive's table
    files = {"empty": b"", "text": b"not weights", "cut": whole[:-200], "damaged": bytes(damaged)}
    files |= {"unknown compression": bytes(method)}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for name in [*files, "bare.npy", "objects.npz"]:
        with pytest.raises(DataError, match="not a weights file of the recoverer's trainer"):
            Scribe(weights=tmp_path / name)
    for name in ("missing.npz", "."):
        with pytest.raises(DataError, match="cannot be read"):
            Scribe(weights=tmp_path / name)


def test_the_best_way_and_its_rivals_share_one_certainty(weights):
    candidates = Scribe(weights=weights)(crop_of_mask(a_word()), n_best=6)
    confidence = [c.confidence for c in candidates]
    assert confidence == sorted(confidence, reverse=True)
    assert sum(confidence[:4]) <= 1 + 1e-9


def test_a_bare_picture_is_refused_with_the_way_to_make_a_crop(weights):
    with pytest.raises(DataError, match="crop_of"):
        Scribe(weights=weights)(np.zeros((5, 5), np.uint8))
