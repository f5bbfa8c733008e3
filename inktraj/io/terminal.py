"""Texts that others wrote, such as a server's message or a writer's name, before they reach a terminal."""

from __future__ import annotations

_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """Replace all that takes no place of its own or ends a line, so that a table stays one."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def harmless(text: str) -> str:
    """Replace what a terminal would obey; line breaks stay, and characters that join letters, as some scripts need."""
    return "".join("\ufffd" if _steers(char) else char for char in text)


def _steers(char: str) -> bool:
    return (char < " " and char not in "\n\t") or "\x7f" <= char <= "\x9f" or char in _DIRECTIONS
