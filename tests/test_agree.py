"""Folding, alignment, the verdict, and how ink and rendering overlap."""

import unicodedata
from dataclasses import dataclass
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles_agree import covered_share, fewest_edits
from rapidfuzz.distance import Levenshtein

from inktraj import agree
from inktraj.agree import AlignedPair, Verdict, WordReading, align_words, check, fold, ink_overlap
from inktraj.errors import DataError
from inktraj.ocr import Reading
from inktraj.page import Line, Page

# ---------------------------------------------------------------- folding


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" .,;:!? — … “” ( ) * £ |", []),
        ("The quick, brown fox.", ["the", "quick", "brown", "fox"]),
        ("fox,jumps", ["fox", "jumps"]),
        ("don't d’artillerie Cockes'", ["dont", "dartillerie", "cockes"]),
        ("well-known particu- 26th", ["wellknown", "particu", "26th"]),
        ("août AOÛT aout", ["août", "août", "aout"]),
        ("aou\u0302t", ["août"]),
        ("ﬁne ½ ２", ["fine", "1", "2", "2"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("Ὀδυσσεύς ὈΔΥΣΣΕΎΣ", ["ὀδυσσεύσ", "ὀδυσσεύσ"]),
        ("हिन्दी, में।", ["हिन्दी", "में"]),
        ("كتابٌ، جميل؟", ["كتابٌ", "جميل"]),
        ("快狐，跳过。", ["快狐", "跳过"]),
        ("soft\u00adhyphen zero\u200bwidth", ["softhyphen", "zerowidth"]),
        ("a\tb\nc\u00a0d", ["a", "b", "c", "d"]),
        ("e'\u0301", ["é"]),
    ],
)
def test_fold(text, words):
    assert fold(text) == words


@given(st.text(max_size=40))
@example("İ'\u0301")
@settings(deadline=None, max_examples=300)
def test_fold_is_stable_and_leaves_no_empty_word_and_no_punctuation(text):
    words = fold(text)
    assert fold(" ".join(words)) == words
    assert all(words)
    assert all(unicodedata.category(c)[0] in "LMN" for word in words for c in word)


@given(st.lists(st.text("abcé", min_size=1, max_size=5), max_size=8))
@settings(deadline=None)
def test_fold_ignores_case_and_punctuation(words):
    dressed = "  ".join(f"«{word.upper()}»," for word in words)
    assert fold(dressed) == fold(" ".join(words))


# ---------------------------------------------------------------- alignment


@pytest.mark.parametrize(
    ("a", "b", "pairs"),
    [
        ("", "", []),
        ("the", "", [(0, None, False)]),
        ("", "the", [(None, 0, False)]),
        ("the fox", "the fox", [(0, 0, True), (1, 1, True)]),
        ("the red fox", "the fox", [(0, 0, True), (1, None, False), (2, 1, True)]),
        ("the quick fox", "thequick fox", [(0, 0, True), (1, 0, True), (2, 1, True)]),
        ("thequick fox", "the quick fox", [(0, 0, True), (0, 1, True), (1, 2, True)]),
        ("th e y", "they", [(0, 0, True), (1, 0, True), (2, 0, True)]),
        # No word stands for four, none for parts that do not make it up, and both sides may not be split.
        ("t h e y", "they", [(0, None, False), (1, None, False), (2, None, False), (3, 0, False)]),
        ("the quick", "thequlck", [(0, None, False), (1, 0, False)]),
        ("the quick", "thequ ick", [(0, 0, False), (1, 1, False)]),
        # Two alignments have one left out and one replaced: the likelier pair is taken.
        ("jumps over", "jurnps", [(0, 0, False), (1, None, False)]),
        ("over jumps", "jurnps", [(0, None, False), (1, 0, False)]),
    ],
)
def test_align_words(a, b, pairs):
    assert align_words(a.split(), b.split()) == pairs


word_lists = st.lists(st.text("ab", min_size=1, max_size=3), max_size=6)


def edits(pairs):
    """Unmatched steps; the parts of a joined match are matches."""
    return sum(not match for _, _, match in pairs)


@given(word_lists, word_lists)
@settings(deadline=None, max_examples=200)
def test_alignment_has_the_fewest_edits(a, b):
    assert edits(align_words(a, b)) == fewest_edits(tuple(a), tuple(b), agree.JOIN_LIMIT)


@given(word_lists, word_lists)
@settings(deadline=None, max_examples=200)
def test_alignment_is_whole_in_order_and_true(a, b):
    pairs = align_words(a, b)
    for side, words in enumerate((a, b)):
        indices = [pair[side] for pair in pairs if pair[side] is not None]
        assert sorted(set(indices)) == list(range(len(words)))
        assert indices == sorted(indices)
    for i, j, match in pairs:
        if match and [p[0] for p in pairs].count(i) == [p[1] for p in pairs].count(j) == 1:
            assert a[i] == b[j]
        if not match and i is not None and j is not None:
            assert a[i] != b[j]


@given(st.lists(st.sampled_from(["cat", "dog", "fox", "hen"]), max_size=12), st.data())
@settings(deadline=None, max_examples=100)
def test_without_joined_words_it_is_the_edit_distance_of_rapidfuzz(a, data):
    b = data.draw(st.lists(st.sampled_from(["cat", "dog", "fox", "hen"]), max_size=12))
    assert edits(align_words(a, b)) == Levenshtein.distance(a, b)  # words of one length cannot join


# ---------------------------------------------------------------- strips


def line(polygon, baseline, words=(), height=0.0):
    return Line(
        polygon=np.asarray(polygon, float),
        baseline=np.asarray(baseline, float),
        words=tuple(SimpleNamespace(polygon=np.asarray(w, float)) for w in words),
        height=height,
    )


def box(x0, y0, x1, y1):
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


def test_a_level_line_is_cut_exactly(rng):
    image = rng.integers(0, 256, (80, 120), dtype=np.uint8)
    level = line(box(10, 20, 90, 50), [(10, 40), (90, 40)], height=20)
    (strip,) = agree.line_strips(image, [level], reach=1.0)
    assert np.array_equal(strip, image[20:51, 10:91])
    (whole,) = agree.line_strips(image, [line(box(10, 25, 90, 45), [(10, 40), (90, 40)])])
    assert np.array_equal(whole, image[25:46, 10:91])  # height 0: the polygon's own extent


def test_strips_keep_the_kind_of_image(rng):
    image = rng.integers(0, 256, (80, 120, 3), dtype=np.uint8)
    level = line(box(10, 20, 90, 50), [(10, 40), (90, 40)], [box(10, 20, 40, 50), box(50, 20, 90, 50)], height=20)
    assert agree.line_strips(image, [level], 1.0)[0].shape == (31, 81, 3)
    assert [s.shape for s in agree.word_strips(image, [level], 1.0)] == [(31, 31, 3), (31, 41, 3)]


@pytest.mark.parametrize("degrees", [-25, -3, 0, 8, 90])
def test_a_turned_line_comes_out_level(degrees):
    image = np.full((400, 400), 255, np.uint8)
    turn = np.radians(degrees)
    along, across = np.array([np.cos(turn), np.sin(turn)]), np.array([-np.sin(turn), np.cos(turn)])
    start, end = 200 - 120 * along, 200 + 120 * along
    cv2.line(image, *[tuple(int(v) for v in np.round(p)) for p in (start, end)], 0, 5, cv2.LINE_AA)
    polygon = [start - 30 * across, end - 30 * across, end + 15 * across, start + 15 * across]
    (strip,) = agree.line_strips(image, [line(polygon, [start, end], height=30)], reach=1.0)
    assert strip.shape == (46, 241)
    rows = np.array([np.argmin(strip[:, x]) for x in range(20, 220)])
    assert np.abs(rows - 28).max() <= 2.5  # the first of the 5 dark pixels around row 30


def test_a_bent_line_comes_out_level():
    image = np.full((200, 400), 255, np.uint8)
    bend = np.array([(20, 100), (200, 60), (380, 100)])
    cv2.polylines(image, [bend], False, 0, 5, cv2.LINE_AA)
    above, below = np.array([0, -20]), np.array([0, 10])
    polygon = np.concatenate([bend + above, np.flipud(bend) + below])
    (strip,) = agree.line_strips(image, [line(polygon, bend, height=20)], reach=1.0)
    rows = np.array([np.argmin(strip[:, x]) for x in range(10, 350)])
    assert np.abs(rows - 18).max() <= 2.5


@pytest.mark.parametrize(
    ("polygon", "baseline"),
    [
        (box(-50, -50, -10, -20), [(-50, -25), (-10, -25)]),
        (box(90, 70, 300, 200), [(90, 100), (300, 100)]),
        ([(5, 5)], [(5, 5)]),
        (box(5, 5, 5, 5), [(5, 5), (5, 5)]),
    ],
    ids=["outside", "over the edge", "one point", "no area"],
)
def test_odd_regions_give_a_strip(polygon, baseline):
    (strip,) = agree.line_strips(np.full((80, 120), 255, np.uint8), [line(polygon, baseline, height=10)])
    assert strip.size
    assert (strip == 255).all()


def test_pages_larger_than_opencv_takes_are_cut():
    image = np.full((40, 40_000), 255, np.uint8)
    image[:, 39_000:39_050] = 0
    (strip,) = agree.line_strips(image, [line(box(38_900, 0, 39_200, 39), [(38_900, 30), (39_200, 30)], height=20)])
    assert abs(int((strip[10] == 0).sum()) - 50) <= 1


# ---------------------------------------------------------------- the verdict

CODES = {40: "The", 60: "quick,", 80: "fox", 100: "jumps", 120: "over"}


class CodeReader:
    """Reads blocks of grey as words; what it is sure of can be set for each strip height."""

    name = "codes"
    version = "1"

    def __init__(self):
        self.seen = []

    def __call__(self, images):
        out = []
        for image in images:
            gray = image if image.ndim == 2 else image[..., 0]
            self.seen.append(gray)
            row = gray[gray.shape[0] // 2]
            levels = [int(v) for k, v in enumerate(row) if k == 0 or v != row[k - 1]]
            out.append(Reading(" ".join(CODES[v] for v in levels if v in CODES), 0.9))
        return out


def coded(levels, shape=(60, 300)):
    """One line whose words are blocks of grey, and its region."""
    image = np.full(shape, 255, np.uint8)
    words = []
    for k, level in enumerate(levels):
        x = 10 + 50 * k
        image[20:45, x : x + 40] = level
        words.append(box(x, 20, x + 39, 44))
    return image, line(box(5, 15, 290, 50), [(5, 40), (290, 40)], words, height=20)


def page_of(gray):
    return Page(np.repeat(gray[..., None], 3, axis=2))


def segmentation(*lines):
    return SimpleNamespace(lines=lines, words=[w for one in lines for w in one.words])


def test_the_same_words_are_kept():
    image, region = coded([40, 60, 80])
    verdict = check(page_of(image), segmentation(region), image, CodeReader())
    assert verdict == Verdict(
        kept=True,
        agreement=1.0,
        reason="",
        words=(WordReading("The", "The", True), WordReading("quick,", "quick,", True), WordReading("fox", "fox", True)),
        original=("The quick, fox",),
        rendered=("The quick, fox",),
        alignment=(
            AlignedPair("the", "the", True),
            AlignedPair("quick", "quick", True),
            AlignedPair("fox", "fox", True),
        ),
        line_agreement=1.0,
        word_agreement=1.0,
        threshold=0.85,
        recognizer="codes 1",
    )


def test_a_word_read_otherwise_drops_the_page_and_says_why():
    image, region = coded([40, 60, 80])
    drawn, _ = coded([40, 60, 120])
    verdict = check(page_of(image), segmentation(region), drawn, CodeReader())
    assert not verdict.kept
    assert verdict.agreement == verdict.line_agreement == verdict.word_agreement == 2 / 3
    assert verdict.reason == "66.6 % of the words agree, 85 % are needed"
    assert verdict.words[2] == WordReading("fox", "over", False)
    assert verdict.alignment[2] == AlignedPair("fox", "over", False)


def test_the_threshold_itself_is_enough():
    image, region = coded([40, 60, 80, 100])
    drawn, _ = coded([40, 60, 80, 120])
    assert check(page_of(image), segmentation(region), drawn, CodeReader(), threshold=0.75).kept
    assert not check(page_of(image), segmentation(region), drawn, CodeReader(), threshold=0.7500001).kept


def test_words_too_many_count_as_much_as_words_too_few():
    image, region = coded([40, 60, 80])
    drawn, wide = coded([40, 60, 80, 100])
    more = check(page_of(image), segmentation(wide), drawn, CodeReader())
    fewer = check(page_of(drawn), segmentation(wide), image, CodeReader())
    assert more.agreement == fewer.agreement == 0.75
    assert more.word_agreement == 0.75
    assert check(page_of(image), segmentation(region), image, CodeReader()).agreement == 1


def test_an_empty_rendering_agrees_on_nothing():
    image, region = coded([40, 60])
    verdict = check(page_of(image), segmentation(region), np.full_like(image, 255), CodeReader())
    assert verdict.agreement == 0
    assert verdict.rendered == ("",)  # nothing of the original reaches the rendering's side
    assert verdict.reason.startswith("0 % of the words agree")


def test_no_words_is_not_a_score():
    image, _ = coded([])
    verdict = check(page_of(image), segmentation(), image, CodeReader())
    assert (verdict.kept, verdict.agreement, verdict.reason) == (False, None, "no words were found")
    assert verdict.word_agreement is None


@pytest.mark.parametrize("drawn", [[], [40]], ids=["drawn alike", "drawn words"])
def test_an_unreadable_original_is_not_a_score(drawn):
    image, _ = coded([30, 30])  # no code: read as nothing
    rendered, region = coded([*drawn, 30, 30][:2])
    verdict = check(page_of(image), segmentation(region), rendered, CodeReader(), threshold=0.0)
    assert (verdict.kept, verdict.agreement) == (False, None)
    assert verdict.reason == "the reader read nothing on the original"


def test_each_side_is_read_as_its_own_most_confident_reading():
    class Doubting(CodeReader):
        def __call__(self, images):
            # Sure of the lowest strips of RGB, of the highest ones of grey.
            found = super().__call__(images)
            sign = [1 if image.ndim == 2 else -1 for image in images]
            return [
                Reading(f"{r.text} {len(image)}", 0.5 + s * len(image) / 1000)
                for r, s, image in zip(found, sign, images, strict=True)
            ]

    image, region = coded([40])
    verdict = check(page_of(image), segmentation(region), image, Doubting())
    heights = [round(1.5 * 20 * reach) + 1 for reach in agree.REACHES]
    assert verdict.original == (f"The {min(heights)}",)
    assert verdict.rendered == (f"The {max(heights)}",)


def test_both_sides_are_cut_alike():
    image, region = coded([40, 60, 80])
    reader = CodeReader()
    check(page_of(image), segmentation(region), image, reader)
    half = len(reader.seen) // 2
    assert all(np.array_equal(a, b) for a, b in zip(reader.seen[:half], reader.seen[half:], strict=True))


def test_punctuation_alone_is_no_word():
    words = [WordReading("fox", "fox", True), WordReading(".", ",", False)]
    assert agree._word_share(words) == 1
    assert agree._word_share([*words, WordReading("", "", False)]) == 0.5  # unread is not agreed
    assert agree._word_share([WordReading(".", ".", False)]) is None


@pytest.mark.parametrize(
    ("rendered", "threshold", "message"),
    [
        (np.zeros((60, 299), np.uint8), 0.85, "of the page's size"),
        (np.zeros((60, 300, 3), np.uint8), 0.85, "expected grey uint8"),
        (np.zeros((60, 300), np.float64), 0.85, "expected grey uint8"),
        (np.zeros((60, 300), np.uint8), 85, "per cent"),
        (np.zeros((60, 300), np.uint8), float("nan"), "per cent"),
    ],
    ids=["other size", "colour", "floats", "per cent", "nan"],
)
def test_what_cannot_be_checked_is_refused(rendered, threshold, message):
    image, region = coded([40])
    with pytest.raises(DataError, match=message):
        check(page_of(image), segmentation(region), rendered, CodeReader(), threshold=threshold)


def test_a_real_note_agrees_with_itself(shared_data):
    from inktraj.ocr.ppocr import PPOCR

    page = Page(np.ascontiguousarray(cv2.imread(str(shared_data / "pages/inksight/page.jpg"))[..., ::-1]))
    whole = line(box(20, 50, 1840, 230), [(20, 175), (1840, 175)], [box(20, 50, 350, 230)], height=150)
    verdict = check(page, segmentation(whole), cv2.cvtColor(page.pixels, cv2.COLOR_RGB2GRAY), PPOCR())
    assert verdict.kept
    assert fold(verdict.original[0]) == ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]


# ---------------------------------------------------------------- ink


@dataclass(frozen=True)
class Masks:
    ink: np.ndarray
    drawn: np.ndarray


masks = st.builds(
    lambda seed, h, w, p, q: Masks(*(np.random.default_rng(seed + k).random((h, w)) < s for k, s in ((0, p), (1, q)))),
    *(st.integers(0, 1000), st.integers(1, 20), st.integers(1, 20), st.floats(0, 0.3), st.floats(0, 0.3)),
)


@given(masks, st.sampled_from([0, 1, 1.4, 2, 2.5, 5]))
@settings(deadline=None, max_examples=150)
def test_ink_overlap_against_every_pair(pair, tolerance):
    recall, precision = ink_overlap(pair.ink, pair.drawn, tolerance)
    assert recall == pytest.approx(covered_share(pair.ink, pair.drawn, tolerance))
    assert precision == pytest.approx(covered_share(pair.drawn, pair.ink, tolerance))


def test_ink_overlap_degenerate():
    nothing, some = np.zeros((9, 9), bool), np.zeros((9, 9), bool)
    some[4, 4] = True
    assert ink_overlap(nothing, nothing) == (None, None)
    assert ink_overlap(some, nothing) == (0.0, None)
    assert ink_overlap(nothing, some) == (None, 0.0)
    assert ink_overlap(some, some, 0) == (1.0, 1.0)
    assert ink_overlap(some, np.roll(some, 2, axis=1)) == (1.0, 1.0)  # exactly the tolerance away
    assert ink_overlap(some, np.roll(some, 3, axis=1)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("ink", "drawn", "tolerance", "message"),
    [
        (np.zeros((3, 3), bool), np.zeros((3, 4), bool), 2, "of one shape"),
        (np.zeros((3, 3), np.uint8), np.zeros((3, 3), bool), 2, "are bool"),
        (np.zeros(3, bool), np.zeros(3, bool), 2, r"\(h, w\)"),
        (np.zeros((3, 3), bool), np.zeros((3, 3), bool), -1, "at least 0"),
        (np.zeros((3, 3), bool), np.zeros((3, 3), bool), float("nan"), "at least 0"),
    ],
    ids=["shapes", "not bool", "not an image", "negative", "nan"],
)
def test_ink_overlap_refuses(ink, drawn, tolerance, message):
    with pytest.raises(DataError, match=message):
        ink_overlap(ink, drawn, tolerance)
