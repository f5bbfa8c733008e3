"""The folder of a run: one owner at a time, one set of settings, and files that are whole or not there.

A page is done when ``records/<id>.json`` is there (page ids are safe file names); its other files are written
before it. Whatever kills a run leaves whole files and at most a few temporary ones, which the next run removes.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, cast

from inktraj.errors import ParseError, RunError
from inktraj.pseudolabel.record import PseudoLabel

FORM = "inktraj pseudo-labels"
"""How the format in the settings of a run begins."""

LOCK = "run.lock"
SETTINGS = "settings.json"
RECORDS = "records"
IMAGES = "renderings"
INKS = "inkml"
PREVIEWS = "previews"
FINAL = ("pages.jsonl", "pages.parquet", "words.parquet", "timings.jsonl", "run.json", "summary.md", "report.html")
METADATA = f"{IMAGES}/metadata.jsonl"

_PAGE_FILES = {RECORDS: ".json", IMAGES: ".png", INKS: ".inkml", PREVIEWS: ".jpg"}
_TEMPORARY = ".tmp-"
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


class RunFolder:
    """An output folder, held by this process from `__enter__` to `__exit__`.

    Parameters
    ----------
    root
        The folder; made where it does not exist.
    settings
        Everything that may change a result, by name.
    overwrite
        Remove the results of an earlier run first, whatever its settings.

    Raises
    ------
    RunError
        Another run holds the folder, it holds something else, or its results have other settings.
    """

    def __init__(self, root: Path, settings: dict[str, Any], *, overwrite: bool = False) -> None:
        self.root = root
        self._settings = settings
        self._overwrite = overwrite
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> RunFolder:
        if self.root.exists() and not self.root.is_dir():
            raise RunError(f"the output {self.root} is a file; expected a folder, or a name that is still free")
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._check_owner()
            self._lock = locked(self.root / LOCK)
        except OSError as err:
            raise _writing_failed(self.root, err) from err
        try:
            self._adopt_settings()
            for folder in _PAGE_FILES:
                (self.root / folder).mkdir(exist_ok=True)
            self._remove_temporaries()
        except BaseException as err:
            self._release()
            if isinstance(err, OSError):
                raise _writing_failed(self.root, err) from err
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()  # closing gives the lock back; the file stays, since removing it would race
            self._lock = None

    def _check_owner(self) -> None:
        names = {path.name for path in self.root.iterdir() if not path.name.startswith(_TEMPORARY)}
        # Settings may be damaged; lock and records then tell that the folder is a run's.
        of_a_run = SETTINGS in names and (self._old_settings() is not None or {LOCK, RECORDS} <= names)
        if names - {LOCK} and not of_a_run:
            example = sorted(names - {LOCK})[0]
            raise RunError(
                f"the output folder {self.root} holds files that are not of a run ({example!r}, …); "
                "nothing was touched. Name an empty or a new folder with --out"
            )

    def _adopt_settings(self) -> None:
        path = self.root / SETTINGS
        if path.exists():
            old = self._old_settings()
            if old is None and not self._overwrite:
                raise RunError(
                    f"{path} is damaged: it does not hold the settings of a run, so that nobody can tell whether the "
                    "results there belong to this one. Use another --out, or --overwrite to remove them first"
                )
            old = old or {}
            names = sorted(k for k in {*old, *self._settings} if old.get(k) != self._settings.get(k))
            if not names and not self._overwrite:
                return
            if not self._overwrite:
                told = "; ".join(f"{k} is {old.get(k)!r} there and {self._settings.get(k)!r} now" for k in names)
                raise RunError(
                    f"{self.root} holds results of other settings: {told}. They are never mixed: use another "
                    "--out, the same settings as before, or --overwrite to remove those results first"
                )
            self._remove_results()
        self.write(SETTINGS, json_bytes(self._settings, indent=1))

    def _old_settings(self) -> dict[str, Any] | None:
        """Return the settings in the folder; None where the file holds no run's."""
        try:
            old = json.loads((self.root / SETTINGS).read_bytes())
        except (ValueError, IsADirectoryError):
            return None
        return old if isinstance(old, dict) and str(old.get("format", "")).startswith(FORM) else None

    def _remove_results(self) -> None:
        # Records go first: a kill in between leaves pages that are to be done again, never half pages.
        for folder, suffix in _PAGE_FILES.items():
            for path in sorted((self.root / folder).glob(f"*{suffix}")):
                path.unlink()
        for name in (*FINAL, METADATA):
            (self.root / name).unlink(missing_ok=True)

    def _remove_temporaries(self) -> None:
        for folder in (self.root, *(self.root / name for name in _PAGE_FILES)):
            for path in folder.glob(f"{_TEMPORARY}*"):
                path.unlink(missing_ok=True)

    def path(self, folder: str, name: str) -> Path:
        """Return where the page file of that `folder` (`RECORDS`, `IMAGES`, …) and page name is."""
        return self.root / folder / f"{name}{_PAGE_FILES[folder]}"

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the folder, whole or not at all."""
        with self.replacing(name) as file:
            file.write(data)

    def replacing(self, name: str) -> Replacing:
        """Return a context: a binary file that takes the place of `name` when the block ends well."""
        return Replacing(self.root / name)

    def write_page(self, name: str, files: dict[str, bytes], record: dict[str, Any]) -> None:
        """Write a page's files (by folder), then the record, to which it adds their sizes."""
        for folder in (IMAGES, INKS, PREVIEWS):
            if folder in files:
                with Replacing(self.path(folder, name)) as file:
                    file.write(files[folder])
            else:
                _remove(self.path(folder, name))  # of the page's earlier version
        record["files"] = {folder: len(files[folder]) for folder in sorted(files)}
        self.write(f"{RECORDS}/{name}.json", json_bytes(record))

    def read_record(self, name: str) -> dict[str, Any] | None:
        """Return a page's record; None where it is not done.

        Raises
        ------
        ParseError
            Something else than a run has damaged the record or the page's files; the page must be done again.
        RunError
            The record cannot be read.
        """
        path = self.path(RECORDS, name)
        try:
            data = json.loads(path.read_bytes())
            _check_record(data, name)
        except FileNotFoundError:
            return None
        except OSError as err:
            raise RunError(f"{path} cannot be read ({err.strerror}); is it a file, with rights to read it?") from err
        except ValueError as err:
            raise ParseError(f"the record {path} is damaged ({err})") from err
        for folder, size in data["files"].items():
            file = self.path(folder, name)
            if not file.is_file() or file.stat().st_size != size:
                raise ParseError(f"{file} is not as it was written ({size} bytes)")
        return cast("dict[str, Any]", data)

    def record_names(self) -> Iterator[str]:
        """Names of all pages with a record, those of earlier runs too."""
        for path in sorted((self.root / RECORDS).glob("*.json")):
            yield path.name.removesuffix(".json")


class Replacing:
    """Writes a file beside its target and renames it at the end, so that no half file ever has its name.

    Raises
    ------
    RunError
        The disk is full or refuses; the temporary file is removed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(_TEMPORARY + path.name)

    def __enter__(self) -> BinaryIO:
        try:
            self._file: BinaryIO = open(self._temporary, "wb")
        except OSError as err:
            raise _writing_failed(self._path, err) from err
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            try:
                if error is None:
                    self._file.flush()
                    os.fsync(self._file.fileno())
            finally:
                self._close()
            if error is None:
                os.replace(self._temporary, self._path)
                return
        except OSError as err:
            error = err
        self._temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _writing_failed(self._path, error) from error

    def _close(self) -> None:
        try:
            self._file.close()
        except OSError:  # the buffer's rest did not fit either; the descriptor is closed all the same
            if not self._file.closed:
                raise


def _check_record(record: Any, name: str) -> None:
    if not isinstance(record, dict):
        raise ParseError(f"{type(record).__name__}, expected an object")
    if PseudoLabel.from_json(record.get("page")).page_id != name:
        raise ParseError("it is of another page")
    files, timings = record.get("files"), record.get("timings")
    if not isinstance(files, dict) or not files.keys() <= _PAGE_FILES.keys():
        raise ParseError("it does not name the page's files")
    if not isinstance(timings, dict) or not all(isinstance(seconds, int | float) for seconds in timings.values()):
        raise ParseError("it does not tell the seconds of each stage")


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as err:
        raise _writing_failed(path, err) from err


def json_bytes(data: Any, *, indent: int | None = None) -> bytes:
    """Return JSON in UTF-8 with a line end; NaN is an error, since JSON has none."""
    separators = None if indent else (",", ":")
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    return (text + "\n").encode("utf-8", "backslashreplace")


def _writing_failed(path: Path, err: OSError) -> RunError:
    if err.errno in _FULL:
        return RunError(
            f"the disk is full: {path} could not be written ({err.strerror}). All finished pages are kept; "
            "free some space and run the same command again to go on"
        )
    return RunError(f"cannot write {path}: {err.strerror or err}; are its rights and the disk in order?")


def locked(path: Path) -> IO[bytes]:
    """Open and lock a file; the system gives the lock back when the process ends, however it ends."""
    file = open(path, "a+b")  # noqa: SIM115 - held open for the whole run
    try:
        _lock(file)
    except OSError as err:
        file.close()
        if err.errno in {errno.EACCES, errno.EAGAIN, errno.EDEADLK}:
            raise RunError(
                f"another run is writing into {path.parent}; wait for it, stop it, or use another --out"
            ) from err
        raise
    return file


_lock: Callable[[IO[bytes]], None]
if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
