"""In which order the strokes of a word were written: the body from left to right, dots and bars after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Marks = Literal["word", "run"]

SMALL = 0.22  # of the word's height: a dot or an accent is no larger
BAR = (0.1, 0.9)  # of the word's height: how long a bar is
STRAIGHT = 0.9  # chord over arc length of a bar
BESIDE = 0.08  # of the word's height: a mark may hang over the ink it belongs to by so much
MOST_STROKES = 2000  # more are no word, but noise: then nothing is called a mark
ABOVE, BELOW = 0.06, 0.15  # of the word's height: the ink that a bar crosses goes on above and below it by so much


def _boxes(strokes: Sequence[F64]) -> tuple[F64, F64]:
    return np.array([s.min(0) for s in strokes]), np.array([s.max(0) for s in strokes])


def _chord_and_length(strokes: Sequence[F64]) -> tuple[F64, F64]:
    chord = np.array([np.hypot(*(s[-1] - s[0])) for s in strokes])
    length = np.array([np.hypot(*np.diff(s, axis=0).T).sum() if len(s) > 1 else 0.0 for s in strokes])
    return chord, length


def find_marks(strokes: Sequence[F64], height: float, pen: float) -> BoolArray:
    """Find the dots, accents and bars: strokes made after the letters that they belong to.

    Parameters
    ----------
    strokes
        Arrays ``(n, 2)``, x right, y down.
    height
        Height of the word's ink.
    pen
        Pen width.

    Returns
    -------
    ndarray
        ``(len(strokes),)`` bool. A dot or accent is small and hangs over larger ink; a bar is straight, level, and the
        ink that it crosses goes on above and below it.
    """
    if len(strokes) > MOST_STROKES:
        return np.zeros(len(strokes), np.bool_)
    low, high = _boxes(strokes)
    size = high - low
    chord, length = _chord_and_length(strokes)
    small = size.max(1) < SMALL * height
    level = (chord >= STRAIGHT * length) & (size[:, 0] > 2 * size[:, 1])
    level &= (size[:, 0] > max(BAR[0] * height, 2 * pen)) & (size[:, 0] < BAR[1] * height)
    points = np.concatenate(strokes)
    owner = np.repeat(np.arange(len(strokes)), [len(s) for s in strokes])
    by_x = np.argsort(points[:, 0], kind="stable")
    points, owner = points[by_x], owner[by_x]
    margin = max(BESIDE * height, 1.5 * pen)
    marks = np.zeros(len(strokes), np.bool_)
    for i in np.flatnonzero(small | level):
        a, b = np.searchsorted(points[:, 0], (low[i, 0] - margin, high[i, 0] + margin))
        y = points[a:b, 1][owner[a:b] != i]
        if not len(y):
            continue
        hangs = y.min() > high[i, 1] + 0.5 * pen and y.max() - y.min() > 1.5 * size[i, 1]
        crosses = y.min() < low[i, 1] - max(ABOVE * height, pen) and y.max() > high[i, 1] + BELOW * height
        marks[i] = (small[i] and hangs) or (level[i] and crosses)
    return marks


def _hosts(marks: I64, middle: F64, group: I64, left: F64, right: F64) -> I64:
    """The piece of the body that each mark belongs to: its own, else the nearest in x."""
    host = group[marks].copy()
    body = np.flatnonzero(np.isfinite(left))
    for k, i in enumerate(marks):
        if not np.isfinite(left[host[k]]):
            gap = np.maximum(np.maximum(left[body] - middle[i, 0], middle[i, 0] - right[body]), 0)
            host[k] = body[np.argmin(gap)]
    return host


def writing_order(
    strokes: Sequence[F64], component: Sequence[int], height: float, pen: float, marks: Marks = "word"
) -> list[int]:
    """Order the strokes of a word.

    Parameters
    ----------
    strokes
        Arrays ``(n, 2)``; those of one component already in their order.
    component
        Number of the connected piece of ink of each stroke.
    height, pen
        Height of the word's ink and pen width.
    marks
        Where dots and bars go: after the whole word's body, or each after the run of joined ink that it belongs to.

    Returns
    -------
    list of int
        Places in `strokes`: the pieces of the body by their left edge, and the dots and bars from left to right.
    """
    if not strokes:
        return []
    low, high = _boxes(strokes)
    late = find_marks(strokes, height, pen)
    if late.all():
        late[:] = False
    names, group = np.unique(np.asarray(component), return_inverse=True)
    left, right = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    np.minimum.at(left, group[~late], low[~late, 0])
    np.maximum.at(right, group[~late], high[~late, 0])
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(left, kind="stable")] = np.arange(len(names))
    turn = rank[group]
    tail = np.flatnonzero(late)
    turn[tail] = rank[_hosts(tail, (low + high) / 2, group, left, right)] if marks == "run" else len(names)
    # lexsort takes its last key first: piece, marks after body, marks by x, and else the order in which they came
    return [int(i) for i in np.lexsort((np.where(late, low[:, 0], 0), late, turn))]
