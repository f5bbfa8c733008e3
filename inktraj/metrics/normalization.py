"""Two inks in one unit, with points spaced alike: what is done before any figure is computed, stated in its signature.

Conventions
-----------
* Both inks are in one frame and go through the same map: new = (old − origin) · scale. It comes from the reference, so
  that a prediction in the wrong place or of the wrong size is far off.
* Resampling puts points evenly along each stroke, as near to `step` apart as its length allows, both ends kept; a
  stroke without length becomes one point. Without it the points are as given.
* Strokes are joined in order. The pen's way between two strokes holds no points (the default), or points as far apart
  as along the strokes (`bridge`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numba import njit

from inktraj.arclength import resample
from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.metrics.points import FloatArray, IntArray

Space = Literal["reference-box", "page", "height", "none"]
SPACES: tuple[Space, ...] = get_args(Space)

STEPS: dict[Space, float | None] = {"reference-box": 0.01, "height": 0.01, "page": 0.001, "none": None}
"""The step of each space unless another is asked for: of a page's unit 0.01 would be more than a letter."""

MAX_POINTS = 10_000_000
"""Points that an ink may have once it is resampled."""


class TooLong(DataError):
    """An ink would have more than `MAX_POINTS` points once resampled, or runs beyond what can be squared."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Two inks in one unit, as flat arrays: stroke k is ``pred[pred_starts[k]:pred_starts[k + 1]]``.

    Parameters
    ----------
    pred, ref
        Points ``(n, 2)`` and ``(m, 2)`` in units; 0 points where the ink is empty or None.
    pred_starts, ref_starts
        Offsets of the strokes, (strokes + 1,) int64.
    pred_line, ref_line
        The same points as one sequence, with those of the pen's way between strokes where that is bridged.
    scale
        Units per unit of the frame.
    origin
        The point of the frame that became (0, 0).
    """

    pred: FloatArray
    pred_starts: IntArray
    ref: FloatArray
    ref_starts: IntArray
    pred_line: FloatArray
    ref_line: FloatArray
    scale: float
    origin: tuple[float, float]

    @property
    def far_corner(self) -> FloatArray:
        """The corner of the reference's box that is farthest from its points on average, as ``(1, 2)``."""
        low, high = self.ref.min(axis=0), self.ref.max(axis=0)
        corners = np.array([[x, y] for y in (low[1], high[1]) for x in (low[0], high[0])])
        away = [np.hypot(*(self.ref - corner).T).mean() for corner in corners]
        # Of corners that are equally far, the last in reading order: the one that writing comes to last.
        corner: FloatArray = corners[len(corners) - 1 - int(np.argmax(away[::-1]))][None]
        return corner


@dataclass(frozen=True, slots=True)
class Normalization:
    """How two inks are brought to one unit and one spacing of points.

    Parameters
    ----------
    space
        ``"reference-box"``: the reference's box begins at (0, 0) and its longer side is 1. ``"height"``: the same with
        its height. ``"page"``: the frame's longer side is 1. ``"none"``: the frame's own unit.
    step
        Distance between points in units, or None to leave the points as they are; ``"default"`` takes that of `STEPS`.
    bridge
        Put points along the pen's way between strokes, too.

    Raises
    ------
    DataError
        An unknown space, a step that is not a positive number, or a bridge that is neither true nor false.
    """

    space: Space = "reference-box"
    step: float | Literal["default"] | None = "default"
    bridge: bool = False

    def __post_init__(self) -> None:
        if self.space not in SPACES:
            raise DataError(f"the normalisation is {self.space!r}, expected one of {', '.join(SPACES)}")
        if self.step == "default":
            object.__setattr__(self, "step", STEPS[self.space])
        if self.step is not None:
            number = isinstance(self.step, (int, float, np.integer, np.floating)) and not isinstance(self.step, bool)
            if not number or not 0 < float(self.step) < math.inf:
                raise DataError(f"the step is {self.step!r}, expected a positive number of units, or None")
            object.__setattr__(self, "step", float(self.step))  # 1 and 1.0 are one setting, and have one signature
        if not isinstance(self.bridge, (bool, np.bool_)):
            raise DataError(f"bridge is {self.bridge!r}, expected True or False")
        object.__setattr__(self, "bridge", bool(self.bridge))

    def fields(self) -> dict[str, str | float | bool | None]:
        """What a signature says of it."""
        return {"norm": self.space, "step": self.step, "bridge": self.bridge}

    def apply(self, pred: Ink | None, ref: Ink) -> Prepared:
        """Bring a prediction and its reference to one unit.

        Raises
        ------
        DataError
            The inks are in different frames, or the reference is empty or has no extent that could be the unit.
        TooLong
            The step is so small, or an ink so long, that it would have more than `MAX_POINTS` points; or coordinates
            are too large to be squared.
        """
        if not ref.strokes:
            raise DataError("the reference is empty; nothing can be compared with it")
        if pred is not None and pred.frame != ref.frame:
            raise DataError(
                f"the prediction is in {pred.frame}, the reference in {ref.frame}; "
                "bring both into one frame first (Ink.transform)"
            )
        scale, origin = self._map(ref)
        ref_points, ref_starts, ref_line = self._flat(ref, scale, origin, "reference")
        if pred is None or not pred.strokes:
            nothing = np.zeros((0, 2)), np.zeros(1, np.int64), np.zeros((0, 2))
            return Prepared(*nothing[:2], ref_points, ref_starts, nothing[2], ref_line, scale, origin)
        points, starts, line = self._flat(pred, scale, origin, "prediction")
        return Prepared(points, starts, ref_points, ref_starts, line, ref_line, scale, origin)

    def _map(self, ref: Ink) -> tuple[float, tuple[float, float]]:
        if self.space == "none":
            return 1.0, (0.0, 0.0)
        if self.space == "page":
            return 1.0 / max(ref.frame.width, ref.frame.height), (0.0, 0.0)
        x0, y0, x1, y1 = ref.bounds
        side = y1 - y0 if self.space == "height" else max(x1 - x0, y1 - y0)
        if not 1e-100 < side < 1e100:
            raise DataError(
                f"the reference's {'height' if self.space == 'height' else 'longer side'} is {side:g}, which cannot be "
                "the unit; is it a dot or a line? The spaces 'page' and 'none' take such references"
            )
        return 1.0 / side, (x0, y0)

    def _flat(
        self, ink: Ink, scale: float, origin: tuple[float, float], name: str
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        starts = np.zeros(len(ink.strokes) + 1, np.int64)
        np.cumsum([len(s) for s in ink.strokes], out=starts[1:])
        points = np.concatenate(ink.strokes)
        if not (float(np.abs(points).max()) * scale < 1e100):
            raise TooLong(f"the {name} holds {np.abs(points).max():.3g}; such coordinates cannot be squared")
        points = (points - origin) * scale
        step = float(self.step or 0.0)
        if step:
            wanted = _wanted(points, starts, step)
            if wanted > MAX_POINTS:
                raise TooLong(
                    f"the {name} would have {wanted:.3g} points with a step of {step:g}, at most {MAX_POINTS} are "
                    "taken; are its coordinates in the frame that they are said to be in?"
                )
            points, starts = _spaced(points, starts, step, int(wanted))
        line = points
        if self.bridge:
            wanted = _bridged_size(points, starts, step)
            if wanted > MAX_POINTS:
                raise TooLong(f"the {name} would have {wanted:.3g} points with bridges, at most {MAX_POINTS} are taken")
            line = _bridged(points, starts, step, int(wanted))
        return points, starts, line


@njit(cache=True, nogil=True)
def _wanted(points, starts, step):  # type: ignore[no-untyped-def]
    """Return how many points the strokes have once resampled, at most; a float, as it may be anything."""
    out = 0.0
    for k in range(len(starts) - 1):
        length = 0.0
        for i in range(starts[k] + 1, starts[k + 1]):
            length += math.hypot(points[i, 0] - points[i - 1, 0], points[i, 1] - points[i - 1, 1])
        out += max(np.rint(length / step), 1.0) + 1.0
    return out


@njit(cache=True, nogil=True)
def _spaced(points, starts, step, wanted):  # type: ignore[no-untyped-def]
    """Resample each stroke."""
    out = np.empty((wanted, 2))
    out_starts = np.zeros(len(starts), np.int64)
    for k in range(len(starts) - 1):
        stroke = points[starts[k] : starts[k + 1]]
        at = out_starts[k]
        out_starts[k + 1] = at + resample(stroke, len(stroke), step, out[at:])
    return out[: out_starts[-1]].copy(), out_starts


@njit(cache=True, nogil=True)
def _steps(points, end, step):  # type: ignore[no-untyped-def]
    """Return into how many steps the way from points[end − 1] to points[end] is cut."""
    if step == 0.0:
        return 1.0
    gap = math.hypot(points[end, 0] - points[end - 1, 0], points[end, 1] - points[end - 1, 1])
    return max(np.rint(gap / step), 1.0)


@njit(cache=True, nogil=True)
def _bridged_size(points, starts, step):  # type: ignore[no-untyped-def]
    out = float(len(points))
    for k in range(1, len(starts) - 1):
        out += _steps(points, starts[k], step) - 1.0
    return out


@njit(cache=True, nogil=True)
def _bridged(points, starts, step, wanted):  # type: ignore[no-untyped-def]
    """Put points between the strokes; without a step the strokes' ends are the bridge."""
    out = np.empty((wanted, 2))
    m = 0
    for k in range(len(starts) - 1):
        if k > 0:
            end = starts[k]
            count = int(_steps(points, end, step))
            for s in range(1, count):
                t = s / count
                out[m, 0] = points[end - 1, 0] + t * (points[end, 0] - points[end - 1, 0])
                out[m, 1] = points[end - 1, 1] + t * (points[end, 1] - points[end - 1, 1])
                m += 1
        for i in range(starts[k], starts[k + 1]):
            out[m, 0], out[m, 1] = points[i, 0], points[i, 1]
            m += 1
    return out
