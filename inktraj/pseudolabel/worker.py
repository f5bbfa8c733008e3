"""Does pages, one after another: in a process of its own, or in this one.

The process (`main`) reads a `Start` and then tasks from standard input and answers on standard output, pickled.
It is started by `inktraj.pseudolabel.pool` as a plain program, so that neither notebooks nor scripts need a guard
around their main part, and so that its thread limits are set before anything is imported.
"""

from __future__ import annotations

import os
import pickle
import random
import re
import signal
import sys
import threading
import time
import traceback
import zlib
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np

from inktraj.errors import DataError, InktrajError
from inktraj.io.images import Source, digest, load
from inktraj.page import Page
from inktraj.pseudolabel.folder import IMAGES, INKS, PREVIEWS
from inktraj.pseudolabel.label import Labelled, label_page
from inktraj.pseudolabel.parts import PartNames, Parts
from inktraj.pseudolabel.record import PseudoLabel

PREVIEW_SIDE = 1200
"""Longer side in pixels of the page's picture that is kept for the report."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Start:
    """What a worker needs to know once."""

    names: PartNames
    threshold: float
    seed: int


@dataclass(frozen=True, slots=True)
class Done:
    """A page that was done, ready to be written.

    Parameters
    ----------
    files
        Contents by folder (`IMAGES`, `INKS`, `PREVIEWS`); none of them on failure.
    record
        The page's record with its timings and, where a stage broke, the traceback. Their sizes come to it when
        they are written.
    peak_mb
        Peak memory of the process so far, in 10⁶ bytes; None where the system does not tell.
    """

    files: dict[str, bytes]
    record: dict[str, Any]
    peak_mb: float | None


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker's first answer: its parts are loaded."""


@dataclass(frozen=True, slots=True)
class CannotStart:
    """A worker's first and last answer: a part is missing or broken."""

    reason: str


class PageWorker:
    """Turns sources into finished pages, with parts loaded once."""

    def __init__(self, start: Start, parts: Parts) -> None:
        self._start = start
        self._parts = parts

    def __call__(self, source: Source) -> Done:
        """Load and label one page; bad pages give a failed record."""
        # Whatever draws random numbers draws the same ones for a page, wherever and whenever it is done.
        seed = zlib.crc32(f"{self._start.seed}:{source.id}".encode())
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - a part may use the global generator
        stage = "load"
        begin = time.perf_counter()
        try:
            image = load(source)
            seconds = time.perf_counter() - begin
            page = Page(image.pixels, id=source.id, source=source.name, sha256=image.sha256)
            done = label_page(page, threshold=self._start.threshold, parts=self._parts)
            done.timings = {"load": seconds, **done.timings}
            stage = "encode"
            return finished(done, page)
        except (InktrajError, MemoryError) as err:
            return finished(Labelled(failed(source, f"{stage}: {err or 'out of memory'}")))
        except Exception as err:
            # A hole in the reader or a writer must not end the run; the traceback goes with the record.
            label = failed(source, f"{stage}: {type(err).__name__}: {err}")
            return finished(Labelled(label, trace=traceback.format_exc()))


def failed(source: Source, reason: str) -> PseudoLabel:
    """Return the record of a page that could not even be opened, or whose worker died."""
    try:
        sha256 = digest(source)
    except (InktrajError, OSError):
        sha256 = ""
    return PseudoLabel(source.id, source.name, sha256, "failed", reason)


def finished(done: Labelled, page: Page | None = None) -> Done:
    """Encode what is to be written."""
    begin = time.perf_counter()
    files: dict[str, bytes] = {}
    if page is not None:
        files[PREVIEWS] = preview(page)
    if done.rendering is not None:
        files[IMAGES] = _encoded(".png", done.rendering)
        files[INKS] = inkml(done.label)
    timings = {**done.timings, "encode": time.perf_counter() - begin}
    record = {
        "page": done.label.to_json(),
        "timings": {stage: round(seconds, 4) for stage, seconds in timings.items()},
        "traceback": done.trace,
    }
    return Done(files, record, _peak_mb())


def inkml(label: PseudoLabel) -> bytes:
    """Return the page's strokes as InkML, one trace group for each word."""
    from inktraj.io import InkRecord, write_ink

    records = [
        InkRecord(word.id, word.ink, _NOT_XML.sub("\ufffd", word.text), {"page": label.page_id}) for word in label.words
    ]
    out = BytesIO()
    write_ink(out, records, "inkml")
    return out.getvalue()


def preview(page: Page) -> bytes:
    """Return a small JPEG of the page for the report."""
    import cv2

    scale = PREVIEW_SIDE / max(page.width, page.height)
    pixels = page.pixels
    if scale < 1:
        size = (max(1, round(page.width * scale)), max(1, round(page.height * scale)))
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    return _encoded(".jpg", pixels[..., ::-1], (cv2.IMWRITE_JPEG_QUALITY, 70))


def _encoded(suffix: str, pixels: Any, options: tuple[int, ...] = ()) -> bytes:
    import cv2

    ok, data = cv2.imencode(suffix, pixels, options)
    if not ok:
        raise DataError(f"pixels of shape {pixels.shape} cannot be written as {suffix}")
    return bytes(data.tobytes())


def _peak_mb() -> float | None:
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)


def main() -> None:
    """Serve tasks until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not end up among the replies
    tasks = sys.stdin.buffer
    sys.path[:] = pickle.load(tasks)
    try:
        start: Start = pickle.load(tasks)
        worker = PageWorker(start, start.names.load())
    except Exception as err:
        known = isinstance(err, InktrajError)
        _send(replies, CannotStart(str(err) if known else f"{type(err).__name__}: {err}"))
        return
    import cv2

    cv2.setNumThreads(1)
    _send(replies, Ready())
    while True:
        try:
            source = pickle.load(tasks)
        except EOFError:
            return
        _send(replies, worker(source))


def _end_with_parent(parent: int) -> None:
    """End this process soon after its parent was killed, also in the middle of a page that nobody waits for."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _send(replies: BinaryIO, message: object) -> None:
    pickle.dump(message, replies, protocol=pickle.HIGHEST_PROTOCOL)
    replies.flush()
