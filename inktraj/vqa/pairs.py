"""Files with one record for each question and its answer, images beside them: read, checked and counted.

What a field is called stands in the manifest (`inktraj.vqa.manifest`). What cannot be used is passed over and told of;
what can be used with care is kept, and a note says what is the matter.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inktraj.errors import DataError
from inktraj.vqa.benchmark import Image, Skipped
from inktraj.vqa.manifest import Layout
from inktraj.vqa.records import find_image, image_bytes, read_records, text_of

UNNAMED = "any"
"""A split of a manifest that is none: its files are read where those of the others are not there, and each record says
itself of which split it is."""

_SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".JPG", ".PNG")
"""What is tried behind a name without a suffix: records may name an image and not its file."""

_MAY_LACK = ("split", "question", "answer")
"""Fields of which nothing is told where no record has them: the file's name says the split; without the others nothing
is read."""

_ALIASES = {"val": "validation", "dev": "validation", "valid": "validation", "training": "train", "testing": "test"}


@dataclass(frozen=True, slots=True)
class Pair:
    """One question with its answer.

    Parameters
    ----------
    where
        Where its record stands.
    id
        Unique among all that were read.
    image
        None where the file is missing.
    image_name
        As the record names it, behind the folder of its file where the image lies there.
    question
        The text.
    answer
        A text, or a list of texts; neither is empty unless the list is.
    split
        "" where neither the record nor its file says.
    record
        As the file holds it.
    """

    where: str
    id: str
    image: Image | None
    image_name: str
    question: str
    answer: str | tuple[str, ...]
    split: str
    record: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pairs:
    """What was read, of all splits; what was passed over; and what must be known of both."""

    items: tuple[Pair, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]

    def of(self, split: str | None, folder: Path) -> tuple[Pair, ...]:
        """Return those of a split, all where it is None; raises DataError where there are none."""
        found = tuple(pair for pair in self.items if split is None or pair.split == _split(split))
        if not found:
            have = Counter(pair.split or "no split" for pair in self.items)
            shown = ", ".join(f"{count:,} of {name}" for name, count in have.items()) or "nothing that can be used"
            reasons = "".join(f"; {skipped}" for skipped in self.skipped[:3])
            raise DataError(f"{folder} has no question of the split {split!r}; it holds {shown}{reasons}")
        return found


def read_pairs(layout: Layout, folder: Path) -> Pairs:
    """Read all pairs of a local copy, with the fields ``id``, ``image``, ``question``, ``answer`` and ``split``.

    Raises
    ------
    DataError
        There are no files, or a file has no column for a question or an answer.
    ParseError
        A file is not in the form that its name promises; single lines that are no records are passed over.
    """
    reader = _Reader(layout, folder)
    for path, split in _files(layout, folder):
        reader.read(path, "" if split == UNNAMED else split)
    return reader.pairs()


def _files(layout: Layout, folder: Path) -> list[tuple[Path, str]]:
    files = layout.files(folder, None)
    named = [(path, split) for path, split in files if split != UNNAMED]
    return named or files


class _Reader:
    """Reads files one after the other; what is known of earlier ones matters for later ones."""

    def __init__(self, layout: Layout, folder: Path) -> None:
        self.layout, self.folder = layout, folder
        self.items: list[Pair] = []
        self.skipped: list[Skipped] = []
        self._by_id: dict[tuple[str, str], list[Pair]] = {}
        self._images: dict[tuple[Path, str], Image | None] = {}
        self._renamed: list[str] = []
        self._renamed_columns: list[str] = []
        self._without_split = 0

    def read(self, path: Path, split: str) -> None:
        first = True
        for where, record in read_records(path, damaged=lambda *args: self.skipped.append(Skipped(*args))):
            if first:
                self.layout.require(record, ("question", "answer"), str(path))
                others = [name for name in self.layout.fields if name not in _MAY_LACK and name[:8] != "response"]
                self._renamed_columns += self.layout.absent(record, others, path.name)
                first = False
            try:
                pair = self._pair(where, record, path, split)
            except DataError as err:
                self.skipped.append(Skipped(where, str(err)))
                continue
            if (reason := self._seen(pair)) is not None:
                self.skipped.append(Skipped(where, reason))

    def _pair(self, where: str, record: Mapping[str, Any], path: Path, split: str) -> Pair:
        question = text_of(self.layout.value(record, "question"))
        if question is None or not question.strip():
            raise DataError("it has no question")
        answer = _answer(self.layout.value(record, "answer"))
        split = _split(text_of(self.layout.value(record, "split")) or split)
        self._without_split += not split
        image, name = self._image(self.layout.value(record, "image"), where, path)
        id = text_of(self.layout.value(record, "id")) or f"{name or where}: {question.strip()}"
        return Pair(where, id.strip(), image, name, question.strip(), answer, split, record)

    def _image(self, value: Any, where: str, path: Path) -> tuple[Image | None, str]:
        """Return the image, None where it is not there, and its name."""
        if not isinstance(value, str):
            if text_of(value) is None:
                self._images[path.parent, where] = None
                return None, ""
            name = str(value.get("path") or where) if isinstance(value, Mapping) else where
            return Image(name, image_bytes(value, "the record")), name
        key = path.parent, value
        if key not in self._images:
            forms = [value] if os.path.splitext(value)[1] else [value, *(value + suffix for suffix in _SUFFIXES)]
            tried = (find_image(place, form) for place in dict.fromkeys([path.parent, self.folder]) for form in forms)
            found = next((file for file in tried if file is not None), None)
            self._images[key] = None if found is None else Image(self._name(value, path, found), found)
        image = self._images[key]
        return image, value if image is None else image.name

    def _name(self, value: str, path: Path, file: Path) -> str:
        """Return how an image is called: as records do, but where files of records in other folders have others."""
        if path.parent == self.folder or not file.is_relative_to(path.parent):
            return value
        return f"{path.parent.relative_to(self.folder).as_posix()}/{value}"

    def _seen(self, pair: Pair) -> str | None:
        """Keep a pair under a name of its own; say why not where it is there already."""
        others = self._by_id.setdefault((pair.split, pair.id), [])
        for other in others:
            if (other.question, other.image_name) == (pair.question, pair.image_name):
                same = "is there already" if other.answer == pair.answer else "has another answer"
                return f"the same question with the id {pair.id!r} {same} in {other.where}"
        others.append(pair)
        if len(others) > 1:
            number = len(others)
            while (pair.split, name := f"{pair.id}~{number}") in self._by_id:
                number += 1
            self._by_id[pair.split, name] = [pair]
            self._renamed.append(name)
            pair = replace(pair, id=name)
        self.items.append(pair)
        return None

    def pairs(self) -> Pairs:
        notes = self._renamed_columns
        if missing := [name for (_, name), image in self._images.items() if image is None]:
            notes.append(
                f"images not there: {_counted(missing)}; their questions can be scored, but not asked with an image"
            )
        if self._renamed:
            notes.append(f"ids that stand for several questions; renamed were {_counted(self._renamed)}")
        if self._without_split:
            notes.append(f"records that do not say of which split they are: {self._without_split:,}")
        return Pairs(tuple(self.items), tuple(self.skipped), (*notes, *_counts(self.items, self.layout)))


def _answer(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, list | tuple):
        texts = [text for each in value if (text := text_of(each)) is not None and text.strip()]
        if value and not texts:
            raise DataError("it has no answer: nothing stands in the list")
        return tuple(texts)
    text = text_of(value)
    if text is None or not text.strip() or text.strip().lower() in ("nan", "null"):
        raise DataError(f"it has no answer: {value!r}")
    return text.strip()


def _split(name: str) -> str:
    plain = name.strip().lower()
    return _ALIASES.get(plain, plain)


def _counted(names: list[str]) -> str:
    return f"{len(names):,} (such as {names[0]!r})"


def _counts(items: Iterable[Pair], layout: Layout) -> Iterator[str]:
    """Tell which published counts are others than those found; of a split that is not there nothing is told."""
    found: Counter[str] = Counter()
    images: dict[str, set[str]] = {}
    for pair in items:
        for part in ("", f"{pair.split}_"):
            found[f"{part}questions"] += 1
            images.setdefault(f"{part}images", set()).add(pair.image_name)
    found.update({key: len(names - {""}) for key, names in images.items()})
    parts = {key.rpartition("_")[0] for key in layout.statistics} - {""}
    whole = all(found[f"{part}_questions"] for part in parts)
    for key, published in layout.statistics.items():
        part = key.rpartition("_")[0]
        there = whole if not part else found[f"{part}_questions"]
        if there and found[key] != published:
            yield f"{key.replace('_', ' ')}: {published:,} are published, {found[key]:,} were found"
