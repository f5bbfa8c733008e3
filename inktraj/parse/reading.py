"""What a dialect found in a reply: points with their places, before anything is chosen or converted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.lexer import Lexed
from inktraj.parse.vocabulary import among

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

GOOD, NOT_FINITE, MALFORMED, CUT = range(4)
"""Whether a point can be used, and if not, why."""

_SHOWN = 60
MOST = 100
"""So many problems of a kind are listed one by one."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a reply that was not used as it stands, or that was read in a way worth telling.

    Parameters
    ----------
    kind
        What happened, one word: see ``docs/parse.md``.
    position
        Character of the reply at which it begins.
    text
        What was expected and what was done, for people.
    seen
        All that stands there.
    count
        How many such things the text covers; more than one where many follow each other.
    """

    kind: str
    position: int
    text: str
    seen: str = ""
    count: int = 1

    def __str__(self) -> str:
        seen = self.seen if len(self.seen) <= _SHOWN else self.seen[:_SHOWN] + "…"
        return f"at {self.position}: {seen!r}: {self.text}" if seen else f"at {self.position}: {self.text}"


@dataclass(frozen=True, slots=True)
class Reading:
    """Points that one dialect found, in the order of the reply.

    Parameters
    ----------
    dialect
        Its name.
    xy
        ``(n, 2)`` as written; NaN where a point cannot be used.
    state
        ``(n,)``: `GOOD`, or why not.
    span
        ``(n, 2)``: where each point stands in the text.
    ends
        ``(n, 2)``: the first and the last number of each point.
    flag, flag_name
        ``(n,)`` the written s (NaN: none), and the key that it had (0: none).
    stroke
        ``(n,)``: which stroke a point belongs to by the form of the reply, −1 where the form does not say.
    root
        ``(n,)``: the outermost bracket around each point, −1 for none.
    also
        ``(n, 2)``: numbers of each point that stand elsewhere, −1 for none.
    named
        Whether the reply says which number is x and which y.
    placed
        Whether the points are in pixels of the sent image already.
    notes, dropped
        What is worth telling, and what else was lost.
    broken
        Whether the form shows that the reply was cut.
    """

    dialect: str
    xy: FloatArray
    state: IntArray
    span: IntArray
    ends: IntArray
    flag: FloatArray
    flag_name: int
    stroke: IntArray
    root: IntArray
    also: IntArray
    named: bool = False
    placed: bool = False
    notes: tuple[Problem, ...] = ()
    dropped: tuple[Problem, ...] = ()
    broken: bool = False

    def __len__(self) -> int:
        return len(self.xy)

    def take(self, chosen: slice | IntArray | NDArray[np.bool_]) -> Reading:
        """Return the reading of some of its points."""
        return replace(
            self,
            **{
                name: getattr(self, name)[chosen]
                for name in ("xy", "state", "span", "ends", "flag", "stroke", "root", "also")
            },
        )


@dataclass
class Found:
    """Gathers the arrays of a `Reading`; what a dialect leaves out has its usual value."""

    dialect: str
    xy: FloatArray
    span: IntArray
    ends: IntArray
    state: IntArray | None = None
    flag: FloatArray | None = None
    flag_name: int = 0
    stroke: IntArray | None = None
    root: IntArray | None = None
    also: IntArray | None = None
    named: bool = False
    placed: bool = False
    notes: list[Problem] = field(default_factory=list)
    dropped: list[Problem] = field(default_factory=list)
    broken: bool = False

    def reading(self) -> Reading:
        """Return the reading, its points in the order of the text."""
        n = len(self.xy)
        state = np.zeros(n, dtype=np.int64) if self.state is None else self.state
        state = np.where((state == GOOD) & ~np.isfinite(self.xy).all(axis=1), NOT_FINITE, state)
        made = Reading(
            self.dialect,
            self.xy.reshape(n, 2),
            state,
            self.span.reshape(n, 2),
            self.ends.reshape(n, 2),
            np.full(n, np.nan) if self.flag is None else self.flag,
            self.flag_name,
            np.full(n, -1) if self.stroke is None else self.stroke,
            np.full(n, -1) if self.root is None else self.root,
            np.full((n, 2), -1) if self.also is None else self.also,
            self.named,
            self.placed,
            tuple(self.notes),
            tuple(self.dropped),
            self.broken,
        )
        order = np.argsort(made.span[:, 0], kind="stable")
        return made if (order[1:] > order[:-1]).all() else made.take(order)


def roots(lexed: Lexed) -> IntArray:
    """Return the outermost bracket around each bracket (itself, where it is the outermost)."""
    n = len(lexed.parent)
    root = np.where(lexed.parent < 0, np.arange(n), lexed.parent)
    while True:  # each round doubles the way that is gone up
        further = root[root]
        if (further == root).all():
            return root
        root = further


def last_flags(lexed: Lexed, names: NDArray[np.uint64], free: NDArray[np.bool_]) -> tuple[IntArray, int]:
    """Return for each bracket the number in it that bears one of the names (−1: none), and the commonest name."""
    chosen = np.flatnonzero(free & among(lexed.label, names) & (lexed.bracket >= 0))
    out = np.full(len(lexed.opened), -1)
    out[lexed.bracket[chosen]] = chosen
    if not len(chosen):
        return out, 0
    found, counts = np.unique(lexed.label[chosen], return_counts=True)
    return out, int(found[np.argmax(counts)])


def listed(
    kind: str, why: str, start: IntArray, end: IntArray, text: str, count: IntArray | None = None
) -> list[Problem]:
    """Return a problem for each stretch of the text; those beyond the first hundred as one that covers them all."""
    counts = np.ones(len(start), dtype=np.int64) if count is None else count
    out = [
        Problem(kind, a, why, text[a:b], c)
        for a, b, c in zip(start[:MOST].tolist(), end[:MOST].tolist(), counts[:MOST].tolist(), strict=True)
    ]
    if len(start) > MOST:
        a, b = int(start[MOST]), int(end[MOST:].max())
        out.append(
            Problem(kind, a, f"{why} (so were all of this kind from here on)", text[a:b], int(counts[MOST:].sum()))
        )
    return out
