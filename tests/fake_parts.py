"""Quick stand-ins for the pipeline's parts, importable by name in worker processes.

Pages for them are dark bars on white. A bar of grey level `KILLS`, `BREAKS` or `REFUSES` makes the recoverer end
its process, fail, or raise a DataError; at `WAITS` it waits for the file that FAKE_PARTS_GATE names.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np

from inktraj.clean import Cleaned
from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.ocr import Reading
from inktraj.page import Line, WordCrop
from inktraj.recovery import Candidate
from inktraj.segmentation import Segmentation

KILLS, BREAKS, WAITS, REFUSES = 11, 22, 33, 44


def box(x0, y0, x1, y1):
    return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], dtype=np.float64)


class Bars:
    """One line; each run of columns with ink is a word."""

    name, version = "bars", "1"

    def __call__(self, page):
        gray = page.pixels.min(axis=2)
        ink = gray < 128
        columns = np.flatnonzero(np.diff(np.r_[False, ink.any(axis=0), False].astype(int)))
        words = []
        for i, (x0, x1) in enumerate(columns.reshape(-1, 2)):
            rows = np.flatnonzero(ink[:, x0:x1].any(axis=1))
            y0, y1 = rows[0], rows[-1] + 1
            to_page = np.array([[1, 0, x0], [0, 1, y0]], dtype=np.float64)
            crop = WordCrop(gray[y0:y1, x0:x1], ink[y0:y1, x0:x1], to_page, box(x0, y0, x1, y1), f"w{i}", 0, i)
            words.append(crop)
        cleaned = Cleaned(gray, ink, 4.0, 0.0)
        if not words:
            return Segmentation((), cleaned)
        outline = box(0, 0, page.width, page.height)
        baseline = np.array([(0, page.height - 5), (page.width, page.height - 5)], dtype=np.float64)
        return Segmentation((Line(outline, baseline, tuple(words), 0, 20.0),), cleaned)


class Middle:
    """Two strokes along the bar's middle, the second one a dot, as wide as the bar is high."""

    name, version = "middle", "1"

    def __call__(self, crop, *, text=None, n_best=1):
        level = int(crop.image[crop.mask].min())
        if level == KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        if level == BREAKS:
            raise ZeroDivisionError("a fault in the recoverer")
        if level == REFUSES:
            raise DataError("this word cannot be recovered")
        while level == WAITS and not os.path.exists(os.environ["FAKE_PARTS_GATE"]):
            time.sleep(0.02)
        height, width = crop.image.shape
        y, r = (height - 1) / 2, height / 2
        strokes = [[(r - 0.5, y), (max(width - r - 0.5, r), y)], [(r - 0.5, y)]]
        widths = [[height, height], [height]]
        return [Candidate(Ink(strokes, crop.frame, widths), 0.5)]


class Middle2(Middle):
    version = "2"


class Parrot:
    """Reads the same in every picture, so that page and rendering agree."""

    name, version = "parrot", "1"

    def __call__(self, images):
        return [Reading("ink <script>alert(1)</script>", 1.0) for _ in images]


class Moody(Parrot):
    """Reads what differs between original (colour) and rendering (grey): nothing agrees."""

    name = "moody"

    def __call__(self, images):
        return [Reading("colour" if image.ndim == 3 else "grey", 1.0) for image in images]


class DiesInWorkers(Parrot):
    """Can be made in the process whose id the environment names, and ends any other."""

    name = "mortal"

    def __init__(self):
        if os.environ["FAKE_PARTS_HOME"] != str(os.getpid()):
            print("no luck", file=sys.stderr, flush=True)
            os._exit(3)


class Broken:
    """A recogniser that cannot be made."""

    name, version = "broken", "1"

    def __init__(self):
        raise OSError("no model file")
