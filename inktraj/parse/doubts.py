"""What leaves it in doubt whether points are what they seem: moves in place of places, another frame, another order.

A reply that is read wrongly must not look like a right one. What is certain takes the points away (the reply is
invalid); what is only likely leaves them, and the reply is incomplete.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from inktraj.parse.characters import codes
from inktraj.parse.lexer import ANEW, KEY, Lexed
from inktraj.parse.points import Asked, between
from inktraj.parse.reading import GOOD, Problem, Reading
from inktraj.parse.result import Parsed
from inktraj.parse.roles import line_before
from inktraj.parse.vocabulary import among, words_in

_RELATIVE = words_in(
    "dx dy deltax deltay xdelta ydelta relx rely delta deltas offset offsets relative dxdy displacement"
)
_MOVES = re.compile(
    r"\bd[xy]\b|Δ\s*[xy]\b|\bdeltas?\b|\boffsets?\b|\bdisplacements?\b"
    r"|\brelative(?! to (?:the )?(?:whole |full |entire |original )?"
    r"(?:image|page|picture|photo|canvas|top|upper|origin|frame|sent))",
    re.IGNORECASE,
)
_DX, _DY = (re.compile(rf"\b(?:d{c}|delta[ _]?{c})\b|Δ\s*{c}\b", re.IGNORECASE) for c in "xy")
_ABSOLUTE = re.compile(r"\b(?:absolute|not relative|no offset)", re.IGNORECASE)
_TRANSFORM = re.compile(
    r"\btransform\s*=|\b(?:ctx|context|canvas|c|g)\.(?:scale|translate|rotate|transform|setTransform)\("
    r"|\[[^\[\]\n]{0,80}\b(?:[xy]?scale|[xy]?shift|rotate)\s*=|\bturtle\b|\bsetworldcoordinates\b"
    r"|^[ \t]*(?:G0?[01] |MOVE\b|PU ?-?\d)",
    re.MULTILINE,
)
_Y_FIRST = re.compile(r"[(\[]\s*y\s*\d?\s*,\s*x\b|\by\s*(?:-|comes |is )first\b|\b(?:row, ?col)", re.IGNORECASE)
_VIEW_BOX = re.compile(r"viewBox\s*=\s*[\"']([^\"'<>]{1,80})")
_CERTAIN = frozenset(("relative", "mention"))
_LOOKED_AT = 2000  # characters of an answer that are looked through for drawing commands
_AROUND = 400  # characters before and behind an answer that are looked through for what is said of it
_NEGATIVE = 1 / 3  # share of points left of or above the image from which on they are rather moves


def doubtful(lexed: Lexed, reading: Reading, result: Parsed, extent: tuple[int, int], asked: Asked) -> list[Problem]:
    """Return what leaves an answer in doubt.

    Parameters
    ----------
    lexed
        What the lexer found.
    reading
        The answer's points.
    result
        What was made of them.
    extent
        Where in the text the answer begins and ends.
    asked
        The frame that was asked for.
    """
    good = reading.take(reading.state == GOOD)
    if not len(good):
        return []
    found = [*_moves(lexed, good, extent), *_frames(good, result, extent, asked, lexed)]
    around = (max(extent[0] - _AROUND, 0), extent[1] + _AROUND)
    if not reading.named and result.frame != "norm1000-yx":
        said = _Y_FIRST.search(lexed.text, around[0], extent[0]) or _Y_FIRST.search(lexed.text, extent[1], around[1])
        if said:
            found.append(_problem("order", "y is said to stand first; it was read as x", said))
    transform = _TRANSFORM.search(lexed.text, around[0], min(extent[0] + _LOOKED_AT, around[1]))
    if transform and reading.dialect != "inksight":
        found.append(_problem("transform", "drawing commands and transforms are not followed", transform))
    bits, _ = between(lexed, reading)
    if (bits[1:] & ANEW).any():
        at = int(reading.span[1:][(bits[1:] & ANEW) != 0][0, 0])
        found.append(Problem("correction", at, "the answer takes back what stands before this point"))
    return found


def _problem(kind: str, why: str, match: re.Match[str]) -> Problem:
    return Problem(kind, match.start(), why, match[0])


def _moves(lexed: Lexed, good: Reading, extent: tuple[int, int]) -> list[Problem]:
    """Tell of points that are moves from the point before."""
    start, end = extent
    inside = (lexed.start >= start) & (lexed.start < end) & (lexed.kind != KEY)
    lists = (lexed.opened >= start) & (lexed.opened < end)
    later = lexed.start[good.ends[1:].ravel()]
    signs = bool(len(later)) and (codes(lexed.text)[later] == ord("+")).mean() >= 0.5
    if signs or (inside & among(lexed.label, _RELATIVE)).any() or (lists & among(lexed.name, _RELATIVE)).any():
        why = "moves from one point to the next are not places; all dropped"
        return [Problem("relative", start, why, "", len(good))]
    text = lexed.text
    heading = line_before(text, start)
    if _DX.search(heading) and _DY.search(heading):
        return [Problem("relative", start, "the columns are said to be moves, not places; all dropped", "", len(good))]
    for lo, hi in ((max(start - _AROUND, 0), start), (end, end + _AROUND)):
        said = _MOVES.search(text, lo, hi)
        if said and not _ABSOLUTE.search(text, lo, hi):
            return [_problem("relative", "the points may be moves, or places in another frame", said)]
    return []


def _frames(good: Reading, result: Parsed, extent: tuple[int, int], asked: Asked, lexed: Lexed) -> list[Problem]:
    """Tell of points that cannot be in the frame they are read in."""
    out = []
    xy = good.xy
    negative = (xy < -1).any(axis=1).mean()
    if len(good) > 2 and negative > _NEGATIVE and not good.placed:
        out.append(Problem("outside", extent[0], f"{negative:.0%} of the points have negative coordinates"))
    whole = bool((xy == np.rint(xy)).all())
    if len(good) > 1 and not whole and asked.frame is not None and result.frame not in ("norm1", "inksight"):
        low = bool((xy.max() <= 1) and (xy.min() >= 0))
        if low or (good.dialect == "molmo" and result.frame != "percent" and xy.max() <= 100):
            unit = "fractions of 1" if low else "per cent, as is usual in this form"
            out.append(Problem("frame", extent[0], f"the points look like {unit}, but were read as {result.frame}"))
    if good.dialect == "svg":
        out += _view_boxes(lexed.text, asked)
    return out


def _view_boxes(text: str, asked: Asked) -> list[Problem]:
    """Tell of drawings whose coordinates are scaled to something else than the frame."""
    sizes = [asked.sent, (1.0, 1.0), (100.0, 100.0), (1000.0, 1000.0), *([asked.original] if asked.original else [])]
    for match in _VIEW_BOX.finditer(text):
        try:
            box = [float(v) for v in match[1].replace(",", " ").split()]
        except ValueError:
            box = []
        if len(box) != 4 or box[:2] != [0, 0] or not any(np.allclose(box[2:], size, atol=1) for size in sizes):
            return [_problem("transform", "a view box that is not the image is not applied", match)]
    return []


def doubted(result: Parsed, doubts: list[Problem]) -> Parsed:
    """Return a result that says what is in doubt; without its points where they are certainly no places."""
    if not doubts or not result.used:
        return result
    dropped = (*result.dropped, *doubts)
    if any(p.kind in _CERTAIN and not p.seen for p in doubts):
        return Parsed("invalid", dialect=result.dialect, dropped=dropped, notes=result.notes)
    return replace(result, status="incomplete" if result.status == "valid" else result.status, dropped=dropped)
