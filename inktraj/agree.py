"""Two transcripts → keep or drop a page, with the reason.

The same recogniser reads the original page and the rendering of its recovered strokes, over the same regions,
line by line and word by word. The share of words on which the two readings agree is the page's agreement; a
page is kept when it reaches a threshold. docs/agreement.md tells how the definition was chosen.

Conventions
-----------
* A word is what `fold` makes of a transcript: case and punctuation do not count, accents and digits do.
* Every share is between 0 and 1; it is None where there is nothing to share out.
* Both images go through the same functions, `line_strips` and `word_strips`, with the same arguments; the
  rendering side never sees the original's pixels.
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

REACHES = (0.65, 0.75, 0.85)
"""How far the strips of a line reach above its baseline, in line heights; half as far below it."""

WORD_REACH = 0.75
"""The same for the strips of words."""

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
    # Once more at the end: where an apostrophe goes, a mark may meet its letter.
    return unicodedata.normalize("NFKC", "".join(_folded(c) for c in text)).split()


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
    original, original_words = _transcribe(page.pixels, segmentation.lines, recognizer)
    drawn, drawn_words = _transcribe(rendered, segmentation.lines, recognizer)
    alignment, line_agreement = compare(original, drawn)
    words = tuple(
        WordReading(a, b, "".join(fold(a)) == "".join(fold(b)) != "")
        for a, b in zip(original_words, drawn_words, strict=True)
    )
    word_agreement = _word_share(words)
    agreement = line_agreement if any(fold(text) for text in original) else None
    if agreement is None:
        reason = "the reader read nothing on the original"
    elif agreement < threshold:
        # Rounded down, so that 0.8499 is not called 85 %.
        reason = f"{int(1000 * agreement) / 10:g} % of the words agree, {100 * threshold:g} % are needed"
    else:
        reason = ""
    return Verdict(
        kept=not reason,
        agreement=agreement,
        reason=reason,
        words=words,
        original=original,
        rendered=drawn,
        alignment=alignment,
        line_agreement=line_agreement,
        word_agreement=word_agreement,
        threshold=threshold,
        recognizer=label,
    )


def _transcribe(image: U8, lines: Sequence[Line], recognizer: Recognizer) -> tuple[tuple[str, ...], list[str]]:
    """Read one side: the lines, each as the most confident of its readings, and the words."""
    readings = [recognizer(line_strips(image, lines, reach)) for reach in REACHES]
    best = [max(of_line, key=lambda reading: reading.confidence) for of_line in zip(*readings, strict=True)]
    words = recognizer(word_strips(image, lines))
    return tuple(reading.text for reading in best), [reading.text for reading in words]


def compare(original: Sequence[str], rendered: Sequence[str]) -> tuple[tuple[AlignedPair, ...], float | None]:
    """Compare two transcripts of the same lines.

    Parameters
    ----------
    original, rendered
        One string for each line.

    Returns
    -------
    alignment
        The folded words of both, aligned line by line.
    share
        Matched words over all words, on the side where that is smaller; without joined words this is the number of
        matches over the number of words of the longer transcript. None where neither holds a word.
    """
    pairs: list[AlignedPair] = []
    total, matched = [0, 0], [0, 0]
    for left, right in zip(original, rendered, strict=True):
        a, b = fold(left), fold(right)
        steps = align_words(a, b)
        pairs += [AlignedPair(None if i is None else a[i], None if j is None else b[j], m) for i, j, m in steps]
        for side, words in enumerate((a, b)):
            total[side] += len(words)
            matched[side] += len({step[side] for step in steps if step[2]})
    if not max(total):
        return tuple(pairs), None
    return tuple(pairs), min(m / t if t else 0.0 for m, t in zip(matched, total, strict=True))


def _word_share(words: Sequence[WordReading]) -> float | None:
    """Share of the word regions whose readings agree; a region that is read as punctuation on both sides is none."""
    punctuation = sum(bool(w.original and w.rendered) and not fold(w.original) and not fold(w.rendered) for w in words)
    total = len(words) - punctuation
    return sum(w.match for w in words) / total if total else None


def line_strips(image: U8, lines: Sequence[Line], reach: float = WORD_REACH) -> list[U8]:
    """Cut the lines of a page out of an image, upright and straight.

    A strip follows its line's baseline: its columns stand at right angles to the line's direction and are shifted
    so that the baseline becomes level. Along the line it spans what the line's polygon spans; across it reaches
    `reach` line heights above the baseline and half as far below, so that letters come out in one size. Where a
    line's height is not known (0) it spans its polygon.

    Parameters
    ----------
    image
        RGB ``(h, w, 3)`` or grey ``(h, w)`` uint8 of the page's size.
    lines
        The lines; only their geometry is used.
    reach
        In line heights.

    Returns
    -------
    list of ndarray
        One strip of the image's kind and scale for each line.
    """
    return [_strip(image, line, line.polygon, reach) for line in lines]


def word_strips(image: U8, lines: Sequence[Line], reach: float = WORD_REACH) -> list[U8]:
    """Cut the words of all lines out of an image, in order; as `line_strips`, along the span of each word."""
    return [_strip(image, line, word.polygon, reach) for line in lines for word in line.words]


def _strip(image: U8, line: Line, polygon: FloatArray, reach: float) -> U8:
    import cv2

    along, across, base_along, base_across = _line_axes(line.baseline)
    x, y = polygon @ along, polygon @ across
    if line.height > 0:
        top, bottom = -reach * line.height, reach / 2 * line.height
    else:
        y = y - np.interp(x, base_along, base_across)
        top, bottom = float(y.min()), float(y.max())
    left, right = float(x.min()), float(x.max())
    # The image's own scale: the recogniser knows best how to shrink to what it reads at.
    width, height = (min(round(size) + 1, _LONGEST) for size in (right - left, bottom - top))
    u = np.linspace(left, right, width)
    v = np.linspace(top, bottom, height)
    v = v[:, None] + np.interp(u, base_along, base_across)[None]
    map_x = u[None] * along[0] + v * across[0]
    map_y = u[None] * along[1] + v * across[1]
    # cv2.remap takes no image above 32,767 px, and the region is all that it needs.
    x0, x1 = _range(map_x, image.shape[1])
    y0, y1 = _range(map_y, image.shape[0])
    return np.asarray(
        cv2.remap(
            image[y0:y1, x0:x1],
            (map_x - x0).astype(np.float32),
            (map_y - y0).astype(np.float32),
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        ),
        dtype=np.uint8,
    )


_LONGEST = 30_000
"""Pixels along a side of a strip; within what cv2.remap can make."""


def _line_axes(baseline: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return unit vectors along and across a line, and its baseline's coordinates in them, ascending along it."""
    direction = baseline[-1] - baseline[0]
    length = float(np.hypot(*direction))
    along = direction / length if length > 0 else np.array([1.0, 0.0])
    across = np.array([-along[1], along[0]])
    u, v = baseline @ along, baseline @ across
    order = np.argsort(u, kind="stable")
    return along, across, u[order], v[order]


def _range(positions: FloatArray, size: int) -> tuple[int, int]:
    """Return the pixels, at least one, of an axis of `size` that interpolation at these positions touches."""
    first = min(max(int(np.floor(positions.min())), 0), size - 1)
    return first, max(min(int(np.ceil(positions.max())) + 1, size), first + 1)


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
