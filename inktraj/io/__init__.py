"""Readers and writers: images, InkML, JSONL, Parquet, SVG. Each takes a path or a file object.

Ink is exchanged as `InkRecord`: one ink, usually a word, with its name and its text. `read_ink` and
`write_ink` choose the form by a file's suffix, or by its first bytes where it has none.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from inktraj.errors import DataError, ParseError
from inktraj.ink import Ink
from inktraj.io.files import File, name_of, read_bytes

FORMATS = ("inkml", "jsonl", "svg")
"""Names of the forms in which ink is exchanged."""

_SUFFIXES = {".inkml": "inkml", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".svg": "svg"}


@dataclass(frozen=True, slots=True)
class InkRecord:
    """One ink with its name and its text.

    Parameters
    ----------
    id
        Names the ink within its file.
    ink
        The strokes.
    text
        What is written; "" where that is not known.
    extra
        Anything else that the file says of it.
    """

    id: str
    ink: Ink
    text: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    __hash__ = None  # type: ignore[assignment]  # arrays inside


def read_ink(file: File, format: str | None = None) -> list[InkRecord]:
    """Read InkML, JSONL or SVG.

    Parameters
    ----------
    file
        Path, or a file object such as ``sys.stdin.buffer``.
    format
        One of `FORMATS`; None to go by the suffix, and by the content where that says nothing.

    Raises
    ------
    DataError
        The file cannot be read.
    ParseError
        It is not in the form; the message says where.
    """
    data, name = read_bytes(file), name_of(file)
    format = _checked(format) if format else _by_suffix(name) or sniff_ink(data, name)
    source = io.BytesIO(data)
    source.name = name
    if format == "inkml":
        from inktraj.io.inkml import read_inkml

        return read_inkml(source)
    if format == "svg":
        from inktraj.io.svg import read_svg

        return read_svg(source)
    from inktraj.io.jsonl import read_jsonl

    return read_jsonl(source)


def write_ink(file: File, records: Iterable[InkRecord], format: str | None = None) -> None:
    """Write InkML, JSONL or SVG.

    Parameters
    ----------
    file
        Path, or a file object such as ``sys.stdout``.
    records
        What to write.
    format
        One of `FORMATS`; None to go by the suffix.

    Raises
    ------
    DataError
        No form is given or recognised, the file cannot be written, or a record cannot be expressed.
    """
    name = name_of(file)
    format = _checked(format) if format else _by_suffix(name)
    if format is None:
        raise DataError(
            f"{name}: its suffix names no form of ink, expected {_suffixes()}; or name the form "
            "(format=…; --format, --from or --to on the command line)"
        )
    if format == "inkml":
        from inktraj.io.inkml import write_inkml

        write_inkml(file, records)
    elif format == "svg":
        from inktraj.io.svg import write_svg

        write_svg(file, records)
    else:
        from inktraj.io.jsonl import write_jsonl

        write_jsonl(file, records)


def sniff_ink(data: bytes, name: str = "<stream>") -> str:
    """Return which of `FORMATS` data are in by their first bytes; raises ParseError where they are in none."""
    head = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"{") or not head:
        return "jsonl"
    if head.startswith(b"<"):
        tags = {"inkml": (b"<ink", b":ink"), "svg": (b"<svg", b":svg")}
        found = {format: at for format, names in tags.items() for at in map(head.find, names) if at >= 0}
        if found:
            return min(found, key=found.__getitem__)
    raise ParseError(
        f"{name}: neither InkML nor SVG nor JSONL (starts with {head[:12]!r}); an image? "
        "give its form if it has an unusual beginning"
    )


def _by_suffix(name: str) -> str | None:
    return _SUFFIXES.get(os.path.splitext(name)[1].lower())


def _checked(format: str) -> str:
    if format not in FORMATS:
        raise DataError(f"no form of ink is named {format!r}, expected one of {', '.join(FORMATS)}")
    return format


def _suffixes() -> str:
    return ", ".join(_SUFFIXES)
