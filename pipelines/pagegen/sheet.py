"""A sheet of paper with writing on it: lines of words, and marks which are not words."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pagegen.hand import Hand, Stroke, resample, write

LOWEST = 0.95  # of the sheet's height: no line's base is lower


@dataclass(frozen=True)
class Word:
    """A word as it was written: strokes in pixels and the pen's width at each point."""

    line: str
    text: str
    strokes: list[Stroke]
    widths: list[np.ndarray]


@dataclass(frozen=True)
class Sheet:
    """The writing on a sheet of `size` (width, height) pixels, and where its ruling lies."""

    size: tuple[int, int]
    pitch: float
    first: float
    margin: float
    words: list[Word] = field(default_factory=list)
    marks: list[Word] = field(default_factory=list)


def pen_widths(points: Stroke, pen: float, rng: np.random.Generator) -> np.ndarray:
    """Return the pen's width along a stroke: slow changes, heavier downwards, lighter at its ends."""
    n = len(points)
    if n == 1:
        return np.array([pen * rng.uniform(1.3, 1.6)])
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    slow = np.sin(along / rng.uniform(40, 120) + rng.uniform(0, 6.3)) * 0.07
    down = np.gradient(points[:, 1]) / np.maximum(np.hypot(*np.gradient(points, axis=0).T), 1e-9)
    heavy = np.convolve(np.pad(down, 4, mode="edge"), np.ones(9) / 9, "valid") * 0.08
    ends = 1 - 0.3 * np.exp(-np.minimum(along, along[-1] - along) / (1.5 * pen))
    return pen * (1 + slow + heavy) * ends


def _placed(strokes: list[Stroke], scale: float, x: float, y, pen: float, rng, step: float = 1.0):
    out = []
    for s in strokes:
        points = s * scale + (x, 0.0)
        points[:, 1] += y(points[:, 0])
        out.append(resample(points, step) if len(points) > 1 else points)
    return out, [pen_widths(p, pen, rng) for p in out]


def lay_out(text: str, size: tuple[int, int], hand: Hand, scale: float, pen: float, rng: np.random.Generator) -> Sheet:
    """Write `text` on a sheet, broken into lines; raises ValueError where it does not fit.

    Parameters
    ----------
    scale
        Pixels in one unit of the face.
    pen
        Pen width in pixels.
    """
    width, height = size
    pitch = scale * rng.uniform(38, 42)
    left, right = width * rng.uniform(0.13, 0.17), width * rng.uniform(0.92, 0.95)
    sheet = Sheet(size, pitch, height * 0.09 + pitch, left - width * rng.uniform(0.02, 0.04))
    row, slope = 0, rng.normal(0, 0.002 * hand.jitter)
    for paragraph in text.splitlines():
        x = left + abs(rng.normal(0, 0.012 * width))
        for token in paragraph.split():
            strokes, length = write(token, hand, rng)
            if x + length * scale > right and x > left * 1.3:
                row, x = row + 1, left + abs(rng.normal(0, 0.008 * width))
                slope = rng.normal(slope / 2, 0.0025 * hand.jitter)
            base = sheet.first + row * pitch - 0.06 * pitch + rng.normal(0, 0.012 * pitch * hand.jitter)
            if base > LOWEST * height:
                raise ValueError(
                    f"{len(text.split())} words do not fit on {width}×{height} px at {scale:.1f} px a unit"
                )
            y = lambda at, base=base, slope=slope: base + slope * (at - left)  # noqa: E731
            placed, widths = _placed(strokes, scale, x, y, pen, rng)
            sheet.words.append(Word(f"l{row:02d}", token, placed, widths))
            x += (length + rng.normal(14, 1.5 * hand.jitter)) * scale
        row += 1
    return sheet


def strike_out(sheet: Sheet, hand: Hand, scale: float, pen: float, rng: np.random.Generator) -> None:
    """Add a false start which the writer crossed out, below the last line where there is room."""
    rows = 1 + max(int(word.line[1:]) for word in sheet.words)
    base = sheet.first + (rows - 0.06) * sheet.pitch
    if base > LOWEST * sheet.size[1]:
        return
    strokes, length = write(str(rng.choice(["wrong", "and", "because", "then"])), hand, rng)
    t = np.linspace(-0.03, 1.03, 300)
    zigzags = [
        np.column_stack([(t + 0.05 * np.sin(31 * t)) * length, middle + high * np.sin(2 * np.pi * (turns * t + 0.1))])
        for middle, high, turns in ((-5, 8, 8.5), (-6, 2, 1.5))
    ]
    placed, widths = _placed(
        [*strokes, *zigzags], scale, sheet.margin + 4 * pen + 0.1 * sheet.size[0], lambda at: base, pen, rng
    )
    sheet.marks.append(Word("", "", placed, widths))


def specks(sheet: Sheet, count: int, pen: float, rng: np.random.Generator) -> None:
    """Add blots smaller than the pen's width, anywhere."""
    dots = [rng.uniform((0, 0), sheet.size)[None] for _ in range(count)]
    sheet.marks.append(Word("", "", dots, [np.array([pen * rng.uniform(0.3, 0.9)]) for _ in dots]))
