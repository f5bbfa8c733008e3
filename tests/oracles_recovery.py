"""Slow, obvious twins of the recovery kernels."""

from __future__ import annotations

from itertools import pairwise

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


def pieces(n_nodes, ends):
    """How many pieces a graph of so many nodes falls into."""
    name = list(range(n_nodes))
    for a, b in ends:
        name = [name[b] if other == name[a] else other for other in name]
    return len(set(name))


def bridges(n_nodes, ends, length):
    """Which edges cut their piece in two when taken away, and the length behind each half-edge's far end if so."""
    bridge, beyond = np.zeros(len(ends), bool), np.zeros(2 * len(ends))
    for i in range(len(ends)):
        rest = [k for k in range(len(ends)) if k != i]
        bridge[i] = pieces(n_nodes, ends[rest]) > pieces(n_nodes, ends)
        for side in (0, 1) if bridge[i] else ():
            reached = {int(ends[i, 1 - side])}
            for _ in range(n_nodes):
                reached |= {int(v) for k in rest for v in ends[k] if reached & set(ends[k].tolist())}
            beyond[2 * i + side] = sum(length[k] for k in rest if int(ends[k, 0]) in reached)
    return bridge, beyond


def shared_ends(ends, component, forward):
    """Bits of shared ends; an edge's start is where its forward half-edge begins."""
    out = np.zeros((len(ends), len(ends)), np.uint8)
    for i in range(len(ends)):
        for k in range(len(ends)):
            bits = 16 * int(component[i] == component[k])
            for own in (0, 1) if i != k else ():
                for other in (0, 1):
                    v, w = ends[i, own ^ forward[i]], ends[k, other ^ forward[k]]
                    bits |= int(v == w) << (2 * own + other)
            out[i, k] = bits
    return out


def layer_norm(x, gain, bias):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gain + bias


def encode(weights, config, features, bits, lie, letters, places):
    """The guide as its definition reads: weights by torch's names, matrices as (out, in), double precision."""
    w = {name: np.asarray(a, np.float64) for name, a in weights.items()}

    def linear(name, x):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    tokens = linear("enter", (features - w["mean"]) * w["scale"])
    t = len(letters)
    tokens = np.concatenate([w["letter.weight"][letters] + linear("place", places), tokens])
    bits, lie = np.pad(bits, ((t, 0), (t, 0))), np.pad(lie, ((t, 0), (t, 0), (0, 0)))
    d, size = config.width, config.width // config.heads
    for k in range(config.depth):
        name = f"layers.{k}."
        y = layer_norm(tokens, w[name + "norm1.weight"], w[name + "norm1.bias"])
        query, key, value = np.split(linear(name + "qkv", y), 3, axis=1)
        mixed = np.zeros((len(tokens), d))
        for h in range(config.heads):
            own = slice(h * size, (h + 1) * size)
            logits = query[:, own] @ key[:, own].T / np.sqrt(size)
            logits += w[name + "shared"][bits, h] + lie @ w[name + "lie"][:, h]
            share = np.exp(logits - logits.max(1, keepdims=True))
            mixed[:, own] = share / share.sum(1, keepdims=True) @ value[:, own]
        tokens = tokens + linear(name + "out", mixed)
        y = layer_norm(tokens, w[name + "norm2.weight"], w[name + "norm2.bias"])
        tokens = tokens + linear(name + "down", np.maximum(linear(name + "up", y), 0))
    return layer_norm(tokens, w["norm.weight"], w["norm.bias"])[t:]


def logit(weights, head, vectors, forward, features, source, target):
    """The logit of one choice: half-edge left (-1: none), half-edge chosen (-1: the pen is lifted)."""
    w = {name.removeprefix(head + "."): np.asarray(a, np.float64) for name, a in weights.items()}
    z = w["w1.weight"] @ features + w["w1.bias"]
    for kind, h in (("source", source), ("target", target)):
        if h < 0:
            z = z + w["no_" + kind]
        else:
            both = w[kind + ".weight"] @ vectors[h // 2] + w[kind + ".bias"]
            along, against = np.split(both, 2)
            z = z + (along if h % 2 == forward[h // 2] else against)
    z = np.maximum(w["w2.weight"] @ np.maximum(z, 0) + w["w2.bias"], 0)
    return float((w["w3.weight"] @ z + w["w3.bias"])[0])


def log_softmax(logits):
    p = np.exp(np.asarray(logits, np.longdouble))
    return np.log(p / p.sum())


def best_way(net, go_logit, start_logit, most_times):
    """The most probable way to draw all edges, by trying every way that may still be better than the best so far.

    ``go_logit(last, chosen)`` and ``start_logit(last, chosen)`` depend on the two half-edges alone (-1: none, or a
    lift). Returns its log-probability, half-edges, and at which of them the pen was set down.
    """
    ends, dot = net.ends, net.dot
    best = [-np.inf, (), ()]

    def ranked(last, options, of):
        chance = log_softmax([of(last, c) for c in options])
        return sorted(zip(chance.tolist(), options, strict=True), reverse=True)

    def lifted(score, drawn, path, down):
        if all(drawn):
            if score > best[0]:
                best[:] = score, path, down
            return
        last = path[-1] if path else -1
        options = [c for c in range(2 * len(ends)) if drawn[c // 2] == 0 and not (dot[c // 2] and c % 2)]
        for chance, c in ranked(last, options, start_logit):
            go_on(score + chance, drawn, (*path, c), (*down, True))

    def go_on(score, drawn, path, down):
        if score <= best[0]:
            return
        last = path[-1]
        drawn = tuple(n + (i == last // 2) for i, n in enumerate(drawn))
        if dot[last // 2]:
            lifted(score, drawn, path, down)
            return
        here = ends[last // 2, 1 - last % 2]
        options = [c for c in range(2 * len(ends)) if ends[c // 2, c % 2] == here and drawn[c // 2] < most_times]
        for chance, c in ranked(last, [*options, -1], go_logit):
            if c < 0:
                lifted(score + chance, drawn, path, down)
            else:
                go_on(score + chance, drawn, (*path, c), (*down, False))

    lifted(0.0, (0,) * len(ends), (), ())
    return best


def polyline(points, start, path, marks, step):
    """Points every `step` along each stroke from its first, and its last one unless that is next to one already."""
    out = []
    for a, b in pairwise(marks):
        edges = [points[start[h // 2] : start[h // 2 + 1]][:: 1 - 2 * int(h % 2)] for h in path[a:b]]
        line = np.concatenate(edges)
        along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
        at = [0.0, *np.arange(step, along[-1], step)]
        if along[-1] - at[-1] > 0.1 * step:
            at.append(along[-1])
        out.append(np.stack([np.interp(at, along, line[:, k]) for k in (0, 1)], axis=1))
    return np.concatenate(out)
