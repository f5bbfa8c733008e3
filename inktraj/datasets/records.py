"""Pages in ``pages.jsonl``: one page a line, with its words as ``[x, y, s]`` points in page pixels.

Two folders have that file: the page form (`inktraj.datasets.writing`), and a finished run of ``build-pseudolabels``.

A page of the page form is ``{"page_id", "image", "width", "height", "words"}``, where `image` is a path within the
folder; where known it has ``"sha256"`` (of the image), ``"writer"``, ``"split"`` and ``"pen"`` (its width in pixels).
A word is ``{"id", "text", "strokes"}``, and where known ``"line"``, ``"polygon"``, ``"widths"``, ``"times"`` (seconds)
and ``"times_source"``, as in a pseudo-label record, and ``"cut_confidence"``, how sure its place in a recorded line is.
`inktraj convert` and `inktraj score` read the same file.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from inktraj.datasets.sample import Box, PagePicture, Problem, Sample, SamplePage
from inktraj.errors import DataError, ParseError
from inktraj.io import InkRecord
from inktraj.io.images import Source
from inktraj.io.jsonl import read_jsonl

PAGES = "pages.jsonl"
LEAST_SURE = 0.5
"""Words whose cut from a line is less sure are no samples."""

_WIDEST_PEN = 1000

FindImage = Callable[[dict[str, Any], Path], Source | None]
"""Page record and folder → where the page's image is; None where it is not found."""


class RecordStore:
    """The pages of a ``pages.jsonl``: found in one pass, then read one by one.

    Parameters
    ----------
    root
        The folder.
    find_image
        Says where a page's image is.
    split
        Only pages of this part; None for all.

    Raises
    ------
    DataError
        There is no such file; two pages, or two words, have one name; no page is of the split.
    ParseError
        A line is not a page record.
    """

    def __init__(self, root: Path, find_image: FindImage, split: str | None = None) -> None:
        self.root = root
        self.file = root / PAGES
        self.ids: list[tuple[str, ...]] = []
        self.skipped: list[Problem] = []
        self.not_kept = 0
        self._find_image = find_image
        self._offsets: list[int] = []
        self._numbers: list[int] = []
        self._scan(split)

    def _scan(self, split: str | None) -> None:
        pages: dict[str, int] = {}
        words: dict[str, str] = {}
        splits: set[str] = set()
        for number, offset, line in self._lines():
            where = f"{self.file}, line {number}"
            page = _page_record(line, where)
            name = page["page_id"]
            if (before := pages.setdefault(name, number)) != number:
                raise DataError(f"{where}: the page {name!r} is there twice, before in line {before}")
            splits.add(page.get("split") or "")
            if split is not None and page.get("split") != split:
                continue
            if page.get("verdict", "kept") != "kept":
                self.not_kept += 1
                continue
            ids = tuple(self._usable(page, where))
            for id in ids:
                if (other := words.setdefault(id, where)) != where or ids.count(id) > 1:
                    raise DataError(
                        f"{where}: the word {id!r} is there twice, before in {other}; each needs its own id"
                    )
            if not ids:
                self.skipped.append(Problem(f"page {name!r}", "it has no word with text and strokes"))
                continue
            self.ids.append(ids)
            self._offsets.append(offset)
            self._numbers.append(number)
        if split is not None and split not in splits:
            named = ", ".join(sorted(splits - {""})) or "none"
            raise DataError(f"{self.file}: no page is of the split {split!r}; there are: {named}")

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        try:
            with self.file.open("rb") as file:
                offset = 0
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield number, offset, line
                    offset += len(line)
        except FileNotFoundError as err:
            raise DataError(f"{self.root}: there is no {PAGES} in it; is it a data set, and is it finished?") from err
        except OSError as err:
            raise DataError(f"{self.file}: cannot be read ({err.strerror or err})") from err

    def _usable(self, page: dict[str, Any], where: str) -> Iterator[str]:
        for i, word in enumerate(page["words"]):
            id = _full(page["page_id"], word, i)
            reason = _unusable(word, f"{where}, word {i}")
            if reason:
                self.skipped.append(Problem(f"word {id!r}", reason))
            else:
                yield id

    def read(self, number: int) -> SamplePage:
        """Read one page."""
        where = f"{self.file}, line {self._numbers[number]}"
        try:
            with self.file.open("rb") as file:
                file.seek(self._offsets[number])
                line = file.readline()
        except OSError as err:
            raise DataError(f"{self.file}: cannot be read ({err.strerror or err})") from err
        record = _page_record(line, where)
        page = page_of(record, line, where, self._find_image(record, self.root))
        if tuple(sample.id for sample in page.samples) != self.ids[number]:
            raise DataError(f"{where}: the file is not as it was when the data set was opened; open it again")
        return page


def page_of(record: dict[str, Any], line: bytes, where: str, source: Source | None) -> SamplePage:
    """Make a page of its record and the line that holds it; ParseError where its strokes cannot be used."""
    width, height = record.get("width"), record.get("height")
    if not (isinstance(width, int) and isinstance(height, int) and width > 0 and height > 0):
        raise ParseError(f"{where}: a page of {width!r}×{height!r} pixels, expected two positive whole numbers")
    told = record.get("image") or record.get("source") or ""
    picture = PagePicture(record["page_id"], source, width, height, record.get("sha256") or "", told)
    writer, split = record.get("writer") or "", record.get("split") or ""
    totals = Counter(word.get("text") for word in record["words"])
    seen: Counter[Any] = Counter()
    samples = []
    for index, (word, ink_record) in enumerate(zip(record["words"], _inks(line, where), strict=True)):
        text = word.get("text")
        seen[text] += 1
        if _unusable(word, where):
            continue
        samples.append(
            Sample(
                ink_record.id,
                picture,
                text,
                seen[text],
                totals[text],
                ink_record.ink,
                index,
                word.get("line") if isinstance(word.get("line"), int) else None,
                _box(word, ink_record, record.get("pen"), where),
                word.get("writer") or writer,
                split,
            )
        )
    return SamplePage(picture, tuple(samples), writer, split)


def _inks(line: bytes, where: str) -> list[InkRecord]:
    source = io.BytesIO(line)
    source.name = where  # what errors call it
    try:
        return read_jsonl(source)
    except ParseError as err:
        raise ParseError(str(err).replace(f"{where}, line 1", where, 1)) from err


def _page_record(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as err:
        raise ParseError(f"{where}: not JSON ({err}); is the file cut short?") from err
    if not isinstance(record, dict) or not isinstance(record.get("words"), list):
        raise ParseError(f"{where}: no page record, expected an object with page_id and words")
    if not all(isinstance(word, dict) for word in record["words"]):
        raise ParseError(f"{where}: a word is not an object, expected id, text and strokes")
    name = record.setdefault("page_id", record.get("id"))
    if not isinstance(name, str) or not name:
        raise ParseError(f"{where}: page_id is {name!r}, expected a name")
    for key in ("image", "source", "sha256", "writer", "split", "verdict"):
        if not isinstance(record.get(key), str | None):
            raise ParseError(f"{where}: {key} is {record[key]!r}, expected a string")
    if (pen := record.get("pen")) is not None and not (isinstance(pen, int | float) and 0 <= pen <= _WIDEST_PEN):
        raise ParseError(f"{where}: pen is {pen!r}, expected its width in pixels")
    return record


def _unusable(word: dict[str, Any], where: str) -> str:
    """Say why a word is no sample; "" where it is one."""
    text, strokes = word.get("text"), word.get("strokes")
    if not isinstance(text, str | None) or not isinstance(strokes, list):
        raise ParseError(
            f"{where}: text is {text!r} and strokes a {type(strokes).__name__}, expected a string and a list"
        )
    if not isinstance(word.get("writer"), str | None):
        raise ParseError(f"{where}: writer is {word['writer']!r}, expected a string")
    if not (text and text.strip()):
        return "it has no text by which it could be asked for"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return f"its text {text!r} holds half a character, which no text has"
    sure = word.get("cut_confidence")
    if isinstance(sure, int | float) and sure < LEAST_SURE:
        return f"where it begins and ends in its line is not sure ({sure:.2f}, expected {LEAST_SURE} or more)"
    return "" if strokes else "it has no strokes"


def _full(page: str, word: dict[str, Any], number: int) -> str:
    """Return a word's full name, as `read_jsonl` gives it."""
    id = str(word.get("id", f"w{number}"))
    return id if id.startswith((f"{page}__", f"{page}-")) else f"{page}__{id}"


def _box(word: dict[str, Any], record: InkRecord, pen: Any, where: str) -> Box:
    x0, y0, x1, y1 = record.ink.bounds
    polygon = word.get("polygon")
    if polygon:
        try:
            points = np.asarray(polygon, dtype=np.float64).reshape(-1, 2)
        except (TypeError, ValueError) as err:
            raise ParseError(f"{where}: the outline of word {record.id!r} is not a list of [x, y] ({err})") from err
        if not np.isfinite(points).all():
            raise ParseError(f"{where}: the outline of word {record.id!r} holds NaN or infinity")
        (a, b), (c, d) = points.min(axis=0), points.max(axis=0)
        return min(x0, float(a)), min(y0, float(b)), max(x1, float(c)), max(y1, float(d))
    reach = (record.ink.pen_width or (pen if isinstance(pen, int | float) else 0.0)) / 2
    return x0 - reach, y0 - reach, x1 + reach, y1 + reach


# Where a page's image is


def image_within(record: dict[str, Any], root: Path) -> Source | None:
    """Find a page's image by its path within the folder."""
    name = record.get("image")
    if not name:
        return None
    path = root / name
    try:
        within, there = path.resolve().is_relative_to(root.resolve()), path.is_file()
    except (OSError, ValueError):  # no name that a file can have
        return None
    if not within:
        raise DataError(
            f"page {record['page_id']!r}: its image {name!r} lies outside of {root}, expected a path within it"
        )
    return Source(record["page_id"], str(path)) if there else None


_PAGE_OF_FILE = re.compile(r"#page=(\d+)$")


def image_by_source(images: Path | None) -> FindImage:
    """Find images where a run read them, or below the folder `images` where they have moved there."""

    def find(record: dict[str, Any], root: Path) -> Source | None:
        told = record.get("source") or ""
        if not told:
            return None
        places = [Path(told), root / told]
        if images is not None:
            parts = Path(told).parts
            places[:0] = [images.joinpath(*parts[i:]) for i in range(len(parts)) if not Path(*parts[i:]).is_absolute()]
        try:
            return next((found for place in places if (found := _existing(record["page_id"], str(place)))), None)
        except (OSError, ValueError):  # no name that a file can have
            return None

    return find


def _existing(id: str, told: str) -> Source | None:
    """Return the source of that name, ``path!member#page=2``, where its file is there."""
    if Path(told).is_file():
        return Source(id, told)
    match = _PAGE_OF_FILE.search(told)
    path, index = (told[: match.start()], int(match[1]) - 1) if match else (told, 0)
    for at in [len(path), *(m.start() for m in re.finditer("!", path))]:
        if Path(path[:at]).is_file():
            return Source(id, path[:at], path[at + 1 :] or None, index)
    return None
