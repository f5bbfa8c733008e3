"""Whose hand an ink is: pictures of shape, the network's file, enrolment, scores, training."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import oracles_style as oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from inktraj import cli
from inktraj.errors import DataError, RunError
from inktraj.ink import Frame, Ink
from inktraj.io import InkRecord, write_ink
from inktraj.style import StyleModel, StyleNetwork, compare, read_samples, same_model, summarize
from inktraj.style.head import calibration_error, fit_head, fit_temperature, log_softmax
from inktraj.style.network import NETWORK_KEY, WRITERS_KEY
from inktraj.style.onnx_file import Layer, head_file, network_file
from inktraj.style.samples import held_out
from inktraj.style.shape import HEIGHT, VERSION, WIDEST, WIDTH_STEP, Look, picture

ROOT = Path(__file__).parents[1]
FRAME = Frame(1000, 1000)


def word(rng, slant=0.0, loop=0.5, letters=5):
    """A made word: arches and loops in a hand with a slant and a roundness of its own."""
    t = np.linspace(0, 2 * np.pi, 24)
    strokes, x = [], 0.0
    for _ in range(letters):
        height = rng.choice([40.0, 40.0, 90.0])
        y = -height * (1 - np.cos(t)) / 2
        strokes.append(
            np.stack([x + 30 * t / 6 + loop * 25 * np.sin(t) + rng.normal(0, 0.5, 24) - slant * y, y + 200], 1)
        )
        x += 30 + rng.normal(0, 2)
    return Ink((np.concatenate(strokes[:3]), *strokes[3:]), FRAME)


HANDS = {"anna": (0.0, 0.2), "annika": (0.5, 0.2), "ben": (0.0, 1.2), "carl": (-0.4, 0.8)}


def words_of(hands=HANDS, n=16, seed=0):
    rng = np.random.default_rng(seed)
    return {name: [word(rng, *hand) for _ in range(n)] for name, hand in hands.items()}


def layers_of(rng, channels=(6, 8, 10)):
    sizes = (1, *channels)
    return [
        Layer(rng.normal(0, 2 / (a * 9), (b, a, 3, 3)).astype(np.float32), rng.normal(0, 0.1, b).astype(np.float32), 2)
        for a, b in itertools.pairwise(sizes)
    ]


def parts_of_network(seed=1, d=12):
    rng = np.random.default_rng(seed)
    return layers_of(rng), rng.normal(size=(d, 20)).astype(np.float32), rng.normal(size=d).astype(np.float32) / 10


def bytes_of_network(seed=1, version=VERSION):
    return network_file(*parts_of_network(seed), {NETWORK_KEY: json.dumps({"shape": version, "dimensions": 12})})


@pytest.fixture(scope="module")
def network():
    return StyleNetwork.from_bytes(bytes_of_network())


@pytest.fixture(scope="module")
def words():
    return words_of()


@pytest.fixture(scope="module")
def model(network, words):
    return StyleModel.enrol(words, network=network)


# ---------------------------------------------------------------- pictures


coordinates = st.floats(-1e4, 1e4, allow_nan=False, width=32)
strokes = st.lists(
    st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=12).map(lambda p: np.array(p, float)),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60)
@given(strokes)
def test_any_ink_has_a_picture_of_the_stated_size(some):
    shape = picture(Ink(tuple(some), FRAME))
    assert shape.dtype == np.uint8
    assert shape.shape[0] == HEIGHT
    assert shape.shape[1] % WIDTH_STEP == 0
    assert shape.shape[1] <= WIDEST
    assert shape.max() > 0
    assert not shape[[0, -1]].any()  # nothing is cut off


@pytest.mark.parametrize("seed", range(4))
def test_only_the_shape_counts(seed):
    rng = np.random.default_rng(seed)
    ink = word(rng)
    plain = picture(ink).astype(int)
    order = rng.permutation(len(ink.strokes))
    moved = ink.transform([[3.7, 0, -400], [0, 3.7, 90]], Frame(5000, 5000, "mm"))
    finer = [
        np.stack([np.interp(np.linspace(0, 1, 4 * len(s) - 3), np.linspace(0, 1, len(s)), c) for c in s.T], 1)
        for s in ink.strokes
    ]
    alike = {
        "order": Ink(tuple(ink.strokes[k] for k in order), FRAME),
        "direction": Ink(tuple(s[::-1] for s in ink.strokes), FRAME),
        "place and size": moved,
        "sampling": Ink(tuple(finer), FRAME),
        "widths": Ink(ink.strokes, FRAME, tuple(np.full(len(s), 9.0) for s in ink.strokes)),
    }
    for name, other in alike.items():
        assert np.abs(picture(other) - plain).max() <= 16, name  # one sample of the sixteen of a pixel
    assert np.abs(picture(ink.transform([[1, 0.3, 0], [0, 1, 0]], FRAME)).mean() - plain.mean()) > 0  # slant does count


def test_tremor_below_the_pen_is_smoothed_away(rng):
    line = np.stack([np.linspace(0, 400, 900), 60 * np.sin(np.linspace(0, 12, 900))], 1)
    steps = np.round(line / 4) * 4  # a tablet's coarse grid
    plain, coarse = (picture(Ink((s,), FRAME)).astype(int) for s in (line, steps))
    assert plain.shape == coarse.shape
    assert np.abs(plain - coarse).mean() < 0.15 * plain.mean()


@pytest.mark.parametrize(
    ("points", "wide"),
    [
        ([(5, 5)], 16),
        ([(5, 5), (5, 5)], 16),
        ([(0, 0), (0, 9)], 16),
        ([(0, 0), (9, 0)], 512),
        ([(1e9, 1e9), (1e9 + 4, 1e9 + 4)], 48),
    ],
    ids=["dot", "dot of two points", "bar", "dash", "far away"],
)
def test_degenerate_shapes_have_a_picture(points, wide):
    shape = picture(Ink((np.array(points, float),), FRAME))
    assert shape.shape[1] <= max(wide, 64)
    assert shape.max() > 0


def test_a_look_varies_the_picture():
    ink = word(np.random.default_rng(0))
    plain = picture(ink)
    assert (picture(ink, Look()) == plain).all()
    assert picture(ink, Look(stretch=1.5)).shape[1] > plain.shape[1]
    assert picture(ink, Look(pen=2)).sum() > 1.5 * plain.sum()
    assert picture(ink, Look(size=0.5)).sum() < 0.7 * plain.sum()


def test_an_empty_ink_has_no_picture():
    with pytest.raises(DataError, match="no shape"):
        picture(Ink((), FRAME))


# ---------------------------------------------------------------- the network's file


def test_the_file_computes_what_its_twin_does(network, words):
    layers, weight, bias = parts_of_network()
    for ink in (words["anna"][0], words["carl"][3], Ink(([[0, 0], [0, 9]],), FRAME)):
        wanted = oracles.embedding(picture(ink), layers, weight, bias)
        np.testing.assert_allclose(network.embed([ink])[0], wanted, atol=2e-5)


def test_the_file_is_the_same_every_time():
    assert bytes_of_network() == bytes_of_network()
    assert bytes_of_network(1) != bytes_of_network(2)


def test_the_onnx_package_finds_the_files_valid(model, tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not needed, and only checks here")
    model.save(tmp_path / "m.onnx")
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)


def test_no_inks_have_no_embeddings(network):
    assert network.embed([]).shape == (0, 12)


# ---------------------------------------------------------------- the head


def test_the_head_is_the_posterior_of_normal_distributions(rng):
    means = rng.normal(0, 1, (4, 3))
    labels = np.repeat(np.arange(4), 4000)
    spread = np.linalg.cholesky(np.array([[1, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 0.5]]))
    x = (means[labels] + rng.normal(size=(len(labels), 3)) @ spread.T).astype(np.float32)
    head = fit_head(x, labels, 4)
    found = np.exp(log_softmax(head.logits(x[:50])))
    wanted = [oracles.posterior(v, means, spread @ spread.T) for v in x[:50].astype(float)]
    np.testing.assert_allclose(found, wanted, atol=0.06)


def test_one_word_a_writer_gives_the_nearest_one():
    x = np.eye(3, dtype=np.float32)
    head = fit_head(x, np.arange(3), 3)
    assert head.logits(x).argmax(axis=1).tolist() == [0, 1, 2]


def test_the_temperature_is_found(rng):
    sharp = rng.normal(0, 3, (20_000, 5))
    chances = np.exp(log_softmax(sharp / 2.5))
    labels = np.array([rng.choice(5, p=p) for p in chances])
    assert fit_temperature(sharp, labels) == pytest.approx(2.5, rel=0.05)
    assert fit_temperature(np.zeros((0, 5)), np.zeros(0, int)) == 1


def test_the_temperature_of_what_is_always_right_is_finite():
    assert 0 < fit_temperature(np.eye(3) * 5, np.arange(3)) < 1


def test_the_calibration_error_is_that_of_its_twin(rng):
    chances = rng.dirichlet(np.ones(4) / 3, 400)
    chances[0] = (1, 0, 0, 0)
    labels = rng.integers(0, 4, 400)
    assert calibration_error(chances, labels) == pytest.approx(oracles.calibration_error(chances, labels))


# ---------------------------------------------------------------- words held out


def test_the_choice_is_the_seeds_and_not_the_orders(words):
    chosen = held_out(words, 0.25, 0)
    assert {name: sum(sides) for name, sides in chosen.items()} == dict.fromkeys(words, 4)
    turned = held_out({name: inks[::-1] for name, inks in reversed(words.items())}, 0.25, 0)
    assert {name: sides[::-1] for name, sides in turned.items()} == chosen
    assert held_out(words, 0.25, 1) != chosen


def test_the_same_word_twice_is_on_one_side(rng):
    one, two = word(rng), word(rng)
    sides = held_out({"anna": [one, two, one, one]}, 0.5, 0)["anna"]
    assert sides[0] == sides[2] == sides[3] != sides[1]


@pytest.mark.parametrize(("n", "share", "count"), [(2, 0.01, 1), (2, 0.99, 1), (10, 0.2, 2), (5, 0.99, 4), (1, 0.5, 0)])
def test_one_word_at_least_is_on_each_side(rng, n, share, count):
    assert sum(held_out({"a": [word(rng) for _ in range(n)]}, share, 0)["a"]) == count


# ---------------------------------------------------------------- reading inks by writer


def records_of(words, **extra):
    return [
        InkRecord(f"{name}-{k}", ink, "", {"writer": name, **extra})
        for name, inks in words.items()
        for k, ink in enumerate(inks)
    ]


@pytest.fixture
def folder(tmp_path, words):
    root = tmp_path / "writers"
    for name, inks in words.items():
        (root / name / "more").mkdir(parents=True)
        plain = [InkRecord(str(k), ink) for k, ink in enumerate(inks)]
        write_ink(root / name / "first.jsonl", plain[:4])
        write_ink(root / name / "more" / "rest.inkml", plain[4:])
    return root


def counts(samples):
    return {name: len(inks) for name, inks in samples.by_writer().items()}


def test_a_folder_of_writers_is_read(folder, words):
    samples = read_samples(folder)
    assert counts(samples) == dict.fromkeys(words, 16)
    assert samples.by_writer()["ben"][0] == words["ben"][0]
    assert not samples.skipped
    assert not samples.failed


def test_records_that_say_their_writer_are_read(tmp_path, words):
    write_ink(
        tmp_path / "all.jsonl", [*records_of(words, split="train"), *records_of({"dora": words["ben"]}, split="dev")]
    )
    assert counts(read_samples(tmp_path / "all.jsonl")) == dict.fromkeys([*words, "dora"], 16)
    assert counts(read_samples(tmp_path, split="dev")) == {"dora": 16}
    with pytest.raises(DataError, match="no inks by writer of the split 'test'"):
        read_samples(tmp_path, split="test")


def packed(path, words, split="dev"):
    inks = [(name, ink) for name, some in words.items() for ink in some]
    points = [np.round(s).astype(np.int16) for _, ink in inks for s in ink.strokes]
    flat = np.concatenate(points)
    offsets = np.cumsum([0, *map(len, points)]).astype(np.int32)
    per_word = np.cumsum([0, *(len(ink.strokes) for _, ink in inks)]).astype(np.int32)
    names = np.array([name for name, _ in inks])
    np.savez(
        path, delta=np.diff(flat, axis=0, prepend=0).astype(np.int16), stroke_offsets=offsets, word_offsets=per_word,
        writer=names, split=np.full(len(names), split), style=np.full(len(names), ""),
        text=np.array([f"t{k % 5}" for k in range(len(names))]),
    )  # fmt: skip
    return path


def test_packed_words_are_read(tmp_path, words):
    samples = read_samples(packed(tmp_path / "words.npz", words), split="dev")
    assert counts(samples) == dict.fromkeys(words, 16)
    np.testing.assert_array_equal(samples.inks[0].strokes[1], np.round(words["anna"][0].strokes[1]))


def test_pictures_are_turned_into_ink_by_the_caller(folder, words):
    cv2.imwrite(str(folder / "anna" / "x.png"), np.zeros((4, 4), np.uint8))
    asked = []

    def from_image(path):
        asked.append(path.name)
        return words["ben"][0]

    assert counts(read_samples(folder, from_image=from_image))["anna"] == 17
    assert asked == ["x.png"]
    (told,) = read_samples(folder).skipped
    assert "x.png" in told


def test_what_is_damaged_is_told_and_the_rest_is_read(folder, words):
    (folder / "anna" / "broken.svg").write_text("<svg")
    (folder / "notes.txt").write_text("hello")
    (folder / ".hidden").mkdir()
    write_ink(folder / "ben" / "empty.jsonl", [InkRecord("e", Ink((), FRAME))])
    samples = read_samples(folder)
    assert counts(samples) == dict.fromkeys(words, 16)
    assert ["broken.svg" in text for text in samples.failed] == [True]
    assert ["notes.txt" in samples.skipped[0], samples.skipped[1]] == [True, "1 inks without strokes"]


def test_unusable_sources_are_told(tmp_path, words):
    with pytest.raises(DataError, match="no such file or folder"):
        read_samples(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no inks by writer; expected FOLDER/WRITER/FILE"):
        read_samples(tmp_path / "empty")
    write_ink(tmp_path / "plain.jsonl", [InkRecord("w7", words["ben"][0])])
    for place in (tmp_path / "plain.jsonl", tmp_path):
        with pytest.raises(DataError, match="'w7' does not say its writer"):
            read_samples(place)
    np.savez(tmp_path / "other.npz", delta=np.zeros((2, 2), np.int16))
    (tmp_path / "text.npz").write_text("no archive")
    for name in ("other.npz", "text.npz"):
        with pytest.raises(DataError, match="no archive of packed words"):
            read_samples(tmp_path / name)


# ---------------------------------------------------------------- the model


def test_hands_are_told_apart(model):
    fresh = words_of(seed=9)
    scores = [score for name, inks in fresh.items() for score in model.score(inks, [name] * 16)]
    assert np.mean([score.top1 for score in scores]) > 0.55  # the network is not trained, and chance is 0.25
    for name, inks in fresh.items():
        assert model.identify(inks[:10]).writer == name
    assert 0 <= model.floor < 0.3 < model.ceiling <= 1
    assert model.calibration.words == 4 * 3
    assert [w.words for w in model.details] == [13] * 4


def test_a_score_is_the_softmax_of_the_files_logits(model, words):
    ink = words["carl"][2]
    (score,) = model.score([ink], ["carl"])
    chances = np.exp(model.log_probabilities(ink))
    assert chances.sum() == pytest.approx(1)
    assert score.probability == chances[model.writers.index("carl")]
    assert score.likeliest == model.writers[chances.argmax()]
    assert score.model == model.hash
    assert -1 <= score.cosine <= 1


def test_a_model_comes_back_from_its_file(model, words, tmp_path):
    model.save(tmp_path / "m.onnx")
    again = StyleModel.load(tmp_path / "m.onnx")
    assert (again.hash, again.writers, again.calibration) == (model.hash, model.writers, model.calibration)
    inks = words["ben"]
    assert again.score(inks, ["ben"] * 16) == model.score(inks, ["ben"] * 16)


def test_scores_do_not_depend_on_the_others(model, words):
    inks = [ink for some in words.values() for ink in some]
    names = [name for name, some in words.items() for _ in some]
    together = model.score(inks, names)
    assert together == [model.score([ink], [name])[0] for ink, name in zip(inks, names, strict=True)]


def test_enrolling_does_not_depend_on_the_order(model, network, words):
    turned = {name: inks[::-1] for name, inks in reversed(words.items())}
    other = StyleModel.enrol(turned, network=network)
    ink = words["anna"][0]
    np.testing.assert_allclose(other.log_probabilities(ink), model.log_probabilities(ink), atol=1e-4)
    assert StyleModel.enrol(words, network=network).hash == model.hash


def test_other_writers_are_enrolled_in_a_models_network(model, network, words):
    assert model.network.data == network.data
    other = StyleModel.enrol({"x": words["anna"], "y": words["ben"]}, network=model.network)
    assert other.writers == ("x", "y")
    assert other.network.hash == network.hash
    assert len(other.log_probabilities(words["carl"][0])) == 2


def test_an_unknown_writer_is_told_with_near_names(model, words):
    with pytest.raises(DataError, match=r"knows 4 writers, and 'anika' is not among them; near: 'annika'"):
        model.score(words["anna"][:1], ["anika"])
    with pytest.raises(DataError, match=r"'q' \(and 1 others\) is not among them; it knows 'anna', …"):
        model.score(words["anna"][:2], ["zz", "q"])


def test_an_empty_ink_is_an_error_or_zero(model, words):
    inks = [words["anna"][0], Ink((), FRAME)]
    with pytest.raises(DataError, match="ink 1 has no strokes"):
        model.score(inks, ["anna"] * 2)
    good, bad = model.score(inks, ["anna"] * 2, empty="zero")
    assert (bad.probability, bad.top1, bad.cosine, bad.likeliest) == (0, False, None, None)
    summary = summarize([good, bad])
    assert summary.score == good.probability / 2
    assert (summary.n, summary.n_empty, summary.cosine) == (2, 1, good.cosine)
    assert summary.ceiling == pytest.approx(good.ceiling)
    with pytest.raises(DataError, match="empty is"):
        model.score(inks, ["anna"] * 2, empty="skip")
    with pytest.raises(DataError, match="without strokes"):
        model.identify(inks)


@pytest.mark.parametrize("wrong", [np.zeros((9, 9), np.uint8), InkRecord("a", Ink((), FRAME)), None])
def test_what_is_no_ink_is_told(model, network, words, wrong):
    for use in (
        lambda: model.score([wrong], ["anna"]),
        lambda: model.identify([wrong]),
        lambda: StyleModel.enrol({**words, "dora": [wrong] * 6}, network=network),
    ):
        with pytest.raises(DataError, match=f"not of a {type(wrong).__name__}; a picture is recovered first"):
            use()


def test_writers_and_inks_must_fit(model, words):
    with pytest.raises(DataError, match="2 inks and 1 writers"):
        model.score(words["anna"][:2], ["anna"])
    with pytest.raises(DataError, match="no inks to identify"):
        model.identify([])


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (lambda w: {"anna": w["anna"]}, {}, "there are 1"),
        (lambda w: {**w, "dora": w["ben"][:3]}, {}, "writers with fewer than 5 words: 1, such as 'dora' with 3"),
        (lambda w: {**w, "dora": [*w["ben"], Ink((), FRAME)]}, {}, "'dora' has no strokes"),
        (lambda w: w, {"share": 1.0}, "between 0 and 1"),
        (lambda w: w, {"least": 1}, "2 words at least"),
        (lambda w: {**w, "dora": [w["ben"][0]] * 6}, {}, "'dora' .* the same word"),
    ],
)
def test_words_that_make_no_classifier_are_told(network, words, change, options, says):
    with pytest.raises(DataError, match=says):
        StyleModel.enrol(change(words), network=network, **options)


def test_files_that_are_no_models_are_told(model, network, tmp_path):
    model.save(tmp_path / "m.onnx")
    data = (tmp_path / "m.onnx").read_bytes()
    cases = {
        "missing": (None, "cannot be read"),
        "empty": (b"", "no ONNX file|no style model"),
        "text": (b"hello", "no ONNX file"),
        "cut": (data[: len(data) // 2], "no ONNX file"),
        "network": (network.data, "knows no writers"),
        "strange": (network_file(*parts_of_network(), {}), "no style model"),
        "odd": (
            network.data + head_file(*[np.zeros(n, np.float32) for n in ((2, 12), 2, (2, 12))], {WRITERS_KEY: "{}"}),
            "another form",
        ),
        "later": (bytes_of_network(version="shape-9"), "'shape-9', and this version draws 'shape-1'"),
    }
    for name, (content, says) in cases.items():
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(DataError, match=says):
            StyleModel.load(path)


# ---------------------------------------------------------------- sums and comparisons


def test_results_of_two_classifiers_are_not_put_together(model, network, words):
    other = StyleModel.enrol(words, network=network, seed=5)
    a, b = (m.score(words["anna"], ["anna"] * 16) for m in (model, other))
    with pytest.raises(DataError, match=r"different classifiers .* cannot be compared"):
        summarize([*a, *b])
    with pytest.raises(DataError, match=f"{min(model.hash, other.hash)[:12]}, "):
        compare(summarize(a), summarize(b))
    assert compare(summarize(a), summarize(a[:3])) == pytest.approx(summarize(a).score - summarize(a[:3]).score)
    assert same_model([*a, model.identify(words["anna"])]) == model.hash
    with pytest.raises(DataError, match="no style scores"):
        summarize([])


def test_relative_lies_between_floor_and_ceiling(model, words):
    (score,) = model.score(words["anna"][:1], ["anna"])
    one = replace(score, probability=0.5, ceiling=0.9, floor=0.1)
    assert summarize([one]).relative == pytest.approx(0.5)
    assert summarize([replace(one, probability=0.9)]).relative == pytest.approx(1)
    assert summarize([replace(one, ceiling=0.1)]).relative is None
    bare = replace(one, probability=0.7, ceiling=None, floor=None)
    assert summarize([bare]).relative is None
    mixed = summarize([one, bare])
    assert (mixed.score, mixed.relative) == (pytest.approx(0.6), pytest.approx(0.5))


# ---------------------------------------------------------------- training (needs torch)


@pytest.fixture(scope="module")
def training():
    pytest.importorskip("torch", reason='training needs pip install "inktraj[train]"')
    from inktraj.style import training

    return training


@pytest.fixture(scope="module")
def recipe(training):
    return training.Recipe(
        pictures=640, batch=8, rate=1e-2, sharpness=12, margin=0, channels=(4, 6, 8), strides=(2, 2, 2), dimensions=8,
        seed=2,
    )  # fmt: skip


@pytest.fixture(scope="module")
def trained(training, recipe, words):
    steps = []
    return training.train_network(words, recipe, progress=steps.append), steps


def test_training_learns(trained):
    _, steps = trained
    assert [step.pictures for step in steps] == [128, 256, 384, 512, 640]
    assert steps[-1].loss < steps[0].loss
    assert steps[-1].accuracy > 0.3


def test_the_file_computes_what_torch_does(training, recipe, words):
    torch = training.torch
    torch.manual_seed(3)
    net = training.Network(recipe)
    shapes = [picture(ink) for ink in words["anna"][:4]]
    net.train()
    with torch.no_grad():
        net(training.stacked(shapes))  # running means that are not those of the start
        net.eval()
        wanted = [net(training.stacked([shape]))[0].numpy() for shape in shapes]
    told = {NETWORK_KEY: json.dumps({"shape": VERSION, "dimensions": 8})}
    found = StyleNetwork.from_bytes(training.exported(net, told)).embed(words["anna"][:4])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_training_that_was_stopped_gives_the_same_bytes(training, recipe, trained, words, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", -1)
    checkpoint = tmp_path / "c"

    def stop(step):
        if step.pictures == 256:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train_network(words, recipe, checkpoint=checkpoint, progress=stop)
    steps = []
    data = training.train_network(words, recipe, checkpoint=checkpoint, progress=steps.append)
    assert [step.pictures for step in steps] == [256, 384, 512, 640]
    assert data == trained[0]
    with pytest.raises(RunError, match="other words or settings"):
        training.train_network(words, replace(recipe, seed=9), checkpoint=checkpoint)
    checkpoint.write_bytes(b"junk")
    with pytest.raises(RunError, match="no checkpoint"):
        training.train_network(words, recipe, checkpoint=checkpoint)


def test_the_words_held_out_are_not_trained_on(training, recipe, words, monkeypatch):
    seen = []

    def spied(inks, *args, **options):
        seen.append(inks)
        return bytes_of_network()

    monkeypatch.setattr(training, "train_network", spied)
    model = training.train_model(words, recipe)
    chosen = held_out(words, 0.2, recipe.seed)
    for name, inks in seen[0].items():
        assert inks == [ink for ink, apart in zip(words[name], chosen[name], strict=True) if not apart]
    assert model.seed == recipe.seed


def test_trainings_that_make_no_sense_are_told(training, recipe, words):
    with pytest.raises(DataError, match="1024 pictures at least"):
        training.Recipe(pictures=10)
    with pytest.raises(DataError, match="there are 1"):
        training.train_network({"anna": words["anna"]}, recipe)


def test_without_torch_the_install_line_is_told():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from inktraj.errors import MissingDependency\n"
        "import inktraj.style\n"
        "try:\n    import inktraj.style.training\n"
        "except MissingDependency as err:\n    print(err)"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert 'pip install "inktraj[train]"' in out


# ---------------------------------------------------------------- the command


def invoke(*arguments):
    return CliRunner().invoke(cli.app, ["train-style", *map(str, arguments)])


@pytest.fixture
def network_path(network, tmp_path):
    path = tmp_path / "network.onnx"
    path.write_bytes(network.data)
    return path


def test_the_command_enrols(folder, network, network_path, tmp_path):
    done = invoke(folder, "--out", tmp_path / "m.onnx", "--network", network_path)
    assert done.exit_code == 0
    assert "4 writers; of 12 held-out words" in done.stderr
    wanted = StyleModel.enrol(read_samples(folder).by_writer(), network=network)
    assert StyleModel.load(tmp_path / "m.onnx").hash == wanted.hash
    assert invoke(folder, "--out", tmp_path / "n.onnx", "--network", network_path, "-q").stderr == ""


def test_the_command_reads_pictures(tmp_path, words, network_path):
    for name, inks in words.items():
        (tmp_path / "w" / name).mkdir(parents=True)
        for k, ink in enumerate(inks[:6]):
            cv2.imwrite(str(tmp_path / "w" / name / f"{k}.png"), 255 - cv2.resize(picture(ink), None, fx=2, fy=2))
    (tmp_path / "w" / "anna" / "bad.png").write_bytes(b"no picture")
    (tmp_path / "w" / "anna" / "notes.txt").write_text("a note")
    done = invoke(tmp_path / "w", "--out", tmp_path / "m.onnx", "--network", network_path)
    assert done.exit_code == 1
    assert "bad.png" in done.stderr
    assert "passed over: 1, such as" in done.stderr
    assert [writer.words + writer.held_out for writer in StyleModel.load(tmp_path / "m.onnx").details] == [6] * 4


def test_the_command_leaves_out_writers_of_few_words(folder, words, network_path, tmp_path):
    (folder / "zoe").mkdir()
    write_ink(folder / "zoe" / "a.jsonl", [InkRecord("0", words["ben"][0])])
    done = invoke(folder, "--out", tmp_path / "m.onnx", "--network", network_path)
    assert "writers with fewer than 5 words, left out: 1, such as 'zoe'" in done.stderr
    assert StyleModel.load(tmp_path / "m.onnx").writers == tuple(words)


def test_the_command_trains(training, folder, tmp_path):
    done = invoke(folder, "--out", tmp_path / "m.onnx", "--pictures", 1024)
    assert done.exit_code == 0, done.stderr
    assert "1024 of 1024 pictures" in done.stderr
    assert len(StyleModel.load(tmp_path / "m.onnx").writers) == 4
    assert [path.name for path in tmp_path.glob("m.onnx*")] == ["m.onnx"]


def test_the_command_checks_out_before_the_work(folder, tmp_path):
    for out, says in ((tmp_path, "is a folder"), (tmp_path / "none" / "m.onnx", "there is no folder")):
        done = invoke(folder, "--out", out)
        assert isinstance(done.exception, DataError)
        assert says in str(done.exception)


# ---------------------------------------------------------------- the benchmark and the shipped network


def test_the_benchmark_runs(tmp_path, network_path):
    archive = packed(tmp_path / "words.npz", words_of(n=40))
    command = [sys.executable, "benchmarks/style.py", "--inks", archive, "--network", network_path, "--recovered", "0"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*map(str, command), "--json", str(tmp_path / "f.json")],
        cwd=ROOT, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "f.json").read_text())["figures"]
    assert figures["writers"] == 4
    assert figures["words_tested"] == 4 * 12
    assert figures["groups_of_10_tested"] == 4
    assert 0.5 < figures["accuracy_1_word"] <= figures["accuracy_10_words"] == 1
    assert 0 <= figures["train_minutes"] < 1


def test_real_hands_are_told_apart_by_the_shipped_network(shared_data):
    words = read_samples(shared_data / "unipen_words.npz", split="dev").by_writer()
    some = {name: inks[:40] for name, inks in words.items() if len(inks) >= 40}
    some = dict(list(some.items())[:6])
    model = StyleModel.enrol(some, share=0.4)
    assert model.calibration.accuracy > 0.85
    assert model.calibration.error_after < 0.1
    assert model.ceiling > 0.75 > 0.1 > model.floor
