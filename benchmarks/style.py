"""How well the style classifier tells hands apart.

    python benchmarks/style.py --inks FILE.npz

An embedding is trained on the writers of the archive's ``train`` split. The ``dev`` writers, whom it has never seen,
are enrolled with seven tenths of each one's words; the rest is the test: who wrote this word, and who wrote these ten?
Writers of fewer than ten words are left out. ``--network`` takes a network that is there instead of training one
(``shipped``, or a file); `train_minutes`, CPU time, is then the enrolment's alone.

Beside the figures of the protocol stand: accuracy on words that the writer did not enrol with (another text), the mean
of the writers' accuracies, the calibration on test words, ceiling and floor, and the scores of test words after they
were drawn and their strokes recovered by `scribe` and `tracer`, as those of a page would be.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import record

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pipelines"))

from recordings import Words, picture

from inktraj import recover
from inktraj.errors import DataError, InktrajError
from inktraj.ink import Ink
from inktraj.recovery.scribe import Scribe
from inktraj.recovery.tracer import Tracer
from inktraj.style import StyleModel, StyleNetwork, read_samples, summarize
from inktraj.style.head import calibration_error
from inktraj.style.samples import held_out

LEAST, TEST_SHARE, POOLED, SPLIT_SEED = 10, 0.3, 10, 1


def train(args: argparse.Namespace) -> bytes:
    from inktraj.style.training import Recipe, Step, train_network

    told = 0

    def progress(step: Step) -> None:
        nonlocal told
        if 10 * step.pictures // step.total > told:
            told = 10 * step.pictures // step.total
            print(f"{step.pictures} of {step.total} pictures, accuracy {step.accuracy:.3f}", flush=True)

    inks = read_samples(args.inks, split="train").by_writer()
    recipe = Recipe(pictures=args.pictures, seed=args.seed)
    return train_network(inks, recipe, threads=args.threads, progress=progress)


class Test:
    """The enrolled model and the words that it has not seen, with who wrote them."""

    def __init__(self, args: argparse.Namespace, network: StyleNetwork) -> None:
        samples = read_samples(args.inks, split="dev")
        with np.load(args.inks, allow_pickle=False) as archive:
            texts = archive["text"][archive["split"] == "dev"].tolist()
            self.places = np.flatnonzero(archive["split"] == "dev")
        if len(texts) != len(samples.inks):
            raise DataError(f"{args.inks}: {len(texts) - len(samples.inks)} words of the dev split have no strokes")
        words = samples.by_writer()
        apart = held_out({name: inks for name, inks in words.items() if len(inks) >= LEAST}, TEST_SHARE, SPLIT_SEED)
        seen = {name: iter(sides) for name, sides in apart.items()}
        enrolled: dict[str, list[Ink]] = {name: [] for name in apart}
        known: dict[str, set[str]] = {name: set() for name in apart}
        self.rows: list[tuple[int, Ink, str, str]] = []  # place, ink, writer, text
        for place, ink, name, text in zip(self.places.tolist(), samples.inks, samples.writers, texts, strict=True):
            if name not in apart:
                continue
            if next(seen[name]):
                self.rows.append((place, ink, name, text))
            else:
                enrolled[name].append(ink)
                known[name].add(text)
        started = time.process_time()
        self.model = StyleModel.enrol(enrolled, network=network, seed=args.seed)
        self.enrol_minutes = (time.process_time() - started) / 60
        self.new_text = np.array([text not in known[name] for _, _, name, text in self.rows])
        self.true = np.array([self.model.writers.index(name) for _, _, name, _ in self.rows])
        self.enrolled = sum(map(len, enrolled.values()))

    def figures(self) -> dict[str, Any]:
        """What the test words say, one by one and in tens."""
        started = time.perf_counter()
        logs = np.stack([self.model.log_probabilities(ink) for _, ink, _, _ in self.rows])
        ms = (time.perf_counter() - started) / len(logs) * 1e3
        right = logs.argmax(axis=1) == self.true
        pooled = self.pooled(logs)
        chances = np.exp(logs)
        return {
            "writers": len(self.model.writers),
            "accuracy_1_word": float(right.mean()),
            "accuracy_10_words": float(np.mean(pooled)) if pooled else None,
            "chance": 1 / len(self.model.writers),
            "accuracy_1_word_writers_mean": float(np.mean([right[self.true == k].mean() for k in set(self.true)])),
            "accuracy_1_word_new_text": float(right[self.new_text].mean()) if self.new_text.any() else None,
            "words_enrolled": self.enrolled,
            "words_tested": len(logs),
            "words_tested_new_text": int(self.new_text.sum()),
            "groups_of_10_tested": len(pooled),
            "score": float(chances[np.arange(len(logs)), self.true].mean()),
            "ceiling": self.model.ceiling,
            "floor": self.model.floor,
            "calibration_error": calibration_error(chances, self.true),
            "temperature": self.model.calibration.temperature,
            "ms_per_word": ms,
        }

    def pooled(self, logs: np.ndarray) -> list[bool]:
        """Whether each whole group of ten test words of one writer, in a seeded order, is named right."""
        rng = np.random.default_rng(SPLIT_SEED)
        found = []
        for k in range(len(self.model.writers)):
            order = rng.permutation(np.flatnonzero(self.true == k))
            groups = (order[a : a + POOLED] for a in range(0, len(order) - POOLED + 1, POOLED))
            found += [bool(logs[group].mean(axis=0).argmax() == k) for group in groups]
        return found

    def recovered(self, path: Path, limit: int) -> dict[str, Any]:
        """Scores of some test words as recorded, and after drawing and recovery."""
        archive = Words(path)
        chosen = np.random.default_rng(SPLIT_SEED).permutation(len(self.rows))[:limit]
        names = [self.rows[k][2] for k in chosen]
        images = [picture(archive, self.rows[k][0])[0] for k in chosen]
        inks = {"recorded": [self.rows[k][1] for k in chosen]}
        for name, recoverer in (("scribe", Scribe()), ("tracer", Tracer())):
            inks[name] = [recover(image, recoverer=recoverer) for image in images]
        figures: dict[str, Any] = {"words_recovered": len(chosen)}
        for name, words in inks.items():
            summary = summarize(self.model.score(words, names, empty="zero"))
            figures |= {f"{name}_score": summary.score, f"{name}_top1": summary.top1}
            figures[f"{name}_relative"] = summary.relative
        return figures


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inks", type=Path, required=True, help="packed words (.npz)")
    parser.add_argument("--network", help="train none, but take this one: 'shipped', or a file")
    parser.add_argument("--pictures", type=int, default=240_000, help="that the training draws")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--recovered", type=int, default=300, help="test words that are drawn and recovered; 0: none")
    parser.add_argument("--save", type=Path, help="keep the trained network here (.onnx)")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    args = parsed()
    started = time.process_time()
    if args.network:
        network = StyleNetwork.load(None if args.network == "shipped" else args.network)
    else:
        network = StyleNetwork.from_bytes(train(args))
    minutes = 0.0 if args.network else (time.process_time() - started) / 60
    if args.save:
        args.save.write_bytes(network.data)
    test = Test(args, network)
    figures = test.figures()
    figures |= {
        "network_sha256": network.hash,
        "train_minutes": minutes + test.enrol_minutes,
        "enrol_minutes": test.enrol_minutes,
    }
    if args.recovered:
        figures |= test.recovered(args.inks, args.recovered)
    print(record.table(figures))
    settings = {name: getattr(args, name) for name in ("pictures", "seed", "threads", "recovered")}
    settings |= {"inks": args.inks.name, "network": args.network}
    record.write(args.json, "style", settings, figures)


if __name__ == "__main__":
    try:
        main()
    except InktrajError as err:
        sys.exit(f"style: {err}")
