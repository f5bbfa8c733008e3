"""Make photo-like handwritten pages with their true pen movement.

    python pipelines/make_pages.py --out DIR --pages 4 --seed 7

writes page00.jpg … and truth.json (the form is described in docs/examples.md). The same seed, page number and
options give the same page. Needs the `pages` extra.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from pagegen.hand import FACES, Hand
from pagegen.notes import NOTES
from pagegen.photo import Style, take
from pagegen.sheet import Sheet, Word, lay_out, specks, strike_out

RULINGS = ("none", "lines", "squares")
DETAIL = 0.15  # px: points which the path does without at this tolerance are left out of truth.json


def make_page(
    seed: int,
    page: int,
    *,
    size: tuple[int, int] = (1240, 1754),
    severity: float | None = None,
    face: str | None = None,
    ruling: str | None = None,
    text: str | None = None,
) -> tuple[np.ndarray, dict, int]:
    """Return one page's photo ``(h, w, 3)`` uint8 RGB, its truth, and the JPEG quality to store it with.

    Without a severity, pages 0, 1, 2, 3 run from 0 to 1, and so on again.
    """
    rng = np.random.default_rng([seed, page])
    drawn_face, drawn_ruling = str(rng.choice(FACES, p=[0.6, 0.4])), str(rng.choice(RULINGS))
    severity = (page % 4) / 3 if severity is None else severity
    text = NOTES[(seed + page) % len(NOTES)] if text is None else text
    hand = Hand.draw(rng, face or drawn_face, jitter=0.7 + 0.7 * severity)
    scale = size[0] / 1240 * rng.uniform(2.3, 2.7) * (0.9 if hand.face == "print" else 1.0)
    pen = size[0] / 1240 * rng.uniform(2.8, 3.6)
    sheet, scale = fitted(text, size, hand, scale, pen, rng)
    if severity > 0.5:
        strike_out(sheet, hand, scale, pen, rng)
    specks(sheet, int(2 + 8 * severity), pen, rng)
    photo, words, marks = take(sheet, Style.draw(rng, severity, ruling or drawn_ruling), size, rng)
    truth = {
        "image": f"page{page:02d}.jpg",
        "width": size[0],
        "height": size[1],
        "words": [word_truth(word) for word in words],
        "marks": [xys(mark) for mark in marks],
    }
    return photo, truth, int(76 - 10 * severity)


def fitted(text: str, size: tuple[int, int], hand: Hand, scale: float, pen: float, rng) -> tuple[Sheet, float]:
    """Lay the text out at the given scale, or at the greatest smaller one at which it fits; return that too."""
    while True:
        try:
            return lay_out(text, size, hand, scale, pen, rng), scale
        except ValueError:
            scale *= 0.93
            if scale * 9 < 3 * pen:  # small letters would close up
                raise


def xys(word: Word) -> list[list[float]]:
    """Return a word's points as [x, y, s], s = 1 at each stroke's start."""
    import shapely

    out = []
    for stroke in word.strokes:
        points = stroke
        if len(stroke) > 1:
            points = shapely.get_coordinates(shapely.LineString(stroke).simplify(DETAIL, preserve_topology=False))
        out += [[round(float(x), 1), round(float(y), 1), int(i == 0)] for i, (x, y) in enumerate(points)]
    return out


def word_truth(word: Word) -> dict:
    """Return a word's record: line, text, hull around its ink, points, and median pen width in pixels."""
    import shapely

    pen = float(np.median(np.concatenate(word.widths)))
    points = np.concatenate(word.strokes)
    reach = float(np.concatenate(word.widths).max()) / 2 + 1
    hull = shapely.MultiPoint(points).convex_hull.buffer(reach, quad_segs=2).simplify(0.5)
    return {
        "line": word.line,
        "text": word.text,
        "polygon": [[round(x, 1), round(y, 1)] for x, y in hull.exterior.coords[:-1]],
        "strokes": xys(word),
        "pen": round(pen, 2),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the pages; made where it is missing")
    parser.add_argument("--pages", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=1240, help="pixels; the height is √2 times as much")
    parser.add_argument("--severity", type=float, help="0 a good scan … 1 a careless photo; by default all in turn")
    parser.add_argument("--face", choices=FACES, help="by default drawn for each page")
    parser.add_argument("--ruling", choices=RULINGS, help="by default drawn for each page")
    parser.add_argument("--text", type=Path, help="a text file to write on every page; by default notes of our own")
    options = parser.parse_args(arguments)
    text = options.text.read_text(encoding="utf-8") if options.text else None
    if text is not None and not text.split():
        parser.error(f"{options.text} holds no words")
    options.out.mkdir(parents=True, exist_ok=True)
    size = (options.width, round(options.width * 2**0.5))
    look = {"severity": options.severity, "face": options.face, "ruling": options.ruling, "text": text}
    truths = []
    for page in range(options.pages):
        try:
            photo, truth, quality = make_page(options.seed, page, size=size, **look)
        except (LookupError, ValueError) as err:
            parser.error(str(err))
        data = cv2.imencode(".jpg", photo[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
        (options.out / truth["image"]).write_bytes(data.tobytes())
        truths.append(truth)
        print(f"{truth['image']}: {len(truth['words'])} words, {len(data) // 1000} kB")
    lines = ",\n".join(json.dumps(truth, separators=(",", ":"), ensure_ascii=False) for truth in truths)
    (options.out / "truth.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
