"""Pictures of recovered words beside their recordings: the best, the median and the worst by score, not by taste.

    python benchmarks/recovery.py --inks FILE.npz --overlays DIR

Each row is one word: left as it was recorded, right as it was recovered, both over its faded picture. Colour runs from
violet, where the word begins, to yellow, where it ends; a number stands where each stroke begins, arrows show its way.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from recovery_scores import Row, Words, picture

SHOWN = 10
PANEL = (490, 132)  # width and height of the room for one picture, in the sheet's pixels
GAP, LABEL, PAD = 10, 20, 6  # between rows, above pictures, around them
SCALE = 3  # drawn so many times larger and then shrunk, to be smooth
LINE, ARROW, ARROWS_EVERY = 1.7, 4.5, 45.0  # pixels of the sheet
COLORS = 192  # in the PNG


def write_overlays(folder: Path, words: Words, rows: list[Row], recoverer: Any, **look: Any) -> list[Path]:
    """Write ``best.png``, ``median.png`` and ``worst.png``; the words are recovered anew."""
    folder.mkdir(parents=True, exist_ok=True)
    ranked = sorted(rows, key=lambda row: (row["dtw"], row["index"]))
    middle = max(len(ranked) // 2 - SHOWN // 2, 0)
    chosen = {
        "best": ranked[:SHOWN],
        "median": ranked[middle : middle + SHOWN],
        "worst": ranked[-SHOWN:][::-1],
    }
    paths = []
    for name, some in chosen.items():
        paths.append(folder / f"{name}.png")
        sheet([word_row(words, row, recoverer, **look) for row in some]).save(paths[-1], optimize=True)
    return paths


def word_row(words: Words, row: Row, recoverer: Any, **look: Any) -> np.ndarray:
    """Return one word's row of the sheet, ``(h, w, 3)`` uint8."""
    from inktraj.recovery import recover

    index = int(row["index"])
    image, reference = picture(words, index, **look)
    found = recover(image, recoverer=recoverer).strokes
    factor = min((PANEL[0] - 2 * PAD) / image.shape[1], (PANEL[1] - 2 * PAD) / image.shape[0], 2.0)
    panels = [overlay(image, strokes, factor) for strokes in (reference, found)]
    height = panels[0].shape[0]
    canvas = np.full((LABEL + height, 2 * PANEL[0] + GAP, 3), 255, np.uint8)
    for panel, left in zip(panels, (0, PANEL[0] + GAP), strict=True):
        canvas[LABEL:, left : left + panel.shape[1]] = panel
    labels = (
        f"{index}  “{words.text[index]}”  recorded, {strokes_of(len(reference))}",
        f"recovered, {strokes_of(len(found))}, DTW {row['dtw']:.4f}",
    )
    drawn = Image.fromarray(canvas)
    for label, left in zip(labels, (0, PANEL[0] + GAP), strict=True):
        ImageDraw.Draw(drawn).text((left + 2, 3), label, fill=(40, 40, 40), font=ImageFont.load_default(13))
    return np.asarray(drawn)


def strokes_of(count: int) -> str:
    return f"{count} stroke" + ("" if count == 1 else "s")


def sheet(rows: list[np.ndarray]) -> Image.Image:
    """Stack the rows, with a rule between them, in few colours."""
    rule = np.full((GAP, rows[0].shape[1], 3), 255, np.uint8)
    rule[GAP // 2] = 200
    stacked = [part for row in rows for part in (row, rule)][:-1]
    return Image.fromarray(np.concatenate(stacked)).quantize(COLORS, dither=Image.Dither.NONE)


def overlay(image: np.ndarray, strokes: list[np.ndarray], factor: float) -> np.ndarray:
    """Return the faded picture, resized, with the strokes on it in the order of their writing."""
    size = tuple(max(round(n * factor), 1) for n in image.shape[1::-1])
    gray = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    # Noise and shadows do not compress and show nothing here: a smooth picture in few greys lies below.
    smooth = cv2.GaussianBlur(cv2.resize(gray, size, interpolation=cv2.INTER_AREA), (0, 0), 1.0).astype(np.float32)
    paper = cv2.GaussianBlur(cv2.dilate(smooth, np.ones((25, 25))), (0, 0), 8)
    depth = np.maximum(paper - smooth, 0)
    faded = 255 - 16 * np.round(np.clip(1.3 * depth / max(np.percentile(depth, 99), 1) - 0.3, 0, 1) * 5)
    canvas = cv2.resize(faded.astype(np.uint8), None, fx=SCALE, fy=SCALE, interpolation=cv2.INTER_LINEAR)
    canvas = cv2.cvtColor(canvas, cv2.COLOR_GRAY2RGB)
    canvas = cv2.copyMakeBorder(canvas, *[PAD * SCALE] * 4, cv2.BORDER_CONSTANT, value=(255, 255, 255))
    scaled = [(np.asarray(s) + 0.5) * factor * SCALE - 0.5 + PAD * SCALE for s in strokes]
    colors = colors_along(scaled)
    for stroke, some in zip(scaled, colors, strict=True):
        draw_stroke(canvas, stroke, some)
    for number, (stroke, some) in enumerate(zip(scaled, colors, strict=True), 1):
        draw_number(canvas, number, stroke, some[0])
    return cv2.resize(canvas, None, fx=1 / SCALE, fy=1 / SCALE, interpolation=cv2.INTER_AREA)


def colors_along(strokes: list[np.ndarray]) -> list[np.ndarray]:
    """Return RGB colours for each point, by the pen's way so far: violet to a dark yellow, as `Ink.to_svg` has them."""
    steps = [np.concatenate([[0.0], np.hypot(*np.diff(s, axis=0).T)]) for s in strokes]
    far = np.cumsum(np.concatenate([*steps, np.zeros(0)]))
    share = far / max(far[-1], 1e-9) if len(far) else far
    hls = np.stack([(275 - 225 * share) / 2, 255 * (0.38 + 0.06 * share), np.full(len(share), 0.8 * 255)], axis=1)
    rgb = cv2.cvtColor(np.rint(hls)[:, None].astype(np.uint8), cv2.COLOR_HLS2RGB)[:, 0] if len(far) else hls
    return np.split(rgb, np.cumsum([len(s) for s in strokes])[:-1]) if strokes else []


def draw_stroke(canvas: np.ndarray, stroke: np.ndarray, colors: np.ndarray) -> None:
    """Draw one stroke with arrowheads along it; a dot as a disc."""
    at = [tuple(p) for p in np.rint(stroke * 16).astype(int).tolist()]
    cv2.circle(canvas, at[0], round(1.3 * LINE * SCALE * 16), colors[0].tolist(), -1, cv2.LINE_AA, 4)
    for i, (a, b) in enumerate(pairwise(at)):
        cv2.line(canvas, a, b, colors[i].tolist(), round(LINE * SCALE), cv2.LINE_AA, 4)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(stroke, axis=0).T))])
    every = ARROWS_EVERY * SCALE
    for far in np.arange(min(0.5 * every, 0.6 * along[-1]), along[-1], every):
        tip, tail = ([np.interp(x, along, stroke[:, k]) for k in (0, 1)] for x in (far, far - 0.15 * every))
        way = np.subtract(tip, tail)
        length = np.hypot(*way)
        if length < 1:
            continue
        way *= ARROW * SCALE / length
        side = 0.6 * np.array([-way[1], way[0]])
        head = np.rint(np.array([tip + way, tip - 0.5 * way + side, tip - 0.5 * way - side]) * 16).astype(np.int32)
        cv2.fillPoly(canvas, [head], colors[np.searchsorted(along, far)].tolist(), cv2.LINE_AA, 4)


def draw_number(canvas: np.ndarray, number: int, stroke: np.ndarray, color: np.ndarray) -> None:
    """Write the stroke's number beside its beginning, away from where it goes, on a white rim."""
    text, font, size = str(number), cv2.FONT_HERSHEY_SIMPLEX, 0.38 * SCALE
    (width, height), _ = cv2.getTextSize(text, font, size, SCALE)
    ahead = stroke[min(len(stroke) - 1, 5)] - stroke[0]
    ahead = ahead / np.hypot(*ahead) if np.hypot(*ahead) > 0 else np.array([0.0, 1.0])
    middle = stroke[0] - ahead * (0.6 * max(width, height) + 2 * SCALE)
    corner = middle + np.array([-width / 2, height / 2])
    corner = np.clip(corner, (SCALE, height + SCALE), (canvas.shape[1] - width - SCALE, canvas.shape[0] - SCALE))
    place = tuple(np.rint(corner).astype(int).tolist())
    cv2.putText(canvas, text, place, font, size, (255, 255, 255), 4 * SCALE, cv2.LINE_AA)
    cv2.putText(canvas, text, place, font, size, (color * 0.75).tolist(), round(1.3 * SCALE), cv2.LINE_AA)
