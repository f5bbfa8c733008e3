"""Plausible times for ink that has none: a speed model from the literature on handwriting.

A picture does not tell how fast the pen moved. These times are what an unhurried adult might have taken; they are
**estimated**, are marked so (`Ink.times_source`), and have not been compared with recorded times.

Conventions
-----------
* Lengths are in writing heights, ``h`` (for a word: from the tip of its tallest stroke to its foot), times in seconds.
  So the model is isochronous: a word drawn twice as large takes the same time, at twice the speed. Writers come near to
  that (Viviani & Terzuolo 1982; Viviani & Flash 1995).
* On the paper, the speed obeys the two-thirds power law (Lacquaniti, Terzuolo & Viviani 1983), v = K κ^(−1/3), in the
  form that stays finite on straight lines (Viviani & Schneider 1991): v = K (κ + α)^(−1/3), κ the curvature over a
  window of 2 × `WINDOW`.
* In a sharp corner the pen has the mean of the velocities before and behind it, whose size is v cos(θ / 2) for a turn
  of θ: the pen nearly stops where it turns back. It nearly stops at both ends of a stroke, too, and of a closed one.
* Speeding up and slowing down are limited to `ACCELERATION`. So a straight stroke is fastest in the middle, as in
  the models of least jerk (Flash & Hogan 1985) and of lognormal impulses (Plamondon 1995); its profile is more angular.
* In the air the pen goes straight from stroke to stroke by the movement of least jerk whose greatest acceleration is
  `ACCELERATION`: √(10/√3 · d / a) for a distance d, after `LIFT`.
* No stroke is shorter than `DWELL`; a dot lasts so long before the pen leaves it.

References
----------
Lacquaniti, Terzuolo & Viviani 1983: The law relating the kinematic and figural aspects of drawing movements. Acta
Psychologica 54, 115–130. Viviani & Terzuolo 1982: Trajectory determines movement dynamics. Neuroscience 7, 431–437.
Viviani & Schneider 1991: A developmental study of the relationship between geometry and kinematics in drawing
movements. J. Exp. Psychol. Hum. Percept. Perform. 17, 198–218. Viviani & Flash 1995: Minimum-jerk, two-thirds power
law, and isochrony. Ibid. 21, 32–53. Flash & Hogan 1985: The coordination of arm movements. J. Neurosci. 5, 1688–1703.
Plamondon 1995: A kinematic theory of rapid human movements. Biol. Cybern. 72, 295–307.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.ink import FloatArray, Ink

GAIN = 13.0
"""K of the power law, in h^(2/3)/s; with `STRAIGHT` = 1, the speed on a straight line in heights a second."""

STRAIGHT = 1.0
"""α of the power law in 1/h: much less curvature than this counts as none."""

ACCELERATION = 220.0
"""Greatest tangential acceleration, and greatest acceleration in the air, in heights/s²."""

CREEP = 0.5
"""Least speed in heights/s: of a pen that sets down, lifts off or turns back."""

LIFT = 0.05
"""Seconds to lift the pen and to set it down."""

DWELL = 0.04
"""Least duration of a stroke in seconds; that of a dot."""

WINDOW = 0.12
"""Arc length in heights on either side of a point over which curvature is measured; a sixth of it for corners."""

CORNER = pi / 3
"""A polyline that turns by more (radians) between two long segments has a corner there, and is no coarse curve."""

_TICK = 2e-6  # least time between two points of a stroke; files keep microseconds, and points must stay apart there
_LARGEST = 1e4  # inks larger than so many heights have a height in another unit


def with_times(ink: Ink, *, height: float | None = None) -> Ink:
    """Return the ink with estimated times.

    Parameters
    ----------
    ink
        Strokes in writing order; without times, or with estimated ones, which are replaced.
    height
        Writing height in the frame's unit: of a word with ascenders or descenders, where it has any. By default that
        of the tallest stroke, but at least an eighth of the widest one's width.

    Returns
    -------
    Ink
        The same with ``times_source="estimated"``. Times begin at 0, increase strictly within each stroke, and from one
        to the next. Scaling (a given `height` with it), moving and mirroring the ink does not change them. Repeated
        points are passed at once; a stroke of nothing else is a dot.

    Raises
    ------
    DataError
        The ink has times already which are not marked as estimated; or `height` is not a positive number, or less than
        1/10,000 of the ink's extent.
    """
    if ink.times is not None and ink.times_source != "estimated":
        raise DataError(
            f"the ink has times ({ink.times_source or 'of unknown source'}), which estimated ones would replace; "
            "where that is wanted, drop them first: dataclasses.replace(ink, times=None, times_source=None)"
        )
    counts = np.array([len(s) for s in ink.strokes], dtype=np.intp)
    times: tuple[FloatArray, ...] = ()
    if ink.strokes:
        first = np.cumsum(counts) - counts
        points = _in_heights(np.concatenate(ink.strokes), first, height)
        times = tuple(np.split(_times(points, first, counts), first[1:]))
    elif height is not None:
        _checked(height)
    return Ink(ink.strokes, ink.frame, ink.widths, times, "estimated")


def _checked(height: float) -> float:
    if not (isinstance(height, int | float | np.integer | np.floating) and 0 < height < np.inf):
        raise DataError(f"the writing height must be a positive number, not {height!r}")
    return float(height)


def _in_heights(points: FloatArray, first: NDArray[np.intp], height: float | None) -> FloatArray:
    """Return the points ``(n, 2)`` in writing heights, near 0; `first` is the index of each stroke's first point."""
    scale = float(np.abs(points).max()) or 1.0  # so that no sum or difference overflows
    points = points / scale
    low, high = np.minimum.reduceat(points, first), np.maximum.reduceat(points, first)
    widest, tallest = (high - low).max(axis=0).tolist()
    extent = float((high.max(axis=0) - low.min(axis=0)).max())
    if height is None:
        size = max(tallest, widest / 8)
        if size * 1000 < extent:  # dots only, or specks: their distances are all there is
            size = extent
        size = size or 1.0
    else:
        size = _checked(height) / scale
        if extent > _LARGEST * size:
            raise DataError(
                f"the ink is over {_LARGEST:,.0f} times as large as the writing height of {height:g}; is that in "
                "another unit than the ink's frame?"
            )
    moved: FloatArray = (points - low.min(axis=0)) / size
    return moved


def _times(points: FloatArray, first: NDArray[np.intp], counts: NDArray[np.intp]) -> FloatArray:
    """Return the times ``(n,)`` of points in heights."""
    stroke = np.repeat(np.arange(len(counts)), counts)
    steps = np.hypot(*np.diff(points, axis=0, prepend=points[:1]).T)
    air = steps[first]
    steps[first] = 0.0
    # Repeated points get their speed from the first of them.
    new = steps > 0
    new[first] = True
    at = np.cumsum(new) - 1
    peak, speed = (v[at] for v in _speeds(points[new], steps[new], stroke[new]))

    spent = np.zeros(len(points))
    spent[1:] = np.maximum(_durations(steps[1:], speed, peak), _TICK)
    spent[first] = 0.0
    lasting = np.add.reduceat(spent, first)
    spent *= np.maximum(1.0, DWELL / np.where(lasting > 0, lasting, DWELL))[stroke]
    # From stroke to stroke: a dot's dwelling, the lift, and the way through the air.
    spent[first[1:]] = LIFT + np.sqrt(10 / sqrt(3) * air[1:] / ACCELERATION) + DWELL * (counts[:-1] == 1)
    times: FloatArray = np.cumsum(spent)
    return times


def _speeds(points: FloatArray, steps: FloatArray, stroke: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """Return what curvature allows at each point, and the speed there after corners, ends and accelerations."""
    starts = np.flatnonzero(np.diff(stroke, prepend=-1))
    lengths = steps.copy()
    lengths[starts] = 1.0  # a gap between strokes on the arc, so that no position on it belongs to two
    arc = np.cumsum(lengths)
    ends = np.append(starts[1:], len(points)) - 1
    low, high = arc[starts][stroke], arc[ends][stroke]

    turn, before, behind = _turns(points, arc, low, high, WINDOW)
    half = (before + behind) / 2
    half = np.where(turn > CORNER, np.minimum(half, WINDOW), half)
    peak = GAIN * (np.divide(turn, half, out=np.zeros_like(turn), where=half > 0) + STRAIGHT) ** (-1 / 3)

    corner = np.cos(_turns(points, arc, low, high, WINDOW / 6)[0] / 2)
    energy = np.maximum(peak * corner, CREEP) ** 2
    energy[starts] = energy[ends] = CREEP**2
    # v² changes by at most 2 a s over a way of s. As it is least at all ends, no stroke touches another's.
    slope = 2 * ACCELERATION * arc
    energy = np.minimum.accumulate(energy - slope) + slope
    energy = np.minimum.accumulate((energy + slope)[::-1])[::-1] - slope
    return peak, np.sqrt(np.maximum(energy, CREEP**2))


def _turns(
    points: FloatArray, arc: FloatArray, low: FloatArray, high: FloatArray, reach: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return by how much each point's chords of `reach` turn (0–π), and the arcs' lengths before and behind it.

    Arcs extend at least to the next point, and not beyond the stroke's ends, where nothing turns.
    """
    previous, following = np.append(arc[0], arc[:-1]), np.append(arc[1:], arc[-1])
    back = np.maximum(np.minimum(arc - reach, previous), low)
    ahead = np.minimum(np.maximum(arc + reach, following), high)
    x, y = points.T
    ax, ay = x - np.interp(back, arc, x), y - np.interp(back, arc, y)
    bx, by = np.interp(ahead, arc, x) - x, np.interp(ahead, arc, y) - y
    turn: FloatArray = np.abs(np.arctan2(ax * by - ay * bx, ax * bx + ay * by))
    turn[(back == arc) | (ahead == arc)] = 0.0
    return turn, arc - back, ahead - arc


def _durations(steps: FloatArray, speed: FloatArray, peak: FloatArray) -> FloatArray:
    """Return the time for each step: speeding up, going on at the greatest speed, slowing down."""
    v0, v1 = speed[:-1], speed[1:]
    top = np.minimum(np.sqrt((v0**2 + v1**2) / 2 + ACCELERATION * steps), np.maximum(peak[:-1], peak[1:]))
    top = np.maximum(top, np.maximum(v0, v1))
    changing = (2 * top**2 - v0**2 - v1**2) / (2 * ACCELERATION)
    cruising = np.maximum(steps - changing, 0.0) / top
    return (2 * top - v0 - v1) / ACCELERATION + cruising
