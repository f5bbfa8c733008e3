"""Runs over folders of pages, with quick stand-ins for the parts (see fake_parts.py)."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import cv2
import fake_parts
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.spatial import cKDTree

import inktraj
from inktraj.agree import AlignedPair
from inktraj.errors import DataError, ParseError, RunError
from inktraj.ink import Frame, Ink
from inktraj.page import Page
from inktraj.pseudolabel import (
    PartNames,
    PseudoLabel,
    WordLabel,
    build_pseudolabels,
    folder,
    label,
    label_page,
    read_pseudolabels,
)
from inktraj.pseudolabel.report import Report
from inktraj.recovery import Candidate

FAKES = {"segmenter": "fake_parts:Bars", "recoverer": "fake_parts:Middle", "recognizer": "fake_parts:Parrot"}
MAY_DIFFER = {"run.json", "timings.jsonl", "run.lock"}
TESTS = Path(__file__).parent
ROOT = TESTS.parent


def draw(path: Path, levels=(50, 60, 70), size=(200, 60)) -> None:
    pixels = np.full((size[1], size[0]), 255, np.uint8)
    for i, level in enumerate(levels):
        pixels[20:34, 10 + 60 * i : 50 + 60 * i] = level
    assert cv2.imwrite(str(path), pixels)


@pytest.fixture
def pages(tmp_path):
    at = tmp_path / "pages"
    at.mkdir()
    for i in range(4):
        draw(at / f"p{i}.png", (50 + i, 60, 70))
    return at


def build(pages, out, **options):
    return build_pseudolabels(pages, out, **{**FAKES, "workers": 0, **options})


def records(out: Path) -> dict[str, PseudoLabel]:
    return {label.page_id: label for label in read_pseudolabels(out)}


def dataset(out: Path) -> dict[str, bytes]:
    """All files that must not differ between equal runs."""
    found = {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}
    return {k: v for k, v in found.items() if k not in MAY_DIFFER and not k.startswith("records")}


def temporaries(out: Path) -> list[Path]:
    return list(out.rglob(".tmp-*"))


def command(pages, out, *args) -> list[str]:
    fakes = [f"--{kind}={name}" for kind, name in FAKES.items()]
    return [sys.executable, "-m", "inktraj", "build-pseudolabels", str(pages), "--out", str(out), *fakes, *args]


def environment() -> dict[str, object]:
    return {"env": {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{TESTS}"}}


# One page


def test_strokes_are_placed_on_the_page_exactly():
    pixels = np.full((60, 200, 3), 255, np.uint8)
    pixels[20:34, 110:150] = 40
    page = Page(pixels, id="one")
    done = label_page(page, parts=PartNames(**FAKES).load())
    (word,) = done.label.words
    # The bar's middle row, in from its ends by half its height; one pen as wide as the bar is high.
    np.testing.assert_array_equal(word.ink.strokes[0], [(116.5, 26.5), (142.5, 26.5)])
    assert word.ink.frame == page.frame
    assert done.label.pen == 14
    assert done.label.verdict == "kept"
    assert done.label.ink_precision == 1
    assert done.rendering[27, 130] == 0
    assert done.rendering[10, 130] == 255


def test_huge_pages_are_worked_on_shrunk_and_placed_exactly(monkeypatch):
    pixels = np.full((120, 400, 3), 255, np.uint8)
    pixels[40:68, 220:300] = 40
    page = Page(pixels, id="huge")
    monkeypatch.setattr(label, "WORKING_PIXELS", 120 * 400 // 4)
    done = label_page(page, parts=PartNames(**FAKES).load())
    (word,) = done.label.words
    # Both axes are halved: the bar is that of the test above, and page x = 2 x + 0.5.
    np.testing.assert_array_equal(word.ink.strokes[0], [(233.5, 53.5), (285.5, 53.5)])
    np.testing.assert_array_equal(word.polygon, [(220.5, 40.5), (300.5, 40.5), (300.5, 68.5), (220.5, 68.5)])
    assert word.ink.frame == page.frame
    assert done.label.pen == 28
    assert done.label.words[0].match
    assert done.rendering.shape == (120, 400)
    assert done.rendering[54, 260] == 0
    assert (done.label.width, done.label.height) == (400, 120)


def test_a_fault_in_a_part_fails_the_page_and_keeps_the_traceback():
    pixels = np.full((60, 200, 3), 255, np.uint8)
    pixels[20:34, 10:50] = fake_parts.BREAKS
    done = label_page(Page(pixels), parts=PartNames(**FAKES).load())
    assert done.label.verdict == "failed"
    assert done.label.reason == "recover: ZeroDivisionError: a fault in the recoverer"
    assert "Traceback" in done.trace
    assert done.rendering is None


def test_a_refusal_of_a_part_is_a_reason_without_traceback():
    pixels = np.full((60, 200, 3), 255, np.uint8)
    pixels[20:34, 10:50] = fake_parts.REFUSES
    done = label_page(Page(pixels), parts=PartNames(**FAKES).load())
    assert (done.label.verdict, done.label.reason) == ("failed", "recover: this word cannot be recovered")
    assert done.trace is None


def test_blank_page_is_dropped_with_a_reason():
    done = label_page(Page(np.full((60, 200, 3), 255, np.uint8)), parts=PartNames(**FAKES).load())
    assert (done.label.verdict, done.label.reason) == ("dropped", "no words were found")
    assert done.label.agreement is None
    assert done.label.ink_recall is None


def test_pages_that_read_differently_are_dropped(pages, tmp_path):
    summary = build(pages, tmp_path / "out", recognizer="fake_parts:Moody")
    assert (summary.kept, summary.dropped, summary.agreement) == (0, 4, 0.0)
    label = records(tmp_path / "out")["p0"]
    assert re.search(r"0 ?% of the words agree", label.reason)
    assert label.transcript == ("colour",)
    assert label.rendered_transcript == ("grey",)
    assert label.alignment == (AlignedPair("colour", "grey", False),)


# Records


def test_record_round_trip():
    frame = Frame(90, 80)
    ink = Ink([[(1, 2), (3.25, 4.125)], [(5, 6)]], frame, [[1, 1.5], [2]])
    word = WordLabel("w", 1, 2, np.array([(0.0, 0.0), (9, 0), (9, 9)]), ink, "a", "b", False, 0.25)
    label = PseudoLabel(
        "p", "s.png", "00", "kept", "why", 90, 80, 0.9, 0.8, 0.7, 0.6, 0.5, 2.0, (word,), ("a",), ("b",),
        (AlignedPair("a", None, False),),
    )  # fmt: skip
    again = PseudoLabel.from_json(json.loads(json.dumps(label.to_json())))
    assert again.to_json() == label.to_json()
    assert again.ink == Ink.concat([ink], frame)
    assert label.to_json()["words"][0]["strokes"] == [[1, 2, 1], [3.25, 4.125, 0], [5, 6, 1]]


def test_numbers_that_json_lacks_fail_their_page_only(pages, tmp_path):
    class Odd(fake_parts.Middle):
        def __call__(self, crop, **options):
            odd = int(crop.image.min()) == 51
            return [Candidate(c.ink, float("nan") if odd else 0.5) for c in super().__call__(crop, **options)]

    summary = build(pages, tmp_path / "out", recoverer=Odd())
    assert (summary.kept, summary.failed) == (3, 1)
    assert records(tmp_path / "out")["p1"].reason.startswith("encode: a score or width is nan")
    with pytest.raises(DataError, match=r"outline of word 'w' is not \(n, 2\) finite"):
        WordLabel("w", 0, 0, np.full((3, 2), np.nan), Ink((), Frame(9, 9)))


def test_no_pages_are_no_success(tmp_path):
    with pytest.raises(DataError, match="no pages were named"):
        build_pseudolabels([], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_records_say_which_line_is_damaged(tmp_path):
    (tmp_path / "pages.jsonl").write_text('{"page_id": 1}\n')
    with pytest.raises(ParseError, match=r"pages\.jsonl, line 1: not a pseudo-label record \(TypeError: page_id is 1"):
        list(read_pseudolabels(tmp_path))
    (tmp_path / "pages.jsonl").write_text('{"page_id": "a"}\n')
    with pytest.raises(ParseError, match=r"pages\.jsonl, line 1: not a pseudo-label record \(KeyError"):
        list(read_pseudolabels(tmp_path))
    (tmp_path / "pages.jsonl").write_bytes(b'{"page_id": "\xff"}\n')
    with pytest.raises(ParseError, match=r"pages\.jsonl, line 1: .*utf-8"):
        list(read_pseudolabels(tmp_path))
    with pytest.raises(DataError, match="does not exist"):
        list(read_pseudolabels(tmp_path / "nowhere"))


def test_a_failed_page_has_no_ink():
    with pytest.raises(DataError, match="has no ink: no such file"):
        _ = PseudoLabel("p", "s", "", "failed", "no such file").ink
    with pytest.raises(DataError, match="a verdict is one of"):
        PseudoLabel("p", "s", "", "maybe", "")


# Whole runs


def test_the_data_set(pages, tmp_path):
    seen = []
    out = tmp_path / "out"
    summary = build(pages, out, progress=seen.append)
    assert (summary.pages, summary.kept, summary.failed, summary.words) == (4, 4, 0, 12)
    assert summary.kept_share == 1
    assert [p.done for p in seen] == [0, 1, 2, 3, 4]
    assert seen[-1].words == 12

    rows = [json.loads(line) for line in (out / "pages.jsonl").read_text().splitlines()]
    assert [row["page_id"] for row in rows] == ["p0", "p1", "p2", "p3"]
    assert pq.read_table(out / "pages.parquet").to_pylist() == rows
    words = pq.read_table(out / "words.parquet").to_pylist()
    assert len(words) == 12
    assert words[4] == {"page_id": "p1", **rows[1]["words"][1]}
    assert rows[0]["sha256"] == inktraj.Page.open(pages / "p0.png").sha256

    picture = cv2.imread(str(out / "renderings" / "p0.png"), cv2.IMREAD_UNCHANGED)
    assert picture.shape == (60, 200)
    run = json.loads((out / "run.json").read_text())
    assert run["counts"]["strokes"] == 24
    assert run["settings"]["recoverer"] == "middle 1"
    assert run["settings"]["version of numpy"] == np.__version__
    assert {"load", "segment", "recover", "render", "agree"} <= set(run["seconds"])
    assert "| p3 | kept | 3 |" in (out / "summary.md").read_text()
    assert not temporaries(out)


def test_hugging_face_reads_the_renderings(pages, tmp_path, monkeypatch):
    for name in ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    build(pages, tmp_path / "out")
    build(pages, tmp_path / "out", limit=3)  # p3's rendering stays in the folder and must not be among the rows
    found = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "out" / "renderings"), split="train",
                                  cache_dir=str(tmp_path / "cache"))  # fmt: skip
    assert found["page_id"][:] == ["p0", "p1", "p2"]
    row = found[0]
    assert row["image"].size == (200, 60)
    assert row["verdict"] == "kept"
    assert np.array(row["strokes"]).shape == (9, 3)


def test_workers_do_not_change_the_data_set(pages, tmp_path):
    shutil.copy(pages / "p0.png", pages / "p0-again.png")
    (pages / "damaged.png").write_bytes((pages / "p1.png").read_bytes()[:60])
    for workers in (0, 1, 2):
        build(pages, tmp_path / str(workers), workers=workers)
    assert dataset(tmp_path / "0") == dataset(tmp_path / "1") == dataset(tmp_path / "2")


BAD = {
    "empty": ("empty.jpg", b"", "empty"),
    "text": ("text.jpg", b"Dear Sir or Madam,\n" * 20, "not an image|text"),
    "truncated": ("truncated.jpg", None, "cut|damaged|truncated"),
    "wide": ("wide.png", None, "40,?000"),
}


def test_bad_pages_become_records_with_a_reason(pages, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (300, 300), dtype=np.uint8)
    jpeg = cv2.imencode(".jpg", pixels)[1].tobytes()
    wide = cv2.imencode(".png", np.full((8, 40_000), 255, np.uint8))[1].tobytes()
    made = {"truncated": jpeg[: len(jpeg) // 2], "wide": wide}
    for name, (file, data, _) in BAD.items():
        (pages / file).write_bytes(made[name] if data is None else data)
    cv2.imwrite(str(pages / "blank.png"), np.full((60, 200), 255, np.uint8))
    summary = build(pages, tmp_path / "out")
    assert (summary.pages, summary.kept, summary.dropped, summary.failed) == (9, 4, 1, 4)
    found = records(tmp_path / "out")
    for name, (_, _, reason) in BAD.items():
        assert found[name].verdict == "failed"
        assert re.search(reason, found[name].reason), found[name].reason
    assert found["blank"].reason == "no words were found"
    report = (tmp_path / "out" / "report.html").read_text()
    assert report.count('data-verdict="failed"') == 4
    rows = (tmp_path / "out" / "renderings" / "metadata.jsonl").read_text().splitlines()
    listed = [json.loads(row)["page_id"] for row in rows]
    assert listed == ["blank", "p0", "p1", "p2", "p3"]


def test_a_worker_that_dies_fails_its_page_only(pages, tmp_path):
    draw(pages / "killer.png", (fake_parts.KILLS,))
    draw(pages / "a-killer.png", (fake_parts.KILLS,))
    summary = build(pages, tmp_path / "out", workers=2)
    assert (summary.kept, summary.failed) == (4, 2)
    label = records(tmp_path / "out")["killer"]
    assert "the worker process died on this page (signal SIGKILL" in label.reason
    assert label.sha256 == inktraj.Page.open(pages / "killer.png").sha256

    draw(pages / "killer.png", (90,))  # it has changed, and is done again; the other one is not, unless asked
    again = build(pages, tmp_path / "out", workers=2)
    assert (again.done, again.failed) == (1, 1)
    asked = build(pages, tmp_path / "out", workers=1, retry_failed=True)
    assert (asked.done, asked.failed) == (1, 1)


@pytest.fixture
def gate(pages, tmp_path, monkeypatch):
    """Four more pages, the last ones in order, that are not done before the returned file is there."""
    path = tmp_path / "gate"
    monkeypatch.setenv("FAKE_PARTS_GATE", str(path))
    for i in range(4):
        draw(pages / f"waits{i}.png", (fake_parts.WAITS,))
    return path


def test_a_part_that_hangs_fails_its_page_only(pages, tmp_path, gate):
    for i in range(4):
        (pages / f"waits{i}.png").unlink()
    draw(pages / "a-waits.png", (fake_parts.WAITS,))  # the first one in order: the others come after it
    out = tmp_path / "out"
    begin = time.monotonic()
    summary = build(pages, out, workers=1, page_timeout=4)
    assert time.monotonic() - begin < 60
    assert (summary.kept, summary.failed) == (4, 1)
    assert records(out)["a-waits"].reason.startswith("no result within 4 s, so that its worker process was ended")
    gate.touch()
    # Another limit is no other setting; the failed page is done again only where that is asked.
    assert build(pages, out, workers=1, page_timeout=0).reused == 5
    summary = build(pages, out, workers=1, page_timeout=float("inf"), retry_failed=True)
    assert (summary.done, summary.kept) == (1, 5)


@contextmanager
def waiting_run(pages, out, *args):
    """A run in a process of its own that has done the first four pages and waits in the next ones."""
    process = subprocess.Popen(
        command(pages, out, *args), **environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 60
        while len(list(out.glob("records/[!.]*.json"))) < 4:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.communicate()


def test_kill_and_resume(pages, tmp_path, gate):
    out, undisturbed = tmp_path / "out", tmp_path / "undisturbed"
    with waiting_run(pages, out, "--workers", "2") as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        workers = children.read_text().split() if children.exists() else []
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 30
        while any(Path(f"/proc/{worker}/fd").exists() for worker in workers):
            assert time.monotonic() < deadline, "a worker outlives the killed run"
            time.sleep(0.05)
    done = {p.name: p.stat().st_mtime_ns for p in out.glob("records/[!.]*.json")}
    assert set(done) == {f"p{i}.json" for i in range(4)}
    assert not (out / "pages.jsonl").exists()
    (out / "records" / ".tmp-half.json").write_text("{")

    gate.touch()
    summary = build(pages, out, workers=2)
    assert (summary.reused, summary.done) == (4, 4)
    assert {name: (out / "records" / name).stat().st_mtime_ns for name in done} == done
    build(pages, undisturbed)
    assert dataset(out) == dataset(undisturbed)
    assert not temporaries(out)


def test_interrupt_keeps_what_is_done(pages, tmp_path, gate):
    out = tmp_path / "out"
    with waiting_run(pages, out) as process:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to the workers too
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "finished pages are kept" in told
    assert "Traceback" not in told
    assert not temporaries(out)
    gate.touch()
    assert build(pages, out).reused == 4


def test_two_runs_into_one_folder(pages, tmp_path, gate):
    out = tmp_path / "out"
    with waiting_run(pages, out), pytest.raises(RunError, match=r"another run is writing into .*out; wait for it"):
        build(pages, out)
    gate.touch()
    assert build(pages, out).pages == 8  # the killed run's lock does not hold


def test_a_changed_setting_is_refused_and_named(pages, tmp_path):
    out = tmp_path / "out"
    build(pages, out)
    before = dataset(out)
    with pytest.raises(RunError, match=r"threshold is 0\.85 there and 0\.5 now.*another --out.*--overwrite"):
        build(pages, out, threshold=0.5)
    with pytest.raises(RunError, match="recoverer is 'middle 1' there and 'middle 2' now"):
        build(pages, out, recoverer="fake_parts:Middle2")
    assert dataset(out) == before
    (out / "mine.txt").write_text("notes")
    summary = build(pages, out, recoverer="fake_parts:Middle2", overwrite=True)
    assert (summary.done, summary.reused) == (4, 0)
    assert (out / "mine.txt").read_text() == "notes"
    assert build(pages, out, recoverer="fake_parts:Middle2").reused == 4


def test_changed_added_and_removed_pages(pages, tmp_path):
    out = tmp_path / "out"
    build(pages, out)
    draw(pages / "p1.png", (50, 60))
    draw(pages / "p9.png", (50,))
    (pages / "p2.png").unlink()
    summary = build(pages, out)
    assert (summary.done, summary.reused, summary.left_out) == (2, 2, ("p2",))
    assert list(records(out)) == ["p0", "p1", "p3", "p9"]
    assert len(records(out)["p1"].words) == 2
    assert (out / "records" / "p2.json").exists()
    draw(pages / "p2.png", (52, 60, 70))  # back again, with the same bytes
    assert build(pages, out).reused == 5


def test_a_page_that_turns_bad_leaves_no_old_files(pages, tmp_path):
    out = tmp_path / "out"
    build(pages, out)
    (pages / "p1.png").write_bytes(b"")
    assert build(pages, out).failed == 1
    left = list(out.rglob("p1.*"))
    assert [p.name for p in left] == ["p1.json"]


def test_a_record_whose_files_are_gone_is_done_again(pages, tmp_path):
    out = tmp_path / "out"
    build(pages, out)
    (out / "renderings" / "p1.png").unlink()
    (out / "records" / "p2.json").write_text("{")
    assert build(pages, out).done == 2


def test_what_something_else_has_damaged_is_done_again_and_told(pages, tmp_path):
    out = tmp_path / "out"
    build(pages, out)
    before = dataset(out)
    (out / "renderings" / "p0.png").write_bytes(b"")
    (out / "inkml" / "p1.inkml").unlink()
    record = json.loads((out / "records" / "p2.json").read_text())
    record["page"]["words"][0]["match"] = "yes"
    (out / "records" / "p2.json").write_text(json.dumps(record))
    summary = build(pages, out)
    assert (summary.done, summary.reused, summary.kept) == (3, 1, 4)
    assert {name: re.search(r"p\d\.\w+ is \w+ \S+", reason)[0] for name, reason in summary.redone} == {
        "p0": "p0.png is not as",
        "p1": "p1.inkml is not as",
        "p2": "p2.json is damaged (not",
    }
    assert json.loads((out / "run.json").read_text())["run"]["pages_redone"] == dict(summary.redone)
    assert dataset(out) == before
    assert build(pages, out).redone == ()


@pytest.mark.parametrize(
    "damage",
    [
        *("", "[]", '{"page": {}}', '{"page": null}', '{"page": []}'),
        *({"files": ["inkml"]}, {"files": {"secrets": 1}}, {"timings": None}, {"timings": {"load": "1"}}),
        *({"page": {"agreement": "high"}}, {"page": {"page_id": "p1"}}, {"page": {"words": [{}]}}),
    ],
)
def test_damaged_records(pages, tmp_path, damage):
    out = tmp_path / "out"
    build(pages, out, limit=1)
    path = out / "records" / "p0.json"
    record = json.loads(path.read_text())
    if isinstance(damage, dict):
        for key, value in damage.items():
            record[key] = {**record[key], **value} if key == "page" else value
        path.write_text(json.dumps(record))
    else:
        path.write_text(damage)
    (redone,) = build(pages, out, limit=1).redone
    assert redone[0] == "p0"


def test_a_folder_in_a_records_place_is_told(pages, tmp_path):
    out = tmp_path / "out"
    build(pages, out)
    (out / "records" / "p1.json").unlink()
    (out / "records" / "p1.json").mkdir()
    with pytest.raises(RunError, match=r"p1\.json cannot be read .*is it a file"):
        build(pages, out)


def test_a_page_that_cannot_be_read_for_a_moment_keeps_its_result(pages, tmp_path):
    away = tmp_path / "drive" / "p1.png"
    away.parent.mkdir()
    (pages / "p1.png").rename(away)
    (pages / "p1.png").symlink_to(away)
    out = tmp_path / "out"
    build(pages, out)
    before = dataset(out)
    away.rename(tmp_path / "elsewhere.png")
    for retry in (False, True):
        summary = build(pages, out, retry_failed=retry)
        assert (summary.unread, summary.reused, summary.failed) == (("p1",), 4, 0)
        assert dataset(out) == before
    assert json.loads((out / "run.json").read_text())["run"]["pages_unread"] == ["p1"]
    (tmp_path / "elsewhere.png").rename(away)
    assert build(pages, out).unread == ()


@pytest.mark.parametrize("where", ["equal", "inside", "pages inside", "pattern"])
def test_reading_and_writing_one_folder_is_refused(pages, tmp_path, where):
    source, out = {
        "equal": (pages, pages),
        "inside": (pages, pages / "deep" / "out"),
        "pages inside": (pages, tmp_path),
        "pattern": (f"{pages}/**/*.png", pages / "out"),
    }[where]
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunError, match=r"lies? in the (folder of pages|output folder)"):
        build(source, out)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_of_something_else_is_refused(pages, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match=r"not of a run \('thesis.tex'"):
        build(pages, out)
    assert [p.name for p in out.iterdir()] == ["thesis.tex"]
    with pytest.raises(RunError, match="is a file"):
        build(pages, out / "thesis.tex")


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("settings", ['{"theme": "dark"}', "[]", "{bad"])
def test_settings_of_something_else_are_refused(pages, tmp_path, settings, overwrite):
    out = tmp_path / "out"
    out.mkdir()
    (out / "settings.json").write_text(settings)
    (out / "summary.md").write_text("mine")
    with pytest.raises(RunError, match=r"files that are not of a run \('settings.json'"):
        build(pages, out, overwrite=overwrite)
    assert {p.name: p.read_text() for p in out.iterdir()} == {"settings.json": settings, "summary.md": "mine"}


@pytest.mark.parametrize("settings", ["{bad", "[]", "{}", "\xff"])
def test_damaged_settings_of_a_run_can_be_overwritten(pages, tmp_path, settings):
    out = tmp_path / "out"
    build(pages, out)
    before = dataset(out)
    (out / "settings.json").write_bytes(settings.encode("latin-1"))
    with pytest.raises(RunError, match=r"settings\.json is damaged.*--overwrite to remove"):
        build(pages, out)
    summary = build(pages, out, overwrite=True)
    assert (summary.done, summary.reused) == (4, 0)
    assert dataset(out) == before


def test_full_disk(pages, tmp_path):
    """A limit on the size of files, which the system tells in the same way as a full disk, after some pages."""
    draw(pages / "z.png", size=(3000, 3000), levels=range(30, 70))
    noise = np.random.default_rng(0).integers(0, 255, (1500, 1500), dtype=np.uint8)
    cv2.imwrite(str(pages / "z.png"), noise | 128)
    out = tmp_path / "out"
    script = f"ulimit -f 200; exec {' '.join(command(pages, out, '--workers', '1'))}"
    # Python ignores SIGXFSZ, so that writing gives EFBIG.
    told = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, **environment())
    assert told.returncode == 2
    assert "the disk is full" in told.stderr
    assert "All finished pages are kept" in told.stderr
    assert "Traceback" not in told.stderr
    assert not temporaries(out)
    assert build(pages, out).reused == 4


def test_full_disk_while_the_data_set_is_written(pages, tmp_path, monkeypatch):
    out = tmp_path / "out"
    build(pages, out)
    before = dataset(out)

    def full(self, page, picture):
        raise OSError(errno.ENOSPC, "No space left on device")

    draw(pages / "p9.png")
    with monkeypatch.context() as patch:
        patch.setattr(Report, "add", full)
        with pytest.raises(RunError, match="the disk is full"):
            build(pages, out)
    assert {k: v for k, v in dataset(out).items() if "p9" not in k} == before
    assert not temporaries(out)
    assert build(pages, out).reused == 5


def test_a_folder_that_cannot_be_written(pages, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(folder.os, "replace", refuse)
    with pytest.raises(RunError, match=r"cannot write .*Permission denied"):
        build(pages, tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 85}, "per cent"),
        ({"workers": -1}, "at least 0"),
        ({"limit": 0}, "at least 1"),
        ({"page_timeout": -1}, "at least 0 seconds"),
        ({"page_timeout": float("nan")}, "at least 0 seconds"),
    ],
)
def test_arguments_out_of_range(pages, tmp_path, options, message):
    with pytest.raises(DataError, match=message):
        build(pages, tmp_path / "out", **options)


@pytest.mark.parametrize(
    ("recognizer", "message"),
    [
        ("nosuch", "there is no recognizer 'nosuch'; known are ppocr"),
        ("no_such_module:X", "cannot be imported"),
        ("fake_parts:Nothing", "has no 'Nothing'"),
        ("fake_parts:Broken", "cannot be made: OSError: no model file"),
        ("fake_parts:box", "it must be callable and have a name"),
    ],
)
def test_parts_that_cannot_be_had(pages, tmp_path, recognizer, message):
    with pytest.raises(RunError, match=message):
        build(pages, tmp_path / "out", recognizer=recognizer)
    assert not (tmp_path / "out").exists()


def test_workers_that_cannot_start_end_the_run(pages, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_PARTS_HOME", str(os.getpid()))
    with pytest.raises(RunError, match=r"a worker process cannot start: exit code 3: no luck"):
        build(pages, tmp_path / "out", recognizer="fake_parts:DiesInWorkers", workers=2)
    assert not list(tmp_path.glob("out/records/*"))


def test_parts_given_as_objects(pages, tmp_path):
    build(pages, tmp_path / "out", recognizer=fake_parts.Parrot(), workers=1)

    class Local(fake_parts.Parrot):
        pass

    assert build(pages, tmp_path / "local", recognizer=Local()).kept == 4
    with pytest.raises(RunError, match=r"cannot be sent to a worker process .*workers=0"):
        build(pages, tmp_path / "other", recognizer=Local(), workers=1)


def test_several_places_and_equal_names(pages, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    draw(other / "p0.png", (80,))
    (other / "notes.txt").write_text("x")
    summary = build([pages, other, pages / "p1.png"], tmp_path / "out")
    assert list(records(tmp_path / "out")) == ["p0", "p1", "p2", "p3", "p0-2"]
    assert [reason for _, reason in summary.skipped][-1] == "named twice"
    assert any("notes.txt" in path for path, _ in summary.skipped)


# The embedded parts


def test_golden_page(tmp_path):
    """An example page, whose true words and strokes are known, through the embedded parts in a worker process."""
    examples = ROOT / "examples" / "pages"
    truth = {page["image"]: page for page in json.loads((examples / "truth.json").read_text(encoding="utf-8"))}
    summary = build_pseudolabels(examples / "page00.jpg", tmp_path / "out", workers=1)
    assert (summary.pages, summary.kept) == (1, 1)
    found = records(tmp_path / "out")["page00"]
    words = truth["page00.jpg"]["words"]
    written = [word["text"] for word in words]
    read = " ".join(found.transcript).split()
    assert len(set(written) & set(read)) >= 0.95 * len(set(written))
    assert len(found.words) == pytest.approx(len(words), rel=0.1)
    assert found.agreement >= 0.95
    assert found.ink_recall >= 0.95
    assert found.ink_precision >= 0.95
    # The recovered strokes lie where the pen was, in page pixels.
    strokes = [s for word in words for s in Ink.from_xys(word["strokes"], found.ink.frame).strokes]
    steps = np.linspace(0, 1, 40)[:, None]
    true = np.concatenate([s[:1] for s in strokes] + [a + steps * (b - a) for s in strokes for a, b in pairwise(s)])
    drawn = np.concatenate(found.ink.strokes)
    away = cKDTree(true).query(drawn)[0]
    assert np.quantile(away, 0.95) < 1.5


# The report


def test_report_holds_hostile_texts_as_texts(tmp_path):
    at = tmp_path / "pages"
    at.mkdir()
    draw(at / "<img src=x onerror=alert(1)>&.png")
    build(at, tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text()
    assert "alert(1)" in text  # the reader's text is there …
    assert "<script>alert" not in text  # … but not as an element
    assert "<img" not in text
    assert "onerror=alert(1)>" not in text
    assert text.count("<script") == text.count("</script>") == 2
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text)[1])
    assert data["original"] == ["ink <script>alert(1)</script>"]
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert "<img" not in summary


def test_report_needs_no_network(pages, tmp_path):
    build(pages, tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|src=\"(?!data:)|<link|@import", text)


def test_report_gives_strokes_in_tenths_of_a_pixel(pages, tmp_path):
    build(pages, tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text()
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text)[1])
    label = records(tmp_path / "out")["p0"]
    for word, short in zip(label.words, data["words"], strict=True):
        for stroke, flat in zip(word.ink.strokes, short["s"], strict=True):
            np.testing.assert_allclose(np.cumsum(np.reshape(flat, (-1, 2)), axis=0) / 10, stroke, atol=0.051)


def test_report_stays_of_a_size_that_opens(pages, tmp_path, monkeypatch):
    template = files("inktraj.pseudolabel").joinpath("report_template.html").read_text()
    monkeypatch.setattr("inktraj.pseudolabel.report.SIZE_LIMIT", len(template.split("<!-- pages -->")[0].encode()) + 1)
    build(pages, tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text()
    assert text.count('<section class="page"') == 4
    assert text.count("not shown here: the report has grown too large") == 3
