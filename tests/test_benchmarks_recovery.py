"""The recovery benchmark: its pictures, figures, peers and records, on words that the test makes up."""

import argparse
import itertools
import json
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("scipy", reason='the benchmarks need pip install "inktraj[bench]"')

ROOT = Path(__file__).resolve().parent.parent

PATHS = [str(ROOT / "benchmarks"), str(ROOT / "pipelines")]
sys.path[:0] = PATHS
try:
    import pagegen.photo  # noqa: F401  (recordings imports it where it needs it, when the path is gone)
    import recordings
    import recovery
    import recovery_overlays
    import recovery_peers
    import recovery_scores
    import recovery_tables
    import report
finally:
    sys.path[:] = [path for path in sys.path if path not in PATHS]

from inktraj.errors import DataError  # noqa: E402
from inktraj.ink import Frame, Ink  # noqa: E402
from inktraj.recovery import Candidate, crop_of, recover  # noqa: E402
from inktraj.recovery.tracer import Tracer  # noqa: E402

# Every record has these; more may come.
PROMISED = {
    "words",
    "failures",
    "dtw_mean",
    "dtw_median",
    "chamfer_mean",
    "tolerant_dtw_mean",
    "penup_error_mean",
    "start_accuracy",
    "direction_accuracy",
    "ms_per_word",
}


def made_up_words():
    """Return words as lists of strokes in archive units: the longer side 4000, the upper left corner (0, 0)."""
    t = np.linspace(0, 1, 60)
    wave = np.column_stack([4000 * t, 700 - 700 * np.cos(6 * np.pi * t)])
    loops = np.column_stack([3400 * t + 500 * np.sin(8 * np.pi * t) + 300, 600 - 600 * np.cos(8 * np.pi * t)])
    bar = np.column_stack([1500 + 900 * t, np.full(60, 300)])
    cross = [np.array([[0, 0], [2000, 4000]]), np.array([[2000, 0], [0, 4000]])]
    words = [[wave], [loops, np.array([[3000, 0], [3010, 10]])], [wave, bar], cross]
    out = []
    for strokes in words * 3:
        points = np.concatenate(strokes)
        low = points.min(0)
        scale = 4000 / (points.max(0) - low).max()
        out.append([np.rint((s - low) * scale).astype(np.int64) for s in strokes])
    return out


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    words = made_up_words()
    strokes = list(itertools.chain.from_iterable(words))
    path = tmp_path_factory.mktemp("inks") / "words.npz"
    np.savez(
        path,
        delta=np.diff(np.concatenate(strokes), axis=0, prepend=0).astype(np.int16),
        stroke_offsets=np.cumsum([0, *map(len, strokes)]),
        word_offsets=np.cumsum([0, *map(len, words)]),
        split=np.array(["dev"] * len(words)),
        style=np.array(["CURSIVE", "", "PRINTED", "?"] * 3),
        text=np.array(["wave", "loop", "bar", "x"] * 3),
    )
    return path


@pytest.fixture(scope="module")
def words(archive):
    return recordings.Words(archive)


def test_words_are_read_back(words):
    for index, strokes in enumerate(made_up_words()):
        assert all(np.array_equal(a, b) for a, b in zip(words.strokes(index), strokes, strict=True))


@pytest.mark.parametrize(("content", "says"), [(None, "cannot be read"), (b"hello", "is no archive of recorded words")])
def test_what_is_no_archive_of_words_is_told(tmp_path, content, says):
    path = tmp_path / "words.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=says):
        recordings.Words(path)
    np.savez(path, text=np.array(["wave"]))
    with pytest.raises(DataError, match=r"words\.npz is no archive of recorded words.*'delta"):
        recordings.Words(path)


@pytest.mark.parametrize("difficulty", ["clean", "photo"])
def test_same_word_gives_same_picture(words, difficulty):
    (first, strokes), (again, strokes_again) = (recordings.picture(words, 2, difficulty=difficulty) for _ in range(2))
    assert np.array_equal(first, again)
    assert all(np.array_equal(a, b) for a, b in zip(strokes, strokes_again, strict=True))
    assert first.dtype == np.uint8
    assert first.ndim == (3 if difficulty == "photo" else 2)


def test_photos_differ_from_word_to_word(words):
    """Words 0, 4 and 8 are the same strokes."""
    means = {recordings.picture(words, index, difficulty="photo")[0].mean() for index in (0, 4, 8)}
    assert len(means) == 3


@pytest.mark.parametrize("severity", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_reference_lies_on_the_photos_ink(words, index, severity):
    photo, strokes = recordings.picture(words, index, difficulty="photo", pen=4.0, severity=severity)
    gray = cv2.cvtColor(photo, cv2.COLOR_RGB2GRAY)
    paper = cv2.medianBlur(gray, 51).astype(float)
    x, y = np.rint(np.concatenate([recordings.resample(s, 1.0) for s in strokes])).astype(int).T
    assert (x >= 0).all()
    assert (y >= 0).all()
    darkness = (paper - gray)[y, x]
    assert np.mean(darkness > 0.15 * paper[y, x]) > 0.98
    # The mask's middle is the reference, too: no shift between strokes and pixels.
    mask = crop_of(photo).mask
    off = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 5)[y, x]
    assert np.mean(off < 1) > 0.97


def test_photo_keeps_the_words_height(words):
    for index in range(4):
        (_, clean), (_, photo) = (recordings.picture(words, index, difficulty=d) for d in ("clean", "photo"))
        tall = [np.ptp(np.concatenate(strokes)[:, 1]) for strokes in (clean, photo)]
        assert 0.75 < tall[1] / tall[0] < 1.2


def test_look_is_kept(words):
    thin, _ = recordings.picture(words, 0, height=96.0, pen=1.2, noise=0.0, blur=0.0)
    thick, strokes = recordings.picture(words, 0, height=96.0, pen=8.0, noise=0.0, blur=0.0)
    assert np.ptp(np.concatenate(strokes)[:, 1]) == pytest.approx(96)
    assert 5 < (thick < 150).sum() / (thin < 150).sum() < 9


def test_perfect_recovery_scores_nothing(words):
    for index in range(4):
        strokes = words.strokes(index)
        figures = recovery_scores.score(strokes, strokes)
        assert figures.pop("start") == 1
        assert figures.pop("direction") == 1
        assert max(map(abs, figures.values())) < 1e-9, figures


def test_score_sees_order_direction_and_lifts(words):
    strokes = words.strokes(3)
    perfect = recovery_scores.score(strokes, strokes)
    swapped = recovery_scores.score(strokes, strokes[::-1])
    assert swapped["dtw"] > 0.05
    assert swapped["tolerant_dtw"] == pytest.approx(perfect["tolerant_dtw"])
    backwards = recovery_scores.score(strokes, [np.ascontiguousarray(s[::-1]) for s in strokes])
    assert backwards["direction"] == 0
    assert backwards["chamfer"] == pytest.approx(0, abs=1e-9)
    joined = recovery_scores.score(strokes, [np.concatenate(strokes)])
    assert (joined["penup_error"], joined["penup_surplus"]) == (1, -1)


class Oracle:
    """Gives the recorded strokes back, and fails on one word."""

    name, version = "oracle", "0"

    def __init__(self, words, fails_on):
        self.known = {}
        self.refused = recordings.picture(words, fails_on)[0].shape
        for index in range(len(words.text)):
            image, strokes = recordings.picture(words, index)
            self.known[image.shape] = strokes

    def __call__(self, crop, *, text=None, n_best=1):
        if crop.mask.shape == self.refused:
            raise RuntimeError("not this one")
        strokes = self.known[crop.mask.shape]
        return [Candidate(Ink(strokes, Frame(*map(float, crop.mask.shape[::-1])), [np.ones(len(s)) for s in strokes]))]


def test_failures_are_counted_and_named_not_scored(words):
    rows, failures = recovery_scores.measure(words, np.arange(12), Oracle(words, fails_on=5))
    assert failures == ["word 5: RuntimeError: not this one"]
    figures = recovery_scores.figures_of(rows, failures)
    assert figures["words"] == 11
    assert figures["failures"] == 1
    assert figures["dtw_mean"] < 1e-9
    assert figures["dtw_under_001"] == 1
    assert figures["ms_max"] >= figures["ms_per_word_p99"] >= figures["ms_per_word"] > 0


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["recovery.py", *map(str, arguments)])
    recovery.main()


def test_record_and_report(archive, tmp_path, monkeypatch, capsys):
    target = tmp_path / "recovery-made-up.json"
    monkeypatch.setattr(recovery_tables, "looks", lambda: {"base": {"pen": 4.0}, "pen 2": {"pen": 2.0}})
    run(
        monkeypatch, "--inks", archive, "--recoverer", "tracer", "--difficulty", "photo", "--sweep", "--limit", 0,
        "--json", target, "--overlays", tmp_path / "pictures",
    )  # fmt: skip
    printed = capsys.readouterr().out
    record = json.loads(target.read_text(encoding="utf-8"))
    figures = record["figures"]
    assert figures.keys() >= PROMISED
    assert figures["words"] == 12
    assert set(figures["sweep"]) == {"base", "pen 2"}
    assert figures["sweep"]["pen 2"]["dtw_median"] != figures["sweep"]["base"]["dtw_median"]
    assert all(name in printed for name in PROMISED)
    for name in ("best", "median", "worst"):
        with Image.open(tmp_path / "pictures" / f"{name}.png") as sheet:
            assert sheet.width == 2 * recovery_overlays.PANEL[0] + recovery_overlays.GAP
            assert len(sheet.getcolors()) > 20
    text = report.section("recovery", {"made-up": record})
    assert "| made-up, sweep | words |" in text
    assert "--sweep --inks words.npz" in text
    assert "--limit 0" in text


def test_limit_is_smaller_for_tables(archive, monkeypatch):
    for extra, expected in (([], 2000), (["--sweep"], 200), (["--sweep", "--limit", "7"], 7)):
        monkeypatch.setattr(sys, "argv", ["recovery.py", "--inks", str(archive), *extra])
        assert recovery.parsed().limit == expected


def test_settings_keep_this_machines_paths_to_themselves():
    args = argparse.Namespace(inks=Path("a.npz"), peer=["skeleton-tracing=/home/me"], overlays=Path("x"), json=None)
    assert recovery.settings_of(args) == {"peer": ["skeleton-tracing=PATH"], "inks": "a.npz"}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("skeleton", "expected NAME=PATH with NAME one of skeleton-tracing, pen-trace-reconstruction"),
        ("skeleton-tracing", "expected NAME=PATH"),
        ("skeleton-tracing=", "expected NAME=PATH"),
        ("tracer=/tmp", "expected NAME=PATH"),
        ("skeleton-tracing={empty}", r"no py/trace_skeleton\.py in .*LingDong"),
        ("pen-trace-reconstruction={empty}", r"no trace_reconstruction/.*skryzhanovskaya"),
    ],
)
def test_wrong_peer_is_told(option, message, tmp_path):
    with pytest.raises(SystemExit, match=message):
        recovery_peers.load_peer(option.format(empty=tmp_path))


def stub(folder, name, source):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")


@pytest.fixture
def fresh_modules(monkeypatch):
    for name in ("trace_skeleton", "trace_reconstruction", "trace_reconstruction.trace_reconstruction"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in list(sys.modules):
        if name.startswith(("trace_skeleton", "trace_reconstruction")):
            del sys.modules[name]


STUB_SKELETON_TRACING = """
def thinning(im):
    assert im.dtype.name == "uint8" and set(im.ravel().tolist()) == {0, 1}
    return im

def traceSkeleton(im, x, y, w, h, csize, maxIter, rects):
    assert (x, y, h, w) == (0, 0, *im.shape) and csize == 10 and rects == []
    return [[[8, 9], [20, 9]], [[5, 5]]]
"""

STUB_PEN_TRACE = """
class SkeletonGraph:
    def __init__(self, nodes, edges):
        self.n = len(nodes)
        assert all(isinstance(v, float) for node in nodes for v in node)
        assert all(0 <= v < self.n for edge in edges for v in edge)

class MetaGraph:
    def __init__(self, graph):
        self.graph = graph

class TraceReconstructor:
    def __init__(self, graph, meta):
        self.n = graph.n

    def trace(self):
        return [[[0, 1], [1, 2]], [[self.n - 1, self.n - 2]]]
"""


@pytest.mark.usefixtures("fresh_modules")
def test_adapter_of_skeleton_tracing(words, tmp_path):
    stub(tmp_path, "py/trace_skeleton.py", STUB_SKELETON_TRACING)
    before = list(sys.path)
    peer = recovery_peers.load_peer(f"skeleton-tracing={tmp_path}")
    assert sys.path == before
    ink = recover(recordings.picture(words, 0)[0], recoverer=peer)
    assert [s.tolist() for s in ink.strokes] == [[[8, 9], [20, 9]], [[5, 5]]]
    assert [len(w) for w in ink.widths] == [2, 1]


@pytest.mark.usefixtures("fresh_modules")
def test_adapter_of_pen_trace_reconstruction(words, tmp_path):
    pytest.importorskip("skimage", reason='the benchmarks need pip install "inktraj[bench]"')
    stub(tmp_path, "trace_reconstruction/__init__.py", "from .trace_reconstruction import *\n")
    stub(tmp_path, "trace_reconstruction/trace_reconstruction.py", STUB_PEN_TRACE)
    image, _ = recordings.picture(words, 0)
    peer = recovery_peers.load_peer(f"pen-trace-reconstruction={tmp_path}")
    ink = recover(image, recoverer=peer)
    assert [len(s) for s in ink.strokes] == [4, 2]
    x, y = np.concatenate(ink.strokes).astype(int).T
    assert crop_of(image).mask[y, x].all()


@pytest.mark.usefixtures("fresh_modules")
def test_peers_are_compared_on_the_same_words(words, tmp_path):
    failing = STUB_SKELETON_TRACING.replace(
        "return [[", "if im.shape == SHAPE: raise ValueError\n    return [["
    ).replace("def thinning", f"SHAPE = {recordings.picture(words, 3)[0].shape}\n\ndef thinning")
    stub(tmp_path, "py/trace_skeleton.py", failing)
    peer = recovery_peers.load_peer(f"skeleton-tracing={tmp_path}")
    indices = np.arange(4)
    rows, _ = recovery_scores.measure(words, indices, Tracer())
    table = recovery_tables.compare(words, indices, {"tracer": rows}, [peer])
    assert [(row["words"], row["failures"]) for row in table.values()] == [(3, 0), (3, 1)]
    assert table["tracer"]["dtw_mean"] < table["skeleton-tracing"]["dtw_mean"]


def test_slow_peer_is_stopped(monkeypatch):
    monkeypatch.setattr(recovery_peers, "TIME_LIMIT", 0.05)
    peer = recovery_peers.Peer("slow", lambda mask: time.sleep(60))
    with pytest.raises(TimeoutError, match="more than"):
        recover(np.full((20, 20), 200, np.uint8), recoverer=peer)


def test_skeleton_graph_keeps_ends_junctions_and_rings():
    pytest.importorskip("skimage", reason='the benchmarks need pip install "inktraj[bench]"')
    mask = np.zeros((60, 120), np.uint8)
    cv2.line(mask, (10, 30), (60, 30), 1, 1)
    cv2.line(mask, (35, 30), (35, 50), 1, 1)
    cv2.circle(mask, (90, 30), 15, 1, 1)
    nodes, edges = recovery_peers.skeleton_of(mask.astype(bool))
    degree = np.bincount(np.ravel(edges), minlength=len(nodes))
    ends = sorted(map(tuple, nodes[degree == 1].astype(int).tolist()))
    assert ends == [(10, 30), (35, 50), (60, 30)]
    assert [tuple(p) for p in nodes[degree == 3].astype(int).tolist()] == [(35, 30)]
    ring = nodes[:, 0] > 70
    assert (degree[ring] == 2).all()
    lengths = [np.hypot(*(nodes[a] - nodes[b])) for a, b in edges]
    assert 1.5 < np.median(lengths) < 3
