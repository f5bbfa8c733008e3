"""Recorded words, and how they become pictures of ink.

The archive's form is described where it is read, `Words`. The word's place in the archive seeds its picture, so that
every figure can be made again.
"""

from __future__ import annotations

import itertools
import zipfile
from pathlib import Path

import cv2
import numpy as np

from inktraj.errors import DataError

SUPERSAMPLING = 4
MARGIN = 8


class Words:
    """The packed archive of recorded words.

    Raises
    ------
    DataError
        The file is missing or is no such archive.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._read(path)
        except OSError as err:
            raise DataError(f"the recorded words {path} cannot be read: {err.strerror or err}") from err
        except (ValueError, KeyError, AttributeError, TypeError, zipfile.BadZipFile) as err:
            raise DataError(f"{path} is no archive of recorded words (.npz with delta, split, text …): {err}") from err

    def _read(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as archive:
            self.points = np.cumsum(archive["delta"], axis=0, dtype=np.int16).astype(np.float64)
            self.stroke_offsets = archive["stroke_offsets"].astype(np.int64)
            self.word_offsets = archive["word_offsets"].astype(np.int64)
            self.split, self.style, self.text = archive["split"], archive["style"], archive["text"]

    def strokes(self, word: int) -> list[np.ndarray]:
        """The word's strokes, arrays (n, 2) in archive units."""
        marks = self.stroke_offsets[self.word_offsets[word] : self.word_offsets[word + 1] + 1]
        return [self.points[a:b] for a, b in itertools.pairwise(marks) if b > a]

    def choose(self, split: str, style: str | None, limit: int | None, seed: int = 0) -> np.ndarray:
        """Indices of the wanted words: a seeded choice of `limit`, in archive order."""
        wanted = self.split == split
        if style:
            wanted = wanted & (self.style == style)
        indices = np.flatnonzero(wanted)
        if limit and limit < len(indices):
            indices = np.sort(np.random.default_rng(seed).choice(indices, limit, replace=False))
        return indices


def place(
    strokes: list[np.ndarray], rng: np.random.Generator, height: float | None = None
) -> tuple[list[np.ndarray], tuple[int, int]]:
    """Scale the word to its height in pixels; returns strokes (pixel centres at integers) and (width, height)."""
    points = np.concatenate(strokes)
    low = points.min(0)
    size = np.maximum(points.max(0) - low, 1e-6)
    height = rng.uniform(64, 128) if height is None else height
    scale = min(height / size[1], 1600 / size[0])
    if size[1] < 0.02 * size[0]:  # a dash: by height it would become a wall
        scale = 400 / size[0]
    width, height = (int(np.ceil(v * scale)) + 2 * MARGIN for v in size)
    return [(s - low) * scale + MARGIN for s in strokes], (width, height)


def draw(
    strokes: list[np.ndarray],
    size: tuple[int, int],
    rng: np.random.Generator,
    *,
    pen: float | None = None,
    blur: float | None = None,
    noise: float | None = None,
) -> np.ndarray:
    """Draw strokes with a round antialiased pen: (h, w) uint8, dark ink on light grey, blurred, with noise.

    The pen's width, the blur's and the noise's standard deviation (pixels, pixels, grey levels) are drawn at random
    where they are not given.
    """
    s, bits = SUPERSAMPLING, 3
    canvas = np.zeros((size[1] * s, size[0] * s), np.uint8)
    pen = rng.uniform(3, 5) if pen is None else pen
    for stroke in strokes:
        at = np.int32(np.round((stroke * s + (s - 1) / 2) * (1 << bits)))
        phase = rng.uniform(0, 2 * np.pi)
        if np.ptp(stroke, axis=0).max() < 1e-3:
            cv2.circle(canvas, at[0].tolist(), int(pen * s * 0.55 * (1 << bits)), 255, -1, cv2.LINE_8, bits)
            continue
        along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(stroke, axis=0).T))])
        width = np.maximum(1, np.round(pen * s * (1 + 0.1 * np.sin(phase + along / 40)))).astype(int)
        cuts = np.flatnonzero(np.diff(width[:-1])) + 1
        for a, b in zip([0, *cuts], [*cuts, len(stroke) - 1], strict=True):
            cv2.polylines(canvas, [at[a : b + 1]], False, 255, int(width[a]), cv2.LINE_8, bits)
    image = cv2.resize(canvas, size, interpolation=cv2.INTER_AREA).astype(np.float32)
    image = 235 - 0.88 * rng.uniform(0.75, 1.0) * image
    blur = rng.uniform(0.4, 0.9) if blur is None else blur
    if blur > 0:
        image = cv2.GaussianBlur(image, (0, 0), blur)
    image += rng.normal(0, rng.uniform(1, 6) if noise is None else noise, image.shape)
    return np.clip(np.round(image), 0, 255).astype(np.uint8)


def photograph(
    strokes: list[np.ndarray], rng: np.random.Generator, *, pen: float | None = None, severity: float | None = None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Photograph strokes on the page generator's paper: (h, w, 3) uint8 RGB, and the strokes in its pixels.

    The word lies somewhere on a page on which it has an ordinary height; light and perspective are the page's, and the
    picture is cut around the word as segmentation would cut it, and has been a JPEG. There is no ruling, as a page's
    ruling is removed before recovery, no desk, and no writing that shines through. The pen's width (pixels) and the
    severity (0 a good scan, 1 a careless photo) are drawn at random where they are not given.
    """
    from pagegen.photo import Style, camera, covered, exposed, inked, light, paper, project
    from pagegen.sheet import Sheet, Word

    pen = rng.uniform(3, 5) if pen is None else pen
    severity = rng.uniform() if severity is None else severity
    points = np.concatenate(strokes)
    extent = np.ptp(points, axis=0)
    page_width = int(max(1240 * max(extent[1], 40) / 60, 1.4 * extent[0], 600))
    page = page_width, max(int(page_width * 2**0.5), int(1.4 * extent[1]))
    corner = np.round(rng.uniform(0.08, 0.92, 2) * (page - extent - 0.16 * np.array(page)) + 0.08 * np.array(page))
    widths = [_pen_along(s, pen, rng) for s in strokes]
    style, matrix = Style.draw(rng, severity, "none"), camera(Sheet(page, 1, 0, 0), page, severity, rng)
    word = project(Word("", "", [s - points.min(0) + corner for s in strokes], widths), matrix)

    seen = np.concatenate(word.strokes)
    left, top = np.floor(seen.min(0)).astype(int) - MARGIN
    size = tuple((np.ceil(seen.max(0)).astype(int) + MARGIN + 1 - (left, top)).tolist())
    word = Word("", "", [s - (left, top) for s in word.strokes], word.widths)
    # Only the part of the page that is seen is made; it keeps its place in the page's light and perspective.
    reach = np.float64([[[left, top], [left + size[0], top], [left, top + size[1]], [left + size[0], top + size[1]]]])
    on_page = cv2.perspectiveTransform(reach, np.linalg.inv(matrix))[0]
    low, high = np.floor(on_page.min(0)).astype(int) - 2, np.ceil(on_page.max(0)).astype(int) + 2
    part = _moved(-left, -top) @ matrix @ _moved(*low)
    bare = paper(Sheet(tuple((high - low).tolist()), 1, 0, 0), style, rng)
    image = inked(
        cv2.warpPerspective(bare, part, size, borderMode=cv2.BORDER_REPLICATE), covered([word], size), style, rng
    )
    coarse = 8  # light is smooth
    field = light((page[0] // coarse, page[1] // coarse), severity, rng)
    there = np.array([[1 / coarse, 0, left / coarse], [0, 1 / coarse, top / coarse]])
    brightness = cv2.warpAffine(
        field, there, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, borderMode=cv2.BORDER_REPLICATE
    )
    photo = exposed(image, brightness, style, rng)
    jpeg = cv2.imencode(".jpg", photo[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, int(76 - 10 * severity)])[1]
    return np.ascontiguousarray(cv2.imdecode(jpeg, cv2.IMREAD_COLOR)[..., ::-1]), word.strokes


def _pen_along(stroke: np.ndarray, pen: float, rng: np.random.Generator) -> np.ndarray:
    """Pen width at each point, as `draw` has it: a slow variation; dots a little wider."""
    phase = rng.uniform(0, 2 * np.pi)
    if np.ptp(stroke, axis=0).max() < 1e-3:
        return np.full(len(stroke), 1.1 * pen)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(stroke, axis=0).T))])
    return pen * (1 + 0.1 * np.sin(phase + along / 40))


def _moved(x: float, y: float) -> np.ndarray:
    """The (3, 3) map that adds x and y."""
    return np.array([[1, 0, x], [0, 1, y], [0, 0, 1]], np.float64)


def picture(
    words: Words, index: int, *, difficulty: str = "clean", height: float | None = None, **look: float
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The word as an image, and its recorded strokes in the image's pixels.

    A difficulty is "clean", `draw`, or "photo", `photograph`; `look` is handed to them.
    """
    rng = np.random.default_rng(index)
    strokes, size = place(words.strokes(index), rng, height)
    if difficulty == "photo":
        return photograph(strokes, rng, **look)
    return draw(strokes, size, rng, **look), strokes


def resample(stroke: np.ndarray, step: float) -> np.ndarray:
    """Points every `step` along the arc (nearly: the ends are kept)."""
    if len(stroke) < 2:
        return stroke
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(stroke, axis=0).T))])
    if along[-1] < 1e-9:
        return stroke[:1]
    at = np.linspace(0, along[-1], max(2, round(along[-1] / step) + 1))
    return np.stack([np.interp(at, along, stroke[:, 0]), np.interp(at, along, stroke[:, 1])], axis=1)
