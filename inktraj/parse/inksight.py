"""InkSight's tokens: ``<ink_token_450><ink_token_12><ink_token_300>…`` (see `inktraj.codec`).

Tokens stand in a square around the image as sent, so that their frame is their own, whichever the caller names.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from inktraj.codec import SIDE, START, Square
from inktraj.ink import Frame
from inktraj.parse.lexer import Lexed
from inktraj.parse.reading import Found, Problem, Reading, listed

BoolArray = NDArray[np.bool_]

_TOKEN = re.compile(r"<ink_token_(\d++)>")


def read(lexed: Lexed, free: BoolArray, size: tuple[float, float]) -> Reading | None:
    """Read tokens.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    size
        Width and height of the image as sent.
    """
    text = lexed.text
    if "<ink_token_" not in text:
        return None
    begin = np.array([m.span() for m in _TOKEN.finditer(text)], dtype=np.int64).reshape(-1, 2)
    if not len(begin):
        return None
    at = np.searchsorted(lexed.start, begin[:, 0])
    value = lexed.value[np.minimum(at, len(lexed) - 1)]
    is_x, is_y, is_start = value <= SIDE, (value > SIDE) & (value < START), value == START
    heads = np.flatnonzero(is_x[:-1] & is_y[1:])
    square = Square.around(Frame(*size))
    offset = (square.x_offset, square.y_offset)
    xy = (np.stack([value[heads], value[heads + 1] - SIDE - 1], axis=1) - offset) / square.scale
    stroke = np.cumsum(is_start)[heads]
    used = np.zeros(len(value), dtype=bool)
    used[heads], used[heads + 1] = True, True
    # A start counts if a point follows it before the next start.
    starts = np.flatnonzero(is_start)
    counts = np.bincount(np.cumsum(is_start)[heads], minlength=len(starts) + 1)
    used[starts[counts[1:] > 0]] = True
    # A start belongs to the point behind it.
    head = heads - np.append(False, is_start[:-1])[heads]
    found = Found(
        "inksight",
        xy,
        np.stack([begin[head, 0], begin[heads + 1, 1]], axis=1),
        np.stack([at[head], at[heads + 1]], axis=1),
        stroke=stroke if len(starts) else None,
        named=True,
        placed=True,
    )
    if counts[0] and len(starts):
        position = int(begin[heads[0], 0])
        found.notes.append(Problem("missing-start", position, "no stroke start before the first point; one is assumed"))
    lost = np.flatnonzero(~used)
    last = bool(len(lost)) and lost[-1] == len(value) - 1
    tail = text[begin[-1, 1] :].strip()
    found.broken = bool(last or tail.startswith("<"))
    found.dropped = listed(
        "cut" if last and len(lost) == 1 else "odd-count", "not in the order start, x, y, x, y …; dropped",
        begin[lost, 0], begin[lost, 1], text,
    )  # fmt: skip
    return found.reading() if len(heads) else None
