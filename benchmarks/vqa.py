"""How fast answers of document VQA are scored, by the command and with all files it writes.

    python benchmarks/vqa.py [--count 100000] [--benchmark mtvqa] [--json FILE]

Questions and predictions are made up, for each benchmark in the form in which its data come: a third to a half of the
answers is right by some scorer, others are near, empty, refused or of many words. What is timed is
``inktraj vqa score PREDICTIONS --benchmark NAME --data FOLDER --out FOLDER`` from its start to its end: imports,
reading, scores, breakdowns, intervals, tables and the report. ``seconds`` is wall time, ``cpu_seconds`` what it used;
``headline`` is the benchmark's first figure.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import record

from inktraj.vqa.mtvqa import LANGUAGES

_LETTERS = {"AR": 0x627, "JA": 0x30A2, "KO": 0xAC00, "RU": 0x430, "TH": 0xE01, "ar": 0x627, "hi": 0x905}
_REFUSAL = "I cannot determine this from the image."

Made = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def text(draw: random.Random, language: str, length: int) -> str:
    first = _LETTERS.get(language, 0x61)
    word = "".join(chr(first + draw.randrange(24)) for _ in range(length))
    return word + ("e\u0301" if draw.random() < 0.05 else "") + ("." if draw.random() < 0.1 else "")


def said(draw: random.Random, gold: str, other: str) -> str:
    chance = draw.random()
    if chance > 0.96:
        return "" if chance > 0.98 else _REFUSAL
    return gold if chance < 0.2 else f"It is {gold}." if chance < 0.35 else other


def mtvqa(draw: random.Random, count: int) -> Made:
    """Three questions to an image."""
    rows, answers = [], []
    for image in range(-(-count // 3)):
        language = LANGUAGES[image % len(LANGUAGES)]
        golds = [text(draw, language, draw.randint(1, 20)) for _ in range(3)]
        pairs = [{"question": f"question {number}?", "answer": gold} for number, gold in enumerate(golds, 1)]
        rows.append({"id": image, "lang": language, "qa_pairs": repr(pairs)})
        answers += [
            {"id": f"{language}-{image}-{number}", "answer": said(draw, gold, text(draw, language, 30))}
            for number, gold in enumerate(golds, 1)
        ]
    return rows, answers


_COLLECTIONS = ("Balinese", "Grantha", "Jathakam", "Kambaramayanam", "Kannada", "Khmer", "Sundanese", "Tamil")
_LABELS = ("cracks", "stains", "holes", "insect damage", "faded ink", "broken edge", "black and white", "none")
_CATEGORIES = {
    "script or collection": "classification",
    "line count": "counting",
    "physical condition": "attribute",
    "symbols and drawings": "binary",
    "material and coating": "attribute",
    "binding and holes": "binary",
    "scribe and margins": "layout",
    "legibility": "attribute",
}


def palmleaf(draw: random.Random, count: int) -> Made:
    """Eight questions to an image."""
    rows, answers = [], []
    for image in range(-(-count // 8)):
        collection = _COLLECTIONS[image % 8]
        for number, (category, task) in enumerate(_CATEGORIES.items()):
            gold: str | list[str] = draw.sample(_LABELS, draw.randint(1, 3))
            other = draw.choice(["and ".join(gold), f"Leaf {image} has {', '.join(draw.sample(_LABELS, 2))}"])
            if task == "counting":
                gold, other = str(draw.randint(3, 9)), draw.choice(["There are five lines.", "4-5", "6 (six)", "7"])
            elif task == "binary":
                gold, other = draw.choice(["yes", "no"]), draw.choice(["Yes", "No holes are visible", "perhaps"])
            elif task == "classification":
                gold, other = collection, draw.choice(["Cambodian script", *_COLLECTIONS])
            record = {"id": f"{image}-{number}", "image": f"{image}.png", "question": f"What of {category}?"}
            rows.append(record | {"answer": gold, "collection": collection, "category": category, "task_type": task})
            written = gold if isinstance(gold, str) else "; ".join(gold)
            answers.append({"id": record["id"], "answer": said(draw, written, other)})
    return rows, answers


def indotab(draw: random.Random, count: int) -> Made:
    """Four questions to an image, one in each language."""
    rows, answers = [], []
    for image in range(-(-count // 4)):
        for language in ("id", "en", "hi", "ar"):
            number = str(draw.randint(1, 99_999))
            gold = draw.choice([number, f"{number}.{number}", text(draw, language, draw.randint(2, 12))])
            record = {"id": f"{image}-{language}", "image": f"{image}.png", "question": f"{number}?"}
            rows.append(record | {"answer": gold, "language": language})
            other = " ".join(text(draw, language, 5) for _ in range(6))
            answers.append({"id": record["id"], "answer": said(draw, gold, other)})
    return rows, answers


MADE: dict[str, Callable[[random.Random, int], Made]] = {
    "mtvqa": mtvqa,
    "palmleaf-vqa": palmleaf,
    "indotabvqa": indotab,
}


def write(folder: Path, name: str, count: int, seed: int) -> Path:
    """Write data and predictions; return the latter's file."""
    rows, answers = MADE[name](random.Random(seed), count)
    if name == "mtvqa":
        pq.write_table(pa.Table.from_pylist(rows), folder / "test.parquet")
    else:
        (folder / "test.jsonl").write_text(_lines(rows[:count]), encoding="utf-8")
    path = folder / "predictions.jsonl"
    path.write_text(_lines(answers[:count]), encoding="utf-8")
    return path


def _lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def measured(name: str, count: int, seed: int) -> dict[str, float]:
    """Time the command once."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        predictions = write(folder, name, count, seed)
        arguments = ["score", predictions, "--benchmark", name, "--data", folder, "--out", folder / "out"]
        arguments += ["--answered-only"]
        start, before = time.perf_counter(), os.times()
        subprocess.run(
            [sys.executable, "-m", "inktraj", "vqa", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL
        )
        seconds, after = time.perf_counter() - start, os.times()
        run = json.loads((folder / "out" / "run.json").read_text("utf-8"))
        files = sum(path.stat().st_size for path in (folder / "out").iterdir())
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        "seconds": seconds,
        "cpu_seconds": used,
        "files_mb": files / 1e6,
        "headline": next(iter(run["figures"].values()))["published_way"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--benchmark", choices=MADE, action="append")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    for name in options.benchmark or MADE:
        figures[name] = measured(name, options.count, options.seed)
        print(f"{name}\n{record.table(figures[name])}\n")
    settings = {"count": options.count, "seed": options.seed}
    record.write(options.json, "vqa", settings, {"predictions": options.count, "whole command": figures})


if __name__ == "__main__":
    main()
