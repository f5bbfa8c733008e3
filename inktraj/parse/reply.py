"""`parse`: from a reply's text to strokes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from inktraj.errors import DataError
from inktraj.parse import marks, mentions, pages, thousands
from inktraj.parse.answers import FEW, choose, mentioned, without_zones, zones
from inktraj.parse.characters import plain
from inktraj.parse.dialects import DIALECTS, read_all
from inktraj.parse.doubts import doubted, doubtful, several_words
from inktraj.parse.frames import CoordinateFrame, FrameName, Size, checked_size
from inktraj.parse.lexer import Lexed, lex
from inktraj.parse.points import LOSING, Asked, account, ellipses, extent_of, finish, unusable
from inktraj.parse.reading import Problem, Reading
from inktraj.parse.refusals import is_refusal
from inktraj.parse.result import Leftover, Numbers, Parsed, Status

_LENGTH = frozenset(("length", "max_tokens", "max_output_tokens", "model_length", "token_limit", "incomplete"))
_REFUSED = frozenset(("refusal", "content_filter", "safety", "prohibited_content", "blocklist", "recitation", "spii"))
_ENDED = frozenset(("end", "stop", "end_turn", "stop_sequence", "eos", "completed"))
_NOTHING = re.compile(
    r"```\w*|[\[\]{}(),:;\"'\s]|\b(?:strokes?|points?|ink|path|trajectory|json|null|none)\b", re.IGNORECASE
)


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
    excluded = zones(written, plain(echo))
    lexed = lex(without_zones(written, excluded))
    hidden = max(len(lex(written)) - len(lexed), 0) if excluded else 0
    lexed, joined = thousands.join(lexed)
    lexed = mentions.marked(marks.marked(lexed))
    readings = read_all(lexed, dialect, asked.sent)
    if words is not None:
        result = pages.read(lexed, text, readings, asked, list(words))
    else:
        result = _one_answer(lexed, text, readings, asked, dialect)
    result = doubted(result, _too_far(result, joined))
    if not result.used:
        result = replace(result, status=_status_without(text, lexed, stop))
    numbers = result.numbers
    return replace(
        result,
        notes=_ordered([*result.notes, *joined, *(Problem(z.kind, z.start, z.text) for z in excluded)]),
        numbers=numbers._replace(found=numbers.found + hidden, left=numbers.left + hidden),
    )


def _one_answer(lexed: Lexed, text: str, readings: list[Reading], asked: Asked, dialect: str) -> Parsed:
    """Read the reply as one ink."""
    chosen = choose(lexed, readings)
    if chosen is None:
        numbers = Numbers(len(lexed), 0, 0, len(lexed))
        return Parsed("invalid", left=_left(text, []), numbers=numbers, dropped=unusable(lexed, readings))
    block = chosen.block
    start, end, open_end = extent_of(lexed, block.reading, block.lo, block.hi)
    reading = marks.told(lexed, block.reading.take(slice(block.lo, block.hi)), (start, end))
    result = finish(lexed, reading, (start, end), asked, open_end)
    doubts = doubtful(lexed, reading, result, (start, end), asked)
    if chosen.doubt:
        doubts.append(Problem("alternative", start, chosen.doubt))
    doubts += several_words(lexed.text, (start, end))
    if result.status != "truncated" and mentioned(lexed, reading):
        few = len(reading) <= FEW
        why = "dropped" if few else "it may be no answer"
        doubts.append(
            Problem("mention" if few else "prose", start, f"mentioned in prose, in no list and without s: {why}")
        )
    result = doubted(result, doubts)
    notes = []
    if chosen.others:
        why = f"the last complete answer was taken; {chosen.others} points stand elsewhere"
        notes.append(Problem("earlier-answer", start, why))
    result = _completed(lexed, reading, result, (start, end), notes, dialect)
    result = replace(result, left=_left(text, [(start, end)]))
    return _settled(result, lexed, reading, block.complete, asked)


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


def _completed(
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
        numbers=Numbers(len(lexed), n_used, n_inside - n_used, len(lexed) - n_inside),
    )


def _ordered(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda p: p.position))


def _left(text: str, extents: list[tuple[int, int]]) -> tuple[Leftover, ...]:
    pieces, at = [], 0
    for start, end in [*extents, (len(text), len(text))]:
        piece = text[at:start]
        bare = piece.strip(" \t\r\n`")
        if bare:
            pieces.append(Leftover(at + piece.index(bare), bare))
        at = max(at, end)
    return tuple(pieces)


def _settled(result: Parsed, lexed: Lexed, reading: Reading, complete: bool, asked: Asked) -> Parsed:
    """Correct the status by how the reply ended: a closed answer is whole, even if what follows it was cut."""
    root = reading.root
    closed = asked.cut and complete and root[0] >= 0 and bool((root == root[0]).all())
    kinds = {p.kind for p in result.dropped}
    if result.status == "truncated" and closed and not kinds & {"cut", "repetition"}:
        later = bool((lexed.opened > reading.span[-1, 1]).any())
        return result if later else replace(result, status="incomplete" if kinds & LOSING else "valid")
    if result.status in ("valid", "incomplete") and not complete and not asked.ended:
        return replace(result, status="truncated")
    return result


def _too_far(result: Parsed, joined: list[Problem]) -> list[Problem]:
    """Tell of thousands whose commas may rather part numbers, as the points lie outside of the image."""
    if not result.out_of_range:
        return []
    why = "a comma was read as a thousands separator, and points lie outside of the image"
    return [Problem("columns", p.position, why) for p in joined if "thousands" in p.text]


def _status_without(text: str, lexed: Lexed, stop: str) -> Status:
    """Return the status of a reply without points."""
    unclosed = bool((lexed.closed < 0).any()) and stop not in _ENDED
    if stop in _REFUSED:
        return "refused"
    if not text.strip():
        return "truncated" if stop in _LENGTH else "empty"
    if not _NOTHING.sub("", text):
        return "truncated" if stop in _LENGTH or unclosed else "empty"
    if is_refusal(lexed.text):
        return "refused"
    return "truncated" if stop in _LENGTH or (unclosed and len(lexed)) else "invalid"
