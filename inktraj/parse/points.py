"""From the chosen points of a reading to strokes, and the account of every number."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inktraj.parse import starts
from inktraj.parse.answers import between
from inktraj.parse.dialects import taken
from inktraj.parse.frames import CoordinateFrame, FrameName, Size, guess
from inktraj.parse.lexer import AHEAD, ARGUMENT, BLANK, KEY, LETTERS, NEWLINE, NUMBER, PARTED, STROKE, VALUE, Lexed
from inktraj.parse.reading import CUT, GOOD, MALFORMED, NOT_FINITE, Problem, Reading, listed
from inktraj.parse.repetition import first_pass
from inktraj.parse.result import FloatArray, Parsed, Status
from inktraj.parse.vocabulary import X, Y, among

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_AXES = np.sort(np.concatenate([X, Y]))
_WHY = {
    NOT_FINITE: ("not-finite", "a coordinate that is no finite number; dropped"),
    MALFORMED: ("malformed", "expected x, y or x, y, s; dropped"),
    CUT: ("cut", "not closed, so that its numbers may be cut; dropped"),
}
LOSING = frozenset(
    (
        *("not-finite", "malformed", "odd-count", "curve", "transform", "ellipsis", "repetition", "far"),
        *(
            "relative",
            "order",
            "frame",
            "columns",
            "prose",
            "alternative",
            "correction",
            "outside",
            "mention",
            "box",
            "made-up",
        ),
    )
)
"""Kinds of problems that cost points or parts of strokes, or leave in doubt what the points mean."""

_ELLIPSIS = re.compile(r"\.\.\.+|…")
_OMISSIONS = [re.compile(p) for p in (r"and so (?:on|forth)\b", "remaining points", r"omitted\b")]
_SAID_OF = 300  # characters before and behind an answer in which it may say that points are left out
_SHORTENED = r"(?:truncated|shortened|abbreviated|abridged|omitted|skipped|left out|cut short)"
_OF_POINTS = (
    r"(?:points?|strokes?|rest|remain\w+|others?|lists?|output|answer|coordinates?|data|letters?|path|traj\w+|here)"
)
_LEFT_OUT = re.compile(
    r"\b(?:for (?:the sake of )?(?:brevity|conciseness)|to save space|first (?:few|several) (?:points|strokes))\b"
    rf"|\b{_SHORTENED}\b(?:[^\w.\n]{{1,3}}(?!to\b)\w+){{0,3}}[^\w.\n]{{1,3}}{_OF_POINTS}\b"
    rf"|\b{_SHORTENED} for\b"
    rf"|\b{_OF_POINTS}[^\w.\n]{{1,3}}(?:\w+[^\w.\n]{{1,3}}){{0,3}}(?:{_SHORTENED}|not (?:shown|listed))\b(?! to\b)"
    r"|\b(?:remaining|rest)\b[^.\n]{0,60}\b(?:similar\w*|the same (?:way|pattern|manner)|analogous\w*|likewise)\b"
    r"|\bonly (?:\w+ ){0,3}(?:the )?(?:first|part|some|beginning|initial)\b(?! (?:occurr|instance|one\b|line|match))"
    r"|\bpartial (?:\w+ )?(?:traj|path|trace|list|answer|result|stroke|point|output|coord)|\bpartially traced"
    r"|\b(?:(?:shall|should|can|may) I|me to) (?:continue|go on)\b(?! with (?:the )?(?:next|other) word)"
    r"|\bto be continued"
    r"|\bnur (?:d\w+ )?(?:erste\w*|Teil|Anfang)\b|\b(?:seulement|uniquement) (?:l\w+ )?(?:premi|début|partie)"
    r"|\bs[oó]lo (?:l\w+ )?(?:primer|parte)|部分(?:笔画|筆畫|点|點|坐标)|未完|其余(?:笔画|点|部分)|剩余"
    r"|\bgekürzt|\b(?:weg|aus)gelassen|\bund so weiter|\btronqu|\babrég|\bainsi de suite|\bomitid|\babreviad"
    r"|\bsucesivamente|(?<![未有])(?:省略|略去)|以此类推",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:no|not|nothing|none|never|without|n't|kein\w*|nicht|sans|aucun\w*|sin)\b", re.IGNORECASE)
_BEHIND = re.compile(r"[\s,;()\]}]*(?:\.\.\.|…|and so (?:on|forth)|etc\b|\+\s*\w+\s*[(\[])", re.IGNORECASE)
_HALF_THOUSAND = re.compile(r",\d{0,2}")
_PERCENT = ord("%")
_LIFTED = -1.0  # x and y where models write that the pen is lifted
_BEYOND = 1e7
"""Pixels; coordinates further out are no ink but digits gone astray."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How the caller reads replies: the frame (None to guess it), sizes, and whether the reply was cut."""

    frame: CoordinateFrame | None
    sent: Size
    original: Size | None
    cut: bool
    ended: bool


def finish(lexed: Lexed, reading: Reading, extent: tuple[int, int], asked: Asked, open_end: bool) -> Parsed:
    """Make strokes of a reading's points.

    Parameters
    ----------
    lexed
        What the lexer found.
    reading
        The answer's points, those too that cannot be used.
    extent
        Where in the text the answer begins and ends.
    asked
        Frame, sizes, and how the reply ended.
    open_end
        Whether the answer's form is not closed.
    """
    bits, words = between(lexed, reading)
    bits[0] &= ~STROKE if words[0] else -1  # "Here are the strokes:" is no mark
    reading = _cut_at_end(lexed, reading, asked)
    dropped = [p for p in reading.dropped if extent[0] <= p.position < extent[1]]
    notes = [p for p in reading.notes if extent[0] <= p.position < extent[1]]
    for state, (kind, why) in _WHY.items():
        at = reading.span[reading.state == state]
        dropped += listed(kind, why, at[:, 0], at[:, 1], lexed.text)
    good = np.flatnonzero(reading.state == GOOD)
    bits = np.bitwise_or.reduceat(bits, np.append(0, good[:-1] + 1)) if len(good) else bits
    kept = _starts_carried(reading, good)
    rows = np.column_stack([kept.xy, kept.flag])
    n, period = first_pass(rows, asked.cut or open_end)
    if period:
        start, end = int(kept.span[n, 0]), int(kept.span[-1, 1])
        why = f"the last {period} points again and again; {len(kept) - n} points dropped, the first pass is kept"
        dropped.append(Problem("repetition", start, why, lexed.text[start:end], len(kept) - n))
        kept, bits = kept.take(slice(0, n)), bits[:n]
    kept, bits, parted = _parted_by_lifts(lexed, kept, bits)
    notes += parted
    if not len(kept):
        return Parsed("invalid", dialect=reading.dialect, dropped=tuple(dropped), notes=tuple(notes))
    placed = _placed(kept, asked, int(lexed.follow[kept.ends[0, 0]]))
    if placed.far.any():
        at = kept.span[placed.far]
        dropped += listed("far", f"further than {_BEYOND:g} pixels away; dropped", at[:, 0], at[:, 1], lexed.text)
    stroke = kept.stroke
    if (stroke < 0).all() and (kept.root >= 0).all():  # lists side by side
        stroke = kept.root if (kept.root != kept.root[0]).any() else stroke
    begun = starts.find(kept.flag, kept.flag_name, stroke, bits)
    if begun.doubt:
        dropped.append(Problem("columns", int(kept.span[0, 0]), begun.doubt))
    if begun.unusual:
        notes.append(Problem("starts", int(kept.span[0, 0]), begun.why))
    if placed.note:
        notes.append(Problem("frame", int(kept.span[0, 0]), placed.note))
    cut = any(p.kind == "cut" for p in dropped) or asked.cut or ((open_end or reading.broken) and not asked.ended)
    return _parsed(kept, placed, begun, dropped, notes, asked, cut)


def _parted_by_lifts(lexed: Lexed, kept: Reading, bits: IntArray) -> tuple[Reading, IntArray, list[Problem]]:
    """Take (−1, −1) among points that are all positive for a mark that parts strokes."""
    lifted = (kept.xy == _LIFTED).all(axis=1)
    if not lifted.any() or lifted.all() or (kept.xy[~lifted] < 0).any():
        return kept, bits, []
    at = kept.span[lifted]
    note = listed("pen-up", "(-1, -1) is no point and parts strokes", at[:, 0], at[:, 1], lexed.text)
    return replace(kept, stroke=np.cumsum(lifted)).take(~lifted), bits[~lifted], note


@dataclass(frozen=True, slots=True)
class _Placed:
    """Points in pixels of the sent image, and which frame they came from."""

    points: FloatArray
    far: BoolArray
    name: FrameName | Literal["inksight"]
    why: str
    note: str = ""


def _placed(kept: Reading, asked: Asked, units: int) -> _Placed:
    """Convert points; `units` is the character behind the first number."""
    if kept.placed:
        points, why, note = kept.xy, "given: tokens have a frame of their own", ""
        name: FrameName | Literal["inksight"] = "inksight"
    else:
        frame, why, note = asked.frame, "given", ""
        if frame is None:
            guessed, why = guess(kept.xy, asked.sent, asked.original, kept.dialect)
            frame = CoordinateFrame(guessed)
        if units == _PERCENT and frame.name != "percent":
            frame, note = CoordinateFrame("percent"), "the numbers have percent signs, and are read as per cent"
        if frame.name == "norm1000-yx" and kept.named:
            frame, note = CoordinateFrame("norm1000"), "the reply names x and y, so that they are not swapped"
        with np.errstate(over="ignore", invalid="ignore"):
            points = frame.to_sent(kept.xy, asked.sent, asked.original)
        name = frame.name
    far = np.asarray(~(np.abs(points) <= _BEYOND).all(axis=1))
    return _Placed(points, far, name, why, note)


def _starts_carried(reading: Reading, good: IntArray) -> Reading:
    """Return the points that can be used; the start of one that cannot goes on to the next."""
    kept = reading.take(good)
    lost = np.flatnonzero((reading.state != GOOD) & (reading.flag == 1))
    if not len(lost) or not len(good) or reading.flag[0] != 1:
        return kept
    heir = np.searchsorted(good, lost)
    flag = kept.flag.copy()
    flag[heir[heir < len(good)]] = 1.0
    return replace(kept, flag=flag)


def _cut_at_end(lexed: Lexed, reading: Reading, asked: Asked) -> Reading:
    """Mark the last point as cut if the reply stopped at the token limit right behind its last digit."""
    if not asked.cut or not len(reading):
        return reading
    last = len(reading) - 1
    number = int(max(reading.ends[last, 1], reading.also[last].max()))
    open_number = int(reading.span[last, 1]) <= int(lexed.end[number]) or reading.also[last].max() >= 0
    cut = lexed.may_be_cut(np.array([number]))[0] or (
        reading.dialect == "x145y122" and _HALF_THOUSAND.fullmatch(lexed.text.rstrip(), int(lexed.end[number]))
    )
    if not (cut and open_number):
        return reading
    state, xy = reading.state.copy(), reading.xy.copy()
    state[last], xy[last] = CUT, np.nan
    return replace(reading, state=state, xy=xy)


def _parsed(
    kept: Reading,
    placed: _Placed,
    begun: starts.Starts,
    dropped: list[Problem],
    notes: list[Problem],
    asked: Asked,
    cut: bool,
) -> Parsed:
    near = ~placed.far
    # A stroke whose first point is dropped starts at its next one.
    number = np.cumsum(begun.starts)[near]
    points, spans = placed.points[near], kept.span[near]
    points.setflags(write=False)
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(points)]
    strokes = tuple(points[a:b] for a, b in itertools.pairwise(edges)) if len(points) else ()
    low, high = -1.0, np.array(asked.sent, dtype=np.float64)
    outside = ((points < low - 1e-9) | (points > high + 1e-9)).any(axis=1)
    lost = any(p.kind in LOSING for p in dropped)
    status: Status = "invalid" if not len(points) else "truncated" if cut else "incomplete" if lost else "valid"
    return Parsed(
        status,
        strokes,
        kept.dialect,
        "",
        placed.name if len(points) else "",
        placed.why if len(points) else "",
        begun.known,
        begun.why,
        len(points),
        tuple(dropped),
        tuple(notes),
        (),
        float(outside.mean()) if len(points) else 0.0,
        spans=spans,
    )


def extent_of(lexed: Lexed, reading: Reading, lo: int, hi: int) -> tuple[int, int, bool]:
    """Return where the answer of points lo … hi − 1 begins and ends, and whether a bracket is still open there."""
    root_first, root_last = int(reading.root[lo]), int(reading.root[hi - 1])
    start, end = int(reading.span[lo, 0]), int(reading.span[lo:hi, 1].max())
    open_end = root_last >= 0 and bool(lexed.closed[root_last] < 0)
    if root_first >= 0 and lexed.opened[root_first] < start:
        start = int(lexed.opened[root_first])
    if root_last >= 0 and not open_end:
        end = max(end, int(lexed.closed[root_last]) + 1)
    # What follows without words in between belongs to it too: a point that is cut, an odd number.
    beyond = int(np.searchsorted(lexed.start, end))
    stop = int(reading.span[hi, 0]) if hi < len(reading) else len(lexed.text)
    gap, label = lexed.gap[beyond:], lexed.label[beyond:]
    apart = ((gap & BLANK) != 0) & (((gap & LETTERS) != 0) | ((label != 0) & ~among(label, _AXES)))
    prose = (np.cumsum(lexed.words[beyond:]) > 0) | ((gap & PARTED) != 0) | apart | (lexed.start[beyond:] >= stop)
    further = int(np.argmax(prose)) if prose.any() else len(prose)
    if further:
        end = int(lexed.end[beyond + further - 1])
    return start, max(end, start), open_end


@dataclass(frozen=True, slots=True)
class Account:
    """Numbers of an answer that no returned point has, and which numbers are used and which stand in the answer."""

    dropped: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    used: BoolArray
    inside: BoolArray


def account(
    lexed: Lexed, kept_spans: IntArray, reading: Reading, extent: tuple[int, int], known: Sequence[Problem]
) -> Account:
    """Say what became of all numbers of an answer.

    Parameters
    ----------
    lexed
        What the lexer found.
    kept_spans
        ``(used, 2)``: places of the points that are returned.
    reading
        The answer's points.
    extent
        Where the answer begins and ends.
    known
        Problems that are told of already.
    """
    is_kept = np.isin(reading.span[:, 0], kept_spans[:, 0])
    used = taken(reading.take(is_kept), len(lexed))
    told = np.zeros(len(lexed) + 1, dtype=np.int64)
    for problem in known:
        told[np.searchsorted(lexed.start, problem.position)] += 1
        told[np.searchsorted(lexed.start, problem.position + len(problem.seen))] -= 1
    inside = (lexed.start >= extent[0]) & (lexed.start < extent[1])
    rest = inside & ~used & (np.cumsum(told[:-1]) <= 0)
    dropped: list[Problem] = []
    notes: list[Problem] = []
    kind = _kinds(lexed, reading)
    for code, (name, why, out) in enumerate(
        (
            ("unused", "a number that belongs to no point", notes),
            ("malformed", "a number that makes no point; dropped", dropped),
            ("cut", "not closed, so that it may be cut; dropped", dropped),
        )
    ):
        at = np.flatnonzero(rest & (kind == code))
        if not len(at):
            continue
        first = np.flatnonzero(np.append(True, np.diff(at) != 1))
        last = np.append(first[1:], len(at)) - 1
        out += listed(name, why, lexed.start[at[first]], lexed.end[at[last]], lexed.text, last - first + 1)
    return Account(tuple(dropped), tuple(notes), used, inside)


def _kinds(lexed: Lexed, reading: Reading) -> IntArray:
    """Tell numbers that were no part of a point (0) from those that were (1), and from those that are cut (2)."""
    held = lexed.bracket >= 0
    if len(lexed.opened):
        bracket = np.maximum(lexed.bracket, 0)
        unnamed = held & (lexed.name[bracket] == 0) & (lexed.shape[bracket] != ord("{"))
        remark = (lexed.junk[bracket] > 0) & (lexed.numbers[bracket] < 2)
        is_open = held & (lexed.closed[bracket] < 0)
    else:
        unnamed = remark = is_open = np.zeros(len(lexed), dtype=bool)
    plain = ((lexed.kind == NUMBER) | (lexed.kind == ARGUMENT)) & (lexed.label == 0)
    bare = reading.dialect in ("rows", "svg", "molmo-coords", "inkml")
    ordinal = np.isin(lexed.follow, (ord("."), ord(")"), ord(":"))) & ((lexed.gap & NEWLINE) != 0)
    # "Stroke 2" on a line of its own
    after = np.append(lexed.gap[1:], NEWLINE) & NEWLINE
    ordinal |= ((lexed.gap & AHEAD) != 0) & (after != 0) & ~held
    meant = plain & ~ordinal & ((unnamed & ~remark) | (~held & bare))
    among_lists = held & (lexed.children[np.maximum(lexed.bracket, 0)] > 0) if len(lexed.opened) else held
    meant |= (lexed.kind == VALUE) & (lexed.label == 0) & np.isnan(lexed.value) & among_lists  # null between points
    meant |= (lexed.kind == ARGUMENT) & ~_among_points(lexed, reading)
    axis = among(lexed.label, _AXES) & (lexed.kind != KEY)
    after = lexed.start >= reading.span[-1, 1]
    cut = (plain | axis) & after & (is_open | lexed.may_be_cut(np.arange(len(lexed))))
    return np.where(cut, 2, np.where(meant | axis, 1, 0))


def _among_points(lexed: Lexed, reading: Reading) -> BoolArray:
    """Whether a number is one of two that say again where one of the points lies: ``"start": [145, 122]``."""
    out = np.zeros(len(lexed), dtype=bool)
    at = np.flatnonzero((lexed.kind == ARGUMENT) & (lexed.bracket >= 0))
    at = at[(lexed.numbers[lexed.bracket[at]] == 2) & (lexed.first[lexed.bracket[at]] == at)]
    at = at[at + 1 < len(lexed)]
    given = np.stack([lexed.value[at], lexed.value[at + 1]], axis=1).view(np.complex128).ravel()
    again = at[np.isin(given, np.ascontiguousarray(reading.xy).view(np.complex128).ravel())]
    out[again], out[again + 1] = True, True
    return out


def unusable(lexed: Lexed, readings: list[Reading]) -> tuple[Problem, ...]:
    """Return why points of a reply without an answer cannot be used."""
    out: list[Problem] = []
    for reading in readings:
        out += reading.dropped
        for state, (kind, why) in _WHY.items():
            at = reading.span[reading.state == state]
            out += listed(kind, why, at[:, 0], at[:, 1], lexed.text)
    return tuple(sorted(out, key=lambda p: p.position))


def ellipses(lexed: Lexed, extent: tuple[int, int]) -> list[Problem]:
    """Return a problem for each ``…`` within the answer: points that the model left out."""
    found = [m.span() for m in _ELLIPSIS.finditer(lexed.text, *extent)]
    found += [m.span() for pattern in _OMISSIONS for m in pattern.finditer(lexed.text, *extent)]
    behind = _BEHIND.match(lexed.text, extent[1])
    found += [behind.span()] if behind else []
    for lo, hi in ((max(extent[0] - _SAID_OF, 0), extent[0]), (extent[1], extent[1] + _SAID_OF)):
        said = _LEFT_OUT.search(lexed.text, lo, hi)
        if said and not _NEGATED.search(re.split(r"[.!?\n]", lexed.text[lo : said.end()])[-1]):
            found.append(said.span())
    at = np.array(found, dtype=np.int64).reshape(-1, 2)
    return listed("ellipsis", "points are left out here", at[:, 0], at[:, 1], lexed.text)
