"""Which points of a reply are its answer: not those of the prompt's example, of thoughts, of earlier attempts.

Points between which only brackets, separators and a few words stand form a *block*. The answer is the last complete
block; a block of few points (numbers mentioned in prose) does not displace one that is five times as long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.lexer import PARTED, STROKE, Lexed
from inktraj.parse.reading import CUT, GOOD, Reading

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_PROSE = 3  # so many words that mean nothing between points part two blocks
_FEW = 0.2  # share of the longest block's points below which a block does not displace it
_ECHOES = 20  # so many repetitions of the example are looked for
_MENTIONED = 4  # so many points without list and s may be a mention in prose

_CLOSING = re.compile(
    r"</(?:think|thinking|reasoning|thought|scratchpad)\s*+>|◁/think▷|<\|end_of_thought\|>", re.IGNORECASE
)
_OPENING = re.compile(
    r"<(?:think|thinking|reasoning|thought|scratchpad)\s*+>|◁think▷|<\|begin_of_thought\|>", re.IGNORECASE
)
_ANSWER = re.compile(r"<answer\s*+>|<\|begin_of_box\|>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Zone:
    """A stretch of the reply that holds no answer: kind (``thinking``, ``echo``), start, end."""

    kind: str
    start: int
    end: int

    @property
    def text(self) -> str:
        """What is told of it."""
        where = "the reply thinks here" if self.kind == "thinking" else "the prompt's example is repeated here"
        return f"{where}: no points are taken"


def without_zones(text: str, excluded: list[Zone]) -> str:
    """Return a text of the same length in which zones are blank, but for a word that parts answers."""
    for zone in excluded:
        blank = "answer".ljust(zone.end - zone.start)[: zone.end - zone.start]
        text = text[: zone.start] + blank + text[zone.end :]
    return text


def zones(text: str, echo: str) -> list[Zone]:
    """Return where a reply thinks, and where it repeats the prompt's example.

    Parameters
    ----------
    text, echo
        The reply and the example as `characters.plain` returns them; "" where there is no example.
    """
    found: list[Zone] = []
    begin = 0
    if "<" not in text and "◁" not in text:
        return [Zone("echo", a, b) for a, b in _echoes(text, echo)]
    closing = [m.end() for m in _CLOSING.finditer(text)]
    if closing:
        begin = closing[-1]
    opening = next((m.start() for m in _OPENING.finditer(text, begin)), -1)
    if opening >= 0:
        found.append(Zone("thinking", opening, len(text)))
    answer = [m.end() for m in _ANSWER.finditer(text, begin, opening if opening >= 0 else len(text))]
    begin = answer[-1] if answer else begin
    if begin:
        found.append(Zone("thinking", 0, begin))
    return found + [Zone("echo", a, b) for a, b in _echoes(text, echo)]


def _echoes(text: str, echo: str) -> list[tuple[int, int]]:
    """Return where the example stands in a reply; white space does not count."""
    wanted = "".join(echo.split())
    if len(wanted) < 8:
        return []
    solid = np.flatnonzero([not c.isspace() for c in text]) if len(text) < 1 << 17 else None
    if solid is None:  # a long reply: as it is written, or not at all
        at = text.find(echo.strip())
        return [(at, at + len(echo.strip()))] if at >= 0 else []
    squeezed = "".join(text.split())
    if len(squeezed) != len(solid):
        return []
    found: list[tuple[int, int]] = []
    at = squeezed.find(wanted)
    while at >= 0 and len(found) < _ECHOES:
        found.append((int(solid[at]), int(solid[at + len(wanted) - 1]) + 1))
        at = squeezed.find(wanted, at + len(wanted))
    return found


@dataclass(frozen=True, slots=True)
class Block:
    """Points lo … hi − 1 of a reading, and whether what holds them is closed."""

    reading: Reading
    lo: int
    hi: int
    complete: bool


def between(lexed: Lexed, reading: Reading) -> tuple[IntArray, IntArray]:
    """Return what stands before each point since the point before: bits of the lexer, and words of prose."""
    bits = np.append(lexed.gap, 0)
    words = np.append(0, np.cumsum(np.append(lexed.words, 0)))
    first = reading.ends[:, 0]
    since = np.append(first[:1], np.maximum(reading.ends[:-1, 1], reading.ends[:-1, 0]) + 1)
    since = np.minimum(since, first)
    ranges = np.stack([since, first + 1], axis=1).ravel()
    return np.bitwise_or.reduceat(bits, np.minimum(ranges, len(bits) - 1))[::2], words[first + 1] - words[since]


def choose(lexed: Lexed, readings: list[Reading]) -> tuple[Block | None, int]:
    """Return the block that is the answer, and how many points that can be used stand in other blocks.

    Of the blocks that are not short beside the longest, it is the last complete one, or the last if none is complete.
    """
    made = [_blocks(lexed, reading) for reading in readings]
    rows = np.concatenate([np.column_stack([np.full(len(b), i), b]) for i, b in enumerate(made)]) if made else None
    if rows is None or not len(rows):
        return None, 0
    good, complete, start, formed = rows[:, 3], rows[:, 4], rows[:, 5], rows[:, 6]
    wanted = good >= max(_FEW * good.max(), 1)
    if (wanted & (formed == 1)).any():  # "The bar begins at (170, 120)" is a mention of a point, no answer
        wanted &= (formed == 1) | (good > _MENTIONED)
    candidates = np.flatnonzero(wanted)
    if not len(candidates):
        return None, 0
    whole = candidates[complete[candidates] == 1]
    pool = whole if len(whole) else candidates
    which, lo, hi = rows[pool[np.argmax(start[pool])], :3].tolist()
    chosen = Block(readings[which], lo, hi, bool(len(whole)))
    return chosen, int(good.sum() - (readings[which].state[lo:hi] == GOOD).sum())


def _blocks(lexed: Lexed, reading: Reading) -> IntArray:
    """Return lo, hi, points that can be used, whether complete, start, whether in a list or with s, of each block."""
    bits, words = between(lexed, reading)
    place, root = reading.span[:, 0], reading.root
    closed = lexed.closed[root] >= 0 if len(lexed.closed) else np.zeros(len(root), dtype=bool)
    one_list = np.append(False, (root[1:] == root[:-1]) & (root[1:] >= 0)) & closed
    # "Stroke 2: …" goes on; "Stroke 1: …" after other points begins anew, if words stand before it.
    last_number = lexed.value[np.maximum(reading.ends[:, 0] - 1, 0)]
    ordinal = np.append(False, reading.ends[1:, 0] - reading.ends[:-1, 1] > 1) & (last_number != 1)
    stroke = (bits & STROKE) != 0
    prose = (((bits & PARTED) != 0) & ~stroke) | ((words >= _PROSE) & ~(stroke & ordinal))
    # A point mentioned in prose has another form than those of the answer.
    form = (root >= 0) * 2 + np.isfinite(reading.flag)
    usable = reading.state == GOOD
    other = np.append(False, (form[1:] != form[:-1]) & usable[1:] & usable[:-1])
    prose |= other & (words > 0) & ~(stroke & ordinal)
    first = np.flatnonzero((prose & ~one_list) | (np.arange(len(reading)) == 0))
    after = np.append(first[1:], len(reading))
    good = np.add.reduceat((reading.state == GOOD).astype(np.int64), first)
    cut = np.add.reduceat((reading.state == CUT).astype(np.int64), first) > 0
    whole = np.where(root[after - 1] >= 0, closed[after - 1], (after < len(reading)) | (not reading.broken))
    loose = reading.dialect in ("tuples", "rows")
    formed = (np.maximum.reduceat(form, first) > 0) | (not loose)
    rows = np.stack([first, after, good, whole & ~cut, place[first], formed], axis=1)
    return rows
