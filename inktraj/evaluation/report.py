"""An evaluation → one self-contained HTML file: tables, and every sample to look at and replay.

The page's look and behaviour are in ``report_template.html``; its data are put in here, escaped. It loads nothing, and
its policy lets only its own script and style run, so that a model's reply stays text whatever it holds.
"""

from __future__ import annotations

import base64
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inktraj.datasets import Sample
from inktraj.errors import InktrajError
from inktraj.evaluation.published import NOTE
from inktraj.evaluation.results import KINDS, EvaluationRun, Outcome
from inktraj.evaluation.summary import (
    BY_RULE,
    Told,
    costs,
    facts,
    figure_of,
    groups_tables,
    heading,
    headlines,
    method,
    published_table,
    settings,
    tell,
    title,
    warnings,
)
from inktraj.evaluation.tables import Table, interval, percent, short
from inktraj.ink import Ink
from inktraj.io.files import write_bytes
from inktraj.io.html import FARTHEST, content_policy, packed_strokes, script_json
from inktraj.metrics.statistics import Summary
from inktraj.scoring.figures import Figure
from inktraj.scoring.scores import Twice
from inktraj.vlm import Reply

REPORT = "report.html"

PICTURES = 1500
"""Outcomes that get a picture at most: the worst, those without an ink, and some drawn by chance, in equal parts."""

PICTURE_BYTES = 22_000_000
"""Size of all outcomes with a picture, and …"""

OTHER_BYTES = 8_000_000
"""… of those that have strokes and a reply only; the rest have their figures. So the file is one that browsers open."""

OTHERS = 12_000
"""Of these, so many at most."""

AT_ONCE = 2000
"""Of these, so many are made before it is known whether there is room for them."""

SIDE = 480
"""Pixels of a picture's longer side."""

REPLY = 20_000
"""Characters of a reply that are shown; ``samples.jsonl`` has all."""

SEED = 0
"""Of what is drawn by chance."""

_SHOWN = (
    *("dtw", "dtw_placed", "chamfer", "tolerant_dtw", "hausdorff", "ink_f1", "order_agreement", "direction_agreement"),
    *("start_accuracy", "ar", "cr", "cer", "style", "pred_strokes", "ref_strokes"),
)

STROKES = 1000
"""Strokes of an answer that are drawn at most."""

BEYOND = 0.25
"""Share of the page's size beside it within which ink is shown."""

Box = tuple[float, float, float, float]
"""x, y, width, height in page pixels."""


def write_report(run: EvaluationRun, rows: Sequence[Told] | None = None) -> Path:
    """Write ``report.html`` into the run's folder.

    Parameters
    ----------
    run
        What was found.
    rows
        What `inktraj.evaluation.summary.tell` gave, where it was called before.

    Raises
    ------
    DataError
        It cannot be written; one that was there then stays as it was.
    """
    rows = tell(run) if rows is None else rows
    details = _details(run)
    template = files("inktraj.evaluation").joinpath("report_template.html").read_text(encoding="utf-8")
    parts = {
        "policy": content_policy(template),
        "title": escape(title(run)),
        "facts": _list(facts(run)),
        "warnings": f'<section class="warnings"><h2>Warnings</h2>{_list(warnings(run))}</section>'
        if warnings(run)
        else "",
        "rows": _rows_table(rows),
        "groups": _groups(rows),
        "published": f"{_table(published_table())}<p>{escape(NOTE)}</p>",
        "method": _method(run),
        "pictures": escape(" ".join(details.told(sum(len(row.outcomes) for row in run.rows)))),
        "index": script_json(_index(run)),
    }
    path = run.folder / REPORT
    write_bytes(path, map(_bytes, _filled(template, parts, details)))
    return path


def _filled(template: str, parts: Mapping[str, str], details: _Details) -> Iterator[str]:
    for number, piece in enumerate(re.split(r"<!-- (\w+) -->", template)):
        if number % 2 and piece == "details":
            yield from (f'<script type="application/json" id="{id}">{text}</script>\n' for id, text in details)
        else:
            yield parts[piece] if number % 2 else piece


def _bytes(text: str) -> bytes:
    """Encode; lone surrogates, as a reply may hold, become JSON's escapes."""
    return text.encode("utf-8", "backslashreplace")


# Tables


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _method(run: EvaluationRun) -> str:
    parts = [f"<h3>How it was measured</h3>{_list(method(run))}"]
    for name, pairs in (("Costs", costs(run)), ("Settings", settings(run))):
        told = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in pairs)
        if told:
            parts.append(f"<h3>{name}</h3><dl>{told}</dl>")
    return "".join(parts)


def _rows_table(rows: Sequence[Told]) -> str:
    """Return the table of rows; its columns are sorted by their ``data-v``."""
    figures = headlines(rows)
    names = ["model, frame", *map(heading, figures), "coverage", "outside image", *KINDS]
    head = "".join(f'<th scope="col"><button type="button">{escape(name)}</button></th>' for name in names)
    body = "".join(_row(number, told, figures) for number, told in enumerate(rows))
    caption = f"<caption>{escape(BY_RULE)}.</caption>"
    return f'<table id="table">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _row(number: int, told: Told, figures: Sequence[Figure]) -> str:
    row = told.row
    native = ' <span class="tag">native</span>' if row.native and row.frame else ""
    cells = [f'<th scope="row" data-v="{escape(row.name)}">{escape(row.name)}{native}</th>']
    for figure in figures:
        twice = told.figures.get(figure.name)
        cells.append("<td></td>" if twice is None else f'<td data-v="{_plain(twice.all.mean)}">{_cell(twice)}</td>')
    cells += [
        f'<td data-v="{_plain(share)}">{percent(share)}</td>' for share in (row.scores.coverage, row.out_of_range)
    ]
    for kind in KINDS:
        count = row.kinds[kind]
        shown = f'<button type="button" data-row="{number}" data-kind="{kind}">{count}</button>' if count else "0"
        cells.append(f'<td data-v="{count}">{shown}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _cell(twice: Twice) -> str:
    all, valid = twice.all, twice.valid
    text = f"<b>{short(all.mean)}</b>{_interval(all)}"
    return text if valid == all else f"{text}<small>ok only {short(valid.mean)}</small>{_interval(valid)}"


def _interval(summary: Summary) -> str:
    text = interval(summary.low, summary.high)
    return f"<small>{text}</small>" if text else ""


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.8g}"


def _groups(rows: Sequence[Told]) -> str:
    found = "".join(_table(table) for told in rows for table in groups_tables(told))
    return f'<section><h2>By group</h2><div class="scroll" tabindex="0">{found}</div></section>' if found else ""


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    caption = f"<caption>{escape(table.title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# The list of samples


def _index(run: EvaluationRun) -> dict[str, Any]:
    """Return what the list needs of every outcome, as columns."""
    ids: dict[str, int] = {}
    pages: dict[str, int] = {}
    reasons: dict[str, int] = {"": 0}
    samples: list[tuple[str, int]] = []
    rows = []
    named = [name for name in _SHOWN if any(name in row.scores.columns for row in run.rows)]
    for row in run.rows:
        words = {word.name: (k, word) for k, word in enumerate(row.scores.words)}
        columns = {name: _rounded(row.scores.columns[name]) for name in named if name in row.scores.columns}
        out: dict[str, Any] = {"name": row.name, "sample": [], "kind": [], "reason": [], "out": [], "dropped": []}
        values: dict[str, list[float | None]] = {name: [] for name in columns}
        readings: list[str | None] = []
        for outcome in row.outcomes:
            k, word = words.get(outcome.id, (None, None))
            if outcome.id not in ids:
                ids[outcome.id] = len(ids)
                page = "" if word is None else word.page
                samples.append(("" if word is None else word.text, pages.setdefault(page, len(pages))))
            out["sample"].append(ids[outcome.id])
            out["kind"].append(KINDS.index(outcome.kind))
            reason = outcome.reason or ("" if word is None or word.status == "valid" else word.reason)
            out["reason"].append(reasons.setdefault(reason[:300], len(reasons)))
            out["out"].append(_digits(outcome.out_of_range))
            out["dropped"].append(outcome.dropped)
            readings.append(None if word is None else word.reading)
            for name, column in columns.items():
                values[name].append(None if k is None else column[k])
        out["values"] = values
        if any(reading is not None for reading in readings):
            out["reading"] = readings
        rows.append(out)
    return {
        "ids": list(ids),
        "pages": list(pages),
        "texts": [text for text, _ in samples],
        "page": [page for _, page in samples],
        "reasons": list(reasons),
        "kinds": KINDS,
        "figures": [{"name": name, "label": _figure(name).label, "better": _figure(name).better} for name in named],
        "rows": rows,
    }


def _figure(name: str) -> Figure:
    """Return the figure of a column of single samples."""
    return Figure(name, heading(figure_of(name), arrow=False), figure_of(name).better)


def _rounded(column: NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(value) else _digits(value) for value in column.tolist()]


def _digits(value: float) -> float:
    """Return a number with five significant digits; a whole one as such, which is shorter."""
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded.is_integer() else rounded


# Pictures, strokes and replies

Place = tuple[int, int]
"""An outcome: number of its row, and place in it."""


@dataclass
class _Details:
    """Elements with the data of single outcomes, and the replies, each once."""

    elements: dict[str, str] = field(default_factory=dict)
    replies: dict[str, str] = field(default_factory=dict)
    pictured: int = 0
    unopened: dict[str, str] = field(default_factory=dict)
    used: int = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        yield from self.elements.items()
        yield from ((id, text) for text, id in self.replies.items())

    def add(self, place: Place, data: dict[str, Any], reply: Reply | None, most: int, room: int) -> bool:
        """Add an outcome, with so many characters of its reply, if all then takes no more than so many bytes."""
        text = ""
        if reply is not None:
            text = script_json(reply.text[:most])
            data |= {"reply": self.replies.get(text, f"r{len(self.replies)}"), "length": len(reply.text)}
        element = script_json(data)
        size = self.used + _size(element) + (_size(text) if reply is not None and text not in self.replies else 0)
        if size > room:
            return False
        self.used = size
        self.elements[f"d{place[0]}-{place[1]}"] = element
        self.pictured += "img" in data
        if reply is not None:
            self.replies.setdefault(text, data["reply"])
        return True

    def told(self, count: int) -> Iterator[str]:
        """Say for how many of all outcomes there is what."""
        plain = len(self.elements) - self.pictured
        if self.pictured < count and self.pictured:
            yield (
                f"{self.pictured} of {count} answers have a picture: the worst ones, those without an ink, and some "
                f"drawn by chance (seed {SEED})."
            )
        if plain:
            yield f"{plain} have their strokes and reply without a picture."
        if len(self.elements) < count:
            yield f"{count - len(self.elements)} have their figures only, so that browsers still open this file."
        if self.unopened:
            yield f"{len(self.unopened)} pages could not be opened, such as: {next(iter(self.unopened.values()))}"


def _size(text: str) -> int:
    return len(_bytes(text)) + 60  # with its element's tags


def _details(run: EvaluationRun) -> _Details:
    """Make the elements: first with pictures, then without, as far as there is room, the most telling ones first."""
    out = _Details()
    order = list(_by_turns(run))
    _add(out, run, order[:PICTURES], REPLY, PICTURE_BYTES, pictures=True)
    for start in range(PICTURES, min(PICTURES + OTHERS, len(order)), AT_ONCE):
        places = order[start : start + AT_ONCE]
        if not _add(out, run, places, REPLY // 10, PICTURE_BYTES + OTHER_BYTES, pictures=False):
            break
    return out


def _add(out: _Details, run: EvaluationRun, places: Sequence[Place], most: int, room: int, *, pictures: bool) -> bool:
    """Add those outcomes that there is room for; False where there was none for some."""
    drawn = _drawn(run, places, out, pictures=pictures)
    fitted = [
        out.add(place, drawn.pop(place), _outcome(run, place).reply, most, room) for place in places if place in drawn
    ]
    return all(fitted)


def _outcome(run: EvaluationRun, place: Place) -> Outcome:
    return run.rows[place[0]].outcomes[place[1]]


def _by_turns(run: EvaluationRun) -> Iterator[Place]:
    """Name all outcomes: by turns the worst ink that is left, one that has no ink, and one by chance, row by row."""
    chance = random.Random(SEED)
    queues: list[list[Place]] = []
    for r, row in enumerate(run.rows):
        dtw = dict(zip((word.name for word in row.scores.words), row.scores.columns["dtw"].tolist(), strict=True))
        every = list(range(len(row.outcomes)))
        inks = [k for k in every if row.outcomes[k].ink is not None and dtw.get(row.outcomes[k].id, math.nan) >= 0]
        inks.sort(key=lambda k: -dtw[row.outcomes[k].id])
        others = sorted(set(every) - set(inks))
        chance.shuffle(others)
        chance.shuffle(every)
        queues += [[(r, k) for k in numbers] for numbers in (inks, others, every)]
    turns = (place for turn in zip_longest(*queues) for place in turn if place is not None)
    return iter(dict.fromkeys(turns))


def _drawn(
    run: EvaluationRun, places: Iterable[Place], out: _Details, *, pictures: bool
) -> dict[Place, dict[str, Any]]:
    """Make the data of some outcomes, page by page, each page opened once."""
    numbers = {id: number for number, id in enumerate(run.dataset.ids)}
    found = [(numbers[id], place) for place in places if (id := _outcome(run, place).id) in numbers]
    pixels, opened = None, ""
    drawn = {}
    for number, place in sorted(found):
        outcome = _outcome(run, place)
        sample = run.dataset.by_id(outcome.scored_as) if outcome.scored_as else run.dataset[number]
        if pictures and sample.page_id != opened:
            opened, pixels = sample.page_id, None
            try:
                pixels = sample.page.open().pixels
            except InktrajError as err:
                out.unopened[opened] = str(err)
        drawn[place] = _data(sample, outcome, pixels)
    return drawn


def _data(sample: Sample, outcome: Outcome, pixels: NDArray[np.uint8] | None) -> dict[str, Any]:
    """Return what is shown of one outcome; `pixels` are the page's, None for no picture."""
    word, view, beyond = _views(sample, outcome.ink)
    seen = min(max(word[2:]) / SIDE, FARTHEST)  # of page pixels: less is not seen even where the word fills the picture
    data: dict[str, Any] = {"word": word, "view": view, "ref": _thinned(sample.ink.strokes, seen)}
    data["occurrence"] = [sample.occurrence, sample.occurrences]
    if outcome.ink is not None:
        data["pred"] = _thinned(outcome.ink.strokes, seen)
        data |= {"beyond": 1} if beyond else {}
    if outcome.dialect:
        data["read"] = f"{outcome.dialect}, {outcome.frame}" + ("" if outcome.starts_known else ", starts not known")
    if outcome.reply is not None:
        reply = outcome.reply
        data["model"] = reply.model
        data["stop"] = reply.raw_stop or reply.stop_reason
        data["tokens"] = [reply.input_tokens, reply.output_tokens]
    if pixels is not None:
        data |= _picture(pixels, view)
    return data


def _thinned(strokes: Sequence[NDArray[np.float64]], seen: float) -> list[list[int]]:
    """Pack strokes as exactly as can be seen, and of a runaway answer the first ones only."""
    return packed_strokes(strokes[:STROKES], 0.4 * seen)


def _views(sample: Sample, ink: Ink | None) -> tuple[Box, Box, bool]:
    """Return the box of the word, that of word and prediction, and whether ink lies beyond, far off the page."""
    low = np.minimum(sample.box[:2], sample.ink.bounds[:2])
    high = np.maximum(sample.box[2:], sample.ink.bounds[2:])
    margin = max(0.4 * float(high[1] - low[1]), 6.0)
    word = _box(low, high, margin)
    if ink is None or not ink.strokes:
        return word, word, False
    size = np.array([sample.page.width, sample.page.height])
    ends = np.array(ink.bounds).reshape(2, 2)
    near = ends.clip(-BEYOND * size, (1 + BEYOND) * size)
    beyond = bool((near != ends).any())
    if (near[0] == near[1]).any() and beyond:
        return word, word, True  # nothing of it would be in sight
    return word, _box(np.minimum(low, near[0]), np.maximum(high, near[1]), margin), beyond


def _box(low: NDArray[np.float64], high: NDArray[np.float64], margin: float) -> Box:
    x, y = (low - margin).round(1).tolist()
    width, height = (high - low + 2 * margin).round(1).tolist()
    return x, y, width, height


def _picture(pixels: NDArray[np.uint8], view: Box) -> dict[str, Any]:
    """Return a small JPEG of the page within the view, and where it lies; nothing where the view is beside it."""
    import cv2

    left, top = max(math.floor(view[0]), 0), max(math.floor(view[1]), 0)
    cut = pixels[top : max(math.ceil(view[1] + view[3]), 0), left : max(math.ceil(view[0] + view[2]), 0), ::-1]
    height, width = cut.shape[:2]
    if not height or not width:
        return {}
    scale = min(SIDE / max(height, width), 1.0)
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    small = cv2.resize(cut, size, interpolation=cv2.INTER_AREA)
    ok, data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 70])
    assert ok
    return {"img": base64.b64encode(data.tobytes()).decode(), "at": [left - 0.5, top - 0.5, width, height]}
