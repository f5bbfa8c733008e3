"""How wide letters are written and with how many strokes, as pipelines/fit_letters.py found it in recorded words."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping


def _table(text: str) -> dict[str, float]:
    words = text.split()
    return {char: float(value) for char, value in zip(words[::2], words[1::2], strict=True)}


# In mean small letters, with the room around them.
_WIDTHS = _table("""
    A 1.18 B 1.29 C 1.09 D 1.46 E 1.20 F 1.19 G 1.33 H 1.21 I 0.99 J 1.53 K 1.37 L 1.21 M 1.61
    N 1.21 O 1.10 P 1.10 Q 1.46 R 1.17 S 1.11 T 1.28 U 1.15 V 1.25 W 1.55 X 1.36 Y 1.18 Z 1.49
    a 1.19 b 1.08 c 0.90 d 1.14 e 0.96 f 1.00 g 1.04 h 1.17 i 0.65 j 0.96 k 1.25 l 0.75 m 1.62
    n 1.11 o 0.97 p 1.04 q 1.12 r 0.90 s 0.89 t 0.86 u 1.21 v 1.01 w 1.48 x 1.15 y 1.09 z 1.22
""")
# In mean letters, by writers who print and by writers who join.
_PRINTED = _table("""
    A 1.50 B 1.11 C 0.75 D 1.30 E 2.16 F 1.85 G 0.95 H 2.03 I 1.15 J 1.27 K 1.82 L 0.79 M 0.90
    N 1.00 O 0.66 P 1.21 Q 1.50 R 0.92 S 0.69 T 1.48 U 0.83 V 0.82 W 0.76 X 1.58 Y 1.41 Z 1.20
    a 0.83 b 0.87 c 0.79 d 0.91 e 0.64 f 1.37 g 0.91 h 0.74 i 1.47 j 1.45 k 1.60 l 0.76 m 0.72
    n 0.72 o 0.78 p 1.13 q 0.70 r 0.78 s 0.82 t 1.43 u 0.89 v 0.74 w 0.72 x 1.52 y 0.95 z 1.08
""")
_JOINED = _table("""
    A 1.57 B 1.79 C 1.20 D 2.41 E 1.97 F 3.14 G 1.29 H 2.71 I 2.16 J 1.87 K 2.58 L 1.26 M 1.18
    N 1.45 O 0.91 P 1.52 Q 1.77 R 1.35 S 1.20 T 2.79 U 1.00 V 1.30 W 1.08 X 2.94 Y 1.69 Z 1.62
    a 0.87 b 0.95 c 0.71 d 0.90 e 0.48 f 1.16 g 0.88 h 0.77 i 2.48 j 2.93 k 1.53 l 0.59 m 0.56
    n 0.59 o 0.77 p 0.91 q 1.09 r 0.57 s 0.73 t 2.14 u 0.55 v 0.88 w 0.97 x 2.80 y 0.77 z 1.35
""")

# The words had letters only; these are estimates.
_OTHER_WIDTHS = {"digit": 0.9, "capital": 1.4, "small": 1.0, "mark": 0.45}
_OTHER_STROKES = {"digit": 1.0, "capital": 1.4, "small": 1.0, "mark": 1.0}
_TWO_STROKES = ':;!?"="“”'

PRINTS, JOINS = 1.3, 0.6
"""Strokes a letter of writers who print, and of writers who join."""


def width_of(word: str) -> float:
    """Return how wide a word is, in mean small letters."""
    return sum(_of(char, _WIDTHS, _OTHER_WIDTHS) for char in word)


def strokes_of(word: str, rate: float) -> float:
    """Return of how many strokes a word is by a writer who makes `rate` strokes a letter."""
    prints = min(max((rate - JOINS) / (PRINTS - JOINS), 0.0), 1.0)
    letters, marks = 0.0, 0.0
    for char in word:
        if char.isalnum():
            letters += prints * _of(char, _PRINTED, _OTHER_STROKES)
            letters += (1 - prints) * _of(char, _JOINED, _OTHER_STROKES)
        else:
            marks += 2 if char in _TWO_STROKES else 1
    return rate * letters + marks


def _of(char: str, known: Mapping[str, float], others: Mapping[str, float]) -> float:
    plain = char if char in known else unicodedata.normalize("NFD", char)[0]
    if plain in known:
        return known[plain]
    if char.isdigit():
        return others["digit"]
    return others["mark" if not char.isalpha() else "capital" if char.isupper() else "small"]
