"""Files and folders of ink → words by name, whatever form they are in.

A word's name is ``PAGE__ID``, or its id alone where no page is known; so the same word has the same name in each of

* JSONL: the records' own ids, with the page in their ``extra`` where it is there;
* the folder of a pseudo-label data set, or its ``pages.jsonl``;
* InkML and SVG: as JSONL where the records tell of their page. Else, in a folder, a file with one record is named by
  the file (its path within the folder, without suffix), and one with several is a page of that name.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from inktraj.errors import DataError, ParseError
from inktraj.ink import Ink
from inktraj.io import InkRecord, read_ink
from inktraj.io.files import File, name_of, read_bytes

Place = File | Iterable[InkRecord]
"""A file, a folder, a file object, or records themselves."""

SUFFIXES = (".inkml", ".jsonl", ".ndjson", ".svg")
"""The files of a folder that are taken for ink."""

_LINES = (".jsonl", ".ndjson", ".json")
_NAMELESS = ("", "ink", "drawing")  # ids that a reader gives where the file gives none
_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """One word of a source.

    Parameters
    ----------
    name, page
        Its full name, and the page's ("" where it is not known).
    ink
        Its strokes; None where they could not be read.
    text, writer, dataset
        What it says, whose hand it is, and of which data set it is; "" where that is not known.
    frame_known
        False where the file gives no frame, so that one was made up from the strokes.
    moved
        How far the strokes were moved for that.
    reason
        Why there is no ink; "" where there is one.
    place
        Where it was read, for messages.
    named
        False where the file gives it no id of its own.
    """

    name: str
    page: str
    ink: Ink | None
    text: str = ""
    writer: str = ""
    dataset: str = ""
    frame_known: bool = True
    moved: tuple[float, float] = (0.0, 0.0)
    reason: str = ""
    place: str = ""
    named: bool = True


@dataclass(slots=True, eq=False)
class Words:
    """All words of one side.

    Parameters
    ----------
    place
        How messages call it.
    words
        By name, in the order in which they were read.
    unread
        Files, without their suffix, and lines that could not be used, and why.
    not_kept
        Words left out because their page was not kept.
    filtered_by
        Name and version of the recogniser that chose the pages; "" where none is known.
    """

    place: str
    words: dict[str, Word] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    not_kept: int = 0
    filtered_by: str = ""


def read_words(place: Place, form: str | None = None, *, reference: bool = False) -> Words:
    """Read one side.

    Parameters
    ----------
    place
        Where the inks are.
    form
        Form of a file or of a file object, one of `inktraj.io.FORMATS`, where its name does not tell.
    reference
        Everything must be readable, and of a pseudo-label data set only kept pages count. Otherwise what cannot be read
        becomes a word without ink, or, where not even its name can be read, an entry in `Words.unread`.

    Raises
    ------
    DataError
        There is nothing, or no ink in it; two words have one name; a reference cannot be read.
    """
    found = Words(_called(place))
    twice: dict[str, tuple[Word, Word]] = {}
    for word in _words(place, form, found, reference):
        other = found.words.setdefault(word.name, word)
        if other is not word:
            twice.setdefault(word.name, (other, word))
    if twice:
        first, second = next(iter(twice.values()))
        named = ", ".join(repr(name) for name in list(twice)[:5])
        more = f" and {len(twice) - 5} others" if len(twice) > 5 else ""
        raise DataError(
            f"{found.place}: {len(twice)} words are there twice: {named}{more} (the first in {first.place} and in "
            f"{second.place}); each word needs a name of its own"
        )
    found.unread = {_writable(where): _writable(reason) for where, reason in found.unread.items()}
    if not found.words and not found.unread:
        why = f": {found.not_kept} words are there, but of no page that was kept" if found.not_kept else ""
        raise DataError(f"{found.place}: there is no ink in it{why}; expected InkML, JSONL or SVG")
    return found


def _called(place: Any) -> str:
    return name_of(place) if isinstance(place, str | os.PathLike) or hasattr(place, "read") else "the records"


def _words(place: Place, form: str | None, found: Words, reference: bool) -> Iterator[Word]:
    if isinstance(place, str | os.PathLike) and Path(place).is_dir():
        yield from _folder(Path(place), found, reference)
    elif isinstance(place, str | os.PathLike) or hasattr(place, "read"):
        yield from _file(cast(File, place), form, None, found, reference)
    else:
        yield from _named(list(place), found.place, None, reference, found)


def _folder(root: Path, found: Words, reference: bool) -> Iterator[Word]:
    pages = root / "pages.jsonl"
    if (root / "records").is_dir() and (root / "settings.json").is_file():
        if not pages.is_file():
            raise DataError(f"{root}: a pseudo-label run that is not finished, for it has no pages.jsonl; let it end")
        found.filtered_by = _recognizer_of(root / "settings.json")
        yield from _file(pages, None, None, found, reference)
        return
    paths = _inside(root)
    if not paths:
        raise DataError(f"{root}: there is no ink in this folder, expected files that end in {', '.join(SUFFIXES)}")
    for path in paths:
        stem = path.relative_to(root).with_suffix("").as_posix()
        if path.is_file():
            yield from _file(path, None, stem, found, reference)
        elif reference:
            raise DataError(f"{path}: {_NO_FILE}")
        else:
            found.unread[stem] = f"{path}: {_NO_FILE}"


_NO_FILE = "no file that can be read, but a link that leads nowhere, or a pipe; remove or mend it"


def _inside(root: Path) -> list[Path]:
    """Return what in a folder has the name of an ink file, hidden ones left out; an unreadable folder is an error."""

    def refuse(err: OSError) -> None:
        raise DataError(f"{err.filename}: cannot be read ({err.strerror}), and may hold ink") from err

    paths = []
    for folder, folders, names in os.walk(root, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [Path(folder, name) for name in names if not name.startswith(".")]
    return sorted(path for path in paths if path.suffix.lower() in SUFFIXES)


def _recognizer_of(settings: Path) -> str:
    try:
        told = json.loads(settings.read_bytes())["recognizer"]
    except (OSError, ValueError, TypeError, KeyError):
        return ""  # the strokes can be used without; who chose them is then not known
    return told if isinstance(told, str) else ""


def _file(file: File, form: str | None, stem: str | None, found: Words, reference: bool) -> Iterator[Word]:
    name = name_of(file)
    by_lines = form == "jsonl" or (form is None and name.lower().endswith(_LINES))
    if by_lines and not reference:
        yield from _lines(file, stem, found)
        return
    try:
        records = read_ink(file, form)
    except ParseError as err:
        if reference or stem is None:
            raise
        found.unread[stem] = str(err)
        return
    yield from _named(records, name, None if by_lines else stem, reference, found)


def _lines(file: File, stem: str | None, found: Words) -> Iterator[Word]:
    """Read JSONL line by line, so that a bad one costs itself only."""
    name = name_of(file)
    for number, line in enumerate(read_bytes(file).split(b"\n"), 1):
        if line.strip():
            yield from _line(line, f"{name}, line {number}", found)


def _line(line: bytes, where: str, found: Words) -> Iterator[Word]:
    source = io.BytesIO(line)
    source.name = where  # what errors call it
    try:
        yield from _named(read_ink(source, "jsonl"), where, None, False, found)
    except ParseError as err:
        reason = str(err).replace(f"{where}, line 1", where, 1)
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            data = _cut_short(line)
        words = data.get("words") if isinstance(data, dict) else None
        if isinstance(words, list) and len(words) > 1:
            for word in words:
                yield from _line(json.dumps({**data, "words": [word]}).encode(), where, found)
            return
        name, page = _told_name(data)
        if not name:
            found.unread[where] = reason
            return
        found.unread[where] = reason
        yield Word(name, page, None, reason=_writable(reason), place=where)


def _cut_short(line: bytes) -> dict[str, Any]:
    """Return the id of a record that is cut short behind it; else nothing."""
    match = _ID.match(line)
    try:
        return {"id": json.loads(match[1])} if match else {}
    except ValueError:
        return {}


def _told_name(data: Any) -> tuple[str, str]:
    """Return what name and page a record tells that cannot be used otherwise; ("", "") for none."""
    if not isinstance(data, dict):
        return "", ""
    words = data.get("words")
    if words is not None:
        id = words[0].get("id") if isinstance(words, list) and words and isinstance(words[0], dict) else None
        page = data.get("page_id", data.get("id"))
    else:
        id, extra = data.get("id"), data.get("extra")
        page = extra.get("page") if isinstance(extra, dict) else None
    if not isinstance(id, str | int) or id == "":
        return "", ""
    page = _writable(page) if isinstance(page, str) else ""
    return _full(page, _writable(str(id))), page


def _full(page: str, id: str) -> str:
    return id if not page or id.startswith((f"{page}__", f"{page}-")) else f"{page}__{id}"


def _named(records: list[InkRecord], place: str, stem: str | None, reference: bool, found: Words) -> Iterator[Word]:
    """Name records of one file; `stem` is the file's own name where that counts."""
    for number, record in enumerate(records):
        if reference and record.extra.get("verdict", "kept") != "kept":
            found.not_kept += 1
            continue
        page, id = record.extra.get("page", ""), record.id
        if not page and stem is not None:
            page, id = ("", stem) if len(records) == 1 else (stem, id or f"ink-{number}")
        named = bool(page) or stem is not None or id not in _NAMELESS
        if not id and len(records) > 1:
            raise DataError(f"{place}: the ink {number} has no id, by which it could be matched")
        extra = {key.lower(): value for key, value in record.extra.items()}
        yield Word(
            _writable(_full(page, id)),
            _writable(page),
            record.ink,
            _writable(record.text),
            _writable(extra.get("writer", "")),
            _writable(extra.get("dataset", "")),
            extra.get("frame") != "inferred",
            _moved(extra, place),
            place=place,
            named=named,
        )


def _moved(extra: Mapping[str, str], place: str) -> tuple[float, float]:
    """Return how far a reader moved strokes to make up a frame (`inktraj.io.files.inferred_frame`)."""
    if extra.get("frame") != "inferred" or "moved" not in extra:
        return 0.0, 0.0
    try:
        x, y = map(float, extra["moved"].split())
    except ValueError as err:
        raise ParseError(
            f"{place}: moved is {extra['moved']!r}, expected two numbers beside a frame 'inferred'"
        ) from err
    return x, y


def _writable(text: str) -> str:
    """Replace lone surrogates, which JSON can express and files of text cannot hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
