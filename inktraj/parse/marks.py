"""Strokes that names tell, not lists or s: labels of points (``"label": "stroke 2"``) and commands before them.

Commands are those of plotters: G-code (``G0`` moves, ``G1`` draws) and words (``MOVE``, ``LINE``). They are followed
where each line has one, places are absolute, and each move is followed by a line; else `doubts` tells of them.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inktraj.parse.lexer import AHEAD, HERE, NEWLINE, STROKE, Lexed
from inktraj.parse.reading import GOOD, Reading

IntArray = NDArray[np.int64]

COMMANDS = re.compile(r"^[ \t]*+(?:(G0*[0-3]|PU|PD) ?(?=[-\dXY ])|(MOVE|LINE|DRAW)(?:[ _]?TO)?\b)", re.MULTILINE)
"""A command at the beginning of a line."""
_MOVES = re.compile(r"G0+$|PU$|MOVE$")
_DRAWS = re.compile(r"G0*1$|PD$|LINE$|DRAW$")
_NOT_FOLLOWED = re.compile(r"^[ \t]*G(?:20|0?[23]|91)\b|\bG9[12]\b|\brelative\b", re.MULTILINE | re.IGNORECASE)
_LABEL = re.compile(
    r"[\"'](?:label|name|stroke|id|part|description)[\"']\s*+:\s*+[\"'](?:(?:stroke|trazo|trait|strich|s)[ _\-#]*+)"
    r"(\d{1,6})(?!\d)",
    re.IGNORECASE,
)

_STROKE_WORD = re.compile(
    r"(?:штрих|черта|ضربة|الخط|جرة|स्ट्रोक|रेखा|স্ট্রোক|획|ストローク|笔画|筆畫|笔|筆|קו|משיכה|เส้น|γραμμή|πινελιά)"
    r"\s*+(?=[\d(\[:])",
    re.IGNORECASE,
)
"""The word for a stroke in scripts whose letters the lexer does not tell apart."""


def marked(lexed: Lexed) -> Lexed:
    """Return what the lexer found, where words of other scripts mark strokes too.

    Parameters
    ----------
    lexed
        What the lexer found.
    """
    if lexed.text.isascii() or not len(lexed):
        return lexed
    at = np.array([m.end() for m in _STROKE_WORD.finditer(lexed.text)], dtype=np.int64)
    number = np.searchsorted(lexed.start, at)
    number = number[number < len(lexed)]
    gap = lexed.gap.copy()
    gap[number] |= STROKE | np.where(gap[number] & NEWLINE, AHEAD, HERE)
    return replace(lexed, gap=gap)


def told(lexed: Lexed, reading: Reading, extent: tuple[int, int]) -> Reading:
    """Return a reading with the strokes that names tell, if nothing else does.

    Parameters
    ----------
    lexed
        What the lexer found.
    reading
        The answer's points.
    extent
        Where in the text the answer begins and ends.
    """
    if (reading.stroke >= 0).any() or np.isfinite(reading.flag).any() or len(reading) < 2:
        return reading
    stroke = by_labels(lexed.text, reading, extent)
    if stroke is None:
        stroke = by_commands(lexed.text, reading, extent)
    return reading if stroke is None else replace(reading, stroke=stroke)


def by_labels(text: str, reading: Reading, extent: tuple[int, int]) -> IntArray | None:
    """Return the number in the label of each point; None where they are no numbers of strokes.

    Parameters
    ----------
    text
        The reply.
    reading, extent
        The answer's points and their place.
    """
    if "abel" not in text and "ame" not in text and "troke" not in text:
        return None
    found = [(m.start(), int(m[1])) for m in _LABEL.finditer(text, *extent)]
    if len(found) != len(reading):
        return None
    at, number = np.array(found, dtype=np.int64).T
    inside = (reading.span[:, 0] < at) & (at < reading.span[:, 1])
    step = np.diff(number)
    if not inside.all() or not np.isin(step, (0, 1)).all() or not (step == 0).any():
        return None
    return np.asarray(number)


def by_commands(text: str, reading: Reading, extent: tuple[int, int]) -> IntArray | None:
    """Return the stroke of each point by the commands at the beginning of their lines; None where that is in doubt.

    Parameters
    ----------
    text
        The reply.
    reading, extent
        The answer's points and their place.
    """
    begin = text.rfind("\n", 0, extent[0]) + 1
    if not COMMANDS.match(text, begin):
        return None
    found = [(m.end(), m[1] or m[2]) for m in COMMANDS.finditer(text, begin, extent[1])]
    if len(found) != len(reading) or (reading.state != GOOD).any() or _NOT_FOLLOWED.search(text):
        return None
    at = np.array([a for a, _ in found])
    gap = reading.span[:, 0] - at
    moves = np.array([bool(_MOVES.match(c)) for _, c in found])
    draws = np.array([bool(_DRAWS.match(c)) for _, c in found])
    lonely = moves & np.append(moves[1:], True)
    if (gap < -1).any() or (gap > 1).any() or not (moves | draws).all() or not moves[0] or lonely.any():
        return None
    return np.asarray(np.cumsum(moves))
