"""``samples.jsonl``: every reply, as it came, one a line; what a run that was stopped goes on from.

A line is written whole, in one call, at the end of the file. A line that was cut by a kill or a full disk is the last
one and has no line end: it is taken off when the file is opened again, and its sample is asked anew. Errors have a file
of their own, so that they are never taken for an answer.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inktraj.errors import ParseError, RunError
from inktraj.evaluation.views import Place
from inktraj.vlm import Reply

REPLIES = "samples.jsonl"
ERRORS = "errors.jsonl"

_MOST_PIXELS = 10**9

_WHOLE = (int, type(None))
_FIELDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(["key", "frame", "text", "stop_reason", "raw_stop", "model", "at"], (str,)),
    **dict.fromkeys(["input_tokens", "output_tokens", "cached_tokens", "thinking_tokens"], _WHOLE),
    **dict.fromkeys(["ids", "sent", "original", "corner"], (list,)),
    "seconds": (int, float),
    "attempts": (int,),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply and what it is a reply to.

    Parameters
    ----------
    key
        Of the request.
    ids
        Samples that it asked for.
    frame
        Name of the coordinate frame that it asked for.
    place
        Where the sent image lies on the page.
    reply
        As the model gave it.
    at
        When, in UTC.
    batch
        Id of the provider's batch that it came from; "" where it was asked for by itself.
    """

    key: str
    ids: tuple[str, ...]
    frame: str
    place: Place
    reply: Reply
    at: str
    batch: str = ""

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        reply = self.reply
        return {
            "key": self.key,
            "ids": list(self.ids),
            "frame": self.frame,
            "sent": list(self.place.sent),
            "original": list(self.place.original),
            "corner": list(self.place.corner),
            "text": reply.text,
            "stop_reason": reply.stop_reason,
            "raw_stop": reply.raw_stop,
            "model": reply.model,
            "input_tokens": reply.input_tokens,
            "output_tokens": reply.output_tokens,
            "cached_tokens": reply.cached_tokens,
            "thinking_tokens": reply.thinking_tokens,
            "seconds": round(reply.seconds, 3),
            "attempts": reply.attempts,
            "at": self.at,
            **({"batch": self.batch} if self.batch else {}),
        }

    @classmethod
    def of(cls, record: dict[str, Any]) -> Answer:
        """Read a JSON object; KeyError, TypeError or ValueError where it is none of ours."""
        for name, kinds in _FIELDS.items():
            if not isinstance(record[name], kinds) or isinstance(record[name], bool):
                raise TypeError(f"{name} is {record[name]!r}")
        reply = Reply(
            record["text"],
            record["stop_reason"],
            record["input_tokens"],
            record["output_tokens"],
            record["model"],
            record["seconds"],
            record["attempts"],
            record["raw_stop"],
            record["cached_tokens"],
            record["thinking_tokens"],
        )
        sizes = [tuple(map(int, record[name])) for name in ("sent", "original", "corner")]
        if not all(0 <= side < _MOST_PIXELS for size in sizes for side in size):
            raise ValueError(f"sizes are {sizes}")
        place = Place((sizes[0][0], sizes[0][1]), (sizes[1][0], sizes[1][1]), (sizes[2][0], sizes[2][1]))
        ids = tuple(map(str, record["ids"]))
        if not ids:
            raise ValueError("ids is empty")
        batch = str(record.get("batch", ""))
        return cls(str(record["key"]), ids, str(record["frame"]), place, reply, record["at"], batch)


class Journal:
    """The replies of a run folder; appending is thread-safe.

    Raises
    ------
    RunError
        The file cannot be read or written.
    ParseError
        A line that is not the last is damaged, or two differ and have one key.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / REPLIES
        self._errors = folder / ERRORS
        self._lock = threading.Lock()
        self.keys: dict[str, str] = {}
        try:
            cut_torn_line(self._path)
            texts: dict[str, int] = {}
            for answer in read_answers(folder):
                if texts.setdefault(answer.key, hash(answer.reply.text)) != hash(answer.reply.text):
                    raise ParseError(
                        f"{self._path}: there are two replies with the key {answer.key}, and they differ; only one "
                        "was asked for, so remove the line that was added"
                    )
                self.keys[answer.key] = answer.ids[0]
            self._errors.write_bytes(b"")  # those of an earlier run were tried again or are no longer asked for
        except OSError as err:
            raise RunError(f"{err.filename or self._path}: {err.strerror or err}") from err

    def add(self, answer: Answer) -> None:
        """Append a reply; the same key twice is kept once."""
        with self._lock:
            if answer.key in self.keys:
                return
            append_record(self._path, answer.record())
            self.keys[answer.key] = answer.ids[0]

    def sync(self) -> None:
        """Bring all to the disk."""
        if self._path.exists():
            with open(self._path, "rb") as file:
                os.fsync(file)

    def add_error(self, ids: tuple[str, ...], frame: str, error: str, status: int | None) -> None:
        """Note what could not be asked."""
        with self._lock:
            append_record(self._errors, {"ids": list(ids), "frame": frame, "error": error, "status": status})


def read_answers(folder: Path) -> Iterator[Answer]:
    """Read the replies of a run, one at a time.

    Raises
    ------
    ParseError
        A line is damaged; a last line without its end is passed over.
    """
    yield from (answer for _, answer in _placed_answers(folder / REPLIES))


def _placed_answers(path: Path) -> Iterator[tuple[int, Answer]]:
    """Read the replies of a file, each with the place of its line, in bytes."""
    if not path.exists():
        return
    at = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield at, Answer.of(json.loads(line))
            except (ValueError, KeyError, TypeError, IndexError, RecursionError) as err:
                raise ParseError(
                    f"{path}, line {number}: not a reply as a run writes it ({err}); restore the file, or "
                    "remove the line to have what it answers asked again"
                ) from err
            at += len(line)


class Replies(Mapping[str, Answer]):
    """The replies of a run by key, each read from the file when it is asked for: together they are too large to keep.

    Parameters
    ----------
    folder
        Of the run.
    keys
        Those that are wanted, where the file may hold others.

    Raises
    ------
    ParseError
        A line is damaged.
    """

    def __init__(self, folder: Path, keys: Container[str]) -> None:
        self._path = folder / REPLIES
        self._places = {answer.key: at for at, answer in _placed_answers(self._path) if answer.key in keys}

    def __getitem__(self, key: str) -> Answer:
        at = self._places[key]
        with open(self._path, "rb") as file:
            file.seek(at)
            return Answer.of(json.loads(file.readline()))

    def reply(self, key: str) -> Reply:
        """Read what the model said."""
        return self[key].reply

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def read_errors(folder: Path) -> list[dict[str, Any]]:
    """Return what could not be asked in the last run."""
    path = folder / ERRORS
    if not path.exists():
        return []
    return [
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")
    ]


def append_record(path: Path, record: dict[str, Any], *, durable: bool = False) -> None:
    """Append a line of JSON in one call; `durable`: it is on the disk before this returns.

    Raises
    ------
    RunError
        The file cannot be written; nothing of the line is left in it.
    """
    line = json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            before = os.fstat(file).st_size
            written = os.write(file, line)
            if written != len(line):
                os.ftruncate(file, before)
                raise OSError(28, "no space for a whole line")
            if durable:
                os.fsync(file)
        finally:
            os.close(file)
    except OSError as err:
        raise RunError(f"cannot write {path}: {err.strerror or err}; free some space and run the same again") from err


def cut_torn_line(path: Path) -> None:
    """Take off a last line that was not written whole; one that lacks its end only, as an editor leaves it, gets it."""
    if not path.exists():
        return
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        at = size
        while at > 0:
            start = max(at - (1 << 16), 0)
            file.seek(start)
            block = file.read(at - start)
            end = block.rfind(b"\n")
            if end >= 0:
                at = start + end + 1
                break
            at = start
        if at == size:
            return
        file.seek(at)
        if _is_whole(file.read()):
            file.write(b"\n")
        else:
            file.truncate(at)


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
