"""Training samples: recorded words drawn, vectorised, and their pen movement laid on the graph."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from recordings import Words, draw, place, resample

from inktraj.recovery import crop_of
from inktraj.recovery.features import Lines, Net, lines_of, make_net
from inktraj.recovery.vectorize import WordGraph, vectorize
from recoverer.mapmatch import match
from recoverer.workers import pool

SHARD = 1024  # words in one file
MOST_EDGES = 250  # words with more are left out
LEAST_SEEN = 0.85  # share of the ink that the recording must explain
REFERENCE_STEP = 0.02  # of the word's longer side, between the points of a stored recording


@dataclass(frozen=True, slots=True)
class Sample:
    """One drawn word; lengths in heights of its ink (see `inktraj.recovery.features`)."""

    word: int
    variant: int
    lines: Lines
    path: np.ndarray  # half-edges of all strokes
    marks: np.ndarray  # offsets of the strokes into `path`
    reference: np.ndarray  # (n, 2) the recording's points, strokes joined
    reference_marks: np.ndarray  # offsets of its strokes


def is_validation(writer: str) -> bool:
    """Whether a training writer is held out for choosing settings and measuring progress (about one in twelve)."""
    return zlib.crc32(writer.encode()) % 12 == 0


def picture_of(words: Words, index: int, variant: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Draw a training word; variant 0 as the benchmark does, others over a wider range of pens, sizes and pictures."""
    rng = np.random.default_rng([index, variant])
    strokes = words.strokes(index)
    if variant == 0:
        placed, size = place(strokes, rng)
        return draw(placed, size, rng), placed
    slant, stretch = rng.normal(0, 0.15), np.exp(rng.normal(0, 0.12))
    strokes = [np.stack([stretch * (s[:, 0] - slant * s[:, 1]), s[:, 1]], 1) for s in strokes]
    if variant % 2:
        placed, size = place(strokes, rng)
        return draw(placed, size, rng), placed
    height = np.exp(rng.uniform(np.log(28), np.log(180)))
    placed, size = place(strokes, rng, height)
    pen = max(1.2, height * np.exp(rng.uniform(np.log(0.022), np.log(0.085))))
    blur = rng.uniform(0, 0.018) * height
    return draw(placed, size, rng, pen=pen, blur=blur, noise=rng.uniform(0, 14)), placed


def on_graph(word: WordGraph, strokes: list[np.ndarray]) -> list[np.ndarray]:
    """Strokes in the crop's pixels, in the graph's units."""
    return [((s - word.corner + 0.5) * word.scale + 0.5 - word.origin) / word.height for s in strokes]


def make_sample(words: Words, index: int, variant: int) -> Sample | None:
    """Return None for a word whose ink the recording does not explain."""
    image, strokes = picture_of(words, index, variant)
    word = vectorize(crop_of(image).mask)
    if word is None:
        return None
    lines = lines_of(word)
    if len(lines.ends) > MOST_EDGES:
        return None
    net: Net = make_net(lines)
    strokes = on_graph(word, strokes)
    found = match(lines, net, strokes)
    if not found:
        return None
    path = np.array([h for stroke in found for h in stroke], np.int64)
    if net.length[np.unique(path // 2)].sum() < LEAST_SEEN * net.total:
        return None
    marks = np.cumsum([0] + [len(stroke) for stroke in found])
    side = np.ptp(np.concatenate(strokes), axis=0).max()
    reference = [resample(s, REFERENCE_STEP * side) for s in strokes]
    return Sample(
        index, variant, lines, path, marks, np.concatenate(reference), np.cumsum([0] + [len(s) for s in reference])
    )


# the stored arrays that have a part for each word: first the lines', then the way's and the recording's
ARRAYS = (
    "nodes",
    "radius",
    "ends",
    "start",
    "points",
    "thickness",
    "dot",
    "path",
    "marks",
    "reference",
    "reference_marks",
)


def _arrays(sample: Sample) -> dict[str, np.ndarray]:
    return sample.lines._asdict() | {
        "path": sample.path,
        "marks": sample.marks,
        "reference": sample.reference,
        "reference_marks": sample.reference_marks,
    }


def _write(path: Path, samples: list[Sample]) -> None:
    out: dict[str, np.ndarray] = {
        "word": np.array([s.word for s in samples]),
        "pen": np.array([s.lines.pen for s in samples]),
    }
    rows = [_arrays(s) for s in samples]
    for name in ARRAYS if rows else ():
        parts = [row[name] for row in rows]
        out[name] = np.concatenate(parts).astype(
            np.float32 if parts[0].dtype.kind == "f" else bool if parts[0].dtype.kind == "b" else np.int32
        )
        out[name + "_offsets"] = np.cumsum([0] + [len(p) for p in parts])
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, **out)
    partial.rename(path)


def _read(path: Path) -> list[Sample]:
    with np.load(path, allow_pickle=False) as archive:
        data = {name: archive[name] for name in archive.files}
    variant = int(path.stem.split("-")[0].removeprefix("variant"))  # as `prepare` names them
    out = []
    for k, (word, pen) in enumerate(zip(data["word"].tolist(), data["pen"].tolist(), strict=True)):
        part = {}
        for name in ARRAYS:
            a, b = data[name + "_offsets"][k : k + 2]
            rows = data[name][a:b]
            part[name] = rows.astype(
                np.float64 if rows.dtype.kind == "f" else bool if rows.dtype.kind == "b" else np.int64
            )
        lines = Lines(*(part[name] for name in ARRAYS[:7]), pen)
        out.append(Sample(word, variant, lines, *(part[name] for name in ARRAYS[7:])))
    return out


def _make_shard(archive: Path, indices: np.ndarray, variant: int, path: Path) -> int:
    cv2.setNumThreads(1)
    words = Words(archive)
    samples = [s for s in (make_sample(words, int(i), variant) for i in indices) if s is not None]
    _write(path, samples)
    return len(samples)


def prepare(archive: Path, folder: Path, indices: np.ndarray, variant: int, workers: int) -> list[Path]:
    """Make one variant of the given words, in shards; those that exist stay. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for k in range(0, len(indices), SHARD):
        jobs.append((indices[k : k + SHARD], folder / f"variant{variant}-{k // SHARD:03d}.npz"))
    todo = [(part, path) for part, path in jobs if not path.exists()]
    with pool(workers) as processes:
        futures = [processes.submit(_make_shard, archive, part, variant, path) for part, path in todo]
        for n, future in enumerate(futures):
            future.result()
            print(f"variant {variant}: {n + 1} of {len(todo)} shards", flush=True)
    return [path for _, path in jobs]


def load(paths: list[Path]) -> list[Sample]:
    """Read shards."""
    return [sample for path in paths for sample in _read(path)]
