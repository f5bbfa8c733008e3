"""XML read safely: no entities are declared or expanded, nothing is loaded from elsewhere, and lines are known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from inktraj.errors import DataError, ParseError

MAX_DEPTH = 200
"""Deepest nesting of elements that is read."""

_SEPARATOR = " "
_XML = f"http://www.w3.org/XML/1998/namespace{_SEPARATOR}"


_SPECIAL = re.compile(r'[&<>"\r\n\t]')
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(slots=True)
class Element:
    """One element: local name, attributes by local name (``xml:id`` as ``id``), own text, children, line."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def iter(self) -> Iterator[Element]:
        """Yield this element and all below it, in document order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))


def parse_xml(data: bytes, name: str) -> Element:
    """Parse a document.

    Parameters
    ----------
    data
        The document, in the encoding that it declares.
    name
        How errors call it.

    Raises
    ------
    ParseError
        Not well-formed, nested too deeply, or it declares entities.
    """
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    parser.buffer_text = True
    root = Element("", {}, 0)
    path = [root]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(path) > MAX_DEPTH:
            raise ParseError(f"{name}, line {parser.CurrentLineNumber}: elements nested deeper than {MAX_DEPTH}")
        local = {key.removeprefix(_XML).rsplit(_SEPARATOR, 1)[-1]: value for key, value in attributes.items()}
        element = Element(tag.rsplit(_SEPARATOR, 1)[-1], local, parser.CurrentLineNumber)
        path[-1].children.append(element)
        path.append(element)

    def end(_tag: str) -> None:
        path.pop()

    def characters(text: str) -> None:
        path[-1].text += text

    def refuse(*_: Any) -> None:
        raise ParseError(
            f"{name}, line {parser.CurrentLineNumber}: the document declares or uses its own entities, expected none; "
            "they are not expanded, as they can be made to grow without end"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = refuse
    parser.SkippedEntityHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as err:
        raise ParseError(
            f"{name}, line {err.lineno}, column {err.offset + 1}: not well-formed XML "
            f"({expat.ErrorString(err.code)}); is the file cut short?"
        ) from err
    except (LookupError, ValueError) as err:
        if isinstance(err, ParseError):
            raise
        raise ParseError(f"{name}: its declared encoding cannot be read ({err})") from err
    return root.children[0]


def escape(text: str, what: str) -> str:
    """Return text for an element or a quoted attribute; raises DataError at a character that XML cannot hold."""
    if bad := _NOT_XML.search(text):
        raise DataError(f"{what} holds the character U+{ord(bad[0]):04X}, which XML cannot hold: {text[:40]!r}")
    return _SPECIAL.sub(lambda special: f"&#{ord(special[0])};", text)
