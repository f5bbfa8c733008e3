"""PalmLeaf-VQA's questions: read, told apart by what they ask for, each with the canonical labels of its category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Read:
    """A pair, and what was made of it."""

    pair: Pair
    kind: Kind
    answer: Answer
    category: str
    task: str


@dataclass(frozen=True, slots=True)
class _Category:
    """What all questions of a category share: see `PalmLeafQuestion`."""

    known: frozenset[str] = NO_LABELS
    vocabulary: tuple[str, ...] = ()
    several: bool = False


def read_questions(layout: Layout, folder: Path, split: str | None) -> Questions:
    """Read the questions of a split.

    The vocabulary of a category is made of the references of all splits that are there, since the records hold none.

    Raises
    ------
    DataError
        There are none.
    """
    pairs = read_pairs(layout, folder)
    wanted = {(pair.split, pair.id) for pair in pairs.of(split, folder)}
    read, skipped = _references(pairs.items, layout)
    categories = _categories(read)
    items = tuple(
        _question(each, categories[each.category], layout) for each in read if (each.pair.split, each.pair.id) in wanted
    )
    return Questions(items, (*pairs.skipped, *skipped), (*pairs.notes, *_notes(items)), layout.version)


def _references(pairs: Iterable[Pair], layout: Layout) -> tuple[list[_Read], list[Skipped]]:
    read: list[_Read] = []
    skipped: list[Skipped] = []
    for pair in pairs:
        category, task = (plain(text_of(layout.value(pair.record, name)) or "") for name in ("category", "task"))
        value = pair.answer[0] if isinstance(pair.answer, tuple) and len(pair.answer) == 1 else pair.answer
        kind = kind_of(task, category, value)
        answer = normalize_reference(value if kind != "labels" else pair.answer, kind)
        if answer.status == "answered":
            read.append(_Read(pair, kind, answer, category, task))
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


def _categories(read: Iterable[_Read]) -> dict[str, _Category]:
    spellings: dict[str, dict[str, Counter[str]]] = {}
    several: set[str] = set()
    for each in read:
        labels = spellings.setdefault(each.category, {})
        if each.kind != "labels":
            continue
        if len(each.answer.labels) > 1:
            several.add(each.category)
        for written in _written(each.pair.answer):
            labels.setdefault(canonical(written), Counter())[written] += 1
    return {
        name: _Category(
            frozenset(labels), tuple(sorted(map(_usual, labels.values()), key=str.casefold)), name in several
        )
        for name, labels in spellings.items()
    }


def _usual(forms: Counter[str]) -> str:
    """Return how a label is written most often."""
    return min(forms, key=lambda form: (-forms[form], form))


def _written(answer: str | tuple[str, ...]) -> list[str]:
    """Return a reference's labels as they are written; of several in one text only canonical forms are to be had."""
    if isinstance(answer, tuple):
        return [each for each in answer if canonical(each)] or ["none"]
    labels = split_labels(answer)
    return [answer] if len(labels) == 1 else labels


def _question(read: _Read, category: _Category, layout: Layout) -> PalmLeafQuestion:
    pair, labels = read.pair, read.kind == "labels"
    return PalmLeafQuestion(
        id=pair.id,
        image=pair.image,
        text=pair.question,
        golds=tuple(sorted(read.answer.labels)),
        groups={
            "collection": canonical(text_of(layout.value(pair.record, "collection")) or ""),
            "category": read.category,
            "task": read.task or {"count": "counting", "binary": "binary", "labels": ""}[read.kind],
            "cardinality": "multiple" if len(read.answer.labels) > 1 else "single",
        },
        split=pair.split,
        reference=pair.answer if isinstance(pair.answer, str) else list(pair.answer),
        image_name=pair.image_name,
        kind=read.kind,
        labels=read.answer.labels,
        known=category.known if labels else NO_LABELS,
        vocabulary=category.vocabulary if labels else (),
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
    flags = ["repeated-labels"] * (answer.repeated > 0)
    flags += ["outside-vocabulary"] * bool(question.known and answer.labels - question.known)
    status = "ok" if answer.status == "answered" else answer.status
    return Scored(values, "; ".join(sorted(answer.labels)), status, tuple(flags))


def count_error(labels: Iterable[str], question: PalmLeafQuestion) -> int | None:
    """Return a count's error, predicted less true; None where nothing was predicted."""
    predicted = next(iter(labels), "")
    return int(predicted) - int(next(iter(question.labels))) if predicted else None
