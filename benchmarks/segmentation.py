"""How well lines and words are found, against pages with known ones.

    python benchmarks/segmentation.py --pages DIR [--json FILE]

DIR holds images and a ``truth.json``: a list of {image, width, height} with ``words`` (line, text, polygon) or
``lines`` (text, polygon). Polygons need not be tight, so everything is compared by ink: the ink inside a true
polygon against the ink of a found word, matched one to one where the intersection over union is at least 0.5.
The ink is found by Sauvola's threshold, which the segmenter does not use, so that ink which the segmenter
overlooks counts against it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import cv2
import numpy as np
import record
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from skimage.filters import threshold_sauvola

import inktraj
from inktraj.segmentation import Segmentation

I32 = NDArray[np.int32]


def reference_ink(page: inktraj.Page) -> NDArray[np.bool_]:
    gray = cv2.cvtColor(page.pixels, cv2.COLOR_RGB2GRAY)
    window = int(max(25, round(max(gray.shape) / 60))) | 1
    dark = gray < threshold_sauvola(gray, window_size=window, k=0.15)
    # Sauvola marks texture on plain paper; ink stands out from its surroundings.
    return dark & (gray < cv2.blur(gray, (window, window)) * 0.92)


def paint_truth(items: list[dict], shape: tuple[int, int]) -> I32:
    labels = np.full(shape, -1, dtype=np.int32)
    for n, item in enumerate(items):
        cv2.fillPoly(labels, [np.round(np.array(item["polygon"])).astype(np.int32)], n)
    return labels


def paint_found(found: Segmentation, shape: tuple[int, int]) -> tuple[I32, I32]:
    """Return the number of the word and of the line of each pixel; −1 for none. Masks are grown by 2 px."""
    words = np.full(shape, -1, dtype=np.int32)
    lines = np.full(shape, -1, dtype=np.int32)
    kernel = np.ones((5, 5), np.uint8)
    for grow in (True, False):  # own ink last, so that growing takes nothing from a neighbour
        for n, word in enumerate(found.words):
            x0, y0 = np.round(word.to_page[:, 2]).astype(int)
            mask = cv2.dilate(word.mask.astype(np.uint8), kernel) if grow else word.mask
            ys, xs = np.nonzero(mask)
            ys, xs = ys + y0, xs + x0
            ok = (ys >= 0) & (ys < shape[0]) & (xs >= 0) & (xs < shape[1])
            words[ys[ok], xs[ok]] = n
            lines[ys[ok], xs[ok]] = word.line
    return words, lines


def matches(truth: I32, found: I32, ink: NDArray[np.bool_], n_truth: int, n_found: int) -> int:
    """Count one-to-one pairs whose ink has an intersection over union of at least 0.5."""
    if not n_truth or not n_found:
        return 0
    t, f = truth[ink], found[ink]
    both = (t >= 0) & (f >= 0)
    common = np.zeros((n_truth, n_found))
    np.add.at(common, (t[both], f[both]), 1)
    size_t = np.bincount(t[t >= 0], minlength=n_truth)[:, None]
    size_f = np.bincount(f[f >= 0], minlength=n_found)[None, :]
    iou = common / np.maximum(size_t + size_f - common, 1)
    rows, columns = linear_sum_assignment(-np.where(iou >= 0.5, 1 + iou, 0))
    return int((iou[rows, columns] >= 0.5).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    truth_file = arguments.pages / "truth.json"
    entries = json.loads(truth_file.read_text(encoding="utf-8"))
    inktraj.segment(inktraj.Page(np.full((200, 200, 3), 255, np.uint8)))  # load models, compile kernels
    counts = dict.fromkeys(("true_words", "found_words", "word_hits", "true_lines", "line_hits"), 0)
    seconds, off, of = 0.0, 0, 0
    has_words = False
    for entry in entries:
        if not entry.get("words") and not entry.get("lines"):
            continue
        page = inktraj.Page.open(arguments.pages / entry["image"])
        start = time.perf_counter()
        found = inktraj.segment(page)
        seconds += time.perf_counter() - start
        shape = page.pixels.shape[:2]
        ink = reference_ink(page)
        words, lines = paint_found(found, shape)
        items = entry.get("words") or entry["lines"]
        truth = paint_truth(items, shape)
        own = (words >= 0) & ink
        off += int((own & (truth < 0)).sum())
        of += int(own.sum())
        page_hits = ""
        if entry.get("words"):
            has_words = True
            hits = matches(truth, words, ink, len(items), len(found.words))
            counts["true_words"] += len(items)
            counts["found_words"] += len(found.words)
            counts["word_hits"] += hits
            page_hits = f"words {hits}/{len(items)} true, {len(found.words)} found"
            names = sorted({w["line"] for w in items})
            line_of = np.array([*(names.index(w["line"]) for w in items), -1])
            truth, n_lines = line_of[truth].astype(np.int32), len(names)
        else:
            n_lines = len(items)
        line_hits = matches(truth, lines, ink, n_lines, len(found.lines))
        counts["true_lines"] += n_lines
        counts["line_hits"] += line_hits
        print(f"{entry['image']:12} lines {line_hits}/{n_lines} true, {len(found.lines)} found  {page_hits}")
    pages = sum(1 for e in entries if e.get("words") or e.get("lines"))
    precision = counts["word_hits"] / max(counts["found_words"], 1)
    recall = counts["word_hits"] / max(counts["true_words"], 1)
    figures = {
        "pages": pages,
        "word_precision": precision if has_words else None,
        "word_recall": recall if has_words else None,
        "word_f1": 2 * precision * recall / max(precision + recall, 1e-9) if has_words else None,
        "line_recall": counts["line_hits"] / max(counts["true_lines"], 1),
        "off_text_ink": off / max(of, 1),
        "seconds_per_page": seconds / max(pages, 1),
        "peak_mb": record.peak_mb(),
    }
    print(record.table(figures))
    record.write(arguments.json, "segmentation", {"pages": str(arguments.pages)}, figures)


if __name__ == "__main__":
    main()
