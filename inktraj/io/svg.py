"""SVG: one ``<g>`` for each record, one ``<path>`` for each stroke.

Written: a record's ``<g>`` has its id, its text (``data-text``), its frame (``data-frame``), its extras
(``data-extra``, JSON) and, where known, the source of its times (``data-times-source``); a path has ``data-widths``
and ``data-times`` where known. Numbers have seven significant digits. The picture begins at (−0.5, −0.5), as the
centre of a frame's first pixel is (0, 0).

Read: such files exactly; any other drawing as one record, its frame the ``viewBox``, with the SVG point (0.5, 0.5)
of a pixel drawing becoming (0, 0). Paths (all commands but elliptic arcs), polylines, polygons and lines are
strokes; curves are flattened to within 0.05 units. All kinds of ``transform`` are applied. Text, images,
circles and whatever else cannot be strokes is left out with an `IgnoredElements` warning that counts it, and so are
strokes that ``display`` or ``visibility`` hides, as an attribute or in ``style``; style sheets are not read.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError, ParseError
from inktraj.ink import Frame, Ink, order_color
from inktraj.io import InkRecord
from inktraj.io.files import File, inferred_frame, name_of, number, number_list, read_bytes, write_text
from inktraj.io.markup import Element, escape, parse_xml
from inktraj.io.svg_path import parse_numbers, parse_path

FloatArray = NDArray[np.float64]

_SHAPES = ("path", "polyline", "polygon", "line")
_IGNORED = ("text", "image", "use", "circle", "ellipse", "rect", "foreignObject", "switch")
_UNSEEN = ("defs", "symbol", "clipPath", "mask", "marker", "pattern", "style", "script", "metadata", "title", "desc")


class IgnoredElements(UserWarning):
    """A drawing holds elements that cannot be read as strokes, or hidden ones; the message counts them."""


# Writing


def write_svg(file: File, records: Iterable[InkRecord]) -> None:
    """Write records as an SVG drawing, its strokes coloured by their order within each record.

    Parameters
    ----------
    file
        Path, or a text or binary file object.
    records
        What to write; the drawing is as large as the largest frame.

    Raises
    ------
    DataError
        A text holds a character that XML cannot hold.
    """
    records = list(records)
    width = max((float(r.ink.frame.width) for r in records), default=1.0)
    height = max((float(r.ink.frame.height) for r in records), default=1.0)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-0.5 -0.5 {width!r} {height!r}" '
        'fill="none" stroke-linecap="round" stroke-linejoin="round">\n'
    )
    thin = max(width, height) / 400
    write_text(file, head + "".join(_group(r, thin) for r in records) + "</svg>\n")


def _group(record: InkRecord, thin: float) -> str:
    what = f"the record {record.id!r}"
    ink, frame = record.ink, record.ink.frame
    size = f"{float(frame.width)!r} {float(frame.height)!r} {frame.unit}"
    attributes = {"id": record.id, "data-text": record.text, "data-frame": size}
    if record.extra:
        attributes["data-extra"] = json.dumps(dict(record.extra), ensure_ascii=False)
    if ink.times_source is not None:
        attributes["data-times-source"] = ink.times_source
    parts = [f"<g {_attributes(attributes, what)}>\n"]
    for i, stroke in enumerate(ink.strokes):
        pen = float(np.median(ink.widths[i])) if ink.widths is not None else thin
        own = {"d": _path(stroke), "stroke": order_color(i, len(ink.strokes)), "stroke-width": number(pen)}
        if ink.widths is not None:
            own["data-widths"] = number_list(ink.widths[i])
        if ink.times is not None:
            own["data-times"] = " ".join(f"{t:.6f}" for t in ink.times[i].tolist())
        parts.append(f"  <path {_attributes(own, what)}/>\n")
    return "".join([*parts, "</g>\n"])


def _attributes(values: dict[str, str], what: str) -> str:
    return " ".join(f'{key}="{escape(value, what)}"' for key, value in values.items())


def _path(stroke: FloatArray) -> str:
    """Return path data; a dot is a line of no length by the relative command, which two equal points never are."""
    return f"M{number_list(stroke[0])}" + ("l0 0" if len(stroke) == 1 else f"L{number_list(stroke[1:])}")


# Reading


def read_svg(file: File) -> list[InkRecord]:
    """Read the strokes of an SVG drawing.

    Parameters
    ----------
    file
        Path, or a text or binary file object.

    Returns
    -------
    list
        The records that `write_svg` wrote, and one more with any other strokes of the drawing.

    Raises
    ------
    ParseError
        Not SVG, or its path data or transforms are not of SVG's grammar, or it has elliptic arcs; the message
        says where.

    Warns
    -----
    IgnoredElements
        The drawing holds text, images or shapes that are no strokes, or hidden strokes.
    """
    name = name_of(file)
    root = parse_xml(read_bytes(file), name)
    if root.tag != "svg":
        raise ParseError(f"{name}, line {root.line}: the root is <{root.tag}>, expected <svg>")
    drawing = _Drawing(root, name)
    drawing.walk()
    return drawing.records()


class _Drawing:
    """Walks one document and gathers the strokes of each record and the loose ones."""

    def __init__(self, root: Element, name: str) -> None:
        self.root, self.name = root, name
        self.owned: list[tuple[Element, list[tuple[FloatArray, Element]]]] = []
        self.loose: list[tuple[FloatArray, Element]] = []
        self.ignored: dict[str, int] = {}

    def walk(self) -> None:
        """Visit all elements that are drawn, in their order."""
        waiting: list[tuple[Element, FloatArray, list[tuple[FloatArray, Element]], bool]]
        waiting = [(self.root, np.eye(3), self.loose, True)]
        while waiting:
            element, matrix, strokes, visible = waiting.pop()
            where = f"{self.name}, line {element.line}"
            if element.tag in _UNSEEN:
                continue
            if _property(element, "display") == "none":
                self._ignore_hidden(element)
                continue
            visibility = _property(element, "visibility")
            if visibility in _VISIBILITIES:
                visible = _VISIBILITIES[visibility]
            if "transform" in element.attributes:
                matrix = matrix @ _transform(element.attributes["transform"], where)
            if element.tag == "svg" and element is not self.root:
                self._ignore(element)
                continue
            if element.tag == "g" and "data-text" in element.attributes:
                strokes = []
                self.owned.append((element, strokes))
            if element.tag in _SHAPES and not visible:
                self._ignore(element, "hidden ")
            elif element.tag in _SHAPES:
                with np.errstate(over="ignore", invalid="ignore"):  # an ink refuses what is not finite
                    strokes += [(s @ matrix[:2, :2].T + matrix[:2, 2], element) for s in _shape(element, where)]
            elif element.tag in _IGNORED:
                self._ignore(element)
                continue
            waiting += [(child, matrix, strokes, visible) for child in reversed(element.children)]

    def _ignore(self, element: Element, how: str = "") -> None:
        what = f"{how}<{element.tag}>"
        self.ignored[what] = self.ignored.get(what, 0) + 1

    def _ignore_hidden(self, element: Element) -> None:
        """Count the strokes of a part that is not drawn."""
        waiting = [element]
        while waiting:
            part = waiting.pop()
            if part.tag in _SHAPES:
                self._ignore(part, "hidden ")
            if part.tag not in _UNSEEN:
                waiting += part.children

    def records(self) -> list[InkRecord]:
        """Return the records, and warn of what was left out."""
        records = [self._owned(element, strokes) for element, strokes in self.owned]
        if self.loose:
            records.append(self._other([s for s, _ in self.loose]))
        if self.ignored:
            counts = ", ".join(f"{n} {what}" for what, n in sorted(self.ignored.items()))
            warnings.warn(f"{self.name}: left out {counts}: no strokes, or not seen", IgnoredElements, stacklevel=4)
        return records

    def _owned(self, group: Element, strokes: list[tuple[FloatArray, Element]]) -> InkRecord:
        where, values = f"{self.name}, line {group.line}", group.attributes
        try:
            width, height, unit = values.get("data-frame", "").split(" ", 2)
            frame = Frame(float(width), float(height), unit)
            extra = json.loads(values.get("data-extra", "{}"))
            if not isinstance(extra, dict):
                raise ParseError("data-extra is not an object")
            along: dict[str, Any] = {}
            for key in ("widths", "times"):
                if strokes and all(f"data-{key}" in e.attributes for _, e in strokes):
                    along[key] = tuple(parse_numbers(e.attributes[f"data-{key}"]) for _, e in strokes)
            if "times" in along:
                along["times_source"] = values.get("data-times-source")
            ink = Ink(tuple(s for s, _ in strokes), frame, **along)
        except ValueError as err:
            raise ParseError(f"{where}: the record {values.get('id')!r} is not as inktraj writes it ({err})") from err
        return InkRecord(values.get("id", ""), ink, values["data-text"], {str(k): str(v) for k, v in extra.items()})

    def _other(self, strokes: list[FloatArray]) -> InkRecord:
        """Make one record of a drawing by somebody else."""
        where = f"{self.name}, line {self.root.line}"
        id = self.root.attributes.get("id", "drawing")
        try:
            box = self._box(where)
            if box is None:
                moved, frame, notes = inferred_frame([s - 0.5 for s in strokes], "px")
                return InkRecord(id, Ink(tuple(moved), frame), "", notes)
            left, top, width, height = box
            return InkRecord(id, Ink(tuple(s - (left + 0.5, top + 0.5) for s in strokes), Frame(width, height)))
        except ParseError:
            raise
        except DataError as err:
            raise ParseError(f"{where}: {err}") from err

    def _box(self, where: str) -> list[float] | None:
        """Return left, top, width and height of the drawing; None where it does not say."""
        attributes = self.root.attributes
        if "viewBox" in attributes:
            numbers = parse_numbers(attributes["viewBox"])
            if len(numbers) != 4:
                raise ParseError(f"{where}: viewBox is {attributes['viewBox']!r}, expected four numbers")
            return [float(v) for v in numbers]
        width, height = _length(attributes.get("width", "")), _length(attributes.get("height", ""))
        return None if width is None or height is None else [0.0, 0.0, width, height]


_VISIBILITIES = {"visible": True, "hidden": False, "collapse": False}


def _property(element: Element, name: str) -> str:
    """Return a presentation property in lower case, "" where it is not given; ``style`` goes before the attribute."""
    value = element.attributes.get(name, "")
    for declaration in element.attributes.get("style", "").split(";"):
        key, _, given = declaration.partition(":")
        if key.strip().lower() == name:
            value = given.partition("!")[0]  # such as !important
    return value.strip().lower()


def _length(text: str) -> float | None:
    match = re.fullmatch(r"\s*([\d.]+(?:e[-+]?\d+)?)\s*(?:px)?\s*", text)
    try:
        return float(match[1]) if match else None
    except ValueError:
        return None


def _shape(element: Element, where: str) -> Iterator[FloatArray]:
    values = element.attributes
    try:
        if element.tag == "path":
            yield from parse_path(values.get("d", ""))
        elif element.tag == "line":
            ends = parse_numbers(" ".join(values.get(key, "0") for key in ("x1", "y1", "x2", "y2")))
            yield ends.reshape(2, 2)
        else:
            numbers = parse_numbers(values.get("points", ""))
            if len(numbers) % 2:
                raise ParseError(f"{len(numbers)} numbers, expected pairs")
            points = numbers.reshape(-1, 2)
            if element.tag == "polygon" and len(points):
                points = np.concatenate([points, points[:1]])
            if len(points):
                yield points
    except ValueError as err:
        raise ParseError(f"{where}: <{element.tag}>: {err}") from err


_CALL = re.compile(r"\s*,?\s*([A-Za-z]+)\s*\(([^()]*)\)\s*")


def _transform(text: str, where: str) -> FloatArray:
    """Return the ``(3, 3)`` matrix of a list of transforms (SVG 1.1, section 7.6)."""
    matrix, at = np.eye(3), 0
    while at < len(text.rstrip()):
        call = _CALL.match(text, at)
        if call is None:
            raise ParseError(f"{where}: transform {text[:60]!r} is not of SVG's grammar")
        try:
            matrix = matrix @ _matrix(call[1], parse_numbers(call[2]).tolist())
        except (ValueError, TypeError) as err:
            raise ParseError(f"{where}: transform {call[0].strip()!r} cannot be read ({err})") from err
        at = call.end()
    return matrix


def _matrix(name: str, numbers: list[float]) -> FloatArray:
    if name == "matrix" and len(numbers) == 6:
        a, b, c, d, e, f = numbers
    elif name == "translate" and len(numbers) in (1, 2):
        a, b, c, d, e, f = 1, 0, 0, 1, numbers[0], numbers[1] if len(numbers) == 2 else 0
    elif name == "scale" and len(numbers) in (1, 2):
        a, b, c, d, e, f = numbers[0], 0, 0, numbers[-1], 0, 0
    elif name == "rotate" and len(numbers) in (1, 3):
        cos, sin = math.cos(math.radians(numbers[0])), math.sin(math.radians(numbers[0]))
        x, y = numbers[1:] if len(numbers) == 3 else (0.0, 0.0)
        a, b, c, d, e, f = cos, sin, -sin, cos, x - cos * x + sin * y, y - sin * x - cos * y
    elif name == "skewX" and len(numbers) == 1:
        a, b, c, d, e, f = 1, 0, math.tan(math.radians(numbers[0])), 1, 0, 0
    elif name == "skewY" and len(numbers) == 1:
        a, b, c, d, e, f = 1, math.tan(math.radians(numbers[0])), 0, 1, 0, 0
    else:
        raise ParseError(f"{name} with {len(numbers)} numbers")
    return np.array([[a, c, e], [b, d, f], [0, 0, 1]], dtype=np.float64)
