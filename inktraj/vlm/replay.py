"""Recorded replies, for tests and for scoring again without asking again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from inktraj.errors import DataError, ParseError
from inktraj.vlm.cost import Price
from inktraj.vlm.limits import ImageLimits
from inktraj.vlm.protocol import ProviderError, Reply, Request

_NAMES = ("key", "sample", "id")
_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "thinking_tokens")


class Replay:
    """Answers from a file; a reply that is not in it is an error, never an empty answer.

    Each line is a JSON object with the reply's name — ``key``, ``sample`` or ``id``; with several, any of them — and
    ``text``; ``stop_reason`` ("end" where left out), ``model``, ``input_tokens``, ``output_tokens``, ``cached_tokens``,
    ``thinking_tokens``, ``seconds`` and ``raw_stop`` where they were recorded. Other fields are passed over, and so are
    lines with an ``error``, and a last line that was cut while it was written. A request's reply is that of its `key`,
    else of its `sample`, else of its `digest`; a sample that was asked about in several ways has no reply by its name.

    Parameters
    ----------
    path
        The file.
    name
        As the user called it.
    frame, limits, prices
        Of the model that was recorded; see `inktraj.vlm.VLM`.

    Raises
    ------
    DataError
        The file cannot be read, holds no reply, or has two different ones of one key.
    ParseError
        A line is not what it should be.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        name: str = "replay",
        frame: str = "sent-px",
        limits: ImageLimits | None = None,
        prices: tuple[Price, ...] = (),
    ) -> None:
        self.path = Path(path)
        self.name = name
        self.frame = frame
        self.limits = limits or ImageLimits()
        self.prices = prices
        try:
            with self.path.open("rb") as file:
                self._places, self._unclear, models, self._digest = _read(file, str(self.path))
                self._stamp = _stamp(file)
        except OSError as err:
            raise DataError(f"recorded replies {self.path}: {err.strerror or err}") from err
        if not self._places:
            raise DataError(f"{self.path} holds no replies; each line is a JSON object with sample and text")
        self.model_id = next(iter(models)) if len(models) == 1 else self.path.name

    needs_pictures = False
    """Replies are found by name: pages need not be opened, nor pictures made."""

    def __repr__(self) -> str:
        return f"<Replay {self.path}: {len(self._places)} names>"

    def ask(self, request: Request) -> Reply:
        """Return the recorded reply.

        Raises
        ------
        ProviderError
            There is none, or several that differ.
        """
        for name in self._names(request):
            if name in self._unclear:
                raise ProviderError(f"{self.path} has several replies to {name!r}, and they differ; ask by key")
            if name in self._places:
                return self._reply(*self._places[name])
        asked = request.sample or request.key or request.digest()
        raise ProviderError(f"{self.path} has no reply to {asked!r}; was it recorded for other samples?")

    def _reply(self, at: int, size: int) -> Reply:
        """Read a reply again: the texts of a whole data set would take more memory than all else."""
        try:
            with self.path.open("rb") as file:
                changed = _stamp(file) != self._stamp
                file.seek(at)
                line = file.read(size)
        except OSError as err:
            raise ProviderError(f"recorded replies {self.path}: {err.strerror or err}") from err
        if changed:
            raise ProviderError(f"{self.path} was changed since it was opened, and may hold other replies now")
        return _reply(json.loads(line), str(self.path))

    def _names(self, request: Request) -> Iterator[str]:
        yield request.key
        yield request.sample
        yield request.digest()  # last, as it takes reading the images

    def describe(self) -> dict[str, Any]:
        """Return what decides the answers: the file's content."""
        return {"provider": "replay", "model": self.model_id, "sha256": self._digest}

    def close(self) -> None:
        """Do nothing: no file stays open."""


def _stamp(file: BinaryIO) -> tuple[int, int]:
    """What changes when a file is written anew."""
    state = os.fstat(file.fileno())
    return state.st_size, state.st_mtime_ns


Place = tuple[int, int]
"""Where a reply's line begins in the file, and its length, in bytes."""


def _read(file: BinaryIO, path: str) -> tuple[dict[str, Place], set[str], set[str], str]:
    """Return where each name's reply stands, the names with several that differ, the models, and the file's SHA-256."""
    places: dict[str, Place] = {}
    contents: dict[str, bytes] = {}
    unclear: set[str] = set()
    models: set[str] = set()
    told = hashlib.sha256()
    at = 0
    for number, line in enumerate(file, 1):
        told.update(line)
        place, at = (at, len(line)), at + len(line)
        record = _record(line, number, path)
        if record is None:
            continue
        reply = _reply(record, f"{path}, line {number}")
        names = {field: record[field] for field in _NAMES if isinstance(record.get(field), str) and record[field]}
        if not names:
            raise ParseError(f"{path}, line {number}: a reply without a name; give it one of {', '.join(_NAMES)}")
        if reply.model:
            models.add(reply.model)
        content = hashlib.sha256(repr(reply).encode("utf-8", "surrogatepass")).digest()
        for field, name in names.items():
            places.setdefault(name, place)
            if contents.setdefault(name, content) == content:
                continue
            if field == "key":
                raise DataError(
                    f"{path}, line {number}: another reply to {name!r} stands above, and it is not the same"
                )
            unclear.add(name)
    return places, unclear, models, told.hexdigest()


def _record(line: bytes, number: int, path: str) -> dict[str, Any] | None:
    """Return a line's record; None for one that is empty, tells of an error, or was cut while it was written."""
    if not line.strip():
        return None
    try:
        record = json.loads(line)
    except ValueError as err:
        if number > 1 and not line.endswith(b"\n"):
            return None
        raise ParseError(f"{path}, line {number}: not JSON ({err})") from err
    if not isinstance(record, dict):
        raise ParseError(f"{path}, line {number}: a JSON object is expected, not {type(record).__name__}")
    return None if record.get("error") else record


def _reply(record: dict[str, Any], where: str) -> Reply:
    if not isinstance(record.get("text"), str):
        raise ParseError(f"{where}: text is {record.get('text')!r}; a string is expected, as the model gave it")
    counts: dict[str, int | None] = {name: record.get(name) for name in _COUNTS}
    for name, value in counts.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise ParseError(f"{where}: {name} is {value!r}; a whole number is expected, or nothing")
    seconds = record.get("seconds") or 0.0
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ParseError(f"{where}: seconds is {seconds!r}; a number is expected")
    try:
        return Reply(
            record["text"],
            record.get("stop_reason") or "end",
            counts["input_tokens"],
            counts["output_tokens"],
            str(record.get("model") or ""),
            float(seconds),
            1,
            str(record.get("raw_stop") or ""),
            counts["cached_tokens"],
            counts["thinking_tokens"],
        )
    except DataError as err:
        raise ParseError(f"{where}: {err}") from err
