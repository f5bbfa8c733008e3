"""`parse`: from a reply's text to strokes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inktraj.errors import DataError
from inktraj.parse import pages, thousands
from inktraj.parse.answers import Zone, choose, zones
from inktraj.parse.characters import plain
from inktraj.parse.dialects import DIALECTS, read_all
from inktraj.parse.frames import CoordinateFrame, FrameName, Size, checked_size
from inktraj.parse.lexer import Lexed, lex
from inktraj.parse.points import Asked, account, ellipses, extent_of, finish, is_blank
from inktraj.parse.reading import Problem, Reading
from inktraj.parse.refusals import is_refusal
from inktraj.parse.result import Leftover, Numbers, Parsed

_LENGTH = frozenset(("length", "max_tokens", "max_output_tokens", "model_length", "token_limit", "incomplete"))
_REFUSED = frozenset(("refusal", "content_filter", "safety", "prohibited_content", "blocklist", "recitation", "spii"))
_ENDED = frozenset(("end", "stop", "end_turn", "stop_sequence", "eos", "completed"))
_NOTHING = re.compile(r"```\w*|[\[\]{}(),:;\"'\s]|\b(?:strokes?|points?|ink|path|trajectory|json)\b", re.IGNORECASE)


def parse(
    text: str,
    *,
    frame: CoordinateFrame | FrameName | str = "auto",
    sent_size: Size,
    original_size: Size | None = None,
    stop_reason: str | None = None,
    dialect: str = "auto",
    echo: str = "",
    words: Sequence[str] | None = None,
) -> Parsed:
    """Read a model's reply as ink.

    Parameters
    ----------
    text
        The reply.
    frame
        The frame in which its points are written: a `CoordinateFrame`, its name, or ``"auto"`` to guess it.
    sent_size, original_size
        Width and height in pixels of the image as the model got it, and before it was resized for that.
    stop_reason
        Why the model stopped: ``end``, ``length``, ``refusal``, ``other``, or a provider's word for it; None: unknown.
    dialect
        A name out of `DIALECTS`, or ``"auto"`` to try all.
    echo
        The example in the prompt: points are not taken from where the reply repeats it.
    words
        For replies that hold a whole page: the words that were asked for. Results for each are in `Parsed.words`.

    Returns
    -------
    Parsed
        Any text gives a result; its `status` says what it is worth.

    Raises
    ------
    DataError
        Only for arguments: an unknown frame or dialect, a size that is none.
    """
    if dialect != "auto" and dialect not in DIALECTS:
        raise DataError(f"no dialect is named {dialect!r}, expected auto or one of {', '.join(DIALECTS)}")
    stop = (stop_reason or "").lower()
    asked = Asked(
        _frame(frame, original_size),
        _size(sent_size, "sent_size"),
        None,
        stop in _LENGTH or stop in _REFUSED,
        stop in _ENDED,
    )
    if original_size is not None:
        asked = replace(asked, original=_size(original_size, "original_size"))
    written = plain(text)
    lexed, notes = thousands.join(lex(written))
    excluded = zones(written, plain(echo))
    readings = read_all(lexed, dialect, asked.sent)
    if words is not None:
        return pages.read(lexed, readings, excluded, asked, list(words), lambda: _without(text, lexed, excluded, stop))
    block, others = choose(lexed, readings, excluded)
    if block is None:
        return _without(text, lexed, excluded, stop)
    start, end, open_end = extent_of(lexed, block.reading, block.lo, block.hi, excluded)
    reading = block.reading.take(slice(block.lo, block.hi))
    result = finish(lexed, reading, (start, end), asked, open_end)
    notes = [n for n in notes if start <= n.position < end]
    if others:
        notes.append(
            Problem("earlier-answer", start, f"the last complete answer was taken; {others} points stand elsewhere")
        )
    notes += [Problem(z.kind, z.start, f"{z.kind}: no points are taken from here") for z in excluded]
    result = completed(lexed, reading, result, (start, end), notes, dialect)
    return _settled(result, lexed, reading, block.complete, stop, excluded, text)


def _frame(frame: CoordinateFrame | str, original_size: Size | None) -> CoordinateFrame | None:
    if frame == "auto":
        return None
    made = frame if isinstance(frame, CoordinateFrame) else CoordinateFrame(frame)  # type: ignore[arg-type]
    if made.name == "original-px" and original_size is None:
        raise DataError("the frame original-px needs original_size, the image's size before it was resized")
    return made


def _size(size: Size, name: str) -> Size:
    width, height = checked_size(size, name)
    return float(width), float(height)


def completed(
    lexed: Lexed, reading: Reading, result: Parsed, extent: tuple[int, int], notes: list[Problem], dialect: str
) -> Parsed:
    """Add to a result what became of every number, what was left out, and why its dialect was taken."""
    left_out = ellipses(lexed, extent)
    told = account(lexed, result.spans, reading, extent, [*result.dropped, *result.notes, *left_out])
    dropped = [*result.dropped, *told.dropped, *left_out]
    status = result.status
    if status in ("valid", "incomplete") and any(p.kind == "cut" for p in told.dropped):
        status = "truncated"
    if status == "valid" and (left_out or any(p.kind == "malformed" for p in told.dropped)):
        status = "incomplete"
    n_used = int(told.used.sum())
    n_inside = int((told.inside | told.used).sum())
    why = DIALECTS[result.dialect][1] if dialect == "auto" else "given"
    return replace(
        result,
        status=status,
        dialect_why=why,
        dropped=_ordered(dropped),
        notes=_ordered([*result.notes, *told.notes, *notes]),
        left=_left(lexed.text, [extent]),
        numbers=Numbers(len(lexed), n_used, n_inside - n_used, len(lexed) - n_inside),
    )


def _ordered(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda p: p.position))


def _left(text: str, extents: list[tuple[int, int]]) -> tuple[Leftover, ...]:
    pieces, at = [], 0
    for start, end in [*extents, (len(text), len(text))]:
        piece = text[at:start]
        bare = piece.strip(" \t\r\n`")
        if bare and bare != "json":
            pieces.append(Leftover(at + piece.index(bare), bare))
        at = max(at, end)
    return tuple(pieces)


def _settled(
    result: Parsed, lexed: Lexed, reading: Reading, complete: bool, stop: str, excluded: list[Zone], text: str
) -> Parsed:
    """Correct the status by how the reply ended: a closed answer is whole, even if what follows it was cut."""
    if result.status == "invalid":
        return replace(_without(text, lexed, excluded, stop), dropped=result.dropped, notes=result.notes)
    root = reading.root
    closed = complete and bool((root == root[0]).all()) and root[0] >= 0 and stop in _LENGTH
    if result.status == "truncated" and closed and not any(p.kind in ("cut", "repetition") for p in result.dropped):
        after = lexed.opened[lexed.opened > reading.span[-1, 1]]
        if not len(after):
            lost = any(p.kind in ("not-finite", "malformed", "odd-count", "ellipsis", "far") for p in result.dropped)
            return replace(result, status="incomplete" if lost else "valid")
    if result.status in ("valid", "incomplete") and not complete and stop not in _ENDED:
        return replace(result, status="truncated")
    return result


def _without(text: str, lexed: Lexed, excluded: list[Zone], stop: str) -> Parsed:
    """Return the result of a reply that has no points."""
    problems = [Problem(z.kind, z.start, f"{z.kind}: no points are taken from here") for z in excluded]
    shared = {"left": _left(lexed.text, []), "notes": tuple(problems), "numbers": Numbers(len(lexed), 0, 0, len(lexed))}
    cut = bool(len(lexed.closed) and (lexed.closed < 0).any())
    if stop in _REFUSED:
        status = "refused"
    elif not text.strip():
        status = "truncated" if stop in _LENGTH else "empty"
    elif is_blank(text) or not _NOTHING.sub("", text):
        status = "truncated" if stop in _LENGTH or (cut and stop not in _ENDED) else "empty"
    elif is_refusal(lexed.text):
        status = "refused"
    elif stop in _LENGTH or (
        cut
        and len(lexed)
        and bool(np.any(lexed.closed < 0))
        and stop not in _ENDED
        and not lexed.text.rstrip().endswith((".", "!"))
    ):
        status = "truncated"
    else:
        status = "invalid"
    return Parsed(status, **shared)  # type: ignore[arg-type]
