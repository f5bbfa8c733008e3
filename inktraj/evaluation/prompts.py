"""What a model is asked: to find a word on a page and to write the points along which the pen moved.

inkGround casts trajectory recovery as text-conditioned point grounding with one in-context example. The words of the
prompts are our own, their parts are the paper's: a system prompt, the task, an example with its image, its word, a line
about its strokes and its points, as ``(x, y, s)`` tuples or as ``x145y122``.

Every part names the coordinate frame in which points are to be written, and the example is written in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.metrics.points import FloatArray
from inktraj.parse import FRAME_NAMES, CoordinateFrame

Input = Literal["page", "crop"]
Per = Literal["word", "page"]
Form = Literal["tuples", "tokens"]
INPUTS: tuple[Input, ...] = get_args(Input)
PERS: tuple[Per, ...] = get_args(Per)
FORMS: tuple[Form, ...] = get_args(Form)

VERSION = 1
"""Rises when the words of a prompt change: replies to different prompts are not mixed."""

SYSTEM = (
    "You recover the movement of the pen from images of handwriting. What you see was written by hand; you tell along "
    "which points the pen moved, and in which order. Follow the ink closely, stroke by stroke, in the order in which a "
    "person would write it. A stroke is the path of the pen from its touching the paper until it is lifted. Give "
    "enough points that the letters' curves can be drawn from them. Answer with the points alone: no explanation, no "
    "code."
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """How models are asked.

    Parameters
    ----------
    input
        ``"page"``: the whole page; ``"crop"``: the word, cut out and enlarged.
    per
        ``"word"``: a request for each word; ``"page"``: one for all words of a page.
    form
        How points are to be written: ``"tuples"``, ``(x, y, s)`` with s = 1 at a stroke's first point, or ``"tokens"``,
        ``x145y122`` with a lone ``s`` before each stroke. With ``per="page"`` it is always JSON.
    example
        Whether an example is shown.

    Raises
    ------
    DataError
        A value that is none of these, or all words of a page asked for in a crop.
    """

    input: Input = "page"
    per: Per = "word"
    form: Form = "tuples"
    example: bool = True

    def __post_init__(self) -> None:
        for name, known in (("input", INPUTS), ("per", PERS), ("form", FORMS)):
            if getattr(self, name) not in known:
                raise DataError(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(known)}")
        if self.input == "crop" and self.per == "page":
            raise DataError("a crop shows one word: per='page' needs input='page'")

    def fields(self) -> dict[str, str | int | bool]:
        """What a signature says of it."""
        return {
            "input": self.input,
            "per": self.per,
            "form": "json" if self.per == "page" else self.form,
            "example": self.example,
            "prompt": VERSION,
        }


def frame_text(frame: CoordinateFrame, sent: tuple[int, int], original: tuple[int, int]) -> str:
    """Say in which frame points are to be written; the image is `sent` (w, h) pixels large, it was `original`."""
    match frame.name:
        case "sent-px":
            return f"Coordinates are pixels of the image, which is {sent[0]} wide and {sent[1]} high: {_AXES}."
        case "original-px":
            size = f"{original[0]} wide and {original[1]} high"
            return f"Coordinates are pixels of the original image, which is {size}: {_AXES}."
        case "norm1000":
            return f"Coordinates are whole numbers from 0 to 1000 over the image, whatever its size: {_AXES}."
        case "norm1000-yx":
            return (
                "Coordinates are whole numbers from 0 to 1000 over the image, whatever its size, and y is written "
                f"before x: {_AXES}."
            )
        case "norm1":
            return f"Coordinates go from 0 to 1 over the image, with four decimals: {_AXES}."
        case "percent":
            return f"Coordinates go from 0 to 100 over the image, with one decimal: {_AXES}."
    raise DataError(
        f"there is no prompt for the coordinate frame {frame.name!r}, expected one of {', '.join(FRAME_NAMES)}"
    )


_AXES = "x from the left edge to the right, y from the upper edge down"


def form_text(prompt: Prompt, frame: CoordinateFrame) -> str:
    """Say how points are to be written."""
    first, second = ("y", "x") if frame.name == "norm1000-yx" else ("x", "y")
    if prompt.per == "page":
        return (
            "Answer with one JSON array with an object for each word, in the order in which the words are listed: "
            f'{{"word": "…", "strokes": [[[{first}, {second}], …], …]}}, where each stroke is the list of its points.'
        )
    if prompt.form == "tokens" and frame.name != "norm1000-yx":
        return (
            "Write the points one after another as x145y122 (x is 145, y is 122), with a lone s before the first point "
            "of each stroke."
        )
    return (
        f"Write the points as one list of tuples ({first}, {second}, s): s is 1 at the first point of a stroke, before "
        "which the pen was up, and 0 at its other points."
    )


def points_text(
    ink: Ink, prompt: Prompt, frame: CoordinateFrame, sent: tuple[int, int], original: tuple[int, int], word: str
) -> str:
    """Write an ink, given in pixels of the image as sent, as an answer would be.

    Points that fall together once they are rounded are written once.
    """
    strokes = [_numbers(frame.from_sent(stroke, sent, original), frame) for stroke in ink.strokes]
    if prompt.per == "page":
        written = ", ".join("[" + ", ".join(f"[{a}, {b}]" for a, b in stroke) + "]" for stroke in strokes)
        return f'[{{"word": {_quoted(word)}, "strokes": [{written}]}}]'
    if prompt.form == "tokens" and frame.name != "norm1000-yx":
        return " ".join("s " + " ".join(f"x{a}y{b}" for a, b in stroke) for stroke in strokes)
    tuples = [f"({a},{b},{int(k == 0)})" for stroke in strokes for k, (a, b) in enumerate(stroke)]
    return "[" + ", ".join(tuples) + "]"


def _numbers(points: FloatArray, frame: CoordinateFrame) -> list[tuple[str, str]]:
    decimals = {"norm1": 4, "percent": 1}.get(frame.name, 0)
    written = [(f"{a:.{decimals}f}", f"{b:.{decimals}f}") for a, b in np.round(points, decimals) + 0.0]
    return [pair for k, pair in enumerate(written) if k == 0 or pair != written[k - 1]]


def task_text(prompt: Prompt, words: list[tuple[str, int, int]]) -> str:
    """Say what is asked for: words as (text, occurrence from 1, occurrences on the page), in reading order."""
    if prompt.per == "page":
        listed = "\n".join(f"{k}. {_quoted(text)}" for k, (text, _, _) in enumerate(words, 1))
        return (
            f"The image shows a page of handwriting. These {len(words)} words stand on it, listed in reading order:\n"
            f"{listed}\nFind each of them and write the points of its strokes."
        )
    text, occurrence, occurrences = words[0]
    if prompt.input == "crop":
        return f"The image shows the handwritten word {_quoted(text)}. Write the points of its strokes."
    which = ""
    if occurrences > 1:
        which = f", which stands there {occurrences} times; take number {occurrence} in reading order,"
    return (
        f"The image shows a page of handwriting. Find the word {_quoted(text)}{which or ' on it'} and write the points "
        "of its strokes."
    )


def _quoted(text: str) -> str:
    """The word in JSON's quotes, in its own script."""
    import json

    return json.dumps(text, ensure_ascii=False)


def describe(ink: Ink) -> str:
    """Say in a line how an ink is written: where each stroke begins, where it leads, and what kind of line it is."""
    x0, y0, x1, y1 = ink.bounds
    size = max(x1 - x0, y1 - y0, 1e-9)
    count = len(ink.strokes)
    shown = [_stroke_text(stroke, (x0, y0), size) for stroke in ink.strokes[:_DESCRIBED]]
    more = f"; {count - _DESCRIBED} more strokes follow" if count > _DESCRIBED else ""
    return f"{count} stroke{'s' if count != 1 else ''}: " + "; ".join(shown) + more + "."


_DESCRIBED = 6


def _stroke_text(stroke: FloatArray, corner: tuple[float, float], size: float) -> str:
    at = (stroke[0] - corner) / size
    length = float(np.hypot(*np.diff(stroke, axis=0).T).sum()) / size
    place = f"{at[0]:.0%} along"
    if length < 0.06:
        return f"a dot {place}"
    way = stroke[-1] - stroke[0]
    direct = float(np.hypot(*way)) / size
    if direct < 0.15 * length:
        return f"a closed or winding line that begins {place} and comes back near its start"
    heading = _HEADINGS[round(float(np.degrees(np.arctan2(way[1], way[0]))) / 45) % 8]
    kind = "a straight line" if direct > 0.95 * length else "a curve" if direct > 0.5 * length else "a winding line"
    return f"{kind} that begins {place} and leads {heading}"


_HEADINGS = ("right", "down and right", "down", "down and left", "left", "up and left", "up", "up and right")
