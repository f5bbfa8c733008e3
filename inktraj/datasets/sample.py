"""A data set as its user sees it: samples, and the pages on which they stand.

Conventions
-----------
A *sample* is one word of one page: what a model is asked for, and the reference ink that it is measured by. All
coordinates are pixels of the page (centre of the upper left pixel at (0, 0), x right, y down).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, get_args, overload

from inktraj.errors import DataError
from inktraj.ink import Frame, Ink
from inktraj.io.images import Source, load

if TYPE_CHECKING:
    from inktraj.page import Page

References = Literal["recorded", "pseudo-label"]
REFERENCES: tuple[References, ...] = get_args(References)
"""Where reference inks come from: a device that recorded the pen (or, for made pages, the movement that drew them), or
recovered from the image and checked."""

Box = tuple[float, float, float, float]
"""x min, y min, x max, y max in page pixels."""


@dataclass(frozen=True, slots=True)
class PagePicture:
    """The image of a page, opened when it is needed.

    Parameters
    ----------
    id
        Name of the page in the data set.
    source
        Where it is read from; None where it was not found.
    width, height
        Its size in pixels, upright.
    sha256
        Hex digest of its file; "" where none is known, and nothing is then checked.
    told
        Where the data set says that it is, for messages.
    """

    id: str
    source: Source | None
    width: int
    height: int
    sha256: str = ""
    told: str = ""

    @property
    def frame(self) -> Frame:
        """The page's frame, in pixels."""
        return Frame(float(self.width), float(self.height))

    def open(self) -> Page:
        """Read the pixels.

        Raises
        ------
        DataError
            The image is missing or damaged, or is not the one that the references belong to.
        """
        from inktraj.page import Page

        if self.source is None:
            raise DataError(
                f"page {self.id!r}: its image {self.told or '(none is named)'} was not found; where it has moved, name "
                "the folder in which it is now (images=…; --images on the command line)"
            )
        image = load(self.source)
        if self.sha256 and image.sha256 != self.sha256:
            raise DataError(
                f"page {self.id!r}: {image.source} has the digest {image.sha256[:12]}…, expected {self.sha256[:12]}…; "
                "it is not the image that the references were made for"
            )
        page = Page(image.pixels, id=self.id, source=image.source, sha256=image.sha256)
        if (page.width, page.height) != (self.width, self.height):
            raise DataError(
                f"page {self.id!r}: {image.source} has {page.width}×{page.height} pixels, expected "
                f"{self.width}×{self.height}; the references would lie elsewhere"
            )
        return page


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One word of a page.

    Parameters
    ----------
    id
        ``PAGE__WORD``, unique in the data set; the name by which `inktraj.scoring` matches words.
    page
        The page's image.
    text
        What the word says, with its punctuation.
    occurrence, occurrences
        The how-manieth word of exactly this text it is on its page in reading order, from 1, and how many there are;
        words that are no samples (without strokes) count as well, for they stand on the page.
    ink
        The reference strokes, in the page's frame.
    index
        Place among all words of the page in reading order, from 0.
    line
        Its line, from 0; None where that is not known.
    box
        Around the word in page pixels; may reach beyond the page.
    writer
        Whose hand it is; "" where that is not known.
    split
        Of which part of the data set it is; "" where it is not divided.
    """

    id: str
    page: PagePicture
    text: str
    occurrence: int
    occurrences: int
    ink: Ink
    index: int
    line: int | None
    box: Box
    writer: str = ""
    split: str = ""

    @property
    def page_id(self) -> str:
        """Name of the page."""
        return self.page.id


@dataclass(frozen=True, slots=True, eq=False)
class SamplePage:
    """One page with its samples.

    Parameters
    ----------
    picture
        Its image.
    samples
        In reading order.
    writer, split
        As in `Sample`; "" where the page is of several, or they are not known.
    """

    picture: PagePicture
    samples: tuple[Sample, ...]
    writer: str = ""
    split: str = ""

    @property
    def id(self) -> str:
        """Name of the page."""
        return self.picture.id


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not among the samples, or not as it should be, and why."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class PageStore(Protocol):
    """Where pages come from: their names and their samples' ids are known at once, the rest is read when asked for."""

    @property
    def ids(self) -> Sequence[tuple[str, ...]]:
        """For each page, in order, its samples' ids."""

    def read(self, number: int) -> SamplePage:
        """Read one page; raises DataError where it cannot be."""


class Pages(Sequence[SamplePage]):
    """The pages of a data set, each read when it is asked for; the last ones are kept."""

    KEPT = 4

    def __init__(self, store: PageStore) -> None:
        self._store = store
        self._last: dict[int, SamplePage] = {}

    def __len__(self) -> int:
        return len(self._store.ids)

    @overload
    def __getitem__(self, number: int) -> SamplePage: ...
    @overload
    def __getitem__(self, number: slice) -> list[SamplePage]: ...
    def __getitem__(self, number: int | slice) -> SamplePage | list[SamplePage]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        page = self._last.get(number)
        if page is None:
            page = self._store.read(number)
            while len(self._last) >= self.KEPT:
                # Threads that ask at the same time may each take one out.
                self._last.pop(next(iter(self._last.copy()), -1), None)
            self._last[number] = page
        return page


@dataclass(frozen=True, eq=False)
class Dataset(Sequence[Sample]):
    """Samples in a fixed order: pages as the data set has them, words of a page in reading order.

    Words are read when they are asked for, page by page: ``for sample in dataset`` holds few pages at a time.

    Parameters
    ----------
    name, version
        What it is called.
    store
        Where pages are read from.
    references
        Where reference inks come from, one of `REFERENCES`.
    filtered_by
        Name and version of the recogniser by whose reading the pages were chosen, which makes other readings of the
        same recogniser look better than they are; "" where there was none, or none is known.
    licence, citation
        As its manifest tells them.
    root
        The folder it is read from.
    skipped
        Words and pages that are no samples, and why.
    not_kept
        Pages left out because they were not kept when the references were made.
    split
        Name of the part that this is; "" for the whole.
    """

    name: str
    version: str
    store: PageStore
    references: References
    filtered_by: str = ""
    licence: str = ""
    citation: str = ""
    root: Path = field(default_factory=Path)
    skipped: tuple[Problem, ...] = ()
    not_kept: int = 0
    split: str = ""

    frame = "px"
    """The unit of all inks and boxes: pixels of their page."""

    @cached_property
    def pages(self) -> Pages:
        """The pages, each with its samples."""
        return Pages(self.store)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """All samples' ids, in order."""
        return tuple(id for page in self.store.ids for id in page)

    @cached_property
    def _places(self) -> tuple[tuple[int, int], ...]:
        return tuple((number, i) for number, page in enumerate(self.store.ids) for i in range(len(page)))

    @cached_property
    def _by_id(self) -> dict[str, int]:
        return {id: i for i, id in enumerate(self.ids)}

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Sample]:
        for page in self.pages:
            yield from page.samples

    @overload
    def __getitem__(self, at: int) -> Sample: ...
    @overload
    def __getitem__(self, at: slice) -> list[Sample]: ...
    def __getitem__(self, at: int | slice) -> Sample | list[Sample]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        number, place = self._places[at]
        return self.pages[number].samples[place]

    def by_id(self, id: str) -> Sample:
        """Return the sample of that id; raises DataError where there is none."""
        try:
            return self[self._by_id[id]]
        except KeyError:
            raise DataError(f"the data set {self.name} has no sample {id!r} among its {len(self)}") from None

    def __repr__(self) -> str:
        return f"<Dataset {self.name} {self.version}: {len(self)} samples on {len(self.pages)} pages>"
