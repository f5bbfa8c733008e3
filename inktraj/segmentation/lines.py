"""Detected quads → text lines with a centre curve, in reading order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

COLUMN_LINES = 3
"""Fewer lines than this beside others are a note in the margin or a signature, not a column."""


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Where one line of text runs.

    In the line's own coordinates u runs along the chord from `start` to `end`, in pixels, and v across it,
    downwards, measured from the centre curve.

    Parameters
    ----------
    start, end
        ``(2,)`` page coordinates of the centre at the left and right end.
    height
        Height of the letters, ascender to descender, in pixels.
    bend
        Polynomial coefficients (highest first) of the centre curve's v over u in multiples of the length.
    """

    start: FloatArray
    end: FloatArray
    height: float
    bend: tuple[float, ...] = (0.0,)

    @property
    def length(self) -> float:
        """Length of the chord in pixels."""
        return float(np.hypot(*(self.end - self.start)))

    @property
    def along(self) -> FloatArray:
        """Unit vector of the reading direction."""
        return (self.end - self.start) / max(self.length, 1e-9)

    def local(self, points: FloatArray) -> FloatArray:
        """Map page points ``(n, 2)`` to u, v."""
        direction = self.along
        shifted = points - self.start
        u = shifted @ direction
        v = shifted @ np.array([-direction[1], direction[0]])
        return np.column_stack([u, v - self.centre(u)])

    def page(self, local: FloatArray) -> FloatArray:
        """Map u, v ``(n, 2)`` to page points; the inverse of `local`."""
        direction = self.along
        u = local[:, 0]
        v = local[:, 1] + self.centre(u)
        across = np.array([-direction[1], direction[0]])
        return np.asarray(self.start + u[:, None] * direction + v[:, None] * across, dtype=np.float64)

    def centre(self, u: FloatArray) -> FloatArray:
        """Return the centre curve's offset from the chord at u, in pixels; held constant beyond the ends."""
        share = np.clip(u / max(self.length, 1e-9), 0, 1)
        return np.asarray(np.polyval(self.bend, share), dtype=np.float64)


def tracks_from_quads(quads: FloatArray) -> list[Track]:
    """Join quads ``(n, 4, 2)`` that lie on one line and return the lines in reading order.

    Quads taller than wide are dropped unless nearly square: they are upright stamps and margins, not lines.
    """
    tracks = []
    for quad in quads:
        left, right = (quad[0] + quad[3]) / 2, (quad[1] + quad[2]) / 2
        height = float(np.hypot(*(quad[3] - quad[0])) + np.hypot(*(quad[2] - quad[1]))) / 2
        if right[0] < left[0]:
            left, right = right, left
        track = Track(left, right, height)
        if height >= 4 and track.length >= 0.6 * height and abs(right[1] - left[1]) <= 0.8 * track.length:
            tracks.append(track)
    tracks.sort(key=lambda t: (float(t.start[0]), float(t.start[1]), t.length))
    i = 0
    while i < len(tracks):
        for j in range(len(tracks)):
            both = _join(tracks[i], tracks[j]) if j != i else None
            if both is not None:
                # Only pairs with the new track can have changed.
                tracks[i] = both
                del tracks[j]
                i -= j < i
                break
        else:
            i += 1
    return _reading_order(tracks)


def _join(a: Track, b: Track) -> Track | None:
    """Return one track for two pieces of one line, or None where they are two lines."""
    if a.start[0] > b.start[0]:
        a, b = b, a
    height = (a.height * a.length + b.height * b.length) / max(a.length + b.length, 1e-9)
    small, large = sorted((a.height, b.height))
    along, (x, y) = a.along, b.start - a.start
    if small < 0.45 * large or abs(along[0] * y - along[1] * x) > 0.35 * height:
        return None  # nearly all pairs end here
    ends = a.local(np.array([b.start, b.end]))
    gap = float(ends[0, 0]) - a.length
    overlap = min(a.length, float(ends[1, 0])) - max(0.0, float(ends[0, 0]))
    inside = overlap > 0.7 * min(a.length, b.length)
    # The nearer end of each, seen from the other: both must meet on one line.
    meet = abs(float(ends[0, 1])) if not inside else float(np.abs(ends[:, 1]).max())
    back = abs(float(b.local(a.end[None])[0, 1])) if not inside else 0.0
    turn = abs(float(np.cross([*a.along, 0], [*b.along, 0])[2]))
    if max(meet, back) > 0.35 * height or gap > 2.5 * height or turn > 0.12:
        return None
    if inside and meet > 0.3 * height:
        return None
    points = np.array([a.start, a.end, b.start, b.end])
    return Track(points[points[:, 0].argmin()], points[points[:, 0].argmax()], height)


def _reading_order(tracks: list[Track]) -> list[Track]:
    """Sort lines as a person reads them: columns one after the other, in a column from top to bottom.

    A stretch of the page is cut into columns where a gutter that no line crosses has at least `COLUMN_LINES` lines
    on either side, beside each other. The rest, such as a headline over both, is read in rows.
    """
    ordered = sorted(tracks, key=lambda t: float((t.start + t.end)[1]))
    least = 2 * COLUMN_LINES
    if not _side_by_side(ordered):
        return _in_rows(ordered)
    for first in range(len(ordered) - least + 1):
        for last in range(len(ordered), first + least - 1, -1):
            cut = _gutter(ordered[first:last])
            if cut:
                left, right = map(_reading_order, cut)
                return _in_rows(ordered[:first]) + left + right + _reading_order(ordered[last:])
    return _in_rows(ordered)


def _side_by_side(tracks: list[Track]) -> bool:
    """Tell whether enough lines have another beside them for columns to be worth looking for."""
    beside = 0
    for track in tracks:
        level = (_top(track) + _bottom(track)) / 2
        others = (t for t in tracks if abs((_top(t) + _bottom(t)) / 2 - level) < track.height)
        beside += any(t.start[0] > track.end[0] for t in others)
    return beside >= COLUMN_LINES - 1


def _gutter(tracks: list[Track]) -> tuple[list[Track], list[Track]] | None:
    """Return the lines left and right of a gutter between two columns, or None where there is none."""
    ordered = sorted(tracks, key=lambda t: float(t.start[0]))
    reach = -np.inf
    for i in range(1, len(ordered)):
        reach = max(reach, float(ordered[i - 1].end[0]))
        left, right = ordered[:i], ordered[i:]
        height = min(t.height for t in (left[-1], right[0]))
        if min(len(left), len(right)) < COLUMN_LINES or float(right[0].start[0]) - reach < 0.5 * height:
            continue
        # Side by side: a column of one is not above the other.
        beside = min(max(map(_bottom, left)), max(map(_bottom, right)))
        beside -= max(min(map(_top, left)), min(map(_top, right)))
        if beside > COLUMN_LINES * height:
            return left, right
    return None


def _top(track: Track) -> float:
    return float(min(track.start[1], track.end[1]))


def _bottom(track: Track) -> float:
    return float(max(track.start[1], track.end[1]))


def _in_rows(tracks: list[Track]) -> list[Track]:
    """Sort from top to bottom, lines beside each other from left to right."""
    rows: list[list[Track]] = []
    for track in tracks:
        for row in rows:
            level = float(np.mean([(t.start + t.end)[1] / 2 for t in row]))
            apart = all(track.start[0] > t.end[0] - t.height or track.end[0] < t.start[0] + t.height for t in row)
            if apart and abs((track.start + track.end)[1] / 2 - level) < 0.5 * min(track.height, row[0].height):
                row.append(track)
                break
        else:
            rows.append([track])
    rows.sort(key=lambda row: float(np.mean([(t.start + t.end)[1] for t in row])))
    return [track for row in rows for track in sorted(row, key=lambda t: float(t.start[0]))]


def bent(track: Track, points: FloatArray) -> Track:
    """Return the track with its centre curve fitted to its ink.

    Parameters
    ----------
    track
        A line with a straight centre.
    points
        Page coordinates ``(n, 2)`` of ink pixels near it.
    """
    local = track.local(points)
    local = local[np.abs(local[:, 1]) < 0.6 * track.height]
    windows = int(np.clip(track.length / (1.5 * track.height), 1, 40))
    place = np.clip((local[:, 0] / max(track.length, 1e-9) * windows).astype(np.int64), 0, windows - 1)
    centres, middles, weights = [], [], []
    for w in range(windows):
        part = local[place == w]
        if len(part) >= 20:
            centres.append((w + 0.5) / windows)
            middles.append(float(np.median(part[:, 1])))
            weights.append(np.sqrt(len(part)))
    if len(centres) < 2:
        return track
    degree = min(2 if track.length > 8 * track.height else 1, len(centres) - 1)
    x, y, weight = np.array(centres), np.array(middles), np.array(weights)
    # Reweighted once, so that one tall word does not bend the line.
    fit = np.polyfit(x, y, degree, w=weight)
    residual = np.abs(y - np.polyval(fit, x))
    fit = np.polyfit(x, y, degree, w=weight / (1 + (residual / (0.1 * track.height)) ** 2))
    if np.abs(np.polyval(fit, np.linspace(0, 1, 9))).max() > 0.6 * track.height:
        return track
    return Track(track.start, track.end, track.height, tuple(float(c) for c in fit))
