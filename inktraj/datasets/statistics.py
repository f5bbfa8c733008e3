"""What is in a data set: the figures that inkGround publishes of itself, its word frequencies and its histograms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inktraj.datasets.sample import Dataset

TOP_WORDS = 20
_AROUND = ".,;:!?()[]{}\"'“”‘’«»…-–—"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures of a data set.

    Parameters
    ----------
    name, version
        Of the data set.
    figures
        ``pages``, ``words``, ``strokes``, ``points``, ``words_per_page``, ``strokes_per_page``, ``points_per_stroke``
        (means), ``fewest_words``, ``most_words``, ``different_words``, ``writers`` (0: not known).
    top_words
        The most frequent words and how often they occur, without the marks around them and whatever their case, in
        their most frequent spelling.
    words_per_page, strokes_per_page
        One number a page.
    points_per_stroke
        How many strokes have how many points.
    """

    name: str
    version: str
    figures: Mapping[str, float]
    top_words: tuple[tuple[str, int], ...]
    words_per_page: tuple[int, ...]
    strokes_per_page: tuple[int, ...]
    points_per_stroke: Mapping[int, int]

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return {
            "name": self.name,
            "version": self.version,
            "figures": dict(self.figures),
            "top_words": [list(pair) for pair in self.top_words],
            "words_per_page": list(self.words_per_page),
            "strokes_per_page": list(self.strokes_per_page),
            "points_per_stroke": {str(n): count for n, count in sorted(self.points_per_stroke.items())},
        }


def statistics(data: Dataset, progress: Callable[[int, int], None] | None = None) -> Statistics:
    """Count all samples of a data set, page by page; `progress` is called with the pages done and their number."""
    words, strokes, points = [], [], Counter[int]()
    spellings: dict[str, Counter[str]] = {}
    writers: set[str] = set()
    for number, page in enumerate(data.pages):
        if progress:
            progress(number, len(data.pages))
        words.append(len(page.samples))
        strokes.append(sum(len(sample.ink.strokes) for sample in page.samples))
        for sample in page.samples:
            points.update(len(stroke) for stroke in sample.ink.strokes)
            bare = sample.text.strip(_AROUND)
            if bare:
                spellings.setdefault(bare.casefold(), Counter())[bare] += 1
            writers |= {sample.writer} - {""}
    n_strokes, n_points = sum(strokes), sum(n * count for n, count in points.items())
    figures = {
        "pages": len(words),
        "words": sum(words),
        "strokes": n_strokes,
        "points": n_points,
        "words_per_page": float(np.mean(words)),
        "strokes_per_page": float(np.mean(strokes)),
        "points_per_stroke": n_points / n_strokes,
        "fewest_words": min(words),
        "most_words": max(words),
        "different_words": len(spellings),
        "writers": len(writers),
    }
    often = sorted(spellings.values(), key=lambda spelt: (-spelt.total(), spelt.most_common(1)[0][0]))[:TOP_WORDS]
    top = tuple((spelt.most_common(1)[0][0], spelt.total()) for spelt in often)
    return Statistics(data.name, data.version, figures, top, tuple(words), tuple(strokes), dict(points))


# Drawing

_WIDTH, _HEIGHT, _PAD = 520, 260, 46
_BINS = 20
_LONG = 400  # points: all longer strokes share the last bar


def draw(found: Statistics) -> str:
    """Return a self-contained SVG: the most frequent words, and histograms of words, strokes and points."""
    panels = [
        _panel("most frequent words", [word for word, _ in found.top_words], [n for _, n in found.top_words], True),
        _histogram("words a page", found.words_per_page, np.ones(len(found.words_per_page))),
        _histogram("strokes a page", found.strokes_per_page, np.ones(len(found.strokes_per_page))),
        _histogram("points a stroke", [*found.points_per_stroke], np.array([*found.points_per_stroke.values()])),
    ]
    parts = [
        f'<g transform="translate({(i % 2) * _WIDTH},{(i // 2) * _HEIGHT})">{panel}</g>'
        for i, panel in enumerate(panels)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * _WIDTH} {2 * _HEIGHT}" font-family="sans-serif" '
        f'font-size="11" fill="#222"><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _histogram(title: str, values: Sequence[int], counts: np.ndarray[Any, Any]) -> str:
    ends = np.minimum(np.asarray(values), _LONG)
    low, high = int(ends.min()), int(ends.max()) + 1
    step = max(1, -(-(high - low) // _BINS))
    bars, edges = np.histogram(ends, bins=np.arange(low, high + step, step), weights=counts)
    names = [str(int(edge)) for edge in edges[:-1]]
    if max(values) > _LONG:
        title, names[-1] = f"{title} (the last bar holds all above)", f"≥{names[-1]}"
    return _panel(title, names, bars.astype(int).tolist(), False)


def _panel(title: str, names: Sequence[str], bars: Sequence[int], slanted: bool) -> str:
    from inktraj.io.markup import escape

    room, deep = _WIDTH - 1.5 * _PAD, _HEIGHT - 2 * _PAD
    top, step = max([*bars, 1]), room / max(len(bars), 1)
    base = _HEIGHT - _PAD
    parts = [f'<text x="{_PAD}" y="20" font-size="14">{escape(title, "the title")}</text>']
    for share in (0.5, 1.0):
        y = base - share * deep
        parts.append(f'<line x1="{_PAD}" x2="{_PAD + room:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_PAD - 6}" y="{y + 4:.1f}" text-anchor="end">{share * top:g}</text>')
    for i, (name, bar) in enumerate(zip(names, bars, strict=True)):
        x, height = _PAD + i * step, bar / top * deep
        box = f'x="{x + 0.08 * step:.1f}" y="{base - height:.1f}" width="{0.84 * step:.1f}" height="{height:.1f}"'
        text = escape(name, "a word")
        parts.append(f'<rect {box} fill="#4a6fa5"><title>{text}: {bar}</title></rect>')
        at = f"{x + step / 2:.1f}"
        if slanted:
            turn = f'transform="rotate(-45 {at} {base + 14})" text-anchor="end"'
            parts.append(f'<text x="{at}" y="{base + 14}" {turn}>{text}</text>')
        elif i % 4 == 0 or (i == len(bars) - 1 and i % 4 > 1):
            parts.append(f'<text x="{at}" y="{base + 15}" text-anchor="middle">{text}</text>')
    parts.append(f'<line x1="{_PAD}" x2="{_PAD + room:.1f}" y1="{base}" y2="{base}" stroke="#222"/>')
    return "".join(parts)
