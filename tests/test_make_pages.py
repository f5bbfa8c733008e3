"""The page generator, and the pages that the README's command runs on."""

import importlib.util
import json
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import shapely

from inktraj.ink import Frame, Ink
from inktraj.rendering import coverage, render

pytest.importorskip("HersheyFonts", reason='the page generator needs pip install "inktraj[pages]"')

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "pages"
SIZE = (700, 990)
TEXT = "Mix 250 grams, Tom!\nThe quiet lake"


def load_make_pages():
    spec = importlib.util.spec_from_file_location("make_pages", ROOT / "pipelines" / "make_pages.py")
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = path
    return module


make_pages = load_make_pages()
from pagegen.hand import Hand, write  # noqa: E402  (on the path since the line above)


@pytest.fixture(scope="module", params=["script", "print"])
def page(request):
    photo, truth, _ = make_pages.make_page(3, 0, size=SIZE, severity=0.3, face=request.param, ruling="none", text=TEXT)
    return photo, truth


def ink_of(truth, words=None):
    points = [np.array(w["strokes"]) for w in (truth["words"] if words is None else words)]
    return Ink.from_xys(np.concatenate(points), Frame(truth["width"], truth["height"]))


def darkness(photo):
    """Return how much darker than the paper around it each pixel is, in grey levels."""
    gray = cv2.cvtColor(photo, cv2.COLOR_RGB2GRAY)
    return cv2.medianBlur(gray, 51).astype(float) - gray


def on_words(truth):
    """Return the pixels inside the words' polygons, a little widened."""
    mask = np.zeros((truth["height"], truth["width"]), np.uint8)
    for word in truth["words"]:
        cv2.fillPoly(mask, [np.round(word["polygon"]).astype(np.int32)], 1)
    return cv2.dilate(mask, np.ones((9, 9), np.uint8)).astype(bool)


def test_the_same_seed_and_page_give_the_same_page():
    look = {"size": (420, 594), "text": "Dear Ann"}
    first, again = make_pages.make_page(5, 2, **look), make_pages.make_page(5, 2, **look)
    assert np.array_equal(first[0], again[0])
    assert first[1] == again[1]
    other = make_pages.make_page(5, 3, **look)
    assert not np.array_equal(first[0], other[0])


def test_true_strokes_cover_the_dark_pixels_and_no_others(page):
    photo, truth = page
    pen = float(np.median([w["pen"] for w in truth["words"]]))
    depth, near = darkness(photo), on_words(truth)
    contrast = np.percentile(depth[near], 97)  # of this page's ink, from the photo alone: pencil is paler than a pen
    dark = (depth > 0.4 * contrast) & near
    assert dark.sum() > 2000
    assert (dark & coverage(ink_of(truth), pen=pen + 2)).sum() / dark.sum() > 0.99
    middle = coverage(ink_of(truth), pen=1.5)
    assert (middle & dark).sum() / middle.sum() > 0.98


def test_true_strokes_fit_best_where_they_are(page):
    photo, truth = page
    dark = darkness(photo) * on_words(truth)
    ink = ink_of(truth)

    def fit(dx, dy):
        moved = ink.transform([[1, 0, dx], [0, 1, dy]], ink.frame)
        return (dark * (255 - render(moved, pen=truth["words"][0]["pen"]).astype(float))).sum()

    fits = {(dx, dy): fit(dx, dy) for dx in (-0.5, 0, 0.5) for dy in (-0.5, 0, 0.5)}
    assert max(fits, key=fits.get) == (0, 0)


def assert_truth_is_well_formed(truth):
    for word in truth["words"]:
        polygon = shapely.Polygon(word["polygon"])
        points = np.array(word["strokes"])
        assert polygon.is_valid
        assert shapely.contains_xy(polygon, points[:, 0], points[:, 1]).all()
        assert points[0, 2] == 1
        assert word["text"]
        assert 1 < word["pen"] < 10
    lines = [word["line"] for word in truth["words"]]
    assert lines == sorted(lines)


def test_the_truth_names_the_words_in_reading_order(page):
    _, truth = page
    assert_truth_is_well_formed(truth)
    assert " ".join(word["text"] for word in truth["words"]) == " ".join(TEXT.split())
    assert {word["line"] for word in truth["words"]} >= {"l00", "l01"}


def test_a_script_word_is_one_long_stroke_and_its_dots_and_bars_come_last():
    strokes, _ = write("minute", Hand("script"), np.random.default_rng(0))
    assert len(strokes) == 3
    assert len(strokes[0]) > 10 * len(strokes[2])
    assert len(strokes[1]) == 1
    assert strokes[1][0, 1] < strokes[0][:, 1].mean()


def test_printed_letters_are_not_joined():
    strokes, _ = write("lol", Hand("print"), np.random.default_rng(0))
    assert len(strokes) == 3


def test_the_command_writes_pages_and_truth(tmp_path, capsys):
    words = tmp_path / "words.txt"
    words.write_text("Good night", encoding="utf-8")
    out = tmp_path / "pages"
    make_pages.main(["--out", str(out), "--pages", "1", "--width", "420", "--text", str(words)])
    (truth,) = json.loads((out / "truth.json").read_text(encoding="utf-8"))
    assert cv2.imread(str(out / truth["image"])).shape == (truth["height"], truth["width"], 3)
    assert [word["text"] for word in truth["words"]] == ["Good", "night"]
    assert "page00.jpg: 2 words" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"), [(" \n", "holds no words"), ("naïve", "no 'ï'"), ("word " * 4000, "do not fit")]
)
def test_texts_that_cannot_be_written_are_refused(tmp_path, capsys, text, message):
    words = tmp_path / "words.txt"
    words.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        make_pages.main(["--out", str(tmp_path), "--pages", "1", "--width", "420", "--text", str(words)])
    assert message in capsys.readouterr().err


def test_the_examples_match_their_truth():
    truths = json.loads((EXAMPLES / "truth.json").read_text(encoding="utf-8"))
    assert len(truths) == len(list(EXAMPLES.glob("*.jpg"))) == 4
    for truth in truths:
        photo = cv2.imread(str(EXAMPLES / truth["image"]))[..., ::-1]
        assert photo.shape == (truth["height"], truth["width"], 3)
        assert_truth_is_well_formed(truth)
        dark = darkness(np.ascontiguousarray(photo)) > 15
        for word in truth["words"]:
            middle = coverage(ink_of(truth, [word]), pen=1.5)
            assert (middle & dark).sum() / middle.sum() > 0.95, (truth["image"], word["text"])


def test_the_examples_come_from_the_command_in_their_readme():
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    assert "python pipelines/make_pages.py --out examples/pages --pages 4 --seed 29" in readme
    stored = json.loads((EXAMPLES / "truth.json").read_text(encoding="utf-8"))[1]
    _, made, _ = make_pages.make_page(29, 1)
    assert [w["text"] for w in made["words"]] == [w["text"] for w in stored["words"]]
    # Not to the last digit: another version of NumPy or OpenCV may round differently.
    assert np.allclose(ink_of(made).bounds, ink_of(stored).bounds, atol=0.5)
