"""MTVQA (arXiv 2405.11985): questions to text in images, in nine languages.

Published figures come from three scorers that differ, so all three are computed, by name:

* ``exact``: the paper's words, "matches exactly with any of the target answers"; white space around does not count;
* ``contains-official``: the benchmark's published script: white space around and case do not count, every ``.`` is
  taken out of the prediction *only*, and the answer is right where it contains the gold. No answer to a gold with a dot
  ("3.5") is ever right so. Averaged over the languages' means;
* ``contains-vlmevalkit``: VLMEvalKit's: the same with every ``.`` taken out on both sides, averaged over questions.
"""

from __future__ import annotations

import ast
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from inktraj.errors import DataError
from inktraj.vqa.benchmark import Benchmark, Figure, Image, Question, Questions, Quoted, Scored, Skipped, status_of
from inktraj.vqa.manifest import Layout, read_layout
from inktraj.vqa.records import Cells, find_image, image_bytes, read_records, text_of

INSTRUCTION = "Answer the question using a word or phrase in the language of the question."

LANGUAGES = ("AR", "DE", "FR", "IT", "JA", "KO", "RU", "TH", "VI")

_ALIASES = {"KR": "KO", "JP": "JA", "VN": "VI"}

_LONGEST_PATH = 512
_REFERENCE = 64  # a text of at most so many characters in VLMEvalKit's image column is the index of another row

_TABLE = """
GPT-4V|11.5 31.5 40.4 32.3 11.5 16.7 10.3 15.0 28.9 22.0
GPT-4o|20.2 34.2 41.2 32.7 20.0 33.9 11.5 22.5 34.2 27.8
Gemini Ultra|14.7 32.3 40.0 31.8 12.3 17.2 11.8 20.3 28.6 23.2
QwenVL Max|7.7 31.4 37.6 30.2 18.6 25.4 10.4 4.8 23.5 21.1
QwenVL Plus|4.8 28.8 33.7 27.1 12.8 19.9 9.4 5.6 18.1 17.8
Claude 3 Opus|15.1 33.4 40.6 34.4 19.4 27.2 13.0 19.5 29.1 25.7
Claude 3 Sonnet|10.5 28.9 35.6 31.8 13.9 22.2 11.0 15.2 20.8 21.1
GLM-4V|0.3 30.0 34.1 30.1 3.4 5.7 3.0 3.5 12.3 13.6
InternVL-V1.5|3.4 27.1 31.4 27.1 9.9 9.0 4.9 8.7 12.4 14.9
Mini-Gemini-HD-34B|2.2 25.0 29.2 25.5 6.1 8.6 4.1 4.3 11.8 13.0
Llava-Next-34B|3.3 24.0 28.0 22.3 3.6 6.1 2.6 0.4 9.8 11.1
DeepSeek-VL|0.6 14.2 15.3 15.2 2.9 3.8 1.6 0.9 5.2 6.6
YI-VL-34B|1.7 13.5 15.7 12.1 4.8 5.2 0.8 3.5 4.1 6.8
MiniCPM-V 2.0|1.3 12.7 14.9 17.0 3.7 5.6 2.2 2.2 6.8 7.4
MiniCPM-V 2.5|6.1 29.6 35.7 26.0 12.1 13.1 5.3 12.6 15.3 17.3
TextSquare|3.7 27.0 30.8 26.7 3.2 7.2 6.7 5.2 12.4 13.6
TextMonkey|2.0 18.1 19.9 22.1 4.6 7.2 3.2 0.9 11.1 9.9
mPLUG-DocOwl 1.5|1.0 13.9 14.9 18.2 2.9 5.0 2.0 0.9 6.4 7.2
Xcomposer2-4KHD|2.0 20.6 23.2 21.6 5.6 7.7 4.1 6.1 10.1 11.2
Xcomposer-SFT|11.8 31.7 37.4 29.3 14.5 12.9 5.8 13.9 20.2 19.7
"""
_SHOTS = """
GPT-4V, zero-shot|11.5 31.5 40.4 32.3 11.5 16.7 10.3 15.0 28.9 22.0
GPT-4V, two-shot|11.6 35.3 42.2 33.1 13.2 17.0 11.4 19.0 31.0 23.7
GPT-4V, five-shot|13.5 34.8 43.0 35.7 13.4 18.8 11.6 19.2 33.0 24.8
GPT-4V, eight-shot|15.5 34.8 42.1 35.6 13.4 17.5 12.1 18.2 32.8 24.7
"""


def _quoted(number: int, what: str, table: str) -> Quoted:
    rows = tuple((name, *figures.split()) for name, _, figures in (r.partition("|") for r in table.split("\n") if r))
    return Quoted(
        f"Published: {what}",
        f"arXiv 2405.11985, table {number}",
        "Quoted in percent, not measured here. The paper calls its figure an exact match; the script that its authors "
        "published computes contains-official, which is far more lenient.",
        ("system", *LANGUAGES, "average"),
        rows,
    )


class MTVQA(Benchmark):
    """See the module's text."""

    name = "mtvqa"
    title = "MTVQA: text-centric questions in nine languages"
    prompts = MappingProxyType(
        {
            "before": "the instruction stands before the question, as in the paper",
            "after": "the instruction stands on a line after the question, as in VLMEvalKit",
        }
    )
    figures = (
        Figure(
            "contains-official",
            "contains, official",
            "The gold, stripped and in lower case, is in the prediction, stripped, in lower case and without dots.",
            "macro",
            "language",
            rules={"match": "contains", "strip": "both", "lower": "both", "dots-removed": "prediction"},
        ),
        Figure(
            "contains-vlmevalkit",
            "contains, VLMEvalKit",
            "As contains-official, with the gold's dots taken out, too.",
            "micro",
            "language",
            rules={"match": "contains", "strip": "both", "lower": "both", "dots-removed": "both"},
        ),
        Figure(
            "exact",
            "exact",
            "The prediction is the gold, white space around either aside.",
            "macro",
            "language",
            rules={"match": "equal", "strip": "both", "lower": "no", "dots-removed": "no"},
        ),
    )
    breakdowns = ("language",)
    quoted = (_quoted(1, "zero-shot", _TABLE), _quoted(2, "examples in the prompt", _SHOTS))

    def load(self, folder: Path, split: str | None) -> Questions:
        """Read the published Parquet files, or VLMEvalKit's TSV; see `Benchmark.load`."""
        layout = read_layout(self.name, folder)
        found = _Found(folder, layout)
        for path, part in layout.files(folder, split):
            found.read(path, part)
        if not found.items:
            told = f"; the first record: {found.skipped[0]}" if found.skipped else ""
            raise DataError(f"{folder} holds no question of {self.name}{told}")
        return Questions(tuple(found.items.values()), tuple(found.skipped), tuple(found.notes()), layout.version)

    def wording(self, question: Question, prompt: str) -> str:
        """Return the question with the instruction before or after it."""
        return f"{INSTRUCTION} {question.text}" if prompt == "before" else f"{question.text}\n{INSTRUCTION}"

    def score(self, prediction: str | None, question: Question) -> Scored:
        """Score by all three scorers; any of several golds will do."""
        flags: tuple[str, ...] = () if all(gold.strip() for gold in question.golds) else ("empty-gold",)
        if prediction is None:
            return Scored(dict.fromkeys((figure.name for figure in self.figures), 0.0), flags=flags)
        values = _values(prediction, question.golds)
        if not all(map(_composed, (prediction, *question.golds))):
            golds = tuple(unicodedata.normalize("NFC", gold) for gold in question.golds)
            if values != _values(unicodedata.normalize("NFC", prediction), golds):
                flags += ("unicode-form-decides",)
        compared = _without_dots(prediction)
        return Scored(values, compared, status_of(prediction, compared, right=any(values.values())), flags)


def _without_dots(text: str) -> str:
    return text.strip().lower().replace(".", "")


def _values(prediction: str, golds: tuple[str, ...]) -> dict[str, float]:
    """Return what each scorer says; any of the golds will do."""
    stripped, without_dots = prediction.strip(), _without_dots(prediction)
    official = vlmevalkit = exact = False
    for gold in golds:
        bare = gold.strip()
        lower = bare.lower()
        official = official or lower in without_dots
        vlmevalkit = vlmevalkit or lower.replace(".", "") in without_dots
        exact = exact or bare == stripped
    return {
        "contains-official": float(official),
        "contains-vlmevalkit": float(vlmevalkit),
        "exact": float(exact),
    }


def _composed(text: str) -> bool:
    return text.isascii() or unicodedata.is_normalized("NFC", text)


class _Found:
    """Questions as they are read, and what is wrong with the others."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self.folder, self.layout = folder, layout
        self.items: dict[str, Question] = {}
        self.skipped: list[Skipped] = []
        self.counts: Counter[str] = Counter()
        self.renamed: list[str] = []

    def read(self, path: Path, split: str) -> None:
        """Add a file's questions."""
        heavy = _binary_columns(path) if path.suffix.lower() == ".parquet" else []
        file = path.relative_to(self.folder).as_posix()
        shared: _Shared | None = None
        binary, without = False, frozenset[int]()
        for row, (where, record) in enumerate(read_records(path, without=heavy)):
            if row == 0:
                self.layout.require(record, ("id", "language"), where)
                if not any(name in record for name in self.layout.fields["pairs"]):
                    self.layout.require(record, ("question", "answer"), where)
                self.renamed += self.layout.absent({**record, **dict.fromkeys(heavy)}, ["image"], path.name)
                column = next((name for name in self.layout.fields["image"] if name in heavy or name in record), None)
                shared = _Shared(file, Cells(path, column)) if column is not None else None
                if column is not None and column in heavy:
                    binary, without = True, _rows_without_image(path, column, self.folder)
            id = text_of(self.layout.value(record, "id")) or f"row{row + 1}"
            written = (text_of(self.layout.value(record, "language")) or "").strip().upper()
            language = _ALIASES.get(written, written)
            # Ids begin anew with each language, and files of several folders have one name.
            about = f"{file}, {language}-{id}"
            image: Image | None = None
            if shared is not None and binary:
                source = partial(_cell_bytes, shared.cells, row, where, self.folder)
                image = Image(about, source) if row not in without else None
            elif shared is not None:
                value = _image_text(self.layout.value(record, "image"))
                image = self._image(value, id, shared, row)
                about = image.name if image is not None else value or about
            self.counts["no image"] += image is None
            self._take(record, where, id, image, about, language, split)

    def _image(self, value: str, id: str, shared: _Shared, row: int) -> Image | None:
        """Return the image that a row names by a path, holds in base64, or shares with another row."""
        if not value:
            return None
        if len(value) < _LONGEST_PATH and (file := find_image(self.folder, value)):
            return Image(file.resolve().relative_to(self.folder.resolve()).as_posix(), file)
        if len(value) < _LONGEST_PATH and "." in value:
            return None  # the path of a file that is not there: base64 has no dots
        if len(value) > _REFERENCE:
            return shared.add(value, id, row)
        return shared.image(value) if value.isalnum() else None

    def _take(
        self, record: Mapping[str, Any], where: str, id: str, image: Image | None, about: str, language: str, split: str
    ) -> None:
        try:
            pairs = list(self._pairs(record))
        except DataError as err:
            self.skipped.append(Skipped(where, str(err)))
            return
        single = "pairs" if self.layout.value(record, "pairs") is not None else ""
        for number, (text, golds, raw) in enumerate(pairs, 1):
            told = f"{where}, pair {number}" if single else where
            if not text or not golds:
                self.skipped.append(Skipped(told, "no question" if not text else "no answer"))
                continue
            name = f"{language}-{id}-{number}" if single else id
            question = Question(name, image, text, golds, language, {}, split, raw, about)
            self._add(question, told)

    def _add(self, question: Question, where: str) -> None:
        name, before = question.id, self.items.get(question.id)
        if before is not None and (before.text, before.golds) == (question.text, question.golds):
            self.skipped.append(Skipped(where, f"the same question as {name} before it"))
            return
        number = 2
        while question.id in self.items:
            question = replace(question, id=f"{name}~{number}")
            number += 1
        if question.id != name:
            self.counts["ids given twice"] += 1
        self.counts["empty golds"] += not all(gold.strip() for gold in question.golds)
        self.counts["golds not in NFC"] += not all(map(_composed, question.golds))
        self.counts["other languages"] += question.language not in LANGUAGES
        self.items[question.id] = question

    def _pairs(self, record: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
        """Yield question, golds and the answer as it stands."""
        pairs = self.layout.value(record, "pairs")
        if pairs is None:
            pairs = [{n: self.layout.value(record, n) for n in ("question", "answer")}]
        elif isinstance(pairs, str):
            try:
                pairs = ast.literal_eval(pairs.strip().lstrip("\ufeff"))
            except (ValueError, SyntaxError, MemoryError, RecursionError) as err:
                raise DataError(f"its pairs are no Python literal ({type(err).__name__})") from err
        if isinstance(pairs, Mapping):
            pairs = self._of_columns(pairs)
        if not isinstance(pairs, list | tuple) or not all(isinstance(pair, Mapping) for pair in pairs):
            raise DataError("its pairs are no list of {question, answer}")
        for pair in pairs:
            answer = self.layout.value(pair, "answer")
            several = answer if isinstance(answer, list | tuple) else [answer]
            golds = tuple(gold for gold in map(text_of, several) if gold is not None)
            yield (text_of(self.layout.value(pair, "question")) or "").strip(), golds, answer

    def _of_columns(self, pairs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return what is one pair, or lists of questions and answers, which is how Hugging Face lays out a list."""
        questions, answers = (self.layout.value(pairs, name) for name in ("question", "answer"))
        if not isinstance(questions, list | tuple):
            return [pairs]
        if not isinstance(answers, list | tuple) or len(answers) != len(questions):
            seen = f"list of {len(answers)} answers" if isinstance(answers, list | tuple) else "list of answers"
            raise DataError(f"its pairs are a list of {len(questions)} questions and no {seen}")
        names = self.layout.fields["question"][0], self.layout.fields["answer"][0]
        return [dict(zip(names, pair, strict=True)) for pair in zip(questions, answers, strict=True)]

    def notes(self) -> Iterator[str]:
        """Say what must be known of the data."""
        told = {
            "no image": "records have no image, so their questions can be scored and not asked",
            "ids given twice": "questions share their id with another; they are called ID~2 and so on",
            "empty golds": "golds are empty: the scorers that ask whether an answer contains it call any answer right",
            "golds not in NFC": "golds are not in Unicode's composed form (NFC), and an answer that is will not match",
            "other languages": f"questions are in none of the nine languages {', '.join(LANGUAGES)}",
        }
        yield from self.renamed
        yield from (f"{self.counts[key]:,} {text}" for key, text in told.items() if self.counts[key])
        for split in dict.fromkeys(question.split for question in self.items.values()):
            published = self.layout.statistics.get(f"{split}_questions")
            count = sum(question.split == split for question in self.items.values())
            if published is not None and published != count:
                yield f"the {split} split has {count:,} questions here; {published:,} were published"


class _Shared:
    """The images that stand in a TSV file: rows name that of another row by its index, or repeat it."""

    def __init__(self, file: str, cells: Cells) -> None:
        self.file, self.cells = file, cells
        self.rows: dict[str, int] = {}
        self._first: dict[int, str] = {}
        self._images: dict[str, Image] = {}

    def add(self, value: str, id: str, row: int) -> Image:
        """Note that a row holds an image, and return it: that of the first row which holds the same."""
        index = self._first.setdefault(hash(value), id if id not in self.rows else f"{id}, row {row + 1}")
        for name in (index, id):
            self.rows.setdefault(name, row)
        return self.image(index)

    def image(self, index: str) -> Image:
        """Return the image of the row of this index, which may come later in the file."""
        return self._images.setdefault(index, Image(f"{self.file}, index {index}", partial(self._bytes, index)))

    def _bytes(self, index: str) -> bytes:
        if index not in self.rows:
            raise DataError(f"{self.file}: no row with the index {index!r} holds an image")
        return image_bytes(self.cells(self.rows[index]), f"{self.file}, index {index}")


def _image_text(value: Any) -> str:
    """Return the text of an image's cell, which may be that of ``{"path": …}`` or ``{"bytes": …}``."""
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    return (text_of(value) or "").strip()


def _cell_bytes(cells: Cells, row: int, where: str, folder: Path) -> bytes:
    value = cells(row)
    if isinstance(value, Mapping) and not value.get("bytes") and isinstance(value.get("path"), str):
        file = find_image(folder, value["path"])
        if file is None:
            raise DataError(f"{where}: its image {value['path']} is not there")
        return file.read_bytes()
    return image_bytes(value, where)


def _binary_columns(path: Path) -> list[str]:
    """Return the columns of a Parquet file that hold bytes, which are not read before they are needed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def heavy(kind: Any) -> bool:
        if pa.types.is_struct(kind):
            return any(heavy(field.type) for field in kind)
        return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))

    try:
        return [field.name for field in pq.read_schema(path) if heavy(field.type)]
    except (OSError, pa.ArrowException) as err:
        raise DataError(f"{path}: not a Parquet file that can be read ({err})") from err


def _rows_without_image(path: Path, column: str, folder: Path) -> frozenset[int]:
    """Return the rows of a Parquet file whose image is null, and names no file that is there.

    Row groups that count no null bytes are not read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def is_absent(cell: Any) -> bool:
        value = cell.as_py()
        if not isinstance(value, Mapping):
            return value is None
        named = value.get("path")
        return value.get("bytes") is None and not (isinstance(named, str) and find_image(folder, named))

    absent: set[int] = set()
    try:
        with pq.ParquetFile(path) as file:
            first = 0
            for group in range(file.num_row_groups):
                about = file.metadata.row_group(group)
                if _has_nulls(about, column):
                    batches = file.iter_batches(batch_size=8, row_groups=[group], columns=[column])
                    cells = (cell for batch in batches for cell in batch.column(0))
                    absent.update(row for row, cell in enumerate(cells, first) if is_absent(cell))
                first += about.num_rows
    except (OSError, pa.ArrowException) as err:
        raise DataError(f"{path}: the column {column} cannot be read ({err})") from err
    return frozenset(absent)


def _has_nulls(group: Any, column: str) -> bool:
    """Say whether a row group's images may be null; without statistics they may."""
    for leaf in map(group.column, range(group.num_columns)):
        if leaf.path_in_schema in (column, f"{column}.bytes"):
            counted = leaf.statistics
            return counted is None or not counted.has_null_count or counted.null_count > 0
    return True
