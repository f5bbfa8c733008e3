"""How long it takes to score as many recorded replies as inkGround has words, and how much memory.

    python benchmarks/evaluation.py [--words 18700] [--json FILE]

Pages, words and replies are made: each reply holds its word's points, a little off, as a list of tuples. Nothing is
asked and no page is drawn: the time is that of reading replies, scoring, placing, and writing tables and report.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import metrics_inks as inks
import numpy as np
from record import peak_mb, table, write

from inktraj import Frame, Ink
from inktraj.datasets.sample import Dataset, PagePicture, Sample, SamplePage
from inktraj.evaluation import Plan, evaluate_model
from inktraj.vlm import load_model

PER_PAGE = 35
POINTS = 430
FRAME = Frame(2480, 3508)


class Pages:
    """Pages of made words, each made when it is asked for."""

    def __init__(self, words: int) -> None:
        self.count = words
        self.ids = tuple(
            tuple(f"p{page:03d}__w{k:02d}" for k in range(min(PER_PAGE, words - page * PER_PAGE)))
            for page in range((words + PER_PAGE - 1) // PER_PAGE)
        )

    def read(self, number: int) -> SamplePage:
        """Make one page; the same number gives the same page."""
        rng = np.random.default_rng(number)
        picture = PagePicture(f"p{number:03d}", None, int(FRAME.width), int(FRAME.height))
        samples = []
        for k, name in enumerate(self.ids[number]):
            corner = np.array([100 + 450 * (k % 5), 150 + 450 * (k // 5)])
            points = max(int(rng.normal(POINTS, 120)), 40)
            ink = Ink([stroke + corner for stroke in inks.word(rng, points, size=10.0)], FRAME)
            box = ink.bounds
            samples.append(Sample(name, picture, f"word{k}", 1, 1, ink, k, k // 5, box, f"writer{number % 50}"))
        return SamplePage(picture, tuple(samples), samples[0].writer)


def replies(pages: Pages, path: Path) -> None:
    rng = np.random.default_rng(1)
    with open(path, "w", encoding="utf-8") as file:
        for number in range(len(pages.ids)):
            for sample in pages.read(number).samples:
                tuples = [
                    f"({x + rng.normal(0, 2):.0f},{y + rng.normal(0, 2):.0f},{int(k == 0)})"
                    for stroke in sample.ink.strokes
                    for k, (x, y) in enumerate(stroke)
                ]
                record = {"sample": sample.id, "text": f"[{', '.join(tuples)}]", "model": "made-by-hand"}
                file.write(json.dumps(record | {"input_tokens": 3000, "output_tokens": 3000}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=18_700)
    parser.add_argument("--threads", type=int, default=2, help="for scoring")
    parser.add_argument("--again", action="store_true", help="run once more over the finished folder")
    parser.add_argument("--json", type=Path, help="where the record goes")
    options = parser.parse_args()
    pages = Pages(options.words)
    data = Dataset("made", "1", pages, "recorded")
    with tempfile.TemporaryDirectory() as folder:
        replies(pages, Path(folder) / "replies.jsonl")
        start = time.perf_counter()
        model = load_model(f"replay:{folder}/replies.jsonl")
        run = evaluate_model(model, data, Path(folder) / "run", Plan(threads=options.threads))
        figures = {
            "words": len(run.rows[0].outcomes),
            "ok": run.rows[0].kinds["ok"],
            "seconds": time.perf_counter() - start,
            "report_mb": (Path(folder) / "run" / "report.html").stat().st_size / 1e6,
            "peak_mb": peak_mb(),
        }
        if options.again:
            del run
            start = time.perf_counter()
            evaluate_model(model, data, Path(folder) / "run", Plan(threads=options.threads))
            figures["seconds_again"] = time.perf_counter() - start
    print(table(figures))
    write(options.json, "evaluation", {"words": options.words, "threads": options.threads}, figures)


if __name__ == "__main__":
    main()
