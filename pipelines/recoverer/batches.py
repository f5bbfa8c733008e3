"""Samples → batches of tensors; words are bent a little anew each time."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from inktraj.recovery.features import N_EDGE, Lines, Net, make_net
from inktraj.recovery.guide import N_LETTER_PLACE, N_PLACE, edge_inputs, letters_of
from inktraj.recovery.policy import Decisions, decisions
from recoverer.samples import Sample

TEXT_SHARE = 0.3  # of the words come with their text


class Bend:
    """A random slant, stretch and slow wave, so that one writer's words look like many writers'."""

    def __init__(self, rng: np.random.Generator) -> None:
        slant, stretch = rng.normal(0, 0.18), np.exp(rng.normal(0, 0.15))
        self.turn = np.array([[stretch, 0.0], [-slant, 1.0]])
        self.wave = rng.uniform(0, 0.05, 2)  # heights
        self.rate = rng.normal(0, 2.0, (2, 2))  # radians a height
        self.phase = rng.uniform(0, 2 * np.pi, 2)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Bend points ``(n, 2)``."""
        turned = points @ self.turn
        return np.asarray(turned + self.wave * np.sin(points @ self.rate + self.phase))


def bent(lines: Lines, bend: Bend) -> tuple[Lines, np.ndarray]:
    """A bent graph, its upper left corner at (0, 0), and where that corner was."""
    points = bend(lines.points)
    low = points.min(0)
    return lines._replace(points=points - low, nodes=bend(lines.nodes) - low), low


@dataclass(frozen=True, slots=True)
class Guided:
    """The guide's input for a batch; see `recoverer.network.Network.guide`."""

    features: Tensor
    bits: Tensor
    lie: Tensor
    hidden: Tensor
    letters: Tensor
    place: Tensor
    flat: Tensor  # places of the true edges in the padded batch
    forward: Tensor


@dataclass(frozen=True, slots=True)
class Rows:
    """Choices of one kind over the whole batch: one row an option."""

    features: Tensor
    source: Tensor
    target: Tensor
    choice: Tensor  # the choice that each row belongs to
    taken: Tensor  # the row taken, for each choice
    way: Tensor  # the way (stroke sequence) that each choice belongs to


def collate_words(inputs: Sequence[tuple], texts: Sequence[str]) -> Guided:
    """Pad the guide's inputs of several words."""
    b, n = len(inputs), max(len(f) for f, *_ in inputs)
    letters = [letters_of(text) for text in texts]
    t = max(len(number) for number, _ in letters)
    features = np.zeros((b, n, N_EDGE), np.float32)
    bits = np.zeros((b, t + n, t + n), np.int64)
    lie = np.zeros((b, t + n, t + n, N_PLACE), np.float32)
    hidden = np.full((b, t + n), -1e9, np.float32)
    numbers, place = np.zeros((b, t), np.int64), np.zeros((b, t, N_LETTER_PLACE), np.float32)
    flat, forward = [], []
    for k, (f, own, own_lie, side) in enumerate(inputs):
        e, m = len(f), len(letters[k][0])
        features[k, :e] = f
        bits[k, t : t + e, t : t + e] = own
        lie[k, t : t + e, t : t + e] = own_lie
        hidden[k, t : t + e] = 0
        hidden[k, :m] = 0
        numbers[k, :m], place[k, :m] = letters[k]
        flat.append(k * n + np.arange(e))
        forward.append(side)
    arrays = (features, bits, lie, hidden, numbers, place, np.concatenate(flat), np.concatenate(forward))
    return Guided(*(torch.from_numpy(a) for a in arrays))


def collate_rows(ways: Sequence[Decisions], owner: Sequence[int], edges: Sequence[int]) -> tuple[Rows, Rows]:
    """Join the choices of ways; way k is of word ``owner[k]``, word w has ``edges[w]`` edges."""
    shift = 2 * np.concatenate([[0], np.cumsum(edges)])
    out = []
    for kind in ("go", "start"):
        features, source, target, choice, taken, way = [], [], [], [], [], []
        n_rows, n_choices = 0, 0
        for k, d in enumerate(ways):
            rows, offsets = getattr(d, kind), getattr(d, kind + "_offsets")
            add = shift[owner[k]]
            features.append(rows)
            for into, name in ((source, "_from"), (target, "_to")):
                h = getattr(d, kind + name)
                into.append(np.where(h >= 0, h + add, -1))
            choice.append(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)) + n_choices)
            taken.append(getattr(d, kind + "_taken") + n_rows)
            way.append(np.full(len(offsets) - 1, k))
            n_rows += len(rows)
            n_choices += len(offsets) - 1
        parts = (features, source, target, choice, taken, way)
        out.append(Rows(*(torch.from_numpy(np.concatenate(p)) for p in parts)))
    return out[0], out[1]


def imitation_batch(
    samples: Sequence[Sample], texts: Sequence[str], rng: np.random.Generator
) -> tuple[Guided, Rows, Rows]:
    """The recorded ways of some words, bent."""
    inputs, ways = [], []
    for sample in samples:
        lines, _ = bent(sample.lines, Bend(rng))
        net: Net = make_net(lines)
        inputs.append(edge_inputs(lines, net))
        ways.append(decisions(net, sample.path, sample.marks))
    texts = [t if rng.random() < TEXT_SHARE else "" for t in texts]
    go, start = collate_rows(ways, range(len(ways)), [len(f) for f, *_ in inputs])
    return collate_words(inputs, texts), go, start


def weights_of(writers: Sequence[str]) -> np.ndarray:
    """Chance of each sample to be drawn: writers of few words more often, by the root of their number of words."""
    _, owner, count = np.unique(writers, return_inverse=True, return_counts=True)
    weight = count[owner] ** -0.5
    return np.asarray(weight / weight.sum())


def order_of(sizes: np.ndarray, weight: np.ndarray, batch: int, rng: np.random.Generator) -> list[np.ndarray]:
    """As many samples as there are, drawn by weight; batches of words of like size, in random order."""
    drawn = rng.choice(len(sizes), len(sizes), p=weight)
    ranked = drawn[np.lexsort((rng.random(len(drawn)), sizes[drawn] + rng.integers(0, 4, len(drawn))))]
    parts = np.array_split(ranked, max(len(sizes) // batch, 1))
    return [parts[k] for k in rng.permutation(len(parts))]


def parts_of(sizes: np.ndarray, weight: np.ndarray, batch: int, seed: int) -> Iterator[np.ndarray]:
    """The samples of each step, epoch after epoch, without end."""
    for epoch in itertools.count():
        yield from order_of(sizes, weight, batch, np.random.default_rng([seed, epoch]))


def ahead(source: Iterator, depth: int = 4) -> Iterator:
    """Work on the next items in another thread: the features' kernels let go of the interpreter's lock."""
    waiting: queue.Queue = queue.Queue(depth)
    end = object()
    stop = threading.Event()

    def work() -> None:
        try:
            for item in source:
                while not stop.is_set():
                    try:
                        waiting.put(item, timeout=0.5)
                        break
                    except queue.Full:
                        continue
                if stop.is_set():
                    return
            waiting.put(end)
        except BaseException as err:
            waiting.put(err)

    threading.Thread(target=work, daemon=True).start()
    try:
        while (item := waiting.get()) is not end:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
