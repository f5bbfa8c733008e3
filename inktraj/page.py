"""Pixels with a place: a page, its lines, and its word crops with their exact maps back to the page."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.ink import Frame

if TYPE_CHECKING:
    from shapely import Polygon

U8 = NDArray[np.uint8]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """One page image.

    Parameters
    ----------
    pixels
        ``(h, w, 3)`` uint8 RGB, upright, alpha already composited on white.
    id
        Names the page in a data set; unique within one run.
    source
        Where it was read from (path, with ``#page=2`` or ``!member`` where that names a part of a file).
    sha256
        Hex digest of the source file's bytes ("" where the page came from memory).
    """

    pixels: U8
    id: str = "page"
    source: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        p = self.pixels
        if not (isinstance(p, np.ndarray) and p.dtype == np.uint8 and p.ndim == 3 and p.shape[2] == 3 and p.size):
            shape, dtype = getattr(p, "shape", None), getattr(p, "dtype", type(p).__name__)
            raise DataError(f"a page needs (h, w, 3) uint8 RGB pixels, not {shape} of {dtype}")

    @classmethod
    def open(cls, path: str | Path, *, index: int = 0) -> Page:
        """Read one page from an image or PDF file (see `inktraj.io.images` for the forms).

        Parameters
        ----------
        path
            The file.
        index
            Which page of a multi-page TIFF or PDF, from 0.

        Raises
        ------
        DataError
            The file is missing, not an image, damaged, or of an absurd size.
        """
        from inktraj.io.images import read_image

        image = read_image(path, index=index)
        return cls(image.pixels, id=image.id, source=image.source, sha256=image.sha256)

    @property
    def width(self) -> int:
        """Width in pixels."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Height in pixels."""
        return int(self.pixels.shape[0])

    @property
    def frame(self) -> Frame:
        """The page's frame, in pixels."""
        return Frame(self.width, self.height)

    def _repr_html_(self) -> str:
        caption = f"{self.id}: {self.width}×{self.height} px"
        return f'<div><img style="max-width:700px" src="{png_uri(self.pixels, 900)}"><br><small>{caption}</small></div>'


@dataclass(frozen=True, slots=True, eq=False)
class WordCrop:
    """One word cut out of a page.

    Parameters
    ----------
    image
        ``(h, w)`` uint8, ink dark on a white (255) ground; ink of neighbours and ruling removed.
    mask
        ``(h, w)`` bool, this word's ink.
    to_page
        Affine ``(2, 3)``: page = to_page[:, :2] @ (x, y) + to_page[:, 2]; exact.
    polygon
        ``(n, 2)`` float64, the word's outline in page coordinates, open (first point not repeated).
    id, line, index
        Name within the page; line number and place in the line, both from 0 in reading order.
    """

    image: U8
    mask: BoolArray
    to_page: FloatArray
    polygon: FloatArray
    id: str = "word"
    line: int = 0
    index: int = 0

    def __post_init__(self) -> None:
        if self.image.dtype != np.uint8 or self.image.ndim != 2 or not self.image.size:
            raise DataError(f"a crop's image is (h, w) uint8, not {self.image.shape} of {self.image.dtype}")
        if self.mask.dtype != np.bool_ or self.mask.shape != self.image.shape:
            raise DataError(
                f"a crop's mask is bool of shape {self.image.shape}, not {self.mask.dtype} {self.mask.shape}"
            )

    @property
    def frame(self) -> Frame:
        """The crop's own frame, in pixels."""
        return Frame(float(self.image.shape[1]), float(self.image.shape[0]))

    def shapely(self) -> Polygon:
        """Return the outline as a shapely polygon in page coordinates."""
        import shapely

        return shapely.Polygon(self.polygon)

    def _repr_html_(self) -> str:
        caption = f"{self.id}: line {self.line}, word {self.index}, {self.image.shape[1]}×{self.image.shape[0]} px"
        return f'<div><img src="{png_uri(self.image, 500)}"><br><small>{caption}</small></div>'


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One line of text.

    Parameters
    ----------
    polygon
        ``(n, 2)`` float64 outline in page coordinates, open.
    baseline
        ``(n, 2)`` float64, left to right in page coordinates.
    words
        The line's words in reading order.
    index
        Number of the line on the page, from 0 in reading order.
    height
        Height of the line's letters (ascender to descender) in pixels.
    """

    polygon: FloatArray
    baseline: FloatArray
    words: tuple[WordCrop, ...]
    index: int = 0
    height: float = 0.0


def png_uri(pixels: U8, longest: int | None = None) -> str:
    """Return a ``data:`` URI of a PNG of grey ``(h, w)`` or RGB ``(h, w, 3)`` pixels, shrunk to `longest` px."""
    import cv2

    scale = 1.0 if longest is None else min(1.0, longest / max(pixels.shape[:2]))
    if scale < 1:
        pixels = np.asarray(cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    ok, data = cv2.imencode(".png", pixels[..., ::-1] if pixels.ndim == 3 else pixels)
    if not ok:
        raise DataError(f"cannot write pixels of shape {pixels.shape} as PNG")
    return "data:image/png;base64," + base64.b64encode(data.tobytes()).decode("ascii")
