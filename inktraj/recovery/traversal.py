"""Which way the pen went: a beam search over the skeleton graph for the cheapest way to draw every edge.

A hypothesis is a pen somewhere on the graph with some edges drawn. One step draws one more edge: straight on, or after
going back over drawn edges (a stem drawn down and up again), or after a lift. So hypotheses of one level have drawn
equally many edges and can be compared by their cost alone: turning at junctions, retraced length, lifts, unlikely
starts and stops, and ink left behind on the left. All lengths are in units of the word's height.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.recovery.graph import I64, SkeletonGraph, components, direction_along, incidence

F64 = NDArray[np.float64]

LONGEST_WALK = 6  # edges retraced in one step at most
LABELS = 28  # ways to go on looked at in one step
TRIES = 300  # half-edges looked at in one step: where texture melts into one node, hundreds meet there
STARTS = 7  # undrawn edges, leftmost first, at which a pen may be set down
MOST_LAG = 1.5  # ink left behind counts up to so many heights
LARGEST_PART = 300  # edges of a component searched together; a larger one is drawn in vertical strips


class Costs(NamedTuple):
    """What the pen's moves cost. The unit is arbitrary; lengths are in heights of the word.

    Parameters
    ----------
    turn, turn_squared
        Turning at a junction, by the angle / π and by its square.
    crossing
        Not going straight on where strokes cross.
    back
        Turning round at a dead end; at a junction it costs nothing more than the way back.
    retrace
        Going over a drawn edge, by length.
    lift
        Lifting the pen and setting it down.
    jump
        Distance between lift and set-down.
    start_right, start_down
        A start right of the leftmost ink not yet drawn; a start below the component's top.
    stop_inside
        Stopping at a junction rather than at a dead end.
    leftward, upward
        A stroke's way to the left and up, from its start to its end.
    clockwise
        Turning clockwise, in half turns.
    left_behind
        Distance by which the leftmost ink not yet drawn is behind the pen.
    """

    turn: float = 0.12
    turn_squared: float = 0.81
    crossing: float = 0.8
    back: float = 0.06
    retrace: float = 0.73
    lift: float = 0.64
    jump: float = 0.46
    start_right: float = 1.89
    start_down: float = 1.44
    stop_inside: float = 0.07
    leftward: float = 0.5
    upward: float = 0.6
    clockwise: float = 0.08
    left_behind: float = 3.29


class _Net(NamedTuple):
    """The whole graph as the search needs it (arrays; half-edges as in `inktraj.recovery.graph`)."""

    nodes: Any  # (n, 2)
    degree: Any  # (n,)
    ends: Any  # (e, 2)
    length: Any  # (e,) in heights
    leftmost: Any  # (e,) smallest x of each edge
    first: Any  # (n + 1,) offsets into half
    half: Any  # half-edges by the node which they leave
    directions: Any  # (2 e, 2) unit direction at the start of each half-edge
    straight: Any  # (2 e,) the half-edge that goes straight on over a crossing at the end of each half-edge, or -1
    turning: Any  # (2 e,) half turns along each half-edge
    part: Any  # (e,) number of the part that is searched together
    member: Any  # (e,) place in the part's list
    optional: Any  # (e,) need not be drawn
    height: float


class _Beam(NamedTuple):
    """Hypotheses, one a row."""

    drawn: Any  # (k, n) how often each of the part's edges has been drawn
    cost: Any  # (k,)
    pen: Any  # (k,) the last half-edge, -1 before the first
    key: Any  # (k,) hash of the set of drawn edges
    front: Any  # (k,) place of the leftmost edge not yet drawn
    lagging: Any  # (k,) and of the next one


class _Offers(NamedTuple):
    """The best steps found for the next level, in slots which `best` lists by rank."""

    best: Any  # (k,) slots
    rank: Any  # (k,) cost and what is left behind
    cost: Any  # (k,)
    parent: Any  # (k,)
    lifted: Any  # (k,)
    key: Any  # (k,)
    walk: Any  # (k, LONGEST_WALK + 1) half-edges
    size: Any  # (k,) how many


class _History(NamedTuple):
    """What each level kept: where each hypothesis came from and what it drew."""

    parent: Any  # (levels, k)
    lifted: Any  # (levels, k)
    walk: Any  # (levels, k, LONGEST_WALK + 1)
    size: Any  # (levels, k)


@njit(cache=True)
def _from(net, h):  # type: ignore[no-untyped-def]
    """The node which a half-edge leaves."""
    return net.ends[h // 2, h % 2]


@njit(cache=True)
def _to(net, h):  # type: ignore[no-untyped-def]
    """The node to which a half-edge leads."""
    return net.ends[h // 2, 1 - h % 2]


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
def _half_edges(radius, degree, ends, start, points, length, pen):  # type: ignore[no-untyped-def]
    """Unit direction at the start of each half-edge, ``(2 e, 2)``, and its turning ``(2 e,)``."""
    out = np.zeros((2 * len(ends), 2))
    turning = np.zeros(2 * len(ends))
    stride = max(int(0.7 * pen), 2)
    for h in range(2 * len(ends)):
        i, side = h // 2, h % 2
        a, step = (start[i], 1) if side == 0 else (start[i + 1] - 1, -1)
        n = start[i + 1] - start[i]
        v = ends[i, side]
        skip = min(0.8 * radius[v], 0.3 * length[i]) if degree[v] > 1 else 0.0
        _, _, out[h, 0], out[h, 1] = direction_along(points, a, step, n, skip, 1.2 * pen)
        t = _turning(points, start[i], start[i + 1], stride)
        turning[h] = t if side == 0 else -t
    return out, turning


@njit(cache=True)
def _straight_on(first, half, directions):  # type: ignore[no-untyped-def]
    """Pair the half-edges which are each other's straightest continuation at a node of four or more."""
    best, partner = np.full(len(half), -1, np.int64), np.full(len(half), -1, np.int64)
    for v in range(len(first) - 1):
        if first[v + 1] - first[v] < 4:
            continue
        for j in range(first[v], first[v + 1]):
            a = half[j]
            least = -0.7  # within about 45 degrees
            for k in range(first[v], first[v + 1]):
                b = half[k]
                cosine = directions[a, 0] * directions[b, 0] + directions[a, 1] * directions[b, 1]
                if b != a and cosine < least:
                    least, best[a] = cosine, b
    for a in range(len(half)):
        if best[a] >= 0 and best[best[a]] == a:
            partner[a ^ 1] = best[a]  # arriving over a's other side
    return partner


@njit(cache=True)
def _turn_cost(net, h, c, costs):  # type: ignore[no-untyped-def]
    """Arriving over half-edge h and leaving over c."""
    if c == h ^ 1 and net.ends[h // 2, 0] != net.ends[h // 2, 1]:
        return costs.back if net.degree[_to(net, h)] == 1 else 0.0
    d = net.directions
    missed = costs.crossing if net.straight[h] >= 0 and net.straight[h] != c else 0.0
    x, y = -d[h ^ 1, 0], -d[h ^ 1, 1]
    angle = np.arctan2(x * d[c, 1] - y * d[c, 0], x * d[c, 0] + y * d[c, 1]) / np.pi
    return missed + costs.turn * abs(angle) + costs.turn_squared * angle * angle + costs.clockwise * angle


@njit(cache=True)
def _way_cost(net, h, costs):  # type: ignore[no-untyped-def]
    """Cost of going along a half-edge for where it leads and how it bends."""
    v, w = _from(net, h), _to(net, h)
    dx, dy = (net.nodes[w, 0] - net.nodes[v, 0]) / net.height, (net.nodes[w, 1] - net.nodes[v, 1]) / net.height
    return -costs.leftward * dx - costs.upward * dy + costs.clockwise * net.turning[h]


@njit(cache=True)
def _hash(edge):  # type: ignore[no-untyped-def]
    """A 63-bit number for an edge, so that sets of edges can be told apart by XOR."""
    z = np.uint64(edge) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def _place(offers, count, width, rank, key, last):  # type: ignore[no-untyped-def]
    """Make room for a step in the sorted list; returns its slot (-1: not good enough) and the new count.

    Of steps which draw the same edges and end with the same half-edge only the cheaper stays.
    """
    if count == width and rank >= offers.rank[offers.best[width - 1]]:
        return -1, count
    at = -1
    for i in range(count):
        slot = offers.best[i]
        if offers.key[slot] == key and offers.walk[slot, offers.size[slot] - 1] == last:
            if offers.rank[slot] <= rank:
                return -1, count
            at = i
            break
    if at < 0:
        at = min(count, width - 1)
        count = min(count + 1, width)
    slot = offers.best[at]
    while at > 0 and offers.rank[offers.best[at - 1]] > rank:
        offers.best[at] = offers.best[at - 1]
        at -= 1
    offers.best[at] = slot
    return slot, count


@njit(cache=True)
def _offer(net, local, beam, offers, count, s, walk, size, cost, lifted, costs):  # type: ignore[no-untyped-def]
    """Propose that hypothesis s draws walk[:size], whose last half-edge is new; returns the number of offers."""
    c = walk[size - 1]
    i = c // 2
    x = net.nodes[_to(net, c), 0]
    ahead = beam.lagging[s] if net.member[i] == beam.front[s] else beam.front[s]
    lag = max(x - net.leftmost[local[ahead]], 0.0) / net.height if ahead < len(local) else 0.0
    rank = cost + costs.left_behind * min(lag, MOST_LAG)
    key = beam.key[s] ^ _hash(i)
    slot, count = _place(offers, count, len(offers.best), rank, key, c)
    if slot >= 0:
        offers.rank[slot], offers.cost[slot], offers.parent[slot], offers.lifted[slot] = rank, cost, s, lifted
        offers.key[slot], offers.size[slot] = key, size
        offers.walk[slot, :size] = walk[:size]
    return count


@njit(cache=True)
def _go_on(net, local, beam, offers, count, s, costs):  # type: ignore[no-untyped-def]
    """Offer every way on without a lift: Dijkstra over drawn edges to the edges not yet drawn."""
    own = net.part[local[0]]
    label, before, depth = np.empty(LABELS, np.int64), np.empty(LABELS, np.int64), np.empty(LABELS, np.int64)
    paid, open_ = np.empty(LABELS), np.zeros(LABELS, np.bool_)
    walk = np.empty(LONGEST_WALK + 1, np.int64)
    label[0], before[0], depth[0], paid[0], open_[0] = beam.pen[s], -1, 0, beam.cost[s], True
    n, tries = 1, 0
    while True:
        now = -1
        for k in range(n):
            if open_[k] and (now < 0 or paid[k] < paid[now]):
                now = k
        if now < 0 or paid[now] > beam.cost[s] + 1.5 * costs.lift:
            return count
        open_[now] = False
        v = _to(net, label[now])
        for j in range(net.first[v], net.first[v + 1]):
            c = net.half[j]
            if net.part[c // 2] != own:
                continue
            tries += 1
            if tries > TRIES:
                return count
            times = beam.drawn[s, net.member[c // 2]]
            cost = paid[now] + _turn_cost(net, label[now], c, costs) + _way_cost(net, c, costs)
            if times == 0:
                walk[depth[now]] = c
                k = now
                while before[k] >= 0:
                    walk[depth[k] - 1] = label[k]
                    k = before[k]
                count = _offer(net, local, beam, offers, count, s, walk, depth[now] + 1, cost, False, costs)
            elif depth[now] < LONGEST_WALK and times < 3:
                cost += costs.retrace * net.length[c // 2]
                k = 0
                while k < n and label[k] != c:
                    k += 1
                if k == n and n < LABELS:
                    n += 1
                    open_[k], paid[k] = True, np.inf
                if k < n and open_[k] and cost < paid[k]:
                    label[k], before[k], depth[k], paid[k] = c, now, depth[now] + 1, cost


@njit(cache=True)
def _set_down(net, local, beam, offers, count, s, top, costs):  # type: ignore[no-untyped-def]
    """Offer to lift the pen and set it down at an end of one of the leftmost edges not yet drawn."""
    walk = np.empty(1, np.int64)
    base = beam.cost[s]
    u = -1
    if beam.pen[s] >= 0:
        u = _to(net, beam.pen[s])
        base += costs.lift + (costs.stop_inside if net.degree[u] > 1 else 0.0)
    behind = net.leftmost[local[beam.front[s]]]
    looked, q = 0, beam.front[s]
    while q < len(local) and looked < STARTS:
        if beam.drawn[s, q] == 0:
            looked += 1
            for side in range(2):
                walk[0] = 2 * local[q] + side
                v = _from(net, walk[0])
                x, y = net.nodes[v]
                cost = base + _way_cost(net, walk[0], costs)
                cost += (costs.start_right * max(x - behind, 0.0) + costs.start_down * (y - top)) / net.height
                if u >= 0:
                    cost += costs.jump * np.hypot(x - net.nodes[u, 0], y - net.nodes[u, 1]) / net.height
                count = _offer(net, local, beam, offers, count, s, walk, 1, cost, True, costs)
        q += 1
    return count


@njit(cache=True)
def _advance(beam, s):  # type: ignore[no-untyped-def]
    """Find the leftmost edge not yet drawn and the next one."""
    n = beam.drawn.shape[1]
    front = beam.front[s]
    while front < n and beam.drawn[s, front]:
        front += 1
    lagging = front + 1
    while lagging < n and beam.drawn[s, lagging]:
        lagging += 1
    beam.front[s], beam.lagging[s] = front, lagging


@njit(cache=True)
def _adopt(net, beam, spare, offers, count, history, level):  # type: ignore[no-untyped-def]
    """Turn the offers into the next level's hypotheses, in `spare`."""
    for k in range(count):
        slot = offers.best[k]
        parent, size = offers.parent[slot], offers.size[slot]
        spare.drawn[k] = beam.drawn[parent]
        for j in range(size):
            spare.drawn[k, net.member[offers.walk[slot, j] // 2]] += 1
        spare.cost[k], spare.pen[k], spare.key[k] = offers.cost[slot], offers.walk[slot, size - 1], offers.key[slot]
        spare.front[k] = beam.front[parent]
        history.parent[level, k], history.lifted[level, k] = parent, offers.lifted[slot]
        history.walk[level, k], history.size[level, k] = offers.walk[slot], size


@njit(cache=True)
def _read_back(history, k):  # type: ignore[no-untyped-def]
    """The half-edges of the hypothesis which is k-th on the last level, and where the pen was set down."""
    levels = len(history.parent)
    order = np.empty(levels, np.int64)
    total = 0
    for level in range(levels - 1, -1, -1):
        order[level] = k
        total += history.size[level, k]
        k = history.parent[level, k]
    path, down = np.empty(total, np.int64), np.zeros(total, np.bool_)
    t = 0
    for level in range(levels):
        k = order[level]
        size = history.size[level, k]
        down[t] = history.lifted[level, k]
        path[t : t + size] = history.walk[level, k, :size]
        t += size
    return path, down


@njit(cache=True)
def _new_beam(width, n):  # type: ignore[no-untyped-def]
    return _Beam(
        np.zeros((width, n), np.uint8),
        np.zeros(width),
        np.full(width, -1, np.int64),
        np.zeros(width, np.uint64),
        np.zeros(width, np.int64),
        np.zeros(width, np.int64),
    )


@njit(cache=True)
def _search(net, local, top, width, costs):  # type: ignore[no-untyped-def]
    """Beam search over one part of the graph, whose edges are `local`, by their leftmost x."""
    beam, spare = _new_beam(width, len(local)), _new_beam(width, len(local))
    longest = LONGEST_WALK + 1
    offers = _Offers(
        np.arange(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width, np.int64),
        np.zeros(width, np.bool_),
        np.zeros(width, np.uint64),
        np.zeros((width, longest), np.int64),
        np.zeros(width, np.int64),
    )
    beam.drawn[0] = net.optional[local]
    levels = len(local) - int(net.optional[local].sum())
    history = _History(
        np.zeros((levels, width), np.int64),
        np.zeros((levels, width), np.bool_),
        np.zeros((levels, width, longest), np.int64),
        np.zeros((levels, width), np.int64),
    )
    alive = 1
    for level in range(levels):
        count = 0
        for s in range(alive):
            _advance(beam, s)
            if beam.pen[s] >= 0:
                count = _go_on(net, local, beam, offers, count, s, costs)
            count = _set_down(net, local, beam, offers, count, s, top, costs)
        _adopt(net, beam, spare, offers, count, history, level)
        beam, spare = spare, beam
        alive = count
    best = 0
    for s in range(alive):
        if net.degree[_to(net, beam.pen[s])] > 1:
            beam.cost[s] += costs.stop_inside
        if beam.cost[s] < beam.cost[best]:
            best = s
    return _read_back(history, best)


@njit(cache=True)
def _mark_optional(local, radius, degree, ends, length, optional):  # type: ignore[no-untyped-def]
    """Mark edges whose ink belongs to the junctions at both ends; where nothing else is there, none."""
    needed = 0
    for i in local:
        a, b = ends[i]
        optional[i] = degree[a] > 2 and degree[b] > 2 and length[i] < 1.1 * (radius[a] + radius[b])
        needed += not optional[i]
    if needed == 0:
        optional[local] = False


@njit(cache=True)
def _leftmost(start, points):  # type: ignore[no-untyped-def]
    out = np.empty(len(start) - 1)
    for i in range(len(out)):
        out[i] = points[start[i] : start[i + 1], 0].min()
    return out


@njit(cache=True)
def _traverse(nodes, radius, degree, ends, start, points, length, pen, height, width, costs):  # type: ignore[no-untyped-def]
    """Search every component; returns path, pen-down marks and component of each half-edge of the path."""
    n_edges = len(ends)
    first, half = incidence(len(nodes), ends, np.ones(n_edges, np.bool_))
    directions, turning = _half_edges(radius, degree, ends, start, points, length, pen)
    straight = _straight_on(first, half, directions)
    component, _ = components(len(nodes), ends)
    leftmost = _leftmost(start, points)
    part, member = np.full(n_edges, -1, np.int64), np.zeros(n_edges, np.int64)
    optional = np.zeros(n_edges, np.bool_)
    net = _Net(
        nodes,
        degree,
        ends,
        length / height,
        leftmost,
        first,
        half,
        directions,
        straight,
        turning,
        part,
        member,
        optional,
        height,
    )
    by_x = np.argsort(leftmost, kind="mergesort")
    order = by_x[np.argsort(component[by_x], kind="mergesort")]
    capacity = (LONGEST_WALK + 1) * n_edges
    path, down, owner = np.empty(capacity, np.int64), np.zeros(capacity, np.bool_), np.empty(capacity, np.int64)
    n, a, end = 0, 0, 0
    while a < n_edges:
        if a == end:
            while end < n_edges and component[order[end]] == component[order[a]]:
                end += 1
            beam = width if end - a <= LARGEST_PART else 1
        b = min(end, a + LARGEST_PART)
        local = order[a:b]
        part[local] = a
        member[local] = np.arange(b - a)
        _mark_optional(local, radius, degree, ends, length, optional)
        top = np.inf
        for i in local:
            top = min(top, points[start[i] : start[i + 1], 1].min())
        found, lifted = _search(net, local, top, beam, costs)
        path[n : n + len(found)], down[n : n + len(found)] = found, lifted
        owner[n : n + len(found)] = component[local[0]]
        n += len(found)
        a = b
    return path[:n].copy(), down[:n].copy(), owner[:n].copy()


def traverse(
    graph: SkeletonGraph, *, pen: float, height: float, beam: int = 12, costs: Costs | None = None
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
    costs
        What the pen's moves cost.

    Returns
    -------
    path, offsets, component
        Half-edges in drawing order; stroke ``k`` is ``path[offsets[k]:offsets[k + 1]]``; the connected component of
        each stroke. Every edge is drawn at least once, but for short ones between junctions, whose ink is the
        junctions'.
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
        float(pen),
        float(height),
        beam,
        Costs(*(float(c) for c in costs or Costs())),
    )
    begin = np.flatnonzero(down)
    return path, np.append(begin, len(path)).astype(np.int64), owner[begin]
