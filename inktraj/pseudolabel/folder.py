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
from typing import IO, Any, BinaryIO

from inktraj.errors import RunError

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
            self._lock = _locked(self.root / LOCK)
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
        known = {LOCK, SETTINGS}
        names = {path.name for path in self.root.iterdir() if not path.name.startswith(_TEMPORARY)}
        if names - known and SETTINGS not in names:
            example = sorted(names - known)[0]
            raise RunError(
                f"the output folder {self.root} holds files that are not of a run ({example!r}, …); "
                "nothing was touched. Name an empty or a new folder with --out"
            )

    def _adopt_settings(self) -> None:
        path = self.root / SETTINGS
        if path.exists():
            try:
                old = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as err:
                raise RunError(f"{path} is damaged ({err}); use another --out, or --overwrite it") from err
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
        """Write a page's files (by folder), then the record that says they are there."""
        for folder in (IMAGES, INKS, PREVIEWS):
            if folder in files:
                with Replacing(self.path(folder, name)) as file:
                    file.write(files[folder])
            else:
                self.path(folder, name).unlink(missing_ok=True)  # of the page's earlier version
        self.write(f"{RECORDS}/{name}.json", json_bytes(record))

    def read_record(self, name: str) -> dict[str, Any] | None:
        """Return a page's record; None where it is not done, or damaged by something else than a run."""
        try:
            data = json.loads(self.path(RECORDS, name).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        if not isinstance(data, dict) or "page" not in data:
            return None
        if any(not self.path(folder, name).exists() for folder in data.get("files", ())):
            return None
        return data

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


def _locked(path: Path) -> IO[bytes]:
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
