"""Slow, obvious twins of the recovery kernels."""

from __future__ import annotations

import numpy as np

CLOCKWISE = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)]  # (dy, dx) from north


def thin(mask):
    """Guo and Hall's thinning as published: whole passes over the image until nothing changes."""
    image = np.pad(np.asarray(mask) != 0, 1)
    changed = True
    while changed:
        changed = False
        for half in (0, 1):
            gone = []
            for y, x in zip(*np.nonzero(image), strict=True):
                n, ne, e, se, s, sw, w, nw = (bool(image[y + dy, x + dx]) for dy, dx in CLOCKWISE)
                c = (not n and (ne or e)) + (not e and (se or s)) + (not s and (sw or w)) + (not w and (nw or n))
                n1 = (nw or n) + (ne or e) + (se or s) + (sw or w)
                n2 = (n or ne) + (e or se) + (s or sw) + (w or nw)
                m = (s or sw or not nw) and w if half == 0 else (n or ne or not se) and e
                if c == 1 and 2 <= min(n1, n2) <= 3 and not m:
                    gone.append((y, x))
            for y, x in gone:
                image[y, x] = False
            changed = changed or bool(gone)
    return image[1:-1, 1:-1].astype(np.uint8)


def path_neighbours(skeleton, y, x):
    """Neighbours along the pen's path: by a side, or by a corner round which no side leads."""
    out = []
    for dy, dx in CLOCKWISE:
        if not skeleton[y + dy, x + dx]:
            continue
        if dy and dx and (skeleton[y + dy, x] or skeleton[y, x + dx]):
            continue
        out.append((y + dy, x + dx))
    return out


def count_graph(skeleton):
    """How many nodes and edges a skeleton has, from its pixels' degrees alone.

    Nodes: ends, specks, clusters of junction pixels, and one for each closed curve without any. Edges: half the path
    links which leave the nodes.
    """
    pixels = {(int(y), int(x)) for y, x in zip(*np.nonzero(skeleton), strict=True)}
    near = {p: path_neighbours(skeleton, *p) for p in pixels}
    label = {}
    for p in sorted(pixels):
        if len(near[p]) == 2 or p in label:
            continue
        label[p] = len(set(label.values()))
        todo = [p] if len(near[p]) > 2 else []
        while todo:
            for q in near[todo.pop()]:
                if len(near[q]) > 2 and q not in label:
                    label[q] = label[p]
                    todo.append(q)
    leaving = sum(1 for p in label for q in near[p] if label.get(q) != label[p])
    nodes = len(set(label.values()))
    rest, rings = pixels - set(label), 0
    reached = {q for p in label for q in near[p]} & rest
    todo = list(reached)
    while todo:
        for q in near[todo.pop()]:
            if q in rest and q not in reached:
                reached.add(q)
                todo.append(q)
    rest -= reached
    while rest:
        rings += 1
        todo = [rest.pop()]
        while todo:
            for q in near[todo.pop()]:
                if q in rest:
                    rest.remove(q)
                    todo.append(q)
    return nodes + rings, leaving // 2 + rings


def resample(path, step):
    """Evenly spaced points along a path by numpy's interpolation."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    count = max(int(np.rint(along[-1] / step)), 1)
    at = np.linspace(0, along[-1], count + 1)
    return np.stack([np.interp(at, along, path[:, 0]), np.interp(at, along, path[:, 1])], axis=1)


def smooth(path, weights):
    """Convolution with a symmetric kernel, the path continued by point reflection at both ends."""
    r = len(weights) - 1
    kernel = np.concatenate([weights[:0:-1], weights])
    head, tail = 2 * path[0] - path[r:0:-1], 2 * path[-1] - path[-2 : -2 - r : -1]
    longer = np.concatenate([head, path, tail])
    return np.stack([np.convolve(longer[:, k], kernel, "valid") for k in (0, 1)], axis=1)
