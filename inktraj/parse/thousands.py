"""Numbers written with a comma inside: ``1,234`` (thousands) and ``12,5`` (decimals).

In ``(1,234,1)`` the comma parts three numbers; in ``(1,234, 567, 1)`` it does not. Only what cannot be anything else is
joined:

* after a name (``x: 1,234 y: 567``, ``"x": "1,234"``): three digits that follow a comma without a space;
* in a bracket whose other commas have spaces behind them, where joining gives two or three numbers, and not joining
  gives no point;
* decimals in a bracket or line whose numbers are parted by semicolons: ``(12,5; 30,2; 1)``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.lexer import BLANK, COMMA, NEWLINE, NUMBER, SEMICOLON, SPACE, Lexed
from inktraj.parse.reading import Problem
from inktraj.parse.vocabulary import among, labels

_AXES = labels("x", "y")
BoolArray = NDArray[np.bool_]


def join(lexed: Lexed) -> tuple[Lexed, list[Problem]]:
    """Join numbers that a comma cuts in two.

    Parameters
    ----------
    lexed
        What the lexer found.

    Returns
    -------
    lexed, notes
        With fewer numbers where some were joined, and a note that says so.
    """
    n = len(lexed)
    if n < 2 or "," not in lexed.text:
        return lexed, []
    tight = (lexed.gap == COMMA) & (lexed.kind == NUMBER) & (lexed.label == 0)
    tight[0] = False
    same = np.append(False, lexed.bracket[1:] == lexed.bracket[:-1])
    whole = (np.floor(lexed.value) == lexed.value) & (lexed.end - lexed.start <= 18)
    three = (lexed.end - lexed.start == 3) & (lexed.value >= 0) & whole
    head = np.append(False, (whole & (lexed.end - lexed.start <= 4) & (np.abs(lexed.value) < 1000))[:-1])
    after_name = np.append(False, among(lexed.label, _AXES)[:-1])
    next_named = np.append(lexed.label[1:] != 0, True)
    named = tight & three & head & after_name & next_named
    listed = tight & three & head & same & _lists(lexed, tight & three & head & same)
    decimal = tight & same & head & whole & (lexed.value >= 0) & _decimals(lexed, tight)
    decimal &= ~np.append(False, decimal[:-1])
    joined = named | (listed & ~decimal) | decimal
    if not joined.any():
        return lexed, []
    return _merged(lexed, joined, decimal)


def _counts(lexed: Lexed, chosen: BoolArray) -> NDArray[np.int64]:
    """Return how many of the chosen numbers stand directly in each bracket."""
    inside = chosen & (lexed.bracket >= 0)
    return np.bincount(lexed.bracket[inside], minlength=len(lexed.opened))


def _lists(lexed: Lexed, cuts: BoolArray) -> BoolArray:
    """Whether a number's bracket makes a point if it is joined at `cuts`, and none if not."""
    if not len(lexed.opened):
        return np.zeros(len(lexed), dtype=bool)
    separated = lexed.gap & (COMMA | SPACE)
    first = np.zeros(len(lexed), dtype=bool)
    first[lexed.first[lexed.first >= 0]] = True
    other_tight = (lexed.gap == COMMA) & ~cuts & ~first
    spaced = (separated == (COMMA | SPACE)) & ~first
    after = lexed.numbers - _counts(lexed, cuts)
    last = np.zeros(len(lexed.opened), dtype=np.int64)
    np.maximum.at(last, lexed.bracket[lexed.bracket >= 0], np.flatnonzero(lexed.bracket >= 0))
    flagged = (lexed.value[last] == 0) | (lexed.value[last] == 1)
    point_as_is = (lexed.numbers == 2) | ((lexed.numbers == 3) & flagged)
    pairs = (lexed.numbers == 4) & (lexed.shape != ord("("))  # [1,234, 5,678] may be two points
    makes = (after >= 2) & (after <= 3) & ~point_as_is & ~pairs & (lexed.children == 0)
    makes &= (_counts(lexed, other_tight) == 0) & (_counts(lexed, spaced) == after - 1)
    return np.asarray(np.where(lexed.bracket >= 0, makes[lexed.bracket], False))


def _decimals(lexed: Lexed, tight: BoolArray) -> BoolArray:
    """Whether a number stands in a bracket whose numbers are parted by semicolons, commas being decimal."""
    semicolon = (lexed.gap & SEMICOLON) != 0
    comma = (lexed.gap & COMMA != 0) & ~tight
    if not semicolon.any():
        return np.asarray(semicolon)
    inside = lexed.bracket >= 0
    after = lexed.numbers - _counts(lexed, tight)
    out = np.zeros(len(lexed), dtype=bool)
    if len(lexed.opened):
        first = np.zeros(len(lexed), dtype=bool)  # what stands before these stands before their bracket
        first[lexed.first[lexed.first >= 0]] = True
        closed = (_counts(lexed, semicolon & ~first) == after - 1) & (_counts(lexed, comma & ~first) == 0)
        closed &= (after >= 2) & (after <= 3)
        quoted = [lexed.text[i] in "\"'" for i in lexed.opened[closed].tolist()]  # "12,22;30,40" are two points
        closed[np.flatnonzero(closed)[quoted]] = False
        out = np.where(inside, closed[lexed.bracket], False)
    return np.asarray(out & ((lexed.gap & (NEWLINE | BLANK)) == 0))


def _merged(lexed: Lexed, joined: BoolArray, decimal: BoolArray) -> tuple[Lexed, list[Problem]]:
    value, end = lexed.value.copy(), lexed.end.copy()
    digits = (lexed.end - lexed.start).astype(np.float64)
    heads = np.flatnonzero(~joined)
    sign = np.where(np.signbit(value), -1.0, 1.0)
    at, head = heads + 1, heads
    while True:  # parts of one number follow each other; a round for each part
        more = (at < len(joined)) & joined[np.minimum(at, len(joined) - 1)]
        at, head = at[more], head[more]
        if not len(at):
            break
        thousands = value[head] * 1000 + sign[head] * value[at]
        fraction = value[head] + sign[head] * value[at] / 10.0 ** digits[at]
        value[head] = np.where(decimal[at], fraction, thousands)
        end[head] = lexed.end[at]
        at = at + 1
    kept = ~joined
    follow = lexed.follow.copy()
    last = np.append(np.flatnonzero(kept)[1:], len(joined)) - 1
    follow[kept] = lexed.follow[last]
    new_index = np.cumsum(kept) - 1
    first = np.where(lexed.first >= 0, new_index[np.maximum(lexed.first, 0)], -1)
    example = int(np.flatnonzero(joined)[0])
    note = Problem(
        "comma",
        int(lexed.start[example - 1]),
        f"a comma inside of {int(joined.sum())} numbers was read as "
        + ("a decimal comma" if decimal[example] else "a thousands separator"),
        lexed.text[lexed.start[example - 1] : lexed.end[example]],
    )
    per_number = ("start", "kind", "bracket", "label", "gap", "words")
    return replace(
        lexed,
        **{name: getattr(lexed, name)[kept] for name in per_number},
        value=value[kept],
        end=end[kept],
        follow=follow[kept],
        numbers=lexed.numbers - _counts(lexed, joined),
        first=first,
    ), [note]
