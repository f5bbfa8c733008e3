"""How fast answers of document VQA are scored, from files of predictions to figures with intervals.

    python benchmarks/vqa.py [--count 100000] [--report] [--json FILE]

The questions are made up: nine languages, three to an image; golds and answers of some letters of each script, so that
a third of the answers is right by some scorer, some are empty, and some golds are not in NFC. ``seconds`` are wall time
from reading data and predictions to all figures, breakdowns and intervals; with ``--report`` also the writing of files.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import record

from inktraj.vqa.mtvqa import LANGUAGES
from inktraj.vqa.predictions import score_predictions
from inktraj.vqa.results import write_outcome

PAIRS = 3
_LETTERS = {"AR": 0x627, "JA": 0x30A2, "KO": 0xAC00, "RU": 0x430, "TH": 0xE01}


def text(draw: random.Random, language: str, length: int) -> str:
    first = _LETTERS.get(language, 0x61)
    word = "".join(chr(first + draw.randrange(24)) for _ in range(length))
    return word + ("e\u0301" if draw.random() < 0.05 else "") + ("." if draw.random() < 0.1 else "")


def make(folder: Path, count: int, seed: int) -> Path:
    """Write data and predictions; return the latter's file."""
    draw = random.Random(seed)
    rows, answers = [], []
    for image in range(-(-count // PAIRS)):
        language = LANGUAGES[image % len(LANGUAGES)]
        pairs = []
        for number in range(1, PAIRS + 1):
            gold = text(draw, language, draw.randint(1, 20))
            chance = draw.random()
            said = gold if chance < 0.2 else f"It is {gold}." if chance < 0.35 else text(draw, language, 30)
            answers.append({"id": f"{language}-{image}-{number}", "answer": "" if chance > 0.98 else said})
            pairs.append({"question": f"question {number}?", "answer": gold})
        rows.append({"id": image, "lang": language, "qa_pairs": repr(pairs)})
    pq.write_table(pa.Table.from_pylist(rows), folder / "test.parquet")
    path = folder / "predictions.jsonl"
    lines = (json.dumps(answer, ensure_ascii=False) for answer in answers[:count])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        predictions = make(folder, options.count, options.seed)
        start, began = time.perf_counter(), time.process_time()
        outcome = score_predictions(predictions, "mtvqa", folder, answered_only=True)
        scored = time.perf_counter() - start
        shares = {f.figure.name: f.published_way.mean for f in outcome.figures}
        seconds = time.perf_counter() - start
        used = time.process_time() - began
        figures = {"predictions": len(outcome.results), "seconds_to_scores": scored, "seconds": seconds}
        figures |= {"cpu_seconds": used, **shares}
        if options.report:
            (folder / "out").mkdir()
            write_outcome(outcome, folder / "out")
            figures["seconds_with_files"] = time.perf_counter() - start
            figures["report_mb"] = (folder / "out" / "report.html").stat().st_size / 1e6
    for key, value in figures.items():
        print(f"{key}: {value:.4g}" if isinstance(value, float) else f"{key}: {value}")
    settings = {"count": options.count, "seed": options.seed, "report": options.report}
    record.write(options.json, "vqa", settings, figures)


if __name__ == "__main__":
    main()
