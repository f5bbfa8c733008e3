"""What makes the reader agree with itself on a page and on its rendering.

    python benchmarks/agreement.py --pages DIR [--limit N] [--row NAME ...] [--json FILE]

DIR holds images and a ``truth.json``: a list of {image} with ``words`` (text), ``lines`` (text, polygon) or ``text``.
Each row changes one thing of the check; ``shipped`` is the check as it is. For each row: the agreement (mean over
pages), and the share of the true words that is read on the original and on the rendering. Rows that begin with
``bound`` show what the check may not do: they put another picture in the place of the rendering.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import record
from numpy.typing import NDArray
from skimage.morphology import skeletonize

import inktraj
from inktraj import agree
from inktraj.ink import Ink
from inktraj.ocr.ppocr import PPOCR
from inktraj.pseudolabel.label import one_pen
from inktraj.recovery import recover
from inktraj.rendering import render
from inktraj.segmentation import Segmentation

U8 = NDArray[np.uint8]


@dataclass(frozen=True)
class Scene:
    """A page with all that is made of it."""

    page: inktraj.Page
    segmentation: Segmentation
    ink: Ink
    pen: float
    truth: list[str]


def pixels(scene: Scene) -> U8:
    return scene.page.pixels


@dataclass(frozen=True)
class Row:
    """One way to draw and to read."""

    draw: Callable[[Scene], U8]
    reaches: tuple[float, ...] = agree.REACHES
    by_word: bool = False
    original: Callable[[Scene], U8] = pixels
    prepare: Callable[[U8], U8] = np.ascontiguousarray


def pen(scene: Scene, factor: float = 1.0, color: int = 0) -> U8:
    return render(scene.ink, pen=max(scene.pen * factor, 1.0), color=color)


def thin(scene: Scene) -> U8:
    return render(scene.ink, pen=1.0)


def soft(scene: Scene) -> U8:
    return cv2.GaussianBlur(pen(scene), (0, 0), 0.3 * scene.pen)


def local(scene: Scene) -> U8:
    return render(scene.ink, widths="local")


def mask(scene: Scene) -> U8:
    return np.where(scene.segmentation.cleaned.ink, 0, 255).astype(np.uint8)


def skeleton(scene: Scene) -> U8:
    line = skeletonize(scene.segmentation.cleaned.ink)
    distance = cv2.distanceTransform((~line).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.rint(255 * np.clip(distance - scene.pen / 2 + 0.5, 0, 1)).astype(np.uint8)


def blurred(strip: U8) -> U8:
    return cv2.GaussianBlur(strip, (0, 0), strip.shape[0] / 80)


def stretched(strip: U8) -> U8:
    gray = strip if strip.ndim == 2 else cv2.cvtColor(strip, cv2.COLOR_RGB2GRAY)
    dark, light = np.percentile(gray, [1, 80])
    return np.clip((gray - dark) * (255 / max(light - dark, 40)), 0, 255).astype(np.uint8)


def widened(strip: U8) -> U8:
    return cv2.resize(strip, None, fx=1.25, fy=1)


ROWS = {
    "shipped": Row(pen),
    "strips reach 0.65": Row(pen, reaches=(0.65,)),
    "strips reach 0.75": Row(pen, reaches=(0.75,)),
    "strips reach 0.85": Row(pen, reaches=(0.85,)),
    "word by word": Row(pen, by_word=True),
    "word by word, reach 0.75": Row(pen, reaches=(0.75,), by_word=True),
    "pen 1 px": Row(thin),
    "pen × 0.7": Row(partial(pen, factor=0.7)),
    "pen × 1.3": Row(partial(pen, factor=1.3)),
    "rendering blurred": Row(soft),
    "ink middle grey": Row(partial(pen, color=110)),
    "both sides blurred": Row(pen, prepare=blurred),
    "both sides stretched": Row(pen, prepare=stretched),
    "both sides 25 % wider": Row(pen, prepare=widened),
    "original cleaned": Row(pen, original=lambda scene: scene.segmentation.cleaned.gray),
    "plain skeleton": Row(skeleton),
    "bound: local widths": Row(local),
    "bound: the ink mask": Row(mask),
}


def scene_of(path: Path, truth: list[str]) -> Scene:
    page = inktraj.Page.open(path)
    segmentation = inktraj.segment(page)
    inks = [recover(crop).transform(crop.to_page, page.frame) for crop in segmentation.words]
    return Scene(page, segmentation, Ink.concat(inks, page.frame), one_pen(inks, segmentation), truth)


def truth_of(entry: dict) -> list[str]:
    if "words" in entry:
        return [word["text"] for word in entry["words"]]
    if "lines" in entry:
        lines = sorted(entry["lines"], key=lambda line: np.mean(line["polygon"], axis=0)[1])
        return " ".join(line["text"] for line in lines).split()
    return entry["text"].split()


def read(image: U8, scene: Scene, row: Row, reader: PPOCR) -> list[str]:
    """Return one string for each line or word: the most confident of the readings at all reaches."""
    cut = agree.word_strips if row.by_word else agree.line_strips
    at = [reader([row.prepare(s) for s in cut(image, scene.segmentation.lines, reach)]) for reach in row.reaches]
    return [max(of_region, key=lambda reading: reading.confidence).text for of_region in zip(*at, strict=True)]


def right(truth: list[str], texts: list[str]) -> float:
    """Share of the true words that is read."""
    words = agree.fold(" ".join(truth))
    pairs = agree.align_words(words, agree.fold(" ".join(texts)))
    return len({i for i, _, match in pairs if match}) / max(len(words), 1)


def measure(row: Row, scenes: list[Scene], reader: PPOCR, originals: dict) -> dict[str, float]:
    agreements, rights = [], []
    for k, scene in enumerate(scenes):
        key = (k, row.reaches, row.by_word, row.original, row.prepare)  # most rows read the original alike
        if key not in originals:
            originals[key] = read(row.original(scene), scene, row, reader)
        rendered = read(row.draw(scene), scene, row, reader)
        agreements.append(agree.compare(originals[key], rendered)[1] or 0.0)
        rights.append((right(scene.truth, originals[key]), right(scene.truth, rendered)))
    on_original, on_rendering = np.mean(rights, axis=0)
    return {
        "agreement": float(np.mean(agreements)),
        "original_right": float(on_original),
        "rendering_right": float(on_rendering),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="at most so many pages, spread evenly")
    parser.add_argument("--row", nargs="*", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    entries = json.loads((arguments.pages / "truth.json").read_text(encoding="utf-8"))
    if arguments.limit and arguments.limit < len(entries):
        entries = [entries[k] for k in np.linspace(0, len(entries) - 1, arguments.limit).round().astype(int)]
    scenes = [scene_of(arguments.pages / entry["image"], truth_of(entry)) for entry in entries]
    reader, originals, figures = PPOCR(), {}, {}
    print(f"{len(scenes)} pages, {sum(len(scene.segmentation.words) for scene in scenes)} words")
    print(f"{'':<26} agreement  original right  rendering right")
    for name in arguments.row:
        figures[name] = measure(ROWS[name], scenes, reader, originals)
        shares = figures[name].values()
        print(f"{name:<26} {''.join(f'{s:>{w}.3f}' for s, w in zip(shares, (9, 16, 17), strict=True))}", flush=True)
    record.write(arguments.json, "agreement", {"pages": str(arguments.pages), "limit": arguments.limit}, figures)


if __name__ == "__main__":
    main()
