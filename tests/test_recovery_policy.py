"""Features, guide and policy of the learned recoverer: against slow twins, and on graphs that are hardly graphs."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import oracles_recovery as oracles
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made_recoverer import SMALL, a_path, a_word, arc, drawn, lines_of_paths, random_arrays

from inktraj.recovery import policy
from inktraj.recovery.bends import CORNER, cut_at_bends
from inktraj.recovery.features import N_EDGE, N_GO, N_START, forward_sides, lines_of, make_net, shared_ends
from inktraj.recovery.graph import SkeletonGraph
from inktraj.recovery.guide import LETTERS, MOST_LETTERS, Guide, edge_inputs, letters_of, scorers
from inktraj.recovery.policy import MOST_TIMES, Scorer, decisions, search, taken
from inktraj.recovery.vectorize import vectorize

PIPELINES = str(Path(__file__).resolve().parent.parent / "pipelines")


@st.composite
def graphs(draw, most_nodes=5, most_edges=7):
    """Small graphs with parallel edges, loops and dots, each node with an edge."""
    n = draw(st.integers(1, most_nodes))
    places = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), min_size=n, max_size=n, unique=True))
    nodes = [(x / 5, y / 5) for x, y in places]
    edges = []
    for a, b, bow in draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(1, 9)), max_size=most_edges)
    ):
        (x, y), (u, v) = nodes[a], nodes[b]
        between = [((x + u) / 2 + bow / 20, (y + v) / 2 - bow / 30)]
        if a == b:
            between.append((x + bow / 30, y + bow / 20))
        edges.append((a, b, *between))
    used = {v for edge in edges for v in edge[:2]}
    return lines_of_paths(nodes, edges, [v for v in range(n) if v not in used])


def three_nodes_and_a_dot():
    """Return a stem, an arch that leaves it, a branch and a dot."""
    nodes = [(0.1, 0.2), (0.1, 1.0), (0.1, 0.5), (0.5, 1.0), (0.9, 0.1)]
    return lines_of_paths(nodes, [(0, 2), (2, 1), (2, 3, (0.3, 0.35), (0.5, 0.6))], [4])


SINGLE = {
    "a dot": lines_of_paths([(0, 0)], [], [0]),
    "dots": lines_of_paths([(0, 0), (0.4, 0.1), (0.9, 0)], [], [0, 1, 2]),
    "a ring": lines_of_paths([(0.5, 0)], [(0, 0, *arc(0.5, 0.5, 0.5, -80, 260))]),
    "two rings on one node": lines_of_paths([(0, 0)], [(0, 0, (1, 0), (1, 1)), (0, 0, (-1, 0), (-1, -1))]),
    "parallel edges": lines_of_paths([(0, 0), (1, 0)], [(0, 1), (0, 1, (0.5, 0.5)), (1, 0, (0.5, -0.5))]),
    "edges of two points": lines_of_paths([(0, 0), (0.004, 0), (0.008, 0.001)], [(0, 1), (1, 2)]),
    "a line": lines_of_paths([(0, 0), (3, 0)], [(0, 1)]),
    "a stem": lines_of_paths([(0, 0), (0, 1)], [(0, 1)]),
    "a letter": three_nodes_and_a_dot(),
}


# ---------------------------------------------------------------- the graph's features


@settings(deadline=None, max_examples=100)
@given(graphs())
def test_bridges_are_edges_without_which_the_ink_falls_apart(lines):
    net = make_net(lines)
    bridge, beyond = oracles.bridges(len(net.nodes), net.ends, net.length)
    np.testing.assert_array_equal(net.bridge, bridge)
    np.testing.assert_allclose(net.beyond, beyond, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_components_are_pieces(lines):
    net = make_net(lines)
    names = range(oracles.pieces(len(net.nodes), net.ends))
    assert set(net.component.tolist()) == set(names)
    owner = np.repeat(net.component, np.diff(lines.start))
    for c in names:
        x, y = lines.points[owner == c].T
        np.testing.assert_array_equal(net.box[c], [x.min(), x.max(), y.min(), y.max()])
        np.testing.assert_allclose(net.ink[c], net.length[net.component == c].sum())
        for v in net.ends[net.component == c].ravel():
            touching = (net.ends == v).any(1)
            assert (net.component[touching] == c).all()


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_shared_ends_are_told_as_seen_along_the_edges(lines):
    net = make_net(lines)
    bits = np.empty((len(net.ends),) * 2, np.uint8)
    shared_ends(net, bits)
    np.testing.assert_array_equal(bits, oracles.shared_ends(net.ends, net.component, forward_sides(net)))


@pytest.mark.parametrize("name", SINGLE)
def test_hardly_a_graph_has_features_of_numbers(name, rng):
    lines = SINGLE[name]
    net = make_net(lines)
    assert net.total > 0
    features, _, lie, forward = edge_inputs(lines, net)
    assert features.shape == (len(net.ends), N_EDGE)
    assert np.isfinite(features).all()
    assert np.isfinite(lie).all()
    assert set(forward.tolist()) <= {0, 1}
    np.testing.assert_allclose(np.hypot(*net.near.T)[~np.repeat(net.dot, 2)], 1, atol=1e-9)
    for _ in range(5):
        d = decisions(net, *a_path(net, rng))
        assert np.isfinite(d.go).all()
        assert np.isfinite(d.start).all()


@settings(deadline=None, max_examples=60)
@given(graphs(), st.integers(0, 10**6))
def test_features_are_within_bounds(lines, seed):
    net = make_net(lines)
    d = decisions(net, *a_path(net, np.random.default_rng(seed)))
    assert d.go.shape[1:] == (N_GO,)
    assert d.start.shape[1:] == (N_START,)
    assert np.abs(d.go).max(initial=0) < 10
    assert np.abs(d.start).max(initial=0) < 10


def test_an_empty_page_of_specks_is_a_graph_of_dots():
    mask = np.zeros((40, 60), np.bool_)
    mask[10:13, 10:13] = mask[20:23, 40:43] = True
    lines = lines_of(vectorize(mask))
    assert lines.dot.tolist() == [True, True]
    assert make_net(lines).degree.tolist() == [2, 2]


# ---------------------------------------------------------------- cutting at bends


def skeleton_of(paths):
    nodes = [p for path in paths for p in (path[0], path[-1])]
    return SkeletonGraph(
        np.array(nodes, float),
        np.full(len(nodes), 2.0),
        np.arange(len(nodes)).reshape(-1, 2),
        np.cumsum([0, *map(len, paths)]),
        np.concatenate(paths),
    )


def wander(rng, n=120):
    """Return a path with steps of about a pixel that bends and turns back."""
    angle = np.cumsum(rng.normal(0, 0.25, n) + (rng.random(n) < 0.04) * rng.uniform(-2.5, 2.5, n))
    return 50 + np.cumsum(np.stack([np.cos(angle), np.sin(angle)], 1), 0)


def joined(graph):
    """Return the paths from the nodes that were there before, over the nodes of degree 2 that cuts made."""
    out = [graph.edge(0)]
    for i in range(1, len(graph.ends)):
        if graph.ends[i, 0] == graph.ends[i - 1, 1]:
            out[-1] = np.concatenate([out[-1], graph.edge(i)[1:]])
        else:
            out.append(graph.edge(i))
    return out


def test_cutting_keeps_the_paths(rng):
    for _ in range(30):
        paths = [wander(rng, int(n)) for n in rng.integers(2, 200, 4)]
        graph = skeleton_of(paths)
        cut = cut_at_bends(graph, 4.0, 60.0)
        for path, again in zip(paths, joined(cut), strict=True):
            np.testing.assert_array_equal(again, path)
        np.testing.assert_array_equal(cut.nodes[: len(graph.nodes)], graph.nodes)
        assert len(cut.radius) == len(cut.nodes)
        assert len(cut.start) == len(cut.ends) + 1
        degree = np.bincount(cut.ends.ravel())
        assert (degree[len(graph.nodes) :] == 2).all()
        for i, (a, b) in enumerate(cut.ends):
            np.testing.assert_array_equal(cut.edge(i)[[0, -1]], cut.nodes[[a, b]])


def test_cutting_again_cuts_next_to_nothing(rng):
    once, twice = 0, 0
    for _ in range(30):
        graph = skeleton_of([wander(rng)])
        cut = cut_at_bends(graph, 4.0, 60.0)
        once += len(cut.ends) - len(graph.ends)
        twice += len(cut_at_bends(cut, 4.0, 60.0).ends) - len(cut.ends)
    assert once > 60
    assert twice < 0.1 * once


def test_a_corner_is_cut_where_it_is():
    path = np.concatenate([np.linspace((0, 0), (40, 0), 41), np.linspace((40, 1), (40, 40), 40)])
    cut = cut_at_bends(skeleton_of([path]), 4.0, 60.0)
    assert len(cut.ends) == 2
    np.testing.assert_allclose(cut.nodes[2], (40, 0), atol=1.5)


def test_an_arch_is_cut_at_its_top_and_a_trough_is_not():
    cut = cut_at_bends(skeleton_of([arc(50, 50, 15, 180, 360, 50)]), 4.0, 60.0)
    assert len(cut.ends) == 2
    np.testing.assert_allclose(cut.nodes[2], (50, 35), atol=1.0)
    assert len(cut_at_bends(skeleton_of([arc(50, 50, 15, 0, 180, 50)]), 4.0, 60.0).ends) == 1


def test_a_gentle_bend_is_left_alone():
    turned = np.array([np.cos(0.8 * CORNER), np.sin(0.8 * CORNER)])
    path = np.concatenate([np.linspace((-60, 0), (0, 0), 61), np.outer(np.arange(1, 60), turned)])
    graph = skeleton_of([path])
    assert cut_at_bends(graph, 4.0, 600.0) is graph


# ---------------------------------------------------------------- guide


def inputs_of(lines):
    net = make_net(lines)
    return net, edge_inputs(lines, net)


@pytest.mark.parametrize("text", ["", "a", "Nit!", "quickly" * 6], ids=["none", "one", "four", "many"])
@pytest.mark.parametrize("name", ["a dot", "a ring", "a letter", "a word"])
def test_the_guide_is_a_transformer(name, text):
    lines = lines_of(vectorize(a_word())) if name == "a word" else SINGLE[name]
    _, (features, bits, lie, _) = inputs_of(lines)
    arrays = random_arrays(1)
    found = Guide(arrays, SMALL).encode(features, bits, lie, text)
    wanted = oracles.encode(arrays, SMALL, features, bits, lie, *letters_of(text))
    assert found.shape == (len(features), SMALL.width)
    np.testing.assert_allclose(found, wanted, atol=2e-4)


def test_text_changes_what_the_guide_says():
    _, (features, bits, lie, _) = inputs_of(three_nodes_and_a_dot())
    guide = Guide(random_arrays(1), SMALL)
    assert np.abs(guide.encode(features, bits, lie, "a") - guide.encode(features, bits, lie, "b")).max() > 0.01


@given(st.text(max_size=60))
def test_any_text_is_letters_with_places(text):
    number, place = letters_of(text)
    seen = [c for c in text if not c.isspace()][:MOST_LETTERS]
    assert [LETTERS[k] if k < len(LETTERS) else "?" for k in number] == [c if c in LETTERS else "?" for c in seen]
    assert place.shape == (len(seen), 10)
    assert np.isfinite(place).all()
    assert np.abs(place).max(initial=0) <= 3


@pytest.mark.parametrize("networks", [1, 3])
def test_a_choices_logit_is_that_of_its_layers_averaged_over_networks(networks, rng):
    lines = three_nodes_and_a_dot()
    net, (features, bits, lie, forward) = inputs_of(lines)
    arrays = [random_arrays(k) for k in range(networks)]
    heads = dict(zip(("go", "start"), scorers([Guide(a, SMALL) for a in arrays], lines, net, "ab"), strict=True))
    vectors = [oracles.encode(a, SMALL, features, bits, lie, *letters_of("ab")) for a in arrays]
    hidden, upper = np.empty(SMALL.hidden, np.float32), np.empty(SMALL.upper, np.float32)
    for head, n in (("go", N_GO), ("start", N_START)):
        for source in range(-1, 2 * len(net.ends)):
            for target in range(-1, 2 * len(net.ends)):
                row = rng.normal(size=n).astype(np.float32)
                found = policy._logit(heads[head], source, target, row, hidden, upper)
                each = [
                    oracles.logit(a, head, v, forward, row, source, target)
                    for a, v in zip(arrays, vectors, strict=True)
                ]
                assert abs(found - np.mean(each)) < 5e-4


@given(st.lists(st.floats(-60, 60), min_size=1, max_size=9), st.integers(0, 4))
def test_logits_become_log_probabilities(logits, more):
    row = np.array([*logits, *[7.0] * more])
    policy._as_log_probabilities(row, len(logits))
    np.testing.assert_allclose(row[: len(logits)], oracles.log_softmax(logits).astype(float), atol=1e-9)
    assert (row[len(logits) :] == 7).all()  # what lies behind is not touched


# ---------------------------------------------------------------- the guide in torch


@pytest.fixture
def trainer(monkeypatch):
    torch = pytest.importorskip("torch", reason='training needs pip install "inktraj[train]"')
    monkeypatch.syspath_prepend(PIPELINES)
    from recoverer import batches, learn, network

    made = network.Network(SMALL)
    made.load_state_dict({name: torch.from_numpy(a) for name, a in random_arrays(2).items()})
    return SimpleNamespace(torch=torch, batches=batches, learn=learn, network=made.eval())


def test_torch_pads_words_and_says_the_same(trainer):
    words = [SINGLE[name] for name in ("a dot", "a letter", "parallel edges")] + [lines_of(vectorize(a_word()))]
    texts = ["", "nit", "a", "some longer word"]
    inputs = [inputs_of(lines)[1] for lines in words]
    with trainer.torch.no_grad():
        found = trainer.learn.encode(trainer.network, trainer.batches.collate_words(inputs, texts), 0.0).numpy()
    guide = trainer.learn.guide_of(trainer.network)
    wanted = [guide.encode(f, bits, lie, text) for (f, bits, lie, _), text in zip(inputs, texts, strict=True)]
    np.testing.assert_allclose(found, np.concatenate(wanted), atol=2e-4)


def test_torch_gives_every_choice_the_same_probability(trainer, rng):
    words = [three_nodes_and_a_dot(), SINGLE["a dot"], lines_of(vectorize(a_word())), SINGLE["a ring"]]
    texts = ["nit", "", "", "o"]
    nets = [make_net(lines) for lines in words]
    ways = [a_path(net, rng) for net in nets]
    go, start = trainer.batches.collate_rows(
        [decisions(net, *way) for net, way in zip(nets, ways, strict=True)], range(4), [len(n.ends) for n in nets]
    )
    together = trainer.batches.collate_words([edge_inputs(*pair) for pair in zip(words, nets, strict=True)], texts)
    with trainer.torch.no_grad():
        moves, set_downs = trainer.learn.choices(trainer.network, together, go, start, 0.0)
    guide = trainer.learn.guide_of(trainer.network)
    found = []
    for lines, net, way, text in zip(words, nets, ways, texts, strict=True):
        found.append(taken(net, *scorers([guide], lines, net, text), *way))
    for torchs, kinds in ((moves, (1, 2)), (set_downs, (0,))):
        wanted = [chance[np.isin(kind, kinds)] for _, kind, chance in found]
        np.testing.assert_allclose(torchs.numpy(), np.concatenate(wanted), atol=5e-4)


# ---------------------------------------------------------------- the policy


def networks_for(lines, net, seed=1, count=2):
    return scorers([Guide(random_arrays(seed + k), SMALL) for k in range(count)], lines, net)


def ways_of(result):
    score, path, down, size = result
    for k in np.argsort(-score):
        if score[k] > -np.inf:
            n = size[k]
            yield score[k], path[k, :n].astype(np.int64), np.append(np.flatnonzero(down[k, :n]), n)


def check_way(net, path, marks):
    """All edges are drawn, none too often, each set-down is new, and within a stroke the pen does not jump."""
    times = np.bincount(path // 2, minlength=len(net.ends))
    assert times.min() >= 1
    assert times.max() <= MOST_TIMES
    assert marks[0] == 0
    for a, b in pairwise(marks):
        assert path[a] // 2 not in path[:a] // 2
        for h, c in pairwise(path[a:b]):
            assert net.ends[h // 2, 1 - h % 2] == net.ends[c // 2, c % 2]
        if net.dot[path[a] // 2]:
            assert b == a + 1
            assert path[a] % 2 == 0


@settings(deadline=None, max_examples=60)
@given(graphs(), st.integers(0, 30), st.sampled_from([1, 3, 8]))
def test_the_search_draws_everything_and_its_scores_are_those_of_the_choices(lines, seed, width):
    net = make_net(lines)
    go, start = networks_for(lines, net, seed)
    found = list(ways_of(search(net, go, start, width, 3, 4, 6.0, MOST_TIMES * len(net.ends) + 2)))
    assert found
    for score, path, marks in found:
        check_way(net, path, marks)
        at, kind, chance = taken(net, go, start, path, marks)
        assert (chance <= 1e-9).all()
        np.testing.assert_allclose(chance.sum(), score, atol=1e-4)
        dots = net.dot[path[marks[:-1]] // 2]
        assert (kind == 0).sum() == len(marks) - 1
        assert (kind == 2).sum() == len(marks) - 1 - dots.sum()
        assert (kind == 1).sum() == len(path) - len(marks) + 1
        np.testing.assert_array_equal(np.sort(at[kind == 0]), marks[:-1])
        np.testing.assert_array_equal(np.sort(at[kind == 2]), marks[1:][~dots] - 1)


@settings(deadline=None, max_examples=60)
@given(graphs(), st.integers(0, 10**6))
def test_the_choices_along_a_way_hold_what_was_taken(lines, seed):
    net = make_net(lines)
    path, marks = a_path(net, np.random.default_rng(seed))
    d = decisions(net, path, marks)
    np.testing.assert_array_equal(d.start_to[d.start_taken], path[marks[:-1]])
    np.testing.assert_array_equal(d.start_at, marks[:-1])
    last_of_stroke = np.isin(d.go_at + 1, marks[1:])
    following = path[np.minimum(d.go_at + 1, len(path) - 1)]
    np.testing.assert_array_equal(d.go_to[d.go_taken], np.where(last_of_stroke, -1, following))
    assert len(d.go_at) == (~net.dot[path // 2]).sum()
    for offsets, rows in ((d.go_offsets, d.go_taken), (d.start_offsets, d.start_taken)):
        assert (offsets[:-1] <= rows).all()
        assert (rows < offsets[1:]).all()
    for i, (a, b) in enumerate(pairwise(d.go_offsets)):
        t = d.go_at[i]
        often = np.bincount(path[: t + 1] // 2, minlength=len(net.ends)) >= MOST_TIMES
        here = net.ends[path[t] // 2, 1 - path[t] % 2]
        wanted = [c for c in net.half[net.first[here] : net.first[here + 1]] if not often[c // 2]]
        assert sorted(d.go_to[a:b]) == sorted([*wanted, -1])
        assert (d.go_from[a:b] == path[t]).all()


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("seed", range(3))
def test_a_very_wide_beam_finds_the_most_probable_of_all_ways(name, seed):
    lines = SINGLE[name]
    net = make_net(lines)
    go, start = (logits_by_half_edge(len(net.ends), 2 * seed + k) for k in (0, 1))
    path, marks, score = best_of_search(net, go, start)
    wanted, wanted_path, wanted_down = oracles.best_way(net, by_table(go), by_table(start), MOST_TIMES)
    np.testing.assert_allclose(score, wanted, atol=1e-4)
    assert path.tolist() == list(wanted_path)
    assert marks.tolist() == [*np.flatnonzero(wanted_down), len(path)]


@settings(deadline=None, max_examples=30)
@given(graphs(most_nodes=3, most_edges=3), st.integers(0, 10**6))
def test_a_very_wide_beam_finds_the_best_on_any_small_graph(lines, seed):
    net = make_net(lines)
    go, start = (logits_by_half_edge(len(net.ends), seed + k) for k in (0, 1))
    wanted, path, _ = oracles.best_way(net, by_table(go), by_table(start), MOST_TIMES)
    # the search takes edges drawn twice and three times for the same, though only the former may be drawn again
    assume(np.bincount(np.array(path) // 2).max() < MOST_TIMES)
    np.testing.assert_allclose(best_of_search(net, go, start)[2], wanted, atol=1e-4)


def logits_by_half_edge(n_edges, seed):
    """Return a scorer to which only the half-edges matter, so that how the pen came there does not."""
    rng = np.random.default_rng(seed)
    k, m = 6, 4

    def numbers(*shape):
        return rng.normal(0, 1, shape).astype(np.float32)

    tables = numbers(1, 2 * n_edges + 1, k), numbers(1, 2 * n_edges + 1, k)
    blind = np.zeros((1, max(N_GO, N_START), k), np.float32)
    return Scorer(*tables, blind, 0.4 * numbers(1, k, m), numbers(1, m), numbers(1, m), numbers(1))


def by_table(scorer):
    def logit(last, chosen):
        hidden = np.maximum(scorer.source[0, last] + scorer.target[0, chosen], 0)
        return float(np.maximum(hidden @ scorer.w2[0] + scorer.b2[0], 0) @ scorer.w3[0] + scorer.b3[0])

    return logit


def best_of_search(net, go, start):
    longest = MOST_TIMES * len(net.ends) + 2
    score, path, marks = next(ways_of(search(net, go, start, 1500, 2 * len(net.ends), 1, 30.0, longest)))
    return path, marks, score


def test_a_way_is_found_in_a_word_of_many_crossings(rng):
    mask = drawn(*(rng.uniform(10, 100, (8, 2)) * (1.5, 1) for _ in range(4)), pen=2)
    lines = lines_of(vectorize(mask))
    net = make_net(lines)
    assert len(net.ends) > 30
    go, start = networks_for(lines, net)
    for _, path, marks in ways_of(search(net, go, start, 4, 2, 4, 6.0, MOST_TIMES * len(net.ends) + 2)):
        check_way(net, path, marks)
