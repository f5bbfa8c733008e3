"""Make the README's picture: an example page, the strokes recovered from it in their order, and the rendering.

    python pipelines/make_figures.py [--page examples/pages/page00.jpg] [--out docs/images/strokes.png]

Colour runs from violet, where a word begins, to yellow, where it ends; a dot marks where each stroke begins.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

import inktraj
from inktraj.ink import FloatArray, Ink
from inktraj.page import U8
from inktraj.pseudolabel import label_page

ROOT = Path(__file__).resolve().parent.parent
SCALE = 2  # the strokes are drawn so many times larger than the page, and then shrunk, to be smooth
COLORS = 256


def overlay(page: inktraj.Page, words: list[Ink], thickness: float = 2.6) -> U8:
    """Return the faded page ``(h, w, 3)`` with each word's strokes coloured by their order."""
    faded = 255 - (255 - page.pixels) // 4
    canvas = cv2.resize(faded, None, fx=SCALE, fy=SCALE, interpolation=cv2.INTER_CUBIC)
    ramp = color_ramp()
    for ink in words:
        steps = np.cumsum([0, *(len(s) for s in ink.strokes)])
        for start, stroke in zip(steps, ink.strokes, strict=False):
            points = on_canvas(stroke)
            for i, (a, b) in enumerate(pairwise(points)):
                color = ramp[(start + i) * (COLORS - 1) // ink.n_points].tolist()
                cv2.line(canvas, a, b, color, round(thickness * SCALE), cv2.LINE_AA, 4)
            color = ramp[start * (COLORS - 1) // ink.n_points].tolist()
            cv2.circle(canvas, points[0], round(1.25 * thickness * SCALE * 16), color, -1, cv2.LINE_AA, 4)
    return np.asarray(cv2.resize(canvas, page.pixels.shape[1::-1], interpolation=cv2.INTER_AREA), dtype=np.uint8)


def on_canvas(stroke: FloatArray) -> list[tuple[int, int]]:
    """Return points in sixteenths of the enlarged picture's pixels, as OpenCV's `shift` has it."""
    return [(int(x), int(y)) for x, y in np.rint(((stroke + 0.5) * SCALE - 0.5) * 16)]


def color_ramp() -> U8:
    """Return `COLORS` RGB colours from violet to yellow, as `inktraj.ink.order_color` has them."""
    share = np.linspace(0, 1, COLORS)
    hls = np.stack([(275 - 225 * share) / 2, 255 * (0.38 + 0.12 * share), np.full(COLORS, 0.75 * 255)], axis=1)
    return np.asarray(cv2.cvtColor(np.rint(hls)[None].astype(np.uint8), cv2.COLOR_HLS2RGB)[0], dtype=np.uint8)


def figure(page: inktraj.Page, box: tuple[float, float, float, float], width: int) -> U8:
    """Return page, overlay and rendering below each other, the part `box` of each.

    `box` is left, top, right and bottom as shares of the page; the picture is `width` px wide.
    """
    done = label_page(page)
    if done.rendering is None:
        raise SystemExit(f"{page.source}: {done.label.reason}")
    drawn = np.asarray(cv2.cvtColor(done.rendering, cv2.COLOR_GRAY2RGB), dtype=np.uint8)
    panels = [page.pixels, overlay(page, [word.ink for word in done.label.words]), drawn]
    x0, y0, x1, y1 = np.rint(np.multiply(box, [page.width, page.height] * 2)).astype(int)
    panels = [panel[y0:y1, x0:x1] for panel in panels]
    scale = width / panels[0].shape[1]
    panels = [cv2.resize(panel, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) for panel in panels]
    return np.vstack(panels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, default=ROOT / "examples/pages/page00.jpg")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images/strokes.png")
    parser.add_argument("--box", type=float, nargs=4, default=(0.12, 0.09, 0.95, 0.2615), metavar="SHARE")
    parser.add_argument("--width", type=int, default=900, help="in pixels")
    args = parser.parse_args()
    picture = figure(inktraj.Page.open(args.page), tuple(args.box), args.width)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    # Paper grain does not compress: six bits of each colour halve the file.
    Image.fromarray(picture & 0xFC | picture >> 6).save(args.out, optimize=True)
    print(f"{args.out}: {picture.shape[1]}×{picture.shape[0]} px, {args.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
