"""Recorded pen movement → the half-edges of the skeleton graph that it went along.

A hidden Markov model over places on the graph: the pen is near its place and goes on along half-edges; turning round
costs. The most likely way is found by Viterbi's algorithm, for each recorded stroke on its own; half-edges of which it
saw too little are dropped.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from inktraj.arclength import resample
from inktraj.recovery.features import Lines, Net

SPACING = 1 / 96  # heights between places
SEEN = 0.45  # of a half-edge: less was not gone along
TURN_MIDWAY, TURN_AT_NODE = 3.0, 1.0
ADVANCE = np.array([0.6, 0.0, 0.15, 0.8])  # cost of going on by 0 … 3 places
WORST = 40.0  # a point costs no more, however far it is: blots and gaps
LOST = 60.0  # hypotheses worse than the best by so much are given up
LONGEST_GAP = 3  # edges that a way may have jumped over between two it saw


@njit(cache=True, nogil=True)
def _spaced(path):
    """The path's points, `SPACING` apart."""
    total = 0.0
    for k in range(len(path) - 1):
        total += np.hypot(path[k + 1, 0] - path[k, 0], path[k + 1, 1] - path[k, 1])
    out = np.empty((int(total / SPACING) + 3, 2))
    return out[: resample(path, len(path), SPACING, out)]


@njit(cache=True, nogil=True)
def _places(ends, start, points):
    """Evenly spaced places of each half-edge: offsets (2 e + 1,) and x, y."""
    count = np.zeros(2 * len(ends) + 1, np.int64)
    parts = [_spaced(points[start[i] : start[i + 1]]) for i in range(len(ends))]
    for i in range(len(ends)):
        count[2 * i + 1] = count[2 * i + 2] = len(parts[i])
    offset = np.cumsum(count)
    xy = np.empty((offset[-1], 2))
    for i in range(len(ends)):
        n = len(parts[i])
        xy[offset[2 * i] : offset[2 * i] + n] = parts[i]
        xy[offset[2 * i + 1] : offset[2 * i + 1] + n] = parts[i][::-1]
    return offset, xy


@njit(cache=True, nogil=True)
def _most_likely(path, offset, xy, ends, first, half, sigma, advance):
    """The place of each point of `path` on its most likely way over the graph."""
    n, s = len(path), len(xy)
    precision = 1 / (2 * sigma * sigma)
    back = np.full((n, s), -1, np.int32)
    cost = np.empty(s)
    for j in range(s):
        cost[j] = min(((xy[j, 0] - path[0, 0]) ** 2 + (xy[j, 1] - path[0, 1]) ** 2) * precision, WORST)
    for t in range(1, n):
        following = np.full(s, np.inf)
        bound = cost.min() + LOST
        for d in range(len(offset) - 1):
            count = offset[d + 1] - offset[d]
            for k in range(count):
                a = offset[d] + k
                if cost[a] > bound:
                    continue
                for step in range(4):
                    paid = cost[a] + advance[step]
                    if k + step < count:
                        if paid < following[a + step]:
                            following[a + step], back[t, a + step] = paid, a
                        continue
                    v = ends[d // 2, 1 - d % 2]
                    for q in range(first[v], first[v + 1]):
                        h = half[q]
                        b = offset[h] + min(k + step - count, offset[h + 1] - offset[h] - 1)
                        extra = TURN_AT_NODE if h == d ^ 1 else 0.0
                        if paid + extra < following[b]:
                            following[b], back[t, b] = paid + extra, a
                b = offset[d ^ 1] + count - 1 - k
                if cost[a] + TURN_MIDWAY < following[b]:
                    following[b], back[t, b] = cost[a] + TURN_MIDWAY, a
        for j in range(s):
            following[j] += min(((xy[j, 0] - path[t, 0]) ** 2 + (xy[j, 1] - path[t, 1]) ** 2) * precision, WORST)
        cost = following
    way = np.empty(n, np.int64)
    j = np.argmin(cost)
    for t in range(n - 1, -1, -1):
        way[t] = j
        if t > 0:
            j = back[t, j]
    return way


@njit(cache=True, nogil=True)
def _runs(way, offset):
    """Uninterrupted runs along one half-edge: rows half-edge, first and last place, of how many."""
    owner = np.searchsorted(offset, way, side="right") - 1
    out = np.empty((len(way), 4), np.int64)
    n, i = 0, 0
    while i < len(way):
        d = owner[i]
        j = i + 1
        while j < len(way) and owner[j] == d and way[j] >= way[j - 1]:
            j += 1
        out[n] = d, way[i] - offset[d], way[j - 1] - offset[d], offset[d + 1] - offset[d]
        n += 1
        i = j
    return out[:n]


def _bridged(net: Net, a: int, b: int) -> list[int] | None:
    """Half-edges from where a ends to where b begins, if few lead there."""
    source, target = net.ends[a // 2, 1 - a % 2], net.ends[b // 2, b % 2]
    ways: list[list[int]] = [[]]
    for _ in range(LONGEST_GAP + 1):
        longer = []
        for way in ways:
            v = net.ends[way[-1] // 2, 1 - way[-1] % 2] if way else source
            if v == target:
                return way
            longer += [
                [*way, int(h)] for h in net.half[net.first[v] : net.first[v + 1]] if h // 2 not in (x // 2 for x in way)
            ]
        ways = longer[:200]
    return None


def match(lines: Lines, net: Net, strokes: list[np.ndarray]) -> list[list[int]]:
    """Lay recorded strokes on the graph.

    Parameters
    ----------
    lines, net
        The graph, as in `inktraj.recovery.features`.
    strokes
        Arrays (n, 2) in the graph's units.

    Returns
    -------
    list of list of int
        Half-edges, stroke by stroke. A stroke that left no ink of its own is missing; two that meet in the middle of
        an edge have become one, since nothing shows the lift.
    """
    offset, xy = _places(net.ends, lines.start, lines.points)
    sigma = max(0.011, 0.25 * net.pen)
    found: list[list[int]] = []
    stopped: tuple[int, float] | None = None  # where the last stroke left its last edge
    for stroke in strokes:
        path = _spaced(np.ascontiguousarray(stroke, np.float64))
        runs = _runs(_most_likely(path, offset, xy, net.ends, net.first, net.half, sigma, ADVANCE), offset)
        share = (runs[:, 2] - runs[:, 1] + 1) / runs[:, 3]
        kept = np.flatnonzero(share >= SEEN)
        joins = False
        h, begin, _, n = runs[0]
        if stopped is not None and stopped[0] == h and begin / n >= stopped[1] - 0.1 and begin / n > 0.1:
            joins = True  # goes on along the edge in whose middle the last stroke ended
        if not len(kept) and not joins:
            best = int(np.argmax(share))
            kept = np.array([best]) if share[best] >= 0.25 or net.dot[runs[best, 0] // 2] else kept
        ways = _connected(net, [int(runs[k, 0]) for k in kept if not (joins and k == 0)])
        last = runs[-1]
        stopped = (int(last[0]), float((last[2] + 1) / last[3]))
        stopped = stopped if 0.25 <= stopped[1] < 0.9 and share[-1] >= 0.25 else None
        if stopped is not None and (not len(kept) or kept[-1] != len(runs) - 1):
            ways = [*ways[:-1], *_connected(net, [*(ways[-1] if ways else []), int(last[0])])]
        if joins and ways and found:
            whole = _connected(net, found[-1] + ways[0])
            found[-1:] = whole
            ways = ways[1:]
        found += ways
    return [_without_dot_repeats(net, way) for way in found if way]


def _without_dot_repeats(net: Net, way: list[int]) -> list[int]:
    return [way[0] & ~1] if net.dot[way[0] // 2] else way


def _connected(net: Net, way: list[int]) -> list[list[int]]:
    """Split a way where nothing joins its half-edges; short gaps are closed."""
    out: list[list[int]] = []
    for h in way:
        if out and h == out[-1][-1] and net.ends[h // 2, 0] != net.ends[h // 2, 1]:
            continue  # seen twice: the run was broken in its middle
        gap = None
        if out and not net.dot[h // 2] and not net.dot[out[-1][-1] // 2]:
            gap = _bridged(net, out[-1][-1], h)
        if gap is None:
            out.append([h])
        else:
            out[-1] += [*gap, h]
    return out
