"""Many figures → means with intervals, by group; and two systems on the same samples → which is better.

Conventions
-----------
* A value that is NaN (None) is left out of every figure, and how many were is told (`Summary.left_out`).
* Intervals are percentile bootstrap intervals (Efron & Tibshirani 1993, chapter 13), of the mean or of a ratio of sums.
  With `clusters` (pages, writers) whole clusters are drawn, since the words of one page are not independent; without,
  single samples are. They need at least two of what is drawn; else low and high are None.
* The same seed, data and version of numpy give the same numbers.
* **Micro** is over samples, **macro** is the mean of the groups' means; both are always named.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inktraj.errors import DataError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Values = ArrayLike | Sequence[float | None]
"""Numbers ``(n,)``; NaN and None stand for no value."""

RESAMPLES = 1000
"""How often is drawn by default."""

CONFIDENCE = 0.95
"""What share of the drawn values an interval holds by default."""

_BLOCK = 1_000_000  # draws made at once: some 25 MB
_KEPT_DRAWS = 100_000_000  # draws that are kept for the next figure: as many bytes


@dataclass(frozen=True, slots=True)
class Summary:
    """One figure over many samples.

    Parameters
    ----------
    mean, median
        Over the samples with a value; None where there is none.
    low, high
        Bootstrap interval of the mean; None where fewer than two samples or clusters were there to draw from.
    count
        Samples with a value.
    left_out
        Samples without.
    """

    mean: float | None
    median: float | None
    low: float | None
    high: float | None
    count: int
    left_out: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A statistic with its bootstrap interval; low and high are None where there was too little to draw from."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One figure by group.

    Parameters
    ----------
    micro
        Over all samples.
    macro
        Over the groups' means; its interval is of groups drawn.
    groups
        Over the samples of each group, in the order of their names.
    """

    micro: Summary
    macro: Summary
    groups: dict[Any, Summary]


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Two systems on the same samples.

    Parameters
    ----------
    first, second
        Mean (or ratio of sums) of each.
    difference
        First − second.
    low, high
        Its bootstrap interval.
    p_value
        Two-sided, of the hypothesis that there is no difference: the share of drawn differences which, moved to have
        mean 0, are at least as far from 0 as the observed one, both counted with one more (as in sacreBLEU); but not
        below 2^(1 − n) for n samples or clusters that were drawn from, as no exchange of the two systems' values
        between so few could show more. None, like low and high, where there was too little to draw from.
    count
        Samples compared.
    left_out
        Samples of which either system has no value.
    """

    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    count: int
    left_out: int


def mean(values: Values) -> float | None:
    """Return the mean of the values that are no NaN; None where there are none."""
    known = _known(values)
    return float(known.mean()) if len(known) else None


def median(values: Values) -> float | None:
    """Return the median of the values that are no NaN; None where there are none."""
    known = _known(values)
    return float(np.median(known)) if len(known) else None


def bootstrap(
    values: Values,
    *,
    per: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Interval:
    """Return the mean of values, or a ratio of sums, with its interval.

    Parameters
    ----------
    values
        ``(n,)``; NaN are left out.
    per
        ``(n,)``, not negative: the statistic is the sum of `values` over the sum of `per` instead of the mean, as for
        corpus-level AR, where `values` are N − S − D − I and `per` is N. A sample with NaN in either is left out.
    clusters
        What each sample belongs to, such as its page; whole clusters are drawn.
    resamples, confidence, seed
        How often is drawn, the share of drawn values that the interval holds, and the random numbers' seed.

    Raises
    ------
    DataError
        Another shape, infinite values, or an option out of range.
    """
    column = _column(values, "values")
    weights = np.ones_like(column) if per is None else _column(per, "per")
    if len(weights) != len(column):
        raise DataError(f"{len(column)} values per {len(weights)} numbers; give one for each")
    if (weights < 0).any():
        raise DataError("per holds a negative number; it is what the values are counted by, such as the characters N")
    known = ~(np.isnan(column) | np.isnan(weights))
    ratio = _Ratios(np.where(known, column, 0)[:, None], np.where(known, weights, 0)[:, None], clusters)
    low, high = ratio.interval(resamples, confidence, seed)
    return Interval(_float(ratio.observed()[0]), _float(low[0]), _float(high[0]))


def summarize(
    values: Values,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Summary:
    """Return mean, median, interval and counts of values ``(n,)``; the other parameters are those of `bootstrap`."""
    options: dict[str, Any] = {"clusters": clusters, "resamples": resamples, "confidence": confidence, "seed": seed}
    return summarize_all({"values": values}, **options)["values"]


def summarize_all(
    columns: Mapping[str, Values],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> dict[str, Summary]:
    """Do as `summarize` for several figures of the same samples, with the same draws for all, which is much faster.

    Parameters
    ----------
    columns
        Figures by name, each ``(n,)``.
    clusters, resamples, confidence, seed
        As for `bootstrap`.
    """
    if not columns:
        return {}
    arrays = {name: _column(values, name) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the figures are not of the same samples: {lengths}")
    table = np.column_stack(list(arrays.values()))
    known = ~np.isnan(table)
    ratios = _Ratios(np.where(known, table, 0.0), known.astype(np.float64), clusters)
    low, high = ratios.interval(resamples, confidence, seed)
    counts = known.sum(axis=0)
    return {
        name: Summary(
            mean(array), median(array), _float(low[i]), _float(high[i]), int(counts[i]), len(array) - int(counts[i])
        )
        for i, (name, array) in enumerate(arrays.items())
    }


def aggregate(
    values: Values,
    labels: Sequence[Hashable],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Aggregate:
    """Summarise values by group: data set, writer, page, word length or anything else.

    Parameters
    ----------
    values
        ``(n,)``.
    labels
        The group of each sample.
    clusters, resamples, confidence, seed
        As for `bootstrap`, within the groups and over all; for the macro mean, whole groups are drawn.
    """
    options: dict[str, Any] = {"resamples": resamples, "confidence": confidence, "seed": seed}
    return aggregate_all({"values": values}, labels, clusters=clusters, **options)["values"]


def aggregate_all(
    columns: Mapping[str, Values],
    labels: Sequence[Hashable],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> dict[str, Aggregate]:
    """Do as `aggregate` for several figures of the same samples, with the same draws for all."""
    options: dict[str, Any] = {"resamples": resamples, "confidence": confidence, "seed": seed}
    arrays = {name: _column(values, name) for name, values in columns.items()}
    micro = summarize_all(arrays, clusters=clusters, **options)
    groups: dict[Hashable, dict[str, Summary]] = {}
    count = len(next(iter(arrays.values()))) if arrays else len(labels)
    for label, places in group_places(labels, count).items():
        inside = None if clusters is None else [clusters[i] for i in places]
        groups[label] = summarize_all(
            {name: array[places] for name, array in arrays.items()}, clusters=inside, **options
        )
    means = {name: [_nan(group[name].mean) for group in groups.values()] for name in columns}
    macro = summarize_all(means, **options)
    return {
        name: Aggregate(micro[name], macro[name], {label: group[name] for label, group in groups.items()})
        for name in columns
    }


def group_places(labels: Sequence[Hashable], count: int) -> dict[Any, IntArray]:
    """Return where each label stands among `count` samples, in the order of numbers, then of texts.

    Raises
    ------
    DataError
        There is not one label for each sample.
    """
    if len(labels) != count:
        raise DataError(f"{len(labels)} labels for {count} samples; give one for each")
    places: dict[Hashable, list[int]] = {}
    for i, label in enumerate(labels):
        places.setdefault(label, []).append(i)

    def order(label: Hashable) -> tuple[int, float, str]:
        return (0, float(label), "") if isinstance(label, int | float) else (1, 0.0, str(label))

    return {label: np.array(places[label], dtype=np.int64) for label in sorted(places, key=order)}


def paired_bootstrap(
    first: Mapping[Any, float | None] | Values,
    second: Mapping[Any, float | None] | Values,
    *,
    per: Mapping[Any, float] | ArrayLike | None = None,
    clusters: Mapping[Any, Hashable] | Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> PairedComparison:
    """Compare two systems on the same samples, each draw taking the same samples of both.

    Parameters
    ----------
    first, second
        A value for each sample: by sample's name, or ``(n,)`` in the same order. None and NaN: the system has none,
        and the sample is left out for both.
    per
        As for `bootstrap`: both systems' values are summed and divided by the sum of this.
    clusters
        What each sample belongs to; whole clusters are drawn.
    resamples, confidence, seed
        As for `bootstrap`.

    Raises
    ------
    DataError
        The systems have not the same samples: the message says how many are only on either side. Or as `bootstrap`.
    """
    names = _common_names(first, second)
    if names is not None:
        first, second, per, clusters = (_in_order(table, names) for table in (first, second, per, clusters))
    a, b = _column(first, "first"), _column(second, "second")
    if len(a) != len(b):
        raise DataError(f"{len(a)} values of the first system and {len(b)} of the second; they need the same samples")
    weights = np.ones_like(a) if per is None else _column(per, "per")
    if len(weights) != len(a) or (weights < 0).any():
        raise DataError(f"{len(a)} values per {len(weights)} numbers; give one for each, none of them negative")
    known = ~(np.isnan(a) | np.isnan(b) | np.isnan(weights))
    table = np.where(known[:, None], np.column_stack([a, b]), 0.0)
    ratios = _Ratios(table, np.where(known, weights, 0.0)[:, None].repeat(2, axis=1), clusters)
    left, right = ratios.observed()
    low = high = p_value = None
    drawn = ratios.drawn(resamples, confidence, seed)
    if drawn is not None:
        differences = drawn[:, 0] - drawn[:, 1]
        differences = differences[~np.isnan(differences)]
        ends = _percentiles(differences[:, None], confidence)
        low, high = (_float(end[0]) for end in ends)
        # Rounding must not make a difference rarer than itself.
        least = abs(left - right) * (1 - 1e-9)
        extreme = int((np.abs(differences - differences.mean()) >= least).sum())
        p_value = max((extreme + 1) / (len(differences) + 1), 2.0 ** (1 - ratios.usable()))
    return PairedComparison(
        first=_float(left),
        second=_float(right),
        difference=_float(left - right),
        low=low,
        high=high,
        p_value=p_value,
        count=int(known.sum()),
        left_out=len(a) - int(known.sum()),
    )


class _Ratios:
    """Ratios of sums, Σ top / Σ bottom, one for each column, over samples or whole clusters drawn with replacement."""

    def __init__(self, top: FloatArray, bottom: FloatArray, clusters: Any) -> None:
        if clusters is not None:
            if len(clusters) != len(top):
                raise DataError(f"{len(clusters)} clusters for {len(top)} samples; give one for each")
            numbers: dict[Hashable, int] = {}
            of = np.array([numbers.setdefault(c, len(numbers)) for c in clusters], dtype=np.int64)
            top, bottom = (_sums(table, of, len(numbers)) for table in (top, bottom))
        self._top, self._bottom = top, bottom

    def observed(self) -> FloatArray:
        """Return the ratios of all samples, NaN for 0/0."""
        return _divided(self._top.sum(axis=0), self._bottom.sum(axis=0))

    def drawn(self, resamples: int, confidence: float, seed: int) -> FloatArray | None:
        """Return the ratios ``(resamples, columns)`` of draws; None where no column has two things to draw from."""
        check_draws(resamples, confidence, seed)
        n, columns = self._top.shape
        if self._scarce().all():
            return None
        both = np.concatenate([self._top, self._bottom], axis=1)
        parts = [counts @ both for counts in _draws(n, resamples, seed)]
        sums = np.concatenate(parts)
        return _divided(sums[:, :columns], sums[:, columns:])

    def interval(self, resamples: int, confidence: float, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return low and high of each column; NaN where there is too little to draw from."""
        drawn = self.drawn(resamples, confidence, seed)
        nothing = np.full(self._top.shape[1], np.nan)
        if drawn is None:
            return nothing, nothing
        low, high = (np.where(self._scarce(), np.nan, ends) for ends in _percentiles(drawn, confidence))
        return low, high

    def usable(self) -> int:
        """Return how many samples or clusters the first column has a value of."""
        return int((self._bottom[:, 0] > 0).sum())

    def _scarce(self) -> NDArray[np.bool_]:
        """Say which columns have fewer than two things with a value: their interval would be a point."""
        scarce: NDArray[np.bool_] = (self._bottom > 0).sum(axis=0) < 2
        return scarce


def _draws(n: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """Yield how often each of n things is drawn, ``(some, n)``, `resamples` rows in all, with bounded memory."""
    rows = max(1, _BLOCK // n)
    if n * resamples <= _KEPT_DRAWS:
        kept = _kept_draws(n, resamples, seed)
        yield from (kept[start : start + rows].astype(np.float64) for start in range(0, resamples, rows))
    else:
        yield from _drawn_anew(n, resamples, seed)


@lru_cache(maxsize=1)
def _kept_draws(n: int, resamples: int, seed: int) -> NDArray[np.uint8]:
    """Return the draws of `_drawn_anew` whole: several figures and groups of the same pages need the same ones."""
    # Nobody draws one thing 256 times in n: of 1,000 things, the chance is below 1e-500; of fewer, n bounds it.
    return np.concatenate([counts.astype(np.uint8) for counts in _drawn_anew(n, resamples, seed)])


def _drawn_anew(n: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    rng = np.random.default_rng(seed)
    rows = max(1, _BLOCK // n)
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        chosen = rng.integers(0, n, size=(count, n))
        chosen += np.arange(count)[:, None] * n
        yield np.bincount(chosen.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)


def _sums(table: FloatArray, of: IntArray, clusters: int) -> FloatArray:
    return np.column_stack([np.bincount(of, weights=column, minlength=clusters) for column in table.T])


def _divided(top: FloatArray, bottom: FloatArray) -> FloatArray:
    out: FloatArray = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)
    return out


def _percentiles(drawn: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    ends = ((1 - confidence) / 2, (1 + confidence) / 2)
    out = np.full((2, drawn.shape[1]), np.nan)
    for i, column in enumerate(drawn.T):
        known = column[~np.isnan(column)]  # a draw may hold only samples without a value
        if len(known):
            out[:, i] = np.quantile(known, ends)
    return out[0], out[1]


def check_draws(resamples: int, confidence: float, seed: int) -> None:
    """Raise DataError where an option of `bootstrap` is out of range."""
    if isinstance(resamples, bool) or not isinstance(resamples, int | np.integer) or resamples < 1:
        raise DataError(f"resamples is a whole number above 0, not {resamples!r}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise DataError(f"the seed is a whole number, 0 or more, not {seed!r}")
    if not 0 < confidence < 1:
        raise DataError(f"a confidence is a share between 0 and 1, not {confidence!r}; was it meant in per cent?")


def _column(values: Any, name: str) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError) as err:
        raise DataError(f"{name} is not an array of numbers: {err}") from err
    if array.ndim != 1:
        raise DataError(f"{name} has shape {array.shape}, expected (n,)")
    if np.isinf(array).any():
        raise DataError(f"{name} holds infinity, of which there is no mean; NaN stands for no value")
    return array


def _known(values: Values) -> FloatArray:
    array = _column(values, "values")
    return array[~np.isnan(array)]


def _common_names(first: Any, second: Any) -> list[Any] | None:
    """Return the samples' names where values come by name; DataError where the two have not the same ones."""
    if not isinstance(first, Mapping) and not isinstance(second, Mapping):
        return None
    if not (isinstance(first, Mapping) and isinstance(second, Mapping)):
        raise DataError("the values of one system have names and those of the other have none; give both in one form")
    lone = [[name for name in own if name not in other] for own, other in ((first, second), (second, first))]
    if lone[0] or lone[1]:
        shown = ", such as ".join(["", repr((lone[0] or lone[1])[0])])
        raise DataError(
            f"the systems have not the same samples: {len(lone[0])} only in the first, {len(lone[1])} only in the "
            f"second, {len(first) - len(lone[0])} in both{shown}"
        )
    return list(first)


def _in_order(table: Any, names: Sequence[Any]) -> Any:
    if not isinstance(table, Mapping):
        return table
    missing = [name for name in names if name not in table]
    if missing:
        raise DataError(f"{len(missing)} samples have no entry in clusters or per, such as {missing[0]!r}")
    return [table[name] for name in names]


def _float(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)


def _nan(value: float | None) -> float:
    return math.nan if value is None else value
