"""How well recorded lines are cut into words.

    python benchmarks/wordcuts.py --inks FILE.npz [--split dev] [--lines 1000] [--json]

Lines are composed of recorded words of one writer each, so that the true cuts are known: 4 to 10 words at their own
relative size, set on a common base line; the space between two words is drawn about a mean that is drawn for the line,
and some are tight; a writer whose letters stand apart sets words apart by as much more; some words are followed by a
full stop or a comma; in some lines the dots and bars of all words are added at the end of the line. `Composing` holds
the numbers. A word counts as exact when it is given all of its strokes and no others.

The weights of the cut were tuned on the writers of the ``train`` split; the figures are those of ``dev``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pipelines"))

from recordings import Words

from inktraj.datasets.wordcuts import cut_words
from inktraj.errors import DataError, InktrajError

Stroke = np.ndarray


@dataclass(frozen=True)
class Composing:
    """How lines are put together; lengths are in letter widths, the median width of the writer's words a letter."""

    words: tuple[int, int] = (4, 10)
    gap: tuple[float, float] = (0.8, 1.8)
    """Range of a line's mean space between the bounding boxes of two words …"""
    apart: float = 1.0
    """… on top of the usual gap between the writer's letters, times this."""
    gap_spread: float = 0.25
    """Standard deviation of the logarithm of a space within a line."""
    tight: float = 0.1
    """Share of spaces that are only …"""
    tight_gap: tuple[float, float] = (0.35, 0.6)
    """… so much of the line's mean wide."""
    size_spread: float = 0.05
    base_spread: float = 0.1
    slope: float = 0.01
    """Standard deviations of a word's size (its logarithm), of its base, and of the line's slope."""
    mark: float = 0.12
    """Share of words with a full stop or a comma behind them …"""
    mark_gap: tuple[float, float] = (0.05, 0.35)
    """… at this distance."""
    late: float = 0.15
    """Share of lines to which all dots and bars are added at the end."""
    fewest: int = 20
    """Writers of fewer words are left out."""


@dataclass(frozen=True)
class Line:
    """A composed line: strokes in writing order, the word of each, the words."""

    strokes: list[Stroke]
    owner: np.ndarray
    words: list[str]
    style: str
    late: bool


class Writers:
    """The words of each writer of a split, at their true relative sizes."""

    def __init__(self, path: Path, split: str, fewest: int) -> None:
        self.words = Words(path)
        with np.load(path, allow_pickle=False) as archive:
            writer, self.extent = archive["writer"], archive["extent"].astype(float)
        chosen = self.words.choose(split, None, None)
        counts = Counter(writer[chosen].tolist())
        self.names = sorted(name for name, count in counts.items() if count >= fewest)
        if not self.names:
            raise DataError(f"{path}: no writer of the split {split!r} has {fewest} words")
        self.of = {name: chosen[writer[chosen] == name] for name in self.names}
        self.letter = {name: self._letter(places) for name, places in self.of.items()}
        self.apart = {name: self._apart(places) for name, places in self.of.items()}

    def strokes(self, word: int) -> list[Stroke]:
        """Return a word's strokes in the sensor's units."""
        return [s * self.extent[word] / 4000 for s in self.words.strokes(word)]

    def _letter(self, places: np.ndarray) -> float:
        widths = [np.ptp(np.concatenate(self.strokes(i))[:, 0]) / len(self.words.text[i]) for i in places[:200]]
        return float(np.median(widths))

    def _apart(self, places: np.ndarray) -> float:
        """Return the usual gap between strokes that carry a word on; 0 for a writer who joins."""
        gaps = [0.0]
        for i in places[:200]:
            word = self.strokes(i)
            front = np.maximum.accumulate([s[:, 0].max() for s in word])
            steps = np.array([s[:, 0].min() for s in word[1:]]) - front[:-1]
            gaps += steps[front[1:] > front[:-1]].tolist()
        return max(float(np.median(gaps)), 0.0)


def base_of(strokes: list[Stroke]) -> float:
    """Estimate the height of the base line: the median of the places at which the pen turns upwards."""
    turns = []
    for s in strokes:
        y = s[:, 1]
        if len(y) > 2:
            turns += y[1:-1][(y[1:-1] > y[:-2]) & (y[1:-1] >= y[2:])].tolist()
    return float(np.median(turns)) if turns else float(max(s[:, 1].max() for s in strokes))


def compose(writers: Writers, number: int, how: Composing, seed: int) -> Line:
    """Compose a line; the same number, seed and composing give the same line."""
    rng = np.random.default_rng([seed, number])
    name = writers.names[int(rng.integers(len(writers.names)))]
    letter = writers.letter[name]
    places = rng.choice(writers.of[name], int(rng.integers(how.words[0], how.words[1] + 1)))
    mean, late, slope = rng.uniform(*how.gap), bool(rng.random() < how.late), rng.normal(0, how.slope)
    x, words = 0.0, []
    written: list[tuple[int, Stroke]] = []
    added: list[tuple[int, Stroke]] = []
    for k, place in enumerate(places.tolist()):
        word = writers.strokes(place)
        left, base = min(s[:, 0].min() for s in word), base_of(word)
        size, drift = np.exp(rng.normal(0, how.size_spread)), rng.normal(0, how.base_spread) * letter
        word = [(s - (left, base)) * size + (x, slope * x + drift) for s in word]
        x = float(max(s[:, 0].max() for s in word))
        waiting = dots_and_bars(word) if late else set()
        for i, s in enumerate(word):
            (added if i in waiting else written).append((k, s))
        words.append(str(writers.words.text[place]))
        if rng.random() < how.mark:
            comma = rng.random() < 0.5
            shape = np.array([[0.1, 0.0], [0.15, 0.15], [0.0, 0.4]] if comma else [[0.0, 0.0]])
            mark = shape * letter + np.array([x + rng.uniform(*how.mark_gap) * letter, slope * x + drift])
            written.append((k, mark))
            words[-1] += "," if comma else "."
            x = float(mark[:, 0].max())
        tight = rng.uniform(*how.tight_gap) if rng.random() < how.tight else 1.0
        x += how.apart * writers.apart[name] + mean * tight * np.exp(rng.normal(0, how.gap_spread)) * letter
    owner, strokes = zip(*written, *added, strict=True)
    return Line(list(strokes), np.array(owner), words, str(writers.words.style[places[0]]), bool(added))


def dots_and_bars(word: list[Stroke]) -> set[int]:
    """Return the strokes that are short and lie over what was written before them."""
    found = set()
    wide = max(s[:, 0].max() for s in word) - min(s[:, 0].min() for s in word)
    for i, s in enumerate(word[1:], 1):
        before = np.concatenate(word[:i])
        over = s[:, 0].min() >= before[:, 0].min() and s[:, 0].max() <= before[:, 0].max()
        if over and np.ptp(s[:, 0]) < 0.4 * wide and np.ptp(s[:, 1]) < 0.4 * np.ptp(before[:, 1]):
            found.add(i)
    return found


def measure(lines: list[Line]) -> dict[str, Any]:
    """Cut the lines; return the share of exact words, whole and by kind, and how well confidence tells them."""
    exact: list[bool] = []
    sure: list[float] = []
    kinds: list[tuple[str, bool]] = []
    whole = 0
    start = time.perf_counter()
    cuts = [cut_words(line.strokes, line.words) for line in lines]
    seconds = time.perf_counter() - start
    for line, cut in zip(lines, cuts, strict=True):
        right = [set(np.flatnonzero(line.owner == k)) == set(cut.strokes[k]) for k in range(len(line.words))]
        exact += right
        sure += cut.confidence
        kinds += [(line.style or "unknown", line.late)] * len(right)
        whole += all(right)
    good, certain = np.array(exact), np.array(sure)
    out: dict[str, Any] = {
        "lines": len(lines),
        "words": len(good),
        "words_exact": float(good.mean()),
        "lines_exact": whole / len(lines),
        "milliseconds_a_line": 1000 * seconds / len(lines),
    }
    for style in sorted({style for style, _ in kinds}):
        mine = np.array([style == other for other, _ in kinds])
        out[f"words_exact_{style.lower()}"] = float(good[mine].mean())
    late = np.array([late for _, late in kinds])
    out["words_exact_late_strokes"] = float(good[late].mean()) if late.any() else None
    for least in (0.5, 0.9):
        kept = certain >= least
        out[f"confident_{least}"] = {"share": float(kept.mean()), "exact": float(good[kept].mean())}
    return out


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inks", type=Path, required=True, help="archive of recorded words")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--apart", type=float, default=1.0, help="0: words stand no wider where letters do")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    how = Composing(apart=options.apart)
    try:
        writers = Writers(options.inks, options.split, how.fewest)
        lines = [compose(writers, number, how, options.seed) for number in range(options.lines)]
        figures = measure(lines)
    except InktrajError as err:
        parser.exit(2, f"wordcuts: {err}\n")
    told = {"split": options.split, "writers": len(writers.names), "seed": options.seed, **figures}
    if options.json:
        print(json.dumps({**told, "composing": asdict(how)}, indent=1))
    else:
        for name, value in told.items():
            print(f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value}")


if __name__ == "__main__":
    main()
