"""PalmLeaf-VQA: answers to canonical form, set scores, breakdowns, and the human baseline."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inktraj.vqa.palmleaf_answers import (
    canonical,
    normalize_answer,
    normalize_reference,
    parse_count,
    plain,
    read_names,
    score_sets,
    split_labels,
)

DATA = Path(__file__).parent / "data" / "vqa" / "palmleaf"


def golden(name):
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", golden("answers.jsonl"), ids=lambda c: f"{c['kind']}:{c['text'][:30]!r}")
def test_answer_as_worked_out_by_hand(case):
    answer = normalize_answer(case["text"], case["kind"], frozenset(case.get("known", ())))
    assert (sorted(answer.labels), answer.status) == (case["labels"], case["status"])
    assert answer.repeated == case.get("repeated", 0)


@pytest.mark.parametrize("case", golden("sets.jsonl"), ids=lambda c: f"{c['predicted']}-{c['reference']}")
def test_set_scores_as_worked_out_by_hand(case):
    scores = score_sets(frozenset(case["predicted"]), frozenset(case["reference"]))
    assert scores.exact == case["exact"]
    for name in ("precision", "recall", "f1", "jaccard"):
        assert getattr(scores, name) == pytest.approx(float(Fraction(case[name]))), name


# What holds for any text

texts = st.one_of(st.text(max_size=40), st.text("abAB ,;/&+-'’and\n.é١五ஶ்ﬁ＆", max_size=30))
label_sets = st.frozensets(st.sampled_from("abcdefgh"), max_size=6)


@settings(deadline=None, max_examples=300)
@given(texts)
def test_normalising_again_changes_nothing(text):
    assert plain(plain(text)) == plain(text)
    assert canonical(canonical(text)) == canonical(text)
    labels = split_labels(text)
    assert split_labels("; ".join(labels)) == labels


@settings(deadline=None, max_examples=200)
@given(texts, st.sampled_from(["labels", "binary", "count"]))
def test_an_answer_has_labels_or_a_status_that_says_why_not(text, kind):
    answer = normalize_answer(text, kind)
    assert bool(answer.labels) == (answer.status == "answered")
    assert normalize_answer(f"  {text.upper().lower()}\n", kind) == normalize_answer(text.upper().lower(), kind)


@given(st.lists(st.sampled_from(["cracks", "stains", "two holes", "Khmer"]), min_size=1, max_size=6), st.randoms())
def test_neither_order_nor_repetition_counts(labels, random):
    other = labels * 2
    random.shuffle(other)
    assert normalize_answer(", ".join(labels)).labels == normalize_answer("; ".join(other)).labels


@given(label_sets, label_sets)
def test_set_scores_are_symmetric_and_in_order(a, b):
    one, other = score_sets(a, b), score_sets(b, a)
    assert (one.exact, one.f1, one.jaccard) == (other.exact, other.f1, other.jaccard)
    assert (one.precision, one.recall) == (other.recall, other.precision)
    assert 0 <= one.exact <= one.jaccard <= one.f1 <= 1
    assert one.f1 == pytest.approx(2 * one.jaccard / (1 + one.jaccard))
    assert (one.exact == 1) == (a == b)


@given(st.integers(0, 999))
def test_counts_in_words_and_numerals_are_the_same(value):
    assert parse_count(str(value)) == parse_count(in_words(value)) == value


def in_words(value):
    ones = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    ones += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
    tens = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    if value >= 100:
        rest = value % 100
        return f"{ones[value // 100]} hundred" + (f" and {in_words(rest)}" if rest else "")
    if value >= 20:
        return tens[value // 10] + (f"-{ones[value % 10]}" if value % 10 else "")
    return ones[value]


def test_no_spelling_stands_for_two_names():
    names = read_names()
    assert len(names) == 8
    spellings = [spelling for name, others in names.items() for spelling in (name, *others)]
    assert len(spellings) == len(set(spellings))
    for name, others in names.items():
        for spelling in (name, *others):
            assert canonical(spelling) == name
            assert canonical(f"The {spelling.upper()} script.") == name


def test_a_reference_is_no_refusal_and_a_list_is_not_taken_apart():
    assert normalize_reference("unclear").labels == {"unclear"}
    assert normalize_reference(["Black and White", "Two holes"]).labels == {"black and white", "2 holes"}
    assert normalize_reference([]).labels == {"none"}
    assert normalize_reference("cracks, stains").labels == {"cracks", "stains"}
    assert normalize_reference("Five", "count").count == 5
    assert normalize_reference("many", "count").status == "unparsable"
    assert normalize_reference("TRUE", "binary").labels == {"yes"}
