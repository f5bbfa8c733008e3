"""A recorded line and what it says → which strokes belong to which word.

Words are cut between strokes only. The strokes of a line come in writing order, in which a word's strokes follow one
another, except for dots and bars that are added later. Those are taken aside first: a stroke that does not carry the
line on to the right hangs on a stroke that does. Between the others there are gaps; of all ways to choose as many of
them as the text has spaces, dynamic programming finds the most likely: wide gaps, words as wide as their letters make
them, and as many strokes as the hand makes of so many letters. What counts as a wide gap is learned from the line
itself in a second pass. The sum over all ways tells how sure each word is.

Units: the line's own; everything is measured in letter widths (`unit`), the width of a mean small letter in this line.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inktraj.datasets.letters import strokes_of, width_of
from inktraj.errors import DataError
from inktraj.ink import FloatArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_TOLD = 80  # letters of a line that an error quotes

STOPS = ".,"
"""Marks that are one small stroke on the base line, with which no word begins."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the score of a cut is made of; tuned on lines composed of recorded words (benchmarks/wordcuts.py).

    Gaps and widths are in letter widths, scores in natural logarithms of odds.
    """

    rows: float = 0.36
    """Share of the gap between inks at one height in a gap's width; the rest is that between their outermost points."""
    threshold: float = 0.87
    """A gap of this width is as likely one between letters as one between words, as long as nothing is known better."""
    slope: float = 7.0
    """Score of a gap for each letter width above the threshold …"""
    most: float = 6.5
    """… up to about this."""
    base: float = 0.14
    """Standard deviation of the logarithm of a long word's width …"""
    letter: float = 0.32
    """… and what a single letter adds to it."""
    strokes: float = 0.9
    """Score lost by a squared standard deviation of the number of strokes."""
    mark: float = 2.0
    """Score won by a word that ends in a stop or comma with such a stroke, and lost by one that begins with one."""


TUNED = Weights()


@dataclass(frozen=True, slots=True, eq=False)
class WordCuts:
    """A line cut into words.

    Parameters
    ----------
    strokes
        For each word its strokes' indices in the line, in writing order.
    confidence
        For each word the probability, by the model, that it begins and ends where it was cut.
    """

    strokes: tuple[tuple[int, ...], ...]
    confidence: tuple[float, ...]


def cut_words(strokes: Sequence[FloatArray], words: Sequence[str], weights: Weights = TUNED) -> WordCuts:
    """Cut a line into words.

    Parameters
    ----------
    strokes
        The line's strokes in writing order, ``(n, 2)`` each, x right, y down, written from left to right.
    words
        What it says, from left to right, none of them empty.
    weights
        Of the score.

    Raises
    ------
    DataError
        There are fewer strokes than words, or a word is empty.
    """
    if not words or not all(words):
        raise DataError("a line needs words to be cut into, none of them empty")
    if len(strokes) < len(words):
        told = " ".join(words)
        raise DataError(
            f"{len(strokes)} strokes cannot be cut into the {len(words)} words "
            f"{told if len(told) <= _TOLD else told[:_TOLD] + '…'!r}; does the text belong to the line?"
        )
    line = _Line(strokes, words, weights)
    cuts, sure = line.best()
    owner = line.owners(cuts)
    return WordCuts(tuple(tuple(np.flatnonzero(owner == k).tolist()) for k in range(len(words))), tuple(sure.tolist()))


class _Line:
    """A line's strokes, measured."""

    def __init__(self, strokes: Sequence[FloatArray], words: Sequence[str], weights: Weights) -> None:
        self.weights = weights
        self.words = words
        marks = sum(not char.isalnum() for word in words for char in word)
        letters = sum(map(len, words)) - marks
        rate = (len(strokes) - marks) / letters if letters and len(strokes) > marks else 1.0
        self.usual = np.array([strokes_of(word, rate) for word in words])
        self.expected = np.array([max(width_of(word), 0.3) for word in words])
        self.low = np.array([s.min(axis=0) for s in strokes])
        self.high = np.array([s.max(axis=0) for s in strokes])
        self.strokes = strokes
        self.body = self._body(len(words))
        self.hosts = self._hosts()
        self.unit = self._first_unit()

    def _body(self, least: int) -> IntArray:
        """Return the strokes that carry the line on, in writing order; at least as many as there are words."""
        front = np.maximum.accumulate(np.append(-np.inf, self.high[:-1, 0]))
        carries = self.high[:, 0] > front
        if carries.sum() < least:
            # There are hardly more strokes than words: those that fall short of the front by least are taken, too.
            short = np.where(carries, np.inf, front - self.high[:, 0])
            carries[np.argsort(short, kind="stable")[: least - int(carries.sum())]] = True
        return np.flatnonzero(carries)

    def _hosts(self) -> IntArray:
        """Return for each stroke the place in the body of the stroke on which it hangs; its own where it is of it."""
        hosts = np.full(len(self.strokes), -1)
        hosts[self.body] = np.arange(len(self.body))
        left, right = self.low[self.body, 0], self.high[self.body, 0]
        for i in np.flatnonzero(hosts < 0):
            before = int(np.searchsorted(self.body, i))  # only what is written can be added to
            beside = np.maximum(np.maximum(left[:before] - self.high[i, 0], self.low[i, 0] - right[:before]), 0)
            near = np.flatnonzero(beside <= beside.min())
            middle = (self.low[i, 0] + self.high[i, 0]) / 2
            off = np.abs((left[near] + right[near]) / 2 - middle) / np.maximum(right[near] - left[near], 1e-9)
            hosts[i] = near[int(off.argmin())]
        return hosts

    def _first_unit(self) -> float:
        gaps = self._outer_gaps()
        room = np.sort(gaps)[::-1][: len(self.expected) - 1]
        wide = float(self.high[:, 0].max() - self.low[:, 0].min() - np.maximum(room, 0).sum())
        return max(wide, 1e-6) / float(self.expected.sum())

    def _outer_gaps(self) -> FloatArray:
        front = np.maximum.accumulate(self.high[self.body, 0])[:-1]
        gaps: FloatArray = self.low[self.body[1:], 0] - front
        return gaps

    def _row_gaps(self) -> FloatArray:
        """Return the least horizontal gap between each stroke of the body and all ink before it at about its height."""
        rows = 24
        top, bottom = self.low[:, 1].min(), self.high[:, 1].max()
        height = max(bottom - top, 1e-9) / rows
        outer = self._outer_gaps()
        gaps = np.empty(len(self.body) - 1)
        front = np.full(rows, -np.inf)
        for j, i in enumerate(self.body):
            points = _dense(self.strokes[i], height / 2)
            row = np.clip(((points[:, 1] - top) / height).astype(int), 0, rows - 1)
            back = np.full(rows, np.inf)
            np.minimum.at(back, row, points[:, 0])
            if j:
                near = np.maximum(front, np.maximum(np.append(front[1:], -np.inf), np.append(-np.inf, front[:-1])))
                gap = float((back - near).min())
                gaps[j - 1] = gap if np.isfinite(gap) else outer[j - 1] + 2 * self.unit
            np.maximum.at(front, row, points[:, 0])
        return gaps

    def best(self) -> tuple[IntArray, FloatArray]:
        """Return the places in the body at which words begin, the first of them 0, and how sure each word is."""
        outer, rows = self._outer_gaps(), self._row_gaps()
        threshold = self.weights.threshold
        for again in (True, True, False):
            # Inks at one height may be far apart below an overhang: no farther than the outer gap says, by two letters.
            gaps = (1 - self.weights.rows) * outer + self.weights.rows * np.minimum(rows, outer + 2 * self.unit)
            gaps = gaps / self.unit
            scores = self.weights.most * np.tanh((gaps - threshold) * self.weights.slope / self.weights.most)
            words = self._word_scores()
            cuts, sure = _most_likely(scores, words)
            if not again:
                break
            self.unit = self._unit_of(cuts)
            threshold = self._learned(gaps, cuts)
        return cuts, sure

    def _unit_of(self, cuts: IntArray) -> float:
        left = np.minimum.reduceat(self.low[self.body, 0], cuts)
        right = np.maximum.reduceat(self.high[self.body, 0], cuts)
        return max(float((right - left).sum()), 1e-6) / float(self.expected.sum())

    def _learned(self, gaps: FloatArray, cuts: IntArray) -> float:
        """Return the threshold as this line's own gaps would have it; the fewer they are, the more the general one."""
        if len(cuts) < 2:
            return self.weights.threshold
        between = gaps[cuts[1:] - 1]
        within = np.delete(gaps, cuts[1:] - 1)
        wide = float(np.median(between))
        narrow = float(np.percentile(within, 80)) if len(within) else 0.0
        threshold = np.clip((wide + max(narrow, 0.0)) / 2, 0.15, 1.5)
        trust = len(between) / (len(between) + 3)
        return float(trust * threshold + (1 - trust) * self.weights.threshold)

    def _word_scores(self) -> FloatArray:
        """Return ``(words, n + 1, n + 1)``: the score of each word as the body's strokes from i up to before j."""
        n = len(self.body)
        left, right = self.low[self.body, 0], self.high[self.body, 0]
        counts = np.concatenate([[0], np.cumsum(np.bincount(self.hosts, minlength=n))])
        wide = np.full((n + 1, n + 1), np.nan)
        for i in range(n):
            wide[i, i + 1 :] = np.maximum.accumulate(right[i:]) - np.minimum.accumulate(left[i:])
        number = (counts[None, :] - counts[:, None]).astype(float)
        wide = np.log(np.maximum(wide, 0.05 * self.unit) / self.unit)
        out = np.empty((len(self.expected), n + 1, n + 1))
        for k, (expected, usual) in enumerate(zip(self.expected, self.usual, strict=True)):
            spread = np.hypot(self.weights.base, self.weights.letter / np.sqrt(expected))
            off = (wide - np.log(expected)) / spread
            out[k] = -0.5 * off**2 - self.weights.strokes * (number - usual) ** 2 / (usual + 0.5)
        stop = np.where(self._stops(), self.weights.mark, 0.0)
        for k, word in enumerate(self.words):
            if word[0] not in STOPS:
                out[k, :-1] -= stop[:, None]
            if len(word) > 1 and word[-1] in STOPS:
                out[k, :, 1:] += stop
        return np.where(np.isnan(out), -np.inf, out)

    def _stops(self) -> BoolArray:
        """Return which strokes of the body look like a full stop or a comma: small, and low among those beside it."""
        low, high = self.low[self.body], self.high[self.body]
        small = (high - low).max(axis=1) < 0.8 * self.unit
        middle = np.array([np.median(self.strokes[i], axis=0) for i in self.body])  # of its ink
        out = np.zeros(len(small), dtype=np.bool_)
        for i in np.flatnonzero(small):
            beside = (np.abs(middle[:, 0] - middle[i, 0]) < 4 * self.unit) & ~small
            out[i] = bool(beside.any()) and middle[i, 1] > np.median(middle[beside, 1])
        return out

    def owners(self, cuts: IntArray) -> IntArray:
        """Return the word of each stroke."""
        of_body = np.searchsorted(cuts, np.arange(len(self.body)), side="right") - 1
        return of_body[self.hosts]


def _dense(stroke: FloatArray, step: float) -> FloatArray:
    """Return points along a stroke that leave out no row."""
    if len(stroke) < 2:
        return stroke
    steps = np.maximum(1, np.ceil(np.abs(np.diff(stroke[:, 1])) / step)).astype(int)
    begins = np.repeat(np.cumsum(steps) - steps, steps)
    inner = (np.arange(len(begins)) - begins + 1) / np.repeat(steps, steps)
    at = np.concatenate([[0.0], np.repeat(np.arange(len(steps)), steps) + inner])
    return np.column_stack([np.interp(at, np.arange(len(stroke)), stroke[:, c]) for c in (0, 1)])


def _most_likely(gaps: FloatArray, words: FloatArray) -> tuple[IntArray, FloatArray]:
    """Choose the cuts.

    Parameters
    ----------
    gaps
        ``(n − 1,)`` the score of a cut between two neighbours of the body.
    words
        ``(K, n + 1, n + 1)`` as `_Line._word_scores` gives it.

    Returns
    -------
    cuts, sure
        ``(K,)`` where the words begin, and the probability of each word's place.
    """
    count, n = len(words), words.shape[1] - 1
    cut = np.concatenate([[0.0], gaps, [0.0]])  # by the place of the first stroke behind it
    steps = words + cut[None, :, None]
    ahead = np.full((count + 1, n + 1), -np.inf)
    best = np.full((count + 1, n + 1), -np.inf)
    ahead[0, 0] = best[0, 0] = 0.0
    came = np.zeros((count + 1, n + 1), dtype=np.int64)
    for k in range(count):
        ahead[k + 1] = _log_sum(ahead[k][:, None] + steps[k], axis=0)
        ways = best[k][:, None] + steps[k]
        came[k + 1] = ways.argmax(axis=0)
        best[k + 1] = ways.max(axis=0)
    behind = np.full((count + 1, n + 1), -np.inf)
    behind[count, n] = 0.0
    for k in range(count - 1, -1, -1):
        behind[k] = _log_sum(steps[k] + behind[k + 1][None, :], axis=1)
    ends = [n]
    for k in range(count, 0, -1):
        ends.append(int(came[k, ends[-1]]))
    ends.reverse()
    sure = [
        float(np.exp(min(0.0, ahead[k, i] + steps[k, i, j] + behind[k + 1, j] - ahead[count, n])))
        for k, (i, j) in enumerate(itertools.pairwise(ends))
    ]
    return np.array(ends[:-1]), np.array(sure)


def _log_sum(values: FloatArray, axis: int) -> FloatArray:
    top = values.max(axis=axis)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: FloatArray = np.log(np.exp(values - np.expand_dims(safe, axis)).sum(axis=axis)) + safe
    return total
