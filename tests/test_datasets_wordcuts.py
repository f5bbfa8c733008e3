"""Cutting recorded lines into words."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inktraj.datasets.letters import strokes_of, width_of
from inktraj.datasets.wordcuts import _most_likely, cut_words
from inktraj.errors import DataError

ROOT = Path(__file__).resolve().parent.parent


def word_strokes(widths, x, gap):
    """Letters as upright zigzags; returns the strokes and where the next one may begin."""
    out = []
    for width in widths:
        out.append(np.array([[x, 0], [x + width / 2, 40], [x + width, 0]], dtype=float))
        x += width + gap
    return out, x - gap


def test_a_plain_line_is_cut_at_its_wide_gaps():
    a, x = word_strokes([20] * 4, 0, 4)
    b, x = word_strokes([20] * 2, x + 25, 4)
    c, _ = word_strokes([20] * 5, x + 22, 4)
    cuts = cut_words([*a, *b, *c], ["need", "no", "nouns"])
    assert cuts.strokes == ((0, 1, 2, 3), (4, 5), (6, 7, 8, 9, 10))
    assert min(cuts.confidence) > 0.9


def test_strokes_added_later_go_to_the_word_they_lie_over():
    a, x = word_strokes([20] * 4, 0, 4)
    b, x = word_strokes([20] * 4, x + 25, 4)
    dots = [np.array([[58.0, -20.0]]), np.array([[130.0, -20.0]]), np.array([[30.0, -15.0], [45.0, -15.0]])]
    assert cut_words([*a, *b, *dots], ["nine", "time"]).strokes == ((0, 1, 2, 3, 8, 10), (4, 5, 6, 7, 9))


def test_letters_decide_where_gaps_do_not():
    strokes, _ = word_strokes([20] * 8, 0, 6)
    assert [len(s) for s in cut_words(strokes, ["no", "nounce"]).strokes] == [2, 6]
    assert [len(s) for s in cut_words(strokes, ["nounce", "no"]).strokes] == [6, 2]


def test_a_full_stop_goes_to_the_word_before_it():
    a, x = word_strokes([20] * 3, 0, 4)
    b, _ = word_strokes([20] * 3, x + 40, 4)
    stop = np.array([[x + 20, 38.0]])
    assert cut_words([*a, stop, *b], ["one.", "sun"]).strokes == ((0, 1, 2, 3), (4, 5, 6))


def test_lines_that_cannot_be_cut_are_refused():
    strokes, _ = word_strokes([20] * 2, 0, 6)
    with pytest.raises(DataError, match="2 strokes cannot be cut into the 3 words 'a b c'"):
        cut_words(strokes, ["a", "b", "c"])
    for words in ([], ["a", ""]):
        with pytest.raises(DataError, match="none of them empty"):
            cut_words(strokes, words)


@settings(max_examples=60)
@given(st.data())
def test_each_stroke_goes_to_one_word_and_each_word_has_one(data):
    number = st.floats(-1000, 1000, allow_nan=False)
    strokes = data.draw(st.lists(st.lists(st.tuples(number, number), min_size=1, max_size=4), min_size=1, max_size=9))
    arrays = [np.array(s, dtype=float) for s in strokes]
    words = data.draw(st.lists(st.text("aiTé9.,(-", min_size=1, max_size=5), min_size=1, max_size=len(arrays)))
    cuts = cut_words(arrays, words)
    assert sorted(itertools.chain.from_iterable(cuts.strokes)) == list(range(len(arrays)))
    assert len(cuts.strokes) == len(words)
    assert all(cuts.strokes)
    assert all(0 <= sure <= 1 for sure in cuts.confidence)


@pytest.mark.parametrize(("n", "count"), [(1, 1), (4, 1), (4, 4), (6, 3), (7, 2)])
def test_the_most_likely_cut_is_that_of_all_cuts(rng, n, count):
    gaps, words = rng.normal(size=n - 1), rng.normal(size=(count, n + 1, n + 1))
    words = np.where(np.triu(np.ones((n + 1, n + 1)), 1) > 0, words, -np.inf)
    ways = {}
    for cuts in itertools.combinations(range(1, n), count - 1):
        ends = (0, *cuts, n)
        ways[ends] = sum(words[k, ends[k], ends[k + 1]] for k in range(count)) + sum(gaps[c - 1] for c in cuts)
    best = max(ways, key=ways.get)
    total = sum(np.exp(score) for score in ways.values())
    cuts, sure = _most_likely(gaps, words)
    assert tuple(cuts) == best[:-1]
    for k in range(count):
        same = [s for ends, s in ways.items() if (ends[k], ends[k + 1]) == (best[k], best[k + 1])]
        assert sure[k] == pytest.approx(sum(map(np.exp, same)) / total)


def test_letters_have_widths_and_strokes():
    assert width_of("mm") > 2 * width_of("il") / 1.3 > 1
    assert width_of("é") == width_of("e")
    assert width_of("ß") > 0.5
    assert strokes_of("E", 1.3) > 2 * strokes_of("c", 1.3)
    assert strokes_of("a.", 1.0) == strokes_of("a", 1.0) + 1
    assert strokes_of("ii", 0.6) > 2 * strokes_of("ee", 0.6)


def test_composed_lines_of_recorded_words_are_cut_right(shared_data):
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import wordcuts as benchmark
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    how = benchmark.Composing()
    writers = benchmark.Writers(shared_data / "unipen_words.npz", "dev", how.fewest)
    figures = benchmark.measure([benchmark.compose(writers, number, how, 0) for number in range(150)])
    assert figures["words_exact"] >= 0.97
