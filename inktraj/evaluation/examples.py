"""The in-context example: a word of another hand where there is one, with its points."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from inktraj.arclength import resample
from inktraj.datasets import Dataset, Sample
from inktraj.datasets.sample import PagePicture
from inktraj.errors import DataError
from inktraj.ink import FloatArray, Ink

POINTS = 80
"""Points of an example at most: enough for its curves, and no more tokens than needed."""

LETTERS = range(3, 9)
"""Letters that an example's word has, if there is such a word."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Words to show, in the order in which they are preferred; `for_sample` says which one a sample gets.

    All samples share the first one, but those of its own writer, for whom it would be a look at the answer.
    """

    samples: tuple[Sample, ...]

    @classmethod
    def choose(cls, dataset: Dataset, seed: int, *, kept: object = None) -> Examples:
        """Choose words of different writers, or pages where writers are not known, by a seed.

        Pages whose image cannot be opened are passed over, so that one of them does not keep all samples from being
        asked; where none can be, as with recorded replies, all are taken. `kept` are the ids of an earlier choice,
        which stands as long as the data set has them: else the replies that it got would be to other questions.

        Raises
        ------
        DataError
            No word is fit to be shown.
        """
        if isinstance(kept, list) and kept and set(dataset.ids).issuperset(map(str, kept)):
            return cls(tuple(dataset.by_id(str(id)) for id in kept))
        draws = random.Random(seed)
        pages = list(range(len(dataset.pages)))
        draws.shuffle(pages)
        opened = _Opened()
        for openable, fit in ((True, _good), (True, _usable), (False, _good), (False, _usable)):
            chosen: list[Sample] = []
            for number in pages:
                there = [s for s in dataset.pages[number].samples if fit(s)]
                others = [s for s in there if all(_hand(s) != _hand(other) for other in chosen)]
                if others and (not openable or opened[others[0].page]):
                    chosen.append(draws.choice(others))
                if len(chosen) == _ENOUGH:
                    break
            if chosen:
                return cls(tuple(chosen))
        raise DataError(f"the data set {dataset.name} has no word with strokes to show as the example; ask without one")

    def for_sample(self, sample: Sample) -> Sample | None:
        """The first example that is of another hand; None where all are of the same."""
        return next((example for example in self.samples if _hand(example) != _hand(sample)), None)


_ENOUGH = 3


class _Opened(dict[PagePicture, bool]):
    """Whether pages can be opened; each is tried once."""

    def __missing__(self, picture: PagePicture) -> bool:
        try:
            picture.open()
        except DataError:
            self[picture] = False
        else:
            self[picture] = True
        return self[picture]


def _hand(sample: Sample) -> tuple[str, str]:
    return ("writer", sample.writer) if sample.writer else ("page", sample.page_id)


def _good(sample: Sample) -> bool:
    return len(sample.text) in LETTERS and sample.text.isalpha() and _usable(sample)


def _usable(sample: Sample) -> bool:
    return bool(sample.text.strip()) and sample.ink.length > 0


def thinned(ink: Ink, points: int = POINTS) -> Ink:
    """The ink with about so many points, evenly spaced along its strokes, each stroke's ends kept."""
    step = ink.length / max(points - len(ink.strokes), 1)
    return Ink(tuple(_spaced(stroke, step) for stroke in ink.strokes), ink.frame)


def _spaced(stroke: FloatArray, step: float) -> FloatArray:
    length = float(np.hypot(*np.diff(stroke, axis=0).T).sum())
    out = np.empty((int(length / step) + 3, 2))
    return out[: resample(stroke, len(stroke), step, out)]
