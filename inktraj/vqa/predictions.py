"""Predictions made elsewhere: read, matched with the questions by id, scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from inktraj.errors import DataError
from inktraj.evaluation.journal import ERRORS, REPLIES
from inktraj.vqa.benchmark import Benchmark, Question, Status
from inktraj.vqa.records import read_records, text_of
from inktraj.vqa.registry import load_benchmark
from inktraj.vqa.results import FORMAT, Outcome, uncollected
from inktraj.vqa.run import read_answer, score_answers, warnings_of

IDS = ("id", "ids", "question_id", "questionId", "qid", "sample_id", "sample", "index")
ANSWERS = ("prediction", "pred", "predicted", "raw_prediction", "response", "output", "model_answer", "answer", "text")
"""Names of columns, the first that is there is taken: a file with predictions beside the true answers calls the latter
``answer``."""

PROMPTS = ("prompt", "prompt_condition", "condition", "frame")
"""Names of columns that may say by which of a benchmark's prompts was asked."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer; what is not known is "".

    Parameters
    ----------
    id
        The question's.
    text
        None where there is none.
    stop_reason
        Why it ended: ``"refusal"`` and ``"length"`` (it was cut) are told of.
    error
        Why the model could not be asked.
    prompt
        By which it was asked.
    """

    id: str
    text: str | None
    stop_reason: str = ""
    error: str = ""
    prompt: str = ""


def read_predictions(path: str | Path, *, id_field: str = "", answer_field: str = "") -> list[Prediction]:
    """Read JSON, JSON Lines, CSV, TSV or Parquet: a record for each answer; or JSON of answers by id.

    A record with an ``error`` is one that could not be asked; its ``stop_reason`` is that of `Prediction`.

    Parameters
    ----------
    path
        By its suffix; or a run folder, whose ``samples.jsonl`` and ``errors.jsonl`` are read.
    id_field, answer_field
        Names of the columns; "" for the known ones, `IDS` and `ANSWERS`.

    Raises
    ------
    DataError
        It cannot be read, or has no such columns; or the only known one is ``answer``, beside ``question``, as in the
        data themselves.
    """
    path = Path(path)
    files = [path]
    if path.is_dir():
        files = [path / REPLIES, *(file for file in [path / ERRORS] if file.exists())]
    out: list[Prediction] = []
    id_name = answer_name = prompt_name = ""
    for where, record in chain.from_iterable(map(read_records, files)):
        error = record.get("error")
        if not id_name:
            id_name = _column(record, id_field, IDS, "ids", where)
            prompt_name = next((name for name in PROMPTS if name in record), "")
        if not answer_name and not error:
            answer_name = _column(record, answer_field, ANSWERS, "answers", where)
            if answer_name == "answer" != answer_field and "question" in record:
                raise DataError(
                    f"{where} has question and answer, and no column with predictions by a known name; what stands in "
                    "answer may be the true one. Name the column of the predictions with --answer-field"
                )
        if not error and answer_name not in record and not answer_field:
            other = next((name for name in ANSWERS if name in record), "")
            if other:
                raise DataError(
                    f"{where} has its answer in {other}, and others have theirs in {answer_name}; bring all "
                    "into one column, or name it with --answer-field"
                )
        id = record.get(id_name)
        named = text_of(id[0] if isinstance(id, list) and len(id) == 1 else id)
        if named is None:
            raise DataError(f"{path}: {where} has no {id_name}, so nobody can tell what it answers")
        out.append(
            Prediction(
                named.strip(),
                text_of(record.get(answer_name)),
                text_of(record.get("stop_reason")) or "",
                str(error) if error else "",
                text_of(record.get(prompt_name)) or "",
            )
        )
    return out


def _column(record: Mapping[str, Any], wanted: str, known: Sequence[str], what: str, where: str) -> str:
    name = wanted if wanted in record else next((n for n in known if n in record), "") if not wanted else ""
    if not name:
        there = ", ".join(map(str, record))
        sought = wanted or ", ".join(known)
        option = "--id-field" if what == "ids" else "--answer-field"
        raise DataError(
            f"{where} has no column with {what}: sought was {sought}; there are {there}. Name it with {option}"
        )
    return name


@uncollected()
def score_predictions(
    predictions: str | Path | Sequence[Prediction],
    benchmark: str | Benchmark,
    data: str | Path,
    *,
    split: str | None = None,
    prompt: str = "",
    answered_only: bool = False,
    several: bool = False,
    id_field: str = "",
    answer_field: str = "",
) -> Outcome:
    """Score predictions that were made elsewhere.

    Parameters
    ----------
    predictions
        A file or run folder, see `read_predictions`, or what that returned.
    benchmark, data, split
        As for `inktraj.vqa.run.run_benchmark`.
    answered_only
        Leave out questions without a prediction; else they are ``missing`` and incorrect.
    several
        A question may have several answers, such as those of several people: each is scored by itself. Else two that
        differ are an error.
    prompt
        The benchmark's prompt that was used: of a file which says so itself for each answer, those of this prompt are
        scored.
    id_field, answer_field
        As for `read_predictions`.

    Raises
    ------
    DataError
        Something cannot be read, no id is a question's, or a question has two predictions that differ.
    """
    bench = load_benchmark(benchmark)
    questions = bench.load(Path(data), split or bench.default_split)
    source = ""
    name = "predictions"
    if isinstance(predictions, str | Path):
        source, name = str(predictions), Path(predictions).resolve().name
        predictions = read_predictions(predictions, id_field=id_field, answer_field=answer_field)
    given, prompt = _of_prompt(predictions, bench, prompt, name)
    known = {question.id for question in questions.items}
    answers, notes = _by_question(given, known, name, several=several)
    came: list[tuple[Question, str | None, Status, str]] = []
    for question in questions.items:
        found = answers.get(question.id, [])
        if not found and not answered_only:
            came.append((question, None, "missing", "there is no prediction"))
        for answer in found:
            if answer.error:
                came.append((question, None, "error", answer.error))
            else:
                came.append((question, *read_answer(answer.text, answer.stop_reason)))
    results = score_answers(bench, came)
    missing = len(known) - len(answers)
    if missing and not answered_only:
        notes.append(f"{missing:,} of {len(known):,} questions have no prediction and count as incorrect")
    return Outcome(
        bench,
        prompt,
        name,
        questions,
        tuple(results),
        {
            "format": FORMAT,
            "benchmark": {"name": bench.name, "version": bench.version, "prompt": prompt},
            "predictions": source or "given",
            "split": split or bench.default_split,
            "answered_only": answered_only,
            "several": several,
        },
        left_out=missing if answered_only else 0,
        warnings=[*notes, *warnings_of(questions, results)],
    )


def _of_prompt(
    given: Sequence[Prediction], bench: Benchmark, prompt: str, name: str
) -> tuple[Sequence[Prediction], str]:
    """Return the predictions of a prompt, and its name; "" where nothing is known of one."""
    if not given:
        raise DataError(f"{name} holds no prediction")
    if prompt and prompt not in bench.prompts:
        raise DataError(f"{bench.name} has no prompt {prompt!r}; its prompts are {', '.join(bench.prompts)}")
    there = [known for known in bench.prompts if any(prediction.prompt == known for prediction in given)]
    if (len(there) > 1 and not prompt) or (there and prompt and prompt not in there):
        raise DataError(f"{name} holds answers to the prompts {', '.join(there)}; name one of them with --prompt")
    if prompt and there:
        given = [prediction for prediction in given if prediction.prompt == prompt]
    return given, prompt or "".join(there)


def _by_question(
    given: Sequence[Prediction], known: set[str], name: str, *, several: bool
) -> tuple[dict[str, list[Prediction]], list[str]]:
    """Return predictions by question, and what is to be told of the others."""
    answers: dict[str, list[Prediction]] = {}
    strange = Counter(prediction.id for prediction in given if prediction.id not in known)
    same = 0
    for prediction in given:
        if prediction.id not in known:
            continue
        there = answers.setdefault(prediction.id, [])
        if there and not several:
            if there[0] != prediction:
                raise DataError(
                    f"{name} has two predictions for {prediction.id} that differ: {there[0].text!r} and "
                    f"{prediction.text!r}; name one file for each system, or score each by itself with --several"
                )
            same += 1
            continue
        there.append(prediction)
    if not answers:
        seen = ", ".join(list(strange)[:_SHOWN]) or "none"
        expected = ", ".join(sorted(known)[:_SHOWN])
        raise DataError(f"{name}: no id is a question's; its ids are {seen} …, the questions' are {expected} …")
    notes = []
    if strange:
        shown = ", ".join(list(strange)[:_SHOWN])
        notes.append(f"{sum(strange.values())} predictions are for no question, such as {shown}; they are not scored")
    if same:
        notes.append(f"{same} predictions stand in {name} twice; they count once")
    return answers, notes
