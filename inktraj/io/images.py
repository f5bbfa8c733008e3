"""Page images: found in a folder, a file, a glob or an archive, and read one at a time.

`find_sources` names the pages without decoding them, in a stable order and with unique ids; `load` reads
one of them. Both raise `DataError`; a damaged file is still named, so that its loading fails where it can
be recorded. See `inktraj.io.decoding` for the forms and the limits of size.

Archives are never unpacked to disk; the names inside them make ids only, so ``../`` in them does no harm.
"""

from __future__ import annotations

import atexit
import glob
import hashlib
import io
import lzma
import os
import stat
import tarfile
import threading
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Self

from inktraj.errors import DataError
from inktraj.io.decoding import FORMS, IMAGE_KINDS, MAX_PIXELS, MAX_SIDE, U8, decode, find_pages, sniff

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_PIXELS",
    "MAX_SIDE",
    "SUFFIXES",
    "ImageFile",
    "Skipped",
    "Source",
    "Sources",
    "digest",
    "find_sources",
    "load",
    "read_image",
]

SUFFIXES = frozenset(
    [".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".tif", ".tiff", ".webp", ".bmp", ".dib", ".gif", ".pdf"],
)
"""Suffixes, in lower case, by which a folder's or an archive's files are taken for pages."""

MAX_FILE_BYTES = 512 * 2**20
"""Largest archive member or stream in bytes; these are held in memory, files on disk are not."""

_KEPT_BYTES = 64 * 2**20  # a member up to this size is kept until another one is read

_ARCHIVES = {"ZIP archive": "zip", "tar archive": "tar", "gzip data": "tar", "bzip2 data": "tar", "xz data": "tar"}
_ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    OSError,
    EOFError,
    RuntimeError,  # an encrypted zip
    NotImplementedError,  # a zip's compression method
    ValueError,
)


@dataclass(frozen=True, slots=True, eq=False)
class ImageFile:
    """One page's pixels and where they came from.

    Parameters
    ----------
    pixels
        ``(h, w, 3)`` uint8 RGB, upright, alpha composited on white.
    id
        Names the page; safe as a file name.
    source
        Path, with ``!member`` for a part of an archive and ``#page=2`` from the second page on.
    sha256
        Hex digest of the file's (or the archive member's) bytes.
    """

    pixels: U8
    id: str
    source: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Source:
    """One page to be loaded; small and picklable.

    Parameters
    ----------
    id
        Unique among the sources found together; safe as a file name.
    path
        The file, or the archive.
    member
        Name inside the archive; None for a plain file.
    index
        Page of a multi-page TIFF or PDF, from 0.
    """

    id: str
    path: str
    member: str | None = None
    index: int = 0

    @property
    def name(self) -> str:
        """Where the page is, for people and records: ``path!member#page=2``; always valid UTF-8."""
        member = "" if self.member is None else f"!{self.member}"
        page = f"#page={self.index + 1}" if self.index else ""
        return _printable(f"{self.path}{member}{page}")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a folder or an archive that was not taken for a page, and why."""

    path: str
    reason: str


class Sources(list[Source]):
    """The pages found, in order, and in `skipped` what was passed over."""

    def __init__(self, sources: Iterable[Source] = (), skipped: Iterable[Skipped] = ()) -> None:
        super().__init__(sources)
        self.skipped = tuple(skipped)


@dataclass(frozen=True, slots=True)
class _Found:
    """A file or member that holds pages: its path relative to what was searched makes the ids."""

    relative: str
    path: str
    member: str | None
    pages: tuple[int, ...]


def find_sources(where: str | Path) -> Sources:
    """Name the pages in a folder, a file, a glob pattern, or a zip or tar archive.

    Parameters
    ----------
    where
        A folder (searched recursively; hidden files and links to folders are passed over), an image or
        PDF, a zip or tar (also .gz, .bz2, .xz), or a pattern such as ``scans/**/*.jpg``.

    Returns
    -------
    Sources
        A list of `Source`, sorted by relative path and then page; `skipped` says what was passed over.
        Each page of a TIFF or PDF is one source. A damaged file is one source, and `load` says why.

    Raises
    ------
    DataError
        Nothing is there, or no page was found; a pipe or device; an archive that is damaged or cut short.
    """
    text = os.fspath(where)
    skipped: list[Skipped] = []
    if not text:
        raise DataError("the place to look for pages is empty, expected a folder, file, pattern or archive")
    if os.path.isdir(text):
        found = _in_folder(text, skipped)
    elif os.path.exists(text):
        if reason := _irregular(text):
            raise DataError(
                f"{_printable(text)}: {reason}, expected a file, folder, pattern or archive; "
                "a page that comes through a pipe is read from standard input: use - in its place"
            )
        kind = _archive_kind(text)
        found = list(_in_archive(text, kind, skipped)) if kind else [_on_disk(text, os.path.basename(text))]
    elif glob.has_magic(text):
        found = _in_glob(text, skipped)
    else:
        raise DataError(f"{_printable(text)}: no such file or folder (seen from {os.getcwd()}); is the path misspelt?")
    if not found:
        raise DataError(_nothing(text, skipped))
    found.sort(key=lambda f: f.relative)
    return Sources(_named(found), skipped)


def load(source: Source) -> ImageFile:
    """Read one page.

    Raises
    ------
    DataError
        The file is missing, not an image, damaged, or of an absurd size.
    MissingDependency
        A PDF, and pypdfium2 is not installed.
    """
    if source.member is not None:
        file: BinaryIO = io.BytesIO(_member(source.path, source.member, source.name))
        return _read(file, source.index, source.id, source.name)
    with _open(source.path) as file:
        return _read(file, source.index, source.id, source.name)


def digest(source: Source) -> str:
    """Return the SHA-256 (hex) of a page's file or archive member, as `load` gives it, without decoding it.

    Raises
    ------
    DataError
        The file or member cannot be read, or the member is larger than `MAX_FILE_BYTES`.
    """
    if source.member is not None:
        return hashlib.sha256(_member(source.path, source.member, source.name)).hexdigest()
    with _open(source.path) as file:
        return _digest(file)


def read_image(path: str | Path | BinaryIO, *, index: int = 0) -> ImageFile:
    """Read one page of an image or PDF file.

    Parameters
    ----------
    path
        A file, a pipe such as ``/dev/fd/63``, or a binary file object (need not be seekable).
    index
        Page of a multi-page TIFF or PDF, from 0.

    Raises
    ------
    DataError
        The file is missing, not an image, damaged, or of an absurd size.
    MissingDependency
        A PDF, and pypdfium2 is not installed.
    """
    if isinstance(path, str | os.PathLike):
        text = os.fspath(path)
        source = Source(_page_id(_stem(os.path.basename(text)), index), text, None, index)
        return load(source)
    name = getattr(path, "name", None)
    name = _printable(name) if isinstance(name, str) and name else "<stream>"
    stem = "page" if name.startswith("<") else _stem(os.path.basename(name))  # such as <stdin>
    shown = name + (f"#page={index + 1}" if index else "")
    return _read(io.BytesIO(_bounded(path, name)), index, _page_id(stem, index), shown)


def _read(file: BinaryIO, index: int, id: str, name: str) -> ImageFile:
    sha256 = _digest(file)
    return ImageFile(decode(file, index=index, name=name), id, name, sha256)


def _digest(file: IO[bytes]) -> str:
    sha256 = hashlib.sha256()
    while block := file.read(1 << 20):
        sha256.update(block)
    return sha256.hexdigest()


@contextmanager
def _open(path: str) -> Iterator[BinaryIO]:
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below; only the opening's errors are renamed)
    except OSError as err:
        reason = err.strerror or str(err)
        raise DataError(f"{_printable(path)}: cannot be opened ({reason}); expected an image file") from err
    with file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            yield file
        else:  # a pipe cannot be read twice, a device may never end
            yield io.BytesIO(_bounded(file, _printable(path)))


def _bounded(stream: IO[bytes], name: str) -> bytes:
    data = stream.read(MAX_FILE_BYTES + 1)
    if not isinstance(data, bytes):
        raise DataError(f"{name}: gives text, expected bytes; open it in binary mode")
    if len(data) > MAX_FILE_BYTES:
        raise DataError(f"{name}: holds more than {MAX_FILE_BYTES / 2**20:g} MiB; unpack it or cut it into pages")
    return data


def _printable(text: str) -> str:
    """Return text that can be written as UTF-8: bytes of a file name that are not come out as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


# Finding


def _irregular(path: str) -> str | None:
    """Return why what a path leads to cannot be read as a file is, or None; opening a pipe could wait for ever."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return None  # loading it says why
    return None if stat.S_ISREG(mode) else "not a regular file but a pipe, socket or device"


def _on_disk(path: str, relative: str) -> _Found:
    try:
        with open(path, "rb") as file:
            pages = tuple(find_pages(file))
    except OSError:
        pages = (0,)  # loading it says why
    return _Found(relative.replace(os.sep, "/"), path, None, pages)


def _in_folder(folder: str, skipped: list[Skipped]) -> list[_Found]:
    found = []

    def cannot_list(err: OSError) -> None:
        skipped.append(Skipped(str(err.filename), f"cannot be listed ({err.strerror})"))

    for at, folders, files in os.walk(folder, onerror=cannot_list):
        for name in sorted(folders):
            path = os.path.join(at, name)
            if name.startswith("."):
                skipped.append(Skipped(path, "hidden"))
            elif os.path.islink(path):
                skipped.append(Skipped(path, "a link to a folder"))
        folders[:] = [f for f in folders if not f.startswith(".")]
        for name in sorted(files):
            path = os.path.join(at, name)
            if reason := _passed_over(name) or _irregular(path):
                skipped.append(Skipped(path, reason))
            else:
                found.append(_on_disk(path, os.path.relpath(path, folder)))
    return found


def _in_glob(pattern: str, skipped: list[Skipped]) -> list[_Found]:
    base = pattern
    while glob.has_magic(base):
        base = os.path.dirname(base)
    found = []
    for path in sorted(set(glob.glob(pattern, recursive=True))):
        if os.path.isdir(path):
            skipped.append(Skipped(path, "a folder; a pattern names files"))
        elif reason := _passed_over(os.path.basename(path)) or _irregular(path):
            skipped.append(Skipped(path, reason))
        else:
            found.append(_on_disk(path, os.path.relpath(path, base or os.curdir)))
    if not found and not skipped:
        raise DataError(
            f"{_printable(pattern)}: no file matches this pattern (seen from {os.getcwd()}); is it misspelt, or is "
            "** missing for folders inside folders?"
        )
    return found


def _passed_over(name: str) -> str | None:
    """Return why a file is not taken for a page by its name, or None."""
    if name.startswith("."):
        return "hidden"
    lower = name.lower()
    if lower.endswith(_ARCHIVE_SUFFIXES):
        return "an archive; name it itself to read the pages in it"
    suffix = PurePosixPath(lower).suffix
    return None if suffix in SUFFIXES else f"the suffix {suffix or '(none)'} is not that of an image"


def _nothing(text: str, skipped: list[Skipped]) -> str:
    examples = "; ".join(f"{_printable(s.path)}: {s.reason}" for s in skipped[:3])
    seen = f"passed over {len(skipped)} ({examples})" if skipped else "it is empty"
    return f"{_printable(text)}: no page found, {seen}; expected files of {FORMS}"


# Archives


def _archive_kind(path: str) -> str | None:
    """Return "zip" or "tar" by the file's first bytes; by its name where those of a damaged one say nothing."""
    try:
        with open(path, "rb") as file:
            kind = sniff(file.read(1024))
    except OSError:
        return None
    if kind in _ARCHIVES:
        return _ARCHIVES[kind]
    lower = path.lower()
    if kind not in IMAGE_KINDS and lower.endswith(_ARCHIVE_SUFFIXES):
        return "zip" if lower.endswith(".zip") else "tar"
    return None


@contextmanager
def _archive_errors(name: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except KeyError as err:
        raise DataError(f"{name}: the archive has no such member; was it changed meanwhile?") from err
    except _ARCHIVE_ERRORS as err:
        raise DataError(
            f"{name}: the archive cannot be read ({err}); expected a whole zip or tar without a password"
        ) from err


def _in_archive(path: str, kind: str, skipped: list[Skipped]) -> Iterator[_Found]:
    with _archive_errors(_printable(path)):
        members: Iterator[tuple[str, Callable[[], IO[bytes] | None], str | None]]
        seen: dict[str, _Found] = {}
        members = _zip_members(path) if kind == "zip" else _tar_members(path)
        for member, opener, special in members:
            reason = special or _member_passed_over(member)
            if reason:
                skipped.append(Skipped(f"{path}!{member}", reason))
                continue
            if member in seen:
                skipped.append(Skipped(f"{path}!{member}", "an earlier member of the same name; the last one counts"))
            seen[member] = _Found("/".join(_member_parts(member)), path, member, _member_pages(opener))
    yield from seen.values()


def _member_parts(member: str) -> list[str]:
    return [p for p in member.replace("\\", "/").split("/") if p not in ("", ".", "..")]


def _member_passed_over(member: str) -> str | None:
    parts = _member_parts(member)
    if not parts:
        return "has no name"
    if any(p.startswith(".") or p == "__MACOSX" for p in parts):
        return "hidden"
    return _passed_over(parts[-1])


def _zip_members(path: str) -> Iterator[tuple[str, Callable[[], IO[bytes] | None], str | None]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield info.filename, lambda info=info: archive.open(info), None  # type: ignore[misc]


class _TarHeader(tarfile.TarInfo):
    """A tar's header, where a damaged one is an error: to `tarfile` it is the end, and what follows is lost."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """Return the next header; raises DataError at one that is damaged, cut short or missing."""
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as err:
            whole_end = isinstance(err, tarfile.EOFHeaderError)  # type: ignore[attr-defined]
            if whole_end or archive.offset == 0:
                raise
            raise DataError(_broken_tar(archive, f"the header that follows cannot be read ({err})")) from err


def _broken_tar(archive: tarfile.TarFile, why: str) -> str:
    count = len(archive.members)  # type: ignore[attr-defined] # `getmembers` would read on
    return (
        f"{_printable(str(archive.name))}: the tar is damaged or cut short: {count} members can be read, but {why}; "
        "expected blocks of zeros behind the last member. Copy or make it again"
    )


def _tar_members(path: str) -> Iterator[tuple[str, Callable[[], IO[bytes] | None], str | None]]:
    with tarfile.open(path, tarinfo=_TarHeader) as archive:
        for info in archive:
            special = None if info.isfile() else "a link or a device, not a file"
            if not info.isdir():
                yield info.name, lambda info=info: archive.extractfile(info), special  # type: ignore[misc]
        # A block of zeros ended the tar. Reading on also checks a compressed one's own end.
        while archive.fileobj is not None and (block := archive.fileobj.read(1 << 20)):
            if block.strip(b"\0"):
                raise DataError(_broken_tar(archive, "other data than zeros follow a block of zeros"))


def _member_pages(opener: Callable[[], IO[bytes] | None]) -> tuple[int, ...]:
    """Return a member's pages; only a TIFF or PDF is read whole for it. A damaged one has page 0."""
    try:
        stream = opener()
        if stream is None:
            return (0,)
        with stream:
            head = stream.read(1024)
            if sniff(head) not in ("TIFF", "PDF"):
                return (0,)
            rest = stream.read(MAX_FILE_BYTES)
            return tuple(find_pages(io.BytesIO(head + rest))) if len(rest) < MAX_FILE_BYTES else (0,)
    except _ARCHIVE_ERRORS:
        return (0,)


class _Archive:
    """An archive held open, as finding a member takes a pass through it, and a compressed tar is read forward only."""

    def __init__(self, path: str) -> None:
        self.key = self.key_of(path)
        self.file: zipfile.ZipFile | tarfile.TarFile
        if _archive_kind(path) == "zip":
            self.file = zipfile.ZipFile(path)
        else:
            self.file = tarfile.open(path, tarinfo=_TarHeader)  # noqa: SIM115 (closed by `close`)
        self.kept: tuple[str, bytes] | None = None

    @staticmethod
    def key_of(path: str) -> tuple[object, ...]:
        """Return what changes with the file; and with the process, as a fork shares the place in an open file."""
        at = os.stat(path)
        return os.getpid(), path, at.st_dev, at.st_ino, at.st_mtime_ns, at.st_size

    def read(self, member: str, name: str) -> bytes:
        """Return a member's bytes; the last one's are at hand for its other pages and its digest."""
        if self.kept is not None and self.kept[0] == member:
            return self.kept[1]
        self.kept = None
        file = self.file
        stream = file.open(member) if isinstance(file, zipfile.ZipFile) else file.extractfile(member)
        if stream is None:
            raise DataError(f"{name}: not a file inside the archive")
        with stream:
            data = _bounded(stream, name)
        if len(data) <= _KEPT_BYTES:
            self.kept = member, data
        return data

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class _LastArchive:
    """The archive that was read last, one a process; nothing is kept of one whose reading failed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._archive: _Archive | None = None

    def read(self, path: str, member: str, name: str) -> bytes:
        """Return a member's bytes."""
        with self._lock:
            try:
                if self._archive is None or self._archive.key != _Archive.key_of(path):
                    self._forget()
                    self._archive = _Archive(path)
                return self._archive.read(member, name)
            except BaseException:
                self._forget()
                raise

    def close(self) -> None:
        """Close the archive, if one is open."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        archive, self._archive = self._archive, None
        if archive is not None:
            archive.close()


_LAST_ARCHIVE = _LastArchive()
atexit.register(_LAST_ARCHIVE.close)


def _member(path: str, member: str, name: str) -> bytes:
    with _archive_errors(name):
        return _LAST_ARCHIVE.read(path, member, name)


# Ids


def _named(found: list[_Found]) -> Iterator[Source]:
    """Give each page an id; where two would be the same on a case-blind disk, all of these say more of themselves."""
    detail = [0] * len(found)
    while True:
        owners: dict[str, set[int]] = {}
        for i, item in enumerate(found):
            for page in item.pages:
                owners.setdefault(_page_id(_stem(item.relative, detail[i]), page).casefold(), set()).add(i)
        again = {i for group in owners.values() if len(group) > 1 for i in group if detail[i] < 2}
        if not again:
            break
        for i in again:
            detail[i] += 1
    for i, item in enumerate(found):
        for page in item.pages:
            yield Source(_page_id(_stem(item.relative, detail[i]), page), item.path, item.member, page)


def _page_id(stem: str, page: int) -> str:
    return f"{stem}-p{page + 1}" if page else stem


def _stem(relative: str, detail: int = 0) -> str:
    """Return a file-system-safe name made from a relative path.

    Detail 0: folders joined by ``__``, no suffix. 1: the suffix kept. 2: with a digest of the path.
    """
    path = PurePosixPath(relative)
    shown = path if detail or not path.name else path.with_suffix("")
    text = unicodedata.normalize("NFC", "__".join(shown.parts))
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in text).lstrip(".") or "page"
    digest = hashlib.sha256(relative.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    if detail < 2 and len(safe.encode()) <= 150:
        return safe
    return safe.encode()[:150].decode("utf-8", "ignore") + "-" + digest
