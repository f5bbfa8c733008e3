"""InkML, the W3C's ink markup language (Recommendation of 20 September 2011).

Written: one ``traceGroup`` for each record with its ``xml:id`` and annotations ``truth`` (the text), ``frame``
(``width height unit``), where known ``timesSource`` (``recorded`` or ``estimated``), and the record's extras; one
``trace`` for each stroke with the channels X, Y and, where known, W (stroke width) and T (time in ms). Numbers have
seven significant digits, times a microsecond.

Read: with and without namespace; explicit values and first and second differences (``!``, ``'``, ``"``), ``*``
and ``?``, hexadecimal numbers and booleans; ``traceFormat`` directly below ``ink`` or in contexts, referred to
or not; ``traceView`` (CROHME); continued traces; y growing upwards (``orientation="-ve"``). Each innermost
``traceGroup`` is a record, and so are all traces outside of groups together. Pen-up traces are no strokes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError, ParseError
from inktraj.ink import TIMES_SOURCES, Frame, Ink
from inktraj.io import InkRecord
from inktraj.io.files import File, inferred_frame, name_of, number, read_bytes, write_text
from inktraj.io.markup import Element, escape, parse_xml

NAMESPACE = "http://www.w3.org/2003/InkML"

_TEXTS = ("truth", "text", "textfield", "transcription", "label")  # annotation types that hold the text, best first
_SOURCE = "timesSource"  # annotation type: what `Ink.times_source` says
_OWN = ("truth", "frame", "id", _SOURCE.lower())  # annotation types that the writer uses itself
_UNITS = frozenset(("m", "cm", "mm", "in", "pt", "pc"))  # the standard's units of length that frames share
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_EXTRA = "extra:"

FloatArray = NDArray[np.float64]


# Writing


def write_inkml(file: File, records: Iterable[InkRecord]) -> None:
    """Write records as InkML.

    Parameters
    ----------
    file
        Path, or a text or binary file object.
    records
        What to write.

    Raises
    ------
    DataError
        A text holds a character that XML cannot hold.
    """
    bodies: list[str] = []
    contexts: dict[str, str] = {}
    ids: set[str] = set()
    for record in records:
        context = _context_of(record.ink)
        contexts.setdefault(context, _context(context, record.ink))
        bodies.append(_group(record, context, ids))
    definitions = f"<definitions>\n{''.join(contexts.values())}</definitions>\n" if contexts else ""
    write_text(
        file,
        f'<?xml version="1.0" encoding="UTF-8"?>\n<ink xmlns="{NAMESPACE}">\n{definitions}{"".join(bodies)}</ink>\n',
    )


def _context_of(ink: Ink) -> str:
    unit = ink.frame.unit if ink.frame.unit in _UNITS else "dev"
    return f"context-{unit}-xy{'w' if ink.widths is not None else ''}{'t' if ink.times is not None else ''}"


def _context(id: str, ink: Ink) -> str:
    unit = ink.frame.unit if ink.frame.unit in _UNITS else "dev"
    channels = [("X", unit), ("Y", unit)]
    channels += [("W", unit)] if ink.widths is not None else []
    channels += [("T", "ms")] if ink.times is not None else []
    inner = "".join(f'<channel name="{name}" type="decimal" units="{units}"/>' for name, units in channels)
    source = f'<inkSource xml:id="{id.replace("context", "source")}"><traceFormat>{inner}</traceFormat></inkSource>'
    return f'<context xml:id="{id}">{source}</context>\n'


def _group(record: InkRecord, context: str, ids: set[str]) -> str:
    what = f"the record {record.id!r}"
    ink, frame = record.ink, record.ink.frame
    plain = _NAME.fullmatch(record.id) and record.id not in ids and not record.id.startswith(("context-", "source-"))
    annotations = [("truth", record.text), ("frame", f"{float(frame.width)!r} {float(frame.height)!r} {frame.unit}")]
    if ink.times_source is not None:
        annotations.append((_SOURCE, ink.times_source))
    if plain:
        ids.add(record.id)
    else:
        annotations.append(("id", record.id))
    annotations += [
        (f"{_EXTRA}{key}" if key.lower() in _OWN or key.startswith(_EXTRA) else key, value)
        for key, value in record.extra.items()
    ]
    id = f' xml:id="{record.id}"' if plain else ""
    lines = [f'<traceGroup{id} contextRef="#{context}">\n']
    for kind, text in annotations:
        space = ' xml:space="preserve"' if text != text.strip() else ""
        lines.append(f'  <annotation type="{escape(kind, what)}"{space}>{escape(text, what)}</annotation>\n')
    for i, stroke in enumerate(ink.strokes):
        columns = [[number(v) for v in stroke[:, 0].tolist()], [number(v) for v in stroke[:, 1].tolist()]]
        if ink.widths is not None:
            columns.append([number(v) for v in ink.widths[i].tolist()])
        if ink.times is not None:
            columns.append([f"{v * 1000:.3f}" for v in ink.times[i].tolist()])
        lines.append(f"  <trace>{', '.join(map(' '.join, zip(*columns, strict=True)))}</trace>\n")
    return "".join([*lines, "</traceGroup>\n"])


# Reading


@dataclass(frozen=True, slots=True)
class _Channels:
    """What the numbers of a point mean: column and scale of each channel that is used."""

    count: int  # numbers that a point must have
    most: int  # with the intermittent ones
    columns: dict[str, int]
    scales: dict[str, float]
    unit: str
    declared: str


_XY = _Channels(2, 2, {"X": 0, "Y": 1}, {}, "px", "X Y, as no traceFormat says otherwise")


@dataclass(slots=True)
class _Trace:
    """One stroke's points by channel."""

    xy: FloatArray
    widths: FloatArray | None
    times: FloatArray | None
    unit: str


def read_inkml(file: File) -> list[InkRecord]:
    """Read InkML.

    Parameters
    ----------
    file
        Path, or a text or binary file object.

    Returns
    -------
    list
        A record for each innermost ``traceGroup``, and one for traces outside of groups. Where a file states
        no frame, one that holds the strokes is inferred, and ``extra`` says so. Annotations of the whole file
        are repeated in ``extra`` as ``ink.…``.

    Raises
    ------
    ParseError
        Not InkML, or a trace does not fit its format; the message says where.
    """
    name = name_of(file)
    root = parse_xml(read_bytes(file), name)
    if root.tag != "ink":
        hint = "; this is IAM-OnDB's own form" if root.tag == "WhiteboardCaptureSession" else ""
        raise ParseError(f"{name}, line {root.line}: the root is <{root.tag}>, expected <ink>{hint}")
    return _Reader(root, name).records()


class _Reader:
    """Reads one document; holds its definitions and the traces read so far."""

    def __init__(self, root: Element, name: str) -> None:
        self.root, self.name = root, name
        self.by_id = {e.attributes["id"]: e for e in root.iter() if "id" in e.attributes}
        formats = [e for e in root.iter() if e.tag == "traceFormat"]
        current = [e for e in root.children if e.tag in ("traceFormat", "context")]
        # A file with one format that nothing refers to means it for all traces.
        self.default = current[-1] if current else formats[0] if len(formats) == 1 else None
        self.traces: dict[int, _Trace | None] = {}
        self.channels: dict[int, _Channels] = {}

    def records(self) -> list[InkRecord]:
        """Return all records of the document in its order."""
        views = {e.attributes.get("traceDataRef", "").lstrip("#") for e in self.root.iter() if e.tag == "traceView"}
        records = []
        loose = [e for e in self.root.children if e.tag == "trace" and e.attributes.get("id") not in views]
        whole = _annotations(self.root)
        groups = [e for e in self.root.iter() if e.tag == "traceGroup" and _is_innermost(e)]
        if loose:
            text, extra = _text_and_rest(dict(whole))
            records.append(self._record(self.root, loose, text, extra, None))
        for i, group in enumerate(groups):
            text, extra = _text_and_rest(_annotations(group))
            extra |= {f"ink.{k}": v for k, v in whole.items()}
            records.append(self._record(group, list(self._traces_of(group)), text, extra, i))
        return records

    def _traces_of(self, group: Element) -> Iterator[Element]:
        for child in group.children:
            if child.tag == "trace":
                yield child
            elif child.tag == "traceView":
                reference = child.attributes.get("traceDataRef", "").lstrip("#")
                target = self.by_id.get(reference)
                if target is None or target.tag not in ("trace", "traceGroup"):
                    raise ParseError(f"{self._at(child)}: traceView refers to {reference!r}, which is no trace here")
                yield from [target] if target.tag == "trace" else [t for t in target.iter() if t.tag == "trace"]

    def _record(
        self, owner: Element, elements: list[Element], text: str, extra: dict[str, str], index: int | None
    ) -> InkRecord:
        for element in elements:
            self._read(element, owner)
        traces = [t for t in (self.traces[id(e)] for e in elements) if t is not None]
        widths = [t.widths for t in traces if t.widths is not None]
        times = [t.times for t in traces if t.times is not None]
        unit = traces[0].unit if traces else "px"
        strokes = [t.xy for t in traces]
        frame_text = extra.pop("frame", None)
        if frame_text is None:
            strokes, frame, notes = inferred_frame(strokes, unit)
            extra |= notes
        else:
            frame = self._frame(frame_text, owner)
        own = extra.pop("id", None) or owner.attributes.get("id") or ("ink" if index is None else f"group-{index}")
        source = next((s for s in TIMES_SOURCES if extra.get(_SOURCE) == s), None)  # another word stays in extra
        if source is not None:
            del extra[_SOURCE]
        extra = {k.removeprefix(_EXTRA): v for k, v in extra.items()}
        if times and len(times) == len(traces) and (np.diff(np.concatenate(times)) < 0).any():
            extra["times"] = "dropped, as they go backwards"
            times = []
        timed = bool(traces) and len(times) == len(traces)
        try:
            ink = Ink(
                tuple(strokes),
                frame,
                tuple(widths) if traces and len(widths) == len(traces) else None,
                tuple(times) if timed else None,
                source if timed else None,
            )
        except DataError as err:
            raise ParseError(f"{self._at(owner)}: {err}") from err
        return InkRecord(own, ink, text, extra)

    def _frame(self, text: str, owner: Element) -> Frame:
        try:
            width, height, unit = text.split(" ", 2)
            return Frame(float(width), float(height), unit)
        except (ValueError, DataError) as err:
            raise ParseError(f"{self._at(owner)}: the frame is {text!r}, expected width, height and unit") from err

    def _read(self, element: Element, owner: Element) -> None:
        """Read one trace, once; a continuation joins the stroke before it."""
        if id(element) in self.traces:
            return
        self.traces[id(element)] = None
        if element.attributes.get("type", "penDown") == "penUp" or not element.text.strip():
            return
        trace = self._trace(element, self._channels_of(element, owner))
        if element.attributes.get("continuation") in ("middle", "end"):
            before = self.by_id.get(element.attributes.get("priorRef", "").lstrip("#"))
            start = self.traces.get(id(before)) if before is not None else None
            if before is None or start is None:
                raise ParseError(f"{self._at(element)}: continues a trace that was not read before it")
            joined = _joined(start, trace)
            for key in [k for k, v in self.traces.items() if v is start]:
                self.traces[key] = joined
            # The element itself is no stroke of its own, but a later part may name it as the one before.
            if "id" in element.attributes:
                self.by_id[element.attributes["id"]] = before
            return
        self.traces[id(element)] = trace

    def _channels_of(self, element: Element, owner: Element) -> _Channels:
        reference = element.attributes.get("contextRef") or owner.attributes.get("contextRef")
        source = self.by_id.get(reference.lstrip("#")) if reference else self.default
        if source is None:
            if reference and reference != "#DefaultContext":
                raise ParseError(f"{self._at(element)}: refers to the context {reference!r}, which is not here")
            return _XY
        if id(source) not in self.channels:
            self.channels[id(source)] = self._channels(source)
        return self.channels[id(source)]

    def _channels(self, source: Element) -> _Channels:
        format = next((e for e in source.iter() if e.tag == "traceFormat"), None)
        for key in ("traceFormatRef", "inkSourceRef", "contextRef"):
            if format is None and key in source.attributes:
                referred = self.by_id.get(source.attributes[key].lstrip("#"))
                format = next((e for e in referred.iter() if e.tag == "traceFormat"), None) if referred else None
        if format is None:
            return _XY
        later = [c for e in format.children if e.tag == "intermittentChannels" for c in e.children]
        regular = [e for e in format.iter() if e.tag == "channel" and not any(e is c for c in later)]
        names = [e.attributes.get("name", "").upper() for e in [*regular, *later]]
        if "X" not in names[: len(regular)] or "Y" not in names[: len(regular)]:
            raise ParseError(
                f"{self._at(format)}: the traceFormat has the channels {' '.join(names)}, expected X and Y"
            )
        scales = {}
        for channel, called in zip([*regular, *later], names, strict=True):
            scale = -1.0 if called == "Y" and channel.attributes.get("orientation") == "-ve" else 1.0
            if called == "T":
                scale = 1.0 if channel.attributes.get("units") == "s" else 1e-3
            scales[called] = scale
        columns = {called: i for i, called in enumerate(names) if called in ("X", "Y", "W", "T")}
        unit = regular[names.index("X")].attributes.get("units", "px")
        return _Channels(len(regular), len(names), columns, scales, "px" if unit == "dev" else unit, " ".join(names))

    def _trace(self, element: Element, channels: _Channels) -> _Trace:
        rows = _plain_rows(element.text) or _decoded_rows(element.text, self._at(element))
        for i, row in enumerate(rows):
            if not channels.count <= len(row) <= channels.most:
                raise ParseError(
                    f"{self._at(element)}: point {i} has {len(row)} numbers, expected {channels.count} "
                    f"({channels.declared}); is the traceFormat another?"
                )
        columns = {
            key: np.array([row[at] if at < len(row) else np.nan for row in rows]) * channels.scales.get(key, 1.0)
            for key, at in channels.columns.items()
        }
        xy = np.stack([columns["X"], columns["Y"]], axis=1)
        if not np.isfinite(xy).all():
            point = int(np.flatnonzero(~np.isfinite(xy).all(axis=1))[0])
            raise ParseError(f"{self._at(element)}: x or y of point {point} is unknown (?) or beyond all numbers")
        along = {key: columns[key] if key in columns and np.isfinite(columns[key]).all() else None for key in "WT"}
        return _Trace(xy, along["W"], along["T"], channels.unit)

    def _at(self, element: Element) -> str:
        return f"{self.name}, line {element.line}"


def _joined(first: _Trace, second: _Trace) -> _Trace:
    def both(a: FloatArray | None, b: FloatArray | None) -> FloatArray | None:
        return None if a is None or b is None else np.concatenate([a, b])

    xy = np.concatenate([first.xy, second.xy])
    return _Trace(xy, both(first.widths, second.widths), both(first.times, second.times), first.unit)


def _is_innermost(group: Element) -> bool:
    inner = [e.tag for e in group.children]
    return "traceGroup" not in inner or "trace" in inner or "traceView" in inner


def _annotations(owner: Element) -> dict[str, str]:
    """Return an element's own annotations by type; several of one type are joined by line breaks."""
    out: dict[str, str] = {}
    for child in owner.children:
        if child.tag == "annotation":
            kind = child.attributes.get("type", "annotation")
            text = child.text if child.attributes.get("space") == "preserve" else child.text.strip()
            out[kind] = f"{out[kind]}\n{text}" if kind in out else text
    return out


def _text_and_rest(annotations: dict[str, str]) -> tuple[str, dict[str, str]]:
    for wanted in _TEXTS:
        for kind in annotations:
            if kind.lower() == wanted:
                text = annotations.pop(kind)
                return text, annotations
    return "", annotations


# Trace data: points separated by commas; see "trace data" in the standard.

_PLAIN = re.compile(r"[-\d.\s,]*")
_VALUE = re.compile(r"""\s*([!'"]?)\s*([-+]?)\s*(\#[0-9A-Fa-f]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[TF*?])\s*""")


def _plain_rows(text: str) -> list[list[float]] | None:
    """Read explicit decimal values, which nearly all files have; None where there is anything else."""
    if not _PLAIN.fullmatch(text):
        return None
    try:
        rows = [[float(v) for v in point.split()] for point in text.split(",")]
    except ValueError:  # 3-5 is two numbers
        return None
    return rows if rows[-1] else rows[:-1]


def _decoded_rows(text: str, where: str) -> list[list[float]]:
    rows: list[list[float]] = []
    modes: dict[int, str] = {}
    for i, point in enumerate(text.split(",")):
        values = _values(point, f"{where}: point {i}")
        if not values and rows:
            continue
        rows.append([_decoded(rows, column, value, modes) for column, value in enumerate(values)])
    return rows


def _values(point: str, where: str) -> list[tuple[str, str, str]]:
    out, at = [], 0
    while at < len(point.rstrip()):
        match = _VALUE.match(point, at)
        if match is None:
            raise ParseError(f"{where}: {point[at:].strip()[:30]!r} is not a value of InkML")
        out.append((match[1], match[2], match[3]))
        at = match.end()
    return out


def _decoded(rows: Sequence[list[float]], column: int, value: tuple[str, str, str], modes: dict[int, str]) -> float:
    """Return one value; a qualifier holds for its channel until the next one."""
    qualifier, sign, literal = value
    past: list[Any] = [row[column] for row in rows[-2:] if column < len(row)]
    if literal == "?":
        return float("nan")
    if literal == "*":
        return float(past[-1]) if past else float("nan")
    if literal in "TF":
        return float(literal == "T")
    mode = modes[column] = qualifier or modes.get(column, "!")
    try:
        size = float(int(literal[1:], 16)) if literal.startswith("#") else float(literal)
    except OverflowError:
        size = float("inf")  # as 1e999 is; refused with the point's number
    step = -size if sign == "-" else size
    if mode == "!" or not past:
        return step
    speed = past[-1] - past[-2] if mode == '"' and len(past) == 2 else 0.0
    return float(past[-1] + speed + step)
