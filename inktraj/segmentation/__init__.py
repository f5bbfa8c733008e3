"""Page → lines → words, in reading order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from inktraj.clean import Cleaned
from inktraj.errors import DataError
from inktraj.page import Line, Page, WordCrop


@dataclass(frozen=True, slots=True, eq=False)
class Segmentation:
    """What a segmenter found on a page.

    Parameters
    ----------
    lines
        In reading order; each holds its words in reading order.
    cleaned
        The cleaned page on which the words were cut.
    """

    lines: tuple[Line, ...]
    cleaned: Cleaned

    @property
    def words(self) -> list[WordCrop]:
        """All words in reading order."""
        return [word for line in self.lines for word in line.words]


@runtime_checkable
class Segmenter(Protocol):
    """Finds the lines and words of a page; `name` and `version` are recorded with every result."""

    name: str
    version: str

    def __call__(self, page: Page) -> Segmentation:
        """Return the page's lines and words; none at all for a page without writing."""
        ...


def segment(page: Page, *, segmenter: Segmenter | None = None) -> Segmentation:
    """Find a page's lines and words, in reading order.

    Parameters
    ----------
    page
        The page; an array ``(h, w, 3)`` becomes one by ``Page(pixels)``.
    segmenter
        Another segmenter than the embedded `InkGapSegmenter`.

    Raises
    ------
    DataError
        Not a `Page`.
    """
    if not isinstance(page, Page):
        raise DataError(
            f"segment takes a Page, not {type(page).__name__}; use inktraj.Page(pixels) or inktraj.Page.open(path)"
        )
    if segmenter is None:
        from inktraj.segmentation.inkgap import InkGapSegmenter

        segmenter = InkGapSegmenter()
    return segmenter(page)
