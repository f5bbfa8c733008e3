"""The whole path from page to verdict on a folder of pages: how much is kept, how true it is, how fast.

    python benchmarks/pipeline.py --pages DIR [--json FILE]

Pages are taken one after another in one process with one thread, as one worker of `inktraj build-pseudolabels`
does. Ink recall is the share of the cleaned page's ink within 2 px of the drawn strokes, ink precision the share of
the drawing within 2 px of that ink; both are means over kept pages.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import cv2
import numpy as np
import record

import inktraj
from inktraj.io.images import find_sources, load
from inktraj.pseudolabel.label import label_page
from inktraj.pseudolabel.parts import PartNames, Parts


def mean(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return statistics.fmean(known) if known else None


def warm_up(parts: Parts) -> None:
    """Load the models and compile the kernels on a page of one drawn word, outside the clock."""
    pixels = np.full((240, 600, 3), 255, dtype=np.uint8)
    cv2.putText(pixels, "warm up", (60, 140), cv2.FONT_HERSHEY_SCRIPT_SIMPLEX, 3, (20, 20, 20), 4, cv2.LINE_AA)
    label_page(inktraj.Page(pixels), parts=parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument("--recoverer", default="scribe", help="by name, as on the command line")
    parser.add_argument("--limit", type=int, help="only the first pages")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    parts = PartNames(recoverer=arguments.recoverer).load()
    warm_up(parts)
    sources = find_sources(arguments.pages)[: arguments.limit]
    labels, stages, seconds = [], {}, 0.0
    for source in sources:
        start = time.perf_counter()
        image = load(source)
        page = inktraj.Page(image.pixels, image.id, image.source, image.sha256)
        stages["load"] = stages.get("load", 0.0) + time.perf_counter() - start
        done = label_page(page, parts=parts)
        spent = time.perf_counter() - start
        seconds += spent
        for name, value in done.timings.items():
            stages[name] = stages.get(name, 0.0) + value
        label = done.label
        labels.append(label)
        print(
            f"{label.page_id:12} {page.width}×{page.height} {label.verdict:8} {len(label.words):4} words  "
            f"agreement {label.agreement or 0:.3f}  recall {label.ink_recall or 0:.3f}  "
            f"precision {label.ink_precision or 0:.3f}  {spent:.2f} s"
        )
    count = max(len(labels), 1)
    kept = [label for label in labels if label.verdict == "kept"]
    figures = {
        "pages": len(labels),
        "pages_failed": sum(label.verdict == "failed" for label in labels),
        "words": sum(len(label.words) for label in labels),
        "agreement_mean": mean([label.agreement for label in labels]),
        "line_agreement_mean": mean([label.line_agreement for label in labels]),
        "word_agreement_mean": mean([label.word_agreement for label in labels]),
        "kept_share": len(kept) / count,
        "ink_recall": mean([label.ink_recall for label in kept]),
        "ink_precision": mean([label.ink_precision for label in kept]),
        "ink_recall_all_pages": mean([label.ink_recall for label in labels]),
        "ink_precision_all_pages": mean([label.ink_precision for label in labels]),
        "seconds_per_page": seconds / count,
        "peak_mb": record.peak_mb(),
        **{f"seconds_{name.replace(' ', '_')}": value / count for name, value in stages.items()},
    }
    print(record.table(figures))
    settings = {"pages": str(arguments.pages), "recoverer": arguments.recoverer, "limit": arguments.limit}
    record.write(arguments.json, "pipeline", settings, figures)


if __name__ == "__main__":
    main()
