"""Samples × prompt × coordinate frame → requests, made when they are needed."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from inktraj.datasets import Sample
from inktraj.evaluation.examples import Examples, thinned
from inktraj.evaluation.prompts import (
    SYSTEM,
    Prompt,
    describe,
    form_text,
    frame_text,
    points_text,
    task_text,
)
from inktraj.evaluation.requests import Prepared
from inktraj.evaluation.views import View, view_page, view_word
from inktraj.parse import CoordinateFrame
from inktraj.vlm import VLM, Part, Picture, Request, Text

VIEWS_KEPT = 6
"""Pages and examples whose pictures are kept, so that the words of a page do not each encode it anew."""


@dataclass(frozen=True, slots=True)
class Task:
    """One question: which samples it asks for, in which frame.

    Parameters
    ----------
    samples
        One; or all of a page, in reading order.
    frame
        In which the answer is to be written.
    """

    samples: tuple[Sample, ...]
    frame: CoordinateFrame

    @property
    def name(self) -> str:
        """The sample's id, or the page's where all its words are asked for."""
        return self.samples[0].id if len(self.samples) == 1 else self.samples[0].page_id


@dataclass
class Asking:
    """Makes requests of tasks; thread-safe.

    Parameters
    ----------
    model, prompt
        Who is asked, and how.
    examples
        What is shown; None for none.
    max_tokens
        Most tokens of an answer; for all words of a page, of each word.
    temperature, seed
        Sent where given.
    """

    model: VLM
    prompt: Prompt
    examples: Examples | None
    max_tokens: int
    temperature: float | None = None
    seed: int | None = None
    _views: OrderedDict[Any, View] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _shown: dict[tuple[str, str], tuple[tuple[Part, ...], str]] = field(default_factory=dict)

    def __call__(self, task: Task) -> Prepared:
        """Make the request; raises DataError where the page cannot be read."""
        sample = task.samples[0]
        view = self._view(sample)
        shown = self.examples.for_sample(sample) if self.examples is not None else None
        parts: tuple[Part, ...] = () if shown is None else self._example(shown, task.frame)[0]
        words = [(s.text, s.occurrence, s.occurrences) for s in task.samples]
        parts += (
            view.picture,
            Text(
                f"{task_text(self.prompt, words)} {form_text(self.prompt, task.frame)}\n"
                f"{frame_text(task.frame, view.sent, view.original)}"
            ),
        )
        settings = self.max_tokens * len(task.samples), self.temperature, self.seed
        told = [part.text if isinstance(part, Text) else _digest(part) for part in parts]
        decides = json.dumps([self.model.describe(), SYSTEM, told, settings], sort_keys=True, ensure_ascii=False)
        # Recorded replies are found by their sample, so two samples of one text on one page are not to be one.
        decides += "" if view.picture.data else task.name
        key = hashlib.sha256(decides.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return Prepared(Request(SYSTEM, parts, *settings, key, task.name), key, view.place)

    def echo(self, task: Task) -> str:
        """Return the example's points as the task's request shows them; "" where it shows none."""
        shown = self.examples.for_sample(task.samples[0]) if self.examples is not None else None
        return "" if shown is None else self._example(shown, task.frame)[1]

    def _example(self, shown: Sample, frame: CoordinateFrame) -> tuple[tuple[Part, ...], str]:
        """Return the parts that show the example, and its points as they are written there."""
        known = self._shown.get((shown.id, frame.name))
        if known is not None:
            return known
        view = self._view(shown)
        ink = thinned(view.place.as_sent(shown.ink))
        echo = points_text(ink, self.prompt, frame, view.sent, view.original, shown.text)
        what = "the handwritten word" if self.prompt.input == "crop" else "a page; on it stands the word"
        parts: tuple[Part, ...] = (
            Text(f"First an example. The image shows {what} “{shown.text}”."),
            view.picture,
            Text(
                f"{frame_text(frame, view.sent, view.original)}\nHow the word is written: {describe(ink)}\n"
                f"The answer:\n{echo}\n\nNow the task."
            ),
        )
        return self._shown.setdefault((shown.id, frame.name), (parts, echo))

    def _view(self, sample: Sample) -> View:
        blind = not getattr(self.model, "needs_pictures", True)
        crop = self.prompt.input == "crop"
        name = ("word", sample.id) if crop else ("page", sample.page_id)
        with self._lock:
            if name in self._views:
                self._views.move_to_end(name)
                return self._views[name]
            view = (view_word if crop else view_page)(sample, self.model.limits, blind=blind)
            self._views[name] = view
            while len(self._views) > VIEWS_KEPT:
                self._views.popitem(last=False)
            return view


def _digest(picture: Picture) -> str:
    """SHA-256 of a picture; that of each is computed once, while it is among the kept ones."""
    known = _DIGESTS.get(id(picture))
    if known is None or known[0] is not picture:
        while len(_DIGESTS) > 4 * VIEWS_KEPT:
            _DIGESTS.pop(next(iter(_DIGESTS)), None)
        known = _DIGESTS[id(picture)] = picture, hashlib.sha256(picture.data).hexdigest()
    return f"{known[1]} {picture.width}x{picture.height}"


_DIGESTS: dict[int, tuple[Picture, str]] = {}


def tasks_of(samples: Sequence[Sample], prompt: Prompt, frames: Sequence[CoordinateFrame]) -> Iterator[Task]:
    """Make the tasks for some samples, which are in the data set's order: frame by frame, page by page.

    With all words of a page in one request, only these samples are asked for.
    """
    for frame in frames:
        if prompt.per == "word":
            for sample in samples:
                yield Task((sample,), frame)
        else:
            for _, page in groupby(samples, key=lambda sample: sample.page_id):
                yield Task(tuple(page), frame)
