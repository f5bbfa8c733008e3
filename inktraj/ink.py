"""The trajectory itself: ordered pen strokes in a frame.

Conventions
-----------
* x grows to the right, y grows **down**.
* In pixel frames the centre of the upper left pixel is (0, 0), as in OpenCV and scikit-image; so the
  image covers −0.5 … width − 0.5. SVG puts that centre at (0.5, 0.5); `Ink.to_svg` moves it.
* A stroke is the path of the pen from its setting down to its lifting: an array ``(n, 2)``, n ≥ 1. One
  point is a dot.
* The ``(x, y, s)`` form has s = 1 at a stroke's first point (the pen was up before it), else 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inktraj.errors import DataError

FloatArray = NDArray[np.float64]
TimesSource = Literal["recorded", "estimated"]
TIMES_SOURCES: tuple[TimesSource, ...] = get_args(TimesSource)
"""What `Ink.times_source` may say of times, besides None."""


LONGEST_REPLAY = 10.0
"""Seconds within which an ink with times is replayed: slower ones are sped up."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rectangle in which coordinates are meant.

    Parameters
    ----------
    width, height
        Extent along x and y, in `unit`; both positive and finite.
    unit
        Name of the unit: ``"px"`` (default), ``"mm"``, or the name of a vocabulary or a device.
    """

    width: float
    height: float
    unit: str = "px"

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float, np.integer, np.floating)) and 0 < value < np.inf):
                raise DataError(f"a frame's {name} must be a positive number, not {value!r}")


def _arrays(values: Iterable[ArrayLike], what: str, tail: tuple[int, ...]) -> tuple[FloatArray, ...]:
    out = []
    for i, value in enumerate(values):
        try:
            array = np.array(value, dtype=np.float64, order="C")
        except (TypeError, ValueError) as err:
            raise DataError(f"{what} {i} is not an array of numbers: {err}") from err
        if array.ndim != 1 + len(tail) or array.shape[1:] != tail or len(array) == 0:
            form = "(n, 2), n ≥ 1" if tail else "(n,), n ≥ 1"
            raise DataError(f"{what} {i} has shape {array.shape}, expected {form}")
        if not np.isfinite(array).all():
            raise DataError(f"{what} {i} holds NaN or infinity; drop or repair such points first")
        array.setflags(write=False)
        out.append(array)
    return tuple(out)


@dataclass(frozen=True, slots=True, eq=False)
class Ink:
    """Ordered pen strokes in a frame; immutable.

    Parameters
    ----------
    strokes
        Arrays ``(n, 2)`` of x, y in the frame's unit, n ≥ 1; copied to read-only float64.
    frame
        Where the coordinates are meant.
    widths
        Local stroke width at each point, arrays ``(n,)`` beside the strokes, in the frame's unit.
    times
        Time of each point in seconds, arrays ``(n,)``, non-decreasing over the whole ink.
    times_source
        Where the times come from: ``"recorded"`` by a device as the pen moved, ``"estimated"`` afterwards by a model
        (`inktraj.recovery.speed`), or None where that is not known, and where there are no times.

    Raises
    ------
    DataError
        A stroke is empty, of another shape, or holds NaN or infinity; widths or times do not fit; there is a source
        of times but no times, or it has another name.
    """

    strokes: tuple[FloatArray, ...]
    frame: Frame
    widths: tuple[FloatArray, ...] | None = None
    times: tuple[FloatArray, ...] | None = None
    times_source: TimesSource | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "strokes", _arrays(self.strokes, "stroke", (2,)))
        for name in ("widths", "times"):
            values = getattr(self, name)
            if values is None:
                continue
            arrays = _arrays(values, name[:-1] + " array", ())
            if [len(a) for a in arrays] != [len(s) for s in self.strokes]:
                raise DataError(f"{name} must hold one number for each point of each stroke")
            object.__setattr__(self, name, arrays)
        if self.widths is not None and any((w < 0).any() for w in self.widths):
            raise DataError("a stroke width is negative")
        if self.times and (np.diff(np.concatenate(self.times)) < 0).any():
            raise DataError("times go backwards; they must not decrease over the whole ink")
        if self.times_source not in (None, *TIMES_SOURCES):
            raise DataError(f"times_source is {self.times_source!r}, expected {', '.join(TIMES_SOURCES)} or None")
        if self.times_source is not None and self.times is None:
            raise DataError(f"times_source is {self.times_source!r}, but there are no times")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ink):
            return NotImplemented

        def same(a: tuple[FloatArray, ...] | None, b: tuple[FloatArray, ...] | None) -> bool:
            if a is None or b is None:
                return a is b
            return len(a) == len(b) and all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))

        return (
            self.frame == other.frame
            and same(self.strokes, other.strokes)
            and same(self.widths, other.widths)
            and same(self.times, other.times)
            and self.times_source == other.times_source
        )

    __hash__ = None  # type: ignore[assignment]  # arrays inside

    @classmethod
    def from_xys(cls, xys: ArrayLike, frame: Frame) -> Ink:
        """Read the ``(x, y, s)`` form.

        Parameters
        ----------
        xys
            Array ``(n, 3)``; s is 1 at each stroke's first point, else 0. n = 0 gives an empty ink.
        frame
            Where x and y are meant.

        Raises
        ------
        DataError
            Another shape, s not 0 or 1, or a first point without s = 1 (use `inktraj.codec` to
            decode such data and be told of its problems).
        """
        array = np.asarray(xys, dtype=np.float64)
        if array.size == 0:
            return cls((), frame)
        if array.ndim != 2 or array.shape[1] != 3:
            raise DataError(f"(x, y, s) points have shape {array.shape}, expected (n, 3)")
        starts = array[:, 2]
        if not np.isin(starts, (0.0, 1.0)).all():
            raise DataError("s must be 0 or 1 (1 at a stroke's start); is it a pressure or a pen-up flag?")
        if starts[0] != 1:
            raise DataError("the first point has s = 0, expected 1: the first stroke's start is missing")
        return cls(tuple(np.split(array[:, :2], np.flatnonzero(starts)[1:])), frame)

    def to_xys(self) -> FloatArray:
        """Return the points as ``(n, 3)`` float64: x, y, s with s = 1 at each stroke's start."""
        if not self.strokes:
            return np.zeros((0, 3))
        out = np.zeros((self.n_points, 3))
        out[:, :2] = np.concatenate(self.strokes)
        out[np.cumsum([0, *(len(s) for s in self.strokes[:-1])]), 2] = 1
        return out

    @property
    def n_points(self) -> int:
        """Number of points over all strokes."""
        return sum(len(s) for s in self.strokes)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Return (x min, y min, x max, y max) of the points; raises DataError on an empty ink."""
        if not self.strokes:
            raise DataError("an empty ink has no bounds")
        points = np.concatenate(self.strokes)
        low, high = points.min(axis=0), points.max(axis=0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    @property
    def length(self) -> float:
        """Pen-down path length in the frame's unit."""
        return float(sum(np.hypot(*np.diff(s, axis=0).T).sum() for s in self.strokes))

    @property
    def pen_width(self) -> float | None:
        """Median local stroke width in the frame's unit; None where widths are not known."""
        return float(np.median(np.concatenate(self.widths))) if self.widths else None

    def transform(self, matrix: ArrayLike, frame: Frame) -> Ink:
        """Map the points by an affine matrix into another frame.

        Parameters
        ----------
        matrix
            Array ``(2, 3)``: new = matrix[:, :2] @ (x, y) + matrix[:, 2].
        frame
            The frame of the result. Widths scale by the square root of the determinant's size.
        """
        m = np.asarray(matrix, dtype=np.float64)
        if m.shape != (2, 3) or not np.isfinite(m).all():
            raise DataError(f"an affine matrix has shape (2, 3) and finite numbers, not {m.shape}")
        widths = self.widths
        if widths is not None:
            scale = float(np.sqrt(abs(np.linalg.det(m[:, :2]))))
            widths = tuple(w * scale for w in widths)
        strokes = tuple(s @ m[:, :2].T + m[:, 2] for s in self.strokes)
        return Ink(strokes, frame, widths, self.times, self.times_source)

    @classmethod
    def concat(cls, inks: Sequence[Ink], frame: Frame) -> Ink:
        """Join inks of one frame in the given order; widths are kept where every ink has them.

        Times are dropped: those of separate inks have no common clock. Raises DataError where an
        ink is of another frame.
        """
        for ink in inks:
            if ink.frame != frame:
                raise DataError(f"cannot join an ink in {ink.frame} to one in {frame}; transform it first")
        widths = None
        if inks and all(ink.widths is not None for ink in inks):
            widths = tuple(w for ink in inks for w in ink.widths or ())
        return cls(tuple(s for ink in inks for s in ink.strokes), frame, widths)

    def to_svg(self, *, width: float = 1.5, color: str | None = None, replay: bool = False, crop: bool = False) -> str:
        """Return a self-contained SVG document fragment of the ink.

        Parameters
        ----------
        width
            Pen width in the frame's unit.
        color
            A CSS colour, or None to colour strokes by their order (violet first, yellow last).
        replay
            Draw the strokes one after another by SMIL animation, once: at the pace of the ink's times, but within
            `LONGEST_REPLAY`, or at an even pace within 3 s where there are no times.
        crop
            Show the ink's bounding box only, not the whole frame.
        """
        x0, y0, w, h = -0.5, -0.5, self.frame.width, self.frame.height
        if crop and self.strokes:
            a, b, c, d = self.bounds
            x0, y0, w, h = a - 2 * width, b - 2 * width, c - a + 4 * width, d - b + 4 * width
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{x0:g} {y0:g} {w:g} {h:g}" '
            f'fill="none" stroke-linecap="round" stroke-linejoin="round" stroke-width="{width:g}">'
        ]
        paces = self._paces(width) if replay else ()
        for i, stroke in enumerate(self.strokes):
            stroke_color = color or order_color(i, len(self.strokes))
            animation, dash = "", ""
            if replay:
                begin, seconds, offsets = paces[i]
                dash = ' pathLength="1" stroke-dasharray="1 2" stroke-dashoffset="1.01"'
                animation = (
                    f'<animate attributeName="stroke-dashoffset" values="{offsets}" '
                    f'begin="{begin:.3f}s" dur="{seconds:.3f}s" fill="freeze"/>'
                )
            parts.append(f'<path d="{svg_path(stroke)}" stroke="{stroke_color}"{dash}>{animation}</path>')
        parts.append("</svg>")
        return "".join(parts)

    def _paces(self, width: float) -> list[tuple[float, float, str]]:
        """Return when each stroke's replay begins, how long it lasts, and the dash offsets that it goes through."""
        ways = [np.append(0.0, np.cumsum(np.hypot(*np.diff(s, axis=0).T))) for s in self.strokes]
        if not self.times:
            lasting = np.array([way[-1] + 2 * width for way in ways])
            lasting *= 3.0 / (lasting.sum() or 1.0)
            begins = np.cumsum(lasting) - lasting
            return [(float(begin), float(seconds), "1.01;0") for begin, seconds in zip(begins, lasting, strict=True)]
        start = self.times[0][0]
        scale = min(1.0, LONGEST_REPLAY / max(self.times[-1][-1] - start, 1e-3))
        out = []
        for way, times in zip(ways, self.times, strict=True):
            seconds = float((times[-1] - times[0]) * scale)
            offsets = "1.01;0"
            if way[-1] > 0 and seconds > 0:
                # Offsets at even steps of time; a few show the pace, whatever the number of points.
                drawn = np.interp(np.linspace(times[0], times[-1], 33), times, way) / way[-1]
                offsets = ";".join(f"{1.01 * (1 - share):.3g}" for share in drawn)
            out.append((float((times[0] - start) * scale), max(seconds, 1e-3), offsets))
        return out

    def _repr_html_(self) -> str:
        size = f"{self.frame.width:g}×{self.frame.height:g} {self.frame.unit}"
        times = "" if self.times is None else f", times {self.times_source or 'of unknown source'}"
        caption = f"{len(self.strokes)} strokes, {self.n_points} points, {size}{times}"
        if not self.strokes:
            return f"<em>empty ink ({caption})</em>"
        thickness = max(self.bounds[2] - self.bounds[0], self.bounds[3] - self.bounds[1]) / 120
        svg = self.to_svg(width=max(thickness, 1e-3), replay=True, crop=True)
        return f'<div style="max-width:600px">{svg}<br><small>{caption}</small></div>'


def svg_path(stroke: FloatArray) -> str:
    """Return SVG path data for one stroke ``(n, 2)``; a dot becomes a zero-length segment."""
    points = [f"{x:.2f} {y:.2f}" for x, y in stroke]
    return "M" + (" L".join(points) if len(points) > 1 else f"{points[0]} l0 0")


def order_color(index: int, count: int) -> str:
    """Return a CSS colour for stroke `index` of `count`: hue from violet (first) to yellow (last)."""
    share = index / max(count - 1, 1)
    return f"hsl({275 - 225 * share:.0f} 75% {38 + 12 * share:.0f}%)"
