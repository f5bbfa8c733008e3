"""The losses and the training loops."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from inktraj.recovery.features import make_net
from inktraj.recovery.guide import Guide, edge_inputs, scorers
from inktraj.recovery.policy import search
from recoverer.batches import Guided, Rows, ahead, imitation_batch, order_of, weights_of
from recoverer.network import Network
from recoverer.outcome import outcome
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


def judge(
    networks: Sequence[Network], samples: Sequence[Sample], texts: Sequence[str] | None = None, width: int = 4
) -> dict[str, float]:
    """Figures of the best ways found by networks together, on some words."""
    guides = [guide_of(n) for n in networks]
    rows = []
    for k, sample in enumerate(samples):
        net = make_net(sample.lines)
        go, start = scorers(guides, sample.lines, net, texts[k] if texts else None)
        score, path, down, size = search(net, go, start, width, 3, 4, 6.0, 3 * len(net.ends) + 2)
        best = int(np.argmax(score))
        n = size[best]
        marks = np.append(np.flatnonzero(down[best, :n]), n)
        lines = sample.lines
        rows.append(
            outcome(
                lines.points,
                lines.start,
                path[best, :n].astype(np.int64),
                marks,
                sample.reference,
                len(sample.reference_marks) - 1,
            )
        )
    dtw, lifts, away = np.array(rows).T
    return {
        "dtw_median": float(np.median(dtw)),
        "dtw_mean": float(dtw.mean()),
        "under_001": float((dtw < 0.01).mean()),
        "penup": float(lifts.mean()),
        "start": float((away < 0.05).mean()),
    }


def standardize(network: Network, samples: Sequence[Sample]) -> None:
    """Set the mean and scale of the edges' features."""
    rows = np.concatenate([edge_inputs(s.lines, make_net(s.lines))[0] for s in samples])
    network.mean.copy_(torch.from_numpy(rows.mean(0)))
    network.scale.copy_(torch.from_numpy(1 / (rows.std(0) + 0.05)))


class Average:
    """A network whose weights are the running mean of those of another: it generalises better than any of them."""

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


def imitate(
    network: Network,
    samples: Sequence[Sample],
    texts: Sequence[str],
    writers: Sequence[str],
    held_out: Sequence[Sample],
    *,
    epochs: float,
    batch: int,
    rate: float,
    drop: float,
    seed: int,
    checkpoint: Path,
    every: int = 200,
) -> None:
    """Learn the recorded choices: cross-entropy, AdamW, a warm-up and a cosine."""
    sizes, weight = np.array([len(s.lines.ends) for s in samples]), weights_of(writers)
    steps = int(epochs * (len(samples) // batch))
    optimizer = torch.optim.AdamW(network.parameters(), rate, weight_decay=0.05, betas=(0.9, 0.98))
    step = 0
    average = Average(network)
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
        average = Average(network, saved["average"], step)
        print(f"resumed at step {step} of {steps}", flush=True)

    def batches():
        done = 0
        epoch = 0
        while done < steps:
            rng = np.random.default_rng([seed, epoch])
            for part in order_of(sizes, weight, batch, rng):
                done += 1
                if done > steps:
                    return
                if done > step:
                    own = np.random.default_rng([seed, 1, done])
                    yield imitation_batch([samples[k] for k in part], [texts[k] for k in part], own)
            epoch += 1

    begin = time.time()
    losses: list[tuple[float, float]] = []
    network.train()
    for words, go, start in ahead(batches()):
        step += 1
        share = step / steps
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, step / 300) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
        torch.manual_seed(seed * 1_000_003 + step)
        moves, set_downs = choices(network, words, go, start, drop)
        loss = -(moves.sum() + set_downs.sum()) / batch
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        average.take(network)
        losses.append((-moves.mean().item(), -set_downs.mean().item()))
        if step % every == 0 or step == steps:
            figures = judge([average.network], held_out)
            mean = np.mean(losses[-every:], 0)
            print(
                f"{step}/{steps} {time.time() - begin:.0f} s, move {mean[0]:.4f}, set-down {mean[1]:.4f};",
                ", ".join(f"{k} {v:.4f}" for k, v in figures.items()),
                flush=True,
            )
            partial = checkpoint.with_suffix(".partial")
            torch.save(
                {
                    "network": network.state_dict(),
                    "average": average.network.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "step": step,
                },
                partial,
            )
            partial.rename(checkpoint)
    network.load_state_dict(average.network.state_dict())
    network.eval()
