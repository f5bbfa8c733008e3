"""Writes examples/replies.jsonl: replies as a vision-language model might give them to `inktraj eval` on the demo set.

    python pipelines/make_replies_example.py

No model wrote them: the points are those of `tracer`, moved a little, in the many forms in which models write; some
words are refused, cut, empty or nonsense. They show the whole way without a key or a network.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from inktraj import Ink
from inktraj.datasets import Sample, load_dataset
from inktraj.evaluation.prompts import Prompt, points_text
from inktraj.evaluation.views import view_page
from inktraj.io import read_ink
from inktraj.parse import CoordinateFrame
from inktraj.vlm import ImageLimits

MODEL = "made-by-hand"  # frames and limits of the table's unknown models: pixels of the image as sent
SENT = CoordinateFrame("sent-px")


def main() -> None:
    root = Path(__file__).resolve().parents[1] / "examples"
    found = {record.id: record.ink for record in read_ink(root / "score" / "tracer.jsonl")}
    rng = np.random.default_rng(0)
    lines = []
    for number, sample in enumerate(load_dataset("demo")):
        text, stop = reply(number, sample, found.get(sample.id), rng)
        lines.append(
            {
                "sample": sample.id,
                "model": MODEL,
                "text": text,
                "stop_reason": stop,
                "input_tokens": 3100,
                "output_tokens": len(text) // 3,
            }
        )
    written = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (root / "replies.jsonl").write_text(written, encoding="utf-8")


def reply(number: int, sample: Sample, ink: Ink | None, rng: np.random.Generator) -> tuple[str, str]:
    """Return what the model says of one word, and why it stopped."""
    if ink is None or number % 29 == 11:
        return "I'm sorry, but I can't make out this word on the page.", "end"
    if number % 31 == 17:
        return "", "end"
    view = view_page(sample, ImageLimits(), blind=True)
    moved = ink.transform([[1, 0, rng.normal(0, 3)], [0, 1, rng.normal(0, 3)]], ink.frame)
    thin = Ink(tuple(stroke[:: max(len(stroke) // 40, 1)] for stroke in moved.strokes), ink.frame)
    form = ("tuples", "tokens")[number % 5 == 3]
    text = points_text(view.place.as_sent(thin), Prompt(form=form), SENT, view.sent, view.original, sample.text)
    match number % 7:
        case 0:
            return f"Here are the points of the word:\n```\n{text}\n```\nI hope that helps!", "end"
        case 2 if number % 3 == 0:
            return text[: len(text) * 2 // 3], "length"
        case 4 if form == "tuples":
            strokes = [[[round(x, 1), round(y, 1)] for x, y in stroke] for stroke in thin.strokes]
            return json.dumps({"word": sample.text, "strokes": strokes}), "end"
    return text, "end"


if __name__ == "__main__":
    main()
