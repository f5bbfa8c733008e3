"""What a document-VQA benchmark is: questions, the words they are asked in, a scorer, and how figures are averaged.

A benchmark is one subclass of `Benchmark`, mostly one file, which has

* `load`: a local copy → `Questions`;
* `wording`: a question and a prompt's name → what the model reads beside the image;
* `score`: a prediction and a question → `Scored`: a value for each figure, and flags that are counted.

Everything else (asking, resuming, cost, tables, the report) is in `inktraj.vqa.run` and its siblings, for all alike.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

from inktraj.errors import DataError
from inktraj.metrics.signature import Signature
from inktraj.parse.refusals import is_refusal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Status = Literal["ok", "truncated", "empty", "refused", "unparsable", "missing", "error"]
"""What became of a question: an answer came; it was cut at the limit of tokens, and what came is scored; nothing came;
the model or a filter refused; the answer says nothing that the benchmark can read; a file of predictions has none; or
the model could not be asked. An *error* is in no figure; everything else is, and what has no answer is incorrect."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is opened when it is needed; for several questions it is one object, or objects that are equal.

    Parameters
    ----------
    name
        As errors and records call it; intervals take what is called alike for one image.
    source
        Its file, its bytes, or what returns these.
    """

    name: str
    source: Path | bytes | Callable[[], bytes] = field(repr=False)

    def read(self) -> bytes:
        """Return the file's bytes; raises DataError where they cannot be had."""
        try:
            if isinstance(self.source, Path):
                return self.source.read_bytes()
            return self.source if isinstance(self.source, bytes) else self.source()
        except OSError as err:
            raise DataError(f"the image {self.name} cannot be read: {err.strerror or err}") from err

    def pixels(self) -> NDArray[np.uint8]:
        """Return ``(h, w, 3)`` RGB, upright; raises DataError where it is no image."""
        from inktraj.io.images import read_image

        file = io.BytesIO(self.read())
        file.name = f"the image {self.name}"  # as errors call it
        return read_image(file).pixels


@dataclass(frozen=True, slots=True)
class Question:
    """One question to one image.

    Parameters
    ----------
    id
        Unique within the benchmark.
    image
        None where the data have none; a run then cannot ask it, a score needs no image.
    text
        The question as it is asked.
    golds
        Right answers as the data give them, any of which is right; or the labels of a set, all of which must be named,
        where the benchmark's scorer says so.
    language
        Of the question, "" where unknown.
    groups
        Breakdown → the group that the question is in, such as ``{"category": "line count"}``.
    split
        Part of the data set.
    reference
        The answer as the file holds it, for records.
    image_name
        The image as the data call it, also where it is not there; "" for `image`'s own.
    """

    id: str
    image: Image | None
    text: str
    golds: tuple[str, ...]
    language: str = ""
    groups: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    split: str = ""
    reference: Any = None
    image_name: str = ""

    @property
    def about(self) -> str:
        """What the questions to one image share: its name, else the question's own id."""
        return self.image_name or (self.image.name if self.image is not None else self.id)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that is no question, and why."""

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Questions:
    """What a local copy holds.

    Parameters
    ----------
    items
        In the files' order.
    skipped
        Records that cannot be used.
    notes
        What the reader must know, such as counts that are not the published ones.
    version
        Of the data, where it is known.
    """

    items: tuple[Question, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    version: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """What a model is sent: texts and images, in the order in which it reads them."""

    system: str
    parts: tuple[str | Image, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """What a prediction is worth.

    Parameters
    ----------
    values
        Figure → value; None (or left out) where the figure does not apply to the question.
    normalized
        What was compared, for records.
    status
        ``"empty"`` where nothing is left of the answer, ``"refused"`` where it is a refusal in words, ``"unparsable"``
        where it says nothing that can be read; its values are then those of a wrong one.
    flags
        What is to be counted, each a name such as ``"empty-gold"``.
    groups
        Groups that are only known from the answer, such as the size of its error.
    """

    values: Mapping[str, float | None]
    normalized: str = ""
    status: Literal["ok", "empty", "refused", "unparsable"] = "ok"
    flags: tuple[str, ...] = ()
    groups: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Result:
    """One prediction, scored. `reason` says why there is no answer, or what was wrong with it."""

    question: Question
    prediction: str | None
    status: Status
    scored: Scored
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a benchmark.

    Parameters
    ----------
    name
        Key in `Scored.values`: small letters, digits, hyphens and underscores.
    label
        In tables.
    about
        One sentence: what it is.
    average
        How the published figure is averaged: ``"micro"`` over questions, ``"macro"``: mean of the groups' means.
    over
        The groups of the macro average, a key of `Question.groups` or ``"language"``; "" where there is none.
    share
        From 0 to 1, and shown in percent.
    rules
        What decides its value, for the signature.
    """

    name: str
    label: str
    about: str
    average: Literal["micro", "macro"] = "micro"
    over: str = ""
    share: bool = True
    rules: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Quoted:
    """A table that others published, quoted as it stands there; nothing of it is measured here.

    `rows` are texts, the first of each the system's name; `head` names the columns.
    """

    title: str
    source: str
    note: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Extra:
    """A table of a benchmark's own; written as CSV too where `file` names one."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]
    file: str = ""


class Benchmark:
    """The base of all benchmarks: a subclass sets the attributes and writes `load`, `wording` and `score`.

    Attributes
    ----------
    name, title
        By which it is called; a line that says what it is.
    version
        Of wording and scorers: rises when they change, so that results are not mixed.
    system
        System prompt; "" for none.
    prompts
        Name → what is particular to it; the first is the default.
    figures
        In the order of tables; the first is the headline.
    breakdowns
        Keys of `Question.groups` (or of `Scored.groups`), or ``"language"``: a table for each.
    default_split
        Scored where none is named.
    shots_within
        Examples are of the train split and of the question's own group: a key of `Question.groups` or ``"language"``;
        "" for any.
    options
        Name → help: what `configured` takes.
    quoted
        Published tables.
    """

    name: str
    title: str
    version: str = "1"
    system: str = ""
    prompts: Mapping[str, str]
    figures: tuple[Figure, ...]
    breakdowns: tuple[str, ...] = ()
    default_split: str = "test"
    shots_within: str = "language"
    options: Mapping[str, str] = MappingProxyType({})
    quoted: tuple[Quoted, ...] = ()

    def load(self, folder: Path, split: str | None) -> Questions:
        """Read a local copy.

        Parameters
        ----------
        folder
            Where it is; never downloaded.
        split
            Part of it; None for all.

        Raises
        ------
        DataError
            There is nothing that can be used.
        """
        raise NotImplementedError

    def wording(self, question: Question, prompt: str) -> str:
        """Return the text that is sent with the image, by the prompt of this name."""
        raise NotImplementedError

    def score(self, prediction: str | None, question: Question) -> Scored:
        """Score a model's answer as it came; None (nothing came, refused) is an incorrect one."""
        raise NotImplementedError

    def ask(self, question: Question, prompt: str, shots: Sequence[Question] = ()) -> Message:
        """Return what a model is sent: examples with their answers, then image and wording."""
        parts: list[str | Image] = []
        for shot in shots:
            parts += [shot.image] if shot.image is not None else []
            parts.append(f"{self.wording(shot, prompt)}\nAnswer: {self.shown_answer(shot)}")
        parts += [question.image] if question.image is not None else []
        parts.append(self.wording(question, prompt))
        return Message(self.system, tuple(parts))

    def shown_answer(self, question: Question) -> str:
        """Return how an example's answer is written."""
        return question.golds[0] if question.golds else ""

    def score_all(self, pairs: Sequence[tuple[str | None, Question]]) -> Sequence[Scored]:
        """Score many predictions; to be overridden where they are computed together, as embeddings are."""
        return [self.score(prediction, question) for prediction, question in pairs]

    def extras(self, results: Sequence[Result]) -> Iterable[Extra]:
        """Return tables of the benchmark's own.

        No errors are among the results; a question with several answers is there several times.
        """
        return ()

    def configured(self, **options: str) -> Self:
        """Return the benchmark with some of its `options` set; raises DataError for one that it does not have."""
        if unknown := sorted(options.keys() - self.options.keys()):
            known = ", ".join(self.options) or "none"
            raise DataError(f"{self.name} has no option {unknown[0]!r}; its options: {known}")
        return self

    def signatures(self) -> list[Signature]:
        """Return one line for each figure that says how it is computed."""
        return [
            Signature.of(
                self.name, figure=f.name, **f.rules, average=f.average, over=f.over or None, rules=self.version
            )
            for f in self.figures
        ]


def status_of(prediction: str, normalized: str, *, right: bool) -> Literal["ok", "empty", "refused"]:
    """Say what became of an answer that may be anything: what some scorer calls right is ok whatever else it says."""
    if right:
        return "ok"
    if not normalized:
        return "empty"
    return "refused" if is_refusal(prediction) else "ok"


def group_of(result: Result, breakdown: str) -> str:
    """Return the group that a result is in; "" where it is in none."""
    if breakdown in result.scored.groups:
        return result.scored.groups[breakdown]
    return question_group(result.question, breakdown)


def question_group(question: Question, breakdown: str) -> str:
    """Return the group that a question is in; "" where it is in none."""
    if breakdown == "language":
        return question.language
    return question.groups.get(breakdown, "")
