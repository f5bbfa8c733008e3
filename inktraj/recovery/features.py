"""What the learned recoverer looks at: features of the graph's edges, and of each choice the pen has.

Conventions
-----------
* Lengths are in units of the word's height, the ink's upper left corner is (0, 0); x right, y down; angles in radians.
* Dots are edges of one point, from a node to itself; of their two half-edges only the first is ever drawn.
* Half-edges are numbered as in `inktraj.recovery.graph`: ``2 i`` runs along edge ``i``, ``2 i + 1`` against it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.recovery.bends import cut_at_bends
from inktraj.recovery.graph import components, direction_along, incidence
from inktraj.recovery.vectorize import WordGraph

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

SHAPE = 16  # points by which an edge's shape is described
N_EDGE = 2 * SHAPE + 54  # features of an edge
N_GO = 46  # features of going on over a half-edge, or of lifting the pen
N_START = 36  # features of setting the pen down at a half-edge


class Lines(NamedTuple):
    """The bare geometry: what the features are computed from.

    Parameters
    ----------
    nodes, radius
        ``(n, 2)`` places and ``(n,)`` ink radii.
    ends, start, points
        ``(e, 2)``, ``(e + 1,)``, ``(p, 2)`` as in `SkeletonGraph`.
    thickness
        ``(p,)`` ink width at each point, over the pen's width.
    dot
        ``(e,)`` bool.
    pen
        Pen width.
    """

    nodes: Any
    radius: Any
    ends: Any
    start: Any
    points: Any
    thickness: Any
    dot: Any
    pen: float


class Net(NamedTuple):
    """The graph as the policy sees it (arrays; units as in the module's conventions)."""

    nodes: Any  # (n, 2)
    degree: Any  # (n,)
    ends: Any  # (e, 2)
    length: Any  # (e,)
    dot: Any  # (e,)
    first: Any  # (n + 1,) offsets into half
    half: Any  # half-edges by the node which they leave
    component: Any  # (e,)
    near: Any  # (2 e, 2) unit direction where a half-edge starts
    far: Any  # (2 e, 2) and a little further on
    begin: Any  # (2 e, 2) where it comes out of the junction's blot
    turning: Any  # (2 e,) signed turning along it / pi
    leftmost: Any  # (e,)
    bridge: Any  # (e,) taking it away cuts the component in two
    beyond: Any  # (2 e,) then the length of ink behind its far end
    box: Any  # (c, 4) of each component: x0, x1, y0, y1
    ink: Any  # (c,) length of each component
    total: float
    pen: float


def lines_of(word: WordGraph) -> Lines:
    """Bring a word's graph into the units of the features, dots included."""
    g = cut_at_bends(word.graph, word.pen, word.height)
    lone = np.flatnonzero(g.degree() == 0)
    dots = np.concatenate([g.nodes[lone], word.specks])
    at = np.concatenate([lone, len(g.nodes) + np.arange(len(word.specks))]).astype(np.int64)
    nodes = np.concatenate([g.nodes, word.specks])
    speck_radius = np.sqrt(word.speck_areas / np.pi) * word.factor
    radius = np.concatenate([g.radius, speck_radius])
    points = np.concatenate([g.points, dots])
    ends = np.concatenate([g.ends, np.stack([at, at], 1)])
    start = np.concatenate([g.start, g.start[-1] + 1 + np.arange(len(dots))]).astype(np.int64)
    x = np.clip(np.rint(g.points[:, 0]).astype(np.int64), 0, word.distance.shape[1] - 1)
    y = np.clip(np.rint(g.points[:, 1]).astype(np.int64), 0, word.distance.shape[0] - 1)
    thickness = np.concatenate([2 * word.distance[y, x] - 0.5, 2 * radius[at]]) / word.pen
    dot = np.arange(len(ends)) >= len(g.ends)
    low = word.origin
    k = 1 / word.height
    return Lines((nodes - low) * k, radius * k, ends, start, (points - low) * k, thickness, dot, word.pen * k)


@njit(cache=True, nogil=True)
def _turning(points, a, b, gap):  # type: ignore[no-untyped-def]
    """Sums of the signed and of the absolute angles along a path, over pi; positive clockwise as seen."""
    total, absolute = 0.0, 0.0
    ux, uy, ul = 0.0, 0.0, 0.0
    k = a
    while k < b - 1:
        j = k + 1
        while j < b - 1 and np.hypot(points[j, 0] - points[k, 0], points[j, 1] - points[k, 1]) < gap:
            j += 1
        vx, vy = points[j, 0] - points[k, 0], points[j, 1] - points[k, 1]
        if ul > 0:
            angle = np.arctan2(ux * vy - uy * vx, ux * vx + uy * vy)
            total += angle
            absolute += abs(angle)
        ux, uy, ul = vx, vy, np.hypot(vx, vy)
        k = j
    return total / np.pi, absolute / np.pi


@njit(cache=True, nogil=True)
def _bridges(ends, first, half, length, component, ink):  # type: ignore[no-untyped-def]
    """Which edges are bridges, and the ink behind each half-edge's far end if so (Tarjan's low points)."""
    n, e = len(first) - 1, len(ends)
    bridge, beyond = np.zeros(e, np.bool_), np.zeros(2 * e)
    seen, low = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    below = np.zeros(n)
    stack, came, at = np.empty(n, np.int64), np.full(n, -1, np.int64), first[:-1].copy()
    used = np.zeros(e, np.bool_)
    clock = 0
    for source in range(n):
        if seen[source] >= 0 or first[source + 1] == first[source]:
            continue
        stack[0], top = source, 1
        seen[source] = low[source] = clock
        clock += 1
        while top > 0:
            v = stack[top - 1]
            if at[v] < first[v + 1]:
                h = half[at[v]]
                at[v] += 1
                i = h // 2
                if used[i]:
                    continue
                used[i] = True
                w = ends[i, 1 - h % 2]
                if seen[w] < 0:
                    seen[w] = low[w] = clock
                    clock += 1
                    came[w] = h
                    stack[top] = w
                    top += 1
                else:
                    low[v] = min(low[v], seen[w])
                    below[v] += length[i]
                continue
            top -= 1
            h = came[v]
            if h < 0:
                continue
            u = ends[h // 2, h % 2]
            low[u] = min(low[u], low[v])
            if low[v] > seen[u]:
                i = h // 2
                bridge[i] = True
                beyond[h] = below[v]
                beyond[h ^ 1] = max(ink[component[i]] - below[v] - length[i], 0.0)
            below[u] += below[v] + length[h // 2]
    return bridge, beyond


@njit(cache=True, nogil=True)
def make_net(lines):  # type: ignore[no-untyped-def]
    """The graph with all that the choices' features need; see `Net`."""
    nodes, ends, start, points = lines.nodes, lines.ends, lines.start, lines.points
    e = len(ends)
    first, half = incidence(len(nodes), ends, np.ones(e, np.bool_))
    degree = first[1:] - first[:-1]
    length = np.full(e, 0.05 * lines.pen)
    leftmost = np.empty(e)
    for i in range(e):
        leftmost[i] = points[start[i], 0]
        for k in range(start[i] + 1, start[i + 1]):
            length[i] += np.hypot(points[k, 0] - points[k - 1, 0], points[k, 1] - points[k - 1, 1])
            leftmost[i] = min(leftmost[i], points[k, 0])
    component, n = components(len(nodes), ends)
    box, ink = np.zeros((n, 4)), np.zeros(n)
    box[:, 0], box[:, 2] = np.inf, np.inf
    box[:, 1], box[:, 3] = -np.inf, -np.inf
    for i in range(e):
        c = component[i]
        ink[c] += length[i]
        for k in range(start[i], start[i + 1]):
            box[c, 0], box[c, 1] = min(box[c, 0], points[k, 0]), max(box[c, 1], points[k, 0])
            box[c, 2], box[c, 3] = min(box[c, 2], points[k, 1]), max(box[c, 3], points[k, 1])
    bridge, beyond = _bridges(ends, first, half, length, component, ink)
    near, far, begin = np.zeros((2 * e, 2)), np.zeros((2 * e, 2)), np.zeros((2 * e, 2))
    turning = np.zeros(2 * e)
    for h in range(2 * e):
        i, side = h // 2, h % 2
        a, step = (start[i], 1) if side == 0 else (start[i + 1] - 1, -1)
        count = start[i + 1] - start[i]
        v = ends[i, side]
        skip = min(0.8 * lines.radius[v], 0.3 * length[i]) if degree[v] > 2 else 0.0
        begin[h, 0], begin[h, 1], near[h, 0], near[h, 1] = direction_along(
            points, a, step, count, skip, 1.3 * lines.pen
        )
        _, _, far[h, 0], far[h, 1] = direction_along(points, a, step, count, skip, 0.22)
        if side == 0:
            turning[h], _ = _turning(points, start[i], start[i + 1], 0.6 * lines.pen)
            turning[h + 1] = -turning[h]
    return Net(
        nodes, degree, ends, length, lines.dot, first, half, component, near, far, begin, turning, leftmost,
        bridge, beyond, box, ink, ink.sum(), lines.pen,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def forward_side(net, i):  # type: ignore[no-untyped-def]
    """Which half-edge of edge i leads right (or, where it is steep, down): 0 or 1."""
    a, b = net.nodes[net.ends[i, 0]], net.nodes[net.ends[i, 1]]
    d = (b[0] - a[0]) + 0.35 * (b[1] - a[1])
    if net.ends[i, 0] == net.ends[i, 1]:  # a loop: as it leaves
        d = net.near[2 * i, 0] + 0.35 * net.near[2 * i, 1]
    return 0 if d >= 0 else 1


@njit(cache=True, nogil=True)
def forward_sides(net):  # type: ignore[no-untyped-def]
    """`forward_side` of every edge."""
    out = np.empty(len(net.ends), np.int64)
    for i in range(len(out)):
        out[i] = forward_side(net, i)
    return out


@njit(cache=True, nogil=True)
def edge_features(lines, net, out):  # type: ignore[no-untyped-def]
    """Features of each edge along its `forward_side`, into ``(e, N_EDGE)`` float32."""
    points, start = lines.points, lines.start
    width = 0.0
    for k in range(len(points)):
        width = max(width, points[k, 0])
    for i in range(len(net.ends)):
        side = forward_side(net, i)
        h = 2 * i + side
        a, step = (start[i], 1) if side == 0 else (start[i + 1] - 1, -1)
        n = start[i + 1] - start[i]
        f = out[i]
        f[:] = 0
        # the shape: points evenly spaced along the arc
        total = 0.0
        cx, cy, thick, thickest = 0.0, 0.0, 0.0, 0.0
        for k in range(n):
            p = a + k * step
            cx += points[p, 0] / n
            cy += points[p, 1] / n
            thick += lines.thickness[p] / n
            thickest = max(thickest, lines.thickness[p])
            if k > 0:
                total += np.hypot(points[p, 0] - points[p - step, 0], points[p, 1] - points[p - step, 1])
        k, along, d = 0, 0.0, 0.0
        for m in range(SHAPE):
            want = total * m / (SHAPE - 1)
            while k < n - 2:
                p = a + k * step
                d = np.hypot(points[p + step, 0] - points[p, 0], points[p + step, 1] - points[p, 1])
                if along + d >= want:
                    break
                along += d
                k += 1
            p = a + k * step
            x, y = points[p]
            if n > 1:
                d = np.hypot(points[p + step, 0] - x, points[p + step, 1] - y)
                t = min((want - along) / d, 1.0) if d > 0 else 0.0
                x, y = x + t * (points[p + step, 0] - x), y + t * (points[p + step, 1] - y)
            f[2 * m], f[2 * m + 1] = 2 * (x - cx), 2 * (y - cy)
        j = 2 * SHAPE
        f[j], f[j + 1] = min(cx, 12.0) / 4, cy
        for m in range(5):
            w = 2 * np.pi / 2.0 ** (3 - m)
            f[j + 2 + 2 * m], f[j + 3 + 2 * m] = np.sin(w * cx), np.cos(w * cx)
        f[j + 12], f[j + 13], f[j + 14], f[j + 15] = (
            np.sin(np.pi * cy), np.cos(np.pi * cy), np.sin(2 * np.pi * cy), np.cos(2 * np.pi * cy),
        )  # fmt: skip
        v, w_ = net.ends[i, side], net.ends[i, 1 - side]
        f[j + 16], f[j + 17] = min(total, 6.0), np.log(total + net.pen)
        f[j + 18], f[j + 19] = net.nodes[w_, 0] - net.nodes[v, 0], net.nodes[w_, 1] - net.nodes[v, 1]
        signed, absolute = _turning(points, start[i], start[i + 1], 0.6 * net.pen)
        f[j + 20] = max(-3.0, min(3.0, signed if side == 0 else -signed))
        f[j + 21] = min(absolute, 6.0) / 2
        f[j + 22 + min(net.degree[v], 4)] = 1  # degrees 1, 2, 3, 4+ at 23..26
        f[j + 26 + min(net.degree[w_], 4)] = 1  # 27..30
        f[j + 31], f[j + 32] = lines.radius[v] / net.pen, lines.radius[w_] / net.pen
        f[j + 33] = 1.0 if net.dot[i] else 0.0
        f[j + 34] = 1.0 if v == w_ and not net.dot[i] else 0.0
        f[j + 35], f[j + 36] = net.near[h]
        f[j + 37], f[j + 38] = net.near[h ^ 1]
        f[j + 39], f[j + 40] = net.far[h]
        f[j + 41], f[j + 42] = net.far[h ^ 1]
        f[j + 43] = 1.0 if net.bridge[i] else 0.0
        f[j + 44], f[j + 45] = min(net.beyond[h], 6.0) / 2, min(net.beyond[h ^ 1], 6.0) / 2
        c = net.component[i]
        f[j + 46] = min(net.ink[c], 12.0) / 4
        f[j + 47], f[j + 48] = (cx - net.box[c, 0]) / 2, (net.box[c, 1] - cx) / 2
        f[j + 49], f[j + 50] = cy - net.box[c, 2], net.box[c, 3] - cy
        f[j + 51], f[j + 52] = min(thick, 3.0), min(thickest, 4.0) / 2
        f[j + 53] = min(width, 12.0) / 4


@njit(cache=True, nogil=True)
def shared_ends(net, out):  # type: ignore[no-untyped-def]
    """Which ends two edges share, seen along their `forward_side`: bits into ``(e, e)`` uint8.

    1: this one's start is the other's start; 2: start, end; 4: end, start; 8: end, end; 16: of one component.
    """
    e = len(net.ends)
    out[:] = 0
    side = forward_sides(net)
    for i in range(e):
        for k in range(e):
            if net.component[i] == net.component[k]:
                out[i, k] = 16
    for v in range(len(net.nodes)):
        for p in range(net.first[v], net.first[v + 1]):
            for q in range(net.first[v], net.first[v + 1]):
                g, h = net.half[p], net.half[q]
                if g // 2 == h // 2:
                    continue
                own = 0 if g % 2 == side[g // 2] else 1
                other = 0 if h % 2 == side[h // 2] else 1
                out[g // 2, h // 2] |= 1 << (2 * own + other)


@njit(cache=True, nogil=True)
def _angle(ax, ay, bx, by):  # type: ignore[no-untyped-def]
    return np.arctan2(ax * by - ay * bx, ax * bx + ay * by)


class Pen(NamedTuple):
    """Where the pen is, and what it has left; filled by `look`."""

    drawn: Any  # (e,) how often each edge has been drawn
    open_ink: Any  # (c,) length of each component not yet drawn
    state: Any  # see the indices below


LAST = 0  # the half-edge drawn last in this stroke, -1 before the first stroke
TURNED = 1  # the last move turned round
COUNT = 2  # half-edges of this stroke
WAY = 3  # their length
RIGHTMOST = 4  # of all nodes reached
STROKES = 5  # strokes begun
OPEN = 6  # length not yet drawn
FRONT = 7  # leftmost x of what is not yet drawn, -1 if none
N_STATE = 8


@njit(cache=True, nogil=True)
def look(net, drawn, state):  # type: ignore[no-untyped-def]
    """Find what is left to draw: its length and its leftmost x."""
    left, front = 0.0, np.inf
    for i in range(len(drawn)):
        if drawn[i] == 0:
            left += net.length[i]
            front = min(front, net.leftmost[i])
    state[OPEN], state[FRONT] = left, front if left > 0 else -1.0


@njit(cache=True, nogil=True)
def move(net, pen, h, starts):  # type: ignore[no-untyped-def]
    """Draw half-edge h, as the first of a stroke or as the next."""
    drawn, open_ink, state = pen
    last = int(state[LAST])
    i = h // 2
    if drawn[i] == 0:
        open_ink[net.component[i]] -= net.length[i]
    drawn[i] += 1
    state[TURNED] = 1.0 if not starts and h == last ^ 1 else 0.0
    state[COUNT] = 1 if starts else state[COUNT] + 1
    state[WAY] = net.length[i] if starts else state[WAY] + net.length[i]
    state[STROKES] += 1.0 if starts else 0.0
    state[RIGHTMOST] = max(state[RIGHTMOST], net.nodes[net.ends[i, 1 - h % 2], 0])
    state[LAST] = h
    look(net, drawn, state)


@njit(cache=True, nogil=True, fastmath=True)
def go_features(net, pen, c, f):  # type: ignore[no-untyped-def]
    """Features of going on over half-edge c, or of lifting the pen (c = -1), into ``(N_GO,)``."""
    drawn, open_ink, state = pen
    e = int(state[LAST])
    i = e // 2
    v = net.ends[i, 1 - e % 2]
    ix, iy = -net.near[e ^ 1, 0], -net.near[e ^ 1, 1]
    f[:] = 0
    free, straightest = 0, np.pi
    for q in range(net.first[v], net.first[v + 1]):
        d = net.half[q]
        if d == e ^ 1 or d == c or (c >= 0 and d // 2 == c // 2) or drawn[d // 2] > 0:
            continue
        free += 1
        straightest = min(straightest, abs(_angle(ix, iy, net.near[d, 0], net.near[d, 1])))
    f[0] = free / 3
    f[1] = straightest / np.pi
    f[2] = 1.0 if drawn[i] > 1 else 0.0
    f[3] = state[TURNED]
    f[4] = min(state[COUNT], 8) / 8
    f[5] = min(state[WAY], 8.0) / 4
    f[6] = state[OPEN] / net.total
    f[7] = 1.0 if state[OPEN] <= 0 else 0.0
    f[8] = max(-4.0, min(4.0, net.nodes[v, 0] - state[FRONT])) if state[OPEN] > 0 else 0.0
    f[9] = 1.0 if net.degree[v] == 1 else 0.0
    f[10] = min(net.degree[v], 6) / 4
    f[11] = net.nodes[v, 1]
    f[12], f[13] = ix, iy
    f[14] = max(-2.0, min(2.0, net.turning[e]))
    f[15] = min(net.length[i], 3.0)
    left = open_ink[net.component[i]]
    f[16] = min(left, 3.0)
    f[17] = 1.0 if left < 1e-6 else 0.0
    f[18] = max(-3.0, min(3.0, state[RIGHTMOST] - net.nodes[v, 0]))
    if c < 0:
        f[19] = 1
        return
    k = c // 2
    w = net.ends[k, 1 - c % 2]
    near = _angle(ix, iy, net.near[c, 0], net.near[c, 1])
    far = _angle(-net.far[e ^ 1, 0], -net.far[e ^ 1, 1], net.far[c, 0], net.far[c, 1])
    f[20], f[21], f[22] = np.cos(near), np.sin(near), abs(near) / np.pi
    f[23], f[24] = np.cos(far), np.sin(far)
    f[25] = 1.0 if c == e ^ 1 else 0.0
    times = drawn[k]
    f[26] = 1.0 if times == 0 else 0.0
    f[27] = 1.0 if times == 1 else 0.0
    f[28] = min(net.length[k], 3.0)
    f[29] = 1.0 if net.degree[w] == 1 else 0.0
    f[30] = 1.0 if v == w else 0.0
    other = np.pi
    for q in range(net.first[v], net.first[v + 1]):
        d = net.half[q]
        if d == e ^ 1 or d // 2 == k or drawn[d // 2] > 0:
            continue
        other = min(other, abs(_angle(-net.near[c, 0], -net.near[c, 1], net.near[d, 0], net.near[d, 1])))
    f[31] = other / np.pi
    ahead, ink = 0, 0.0
    for q in range(net.first[w], net.first[w + 1]):
        d = net.half[q]
        if d // 2 != k and drawn[d // 2] == 0:
            ahead += 1
            ink += net.length[d // 2]
    f[32], f[33] = ahead / 3, min(ink, 2.0)
    f[34], f[35] = net.near[c]
    f[36] = max(-3.0, min(3.0, net.nodes[w, 0] - net.nodes[v, 0]))
    f[37] = max(-2.0, min(2.0, net.nodes[w, 1] - net.nodes[v, 1]))
    f[38] = max(-2.0, min(2.0, net.turning[c]))
    cx, cy = net.begin[c, 0] - net.begin[e ^ 1, 0], net.begin[c, 1] - net.begin[e ^ 1, 1]
    gap = np.hypot(cx, cy)
    if gap > 0.1 * net.pen:
        f[39], f[40] = (cx * ix + cy * iy) / gap, (cx * net.near[c, 0] + cy * net.near[c, 1]) / gap
    f[41] = min(gap / net.pen, 4.0) / 2
    f[42] = min(net.length[k] / net.pen, 6.0) / 3
    f[43] = 1.0 if net.bridge[k] else 0.0
    f[44] = min(net.beyond[c], 4.0)
    f[45] = max(-3.0, min(3.0, net.leftmost[k] - state[FRONT])) if state[OPEN] > 0 else 0.0


@njit(cache=True, nogil=True, fastmath=True)
def start_features(net, pen, c, f):  # type: ignore[no-untyped-def]
    """Features of setting the pen down at the start of half-edge c, into ``(N_START,)``."""
    drawn, open_ink, state = pen
    last = int(state[LAST])
    k = c // 2
    v, w = net.ends[k, c % 2], net.ends[k, 1 - c % 2]
    x, y = net.nodes[v]
    f[:] = 0
    px, py, here = 0.0, 0.5, -1
    if last >= 0:
        here = net.ends[last // 2, 1 - last % 2]
        px, py = net.nodes[here]
        f[31] = 1.0 if net.component[last // 2] == net.component[k] else 0.0
    else:
        f[19] = 1
    f[0], f[1] = max(-5.0, min(5.0, x - px)), max(-2.0, min(2.0, y - py))
    f[2] = np.log(np.hypot(x - px, y - py) + net.pen)
    f[3] = 1.0 if net.degree[v] == 1 else 0.0
    f[4] = net.degree[v] % 2
    f[5], f[6] = net.near[c]
    f[7] = min(net.length[k], 3.0)
    f[8] = max(-3.0, min(3.0, net.nodes[w, 0] - x))
    f[9] = max(-2.0, min(2.0, net.nodes[w, 1] - y))
    f[10] = max(-1.0, min(5.0, x - state[FRONT]))
    m = net.component[k]
    f[11] = 1.0 if open_ink[m] > net.ink[m] - 1e-6 else 0.0
    f[12] = min(net.ink[m], 6.0) / 2
    f[13] = min(net.box[m, 1] - net.box[m, 0], 4.0) / 2
    f[14] = net.box[m, 3] - net.box[m, 2]
    f[15] = 1.0 if net.dot[k] else 0.0
    other, free, used = np.pi, 0, 0
    for q in range(net.first[v], net.first[v + 1]):
        d = net.half[q]
        if d // 2 == k:
            continue
        if drawn[d // 2] == 0:
            free += 1
            other = min(other, abs(_angle(-net.near[c, 0], -net.near[c, 1], net.near[d, 0], net.near[d, 1])))
        else:
            used += 1
    f[16], f[17], f[18] = other / np.pi, free / 3, min(used, 3) / 2
    f[20] = y
    f[21] = state[OPEN] / net.total
    f[22] = 1.0 if net.degree[w] == 1 else 0.0
    f[23] = max(-2.0, min(2.0, net.turning[c]))
    middle = (net.box[m, 0] + net.box[m, 1]) / 2
    f[24] = max(-1.0, min(6.0, net.box[m, 0] - state[FRONT]))
    f[25] = max(-4.0, min(6.0, state[RIGHTMOST] - middle))
    f[26] = max(-2.0, min(6.0, middle - px))
    f[27] = max(-4.0, min(6.0, state[RIGHTMOST] - x))
    f[28] = (net.box[m, 2] + net.box[m, 3]) / 2
    f[29] = 1.0 if net.bridge[k] else 0.0
    f[30] = min(net.beyond[c], 4.0)
    f[32] = 1.0 if v == here else 0.0
    f[33] = min(state[STROKES], 8) / 8
    f[34] = min(open_ink[m], 6.0) / 2
    f[35] = min(net.degree[v], 6) / 4
