"""AR, CR, CER and WER against brute force and rapidfuzz; and signatures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_metrics_readability import all_alignments, edits
from rapidfuzz.distance import Levenshtein

from inktraj import __version__
from inktraj.errors import DataError, ParseError
from inktraj.metrics.readability import (
    EditCounts,
    TextRules,
    count_edits,
    independence_warning,
    readability_signature,
    score_text,
    score_texts,
)
from inktraj.metrics.signature import Signature, require_same

SHORT = st.text("abc", max_size=6)


# Edits


@given(SHORT, SHORT)
def test_edits_are_those_of_brute_force(reading, target):
    found = count_edits(reading, target)
    expected = edits(target, reading)
    assert expected == {(found.hits, found.substitutions, found.deletions, found.insertions)}  # the split is unique


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_distance_is_rapidfuzzs(reading, target):
    found = count_edits(reading, target)
    assert found.distance == Levenshtein.distance(reading, target)
    assert found.n == len(target)
    assert found.hits + found.substitutions + found.insertions == len(reading)
    assert min(found.hits, found.substitutions, found.deletions, found.insertions) >= 0


@given(st.text("ab", max_size=30), st.text("ab", max_size=30))
def test_no_split_of_rapidfuzz_has_more_hits(reading, target):
    ops = [op.tag for op in Levenshtein.editops(target, reading)]
    found = count_edits(reading, target)
    assert found.distance == len(ops)
    assert found.substitutions <= ops.count("replace")


def test_the_fewest_edits_alone_leave_the_split_open():
    ways = {way for way in all_alignments("ab", "bc") if sum(way[1:]) == 2}
    assert ways == {(0, 2, 0, 0), (1, 0, 1, 1)}
    assert count_edits("bc", "ab") == EditCounts(1, 0, 1, 1)


def test_long_texts_do_not_overflow():
    found = count_edits("b" * 3000, "a" * 2999)
    assert found == EditCounts(0, 2999, 0, 1)


def test_words_are_whole_units():
    assert count_edits(["the", "cat", "sat"], ["the", "fat", "cat"]) == EditCounts(2, 0, 1, 1)


# One sample


def test_rates_follow_their_definition():
    found = score_text("helo wrld!!", "hello world")
    assert found.characters == EditCounts(hits=9, substitutions=0, deletions=2, insertions=2)
    assert found.cr == pytest.approx(9 / 11)
    assert found.ar == pytest.approx(7 / 11)
    assert found.cer == pytest.approx(4 / 11)
    assert found.wer == 1.0


@given(SHORT, SHORT.filter(bool))
def test_ar_is_one_minus_cer(reading, target):
    found = score_text(reading, target)
    assert found.ar == pytest.approx(1 - found.cer)
    assert found.ar <= found.cr <= 1


def test_ar_may_be_negative():
    found = score_text("abcdefgh", "x")
    assert (found.cr, found.ar, found.cer) == (0.0, -7.0, 8.0)


def test_invalid_output_has_rate_0_and_counts():
    found = score_text(None, "two words")
    assert not found.valid
    assert (found.ar, found.cr, found.cer, found.wer) == (0.0, 0.0, 1.0, 1.0)
    assert found.characters == EditCounts(deletions=9)
    assert found.words == EditCounts(deletions=2)


def test_nothing_read_is_valid_and_rate_0():
    found = score_text("", "word")
    assert found.valid
    assert (found.ar, found.cr) == (0.0, 0.0)


@pytest.mark.parametrize("target", ["", "  ", "\n"])
def test_an_empty_target_has_no_value(target):
    found = score_text("abc", target)
    assert (found.ar, found.cr, found.cer, found.wer) == (None,) * 4
    assert found.characters == EditCounts(insertions=3)


def test_a_reading_object_is_told():
    with pytest.raises(DataError, match=r"the reading is Reading, expected text.*\.text"):
        score_text(type("Reading", (), {})(), "a")
    with pytest.raises(DataError, match="the target is NoneType"):
        score_text("a", None)


# Rules


@pytest.mark.parametrize(
    ("rules", "reading", "target", "distance"),
    [
        ({}, "e\u0301", "é", 0),
        ({"unicode": "none"}, "e\u0301", "é", 2),
        ({}, "ﬁne", "fine", 2),
        ({"unicode": "nfkc"}, "ﬁne", "fine", 0),
        ({}, "Word", "word", 1),
        ({"case": "fold"}, "STRASSE", "Straße", 0),
        ({}, "dont", "don't", 1),
        ({"punctuation": "drop"}, "dont", "«don't!»", 0),
        ({"punctuation": "drop"}, "a b", "a — b", 0),
        ({}, " a \t b\n", "a b", 0),
        ({"space": "keep"}, "a  b", "a b", 1),
        # Case folding takes ΐ apart; the marks must meet again.
        ({"case": "fold"}, "ΐ", "\u03b9\u0308\u0301", 0),
        # Where punctuation goes, a mark meets its letter.
        ({"punctuation": "drop"}, "e'\u0301", "é", 0),
    ],
)
def test_rules_bring_texts_to_one_form(rules, reading, target, distance):
    assert score_text(reading, target, TextRules(**rules)).characters.distance == distance


def test_combining_sequences_are_one_unit():
    # Devanagari hindi: two syllables with vowel signs, a virama and a nukta-free consonant between.
    target, reading = "हिन्दी", "हिन्द"
    assert score_text(reading, target).characters.n == 6
    clusters = TextRules(unit="combining")
    assert clusters.characters(target) == ["हि", "न्", "दी"]
    assert score_text(reading, target, clusters).characters == EditCounts(hits=2, substitutions=1)
    assert clusters.characters("\u0301a\u200d\u0301b") == ["\u0301", "a\u200d\u0301", "b"]
    assert "".join(clusters.characters("กำลัง")) == "กำลัง"


@given(st.text())
def test_combining_sequences_lose_nothing(text):
    assert "".join(TextRules(unit="combining").characters(text)) == text


def test_an_unknown_rule_is_told():
    with pytest.raises(DataError, match="case is 'lower', expected 'keep' or 'fold'"):
        TextRules(case="lower")


# Corpus


def test_micro_and_macro_are_both_named():
    found = score_texts(["ab", "abcdefgx"], ["ax", "abcdefgh"], recognizer="r 1")
    assert found.all.cr == pytest.approx(8 / 10)
    assert found.all.macro_cr == pytest.approx((1 / 2 + 7 / 8) / 2)
    assert found.all.ar == pytest.approx(8 / 10)
    assert found.all.macro_wer == found.all.wer == 1.0
    assert found.coverage == 1.0
    assert found.all == found.valid


def test_invalid_outputs_count_in_all_and_not_in_valid():
    found = score_texts(["abcd", None], ["abcd", "abcd"], recognizer="r 1")
    assert (found.all.ar, found.valid.ar, found.coverage) == (0.5, 1.0, 0.5)
    assert (found.all.macro_cr, found.valid.macro_cr) == (0.5, 1.0)
    assert (found.all.samples, found.valid.samples) == (2, 1)


def test_insertions_into_empty_targets_count_in_the_corpus():
    found = score_texts(["abcd", "xx"], ["abcd", ""], recognizer="r 1")
    assert found.all.ar == pytest.approx((4 - 2) / 4)
    assert found.all.cr == 1.0
    assert found.all.macro_ar == 1.0  # over the one sample with a value
    assert found.all.empty_targets == 1


def test_an_empty_corpus_has_no_values():
    found = score_texts([], [], recognizer="r 1")
    assert (found.all.ar, found.all.macro_cr, found.coverage) == (None, None, None)


def test_the_summary_goes_into_json():
    out = score_texts(["ab"], ["ax"], recognizer="r 1").all.to_json()
    assert out["characters"] == {"n": 2, "hits": 1, "substitutions": 1, "deletions": 0, "insertions": 0}
    assert (out["ar"], out["macro_cer"], out["samples"]) == (0.5, 0.5, 1)


def test_other_lengths_and_nameless_recognisers_are_told():
    with pytest.raises(DataError, match="1 readings for 2 targets"):
        score_texts(["a"], ["a", "b"], recognizer="r 1")
    with pytest.raises(DataError, match="the recogniser is ' ', expected its name"):
        score_texts(["a"], ["a"], recognizer=" ")


def test_the_signature_names_rules_and_recogniser():
    found = score_texts(["a"], ["a"], recognizer="ppocr M (a 1|b 2)", rules=TextRules(case="fold"))
    assert str(found.signature) == (
        "readability|unit:codepoint|unicode:nfc|case:fold|punctuation:keep|space:collapse|split:most-hits|"
        f"recognizer:ppocr M (a 1%7Cb 2)|v:{__version__}"
    )


@pytest.mark.parametrize(
    ("filtered_by", "words"),
    [
        (None, ()),
        ("other 1", ()),
        ("r 1", ("same recogniser", "independent")),
        ("r 2", ("another version of it, r 2,",)),
        ("R 1", ("independent",)),
        (" ", ()),
    ],
)
def test_a_recogniser_that_filtered_the_references_is_told(filtered_by, words):
    found = score_texts(["a"], ["a"], recognizer="r 1", references_filtered_by=filtered_by)
    assert bool(found.warning) == bool(words)
    assert all(word in found.warning for word in words)
    assert found.warning == independence_warning("r 1", filtered_by)


# Signatures

NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["Cs"]))


@given(NAMES, st.dictionaries(NAMES, VALUES))
def test_signatures_come_back(metric, fields):
    signature = Signature(metric, tuple(fields.items()))
    text = str(signature)
    assert Signature.parse(text) == signature
    assert text.isprintable()


def test_a_signature_reads_as_people_write_it():
    found = Signature.of("dtw", cost="euclidean", norm="reference-box", step=0.01, bridge=False, band=None, n=3)
    assert str(found) == (f"dtw|cost:euclidean|norm:reference-box|step:0.01|bridge:no|band:none|n:3|v:{__version__}")
    assert found["norm"] == "reference-box"
    assert Signature.parse("a|t:12:30") == Signature("a", (("t", "12:30"),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no name for a signature"),
        ("Dtw|a:b", "'Dtw' is no name"),
        ("dtw|cost", "'cost' is no field"),
        ("dtw|", "'' is no field"),
        ("dtw|a:1|a:2", "'a' twice"),
        ("dtw|a:%4", "'a:%4' is no field"),
        ("dtw|a:%FF", "does not hold UTF-8"),
    ],
)
def test_malformed_signatures_are_told(text, message):
    with pytest.raises(ParseError, match=message):
        Signature.parse(text)


def test_values_that_are_no_text_are_refused():
    for value in (1, "\ud800"):
        with pytest.raises(DataError, match="expected text"):
            Signature("a", (("b", value),))


def test_comparing_names_the_fields_that_differ():
    first = Signature("dtw", (("norm", "page"), ("step", "0.01"), ("v", "1")))
    require_same(first, Signature("dtw", (("step", "0.01"), ("norm", "page"), ("v", "1"))))
    second = Signature("ldtw", (("norm", "height"), ("step", "0.01"), ("band", "3"), ("v", "1")))
    expected = r"metric \(dtw and ldtw\), norm \(page and height\), band \(not given and 3\);"
    with pytest.raises(DataError, match=expected):
        require_same(first, second)


def test_a_recognisers_version_keeps_figures_apart():
    require_same(readability_signature("r 1"), readability_signature("r 1"))
    with pytest.raises(DataError, match=r"recognizer \(r 1 and r 2\)"):
        require_same(readability_signature("r 1"), readability_signature("r 2"))
