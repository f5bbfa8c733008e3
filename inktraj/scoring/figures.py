"""The figures that are told of a set of words, and how each is made of the words' values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from inktraj.metrics.statistics import Summary, bootstrap, summarize_all

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Parameters
    ----------
    name, label
        For machines and for people.
    better
        Whether less or more is better; "" where neither.
    values
        The column of the words' values.
    per
        The column by whose sum that of the values is divided (micro); "" for the mean over words.
    told
        Whether people are told of it without asking; files hold all.
    worst
        Whether a missing or invalid prediction has a value, the declared worst.
    """

    name: str
    label: str
    better: Literal["less", "more", ""] = "less"
    values: str = ""
    per: str = ""
    told: bool = True
    worst: bool = True

    @property
    def column(self) -> str:
        """The column of the words' values."""
        return self.values or self.name


FIGURES = (
    Figure("dtw", "DTW"),
    Figure("tolerant_dtw", "DTW, matched strokes"),
    Figure("order_cost", "DTW due to order", worst=False),
    Figure("direction_cost", "DTW due to direction", worst=False),
    Figure("shape_cost", "DTW due to shape", worst=False),
    Figure("dtw_placed", "DTW, best place and scale", worst=False),
    Figure("chamfer", "Chamfer"),
    Figure("chamfer_pred_to_ref", "Chamfer, prediction to reference", told=False, worst=False),
    Figure("chamfer_ref_to_pred", "Chamfer, reference to prediction", told=False),
    Figure("chamfer_squared", "Chamfer, squared", told=False),
    Figure("hausdorff", "Hausdorff"),
    Figure("ldtw", "LDTW, unit of the frame"),
    Figure("aiou", "AIoU", "more"),
    Figure("ink_precision", "ink precision", "more"),
    Figure("ink_recall", "ink recall", "more"),
    Figure("ink_f1", "ink F1", "more"),
    Figure("order_agreement", "order agreement (τ)", "more"),
    Figure("direction_agreement", "direction agreement", "more"),
    Figure("start_accuracy", "start accuracy", "more"),
    Figure("start_distance", "start distance", told=False),
    Figure("penup_error", "strokes too many", "", told=False),
    Figure("penup_error_size", "pen-up error, strokes"),
    Figure("dtw_total", "DTW, raw sum", told=False),
    Figure("dtw_length", "DTW, length of path", "", told=False),
    Figure("pred_strokes", "strokes predicted", "", told=False),
    Figure("ref_strokes", "strokes of the reference", "", told=False),
    Figure("ar", "AR, micro", "more", "accurate_characters", "characters"),
    Figure("cr", "CR, micro", "more", "correct_characters", "characters"),
    Figure("cer", "CER, micro", "less", "wrong_characters", "characters"),
    Figure("wer", "WER, micro", "less", "wrong_words", "words"),
    Figure("ar_macro", "AR, macro", "more", "ar", told=False),
    Figure("cr_macro", "CR, macro", "more", "cr", told=False),
    Figure("cer_macro", "CER, macro", "less", "cer", told=False),
    Figure("wer_macro", "WER, macro", "less", "wer", told=False),
    Figure("style", "style", "more"),
    Figure("style_top1", "style, writer is likeliest", "more"),
    Figure("style_cosine", "style, cosine", "more", told=False, worst=False),
    Figure("style_ceiling", "style ceiling: own words", "", worst=False),
    Figure("style_floor", "style floor: others' words", "", worst=False),
)
"""All figures in the order in which they are told."""


def summaries(
    columns: Mapping[str, FloatArray], clusters: Sequence[Hashable] | None, options: Mapping[str, Any]
) -> dict[str, Summary]:
    """Summarise the figures of which the columns are there, over the words of the columns.

    Parameters
    ----------
    columns
        Values by column, each ``(words,)``.
    clusters
        What is drawn whole for intervals; None for single words.
    options
        ``resamples``, ``confidence`` and ``seed`` as for `inktraj.metrics.statistics.bootstrap`.
    """
    there = [figure for figure in FIGURES if figure.column in columns]
    means = {figure.name: columns[figure.column] for figure in there if not figure.per}
    found = summarize_all(means, clusters=clusters, **options)
    for figure in there:
        if figure.per:
            found[figure.name] = _ratio(columns[figure.column], columns[figure.per], clusters, options)
    return {figure.name: found[figure.name] for figure in there}


def _ratio(
    values: FloatArray, per: FloatArray, clusters: Sequence[Hashable] | None, options: Mapping[str, Any]
) -> Summary:
    interval = bootstrap(values, per=per, clusters=clusters, **options)
    known = int(np.isfinite(values).sum())
    return Summary(interval.value, None, interval.low, interval.high, known, len(values) - known)
