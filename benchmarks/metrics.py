"""How fast the metrics are beside the libraries that one would take instead, and whether all agree.

    python benchmarks/metrics.py [--rounds 5] [--json FILE]

Everything runs in one process, on one thread unless a figure says otherwise, over the same made trajectories; a ratio
is the median of the peer's times over the median of ours, so above 1 we are faster. Peers that are not installed are
left out, and their figures are null. Peers have the cost that they know, which is squared for tslearn and aeon, and
dtaidistance counts with and without its pruning. None of them aligns a list of pairs in one call, as ours does for
`strokes`; `strokes_one_by_one_vs_fastest` is ours called pair by pair as well.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import metrics_inks as inks
from record import peak_mb, table, write

from inktraj import Frame, Ink
from inktraj.metrics import Evaluation, Normalization, chamfer, dtw, dtw_batch, dtw_total, wavefront

Pair = tuple[np.ndarray, np.ndarray]
Call = Callable[[np.ndarray, np.ndarray], float]
DTW_PEERS = ("aeon", "dtaidistance", "dtaidistance_pruned", "traj_dist_rs")
INKGROUND_WORDS, INKGROUND_POINTS = 18_700, 430

COLD_START = """
import time
start = time.perf_counter()
from inktraj import Frame, Ink
from inktraj.metrics import Evaluation
ink = Ink([[(0, 0), (9, 9)], [(20, 0), (20, 9)]], Frame(30, 30))
Evaluation(pen_net=False).score(ink, ink)
print(time.perf_counter() - start)
"""


def peers() -> dict[str, tuple[Call, str]]:
    """How each installed peer is called for one pair, and what it returns: "sum", "squared" (their sum), its "root"."""
    out: dict[str, tuple[Call, str]] = {}
    if importlib.util.find_spec("tslearn"):
        from tslearn.metrics import dtw as tslearn_dtw

        out["tslearn"] = tslearn_dtw, "root"
    if importlib.util.find_spec("aeon"):
        from aeon.distances import dtw_distance

        # aeon wants channels first; the copy belongs to the data, not to the call.
        out["aeon"] = lambda a, b: dtw_distance(turned(a), turned(b)), "squared"
    if importlib.util.find_spec("dtaidistance"):
        from dtaidistance import dtw_ndim

        for name, pruned in (("dtaidistance", False), ("dtaidistance_pruned", True)):
            options = {"inner_dist": "euclidean", "use_pruning": pruned}
            out[name] = partial(dtw_ndim.distance_fast, **options), "sum"
    if importlib.util.find_spec("traj_dist_rs"):
        import traj_dist_rs

        out["traj_dist_rs"] = lambda a, b: traj_dist_rs.dtw(a, b, "euclidean").distance, "sum"
    return out


TURNED: dict[int, tuple[np.ndarray, np.ndarray]] = {}


def turned(points: np.ndarray) -> np.ndarray:
    """The points as (2, n), made once; the points are kept too, so that no others take their place in memory."""
    if id(points) not in TURNED:
        TURNED[id(points)] = points, np.ascontiguousarray(points.T)
    return TURNED[id(points)][1]


class Clock:
    """Times calls side by side: every round takes each once."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def medians(self, calls: dict[str, Callable[[], object]]) -> dict[str, float]:
        """Median seconds of each call."""
        for call in calls.values():
            call()  # compiles, loads, and fills caches
        spent: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(self.rounds):
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                spent[name].append(time.perf_counter() - start)
        return {name: median(times) for name, times in spent.items()}


def over(call: Call, data: list[Pair]) -> Callable[[], list[float]]:
    return lambda: [call(a, b) for a, b in data]


def ratio(times: dict[str, float], peer: str, ours: str = "ours") -> float | None:
    return times[peer] / times[ours] if peer in times else None


def fastest(times: dict[str, float], ours: str = "ours") -> float | None:
    known = [times[name] for name in DTW_PEERS if name in times]
    return min(known) / times[ours] if known else None


def difference(data: list[Pair], calls: dict[str, tuple[Call, str]]) -> float:
    """Largest relative difference of a peer's figure from ours over the pairs."""
    worst = 0.0
    for a, b in data:
        sums, squares = dtw_total(a, b), dtw_total(a, b, cost="squared")
        ours = {"sum": sums, "squared": squares, "root": squares**0.5}
        for call, kind in calls.values():
            worst = max(worst, abs(float(call(a, b)) - ours[kind]) / ours[kind])
    return worst


def words(clock: Clock, count: int) -> tuple[dict[str, float | None], float]:
    data = inks.pairs(count, 100, 900, seed=0)
    known = peers()
    calls = {name: over(call, data) for name, (call, _) in known.items()}
    preds, refs = [a for a, _ in data], [b for _, b in data]
    calls |= {
        "ours": over(dtw_total, data),
        "ours_mean": lambda: [dtw(a, b).mean for a, b in data],
        "ours_squared": lambda: [dtw_total(a, b, cost="squared") for a, b in data],
        "ours_batch": lambda: dtw_batch(preds, refs, lengths=False),
        "ours_batch_2_threads": lambda: dtw_batch(preds, refs, lengths=False, threads=2),
    }
    times = clock.medians(calls)
    return {
        "words_vs_tslearn": ratio(times, "tslearn"),
        "words_vs_fastest": fastest(times),
        "words_mean_vs_tslearn": ratio(times, "tslearn", "ours_mean"),
        "words_squared_vs_tslearn": ratio(times, "tslearn", "ours_squared"),
        "words_ns_per_cell": times["ours"] / sum(len(a) * len(b) for a, b in data) * 1e9,
        "threads2_vs_1": times["ours_batch"] / times["ours_batch_2_threads"],
    }, difference(data[:200], known)


def strokes(clock: Clock, count: int) -> tuple[dict[str, float | None], float]:
    data = inks.pairs(count, inks.STROKE, inks.STROKE, seed=1)
    known = peers()
    calls = {name: over(call, data) for name, (call, _) in known.items()}
    preds, refs = [a for a, _ in data], [b for _, b in data]
    calls |= {
        "ours": lambda: dtw_batch(preds, refs, lengths=False),
        "ours_mean": lambda: dtw_batch(preds, refs),
        "ours_one_by_one": over(dtw_total, data),
    }
    times = clock.medians(calls)
    batch = dtw_batch(preds, refs).totals
    same = max(abs(batch[k] - dtw_total(a, b)) / batch[k] for k, (a, b) in enumerate(data[:500]))
    return {
        "strokes_vs_fastest": fastest(times),
        "strokes_vs_tslearn": ratio(times, "tslearn"),
        "strokes_mean_vs_fastest": fastest(times, "ours_mean"),
        "strokes_one_by_one_vs_fastest": fastest(times, "ours_one_by_one"),
    }, max(same, difference(data[:500], known))


def whole_page(clock: Clock, points: int) -> tuple[dict[str, float | None], float]:
    rng = np.random.default_rng(2)
    drawn = inks.page(rng, points)
    reference = np.ascontiguousarray(np.concatenate(drawn))
    close = inks.predicted(rng, reference, points), reference
    known = peers()
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: dtw_total(*close),
        "plain": lambda: wavefront.warp(*close, False, -1, None),
    }
    # The others have no pruning and take some seven times as long as dtaidistance with it.
    calls |= {name: partial(known[name][0], *close) for name in ("tslearn", "dtaidistance_pruned") if name in known}
    times = clock.medians(calls)
    # Far pairs, for which pruning has little or nothing to leave out.
    order = rng.permutation(len(drawn))
    far = {
        "another page": np.concatenate(inks.page(rng, points)),
        "strokes shuffled": np.concatenate([drawn[k] for k in order]),
        "reversed": reference[::-1],
        "beside it": reference + np.array([5000.0, 300.0]),
    }
    pruned, worst = [], 0.0
    for other in far.values():
        other = np.ascontiguousarray(other)
        spent = clock.medians(
            {
                "ours": lambda other=other: dtw_total(other, reference),
                "plain": lambda other=other: wavefront.warp(other, reference, False, -1, None),
            }
        )
        pruned.append(spent["plain"] / spent["ours"])
        plain = wavefront.warp(other, reference, False, -1, None)[0]
        worst = max(worst, abs(dtw_total(other, reference) - plain) / plain)
    return {
        "page_close_vs_tslearn": ratio(times, "tslearn"),
        "page_close_vs_dtaidistance": ratio(times, "dtaidistance_pruned"),
        "page_close_vs_plain": times["plain"] / times["ours"],
        "page_close_ms": times["ours"] * 1000,
        "page_far_vs_plain": min(pruned),
    }, max(worst, difference([close], known))


def chamfers(clock: Clock, points: int) -> tuple[dict[str, float | None], float]:
    if not importlib.util.find_spec("scipy"):
        return {"chamfer_words_vs_ckdtree": None, "chamfer_page_vs_ckdtree": None}, 0.0
    from scipy.spatial import cKDTree

    def trees(a: np.ndarray, b: np.ndarray) -> float:
        return float(cKDTree(b).query(a)[0].mean() + cKDTree(a).query(b)[0].mean()) / 2

    def ours(a: np.ndarray, b: np.ndarray) -> float:
        return chamfer(a, b).mean

    rng = np.random.default_rng(3)
    reference = np.ascontiguousarray(np.concatenate(inks.page(rng, points)))
    sets = {
        "words": inks.pairs(400, INKGROUND_POINTS, INKGROUND_POINTS, seed=4),
        "page": [(inks.predicted(rng, reference, points), reference)],
    }
    figures: dict[str, float | None] = {}
    worst = 0.0
    for name, data in sets.items():
        times = clock.medians({"ours": over(ours, data), "ckdtree": over(trees, data)})
        figures[f"chamfer_{name}_vs_ckdtree"] = times["ckdtree"] / times["ours"]
        worst = max(worst, *(abs(ours(a, b) - trees(a, b)) / trees(a, b) for a, b in data))
    return figures, worst


def inkground(words: int) -> dict[str, float | None]:
    """Score as many words as inkGround has, with DTW, Chamfer and the figures of strokes, on one core."""
    rng = np.random.default_rng(5)
    frame = Frame(4000, 4000)
    data = []
    for _ in range(words):
        # Loops as long as in recorded words, whose way is some three times their longer side.
        drawn = inks.word(rng, int(np.clip(rng.normal(INKGROUND_POINTS, 150), 60, 1200)), size=10.0)
        data.append((Ink([inks.predicted(rng, s, len(s)) for s in drawn], frame), Ink(drawn, frame)))
    out: dict[str, float | None] = {}
    for name, step in (("inkground_seconds", None), ("inkground_resampled_seconds", 0.01)):
        evaluation = Evaluation(Normalization(step=step), pen_net=False)
        evaluation.score(*data[0])
        start = time.perf_counter()
        scores = evaluation.score_all(data)
        out[name] = (time.perf_counter() - start) * INKGROUND_WORDS / words
        out[name.replace("seconds", "points")] = float(
            np.mean([len(evaluation.normalization.apply(*pair).ref) for pair in data[:500]])
        )
    out["inkground_strokes"] = float(np.mean([s.ref_strokes for s in scores]))
    return out


def cold_start(rounds: int) -> float:
    """Seconds until a fresh process has scored its first word; compiled code is in numba's cache."""
    root = Path(__file__).resolve().parents[1]
    spent = []
    for _ in range(rounds + 1):
        done = subprocess.run([sys.executable, "-c", COLD_START], cwd=root, capture_output=True, text=True, check=True)
        spent.append(float(done.stdout))
    return median(spent[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which medians are taken")
    parser.add_argument("--words", type=int, default=2000, help="pairs of words of 100 to 900 points")
    parser.add_argument("--strokes", type=int, default=10_000, help="pairs of strokes of 49 points")
    parser.add_argument("--page", type=int, default=15_000, help="points of a page")
    parser.add_argument("--inkground", type=int, default=INKGROUND_WORDS, help="words scored; the figure is scaled up")
    parser.add_argument("--json", type=Path, help="where the record goes")
    options = parser.parse_args()
    clock = Clock(options.rounds)
    figures: dict[str, float | None] = {}
    worst = 0.0
    for part, size in ((words, options.words), (strokes, options.strokes), (whole_page, options.page)):
        found, off = part(clock, size)
        figures, worst = figures | found, max(worst, off)
    found, off = chamfers(clock, options.page)
    figures |= found
    figures["max_relative_difference"] = max(worst, off)
    figures |= inkground(options.inkground)
    figures["cold_start_seconds"] = cold_start(options.rounds)
    figures["peak_mb"] = peak_mb()
    missing = [name for name in ("tslearn", *DTW_PEERS) if name not in peers()]
    print(table(figures))
    if missing:
        print(f"not installed, so left out: {', '.join(missing)}", file=sys.stderr)
    settings = {key: value for key, value in vars(options).items() if key != "json"}
    versions = {
        name: version(name) for name in ("numba", "numpy", "tslearn", "aeon", "dtaidistance", "traj-dist-rs", "scipy")
    }
    write(options.json, "metrics", settings | {"versions": versions}, figures)
    if figures["max_relative_difference"] > 1e-9:
        raise SystemExit(
            f"the figures differ by up to {figures['max_relative_difference']:.2g}, at most 1e-9 is rounding"
        )


def version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
