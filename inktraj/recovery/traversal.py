"""Which way the pen went: a beam search over the skeleton graph for the cheapest way to draw every edge.

A hypothesis is a pen somewhere on the graph with some edges drawn. One step draws one more edge: straight on, or after going
back over drawn edges (a stem drawn down and up again), or after a lift. So hypotheses of one level have drawn equally
many edges and can be compared by their cost alone: turning at junctions, retraced length, lifts, unlikely starts and
stops, and ink left behind on the left. All lengths are in units of the word's height.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.recovery.graph import I64, SkeletonGraph, _incidence

F64 = NDArray[np.float64]

LONGEST_WALK = 6  # edges retraced in one step at most
LABELS = 28  # ways to go on looked at in one step
STARTS = 7  # undrawn edges, leftmost first, at which a pen may be set down


@dataclass(frozen=True, slots=True)
class Costs:
    """What the pen's moves cost. The unit is arbitrary; lengths are in heights of the word.

    Parameters
    ----------
    turn, turn_squared
        Turning at a junction, by the angle / π and its square, near the junction.
    turn_far
        The same by the directions seen from further away.
    back
        Turning round at a dead end.
    back_inside
        Turning round on an edge at a junction.
    retrace
        Going over a drawn edge, by length.
    lift
        Lifting the pen and setting it down.
    jump
        Distance between lift and set-down.
    start_right, start_down
        A start right of the leftmost ink not yet drawn; a start below the component's top.
    start_inside, stop_inside
        Starting, stopping at a junction rather than at a dead end.
    leftward, upward
        A stroke's way to the left and up, from its start to its end.
    clockwise
        Turning clockwise, in half turns.
    left_behind
        Distance by which the leftmost ink not yet drawn is behind the pen.
    """

    turn: float = 0.5
    turn_squared: float = 1.5
    turn_far: float = 0.5
    back: float = 0.3
    back_inside: float = 2.0
    retrace: float = 0.8
    lift: float = 1.2
    jump: float = 0.1
    start_right: float = 1.0
    start_down: float = 0.5
    start_inside: float = 0.5
    stop_inside: float = 0.3
    leftward: float = 0.3
    upward: float = 0.15
    clockwise: float = 0.05
    left_behind: float = 0.4


@njit(cache=True)
def _direction(points, a, step, n, skip, reach):  # type: ignore[no-untyped-def]
    """Unit direction of a path from arc length `skip` to `skip + reach` (or its end)."""
    along = 0.0
    x0, y0 = points[a, 0], points[a, 1]
    x1, y1 = x0, y0
    for k in range(1, n):
        px, py = points[a + (k - 1) * step]
        x1, y1 = points[a + k * step]
        along += np.hypot(x1 - px, y1 - py)
        if along <= skip:
            x0, y0 = x1, y1
        elif along >= skip + reach:
            break
    dx, dy = x1 - x0, y1 - y0
    if dx == 0 and dy == 0:
        dx, dy = points[a + (n - 1) * step, 0] - points[a, 0], points[a + (n - 1) * step, 1] - points[a, 1]
    norm = np.hypot(dx, dy)
    if norm < 1e-12:
        return 0.0, 0.0
    return dx / norm, dy / norm


@njit(cache=True)
def _turning(points, a, b, stride):  # type: ignore[no-untyped-def]
    """Sum of the signed angles along a path, in half turns (positive clockwise as seen)."""
    total = 0.0
    ux, uy = 0.0, 0.0
    k = a
    while k < b - 1:
        j = min(k + stride, b - 1)
        vx, vy = points[j, 0] - points[k, 0], points[j, 1] - points[k, 1]
        if k > a:
            total += np.arctan2(ux * vy - uy * vx, ux * vx + uy * vy)
        ux, uy = vx, vy
        k = j
    return total / np.pi


@njit(cache=True)
def _half_edges(nodes, radius, degree, ends, start, points, length, pen, height):  # type: ignore[no-untyped-def]
    """Directions near and far at the start of each half-edge, ``(2 e, 4)``, and its turning ``(2 e,)``."""
    out = np.zeros((2 * len(ends), 4))
    turning = np.zeros(2 * len(ends))
    stride = max(int(0.7 * pen), 2)
    for h in range(2 * len(ends)):
        i, side = h // 2, h % 2
        a, step = (start[i], 1) if side == 0 else (start[i + 1] - 1, -1)
        n = start[i + 1] - start[i]
        v = ends[i, side]
        skip = min(0.8 * radius[v], 0.3 * length[i]) if degree[v] > 1 else 0.0
        out[h, 0], out[h, 1] = _direction(points, a, step, n, skip, 1.2 * pen)
        out[h, 2], out[h, 3] = _direction(points, a, step, n, skip, max(0.2 * height, 2.5 * pen))
        t = _turning(points, start[i], start[i + 1], stride)
        turning[h] = t if side == 0 else -t
    return out, turning


@njit(cache=True)
def _turn_cost(d, e, c, costs):  # type: ignore[no-untyped-def]
    """Arriving over half-edge e and leaving over c: cost of the bend, and of its sign."""
    ix, iy, jx, jy = -d[e ^ 1, 0], -d[e ^ 1, 1], -d[e ^ 1, 2], -d[e ^ 1, 3]
    near = np.arctan2(ix * d[c, 1] - iy * d[c, 0], ix * d[c, 0] + iy * d[c, 1]) / np.pi
    far = np.arctan2(jx * d[c, 3] - jy * d[c, 2], jx * d[c, 2] + jy * d[c, 3]) / np.pi
    return costs[0] * abs(near) + costs[1] * near * near + costs[2] * far * far + costs[14] * near


@njit(cache=True)
def _way_cost(h, nodes, ends, turning, height, costs):  # type: ignore[no-untyped-def]
    """Cost of going along a half-edge for where it leads and how it bends."""
    i, side = h // 2, h % 2
    v, w = ends[i, side], ends[i, 1 - side]
    dx, dy = (nodes[w, 0] - nodes[v, 0]) / height, (nodes[w, 1] - nodes[v, 1]) / height
    return -costs[12] * dx - costs[13] * dy + costs[14] * turning[h]


@njit(cache=True)
def _hash(edge):  # type: ignore[no-untyped-def]
    """A 63-bit number for an edge, so that sets of edges can be told apart by XOR."""
    z = np.uint64(edge) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def _offer(best, n_best, width, rank, cost, parent, last, drawn, lifted, walk, n_walk, score, who, key, moves):  # type: ignore[no-untyped-def]
    """Put a candidate into the sorted list of the `width` best; same edges drawn and same place: the cheaper stays."""
    if n_best == width and rank >= score[best[width - 1], 0]:
        return n_best
    found = -1
    for i in range(n_best):
        if key[best[i]] == drawn and who[best[i], 1] == last:
            if score[best[i], 0] <= rank:
                return n_best
            found = i
            break
    if found >= 0:
        at = found
    elif n_best < width:
        at = n_best
        n_best += 1
    else:
        at = width - 1
    slot = best[at]
    while at > 0 and score[best[at - 1], 0] > rank:
        best[at] = best[at - 1]
        at -= 1
    best[at] = slot
    score[slot, 0], score[slot, 1] = rank, cost
    who[slot, 0], who[slot, 1], who[slot, 2], who[slot, 3] = parent, last, lifted, n_walk
    key[slot] = drawn
    for k in range(n_walk):
        moves[slot, k] = walk[k]
    return n_best


@njit(cache=True)
def _search(local, part, member, first, half, nodes, degree, ends, length, leftmost, directions, turning, height, top, width, costs):  # type: ignore[no-untyped-def]  # noqa: E501
    """Beam search over one part of the graph.

    `local` are its edges by their leftmost x; `member` gives an edge's place in `local` where `part` says that it belongs.
    Returns half-edges in drawing order and for each whether the pen was set down before it.
    """
    n = len(local)
    own = part[local[0]]
    drawn, drawn_next = np.zeros((width, n), np.uint8), np.zeros((width, n), np.uint8)
    cost, cur, key = np.zeros(width), np.full(width, -1), np.zeros(width, np.uint64)
    pointer = np.zeros(width, np.int64)
    back = np.zeros((n, width), np.int32)
    steps = np.zeros((n, width, LONGEST_WALK + 1), np.int64)
    n_steps = np.zeros((n, width), np.int32)
    lifts = np.zeros((n, width), np.bool_)
    best = np.arange(width)
    score, who = np.zeros((width, 2)), np.zeros((width, 4), np.int64)
    new_key, moves = np.zeros(width, np.uint64), np.zeros((width, LONGEST_WALK + 1), np.int64)
    label, before, depth = np.zeros(LABELS, np.int64), np.zeros(LABELS, np.int64), np.zeros(LABELS, np.int64)
    paid, open_ = np.zeros(LABELS), np.zeros(LABELS, np.bool_)
    walk = np.zeros(LONGEST_WALK + 1, np.int64)
    alive = 1
    for level in range(n):
        n_best = 0
        for k in range(width):
            best[k] = k
        for s in range(alive):
            while pointer[s] < n and drawn[s, pointer[s]]:
                pointer[s] += 1
            behind = leftmost[local[pointer[s]]]
            # the second leftmost, for what is left behind once the leftmost is drawn
            after = pointer[s] + 1
            while after < n and drawn[s, after]:
                after += 1
            e = cur[s]
            if e >= 0:  # go on, maybe after going back
                label[0], before[0], depth[0], paid[0], open_[0] = e, -1, 0, cost[s], True
                n_labels = 1
                while True:
                    now = -1
                    for i in range(n_labels):
                        if open_[i] and (now < 0 or paid[i] < paid[now]):
                            now = i
                    if now < 0 or paid[now] > cost[s] + 1.5 * costs[6]:
                        break
                    open_[now] = False
                    h = label[now]
                    v = ends[h // 2, 1 - h % 2]
                    for j in range(first[v], first[v + 1]):
                        c = half[j]
                        i = c // 2
                        if part[i] != own:
                            continue
                        m = member[i]
                        around = c == (h ^ 1) and ends[i, 0] != ends[i, 1]
                        if around and degree[v] > 1:
                            spent = costs[4]
                        elif around:
                            spent = costs[3]
                        else:
                            spent = _turn_cost(directions, h, c, costs)
                        spent += paid[now] + _way_cost(c, nodes, ends, turning, height, costs)
                        if drawn[s, m] == 0:
                            n_walk = depth[now] + 1
                            walk[n_walk - 1] = c
                            k = now
                            while before[k] >= 0:
                                walk[depth[k] - 1] = label[k]
                                k = before[k]
                            w = ends[i, 1 - c % 2]
                            edge = behind
                            if m == pointer[s]:
                                edge = leftmost[local[after]] if after < n else nodes[w, 0]
                            lag = min(max(nodes[w, 0] - edge, 0.0) / height, 1.5)
                            n_best = _offer(
                                best, n_best, width, spent + costs[15] * lag, spent, s, c,
                                key[s] ^ _hash(i), 0, walk, n_walk, score, who, new_key, moves,
                            )  # fmt: skip
                        elif depth[now] < LONGEST_WALK and n_labels < LABELS and drawn[s, m] < 3:
                            spent += costs[5] * length[i] / height
                            known = False
                            for k in range(n_labels):
                                if label[k] == c:
                                    known = True
                                    if open_[k] and spent < paid[k]:
                                        before[k], depth[k], paid[k] = now, depth[now] + 1, spent
                            if not known:
                                label[n_labels], before[n_labels] = c, now
                                depth[n_labels], paid[n_labels], open_[n_labels] = depth[now] + 1, spent, True
                                n_labels += 1
            # lift, and set down at one of the leftmost edges
            base = cost[s]
            if e >= 0:
                base += costs[6]
                if degree[ends[e // 2, 1 - e % 2]] > 1:
                    base += costs[11]
            looked, q = 0, pointer[s]
            while q < n and looked < STARTS:
                if drawn[s, q]:
                    q += 1
                    continue
                looked += 1
                i = local[q]
                for side in range(2):
                    c = 2 * i + side
                    v, w = ends[i, side], ends[i, 1 - side]
                    spent = base + costs[8] * max(nodes[v, 0] - behind, 0.0) / height
                    spent += costs[9] * (nodes[v, 1] - top) / height
                    if degree[v] > 1 and v != w:
                        spent += costs[10]
                    if e >= 0:
                        u = ends[e // 2, 1 - e % 2]
                        spent += costs[7] * np.hypot(nodes[v, 0] - nodes[u, 0], nodes[v, 1] - nodes[u, 1]) / height
                    spent += _way_cost(c, nodes, ends, turning, height, costs)
                    edge = behind
                    if q == pointer[s]:
                        edge = leftmost[local[after]] if after < n else nodes[w, 0]
                    lag = min(max(nodes[w, 0] - edge, 0.0) / height, 1.5)
                    walk[0] = c
                    n_best = _offer(
                        best, n_best, width, spent + costs[15] * lag, spent, s, c,
                        key[s] ^ _hash(i), 1, walk, 1, score, who, new_key, moves,
                    )  # fmt: skip
                q += 1
        new_pointer = np.empty(n_best, np.int64)
        for k in range(n_best):
            slot = best[k]
            parent = who[slot, 0]
            drawn_next[k] = drawn[parent]
            new_pointer[k] = pointer[parent]
            back[level, k], lifts[level, k], n_steps[level, k] = parent, who[slot, 2] == 1, who[slot, 3]
            for j in range(who[slot, 3]):
                steps[level, k, j] = moves[slot, j]
                drawn_next[k, member[moves[slot, j] // 2]] += 1
        for k in range(n_best):
            slot = best[k]
            cost[k], cur[k], key[k], pointer[k] = score[slot, 1], who[slot, 1], new_key[slot], new_pointer[k]
        drawn, drawn_next = drawn_next, drawn
        alive = n_best
    k = 0
    for s in range(alive):
        if degree[ends[cur[s] // 2, 1 - cur[s] % 2]] > 1:
            cost[s] += costs[11]
        if cost[s] < cost[k]:
            k = s
    total = 0
    order = np.empty(n, np.int64)
    for level in range(n - 1, -1, -1):
        order[level] = k
        total += n_steps[level, k]
        k = back[level, k]
    path, down = np.empty(total, np.int64), np.zeros(total, np.bool_)
    t = 0
    for level in range(n):
        k = order[level]
        down[t] = lifts[level, k]
        for j in range(n_steps[level, k]):
            path[t] = steps[level, k, j]
            t += 1
    return path, down


@njit(cache=True)
def _components(n_nodes, ends):  # type: ignore[no-untyped-def]
    """Number of the connected component of each edge, and how many there are."""
    parent = np.arange(n_nodes)
    for i in range(len(ends)):
        pair = np.empty(2, np.int64)
        for side in range(2):
            v = ends[i, side]
            while parent[v] != v:
                parent[v] = parent[parent[v]]
                v = parent[v]
            pair[side] = v
        parent[pair[1]] = pair[0]
    name = np.full(n_nodes, -1, np.int64)
    out = np.empty(len(ends), np.int64)
    n = 0
    for i in range(len(ends)):
        v = ends[i, 0]
        while parent[v] != v:
            v = parent[v]
        if name[v] < 0:
            name[v] = n
            n += 1
        out[i] = name[v]
    return out, n


@njit(cache=True)
def _traverse(nodes, radius, degree, ends, start, points, length, pen, height, width, largest, costs):  # type: ignore[no-untyped-def]
    """Search every component; returns path, pen-down marks and component of each half-edge of the path."""
    n_edges = len(ends)
    first, half = _incidence(len(nodes), ends, np.ones(n_edges, np.bool_))
    directions, turning = _half_edges(nodes, radius, degree, ends, start, points, length, pen, height)
    component, n_components = _components(len(nodes), ends)
    leftmost = np.empty(n_edges)
    for i in range(n_edges):
        leftmost[i] = points[start[i] : start[i + 1], 0].min()
    by_x = np.argsort(leftmost, kind="mergesort")
    by_component = by_x[np.argsort(component[by_x], kind="mergesort")]
    part, member = np.full(n_edges, -1, np.int64), np.zeros(n_edges, np.int64)
    capacity = 8 * n_edges + 8
    path, down, owner = np.empty(capacity, np.int64), np.zeros(capacity, np.bool_), np.empty(capacity, np.int64)
    n, a, n_parts = 0, 0, 0
    while a < n_edges:
        b = a
        while b < n_edges and component[by_component[b]] == component[by_component[a]]:
            b += 1
        beam = width if b - a <= largest else 2
        while a < b:  # a component too large for the beam is cut into vertical strips of edges
            c = min(b, a + largest)
            local = by_component[a:c]
            top = np.inf
            for k in range(c - a):
                part[local[k]], member[local[k]] = n_parts, k
                top = min(top, points[start[local[k]] : start[local[k] + 1], 1].min())
            found, lifted = _search(
                local, part, member, first, half, nodes, degree, ends, length, leftmost, directions, turning,
                height, top, beam, costs,
            )  # fmt: skip
            for k in range(len(found)):
                path[n], down[n], owner[n] = found[k], lifted[k], component[local[0]]
                n += 1
            n_parts += 1
            a = c
    return path[:n].copy(), down[:n].copy(), owner[:n].copy()


def traverse(
    graph: SkeletonGraph, *, pen: float, height: float, beam: int = 16, largest: int = 300, costs: Costs | None = None
) -> tuple[I64, I64, I64]:
    """Find the strokes which draw the graph.

    Parameters
    ----------
    graph
        The skeleton graph.
    pen
        Pen width in pixels.
    height
        Height of the word's ink in pixels: the unit of all lengths in the costs.
    beam
        How many hypotheses are kept.
    largest
        A component of more edges is drawn in pieces, each with a narrow beam.
    costs
        What the pen's moves cost.

    Returns
    -------
    path, offsets, component
        Half-edges in drawing order; stroke ``k`` is ``path[offsets[k]:offsets[k + 1]]``; the connected component of each
        stroke. Every edge is drawn at least once.
    """
    if not len(graph.ends):
        return np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64)
    path, down, owner = _traverse(
        graph.nodes,
        graph.radius,
        graph.degree(),
        graph.ends,
        graph.start,
        graph.points,
        graph.lengths(),
        pen,
        height,
        beam,
        largest,
        np.array(astuple(costs or Costs())),
    )
    begin = np.flatnonzero(down)
    return path, np.append(begin, len(path)).astype(np.int64), owner[begin]
