"""Dynamic time warping along anti-diagonals: exact, in O(n) memory, vectorised by the compiler.

Conventions
-----------
Sequences are ``(n, 2)`` and ``(m, 2)`` float64, finite, not empty. Cell (i, j) costs the distance of a[i] and b[j]; a
path goes from (0, 0) to (n − 1, m − 1) by steps (1, 1), (1, 0) and (0, 1). Where predecessors tie, the path comes by
the diagonal, else from (i − 1, j), else from (i, j − 1), as tslearn's does.

How it is fast
--------------
The cells of one anti-diagonal d = i + j do not depend on each other. Three rolling buffers hold the diagonals d − 2,
d − 1 and d, indexed by i + 1; b is stored backwards, so that all loads of a diagonal have unit stride. Indices are
unsigned, for which numba emits no test for negative ones, and the choice among predecessors is free of branches. Short
pairs have short diagonals; so `align_pairs` takes eight pairs at once, interleaved, and the same loop runs over eight
times as many cells. `warp_pruned` leaves out the cells that cannot lie on the path, given how near each point has a
neighbour.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LANES = 8
"""Pairs that `align_pairs` takes at once: as many float64 as the widest vector registers hold."""

INTERLEAVED = 320
"""Points of the first sequence up to which pairs are taken `LANES` at once; longer ones fill the registers alone."""

BEAM = 32
"""Half the width, in cells, of the window in which the upper bound for pruning is sought."""

BEAM_EVERY = 8
"""Diagonals between two centrings of that window."""

SLACK = 1e-9
"""Relative room above the upper bound, for rounding: a cell is left out only beyond it."""

# Reassociation is left out: the same input gives the same bits on every call.
_FAST = {"nsz", "contract", "arcp", "nnan"}
_jit = njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
# The loops must see that the buffers are different ones: only then are they vectorised without tests.
_inline = njit(inline="always", error_model="numpy", fastmath=_FAST)


@_inline
def _advance(ax, ay, bx, by, before, last, now, at, b_at, count, lane, squared):  # type: ignore[no-untyped-def]
    """Compute `count` cells of a diagonal: now[at + lane …] from last (the steps aside) and before (the diagonal)."""
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
    ax, ay, bx, by, before, last, now, before_length, last_length, now_length, at, b_at, count, lane, mirrored, squared
):
    """`_advance`, and the length of the path to each cell; mirrored, a and b have changed places."""
    own, left, other = np.uint64(at), np.uint64(at + lane), np.uint64(b_at)
    second, third = (left, own) if mirrored else (own, left)
    for k in range(np.uint64(count)):
        dx = ax[k + own] - bx[k + other]
        dy = ay[k + own] - by[k + other]
        cost = dx * dx + dy * dy
        if not squared:
            cost = math.sqrt(cost)
        # All loads come first and none hangs on a condition, else the loop is not vectorised.
        best, above, beside = before[k + own], last[k + second], last[k + third]
        length, above_length, beside_length = before_length[k + own], last_length[k + second], last_length[k + third]
        length = above_length if above < best else length
        best = above if above < best else best
        length = beside_length if beside < best else length
        best = beside if beside < best else best
        now[k + left] = best + cost
        now_length[k + left] = length + 1.0


@_inline
def _advance_choices(  # type: ignore[no-untyped-def]
    ax, ay, bx, by, before, last, now, choices, at, b_at, count, mirrored, squared
):
    """`_advance`, and by which step each cell was reached: 0 the diagonal, 1 or 2 as preferred among the others."""
    own, left, other = np.uint64(at), np.uint64(at + 1), np.uint64(b_at)
    second, third = (left, own) if mirrored else (own, left)
    for k in range(np.uint64(count)):
        dx = ax[k + own] - bx[k + other]
        dy = ay[k + own] - by[k + other]
        cost = dx * dx + dy * dy
        if not squared:
            cost = math.sqrt(cost)
        best, above, beside = before[k + own], last[k + second], last[k + third]
        choice = np.uint8(1) if above < best else np.uint8(0)
        best = above if above < best else best
        choice = np.uint8(2) if beside < best else choice
        best = beside if beside < best else best
        now[k + left] = best + cost
        choices[k] = choice


@_jit
def reach(d, n, m, band):  # type: ignore[no-untyped-def]
    """Return the rows [low, high) of diagonal d that lie in the matrix and in the band.

    The band is tslearn's: |i − j| ≤ band, widened by |n − m| on the side of the longer sequence; none if negative.
    """
    low, high = max(0, d - m + 1), min(n, d + 1)
    if band >= 0:
        low = max(low, (d + min(0, n - m) - band + 1) // 2)
        high = min(high, (d + max(0, n - m) + band) // 2 + 1)
    return low, max(low, high)


@_jit
def _split(points, backwards):  # type: ignore[no-untyped-def]
    """Return x and y of the points as two arrays, in their order or backwards."""
    n = len(points)
    x, y = np.empty(n), np.empty(n)
    for i in range(n):
        k = n - 1 - i if backwards else i
        x[k], y[k] = points[i, 0], points[i, 1]
    return x, y


@_jit
def _sweep(a, b, mirrored, squared, band, a_rest, b_rest, limit, beam, lengths):  # type: ignore[no-untyped-def]
    """Go over the diagonals; return the least sum and, unless `lengths` is None, the length of its path.

    a_rest[i] is at most what any path pays after row i, b_rest[j] after column j. Cells from which a path cannot end
    within `limit` are left out from both ends of a diagonal: those between may be dear too, but cost little. With a
    `beam` > 0 only that many cells to each side of the most promising one go on: the sum is then an upper bound.
    """
    n, m = len(a), len(b)
    ax, ay = _split(a, False)
    bx, by = _split(b, True)
    before, last, now = np.full(n + 2, np.inf), np.full(n + 2, np.inf), np.full(n + 2, np.inf)
    before[0] = 0.0
    if lengths is not None:
        before_length, last_length, now_length = np.zeros(n + 2), np.zeros(n + 2), np.zeros(n + 2)
    prune = limit < np.inf
    # The rows of the diagonals d − 1 and d − 2 that go on; at first as if all before had gone on.
    low_1, high_1, low_2, high_2 = 0, 0, -1, 0
    for d in range(n + m - 1):
        low, high = reach(d, n, m, band)
        low = max(low, min(low_1, low_2 + 1))
        high = max(low, min(high, max(high_1, high_2) + 1))
        b_at, count = m - 1 - d + low, high - low
        if lengths is None:
            _advance(ax, ay, bx, by, before, last, now, low, b_at, count, 1, squared)
        else:
            _advance_lengths(
                ax, ay, bx, by, before, last, now, before_length, last_length, now_length,
                low, b_at, count, 1, mirrored, squared,
            )  # fmt: skip
            before_length, last_length, now_length = last_length, now_length, before_length
        now[low] = np.inf
        now[high + 1] = np.inf
        before[0] = np.inf
        low_2, high_2, low_1, high_1 = low_1, high_1, low, high
        if prune:
            while low_1 < high_1 and now[low_1 + 1] + max(a_rest[low_1], b_rest[d - low_1]) > limit:
                low_1 += 1
            while high_1 > low_1 and now[high_1] + max(a_rest[high_1 - 1], b_rest[d - high_1 + 1]) > limit:
                high_1 -= 1
        if beam > 0 and d % BEAM_EVERY == 0:
            best, best_row = np.inf, low_1
            for row in range(low_1, high_1):
                promise = now[row + 1] + max(a_rest[row], b_rest[d - row])
                if promise < best:
                    best, best_row = promise, row
            low_1, high_1 = max(low_1, best_row - beam), min(high_1, best_row + beam + 1)
            low_2, high_2 = max(low_2, low_1 - 1), min(high_2, high_1)
        before, last, now = last, now, before
    if lengths is None:
        return last[n], 0.0
    return last[n], last_length[n]


@_jit
def _rest(nearest, squared):  # type: ignore[no-untyped-def]
    """Return for each point the sum of the least costs of all points after it."""
    out = np.empty(len(nearest))
    total = 0.0
    for i in range(len(nearest) - 1, -1, -1):
        out[i] = total
        total += nearest[i] * nearest[i] if squared else nearest[i]
    return out


@_jit
def warp(a, b, squared, band, lengths):  # type: ignore[no-untyped-def]
    """Align two sequences.

    Parameters
    ----------
    a, b
        Points, ``(n, 2)`` and ``(m, 2)`` float64.
    squared
        Squared distances instead of distances.
    band
        Radius of the Sakoe–Chiba band, see `reach`; negative for none.
    lengths
        None saves the time for the path's length, which is 0 then; True asks for it.

    Returns
    -------
    total, length
        The least sum of costs over all paths, infinity where the band leaves none, and the cells on its path.
    """
    nothing = np.empty(0)
    if len(a) > len(b):
        return _sweep(b, a, True, squared, band, nothing, nothing, np.inf, 0, lengths)
    return _sweep(a, b, False, squared, band, nothing, nothing, np.inf, 0, lengths)


@_jit
def warp_pruned(a, b, squared, a_nearest, b_nearest, lengths):  # type: ignore[no-untyped-def]
    """`warp` without a band, given the distance from each point to the nearest of the other sequence.

    A path visits every row and every column, and pays at least the nearest distance in each: this bounds from below
    what is left to pay. A beam search gives an upper bound. Cells that fail the two are on no best path; so total and
    length are those of `warp`.
    """
    a_rest, b_rest = _rest(a_nearest, squared), _rest(b_nearest, squared)
    if len(a) > len(b):
        bound = _sweep(b, a, True, squared, -1, b_rest, a_rest, np.inf, BEAM, None)[0]
        return _sweep(b, a, True, squared, -1, b_rest, a_rest, bound * (1 + SLACK), 0, lengths)
    bound = _sweep(a, b, False, squared, -1, a_rest, b_rest, np.inf, BEAM, None)[0]
    return _sweep(a, b, False, squared, -1, a_rest, b_rest, bound * (1 + SLACK), 0, lengths)


@_jit
def align(a, b):  # type: ignore[no-untyped-def]
    """Return the least sum of distances over all paths, and the number of cells on the path that has it."""
    return warp(a, b, False, -1, True)


@_jit
def _replay(ax, ay, bx, by, mirrored, squared, band, before, last, now, choices, first, end):  # type: ignore[no-untyped-def]
    """Compute the diagonals [first, end), and by which step each cell was reached; return the rotated buffers."""
    n, m = len(ax), len(bx)
    for d in range(first, end):
        low, high = reach(d, n, m, band)
        b_at, count, row = m - 1 - d + low, high - low, choices[d - first]
        _advance_choices(ax, ay, bx, by, before, last, now, row, low, b_at, count, mirrored, squared)
        now[low] = np.inf
        now[high + 1] = np.inf
        before[0] = np.inf
        before, last, now = last, now, before
    return before, last, now


@_jit
def trace(a, b, squared, band):  # type: ignore[no-untyped-def]
    """Return the cells of the optimal path, ``(length, 2)`` int64, from (0, 0) on; empty where the band leaves none.

    The diagonals are computed twice, in blocks: the first time two diagonals are kept before each block, the second
    time, from the last block back, the steps within it. Memory is O(min(n, m) √(n + m)).
    """
    mirrored = len(a) > len(b)
    if mirrored:
        a, b = b, a
    n, m = len(a), len(b)
    ax, ay = _split(a, False)
    bx, by = _split(b, True)
    diagonals = n + m - 1
    # Two diagonals of float64 a block against one byte a cell within it: this balances them.
    block = int(4 * math.sqrt(diagonals)) + 1
    blocks = (diagonals + block - 1) // block
    kept = np.full((blocks, 2, n + 2), np.inf)
    choices = np.empty((block, n), np.uint8)
    before, last, now = np.full(n + 2, np.inf), np.full(n + 2, np.inf), np.full(n + 2, np.inf)
    before[0] = 0.0
    for k in range(blocks):
        kept[k, 0], kept[k, 1] = before, last
        end = min((k + 1) * block, diagonals)
        before, last, now = _replay(ax, ay, bx, by, mirrored, squared, band, before, last, now, choices, k * block, end)
    path = np.empty((diagonals, 2), np.int64)
    if last[n] == np.inf:
        return path[:0]
    i, j, at = n - 1, m - 1, diagonals
    aside = (0, 1) if mirrored else (1, 0)
    for k in range(blocks - 1, -1, -1):
        if k < blocks - 1:
            before, last = kept[k, 0].copy(), kept[k, 1].copy()
            now = np.full(n + 2, np.inf)
            _replay(ax, ay, bx, by, mirrored, squared, band, before, last, now, choices, k * block, (k + 1) * block)
        while at > 0 and i + j >= k * block:
            at -= 1
            path[at, 0], path[at, 1] = (j, i) if mirrored else (i, j)
            if i + j == 0:
                break
            d = i + j
            choice = choices[d - k * block, i - reach(d, n, m, band)[0]]
            if choice == 0:
                i, j = i - 1, j - 1
            elif choice == 1:
                i, j = i - aside[0], j - aside[1]
            else:
                i, j = i - aside[1], j - aside[0]
    return path[at:]


@_jit
def _interleave(points, starts, which, flipped, longest, backwards):  # type: ignore[no-untyped-def]
    """Return x and y of up to `LANES` sequences, one a lane: point k of lane l at k · LANES + l; the rest is zero.

    A `flipped` sequence is read from its end; `backwards`, point k of each lies at longest − 1 − k.
    """
    x, y = np.zeros(longest * LANES), np.zeros(longest * LANES)
    for lane in range(len(which)):
        start, end = starts[which[lane]], starts[which[lane] + 1]
        for k in range(end - start):
            i = end - 1 - k if flipped[lane] else start + k
            at = (longest - 1 - k if backwards else k) * LANES + lane
            x[at], y[at] = points[i, 0], points[i, 1]
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
    # Lanes of shorter pairs go on over zeros after their end, which no cell before it sees.
    ax, ay = _interleave(a, a_starts, a_which, flipped, n, False)
    bx, by = _interleave(b, b_starts, b_which, np.zeros(pairs, np.bool_), m, True)
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
                ax, ay, bx, by, before, last, now, before_length, last_length, now_length,
                at, b_at, count, LANES, False, squared,
            )  # fmt: skip
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
        a_group, b_group = a_which[group], b_which[group]
        _align_lanes(a, a_starts, a_group, b, b_starts, b_group, flipped[group], squared, some, some_lengths)
        for lane in range(end - p):
            totals[group[lane]] = some[lane]
            if lengths is not None:
                lengths[group[lane]] = some_lengths[lane]  # type: ignore[index]
        p = end
    for pair in order[p:]:
        first = a[a_starts[a_which[pair]] : a_starts[a_which[pair] + 1]]
        second = b[b_starts[b_which[pair]] : b_starts[b_which[pair] + 1]]
        if flipped[pair]:
            first = first[::-1].copy()
        total, length = warp(first, second, squared, -1, None if lengths is None else True)
        totals[pair] = total
        if lengths is not None:
            lengths[pair] = length
