"""A hand: words as pen strokes, from the single-stroke Hershey faces with joins, jitter and wobble.

Coordinates are the faces' own units: x right, y down, the baseline at 0; small letters are 9 units high,
capitals 21.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Stroke = NDArray[np.float64]

BASELINE = 9  # in the faces' data
STEP = 0.4  # spacing of points along a stroke
LATE = {"i": (0,), "j": (0,), "t": (2,), "x": (1,)}  # script: strokes which wait until the word's body is written
LOW = ".,:;"  # the faces hang these above the baseline
FACES = ("script", "print")


@dataclass(frozen=True)
class Hand:
    """How somebody writes: a face and its habits.

    slant is added shear, stretch the letters' width, body the growth of the small letters' height, spacing
    the extra units between letters, jitter the strength of the letters' differences (1 is lively), lift the
    chance that a join is not made.
    """

    face: str
    slant: float = 0.0
    stretch: float = 1.0
    body: float = 1.0
    spacing: float = 0.0
    jitter: float = 1.0
    lift: float = 0.0

    @classmethod
    def draw(cls, rng: np.random.Generator, face: str, jitter: float) -> Hand:
        """Draw a hand's habits for a face."""
        script = face == "script"
        return cls(
            face=face,
            slant=rng.uniform(-0.12, 0.12) if script else rng.uniform(0.0, 0.25),
            stretch=rng.uniform(0.95, 1.15) if script else rng.uniform(0.85, 1.0),
            body=rng.uniform(1.15, 1.35) if script else rng.uniform(0.85, 1.0),
            spacing=rng.uniform(0.0, 0.6) if script else rng.uniform(-2.2, -1.2),
            jitter=jitter if script else 1.3 * jitter,
            lift=rng.uniform(0.0, 0.1) if script else rng.uniform(0.3, 0.6),
        )


def resample(points: Stroke, step: float) -> Stroke:
    """Return points about `step` apart along the path, its ends kept."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    if along[-1] == 0:
        return points[:1]
    at = np.linspace(0, along[-1], max(2, round(along[-1] / step) + 1))
    return np.column_stack([np.interp(at, along, points[:, i]) for i in (0, 1)])


def rounded(points: Stroke) -> Stroke:
    """Return the centripetal Catmull–Rom curve through the points, which has neither loops nor overshoot."""
    if len(points) < 3:
        return resample(points, STEP)
    p = np.concatenate([[2 * points[0] - points[1]], points, [2 * points[-1] - points[-2]]])
    t = np.concatenate([[0.0], np.cumsum(np.maximum(np.hypot(*np.diff(p, axis=0).T), 1e-6) ** 0.5)])
    out = []
    for i in range(1, len(p) - 2):
        u = np.linspace(t[i], t[i + 1], 8, endpoint=False)[:, None]

        def mix(a, b, ta, tb, u=u):
            return (tb - u) / (tb - ta) * a + (u - ta) / (tb - ta) * b

        a = [mix(p[j], p[j + 1], t[j], t[j + 1]) for j in (i - 1, i, i + 1)]
        b = [mix(a[j], a[j + 1], t[i - 1 + j], t[i + 1 + j]) for j in (0, 1)]
        out.append(mix(b[0], b[1], t[i], t[i + 1]))
    return resample(np.concatenate([*out, points[-1:]]), STEP)


def smoothed(points: Stroke, sigma: float) -> Stroke:
    """Return the path under a Gaussian of `sigma` units along it, its ends kept: the hand cuts corners."""
    if len(points) < 4:
        return points
    reach = min(round(3 * sigma / STEP), len(points) - 1)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * STEP / sigma) ** 2)
    head, tail = 2 * points[0] - points[reach:0:-1], 2 * points[-1] - points[-2 : -reach - 2 : -1]
    padded = np.concatenate([head, points, tail])
    return np.column_stack([np.convolve(padded[:, i], kernel / kernel.sum(), "valid") for i in (0, 1)])


@cache
def glyph(face: str, char: str) -> tuple[tuple[Stroke, ...], float]:
    """Return a character's strokes, its left side at x = 0, and its width; raises LookupError where it has none."""
    source = {"script": "cursive", "print": "futural"}[face]
    if char == "'":  # the cursive face has it at the height of a comma
        source = "scripts"
    found = list(_font(source).glyphs_for_text(char))
    if not found:
        raise LookupError(f"the {source} face has no {char!r}; it holds ASCII letters, digits and punctuation")
    strokes = [np.array(s, dtype=np.float64) - (found[0].left_offset, BASELINE) for s in found[0].strokes]
    width = float(found[0].char_width)
    if char in LOW:
        strokes = [s + np.array([0, 4]) for s in strokes]
    if char == "-":
        strokes, width = [s * (0.45, 1.0) for s in strokes], width * 0.45
    if face == "script" and char.isdigit():  # as high as the capitals, which is too much beside small letters
        strokes, width = [s * 0.8 for s in strokes], width * 0.8
    return tuple(s.mean(axis=0)[None] if np.ptp(s, axis=0).max() <= 2 else rounded(s) for s in strokes), width


@cache
def _font(name: str):
    from HersheyFonts import HersheyFonts

    font = HersheyFonts()
    font.load_default_font(name)
    return font


def link(a: Stroke, b: Stroke, *, same_letter: bool) -> Stroke | None:
    """Return the path which goes on from the end of `a` and writes `b` without lifting, or None.

    The pen runs straight on where `b` begins near; or meets `b` on its way, goes back over it to its
    beginning and then writes it, as over the bowl of an a; or, inside a letter, goes back over `a` to where
    `b` branches off, as in the arch of an n.
    """
    if np.hypot(*(b[0] - a[-1])) <= 3.0:
        return b
    to_b = np.hypot(*(b - a[-1]).T)
    j = int(to_b.argmin())
    if to_b[j] <= 2.5 and j * STEP <= 18:
        return np.concatenate([b[j::-1], b[1:]])
    to_a = np.hypot(*(a - b[0]).T)
    j = int(to_a.argmin())
    if same_letter and to_a[j] <= 2.0 and (len(a) - j) * STEP <= 20:
        return np.concatenate([a[-2:j:-1], b])
    return None


def _letter(char: str, hand: Hand, at: float, rng: np.random.Generator) -> tuple[list[Stroke], float]:
    """Return the strokes of one letter which begins at x = `at`, and where the next one begins."""
    strokes, width = glyph(hand.face, char)
    wide, high = hand.stretch * rng.normal(1, 0.05 * hand.jitter), rng.normal(1, 0.05 * hand.jitter)
    slant, drop = hand.slant + rng.normal(0, 0.035 * hand.jitter), rng.normal(0, 0.35 * hand.jitter)
    out = []
    for s in strokes:
        x, y = s.T
        # The small letters' zone grows by `body`, what is above it keeps its length.
        y = np.where(y < -BASELINE, y - BASELINE * (hand.body - 1), y * hand.body) * high
        out.append(np.column_stack([at + x * wide - slant * y, y + drop]))
    gap = hand.spacing + abs(rng.normal(0, 0.4 * hand.jitter))
    return out, at + width * wide + gap


def _wobble(strokes: list[Stroke], strength: float, rng: np.random.Generator) -> list[Stroke]:
    """Bend the plane a little, so that no two letters of a kind are alike and joins stay joined."""
    angles, lengths = rng.uniform(0, 2 * np.pi, 6), rng.uniform(12, 45, 6)
    waves = np.column_stack([np.cos(angles), np.sin(angles)]) * (2 * np.pi / lengths[:, None])
    phases, sway = rng.uniform(0, 2 * np.pi, 6), rng.normal(0, strength / 6**0.5, (6, 2))
    return [s + np.sin(s @ waves.T + phases) @ sway for s in strokes]


def write(text: str, hand: Hand, rng: np.random.Generator) -> tuple[list[Stroke], float]:
    """Return a word's strokes in the order in which they are written, and the word's width."""
    done: list[Stroke] = []
    late: list[Stroke] = []
    current: Stroke | None = None
    joinable, at = False, 0.0
    for char in text:
        strokes, at = _letter(char, hand, at, rng)
        waiting = LATE.get(char, ()) if hand.face == "script" else tuple(k for k, s in enumerate(strokes) if len(s) < 2)
        late += [strokes[k] for k in waiting]
        for k, stroke in enumerate(s for k, s in enumerate(strokes) if k not in waiting):
            may_join = k > 0 or (hand.face == "script" and joinable and char.isalpha() and rng.random() >= hand.lift)
            path = None
            if current is not None and may_join and min(len(current), len(stroke)) > 1:
                path = link(current, stroke, same_letter=k > 0)
            if path is None:
                done += [] if current is None else [current]
                current = stroke
            else:
                current = np.concatenate([current, path])
        joinable = char.isalpha()
        if hand.face == "print" and late:
            done += [current, *late] if current is not None else late
            current, late = None, []
    done += ([] if current is None else [current]) + late
    done = [smoothed(resample(s, STEP), 0.6) for s in _wobble(done, 0.55 * hand.jitter, rng)]
    return done, at
