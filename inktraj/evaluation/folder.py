"""The folder of an evaluation: one owner at a time, and answers to one set of questions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inktraj.errors import ParseError, RunError
from inktraj.io.files import write_bytes
from inktraj.pseudolabel.folder import locked

SETTINGS, LOCK = "settings.json", "run.lock"

_BEFORE_REPLIES = frozenset([SETTINGS, LOCK, "prompt.txt", "errors.jsonl"])
"""What a run writes before anything was answered."""

_MOST_TOLD = 60


class RunFolder:
    """The folder of an evaluation, held by one process from `__enter__` to `__exit__`; used for one set of settings.

    A folder in which nothing was answered yet, as after a wrong model name, is free for other settings.

    Parameters
    ----------
    root
        The folder; made where it does not exist.
    settings
        What decides the answers, as plain JSON.

    Raises
    ------
    RunError
        Another run holds the folder, it holds something else, or replies to other questions; or it cannot be written.
    ParseError
        Its settings are damaged.
    """

    def __init__(self, root: Path, settings: Mapping[str, Any]) -> None:
        self.root = root
        self.settings = settings

    def __enter__(self) -> None:
        try:
            if self.root.exists() and not self.root.is_dir():
                raise RunError(f"the output {self.root} is a file; expected a folder, or a name that is still free")
            self.root.mkdir(parents=True, exist_ok=True)
            strange = sorted(path.name for path in self.root.iterdir() if path.name != LOCK and not _half(path))
            if strange and not (self.root / SETTINGS).is_file():
                raise RunError(
                    f"the output folder {self.root} holds files that are not of a run ({strange[0]!r}, …); nothing was "
                    "touched. Name an empty or a new folder with --out"
                )
            self._lock = locked(self.root / LOCK)
            try:
                for path in filter(_half, self.root.iterdir()):
                    path.unlink(missing_ok=True)
                self._adopt()
            except BaseException:
                self._lock.close()
                raise
        except OSError as err:
            raise RunError(f"cannot write into {self.root}: {err.strerror or err}") from err

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def _adopt(self) -> None:
        path = self.root / SETTINGS
        if not path.exists():
            write_bytes(path, json.dumps(self.settings, indent=1, ensure_ascii=False).encode())
            return
        damaged = f"{path} is damaged, so nobody can tell what its replies answer; use another --out"
        try:
            old = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as err:
            raise ParseError(damaged) from err
        if not isinstance(old, dict):
            raise ParseError(damaged)
        now = json.loads(json.dumps(self.settings))
        if old == now:
            return
        if all(path.name in _BEFORE_REPLIES or not path.stat().st_size for path in self.root.iterdir()):
            write_bytes(path, json.dumps(self.settings, indent=1, ensure_ascii=False).encode())
            return
        told = "; ".join(_differences(old, now))
        raise RunError(f"{self.root} holds replies to other questions: {told}. Use another --out, or the same settings")


def _differences(old: Any, now: Any, name: str = "") -> Iterator[str]:
    """Say what differs, each setting by its dotted name."""
    if isinstance(old, dict) and isinstance(now, dict):
        for key in sorted({*old, *now}):
            yield from _differences(old.get(key), now.get(key), f"{name}.{key}".lstrip("."))
    elif old != now:
        yield f"{name} is {_told(old)} there and {_told(now)} now"


def _told(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_TOLD else text[:_MOST_TOLD] + "…"


def _half(path: Path) -> bool:
    """Whether a file was being written, beside its place, when a run was killed; see `inktraj.io.files.write_bytes`."""
    return path.name.startswith(".inktraj-") and path.suffix == ".tmp"


def stored_settings(root: Path) -> dict[str, Any]:
    """Return the settings of a run folder; empty where there are none, or they are damaged."""
    try:
        told = json.loads((root / SETTINGS).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
