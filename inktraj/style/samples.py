"""Inks by writer: read from folders and files, and split into words to learn from and words held out.

A source is one of

* a folder with a folder for each writer, whose files are all that writer's: ``FOLDER/WRITER/**``;
* an ink file, or a folder of ink files, whose records say the writer in their extras (``extra: {"writer": "anna"}``);
* an ``.npz`` archive of packed words: ``delta`` int16 (points, 2), the steps from point to point, whose running sum in
  int16 gives the coordinates; ``stroke_offsets`` (strokes + 1) into points; ``word_offsets`` (words + 1) into strokes;
  ``writer`` (words,), and, if there is one, ``split`` (words,).
"""

from __future__ import annotations

import hashlib
import itertools
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inktraj.errors import DataError
from inktraj.ink import Frame, Ink
from inktraj.io import read_ink

INK_SUFFIXES = (".inkml", ".jsonl", ".ndjson", ".json", ".svg")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp")


class NoWriter(DataError):
    """A record does not say whose hand it is in; the others of such a source will not either."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Inks of known writers.

    Parameters
    ----------
    inks
        One word each, none of them empty.
    writers
        Whose they are; beside `inks`.
    skipped
        What was passed over as something else, and why.
    failed
        Files that could not be used, and why.
    """

    inks: Sequence[Ink]
    writers: Sequence[str]
    skipped: Sequence[str] = ()
    failed: Sequence[str] = ()

    def by_writer(self) -> dict[str, list[Ink]]:
        """The inks of each writer; writers in the order of their names."""
        found: dict[str, list[Ink]] = {name: [] for name in sorted(set(self.writers))}
        for ink, name in zip(self.inks, self.writers, strict=True):
            found[name].append(ink)
        return found


def read_samples(
    source: str | Path, *, split: str | None = None, from_image: Callable[[Path], Ink] | None = None
) -> Samples:
    """Read inks by writer; see the module for the forms.

    Parameters
    ----------
    source
        The folder or the file.
    split
        Only words that are of this split, by the archive's ``split`` or by ``split`` in a record's extras.
    from_image
        Turns a picture's file into an ink. None: pictures are passed over, and told in `Samples.skipped`.

    Raises
    ------
    DataError
        There is nothing there, a record tells of no writer, or no ink is left. A file of a folder that cannot be used
        is told in `Samples.failed`.
    """
    path = Path(source)
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder of inks by writer")
    skipped: list[str] = []
    failed: list[str] = []
    if path.suffix.lower() == ".npz":
        found = list(_packed(path, split))
    elif path.is_dir():
        found = list(_folder(path, split, from_image, skipped, failed))
    else:
        found = list(_records(path, None, split))
    kept = [(ink, writer) for ink, writer in found if ink.strokes]
    if len(found) > len(kept):
        skipped.append(f"{len(found) - len(kept)} inks without strokes")
    if not kept:
        why = f"; passed over: {[*failed, *skipped][0]}" if failed or skipped else ""
        asked = f" of the split {split!r}" if split is not None else ""
        raise DataError(f"{path}: no inks by writer{asked}; expected FOLDER/WRITER/FILE or records with a writer{why}")
    inks, writers = zip(*kept, strict=True)
    return Samples(inks, writers, tuple(skipped), tuple(failed))


def held_out(by_writer: Mapping[str, Sequence[Ink]], share: float, seed: int) -> dict[str, list[bool]]:
    """Choose the words that are held out: of each writer the share, but one at least and not all.

    The choice depends on the seed and on each ink's own points, not on names of files or their order; inks with the
    same points are on the same side.
    """
    return {name: _chosen(inks, share, seed, name) for name, inks in by_writer.items()}


def _chosen(inks: Sequence[Ink], share: float, seed: int, writer: str) -> list[bool]:
    digests = [_digest(ink, seed, writer) for ink in inks]
    order = sorted(set(digests))
    count = min(max(round(share * len(order)), 1), len(order) - 1) if share > 0 else 0
    chosen = set(order[:count])
    return [digest in chosen for digest in digests]


def _digest(ink: Ink, seed: int, writer: str) -> bytes:
    content = hashlib.sha256(f"{seed}\0{writer}\0".encode())
    for stroke in ink.strokes:
        content.update(len(stroke).to_bytes(8, "little") + stroke.astype("<f8").tobytes())
    return content.digest()


def _folder(
    folder: Path,
    split: str | None,
    from_image: Callable[[Path], Ink] | None,
    skipped: list[str],
    failed: list[str],
) -> Iterator[tuple[Ink, str]]:
    for path, writer in _files(folder):
        suffix = path.suffix.lower()
        try:
            if suffix in INK_SUFFIXES:
                yield from _records(path, writer, split)
            elif suffix in IMAGE_SUFFIXES and writer is not None and from_image is not None:
                yield from_image(path), writer
            else:
                skipped.append(f"{path}: neither ink nor a picture in a writer's folder")
        except NoWriter:
            raise
        except DataError as err:
            failed.append(str(err))


def _files(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Files of the folder, and of its folders with their name, in a stable order; hidden ones are left out."""
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if not entry.is_dir():
            yield entry, None
            continue
        for path in sorted(entry.rglob("*")):
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(entry).parts):
                yield path, entry.name


def _records(path: Path, writer: str | None, split: str | None) -> Iterator[tuple[Ink, str]]:
    for record in read_ink(path):
        if split is not None and record.extra.get("split") != split:
            continue
        name = writer or record.extra.get("writer") or record.extra.get("ink.writer")
        if not name:
            raise NoWriter(
                f"{path}: the ink {record.id!r} does not say its writer; expected a folder for each writer, or "
                '"extra": {"writer": …} in every record'
            )
        yield record.ink, name


def _packed(path: Path, split: str | None) -> Iterator[tuple[Ink, str]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            points = np.cumsum(archive["delta"], axis=0, dtype=np.int16).astype(np.float64)
            strokes, words = (archive[name].astype(np.int64) for name in ("stroke_offsets", "word_offsets"))
            writers = archive["writer"]
            splits = archive["split"] if split is not None else None
    except OSError as err:
        raise DataError(f"{path}: cannot be read ({err.strerror or err})") from err
    except (ValueError, KeyError, AttributeError, TypeError, zipfile.BadZipFile) as err:
        raise DataError(
            f"{path}: no archive of packed words with delta, stroke_offsets, word_offsets, writer ({err})"
        ) from err
    low, high = points.min(axis=0, initial=0), points.max(axis=0, initial=0)
    frame = Frame(float(high[0] - low[0]) + 1, float(high[1] - low[1]) + 1, "archive unit")
    for word, writer in enumerate(writers.tolist()):
        if splits is not None and splits[word] != split:
            continue
        marks = strokes[words[word] : words[word + 1] + 1]
        yield Ink(tuple(points[a:b] for a, b in itertools.pairwise(marks.tolist()) if b > a), frame), writer
