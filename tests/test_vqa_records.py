"""Files of records: what is damaged is told of, never read as something else."""

import json

import pytest

from inktraj.errors import DataError, ParseError
from inktraj.vqa.palmleaf_answers import normalize_answer, normalize_reference, parse_count, parse_yes_no, split_labels
from inktraj.vqa.predictions import read_predictions
from inktraj.vqa.records import read_records


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.csv", "id,answer\nq1,Paris\nq2,It is Paris, or Bergamo\n", "line 3: 3 cells, and the head has 2"),
        ("a.csv", "id,answer,seconds\nq1,Paris\n", "line 2: 2 cells, and the head has 3"),
        ("a.tsv", 'id\tanswer\nq1\t"Bergamo\nq2\tRoma\nq3\tPisa\n', "quotation marks in pairs"),
        ("a.tsv", 'id\tanswer\nq1\t"Bergamo\nq2\t"Roma\n', "quotation marks in pairs"),
    ],
)
def test_ragged_tables_are_told_of(name, text, why, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(ParseError, match=why):
        list(read_records(tmp_path / name))
    with pytest.raises(DataError, match=why):
        read_predictions(tmp_path / name)


def test_ragged_rows_are_passed_over_where_somebody_is_told(tmp_path):
    (tmp_path / "a.csv").write_text('id,answer\n\nq1,Paris\nq2,a,b\nq3,"a,\nb"\n')
    told = []
    found = [record for _, record in read_records(tmp_path / "a.csv", damaged=lambda *why: told.append(why))]
    assert found == [{"id": "q1", "answer": "Paris"}, {"id": "q3", "answer": "a,\nb"}]
    assert [where for where, _ in told] == ["a.csv, line 4"]


def test_answers_in_two_columns_are_told_of(tmp_path):
    lines = [{"id": "q1", "prediction": "a"}, {"id": "q2", "response": "b"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(DataError, match="line 2 has its answer in response, and others have theirs in prediction"):
        read_predictions(tmp_path / "a.jsonl")


KNOWN = frozenset(["wood bamboo", "cracks", "holes", "dark brown", "n a", "black and white", "1 first", "a b"])


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("wood/bamboo; cracks", ["wood bamboo", "cracks"]),
        ("cracks, Wood / Bamboo", ["cracks", "wood bamboo"]),
        ("dark, brown; cracks", ["dark brown", "cracks"]),
        ("N/A", ["n a"]),
        ("n/a, cracks", ["n a", "cracks"]),
        ("Cracks and black and white & holes.", ["cracks", "black and white", "holes"]),
        ("a|b; cracks", ["a b", "cracks"]),
        ("1. first", ["1 first"]),
        ("1. cracks\n2. holes", ["cracks", "holes"]),
        ("cracks, holes", ["cracks", "holes"]),
    ],
)
def test_labels_that_hold_separators_stay_whole(text, labels):
    assert split_labels(text, KNOWN) == labels


def test_what_is_a_list_of_labels_is_none_of_them():
    assert split_labels("dark, brown", frozenset(["dark", "brown", "dark brown"])) == ["dark", "brown"]
    both = frozenset(["black", "white", "black and white"])
    assert split_labels("black and white", both) == ["black and white"]


@pytest.mark.parametrize(
    "text",
    ["five thousand", "2 million", "two dozen", "dozens", "twenty-first", "five and a half", "5²", "5½", "1.000"],
)
def test_what_is_another_number_is_no_count(text):
    assert parse_count(text) is None


@pytest.mark.parametrize(("text", "count"), [("5 lines on the first side", 5), ("1,000", 1000), ("5.0", 5)])
def test_counts(text, count):
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["No idea", "No comment.", "no answer"])
def test_no_answer_is_not_no(text):
    assert parse_yes_no(text) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "cracks", "confidence": 0.9}',
        "\\boxed{\\text{cracks}}",
        "<think>There may be holes.</think>\n\ncracks",
        '```json\n{"answer": ["cracks"]}\n```',
    ],
)
def test_what_stands_around_an_answer_goes(text):
    assert normalize_answer(text, "labels", KNOWN).labels == {"cracks"}


def test_two_counts_are_no_reference():
    assert normalize_reference(["5", "9"], "count").status == "unparsable"
    assert normalize_reference(["5", "five"], "count").labels == {"5"}
