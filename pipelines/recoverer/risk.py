"""The second stage: make the ways that come out of the search good ones.

Imitation never sees its own mistakes and weighs all choices alike. Here the search proposes several ways for each word,
each way's distance from the recording is measured, and the expected distance under the policy's own probabilities is
made small (minimum Bayes risk training, as in speech recognition: Prabhavalkar et al., ICASSP 2018).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from inktraj.recovery.features import make_net
from inktraj.recovery.guide import Guide, edge_inputs, scorers
from inktraj.recovery.policy import Decisions, Way, decisions, find_ways
from recoverer.batches import (
    TEXT_SHARE,
    Bend,
    Guided,
    Rows,
    ahead,
    bent,
    collate_rows,
    collate_words,
    parts_of,
    weights_of,
)
from recoverer.learn import Training, encode, guide_of, log_probabilities
from recoverer.network import Network
from recoverer.outcome import START_NEAR, outcome
from recoverer.samples import Sample

PROPOSALS = 8  # ways from the search
WIDTH = 8
FRESH = 25  # steps after which the search asks the network as it has become; checkpoints are taken at multiples
WORTH_LIFT, WORTH_START = 0.1, 0.5  # what a pen-up error and a missed start cost; 1 is a DTW of 0.01
WORST = 10.0  # no way costs more


@dataclass(frozen=True, slots=True)
class Proposals:
    """Ways for a batch of words, the recorded one first, with their costs."""

    words: Guided
    go: Rows
    start: Rows
    owner: Tensor  # the word of each way
    cost: Tensor
    recorded: Tensor  # bool


def cost_of(sample: Sample, points: np.ndarray, reference: np.ndarray, way: Way) -> float:
    """What a way on the bent graph costs, 1 for each 0.01 of DTW."""
    n_strokes = len(sample.reference_marks) - 1
    dtw, lifts, away = outcome(points, sample.lines.start, way.path, way.marks, reference, n_strokes)
    return min(dtw / 0.01, WORST) + WORTH_LIFT * min(lifts, 6) + WORTH_START * (away > START_NEAR)


def propose(guide: Guide, samples: Sequence[Sample], texts: Sequence[str], rng: np.random.Generator) -> Proposals:
    """Search each word, bent anew, and measure what comes out."""
    ways: list[Decisions] = []
    inputs, owner, cost, recorded = [], [], [], []
    for k, (sample, text) in enumerate(zip(samples, texts, strict=True)):
        bend = Bend(rng)
        lines, low = bent(sample.lines, bend)
        reference = bend(sample.reference) - low
        net = make_net(lines)
        inputs.append(edge_inputs(lines, net))
        go, start = scorers([guide], lines, net, text)
        found = find_ways(net, go, start, width=WIDTH, n_starts=3, n_best=PROPOSALS)
        seen = set()
        for rank, way in enumerate([Way(sample.path, sample.marks, 0.0), *found]):
            key = (way.path.tobytes(), way.marks.tobytes())
            if key in seen:
                continue
            seen.add(key)
            ways.append(decisions(net, way.path, way.marks))
            owner.append(k)
            cost.append(cost_of(sample, lines.points, reference, way))
            recorded.append(rank == 0)
    go_rows, start_rows = collate_rows(ways, owner, [len(f) for f, *_ in inputs])
    return Proposals(
        collate_words(inputs, texts),
        go_rows,
        start_rows,
        torch.tensor(owner),
        torch.tensor(cost, dtype=torch.float32),
        torch.tensor(recorded),
    )


def way_scores(network: Network, p: Proposals, drop: float) -> Tensor:
    """Log-probability of each way."""
    h = encode(network, p.words, drop)
    total = torch.zeros(len(p.owner))
    for head, rows in ((network.go, p.go), (network.start, p.start)):
        logits = head(h, p.words.forward, rows.features, rows.source, rows.target, drop)
        total = total.index_add(0, rows.way, log_probabilities(logits, rows))
    return total


def _proposals(
    network: Network, samples: Sequence[Sample], texts: Sequence[str], todo: Iterator[np.ndarray], seed: int, step: int
) -> Iterator[Proposals]:
    """Proposals for the steps after `step`, worked out ahead while the network learns from those before.

    For `FRESH` steps in a row the search asks the network as it was before them, so that a training which was stopped
    and goes on proposes the same ways as one which was not.
    """

    def found(guide: Guide, first: int, parts: Sequence[np.ndarray]) -> Iterator[Proposals]:
        for done, part in enumerate(parts, first):
            own = np.random.default_rng([seed, 2, done])
            known = [texts[k] if own.random() < TEXT_SHARE else "" for k in part]
            yield propose(guide, [samples[k] for k in part], known, own)

    while parts := list(itertools.islice(todo, FRESH)):
        yield from ahead(found(guide_of(network), step + 1, parts), 3)
        step += len(parts)


def refine(
    network: Network,
    samples: Sequence[Sample],
    texts: Sequence[str],
    writers: Sequence[str],
    held_out: Sequence[Sample],
    *,
    words: int,
    batch: int,
    rate: float,
    imitation: float,
    drop: float,
    seed: int,
    checkpoint: Path,
    every: int = 4 * FRESH,
) -> None:
    """Minimise the expected cost of what the search finds, with a little imitation to stay probable."""
    sizes = np.array([len(s.lines.ends) for s in samples])
    steps = words // batch
    training = Training(network, checkpoint, decay=0.01)
    begun = training.step
    todo = itertools.islice(parts_of(sizes, weights_of(writers), batch, seed), begun, steps)

    losses = []
    for step, p in enumerate(_proposals(network, samples, texts, todo, seed, begun), begun + 1):
        training.step = step
        torch.manual_seed(seed * 1_000_003 + step)
        score = way_scores(network, p, drop)
        n = int(p.owner[-1]) + 1
        top = torch.full((n,), -torch.inf).scatter_reduce(0, p.owner, score.detach(), "amax")
        weight = torch.exp(score - top[p.owner])
        weight = weight / torch.zeros(n).index_add(0, p.owner, weight)[p.owner]
        risk = (weight * p.cost).sum() / n
        loss = risk - imitation * score[p.recorded].sum() / n
        cosine = 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps))
        training.descend(loss, rate * min(1.0, step / 100) * cosine)
        least = torch.full((n,), torch.inf).scatter_reduce(0, p.owner, p.cost, "amin").mean()
        losses.append((risk.item(), least.item(), -score[p.recorded].mean().item()))
        if step % every == 0 or step == steps:
            mean = np.mean(losses[-every:], 0)
            told = f"risk {mean[0]:.4f} (best way {mean[1]:.4f}), imitation {mean[2]:.3f}"
            training.report(steps, told, held_out)
    training.finish()
