"""Page records → the data set's files, in one pass and in the order of the sources.

Nothing that differs between equal runs goes into them, save ``timings.jsonl`` and ``run.json``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from inktraj.errors import ParseError, RunError
from inktraj.io.images import Source
from inktraj.pseudolabel.folder import IMAGES, METADATA, PREVIEWS, RunFolder, json_bytes
from inktraj.pseudolabel.machine import machine
from inktraj.pseudolabel.record import VERDICTS, rounded
from inktraj.pseudolabel.report import Report

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_GROUP = 16
"""Pages held at once while Parquet is written."""


class Tally:
    """Counts and means over page records."""

    def __init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self.words = 0
        self.words_matched = 0
        self.strokes = 0
        self.points = 0
        self.seconds: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    @property
    def pages(self) -> int:
        """Pages in all."""
        return self.verdicts.total()

    def add(self, record: dict[str, Any]) -> None:
        """Count one page."""
        page = record["page"]
        self.verdicts[page["verdict"]] += 1
        self.words += len(page["words"])
        for word in page["words"]:
            self.words_matched += word["match"]
            self.points += len(word["strokes"])
            self.strokes += sum(s for _, _, s in word["strokes"])
        for stage, seconds in record["timings"].items():
            self.seconds[stage] += seconds
        for name in ("agreement", "ink_recall", "ink_precision"):
            if page[name] is not None and (name == "agreement" or page["verdict"] == "kept"):
                self._sums[name] += page[name]
                self._counts[name] += 1

    def mean(self, name: str) -> float | None:
        """Mean agreement over pages that have one; mean ``ink_recall``, ``ink_precision`` over kept pages."""
        return rounded(self._sums[name] / self._counts[name]) if self._counts[name] else None

    def counts(self) -> dict[str, int]:
        """Pages, words, strokes and points."""
        return {
            "pages": self.pages,
            **{verdict: self.verdicts[verdict] for verdict in VERDICTS},
            "words": self.words,
            "words_matched": self.words_matched,
            "strokes": self.strokes,
            "points": self.points,
        }

    def means(self) -> dict[str, float | None]:
        """Kept share, and the means."""
        names = ("agreement", "ink_recall", "ink_precision")
        share = rounded(self.verdicts["kept"] / self.pages) if self.pages else None
        return {"kept_share": share, **{name: self.mean(name) for name in names}}


def write_dataset(
    folder: RunFolder, sources: Sequence[Source], settings: dict[str, Any], facts: dict[str, Any]
) -> Tally:
    """Write all files of the data set from the page records.

    Raises
    ------
    RunError
        A record is missing or damaged, or a file cannot be written.
    """
    tally = Tally()
    rows: list[str] = []
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(folder.replacing(name))
            for name in ("pages.jsonl", "timings.jsonl", METADATA, "pages.parquet", "words.parquet", "report.html")
        }
        tables = stack.enter_context(_Tables(files["pages.parquet"], files["words.parquet"]))
        report = Report(files["report.html"])
        for record in _records(folder, sources):
            page = record["page"]
            tally.add(record)
            files["pages.jsonl"].write(json_bytes(page))
            files["timings.jsonl"].write(json_bytes({"page_id": page["page_id"], **record["timings"]}))
            if IMAGES in record["files"]:
                files[METADATA].write(json_bytes(_metadata(page)))
            tables.add(page)
            picture = folder.path(PREVIEWS, page["page_id"])
            report.add(page, picture.read_bytes() if PREVIEWS in record["files"] else None)
            rows.append(_summary_row(page))
        report.finish(tally.counts(), tally.means(), settings)
    folder.write("summary.md", _summary(tally, settings, rows).encode())
    run = {
        "settings": settings,
        "counts": tally.counts(),
        "means": tally.means(),
        "seconds": {stage: round(seconds, 3) for stage, seconds in tally.seconds.items()},
        "run": facts,
        "machine": machine(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    folder.write("run.json", json_bytes(run, indent=1))
    return tally


def _records(folder: RunFolder, sources: Iterable[Source]) -> Iterator[dict[str, Any]]:
    for source in sources:
        try:
            record = folder.read_record(source.id)
        except ParseError as err:
            raise RunError(f"{err}; did something else change it during this run? Run the command again") from err
        if record is None:
            raise RunError(f"the record of page {source.id!r} in {folder.root} is gone; did something else remove it?")
        record["page"]["source"] = source.name  # the page may have moved since it was done
        yield record


def _metadata(page: dict[str, Any]) -> dict[str, Any]:
    """Return a line for Hugging Face's image folder: the rendering, with its strokes and texts."""
    names = ("page_id", "verdict", "agreement", "ink_recall", "ink_precision", "pen", "width", "height")
    return {
        "file_name": f"{page['page_id']}.png",
        **{name: page[name] for name in names},
        "text": "\n".join(page["transcript"]),
        "rendered_text": "\n".join(page["rendered_transcript"]),
        "strokes": [point for word in page["words"] for point in word["strokes"]],
    }


class _Tables:
    """Writes ``pages.parquet`` (a row a page) and ``words.parquet`` (a row a word) side by side."""

    def __init__(self, pages: BinaryIO, words: BinaryIO) -> None:
        import pyarrow.parquet as pq

        self._schemas = _page_schema(), _word_schema()
        self._writers = [
            pq.ParquetWriter(file, schema, compression="zstd")
            for file, schema in zip((pages, words), self._schemas, strict=True)
        ]
        self._pages: list[dict[str, Any]] = []

    def __enter__(self) -> _Tables:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._flush()
        for writer in self._writers:
            writer.close()

    def add(self, page: dict[str, Any]) -> None:
        self._pages.append(page)
        if len(self._pages) >= _ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        words = [{"page_id": page["page_id"], **word} for page in self._pages for word in page["words"]]
        for writer, schema, rows in zip(self._writers, self._schemas, (self._pages, words), strict=True):
            if rows:
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))
        self._pages = []


def _word_fields() -> list[tuple[str, pa.DataType]]:
    import pyarrow as pa

    return [
        ("id", pa.string()),
        ("line", pa.int32()),
        ("index", pa.int32()),
        ("polygon", pa.list_(pa.list_(pa.float64()))),
        ("text", pa.string()),
        ("rendered_text", pa.string()),
        ("match", pa.bool_()),
        ("confidence", pa.float64()),
        ("strokes", pa.list_(pa.list_(pa.float64()))),
        ("widths", pa.list_(pa.float64())),
    ]


def _word_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([("page_id", pa.string()), *_word_fields()])


def _page_schema() -> pa.Schema:
    import pyarrow as pa

    pair = pa.struct([("original", pa.string()), ("rendered", pa.string()), ("match", pa.bool_())])
    shares = ("agreement", "line_agreement", "word_agreement", "ink_recall", "ink_precision", "pen")
    return pa.schema(
        [
            *((name, pa.string()) for name in ("page_id", "source", "sha256")),
            ("width", pa.int32()),
            ("height", pa.int32()),
            ("verdict", pa.string()),
            ("reason", pa.string()),
            *((name, pa.float64()) for name in shares),
            ("transcript", pa.list_(pa.string())),
            ("rendered_transcript", pa.list_(pa.string())),
            ("alignment", pa.list_(pair)),
            ("words", pa.list_(pa.struct(_word_fields()))),
        ]
    )


def _summary(tally: Tally, settings: dict[str, Any], rows: list[str]) -> str:
    counts, means = tally.counts(), tally.means()
    parts = ["# Pseudo-labels", ""]
    parts += [f"- {name.replace('_', ' ')}: {value}" for name, value in counts.items()]
    parts += [f"- {name.replace('_', ' ')}: {'–' if v is None else f'{v:.3f}'}" for name, v in means.items()]
    parts += ["", "Means: agreement over all pages that have one, ink recall and precision over kept pages.", ""]
    parts += ["## Settings", "", *(f"- {name}: {value}" for name, value in settings.items()), ""]
    parts += ["## Pages", "", "| page | verdict | words | agreement | ink recall | ink precision | reason |"]
    parts += ["|---|---|---|---|---|---|---|", *rows, ""]
    return "\n".join(parts)


def _summary_row(page: dict[str, Any]) -> str:
    shares = ("–" if page[n] is None else f"{page[n]:.3f}" for n in ("agreement", "ink_recall", "ink_precision"))
    cells = (page["page_id"], page["verdict"], str(len(page["words"])), *shares, page["reason"])
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    """Return text that stays in its table cell, whatever it holds."""
    for char, safe in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("\n", " "), ("\r", " ")):
        text = text.replace(char, safe)
    return text
