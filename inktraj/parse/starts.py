"""Where strokes start: by an s at each point, by the lists that hold the points, or by marks between them.

Conventions
-----------
* An s of 1 starts a stroke. Some models write it the other way round. It is read so only where the written values
  leave no doubt, and a note says it:

  - *ends*: 1 at the last point of each stroke (0 0 1 0 0 1; ``pen_up``),
  - *pen down*: 0 where the pen moves to a stroke's first point, else 1 (0 1 1 0 1 1),
  - *lifts*: 1 while the pen is down, 0 at each stroke's last point (1 1 0 1 1 0),
  - *numbers*: the stroke's own number at each of its points (0 0 1 1 2 2).
* Where nothing says where strokes start, all points are one stroke and `known` is False.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.lexer import AHEAD, BLANK, COMMA, DOWN, HERE, NEWLINE, OTHER, PIPE, SEMICOLON, SLASH, STROKE, UP
from inktraj.parse.roles import NUMBERS, counts_up, is_pressure, is_time
from inktraj.parse.vocabulary import labels

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_DOWN = labels("pen", "pendown", "down", "penstate", "state", "pressed", "touch", "p", "status")
_UP = labels("penup", "up", "lift", "end", "endofstroke", "isend", "strokeend", "last", "stop")


@dataclass(frozen=True, slots=True)
class Starts:
    """Which points start a stroke.

    Parameters
    ----------
    starts
        ``(n,)``; the first is always True.
    known
        Whether the reply says so.
    why
        What says it, for people.
    unusual
        Whether s was read in another way than asked for.
    doubt
        Why the third numbers leave it in doubt what the columns mean.
    """

    starts: BoolArray
    known: bool
    why: str
    unusual: bool = False
    doubt: str = ""


def find(flag: FloatArray, name: int, stroke: IntArray, gaps: IntArray) -> Starts:
    """Find the starts of strokes.

    Parameters
    ----------
    flag
        ``(n,)``: the s of each point, NaN where it has none; n ≥ 1.
    name
        The key that s had (`vocabulary.packed`), 0 for none.
    stroke
        ``(n,)``: the list that holds each point, −1 where that says nothing.
    gaps
        ``(n,)``: what stands before each point (bits of the lexer).
    """
    n = len(flag)
    lists = np.append(True, stroke[1:] != stroke[:-1])
    listed = bool((stroke >= 0).all())
    if np.isfinite(flag).any():
        found = _by_flags(flag, name)
        if found is None:
            doubt = "" if name or _means_nothing(flag) else "third numbers that are no s, no pressure and no time"
            if listed:
                why = "one list for each stroke; the third numbers are neither 0 nor 1"
                return Starts(lists, True, why, True, doubt)
            why = "the third numbers are neither 0 nor 1, nor numbers of strokes"
            return Starts(_only(n), n == 1, why, True, doubt)
        if listed and found.known and (lists & ~found.starts).any():
            why = "one list for each stroke; s marks not all of their starts"
            return Starts(lists | (found.starts if not found.unusual else False), True, why, found.starts.sum() > 1)
        return found if found.known or not listed else Starts(lists, True, "one list for each stroke", True)
    if listed:
        return Starts(lists, True, "the form gives each stroke by itself")
    return _by_marks(gaps)


def _means_nothing(flag: FloatArray) -> bool:
    """Whether third numbers are a pressure, a time or the points' own numbers, which say nothing of strokes."""
    given = flag[np.isfinite(flag)]
    return is_pressure(given) or is_time(given) or (len(given) > 2 and counts_up(given))


def _only(n: int) -> BoolArray:
    return np.asarray(np.arange(n) == 0)


def _by_flags(flag: FloatArray, name: int) -> Starts | None:
    """Read s; None where its values mean nothing that is known."""
    given = np.isfinite(flag)
    values = np.where(given, flag, 0.0)
    n = len(values)
    if name and name in NUMBERS and (np.diff(values[given]) >= 0).all() and values.max() > 0 and n > 1:
        number = np.maximum.accumulate(np.where(given, flag, -np.inf))
        return Starts(np.append(True, number[1:] != number[:-1]), True, "the number of its stroke at each point")
    if not ((values == 0) | (values == 1)).all():
        step = np.diff(flag)
        if given.all() and flag[0] in (0, 1) and ((step == 0) | (step == 1)).all() and (step == 0).any():
            starts = np.append(True, step == 1)
            return Starts(starts, True, "the third number is the number of the stroke", True)
        return None
    one = values == 1
    special = _reversed(one, name)
    if special is not None:
        return special
    if not one[0] and not one.any():
        return Starts(_only(n), n == 1, "s is 0 at each point: no start is marked", n > 1)
    if one.all() and n > 4:
        return Starts(_only(n), False, "s is 1 at each point: no start is marked", True)
    starts = one.copy()
    starts[0] = True
    if not one[0]:
        return Starts(starts, True, "s = 1 starts a stroke; the first point lacks it, one is assumed", True)
    if not given.all():
        return Starts(starts, True, "s = 1 starts a stroke; points without an s are taken to go on", True)
    return Starts(starts, True, "s = 1 starts a stroke")


def _reversed(one: BoolArray, name: int) -> Starts | None:
    """Read an s that is written in another sense; None where nothing shows that it is."""
    n, ones = len(one), int(one.sum())
    pairs_of_ones = bool((one[1:] & one[:-1]).any())
    pairs_of_zeros = bool((~one[1:] & ~one[:-1]).any())
    after_one = np.append(True, one[:-1])
    after_zero = np.append(True, ~one[:-1])
    up, down = bool(name) and name in _UP, bool(name) and name in _DOWN
    if up and not one[0]:
        return Starts(after_one, True, f"{'pen up' if ones else 'no pen up'} after a stroke's last point", not ones)
    if n < 2:
        return None
    if down:
        return _pen_states(one, pairs_of_zeros)
    if not one[0] and one[-1] and not pairs_of_ones and pairs_of_zeros:
        return Starts(after_one, True, "s is 1 at each stroke's last point, not at its first", True)
    if not one[0] and one[-1] and not pairs_of_zeros and pairs_of_ones and (n > 3 or ones == n - 1):
        return Starts(~one, True, "s is 0 where the pen moves to a stroke's first point, else 1", True)
    if one[0] and not one[-1] and not pairs_of_zeros and n >= 6 and 3 * ones >= 2 * n and one[:2].all():
        return Starts(after_zero, True, "s is 1 while the pen is down, 0 at each stroke's last point", True)
    zeros = n - ones
    if zeros >= 2 and ones >= 2 and not one[:zeros].any() and one[zeros:].all():
        return Starts(_only(n) | (np.arange(n) == zeros), True, "s is the number of the stroke: 0, then 1", True)
    return None


def _pen_states(one: BoolArray, pairs_of_zeros: bool) -> Starts | None:
    """Read whether the pen is down at each point; None where 1 rather marks starts (1 0 0 1 0 0)."""
    after_zero = np.append(True, ~one[:-1])
    if one.all():
        return Starts(_only(len(one)), True, "the pen is down at each point: one stroke")
    if pairs_of_zeros:
        return None
    if not one[0]:
        return Starts(~one, True, "the pen is up where it moves to a stroke's first point")
    if one[1] and not one[-1]:
        return Starts(after_zero, True, "the pen is up at each stroke's last point")
    if one[1]:
        return Starts(~one | _only(len(one)), True, "the pen is up where it moves to a stroke's first point", True)
    return None


def _by_marks(gaps: IntArray) -> Starts:
    """Find starts by what stands between points, the plainest mark first."""
    n = len(gaps)
    if n == 1:
        return Starts(_only(1), True, "one point")
    between = gaps[1:]
    remarks = _by_remarks(gaps)
    if remarks is not None:
        return remarks
    first = bool(gaps[0] & STROKE)
    stroke = (between & STROKE) != 0
    if (stroke.any() or first) and not (stroke.all() and n > 4):
        return Starts(np.append(True, stroke), True, "a mark before each stroke")
    for bit, called in ((PIPE, "|"), (BLANK, "an empty line"), (SEMICOLON, ";"), (SLASH, "/")):
        found = (between & bit) != 0
        if found.any() and not found.all():
            return Starts(np.append(True, found), True, f"{called} between strokes")
    lines = np.append(True, (between & NEWLINE) != 0)
    counts = np.diff(np.append(np.flatnonzero(lines), n))
    if len(counts) > 1 and (counts > 1).any():
        # Lines of equal length are rather one long line that was wrapped.
        if len(counts) > 2 and counts[0] > 2 and (counts[:-1] == counts[0]).all() and counts[-1] <= counts[0]:
            return Starts(
                _only(n), False, "nothing says where strokes start; lines of equal length are not taken for it"
            )
        return Starts(lines, True, "a line for each stroke", True)
    inline = (between & NEWLINE) == 0
    joined, parted = inline & ((between & (OTHER | COMMA)) == OTHER), inline & ((between & (OTHER | COMMA)) == COMMA)
    doubt = "signs join some of the points and commas part others" if joined.any() and parted.any() else ""
    return Starts(_only(n), False, "nothing says where strokes start", doubt=doubt)


def _by_remarks(gaps: IntArray) -> Starts | None:
    """Find starts by what is said of the pen behind points, on their lines: ``(30, 40) [pen up]``.

    None where no such remarks stand there. A remark behind the last point is not needed: no stroke follows it.
    """
    n, line = len(gaps), (gaps[1:] & NEWLINE) != 0
    here = line & ((gaps[1:] & HERE) != 0)
    up, down = line & ((gaps[1:] & UP) != 0), line & ((gaps[1:] & DOWN) != 0)
    ahead = np.append(True, (gaps[1:] & AHEAD) != 0)
    if n > 2 and (up != down).all() and up.any():  # a column of states
        found = _pen_states(np.append(down, not down[-1]), bool((up[1:] & up[:-1]).any()))
        if found is not None:
            return found
    elif not (here & (up | down)).any():
        return None
    else:
        up, down = up & here, down & here
    starts = ahead | np.append(False, up) | np.append(down, False)
    return Starts(starts, True, "what is said of the pen behind points", True)
