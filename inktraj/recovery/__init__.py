"""Word image → ordered strokes.

A `Recoverer` turns a `WordCrop` into candidates, best first; `recover` is the one door for users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.page import WordCrop


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice of the pen, as the recoverer saw it.

    Parameters
    ----------
    kind
        ``"set-down"``, ``"go-on"`` (over a node of the ink's skeleton) or ``"lift"``.
    stroke
        The stroke's number.
    place
        x, y in the crop's pixels.
    probability
        Of what was chosen, given all chosen before.
    """

    kind: Literal["set-down", "go-on", "lift"]
    stroke: int
    place: tuple[float, float]
    probability: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way in which the word may have been written.

    Parameters
    ----------
    ink
        The strokes in the crop's frame (pixels), in writing order, with local widths.
    confidence
        In 0–1; None where the recoverer does not estimate it.
    decisions
        The choices along the strokes, in their order; empty where the recoverer does not tell.
    """

    ink: Ink
    confidence: float | None = None
    decisions: tuple[Decision, ...] = ()


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


def recover(
    crop_or_image: WordCrop | NDArray[np.uint8],
    *,
    recoverer: Recoverer | None = None,
    text: str | None = None,
    times: bool = False,
) -> Ink:
    """Recover the ordered strokes of one word.

    Parameters
    ----------
    crop_or_image
        A word crop, or a picture of one word: ``(h, w)`` grey or ``(h, w, 3)`` RGB, uint8. A picture is binarised here;
        light ink on a dark ground is inverted first.
    recoverer
        None: the learned `inktraj.recovery.scribe.Scribe`. Its options (quality, direction …) are given to it:
        ``recoverer=Scribe(direction="rtl")``; called itself, it gives several candidates with their confidence.
    text
        What the word says, where known; a recoverer may ignore it.
    times
        Give the points plausible times by `inktraj.recovery.speed.with_times`; the ink's ``times_source`` is then
        ``"estimated"``. Times that the recoverer itself gave stay as they are.

    Returns
    -------
    Ink
        The best candidate, in the crop's or image's pixels (the upper left pixel's centre is (0, 0)), with local
        stroke widths; empty where there is no ink.

    Raises
    ------
    DataError
        An array of another type or shape, or of no pixels; or `recoverer` is a name or a class, not a recoverer.
    """
    if isinstance(recoverer, str | type) or not (recoverer is None or callable(recoverer)):
        raise DataError(f"recoverer is a Recoverer such as inktraj.recovery.scribe.Scribe(), not {recoverer!r}")
    from inktraj.recovery.scribe import Scribe

    crop = crop_or_image if isinstance(crop_or_image, WordCrop) else crop_of(crop_or_image)
    recoverer = recoverer or Scribe()
    candidates = recoverer(crop, text=text)
    if not candidates:
        raise DataError(f"the recoverer {recoverer.name} gave no candidate; for no ink it must give an empty one")
    ink = candidates[0].ink
    if times and ink.times is None:
        from inktraj.recovery.speed import with_times

        ink = with_times(ink)
    return ink


def crop_of(image: NDArray[np.uint8]) -> WordCrop:
    """Make a word crop of a bare picture of one word; see `recover`."""
    if not isinstance(image, np.ndarray):
        raise DataError(
            f"recover needs a WordCrop or a numpy array of pixels, not {type(image).__name__}; a file's words are "
            "inktraj.segment(inktraj.Page.open(path)).words"
        )
    hint = "; are the values in 0–1? multiply by 255 and convert" if image.dtype.kind == "f" else ""
    if image.dtype != np.uint8:
        raise DataError(f"a word's picture is uint8, not {image.dtype}{hint}")
    if not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)) or not image.size:
        raise DataError(
            f"a word's picture has shape (h, w) or (h, w, 3) with h, w ≥ 1, not {image.shape}; "
            "composite an alpha channel on white first"
        )
    import cv2

    from inktraj.recovery.binarize import binarize, is_light_on_dark

    gray = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8) if image.ndim == 3 else image
    if is_light_on_dark(gray):
        gray = 255 - gray
    mask = binarize(gray)
    height, width = gray.shape
    polygon = np.array([(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)], np.float64)
    clean = np.where(mask, gray, 255).astype(np.uint8)
    return WordCrop(clean, mask, np.array([[1.0, 0, 0], [0, 1.0, 0]]), polygon)
