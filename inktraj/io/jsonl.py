"""JSON Lines: one record a line.

A record is ``{"id", "text", "frame": {"width", "height", "unit"}, "strokes": [[x, y, s], …]}`` with s = 1 at
a stroke's first point, else 0; optional ``"widths"`` and ``"times"`` (seconds) hold one number a point,
``"times_source"`` says of times whether they are ``"recorded"`` or ``"estimated"``, ``"extra"`` holds strings by
name. Numbers are written so that they come back exactly.

The page records of a pseudo-label data set (``"words"``, ``"width"``, ``"height"``) are read too: each word
becomes one `InkRecord` in the page's frame, named ``page__word``, with the page and its verdict in `InkRecord.extra`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from inktraj.errors import DataError, ParseError
from inktraj.ink import Frame, Ink
from inktraj.io import InkRecord
from inktraj.io.files import File, name_of, read_text, write_text


def read_jsonl(file: File) -> list[InkRecord]:
    """Read records, or the words of page records.

    Parameters
    ----------
    file
        Path, or a text or binary file object.

    Raises
    ------
    ParseError
        A line is not JSON or not a record; the message says which and what.
    """
    name = name_of(file)
    records: list[InkRecord] = []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            records.extend(_line(line, f"{name}, line {number}"))
    return records


def write_jsonl(file: File, records: Iterable[InkRecord]) -> None:
    """Write records, one a line.

    Parameters
    ----------
    file
        Path, or a text or binary file object.
    records
        What to write.
    """
    write_text(file, (json.dumps(_to_json(r), ensure_ascii=False) + "\n" for r in records))


def _to_json(record: InkRecord) -> dict[str, Any]:
    ink = record.ink
    out: dict[str, Any] = {
        "id": record.id,
        "text": record.text,
        "frame": {"width": float(ink.frame.width), "height": float(ink.frame.height), "unit": ink.frame.unit},
        "strokes": [[x, y, int(s)] for x, y, s in ink.to_xys().tolist()],
    }
    if ink.widths is not None:
        out["widths"] = [v for w in ink.widths for v in w.tolist()]
    if ink.times is not None:
        out["times"] = [v for t in ink.times for v in t.tolist()]
    if ink.times_source is not None:
        out["times_source"] = ink.times_source
    if record.extra:
        out["extra"] = dict(record.extra)
    return out


def _line(line: str, where: str) -> Iterator[InkRecord]:
    try:
        data = json.loads(line, parse_constant=_refuse)
    except RecursionError as err:
        raise ParseError(f"{where}: nested too deeply, expected a record") from err
    except ValueError as err:
        column = f", column {err.colno}" if isinstance(err, json.JSONDecodeError) else ""
        message = err.msg if isinstance(err, json.JSONDecodeError) else str(err)
        raise ParseError(
            f"{where}{column}: not JSON ({message}), expected one whole record on each line; cut short, or spread "
            "over several lines?"
        ) from err
    if not isinstance(data, dict):
        raise ParseError(f"{where}: {_kind(data)}, expected an object with id, frame and strokes")
    if "words" in data:
        yield from _page(data, where)
        return
    size = data.get("frame")
    if not isinstance(size, dict):
        raise ParseError(f'{where}: frame is {_kind(size)}, expected {{"width": …, "height": …, "unit": …}}')
    yield _record(data, _frame(size, where), str(data.get("id", "")), where)


def _page(data: dict[str, Any], where: str) -> Iterator[InkRecord]:
    words = data["words"]
    if not isinstance(words, list) or not all(isinstance(w, dict) for w in words):
        raise ParseError(f"{where}: words is not a list of objects, expected a page record of a pseudo-label data set")
    if not words:
        return
    page = str(data.get("page_id", data.get("id", "")))
    frame = _frame(data, where)
    extra = {"page": page} if page else {}
    if isinstance(data.get("verdict"), str):
        extra["verdict"] = data["verdict"]
    for i, word in enumerate(words):
        id = str(word.get("id", f"w{i}"))
        full = id if not page or id.startswith((f"{page}__", f"{page}-")) else f"{page}__{id}"
        yield _record({**word, "extra": extra}, frame, full, f"{where}, word {i} ({id})")


def _frame(size: dict[str, Any], where: str) -> Frame:
    width: Any = size.get("width")
    height: Any = size.get("height")
    unit: Any = size.get("unit", "px")
    if not (_is_number(width) and _is_number(height) and isinstance(unit, str)):
        raise ParseError(f"{where}: a frame of {width!r}×{height!r} {unit!r}, expected two numbers and a unit's name")
    try:
        return Frame(float(width), float(height), unit)
    except (DataError, OverflowError) as err:
        raise ParseError(f"{where}: {err}") from err


def _record(data: dict[str, Any], frame: Frame, id: str, where: str) -> InkRecord:
    points = _numbers(data.get("strokes"), f"{where}: strokes", 3)
    text, extra = data.get("text"), data.get("extra") or {}
    if not isinstance(text, str | None) or not isinstance(extra, dict):
        raise ParseError(f"{where}: text is {_kind(text)} and extra {_kind(extra)}, expected a string and an object")
    try:
        ink = Ink.from_xys(points, frame)
        ends = np.cumsum([len(s) for s in ink.strokes])[:-1]
        along: dict[str, Any] = {"times_source": data.get("times_source")}
        for name in ("widths", "times"):
            if data.get(name) is not None:
                values = _numbers(data[name], f"{where}: {name}", 1)
                if len(values) != len(points):
                    raise ParseError(f"{where}: {len(values)} {name} for {len(points)} points, expected one for each")
                along[name] = tuple(np.split(values, ends)) if ink.strokes else ()
        ink = Ink(ink.strokes, frame, **along)
    except ParseError:
        raise
    except DataError as err:
        raise ParseError(f"{where}: {err}") from err
    return InkRecord(
        id, ink, text or "", {str(k): v if isinstance(v, str) else json.dumps(v) for k, v in extra.items()}
    )


def _numbers(values: Any, what: str, columns: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return an array ``(n, columns)``, or ``(n,)`` for one column; numbers only, no strings or booleans."""
    form = "a list of [x, y, s]" if columns == 3 else "a list of numbers"
    if not isinstance(values, list):
        raise ParseError(f"{what} is {_kind(values)}, expected {form}")
    rows = [values] if columns == 1 else values
    if not _all_numbers(rows, columns):
        for i, value in enumerate(values):
            row = value if columns > 1 else [value]
            if not (isinstance(row, list) and len(row) == columns and all(map(_is_number, row))):
                raise ParseError(f"{what}, point {i} is {json.dumps(value)[:60]}, expected {form}")
    try:
        flat = np.array(list(chain.from_iterable(rows)), dtype=np.float64)
        return flat.reshape((-1, columns) if columns > 1 else -1)
    except OverflowError as err:
        raise ParseError(f"{what}: a number beyond all coordinates") from err


def _all_numbers(rows: list[Any], columns: int) -> bool:
    """Say whether all rows are lists of so many plain numbers, without a step of Python for each."""
    if not set(map(type, rows)) <= {list} or (columns > 1 and not set(map(len, rows)) <= {columns}):
        return False
    return set(map(type, chain.from_iterable(rows))) <= {int, float}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "missing or null", bool: "true or false"}
    return names.get(type(value), "a number")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")
