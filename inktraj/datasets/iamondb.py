"""IAM-OnDB as it is distributed: recorded lines of forms, and what they say.

    lineStrokes/a01/a01-000/a01-000u-01.xml     the first line of the form a01-000u
    ascii/a01/a01-000/a01-000u.txt              its text: sections ``OCR:`` (as printed) and ``CSR:`` (as written)
    original/a01/a01-000/strokesu.xml           optional; its head says who wrote the form

A line is ``WhiteboardCaptureSession`` → ``StrokeSet`` → ``Stroke`` → ``Point`` with x, y (whiteboard units, from its
upper left corner, y down) and time (s). The lines of ``CSR:`` follow the line files in order; where their numbers
differ nobody knows which is which, and the form is refused.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inktraj.datasets.sample import Problem
from inktraj.errors import DataError, ParseError
from inktraj.ink import FloatArray
from inktraj.io.files import read_bytes
from inktraj.io.markup import Element, parse_xml

LINES, TEXTS, ORIGINALS = "lineStrokes", "ascii", "original"

_LINE = re.compile(r"(?P<form>[A-Za-z]\w*-\d+\w*)-(?P<line>\d+)\.xml")
_FORM = re.compile(r"(?P<folder>(?P<top>[A-Za-z]\w*)-\d+)(?P<hand>[A-Za-z]?\w*)")
_WRITER = re.compile(rb"<Form\b[^>]*\bwriterID\s*=\s*[\"']([^\"']*)[\"']")
_HEAD = 16384  # bytes of an original in which its head ends


@dataclass(frozen=True, slots=True, eq=False)
class RecordedLine:
    """One line: strokes ``(n, 2)`` in whiteboard units and writing order, with the time of each point in seconds.

    `times` is None where the file's go backwards.
    """

    strokes: tuple[FloatArray, ...]
    times: tuple[FloatArray, ...] | None


@dataclass(frozen=True, slots=True)
class Form:
    """The files of a form: its lines in order, its text; None where there is none."""

    id: str
    lines: tuple[Path, ...]
    text: Path | None


def find_forms(root: Path) -> tuple[list[Form], list[Problem]]:
    """Find the forms of a local copy, by name, and what is not as it should be.

    Raises
    ------
    DataError
        There are no line files.
    """
    if not root.is_dir():
        raise DataError(f"{root}: there is no such folder; expected a local copy of IAM-OnDB")
    lines: dict[str, dict[int, Path]] = {}
    problems = []
    for path in sorted((root / LINES).rglob("*")):
        if not path.is_file() or path.name.startswith("."):
            continue
        match = _LINE.fullmatch(path.name)
        if match is None:
            problems.append(Problem(str(path), "no line file, expected a name such as a01-000u-01.xml"))
            continue
        other = lines.setdefault(match["form"], {}).setdefault(int(match["line"]), path)
        if other is not path:
            problems.append(Problem(str(path), f"the line is there twice, also as {other}; the first counts"))
    if not lines:
        raise DataError(
            f"{root / LINES}: there are no line files such as a01/a01-000/a01-000u-01.xml; unpacked elsewhere?"
        )
    texts: dict[str, Path] = {}
    for path in sorted((root / TEXTS).rglob("*.txt")):
        if texts.setdefault(path.stem, path) is not path:
            problems.append(
                Problem(str(path), f"the text is there twice, also as {texts[path.stem]}; the first counts")
            )
    problems += [
        Problem(str(path), "there is no line file of this form") for name, path in texts.items() if name not in lines
    ]
    forms = [
        Form(id, tuple(path for _, path in sorted(numbered.items())), texts.get(id))
        for id, numbered in sorted(lines.items())
    ]
    return forms, problems


def read_line(path: Path) -> tuple[RecordedLine, list[Problem]]:
    """Read a line file.

    Raises
    ------
    DataError
        It cannot be read, or holds no stroke.
    ParseError
        It is no recorded line, a number is missing or no number, or the sensor is in another corner.
    """
    root = parse_xml(read_bytes(path), str(path))
    if root.tag != "WhiteboardCaptureSession":
        raise ParseError(f"{path}: the document is a {root.tag}, expected a WhiteboardCaptureSession")
    _check_corner(root, path)
    strokes, times, problems = [], [], []
    for element in root.iter():
        if element.tag != "Stroke":
            continue
        points = [child for child in element.children if child.tag == "Point"]
        if not points:
            problems.append(Problem(f"{path}, line {element.line}", "a stroke without points is left out"))
            continue
        numbers = np.array([[_number(point, key, path) for key in ("x", "y", "time")] for point in points])
        strokes.append(numbers[:, :2])
        times.append(numbers[:, 2])
    if not strokes:
        raise DataError(f"{path}: there is no stroke in it")
    if (np.diff(np.concatenate(times)) < 0).any():
        problems.append(Problem(str(path), "times go backwards and are left out"))
        return RecordedLine(tuple(strokes), None), problems
    return RecordedLine(tuple(strokes), tuple(times)), problems


def _check_corner(root: Element, path: Path) -> None:
    corners = [e.attributes.get("corner", "") for e in root.iter() if e.tag == "SensorLocation"]
    if corners != ["top_left"]:
        told = corners[0] if corners else "not told"
        raise ParseError(f"{path}: the sensor's corner is {told!r}, expected 'top_left'; x and y may run another way")


def _number(point: Element, key: str, path: Path) -> float:
    text = point.attributes.get(key)
    try:
        value = float(text or "")
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ParseError(f"{path}, line {point.line}: {key} of a point is {text!r}, expected a number")
    return value


def read_text_lines(path: Path) -> list[str]:
    """Read the lines of a form as they were written: those of the section ``CSR:``, without empty ones.

    Raises
    ------
    DataError
        The file cannot be read.
    ParseError
        It has no section ``CSR:``, or nothing in it.
    """
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    lines = [line.strip() for line in text.splitlines()]
    heads = [i for i, line in enumerate(lines) if line == "CSR:"]
    if len(heads) != 1:
        raise ParseError(f"{path}: {len(heads)} sections CSR:, expected one; is it another file, or cut short?")
    found = [html.unescape(line) for line in lines[heads[0] + 1 :] if line]
    if not found:
        raise ParseError(f"{path}: the section CSR: is empty")
    return found


def writer_of(root: Path, form: str) -> str:
    """Return the number of a form's writer from the head of its original; "" where there is none."""
    match = _FORM.fullmatch(form)
    if match is None:
        return ""
    for folder in sorted(root.glob(f"{ORIGINALS}*")):
        path = folder / match["top"] / match["folder"] / f"strokes{match['hand']}.xml"
        try:
            with path.open("rb") as file:
                found = _WRITER.search(file.read(_HEAD))
        except OSError:
            continue  # originals are optional
        if found:
            return found[1].decode("ascii", "replace")
    return ""


def read_splits(root: Path, patterns: Mapping[str, str], forms: Iterable[str]) -> tuple[dict[str, str], list[Problem]]:
    """Read the lists of forms: form → split; and forms in two lists, or listed and not there."""
    known, of, problems = set(forms), dict[str, str](), []
    for split, pattern in patterns.items():
        paths = sorted(root.glob(pattern))
        if not paths:
            continue
        missing = []
        for form in read_bytes(paths[0]).decode("utf-8-sig", "replace").split():
            if form not in known:
                missing.append(form)
            elif of.setdefault(form, split) != split:
                problems.append(Problem(f"{paths[0]}, {form}", f"it is of the split {of[form]} too; that counts"))
        if missing:
            named = ", ".join(missing[:5]) + (" …" if len(missing) > 5 else "")
            problems.append(Problem(str(paths[0]), f"{len(missing)} of its forms have no line files: {named}"))
    return of, problems


_CLOSING = set(".,;:!?)]}%’”")
_OPENING = set("([{‘“")


def words_of(line: str) -> list[str]:
    """Split a line into words; marks alone go to the word before, opening brackets to the one behind."""
    words: list[str] = []
    waiting = ""
    for token in line.split():
        if words and not waiting and set(token) <= _CLOSING:
            words[-1] += token
        elif set(token) <= _OPENING:
            waiting += token
        else:
            words.append(waiting + token)
            waiting = ""
    if waiting:
        words[-1:] = ["".join([*words[-1:], waiting])]
    return words
