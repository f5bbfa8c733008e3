"""Thinning: an ink region → a skeleton one pixel wide, in time linear in the ink's area.

The rule is Guo and Hall's parallel thinning in two sub-iterations (Z. Guo, R. W. Hall, "Parallel thinning with
two-subiteration algorithms", CACM 32(3), 1989). Only pixels beside a pixel that has just gone are looked at again, so
that a large blob costs no more per pixel than a thin line.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

U8 = NDArray[np.uint8]

# bit i of a neighbourhood code is the i-th neighbour, clockwise from north
OFFSETS_Y = np.array([-1, -1, 0, 1, 1, 1, 0, -1])
OFFSETS_X = np.array([0, 1, 1, 1, 0, -1, -1, -1])


def _deletable() -> NDArray[np.bool_]:
    """Which neighbourhoods let a pixel go: ``(2, 256)``, one row for each sub-iteration."""
    table = np.zeros((2, 256), np.bool_)
    for code in range(256):
        n, ne, e, se, s, sw, w, nw = (bool(code >> i & 1) for i in range(8))
        crossings = (not n and (ne or e)) + (not e and (se or s)) + (not s and (sw or w)) + (not w and (nw or n))
        pairs = min((nw or n) + (ne or e) + (se or s) + (sw or w), (n or ne) + (e or se) + (s or sw) + (w or nw))
        if crossings == 1 and pairs in (2, 3):
            table[0, code] = not ((s or sw or not nw) and w)
            table[1, code] = not ((n or ne or not se) and e)
    return table


DELETABLE = _deletable()


@njit(cache=True)
def _thin(image, deletable, dy, dx):  # type: ignore[no-untyped-def]
    height, width = image.shape
    count = 0
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            count += image[y, x]
    front = np.empty(count, np.int64)
    after = np.empty(count, np.int64)
    gone = np.empty(count, np.int64)
    stamp = np.full(height * width, -1, np.int32)  # the last turn for which a pixel was put on the front
    size = 0
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            if image[y, x] and not (image[y - 1, x] and image[y + 1, x] and image[y, x - 1] and image[y, x + 1]):
                front[size] = y * width + x
                stamp[front[size]] = 0
                size += 1
    turn = 0
    while size > 0:
        turn += 1
        n_gone = 0
        for half in range(2):
            first = n_gone
            for i in range(size):
                y, x = front[i] // width, front[i] % width
                if image[y, x] == 0:
                    continue
                code = 0
                for k in range(8):
                    code |= int(image[y + dy[k], x + dx[k]]) << k
                if deletable[half, code]:
                    gone[n_gone] = front[i]
                    n_gone += 1
            for i in range(first, n_gone):
                image[gone[i] // width, gone[i] % width] = 0
            if half == 0:  # what the first half has laid bare is looked at in the second
                for i in range(n_gone):
                    y, x = gone[i] // width, gone[i] % width
                    for k in range(8):
                        at = (y + dy[k]) * width + x + dx[k]
                        if image[y + dy[k], x + dx[k]] and stamp[at] < turn - 1:
                            stamp[at] = turn - 1
                            front[size] = at
                            size += 1
        size = 0
        for i in range(n_gone):
            y, x = gone[i] // width, gone[i] % width
            for k in range(8):
                at = (y + dy[k]) * width + x + dx[k]
                if image[y + dy[k], x + dx[k]] and stamp[at] != turn:
                    stamp[at] = turn
                    after[size] = at
                    size += 1
        front, after = after, front


def thin(mask: NDArray[np.bool_] | U8) -> U8:
    """Thin a region to its skeleton.

    Parameters
    ----------
    mask
        ``(h, w)``; non-zero is ink. The outermost rows and columns must be empty.

    Returns
    -------
    ndarray
        ``(h, w)`` uint8 of 0 and 1.
    """
    skeleton: U8 = (np.asarray(mask) != 0).astype(np.uint8)
    _thin(skeleton, DELETABLE, OFFSETS_Y, OFFSETS_X)
    return skeleton
