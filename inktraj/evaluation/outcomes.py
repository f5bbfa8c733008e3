"""Replies → what became of each sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from inktraj.datasets import Sample
from inktraj.errors import DataError
from inktraj.evaluation.journal import Answer
from inktraj.evaluation.prompts import Prompt
from inktraj.evaluation.results import Kind, Outcome
from inktraj.parse import CoordinateFrame, Parsed, parse


def outcomes_of(
    answer: Answer, samples: Sequence[Sample], prompt: Prompt, frame: CoordinateFrame | str, echo: str
) -> Iterator[Outcome]:
    """Read one reply: an outcome for each sample that it was asked for.

    Parameters
    ----------
    answer
        The reply.
    samples
        Those that it was asked for, in the order in which they were listed.
    prompt
        How it was asked.
    frame
        In which coordinates are read: that which was asked for, or ``"auto"``.
    echo
        The example's points, which some models repeat before their answer.
    """
    parsed = parse(
        answer.reply.text,
        frame=frame,
        sent_size=answer.place.sent,
        original_size=answer.place.original,
        stop_reason=answer.reply.stop_reason,
        echo=echo,
        words=None if prompt.per == "word" else [sample.text for sample in samples],
    )
    if prompt.per == "word":
        yield _outcome(answer, samples[0], parsed)
        return
    for k, sample in enumerate(samples):
        if k in parsed.words:
            yield _outcome(answer, sample, parsed.words[k])
        elif parsed.words:
            # The cut, not the model's choice, is why the words at the end are not there.
            kind: Kind = "truncated" if parsed.status == "truncated" else "incomplete"
            yield _without(answer, sample, kind, f"the answer holds {len(parsed.words)} of {len(samples)} words")
        else:
            yield _outcome(answer, sample, parsed)


def _outcome(answer: Answer, sample: Sample, parsed: Parsed) -> Outcome:
    if parsed.status in ("invalid", "refused", "empty", "truncated"):
        return _without(answer, sample, cast(Kind, parsed.status), _reason(parsed))
    try:
        ink = answer.place.on_page(parsed.ink(*answer.place.sent), sample.ink.frame)
    except DataError as err:  # numbers so large that they are no longer finite on the page
        return _without(answer, sample, "invalid", str(err))
    return Outcome(
        sample.id,
        "ok",
        _reason(parsed) if parsed.dropped else "",
        ink,
        dialect=parsed.dialect,
        frame=parsed.frame,
        starts_known=parsed.starts_known,
        out_of_range=parsed.out_of_range,
        dropped=len(parsed.dropped),
        sent=answer.place.sent,
    )


def _without(answer: Answer, sample: Sample, kind: Kind, reason: str) -> Outcome:
    return Outcome(sample.id, kind, reason, sent=answer.place.sent)


def _reason(parsed: Parsed) -> str:
    """What was lost of an answer, or why nothing is left of it."""
    told = {
        "invalid": "no points could be read",
        "refused": "the model refused",
        "empty": "the answer is empty",
        "truncated": "the answer was cut",
    }.get(parsed.status, "")
    dropped = (
        f"{len(parsed.dropped)} pieces could not be used, the first: {parsed.dropped[0].text}" if parsed.dropped else ""
    )
    return "; ".join(filter(None, [told, dropped]))
