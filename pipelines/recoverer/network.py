"""The networks in torch, for training; `inktraj.recovery.guide` is the same arithmetic in numba.

The guide is a transformer over the edges of one word's graph, with the letters of the word as further tokens where
they are known. Attention is biased by how two edges hang together and by how they lie to each other.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from inktraj.recovery.features import N_EDGE, N_GO, N_START
from inktraj.recovery.guide import N_LETTER_PLACE, N_LETTERS, N_PLACE, N_SHARED, Config


class Layer(nn.Module):
    """Pre-norm attention with a bias, and a feed-forward network."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        d = config.width
        self.heads = config.heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, config.inner), nn.Linear(config.inner, d)
        self.shared = nn.Parameter(torch.zeros(N_SHARED, config.heads))
        self.lie = nn.Parameter(torch.zeros(N_PLACE, config.heads))

    def forward(self, x: Tensor, bits: Tensor, lie: Tensor, hidden: Tensor, drop: float) -> Tensor:
        """``(b, n, d)``; `hidden` is added to the logits of tokens which are padding."""
        b, n, d = x.shape
        bias = functional.embedding(bits, self.shared) + lie @ self.lie  # b n n heads
        bias = bias.permute(0, 3, 1, 2) + hidden[:, None, None, :]
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        weight = torch.softmax(q @ k.transpose(-1, -2) * (d // self.heads) ** -0.5 + bias, -1)
        y = self.out((weight @ v).transpose(1, 2).reshape(b, n, d))
        x = x + functional.dropout(y, drop, self.training)
        y = self.down(functional.relu(self.up(self.norm2(x))))
        return x + functional.dropout(y, drop, self.training)


class Head(nn.Module):
    """A scorer of choices: features, and what the guide says of the half-edge left and of the one chosen."""

    def __init__(self, d: int, features: int, hidden: int, upper: int) -> None:
        super().__init__()
        self.source, self.target = nn.Linear(d, 2 * hidden), nn.Linear(d, 2 * hidden)
        self.no_source, self.no_target = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.zeros(hidden))
        self.w1, self.w2, self.w3 = nn.Linear(features, hidden), nn.Linear(hidden, upper), nn.Linear(upper, 1)
        self.hidden = hidden

    def forward(
        self, edges: Tensor, forward: Tensor, rows: Tensor, source: Tensor, target: Tensor, drop: float
    ) -> Tensor:
        """Logits of rows; `source` and `target` are half-edges over the whole batch, -1 for none."""

        def of(table: Tensor, none: Tensor, h: Tensor) -> Tensor:
            table = table.view(-1, self.hidden)  # rows 2 i: along the forward side of edge i, 2 i + 1: against it
            at = torch.where(h >= 0, 2 * (h // 2) + (h % 2 != forward[h // 2]).long(), len(table))
            return torch.cat([table, none[None]])[at]

        z = of(self.source(edges), self.no_source, source) + of(self.target(edges), self.no_target, target)
        z = functional.dropout(torch.relu(z + self.w1(rows)), drop, self.training)
        return self.w3(torch.relu(self.w2(z)))[:, 0]


class Network(nn.Module):
    """Guide and both scorers."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        d = config.width
        self.register_buffer("mean", torch.zeros(N_EDGE))
        self.register_buffer("scale", torch.ones(N_EDGE))
        self.enter = nn.Linear(N_EDGE, d)
        self.letter = nn.Embedding(N_LETTERS, d)
        self.place = nn.Linear(N_LETTER_PLACE, d)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(d)
        self.go = Head(d, N_GO, config.hidden, config.upper)
        self.start = Head(d, N_START, config.hidden, config.upper)

    def guide(
        self, features: Tensor, bits: Tensor, lie: Tensor, hidden: Tensor, letters: Tensor, place: Tensor, drop: float
    ) -> Tensor:
        """``(b, n, d)`` of each edge; letters' tokens come first in `bits`, `lie` and `hidden`."""
        x = functional.dropout((features - self.mean) * self.scale, drop / 2, self.training)
        x = self.enter(x)
        n_letters = letters.shape[1]
        if n_letters:
            x = torch.cat([self.letter(letters) + self.place(place), x], 1)
        for layer in self.layers:
            x = layer(x, bits, lie, hidden, drop)
        return self.norm(x[:, n_letters:])
