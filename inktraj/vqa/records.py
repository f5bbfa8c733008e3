"""Records of JSON, JSON Lines, CSV, TSV and Parquet files, read alike; and what their values are."""

from __future__ import annotations

import base64
import csv
import json
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inktraj.errors import DataError, ParseError
from inktraj.io.files import read_text

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")

_LARGEST_CELL = 1 << 28  # characters: images stand in TSV files as base64


def read_records(
    path: Path, *, without: Sequence[str] = (), damaged: Callable[[str, str], None] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a file's records, each with where it stands.

    Parameters
    ----------
    path
        By its suffix; with or without a byte order mark. JSON holds a list of objects, or one object with such a list,
        with objects by id (which becomes their ``id`` where they have none), or with answers by id.
    without
        Columns of Parquet that are not read, such as images.
    damaged
        Is told place and reason of a line that is no record, which is then passed over; None: it is an error.

    Raises
    ------
    DataError
        It cannot be read, or has another suffix.
    ParseError
        It is not in the form that its suffix promises.
    """
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            yield from _lines(path, damaged)
        case ".json":
            yield from _json(path)
        case ".csv" | ".tsv":
            yield from _separated(path, damaged)
        case ".parquet":
            yield from _parquet(path, without)
        case suffix:
            raise DataError(f"{path}: files of records end in one of {', '.join(SUFFIXES)}, not in {suffix!r}")


def text_of(value: Any) -> str | None:
    """Return a value as text; None for nothing: null and NaN (an empty text stays one).

    Whole numbers that a reader made floats of are written without their ``.0``.
    """
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False, default=str)


def find_image(folder: Path, name: str, among: Sequence[str] = ("", "images")) -> Path | None:
    """Return the file of an image that records name by a path; None where it is not there.

    A name never leads out of `folder`; backslashes are taken for slashes.
    """
    for place in among:
        path = os.path.join(folder, place, name.replace("\\", "/"))
        if os.path.isfile(path) and Path(path).resolve().is_relative_to(folder.resolve()):
            return Path(path)
    return None


def _lines(path: Path, damaged: Callable[[str, str], None] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path.name}, line {number}"
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError(f"a JSON object is expected, not {type(record).__name__}")
        except (ValueError, RecursionError) as err:
            if damaged is None:
                raise ParseError(f"{path}, line {number}: not a record ({err})") from err
            damaged(where, f"not a record ({err})")
            continue
        yield where, record


def _json(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as err:
        if isinstance(err, DataError):
            raise
        raise ParseError(f"{path}: not JSON ({err}); a file with one record a line is called .jsonl") from err
    if isinstance(data, dict):
        lists = [value for value in data.values() if isinstance(value, list)]
        if len(lists) == 1:
            data = lists[0]
        elif all(isinstance(value, dict) for value in data.values()):
            data = [{"id": key, **value} for key, value in data.items()]
        elif all(isinstance(value, str | int | float | None) for value in data.values()):
            data = [{"id": key, "answer": value} for key, value in data.items()]
    if not isinstance(data, list) or not all(isinstance(record, dict) for record in data):
        raise ParseError(f"{path}: expected a list of objects, one a record, or an object with one for each id")
    for number, record in enumerate(data, 1):
        yield f"{path.name}, record {number}", record


def _separated(path: Path, damaged: Callable[[str, str], None] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    before = csv.field_size_limit(_LARGEST_CELL)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            # Strict: a quotation mark that is not closed would swallow the rows behind it in silence.
            reader = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
            head = next(reader, None)
            for cells in reader:
                if not cells:
                    continue
                where = f"{path.name}, line {reader.line_num}"
                if head is None or len(cells) != len(head):
                    why = f"{len(cells)} cells, and the head has {len(head or [])}; is a comma not quoted?"
                    if damaged is None:
                        raise ParseError(f"{path}, line {reader.line_num}: {why}")
                    damaged(where, why)
                    continue
                yield where, dict(zip(head, cells, strict=True))
    except OSError as err:
        raise DataError(f"{path}: cannot be read ({err.strerror or err})") from err
    except (csv.Error, UnicodeDecodeError) as err:
        line = "" if isinstance(err, UnicodeDecodeError) else f", line {reader.line_num}"
        raise ParseError(f"{path}{line}: not a table in UTF-8 with quotation marks in pairs ({err})") from err
    finally:
        csv.field_size_limit(before)


def _parquet(path: Path, without: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name not in without]
            number = 0
            for batch in file.iter_batches(columns=columns):
                for record in batch.to_pylist():
                    number += 1
                    yield f"{path.name}, row {number}", record
    except (OSError, pa.ArrowException) as err:
        raise ParseError(f"{path}: not a Parquet file that can be read ({err})") from err


def _pass_over(where: str, why: str) -> None:
    """Say nothing: who has read the records has been told."""


class Cells:
    """One column of a Parquet or separated file, read forwards as its cells are asked for; thread-safe.

    Large columns (images) are never held whole: rows that are asked for in order cost one pass, and the last `KEPT`
    stay at hand for threads that come a little late. Going further back starts the pass anew.

    Parameters
    ----------
    path
        By its suffix: ``.parquet``, ``.csv`` or ``.tsv``.
    column
        Its name.
    """

    KEPT = 24

    def __init__(self, path: Path, column: str) -> None:
        self._path, self._column = path, column
        self._lock = threading.Lock()
        self._pass: Iterator[Any] = iter(())
        self._next = -1
        self._kept: OrderedDict[int, Any] = OrderedDict()

    def __call__(self, row: int) -> Any:
        """Return the cell of a row, from 0; raises DataError where there is none."""
        with self._lock:
            if row in self._kept:
                return self._kept[row]
            if row < self._next or self._next < 0:
                self._pass, self._next = self._values(), 0
                self._kept.clear()
            for value in self._pass:
                self._next += 1
                self._kept[self._next - 1] = value
                while len(self._kept) > self.KEPT:
                    self._kept.popitem(last=False)
                if self._next == row + 1:
                    return value
            self._next = -1
            raise DataError(f"{self._path}: there is no row {row + 1}")

    def _values(self) -> Iterator[Any]:
        if self._path.suffix.lower() != ".parquet":
            for _, record in _separated(self._path, _pass_over):
                yield record.get(self._column)
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self._path, pre_buffer=False, buffer_size=1 << 20) as file:
                if self._column not in file.schema_arrow.names:
                    raise KeyError(self._column)
                for batch in file.iter_batches(batch_size=8, columns=[self._column]):
                    for value in batch.column(0):
                        yield value.as_py()
        except (OSError, KeyError, pa.ArrowException) as err:
            raise DataError(f"{self._path}: the column {self._column} cannot be read ({err})") from err


def image_bytes(value: Any, where: str) -> bytes:
    """Return the bytes of an image as data sets hold it: bytes, ``{"bytes": …}``, or text in base64.

    Raises
    ------
    DataError
        It is none of these.
    """
    if isinstance(value, Mapping):
        value = value.get("bytes")
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        text = value.partition("base64,")[2] if value.startswith("data:") else value
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except ValueError as err:
            raise DataError(f"{where}: the image is no base64 ({err})") from err
    seen = "there is no image" if value is None else f"the image is {type(value).__name__}"
    raise DataError(f"{where}: {seen}, expected bytes or base64")
