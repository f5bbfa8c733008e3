"""The command line as users have it: processes, pipes, exit codes, and what the help costs."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import typer.main
from test_architecture import HEAVY

import inktraj
from inktraj import cli
from inktraj.ink import Frame, Ink
from inktraj.io import InkRecord, read_ink, write_ink

TESTS = Path(__file__).parent
ROOT = TESTS.parent
FAKES = {
    "segmenter": "--segmenter=fake_parts:Bars",
    "recoverer": "--recoverer=fake_parts:Middle",
    "recognizer": "--recognizer=fake_parts:Parrot",
}
BUILD = ("build-pseudolabels", *FAKES.values(), "--workers=0")


@pytest.fixture
def run(monkeypatch, capfdbinary):
    """Run the command line in this process, which is quicker; give its exit code, output and errors."""

    def call(*args, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["inktraj", *map(str, args)])
        read, write = os.pipe()
        os.write(write, stdin)
        os.close(write)
        with open(read, encoding="utf-8") as source:
            monkeypatch.setattr(sys, "stdin", source)
            with pytest.raises(SystemExit) as ended:
                cli.main()
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return ended.value.code or 0, out, err.decode()

    return call


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "pages" / "letter.png"
    path.parent.mkdir()
    pixels = np.full((60, 200), 255, np.uint8)
    for x in (10, 70, 130):
        pixels[20:34, x : x + 40] = 50
    cv2.imwrite(str(path), pixels)
    return path


@pytest.fixture
def inks(tmp_path):
    path = tmp_path / "two.jsonl"
    frame = Frame(40, 30)
    records = [
        InkRecord("a", Ink([[(5, 5), (30, 20)]], frame), "l"),
        InkRecord("b", Ink([[(5, 20), (30, 5)], [(20, 25)]], frame), "i"),
    ]
    write_ink(path, records)
    return path


def decoded(data: bytes) -> np.ndarray:
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)


def process(*args, **options):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{TESTS}"}
    return subprocess.run([sys.executable, *args], capture_output=True, timeout=60, env=environment, **options)


# Start


def cpu_seconds(*args) -> float:
    """Least CPU time of some runs of Python in a child process."""
    import resource

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert process(*args).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(7))


def test_help_is_cheap():
    assert cpu_seconds("-m", "inktraj", "--help") - cpu_seconds("-c", "pass") <= 0.15


def test_help_loads_nothing_heavy():
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); sys.argv = ['x', '--help'];"
        "from inktraj.cli import main; main()"
    )
    done = process("-c", code)
    assert done.returncode == 0
    assert b"build-pseudolabels" in done.stdout
    assert not HEAVY & {name.partition(".")[0] for name in done.stderr.decode().split()}


def test_version(run):
    assert run("--version") == (0, f"inktraj {inktraj.__version__}\n".encode(), "")


def test_usage_errors_have_exit_code_2(run):
    code, _, err = run("build-pseudolabels")
    assert code == 2
    assert "Usage" in err
    assert run("no-such-command")[0] == 2


def test_every_option_is_documented():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    group = typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        section = re.search(rf"^## `inktraj {name}`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert section, f"docs/cli.md has no section of {name}"
        inner = getattr(command, "commands", {}).values()
        for parameter in itertools.chain(command.params, *(each.params for each in inner)):
            for option in parameter.opts:
                if option.startswith("--") and option != "--help":
                    assert f"`{option}" in section[1], f"docs/cli.md does not tell of {name} {option}"


# build-pseudolabels


def test_build_pseudolabels(run, page, tmp_path):
    code, out, err = run(*BUILD, page.parent, "--out", tmp_path / "out")
    assert (code, out) == (0, b"")
    assert err.count("\n") == 1
    assert "pages 1; kept 1 (100.0%); dropped 0; failed 0; words 3" in err
    assert (tmp_path / "out" / "report.html").exists()
    assert run(*BUILD, page.parent, "--out", tmp_path / "out", "--quiet") == (0, b"", "")


def test_a_failed_page_shows_in_the_exit_code(run, page, tmp_path):
    (page.parent / "broken.jpg").write_bytes(b"not a picture")
    (page.parent / "notes.txt").write_bytes(b"x")
    code, _, err = run(*BUILD, page.parent, "--out", tmp_path / "out")
    assert code == 1
    assert "failed 1" in err
    assert "passed over 1 files, such as" in err


def test_what_cannot_be_run_says_why(run, page, tmp_path):
    code, out, err = run(*BUILD, page.parent, "--out", page.parent)
    assert (code, out) == (2, b"")
    assert err.startswith("inktraj: the output")
    assert "Traceback" not in err
    code, _, err = run(*BUILD, tmp_path / "nowhere", "--out", tmp_path / "out")
    assert code == 2
    assert "no such file or folder" in err


def test_left_out_pages_are_told(run, page, tmp_path):
    run(*BUILD, page.parent, "--out", tmp_path / "out")
    page.rename(page.with_name("diary.png"))
    _, _, err = run(*BUILD, page.parent, "--out", tmp_path / "out")
    assert "left out 1 pages of earlier runs" in err


def test_unread_pages_and_damaged_results_are_told(run, page, tmp_path):
    away = tmp_path / "away.png"
    page.rename(away)
    page.symlink_to(away)
    (page.parent / "other.png").write_bytes(away.read_bytes())
    assert run(*BUILD, page.parent, "--out", tmp_path / "out")[0] == 0
    away.unlink()
    (tmp_path / "out" / "records" / "other.json").write_text('{"page":{}}')
    code, _, err = run(*BUILD, page.parent, "--out", tmp_path / "out")
    assert code == 1
    assert "1 pages could not be read now, such as letter" in err
    assert "done again 1 pages with damaged results, such as other" in err
    assert "kept 2" in err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_and_table_on_a_terminal(page, tmp_path):
    import pty

    ours, theirs = pty.openpty()
    args = [sys.executable, "-m", "inktraj", *BUILD, str(page.parent), "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{TESTS}", "COLUMNS": "100", "TERM": "xterm"}
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=theirs, env=environment) as child:
        os.close(theirs)
        shown = b""
        try:
            while data := os.read(ours, 65536):
                shown += data
        except OSError:  # Linux tells the end of a terminal in this way
            pass
        finally:
            os.close(ours)
        assert child.stdout.read() == b""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert "1/1" in text
    assert "3 words 100% kept" in text
    assert re.search(r"kept +│ 1 \(100.0%\)", text)


# Single steps


def test_segment_prints_a_line_for_each_word(run, page):
    code, out, err = run("segment", FAKES["segmenter"], page)
    assert (code, err) == (0, "")
    words = [json.loads(line) for line in out.splitlines()]
    assert [(w["page_id"], w["id"], w["line"], w["index"]) for w in words] == [
        ("letter", f"w{i}", 0, i) for i in range(3)
    ]
    assert words[1]["polygon"] == [[70, 20], [110, 20], [110, 34], [70, 34]]
    assert words[1]["to_page"] == [[1, 0, 70], [0, 1, 20]]


def test_segment_from_standard_input(run, page):
    code, out, _ = run("segment", FAKES["segmenter"], "-", stdin=page.read_bytes())
    assert code == 0
    assert len(out.splitlines()) == 3


def test_segment_writes_pictures(run, page, tmp_path):
    code, out, _ = run("segment", FAKES["segmenter"], page, "--out", tmp_path / "words")
    assert (code, out) == (0, b"")
    lines = (tmp_path / "words" / "words.jsonl").read_text().splitlines()
    names = [json.loads(line)["image"] for line in lines]
    assert names == [f"letter__w{i}.png" for i in range(3)]
    assert decoded((tmp_path / "words" / names[0]).read_bytes()).shape == (14, 40)


def test_pages_of_one_name_do_not_write_over_each_other(run, page, tmp_path):
    other = tmp_path / "others" / "Letter.png"
    other.parent.mkdir()
    other.write_bytes(page.read_bytes())
    assert run("segment", FAKES["segmenter"], page, other, "--out", tmp_path / "words")[0] == 0
    lines = [json.loads(line) for line in (tmp_path / "words" / "words.jsonl").read_text().splitlines()]
    assert [line["page_id"] for line in lines] == ["letter"] * 3 + ["Letter-2"] * 3
    assert len(list((tmp_path / "words").glob("*.png"))) == 6


def test_segment_goes_on_after_a_bad_page(run, page):
    bad = page.with_name("a-bad.png")
    bad.write_bytes(b"")
    code, out, err = run("segment", FAKES["segmenter"], bad, page)
    assert code == 1
    assert "a-bad.png: the file is empty" in err
    assert len(out.splitlines()) == 3


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_segment_leaves_earlier_words_where_no_page_can_be_used(run, page, tmp_path):
    out = tmp_path / "words"
    assert run("segment", FAKES["segmenter"], page, "--out", out)[0] == 0
    before = contents(out)
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"")
    for unusable in (tmp_path / "nowhere", bad):
        code, _, err = run("segment", FAKES["segmenter"], unusable, "--out", out)
        assert code == 2
        assert err.count("inktraj:") == 1
        assert contents(out) == before
    assert run("segment", FAKES["segmenter"], tmp_path / "nowhere", page, "--out", out)[0] == 1
    assert contents(out) == before


def test_segment_again_leaves_no_picture_that_no_line_names(run, page, tmp_path):
    out = tmp_path / "words"
    assert run("segment", FAKES["segmenter"], page, "--out", out)[0] == 0
    (out / "notes.txt").write_text("mine")
    pixels = np.full((60, 200), 255, np.uint8)
    pixels[20:34, 10:30] = 50
    cv2.imwrite(str(page), pixels)
    assert run("segment", FAKES["segmenter"], page, "--out", out)[0] == 0
    assert sorted(contents(out)) == ["letter__w0.png", "notes.txt", "words.jsonl"]
    assert decoded((out / "letter__w0.png").read_bytes()).shape == (14, 20)


def test_segment_refuses_folders_of_pages_and_of_others(run, page, tmp_path):
    code, _, err = run("segment", FAKES["segmenter"], page.parent, "--out", page.parent / "w")
    assert code == 2
    assert "lies in the folder of pages" in err
    code, _, err = run("segment", FAKES["segmenter"], page, "--out", page.parent)
    assert code == 2
    assert "lie in the output folder" in err
    assert list(contents(page.parent)) == ["letter.png"]
    for words in ("", '{"id": 1}', "[]", '{"image": "../letter.png", "page_id": "a", "polygon": [[0, 0]]}'):
        other = tmp_path / "other"
        other.mkdir(exist_ok=True)
        (other / "photo.png").write_bytes(b"x")
        if words:
            (other / "words.jsonl").write_text(words + "\n")
        before = contents(other)
        code, _, err = run("segment", FAKES["segmenter"], page, "--out", other)
        assert code == 2
        assert "not of an earlier run of segment ('photo.png'" in err
        assert contents(other) == before


@pytest.mark.parametrize("form", ["jsonl", "inkml", "svg"])
def test_recover(run, page, tmp_path, form):
    code, out, _ = run("recover", FAKES["recoverer"], page, "--format", form)
    assert code == 0
    (tmp_path / f"ink.{form}").write_bytes(out)
    (record,) = read_ink(tmp_path / f"ink.{form}")
    assert record.id == "letter"
    assert record.ink.frame == Frame(200, 60)
    assert len(record.ink.strokes) == 2
    assert run("recover", FAKES["recoverer"], page, "--out", tmp_path / f"same.{form}")[0] == 0
    assert (tmp_path / f"same.{form}").read_bytes() == out


@pytest.mark.parametrize("form", ["jsonl", "inkml", "svg"])
def test_recover_with_times_marks_them_as_estimated(run, page, tmp_path, form):
    path = tmp_path / f"ink.{form}"
    assert run("recover", FAKES["recoverer"], page, "--times", "--out", path)[0] == 0
    assert run("convert", path, tmp_path / "ink.jsonl")[0] == 0
    record = json.loads((tmp_path / "ink.jsonl").read_text(encoding="utf-8"))
    assert record["times_source"] == "estimated"
    assert record["times"][0] == 0 < record["times"][-1]


def test_recover_with_the_embedded_recoverer_from_standard_input(run, page):
    code, out, _ = run("recover", "-", stdin=page.read_bytes())
    assert code == 0
    strokes = json.loads(out)["strokes"]
    assert sum(s for _, _, s in strokes) >= 3


def test_recover_in_another_direction(run, page):
    """The page's three bars come from right to left."""
    code, out, _ = run("recover", "--direction", "rtl", page)
    assert code == 0
    starts = [x for x, _, s in json.loads(out)["strokes"] if s]
    assert starts[0] > 120
    assert starts[-1] < 60


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--direction", "up"), "direction is one of ('ltr', 'rtl', 'ttb'), not 'up'"),
        (
            ("--direction", "rtl", FAKES["recoverer"]),
            "is for the recoverers scribe and scribe-fast, not for fake_parts",
        ),
        (("--direction", "ttb", "--recoverer", "tracer"), "not for tracer"),
    ],
)
def test_recover_refuses_a_direction_that_it_would_not_follow(run, page, options, says):
    code, out, err = run("recover", page, *options)
    assert (code, out) == (2, b"")
    assert says in " ".join(err.split())


def test_recover_says_what_is_no_picture(run, page, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no")
    code, out, err = run("recover", FAKES["recoverer"], bad, page)
    assert code == 1
    assert "bad.png" in err
    assert len(out.splitlines()) == 1


def test_recover_leaves_an_earlier_file_where_no_picture_can_be_used(run, page, tmp_path):
    kept, bad = tmp_path / "keep.jsonl", tmp_path / "bad.png"
    kept.write_text("earlier")
    bad.write_bytes(b"no")
    assert run("recover", FAKES["recoverer"], bad, "--out", kept)[0] == 2
    assert kept.read_text() == "earlier"


def test_recover_does_the_others_where_a_picture_is_missing(run, page, tmp_path):
    code, _, err = run("recover", FAKES["recoverer"], page, tmp_path / "nope.png", "--out", tmp_path / "r.jsonl")
    assert code == 1
    assert "nope.png: no such file" in err
    assert [record.id for record in read_ink(tmp_path / "r.jsonl")] == ["letter"]


def test_recover_refuses_an_unknown_form_before_the_work(run, tmp_path):
    for args in (("--out", tmp_path / "r.txt"), ("--out", tmp_path / "r.svg", "--format", "word")):
        code, _, err = run("recover", FAKES["recoverer"], tmp_path / "nope.png", *args)
        assert code == 2
        assert "form of ink" in err
        assert "nope.png" not in err


def test_render_writes_nothing_but_png(run, inks, tmp_path):
    code, _, err = run("render", inks, "--out", tmp_path / "h.jpg")
    assert code == 2
    assert "ends in .png" in err
    assert not (tmp_path / "h.jpg").exists()


def test_render_draws_a_file_together(run, inks, tmp_path):
    assert run("render", inks, "--out", tmp_path / "a.png", "--pen", "2")[0] == 0
    pixels = decoded((tmp_path / "a.png").read_bytes())
    assert pixels.shape == (30, 40)
    assert pixels[5, 5] == pixels[20, 5] == 0
    code, out, _ = run("render", "-", "--out", "-", "--pen", "2", stdin=inks.read_bytes())
    assert code == 0
    np.testing.assert_array_equal(decoded(out), pixels)


def test_render_each(run, inks, tmp_path):
    assert run("render", inks, "--each", "--out", tmp_path / "drawn")[0] == 0
    assert sorted(p.name for p in (tmp_path / "drawn").iterdir()) == ["a.png", "b.png"]


def test_render_writes_no_picture_over_another(run, inks, tmp_path):
    same = tmp_path / "same" / inks.name
    same.parent.mkdir()
    same.write_bytes(inks.read_bytes())
    assert run("render", inks, same, "--out", tmp_path / "files")[0] == 0
    assert sorted(p.stem for p in (tmp_path / "files").iterdir()) == [inks.stem, f"{inks.stem}-2"]
    records = [InkRecord(name, record.ink) for name, record in zip(("a/b", "a-b"), read_ink(inks), strict=True)]
    write_ink(tmp_path / "safe.jsonl", records)
    assert run("render", tmp_path / "safe.jsonl", "--each", "--out", tmp_path / "each")[0] == 0
    assert sorted(p.stem for p in (tmp_path / "each").iterdir()) == ["a-b", "a-b-2"]


def test_render_takes_the_data_set_apart_by_pages(run, page, tmp_path):
    cv2.imwrite(str(page.with_name("second.png")), cv2.imread(str(page)))
    assert run(*BUILD, page.parent, "--out", tmp_path / "out")[0] == 0
    assert run("render", tmp_path / "out" / "pages.jsonl", "--out", tmp_path / "drawn")[0] == 0
    for name in ("letter.png", "second.png"):
        drawn = decoded((tmp_path / "drawn" / name).read_bytes())
        np.testing.assert_array_equal(drawn, decoded((tmp_path / "out" / "renderings" / name).read_bytes()))
    assert run("render", tmp_path / "out" / "inkml" / "letter.inkml", "--out", tmp_path / "one.png")[0] == 0
    difference = decoded((tmp_path / "one.png").read_bytes()).astype(int) - drawn
    assert np.abs(difference).max() <= 32  # InkML has seven digits


def test_render_refuses_different_frames(run, tmp_path):
    path = tmp_path / "mixed.jsonl"
    write_ink(path, [InkRecord(name, Ink([[(1, 1)]], Frame(size, 9))) for name, size in (("a", 9), ("b", 8))])
    code, _, err = run("render", path, "--out", tmp_path / "a.png")
    assert code == 2
    assert "2 different frames" in err
    assert "--each" in err


def test_render_without_ink(run, tmp_path):
    (tmp_path / "empty.jsonl").write_bytes(b"")
    code, _, err = run("render", tmp_path / "empty.jsonl", "--out", tmp_path / "a.png")
    assert code == 2
    assert "nothing to draw" in err


@pytest.mark.parametrize("form", ["inkml", "svg", "jsonl"])
def test_convert_there_and_back(run, inks, tmp_path, form):
    there, back = tmp_path / f"there.{form}", tmp_path / "back.jsonl"
    assert run("convert", inks, there)[0] == 0
    assert run("convert", there, back)[0] == 0
    for old, new in zip(read_ink(inks), read_ink(back), strict=True):
        assert new.id == old.id
        assert new.ink.frame == old.ink.frame
        assert [s.tolist() for s in new.ink.strokes] == [s.tolist() for s in old.ink.strokes]


def test_convert_through_pipes(run, inks):
    code, out, _ = run("convert", "-", "-", "--from", "jsonl", "--to", "inkml", stdin=inks.read_bytes())
    assert code == 0
    code, again, _ = run("convert", "-", "-", "--to", "jsonl", stdin=out)
    assert code == 0
    assert [json.loads(line)["id"] for line in again.splitlines()] == ["a", "b"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("two.jsonl", "-"), "--to inkml"),
        (("two.jsonl", "x.docx"), "suffix names no form"),
        (("nowhere.jsonl", "x.svg"), "cannot be read"),
        (("bad.jsonl", "x.svg"), "line 1"),
        (("two.jsonl", "-", "--to", "word"), "no form of ink is named 'word'"),
    ],
)
def test_convert_errors(run, inks, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    Path("bad.jsonl").write_text("{\n")
    code, _, err = run("convert", *args)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_a_closed_pipe_is_no_traceback(inks):
    done = process("-c", f"import sys; sys.argv = ['inktraj', 'convert', {str(inks)!r}, '-', '--to', 'svg'];"
                   "import os; r, w = os.pipe(); os.dup2(w, 1); os.close(r); os.close(w);"
                   "from inktraj.cli import main; main()")  # fmt: skip
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_hint_is_for_one_picture(run, tmp_path):
    for name in ("a", "b"):
        cv2.imwrite(str(tmp_path / f"{name}.png"), np.full((20, 20), 255, np.uint8))
    code, _, errors = run("recover", tmp_path / "a.png", tmp_path / "b.png", "--text", "a")
    assert code != 0
    assert "one by one" in errors


def test_a_picture_without_ink_is_told_of(run, tmp_path):
    cv2.imwrite(str(tmp_path / "blank.png"), np.full((20, 20), 255, np.uint8))
    code, _, errors = run("recover", tmp_path / "blank.png")
    assert code == 0
    assert "blank: no ink found" in errors
