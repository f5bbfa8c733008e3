"""Molmo's points: ``<points x1="12.3" y1="45.6" …>``, ``<point x="12.3" y="45.6">``, ``<points coords="1 1 073 …">``.

The first two are in per cent of the image, ``coords`` (Molmo 2) on 0–1000: an image's index, and for each of its points
the point's own index, x and y; images are parted by a tab, ``:``, ``,`` or ``;``. Leading zeros are decimal. Neither
says where strokes begin: each ``<points>`` tag is taken for one where there are several.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.lexer import COMMA, KEY, OTHER, SEMICOLON, Lexed
from inktraj.parse.reading import CUT, GOOD, Found, Problem, Reading, listed
from inktraj.parse.roles import FLAGS
from inktraj.parse.vocabulary import X, Y, among

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_TAG = re.compile(r"<(?:points?|tracks)\b[^<>]*+")
_COORDS = re.compile(r"\bcoords\s*+=\s*+[\"']?([^\"'<>]*+)([\"']?)")


def read(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read ``x1= y1=`` and ``x= y=``.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    text = lexed.text
    tags = [m.span() for m in _TAG.finditer(text)] if "<point" in text else []
    if not tags:
        return None
    begin, end = np.array(tags).T
    tag = np.searchsorted(begin, lexed.start, side="right") - 1
    inside = (tag >= 0) & (lexed.start < end[np.maximum(tag, 0)]) & free & (lexed.kind != KEY)
    axes = np.flatnonzero(inside & among(lexed.label, np.sort(np.concatenate([X, Y]))))
    if not len(axes):
        return None
    is_x = among(lexed.label[axes], X)
    head = np.flatnonzero(is_x)
    pair = head[np.append(head + 1, 0)[: len(head)] < len(axes)]
    pair = pair[~is_x[pair + 1] & (tag[axes[pair]] == tag[axes[pair + 1]])]
    alone = np.setdiff1d(np.arange(len(axes)), np.concatenate([pair, pair + 1]))
    x, y = axes[pair], axes[pair + 1]
    # A number whose quote is not closed may be cut.
    at_end = lexed.end[y] == len(text)
    beyond = np.minimum(y + 1, len(lexed) - 1)
    flagged = (beyond > y) & inside[beyond] & among(lexed.label[beyond], FLAGS) & (tag[beyond] == tag[y])
    last = np.where(flagged, beyond, y)
    single = np.array([text[b : b + 7] != "<points" for b, _ in tags])
    stroke = np.where(single[tag[x]], -1, tag[x]) if len(np.unique(tag[x])) > 1 else None
    before = x - ((x > 0) & (lexed.kind[x - 1] == KEY))  # the digit of x1= belongs to the point
    found = Found(
        "molmo",
        np.where(at_end[:, None], np.nan, np.stack([lexed.value[x], lexed.value[y]], axis=1)),
        np.stack([lexed.start[before], lexed.end[last]], axis=1),
        np.stack([before, last], axis=1),
        np.where(at_end, CUT, GOOD),
        flag=np.where(flagged, lexed.value[beyond], np.nan),
        flag_name=int(lexed.label[beyond[flagged][0]]) if flagged.any() else 0,
        stroke=stroke,
        named=True,
    )
    at = axes[alone]
    open_end = bool(len(tags) and not text[tags[-1][1] :].startswith(">"))
    kind = "cut" if open_end and len(at) == 1 and at[0] == axes[-1] else "odd-count"
    found.dropped = listed(kind, "an x or y without its partner; dropped", lexed.start[at], lexed.end[at], text)
    found.broken = open_end
    return found.reading() if len(x) else None


def read_coords(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read ``coords="…"``.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    text = lexed.text
    lists = [(m.start(1), m.end(1), bool(m[2])) for m in _COORDS.finditer(text)] if "coords" in text else []
    if not lists:
        return None
    begin, end, closed = np.array(lists, dtype=np.int64).T
    owner = np.searchsorted(begin, lexed.start, side="right") - 1
    at = np.flatnonzero((owner >= 0) & (lexed.start < end[np.maximum(owner, 0)]) & free & (lexed.kind != KEY))
    if not len(at):
        return None
    owner = owner[at]
    new = np.append(True, owner[1:] != owner[:-1])
    parted = (lexed.gap[at] & (COMMA | SEMICOLON | OTHER)) != 0
    tabs = np.array(["\t" in text[a:b] for a, b in _gaps(lexed, at)]) if "\t" in text else np.zeros(len(at), dtype=bool)
    first = np.flatnonzero(new | parted | tabs)
    count = np.diff(np.append(first, len(at)))
    open_end = np.append(np.zeros(len(first) - 1, dtype=bool), closed[owner[-1]] == 0)
    open_end &= lexed.may_be_cut(at[first + count - 1])
    broken = not closed[owner[-1]]
    count = count - open_end
    bare = (count % 3 == 0) & (count > 0)
    bare[-1:] &= not broken
    head = first + ~bare
    number = np.maximum(count - ~bare, 0) // 3
    which = np.repeat(np.arange(len(first)), number)
    place = head[which] + 3 * (np.arange(len(which)) - np.repeat(np.cumsum(number) - number, number))
    if not len(place):
        return None
    x, y = at[place + 1], at[place + 2]
    several = len(np.unique(owner[place])) > 1
    leading = np.append(True, which[1:] != which[:-1]) & ~bare[which]  # an image's index belongs to its first point
    begins = at[place - leading]
    found = Found(
        "molmo-coords",
        np.stack([lexed.value[x], lexed.value[y]], axis=1),
        np.stack([lexed.start[begins], lexed.end[y]], axis=1),
        np.stack([begins, y], axis=1),
        stroke=owner[place] if several else None,
        named=True,
    )
    used = head + 3 * number
    odd = np.flatnonzero((first + count + open_end) > used)
    rest, last = at[used[odd]], at[(first + count + open_end - 1)[odd]]
    found.dropped = listed(
        "cut" if broken else "odd-count", "not a whole index, x, y; dropped",
        lexed.start[rest], lexed.end[last], text,
    )  # fmt: skip
    index = at[first[~bare]]
    found.notes = (
        [Problem("image-index", int(lexed.start[index[0]]), "an image's index stands first")] if len(index) else []
    )
    if bare.any():
        where = int(lexed.start[at[first[bare][0]]])
        found.notes.append(Problem("image-index", where, "no image's index stands first: all are index, x, y"))
    found.broken = broken
    return found.reading()


def _gaps(lexed: Lexed, at: IntArray) -> list[tuple[int, int]]:
    before = np.where(at > 0, lexed.end[np.maximum(at - 1, 0)], 0)
    return list(zip(before.tolist(), lexed.start[at].tolist(), strict=True))
