"""Characters that stand for others: full-width digits, typographic minus signs, brackets of other scripts.

`plain` keeps every position: character i of the result stands for character i of the text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_SIGNS = {
    **dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\u2014\ufe63\u2796", "-"),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d", '"'),
    **dict.fromkeys("\u3010\u3014\u27e6\u3016", "["),
    **dict.fromkeys("\u3011\u3015\u27e7\u3017", "]"),
    **dict.fromkeys("\u27e8\u3008\u276a", "("),
    **dict.fromkeys("\u27e9\u3009\u276b", ")"),
    **dict.fromkeys("\u3001\u060c\u066c", ","),
    "\u066b": ".",
    "\u061b": ";",
    "\u3002": ".",
    "\u2044": "/",
    "\u2223": "|",
    "\u2028": "\n",
    "\u2029": "\n",
    "\u200b": " ",
    "\ufeff": " ",
}
_SPACES_INSIDE = "\u00a0\u2009\u202f"
_SPACE_INSIDE = re.compile(rf"(?<=\d)[{_SPACES_INSIDE}](?=\d{{3}}(?!\d))")


_KNOWN = 0x20000
"""Code points beyond have no digits."""


@lru_cache(maxsize=1)
def _table() -> NDArray[np.uint32]:
    """Return the code point that stands for each."""
    surrogates = range(0xD800, 0xE000)
    return np.array([c if c < 128 or c in surrogates else ord(_ascii(chr(c))) for c in range(_KNOWN)], dtype=np.uint32)


def plain(text: str) -> str:
    """Write digits, signs and spaces of other scripts in ASCII, one character for one.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    str
        Of the same length. A narrow or no-break space between a digit and three digits (a thousands separator)
        becomes ``_``.
    """
    if text.isascii():
        return text
    if any(space in text for space in _SPACES_INSIDE):
        text = _SPACE_INSIDE.sub("_", text)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    points = np.where(points < _KNOWN, _table()[np.minimum(points, _KNOWN - 1)], points)
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _ascii(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if "\uff01" <= character <= "\uff5e":  # full-width forms of ASCII
        return chr(ord(character) - 0xFEE0)
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return " " if character.isspace() else character


def codes(text: str) -> NDArray[np.uint8]:
    """Return one byte a character: its code point, or 255 for what lies beyond Latin-1."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), dtype=np.uint8).copy()
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.minimum(points, 255).astype(np.uint8)
