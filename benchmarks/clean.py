"""How true the ink mask is, on made pages whose pen movement is known.

    python benchmarks/clean.py [--pages examples/pages] [--json FILE]

DIR holds images and a ``truth.json`` whose words have ``strokes`` and ``pen``, as `pipelines/make_pages.py` writes it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import cv2
import numpy as np
import record

import inktraj
from inktraj.clean import clean
from inktraj.rendering import coverage


def measure(page: inktraj.Page, words: list[dict]) -> dict[str, float]:
    cleaned = clean(page.pixels)
    inks = [inktraj.Ink.from_xys(word["strokes"], page.frame) for word in words]
    truth = np.any([coverage(ink, pen=word["pen"]) for ink, word in zip(inks, words, strict=True)], axis=0)
    centre = coverage(inktraj.Ink.concat(inks, page.frame), pen=1.0)
    near = cv2.dilate(truth.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    return {
        "centre_recall": float(cleaned.ink[centre].mean()),
        "precision": float(near[cleaned.ink].mean()),
        "area_ratio": float(cleaned.ink.sum() / truth.sum()),
        "pen_ratio": cleaned.pen / float(np.median([word["pen"] for word in words])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, default=Path("examples/pages"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    entries = json.loads((arguments.pages / "truth.json").read_text(encoding="utf-8"))
    figures = {}
    for entry in entries:
        figures[entry["image"]] = measure(inktraj.Page.open(arguments.pages / entry["image"]), entry["words"])
        print(f"{entry['image']}\n{record.table(figures[entry['image']])}")
    record.write(arguments.json, "clean", {"pages": str(arguments.pages)}, figures)


if __name__ == "__main__":
    main()
