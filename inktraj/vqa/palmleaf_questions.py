"""PalmLeaf-VQA's questions: read, told apart by what they ask for, each with the canonical labels of its category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inktraj.vqa.benchmark import Question, Questions, Scored, Skipped
from inktraj.vqa.manifest import Layout
from inktraj.vqa.pairs import Pair, read_pairs
from inktraj.vqa.palmleaf_answers import (
    NO_LABELS,
    Answer,
    Kind,
    canonical,
    normalize_answer,
    normalize_reference,
    plain,
    score_sets,
    split_labels,
)
from inktraj.vqa.records import text_of

COLLECTIONS = 8
"""How many collections, and as many categories of questions, the whole data set has."""

_COUNTING, _BINARY = ("count", "number"), ("binary", "yes", "bool")  # how names of task types begin


@dataclass(frozen=True, slots=True)
class PalmLeafQuestion(Question):
    """A question, and what its answer is made of.

    Parameters
    ----------
    kind
        What is asked for.
    labels
        The reference in canonical form.
    known
        Canonical labels of the category; empty for yes and no and counts.
    vocabulary
        The same as the data write them, in alphabetical order.
    several
        Whether questions of the category may have several labels.
    """

    kind: Kind = "labels"
    labels: frozenset[str] = NO_LABELS
    known: frozenset[str] = NO_LABELS
    vocabulary: tuple[str, ...] = ()
    several: bool = False


@dataclass(slots=True)
class _Category:
    """What all questions of a category share; labels and how often each is written how."""

    spellings: dict[str, Counter[str]] = field(default_factory=dict)
    several: bool = False

    def vocabulary(self) -> tuple[str, ...]:
        written = [min(forms, key=lambda form: (-forms[form], form)) for forms in self.spellings.values()]
        return tuple(sorted(written, key=str.casefold))


def read_questions(layout: Layout, folder: Path, split: str | None) -> Questions:
    """Read the questions of a split.

    The vocabulary of a category is made of the references of all splits that are there, since the records hold none.

    Raises
    ------
    DataError
        There are none.
    """
    pairs = read_pairs(layout, folder)
    wanted = {pair.id for pair in pairs.of(split, folder)}
    read, skipped = _references(pairs.items, layout)
    categories = _categories(read, layout)
    items = tuple(
        _question(pair, kind, answer, categories[_category(pair, layout)], layout)
        for pair, kind, answer in read
        if pair.id in wanted
    )
    return Questions(items, (*pairs.skipped, *skipped), (*pairs.notes, *_notes(items)))


Read = tuple[Pair, Kind, Answer]


def _references(pairs: Iterable[Pair], layout: Layout) -> tuple[list[Read], list[Skipped]]:
    read: list[Read] = []
    skipped: list[Skipped] = []
    for pair in pairs:
        task = plain(text_of(layout.value(pair.record, "task")) or "")
        value = pair.answer[0] if isinstance(pair.answer, tuple) and len(pair.answer) == 1 else pair.answer
        kind = kind_of(task, _category(pair, layout), value)
        answer = normalize_reference(value if kind != "labels" else pair.answer, kind)
        if answer.status == "answered":
            read.append((pair, kind, answer))
        else:
            wanted = {"count": "whole number", "binary": "yes or no", "labels": "label"}[kind]
            skipped.append(Skipped(pair.where, f"its answer {pair.answer!r} is no {wanted}"))
    return read, skipped


def kind_of(task: str, category: str, reference: str | Sequence[str]) -> Kind:
    """Say what a question asks for: by its task type, or by its reference where there is none.

    A reference of yes or no makes it binary whatever the task is called, a whole number one that counts where no task
    type is known or the category's name has "count" in it.
    """
    if task.startswith(_COUNTING):
        return "count"
    said = plain(reference) if isinstance(reference, str) else ""
    if task.startswith(_BINARY) or said in ("yes", "no"):
        return "binary"
    return "count" if said.isdecimal() and (not task or "count" in category) else "labels"


def _category(pair: Pair, layout: Layout) -> str:
    return plain(text_of(layout.value(pair.record, "category")) or "")


def _categories(read: Iterable[Read], layout: Layout) -> dict[str, _Category]:
    out: dict[str, _Category] = {}
    for pair, kind, answer in read:
        category = out.setdefault(_category(pair, layout), _Category())
        if kind != "labels":
            continue
        category.several |= len(answer.labels) > 1
        for written in _written(pair.answer):
            category.spellings.setdefault(canonical(written), Counter())[written] += 1
    return out


def _written(answer: str | tuple[str, ...]) -> list[str]:
    """Return a reference's labels as they are written; of several in one text only canonical forms are to be had."""
    if isinstance(answer, tuple):
        return [each for each in answer if canonical(each)] or ["none"]
    labels = split_labels(answer)
    return [answer] if len(labels) == 1 else labels


def _question(pair: Pair, kind: Kind, answer: Answer, category: _Category, layout: Layout) -> PalmLeafQuestion:
    collection = canonical(text_of(layout.value(pair.record, "collection")) or "")
    task = plain(text_of(layout.value(pair.record, "task")) or "")
    name = _category(pair, layout)
    labels = kind == "labels"
    return PalmLeafQuestion(
        id=pair.id,
        image=pair.image,
        text=pair.question,
        golds=tuple(sorted(answer.labels)),
        groups={
            "collection": collection,
            "category": name,
            "task": task or {"count": "counting", "binary": "binary", "labels": ""}[kind],
            "cardinality": "multiple" if len(answer.labels) > 1 else "single",
        },
        split=pair.split,
        reference=pair.answer if isinstance(pair.answer, str) else list(pair.answer),
        kind=kind,
        labels=answer.labels,
        known=frozenset(category.spellings) if labels else NO_LABELS,
        vocabulary=category.vocabulary() if labels else (),
        several=category.several,
    )


def _notes(items: Sequence[PalmLeafQuestion]) -> list[str]:
    notes = []
    for what, plural in (("collection", "collections"), ("category", "categories")):
        names = {question.groups[what] for question in items}
        if len(names) != COLLECTIONS or "" in names:
            shown = ", ".join(sorted(name or "(none)" for name in names))
            notes.append(f"{plural}: {COLLECTIONS} in the paper, {len(names)} here: {shown}")
    return notes


# One answer


def score_answer(prediction: str | None, question: PalmLeafQuestion) -> Scored:
    """Score an answer as it came; None is an incorrect one.

    The counting error (predicted less true) has a value where both are numbers.
    """
    answer = normalize_answer(prediction or "", question.kind, question.known)
    sets = score_sets(answer.labels, question.labels)
    values: dict[str, float | None] = {
        "em": sets.exact,
        "f1": sets.f1,
        "precision": sets.precision,
        "recall": sets.recall,
        "jaccard": sets.jaccard,
    }
    if question.kind == "count":
        error = count_error(answer.labels, question)
        values |= {
            "count_exact": sets.exact,
            "within_one": float(error is not None and abs(error) <= 1),
            "count_error": None if error is None else float(abs(error)),
        }
    answered = answer.status == "answered"
    flags: list[str] = [] if answered or prediction is None else [answer.status]
    flags += ["repeated-labels"] * (answer.repeated > 0)
    flags += ["outside-vocabulary"] * bool(question.known and answer.labels - question.known)
    return Scored(
        values, "; ".join(sorted(answer.labels)), "ok" if answered or prediction is None else "unparsable", tuple(flags)
    )


def count_error(labels: Iterable[str], question: PalmLeafQuestion) -> int | None:
    """Return a count's error, predicted less true; None where nothing was predicted."""
    predicted = next(iter(labels), "")
    return int(predicted) - int(next(iter(question.labels))) if predicted else None
