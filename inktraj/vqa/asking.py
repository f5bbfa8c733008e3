"""Questions → requests, made when they are needed; examples are chosen from the train split."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from inktraj.errors import DataError
from inktraj.evaluation.requests import Prepared
from inktraj.evaluation.views import Place
from inktraj.vlm import VLM, Part, Picture, Request, Text, make_picture
from inktraj.vqa.benchmark import Benchmark, Image, Question, question_group

PICTURES_KEPT = 6
"""Images that are kept as they are sent, so that the questions to one do not each read it anew."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A benchmark's prompt, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Task:
    """One question, asked by one prompt; see `inktraj.evaluation.requests.AnyTask`."""

    samples: tuple[Question]
    frame: Prompt

    @property
    def name(self) -> str:
        """The question's id."""
        return self.samples[0].id


@dataclass(frozen=True, slots=True)
class Shots:
    """Examples: for each group the same ones, so that a provider's cache serves all its questions."""

    by_group: Mapping[str, tuple[Question, ...]]
    within: str
    count: int
    _seen: dict[Image, Hashable] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def choose(
        cls, benchmark: Benchmark, train: Sequence[Question], wanted: Sequence[Question], count: int, seed: int
    ) -> Shots:
        """Draw examples for the groups of the wanted questions.

        Each is of another image, and up to two more than `count` are drawn: an example may be of a question's image,
        and another may be the question itself.

        Raises
        ------
        DataError
            A group has too few images with an answered question in the train split.
        """
        within = benchmark.shots_within
        groups: dict[str, list[Question]] = {}
        for question in train:
            if question.image is not None and any(gold.strip() for gold in question.golds):
                groups.setdefault(_group(question, within), []).append(question)
        chosen: dict[str, tuple[Question, ...]] = {}
        shots = cls(chosen, within, count)
        for group in sorted({_group(question, within) for question in wanted}):
            there = groups.get(group, [])
            images: dict[Hashable, Question] = {}
            for place in random.Random(f"{seed} {group}").sample(range(len(there)), len(there)):
                question = there[place]
                if question.image is not None:
                    images.setdefault(shots._content(question.image), question)
                if len(images) == count + 2:
                    break
            if len(images) < count + 1:
                raise DataError(f"{shots._named(group)} need {count + 1} images in the train split, not {len(images)}")
            chosen[group] = tuple(images.values())
        return shots

    def of(self, question: Question) -> tuple[Question, ...]:
        """Return a question's examples: none is of its own image, by whatever name, and none is the question itself.

        Raises
        ------
        DataError
            Too few are left.
        """
        group = _group(question, self.within)
        others = [shot for shot in self.by_group[group] if not self._tells_of(shot, question)]
        if len(others) < self.count:
            raise DataError(
                f"{self._named(group)} cannot be had for the question {question.id}: the train split has too few that "
                "are neither of its image nor the question itself"
            )
        return tuple(others[: self.count])

    def _named(self, group: str) -> str:
        return f"{self.count} examples" + (f" of the {self.within} {group!r}" if self.within else "")

    def _tells_of(self, shot: Question, question: Question) -> bool:
        if (shot.id, shot.text) == (question.id, question.text):
            return True
        if shot.image is None or question.image is None:
            return shot.about == question.about
        return self._content(shot.image) == self._content(question.image)

    def _content(self, image: Image) -> Hashable:
        """Return what tells images apart: their files' bytes, since one image may have several names or be read twice.

        An image that cannot be read is told apart by itself; a question to it is not asked.
        """
        if image not in self._seen:
            try:
                self._seen[image] = hashlib.sha256(image.read()).digest()
            except DataError:
                self._seen[image] = image
        return self._seen[image]


def _group(question: Question, within: str) -> str:
    return question_group(question, within) if within else ""


@dataclass
class Asking:
    """Makes requests of tasks; thread-safe.

    Parameters
    ----------
    model, benchmark
        Who is asked what.
    shots
        None for none.
    max_tokens, temperature, seed
        Of a request.
    """

    model: VLM
    benchmark: Benchmark
    shots: Shots | None
    max_tokens: int
    temperature: float | None = None
    seed: int | None = None
    _pictures: OrderedDict[Image, tuple[Picture, str, Place]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, task: Task) -> Prepared:
        """Make the request; raises DataError where an image is missing or cannot be read."""
        question = task.samples[0]
        shots = self.shots.of(question) if self.shots is not None else ()
        message = self.benchmark.ask(question, task.frame.name, shots)
        if question.image is None and not self._asks_without(question, task.frame.name):
            raise DataError(f"the question {question.id} has no image")
        parts: list[Part] = []
        told: list[str] = []
        place = Place((0, 0), (0, 0), (0, 0))
        for part in message.parts:
            if isinstance(part, str):
                parts.append(Text(part))
                told.append(part)
            else:
                picture, digest, place = self._picture(part)
                parts.append(picture)
                told.append(digest)
        settings = self.max_tokens, self.temperature, self.seed
        # Its id as well: without images many questions are one text, and each is to have an answer of its own.
        decides = json.dumps(
            [self.model.describe(), question.id, message.system, told, settings], sort_keys=True, ensure_ascii=False
        )
        key = hashlib.sha256(decides.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return Prepared(Request(message.system, tuple(parts), *settings, key, question.id), key, place)

    @property
    def _blind(self) -> bool:
        return not getattr(self.model, "needs_pictures", True)

    def _asks_without(self, question: Question, prompt: str) -> bool:
        """Say whether this prompt shows no image even where there is one, as a control without images does."""
        probe = Image("", b"")
        return self._blind or probe not in self.benchmark.ask(replace(question, image=probe), prompt).parts

    def _picture(self, image: Image) -> tuple[Picture, str, Place]:
        if self._blind:
            return Picture(b"", 1, 1), image.name, Place((1, 1), (1, 1), (0, 0))
        with self._lock:
            if image in self._pictures:
                self._pictures.move_to_end(image)
                return self._pictures[image]
        pixels = image.pixels()
        picture = make_picture(pixels, self.model.limits)
        height, width = pixels.shape[:2]
        digest = f"{hashlib.sha256(picture.data).hexdigest()} {picture.width}x{picture.height}"
        made = picture, digest, Place((picture.width, picture.height), (width, height), (0, 0))
        kept = PICTURES_KEPT + (sum(map(len, self.shots.by_group.values())) if self.shots is not None else 0)
        with self._lock:
            self._pictures[image] = made
            while len(self._pictures) > kept:
                self._pictures.popitem(last=False)
        return made
