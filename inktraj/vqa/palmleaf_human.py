"""PalmLeaf-VQA's human baseline: a balanced subset, and the scores of single human responses on it.

Conventions (arXiv 2609.31651, sections 4.4 and D)
--------------------------------------------------
* The subset has four questions for each of eight collections and eight categories: 256. Three people answer each.
* Exact match and F1 are means over single responses (768); nobody votes. W1 is over the responses to counts (96 to 32).
* Agreement: the share of pairs of responses to a question that are the same set, after the normalisation that models'
  answers get; averaged over the questions of a category, then over categories. A response without an answer agrees with
  none.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from inktraj.errors import DataError
from inktraj.metrics.statistics import mean
from inktraj.vqa.benchmark import Scored, Skipped
from inktraj.vqa.manifest import Layout
from inktraj.vqa.palmleaf_answers import NO_LABELS, normalize_answer
from inktraj.vqa.palmleaf_questions import PalmLeafQuestion, score_answer
from inktraj.vqa.records import read_records, text_of

PER_CELL = 4
"""Questions of one collection and category in the subset."""

RESPONSES = 3
"""Responses to each question."""


@dataclass(frozen=True, slots=True)
class HumanBaseline:
    """Scores of human responses, in 0–1; None where there is nothing to average.

    Parameters
    ----------
    questions, responses, count_responses
        How many were answered; how many responses; how many of these to counts.
    exact, f1
        Means over responses.
    within_one
        Mean over responses to counts.
    agreement
        Mean of `agreement_by_category`.
    agreement_by_category
        Mean pairwise exact agreement.
    ids
        The questions, in the order of the data.
    skipped
        Responses that could not be used.
    notes
        How the responses differ from the paper's design.
    """

    questions: int
    responses: int
    count_responses: int
    exact: float | None
    f1: float | None
    within_one: float | None
    agreement: float | None
    agreement_by_category: Mapping[str, float]
    ids: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()


def balanced_subset(
    questions: Iterable[PalmLeafQuestion], per_cell: int = PER_CELL, seed: int = 0
) -> list[PalmLeafQuestion]:
    """Draw as many questions of each collection and category, in the order of the data.

    Raises
    ------
    DataError
        A collection has fewer questions of a category.
    """
    known = list(questions)
    cells: dict[tuple[str, str], list[int]] = {
        (collection, category): []
        for collection in sorted({q.groups["collection"] for q in known})
        for category in sorted({q.groups["category"] for q in known})
    }
    for place, question in enumerate(known):
        cells[question.groups["collection"], question.groups["category"]].append(place)
    rng = random.Random(seed)
    drawn: list[int] = []
    for (collection, category), places in cells.items():
        if len(places) < per_cell:
            raise DataError(f"{collection} has {len(places)} questions of {category}, {per_cell} are to be drawn")
        drawn += rng.sample(places, per_cell)
    return [known[place] for place in sorted(drawn)]


def read_responses(path: Path, layout: Layout) -> tuple[dict[str, dict[str, str]], list[Skipped]]:
    """Read human responses, one a record → by question and participant; and what could not be read.

    Raises
    ------
    DataError
        The file cannot be read or has no column for the question or the response.
    """
    out: dict[str, dict[str, str]] = {}
    skipped: list[Skipped] = []
    for number, (where, record) in enumerate(read_records(path, damaged=lambda *a: skipped.append(Skipped(*a)))):
        if not number:
            layout.require(record, ("response_question", "response_participant", "response"), str(path))
        id = text_of(layout.value(record, "response_question"))
        person = text_of(layout.value(record, "response_participant"))
        if not id or not person:
            skipped.append(Skipped(where, "it has no question's id" if not id else "it has no participant"))
            continue
        given = out.setdefault(id.strip(), {})
        if person in given:
            skipped.append(Skipped(where, f"{person} has answered {id} already"))
            continue
        given[person] = text_of(layout.value(record, "response")) or ""  # nothing given is an incorrect response
    return out, skipped


def human_baseline(
    responses: Mapping[str, Mapping[str, str]], questions: Sequence[PalmLeafQuestion], skipped: Iterable[Skipped] = ()
) -> HumanBaseline:
    """Score single responses and how far people agree.

    Parameters
    ----------
    responses
        Question's id → participant → response.
    questions
        Those that are scored; responses to others are passed over.
    skipped
        What was passed over before.

    Raises
    ------
    DataError
        No response is to a known question.
    """
    by_id = {question.id: question for question in questions}
    unknown = [Skipped(id, "no question of this id is scored here") for id in responses if id not in by_id]
    answered = [question for question in questions if responses.get(question.id)]
    if not answered:
        raise DataError(f"none of the {len(responses)} questions of the responses is in the data; do the ids differ?")
    scored: list[Scored] = []
    agreement: dict[str, list[float | None]] = {}
    for question in answered:
        given = list(responses[question.id].values())
        scored += [score_answer(text, question) for text in given]
        agreement.setdefault(question.groups["category"], []).append(_agreement(given, question))
    by_category = {name: value for name, values in sorted(agreement.items()) if (value := mean(values)) is not None}
    within = [s.values["within_one"] for s in scored if s.values.get("within_one") is not None]
    return HumanBaseline(
        questions=len(answered),
        responses=len(scored),
        count_responses=len(within),
        exact=mean([s.values["em"] for s in scored]),
        f1=mean([s.values["f1"] for s in scored]),
        within_one=mean(within),
        agreement=mean(list(by_category.values())),
        agreement_by_category=by_category,
        ids=tuple(question.id for question in answered),
        skipped=(*skipped, *unknown),
        notes=tuple(_differences(answered, responses)),
    )


def _agreement(given: Sequence[str], question: PalmLeafQuestion) -> float | None:
    sets = [normalize_answer(text, question.kind, question.known).labels for text in given]
    return mean([float(a == b != NO_LABELS) for a, b in combinations(sets, 2)])


def _differences(answered: Sequence[PalmLeafQuestion], responses: Mapping[str, Mapping[str, str]]) -> list[str]:
    out = []
    others = [q.id for q in answered if len(responses[q.id]) != RESPONSES]
    if others:
        out.append(f"{len(others)} questions, such as {others[0]}, have not {RESPONSES} responses")
    cells = Counter((q.groups["collection"], q.groups["category"]) for q in answered)
    sides = [len({cell[i] for cell in cells}) for i in (0, 1)]
    uneven = [cell for cell, count in cells.items() if count != PER_CELL]
    if sides != [8, 8] or len(cells) != 64 or uneven:
        out.append(
            f"not the balanced subset of 8 × 8 × {PER_CELL}: {sides[0]} collections, {sides[1]} categories, "
            f"{len(cells)} pairs of them, {len(uneven)} of these without {PER_CELL} questions"
        )
    return out
