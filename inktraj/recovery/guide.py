"""The guide: a small transformer which says of each edge of a word's graph what it is within the whole word.

It sees the shapes and places of all edges at once, and so knows letters where single junctions cannot: its vectors go
into the policy's choices. The arithmetic is plain numpy; a word has a few dozen edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inktraj.recovery.features import N_EDGE, SHAPE, Lines, Net, edge_features, forward_sides, shared_ends
from inktraj.recovery.policy import Scorer

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
N_LETTERS = len(LETTERS) + 1  # the last stands for all others
MOST_LETTERS = 24
N_PLACE = 5  # features of how two edges lie to each other


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes of the networks."""

    width: int = 128
    depth: int = 4
    heads: int = 8
    inner: int = 256
    hidden: int = 64
    upper: int = 32


def letters_of(text: str) -> tuple[I64, F32]:
    """Numbers of a word's letters, and the features of their places in it, ``(n,)`` and ``(n, 10)``."""
    letters = [c for c in text if not c.isspace()][:MOST_LETTERS]
    number = np.array([LETTERS.find(c) % N_LETTERS for c in letters], np.int64)
    k = np.arange(len(letters), dtype=np.float32)
    share = (k + 0.5) / max(len(letters), 1)
    waves = [f(np.pi * share * w) for w in (1, 2, 4) for f in (np.sin, np.cos)]
    rest = [share, k / 8, np.full_like(k, len(letters) / 8), (len(letters) - k) / 8]
    return number, np.stack([*waves, *rest], 1).astype(np.float32).reshape(-1, 10)


def lie_of(features: F32) -> F32:
    """How edges lie to each other, ``(e, e, N_PLACE)``: from the first to the second, in heights."""
    x, y = 4 * features[:, 2 * SHAPE], features[:, 2 * SHAPE + 1]
    dx, dy = x[None] - x[:, None], y[None] - y[:, None]
    near = np.clip(dx, -1, 1)
    return np.stack([near, np.abs(near), np.clip(dx, -4, 4) / 4, np.abs(np.clip(dx, -4, 4)) / 4, dy], -1).astype(
        np.float32
    )


def edge_inputs(lines: Lines, net: Net) -> tuple[F32, NDArray[np.uint8], F32, I64]:
    """Features ``(e, N_EDGE)``, shared ends ``(e, e)``, lie ``(e, e, N_PLACE)`` and forward sides ``(e,)``."""
    e = len(net.ends)
    features = np.empty((e, N_EDGE), np.float32)
    edge_features(lines, net, features)
    bits = np.empty((e, e), np.uint8)
    shared_ends(net, bits)
    return features, bits, lie_of(features), forward_sides(net)


def _normed(x: F32, weight: F32, bias: F32) -> F32:
    x = x - x.mean(-1, keepdims=True)
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight + bias)


class Guide:
    """The trained network.

    Parameters
    ----------
    weights
        Arrays by the names which torch gives them.
    config
        Their sizes.
    """

    def __init__(self, weights: dict[str, F32], config: Config) -> None:
        self.weights, self.config = weights, config

    def __call__(self, lines: Lines, net: Net, text: str | None = None) -> tuple[Scorer, Scorer]:
        """Return the scorers of moves and of set-downs for one word, with its `text` where known."""
        features, bits, lie, forward = edge_inputs(lines, net)
        h = self._encode(features, bits, lie, text or "")
        return self._scorer("go", h, forward), self._scorer("start", h, forward)

    def _encode(self, features: F32, bits: NDArray[np.uint8], lie: F32, text: str) -> F32:
        w, heads = self.weights, self.config.heads
        x = ((features - w["mean"]) * w["scale"]) @ w["enter.weight"].T + w["enter.bias"]
        number, place = letters_of(text)
        t = len(number)
        if t:
            x = np.concatenate([w["letter.weight"][number] + place @ w["place.weight"].T + w["place.bias"], x])
            bits = np.pad(bits, ((t, 0), (t, 0)))
            lie = np.pad(lie, ((t, 0), (t, 0), (0, 0)))
        n, d = x.shape
        for k in range(self.config.depth):
            p = f"layers.{k}."
            bias = w[p + "shared"][bits] + lie @ w[p + "lie"]  # n n heads
            y = _normed(x, w[p + "norm1.weight"], w[p + "norm1.bias"])
            qkv = (y @ w[p + "qkv.weight"].T + w[p + "qkv.bias"]).reshape(n, 3, heads, d // heads).transpose(1, 2, 0, 3)
            logits = qkv[0] @ qkv[1].transpose(0, 2, 1) * (d // heads) ** -0.5 + bias.transpose(2, 0, 1)
            logits = np.exp(logits - logits.max(-1, keepdims=True))
            logits /= logits.sum(-1, keepdims=True)
            y = (logits @ qkv[2]).transpose(1, 0, 2).reshape(n, d)
            x = x + y @ w[p + "out.weight"].T + w[p + "out.bias"]
            y = _normed(x, w[p + "norm2.weight"], w[p + "norm2.bias"])
            y = np.maximum(y @ w[p + "up.weight"].T + w[p + "up.bias"], 0)
            x = x + y @ w[p + "down.weight"].T + w[p + "down.bias"]
        return _normed(x[t:], w["norm.weight"], w["norm.bias"])

    def _scorer(self, name: str, h: F32, forward: I64) -> Scorer:
        w = self.weights
        half = np.arange(2 * len(h))
        at = 2 * (half // 2) + (half % 2 != forward[half // 2])

        def table(kind: str) -> F32:
            rows = (h @ w[f"{name}.{kind}.weight"].T + w[f"{name}.{kind}.bias"]).reshape(-1, self.config.hidden)
            return np.concatenate([rows[at], w[f"{name}.no_{kind}"][None]]).astype(np.float32)

        return Scorer(
            table("source") + w[f"{name}.w1.bias"],
            table("target"),
            np.ascontiguousarray(w[f"{name}.w1.weight"].T),
            np.ascontiguousarray(w[f"{name}.w2.weight"].T),
            w[f"{name}.w2.bias"],
            w[f"{name}.w3.weight"][0].copy(),
            float(w[f"{name}.w3.bias"][0]),
        )
