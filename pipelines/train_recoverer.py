"""Train the learned recoverer, from recorded words to the weights that ship.

    python pipelines/train_recoverer.py --inks unipen_words.npz --work DIR --out models/scribe/weights.npz

Needs the `train` extra (torch). Only words of the archive's ``train`` split are used; about one writer in twelve of them
is held out to measure progress and to calibrate confidence. Seeded; stopped at any point, the same command goes on from
the last finished shard and the last checkpoint in DIR.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from recordings import Words
from recoverer.calibrate import calibrate
from recoverer.learn import imitate, judge, standardize
from recoverer.network import Network
from recoverer.risk import refine
from recoverer.samples import Sample, is_validation, load, prepare
from recoverer.store import write_weights

from inktraj.recovery.guide import Config


@dataclass(frozen=True, slots=True)
class Recipe:
    """All settings of the training; the defaults made the shipped weights."""

    variants: int = 3
    epochs: float = 6.0
    batch: int = 32
    rate: float = 1.5e-3
    drop: float = 0.05
    refine_words: int = 60_000
    refine_rate: float = 2e-4
    refine_imitation: float = 0.02
    seed: int = 1
    held_out: int = 400  # words on which progress is measured


def split(words: Words, writers: np.ndarray, samples: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Samples of the writers to learn from, and of those held out."""
    learn = [s for s in samples if not is_validation(str(writers[s.word]))]
    return learn, [s for s in samples if is_validation(str(writers[s.word]))]


def train(archive: Path, work: Path, out: Path, recipe: Recipe, *, limit: int, workers: int) -> dict[str, float]:
    """Run all stages; returns the figures on held-out words."""
    words = Words(archive)
    with np.load(archive, allow_pickle=False) as arrays:
        writers = arrays["writer"]
    indices = np.random.default_rng(recipe.seed).permutation(words.choose("train", None, limit or None))
    shards = [p for v in range(recipe.variants) for p in prepare(archive, work / "samples", indices, v, workers)]
    learn, held_out = split(words, writers, load(shards))
    plain = [s for s in held_out if s.variant == 0]
    print(f"{len(learn)} samples to learn from, {len(held_out)} held out", flush=True)
    texts = [str(words.text[s.word]) for s in learn]
    torch.manual_seed(recipe.seed)
    torch.set_num_threads(workers)
    network = Network(Config())
    standardize(network, learn[:1500])
    progress = plain[: recipe.held_out]
    imitate(
        network,
        learn,
        texts,
        progress,
        epochs=recipe.epochs,
        batch=recipe.batch,
        rate=recipe.rate,
        drop=recipe.drop,
        seed=recipe.seed,
        checkpoint=work / "imitated.pt",
    )
    refine(
        network,
        learn,
        texts,
        progress,
        words=recipe.refine_words,
        batch=recipe.batch,
        rate=recipe.refine_rate,
        imitation=recipe.refine_imitation,
        seed=recipe.seed,
        checkpoint=work / "refined.pt",
    )
    calibration, reliability = calibrate(network, plain)
    write_weights(out, network, calibration)
    return judge(network, plain) | reliability


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inks", type=Path, required=True, help="packed recorded words (.npz)")
    parser.add_argument("--work", type=Path, required=True, help="folder for samples and checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="weights file to write")
    parser.add_argument("--limit", type=int, default=0, help="a seeded choice of so many words (0: all)")
    parser.add_argument("--workers", type=int, default=2, help="processes and threads")
    for name, value in asdict(Recipe()).items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    args = parser.parse_args()
    recipe = Recipe(**{name: getattr(args, name) for name in asdict(Recipe())})
    begin = time.time()
    figures = train(args.inks, args.work, args.out, recipe, limit=args.limit, workers=args.workers)
    report = {"recipe": asdict(recipe), "words": args.limit or "all", "held_out": figures}
    report["minutes"] = round((time.time() - begin) / 60, 1)
    args.out.with_name("training.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
