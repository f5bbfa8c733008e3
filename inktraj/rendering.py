"""Ink → raster: a round pen drawn along the strokes, with exact geometry.

Conventions
-----------
* In pixel frames the centre of the upper left pixel is (0, 0), so the frame covers −0.5 … width − 0.5.
  Frames in other units cover 0 … width. The frame is stretched over the image.
* The pen is a disc. What it touches between two points is the union of the discs whose centre and
  diameter run linearly from the one point to the other; a stroke of one point is a filled disc.
* A pixel's darkness is the share of its ``supersample`` × ``supersample`` regular samples that the pen
  touches, over all strokes together: overlaps are not drawn twice, and a shift by a fraction of a pixel
  moves the edge by as much.
* Strokes are clipped at the frame. Points further than 10⁷ px outside are drawn as if they were there.
"""

from __future__ import annotations

from math import ceil, floor, sqrt
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.ink import FloatArray, Ink

U8 = NDArray[np.uint8]
BoolArray = NDArray[np.bool_]
Widths = Literal["constant", "local"]

DEFAULT_PEN = 3.0
"""Pen width in pixels where neither the caller nor the ink knows one."""

THINNEST = 0.5
"""Thinner pens (px) are drawn this wide: below, they could slip between the samples and lose a stroke."""

MAX_PIXELS = 200_000_000
"""Larger images are refused."""

_BAND_PIXELS = 2_000_000  # 16 MB of sample bits at a time, whatever the size of the page
_FARTHEST = 1e7


def render(
    ink: Ink,
    *,
    size: tuple[int, int] | None = None,
    pen: float | None = None,
    widths: Widths = "constant",
    supersample: int = 4,
    pen_up: bool = False,
    paper: int = 255,
    color: int = 0,
) -> U8:
    """Draw an ink with a round, antialiased pen.

    Parameters
    ----------
    ink
        The strokes; drawn in their frame.
    size
        (width, height) of the image in pixels; the frame is stretched over it. By default the frame's
        own size, rounded up, at one pixel a unit.
    pen
        Constant pen width in pixels of the image. By default the ink's median width
        (`Ink.pen_width`), or `DEFAULT_PEN` where it is not known.
    widths
        ``"constant"``, or ``"local"`` for the ink's width at each point, linear in between.
    supersample
        Samples a pixel along each axis, 1–8; 1 gives hard edges.
    pen_up
        Show where the pen moved in the air: a thin line, half as dark as the ink, under the strokes.
    paper, color
        Grey of the background and of the ink, 0–255.

    Returns
    -------
    ndarray
        ``(height, width)`` uint8.

    Raises
    ------
    DataError
        Above 200 megapixels; a pen that is not positive; local widths of an ink that has none; or
        another argument out of range.
    """
    for name, value in (("paper", paper), ("color", color)):
        if not 0 <= value <= 255:
            raise DataError(f"{name} is a grey from 0 to 255, not {value}")
    if not (isinstance(supersample, (int, np.integer)) and 1 <= supersample <= 8):
        raise DataError(f"supersample is a whole number from 1 to 8, not {supersample!r}")
    width, height = _size(ink, size)
    strokes, radii = _placed(ink, (width, height), pen, widths)
    drawn = _segments(strokes, radii)
    air = _air_segments(strokes, radii) if pen_up else np.zeros((0, 6))
    image = np.full((height, width), paper, dtype=np.uint8)
    layers = ((air, (paper + color) / 2), (drawn, float(color)))
    for top, bottom in _bands(width, height):
        for segments, shade in layers:
            bits = _touched(segments, top, bottom, width, int(supersample))
            _blend(image[top:bottom], bits, shade, int(supersample) ** 2)
    return image


def coverage(
    ink: Ink, *, size: tuple[int, int] | None = None, pen: float | None = None, widths: Widths = "constant"
) -> BoolArray:
    """Return which pixels' centres the pen touches: ``(height, width)`` bool.

    The parameters and errors are those of `render`, of which this is the ink at ``supersample=1``.
    """
    width, height = _size(ink, size)
    segments = _segments(*_placed(ink, (width, height), pen, widths))
    mask = np.zeros((height, width), dtype=np.bool_)
    for top, bottom in _bands(width, height):
        mask[top:bottom] = _touched(segments, top, bottom, width, 1) != 0
    return mask


def _size(ink: Ink, size: tuple[int, int] | None) -> tuple[int, int]:
    width, height = (ceil(ink.frame.width), ceil(ink.frame.height)) if size is None else size
    for value in (width, height):
        if not (isinstance(value, (int, np.integer)) and value > 0):
            raise DataError(f"size is (width, height) in whole pixels, both positive, not {size!r}")
    width, height = int(width), int(height)
    if width * height > MAX_PIXELS:
        # Sides beyond all reason are not written out: they may have hundreds of digits.
        shown = [str(v) if v < 10**9 else "over 10⁹" for v in (width, height)]
        raise DataError(
            f"a raster of {shown[0]}×{shown[1]} pixels has more than the {MAX_PIXELS // 10**6} megapixels allowed; "
            "is the frame in another unit than pixels? give a smaller size"
        )
    return width, height


def _placed(
    ink: Ink, size: tuple[int, int], pen: float | None, widths: Widths
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return strokes and radii at each point in pixels of the image."""
    if pen is not None and not (np.isfinite(pen) and pen > 0):
        raise DataError(f"the pen's width must be a positive number of pixels, not {pen!r}")
    if widths not in ("constant", "local"):
        raise DataError(f'widths is "constant" or "local", not {widths!r}')
    scale = np.array(size) / (ink.frame.width, ink.frame.height)
    origin = 0.5 if ink.frame.unit == "px" else 0.0
    if ink.frame.unit == "px" and ceil(ink.frame.width) == size[0] and ceil(ink.frame.height) == size[1]:
        scale = np.ones(2)  # a fractional frame is padded to whole pixels, not stretched
    strokes = [np.clip((s + origin) * scale - 0.5, -_FARTHEST, _FARTHEST) for s in ink.strokes]
    zoom = sqrt(scale[0] * scale[1])
    if widths == "local":
        if ink.widths is None:
            raise DataError('widths="local" needs an ink with widths, and this one has none; use "constant"')
        return strokes, [np.maximum(w * zoom, THINNEST) / 2 for w in ink.widths]
    if pen is None:
        pen = ink.pen_width * zoom if ink.pen_width else DEFAULT_PEN
    radius = max(float(pen), THINNEST) / 2
    return strokes, [np.full(len(s), radius) for s in strokes]


def _segments(strokes: list[FloatArray], radii: list[FloatArray]) -> FloatArray:
    """Return ``(n, 6)`` rows x0, y0, x1, y1, r0, r1; a dot is a segment of no length."""
    rows = [np.zeros((0, 6))]
    for points, r in zip(strokes, radii, strict=True):
        if len(points) == 1:
            points, r = points.repeat(2, axis=0), r.repeat(2)
        rows.append(np.column_stack([points[:-1], points[1:], r[:-1], r[1:]]))
    return np.concatenate(rows)


def _air_segments(strokes: list[FloatArray], radii: list[FloatArray]) -> FloatArray:
    if len(strokes) < 2:
        return np.zeros((0, 6))
    thin = max(float(np.median(np.concatenate(radii))) / 4, THINNEST)
    ends = np.array([s[-1] for s in strokes[:-1]])
    starts = np.array([s[0] for s in strokes[1:]])
    return np.column_stack([ends, starts, np.full((len(ends), 2), thin)])


def _bands(width: int, height: int) -> list[tuple[int, int]]:
    step = max(1, _BAND_PIXELS // width)
    return [(top, min(top + step, height)) for top in range(0, height, step)]


def _touched(segments: FloatArray, top: int, bottom: int, width: int, n: int) -> NDArray[np.uint64]:
    """Return the touched samples of rows `top` … `bottom` − 1: one bit for each of a pixel's n × n samples."""
    bits = np.zeros((bottom - top, width), dtype=np.uint64)
    if len(segments):
        reach = np.maximum(segments[:, 4], segments[:, 5]) + 1
        above = np.maximum(segments[:, 1], segments[:, 3]) + reach < top
        below = np.minimum(segments[:, 1], segments[:, 3]) - reach > bottom
        _draw(segments[~(above | below)], bits, float(top), n)
    return bits


@njit(cache=True, nogil=True)
def _draw(segments, bits, top, n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    height, width = bits.shape
    full = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - n * n)
    half_diagonal = sqrt(0.5) * (n - 1) / n  # from a pixel's centre to its farthest sample
    for i in range(len(segments)):
        x0, y0, x1, y1, r0, r1 = segments[i]
        y0 -= top
        y1 -= top
        length = sqrt((x1 - x0) ** 2 + (y1 - y0) ** 2)
        if length <= abs(r1 - r0):  # the larger disc holds the other
            if r1 > r0:
                x0, y0, r0 = x1, y1, r1
            x1, y1, r1, length = x0, y0, r0, 0.0
        ux, uy, slope, lean = 0.0, 0.0, 0.0, 0.0
        if length > 0:
            ux, uy, slope = (x1 - x0) / length, (y1 - y0) / length, (r1 - r0) / length
            # With changing width the disc that reaches a point best is not the one at its foot.
            lean = slope / sqrt(1 - slope * slope)
        reach = max(r0, r1) + half_diagonal
        for row in range(
            int(max(0.0, ceil(min(y0, y1) - reach))), int(min(height - 1.0, floor(max(y0, y1) + reach))) + 1
        ):
            # The part of the axis that lies within reach of this row bounds the columns.
            near, far = 0.0, length
            if uy != 0.0:
                a, b = (row - reach - y0) / uy, (row + reach - y0) / uy
                near, far = max(near, min(a, b)), min(far, max(a, b))
            left, right = x0 + ux * near, x0 + ux * far
            if left > right:
                left, right = right, left
            for col in range(int(max(0.0, ceil(left - reach))), int(min(width - 1.0, floor(right + reach))) + 1):
                if bits[row, col] == full:
                    continue
                outside = _distance(col - x0, row - y0, ux, uy, length, r0, slope, lean)
                if outside > half_diagonal:
                    continue
                if outside <= -half_diagonal:
                    bits[row, col] = full
                    continue
                found = np.uint64(0)
                for k in range(n * n):
                    dx = col - x0 + (k % n + 0.5) / n - 0.5
                    dy = row - y0 + (k // n + 0.5) / n - 0.5
                    if _distance(dx, dy, ux, uy, length, r0, slope, lean) <= 0:
                        found |= np.uint64(1) << np.uint64(k)
                bits[row, col] |= found


@njit(cache=True, nogil=True, inline="always")
def _distance(dx, dy, ux, uy, length, r0, slope, lean):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Return how far a point at (dx, dy) from the segment's start is outside the pen; negative inside."""
    along, across = dx * ux + dy * uy, abs(dx * uy - dy * ux)
    s = min(max(along + lean * across, 0.0), length)
    if length == 0.0:
        return sqrt(dx * dx + dy * dy) - r0
    return sqrt((along - s) ** 2 + across * across) - (r0 + slope * s)


@njit(cache=True, nogil=True)
def _blend(image, bits, shade, samples):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Lay `shade` over the image where bits are set, by the share of set bits."""
    for row in range(bits.shape[0]):
        for col in range(bits.shape[1]):
            rest = bits[row, col]
            if rest == np.uint64(0):
                continue
            count = 0
            while rest != np.uint64(0):
                rest &= rest - np.uint64(1)
                count += 1
            old = image[row, col]
            image[row, col] = np.uint8(floor(old + (shade - old) * count / samples + 0.5))
