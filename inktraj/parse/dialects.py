"""The dialects by name, and the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from inktraj.parse import inkml, inksight, molmo, named, objects, runs, svg, tuples
from inktraj.parse.lexer import ARGUMENT, KEY, Lexed
from inktraj.parse.reading import GOOD, Reading

BoolArray = NDArray[np.bool_]
Size = tuple[float, float]
_MENTIONED = 2  # so many points may be an example in prose
Reader = Callable[[Lexed, BoolArray, Size], Reading | None]


def _sizeless(read: Callable[[Lexed, BoolArray], Reading | None]) -> Reader:
    return lambda lexed, free, _size: read(lexed, free)


DIALECTS: dict[str, tuple[Reader, str]] = {
    "inksight": (inksight.read, "it has tokens <ink_token_N>"),
    "inkml": (_sizeless(inkml.read), "it has <trace> elements"),
    "molmo-coords": (_sizeless(molmo.read_coords), 'it has coords="…"'),
    "molmo": (_sizeless(molmo.read), "it has <points> or <point> tags"),
    "svg": (_sizeless(svg.read), "it has path data (M … L …)"),
    "columns": (_sizeless(objects.read_columns), "it has lists that are called x and y"),
    "objects": (_sizeless(objects.read), "it has objects with x and y"),
    "tuples": (_sizeless(tuples.read), "it has brackets of two or three numbers"),
    "flat": (_sizeless(runs.read), "it has a list of four or more numbers"),
    "x145y122": (_sizeless(named.read), "it has x and y before numbers"),
    "rows": (_sizeless(runs.read_rows), "it has numbers side by side"),
}
"""Name → reader and what shows the dialect, the plainest first: a number is read by one dialect only."""


_WHOLE = ("inkml", "molmo", "molmo-coords")  # these read all that stands between their first and last number


def read_all(lexed: Lexed, dialect: str, size: Size) -> list[Reading]:
    """Read all that a dialect, or each dialect if it is ``auto``, finds."""
    free = (lexed.kind != KEY) & (lexed.kind != ARGUMENT)
    found: list[Reading] = []
    for name in DIALECTS if dialect == "auto" else [dialect]:
        if name == "rows" and any(_is_formed(reading) for reading in found):
            break  # numbers without any form are an answer only where others are mentions in prose
        reading = DIALECTS[name][0](lexed, free, size)
        if reading is not None and len(reading):
            found.append(reading)
            free &= ~taken(reading, len(lexed))
            if name in _WHOLE:
                free[reading.ends[0, 0] : reading.ends[:, 1].max() + 1] = False
    return found


def _is_formed(reading: Reading) -> bool:
    """Whether a reading has points that are no mere mention of a place: in a list, under names, or with s and some."""
    good = reading.state == GOOD
    if reading.dialect == "x145y122":
        return int(good.sum()) > _MENTIONED
    if reading.dialect != "tuples":
        return bool(good.any())
    with_s = good & formed(reading)
    return bool((with_s & (reading.root >= 0)).any()) or int(with_s.sum()) > _MENTIONED


def formed(reading: Reading) -> BoolArray:
    """Return which points stand in a list or have an s."""
    return np.asarray((reading.root >= 0) | np.isfinite(reading.flag))


def taken(reading: Reading, n: int) -> BoolArray:
    """Return which of n numbers the points of a reading have."""
    edges = np.zeros(n + 1, dtype=np.int64)
    np.add.at(edges, reading.ends[:, 0], 1)
    np.add.at(edges, reading.ends[:, 1] + 1, -1)
    out = np.cumsum(edges[:n]) > 0
    also = reading.also[reading.also >= 0]
    out[also] = True
    return np.asarray(out)
