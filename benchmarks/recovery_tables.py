"""Tables of `recovery.py`: pictures that get worse in one respect, what quality costs, and public peers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from recovery_scores import Row, figures_of, measure

Table = dict[str, dict[str, Any]]  # name of the row → its figures

BASE = {"height": 96.0, "pen": 4.0, "noise": 3.0, "blur": 0.6}
PENS, HEIGHTS = (1.2, 2.0, 3.0, 5.0, 8.0), (24.0, 48.0, 200.0)
NOISES, BLURS = (0.0, 6.0, 12.0, 20.0), (0.0, 1.0, 2.0, 3.0)
BEAMS = (1, 2, 4, 8, 16)

QUALITY = ("words", "failures", "dtw_median", "dtw_mean", "dtw_under_001", "chamfer_mean", "penup_error_mean")
SIGNED = ("penup_error_signed_mean", "ms_per_word")
BESIDE = (*QUALITY, "tolerant_dtw_median", "start_accuracy", "direction_accuracy")
COST = ("words", "failures", "ms_per_word", "ms_per_word_p99", "dtw_median", "dtw_mean", "dtw_under_001")
COMPARED = ("dtw_median", "dtw_mean", "dtw_under_001", "chamfer_median", "chamfer_mean", "tolerant_dtw_median")
COMPARED += ("tolerant_dtw_mean", "penup_error_mean", "penup_error_signed_mean", "start_accuracy")
COMPARED += ("direction_accuracy", "ms_per_word", "ms_max")


def looks() -> dict[str, dict[str, float]]:
    """Return how the rows of the sweep are drawn: the base with one respect changed.

    Height alone keeps the pen, so that small words close up; "resolution" shrinks or grows the pen along.
    """
    rows = {"base: " + ", ".join(f"{name} {value:g}" for name, value in BASE.items()): BASE}
    for name, values in (("pen", PENS), ("height", HEIGHTS), ("noise", NOISES), ("blur", BLURS)):
        rows |= {f"{name} {value:g}": BASE | {name: value} for value in values}
    for height in HEIGHTS:
        pen = BASE["pen"] * height / BASE["height"]
        rows[f"resolution: height {height:g}, pen {pen:.2g}"] = BASE | {"height": height, "pen": pen}
    return rows


def sweep(words: Any, indices: np.ndarray, recoverer: Any) -> Table:
    """Measure under each look, on clean pictures."""
    table = {}
    for name, look in looks().items():
        figures = figures_of(*measure(words, indices, recoverer, **look))
        table[name] = {key: figures[key] for key in (*QUALITY, *SIGNED)}
    return table


def beside(
    words: Any, indices: np.ndarray, rows: list[Row], recoverer: Any, others: Mapping[str, dict[str, Any]]
) -> Table:
    """Measure variations of a run on the same words; `others` names them: recoverer, tell_text or a look."""
    figures = {"this run": figures_of(rows, [])}
    for name, how in others.items():
        figures[name] = figures_of(*measure(words, indices, **{"recoverer": recoverer} | how))
    return {name: {key: row[key] for key in (*BESIDE, *SIGNED)} for name, row in figures.items()}


def curve(words: Any, indices: np.ndarray, recoverers: Mapping[str, Any], **look: Any) -> Table:
    """Measure what each recoverer costs and what it gives, on the same words."""
    table = {}
    for name, recoverer in recoverers.items():
        figures = figures_of(*measure(words, indices, recoverer, **look))
        table[name] = {key: figures[key] for key in (*COST, "penup_error_mean")}
    return table


def compare(words: Any, indices: np.ndarray, ours: dict[str, list[Row]], peers: list[Any], **look: Any) -> Table:
    """Compare our rows, under our name, with the peers on the words that all recovered; failures are of all words."""
    everyone = dict(ours)
    for peer in peers:
        everyone[peer.name], failures = measure(words, indices, peer, **look)
        for failure in failures[:3]:
            print(f"{peer.name}: {failure}")
    common = set.intersection(*({row["index"] for row in rows} for rows in everyone.values()))
    table = {}
    for name, rows in everyone.items():
        figures = figures_of([row for row in rows if row["index"] in common], [])
        table[name] = {"words": len(common), "failures": len(indices) - len(rows)}
        table[name] |= {key: figures[key] for key in COMPARED}
    return table


def printed(title: str, table: Table) -> str:
    """Return the table for people."""
    keys = list(next(iter(table.values())))
    cells = [[title, *keys], *([name, *(shown(row[key]) for key in keys)] for name, row in table.items())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in cells]
    return "\n".join(lines)


def shown(value: Any) -> str:
    return "–" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
