"""PalmLeaf-VQA (Thuon et al., arXiv 2609.31651): what can be seen on palm-leaf manuscripts of eight collections.

How answers are brought to one form and compared is in `inktraj.vqa.palmleaf_answers`, the human baseline in
`inktraj.vqa.palmleaf_human`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Self

from inktraj.errors import DataError
from inktraj.metrics.statistics import mean
from inktraj.vqa.benchmark import Benchmark, Extra, Figure, Message, Question, Questions, Quoted, Result, Scored
from inktraj.vqa.manifest import read_layout
from inktraj.vqa.palmleaf_human import HumanBaseline, human_baseline, read_responses
from inktraj.vqa.palmleaf_questions import PalmLeafQuestion, count_error, read_questions, score_answer

_TEXT_ONLY = "-text-only"
_OPEN = "Answer from what can be seen in the image of the manuscript, without outside knowledge."
_CONSTRAINED = "Answer from what can be seen in the image of the manuscript, without outside knowledge. {format}"


def _figure(name: str, label: str, about: str) -> Figure:
    """Return a figure that is published as the mean over questions; the macro average is over categories."""
    rules = {"norm": "canonical", "empty": "incorrect", "vocabulary": "references"}
    return Figure(name, label, about, over="category", rules=rules)


class PalmLeafVQA(Benchmark):
    """Questions of eight categories; the answer is a set of canonical labels, a yes or no, or a count."""

    name = "palmleaf-vqa"
    title = "PalmLeaf-VQA: palm-leaf manuscripts, eight collections, eight categories of questions"
    prompts = MappingProxyType(
        {
            "constrained": "with the form of the answer and, where there is one, the category's vocabulary",
            "open": "the question alone, answered freely",
            "constrained-text-only": "as constrained, without the image: what can be guessed",
            "open-text-only": "as open, without the image",
        }
    )
    figures = (
        _figure("em", "EM", "The answer is the reference; of sets, completely."),
        _figure("f1", "F1", "F1 of the labels, mean over questions."),
        _figure("within_one", "W1", "Of counts: the number is at most one off."),
        _figure("precision", "Precision", "Share of the named labels that are right."),
        _figure("recall", "Recall", "Share of the right labels that are named."),
        _figure("jaccard", "Jaccard", "Labels in both by labels in either."),
        _figure("count_exact", "Count exact", "Of counts: the number is right."),
        replace(_figure("count_error", "Count error", "Of counts that named a number: how far off."), share=False),
    )
    breakdowns = ("collection", "category", "task", "cardinality")
    shots_within = "category"
    options = MappingProxyType({"human": "file of human responses (JSON, JSON Lines or CSV): adds the human baseline"})
    quoted = (
        Quoted(
            "As published (test, 2,224 questions; human: a balanced subset of 256)",
            "arXiv 2609.31651, Table 5 and sections 5.2, 5.3 and 5.6",
            "Quoted; normalisation and prompts there need not be those here, whose code was not to be had.",
            ("System", "Prompt", "EM", "F1", "W1"),
            (
                ("Gemini 3.5 Flash", "constrained", "58.00", "67.25", "93.88"),
                ("Gemini 3.5 Flash", "open", "43.03", "", ""),
                ("Human", "constrained", "87.50", "92.40", "96.88"),
            ),
        ),
    )

    def __init__(self) -> None:
        self.human: Path | None = None

    def configured(self, **options: str) -> Self:
        """Return the benchmark with its option ``human``; DataError where there is no such file, or another option."""
        super().configured(**options)
        made = copy(self)
        if human := options.get("human"):
            made.human = Path(human)
            if not made.human.is_file():
                raise DataError(f"human: {human} is no file; expected responses, one a record")
        return made

    def load(self, folder: Path, split: str | None) -> Questions:
        """Read JSON or JSON Lines with one record for each question; images beside it."""
        return read_questions(read_layout(self.name, folder), folder, split)

    def wording(self, question: Question, prompt: str) -> str:
        """Return the question, and how it is to be answered."""
        asked = _OPEN
        if prompt.removesuffix(_TEXT_ONLY) == "constrained":
            asked = _CONSTRAINED.format(format=answer_format(_own(question)))
        return f"{question.text}\n\n{asked}"

    def ask(self, question: Question, prompt: str, shots: Sequence[Question] = ()) -> Message:
        """Return what a model is sent; without images where the prompt is text-only."""
        message = super().ask(question, prompt, shots)
        if not prompt.endswith(_TEXT_ONLY):
            return message
        return Message(message.system, tuple(part for part in message.parts if isinstance(part, str)))

    def shown_answer(self, question: Question) -> str:
        """Return the labels of an example's reference."""
        return "; ".join(question.golds)

    def score(self, prediction: str | None, question: Question) -> Scored:
        """Compare sets of canonical labels."""
        return score_answer(prediction, _own(question))

    def extras(self, results: Sequence[Result]) -> Iterable[Extra]:
        """Return EM by category and collection, counting errors, and the human baseline where it is given."""
        yield _crossed(results)
        yield _count_errors(results)
        if self.human is not None:
            yield _human(self.human, results)


def answer_format(question: PalmLeafQuestion) -> str:
    """Return how the constrained prompt wants the answer: its form, and the vocabulary where there is one."""
    if question.kind == "count":
        return "Answer with one whole number in numerals and nothing else."
    if question.kind == "binary":
        return "Answer with yes or no and nothing else."
    listed = "; ".join(question.vocabulary)
    if question.several:
        return (
            f"Answer with all labels that apply, separated by semicolons, and nothing else. The labels are: {listed}."
        )
    return f"Answer with exactly one of these labels and nothing else: {listed}."


def _own(question: Question) -> PalmLeafQuestion:
    if not isinstance(question, PalmLeafQuestion):
        raise DataError(f"the question {question.id!r} is none of PalmLeaf-VQA's; load them with its benchmark")
    return question


def _crossed(results: Sequence[Result]) -> Extra:
    """Return exact match by category and collection."""
    collections = list(_grouped(results, "collection"))
    rows = []
    for category, group in _grouped(results, "category").items():
        cells = _grouped(group, "collection")
        found = (mean([result.scored.values["em"] for result in cells.get(name, ())]) for name in collections)
        rows.append((category, *map(_in_percent, found)))
    title = "EM by category and collection"
    return Extra(title, ("Category", *collections), tuple(rows), "category_by_collection.csv")


def _grouped(results: Sequence[Result], key: str) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.question.groups.get(key, ""), []).append(result)
    return dict(sorted(groups.items()))


def _count_errors(results: Sequence[Result]) -> Extra:
    """Return how often counts are off by how much; those without a number are a row of their own."""
    errors: Counter[int | None] = Counter()
    for result in results:
        question = _own(result.question)
        if question.kind == "count":
            labels = [result.scored.normalized] if result.scored.normalized else []
            errors[count_error(labels, question)] += 1
    total = errors.total()
    order = sorted(errors, key=lambda error: (error is None, error or 0))
    rows = tuple(
        (
            "no number" if error is None else f"{error:+d}" if error else "0",
            errors[error],
            _in_percent(errors[error] / total),
        )
        for error in order
    )
    return Extra("Counting errors (predicted less true)", ("Error", "Questions", "%"), rows, "count_errors.csv")


def _human(path: Path, results: Sequence[Result]) -> Extra:
    """Return the human baseline, and the model on the same questions."""
    responses, skipped = read_responses(path, read_layout(PalmLeafVQA.name))
    questions = {result.question.id: _own(result.question) for result in results}
    head = ("Who", "Answers", "EM", "F1", "W1", "Agreement")
    if not questions.keys() & responses.keys():
        title = f"Human baseline ({path.name}): none of its {len(responses)} questions is among those that were scored"
        return Extra(title, head, (), "human_baseline.csv")
    found = human_baseline(responses, list(questions.values()), skipped)
    answered = set(found.ids)
    same = [result for result in results if result.question.id in answered]
    model = [mean([result.scored.values.get(key) for result in same]) for key in ("em", "f1", "within_one")]
    rows = (
        ("human", found.responses, *map(_in_percent, (found.exact, found.f1, found.within_one, found.agreement))),
        ("model, same questions", len(same), *map(_in_percent, model), None),
    )
    title = f"Human baseline ({'; '.join((path.name, *_remarks(found)))})"
    return Extra(title, head, rows, "human_baseline.csv")


def _remarks(found: HumanBaseline) -> list[str]:
    passed = [f"{len(found.skipped)} responses passed over, such as {found.skipped[0]}"] if found.skipped else []
    return [*found.notes, *passed]


def _in_percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)
