"""Fit how wide letters are and of how many strokes, for cutting recorded lines into words.

    python pipelines/fit_letters.py --inks FILE.npz

prints the tables of inktraj/datasets/letters.py. A word's width, and its number of strokes, is taken for its writer's
factor times the sum over its letters; letters and factors are fitted in turn by weighted least squares on the words of
the ``train`` split, without words that are far off (wrong labels). Widths are in mean small letters, strokes in mean
letters.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from recordings import Words

ROUNDS, RIDGE, LEAST = 30, 10.0, 0.05


def fit(counts: np.ndarray, values: np.ndarray, writer: np.ndarray, far: float) -> np.ndarray:
    """Return what each letter adds: ``(words, letters)`` counts, ``(words,)`` values and writers' numbers."""
    added, kept = np.ones(counts.shape[1]), np.ones(len(values), dtype=bool)
    share = 1 / np.sqrt(counts.sum(axis=1))
    for _ in range(ROUNDS):
        sums = counts @ added
        factor = np.ones(writer.max() + 1)
        for k in range(len(factor)):
            mine = (writer == k) & kept
            factor[k] = np.median(values[mine] / sums[mine]) if mine.any() else 1.0
        kept = np.abs(values / (sums * factor[writer]) - 1) < far
        a = (counts * share[:, None])[kept]
        b = (values / factor[writer] * share)[kept]
        added = np.linalg.solve(a.T @ a + RIDGE * np.eye(a.shape[1]), a.T @ b + RIDGE * added)
        added = np.maximum(added, LEAST)
        added /= sums.mean() / counts.sum(axis=1).mean()
    return added


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inks", type=Path, required=True)
    options = parser.parse_args(arguments)
    words = Words(options.inks)
    with np.load(options.inks, allow_pickle=False) as archive:
        writers, extent = archive["writer"], archive["extent"].astype(float)
    chosen = words.choose("train", None, None)
    letters = sorted(set("".join(words.text[chosen].tolist())))
    counts = np.array([[text.count(c) for c in letters] for text in words.text[chosen].tolist()], dtype=float)
    writer = np.unique(writers[chosen], return_inverse=True)[1]
    ink = [words.strokes(i) for i in chosen]
    width = np.array([np.ptp(np.concatenate(s)[:, 0]) for s in ink]) * extent[chosen] / 4000
    number = np.array([len(s) for s in ink], dtype=float)
    printed = words.style[chosen] == "PRINTED"

    def show(name: str, added: np.ndarray, mean: float) -> None:
        print(name, {c: round(float(v / mean), 2) for c, v in zip(letters, added, strict=True)})

    widths = fit(counts, width, writer, 0.8)
    small = np.array([c.islower() for c in letters])
    show("widths", widths, counts[:, small].sum(axis=0) @ widths[small] / counts[:, small].sum())
    for name, mine in (("printed", printed), ("joined", ~printed)):
        added = fit(counts[mine], number[mine], np.unique(writer[mine], return_inverse=True)[1], 0.6)
        show(name, added, counts[mine].sum(axis=0) @ added / counts[mine].sum())


if __name__ == "__main__":
    main()
