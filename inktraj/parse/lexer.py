"""One pass over a reply: its numbers, each with what stands before it, and its brackets.

What the lexer finds is all that the dialects of numbers need, so that each text is walked once, in linear time,
whatever it holds. It judges nothing: a bracket need not be closed, and a number may mean anything.

Conventions
-----------
* Positions count characters of the reply. A number's sign belongs to it, except after a letter, digit or bracket.
* A number's *label* is the word that names it: glued (``x145``), or before ``:`` or ``=`` (``"x": 145``). Digits of a
  key (``x1="145"``, ``"stroke2": …``) are no numbers of their own but have the kind `KEY`; so have digits in
  comments and in values that are text (``"word": "1914"``).
* Inside of brackets ``NaN``, ``null`` and infinities are numbers without a value, ``true`` and ``false`` are 1 and 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.parse.characters import codes
from inktraj.parse.vocabulary import JOIN, MARK, NAN, PART, TEXT_KEYS, TRUE, WORDS, packed

IntArray = NDArray[np.int64]
U8 = NDArray[np.uint8]

NUMBER, KEY, VALUE = 0, 1, 2
"""Kinds of numbers: written in digits, digits that name something, and a word that stands for a number."""

COMMA, SEMICOLON, PIPE, NEWLINE, BLANK, BRACKET, STROKE, FENCE, OTHER, PARTED, SPACE, SLASH = (
    1 << i for i in range(12)
)
"""What may stand between a number and the one before it, as bits."""

_LONGEST_STRING = 200  # characters of a quoted text that is looked through for its end
_S, _X, _Y, _SX = packed("s"), packed("x"), packed("y"), packed("sx")
_SMALL = 1 << 62


@dataclass(frozen=True, slots=True)
class Lexed:
    """Numbers and brackets of a text, in its order.

    Parameters
    ----------
    text
        The text, as `characters.plain` returns it.
    start, end, value, kind, bracket, label, gap, words, follow
        Of each number: where it stands, its value (NaN where it has none), its kind, the innermost bracket that is
        open there (−1: none), its label (`vocabulary.packed`, 0: none), what stands before it since the last number
        (bits), how many words of prose do, and the next character that is no space (0: none).
    opened, closed, parent, shape, name, numbers, first, children, junk, depth
        Of each bracket: where it opens and closes (−1: nowhere), the one around it (−1: none), its character, its
        label, how many numbers stand directly in it and which is the first, how many brackets, how much else that is
        neither a key nor a separator, and how many ``[`` or ``(`` there are down to it.
    """

    text: str
    start: IntArray
    end: IntArray
    value: NDArray[np.float64]
    kind: IntArray
    bracket: IntArray
    label: NDArray[np.uint64]
    gap: IntArray
    words: IntArray
    follow: U8
    opened: IntArray
    closed: IntArray
    parent: IntArray
    shape: U8
    name: NDArray[np.uint64]
    numbers: IntArray
    first: IntArray
    children: IntArray
    junk: IntArray
    depth: IntArray

    def __len__(self) -> int:
        return len(self.start)

    def may_be_cut(self, at: IntArray) -> NDArray[np.bool_]:
        """Return whether numbers (by index) end with the text, so that their last digits may be missing."""
        rest = len(self.text.rstrip(" \t\r\n")) if len(self) else 0
        rest -= len(self.text[:rest]) - len(self.text[:rest].rstrip(".eE+-_"))
        return np.asarray(self.end[at] >= rest)

    def within(self, start: int, end: int) -> slice:
        """Return the numbers that stand in text[start:end]."""
        return slice(int(np.searchsorted(self.start, start)), int(np.searchsorted(self.start, end)))


def lex(text: str) -> Lexed:
    """Find the numbers and brackets of a text.

    Parameters
    ----------
    text
        As `characters.plain` returns it.
    """
    found = _lex(codes(text), WORDS[0], WORDS[1], TEXT_KEYS)
    numbers, brackets, hard = found[:9], found[9:19], found[19]
    start, end, value = numbers[0], numbers[1], numbers[2]
    for i in hard:  # more digits than a float holds exactly: Python rounds them rightly
        value[i] = float(text[start[i] : end[i]].replace("_", "").replace("'", ""))
    return Lexed(text, *numbers, *brackets)


@njit(cache=True, nogil=True)
def _meaning(word: np.uint64, words: NDArray[np.uint64], meanings: IntArray) -> int:
    i = np.searchsorted(words, word)
    return meanings[i] if i < len(words) and words[i] == word else 0


@njit(cache=True, nogil=True)
def _is_letter(c: int) -> bool:
    return 65 <= c <= 90 or 97 <= c <= 122 or c >= 192 or c == 95


@njit(cache=True, nogil=True)
def _is_digit(c: int) -> bool:
    return 48 <= c <= 57


@njit(cache=True, nogil=True)
def _is_space(c: int) -> bool:
    return c == 32 or c == 9 or c == 13 or c == 160


@njit(cache=True, nogil=True)
def _number_end(b: U8, at: int) -> tuple[int, float, bool]:
    """Return the end of the number at `at`, its value, and whether that value is not exact."""
    n = len(b)
    i = at
    negative = b[i] == 45
    if b[i] == 45 or b[i] == 43:
        i += 1
    mantissa, digits, power, long = 0, 0, 0, False
    fraction = False
    while i < n:
        c = b[i]
        if _is_digit(c):
            if digits < 17:
                mantissa = mantissa * 10 + (c - 48)
                if mantissa > 0:
                    digits += 1
                if fraction:
                    power -= 1
            else:
                long = True
        elif c == 46 and not fraction and i + 1 < n and _is_digit(b[i + 1]):
            fraction = True
        elif (c == 95 and i + 1 < n and _is_digit(b[i + 1]) and _is_digit(b[i - 1])) or (c == 39 and not fraction and _is_digit(b[i - 1]) and _three_digits(b, i + 1)):
            pass
        else:
            break
        i += 1
    if i < n and (b[i] == 101 or b[i] == 69):
        j = i + 1
        if j < n and (b[j] == 45 or b[j] == 43):
            j += 1
        if j < n and _is_digit(b[j]):
            exponent = 0
            k = j
            while k < n and _is_digit(b[k]):
                exponent = min(exponent * 10 + (b[k] - 48), 99999)
                k += 1
            if not (k < n and _is_letter(b[k])):
                power += -exponent if b[j - 1] == 45 else exponent
                i = k
    long = long or digits > 15
    value = float(mantissa)
    if not long:
        value = value * 10.0**power if power >= 0 else value / 10.0 ** (-power)
    return i, -value if negative else value, long


@njit(cache=True, nogil=True)
def _three_digits(b: U8, at: int) -> bool:
    """Whether exactly three digits stand at `at`, and no closing quote behind them."""
    n = len(b)
    if at + 3 > n:
        return False
    for i in range(at, at + 3):
        if not _is_digit(b[i]):
            return False
    return at + 3 == n or not (_is_digit(b[at + 3]) or b[at + 3] == 39)


@njit(cache=True, nogil=True)
def _string_end(b: U8, at: int) -> tuple[int, bool]:
    """Return where the text quoted at `at` ends (−1: not within its line or the bound), and whether it has digits."""
    n = len(b)
    digits = False
    i = at + 1
    last = min(n, at + _LONGEST_STRING)
    while i < last:
        c = b[i]
        if c == b[at]:
            return i, digits
        if c == 10:
            return -1, digits
        if _is_digit(c):
            digits = True
        i += 2 if c == 92 else 1
    return -1, digits


@njit(cache=True, nogil=True)
def _is_key_end(b: U8, at: int) -> bool:
    """Whether what stands before `at` names something: ``=``, ``:`` or a quote and ``:`` follow."""
    n = len(b)
    i = at
    if i < n and (b[i] == 34 or b[i] == 39):
        i += 1
        while i < n and i < at + 4 and _is_space(b[i]):
            i += 1
        return i < n and b[i] == 58
    return i < n and (b[i] == 61 or b[i] == 58)


@njit(cache=True, nogil=True)
def _lex(b, words, meanings, text_keys):  # type: ignore[no-untyped-def]
    """Walk the text once. The state is the bracket stack, the word before (for labels), and the gap so far."""
    n = len(b)
    most, most_brackets = 1, 1
    previous = 32
    for i in range(n):
        c = b[i]
        if _is_digit(c):
            most += not _is_digit(previous)
        elif _is_letter(c):
            most += not _is_letter(previous)
        elif c == 40 or c == 91 or c == 123:
            most_brackets += 1
        elif c == 34 or c == 39:
            most += 1
        previous = c
    start, end = np.empty(most, np.int64), np.empty(most, np.int64)
    value = np.empty(most, np.float64)
    kind, bracket = np.empty(most, np.int64), np.empty(most, np.int64)
    label = np.empty(most, np.uint64)
    gap, prose = np.empty(most, np.int64), np.empty(most, np.int64)
    follow = np.zeros(most, np.uint8)
    hard = np.empty(most, np.int64)
    opened, closed = np.empty(most_brackets, np.int64), np.full(most_brackets, -1)
    parent = np.empty(most_brackets, np.int64)
    shape = np.empty(most_brackets, np.uint8)
    name = np.empty(most_brackets, np.uint64)
    numbers, first = np.zeros(most_brackets, np.int64), np.full(most_brackets, -1)
    children, junk = np.zeros(most_brackets, np.int64), np.zeros(most_brackets, np.int64)
    depth = np.zeros(most_brackets, np.int64)
    count, n_brackets, n_hard, top = 0, 0, 0, -1

    none = np.uint64(0)
    word = none  # the last word, while it may still be a label
    colon = False  # ":" or "=" came after it
    word_end = -1
    bits, gap_words = 0, 0
    solid = 10  # the last character that is no space
    newlines = 0
    waits = False  # the last number waits for the character that follows it
    comment = False
    i = 0
    while i < n:
        c = b[i]
        if _is_space(c):
            bits |= SPACE
            i += 1
            continue
        if waits:
            follow[count - 1] = c
            waits = False
        if c == 10:
            newlines += 1
            bits |= NEWLINE
            if newlines > 1:
                bits |= BLANK
            comment = False
            if not colon:
                word = none
            i += 1
            solid = 10 if solid != 44 else solid
            continue
        newlines = 0
        signed = (
            (c == 45 or c == 43)
            and i + 1 < n
            and (_is_digit(b[i + 1]) or (b[i + 1] == 46 and i + 2 < n and _is_digit(b[i + 2])))
        )
        if signed and i > 0:
            p = b[i - 1]
            if _is_digit(p) or p == 41 or p == 93 or p == 46:
                signed = False
            elif _is_letter(p):
                signed = word_end == i and (word == _X or word == _Y)
        if _is_digit(c) or signed or (c == 46 and i + 1 < n and _is_digit(b[i + 1]) and not (i > 0 and b[i - 1] == 46)):
            j, number, inexact = _number_end(b, i)
            glued = word_end == i and word != none
            if (glued and _is_key_end(b, j) and not (word == _S and b[j] == 58)) or comment:
                kind[count] = KEY
            else:
                kind[count] = NUMBER
            start[count], end[count], value[count] = i, j, number
            if inexact:
                hard[n_hard] = count
                n_hard += 1
            named = word if (glued or colon) else none
            if not named and word != none and (word == _X or word == _Y):
                named = word
            if named == _SX:
                named = np.uint64(_X)
                bits |= STROKE
            label[count], bracket[count] = named, top
            gap[count], prose[count] = bits, gap_words
            if kind[count] == KEY:
                if glued and not comment:
                    word_end = -1  # the word stays, and names what comes behind the colon
                if top >= 0 and not glued:
                    junk[top] += not comment
            else:
                if top >= 0:
                    if numbers[top] == 0:
                        first[top] = count
                    elif (bits & OTHER) and named == none:
                        junk[top] += 1
                    numbers[top] += 1
                word, colon = none, False
            count += 1
            bits, gap_words = 0, 0
            waits = True
            solid = 48
            i = j
            continue
        if _is_letter(c):
            j = i
            new = none
            length = 0
            while j < n and _is_letter(b[j]):
                d = b[j]
                if d != 95:
                    if length < 8:
                        new |= np.uint64(d + 32 if 65 <= d <= 90 else d) << np.uint64(8 * length)
                    length += 1
                j += 1
            if comment:
                if _meaning(new, words, meanings) == MARK:
                    bits |= STROKE
                solid = 97
                i = j
                continue
            meaning = _meaning(new, words, meanings)
            key = _is_key_end(b, j) or (j < n and _is_digit(b[j]))
            valued = (
                meaning >= NAN and top >= 0 and not key and (colon or numbers[top] > 0 or solid == 91 or solid == 40)
            )
            if valued and (i == 0 or not _is_digit(b[i - 1])):
                start[count], end[count] = i - (i > 0 and (b[i - 1] == 45 or b[i - 1] == 43)), j
                value[count] = np.nan if meaning == NAN else 1.0 if meaning == TRUE else 0.0
                kind[count], label[count], bracket[count] = VALUE, word if colon else none, top
                gap[count], prose[count] = bits & ~OTHER, gap_words
                if numbers[top] == 0:
                    first[top] = count
                numbers[top] += 1
                count += 1
                bits, gap_words = 0, 0
                waits = True
                word, colon = none, False
                solid = 48
                i = j
                continue
            if meaning == MARK or (new == _S and not key and (i == 0 or not _is_digit(b[i - 1]))):
                bits |= STROKE
            elif meaning == PART:
                bits |= PARTED
            elif meaning == 0 and length > 1 and not key:
                gap_words += 1 + (length // 3 if c == 255 else 0)
            unit = i > 0 and _is_digit(b[i - 1]) and meaning == JOIN
            if top >= 0 and not key and not unit and not (j < n and (b[j] == 40 or b[j] == 34 or b[j] == 39)):
                junk[top] += 1
            word, word_end, colon = new, j, False
            solid = 97
            i = j
            continue
        if c == 34 or c == 39:
            quoting = solid == 123 or solid == 91 or solid == 40 or solid == 44 or solid == 58
            if comment or not quoting or (c == 39 and top < 0):
                bits |= 0 if word != none else OTHER
                i += 1
                continue
            j, digits = _string_end(b, i)
            valued = colon and solid == 58
            text = valued and _meaning_in(word, text_keys)
            if j < 0 or (digits and not text):
                i += 1  # what stands between these quotes is read like anything else
                continue
            if text:
                k = i + 1
                while k < j:  # digits of a text name nothing and are no coordinates
                    if _is_digit(b[k]):
                        start[count] = k
                        while k < j and _is_digit(b[k]):
                            k += 1
                        end[count], value[count], kind[count] = k, np.nan, KEY
                        label[count], bracket[count] = word, top
                        gap[count], prose[count] = bits, gap_words
                        bits, gap_words = 0, 0
                        count += 1
                    k += 1
                word, colon = none, False
            else:
                new = none
                length = 0
                for k in range(i + 1, j):
                    d = b[k]
                    if d != 95 and d != 45 and length < 8:
                        new |= np.uint64(d + 32 if 65 <= d <= 90 else d) << np.uint64(8 * length)
                        length += 1
                k = j + 1
                while k < n and k < j + 4 and _is_space(b[k]):
                    k += 1
                if k < n and b[k] == 58:
                    word, colon = new, False
                else:
                    meaning = _meaning(new, words, meanings)
                    if meaning >= NAN and top >= 0:
                        start[count], end[count] = i + 1, j
                        value[count] = np.nan if meaning == NAN else 1.0 if meaning == TRUE else 0.0
                        kind[count], label[count], bracket[count] = VALUE, word if colon else none, top
                        gap[count], prose[count] = bits, gap_words
                        if numbers[top] == 0:
                            first[top] = count
                        numbers[top] += 1
                        count += 1
                        bits, gap_words = 0, 0
                    elif top >= 0 and not valued:
                        junk[top] += 1
                    word, colon = none, False
            word_end = -1
            solid = 34
            i = j + 1
            continue
        if c == 40 or c == 91 or c == 123:
            if not comment:
                opened[n_brackets], parent[n_brackets], shape[n_brackets] = i, top, c
                name[n_brackets] = word if colon else none
                depth[n_brackets] = (c != 123) + (depth[top] if top >= 0 else 0)
                if top >= 0:
                    children[top] += 1
                top = n_brackets
                n_brackets += 1
                word, colon = none, False
            bits |= BRACKET
        elif c == 41 or c == 93 or c == 125:
            if top >= 0 and not comment:
                closed[top] = i
                matches = (c == 41 and shape[top] == 40) or (c == shape[top] + 2 and c != 41)
                junk[top] += not matches
                top = parent[top]
                word, colon = none, False
            bits |= BRACKET
        elif c == 44:
            bits |= COMMA
            word, colon = none, False
        elif c == 59:
            bits |= SEMICOLON
            word, colon = none, False
        elif c == 124:
            bits |= PIPE
            word, colon = none, False
        elif c == 58 or c == 61:
            colon = word != none
            bits |= 0 if colon else OTHER
        elif c == 96 and i + 2 < n and b[i + 1] == 96 and b[i + 2] == 96:
            bits |= FENCE
            word, colon = none, False
            i += 2
        elif c == 47 and i + 1 < n and b[i + 1] == 47 and solid != 58:
            comment = True
            i += 1
        elif c == 35 and top >= 0:
            comment = True
        elif c == 47:
            bits |= SLASH
        elif c == 92 and i + 1 < n:
            i += 1  # an escaped character: a line break within a quoted text
            bits |= NEWLINE if b[i] == 110 else SPACE
        elif c == 37:
            bits |= SPACE
        else:
            bits |= OTHER
            if top >= 0 and c == 46 and i + 2 < n and b[i + 1] == 46:
                junk[top] += 1
        solid = c
        i += 1
    return (
        start[:count], end[:count], value[:count], kind[:count], bracket[:count], label[:count],
        gap[:count], prose[:count], follow[:count],
        opened[:n_brackets], closed[:n_brackets], parent[:n_brackets], shape[:n_brackets], name[:n_brackets],
        numbers[:n_brackets], first[:n_brackets], children[:n_brackets], junk[:n_brackets], depth[:n_brackets],
        hard[:n_hard],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _meaning_in(word: np.uint64, words: NDArray[np.uint64]) -> bool:
    i = np.searchsorted(words, word)
    return i < len(words) and words[i] == word
