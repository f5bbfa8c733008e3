"""Make the demo data set: small photographed notes with the pen movement that wrote them.

    python pipelines/make_demo.py

writes examples/demo (pages.jsonl and images/, in the page form of docs/datasets.md) and data_manifests/demo.toml with
their digests. Made anew, the pages are the same up to the last digits of NumPy's and OpenCV's versions. Needs the
`pages` extra.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from make_pages import make_page

from inktraj.datasets.writing import IMAGES, Word, json_line, page_record
from inktraj.ink import Frame, Ink

ROOT = Path(__file__).resolve().parents[1]
SEED = 5
SIZE = (1000, 720)

# Texts of our own; on each page some word comes twice, so that it must be told which one is meant.
NOTES = (
    (
        "script",
        "lines",
        "Dear Nora,\nthe plums were as sweet as last year, and the jam is as red as wine. I kept a jar for you.\n"
        "Love, Edith",
    ),
    (
        "print",
        "none",
        "Bus 14 leaves at 8:25 from the old bridge.\nTake the path by the river, not the road. Ring me at the gate!",
    ),
    (
        "script",
        "squares",
        "Happy birthday, my friend!\nMay every day of the year be as kind to you as you are to me.\nYour Martin",
    ),
    (
        "print",
        "lines",
        "Soup for six: two leeks, four carrots, half a celery.\nSalt to taste and cook for half an hour. Serve hot.",
    ),
)

MANIFEST = """\
name = "demo"
version = "1"
title = "Made notes with their true pen movement, shipped with the package"
layout = "pages"
references = "recorded"
licence = "Apache-2.0; letters after the Hershey fonts, whose notice is in the set's README.md"
citation = "inktraj, pipelines/make_demo.py"
url = ""
notes = "Nobody wrote these pages: figures on them try the way from model to table and say little of real handwriting."

[statistics]
pages = {pages}
words = {words}
strokes = {strokes}

[[files]]
path = "README.md"
count = 1
{files}"""


def make(number: int) -> tuple[bytes, dict, list[Word]]:
    """Return a page's JPEG, its truth as the page generator tells it, and its words."""
    face, ruling, text = NOTES[number]
    severity = number / (len(NOTES) - 1)
    photo, truth, quality = make_page(
        SEED, number, size=SIZE, severity=0.8 * severity, face=face, ruling=ruling, text=text
    )
    jpeg = cv2.imencode(".jpg", photo[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()
    frame = Frame(*map(float, SIZE))
    words = [
        Word(
            f"w{i:02d}",
            word["text"],
            Ink.from_xys(word["strokes"], frame),
            int(word["line"][1:]),
            np.array(word["polygon"]),
        )
        for i, word in enumerate(truth["words"])
    ]
    return jpeg, truth, words


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "examples" / "demo", help="folder of the data set")
    parser.add_argument("--manifest", type=Path, default=ROOT / "data_manifests" / "demo.toml")
    options = parser.parse_args(arguments)
    (options.out / IMAGES).mkdir(parents=True, exist_ok=True)
    lines, files, counts = [], {}, {"words": 0, "strokes": 0}
    for number in range(len(NOTES)):
        jpeg, _, words = make(number)
        image = f"{IMAGES}/note{number + 1}.jpg"
        (options.out / image).write_bytes(jpeg)
        digest = files[image] = hashlib.sha256(jpeg).hexdigest()
        lines.append(
            json_line(page_record(f"note{number + 1}", image, digest, SIZE, words, writer=f"hand{number + 1}"))
        )
        counts["words"] += len(words)
        counts["strokes"] += sum(len(word.ink.strokes) for word in words)
        print(f"{image}: {len(words)} words, {len(jpeg) // 1000} kB")
    pages = "".join(lines).encode()
    (options.out / "pages.jsonl").write_bytes(pages)
    files["pages.jsonl"] = hashlib.sha256(pages).hexdigest()
    rules = "".join(f'\n[[files]]\npath = "{path}"\nsha256 = "{digest}"\n' for path, digest in files.items())
    text = MANIFEST.format(pages=len(NOTES), **counts, files=rules)
    options.manifest.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
