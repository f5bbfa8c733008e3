"""Public peers of the recoverers, run from the user's own checkout of them.

A peer gets the same ink mask as our recoverers do, so that binarisation is not what is compared, and its time holds the
binarisation as theirs does. Both are called as their READMEs say, in the versions in pure Python:

* ``skeleton-tracing`` (https://github.com/LingDong-/skeleton-tracing, ``py/trace_skeleton.py``): `thinning`, then
  `traceSkeleton` in chunks of 10 px. Each polyline is a stroke, in the order in which they come.
* ``pen-trace-reconstruction`` (https://github.com/skryzhanovskaya/pen_trace_reconstruction): it takes a skeleton as
  nodes and edges and leaves the making of it to others. Here it is scikit-image's `skeletonize`, with a node at every
  end and junction and at about every second pixel between them, as dense as in its example. The elements of one
  connected piece of ink make one stroke, which is what its paper reconstructs and what gives it its best figures. A dot
  whose skeleton is one pixel has no edge, so that it has no part in it. Needs networkx.
"""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from inktraj.ink import Frame, Ink
from inktraj.page import WordCrop
from inktraj.recovery import Candidate

TIME_LIMIT = 2  # seconds a word; a peer that takes longer has failed on it
RECURSION_LIMIT = 20_000  # pen-trace-reconstruction goes along the skeleton by recursion

Strokes = list[np.ndarray]
Tracing = Callable[[np.ndarray], Strokes]


class Peer:
    """A public recoverer behind our interface; raises what the peer raises, and TimeoutError after `TIME_LIMIT`."""

    version = "checkout"

    def __init__(self, name: str, trace: Tracing) -> None:
        self.name, self.trace = name, trace

    def __call__(self, crop: WordCrop, *, text: str | None = None, n_best: int = 1) -> list[Candidate]:
        """Return the peer's one answer; widths are those of the mask."""
        with at_most(TIME_LIMIT):
            strokes = self.trace(crop.mask)
        height, width = crop.mask.shape
        reach = cv2.distanceTransform(np.pad(crop.mask, 1).astype(np.uint8), cv2.DIST_L2, 5)[1:-1, 1:-1]
        limits = np.array([width - 1, height - 1])
        at = [np.clip(np.rint(s), 0, limits).astype(int).T for s in strokes]
        widths = [np.maximum(2.0 * reach[y, x] - 1, 1) for x, y in at]
        return [Candidate(Ink(tuple(strokes), Frame(float(width), float(height)), tuple(widths)))]


def load_peer(option: str) -> Peer:
    """Return the peer of ``NAME=PATH``; SystemExit says what is wrong with either."""
    name, _, path = option.partition("=")
    if name not in PEERS or not path:
        raise SystemExit(f"--peer {option!r}: expected NAME=PATH with NAME one of {', '.join(PEERS)}")
    home, on_path, probe, load = PEERS[name]
    folder = Path(path).expanduser()
    if not (folder / probe).is_file():
        raise SystemExit(f"--peer {option!r}: no {probe} in {folder}; PATH is a checkout of {home}")
    sys.path.insert(0, str(folder / on_path))
    try:
        return Peer(name, load())
    except ImportError as err:
        raise SystemExit(f"--peer {option!r}: {err}; install what the peer needs into this environment") from err
    finally:
        del sys.path[0]


def skeleton_tracing() -> Tracing:
    """Return LingDong's tracer."""
    peer = importlib.import_module("trace_skeleton")

    def trace(mask: np.ndarray) -> Strokes:
        thin = peer.thinning(mask.astype(np.uint8))
        height, width = thin.shape
        return [np.array(line, float) for line in peer.traceSkeleton(thin, 0, 0, width, height, 10, 999, [])]

    return trace


def pen_trace_reconstruction() -> Tracing:
    """Return Kryzhanovskaya's reconstructor."""
    peer = importlib.import_module("trace_reconstruction")

    def trace(mask: np.ndarray) -> Strokes:
        nodes, edges = skeleton_of(mask)
        if not edges:
            return []
        graph = peer.SkeletonGraph([tuple(node) for node in nodes.tolist()], edges)
        parts = peer.TraceReconstructor(graph, peer.MetaGraph(graph)).trace()
        return [nodes[np.concatenate(part)] for part in parts if part]

    return trace


# Name → where it is had, the folder that is imported from, a file by which a checkout is known, how to load it.
PEERS: dict[str, tuple[str, str, str, Callable[[], Tracing]]] = {
    "skeleton-tracing": (
        "https://github.com/LingDong-/skeleton-tracing",
        "py",
        "py/trace_skeleton.py",
        skeleton_tracing,
    ),
    "pen-trace-reconstruction": (
        "https://github.com/skryzhanovskaya/pen_trace_reconstruction",
        ".",
        "trace_reconstruction/trace_reconstruction.py",
        pen_trace_reconstruction,
    ),
}


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the body after so many seconds, and let it recurse deeply."""

    def stop(*_):
        raise TimeoutError(f"took more than {seconds} s")

    before, depth = signal.signal(signal.SIGALRM, stop), sys.getrecursionlimit()
    sys.setrecursionlimit(RECURSION_LIMIT)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.setrecursionlimit(depth)


def skeleton_of(mask: np.ndarray) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Return the skeleton's nodes ``(n, 2)`` (x, y) and its edges as pairs of nodes.

    Pixels are neighbours along rows and columns, and across corners where there is no such way around.
    """
    from skimage.morphology import skeletonize

    thin = np.pad(skeletonize(mask), 1)
    ys, xs = np.nonzero(thin)
    number = {(int(x), int(y)): i for i, (x, y) in enumerate(zip(xs, ys, strict=True))}
    near: list[set[int]] = [set() for _ in number]
    for (x, y), i in number.items():
        for dx, dy in ((1, 0), (0, 1), (1, 1), (-1, 1)):
            j = number.get((x + dx, y + dy))
            if j is not None and not (dx and dy and (thin[y, x + dx] or thin[y + dy, x])):
                near[i].add(j)
                near[j].add(i)
    kept: set[int] = set()
    for i, neighbours in enumerate(near):
        if len(neighbours) != 2 or i in kept:
            continue
        a, b = neighbours
        if b not in near[a]:  # else a ring would close up
            near[a] = near[a] - {i} | {b}
            near[b] = near[b] - {i} | {a}
            near[i] = set()
            kept |= {a, b}
    used = [i for i, neighbours in enumerate(near) if neighbours]
    place = {i: k for k, i in enumerate(used)}
    nodes = np.column_stack([xs, ys])[used].astype(float) - 1
    return nodes, [(place[i], place[j]) for i in used for j in sorted(near[i]) if i < j]
