"""Dynamic time warping along anti-diagonals: exact, in O(n) memory, vectorised by the compiler.

Conventions
-----------
Sequences are ``(n, 2)`` and ``(m, 2)`` float64. Cell (i, j) costs the distance of a[i] and b[j]; a path goes from (0, 0) to
(n − 1, m − 1) by steps (1, 1), (1, 0) and (0, 1). Where predecessors tie, the path comes by the diagonal, else from above
(i − 1, j), else from the left, as tslearn's does.

How it is fast
--------------
The cells of one anti-diagonal d = i + j do not depend on each other. Three rolling buffers hold the diagonals d − 2, d − 1
and d, indexed by i + 1; b is stored backwards, so that all loads of a diagonal have unit stride. Indices are unsigned, for
which numba emits no test for negative ones, and the choice among predecessors is free of branches. Short pairs have short
diagonals; so `align_pairs` takes eight pairs at once, interleaved, and the same loop runs over eight times as many cells.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LANES = 8
"""Pairs that `align_pairs` takes at once: as many float64 as the widest vector registers hold."""

INTERLEAVED = 320
"""Points of the first sequence up to which pairs are taken `LANES` at once; longer ones fill the registers by themselves."""

# Reassociation is left out: the same input gives the same bits on every call.
_FAST = {"nsz", "contract", "arcp", "nnan"}
_jit = njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
_inline = njit(inline="always", error_model="numpy", fastmath=_FAST)


@_inline
def _advance(ax, ay, bx, by, before, last, now, at, b_at, count, lane, squared):  # type: ignore[no-untyped-def]
    """Compute `count` cells of a diagonal: now[at + lane …] from last (from above, from the left) and before."""
    own, left, other = np.uint64(at), np.uint64(at + lane), np.uint64(b_at)
    for k in range(np.uint64(count)):
        dx = ax[k + own] - bx[k + other]
        dy = ay[k + own] - by[k + other]
        cost = dx * dx + dy * dy
        if not squared:
            cost = math.sqrt(cost)
        best = before[k + own]
        above = last[k + own]
        best = above if above < best else best
        beside = last[k + left]
        best = beside if beside < best else best
        now[k + left] = best + cost


@_inline
def _advance_lengths(  # type: ignore[no-untyped-def]
    ax, ay, bx, by, before, last, now, before_length, last_length, now_length, at, b_at, count, lane, squared
):
    """`_advance`, and the length of the path to each cell."""
    own, left, other = np.uint64(at), np.uint64(at + lane), np.uint64(b_at)
    for k in range(np.uint64(count)):
        dx = ax[k + own] - bx[k + other]
        dy = ay[k + own] - by[k + other]
        cost = dx * dx + dy * dy
        if not squared:
            cost = math.sqrt(cost)
        # All loads come first and none hangs on a condition, else the loop is not vectorised.
        diagonal, above, beside = before[k + own], last[k + own], last[k + left]
        length, above_length, beside_length = before_length[k + own], last_length[k + own], last_length[k + left]
        length = above_length if above < diagonal else length
        best = above if above < diagonal else diagonal
        length = beside_length if beside < best else length
        best = beside if beside < best else best
        now[k + left] = best + cost
        now_length[k + left] = length + 1.0


@_inline
def _advance_choices(ax, ay, bx, by, before, last, now, choices, at, b_at, count, squared):  # type: ignore[no-untyped-def]
    """`_advance`, and by which step each cell was reached: 0 diagonal, 1 from above, 2 from the left."""
    own, left, other = np.uint64(at), np.uint64(at + 1), np.uint64(b_at)
    for k in range(np.uint64(count)):
        dx = ax[k + own] - bx[k + other]
        dy = ay[k + own] - by[k + other]
        cost = dx * dx + dy * dy
        if not squared:
            cost = math.sqrt(cost)
        diagonal, above, beside = before[k + own], last[k + own], last[k + left]
        choice = np.uint8(1) if above < diagonal else np.uint8(0)
        best = above if above < diagonal else diagonal
        choice = np.uint8(2) if beside < best else choice
        best = beside if beside < best else best
        now[k + left] = best + cost
        choices[k] = choice


@_jit
def reach(d, n, m, band):  # type: ignore[no-untyped-def]
    """Return the rows [low, high) of diagonal d that lie in the matrix and in the band; high may be below low.

    The band is tslearn's: |i − j| ≤ band on the side of the shorter sequence, widened by |n − m| on the other;
    none where it is negative.
    """
    low, high = max(0, d - m + 1), min(n, d + 1)
    if band >= 0:
        low = max(low, (d + min(0, n - m) - band + 1) // 2)
        high = min(high, (d + max(0, n - m) + band) // 2 + 1)
    return low, high


@_jit
def split(points, backwards):  # type: ignore[no-untyped-def]
    """Return x and y of the points as two arrays, in their order or backwards."""
    n = len(points)
    x, y = np.empty(n), np.empty(n)
    for i in range(n):
        k = n - 1 - i if backwards else i
        x[k], y[k] = points[i, 0], points[i, 1]
    return x, y


@_jit
def warp_total(a, b, squared, band):  # type: ignore[no-untyped-def]
    """Return the least sum of costs over all paths; infinity where the band leaves none."""
    n, m = len(a), len(b)
    ax, ay = split(a, False)
    bx, by = split(b, True)
    before, last, now = np.full(n + 2, np.inf), np.full(n + 2, np.inf), np.full(n + 2, np.inf)
    before[0] = 0.0
    for d in range(n + m - 1):
        low, high = reach(d, n, m, band)
        high = max(high, low)
        _advance(ax, ay, bx, by, before, last, now, low, m - 1 - d + low, high - low, 1, squared)
        now[low] = np.inf
        now[high + 1] = np.inf
        before[0] = np.inf
        before, last, now = last, now, before
    return last[n]


@_jit
def warp(a, b, squared, band):  # type: ignore[no-untyped-def]
    """Return the least sum of costs over all paths, and the number of cells on the path that has it."""
    n, m = len(a), len(b)
    ax, ay = split(a, False)
    bx, by = split(b, True)
    before, last, now = np.full(n + 2, np.inf), np.full(n + 2, np.inf), np.full(n + 2, np.inf)
    before_length, last_length, now_length = np.zeros(n + 2), np.zeros(n + 2), np.zeros(n + 2)
    before[0] = 0.0
    for d in range(n + m - 1):
        low, high = reach(d, n, m, band)
        high = max(high, low)
        b_at, count = m - 1 - d + low, high - low
        _advance_lengths(
            ax, ay, bx, by, before, last, now, before_length, last_length, now_length, low, b_at, count, 1, squared
        )
        now[low] = np.inf
        now[high + 1] = np.inf
        before[0] = np.inf
        before, last, now = last, now, before
        before_length, last_length, now_length = last_length, now_length, before_length
    return last[n], last_length[n]


@_jit
def align(a, b):  # type: ignore[no-untyped-def]
    """Return the least sum of distances over all paths, and the number of cells on the path that has it."""
    return warp(a, b, False, -1)


@_jit
def align_total(a, b):  # type: ignore[no-untyped-def]
    """Return the least sum of distances over all paths."""
    return warp_total(a, b, False, -1)


@_jit
def _interleave(points, starts, which, backwards, longest):  # type: ignore[no-untyped-def]
    """Return x and y of up to `LANES` sequences, one a lane: point k of lane l at k · LANES + l; the rest is zero.

    Backwards, a sequence's first point comes last, at longest − 1.
    """
    x, y = np.zeros(longest * LANES), np.zeros(longest * LANES)
    for lane in range(len(which)):
        start, end = starts[which[lane]], starts[which[lane] + 1]
        at, step = lane, LANES
        if backwards[lane]:
            at, step = (longest - 1) * LANES + lane, -LANES
        for i in range(start, end):
            x[at], y[at] = points[i, 0], points[i, 1]
            at += step
    return x, y


@_jit
def _align_lanes(a, a_starts, a_which, b, b_starts, b_which, flipped, squared, totals, lengths):  # type: ignore[no-untyped-def]
    """Fill totals and lengths (unless that is None) of up to `LANES` pairs at once."""
    pairs = len(a_which)
    n, m, first_end = 0, 0, np.int64(1) << 62
    rows, ends = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    for lane in range(pairs):
        rows[lane] = a_starts[a_which[lane] + 1] - a_starts[a_which[lane]]
        columns = b_starts[b_which[lane] + 1] - b_starts[b_which[lane]]
        n, m = max(n, rows[lane]), max(m, columns)
        ends[lane] = rows[lane] + columns - 2
        first_end = min(first_end, ends[lane])
    # A pair that is turned round has the first of its two sequences backwards; the second is stored backwards anyhow.
    # Lanes of shorter pairs go on over zeros after their end, which no cell before it sees.
    ax, ay = _interleave(a, a_starts, a_which, np.zeros(pairs, np.bool_), n)
    bx, by = _interleave(b, b_starts, b_which, np.ones(pairs, np.bool_), m)
    for lane in range(pairs):
        if flipped[lane]:
            start, end = a_starts[a_which[lane]], a_starts[a_which[lane] + 1]
            for i in range(start, end):
                at = (end - 1 - i) * LANES + lane
                ax[at], ay[at] = a[i, 0], a[i, 1]
    size = (n + 2) * LANES
    before, last, now = np.full(size, np.inf), np.full(size, np.inf), np.full(size, np.inf)
    before[:LANES] = 0.0
    if lengths is not None:
        before_length, last_length, now_length = np.zeros(size), np.zeros(size), np.zeros(size)
    for d in range(n + m - 1):
        low, high = reach(d, n, m, -1)
        at, b_at, count = low * LANES, (m - 1 - d + low) * LANES, (high - low) * LANES
        if lengths is None:
            _advance(ax, ay, bx, by, before, last, now, at, b_at, count, LANES, squared)
        else:
            _advance_lengths(
                ax,
                ay,
                bx,
                by,
                before,
                last,
                now,
                before_length,
                last_length,
                now_length,
                at,
                b_at,
                count,
                LANES,
                squared,
            )
            before_length, last_length, now_length = last_length, now_length, before_length
        for lane in range(LANES):
            now[at + lane] = np.inf
            before[lane] = np.inf
        before, last, now = last, now, before
        if d >= first_end:
            for lane in range(pairs):
                if ends[lane] == d:
                    totals[lane] = last[rows[lane] * LANES + lane]
                    if lengths is not None:
                        lengths[lane] = last_length[rows[lane] * LANES + lane]


@_jit
def align_pairs(a, a_starts, a_which, b, b_starts, b_which, flipped, squared, totals, lengths):  # type: ignore[no-untyped-def]
    """Align many pairs of sequences that lie one after another in two arrays.

    Parameters
    ----------
    a, b
        Points of all sequences, ``(·, 2)`` float64.
    a_starts, b_starts
        Where each sequence begins, and the end of the last, int64; no sequence is empty.
    a_which, b_which
        The sequences of each pair, ``(pairs,)`` int64.
    flipped
        Whether the pair's first sequence is taken backwards, ``(pairs,)`` bool.
    squared
        Squared distances instead of distances.
    totals, lengths
        Written: the sums and the path lengths, ``(pairs,)`` float64; lengths may be None, which saves their time.
    """
    pairs = len(a_which)
    key = np.empty(pairs, np.int64)
    long = np.int64(1) << 60
    for p in range(pairs):
        n = a_starts[a_which[p] + 1] - a_starts[a_which[p]]
        m = b_starts[b_which[p] + 1] - b_starts[b_which[p]]
        # Lanes of one group should be of about one size; the long ones come last.
        key[p] = long if n > INTERLEAVED else (n // 8 << 40) + m
    order = np.argsort(key, kind="mergesort")
    p = 0
    some = np.empty(LANES)
    some_lengths = None if lengths is None else np.empty(LANES)
    while p < pairs and key[order[p]] < long:
        end = p
        while end < min(p + LANES, pairs) and key[order[end]] < long:
            end += 1
        group = order[p:end]
        _align_lanes(
            *(a, a_starts, a_which[group], b, b_starts, b_which[group], flipped[group], squared, some, some_lengths)
        )
        for lane in range(end - p):
            totals[group[lane]] = some[lane]
            if lengths is not None:
                lengths[group[lane]] = some_lengths[lane]
        p = end
    for pair in order[p:]:
        first = a[a_starts[a_which[pair]] : a_starts[a_which[pair] + 1]]
        second = b[b_starts[b_which[pair]] : b_starts[b_which[pair] + 1]]
        if flipped[pair]:
            first = first[::-1].copy()
        if lengths is None:
            totals[pair] = warp_total(first, second, squared, -1)
        else:
            totals[pair], lengths[pair] = warp(first, second, squared, -1)
