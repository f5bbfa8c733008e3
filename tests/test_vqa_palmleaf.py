"""PalmLeaf-VQA: answers to canonical form, set scores, breakdowns, and the human baseline."""

from __future__ import annotations

import csv
import json
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from inktraj.errors import DataError
from inktraj.vqa.benchmark import Questions, Result
from inktraj.vqa.manifest import read_layout
from inktraj.vqa.palmleaf import PalmLeafVQA
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
from inktraj.vqa.palmleaf_human import balanced_subset, human_baseline, read_responses
from inktraj.vqa.palmleaf_questions import kind_of
from inktraj.vqa.predictions import Prediction, score_predictions
from inktraj.vqa.results import Outcome, per_category, write_outcome

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
    assert normalize_reference("Five", "count").labels == {"5"}
    assert normalize_reference("many", "count").status == "unparsable"
    assert normalize_reference("TRUE", "binary").labels == {"yes"}


# A local copy

COLLECTIONS = ["Balinese", "Grantha", "Jathakam", "Kambaramayanam", "Kannada", "Khmer", "Sundanese", "Tamil"]
ASKED = {  # category → task type and an answer for each of two images
    "Script or collection": ("classification", None),
    "Physical condition": ("attribute", (["cracks", "stains"], ["stains"])),
    "Line count": ("counting", (5, "seven")),
    "Symbols and drawings": ("binary", (True, "No")),
    "Material and coating": ("attribute", ("Lacquered", "bare")),
    "Binding and holes": ("layout", ("two holes", "2 holes")),
    "Scribe and margins": ("layout", ("ruled margins", "none")),
    "Legibility": ("attribute", ("good", "poor")),
}


def copy_of(folder, split="test"):
    """Write two images of each collection, and eight questions to each."""
    (folder / "images").mkdir(parents=True)
    records = []
    for i, collection in enumerate(COLLECTIONS * 2):
        name = f"{collection}_{i}.png".lower()
        Image.new("RGB", (40, 8), (200, 180, 120)).save(folder / "images" / name)
        for j, (category, (task, answers)) in enumerate(ASKED.items()):
            answer = answers[i // 8] if answers else f"{collection} script"
            records.append(
                {
                    **{"id": f"q{i}_{j}", "image": name, "question": f"What of {category.lower()}?", "answer": answer},
                    **{"collection": collection, "category": category, "task_type": task, "split": split},
                }
            )
    (folder / f"{split}.json").write_text(json.dumps(records), "utf-8")
    return records


@pytest.fixture
def leaf():
    return PalmLeafVQA()


@pytest.fixture
def local(tmp_path):
    copy_of(tmp_path)
    return tmp_path


def by(questions, category, place=0):
    return [q for q in questions.items if q.groups["category"] == category][place]


def test_a_local_copy_is_read_with_groups_and_vocabularies(leaf, local):
    questions = leaf.load(local, "test")
    assert len(questions.items) == 128
    assert not questions.skipped
    assert {q.groups["collection"] for q in questions.items} == {name.lower() for name in COLLECTIONS}
    condition = by(questions, "physical condition")
    assert (condition.kind, condition.labels) == ("labels", {"cracks", "stains"})
    assert (condition.vocabulary, condition.several) == (("cracks", "stains"), True)
    assert condition.groups["cardinality"] == "multiple"
    assert by(questions, "line count", 8).labels == {"7"}
    assert by(questions, "symbols and drawings").labels == {"yes"}
    assert by(questions, "binding and holes").labels == by(questions, "binding and holes", 8).labels == {"2 holes"}
    assert by(questions, "script or collection").labels == {"balinese"}
    assert by(questions, "line count").image.pixels().shape == (8, 40, 3)
    assert "test questions: 2,224 are published, 128 were found" in questions.notes
    assert "test images: 278 are published, 16 were found" in questions.notes


def test_prompts_differ_in_form_and_vocabulary_only(leaf, local):
    questions = leaf.load(local, "test")
    question = by(questions, "physical condition")
    opened, constrained = leaf.ask(question, "open"), leaf.ask(question, "constrained")
    assert opened.parts[0] is constrained.parts[0] is question.image
    assert constrained.parts[1].startswith(opened.parts[1])
    assert "cracks; stains" in constrained.parts[1]
    assert "cracks" not in opened.parts[1]
    assert "separated by semicolons" in constrained.parts[1]
    assert "one whole number" in leaf.wording(by(questions, "line count"), "constrained")
    assert "yes or no" in leaf.wording(by(questions, "symbols and drawings"), "constrained")
    script = leaf.wording(by(questions, "script or collection"), "constrained")
    assert "exactly one of these labels" in script
    assert all(name in script for name in COLLECTIONS)


def test_the_text_only_control_has_the_same_words_and_no_image(leaf, local):
    question, shot = leaf.load(local, "test").items[:2]
    for prompt in ("open", "constrained"):
        seen, blind = leaf.ask(question, prompt, [shot]), leaf.ask(question, f"{prompt}-text-only", [shot])
        assert blind.parts == tuple(part for part in seen.parts if isinstance(part, str))
        assert len(seen.parts) == len(blind.parts) + 2


def test_answers_are_scored_as_sets_counts_and_refusals(leaf, local):
    questions = leaf.load(local, "test")
    condition, lines = by(questions, "physical condition"), by(questions, "line count")
    assert leaf.score("Stains and cracks.", condition).values["em"] == 1
    half = leaf.score("stains, holes, stains", condition)
    assert (half.values["em"], half.values["f1"], half.values["jaccard"]) == (0, 0.5, pytest.approx(1 / 3))
    assert set(half.flags) == {"repeated-labels", "outside-vocabulary"}
    near = leaf.score("There are six lines.", lines)
    assert (near.values["em"], near.values["within_one"], near.values["count_error"]) == (0, 1, 1)
    for said, status in (
        ("4-5", "unparsable"),
        ("I cannot count them", "refused"),
        ("Lo siento, no puedo verlas", "refused"),
        ("...", "empty"),
    ):
        lost = leaf.score(said, lines)
        assert (lost.status, lost.flags) == (status, ())
        assert (lost.values["em"], lost.values["within_one"], lost.values["count_error"]) == (0, 0, None)
    assert leaf.score(None, lines).values["em"] == 0
    assert "within_one" not in leaf.score("cracks", condition).values


def test_reference_answers_are_right_and_others_are_told_apart(leaf, local):
    questions = leaf.load(local, "test").items
    results = [Result(q, (a := leaf.shown_answer(q)), "ok", leaf.score(a, q)) for q in questions]
    assert all(result.scored.values["em"] == 1 for result in results)
    wrong = next(q for q in questions if q.kind == "count")
    results += [Result(wrong, said, "ok", leaf.score(said, wrong)) for said in ("7", "4", "none of these", "4")]
    results.append(Result(wrong, None, "error", leaf.score(None, wrong)))
    outcome = Outcome(leaf, "open", "m", Questions(tuple(questions)), tuple(results), {})
    head, *table = per_category(outcome)
    assert head[:5] == ["System", "Prompt", "Breakdown", "Group", "Answers"]
    assert {tuple(row[:2]) for row in table} == {("m", "open")}
    rows = {tuple(row[2:4]): dict(zip(head[4:], row[4:], strict=True)) for row in table}
    assert {breakdown for breakdown, _ in rows} == {"all", *leaf.breakdowns}
    assert rows["all", "all"]["Answers"] == 132
    assert rows["category", "line count"]["Answers"] == 20
    assert rows["category", "line count"]["EM"] == 80
    assert rows["category", "line count"]["W1"] == 90
    assert rows["category", "legibility"]["W1"] is None
    assert rows["collection", "balinese"]["Answers"] == 20
    crossed, errors = leaf.extras([result for result in results if result.status != "error"])
    cells = {row[0]: dict(zip(crossed.head[1:], row[1:], strict=True)) for row in crossed.rows}
    assert cells["line count"] == {name.lower(): 33.33 if name == "Balinese" else 100 for name in COLLECTIONS}
    assert errors.rows == (("-1", 2, 10.0), ("0", 16, 80.0), ("+2", 1, 5.0), ("no number", 1, 5.0))


def test_a_renamed_column_takes_one_line(leaf, local):
    records = json.loads((local / "test.json").read_text("utf-8"))
    for record in records:
        record["reponse_canonique"] = record.pop("answer")
    (local / "test.json").write_text(json.dumps(records), "utf-8")
    with pytest.raises(DataError, match="no column for answer; sought were answer, answers"):
        leaf.load(local, "test")
    (local / "manifest.toml").write_text('[fields]\nanswer = "reponse_canonique"\n', "utf-8")
    assert len(leaf.load(local, "test").items) == 128


def test_ids_that_begin_anew_in_each_split_stay_as_they_are(leaf, tmp_path):
    for split in ("train", "test"):
        rows = [{"id": k, "image": "x.png", "question": f"{split}: which?", "answer": f"{split}{k}"} for k in range(3)]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    questions = leaf.load(tmp_path, "test")
    assert [q.id for q in questions.items] == ["0", "1", "2"]
    assert not any("renamed" in note for note in questions.notes)


def test_an_id_that_looks_like_a_renamed_one_is_not_given_twice(leaf, tmp_path):
    ids = ["a", "a~2", "a"]
    rows = [{"id": id, "image": "x.png", "question": f"{k}: which?", "answer": "x"} for k, id in enumerate(ids)]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [q.id for q in leaf.load(tmp_path, "test").items] == ["a", "a~2", "a~3"]


def test_what_real_files_hold_is_told_of(leaf, tmp_path):
    rows = [
        {"id": "a", "image": "x.png", "question": "How many lines?", "answer": 5, "task_type": "counting"},
        {"id": "a", "image": "x.png", "question": "How many lines?", "answer": 5, "task_type": "counting"},
        {"id": "a", "image": "x.png", "question": "How many lines?", "answer": 6, "task_type": "counting"},
        {"id": "a", "image": "x.png", "question": "Any drawing?", "answer": "no", "task_type": "binary"},
        {"id": "c", "image": "x.png", "question": "How many lines?", "answer": float("nan"), "task_type": "counting"},
        {"id": "d", "image": "x.png", "question": "How many lines?", "answer": "some", "task_type": "counting"},
        {"id": "e", "image": "x.png", "question": "", "answer": "some"},
        {"id": "f", "image": "../../x.png", "question": "Which?", "answer": "nan"},
        {"id": "g", "question": "Which condition?", "answer": [float("nan"), "cracks"]},
    ]
    text = "\ufeff" + "".join(json.dumps(row) + "\n" for row in rows) + "not a record\n\n"
    (tmp_path / "test.jsonl").write_text(text, "utf-8")
    questions = leaf.load(tmp_path, "test")
    assert [(q.id, sorted(q.labels)) for q in questions.items] == [("a", ["5"]), ("a~2", ["no"]), ("g", ["cracks"])]
    assert all(q.image is None for q in questions.items)
    told = "\n".join(map(str, questions.skipped))
    for reason in (
        "line 2: the same question with the id 'a' is there already in test.jsonl, line 1",
        "line 3: the same question with the id 'a' has another answer in test.jsonl, line 1",
        "line 5: it has no answer: nan",
        "line 6: its answer 'some' is no whole number",
        "line 7: it has no question",
        "line 8: it has no answer: 'nan'",
        "line 10: not a record",
    ):
        assert reason in told
    notes = "\n".join(questions.notes)
    assert "images not there: 2 (such as 'x.png'); their questions can be scored, but not asked" in notes
    assert "ids that stand for several questions; renamed were 1 (such as 'a~2')" in notes
    assert "collections: 8 in the paper, 1 here: (none)" in notes


def test_one_file_for_all_splits_is_told_apart_by_its_records(leaf, tmp_path):
    rows = [
        {"id": str(i), "question": "Which script?", "answer": name, "split": split, "category": "script"}
        for i, (name, split) in enumerate([("Khmer", "train"), ("Tamil", "val"), ("Grantha", "TEST"), ("Bali", None)])
    ]
    (tmp_path / "annotations.json").write_text(json.dumps({"data": rows}), "utf-8")
    questions = leaf.load(tmp_path, "test")
    assert [q.id for q in questions.items] == ["2"]
    assert questions.items[0].vocabulary == ("Bali", "Grantha", "Khmer", "Tamil")
    assert "records that do not say of which split they are: 1" in questions.notes
    assert [q.id for q in leaf.load(tmp_path, "validation").items] == ["1"]
    assert len(leaf.load(tmp_path, None).items) == 4


def test_images_lie_beside_their_records_or_are_named_without_a_suffix(leaf, tmp_path):
    for path in ("images/a.png", "test/b.png", "test/images/c.jpg"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (5, 4)).save(tmp_path / path)
    Image.new("RGB", (5, 4)).save(tmp_path.parent / "outside.png")
    rows = [
        {"id": name, "image": name, "question": "Which script?", "answer": "Khmer", "category": "script"}
        for name in ("a", "b.png", "c", "images\\a.png", "../outside", "a.jpg")
    ]
    (tmp_path / "test" / "records.json").write_text(json.dumps(rows), "utf-8")
    found = {q.id: q.image for q in leaf.load(tmp_path, "test").items}
    assert [name for name, image in found.items() if image is None] == ["../outside", "a.jpg"]
    assert all(image.pixels().shape == (4, 5, 3) for image in found.values() if image is not None)


def test_an_empty_or_foreign_folder_is_an_error(leaf, tmp_path):
    with pytest.raises(DataError, match="holds no file of palmleaf-vqa"):
        leaf.load(tmp_path, "test")
    (tmp_path / "train.json").write_text('[{"question": "Which?", "answer": "a"}]', "utf-8")
    with pytest.raises(DataError, match="no question of the split 'test'; it holds 1 of train"):
        leaf.load(tmp_path, "test")


@pytest.mark.parametrize(
    ("task", "category", "reference", "kind"),
    [
        ("counting", "", "5", "count"),
        ("binary", "", "yes", "binary"),
        ("binary recognition", "", "no", "binary"),
        ("attribute", "", "Yes", "binary"),
        ("", "", "7", "count"),
        ("layout", "line count", "7", "count"),
        ("layout", "binding and holes", "2", "labels"),
        ("", "", "cracks", "labels"),
        ("classification", "", ("khmer", "tamil"), "labels"),
    ],
)
def test_what_a_question_asks_for(task, category, reference, kind):
    assert kind_of(task, category, reference) == kind


# The human baseline


def answered(tmp_path, change=lambda id, person: None):
    """Write three responses to each of a balanced subset; `change` gives other ones than the reference."""
    copy_of(tmp_path / "data")
    questions = PalmLeafVQA().load(tmp_path / "data", "test").items
    subset = balanced_subset(questions, per_cell=2)
    rows = [
        {"question_id": q.id, "participant": person, "response": change(q, person) or "; ".join(sorted(q.labels))}
        for q in subset
        for person in ("p1", "p2", "p3")
    ]
    path = tmp_path / "human.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path, questions


def test_a_balanced_subset_has_as_many_of_each_pair(local, leaf):
    questions = leaf.load(local, "test").items
    subset = balanced_subset(questions, per_cell=1, seed=3)
    assert len(subset) == len({(q.groups["collection"], q.groups["category"]) for q in subset}) == 64
    assert subset == balanced_subset(questions, per_cell=1, seed=3)
    assert subset != balanced_subset(questions, per_cell=1, seed=4)
    with pytest.raises(DataError, match="balinese has 2 questions of binding and holes, 4 are to be drawn"):
        balanced_subset(questions)


def test_human_scores_are_means_of_single_responses(tmp_path):
    # One of three people counts one line too many everywhere; another names one of two labels on eight leaves.
    def change(question, person):
        if person == "p1" and question.kind == "count":
            return str(int(min(question.labels)) + 1)
        return "stains" if person == "p2" and question.labels == {"cracks", "stains"} else None

    path, questions = answered(tmp_path, change)
    found = human_baseline(*read_responses(path, read_layout("palmleaf-vqa"))[:1], questions)
    assert (found.questions, found.responses, found.count_responses) == (128, 384, 48)
    assert found.exact == pytest.approx((384 - 16 - 8) / 384)
    assert found.f1 == pytest.approx((384 - 16 - 8 + 8 * 2 / 3) / 384)
    assert found.within_one == 1
    # Of a count's three pairs of responses one agrees; of eight of the sixteen questions on condition one does.
    assert found.agreement_by_category["line count"] == pytest.approx(1 / 3)
    assert found.agreement_by_category["physical condition"] == pytest.approx((8 + 8 / 3) / 16)
    assert found.agreement == pytest.approx((6 + 1 / 3 + 2 / 3) / 8)
    assert found.notes == (
        "not the balanced subset of 8 × 8 × 4: 8 collections, 8 categories, 64 pairs of them, 64 of these without "
        "4 questions",
    )


def test_agreement_is_of_answers_and_of_their_normal_form(tmp_path):
    said = {"p1": "Khmer script", "p2": "CAMBODIAN", "p3": "khmer"}
    path, questions = answered(
        tmp_path, lambda q, person: said[person] if "script" in q.groups["category"] else "I cannot tell"
    )
    found = human_baseline(read_responses(path, read_layout("palmleaf-vqa"))[0], questions)
    assert found.agreement_by_category["script or collection"] == 1
    assert {value for name, value in found.agreement_by_category.items() if "script" not in name} == {0}
    assert found.agreement == 1 / 8


def test_responses_that_cannot_be_used_are_told_of(tmp_path):
    path, questions = answered(tmp_path)
    with path.open("a", encoding="utf-8") as file:
        for row in (
            {"question_id": "q0_0", "participant": "p1", "response": "again"},
            {"question_id": "unheard-of", "participant": "p1", "response": "x"},
            {"question_id": "q0_1", "participant": None, "response": "x"},
            {"question_id": "q0_2", "participant": "p4", "response": None},
        ):
            file.write(json.dumps(row) + "\n")
    responses, skipped = read_responses(path, read_layout("palmleaf-vqa"))
    found = human_baseline(responses, questions, skipped)
    told = "\n".join(map(str, found.skipped))
    assert "p1 has answered q0_0 already" in told
    assert "unheard-of: no question of this id is scored here" in told
    assert "it has no participant" in told
    assert found.responses == 385
    assert found.exact == pytest.approx(384 / 385)  # nothing given is an incorrect response
    assert "1 questions, such as q0_2, have not 3 responses" in found.notes
    with pytest.raises(DataError, match="none of the 1 questions of the responses is in the data"):
        human_baseline({"z": {"p": "a"}}, questions)


def test_the_human_option_adds_a_table_with_the_model_on_the_same_questions(tmp_path):
    path, questions = answered(tmp_path)
    leaf = PalmLeafVQA().configured(human=str(path))
    results = [Result(q, "none", "ok", leaf.score("none", q)) for q in questions]
    table = list(leaf.extras(results))[-1]
    assert table.file == "human_baseline.csv"
    human, model = table.rows
    assert human == ("human", 384, 100.0, 100.0, 100.0, 100.0)
    # "none" is right for the margins of eight leaves and, as a no, for the drawings of as many.
    assert model[:3] == ("model, same questions", 128, 12.5)
    # Where a limit left out all of them, the table says so; the run's own results are not lost for it.
    other = [replace(result, question=replace(result.question, id=f"x{k}")) for k, result in enumerate(results)]
    table = list(leaf.extras(other))[-1]
    assert (table.rows, "none of its 128 questions" in table.title) == ((), True)
    with pytest.raises(DataError, match="is no file"):
        leaf.configured(human=str(tmp_path / "absent.jsonl"))
    with pytest.raises(DataError, match="no option 'sts'"):
        leaf.configured(sts="x")


def test_many_predictions_are_scored_quickly(local, leaf):
    questions = leaf.load(local, "test").items
    pairs = [(f"cracks; stains, {i} holes and ruled margins", questions[i % 128]) for i in range(10_000)]
    start = time.process_time()
    leaf.score_all(pairs)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("kind", ["labels", "binary", "count"])
@pytest.mark.parametrize(
    "part",
    ["one ", "5,", "5", "a and ", "the ", " ", "**_##", "- ", "answer", "yes no ", "```", "```a ", "{", "<answer>"],
)
def test_long_answers_take_no_longer_than_they_are_long(part, kind):
    start = time.process_time()
    normalize_answer(part * 20_000 + "x", kind, frozenset(["black and white"]))
    assert time.process_time() - start < 1


def test_answers_that_say_nothing_are_counted_and_logged_each_by_its_name(tmp_path):
    copy_of(tmp_path / "data")
    questions = [q for q in PalmLeafVQA().load(tmp_path / "data", "test").items if q.kind == "count"]
    said = ["5", "", "...", "I cannot count them.", "4-5", None]
    given = [Prediction(q.id, text) for q, text in zip(questions, said, strict=False)]
    given += [Prediction(questions[6].id, "5", "refusal"), Prediction(questions[7].id, None, error="503")]
    outcome = score_predictions(given, "palmleaf-vqa", tmp_path / "data", answered_only=True)
    write_outcome(outcome, tmp_path)
    assert {status: n for status, n in outcome.counts.items() if n} == {
        **{"ok": 1, "empty": 3, "refused": 2, "unparsable": 1, "error": 1},
    }
    em = outcome.figures[0].micro
    assert (em.count, em.mean) == (7, pytest.approx(1 / 7))
    with open(tmp_path / "scores.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["status"], row["em"]) for row in rows] == [
        *(("ok", "1"), ("empty", "0"), ("empty", "0"), ("refused", "0"), ("unparsable", "0"), ("empty", "0")),
        *(("refused", "0"), ("error", "")),
    ]
    assert [row["reason"] for row in rows[2:5]] == [
        *("nothing is left of the answer", "the answer refuses", "the answer says nothing that can be read"),
    ]
    assert rows[4]["prediction"] == "4-5"
    errors = {row[0]: row[1] for row in outcome.extras[1].rows}
    assert errors == {"0": 1, "no number": 6}
