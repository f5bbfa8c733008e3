"""What the style score of inks is, and what may be compared with what.

A score says how probable the true writer is to one classifier; another classifier would say another number. So every
result carries its classifier's hash, and results of different classifiers are not put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inktraj.errors import DataError


@dataclass(frozen=True, slots=True)
class StyleScore:
    """The style of one ink.

    Parameters
    ----------
    writer
        Whose hand it should be.
    probability
        Calibrated probability of that writer, 0–1: the score.
    top1
        Whether that writer is the most probable one.
    cosine
        Cosine between the ink's embedding and that writer's mean one, −1 … 1; None for an empty ink.
    likeliest
        The most probable writer; None for an empty ink.
    ceiling, floor
        Mean score of that writer's own held-out words, and of other writers' held-out words when they claim to be his;
        None where none of his words was held out.
    model
        SHA-256 of the classifier's file.
    """

    writer: str
    probability: float
    top1: bool
    cosine: float | None
    likeliest: str | None
    ceiling: float | None
    floor: float | None
    model: str


@dataclass(frozen=True, slots=True)
class StyleSummary:
    """The style of many inks.

    Parameters
    ----------
    score
        Mean probability of the true writer.
    top1
        Share of inks whose true writer is the most probable one.
    cosine
        Mean cosine over inks that are not empty; None where all are.
    ceiling, floor
        The means of the inks' own; None where no ink has one.
    relative
        Where `score` lies between floor (0) and ceiling (1), over the inks that have both; None where there are none or
        the two are the same. Below 0 and above 1 are possible.
    n, n_empty
        Inks, and how many of them are empty, with the score 0.
    model
        SHA-256 of the classifier's file.
    """

    score: float
    top1: float
    cosine: float | None
    ceiling: float | None
    floor: float | None
    relative: float | None
    n: int
    n_empty: int
    model: str


@dataclass(frozen=True, slots=True)
class Identification:
    """Whose hand several inks of one writer are.

    Parameters
    ----------
    writer
        The most probable writer.
    log_probabilities
        Mean log-probability over the inks of each writer, likeliest first.
    n
        Inks.
    model
        SHA-256 of the classifier's file.
    """

    writer: str
    log_probabilities: dict[str, float]
    n: int
    model: str


def summarize(scores: Sequence[StyleScore]) -> StyleSummary:
    """Sum up scores of one classifier.

    Raises
    ------
    DataError
        There are none, or they are of several classifiers.
    """
    model = same_model(scores)
    cosines = [s.cosine for s in scores if s.cosine is not None]
    bounded = [(s.probability, s.ceiling, s.floor) for s in scores if s.ceiling is not None and s.floor is not None]
    ceiling = floor = relative = None
    if bounded:
        score, ceiling, floor = (sum(values) / len(bounded) for values in zip(*bounded, strict=True))
        relative = (score - floor) / (ceiling - floor) if ceiling != floor else None
    return StyleSummary(
        score=sum(s.probability for s in scores) / len(scores),
        top1=sum(s.top1 for s in scores) / len(scores),
        cosine=sum(cosines) / len(cosines) if cosines else None,
        ceiling=ceiling,
        floor=floor,
        relative=relative,
        n=len(scores),
        n_empty=sum(s.likeliest is None for s in scores),
        model=model,
    )


def compare(a: StyleSummary, b: StyleSummary) -> float:
    """How much better the style of `a` is than that of `b`: the difference of their scores.

    Raises
    ------
    DataError
        They are of different classifiers.
    """
    same_model((a, b))
    return a.score - b.score


def same_model(results: Iterable[StyleScore | StyleSummary | Identification]) -> str:
    """Return the hash of the classifier that all results are of.

    Raises
    ------
    DataError
        There are no results, or they are of several classifiers.
    """
    models = sorted({result.model for result in results})
    if not models:
        raise DataError("there are no style scores to put together")
    if len(models) > 1:
        shown = ", ".join(model[:12] for model in models)
        raise DataError(
            f"style scores of different classifiers ({shown}) cannot be compared or put together: each has its own "
            "writers and its own scale; score both with the same model file"
        )
    return models[0]
