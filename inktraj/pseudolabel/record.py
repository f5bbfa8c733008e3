"""The record of one page: what a pseudo-label holds, and its JSON form.

Conventions
-----------
Coordinates are page pixels (centre of the upper left pixel at (0, 0), x right, y down), written with three
decimals. Strokes are written as ``[x, y, s]`` points with s = 1 at each stroke's first point, else 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inktraj.agree import AlignedPair
from inktraj.errors import DataError, ParseError
from inktraj.ink import Frame, Ink

FloatArray = NDArray[np.float64]

VERDICTS = ("kept", "dropped", "failed")
"""What can become of a page: its trajectory is readable; it is not; or no trajectory could be made."""

DECIMALS = 3
"""Decimals of coordinates, widths and scores in the written records."""


@dataclass(frozen=True, slots=True, eq=False)
class WordLabel:
    """One word of a page.

    Parameters
    ----------
    id, line, index
        Its name within the page; line and place in the line, from 0 in reading order.
    polygon
        ``(n, 2)`` float64 outline in page pixels, open.
    ink
        Its strokes in the page's frame, in writing order, with local widths where the recoverer measured them.
    text, rendered_text
        What the recogniser read in the page and in the rendering ("" for nothing).
    match
        Whether the two texts agree.
    confidence
        The recoverer's, in 0–1; None where it estimates none.
    """

    id: str
    line: int
    index: int
    polygon: FloatArray
    ink: Ink
    text: str = ""
    rendered_text: str = ""
    match: bool = False
    confidence: float | None = None

    def __post_init__(self) -> None:
        polygon = np.asarray(self.polygon)
        if polygon.ndim != 2 or polygon.shape[1] != 2 or not np.isfinite(polygon).all():
            raise DataError(
                f"the outline of word {self.id!r} is not (n, 2) finite numbers but of shape {polygon.shape}"
            )

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        xys: list[list[float]] = self.ink.to_xys().round(DECIMALS).tolist()
        widths = self.ink.widths
        return {
            "id": self.id,
            "line": self.line,
            "index": self.index,
            "polygon": np.asarray(self.polygon, dtype=np.float64).round(DECIMALS).tolist(),
            "text": self.text,
            "rendered_text": self.rendered_text,
            "match": self.match,
            "confidence": rounded(self.confidence),
            "strokes": [[x, y, int(s)] for x, y, s in xys],
            "widths": None if widths is None else np.concatenate([[], *widths]).round(DECIMALS).tolist(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], frame: Frame) -> WordLabel:
        """Read what `to_json` wrote; `frame` is the page's."""
        ink = Ink.from_xys(data["strokes"], frame)
        if data["widths"] is not None and ink.strokes:
            ends = np.cumsum([len(s) for s in ink.strokes])[:-1]
            ink = Ink(ink.strokes, frame, tuple(np.split(np.asarray(data["widths"], dtype=np.float64), ends)))
        polygon = np.asarray(data["polygon"], dtype=np.float64).reshape(-1, 2)
        return cls(polygon=polygon, ink=ink, **_plain(data, _PLAIN_WORD))


@dataclass(frozen=True, slots=True, eq=False)
class PseudoLabel:
    """One page with its recovered strokes and the verdict on them.

    Parameters
    ----------
    page_id, source, sha256
        Name of the page, where it was read from, and the digest of that file ("" where it cannot be read).
    width, height
        Of the page in pixels; None where the page could not be opened.
    verdict, reason
        One of `VERDICTS`, and why.
    agreement
        Share of the words that the recogniser reads alike in page and rendering, the one that decides; None where
        nothing was compared.
    line_agreement, word_agreement
        The same share when whole lines are read, and when single words are.
    ink_recall, ink_precision
        Share of the page's ink that the strokes cover, and of the drawn strokes that lies on ink, at 2 px.
    pen
        Width in pixels of the one pen with which the page was rendered for the check.
    words
        In reading order.
    transcript, rendered_transcript
        What the recogniser read in the page and in the rendering, a string for each line.
    alignment
        Both transcripts word by word.
    """

    page_id: str
    source: str
    sha256: str
    verdict: str
    reason: str
    width: int | None = None
    height: int | None = None
    agreement: float | None = None
    line_agreement: float | None = None
    word_agreement: float | None = None
    ink_recall: float | None = None
    ink_precision: float | None = None
    pen: float | None = None
    words: tuple[WordLabel, ...] = ()
    transcript: tuple[str, ...] = ()
    rendered_transcript: tuple[str, ...] = ()
    alignment: tuple[AlignedPair, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise DataError(f"a verdict is one of {', '.join(VERDICTS)}, not {self.verdict!r}")

    @property
    def ink(self) -> Ink:
        """All strokes of the page in reading order, in the page's frame; DataError where it was never opened."""
        if self.width is None or self.height is None:
            raise DataError(f"page {self.page_id!r} has no ink: {self.reason}")
        return Ink.concat([word.ink for word in self.words], Frame(self.width, self.height))

    def to_json(self) -> dict[str, Any]:
        """Return the record as it stands in ``pages.jsonl``."""
        return {
            "page_id": self.page_id,
            "source": self.source,
            "sha256": self.sha256,
            "width": self.width,
            "height": self.height,
            "verdict": self.verdict,
            "reason": self.reason,
            "agreement": rounded(self.agreement),
            "line_agreement": rounded(self.line_agreement),
            "word_agreement": rounded(self.word_agreement),
            "ink_recall": rounded(self.ink_recall),
            "ink_precision": rounded(self.ink_precision),
            "pen": rounded(self.pen),
            "transcript": list(self.transcript),
            "rendered_transcript": list(self.rendered_transcript),
            "alignment": [pair._asdict() for pair in self.alignment],
            "words": [word.to_json() for word in self.words],
        }

    @classmethod
    def from_json(cls, data: Any) -> PseudoLabel:
        """Read what `to_json` wrote.

        Raises
        ------
        ParseError
            A field is missing or of another kind.
        """
        try:
            plain = _plain(data, _PLAIN_PAGE)
            words: tuple[WordLabel, ...] = ()
            if data["words"]:
                frame = Frame(data["width"], data["height"])
                words = tuple(WordLabel.from_json(word, frame) for word in data["words"])
            return cls(
                **plain,
                words=words,
                transcript=tuple(data["transcript"]),
                rendered_transcript=tuple(data["rendered_transcript"]),
                alignment=tuple(AlignedPair(p["original"], p["rendered"], p["match"]) for p in data["alignment"]),
            )
        except (KeyError, TypeError, ValueError) as err:
            raise ParseError(f"not a pseudo-label record ({type(err).__name__}: {err})") from err


_PLAIN_WORD: dict[Any, tuple[str, ...]] = {
    str: ("id", "text", "rendered_text"),
    int: ("line", "index"),
    bool: ("match",),
    float | int | None: ("confidence",),
}
_PLAIN_PAGE: dict[Any, tuple[str, ...]] = {
    str: ("page_id", "source", "sha256", "verdict", "reason"),
    int | None: ("width", "height"),
    float | int | None: ("agreement", "line_agreement", "word_agreement", "ink_recall", "ink_precision", "pen"),
}
"""Fields that are written as they are, by their kind."""


def _plain(data: Any, fields: dict[Any, tuple[str, ...]]) -> dict[str, Any]:
    for kind, names in fields.items():
        for name in names:
            if not isinstance(data[name], kind):
                raise TypeError(f"{name} is {data[name]!r}")
    return {name: data[name] for names in fields.values() for name in names}


def rounded(value: float | None) -> float | None:
    """Return `value` with `DECIMALS` decimals, None for None; DataError for NaN and infinity, which JSON lacks."""
    if value is None:
        return None
    if not np.isfinite(value):
        raise DataError(f"a score or width is {value!r}, expected a finite number or None")
    return round(float(value), DECIMALS)


def read_pseudolabels(path: str | Path) -> Iterator[PseudoLabel]:
    """Read a finished data set, page by page.

    Parameters
    ----------
    path
        The output folder of `build_pseudolabels`, or its ``pages.jsonl``.

    Raises
    ------
    DataError
        There is no such file.
    ParseError
        A line is not a record; the message names it.
    """
    file = Path(path)
    file = file / "pages.jsonl" if file.is_dir() else file
    if not file.is_file():
        raise DataError(f"{file} does not exist; expected the output folder of build-pseudolabels or its pages.jsonl")
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield PseudoLabel.from_json(json.loads(line))
            except ValueError as err:
                raise ParseError(f"{file}, line {number}: {err}") from err
