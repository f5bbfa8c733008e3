"""The guide: a small transformer which says of each edge of a word's graph what it is within the whole word.

It sees the shapes and places of all edges at once, and so knows letters where single junctions cannot: its vectors go
into the policy's choices. A word has a few dozen edges: one core is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.recovery.features import N_EDGE, SHAPE, Lines, Net, edge_features, forward_sides, shared_ends
from inktraj.recovery.policy import Scorer

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
N_LETTERS = len(LETTERS) + 1  # the last stands for all others
MOST_LETTERS = 24
N_PLACE = 5  # features of how two edges lie to each other
N_SHARED = 32  # ways in which two edges can share ends, see `shared_ends`
N_LETTER_PLACE = 10  # features of a letter's place in its word


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
    waves: list[Any] = [np.sin(np.pi * share * w) for w in (1, 2, 4)] + [np.cos(np.pi * share * w) for w in (1, 2, 4)]
    rest: list[Any] = [share, k / 8, np.full_like(k, len(letters) / 8), (len(letters) - k) / 8]
    return number, np.stack([*waves, *rest], 1).astype(np.float32).reshape(-1, N_LETTER_PLACE)


def lie_of(features: F32) -> F32:
    """How edges lie to each other, ``(e, e, N_PLACE)``: from the first to the second, in heights."""
    x, y = 4 * features[:, 2 * SHAPE], features[:, 2 * SHAPE + 1]  # `edge_features` keeps a quarter of x
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


class _Stack(NamedTuple):
    """The transformer's arrays, layers stacked, matrices as ``(in, out)``."""

    norm1: Any
    qkv: Any
    qkv_bias: Any
    out: Any
    out_bias: Any
    norm2: Any
    up: Any
    up_bias: Any
    down: Any
    down_bias: Any
    shared: Any
    lie: Any


@njit(cache=True, nogil=True, fastmath=True)
def _linear(x, w, bias, out):  # type: ignore[no-untyped-def]
    """``out = x @ w + bias``; rows by four, so that each row of `w` is read once for all of them.

    Words are small: a threaded matrix product costs more in waking its threads than in arithmetic.
    """
    n, k = x.shape
    m = w.shape[1]
    for i in range(0, n - n % 4, 4):
        for j in range(m):
            out[i, j] = out[i + 1, j] = out[i + 2, j] = out[i + 3, j] = bias[j]
        for p in range(k):
            a, b, c, d = x[i, p], x[i + 1, p], x[i + 2, p], x[i + 3, p]
            for j in range(m):
                v = w[p, j]
                out[i, j] += a * v
                out[i + 1, j] += b * v
                out[i + 2, j] += c * v
                out[i + 3, j] += d * v
    for i in range(n - n % 4, n):
        for j in range(m):
            out[i, j] = bias[j]
        for p in range(k):
            a = x[i, p]
            for j in range(m):
                out[i, j] += a * w[p, j]


@njit(cache=True, nogil=True, fastmath=True)
def _norm(x, weights, out):  # type: ignore[no-untyped-def]
    """Layer norm of each row; `weights` holds gain and bias."""
    n, d = x.shape
    for i in range(n):
        mean, square = np.float32(0), np.float32(0)
        for j in range(d):
            mean += x[i, j]
        mean /= np.float32(d)
        for j in range(d):
            square += (x[i, j] - mean) ** 2
        scale = np.float32(1) / np.sqrt(square / np.float32(d) + np.float32(1e-5))
        for j in range(d):
            out[i, j] = (x[i, j] - mean) * scale * weights[0, j] + weights[1, j]


@njit(cache=True, nogil=True, fastmath=True)
def _attend(qkv, bits, lie, shared, weights, heads, logits, out):  # type: ignore[no-untyped-def]
    n, d = out.shape
    size = d // heads
    scale = np.float32(size**-0.5)
    for i in range(n):
        for h in range(heads):
            top = np.float32(-1e30)
            for j in range(n):
                dot = np.float32(0)
                for k in range(h * size, (h + 1) * size):
                    dot += qkv[i, k] * qkv[j, d + k]
                bias = shared[bits[i, j], h]
                for k in range(N_PLACE):
                    bias += lie[i, j, k] * weights[k, h]
                logits[j] = dot * scale + bias
                top = max(top, logits[j])
            total = np.float32(0)
            for j in range(n):
                logits[j] = np.exp(logits[j] - top)
                total += logits[j]
            for k in range(h * size, (h + 1) * size):
                out[i, k] = 0
            for j in range(n):
                weight = logits[j] / total
                for k in range(h * size, (h + 1) * size):
                    out[i, k] += weight * qkv[j, 2 * d + k]


@njit(cache=True, nogil=True)
def _encode(x, bits, lie, stack, heads, final):  # type: ignore[no-untyped-def]
    """The layers' work on the tokens ``x (n, d)``, in place; returns their normed vectors."""
    n, d = x.shape
    inner = stack.up.shape[2]
    y, z = np.empty((n, d), np.float32), np.empty((n, d), np.float32)
    qkv, up = np.empty((n, 3 * d), np.float32), np.empty((n, inner), np.float32)
    logits = np.empty(n, np.float32)
    for layer in range(len(stack.qkv)):
        _norm(x, stack.norm1[layer], y)
        _linear(y, stack.qkv[layer], stack.qkv_bias[layer], qkv)
        _attend(qkv, bits, lie, stack.shared[layer], stack.lie[layer], heads, logits, y)
        _linear(y, stack.out[layer], stack.out_bias[layer], z)
        x += z
        _norm(x, stack.norm2[layer], y)
        _linear(y, stack.up[layer], stack.up_bias[layer], up)
        for i in range(n):
            for j in range(inner):
                up[i, j] = max(up[i, j], np.float32(0))
        _linear(up, stack.down[layer], stack.down_bias[layer], z)
        x += z
    _norm(x, final, y)
    return y


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
        self.config = config
        w = self.weights = {
            k: np.ascontiguousarray(v.T if _is_matrix(k) else v, np.float32) for k, v in weights.items()
        }
        layers = [f"layers.{k}." for k in range(config.depth)]

        def stacked(name: str) -> F32:
            return np.stack([w[layer + name] for layer in layers])

        def norms(name: str) -> F32:
            return np.stack([np.stack([w[f"{layer}{name}.weight"], w[f"{layer}{name}.bias"]]) for layer in layers])

        self._stack = _Stack(
            norms("norm1"),
            stacked("qkv.weight"),
            stacked("qkv.bias"),
            stacked("out.weight"),
            stacked("out.bias"),
            norms("norm2"),
            stacked("up.weight"),
            stacked("up.bias"),
            stacked("down.weight"),
            stacked("down.bias"),
            stacked("shared"),
            stacked("lie"),
        )
        self._final = np.stack([w["norm.weight"], w["norm.bias"]])

    def _linear(self, name: str, x: F32) -> F32:
        w = self.weights
        out = np.empty((len(x), w[name + ".weight"].shape[1]), np.float32)
        _linear(x, w[name + ".weight"], w[name + ".bias"], out)
        return out

    def encode(self, features: F32, bits: NDArray[np.uint8], lie: F32, text: str) -> F32:
        """Vectors of the edges, ``(e, width)``, from `edge_inputs` and the word's text or ""."""
        w = self.weights
        x = self._linear("enter", (features - w["mean"]) * w["scale"])
        number, place = letters_of(text)
        t = len(number)
        if t:
            x = np.concatenate([w["letter.weight"][number] + self._linear("place", place), x])
            bits = np.pad(bits, ((t, 0), (t, 0)))
            lie = np.pad(lie, ((t, 0), (t, 0), (0, 0)))
        return np.asarray(_encode(x, bits, lie, self._stack, self.config.heads, self._final)[t:])

    def scorer(self, name: str, h: F32, forward: I64) -> Scorer:
        """The scorer ``"go"`` or ``"start"`` (of one network) for edges with vectors `h`."""
        w = self.weights
        half = np.arange(2 * len(h))
        at = 2 * (half // 2) + (half % 2 != forward[half // 2])

        def table(kind: str) -> F32:
            rows = self._linear(f"{name}.{kind}", h).reshape(-1, self.config.hidden)
            return np.concatenate([rows[at], w[f"{name}.no_{kind}"][None]])

        return Scorer(
            (table("source") + w[f"{name}.w1.bias"])[None],
            table("target")[None],
            w[f"{name}.w1.weight"][None],
            w[f"{name}.w2.weight"][None],
            w[f"{name}.w2.bias"][None],
            w[f"{name}.w3.weight"][None, :, 0].copy(),
            w[f"{name}.w3.bias"],
        )


def scorers(guides: Sequence[Guide], lines: Lines, net: Net, text: str | None = None) -> tuple[Scorer, Scorer]:
    """The scorers of moves and of set-downs for one word, with its `text` where known; networks are averaged."""
    features, bits, lie, forward = edge_inputs(lines, net)
    vectors = [guide.encode(features, bits, lie, text or "") for guide in guides]
    out = []
    for name in ("go", "start"):
        single = [guide.scorer(name, h, forward) for guide, h in zip(guides, vectors, strict=True)]
        out.append(single[0] if len(single) == 1 else Scorer(*map(np.concatenate, zip(*single, strict=True))))
    return out[0], out[1]


def _is_matrix(name: str) -> bool:
    """Whether an array is a linear layer's matrix, which torch keeps as ``(out, in)``."""
    return name.endswith(".weight") and "norm" not in name and name != "letter.weight"
