"""Paths and file objects, text and binary ones, read and written alike; and frames for ink that has none."""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError, ParseError
from inktraj.ink import Frame

File = str | Path | IO[Any]
"""A path, or a text or binary file object."""


def models_folder() -> Path:
    """The folder of shipped models: within the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "models"
    return inside if inside.is_dir() else package.parent / "models"


def name_of(file: File) -> str:
    """Return how errors call a file."""
    name = os.fspath(file) if isinstance(file, str | os.PathLike) else getattr(file, "name", None)
    return name if isinstance(name, str) and name else "<stream>"


def read_bytes(file: File) -> bytes:
    """Read a whole file; text becomes UTF-8. Raises DataError where it cannot be read."""
    try:
        if isinstance(file, str | os.PathLike):
            return Path(file).read_bytes()
        data = file.read()
    except OSError as err:
        raise DataError(f"{name_of(file)}: cannot be read ({err.strerror or err})") from err
    except UnicodeDecodeError as err:
        raise ParseError(
            f"{name_of(file)}: not text in {err.encoding} (byte {err.start}); open it in binary mode"
        ) from err
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)


def read_text(file: File) -> str:
    """Read a whole file of UTF-8, with or without a byte order mark. Raises ParseError where it is not."""
    data = read_bytes(file)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise ParseError(
            f"{name_of(file)}, line {line}: byte {err.start} ({data[err.start]:#04x}) is not UTF-8; save it as UTF-8"
        ) from err


def write_text(file: File, text: str | Iterable[str]) -> None:
    """Write UTF-8 with ``\\n`` line ends. Raises DataError where it cannot be written; a file there is then kept.

    A text may come in pieces, made as they are written, so that a large one is never held as a whole.
    """
    pieces = [text] if isinstance(text, str) else text
    try:
        if isinstance(file, str | os.PathLike):
            _write_file(Path(file), (piece.encode("utf-8") for piece in pieces))
            return
        wide = isinstance(file, io.TextIOBase) or hasattr(file, "encoding")
        for piece in pieces:
            file.write(piece if wide else piece.encode("utf-8"))
        file.flush()  # a reader that has gone, or a full disk, must be told of here and not at the exit
    except OSError as err:
        raise DataError(f"{name_of(file)}: cannot be written ({err.strerror or err})") from err
    except UnicodeEncodeError as err:
        raise DataError(f"{name_of(file)}: the text cannot be written as {err.encoding} ({err})") from err


def write_bytes(path: str | Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file whole or not at all. Raises DataError where it cannot be written; a file there is then kept.

    Data may come in pieces, made as they are written.
    """
    try:
        _write_file(Path(path), [data] if isinstance(data, bytes) else data)
    except OSError as err:
        raise DataError(f"{path}: cannot be written ({err.strerror or err})") from err


_OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")  # names of files that somebody has open, and goes on writing to


def _write_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file whole or not at all: beside its place, then put there."""
    try:
        before: int | None = os.stat(path).st_mode
    except FileNotFoundError:
        before = None
    is_file = before is None or (stat.S_ISREG(before) and os.access(path, os.W_OK))
    if not is_file or os.path.abspath(path).startswith(_OPEN_FILES):
        with open(path, "wb") as out:
            out.writelines(pieces)  # a pipe is written to; of a file that may not be written this says so
        return
    path = Path(os.path.realpath(path))  # what a link leads to is replaced, not the link
    beside = path.with_name(f".inktraj-{secrets.token_hex(8)}.tmp")
    try:
        with open(beside, "xb") as out:
            out.writelines(pieces)
            out.flush()
            os.fsync(out.fileno())
        if before is not None:
            os.chmod(beside, stat.S_IMODE(before))
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def number(value: float) -> str:
    """Write a number with seven significant digits and without an exponent."""
    short = f"{value + 0.0:.7g}"  # -0 becomes 0
    if "e" in short:
        return np.format_float_positional(value, precision=7, unique=False, fractional=False, trim="-")
    return short


def number_list(values: NDArray[np.float64]) -> str:
    """Write an array's values one after another, each as `number` writes it, with a space between."""
    flat = (values.ravel() + 0.0).tolist()
    text = " ".join(["%.7g"] * len(flat)) % tuple(flat)
    return " ".join(map(number, flat)) if "e" in text else text


def inferred_frame(
    strokes: Sequence[NDArray[np.float64]], unit: str
) -> tuple[list[NDArray[np.float64]], Frame, dict[str, str]]:
    """Give strokes of a file without a frame one that holds them.

    The frame begins at 0 and ends one unit behind the last point. Strokes with negative coordinates are
    moved, by a whole number of units, to begin at 0.

    Returns
    -------
    strokes, frame, notes
        `notes` says that the frame is inferred, and how far strokes were moved.
    """
    notes = {"frame": "inferred"}
    if not strokes:
        return [], Frame(1, 1, unit), notes
    points = np.concatenate(strokes)
    shift = np.where(points.min(axis=0) < 0, np.floor(points.min(axis=0)), 0.0)
    if shift.any():
        notes["moved"] = " ".join(number(-v) for v in shift)
    width, height = np.floor(points.max(axis=0) - shift) + 1
    return [s - shift for s in strokes], Frame(float(width), float(height), unit), notes
