"""One pass over a reply: its numbers, each with what stands before it, and its brackets.

What the lexer finds is all that the dialects of numbers need, so that each text is walked once, in linear time,
whatever it holds. It judges nothing: a bracket need not be closed, and a number may mean anything.

Conventions
-----------
* Positions count characters of the reply. A number's sign belongs to it, except after a letter, digit or bracket.
* A number's *label* is the word that names it: glued (``x145``), or before ``:`` or ``=`` (``"x": 145``). Digits of a
  key (``x1="145"``, ``"stroke2": …``) are no numbers of their own but have the kind `KEY`; so have digits in
  comments and in values that are text (``"word": "1914"``).
* Comments are ``//`` to the line's end, ``#`` inside of brackets, ``/* … */`` and ``<!-- … -->``; words in them may
  still mark strokes.
* Inside of brackets ``NaN``, ``null`` and infinities are numbers without a value, ``true`` and ``false`` are 1 and 0.
"""

# ruff: noqa: SIM109  # "c in (A, B)" is not unrolled when compiled, and slow.
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.parse.characters import codes
from inktraj.parse.vocabulary import (
    AGAIN,
    DOWN_WORDS,
    JOIN,
    MARK,
    NAN,
    PART,
    TEXT_KEYS,
    TRUE,
    UP_WORDS,
    VALUES,
    WORDS,
    Words,
    packed,
)

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
U8 = NDArray[np.uint8]
Meanings = tuple[Words, IntArray, Words, IntArray, Words, Words, Words]
Function = TypeVar("Function", bound=Callable[..., Any])

NUMBER, KEY, VALUE, ARGUMENT = 0, 1, 2, 3
"""Kinds of numbers: written in digits; digits that name something; a word that stands for a number; a number that
is given to a function or under a name that means no point (`mentions` tells these)."""

COMMA, SEMICOLON, PIPE, NEWLINE, BLANK, BRACKET, STROKE, FENCE, OTHER, PARTED, SPACE, SLASH = (
    1 << i for i in range(12)
)
SENTENCE, UP, DOWN, HERE, AHEAD, ANEW, STOP, LETTERS = (1 << i for i in range(12, 20))
"""What may stand between a number and the one before it, as bits: SENTENCE is the end of a sentence or a colon; UP and
DOWN say on the line of the number before that the pen is lifted or put down; a mark of a stroke stands HERE (on that
line) or AHEAD (on a later one); ANEW is a word that takes back what stands before it, a strong kind of PARTED; STOP
is a full stop; LETTERS are any words of two letters or more that mark no stroke."""

_LONGEST_STRING = 200  # characters of a text that is passed over for its key alone
_NONE = np.uint64(0)
_S, _X, _Y, _SX = (np.uint64(packed(w)) for w in ("s", "x", "y", "sx"))

# Columns of the table of numbers, and of that of brackets.
_START, _END, _KIND, _BRACKET, _GAP, _PROSE, _FOLLOW = range(7)
_OPENED, _CLOSED, _PARENT, _SHAPE, _NUMBERS, _FIRST, _CHILDREN, _JUNK, _DEPTH = range(9)
_LINE_COMMENT, _BLOCK_COMMENT, _TAG_COMMENT = 1, 2, 3

# The state: how many numbers, brackets and inexact values there are; the innermost open bracket; what stands before;
# the last character that is no space, line ends since; whether ":" came after the last word, and where that word ends;
# whether the last number waits for the character behind it; whether this is a comment; where a quoted list ends.
_COUNT, _BRACKETS, _HARD, _TOP, _BITS, _WORDS, _SOLID, _LINES, _COLON, _WORD_END, _WAITS, _COMMENT, _LIST = range(13)

_LINE, _BLANK_, _QUOTE, _HASH, _PERCENT, _APOSTROPHE, _STAR, _LESS, _AND, _ABOUT = (
    10,
    32,
    34,
    35,
    37,
    39,
    42,
    60,
    38,
    126,
)
_ROUND, _ROUND_END, _PLUS, _COMMA_, _MINUS, _POINT, _SLASH_, _COLON_, _SEMI = 40, 41, 43, 44, 45, 46, 47, 58, 59
_EQUAL, _SQUARE, _BACKSLASH, _SQUARE_END, _LOW, _TICK, _CURLY, _BAR, _CURLY_END = 61, 91, 92, 93, 95, 96, 123, 124, 125

_PUT_DOWN = frozenset(("start", "begin", "down", "pendown", "pen_down", "new", "touchstart", "mousedown"))
_MOVES = frozenset(("move", "pen_move"))
_POWERS = 10.0 ** np.arange(23)  # exact
_CLASSES = np.full(256, 0, dtype=np.uint8)  # what a character is
_IS_SPACE, _IS_LINE, _IS_DIGIT, _IS_LETTER, _IS_QUOTE, _IS_OPEN, _IS_CLOSE, _IS_SIGN = range(1, 9)
_CLASSES[[9, 11, 12, 13, 32, 160]] = _IS_SPACE
_CLASSES[_LINE] = _IS_LINE
_CLASSES[48:58] = _IS_DIGIT
_CLASSES[[*range(65, 91), *range(97, 123), *range(192, 256), _LOW]] = _IS_LETTER
_CLASSES[[_QUOTE, _APOSTROPHE]] = _IS_QUOTE
_CLASSES[[_ROUND, _SQUARE, _CURLY]] = _IS_OPEN
_CLASSES[[_ROUND_END, _SQUARE_END, _CURLY_END]] = _IS_CLOSE
_CLASSES[[_PLUS, _MINUS]] = _IS_SIGN


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
    opened, closed, parent, shape, name, call, numbers, first, children, junk, depth
        Of each bracket: where it opens and closes (−1: nowhere), the one around it (−1: none), its character, its
        label, the word that it directly follows (``Point(``; 0: none), how many numbers stand directly in it and which
        is the first, how many brackets, how much else that is neither a key nor a separator, and how many ``[`` or
        ``(`` there are down to it.
    """

    text: str
    start: IntArray
    end: IntArray
    value: FloatArray
    kind: IntArray
    bracket: IntArray
    label: Words
    gap: IntArray
    words: IntArray
    follow: IntArray
    opened: IntArray
    closed: IntArray
    parent: IntArray
    shape: IntArray
    name: Words
    call: Words
    numbers: IntArray
    first: IntArray
    children: IntArray
    junk: IntArray
    depth: IntArray

    def __len__(self) -> int:
        return len(self.start)

    def may_be_cut(self, at: IntArray) -> NDArray[np.bool_]:
        """Return whether numbers (by index) end with the text, so that their last digits may be missing."""
        rest = len(self.text.rstrip().rstrip(".eE+-_"))
        return np.asarray(self.end[at] >= rest)


def lex(text: str) -> Lexed:
    """Find the numbers and brackets of a text.

    Parameters
    ----------
    text
        As `characters.plain` returns it.
    """
    n, value, label, b, name, call, hard = _lex(codes(text), (*WORDS, *VALUES, TEXT_KEYS, UP_WORDS, DOWN_WORDS))
    start, end, kind, bracket, gap, words, follow = n
    _tell_moves(text, start, end, kind, value)
    for i in hard:  # more digits than a float holds exactly: Python rounds them rightly
        value[i] = float(text[start[i] : end[i]].replace("_", "").replace("'", ""))
    opened, closed, parent, shape, numbers, first, children, junk, depth = b
    return Lexed(
        text, start, end, value, kind, bracket, label, gap, words, follow,
        opened, closed, parent, shape, name, call, numbers, first, children, junk, depth,
    )  # fmt: skip


def _tell_moves(text: str, start: IntArray, end: IntArray, kind: IntArray, value: FloatArray) -> None:
    """Read "move" as 0 where another word says that the pen is put down; else it begins a stroke, as in drawings."""
    at = np.flatnonzero(kind == VALUE)
    if not len(at) or "move" not in text.lower():
        return
    words = [text[a:b].lower() for a, b in zip(start[at].tolist(), end[at].tolist(), strict=True)]
    if not _PUT_DOWN.isdisjoint(words):
        value[at[[word in _MOVES for word in words]]] = 0.0


def _step(function: Function) -> Function:
    """Compile a part of the walk; references are not counted, which would take four times as long as all the rest."""
    options: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}
    return cast(Function, njit(**options)(function))


@_step
def _meaning(word: np.uint64, words: Words, meanings: IntArray) -> int:
    i = np.searchsorted(words, word)
    return meanings[i] if i < len(words) and words[i] == word else 0


@_step
def _is_among(word: np.uint64, words: Words) -> bool:
    i = np.searchsorted(words, word)
    return bool(i < len(words) and words[i] == word)


@_step
def _is_letter(c: int) -> bool:
    return bool(_CLASSES[c] == _IS_LETTER)


@_step
def _is_digit(c: int) -> bool:
    return bool(_CLASSES[c] == _IS_DIGIT)


@_step
def _is_space(c: int) -> bool:
    return bool(_CLASSES[c] == _IS_SPACE)


@_step
def _digit_at(b: U8, i: int) -> bool:
    return 0 <= i < len(b) and _is_digit(b[i])


@_step
def _three_digits(b: U8, at: int) -> bool:
    """Whether exactly three digits stand at `at`, and no closing quote behind them."""
    three = _digit_at(b, at) and _digit_at(b, at + 1) and _digit_at(b, at + 2)
    return three and not (at + 3 < len(b) and (_is_digit(b[at + 3]) or b[at + 3] == _APOSTROPHE))


@_step
def _packed_between(b: U8, start: int, end: int) -> np.uint64:
    """Return a word as `vocabulary.packed` does."""
    out = _NONE
    length = 0
    for i in range(start, end):
        c = b[i]
        if c != _LOW and c != _MINUS and not _is_digit(c) and length < 8:
            out |= np.uint64(c + 32 if 65 <= c <= 90 else c) << np.uint64(8 * length)
            length += 1
    return out


@_step
def _number_end(b: U8, at: int) -> tuple[int, float, bool]:
    """Return the end of the number at `at`, its value, and whether that value is not exact."""
    i = at + (_CLASSES[b[at]] == _IS_SIGN)
    mantissa, digits, power, long, fraction = 0, 0, 0, False, False
    while i < len(b):
        c = b[i]
        if _is_digit(c):
            if digits < 17:
                mantissa = mantissa * 10 + (c - 48)
                digits += mantissa > 0
                power -= fraction
            else:
                long = True
        elif c == _POINT and not fraction and _digit_at(b, i + 1):
            fraction = True
        elif not (
            (c == _LOW and _digit_at(b, i + 1) and _digit_at(b, i - 1))
            or (c == _APOSTROPHE and not fraction and _digit_at(b, i - 1) and _three_digits(b, i + 1))
        ):
            break
        i += 1
    if i < len(b) and (b[i] == 101 or b[i] == 69):  # e, E
        j = i + 1
        negative = j < len(b) and b[j] == _MINUS
        j += j < len(b) and _CLASSES[b[j]] == _IS_SIGN
        if _digit_at(b, j):
            exponent = 0
            while _digit_at(b, j):
                exponent = min(exponent * 10 + (b[j] - 48), 99999)
                j += 1
            power += -exponent if negative else exponent
            i = j
    scale = _POWERS[abs(power)] if abs(power) < 23 else 10.0 ** abs(power)
    value = 0.0 if mantissa == 0 else mantissa * scale if power >= 0 else mantissa / scale  # not 0 · inf
    return i, -value if b[at] == _MINUS else value, long or digits > 15


@_step
def _string_end(b: U8, at: int) -> tuple[int, bool]:
    """Return where the text quoted at `at` ends (−1: not within its line), and whether it has digits."""
    digits = False
    i = at + 1
    while i < len(b):
        c = b[i]
        if c == b[at]:
            return i, digits
        if c == _LINE:
            return -1, digits
        digits = digits or _is_digit(c)
        i += 2 if c == _BACKSLASH else 1
    return -1, digits


@_step
def _is_prose(b: U8, at: int, end: int, words: Words, meanings: IntArray) -> bool:
    """Whether a text has words, some of which mean nothing here, and no more than two numbers for each."""
    unknown, total, numbers, i = 0, 0, 0, at
    while i < end:
        j = i
        while j < end and _is_letter(b[j]):
            j += 1
        if j - i > 1:
            total += 1
            unknown += j - i > 2 and _meaning(_packed_between(b, i, j), words, meanings) == 0
        numbers += _is_digit(b[i]) and not (_is_digit(b[i - 1]) or b[i - 1] == _POINT)
        i = max(j, i + 1)
    return unknown > 0 and total > 2 and numbers <= 2 * total


@_step
def _list_end(b: U8, at: int) -> tuple[int, int]:
    """Return where the text quoted at `at` ends, and how many numbers it has, if it holds nothing else; else 0."""
    i, numbers, inside = at + 1, 0, False
    while i < len(b) and b[i] != b[at]:
        c = b[i]
        digit = _is_digit(c)
        if not (digit or c == _POINT or c == _COMMA_ or c == _SEMI or _is_space(c) or _CLASSES[c] == _IS_SIGN):
            return i, 0
        inside = digit or (inside and c == _POINT)
        numbers += digit and not (_is_digit(b[i - 1]) or b[i - 1] == _POINT)
        i += 1
    return i, numbers


@_step
def _colon_follows(b: U8, at: int) -> bool:
    i = at
    while i < len(b) and i < at + 4 and _is_space(b[i]):
        i += 1
    return i < len(b) and b[i] == _COLON_


@_step
def _is_key_end(b: U8, at: int) -> bool:
    """Whether what stands before `at` names something: ``=``, ``:`` or a quote and ``:`` follow."""
    if at < len(b) and _CLASSES[b[at]] == _IS_QUOTE:
        return _colon_follows(b, at + 1)
    return bool(at < len(b) and (b[at] == _EQUAL or b[at] == _COLON_))


@_step
def _sizes(b: U8) -> tuple[int, int]:
    """Return bounds for the number of numbers and of brackets."""
    numbers, brackets = 1, 1
    previous = 0
    for c in b:
        kind = _CLASSES[c]
        numbers += kind == _IS_QUOTE or ((kind == _IS_DIGIT or kind == _IS_LETTER) and kind != previous)
        brackets += kind == _IS_OPEN or kind == _IS_QUOTE
        previous = kind
    return numbers, brackets


@_step
def _put(
    numbers: IntArray,
    value: FloatArray,
    label: Words,
    brackets: IntArray,
    state: IntArray,
    start: int,
    end: int,
    number: float,
    kind: int,
    name: np.uint64,
) -> None:
    """Append a number, with what stands before it."""
    i, top = state[_COUNT], state[_TOP]
    numbers[_START, i], numbers[_END, i], numbers[_KIND, i] = start, end, kind
    numbers[_BRACKET, i], numbers[_FOLLOW, i] = top, 0
    numbers[_GAP, i], numbers[_PROSE, i] = state[_BITS], state[_WORDS]
    value[i], label[i] = number, name
    if top >= 0 and kind != KEY:
        if brackets[_NUMBERS, top] == 0:
            brackets[_FIRST, top] = i
        elif kind == NUMBER and state[_BITS] & (OTHER | SLASH) and name == _NONE:
            brackets[_JUNK, top] += 1
        brackets[_NUMBERS, top] += 1
    state[_COUNT] += 1
    state[_BITS], state[_WORDS], state[_WAITS], state[_SOLID] = 0, 0, 1, 48


@_step
def _starts_number(b: U8, i: int, state: IntArray, word: Words) -> bool:
    """Whether a number begins at i, its sign or its point included."""
    c = b[i]
    if _is_digit(c):
        return True
    if c == _POINT:
        return _digit_at(b, i + 1) and not (i > 0 and b[i - 1] == _POINT)
    if _CLASSES[c] != _IS_SIGN:
        return False
    if not (_digit_at(b, i + 1) or (i + 1 < len(b) and b[i + 1] == _POINT and _digit_at(b, i + 2))):
        return False
    p = b[i - 1] if i > 0 else _BLANK_
    if _is_letter(p):
        return bool(state[_WORD_END] == i and word[0] < 256)  # one letter: x-5, h-20
    return not (_is_digit(p) or _CLASSES[p] == _IS_CLOSE or p == _POINT)


@_step
def _take_number(
    b: U8,
    i: int,
    numbers: IntArray,
    value: FloatArray,
    label: Words,
    brackets: IntArray,
    hard: IntArray,
    state: IntArray,
    word: Words,
) -> int:
    j, number, inexact = _number_end(b, i)
    glued = state[_WORD_END] == i and word[0] != _NONE
    comment = state[_COMMENT] > 0
    key = comment or (glued and _is_key_end(b, j) and not (word[0] == _S and b[j] == _COLON_))
    key = key or (glued and j + 1 < len(b) and _is_space(b[j]) and b[j + 1] == _EQUAL)  # x1 = [12, …]
    if inexact:
        hard[state[_HARD]] = state[_COUNT]
        state[_HARD] += 1
    named = glued or state[_COLON] == 1 or word[0] == _X or word[0] == _Y
    name = word[0] if named else _NONE
    if name == _SX:
        name = _X
        state[_BITS] |= STROKE
    _put(numbers, value, label, brackets, state, i, j, number, KEY if key else NUMBER, name)
    state[_WORD_END] = -1
    if not key:
        word[0], state[_COLON] = _NONE, 0
    return j


@_step
def _take_word(
    b: U8,
    i: int,
    numbers: IntArray,
    value: FloatArray,
    label: Words,
    brackets: IntArray,
    state: IntArray,
    word: Words,
    meanings: Meanings,
) -> int:
    words, codes_, _, _, _, up_words, down_words = meanings
    j = i
    while j < len(b) and _is_letter(b[j]):
        j += 1
    new = _packed_between(b, i, j)
    meaning = _meaning(new, words, codes_) if j - i > 1 else JOIN
    top = state[_TOP]
    where = AHEAD if state[_BITS] & NEWLINE else HERE
    if where == HERE and state[_COUNT] > 0:
        state[_BITS] |= (UP if _is_among(new, up_words) else 0) | (DOWN if _is_among(new, down_words) else 0)
    if state[_COMMENT] > 0:
        state[_BITS] |= STROKE | where if meaning == MARK else 0
        state[_SOLID] = 97
        return j
    key = _is_key_end(b, j) or _digit_at(b, j)
    unit = _digit_at(b, i - 1)
    opens = state[_SOLID] == _SQUARE or state[_SOLID] == _ROUND or _CLASSES[state[_SOLID]] == _IS_SIGN
    valued = meaning >= NAN and top >= 0 and not key and not unit
    opens = opens or (state[_SOLID] == _COMMA_ and meaning == NAN)  # [1, 2], null, [3, 4]
    if valued and (state[_COLON] == 1 or opens or brackets[_NUMBERS, top] > 0):
        start = i - (i > 0 and _CLASSES[b[i - 1]] == _IS_SIGN)
        state[_BITS] &= ~OTHER
        name = word[0] if state[_COLON] == 1 else _NONE
        number = np.nan if meaning == NAN else 1.0 if meaning == TRUE else 0.0
        _put(numbers, value, label, brackets, state, start, j, number, VALUE, name)
        word[0], state[_COLON] = _NONE, 0
        return j
    item = top < 0 and state[_SOLID] == _MINUS and j + 1 < len(b) and b[j] == _COLON_ and b[j + 1] == _LINE
    if meaning == MARK or item or (new == _S and not key and not unit):
        state[_BITS] |= STROKE | where
    elif meaning == PART or meaning == AGAIN:
        state[_BITS] |= PARTED | (ANEW if meaning == AGAIN else 0)
    if meaning != MARK and j - i > 1 and not unit:
        state[_BITS] |= LETTERS
    if meaning == 0 and j - i > 1 and not key:
        state[_WORDS] += 1 + ((j - i) // 3 if b[i] == 255 else 0)
    call = (j < len(b) and (b[j] == _ROUND or _CLASSES[b[j]] == _IS_QUOTE)) or (i > 0 and b[i - 1] == _BACKSLASH)
    if top >= 0 and not key and not call and not (unit and meaning == JOIN):
        brackets[_JUNK, top] += 1
    if state[_COLON] == 1 and state[_SOLID] == _EQUAL:
        word[1] = word[0]  # x = np.array([…]) names what is given to the function
    elif not (i > 0 and b[i - 1] == _POINT):
        word[1] = _NONE
    word[0], state[_WORD_END], state[_COLON], state[_SOLID] = new, j, 0, 97
    return j


@_step
def _take_digits(
    b: U8,
    i: int,
    j: int,
    numbers: IntArray,
    value: FloatArray,
    label: Words,
    brackets: IntArray,
    state: IntArray,
    name: np.uint64,
) -> None:
    """Note the digits of a key or a text: they are no coordinates."""
    k = i + 1
    while k < j:
        if _is_digit(b[k]):
            start = k
            while k < j and _is_digit(b[k]):
                k += 1
            _put(numbers, value, label, brackets, state, start, k, np.nan, KEY, name)
        k += 1


@_step
def _take_bracket(c: int, i: int, brackets: IntArray, name: Words, state: IntArray, word: Words) -> None:
    top = state[_TOP]
    state[_BITS] |= BRACKET
    if state[_COMMENT] > 0:
        return
    if _CLASSES[c] == _IS_OPEN:
        new = state[_BRACKETS]
        for column in range(9):
            brackets[column, new] = 0
        brackets[_OPENED, new], brackets[_CLOSED, new], brackets[_FIRST, new] = i, -1, -1
        brackets[_PARENT, new], brackets[_SHAPE, new] = top, c
        brackets[_DEPTH, new] = (c != _CURLY) + (brackets[_DEPTH, top] if top >= 0 else 0)
        name[0, new] = word[0] if state[_COLON] == 1 else word[1] if state[_WORD_END] == i else _NONE
        name[1, new] = word[0] if c == _ROUND and state[_WORD_END] == i else _NONE
        if top >= 0:
            brackets[_CHILDREN, top] += 1
        state[_TOP] = new
        state[_BRACKETS] += 1
    elif top >= 0:
        brackets[_CLOSED, top] = i
        pair = _ROUND_END if brackets[_SHAPE, top] == _ROUND else brackets[_SHAPE, top] + 2
        brackets[_JUNK, top] += c != pair
        state[_TOP] = brackets[_PARENT, top]
    word[0], state[_COLON] = _NONE, 0


@_step
def _take_quote(
    b: U8,
    i: int,
    numbers: IntArray,
    value: FloatArray,
    label: Words,
    brackets: IntArray,
    names: Words,
    state: IntArray,
    word: Words,
    meanings: Meanings,
) -> int:
    """Pass over a quoted key or text. What else stands between quotes is read like anything else."""
    words, codes_, values, value_codes, text_keys, _, _ = meanings
    top, solid = state[_TOP], state[_SOLID]
    if i == state[_LIST]:
        _take_bracket(_SQUARE_END, i, brackets, names, state, word)
        return i + 1
    quoting = (_CLASSES[solid] == _IS_OPEN or solid == _COMMA_ or solid == _COLON_) and state[_COMMENT] == 0
    if not quoting or (b[i] == _APOSTROPHE and top < 0):
        state[_BITS] |= 0 if word[0] != _NONE or _digit_at(b, i + 1) or _digit_at(b, i - 1) else OTHER
        return i + 1
    valued = state[_COLON] == 1 and solid == _COLON_
    j, count = _list_end(b, i)
    if count > 3 or (count > 1 and not valued):  # "145,122 150,130" is a list
        _take_bracket(_SQUARE, i, brackets, names, state, word)
        state[_LIST] = j
        return i + 1
    j, digits = _string_end(b, i)
    k = np.searchsorted(text_keys, word[0])
    short = j - i <= _LONGEST_STRING
    text = valued and short and k < len(text_keys) and text_keys[k] == word[0]
    text = text or (valued and digits and j >= 0 and _is_prose(b, i + 1, j, words, codes_))
    key = j >= 0 and short and _colon_follows(b, j + 1) and _is_letter(b[i + 1])
    if j < 0 or (digits and not text and not key):
        return i + 1
    new = _packed_between(b, i + 1, j)
    if text or key:
        if digits:
            _take_digits(b, i, j, numbers, value, label, brackets, state, word[0])
    elif not _colon_follows(b, j + 1):
        third = top >= 0 and brackets[_NUMBERS, top] == 2
        meaning = _meaning(new, values, value_codes) if valued or third else 0
        meaning = meaning if meaning > 0 else _meaning(new, words, codes_)
        if meaning >= NAN and top >= 0:
            name = word[0] if state[_COLON] == 1 else _NONE
            number = np.nan if meaning == NAN else 1.0 if meaning == TRUE else 0.0
            _put(numbers, value, label, brackets, state, i + 1, j, number, VALUE, name)
        elif top >= 0 and not valued:
            brackets[_JUNK, top] += 1
        new = _NONE
    word[0] = _NONE if text else new
    state[_COLON], state[_WORD_END], state[_SOLID] = 0, -1, _QUOTE
    return j + 1


@_step
def _is_escape(b: U8, i: int) -> bool:
    r"""Whether a quoted text's escape begins at i: \\n, \\t, \\r, \\" but not \\right of LaTeX."""
    c = b[i + 1] if i + 1 < len(b) else _BLANK_
    return bool(c == 110 or c == 116 or c == _QUOTE or (c == 114 and not (i + 2 < len(b) and b[i + 2] == 105)))


@_step
def _take_sign(b: U8, i: int, brackets: IntArray, state: IntArray, word: Words) -> int:
    """Note a separator or any other character; return where to go on."""
    c = b[i]
    bit = OTHER
    following = b[i + 1] if i + 1 < len(b) else _BLANK_
    width = 1
    if state[_COMMENT] > _LINE_COMMENT:
        ends = (c == _STAR and following == _SLASH_) or (c == _MINUS and following == _MINUS)
        if ends and (c == _STAR) == (state[_COMMENT] == _BLOCK_COMMENT):
            state[_COMMENT] = 0
            return i + (2 if c == _STAR else 3)
        return i + 1
    if c == _COMMA_ or c == _SEMI or c == _BAR:
        bit = COMMA if c == _COMMA_ else SEMICOLON if c == _SEMI else PIPE
        word[0], state[_COLON] = _NONE, 0
    elif c == _COLON_ or c == _EQUAL:
        state[_COLON] = word[0] != _NONE
        bit = 0 if state[_COLON] == 1 else OTHER
        bit |= SENTENCE if c == _COLON_ and state[_SOLID] != 48 and state[_SOLID] != _QUOTE else 0
    elif (c == _POINT or c == 33 or c == 63) and state[_SOLID] != 48 and following <= _BLANK_:
        bit = OTHER | SENTENCE | STOP
    elif c == _TICK and following == _TICK:
        bit = FENCE
        word[0], state[_COLON] = _NONE, 0
    elif (c == _SLASH_ and following == _SLASH_ and state[_SOLID] != _COLON_) or (c == _HASH and state[_TOP] >= 0):
        bit = 0
        state[_COMMENT] = _LINE_COMMENT
    elif c == _SLASH_ and following == _STAR:
        bit, width = 0, 2
        state[_COMMENT] = _BLOCK_COMMENT
    elif c == _LESS and following == 33 and i + 3 < len(b) and b[i + 2] == _MINUS and b[i + 3] == _MINUS:
        bit, width = 0, 4
        state[_COMMENT] = _TAG_COMMENT
    elif c == _MINUS and following == _BLANK_ and i + 3 < len(b) and b[i + 2] == _MINUS and b[i + 3] == _BLANK_:
        bit = OTHER  # "- - [1, 2]" begins a list of lists
        state[_BITS] |= STROKE | AHEAD if state[_BITS] & NEWLINE and state[_TOP] < 0 else 0
    elif c == _SLASH_:
        bit = SLASH
    elif c == _AND and following == _BLANK_:  # LaTeX: 12 & 22 \\\\ 30 & 40
        bit = SPACE
    elif c == _BACKSLASH and following == _BACKSLASH:
        bit, width = SEMICOLON, 2
    elif c == _BACKSLASH and _is_escape(b, i):
        bit = NEWLINE if following == 110 else SPACE
        width = 2
    elif c == _PERCENT or c == _ABOUT:
        bit = SPACE
    elif c == _POINT and following == _POINT and state[_TOP] >= 0:
        brackets[_JUNK, state[_TOP]] += 1
    state[_BITS] |= bit
    state[_SOLID] = c
    return i + width


@_step
def _take_line(state: IntArray, word: Words) -> None:
    state[_LINES] += 1
    if state[_COMMENT] > _LINE_COMMENT:
        return
    state[_BITS] |= NEWLINE | (BLANK if state[_LINES] > 1 else 0)
    state[_COMMENT] = 0
    if state[_COLON] == 0:
        word[0] = _NONE


@njit(cache=True, nogil=True)
def _lex(b: U8, meanings: Meanings) -> tuple[IntArray, FloatArray, Words, IntArray, Words, Words, IntArray]:
    """Walk the text once."""
    most, most_brackets = _sizes(b)
    numbers, brackets = np.empty((7, most), np.int64), np.empty((9, most_brackets), np.int64)
    value, label = np.empty(most, np.float64), np.empty(most, np.uint64)
    name, hard = np.empty((2, most_brackets), np.uint64), np.empty(most, np.int64)
    state = np.zeros(13, np.int64)
    state[_TOP], state[_WORD_END], state[_SOLID], state[_LIST] = -1, -1, _LINE, -1
    word = np.zeros(2, np.uint64)  # the last word, while it may still be a label; what was set equal to a call
    i = 0
    while i < len(b):
        c = b[i]
        kind = _CLASSES[c]
        if kind == _IS_SPACE:
            state[_BITS] |= SPACE
            i += 1
            continue
        if kind == _IS_LINE:
            _take_line(state, word)
            i += 1
            continue
        if state[_WAITS] == 1:
            numbers[_FOLLOW, state[_COUNT] - 1] = c
            state[_WAITS] = 0
        state[_LINES] = 0
        if kind == _IS_LETTER:
            i = _take_word(b, i, numbers, value, label, brackets, state, word, meanings)
        elif kind == _IS_QUOTE:
            i = _take_quote(b, i, numbers, value, label, brackets, name, state, word, meanings)
        elif kind == _IS_OPEN or kind == _IS_CLOSE:
            _take_bracket(c, i, brackets, name, state, word)
            state[_SOLID] = c
            i += 1
        elif _starts_number(b, i, state, word):
            i = _take_number(b, i, numbers, value, label, brackets, hard, state, word)
        else:
            i = _take_sign(b, i, brackets, state, word)
    n, m = state[_COUNT], state[_BRACKETS]
    return numbers[:, :n], value[:n], label[:n], brackets[:, :m], name[0, :m], name[1, :m], hard[: state[_HARD]]
