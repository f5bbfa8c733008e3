"""What leaves it in doubt whether points are what they seem: moves in place of places, another frame, another order.

A reply that is read wrongly must not look like a right one. What is certain takes the points away (the reply is
invalid); what is only likely leaves them, and the reply is incomplete.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inktraj.parse import marks
from inktraj.parse.answers import between
from inktraj.parse.characters import codes
from inktraj.parse.lexer import ANEW, KEY, Lexed
from inktraj.parse.points import Asked
from inktraj.parse.reading import GOOD, Problem, Reading
from inktraj.parse.result import Parsed
from inktraj.parse.roles import line_before
from inktraj.parse.vocabulary import among, words_in

_RELATIVE = words_in(
    "dx dy deltax deltay xdelta ydelta relx rely delta deltas offset offsets relative dxdy displacement"
)
_SCALE = words_in("scale scalex scaley scalefac zoom")
_MOVES = re.compile(
    r"\bd[xy]\b|\bmoves? by\b|Δ\s*[xy]\b"
    r"|(?<![\"'*`])\b(?:deltas?\b(?!\s*:)|offsets\b|offset(?: (?:from|by|of|relative)|\W{0,4}[-\d])|displacements?\b"
    r"|relative\b(?!\s*[:\"'*`])(?! to (?:the )?(?:whole |full |entire |original )?"
    r"(?:image|page|picture|photo|canvas|top|upper|origin|frame|sent)))",
    re.IGNORECASE,
)
_DX, _DY = (re.compile(rf"\b(?:d{c}|delta[ _]?{c})\b|Δ\s*{c}\b", re.IGNORECASE) for c in "xy")
_ABSOLUTE = re.compile(r"\b(?:absolute|not relative|no offset)", re.IGNORECASE)
_TRANSFORM = re.compile(
    r"\btransform\s*=|\b(?:ctx|context|canvas|c|g)\.(?:scale|translate|rotate|transform|setTransform)\("
    r"|\[[^\[\]\n]{0,80}\b(?:[xy]?scale|[xy]?shift|rotate)\s*=|\b(?i:turtle|setworldcoordinates|setxy|setpos)\b"
)
_CURVE = re.compile(r"b[eé]zier|\bcubic\b|\bquadratic\b|\bcontrol[ -]?points?\b|\bsplines?\b", re.IGNORECASE)
_TO = r"\s*(?:-|to|and|\.\.|,)\s*(?:1|1\.0|100|1000)\b"
_NORMALISED = re.compile(
    r"(?<!not )(?<!un)normali[sz]ed"
    rf"|\b(?:between|from|range|scale|grid|in|on)\W{{1,3}}(?:of )?0(?:\.0)?{_TO}"
    rf"|\b0{_TO} (?:range|scale|grid|norm|interval)"
    r"|\bunits?\b\W{1,6}(?:percent|%|frac|mm|cm|inch|relative)"
    r"|\b(?:in|as) (?:mm|cm|millimet|centimet|inches|percent|per cent|fractions)|\bpercentages?\b",
    re.IGNORECASE,
)
_PIXELS = re.compile(r"\bin pixels\b|\bpixel (?:coord|val|space|pos|unit)", re.IGNORECASE)
_UPWARD = re.compile(
    r"\borigin\b[^.\n]{0,30}\b(?:bottom|lower)|\b(?:bottom|lower)[- ]left[^.\n]{0,30}\borigin"
    r"|\by(?:[- ]axis)?\b[^.,;\n]{0,20}\bup(?:wards?)?\b",
    re.IGNORECASE,
)
_SIZE = re.compile(
    r"\b(?:image|img|canvas|picture|photo|page)s?(?:'s)?"
    r"(?:[ _]*(?:is|has|of|size|dimensions?|resolution|the|an?|are|with|shape)\b|[^\w.\n]){0,9}?"
    r"(\d{2,5})\s*(?:x|\u00d7|by|\*|,)\s*(\d{2,5})\b",
    re.IGNORECASE,
)
_MADE_UP = re.compile(
    r"\b(?:can(?:not|'t)|unable to|not able to|don't) (?:\w+ ){0,2}(?:see|view|access|process|have)\b"
    r"[^.\n]{0,30}\b(?:image|picture|photo|page|attach)"
    r"|\bhypothetical|\bfictional|\bfictitious|\bmade[- ]up\b|\bnot based on\b|\billustrative\b|\bplaceholder"
    r"|\bexample (?:trajectory|path|output|of the format|answer|strokes?|points?|coordinates|data)"
    r"|\bcould look like\b|\bmight look like\b|\bdummy\b",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"(?:\b(?:if you(?:'d| would)? (?:like|prefer|need|want|wish)|let me know|(?:would|do) you (?:like|want|need)"
    r"|feel free|happy to|I can also|wenn (?:du|Sie)\b|falls (?:du|Sie)\b|si vous|n'hésitez|si (?:deseas|quieres)"
    r"|si prefieres|se (?:desejar|preferir))|如(?:果|需)|यदि आप|अगर आप|إذا كنت)[^\n]*",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|correction|should (?:be|have been|read)|oops|mistake|typo)\b[^\n]{0,200}?\d", re.IGNORECASE
)
_PIXELS_AFTER = re.compile(r"\b(?:pixels?|px)\b", re.IGNORECASE)
_RECTANGLE = re.compile(r"\brectangle\b", re.IGNORECASE)
_Y_FIRST = re.compile(r"[(\[]\s*y\s*\d?\s*,\s*x\b|\by\s*(?:-|comes |is )first\b|\b(?:row, ?col)", re.IGNORECASE)
_X_FIRST = re.compile(r"[(\[]\s*x\s*\d?\s*,\s*y\b", re.IGNORECASE)
_VIEW_BOX = re.compile(r"viewBox[\s=:\"']{1,4}([-\d., ]{1,80})")
_WIDTH_HEIGHT = re.compile(
    r"<(?:svg|canvas)\b[^<>]{0,300}?\bwidth\s*=\s*[\"']?([\d.]+)[^<>]{0,300}?\bheight\s*=\s*[\"']?([\d.]+)"
)
_WORD = re.compile(r"[\"']word[\"']\s*:\s*[\"']([^\"'\n]{1,60})|^\W{0,4}(word \d+)\W", re.IGNORECASE | re.MULTILINE)
_CERTAIN = frozenset(("relative", "mention", "box"))
_TWO = 2
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
    lexed = replace(lexed, text=_without_offers(lexed.text, extent[1]))
    usable = reading.state == GOOD
    good = reading if usable.all() else reading.take(usable)
    if not len(good):
        return []
    found = [*_moves(lexed, good, extent), *_frames(good, result, extent, asked, lexed)]
    around = (max(extent[0] - _AROUND, 0), extent[1] + _AROUND)
    if not reading.named:
        order = _X_FIRST if result.frame == "norm1000-yx" else _Y_FIRST
        said = order.search(lexed.text, around[0], extent[0]) or order.search(lexed.text, extent[1], around[1])
        if said:
            found.append(_problem("order", "x and y are said to stand in another order than they were read", said))
    found += _said(lexed.text, reading, result, extent, asked)
    found += _corners(lexed.text, good, result, extent)
    transform = _TRANSFORM.search(lexed.text, around[0], min(extent[0] + _LOOKED_AT, around[1]))
    transform = transform or _commands(lexed.text, reading, extent)
    if transform and reading.dialect != "inksight":
        found.append(_problem("transform", "drawing commands and transforms are not followed", transform))
    bits, _ = between(lexed, reading)
    if (bits[1:] & ANEW).any():
        at = int(reading.span[1:][(bits[1:] & ANEW) != 0][0, 0])
        found.append(Problem("correction", at, "the answer takes back what stands before this point"))
    return found


def _without_offers(text: str, end: int) -> str:
    """Return a text in which the sentences behind the answer that offer something else are blank."""
    behind = text[end : end + _AROUND]
    return text[:end] + _OFFER.sub(lambda m: " " * len(m[0]), behind) + text[end + _AROUND :]


def _commands(text: str, reading: Reading, extent: tuple[int, int]) -> re.Match[str] | None:
    """Return a plotter's command that was not followed."""
    around = (max(extent[0] - _AROUND, 0), min(extent[0] + _LOOKED_AT, extent[1] + _AROUND))
    said = marks.COMMANDS.search(text, *around)
    return said if said and marks.by_commands(text, reading, extent) is None else None


def _said(text: str, reading: Reading, result: Parsed, extent: tuple[int, int], asked: Asked) -> list[Problem]:
    """Tell of what the reply says around its answer, and in its first lines, of frames, curves and its own worth."""
    out = []
    start, end = extent
    places = ((max(start - _AROUND, 0), start), (start, min(start + _AROUND, end)), (end, end + _AROUND))
    pixels = result.frame in ("sent-px", "original-px")
    wanted = [
        ("curve", _CURVE, "control points of curves are no points of the ink", reading.dialect != "svg"),
        ("frame", _NORMALISED, "another frame is named than pixels", pixels),
        (
            "frame",
            _PIXELS,
            "pixels are named",
            result.frame.startswith(("norm", "percent")) and asked.frame is not None,
        ),
        ("frame", _UPWARD, "y is said to go up", reading.dialect != "inkml"),
        ("made-up", _MADE_UP, "the reply says that its points are not those of the image", True),
    ]
    for kind, pattern, why, applies in wanted:
        said = next((m for m in (pattern.search(text, *p) for p in places) if m), None) if applies else None
        if said and kind == "frame" and pixels and said[0].endswith("1000") and 1000 in np.rint(asked.sent):
            continue  # pixels too run from 0 to 1000
        if said and not (kind == "frame" and pixels and _PIXELS_AFTER.search(text, said.end(), start)):
            out.append(_problem(kind, why, said))
    for place in places if pixels else ():
        for match in _SIZE.finditer(text, *place):
            size = (float(match[1]), float(match[2]))
            fits = [asked.sent] if result.frame == "sent-px" else [asked.original or asked.sent]
            if not any(np.allclose(size, fit, rtol=0.02) for fit in fits):
                out.append(_problem("frame", "the image is said to have another size", match))
    back = _TAKEN_BACK.search(text, *places[2])
    if back:
        out.append(_problem("correction", "something is taken back behind the answer", back))
    return out


def _corners(text: str, good: Reading, result: Parsed, extent: tuple[int, int]) -> list[Problem]:
    """Tell of an answer that is the corners of boxes."""
    drawn = good.dialect in ("svg", "inkml", "inksight")
    if drawn or result.used > 5 * len(result.strokes) or np.isfinite(good.flag).any():
        return []
    start = max(extent[0] - _AROUND, 0)
    boxes = all(_is_rectangle(stroke) for stroke in result.strokes)
    if boxes or (result.used == _TWO and _RECTANGLE.search(text, start, extent[1] + _AROUND)):
        return [Problem("box", extent[0], "corners of a box are no points of the ink; all dropped")]
    return []


def _is_rectangle(stroke: NDArray[np.float64]) -> bool:
    """Whether four points, or five that are closed, are the corners of an upright rectangle, one after another."""
    if len(stroke) == 5 and (stroke[0] == stroke[4]).all():
        stroke = stroke[:4]
    if len(stroke) != 4:
        return False
    step = np.diff(np.concatenate([stroke, stroke[:1]]), axis=0) != 0
    return bool((step.sum(axis=1) == 1).all() and (step[:-1, 0] != step[1:, 0]).all())


def _problem(kind: str, why: str, match: re.Match[str]) -> Problem:
    return Problem(kind, match.start(), why, match[0])


def _moves(lexed: Lexed, good: Reading, extent: tuple[int, int]) -> list[Problem]:
    """Tell of points that are moves from the point before."""
    start, end = extent
    inside = (lexed.start >= start) & (lexed.start < end) & (lexed.kind != KEY)
    lists = (lexed.opened >= start) & (lexed.opened < end)
    later = lexed.start[good.ends[1:].ravel()]
    signs = bool(len(later)) and (codes(lexed.text)[later] == ord("+")).mean() >= 0.5
    scale = inside & among(lexed.label, _SCALE) & (lexed.value != 1) & np.isfinite(lexed.value)
    if scale.any():
        at = int(np.flatnonzero(scale)[0])
        return [Problem("transform", int(lexed.start[at]), "a scale is named and not applied", "")]
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
    percent = lexed.follow[good.ends[:, 0]] == ord("%")
    if percent.any() and not percent.all():
        out.append(Problem("frame", extent[0], "some of the numbers have percent signs, and some have none"))
    if good.dialect == "svg" or "<canvas" in lexed.text:
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
    size = None if "viewBox" in text else _WIDTH_HEIGHT.search(text)
    if size and not any(np.allclose([float(size[1]), float(size[2])], fit, atol=1) for fit in sizes):
        return [_problem("transform", "a drawing of another size than the image", size)]
    return []


def several_words(text: str, extent: tuple[int, int]) -> list[Problem]:
    """Tell of an answer to the question for one word that holds several.

    Parameters
    ----------
    text
        The reply.
    extent
        Where in the text the answer begins and ends.
    """
    if text.lower().count("word") < _TWO:
        return []
    found = list(_WORD.finditer(text, max(extent[0] - _AROUND, 0), extent[1]))
    if len({(m[1] or m[2]).casefold() for m in found}) < _TWO:
        return []
    return [_problem("alternative", "the answer holds several words, and one was asked for", found[1])]


def doubted(result: Parsed, doubts: list[Problem]) -> Parsed:
    """Return a result that says what is in doubt; without its points where they are certainly no places."""
    if not doubts or not result.used:
        return result
    dropped = (*result.dropped, *doubts)
    if any(p.kind in _CERTAIN and not p.seen for p in doubts):
        return Parsed("invalid", dialect=result.dialect, dropped=dropped, notes=result.notes)
    return replace(result, status="incomplete" if result.status == "valid" else result.status, dropped=dropped)
