"""InkML in a reply: ``<trace>145 122, 150 130</trace>``.

Each trace is a stroke; pen-up traces are none. Channels other than X and Y are passed over. What a full reader must
know (first and second differences, axes that point up, continued traces) is left to `inktraj.io.inkml`.
"""

from __future__ import annotations

import io
import re

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.parse.lexer import COMMA, NEWLINE, Lexed
from inktraj.parse.reading import CUT, GOOD, Found, Problem, Reading, listed

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_TRACE = re.compile(r"<(?:\w+:)?trace(?![A-Za-z])([^<>]*+)>([^<]*+)(</(?:\w+:)?trace\s*+>)?")
_CHANNEL = re.compile(r"<(?:\w+:)?channel\b[^<>]*?\bname\s*+=\s*+[\"'](\w++)")
_DIFFERENCES = re.compile(r"[\"'!]\s*+[-\d]")
_FULL = re.compile(r"orientation\s*+=\s*+[\"']-|continuation\s*+=|<(?:\w+:)?intermittent")
_LARGEST = 200_000  # characters that the full reader is given


def read(lexed: Lexed, free: BoolArray) -> Reading | None:
    """Read traces.

    Parameters
    ----------
    lexed
        What the lexer found.
    free
        ``(n,)``: numbers that no other dialect has taken.
    """
    text = lexed.text
    pen_up = "penUp" in text
    matches = _TRACE.finditer(text) if "trace" in text else iter(())
    traces = [(*m.span(2), m.end(3), pen_up and "penUp" in m[1]) for m in matches]
    found = np.array(traces, dtype=np.int64).reshape(-1, 4)
    lifted, found = found[found[:, 3] == 1], found[found[:, 3] == 0]
    if not len(found):
        return None
    begin, end, close, _ = found.T
    document = text.find("<ink")
    differences = _DIFFERENCES.search(text, int(begin[0]), int(end[-1]))
    if differences or (document >= 0 and _FULL.search(text)):
        return _by_full_reader(lexed, document, begin, end, int(close[-1]))
    trace = np.searchsorted(begin, lexed.start, side="right") - 1
    at = np.flatnonzero((trace >= 0) & (lexed.start < end[np.maximum(trace, 0)]) & free)
    if not len(at):
        return None
    owner = trace[at]
    new = np.append(True, owner[1:] != owner[:-1])
    first = np.flatnonzero(
        new | ((lexed.gap[at] & (COMMA | (NEWLINE if "," not in text[begin[0] : end[0]] else 0))) != 0)
    )
    count = np.diff(np.append(first, len(at)))
    names = [name.upper() for name in _CHANNEL.findall(text[: begin[0]])] or ["X", "Y"]
    if "X" not in names or "Y" not in names:
        names = ["X", "Y"]
    fine = count >= max(names.index("X"), names.index("Y")) + 1
    head = at[first[fine]]
    last = head + count[fine] - 1
    x, y = head + names.index("X"), head + names.index("Y")
    broken = bool(close[-1] < 0)
    state = np.full(len(head), GOOD)
    if broken and len(head):  # the last number of an open trace may be cut
        state[-1] = CUT if lexed.may_be_cut(last[-1:])[0] else GOOD
    xy = np.stack([lexed.value[x], lexed.value[y]], axis=1)
    made = Found(
        "inkml",
        np.where(state[:, None] == CUT, np.nan, xy),
        np.stack([lexed.start[head], lexed.end[last]], axis=1),
        np.stack([head, last], axis=1),
        state,
        stroke=owner[first[fine]],
        named=True,
        broken=broken,
    )
    bad = first[~fine]
    made.dropped = listed(
        "cut" if broken else "odd-count", "not a whole point; dropped",
        lexed.start[at[bad]], lexed.end[at[bad + count[~fine] - 1]], text,
    )  # fmt: skip
    made.notes = listed("pen-up", "a pen-up trace is no stroke", lifted[:, 0], lifted[:, 1], text)
    return made.reading() if len(head) else None


def _by_full_reader(lexed: Lexed, document: int, begin: IntArray, end: IntArray, close: int) -> Reading | None:
    """Let the InkML reader read the document; each stroke's points then share the place of its trace."""
    from inktraj.io.inkml import read_inkml

    text = lexed.text
    after = text.rfind("</ink>") + 6
    whole = text[document:after]
    if document < 0 and close >= 0:  # traces without a document around them
        document, after = text.rfind("<", 0, int(begin[0])), close
        whole = f"<ink>{text[document:after]}</ink>"
    if after < document or len(whole) > _LARGEST:
        return None
    try:
        records = read_inkml(io.BytesIO(whole.encode("utf-8", "replace")))
    except DataError:
        return None
    strokes = [s for r in records for s in r.ink.strokes]
    if not strokes:
        return None
    first, after = np.searchsorted(lexed.start, [begin[0], end[-1]])
    stroke = np.repeat(np.arange(len(strokes)), [len(s) for s in strokes])
    same = len(strokes) == len(begin)
    span = np.stack([begin, end], axis=1)[stroke] if same else np.tile([begin[0], end[-1]], (len(stroke), 1))
    ends = np.tile([first, after - 1], (len(stroke), 1))
    note = Problem("inkml", int(begin[0]), "differences, upward axes or continued traces: read as a whole document")
    return Found("inkml", np.concatenate(strokes), span, ends, stroke=stroke, named=True, notes=[note]).reading()
