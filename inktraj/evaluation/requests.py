"""What the runner needs of tasks and of what makes their requests, whatever is asked for: strokes, or answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from inktraj.evaluation.views import Place
from inktraj.vlm import VLM, Request


class Sampled(Protocol):
    """What a task asks for: a word of a page, a question to an image."""

    @property
    def id(self) -> str:
        """Unique among all samples."""


class Variant(Protocol):
    """One of the ways in which the same samples are asked for, such as a coordinate frame or a prompt."""

    @property
    def name(self) -> str:
        """As records call it."""


class AnyTask(Protocol):
    """One request to be made."""

    @property
    def samples(self) -> Sequence[Sampled]:
        """What it asks for; at least one."""

    @property
    def frame(self) -> Variant:
        """In which way."""

    @property
    def name(self) -> str:
        """Unique among the tasks of one variant."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that is ready to be sent.

    Parameters
    ----------
    request
        What is sent.
    key
        Of everything that decides the answer: model, prompt, images and settings.
    place
        Sizes of the image as sent and as it was, and where it lies on its page; zeros where there is no image.
    """

    request: Request
    key: str
    place: Place


TaskT = TypeVar("TaskT", bound=AnyTask)
_TaskIn = TypeVar("_TaskIn", bound=AnyTask, contravariant=True)


class Requests(Protocol[_TaskIn]):
    """Makes requests of tasks; thread-safe."""

    @property
    def model(self) -> VLM:
        """Who is asked."""

    def __call__(self, task: _TaskIn, /) -> Prepared:
        """Make a request; raises DataError where an image cannot be read."""
