"""What came out: a status and values for each word, figures over all of them, and what they may be compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from inktraj.errors import DataError
from inktraj.metrics.signature import Signature, require_same
from inktraj.metrics.statistics import (
    CONFIDENCE,
    RESAMPLES,
    PairedComparison,
    Summary,
    check_draws,
    group_places,
    paired_bootstrap,
    summarize,
)
from inktraj.scoring.figures import FIGURES, FloatArray, summaries
from inktraj.scoring.matching import STATUSES, Status

Grouping = Literal["writer", "page", "length", "dataset"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
Clusters = Literal["page", "writer", "word"]
CLUSTERS: tuple[Clusters, ...] = get_args(Clusters)

UNKNOWN = "unknown"
"""The group of words of which a writer, page, length or data set is not known."""


@dataclass(frozen=True, slots=True)
class ScoredWord:
    """What is known of one reference and its prediction.

    Parameters
    ----------
    name, page, writer, dataset, text
        Of the reference; "" where not known.
    length
        Characters of its text; None where that is not known.
    status, reason
        What became of the prediction, and why.
    reading
        What the recogniser read; None where nothing was read.
    """

    name: str
    page: str
    writer: str
    dataset: str
    text: str
    length: int | None
    status: Status
    reason: str
    reading: str | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    """How intervals are made.

    Parameters
    ----------
    clusters
        What is drawn whole: pages or writers, whose words are not independent, or single words.
    resamples, confidence, seed
        As for `inktraj.metrics.statistics.bootstrap`.

    Raises
    ------
    DataError
        An option is out of range; so that this is known before the work is done.
    """

    clusters: Clusters = "page"
    resamples: int = RESAMPLES
    confidence: float = CONFIDENCE
    seed: int = 0

    def __post_init__(self) -> None:
        if self.clusters not in CLUSTERS:
            raise DataError(f"clusters are {', '.join(CLUSTERS)}, not {self.clusters!r}")
        check_draws(self.resamples, self.confidence, self.seed)

    def options(self) -> dict[str, Any]:
        """Return them as the statistics take them."""
        return {"resamples": self.resamples, "confidence": self.confidence, "seed": self.seed}


@dataclass(frozen=True, slots=True)
class Twice:
    """One figure, twice.

    Parameters
    ----------
    all
        Over all words but those with the status ``error``; missing and invalid ones score the declared worst. Figures
        that have no worst, such as the parts of a DTW, have no value where there are such words.
    valid
        Over words with a valid prediction only; to be read with the coverage.
    """

    all: Summary
    valid: Summary


@dataclass(frozen=True, slots=True)
class Group:
    """The words of one page, writer, length or data set."""

    counts: dict[Status, int]
    coverage: float | None
    figures: dict[str, Twice]


@dataclass(frozen=True, slots=True)
class Groups:
    """Figures by group.

    Parameters
    ----------
    groups
        By label, in order.
    macro
        Means of the groups' figures; their intervals are of groups drawn.
    """

    groups: dict[Any, Group]
    macro: dict[str, Twice]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scores:
    """Predictions scored against references.

    Parameters
    ----------
    words
        One for each reference with strokes.
    columns
        Values by name, ``(words,)``; NaN where a word has none. Those of missing and invalid words are the worst.
    signatures
        What was computed, one for each kind of figure.
    references
        SHA-256 of the references' names and strokes, and of their frames where the unit is the page's.
    drawing
        How intervals are made.
    unknown
        Predictions that no reference has; not scored.
    empty
        References without strokes; not scored.
    unread
        Files and lines of the predictions that could not be used, and why.
    warnings
        What must be known to read the figures.
    groupings
        By what the figures are also told where nothing else is asked for.
    """

    words: tuple[ScoredWord, ...]
    columns: Mapping[str, FloatArray]
    signatures: tuple[Signature, ...]
    references: str
    drawing: Drawing = field(default_factory=Drawing)
    unknown: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    groupings: tuple[Grouping, ...] = ()

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        return f"<Scores of {len(self.words)} words: {told}>"

    @property
    def counts(self) -> dict[Status, int]:
        """How many words have each status."""
        return _counts(self.words)

    @property
    def coverage(self) -> float | None:
        """Share of valid words among those that are no error; None where there are none."""
        return _coverage(self.counts)

    @property
    def figures(self) -> dict[str, Twice]:
        """Every figure over all words."""
        return self._figures(np.arange(len(self.words)))

    @property
    def drawn(self) -> str:
        """What is drawn for intervals, in words."""
        clusters, kind = self._clusters(), self.drawing.clusters
        if clusters is not None:
            count = len(set(clusters))
            return f"{count} {kind}s" + (", which are few: intervals may be too narrow" if count < _FEW else "")
        if kind == "word":
            return "words"
        known = any(getattr(word, kind) for word in self.words)
        return f"words, for {'all are of one' if known else 'no reference tells its'} {kind}"

    def without(self, names: Collection[str]) -> Scores:
        """Return the scores of the other words."""
        kept = [i for i, word in enumerate(self.words) if word.name not in names]
        columns = {name: column[kept] for name, column in self.columns.items()}
        return replace(self, words=tuple(self.words[i] for i in kept), columns=columns)

    def by(self, grouping: Grouping) -> Groups:
        """Return every figure by ``"writer"``, ``"page"``, ``"length"`` of the text or ``"dataset"``.

        Raises
        ------
        DataError
            Another grouping, or no reference tells of it.
        """
        places = group_places(labels(self.words, grouping), len(self.words))
        groups = {}
        for label, where in places.items():
            counts = _counts([self.words[i] for i in where])
            groups[label] = Group(counts, _coverage(counts), self._figures(where))
        macro = {
            name: Twice(*(self._macro([getattr(g.figures[name], side) for g in groups.values()]) for side in _SIDES))
            for name in next(iter(groups.values())).figures
        }
        return Groups(groups, macro)

    def compare(self, other: Scores) -> dict[str, dict[Literal["all", "valid"], PairedComparison]]:
        """Compare with another system on the same references by paired bootstrap; differences are self − other.

        Returns
        -------
        dict
            By figure: over all words that are no error on either side, and over words valid on both.

        Raises
        ------
        DataError
            The signatures differ, or the references do: their names, strokes, or the texts and writers of figures.
        """
        _require_comparable(self, other)
        names = [word.name for word in self.words]
        valid = [{word.name for word in scores.words if word.status == "valid"} for scores in (self, other)]
        either = set(names) - (valid[0] & valid[1])
        unusable = any(scores.counts["missing"] + scores.counts["invalid"] for scores in (self, other))
        clusters = self._clusters()
        options = self.drawing.options()
        options["clusters"] = None if clusters is None else dict(zip(names, clusters, strict=True))
        out: dict[str, dict[Literal["all", "valid"], PairedComparison]] = {}
        for figure in FIGURES:
            if figure.column in self.columns and figure.column in other.columns:
                options["per"] = self._named(figure.per) if figure.per else None
                values = [scores._named(figure.column) for scores in (self, other)]
                both = [side | dict.fromkeys(either & side.keys()) for side in values]
                if unusable and not figure.worst:
                    # What has no worst value says nothing of all words.
                    values = [dict.fromkeys(side) for side in values]
                out[figure.name] = {
                    "all": paired_bootstrap(*values, **options),
                    "valid": paired_bootstrap(*both, **options),
                }
        return out

    def to_json(self, by: Sequence[Grouping] | None = None) -> dict[str, Any]:
        """Return all figures, and by group (None: by `groupings`), as plain numbers and names."""
        from inktraj.scoring.writing import to_json

        return to_json(self, self.groupings if by is None else by)

    def to_markdown(self, by: Sequence[Grouping] | None = None) -> str:
        """Return the figures, and the headlines by group (None: by `groupings`), as Markdown tables."""
        from inktraj.scoring.writing import to_markdown

        return to_markdown(self, self.groupings if by is None else by)

    def to_csv(self, file: str | Path) -> None:
        """Write a row a word as CSV; DataError where it cannot be written."""
        from inktraj.scoring.writing import write_csv

        write_csv(self, file)

    def to_parquet(self, file: str | Path) -> None:
        """Write a row a word as Parquet, from which `read_scores` makes these scores again."""
        from inktraj.scoring.writing import write_parquet

        write_parquet(self, file)

    def _named(self, column: str) -> dict[str, float | None]:
        return dict(zip((word.name for word in self.words), self.columns[column].tolist(), strict=True))

    def _figures(self, where: Any) -> dict[str, Twice]:
        """Return the figures over some words, given by their places."""
        valid = np.array([self.words[i].status == "valid" for i in where], dtype=np.bool_)
        columns = {name: column[where] for name, column in self.columns.items()}
        clusters = self._clusters()
        own = None if clusters is None else [clusters[i] for i in where]
        usable = None if own is None else [c for c, v in zip(own, valid, strict=True) if v]
        options = self.drawing.options()
        some = summaries({name: column[valid] for name, column in columns.items()}, usable, options)
        if any(self.words[i].status in ("missing", "invalid") for i in where):
            # What has no worst value says nothing of all words.
            columns |= {f.column: np.full(len(where), np.nan) for f in FIGURES if not f.worst and f.column in columns}
        all = summaries(columns, own, options)
        return {name: Twice(all[name], some[name]) for name in all}

    def _macro(self, found: Sequence[Summary]) -> Summary:
        return summarize([s.mean for s in found], **self.drawing.options())

    def _clusters(self) -> list[str] | None:
        """Return what each word is drawn with; None for words by themselves, and where fewer than two are known."""
        if self.drawing.clusters == "word":
            return None
        found = [getattr(word, self.drawing.clusters) or UNKNOWN for word in self.words]
        return found if len(set(found)) > 1 else None


_SIDES = ("all", "valid")
_FEW = 10  # clusters below which percentile intervals are known to be too narrow


def _require_comparable(first: Scores, second: Scores) -> None:
    """Raise DataError where figures of one name were computed otherwise, or against other references."""
    if len(first.signatures) != len(second.signatures):
        kinds = [", ".join(s.metric for s in scores.signatures) for scores in (first, second)]
        raise DataError(f"these scores may not be compared: one has {kinds[0]}, the other {kinds[1]}")
    for own, others in zip(first.signatures, second.signatures, strict=True):
        require_same(own, others)
    known = {word.name: word for word in second.words}
    if {word.name for word in first.words} == set(known) and first.references != second.references:
        raise DataError(
            "these scores may not be compared: the references have the same names, but other strokes "
            "or, where these are the unit, frames"
        )
    for column, told in (("ar", "text"), ("style", "writer")):
        changed = [
            word.name
            for word in first.words
            if word.name in known and getattr(word, told) != getattr(known[word.name], told)
        ]
        if column in first.columns and changed:
            raise DataError(
                f"these scores may not be compared: {len(changed)} references have another {told}, such as "
                f"{changed[0]!r}"
            )


def labels(words: Sequence[ScoredWord], grouping: Grouping) -> list[Any]:
    """Return the group of each word, `UNKNOWN` where it is not told.

    Raises
    ------
    DataError
        Another grouping, or no reference tells of it.
    """
    if grouping not in GROUPINGS:
        raise DataError(f"words are grouped by {', '.join(GROUPINGS)}, not by {grouping!r}")
    found = [getattr(word, grouping) for word in words]
    known = [label not in ("", None) for label in found]
    if not any(known):
        what, where = ("text", "text") if grouping == "length" else (grouping, f"extra, as {grouping!r}")
        raise DataError(
            f"words cannot be grouped by {grouping}: no reference tells its {what}, which stands in a record's {where}"
        )
    return [label if there else UNKNOWN for label, there in zip(found, known, strict=True)]


def _counts(words: Sequence[ScoredWord]) -> dict[Status, int]:
    found = Counter(word.status for word in words)
    return {status: found[status] for status in STATUSES}


def _coverage(counts: Mapping[Status, int]) -> float | None:
    scored = sum(counts.values()) - counts["error"]
    return counts["valid"] / scored if scored else None
