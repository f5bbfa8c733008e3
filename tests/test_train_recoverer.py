"""The recoverer's training: recordings laid on graphs, samples, losses, and a whole training of a few made-up words."""

import itertools
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import oracles_recovery as oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_recoverer import SMALL, a_path, arc, lines_of_paths

from inktraj.errors import DataError
from inktraj.recovery import crop_of
from inktraj.recovery.features import make_net
from inktraj.recovery.policy import taken
from inktraj.recovery.scribe import Scribe
from inktraj.recovery.weights import array_shapes, load_weights

PIPELINES = str(Path(__file__).resolve().parent.parent / "pipelines")

sys.path.insert(0, PIPELINES)
try:
    import recordings
    from recoverer import mapmatch, outcome, samples
finally:
    sys.path.remove(PIPELINES)


def writer(held_out, number=0):
    """Return the name of a writer who is held out, or of one who is not."""
    names = (f"writer {k}" for k in itertools.count())
    return next(itertools.islice((n for n in names if samples.is_validation(n) == held_out), number, None))


LETTERS = {
    "l": [[(100, 0), (110, 1000)]],
    "c": [arc(250, 750, 250, -50, -310)],
    "n": [[(0, 500), (0, 1000), (0, 700), *arc(200, 700, 200, 180, 360), (400, 1000)]],
    "i": [[(0, 500), (0, 1000)], [(0, 250)]],
    "t": [[(120, 100), (120, 1000)], [(-30, 450), (270, 450)]],
    "v": [[(0, 500), (200, 1000), (400, 500)]],
}
WORDS = ["nil", "tin", "cli", "vin", "lit", "cvt", "nt", "ill", "tic", "vil", "lc", "nn"]


def strokes_of(text, rng):
    """Return the word's strokes, its letters side by side in somebody's hand."""
    slant, gap = rng.normal(0, 0.15), rng.uniform(600, 800)
    out = []
    for k, letter in enumerate(text):
        for path in LETTERS[letter]:
            path = np.array(path, float)
            if len(path) > 1:
                path = recordings.resample(path, 40)
            path = path + rng.normal(0, 4, path.shape) + (k * gap, 0)
            out.append(np.rint(np.stack([path[:, 0] - slant * path[:, 1], path[:, 1]], 1)).astype(np.int64))
    return out


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Words of three writers, one of whom is held out, and a few which are not for training."""
    rng = np.random.default_rng(4)
    rows = [(text, name, "train") for name in (writer(False), writer(True), writer(False, 1)) for text in WORDS]
    rows += [(text, "somebody", "dev") for text in WORDS[:4]]
    words = [strokes_of(text, rng) for text, *_ in rows]
    strokes = list(itertools.chain.from_iterable(words))
    path = tmp_path_factory.mktemp("inks") / "words.npz"
    np.savez(
        path,
        delta=np.diff(np.concatenate(strokes), axis=0, prepend=0).astype(np.int16),
        stroke_offsets=np.cumsum([0, *map(len, strokes)]),
        word_offsets=np.cumsum([0, *map(len, words)]),
        text=np.array([text for text, *_ in rows]),
        writer=np.array([name for _, name, _ in rows]),
        split=np.array([split for *_, split in rows]),
        style=np.array(["PRINTED"] * len(rows)),
    )
    return path


@pytest.fixture(scope="module")
def made(archive):
    """Some samples, in all variants."""
    words = recordings.Words(archive)
    return [samples.make_sample(words, i, v) for i in range(12) for v in range(3)]


# ---------------------------------------------------------------- recordings laid on graphs


def matched(lines, *strokes):
    return mapmatch.match(lines, make_net(lines), [np.array(s, float) for s in strokes])


CHAIN = lines_of_paths([(0, 0), (0.6, 0), (1, 0.3)], [(0, 1), (1, 2)])
# a stem whose upper half is edge 0 and lower half edge 1, and an arch, edge 2, that leaves its middle; a dot, edge 3
STEM = lines_of_paths([(0, 0), (0, 0.5), (0, 1), (0.5, 1), (0.9, 0)], [(0, 1), (1, 2), (1, 3, (0.25, 0.3))], [4])
DOWN, UP = [(0, 0), (0, 1)], [(0, 1), (0, 0.5)]
ARCH = [(0, 0.5), (0.25, 0.3), (0.5, 1)]


def test_a_plain_stroke_is_followed_both_ways():
    assert matched(CHAIN, [(0, 0), (0.6, 0), (1, 0.3)]) == [[0, 2]]
    assert matched(CHAIN, [(1, 0.3), (0.6, 0), (0, 0)]) == [[3, 1]]


def test_a_shaky_stroke_beside_its_line_is_followed(rng):
    path = recordings.resample(np.array([(0, 0), (0.6, 0), (1, 0.3)]), 0.03)
    assert matched(CHAIN, path + rng.normal(0, 0.008, path.shape) + (0.01, -0.01)) == [[0, 2]]


def test_a_retraced_stem_is_gone_down_and_up():
    assert matched(STEM, [*DOWN, *UP, *ARCH]) == [[0, 2, 3, 4]]


def test_strokes_that_are_lifted_between_stay_apart():
    assert matched(STEM, DOWN, ARCH) == [[0, 2], [4]]
    assert matched(STEM, ARCH[::-1], DOWN) == [[5], [0, 2]]


def test_a_stroke_turns_round_at_an_end_and_within_an_edge():
    line = lines_of_paths([(0, 0), (1, 0)], [(0, 1)])
    assert matched(line, [(0, 0), (1, 0), (0, 0)]) == [[0, 1]]
    assert matched(line, [(0, 0), (0.7, 0), (0, 0)]) == [[0, 1]]


def test_two_strokes_that_meet_within_an_edge_are_one():
    line = lines_of_paths([(0, 0), (1, 0)], [(0, 1)])
    assert matched(line, [(0, 0), (0.5, 0)], [(0.5, 0), (1, 0)]) == [[0]]
    assert matched(CHAIN, [(0, 0), (0.3, 0)], [(0.3, 0), (0.6, 0), (1, 0.3)]) == [[0, 2]]


def test_a_dot_is_its_first_half_edge():
    assert matched(STEM, DOWN, ARCH, [(0.9, 0.01)]) == [[0, 2], [4], [6]]
    assert matched(STEM, [(0.88, 0), (0.92, 0.01), (0.9, 0.02)]) == [[6]]
    assert mapmatch._without_dot_repeats(make_net(STEM), [7, 6]) == [6]


def test_a_ring_is_gone_round_once_and_in_the_way_it_was():
    ring = arc(0.5, 0.5, 0.5, -90, 270)
    lines = lines_of_paths([ring[0]], [(0, 0, *ring[1:-1])])
    assert matched(lines, ring) == [[0]]
    assert matched(lines, ring[::-1]) == [[1]]


def test_what_was_recorded_is_found_again_on_drawn_words(made):
    for sample in made:
        assert sample is not None
        # a word is at its worst where two strokes touch: nothing shows the lift
        assert abs((len(sample.marks) - 1) - (len(sample.reference_marks) - 1)) <= 1
        dtw, *_ = outcome.outcome(
            sample.lines.points, sample.lines.start, sample.path, sample.marks, sample.reference,
            len(sample.reference_marks) - 1,
        )  # fmt: skip
        assert dtw < 0.03
    assert np.mean([len(s.marks) == len(s.reference_marks) for s in made]) > 0.9


# ---------------------------------------------------------------- how far a way is from the recording


def a_way(seed):
    """Return random edges and a dot, their offsets, a path over them, and its strokes."""
    rng = np.random.default_rng(seed)
    nodes = rng.uniform(0, 1, (5, 2))
    edges = [(0, 1), (1, 2), (2, 0), (1, 3), (3, 3)]
    lines = lines_of_paths(nodes, [(*edge, *rng.uniform(0, 1, (2, 2))) for edge in edges], [4])
    return lines.points, lines.start, *a_path(make_net(lines), rng)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.004, 0.3))
def test_a_ways_points_are_spaced_by_the_step(seed, step):
    way = a_way(seed)
    np.testing.assert_allclose(outcome.polyline(*way, step), oracles.polyline(*way, step), atol=1e-9)


def test_the_outcome_is_in_the_recordings_box():
    lines = lines_of_paths([(0, 0), (2, 0)], [(0, 1)])
    reference = recordings.resample(np.array([(0.0, 0.1), (2.0, 0.1)]), 0.04)
    there = outcome.outcome(lines.points, lines.start, np.array([0]), np.array([0, 1]), reference, 3)
    np.testing.assert_allclose(there, (0.05, 2, 0.05), atol=2e-3)
    back = outcome.outcome(lines.points, lines.start, np.array([1]), np.array([0, 1]), reference, 1)
    assert back[0] > 0.3
    np.testing.assert_allclose(back[2], 1, atol=0.01)


# ---------------------------------------------------------------- samples


def same(a, b):
    assert (a.word, a.variant) == (b.word, b.variant)
    for name, wanted in samples._arrays(a).items():
        np.testing.assert_allclose(samples._arrays(b)[name], wanted, atol=1e-6)


STARTS_A_WORKER = """
import os, time
from recoverer.workers import pool
if __name__ == "__main__":
    with pool(1) as processes:
        print(processes.submit(os.getpid).result(), flush=True)
        processes.submit(time.sleep, 600).result()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="whether a process lives is asked as POSIX has it")
def test_workers_end_when_the_training_is_killed(tmp_path):
    script = tmp_path / "start.py"
    script.write_text(STARTS_A_WORKER)
    environment = os.environ | {"PYTHONPATH": PIPELINES}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as training:
        worker = int(training.stdout.readline())
        os.kill(worker, 0)  # it lives
        training.kill()
        training.communicate(timeout=30)  # the worker holds the pipe, too: it ends when both have


def test_samples_are_written_and_read_back(tmp_path, made):
    wanted = [s for s in made if s.variant == 2]
    samples._write(tmp_path / "variant2-000.npz", wanted)
    for a, b in zip(wanted, samples.load([tmp_path / "variant2-000.npz"]), strict=True):
        same(a, b)
        for name in ("ends", "start", "dot"):
            assert getattr(a.lines, name).dtype == getattr(b.lines, name).dtype
    assert [p.name for p in tmp_path.iterdir()] == ["variant2-000.npz"]


def test_a_shard_of_which_no_word_is_left_is_empty(tmp_path):
    samples._write(tmp_path / "variant0-000.npz", [])
    assert samples.load([tmp_path / "variant0-000.npz"]) == []


def test_a_word_that_the_recording_does_not_explain_is_left_out(archive, monkeypatch):
    words = recordings.Words(archive)
    picture = samples.picture_of(words, 0, 0)
    monkeypatch.setattr(samples, "picture_of", lambda *_: (picture[0], picture[1][:1]))
    assert samples.make_sample(words, 0, 0) is None


def test_samples_are_the_same_each_time_and_other_in_each_variant(archive, made):
    words = recordings.Words(archive)
    for v in range(3):
        same(made[v], samples.make_sample(words, 0, v))
    assert len({s.lines.points.tobytes() for s in made[:3]}) == 3


def test_writers_are_held_out_by_their_name_alone():
    names = [f"{k}" for k in range(3000)]
    held = [n for n in names if samples.is_validation(n)]
    assert 0.05 < len(held) / len(names) < 0.12
    assert held == [n for n in names if samples.is_validation(n)]


# ---------------------------------------------------------------- what needs torch


@pytest.fixture(scope="module")
def trainer():
    """The parts of the training; the folder stays on the path, as worker processes look for it there."""
    torch = pytest.importorskip("torch", reason='training needs pip install "inktraj[train]"')
    sys.path.insert(0, PIPELINES)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        import train_recoverer
        from recoverer import batches, calibrate, learn, network, risk, store

        yield SimpleNamespace(
            torch=torch, main=train_recoverer, batches=batches, calibrate=calibrate, learn=learn, network=network,
            risk=risk, store=store,
        )  # fmt: skip
    finally:
        torch.set_num_threads(threads)
        sys.path.remove(PIPELINES)


@pytest.fixture
def new_network(trainer):
    def new(seed=1):
        trainer.torch.manual_seed(seed)
        return trainer.network.Network(SMALL)

    return new


def test_bending_moves_graph_and_recording_alike(trainer, made, rng):
    for sample in made[:6]:
        bend = trainer.batches.Bend(rng)
        lines, low = trainer.batches.bent(sample.lines, bend)
        moved = bend(sample.lines.points) - low
        np.testing.assert_allclose(lines.points, moved)
        np.testing.assert_allclose(lines.points.min(0), 0, atol=1e-12)
        for k, (a, b) in enumerate(lines.ends):  # edges still end at their nodes
            for node, at in ((a, lines.start[k]), (b, lines.start[k + 1] - 1)):
                before = sample.lines.points[at] - sample.lines.nodes[node]
                assert np.abs(lines.points[at] - lines.nodes[node]).max() < 3 * np.abs(before).max() + 1e-9
        args = (sample.lines.start, sample.path, sample.marks)
        bent = outcome.outcome(lines.points, *args, bend(sample.reference) - low, 1)
        straight = outcome.outcome(sample.lines.points, *args, sample.reference, 1)
        assert abs(bent[0] - straight[0]) < 0.02


def test_log_probabilities_are_a_softmax_over_each_choice(trainer, rng):
    sizes, torch = rng.integers(1, 6, 9), trainer.torch
    choice = np.repeat(np.arange(9), sizes)
    logits = rng.normal(0, 20, len(choice))
    first = np.cumsum([0, *sizes])
    taken_rows = first[:-1] + rng.integers(0, sizes)
    rows = trainer.batches.Rows(*[torch.zeros(0)] * 3, *map(torch.from_numpy, (choice, taken_rows)), torch.zeros(0))
    found = trainer.learn.log_probabilities(torch.tensor(logits, dtype=torch.float32), rows).numpy()
    wanted = [oracles.log_softmax(logits[a:b])[t - a] for a, b, t in zip(first, first[1:], taken_rows, strict=False)]
    np.testing.assert_allclose(found, np.array(wanted, float), atol=1e-4)


def test_a_writer_of_few_words_is_drawn_more_often_a_word(trainer):
    weight = trainer.batches.weights_of(["a"] * 9 + ["b"])
    np.testing.assert_allclose(weight.sum(), 1)
    np.testing.assert_allclose(weight[9] / weight[0], 3)


def test_batches_hold_words_of_like_size_in_a_seeded_order(trainer):
    sizes = np.arange(100) % 50
    weight = np.full(100, 0.01)
    parts, again = (trainer.batches.order_of(sizes, weight, 10, np.random.default_rng(2)) for _ in range(2))
    assert [p.tolist() for p in parts] == [p.tolist() for p in again]
    assert [len(p) for p in parts] == [10] * 10
    assert np.mean([np.ptp(sizes[p]) for p in parts]) < 15
    assert [sizes[p].mean() for p in parts] != sorted(sizes[p].mean() for p in parts)


def test_working_ahead_keeps_order_and_passes_errors_on(trainer):
    def three():
        yield from range(3)
        raise KeyError("three")

    seen = []
    with pytest.raises(KeyError, match="three"):
        seen.extend(trainer.batches.ahead(three(), 1))
    assert list(trainer.batches.ahead(iter(range(50)), 2)) == list(range(50))


def test_proposed_ways_score_as_the_package_scores_them(trainer, made, new_network):
    network = new_network().eval()
    guide = trainer.learn.guide_of(network)
    words, texts = made[:4], ["", "nil", "", "x"]
    proposed = trainer.risk.propose(guide, words, texts, np.random.default_rng(3))
    owner, recorded = proposed.owner.numpy(), proposed.recorded.numpy()
    np.testing.assert_array_equal(np.bincount(owner, recorded), 1)
    assert recorded[np.unique(owner, return_index=True)[1]].all()  # each word's recorded way comes first
    assert (proposed.cost >= 0).all()
    assert (np.bincount(owner) > 2).all()
    with trainer.torch.no_grad():
        scores = trainer.risk.way_scores(network, proposed, 0.0).numpy()
    rng = np.random.default_rng(3)
    for k, (sample, text) in enumerate(zip(words, texts, strict=True)):
        lines, _ = trainer.batches.bent(sample.lines, trainer.batches.Bend(rng))
        net = make_net(lines)
        heads = trainer.risk.scorers([guide], lines, net, text)
        wanted = taken(net, *heads, sample.path, sample.marks)[2].sum()
        np.testing.assert_allclose(scores[(owner == k) & recorded], wanted, atol=1e-3)


def test_proposals_are_drawn_anew_each_step_and_follow_the_network(trainer, new_network, monkeypatch):
    def what_is_asked(guide, samples, texts, rng):
        return guide.weights["go.w3.bias"][0], samples[0], rng.random()

    monkeypatch.setattr(trainer.risk, "FRESH", 3)
    monkeypatch.setattr(trainer.risk, "propose", what_is_asked)
    network = new_network()

    def asked(todo, step):
        out = []
        for row in trainer.risk._proposals(network, list(range(9)), [""] * 9, iter(todo), 1, step):
            out.append(row)
            with trainer.torch.no_grad():
                network.go.w3.bias.fill_(step + len(out))
        return out

    todo = [np.array([k]) for k in range(8)]
    guides, seen, drawn = zip(*asked(todo, 0), strict=True)
    assert list(guides[3:]) == [3, 3, 3, 6, 6]
    assert seen == tuple(range(8))
    assert len(set(drawn)) == 8
    assert asked(todo[6:], 6)[0][1:] == (6, drawn[6])


def test_the_calibration_finds_known_coefficients(trainer, rng):
    x = np.concatenate([np.ones((20_000, 1)), rng.normal(size=(20_000, 2))], 1)
    wanted = np.array([0.4, -1.2, 0.7])
    y = (rng.random(20_000) < 1 / (1 + np.exp(-x @ wanted))).astype(float)
    found = trainer.calibrate._fit(x, y)
    np.testing.assert_allclose(found, wanted, atol=0.08)
    gradient = x.T @ (y - 1 / (1 + np.exp(-x @ found))) - 0.1 * found
    np.testing.assert_allclose(gradient, 0, atol=1e-6)


def test_a_calibration_of_what_is_always_right_is_finite(trainer):
    found = trainer.calibrate._fit(np.ones((5, 2)), np.ones(5))
    assert np.isfinite(found).all()
    assert found.sum() > 0


def test_networks_are_stored_byte_for_byte_and_read_by_the_package(trainer, tmp_path, new_network):
    networks, calibration = [new_network(1), new_network(2)], np.array([1, 0.1, -0.2, 0.3, -0.4])
    for name in ("a.npz", "b.npz"):
        trainer.store.write_weights(tmp_path / name, networks, calibration)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    read = load_weights(tmp_path / "a.npz")
    assert len(read.guides) == 2
    np.testing.assert_allclose(read.calibration, calibration)
    for network, guide in zip(networks, read.guides, strict=True):
        assert {name: tuple(t.shape) for name, t in network.state_dict().items()} == array_shapes(guide.config)
        for name, array in trainer.learn.guide_of(network).weights.items():
            np.testing.assert_array_equal(guide.weights[name], array)


# ---------------------------------------------------------------- training


class PowerCut(Exception):
    """Stands for whatever stops a training."""


def cut_off(monkeypatch, module, times):
    """Let a stage's figures be found so many times only; they are found before each checkpoint is written."""
    left = [times]

    def failing(*args, **options):
        left[0] -= 1
        if left[0] < 0:
            raise PowerCut
        return judge(*args, **options)

    judge = module.judge
    monkeypatch.setattr(module, "judge", failing)


def state_of(network):
    return {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}


def check_resumes(stage, module, monkeypatch, new_network, folder):
    """A stage that was stopped after its first checkpoint ends in the same numbers as one that was not."""
    whole = new_network()
    stage(whole, folder / "whole.pt")
    with monkeypatch.context() as patch:
        cut_off(patch, module, 1)
        with pytest.raises(PowerCut):
            stage(new_network(), folder / "stopped.pt")
    resumed = new_network(seed=7)  # its own numbers must not matter
    stage(resumed, folder / "stopped.pt")
    assert not resumed.training
    first = state_of(new_network())
    for name, array in state_of(whole).items():
        np.testing.assert_array_equal(state_of(resumed)[name], array)
    assert any((first[name] != array).any() for name, array in state_of(whole).items())


@pytest.fixture
def common(made):
    return made, ["nil"] * len(made), ["a"] * 20 + ["b"] * (len(made) - 20), made[:3]


def test_imitation_goes_on_where_it_stopped(trainer, common, monkeypatch, new_network, tmp_path):
    def stage(network, checkpoint):
        trainer.learn.imitate(
            network, *common, epochs=2, horizon=2, batch=4, rate=1e-3, drop=0.1, seed=3, checkpoint=checkpoint, every=7
        )

    check_resumes(stage, trainer.learn, monkeypatch, new_network, tmp_path)


def test_refinement_goes_on_where_it_stopped(trainer, common, monkeypatch, new_network, tmp_path):
    monkeypatch.setattr(trainer.risk, "FRESH", 3)

    def stage(network, checkpoint):  # more words than there are: samples come several times
        trainer.risk.refine(
            network, *common, words=68, batch=4, rate=1e-3, imitation=0.02, drop=0.1, seed=3, checkpoint=checkpoint,
            every=6,
        )  # fmt: skip

    check_resumes(stage, trainer.learn, monkeypatch, new_network, tmp_path)


def test_imitation_makes_what_was_recorded_more_probable(trainer, common, new_network, tmp_path):
    network = new_network()
    trainer.learn.standardize(network, common[0])

    def mean_log_probability():
        network.eval()
        batch = trainer.batches.imitation_batch(common[0], common[1], np.random.default_rng(1))
        with trainer.torch.no_grad():
            return float(np.concatenate([c.numpy() for c in trainer.learn.choices(network, *batch, 0.0)]).mean())

    before = mean_log_probability()
    trainer.learn.imitate(
        network,
        *common,
        epochs=8,
        horizon=8,
        batch=4,
        rate=0.1,
        drop=0.0,
        seed=3,
        checkpoint=tmp_path / "i.pt",
        every=1000,
    )
    assert mean_log_probability() > before + 0.3


@pytest.fixture(scope="module")
def recipe(trainer):
    return trainer.main.Recipe(
        variants=1, networks=1, epochs=3, horizon=3, batch=4, refine_words=30 * 4, rate=5e-3, seed=1, watched=4
    )


@pytest.fixture(scope="module")
def trained(trainer, archive, recipe, tmp_path_factory):
    """The training as the command runs it, in processes of its own."""
    folder = tmp_path_factory.mktemp("whole")
    figures = trainer.main.train(archive, folder / "work", folder / "weights.npz", recipe, limit=0, workers=1)
    return SimpleNamespace(figures=figures, work=folder / "work", weights=folder / "weights.npz")


def test_a_training_gives_figures_and_weights_that_recover(trained, archive):
    assert {"dtw_median", "dtw_mean", "start", "brier", "calibration_error"} <= trained.figures.keys()
    assert all(np.isfinite(value) for value in trained.figures.values())
    image, _ = recordings.picture(recordings.Words(archive), 0)
    (candidate,) = Scribe(weights=trained.weights)(crop_of(image))
    assert len(candidate.ink.strokes) >= 3
    assert 0 < candidate.confidence < 1


def test_only_training_words_are_learned_and_writers_are_apart(trainer, trained, archive):
    words, writers = recordings.Words(archive), np.load(archive)["writer"]
    shards = sorted((trained.work / "samples").glob("*.npz"))
    material = trainer.main.Material.read(archive, shards)
    assert {words.split[s.word] for s in [*material.learn, *material.held_out]} == {"train"}
    assert {str(writers[s.word]) for s in material.learn} == {writer(False), writer(False, 1)}
    assert {str(writers[s.word]) for s in material.held_out} == {writer(True)}
    assert [words.text[s.word] for s in material.learn] == material.texts


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--workers", "0"], "--workers is a whole number from 1, not 0"),
        (["--batch", "0"], "--batch is a whole number from 1, not 0"),
        (["--limit", "-1"], "--limit is a whole number from 0, not -1"),
        (["--out", "."], "is a folder"),
    ],
)
def test_options_are_checked_before_the_work(trainer, archive, tmp_path, monkeypatch, capsys, options, says):
    given = ["--inks", archive, "--work", tmp_path / "work", "--out", tmp_path / "weights.npz", *options]
    monkeypatch.setattr(sys, "argv", ["train_recoverer.py", *map(str, given)])
    with pytest.raises(SystemExit):
        trainer.main.main()
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_batch_that_all_samples_do_not_fill_is_told(trainer, common, new_network, tmp_path):
    with pytest.raises(DataError, match=r"too few .* batches of 1000: no step is made"):
        trainer.learn.imitate(
            new_network(), *common, epochs=1.0, horizon=1.0, batch=1000, rate=0.1, drop=0.0, seed=3,
            checkpoint=tmp_path / "i.pt",
        )  # fmt: skip


def test_words_of_one_writer_are_too_few(trainer, archive, made, tmp_path):
    samples._write(tmp_path / "variant0-000.npz", [s for s in made if s.variant == 0])
    with pytest.raises(DataError, match="12 samples to learn from and 0 of writers held out"):
        trainer.main.Material.read(archive, [tmp_path / "variant0-000.npz"])


def test_a_training_that_was_stopped_gives_the_same_bytes(trainer, trained, archive, recipe, monkeypatch, tmp_path):
    work, out = tmp_path / "work", tmp_path / "weights.npz"
    shutil.copytree(trained.work / "samples", work / "samples")
    written = {path: path.stat().st_mtime_ns for path in (work / "samples").iterdir()}
    # the rest in this process, where it can be stopped
    monkeypatch.setattr(trainer.main, "pool", ThreadPoolExecutor)
    with monkeypatch.context() as patch:
        cut_off(patch, trainer.learn, 1)  # the one of imitation
        with pytest.raises(PowerCut):
            trainer.main.train(archive, work, out, recipe, limit=0, workers=1)
    assert (work / "imitated0.pt").exists()
    assert not out.exists()
    figures = trainer.main.train(archive, work, out, recipe, limit=0, workers=1)
    assert out.read_bytes() == trained.weights.read_bytes()
    assert figures == trained.figures
    assert {path: path.stat().st_mtime_ns for path in (work / "samples").iterdir()} == written
