"""Word image → ordered strokes.

A `Recoverer` turns a `WordCrop` into candidates, best first; `recover` is the one door for users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from inktraj.ink import Ink
from inktraj.page import WordCrop


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way in which the word may have been written.

    Parameters
    ----------
    ink
        The strokes in the crop's frame (pixels), in writing order, with local widths.
    confidence
        In 0–1; None where the recoverer does not estimate it.
    """

    ink: Ink
    confidence: float | None = None


@runtime_checkable
class Recoverer(Protocol):
    """Turns a word crop into ordered strokes.

    Attributes
    ----------
    name, version
        Recorded with every result, so that two results are only compared when they may be.
    """

    name: str
    version: str

    def __call__(self, crop: WordCrop, *, text: str | None = None, n_best: int = 1) -> list[Candidate]:
        """Return 1 … `n_best` candidates, best first.

        Parameters
        ----------
        crop
            The word.
        text
            What the word says, where known; a recoverer may ignore it.
        n_best
            At most so many candidates.

        Returns
        -------
        list of Candidate
            An empty ink (no strokes) where the crop holds none. Never an exception for bad pixels.
        """
        ...
