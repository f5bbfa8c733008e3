"""The skeleton graph: nodes are ends and junctions of the pen's path, edges the path between them.

Conventions
-----------
* Points are x, y in the mask's pixels, the upper left pixel's centre at (0, 0).
* Edge ``i`` runs from node ``ends[i, 0]`` to ``ends[i, 1]`` along ``points[start[i]:start[i + 1]]``, both nodes in it.
* Half-edge ``2 i`` leaves ``ends[i, 0]``, half-edge ``2 i + 1`` leaves ``ends[i, 1]``.

Everything is done on flat arrays, each pass linear in the skeleton's length: a crop of noise has as many edges as
pixels and still ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inktraj.recovery.thinning import thin

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

# The four sides first, then the corners: a corner counts only where no side leads there.
STEPS_Y = np.array([-1, 0, 1, 0, -1, 1, 1, -1])
STEPS_X = np.array([0, 1, 0, -1, 1, 1, -1, -1])


@dataclass(frozen=True, slots=True, eq=False)
class SkeletonGraph:
    """A graph of pen paths; see the module for the layout.

    Parameters
    ----------
    nodes
        ``(n, 2)`` x, y of each node.
    radius
        ``(n,)`` the ink's radius there.
    ends
        ``(e, 2)`` the nodes of each edge.
    start
        ``(e + 1,)`` offsets of the edges into `points`.
    points
        ``(p, 2)`` the paths.
    """

    nodes: F64
    radius: F64
    ends: I64
    start: I64
    points: F64

    def edge(self, index: int) -> F64:
        """The path of one edge, ``(k, 2)``."""
        return np.asarray(self.points[self.start[index] : self.start[index + 1]])

    def degree(self) -> I64:
        """Number of edge ends at each node; a loop counts twice."""
        return np.bincount(self.ends.ravel(), minlength=len(self.nodes)).astype(np.int64)

    def lengths(self) -> F64:
        """Length of each edge in pixels."""
        return np.asarray(_lengths(self.start, self.points))


@njit(cache=True)
def _neighbours(skeleton, y, x, dy, dx, out):  # type: ignore[no-untyped-def]
    """Write the flat offsets' indices of the path neighbours of a pixel; returns how many."""
    n = 0
    for k in range(8):
        if skeleton[y + dy[k], x + dx[k]] == 0:
            continue
        if k >= 4 and (skeleton[y + dy[k], x] != 0 or skeleton[y, x + dx[k]] != 0):
            continue
        out[n] = k
        n += 1
    return n


@njit(cache=True)
def _label_nodes(skeleton, dy, dx):  # type: ignore[no-untyped-def]
    """Give each end, and each cluster of touching junction pixels, a number; returns labels and positions."""
    height, width = skeleton.shape
    label = np.full((height, width), -1, np.int32)
    degree = np.zeros((height, width), np.uint8)
    near = np.empty(8, np.int64)
    count = 0
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            if skeleton[y, x]:
                degree[y, x] = _neighbours(skeleton, y, x, dy, dx, near)
                count += 1
    position = np.zeros((count, 2))
    stack = np.empty(count + 1, np.int64)
    n = 0
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            if skeleton[y, x] == 0 or degree[y, x] == 2 or label[y, x] >= 0:
                continue
            label[y, x] = n
            stack[0] = y * width + x
            top, members = 1, 0
            while top > 0:
                top -= 1
                cy, cx = stack[top] // width, stack[top] % width
                position[n, 0] += cx
                position[n, 1] += cy
                members += 1
                if degree[cy, cx] < 3:
                    continue
                for i in range(_neighbours(skeleton, cy, cx, dy, dx, near)):
                    ny, nx = cy + dy[near[i]], cx + dx[near[i]]
                    if degree[ny, nx] >= 3 and label[ny, nx] < 0:
                        label[ny, nx] = n
                        stack[top] = ny * width + nx
                        top += 1
            position[n] /= members
            n += 1
    return label, position, n, count


@njit(cache=True)
def _trace(skeleton, dy, dx):  # type: ignore[no-untyped-def]
    """Skeleton → nodes, ends, offsets, points. Closed curves get a node at their topmost pixel."""
    height, width = skeleton.shape
    label, place, n, count = _label_nodes(skeleton, dy, dx)
    nodes = np.zeros((count + 1, 2))
    nodes[:n] = place[:n]
    capacity = 4 * count + 16
    points = np.empty((3 * capacity, 2))
    ends = np.empty((capacity, 2), np.int64)
    start = np.zeros(capacity + 1, np.int64)
    seen = np.zeros((height, width), np.uint8)
    near, ahead = np.empty(8, np.int64), np.empty(8, np.int64)
    n_edges, n_points = 0, 0
    for closed in range(2):  # first from the nodes, then what no node leads to: closed curves
        for y in range(1, height - 1):
            for x in range(1, width - 1):
                if skeleton[y, x] == 0 or (closed == 0) != (label[y, x] >= 0) or seen[y, x]:
                    continue
                branches = _neighbours(skeleton, y, x, dy, dx, near)
                if closed == 1:
                    label[y, x] = n
                    nodes[n, 0], nodes[n, 1] = x, y
                    n += 1
                    branches = 1
                for i in range(branches):
                    py, px = y, x
                    cy, cx = y + dy[near[i]], x + dx[near[i]]
                    source = label[y, x]
                    if label[cy, cx] >= 0 and (closed == 1 or label[cy, cx] <= source):
                        continue  # inside one cluster, or found from its other end
                    if seen[cy, cx]:
                        continue
                    points[n_points] = nodes[source]
                    n_points += 1
                    while label[cy, cx] < 0:
                        seen[cy, cx] = 1
                        points[n_points, 0], points[n_points, 1] = cx, cy
                        n_points += 1
                        ny, nx = py, px
                        for k in range(_neighbours(skeleton, cy, cx, dy, dx, ahead)):
                            ty, tx = cy + dy[ahead[k]], cx + dx[ahead[k]]
                            if ty != py or tx != px:
                                ny, nx = ty, tx
                        py, px, cy, cx = cy, cx, ny, nx
                    points[n_points] = nodes[label[cy, cx]]
                    n_points += 1
                    ends[n_edges, 0], ends[n_edges, 1] = source, label[cy, cx]
                    n_edges += 1
                    start[n_edges] = n_points
    return nodes[:n].copy(), ends[:n_edges].copy(), start[: n_edges + 1].copy(), points[:n_points].copy()


@njit(cache=True)
def _even_out(start, points, passes):  # type: ignore[no-untyped-def]
    """Take the pixel staircase out of the paths: binomial smoothing, ends held."""
    for i in range(len(start) - 1):
        a, b = start[i], start[i + 1]
        for _ in range(passes):
            px, py = points[a, 0], points[a, 1]
            for k in range(a + 1, b - 1):
                x, y = points[k, 0], points[k, 1]
                points[k, 0] = 0.25 * (px + points[k + 1, 0]) + 0.5 * x
                points[k, 1] = 0.25 * (py + points[k + 1, 1]) + 0.5 * y
                px, py = x, y


@njit(cache=True)
def _lengths(start, points):  # type: ignore[no-untyped-def]
    out = np.zeros(len(start) - 1)
    for i in range(len(out)):
        for k in range(start[i], start[i + 1] - 1):
            out[i] += np.hypot(points[k + 1, 0] - points[k, 0], points[k + 1, 1] - points[k, 1])
    return out


@njit(cache=True)
def direction_along(points, a, step, n, skip, reach):  # type: ignore[no-untyped-def]
    """Where a path is after arc length `skip`, and its unit direction from there over `reach`: x, y, dx, dy.

    The path has `n` points: ``points[a]`` and each `step`-th from there. (0, 0) where it has no direction.
    """
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
        return x0, y0, 0.0, 0.0
    return x0, y0, dx / norm, dy / norm


@njit(cache=True)
def incidence(n_nodes, ends, alive):  # type: ignore[no-untyped-def]
    """Half-edges by the node they leave: offsets ``(n + 1,)`` and half-edges, living edges only."""
    first = np.zeros(n_nodes + 1, np.int64)
    for i in range(len(ends)):
        if alive[i]:
            first[ends[i, 0] + 1] += 1
            first[ends[i, 1] + 1] += 1
    for v in range(n_nodes):
        first[v + 1] += first[v]
    fill = first[:-1].copy()
    half = np.empty(first[-1], np.int64)
    for i in range(len(ends)):
        if alive[i]:
            for side in range(2):
                v = ends[i, side]
                half[fill[v]] = 2 * i + side
                fill[v] += 1
    return first, half


@njit(cache=True)
def _copy_path(points, a, b, reverse, out, n):  # type: ignore[no-untyped-def]
    """Append points[a:b], maybe reversed, leaving out a repeated first point; returns the new end."""
    for k in range(b - a):
        source = b - 1 - k if reverse else a + k
        if k == 0 and n > 0 and out[n - 1, 0] == points[source, 0] and out[n - 1, 1] == points[source, 1]:
            continue
        out[n] = points[source]
        n += 1
    return n


@njit(cache=True)
def _fuse(nodes, specks, ends, start, points, alive):  # type: ignore[no-untyped-def]
    """Drop dead edges and the nodes nobody needs: chains through nodes of degree 2 become one edge.

    A node without a living edge is dropped, but for the `specks`, which never had one.
    """
    n = len(nodes)
    first, half = incidence(n, ends, alive)
    used = np.zeros(len(ends), np.bool_)
    new_id = np.full(n, -1, np.int64)
    kept = np.empty(n, np.int64)
    n_kept = 0
    new_ends = np.empty((len(ends), 2), np.int64)
    new_start = np.zeros(len(ends) + 1, np.int64)
    out = np.empty((len(points) + 1, 2))
    n_edges, n_points = 0, 0
    for v in range(n):
        degree = first[v + 1] - first[v]
        if degree != 2 and (degree > 0 or specks[v]):
            new_id[v] = n_kept
            kept[n_kept] = v
            n_kept += 1
    for closed in range(2):  # chains between real nodes, then rings of degree-2 nodes
        for v in range(n):
            if (closed == 0) == (new_id[v] < 0):
                continue
            for j in range(first[v], first[v + 1]):
                h = half[j]
                if used[h // 2]:
                    continue
                if new_id[v] < 0:
                    new_id[v] = n_kept
                    kept[n_kept] = v
                    n_kept += 1
                begin = n_points
                while True:
                    i = h // 2
                    used[i] = True
                    if n_points == begin:
                        out[n_points] = points[start[i] if h % 2 == 0 else start[i + 1] - 1]
                        n_points += 1
                    n_points = _copy_path(points, start[i], start[i + 1], h % 2 == 1, out, n_points)
                    w = ends[i, 1 - h % 2]
                    if new_id[w] >= 0:
                        break
                    back = h ^ 1
                    h = half[first[w]] if half[first[w]] != back else half[first[w] + 1]
                new_ends[n_edges, 0], new_ends[n_edges, 1] = new_id[v], new_id[w]
                n_edges += 1
                new_start[n_edges] = n_points
    return (
        nodes[kept[:n_kept]],
        new_ends[:n_edges].copy(),
        new_start[: n_edges + 1].copy(),
        out[:n_points].copy(),
        kept[:n_kept].copy(),
    )


@njit(cache=True)
def _spurs(ends, length, degree, radius, factor):  # type: ignore[no-untyped-def]
    """Mark the living edges: dead ends no longer than the ink is thick go, where a real branch stays."""
    alive = np.ones(len(ends), np.bool_)
    short = np.zeros(len(ends), np.bool_)
    left = degree.copy()
    longest = np.full((len(degree), 2), -1, np.int64)  # the two longest spurs of a node
    for i in range(len(ends)):
        a, b = ends[i]
        if a == b or (degree[a] == 1) == (degree[b] == 1):
            continue
        joint = b if degree[a] == 1 else a
        if degree[joint] >= 3 and length[i] < factor * radius[joint] + 1.0:
            short[i] = True
            left[joint] -= 1
            if longest[joint, 0] < 0 or length[i] > length[longest[joint, 0]]:
                longest[joint, 0], longest[joint, 1] = i, longest[joint, 0]
            elif longest[joint, 1] < 0 or length[i] > length[longest[joint, 1]]:
                longest[joint, 1] = i
    for i in range(len(ends)):
        if short[i]:
            joint = ends[i, 1] if degree[ends[i, 0]] == 1 else ends[i, 0]
            # where a branch stays the joint is on a stroke or at its end; a star of spurs keeps its longest line
            alive[i] = left[joint] == 0 and (longest[joint, 0] == i or longest[joint, 1] == i)
    return alive


@njit(cache=True)
def root(parent, v):  # type: ignore[no-untyped-def]
    """The representative of v in a union-find forest; halves the paths on its way."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@njit(cache=True, nogil=True)
def components(n_nodes, ends):  # type: ignore[no-untyped-def]
    """Number of the connected component of each edge, and how many there are."""
    parent = np.arange(n_nodes)
    for i in range(len(ends)):
        v, w = root(parent, ends[i, 0]), root(parent, ends[i, 1])
        parent[w] = v
    name = np.full(n_nodes, -1, np.int64)
    out = np.empty(len(ends), np.int64)
    n = 0
    for i in range(len(ends)):
        v = root(parent, ends[i, 0])
        if name[v] < 0:
            name[v] = n
            n += 1
        out[i] = name[v]
    return out, n


@njit(cache=True)
def _contract(nodes, ends, start, points, length, degree, radius, factor):  # type: ignore[no-untyped-def]
    """Pull junctions together that are nearer than the ink is thick; loops that shrink to nothing die.

    Short edges are taken in ascending order; a cluster stops growing when its edges add up to twice the bound.
    """
    parent = np.arange(len(nodes))
    spent = np.zeros(len(nodes))
    members = np.ones(len(nodes))
    place = nodes.copy()
    alive = np.ones(len(ends), np.bool_)
    for i in np.argsort(length, kind="mergesort"):
        a, b = ends[i]
        if degree[a] < 3 or degree[b] < 3:
            continue
        bound = factor * (radius[a] + radius[b])
        if length[i] >= bound:
            continue
        ra, rb = root(parent, a), root(parent, b)
        if ra == rb:
            alive[i] = False
            continue
        if spent[ra] + spent[rb] + length[i] > 2 * bound:
            continue
        total = members[ra] + members[rb]
        place[ra] = (members[ra] * place[ra] + members[rb] * place[rb]) / total
        members[ra] = total
        spent[ra] += spent[rb] + length[i]
        parent[rb] = ra
        alive[i] = False
    for i in range(len(ends)):
        for side in range(2):
            v = root(parent, ends[i, side])
            if v != ends[i, side] or members[v] > 1:
                points[start[i] if side == 0 else start[i + 1] - 1] = place[v]
            ends[i, side] = v
    return place, alive


@njit(cache=True)
def _largest_near(distance, nodes):  # type: ignore[no-untyped-def]
    """The ink's radius at points: the largest distance to paper within a pixel, to the ink's rim."""
    height, width = distance.shape
    out = np.empty(len(nodes))
    for i in range(len(nodes)):
        x, y = int(np.rint(nodes[i, 0])), int(np.rint(nodes[i, 1]))
        best = 1.0
        for v in range(max(y - 1, 0), min(y + 2, height)):
            for u in range(max(x - 1, 0), min(x + 2, width)):
                best = max(best, distance[v, u])
        out[i] = best - 0.5
    return out


@njit(cache=True)
def _reach(ink, x, y, dx, dy, limit):  # type: ignore[no-untyped-def]
    """How far one can go from (x, y) before leaving the ink."""
    height, width = ink.shape
    t = 0.0
    while t < limit:
        t += 0.25
        u, v = int(np.rint(x + t * dx)), int(np.rint(y + t * dy))
        if u < 0 or v < 0 or u >= width or v >= height or ink[v, u] == 0:
            break
    return t - 0.25


@njit(cache=True)
def _extend_ends(ink, distance, nodes, ends, start, points, degree, radius, length, typical):  # type: ignore[no-untyped-def]
    """Move each dead end to where the pen was: on the line of the stroke, one radius from the ink's tip.

    Thinning eats ends, and turns them to corners of the tip: the last radius is taken back first, where the ink's
    radius can still be measured.
    """
    for i in range(len(ends)):
        for side in range(2):
            v = ends[i, side]
            if degree[v] != 1:
                continue
            a, b = start[i], start[i + 1]
            step = 1 if side == 0 else -1
            tip = a if side == 0 else b - 1
            r = max(radius[v], min(typical, 0.4 * length[i]))  # a skeleton that ran into a corner is thin there
            base, back = tip, tip
            along = 0.0
            for k in range(1, b - a):
                p, q = tip + (k - 1) * step, tip + k * step
                along += np.hypot(points[q, 0] - points[p, 0], points[q, 1] - points[p, 1])
                if along <= 1.1 * r:
                    base = q
                back = q
                if along >= 2.8 * r + 1:
                    break
            if base == back:
                base = tip
            dx, dy = points[base, 0] - points[back, 0], points[base, 1] - points[back, 1]
            norm = np.hypot(dx, dy)
            if norm < 1e-9:
                continue
            dx, dy = dx / norm, dy / norm
            x, y = points[base, 0], points[base, 1]
            u, w = int(np.rint(x)), int(np.rint(y))
            r = max(distance[w, u] - 0.5, 0.5)
            go = max(_reach(ink, x, y, dx, dy, 4 * r + 2) - r, 0.0)
            # the points beyond the base lie on the new line, the tip at its end
            n = abs(tip - base)
            for k in range(n + 1):
                share = go * k / n if n > 0 else go
                points[base - k * step, 0] = x + share * dx
                points[base - k * step, 1] = y + share * dy
            nodes[v] = points[tip]


@njit(cache=True)
def _start_rings_on_top(nodes, ends, start, points, degree):  # type: ignore[no-untyped-def]
    """Turn each ring without a junction so that it starts at its topmost point, as a pen does."""
    for i in range(len(ends)):
        v = ends[i, 0]
        a, b = start[i], start[i + 1]
        if v != ends[i, 1] or degree[v] != 2 or b - a < 4:
            continue
        top = a
        for k in range(a, b - 1):
            if points[k, 1] < points[top, 1]:
                top = k
        ring = points[a : b - 1].copy()
        for k in range(b - a):
            points[a + k] = ring[(top - a + k) % len(ring)]
        nodes[v] = points[a]


def _with_radius(distance: F32, nodes: F64, ends: I64, start: I64, points: F64) -> SkeletonGraph:
    return SkeletonGraph(nodes, _largest_near(distance, nodes), ends, start, points)


def _keep(graph: SkeletonGraph, distance: F32, alive: NDArray[np.bool_]) -> SkeletonGraph:
    nodes, ends, start, points, _ = _fuse(
        graph.nodes, graph.degree() == 0, graph.ends, graph.start, graph.points, alive
    )
    return _with_radius(distance, nodes, ends, start, points)


def skeleton_graph(
    ink: U8, distance: F32, *, spur: float = 0.9, merge: float = 0.7, extend: bool = True
) -> SkeletonGraph:
    """Build the graph of an ink region.

    Parameters
    ----------
    ink
        ``(h, w)`` uint8 of 0 and 1, its outermost rows and columns empty.
    distance
        ``(h, w)`` float32, each pixel's distance to the nearest paper pixel.
    spur
        Dead ends shorter than so many radii of the junction they hang on are dropped (0: none).
    merge
        Junctions nearer than so many times the mean of their diameters become one (0: none).
    extend
        Move dead ends to one pen radius from the ink's tip.

    Returns
    -------
    SkeletonGraph
        A node without an edge is a speck.
    """
    skeleton = thin(ink)
    nodes, ends, start, points = _trace(skeleton, STEPS_Y, STEPS_X)
    _even_out(start, points, 3)
    graph = _with_radius(distance, nodes, ends, start, points)
    for _ in range(3 if spur > 0 else 0):
        alive = _spurs(graph.ends, graph.lengths(), graph.degree(), graph.radius, spur)
        if alive.all():
            break
        graph = _keep(graph, distance, alive)
    if merge > 0:
        specks = graph.degree() == 0
        place, alive = _contract(
            graph.nodes,
            graph.ends,
            graph.start,
            graph.points,
            graph.lengths(),
            graph.degree(),
            graph.radius,
            merge,
        )
        nodes, ends, start, points, kept = _fuse(place, specks, graph.ends, graph.start, graph.points, alive)
        graph = SkeletonGraph(nodes, graph.radius[kept], ends, start, points)
    _start_rings_on_top(graph.nodes, graph.ends, graph.start, graph.points, graph.degree())
    if extend and len(graph.ends):
        x, y = np.rint(graph.points).astype(np.int64).T
        typical = float(np.median(distance[y, x])) - 0.5
        _extend_ends(
            ink,
            distance,
            graph.nodes,
            graph.ends,
            graph.start,
            graph.points,
            graph.degree(),
            graph.radius,
            graph.lengths(),
            typical,
        )
    return graph
