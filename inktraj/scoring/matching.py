"""Words of two sides → pairs, each in one frame; and what is on one side only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.scoring.sources import Word, Words

Status = Literal["valid", "missing", "invalid", "error"]
STATUSES: tuple[Status, ...] = ("valid", "missing", "invalid", "error")
"""What can become of a word: its prediction is scored; nothing was given for it; what was given cannot be used; or it
could not be scored, which is no fault of the prediction's and never counts as wrong."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A reference and what was predicted for it.

    Parameters
    ----------
    ref
        The reference; its ink is there and not empty.
    pred
        The prediction in the reference's frame; None where the status is not ``"valid"``.
    status, reason
        What became of it, and why.
    """

    ref: Word
    pred: Ink | None
    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Two sides put together.

    Parameters
    ----------
    pairs
        One for each reference with ink, in the references' order.
    unknown
        Names of predictions that no reference has; they are not scored.
    empty
        Names of references without strokes; they are not scored.
    """

    pairs: tuple[Pair, ...]
    unknown: tuple[str, ...]
    empty: tuple[str, ...]


def match(pred: Words, ref: Words) -> Matched:
    """Put each reference and its prediction together, by name.

    Where each side holds one word only, and one of them has no name of its own, they belong together. A prediction's
    file that cannot be read makes all words invalid whose name or page is the file's.

    Raises
    ------
    DataError
        No reference has strokes, or no prediction's name is that of a reference.
    """
    given = dict(pred.words)
    if len(given) == len(ref.words) == 1:
        (own,), (other,) = given.values(), ref.words.values()
        if not (own.named and other.named):
            given = {other.name: own}
    pairs = [
        _pair(word, given.get(name), pred.unread.get(name) or pred.unread.get(word.page))
        for name, word in ref.words.items()
        if word.ink is not None and word.ink.strokes
    ]
    empty = tuple(name for name, word in ref.words.items() if word.ink is None or not word.ink.strokes)
    if not pairs:
        raise DataError(f"{ref.place}: none of its {len(ref.words)} words has strokes; nothing can be compared with it")
    unknown = tuple(name for name in given if name not in ref.words)
    if all(pair.status == "missing" for pair in pairs):
        raise DataError(
            f"no word of {pred.place} ({_some(given or pred.unread)}) has the name of one of {ref.place} "
            f"({_some(ref.words)}); words are matched as PAGE__ID, see inktraj score in the documentation"
        )
    strange = [pair for pair in pairs if pair.status == "invalid" and pair.reason.startswith(_OTHER_FRAME)]
    if strange and not any(pair.status == "valid" for pair in pairs):
        first = strange[0]
        raise DataError(
            f"no word could be scored; of the first, {first.ref.name!r}: {first.reason}; bring both into one frame"
        )
    return Matched(tuple(pairs), unknown, empty)


_OTHER_FRAME = "it is in"


def _pair(ref: Word, pred: Word | None, unread: str | None) -> Pair:
    if pred is None:
        return Pair(ref, None, "missing") if unread is None else Pair(ref, None, "invalid", unread)
    if pred.ink is None:
        return Pair(ref, None, "invalid", pred.reason)
    if not pred.ink.strokes:
        return Pair(ref, None, "invalid", "the ink is empty")
    if pred.frame_known and ref.frame_known and ref.ink is not None and pred.ink.frame != ref.ink.frame:
        # The prediction says itself in which frame it is, and cannot be compared for that: its fault, so it counts.
        return Pair(ref, None, "invalid", f"{_OTHER_FRAME} {pred.ink.frame}, the reference in {ref.ink.frame}")
    if pred.frame_known and ref.frame_known:
        return Pair(ref, pred.ink, "valid")
    assert ref.ink is not None
    if pred.ink.frame.unit != ref.ink.frame.unit:
        reason = f"the prediction is in {pred.ink.frame.unit!r}, the reference in {ref.ink.frame.unit!r}"
        return Pair(ref, None, "error", f"{reason}; bring both into one frame first")
    # One of the files has no frame: its coordinates, as it gives them, are meant in the other's.
    frame = ref.ink.frame if ref.frame_known else pred.ink.frame
    pred_ink, ref_ink = (
        Ink(tuple(s - word.moved for s in ink.strokes), frame, ink.widths)
        for word, ink in ((pred, pred.ink), (ref, ref.ink))
    )
    return Pair(replace(ref, ink=ref_ink), pred_ink, "valid")


def _some(names: Iterable[str]) -> str:
    shown = [repr(name) for name in list(names)[:2]]
    return f"such as {', '.join(shown)}" if shown else "none could be read"
