"""The losses and the training loops."""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from inktraj.errors import DataError
from inktraj.recovery.features import make_net
from inktraj.recovery.guide import Guide, edge_inputs, scorers
from inktraj.recovery.policy import find_ways
from inktraj.recovery.scribe import EFFORT
from recoverer.batches import Guided, Rows, ahead, imitation_batch, parts_of, weights_of
from recoverer.network import Network
from recoverer.outcome import START_NEAR, outcome_of
from recoverer.samples import Sample


def log_probabilities(logits: Tensor, rows: Rows) -> Tensor:
    """Log-probability of each choice's taken row."""
    n = len(rows.taken)
    top = torch.full((n,), -torch.inf).scatter_reduce(0, rows.choice, logits.detach(), "amax")
    total = torch.zeros(n).index_add(0, rows.choice, torch.exp(logits - top[rows.choice]))
    return logits[rows.taken] - top - torch.log(total)


def encode(network: Network, words: Guided, drop: float) -> Tensor:
    h = network.guide(words.features, words.bits, words.lie, words.hidden, words.letters, words.place, drop)
    return h.reshape(-1, h.shape[-1])[words.flat]


def choices(network: Network, words: Guided, go: Rows, start: Rows, drop: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities of all moves and of all set-downs taken."""
    h = encode(network, words, drop)
    out = []
    for head, rows in ((network.go, go), (network.start, start)):
        out.append(log_probabilities(head(h, words.forward, rows.features, rows.source, rows.target, drop), rows))
    return out[0], out[1]


def guide_of(network: Network) -> Guide:
    """The network as the package runs it."""
    return Guide({k: v.detach().numpy().copy() for k, v in network.state_dict().items()}, network.config)


def judge(networks: Sequence[Network], samples: Sequence[Sample]) -> dict[str, float]:
    """Figures of the best ways found by networks together, on some words."""
    guides = [guide_of(n) for n in networks]
    rows = []
    for sample in samples:
        net = make_net(sample.lines)
        go, start = scorers(guides, sample.lines, net)
        best = find_ways(net, go, start, width=EFFORT["best"].beam, n_starts=EFFORT["best"].starts, n_best=1)[0]
        rows.append(outcome_of(sample, best))
    dtw, lifts, away = np.array(rows).T
    return {
        "dtw_median": float(np.median(dtw)),
        "dtw_mean": float(dtw.mean()),
        "under_001": float((dtw < 0.01).mean()),
        "penup": float(lifts.mean()),
        "start": float((away < START_NEAR).mean()),
    }


def standardize(network: Network, samples: Sequence[Sample]) -> None:
    """Set the mean and scale of the edges' features."""
    rows = np.concatenate([edge_inputs(s.lines, make_net(s.lines))[0] for s in samples])
    network.mean.copy_(torch.from_numpy(rows.mean(0)))
    network.scale.copy_(torch.from_numpy(1 / (rows.std(0) + 0.05)))


class Average:
    """A network whose weights are the running mean of those of another: steadier than any of them."""

    DECAY = 0.998

    def __init__(self, network: Network, saved: dict[str, Tensor] | None = None, taken: int = 0) -> None:
        self.network = copy.deepcopy(network).eval()
        if saved is not None:
            self.network.load_state_dict(saved)
        self.taken = taken

    @torch.no_grad()
    def take(self, network: Network) -> None:
        """Move towards the other network; at first faster, since it began anywhere."""
        self.taken += 1
        share = 1 - min(self.DECAY, (1 + self.taken) / (10 + self.taken))
        for mine, other in zip(self.network.parameters(), network.parameters(), strict=True):
            mine.lerp_(other, share)


class Training:
    """A network with its optimizer and running mean: steps, and checkpoints from which the same training goes on.

    Parameters
    ----------
    network
        What is trained, in place.
    checkpoint
        File of the state; read where it exists.
    decay
        AdamW's weight decay.
    """

    def __init__(self, network: Network, checkpoint: Path, decay: float) -> None:
        self.network, self.checkpoint = network, checkpoint
        self.optimizer = torch.optim.AdamW(network.parameters(), weight_decay=decay, betas=(0.9, 0.98))
        self.step, self.begun = 0, time.time()
        self.average = Average(network)
        if checkpoint.exists():
            saved = torch.load(checkpoint)
            network.load_state_dict(saved["network"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.step = saved["step"]
            self.average = Average(network, saved["average"], self.step)
            print(f"resumed at step {self.step}", flush=True)
        network.train()

    def descend(self, loss: Tensor, rate: float) -> None:
        """Make one step."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 5.0)
        self.optimizer.step()
        self.average.take(self.network)

    def report(self, steps: int, told: str, held_out: Sequence[Sample]) -> None:
        """Print how far the training is, what is told of the losses, and figures on held-out words; checkpoint it."""
        figures = ", ".join(f"{k} {v:.4f}" for k, v in judge([self.average.network], held_out).items())
        print(f"{self.step}/{steps} {time.time() - self.begun:.0f} s, {told}; {figures}", flush=True)
        self.save()

    def save(self) -> None:
        """Write the checkpoint."""
        partial = self.checkpoint.with_suffix(".partial")
        torch.save(
            {
                "network": self.network.state_dict(),
                "average": self.average.network.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "step": self.step,
            },
            partial,
        )
        partial.rename(self.checkpoint)

    def finish(self) -> None:
        """Make the running mean the network's weights."""
        self.network.load_state_dict(self.average.network.state_dict())
        self.network.eval()


def imitate(
    network: Network,
    samples: Sequence[Sample],
    texts: Sequence[str],
    writers: Sequence[str],
    held_out: Sequence[Sample],
    *,
    epochs: float,
    horizon: float,
    batch: int,
    rate: float,
    drop: float,
    seed: int,
    checkpoint: Path,
    every: int = 200,
) -> None:
    """Learn the recorded choices: cross-entropy, AdamW, a warm-up and a cosine."""
    sizes = np.array([len(s.lines.ends) for s in samples])
    steps = int(epochs * (len(samples) // batch))
    if not steps:
        raise DataError(
            f"{len(samples)} samples are too few for {epochs:g} epochs of batches of {batch}: no step is made"
        )
    training = Training(network, checkpoint, decay=0.05)
    begun = training.step

    todo = itertools.islice(parts_of(sizes, weights_of(writers), batch, seed), begun, steps)

    def batches():
        for done, part in enumerate(todo, begun + 1):
            own = np.random.default_rng([seed, 1, done])
            yield imitation_batch([samples[k] for k in part], [texts[k] for k in part], own)

    losses: list[tuple[float, float]] = []
    for step, (words, go, start) in enumerate(ahead(batches()), begun + 1):
        training.step = step
        torch.manual_seed(seed * 1_000_003 + step)
        moves, set_downs = choices(network, words, go, start, drop)
        loss = -(moves.sum() + set_downs.sum()) / batch
        cosine = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(step / steps * epochs / horizon, 1.0)))
        training.descend(loss, rate * min(1.0, step / 300) * cosine)
        losses.append((-moves.mean().item(), -set_downs.mean().item()))
        if step % every == 0 or step == steps:
            mean = np.mean(losses[-every:], 0)
            training.report(steps, f"move {mean[0]:.4f}, set-down {mean[1]:.4f}", held_out)
    training.finish()
