"""What a model gets to see of a page, and the way from its pixels back to the page's.

Pixel centres have whole coordinates, and an image is scaled by its outer edges: of a region of width w that is sent w′
pixels wide, x′ in the sent image is x = left + (x′ + 0.5) · w / w′ − 0.5 on the page.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inktraj.datasets import Sample
from inktraj.ink import Frame, Ink
from inktraj.vlm import ImageLimits, Picture, fit, make_picture

MARGIN = 0.25
"""Of a word's height, around its box in a crop; and 4 pixels at least."""

CROP_SIDE = 1024
"""Pixels to which a crop's longer side is enlarged, where the model takes that many: fine coordinates cost nothing."""


@dataclass(frozen=True, slots=True)
class View:
    """A region of a page as it is sent.

    Parameters
    ----------
    picture
        What is sent.
    left, top
        The region's first pixel on the page.
    width, height
        The region's size on the page, in pixels.
    """

    picture: Picture
    left: int
    top: int
    width: int
    height: int

    @property
    def sent(self) -> tuple[int, int]:
        """Width and height as sent."""
        return self.picture.width, self.picture.height

    @property
    def original(self) -> tuple[int, int]:
        """Width and height on the page."""
        return self.width, self.height

    @property
    def place(self) -> Place:
        """What is needed to bring answers back to the page, without the picture."""
        return Place(self.sent, self.original, (self.left, self.top))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sent image lies on its page: sizes as (width, height), corner as (x, y) of its first pixel."""

    sent: tuple[int, int]
    original: tuple[int, int]
    corner: tuple[int, int]

    @property
    def to_page(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Affine ``(2, 3)`` from pixels as sent to the page's."""
        sx, sy = self.original[0] / self.sent[0], self.original[1] / self.sent[1]
        return np.array(
            [[sx, 0, self.corner[0] + 0.5 * sx - 0.5], [0, sy, self.corner[1] + 0.5 * sy - 0.5]], dtype=np.float64
        )

    def on_page(self, ink: Ink, frame: Frame) -> Ink:
        """Bring an ink in pixels as sent to the page."""
        return ink.transform(self.to_page, frame)

    def as_sent(self, ink: Ink) -> Ink:
        """Bring an ink on the page to pixels as sent."""
        there = self.to_page
        back = np.array(
            [[1 / there[0, 0], 0, -there[0, 2] / there[0, 0]], [0, 1 / there[1, 1], -there[1, 2] / there[1, 1]]]
        )
        return ink.transform(back, Frame(float(self.sent[0]), float(self.sent[1])))


def view_page(sample: Sample, limits: ImageLimits, *, blind: bool = False) -> View:
    """The sample's whole page, as large as the model sees it.

    `blind`, the page is not opened and the picture has no bytes: for recorded replies only its size matters.
    """
    width, height = sample.page.width, sample.page.height
    if blind:
        return View(Picture(b"", *fit(width, height, limits)), 0, 0, width, height)
    return View(make_picture(sample.page.open().pixels, limits), 0, 0, width, height)


def region(sample: Sample) -> tuple[int, int, int, int]:
    """Return the part of the page that is cut out for a word: left, top, right and bottom, as slices take them.

    A box may lie beyond the page; a pixel of the page is left then.
    """
    width, height = sample.page.width, sample.page.height
    x0, y0, x1, y1 = sample.box
    margin = max(MARGIN * (y1 - y0), 4.0)
    left, top = max(int(np.floor(x0 - margin)), 0), max(int(np.floor(y0 - margin)), 0)
    right, bottom = min(int(np.ceil(x1 + margin)) + 1, width), min(int(np.ceil(y1 + margin)) + 1, height)
    left, top = min(left, width - 1), min(top, height - 1)
    return left, top, max(right, left + 1), max(bottom, top + 1)


def view_word(sample: Sample, limits: ImageLimits, *, blind: bool = False) -> View:
    """The sample's word cut out with a margin and enlarged to `CROP_SIDE`; for `blind` see `view_page`."""
    left, top, right, bottom = region(sample)
    scale = max(CROP_SIDE / max(right - left, bottom - top), 1.0)
    size = max(round((right - left) * scale), 1), max(round((bottom - top) * scale), 1)
    if blind:
        picture = Picture(b"", *fit(*size, limits))
    else:
        cut = np.ascontiguousarray(sample.page.open().pixels[top:bottom, left:right])
        picture = make_picture(cut, limits, size=size)
    return View(picture, left, top, right - left, bottom - top)
