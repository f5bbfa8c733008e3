"""Two transcripts → keep or drop a page, with the reason.

The same recogniser reads the original page and the rendering of its recovered strokes, over the same regions,
line by line and word by word. The share of words on which the two readings agree is the page's agreement; a
page is kept when it reaches a threshold. docs/agreement.md tells how the definition was chosen.

Conventions
-----------
* A word is what `fold` makes of a transcript: case and punctuation do not count, accents and digits do.
* Every share is between 0 and 1; it is None where there is nothing to share out.
* Both images go through one function, `strips`, with the same arguments; the rendering side never sees the
  original's pixels.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError

if TYPE_CHECKING:
    from inktraj.ocr import Recognizer
    from inktraj.page import Line, Page
    from inktraj.segmentation import Segmentation

U8 = NDArray[np.uint8]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

THRESHOLD = 0.85
"""Share of words that must agree for a page to be kept, as in inkGround."""

STRIP_HEIGHT = 96
"""Height in pixels of the strips given to the recogniser: twice what PP-OCR reads at."""

JOIN_LIMIT = 3
"""At most so many words of one side may stand for one word of the other."""


class WordReading(NamedTuple):
    """What was read in one word of the segmentation, on either side, and whether the two agree."""

    original: str
    rendered: str
    match: bool


class AlignedPair(NamedTuple):
    """One step of the alignment of the two transcripts: a folded word of each side, or None for none."""

    original: str | None
    rendered: str | None
    match: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a page is kept, and why.

    Parameters
    ----------
    kept
        Agreement reached the threshold.
    agreement
        The share of words on which the two readings agree; None where it is not defined.
    reason
        Why the page is dropped, for people; "" when kept.
    words
        One entry for each word of the segmentation, in reading order.
    original, rendered
        The two transcripts, one string a line.
    alignment
        The two transcripts aligned, line after line.
    line_agreement, word_agreement
        The shares of the two ways of reading by themselves; None where not defined.
    threshold
        What agreement was compared with.
    recognizer
        Name and version of the recogniser.
    """

    kept: bool
    agreement: float | None
    reason: str
    words: tuple[WordReading, ...] = ()
    original: tuple[str, ...] = ()
    rendered: tuple[str, ...] = ()
    alignment: tuple[AlignedPair, ...] = ()
    line_agreement: float | None = None
    word_agreement: float | None = None
    threshold: float = THRESHOLD
    recognizer: str = ""


def fold(text: str) -> list[str]:
    """Return the words of a text with case and punctuation folded.

    The text is brought to Unicode NFKC and case-folded. Letters, marks and numbers of any script stay; accents
    stay. Apostrophes, hyphens and invisible format characters vanish, so that ``don't``, ``well-known`` and a
    hyphen at a line's end leave one word; all other characters separate words. Empty words do not exist.
    A run of a script that is written without spaces (Han, Thai) is one word.

    >>> fold("The Quick, brown fox's  «well-known» ﬁne, 1,200")
    ['the', 'quick', 'brown', 'foxs', 'wellknown', 'fine', '1', '200']
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(_folded(c) for c in text).split()


def _folded(char: str) -> str:
    category = unicodedata.category(char)
    if category[0] in "LMN":
        return char
    return "" if category in ("Pd", "Cf") or char in _APOSTROPHES else " "


_APOSTROPHES = frozenset("'’‘ʼ`´′")


def align_words(a: Sequence[str], b: Sequence[str]) -> list[tuple[int | None, int | None, bool]]:
    """Align two lists of folded words with the fewest edits.

    A word may be matched, replaced, left out or put in; each but the first is one edit. One word that equals
    2 … `JOIN_LIMIT` consecutive words of the other side written together ("thequick", "the quick") is a match
    too: recognisers lose and invent spaces. Nothing looser counts as one. Among alignments with equally few edits
    that is taken whose replaced words are most alike (normalised Levenshtein similarity of their characters).

    Parameters
    ----------
    a, b
        Words as `fold` returns them.

    Returns
    -------
    list of (i, j, match)
        In order; i indexes `a`, j indexes `b`, None where the other side has no counterpart. Each index of both
        sides occurs once, except that the one word of a joined match is repeated beside each of its parts.
    """
    steps = _alignment_steps(a, b)
    pairs: list[tuple[int | None, int | None, bool]] = []
    i = j = 0
    for di, dj, match in steps:
        if not dj or not di:
            pairs.append((i if di else None, j if dj else None, False))
        else:
            pairs.extend((i + min(k, di - 1), j + min(k, dj - 1), match) for k in range(max(di, dj)))
        i, j = i + di, j + dj
    return pairs


_EDIT = 1_000_000
"""Cost of one edit; the unlikeness of a replaced pair adds at most 1000, so that it only breaks ties."""


def _alignment_steps(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, bool]]:
    """Return the cheapest steps (words of a, words of b, match)."""
    from rapidfuzz.distance import Levenshtein

    n, m = len(a), len(b)
    best: list[list[tuple[int, int, int, bool]]] = [[(0, 0, 0, False)] * (m + 1) for _ in range(n + 1)]
    for i in range(n + 1):
        for j in range(m + 1):
            options = []
            if i and j:
                same = a[i - 1] == b[j - 1]
                unlike = 0 if same else _EDIT + round(1000 * Levenshtein.normalized_distance(a[i - 1], b[j - 1]))
                options.append((best[i - 1][j - 1][0] + unlike, 1, 1, same))
            if i:
                options.append((best[i - 1][j][0] + _EDIT, 1, 0, False))
            if j:
                options.append((best[i][j - 1][0] + _EDIT, 0, 1, False))
            for k in range(2, JOIN_LIMIT + 1):
                if j and i >= k and "".join(a[i - k : i]) == b[j - 1]:
                    options.append((best[i - k][j - 1][0], k, 1, True))
                if i and j >= k and "".join(b[j - k : j]) == a[i - 1]:
                    options.append((best[i - 1][j - k][0], 1, k, True))
            if options:
                best[i][j] = min(options, key=lambda option: option[0])
    steps = []
    i, j = n, m
    while i or j:
        _, di, dj, match = best[i][j]
        steps.append((di, dj, match))
        i, j = i - di, j - dj
    return steps[::-1]


def check(
    page: Page,
    segmentation: Segmentation,
    rendered: U8,
    recognizer: Recognizer,
    *,
    threshold: float = THRESHOLD,
) -> Verdict:
    """Read a page and its rendering, and keep the page when enough words agree.

    Parameters
    ----------
    page
        The original; its own pixels are read.
    segmentation
        The lines and words; the same regions are read on both sides.
    rendered
        ``(h, w)`` uint8, the page's recovered ink drawn dark on white, of the page's size.
    recognizer
        Reads both sides.
    threshold
        Least agreement for a page to be kept, in 0–1.

    Raises
    ------
    DataError
        `rendered` is not of the page's size or not grey uint8, or `threshold` is outside 0–1.
    """
    if rendered.dtype != np.uint8 or rendered.shape != page.pixels.shape[:2]:
        raise DataError(
            f"the rendering is {rendered.dtype} of shape {rendered.shape}, expected grey uint8 of the page's size "
            f"{page.pixels.shape[:2]}; render the page's ink in the page's frame"
        )
    if not 0 <= threshold <= 1:
        raise DataError(f"a threshold is a share in 0–1, not {threshold!r}; was it meant in per cent?")
    label = f"{recognizer.name} {recognizer.version}"
    if not segmentation.words:
        return Verdict(False, None, "no words were found", threshold=threshold, recognizer=label)
    transcripts, words = [], []
    for image in (page.pixels, rendered):
        line_strips, word_strips = strips(image, segmentation.lines)
        transcripts.append(tuple(r.text for r in recognizer(line_strips)))
        words.append([r.text for r in recognizer(word_strips)])
    return _judge(transcripts[0], transcripts[1], words[0], words[1], threshold, label)


def _judge(
    original: tuple[str, ...],
    rendered: tuple[str, ...],
    original_words: list[str],
    rendered_words: list[str],
    threshold: float,
    label: str,
) -> Verdict:
    alignment: list[AlignedPair] = []
    matched, total = 0, 0
    for left, right in zip(original, rendered, strict=True):
        a, b = fold(left), fold(right)
        pairs = align_words(a, b)
        alignment += [
            AlignedPair(None if i is None else a[i], None if j is None else b[j], match) for i, j, match in pairs
        ]
        matched += sum(match for _, _, match in pairs)
        total += len(pairs)
    readings = tuple(
        WordReading(a, b, "".join(fold(a)) == "".join(fold(b)) != "")
        for a, b in zip(original_words, rendered_words, strict=True)
    )
    line_agreement = matched / total if total else None
    word_agreement = sum(r.match for r in readings) / len(readings)
    agreement, reason = line_agreement, ""
    if not any(fold(line) for line in original) and not any(fold(r.original) for r in readings):
        agreement, reason = None, "the reader read nothing on the original"
    elif agreement is None:
        reason = "the reader read no line"
    elif agreement < threshold:
        reason = f"{agreement:.0%} of the words agree, fewer than {threshold:.0%}"
    return Verdict(
        not reason, agreement, reason, readings, original, rendered, tuple(alignment), line_agreement,
        word_agreement, threshold, label,
    )  # fmt: skip


def strips(image: U8, lines: Sequence[Line], height: int = STRIP_HEIGHT) -> tuple[list[U8], list[U8]]:
    """Cut the lines and the words of a page out of an image, upright and straight.

    Each strip follows its line's baseline: its columns stand at right angles to the line's direction, and are
    shifted so that the baseline becomes level. It spans what its polygon spans in that frame.

    Parameters
    ----------
    image
        RGB ``(h, w, 3)`` or grey ``(h, w)`` uint8 of the page's size.
    lines
        The lines with their words.
    height
        Height of each strip in pixels.

    Returns
    -------
    lines, words
        Strips of the image's kind and of `height`, one for each line and one for each word of the lines in order.
    """
    line_strips = [_strip(image, line.polygon, line.baseline, height) for line in lines]
    word_strips = [_strip(image, word.polygon, line.baseline, height) for line in lines for word in line.words]
    return line_strips, word_strips


def _strip(image: U8, polygon: FloatArray, baseline: FloatArray, height: int) -> U8:
    import cv2

    along = baseline[-1] - baseline[0] if len(baseline) > 1 else np.zeros(2)
    length = float(np.hypot(*along))
    u = along / length if length > 0 else np.array([1.0, 0.0])
    v = np.array([-u[1], u[0]])
    base_x, base_y = baseline @ u, baseline @ v
    order = np.argsort(base_x, kind="stable")
    base_x, base_y = base_x[order], base_y[order]
    x, y = polygon @ u, polygon @ v
    y = y - np.interp(x, base_x, base_y)
    scale = height / max(float(np.ptp(y)), 1.0)
    width = max(1, round(float(np.ptp(x)) * scale))
    columns = x.min() + (np.arange(width) + 0.5) / scale - 0.5
    rows = y.min() + (np.arange(height) + 0.5) / scale - 0.5
    across = rows[:, None] + np.interp(columns, base_x, base_y)[None]
    map_x = (columns[None] * u[0] + across * v[0]).astype(np.float32)
    map_y = (columns[None] * u[1] + across * v[1]).astype(np.float32)
    return np.asarray(cv2.remap(image, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), dtype=np.uint8)


def ink_overlap(ink: BoolArray, drawn: BoolArray, tolerance: float = 2.0) -> tuple[float | None, float | None]:
    """Say how well drawn strokes cover a page's ink, and the other way round.

    Parameters
    ----------
    ink
        ``(h, w)`` bool, the page's ink.
    drawn
        ``(h, w)`` bool, the rendering's ink.
    tolerance
        In pixels; the distance between pixel centres up to which ink counts as covered.

    Returns
    -------
    recall
        Share of ink pixels with a drawn pixel within `tolerance`; None where there is no ink.
    precision
        Share of drawn pixels with an ink pixel within `tolerance`; None where nothing is drawn.

    Raises
    ------
    DataError
        The two are not bool arrays of one shape, or the tolerance is negative.
    """
    if ink.dtype != np.bool_ or drawn.dtype != np.bool_ or ink.shape != drawn.shape or ink.ndim != 2:
        raise DataError(
            f"ink and drawn are bool (h, w) of one shape, not {ink.dtype} {ink.shape} and {drawn.dtype} {drawn.shape}"
        )
    if not tolerance >= 0:
        raise DataError(f"a tolerance in pixels is at least 0, not {tolerance!r}")
    return _covered(ink, drawn, tolerance), _covered(drawn, ink, tolerance)


def _covered(ink: BoolArray, by: BoolArray, tolerance: float) -> float | None:
    import cv2

    total = int(np.count_nonzero(ink))
    if not total:
        return None
    if not by.any():
        return 0.0
    # DIST_MASK_PRECISE is exact; float32 (h, w) is all the memory it takes.
    distance = cv2.distanceTransform((~by).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return int(np.count_nonzero(distance[ink] <= tolerance)) / total
