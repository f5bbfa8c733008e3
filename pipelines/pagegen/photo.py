"""Taking the picture: paper, ruling, perspective, ink, light, lens, sensor."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from inktraj.ink import Frame, Ink
from inktraj.rendering import render
from pagegen.sheet import Sheet, Word

INKS = ((38, 44, 92), (28, 30, 36), (30, 52, 110), (24, 34, 60), (84, 84, 88))  # blue, black, royal, blue-black, pencil
PAPERS = ((244, 241, 232), (238, 238, 236), (246, 238, 214), (236, 230, 214))
DESKS = ((92, 70, 52), (60, 62, 66), (140, 118, 92))


@dataclass(frozen=True)
class Style:
    """How a page looks; `severity` from 0 (a good scan) to 1 (a careless photo)."""

    severity: float
    ruling: str
    ink: tuple[int, int, int]
    paper: tuple[int, int, int]
    desk: tuple[int, int, int]

    @classmethod
    def draw(cls, rng: np.random.Generator, severity: float, ruling: str) -> Style:
        """Draw ink, paper and desk for a severity and a ruling."""
        pick = [options[rng.integers(len(options))] for options in (INKS, PAPERS, DESKS)]
        return cls(severity, ruling, *pick)


def noise(size: tuple[int, int], sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Return smooth noise ``(height, width)`` float32 of unit variance and about `sigma` pixels' grain."""
    width, height = size
    shrink = max(1, int(sigma / 2))
    small = rng.standard_normal((height // shrink + 8, width // shrink + 8), dtype=np.float32)
    small = cv2.GaussianBlur(small, (0, 0), sigma / shrink) if sigma >= 0.5 else small
    small /= small.std() + 1e-9
    return small[:height, :width] if shrink == 1 else cv2.resize(small, size, interpolation=cv2.INTER_CUBIC)


def paper(sheet: Sheet, style: Style, rng: np.random.Generator) -> np.ndarray:
    """Return the bare sheet ``(h, w, 3)`` float32 RGB: fibres, clouds, ruling and margin line."""
    rough = 1 + 1.5 * style.severity
    grain = sum(rough * a * noise(sheet.size, s, rng) for a, s in ((0.4, 0.8), (0.6, 2.5), (0.8, 12.0), (1.6, 90.0)))
    image = np.array(style.paper, dtype=np.float32) + grain[..., None] * np.array([1, 1, 1.15], dtype=np.float32)
    width, height = sheet.size
    strength = 0.35 + 0.25 * style.severity
    step = sheet.pitch if style.ruling == "lines" else sheet.pitch / 3
    color = np.array([128, 158, 196], dtype=np.float32)
    if style.ruling != "none":
        _rule(image, 0, np.arange(sheet.first % step, height, step), strength, color)
    if style.ruling == "squares":
        _rule(image, 1, np.arange(sheet.margin % step, width, step), strength, color)
    if style.ruling == "lines":
        _rule(image, 1, np.array([sheet.margin]), strength * 1.3, np.array([214, 98, 104], dtype=np.float32))
    return image


def _rule(image: np.ndarray, axis: int, at: np.ndarray, strength: float, color: np.ndarray) -> None:
    """Print lines 1.6 px wide across rows (axis 0) or columns (axis 1) at the given places."""
    distance = np.abs(np.arange(image.shape[axis], dtype=np.float32)[:, None] - at).min(axis=1)
    share = (strength * np.clip(1.3 - distance, 0, 1)).astype(np.float32)
    share = share[:, None, None] if axis == 0 else share[None, :, None]
    image += share * (color - image)


def camera(sheet: Sheet, size: tuple[int, int], severity: float, rng: np.random.Generator) -> np.ndarray:
    """Return the ``(3, 3)`` map from the sheet's pixels to the photo's."""
    width, height = size
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=np.float64)
    angle = rng.normal(0, 0.004 + 0.016 * severity)
    inset = rng.uniform(-0.015, 0.005 + 0.045 * severity, (4, 2)) * (1 - 2 * corners)
    target = (corners + inset) * size
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    target = (target - (width / 2, height / 2)) @ turn.T + (width / 2, height / 2)
    source = corners * sheet.size
    return cv2.getPerspectiveTransform(source.astype(np.float32), target.astype(np.float32))


def project(word: Word, matrix: np.ndarray) -> Word:
    """Return the word in the photo's pixels; the pen's width scales with the sheet around the word."""
    points = np.concatenate(word.strokes)
    homogeneous = np.column_stack([points, np.ones(len(points))]) @ matrix.T
    depth = homogeneous[:, 2:]
    scale = np.sqrt(abs(np.linalg.det(matrix)) / np.abs(depth[:, 0]) ** 3)  # the map's local change of area
    ends = np.cumsum([len(s) for s in word.strokes])[:-1]
    widths = np.concatenate(word.widths) * scale
    return Word(word.line, word.text, np.split(homogeneous[:, :2] / depth, ends), np.split(widths, ends))


def light(size: tuple[int, int], severity: float, rng: np.random.Generator) -> np.ndarray:
    """Return the brightness ``(h, w)`` float32, 1 at its best: a slope, a falling off, and a soft shadow."""
    width, height = size
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    x, y = x / width - 0.5, y / height - 0.5
    angle, fall = rng.uniform(0, 2 * np.pi), 0.05 + 0.16 * severity
    field = 1 - fall * (0.5 + x * np.cos(angle) + y * np.sin(angle)) - (0.04 + 0.16 * severity) * (x * x + y * y)
    if severity > 0.2:
        turn = rng.uniform(0, 2 * np.pi)
        edge = x * np.cos(turn) + y * np.sin(turn) - rng.uniform(0.12, 0.3) + 0.03 * np.sin(9 * (x - y) + turn)
        field *= 1 - (0.1 + 0.35 * severity) / (1 + np.exp(-edge * rng.uniform(25, 60)))
    return field.astype(np.float32)


def covered(words: list[Word], size: tuple[int, int]) -> np.ndarray:
    """Return the share of each pixel ``(h, w)`` float32 that ink covers."""
    strokes, widths = [s for w in words for s in w.strokes], [v for w in words for v in w.widths]
    drawn = render(Ink(strokes, Frame(*map(float, size)), widths), widths="local")
    return (255 - drawn.astype(np.float32)) / 255


def inked(image: np.ndarray, cover: np.ndarray, style: Style, rng: np.random.Generator) -> np.ndarray:
    """Put ink on the picture, a little unevenly, by the share ``(h, w)`` that it covers; the picture itself changes."""
    size = cover.shape[::-1]
    flow = np.clip(0.9 + 0.05 * noise(size, 25.0, rng) + 0.05 * noise(size, 1.2, rng), 0.6, 1.0)
    image += (cover * flow)[..., None] * (np.array(style.ink, np.float32) - image)
    return image


def exposed(image: np.ndarray, brightness: np.ndarray, style: Style, rng: np.random.Generator) -> np.ndarray:
    """Return the picture ``(h, w, 3)`` uint8 under that brightness ``(h, w)``, behind the lens and on the sensor."""
    size = brightness.shape[::-1]
    image *= brightness[..., None] * np.array(rng.uniform(0.97, 1.0, 3), np.float32)
    image = cv2.GaussianBlur(image, (0, 0), 0.55 + 0.75 * style.severity)
    sensor = noise(size, 0.6, rng)[..., None] + 0.5 * np.stack([noise(size, 0.9, rng) for _ in range(3)], axis=-1)
    image += (0.8 + 2.4 * style.severity) * sensor
    return np.clip(np.round(image), 0, 255).astype(np.uint8)


def take(sheet: Sheet, style: Style, size: tuple[int, int], rng: np.random.Generator):
    """Return the photo ``(h, w, 3)`` uint8 RGB and the sheet's words and marks in its pixels."""
    matrix = camera(sheet, size, style.severity, rng)
    words = [project(word, matrix) for word in sheet.words]
    marks = [project(word, matrix) for word in sheet.marks]
    bare = cv2.warpPerspective(paper(sheet, style, rng), matrix, size, flags=cv2.INTER_LINEAR)
    on_sheet = cv2.warpPerspective(np.ones(sheet.size[::-1], np.float32), matrix, size, flags=cv2.INTER_LINEAR)
    desk = (
        np.array(style.desk, np.float32) + 5 * noise(size, 3.0, rng)[..., None] + 8 * noise(size, 40.0, rng)[..., None]
    )
    contact = cv2.GaussianBlur(on_sheet, (0, 0), 7)[..., None]  # the sheet darkens the desk beside it
    image = bare + (1 - on_sheet)[..., None] * desk * (1 - 0.6 * contact)

    color = np.array(style.ink, np.float32)
    if style.severity > 0.8:  # the other side's writing shines through, mirrored and blurred
        back = cv2.GaussianBlur(covered([*words, *marks], size)[:, ::-1], (0, 0), 2.5)[..., None]
        image += 0.13 * back * on_sheet[..., None] * (color - image)
    image = inked(image, covered([*words, *marks], size), style, rng)
    return exposed(image, light(size, style.severity, rng), style, rng), words, marks
