"""What the learned recoverer's tests are made of: small words, small graphs, and weights drawn at random."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict

import cv2
import numpy as np
from oracles_recovery import resample

from inktraj.page import WordCrop
from inktraj.recovery.features import Lines
from inktraj.recovery.guide import Config
from inktraj.recovery.policy import MOST_TIMES
from inktraj.recovery.weights import FORMAT, array_shapes

SMALL = Config(width=16, depth=2, heads=2, inner=24, hidden=8, upper=4)


def random_arrays(seed, config=SMALL):
    """Return one network's arrays by name; layers pass on about as much as they get."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, shape in array_shapes(config).items():
        array = rng.normal(0, 0.3 if len(shape) < 2 else shape[-1] ** -0.5, shape)
        out[name] = (np.abs(array) + 0.5 if name == "scale" or "norm" in name else array).astype(np.float32)
    for head in ("go", "start"):
        out[head + ".w3.weight"] *= 3
    return out


def weights_arrays(seed=0, networks=2, config=SMALL):
    """Return everything that a weights file holds."""
    out = {f"{k}/{name}": a for k in range(networks) for name, a in random_arrays(seed + k, config).items()}
    out["confidence"] = np.array([0.5, 0.03, -0.4, -0.2, -0.1], np.float32)
    out["config"] = np.array(json.dumps(asdict(config)))
    out["format"] = np.array(FORMAT)
    return out


def write_arrays(path, arrays):
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(name + ".npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
    return path


def lines_of_paths(nodes, edges, dots=(), pen=0.05):
    """Return the graph of the given nodes (x, y in heights), edges (two nodes, points between) and dots (nodes)."""
    nodes = np.array(nodes, float)
    paths = [resample(np.array([nodes[a], *between, nodes[b]]), 0.02) for a, b, *between in edges]
    paths += [nodes[[v]] for v in dots]
    ends = np.array([edge[:2] for edge in edges] + [(v, v) for v in dots], np.int64).reshape(-1, 2)
    start = np.cumsum([0, *map(len, paths)])
    points = np.concatenate(paths)
    low = points.min(0)
    dot = np.arange(len(ends)) >= len(edges)
    radius = np.full(len(nodes), pen / 2)
    return Lines(nodes - low, radius, ends, start, points - low, np.ones(len(points)), dot, pen)


def a_path(net, rng):
    """Return some way to draw all edges: random moves, lifts and set-downs."""
    path, marks, drawn_ = [], [], np.zeros(len(net.ends), int)
    while (drawn_ == 0).any():
        free = [c for c in range(2 * len(drawn_)) if drawn_[c // 2] == 0 and not (net.dot[c // 2] and c % 2)]
        h = int(rng.choice(free))
        marks.append(len(path))
        while True:
            path.append(h)
            drawn_[h // 2] += 1
            v = net.ends[h // 2, 1 - h % 2]
            on = [int(c) for c in net.half[net.first[v] : net.first[v + 1]] if drawn_[c // 2] < MOST_TIMES]
            if net.dot[h // 2] or not on or rng.random() < 0.4:
                break
            h = int(rng.choice(on))
    return np.array(path, np.int64), np.array([*marks, len(path)], np.int64)


def crop_of_mask(mask):
    image = np.where(mask, 20, 255).astype(np.uint8)
    return WordCrop(image, mask, np.eye(3)[:2], np.zeros((4, 2)))


def drawn(*paths, pen=4, size=(160, 110)):
    """Return a mask of polylines; a path of one point is a dot."""
    canvas = np.zeros((size[1] * 4, size[0] * 4), np.uint8)
    for path in paths:
        at = np.int32(np.round(np.asarray(path, float) * 4 + 1.5))
        cv2.polylines(canvas, [at], False, 255, pen * 4)
        if len(at) == 1:
            cv2.circle(canvas, at[0].tolist(), int(pen * 2.4), 255, -1)
    return cv2.resize(canvas, size, interpolation=cv2.INTER_AREA) > 127


def arc(x, y, r, begin=0.0, end=360.0, n=40):
    """Return points on a circle; angles in degrees, clockwise as seen from the right."""
    a = np.radians(np.linspace(begin, end, n))
    return np.stack([x + r * np.cos(a), y + r * np.sin(a)], 1)


def a_word():
    """Return a mask that reads something like "nit": a retraced stem, an arch, a dot, a bar."""
    n = [(20, 50), (20, 90), (20, 65), *arc(35, 65, 15, 180, 360), (50, 90), (60, 88)]
    i, t = [(60, 88), (75, 50), (75, 90), (85, 88)], [(85, 88), (110, 20), (110, 85), (125, 90), (135, 84)]
    return drawn(n, i, [(75, 35)], t, [(95, 45), (128, 43)])
