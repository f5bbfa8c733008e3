"""The exchangeable parts of the pipeline, by name: segmenter, recoverer, recogniser."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from inktraj.errors import InktrajError, RunError
from inktraj.ocr import Recognizer
from inktraj.recovery import Recoverer
from inktraj.segmentation import Segmenter

NAMED: dict[str, dict[str, str]] = {
    "segmenter": {"inkgap": "inktraj.segmentation.inkgap:InkGapSegmenter"},
    "recoverer": {
        "scribe": "inktraj.recovery.scribe:Scribe",
        "scribe-fast": "inktraj.recovery.scribe:FastScribe",
        "tracer": "inktraj.recovery.tracer:Tracer",
    },
    "recognizer": {"ppocr": "inktraj.ocr.ppocr:PPOCR"},
}
"""Parts that have a name of their own; others are given as ``module:attribute``."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The three parts that do the work on a page."""

    segmenter: Segmenter
    recoverer: Recoverer
    recognizer: Recognizer

    def versions(self) -> dict[str, str]:
        """Name and version of each part, for the records."""
        named: dict[str, Segmenter | Recoverer | Recognizer]
        named = {"segmenter": self.segmenter, "recoverer": self.recoverer, "recognizer": self.recognizer}
        return {kind: f"{part.name} {part.version}" for kind, part in named.items()}


@dataclass(frozen=True, slots=True)
class PartNames:
    """What the caller asked for: for each part a name, a ``module:attribute``, or the part itself."""

    segmenter: Any = "inkgap"
    recoverer: Any = "scribe"
    recognizer: Any = "ppocr"

    def load(self) -> Parts:
        """Import and make the parts.

        Raises
        ------
        RunError
            A name is not known, a module cannot be imported, a part cannot be made, or is not of that kind.
        """
        return Parts(
            segmenter=load_part("segmenter", self.segmenter),
            recoverer=load_part("recoverer", self.recoverer),
            recognizer=load_part("recognizer", self.recognizer),
        )


def load_part(kind: str, given: Any) -> Any:
    """Return the part of a `kind` (a key of `NAMED`) that a name, a ``module:attribute`` or an object stands for.

    Raises
    ------
    RunError
        As for `PartNames.load`.
    """
    part = _imported(kind, given) if isinstance(given, str) else given
    if isinstance(part, type):
        try:
            part = part()
        except InktrajError:
            raise
        except Exception as err:
            raise RunError(f"the {kind} {given!r} cannot be made: {type(err).__name__}: {err}") from err
    if not callable(part) or not all(isinstance(getattr(part, name, None), str) for name in ("name", "version")):
        raise RunError(
            f"{given!r} is not a {kind}: it must be callable and have a name and a version (str); see inktraj's "
            f"protocol {kind.capitalize()}"
        )
    return part


def _imported(kind: str, given: str) -> Any:
    place = NAMED[kind].get(given, given)
    module, colon, attribute = place.partition(":")
    if not colon or not module or not attribute:
        known = ", ".join(sorted(NAMED[kind]))
        raise RunError(
            f"there is no {kind} {given!r}; known are {known}, and any module:attribute that can be imported"
        )
    try:
        return getattr(import_module(module), attribute)
    except ImportError as err:
        raise RunError(f"the {kind} {given!r} cannot be imported: {err}") from err
    except AttributeError as err:
        raise RunError(f"the {kind} {given!r}: module {module} has no {attribute!r}") from err
