"""Words that mean something between points: what joins an answer, what parts it, and values written as words.

The lexer knows a word by its first eight letters, lower case, without ``_``, ``-`` and digits, as one integer:
`packed`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Words = NDArray[np.uint64]

JOIN, MARK, PART, AGAIN, NAN, TRUE, FALSE, OPAQUE = range(1, 9)
"""What a word means: nothing, a new stroke, another answer, that what stands before is taken back or has an
alternative, no number, 1, 0, or that text follows."""

_MEANINGS = {
    JOIN: """points point coordinates coordinate coords json python text xml svg plaintext txt javascript and then next
        to the of move from end first second third fourth fifth sixth seventh last at px pixels pixel dot
        cross letter word path trace draw line segment part strokes ink in with is as for now a i n on by x y s t p new
        xy xys up down label alt array list data tuple tuples comma lifted lifts continue continues lineto ctx""",
    MARK: "stroke penup pendown lift penlift pen newstroke start begin sos bos eos eop sep trazo trait strich "
    "traço tratto streek strek moveto",
    PART: """final answer attempt retry hmm again output solution draft however let updated adjusted better example
        reconsider refined recheck or rather rough normalized normalised""",
    AGAIN: """wait actually correct corrected correction corrects instead revised revise sorry oops alternatively option
        version variant otherwise redo rechecking""",
    NAN: "nan inf infinity null none undefined na nil",
    TRUE: "true yes down penisdown",
    FALSE: "false no up penisup",
    OPAQUE: """word text label letter letters char character transcription transcript description desc note notes
        comment reason reasoning name alt title target explanation thought thoughts""",
}

_VALUES = {
    TRUE: "down pendown start move moveto begin new newstroke m mousedown penstart touchstart",
    FALSE: "up penup draw line lineto continue middle l drag mousemove penmove end stop touchmove lift",
}


def packed(word: str) -> int:
    """Return a word as the lexer knows it."""
    letters = [c for c in word.lower() if c not in "_-0123456789"][:8]
    return sum(min(ord(c), 255) << (8 * i) for i, c in enumerate(letters))


def table(words_of: dict[int, str], *meanings: int) -> tuple[Words, NDArray[np.int64]]:
    """Return packed words in order, and what each means."""
    found = {packed(word): meaning for meaning in meanings for word in words_of[meaning].split()}
    words = sorted(found)
    return np.array(words, dtype=np.uint64), np.array([found[w] for w in words], dtype=np.int64)


WORDS = table(_MEANINGS, JOIN, MARK, PART, AGAIN, NAN, TRUE, FALSE)
"""Words between points. Of several meanings of a word the later one holds; values count only inside of brackets."""

VALUES = table(_VALUES, TRUE, FALSE)
"""Texts that are values of a key, such as ``"pen": "down"``."""

TEXT_KEYS = table(_MEANINGS, OPAQUE)[0]
"""Keys whose value is text, whatever stands in it."""


def labels(*words: str) -> Words:
    """Return words as the lexer knows them, in order, to look labels up in with `among`."""
    return np.array(sorted({packed(word) for word in words}), dtype=np.uint64)


def words_in(text: str) -> Words:
    """Return the words of a text as `labels` does."""
    return labels(*text.split())


@njit(cache=True, nogil=True)
def among(found: Words, wanted: Words) -> NDArray[np.bool_]:
    """Return which of the words found are among those wanted, which are in order."""
    out = np.zeros(len(found), np.bool_)
    for i in range(len(found)):
        if found[i] != 0:
            k = np.searchsorted(wanted, found[i])
            out[i] = k < len(wanted) and wanted[k] == found[i]
    return out


_AXIS = "{0} {0}s {0}coord {0}coords {0}coordinates {0}pos {0}vals {0}values {0}data {0}list pos{0} coord{0} p{0}"
X, Y = words_in(_AXIS.format("x")), words_in(_AXIS.format("y"))
"""Names of the coordinates."""

UP_WORDS, DOWN_WORDS = (
    labels("up", "penup", "lift", "lifts", "lifted", "penlift", "end", "ends", "eos", "stop", "raise", "raised"),
    labels("down", "pendown", "start", "starts", "begin", "begins", "sos", "touch", "moveto"),
)
"""Words of a remark behind a point: the pen is lifted there, or put down."""
