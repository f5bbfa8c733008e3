"""Predictions × references → scores."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inktraj.errors import DataError
from inktraj.metrics import Evaluation, TrajectoryScores
from inktraj.metrics.readability import (
    Readability,
    TextRules,
    independence_warning,
    readability_signature,
    score_text,
)
from inktraj.metrics.signature import Signature
from inktraj.metrics.trajectory import for_each
from inktraj.scoring.figures import FloatArray
from inktraj.scoring.matching import Pair, match
from inktraj.scoring.scores import Drawing, Grouping, ScoredWord, Scores, labels
from inktraj.scoring.sources import Place, Word, read_words

if TYPE_CHECKING:
    from inktraj.ocr import Recognizer
    from inktraj.style import StyleModel

Progress = Callable[[str, int, int], None]

_EVALUATION = Evaluation()
_RULES = TextRules()
_DRAWING = Drawing()
_PART = 64  # pairs that a thread takes at once

_TRAJECTORY = [f.name for f in fields(TrajectoryScores) if f.name not in ("status", "reason")] + ["penup_error_size"]
"""Figures of a pair that become columns."""


def score(
    pred: Place,
    ref: Place,
    *,
    evaluation: Evaluation = _EVALUATION,
    recognizer: Recognizer | str | None = None,
    rules: TextRules = _RULES,
    references_filtered_by: str | None = None,
    style: StyleModel | str | Path | None = None,
    drawing: Drawing = _DRAWING,
    by: Sequence[Grouping] = (),
    threads: int = 1,
    pred_form: str | None = None,
    ref_form: str | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Score predictions against references, matched by page and word id.

    Parameters
    ----------
    pred, ref
        A file or a folder of ink in any form that `inktraj.io` reads, the folder of a pseudo-label data set, a file
        object, or records (`inktraj.io.InkRecord`). `inktraj.scoring.sources` says how words are named.
    evaluation
        Normalisation, tolerances, and what an invalid prediction scores.
    recognizer
        Reads the drawn predictions, whose text is compared with the references'; ``"ppocr"`` for the embedded one, None
        for no readability.
    rules
        How texts are brought to one form.
    references_filtered_by
        Name and version of the recogniser that chose the references, for a warning where it is the same; None to take
        it from a pseudo-label folder's settings.
    style
        A writer-ID classifier that knows the references' writers, or its file; None for no style.
    drawing
        How intervals are made.
    by
        By what the figures are also told: ``"writer"``, ``"page"``, ``"length"`` (of the text) and ``"dataset"``.
    threads
        Over pairs; 0 for one a core.
    pred_form, ref_form
        Form of a file whose name does not tell it.
    progress
        Is told what is done (``"trajectories"``, ``"readability"``, ``"style"``), of how many words, and of how many in
        all; from any thread.

    Raises
    ------
    DataError
        A side cannot be read, words have one name, nothing matches, nothing could be scored, or style is asked for and
        a writer is not known.
    """
    references = read_words(ref, ref_form, reference=True)
    predictions = read_words(pred, pred_form)
    matched = match(predictions, references)
    scores = score_pairs(
        matched.pairs,
        evaluation=evaluation,
        recognizer=recognizer,
        rules=rules,
        references_filtered_by=references_filtered_by or references.filtered_by,
        style=style,
        drawing=drawing,
        by=by,
        threads=threads,
        progress=progress,
    )
    warnings = scores.warnings
    if references.not_kept:
        left_out = f"{references.not_kept} words of the references are of pages that were not kept, and left out"
        warnings = (*warnings, left_out)
    return replace(
        scores,
        references=references_digest(references.words.values(), evaluation),
        unknown=matched.unknown,
        empty=matched.empty,
        unread=predictions.unread,
        warnings=warnings,
    )


def score_pairs(
    pairs: Sequence[Pair],
    *,
    evaluation: Evaluation = _EVALUATION,
    recognizer: Recognizer | str | None = None,
    rules: TextRules = _RULES,
    references_filtered_by: str | None = None,
    style: StyleModel | str | Path | None = None,
    drawing: Drawing = _DRAWING,
    by: Sequence[Grouping] = (),
    threads: int = 1,
    progress: Progress | None = None,
) -> Scores:
    """Score predictions that are matched already; parameters are those of `score`.

    Raises
    ------
    DataError
        Nothing could be scored, or style is asked for and a writer is not known.
    """
    tell = progress or _silent
    reader = _reader(recognizer)
    model = _model(style)
    digest = references_digest([pair.ref for pair in pairs], evaluation)
    table = _Table.empty(pairs)
    # What would end in an error is told before the work is done.
    for grouping in by:
        labels([_scored(table, k, rules) for k in range(len(table.pairs))], grouping)
    if reader is not None and not any(pair.ref.text for pair in table.pairs):
        raise DataError("readability needs the references' texts, and none has one; leave the recogniser out")
    if model is not None:
        _check_writers(table, model)
    _score_trajectories(table, evaluation, threads, tell)
    signatures = [evaluation.signature]
    warnings = []
    if reader is not None:
        label = f"{reader.name} {reader.version}"
        signatures.append(_score_readability(table, reader, label, rules, tell))
        warnings.append(independence_warning(label, references_filtered_by))
    if model is not None:
        signatures.append(_score_style(table, model, tell))
    return Scores(
        tuple(_scored(table, k, rules) for k in range(len(table.pairs))),
        table.columns,
        tuple(signatures),
        digest,
        drawing,
        warnings=tuple(filter(None, warnings)),
        groupings=tuple(by),
    )


@dataclass(slots=True, eq=False)
class _Table:
    """Pairs and what is found of each."""

    pairs: list[Pair]
    columns: dict[str, FloatArray]
    readings: list[str | None]

    @classmethod
    def empty(cls, pairs: Sequence[Pair]) -> _Table:
        return cls(list(pairs), {}, [None] * len(pairs))

    def column(self, name: str) -> FloatArray:
        """Return a column, made of NaN at first."""
        return self.columns.setdefault(name, np.full(len(self.pairs), math.nan))


def _score_trajectories(table: _Table, evaluation: Evaluation, threads: int, tell: Progress) -> None:
    columns = [table.column(name) for name in _TRAJECTORY if evaluation.pen_net or name not in ("aiou", "ldtw")]
    names = [name for name in _TRAJECTORY if name in table.columns]

    def part(numbers: Sequence[int]) -> None:
        for k in numbers:
            pair = table.pairs[k]
            if pair.status == "error":
                continue
            assert pair.ref.ink is not None
            try:
                found = evaluation.score(pair.pred, pair.ref.ink, pair.status)
            except DataError as err:
                table.pairs[k] = Pair(pair.ref, None, "error", str(err))
                continue
            if found.status != pair.status:
                table.pairs[k] = Pair(pair.ref, None, found.status, found.reason)
            for name, column in zip(names, columns, strict=True):
                value = getattr(found, name)
                column[k] = math.nan if value is None else value
        done.append(len(numbers))
        tell("trajectories", sum(done), count)

    count = len(table.pairs)
    done: list[int] = []
    tell("trajectories", 0, count)
    for_each(part, [range(k, min(k + _PART, count)) for k in range(0, count, _PART)], threads)
    if all(pair.status == "error" for pair in table.pairs):
        raise DataError(f"no word could be scored; of the first, {table.pairs[0].ref.name!r}: {table.pairs[0].reason}")


def _score_readability(table: _Table, reader: Recognizer, label: str, rules: TextRules, tell: Progress) -> Signature:
    """Read the predictions, where the reference's text is known, and count what is wrong."""
    from inktraj.scoring.reading import DRAWING, read_inks

    wanted = [k for k, pair in enumerate(table.pairs) if pair.ref.text and pair.status != "error"]
    drawn = [(k, pred) for k in wanted if (pred := table.pairs[k].pred) is not None]
    for start in range(0, len(drawn), _PART):
        part = drawn[start : start + _PART]
        for (k, _), text in zip(part, read_inks([pred for _, pred in part], reader), strict=True):
            table.readings[k] = text
        tell("readability", start + len(part), len(drawn))
    for k in wanted:
        found = score_text(table.readings[k], table.pairs[k].ref.text, rules)
        for name, value in _counted(found).items():
            table.column(name)[k] = math.nan if value is None else value
    signature = readability_signature(label, rules)
    return Signature(signature.metric, (*signature.fields[:-1], ("drawn", DRAWING), signature.fields[-1]))


def _counted(found: Readability) -> dict[str, float | None]:
    characters, words = found.characters, found.words
    return {
        "ar": found.ar,
        "cr": found.cr,
        "cer": found.cer,
        "wer": found.wer,
        "characters": characters.n,
        "accurate_characters": characters.hits - characters.insertions,
        "correct_characters": characters.hits,
        "wrong_characters": characters.distance,
        "words": words.n,
        "wrong_words": words.distance,
    }


def _check_writers(table: _Table, model: StyleModel) -> None:
    nameless = [pair.ref.name for pair in table.pairs if not pair.ref.writer]
    if nameless:
        raise DataError(
            f"style needs the writer of every reference, and {len(nameless)} have none, such as {nameless[0]!r}; it "
            "stands in a record's extra, as 'writer'"
        )
    model.check_known([pair.ref.writer for pair in table.pairs])


def _score_style(table: _Table, model: StyleModel, tell: Progress) -> Signature:
    names = {"style": "probability", "style_top1": "top1", "style_cosine": "cosine"}
    names |= {"style_ceiling": "ceiling", "style_floor": "floor"}
    for k, pair in enumerate(table.pairs):
        tell("style", k, len(table.pairs))
        if pair.status == "error":
            continue
        if pair.pred is None:
            table.column("style")[k] = table.column("style_top1")[k] = 0.0
            continue
        (found,) = model.score([pair.pred], [pair.ref.writer])
        for name, attribute in names.items():
            value = getattr(found, attribute)
            table.column(name)[k] = math.nan if value is None else float(value)
    return Signature.of("style", score="probability", model=model.hash[:12])


def _silent(stage: str, done: int, total: int) -> None:
    """Tell nobody."""


def _scored(table: _Table, k: int, rules: TextRules) -> ScoredWord:
    pair, ref = table.pairs[k], table.pairs[k].ref
    length = len(rules.characters(rules.apply(ref.text))) if ref.text else None
    return ScoredWord(
        ref.name, ref.page, ref.writer, ref.dataset, ref.text, length, pair.status, pair.reason, table.readings[k]
    )


def _reader(recognizer: Recognizer | str | None) -> Recognizer | None:
    if not isinstance(recognizer, str):
        return recognizer
    if recognizer != "ppocr":
        raise DataError(f"there is no recogniser {recognizer!r}; give 'ppocr', or one that follows its protocol")
    from inktraj.ocr.ppocr import PPOCR

    return PPOCR()


def _model(style: Any) -> StyleModel | None:
    if not isinstance(style, str | os.PathLike):
        return cast("StyleModel | None", style)
    from inktraj.style import StyleModel

    return StyleModel.load(style)


def references_digest(references: Iterable[Word], evaluation: Evaluation) -> str:
    """Return the SHA-256 of the references, whatever their order and form; with their frames where these are units."""
    content = hashlib.sha256()
    framed = evaluation.normalization.space == "page"
    for word in sorted(references, key=lambda word: word.name):
        content.update(f"{word.name}\0".encode("utf-8", "surrogatepass"))
        if framed and word.frame_known and word.ink is not None:
            content.update(f"{float(word.ink.frame.width)} {float(word.ink.frame.height)}\0".encode())
        for stroke in word.ink.strokes if word.ink is not None else ():
            content.update(len(stroke).to_bytes(8, "little") + stroke.astype("<f8").tobytes())
    return content.hexdigest()
