"""Replies for a whole page: ``[{"word": "the", "strokes": …}, …]``, ``{"the": …}``, lines ``the: (145,122,1), …``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

import numpy as np

from inktraj.parse.alignment import NONE, UNCLEAR, align, folded
from inktraj.parse.answers import choose
from inktraj.parse.characters import codes
from inktraj.parse.dialects import DIALECTS
from inktraj.parse.doubts import doubted, doubtful
from inktraj.parse.frames import CoordinateFrame, guess
from inktraj.parse.lexer import Lexed
from inktraj.parse.points import Account, Asked, account, ellipses, finish
from inktraj.parse.reading import GOOD, Problem, Reading
from inktraj.parse.result import Leftover, Numbers, Parsed, Status

_KEYED = re.compile(
    r"[\"']?\b(?:word|text|label|token|transcription|target)[\"']?\s*+[:=]\s*+"
    r"(\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|[^\s,{}\[\]\"']++)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')\s*+[:=]")
_BEFORE = re.compile(r"^(?:[\s>*#•\-`]|\d+[.)]\s|word\s+\d+\s*[:.\-–—]|\}|\]|\)|,|;)+", re.IGNORECASE)
_STRUCTURE = frozenset(
    [
        "strokes",
        "stroke",
        "points",
        "point",
        "ink",
        "path",
        "trajectory",
        "coordinates",
        "coords",
        "data",
        "words",
        "d",
        "x",
        "y",
        "s",
        "json",
        "tuples",
    ]
)
_WHY = {
    NONE: ("unasked", "a word that was not asked for"),
    UNCLEAR: ("unclear-word", "a word that may stand for several places on the page, or none"),
}
_MOST = 4000
"""So many gaps between points are looked through for the name of a word."""

_OPENING, _CLOSING = [ord(c) for c in "([{"], [ord(c) for c in ")]}"]
_SILENT = np.zeros(256, dtype=np.bool_)
_SILENT[[ord(c) for c in "0123456789 \t\r\n[](){},;."]] = True
_BEHIND = " \t\r\n:=-–—>→`*_[({\"'"


@dataclass(frozen=True, slots=True)
class _Header:
    """A word that a reply names: where, how, whether it is surely meant as one, and which point comes next."""

    position: int
    word: str
    sure: bool
    point: int


def read(lexed: Lexed, text: str, readings: list[Reading], asked: Asked, words: list[str]) -> Parsed:
    """Read a reply that holds several words.

    Parameters
    ----------
    lexed, readings
        What the lexer and the dialects found.
    text
        The reply.
    asked
        Frame, sizes, and how the reply ended.
    words
        The words that were asked for, in order; a word may occur several times.
    """
    readings = [r for r in readings if (r.state == GOOD).any()]
    if not readings:
        left = (Leftover(0, text),) if text.strip() else ()
        return Parsed("invalid", left=left, numbers=Numbers(len(lexed), 0, 0, len(lexed)))
    reading = max(readings, key=lambda r: int((r.state == GOOD).sum()))
    if asked.frame is None and not reading.placed:
        name, why = guess(reading.xy[reading.state == GOOD], asked.sent, asked.original, reading.dialect)
        asked = replace(asked, frame=CoordinateFrame(name))
    else:
        why = "given"
    headers, notes = _assigned(_headers(lexed.text, reading, words), words)
    results: dict[int, Parsed] = {}
    used, inside = np.zeros(len(lexed), dtype=bool), np.zeros(len(lexed), dtype=bool)
    last_root = int(reading.root[-1])
    open_end = reading.broken or (last_root >= 0 and bool(lexed.closed[last_root] < 0))
    for i, (index, lo) in enumerate(headers):
        hi = headers[i + 1][1] if i + 1 < len(headers) else len(reading)
        last = hi == len(reading)
        part = reading.take(slice(lo, hi))
        start, end = int(part.span[0, 0]), int(part.span[:, 1].max())
        if index < 0:
            kind, why_not = _WHY[index]
            notes.append(Problem(kind, start, f"points of {why_not}; dropped", lexed.text[start:end], hi - lo))
            continue
        extent = (start, len(lexed.text) if last and open_end else end)
        asked_here = replace(asked, cut=asked.cut and last)
        results[index], account_here = _word(lexed, part, extent, asked_here, open_end and last)
        used |= account_here.used
        inside |= account_here.inside
    results = {i: replace(r, frame_why=why if r.used else "") for i, r in results.items()}
    n_used, n_inside = int(used.sum()), int((inside | used).sum())
    numbers = Numbers(len(lexed), n_used, n_inside - n_used, len(lexed) - n_inside)
    return _page(text, reading, results, words, notes, numbers, asked.cut)


def _word(lexed: Lexed, part: Reading, extent: tuple[int, int], asked: Asked, open_end: bool) -> tuple[Parsed, Account]:
    """Return the result of one word, and what became of the numbers where it stands."""
    chosen = choose(lexed, [part])
    doubts, notes = [], []
    if chosen is not None and chosen.others:
        lo, hi = chosen.block.lo, chosen.block.hi
        why = f"the last complete answer for the word was taken; {chosen.others} points stand elsewhere"
        notes.append(Problem("earlier-answer", int(part.span[lo, 0]), why))
        extent = (int(part.span[lo, 0]), extent[1] if hi == len(part) else int(part.span[lo:hi, 1].max()))
        part = part.take(slice(lo, hi))
        if chosen.doubt:
            doubts.append(Problem("alternative", extent[0], chosen.doubt))
    result = finish(lexed, part, extent, asked, open_end)
    result = doubted(result, [*doubts, *doubtful(lexed, part, result, extent, asked)])
    left_out = ellipses(lexed, extent)
    told = account(lexed, result.spans, part, extent, [*result.dropped, *result.notes, *left_out])
    dropped = tuple(sorted([*result.dropped, *told.dropped, *left_out], key=lambda p: p.position))
    status = result.status
    if status in ("valid", "incomplete") and any(p.kind == "cut" for p in told.dropped):
        status = "truncated"
    if status == "valid" and dropped:
        status = "incomplete"
    n_used, n_inside = int((told.used & told.inside).sum()), int(told.inside.sum())
    result = replace(
        result,
        status=status,
        dropped=dropped,
        notes=(*result.notes, *told.notes, *notes),
        dialect_why=DIALECTS[part.dialect][1],
        numbers=Numbers(n_inside, n_used, n_inside - n_used, 0),
    )
    return result, told


def _headers(text: str, reading: Reading, words: list[str]) -> list[_Header]:
    """Find the names of words between points, and before the first one or behind the last."""
    known = {folded(w) for w in words}
    gaps = np.stack([np.append(0, reading.span[:-1, 1]), reading.span[:, 0]], axis=1)
    telling = np.append(0, np.cumsum(~_SILENT[codes(text)]))
    told = np.flatnonzero(telling[np.maximum(gaps[:, 1], gaps[:, 0])] > telling[gaps[:, 0]])
    found = []
    for point in told[:_MOST].tolist():
        start, end = gaps[point].tolist()
        header = _header(text[start:end], start, point, known)
        if header is not None:
            found.append(header)
    if len(told) > _MOST:  # no page has so many words; what follows is nobody's
        found.append(_Header(int(gaps[told[_MOST], 0]), "", True, int(told[_MOST])))
    found = _surely(text, found)
    first = bool(found) and found[0].point == 0
    tail = _header(text[int(reading.span[-1, 1]) :], int(reading.span[-1, 1]), len(reading), known)
    if not first and tail is not None and tail.sure:  # names stand behind their points
        found.append(tail)
        points = [0, *(h.point for h in found[:-1])]
        found = [replace(h, point=p) for h, p in zip(found, points, strict=True)]
    return found


def _surely(text: str, found: list[_Header]) -> list[_Header]:
    """Take names for words too where they stand at the same depth of brackets as words that were asked for."""
    if all(header.sure for header in found):
        return found
    code = codes(text)
    level = np.cumsum(np.isin(code, _OPENING).astype(np.int64) - np.isin(code, _CLOSING))
    levels = {int(level[min(h.position, len(level) - 1)]) for h in found if h.sure and h.word}
    return [replace(h, sure=h.sure or int(level[h.position]) in levels) for h in found]


def _header(gap: str, position: int, point: int, known: set[str]) -> _Header | None:
    keyed = list(_KEYED.finditer(gap))
    if keyed:
        match = keyed[-1]
        return _Header(position + match.start(), _unquoted(match[1]), True, point)
    for match in reversed(list(_QUOTED.finditer(gap))):
        word = _unquoted(match[1])
        if folded(word) in known or word.lower().rstrip("0123456789_ ") not in _STRUCTURE:
            return _Header(position + match.start(), word, folded(word) in known, point)
    lines = [line for line in gap.splitlines() if line.strip(_BEHIND + ",;)]}")]
    for line in reversed(lines[-3:]):
        bare = _BEFORE.sub("", line.strip()).rstrip(_BEHIND).strip(" *`\"'“”")
        for word in (
            bare,
            bare.rpartition(":")[2].strip(" *`\"'"),
            bare.strip(".,;:!?"),
            bare.partition(" (")[0].rstrip(":"),
        ):
            if word and folded(word) in known:
                return _Header(position + gap.index(line), word, True, point)
    return None


def _unquoted(word: str) -> str:
    if word[:1] == '"' and word[-1:] == '"' and len(word) > 1:
        try:
            return str(json.loads(word))
        except ValueError:
            return word[1:-1]
    return word.strip("'\"")


def _assigned(headers: list[_Header], words: list[str]) -> tuple[list[tuple[int, int]], list[Problem]]:
    """Return the asked word of each header (< 0: none) and its first point."""
    known = {folded(w) for w in words}
    meant = [h for h in headers if h.sure or folded(h.word) in known]  # others are names within a word's points
    places = align([h.word for h in meant], words)
    notes = [Problem(_WHY[i][0], h.position, _WHY[i][1], h.word) for h, i in zip(meant, places, strict=True) if i < 0]
    return [(i, h.point) for h, i in zip(meant, places, strict=True)], notes


def _page(
    text: str,
    reading: Reading,
    results: dict[int, Parsed],
    words: list[str],
    notes: list[Problem],
    numbers: Numbers,
    cut: bool,
) -> Parsed:
    """Sum up the words of a page."""
    have = [results[i] for i in sorted(results) if results[i].used]
    missing = [w for i, w in enumerate(words) if i not in results or not results[i].used]
    if missing:
        why = f"{len(missing)} of {len(words)} words are missing: {', '.join(missing[:10])}"
        notes.append(Problem("missing-words", len(text), why, "", len(missing)))
    n = sum(r.used for r in have)
    cut = cut or any(r.status == "truncated" for r in results.values())
    whole = not missing and all(r.status == "valid" for r in have)
    status: Status = "invalid" if not n else "truncated" if cut else "valid" if whole else "incomplete"
    lost = {kind for kind, _ in _WHY.values()}
    dropped = [p for r in results.values() for p in r.dropped] + [p for p in notes if p.kind in lost]
    other = [p for r in results.values() for p in r.notes] + [p for p in notes if p.kind not in lost]
    first = int(reading.span[0, 0])
    head = text[:first].strip(" \t\r\n`[{")
    return Parsed(
        status,
        tuple(s for r in have for s in r.strokes),
        reading.dialect,
        DIALECTS[reading.dialect][1],
        have[0].frame if have else "",
        have[0].frame_why if have else "",
        bool(have) and all(r.starts_known for r in have),
        have[0].starts_why if have else "",
        n,
        tuple(sorted(dropped, key=lambda p: p.position)),
        tuple(sorted(other, key=lambda p: p.position)),
        (Leftover(text.index(head), head),) if head else (),
        sum(r.out_of_range * r.used for r in have) / n if n else 0.0,
        numbers,
        np.concatenate([r.spans for r in have]) if have else np.zeros((0, 2), dtype=np.int64),
        results,
    )
