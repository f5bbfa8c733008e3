"""Train the learned recoverer, from recorded words to the weights that ship.

    python pipelines/train_recoverer.py --inks unipen_words.npz --work DIR --out models/scribe/weights.npz

Needs the `train` extra (torch). Only words of the archive's ``train`` split are used; about one writer in twelve of
them is held out to measure progress and to calibrate confidence. Seeded; stopped at any point, the same command goes on
from the last finished shard and the last checkpoint in DIR.
"""

from __future__ import annotations

import argparse
import hashlib
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
from recoverer.workers import pool

from inktraj.errors import DataError, InktrajError
from inktraj.recovery.guide import Config


@dataclass(frozen=True, slots=True)
class Recipe:
    """All settings of the training; the defaults made the shipped weights."""

    variants: int = 3  # pictures of each word
    networks: int = 1  # a second one, averaged with the first, gained nothing
    epochs: float = 4.25
    horizon: float = 6.0  # epochs over which the rate would fall to nothing; refinement takes over before
    batch: int = 32
    rate: float = 1.5e-3
    drop: float = 0.12
    refine_words: int = 128_000
    refine_rate: float = 2.5e-4
    refine_imitation: float = 0.02
    seed: int = 3
    watched: int = 400  # held-out words on which progress is measured


@dataclass(frozen=True, slots=True)
class Material:
    """What there is to learn from, and what is held out."""

    learn: list[Sample]
    texts: list[str]
    writers: list[str]
    held_out: list[Sample]  # drawn as the benchmark draws

    @classmethod
    def read(cls, archive: Path, shards: list[Path]) -> Material:
        """Read samples, divided by writer."""
        words = Words(archive)
        with np.load(archive, allow_pickle=False) as arrays:
            writers = arrays["writer"]
        samples = load(shards)
        learn = [s for s in samples if not is_validation(str(writers[s.word]))]
        held_out = [s for s in samples if is_validation(str(writers[s.word])) and s.variant == 0]
        if not learn or not held_out:
            raise DataError(
                f"{archive} gives {len(learn)} samples to learn from and {len(held_out)} of writers held out; "
                "training needs both: is --limit too small, or are all words of one writer?"
            )
        return cls(learn, [str(words.text[s.word]) for s in learn], [str(writers[s.word]) for s in learn], held_out)


def train_network(archive: Path, work: Path, recipe: Recipe, member: int, shards: list[Path]) -> Network:
    """Train one of the networks, in one thread; checkpoints lie in `work`."""
    torch.set_num_threads(1)
    material = Material.read(archive, shards)
    seed = recipe.seed + 1 + member  # the seed itself shuffles the words
    torch.manual_seed(seed)
    network = Network(Config())
    standardize(network, material.learn[:1500])
    common = (network, material.learn, material.texts, material.writers, material.held_out[: recipe.watched])
    imitate(
        *common,
        epochs=recipe.epochs,
        horizon=recipe.horizon,
        batch=recipe.batch,
        rate=recipe.rate,
        drop=recipe.drop,
        seed=seed,
        checkpoint=work / f"imitated{member}.pt",
    )
    refine(
        *common,
        words=recipe.refine_words,
        batch=recipe.batch,
        rate=recipe.refine_rate,
        imitation=recipe.refine_imitation,
        drop=recipe.drop,
        seed=seed,
        checkpoint=work / f"refined{member}.pt",
    )
    return network


def claim(work: Path, settings: dict[str, object]) -> None:
    """Note what a folder is for, so that samples and checkpoints of another training are never taken for this one's."""
    work.mkdir(parents=True, exist_ok=True)
    note, text = work / "training.json", json.dumps(settings, indent=2, sort_keys=True) + "\n"
    if note.exists() and note.read_text() != text:
        raise DataError(f"{work} holds a training with other settings, told in {note.name}; give --work another folder")
    note.write_text(text)


def train(archive: Path, work: Path, out: Path, recipe: Recipe, *, limit: int, workers: int) -> dict[str, float]:
    """Run all stages; returns the figures on held-out words."""
    words = Words(archive)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    claim(work, {"recipe": asdict(recipe), "limit": limit, "archive": digest})
    indices = words.choose("train", None, limit or None)
    indices = np.random.default_rng(recipe.seed).permutation(indices)
    shards = [p for v in range(recipe.variants) for p in prepare(archive, work / "samples", indices, v, workers)]
    jobs = [(archive, work, recipe, member, shards) for member in range(recipe.networks)]
    with pool(workers) as processes:
        networks = list(processes.map(train_network, *zip(*jobs, strict=True)))
    held_out = Material.read(archive, shards).held_out
    calibration, reliability = calibrate(networks, held_out)
    write_weights(out, networks, calibration)
    return judge(networks, held_out) | reliability


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inks", type=Path, required=True, help="packed recorded words (.npz)")
    parser.add_argument("--work", type=Path, required=True, help="folder for samples and checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="weights file to write")
    parser.add_argument("--limit", type=int, default=0, help="a seeded choice of so many words (0: all)")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    for name, value in asdict(Recipe()).items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    args = parser.parse_args()
    least = {"limit": 0, "workers": 1, "variants": 1, "networks": 1, "batch": 1, "watched": 1}
    for name in (name for name, number in least.items() if getattr(args, name) < number):
        parser.error(f"--{name} is a whole number from {least[name]}, not {getattr(args, name)}")
    if args.out.is_dir():  # told before hours of work
        parser.error(f"--out is the weights file to write, and {args.out} is a folder")
    recipe = Recipe(**{name: getattr(args, name) for name in asdict(Recipe())})
    begin = time.time()
    try:
        figures = train(args.inks, args.work, args.out, recipe, limit=args.limit, workers=args.workers)
    except InktrajError as err:
        raise SystemExit(f"train_recoverer: {err}") from err
    report = {"recipe": asdict(recipe), "words": args.limit or "all", "held_out": figures}
    report["minutes_of_this_run"] = round((time.time() - begin) / 60, 1)
    args.out.with_name("training.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
