"""The trained weights: where they are, what they hold, and reading them.

A file of the trainer is an ``npz`` archive: the networks' arrays (``0/NAME``, ``1/NAME`` …), ``config`` (JSON: their
sizes), ``confidence`` (the calibration) and ``format``.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.io.files import models_folder
from inktraj.recovery.features import N_EDGE, N_GO, N_START
from inktraj.recovery.guide import F32, N_LETTER_PLACE, N_LETTERS, N_PLACE, N_SHARED, Config, Guide
from inktraj.recovery.policy import Way

FORMAT = "inktraj scribe 1"
COMPARED = 4  # ways among which a way's share of the probability is counted
SHIPPED = "scribe/weights.npz"
N_CONFIDENCE = 5  # what `confidence_inputs` gives


@dataclass(frozen=True, slots=True)
class Weights:
    """What the recoverer needs to know.

    Parameters
    ----------
    guides
        The guide networks with the policy's scorers; their logits are averaged.
    calibration
        ``(5,)``: see `confidence_inputs`.
    checksum
        SHA-256 of the file.
    """

    guides: tuple[Guide, ...]
    calibration: F32
    checksum: str

    def confidences(self, ways: Sequence[Way]) -> list[float]:
        """How probable it is that each of the ways, best first, is the one in which the word was written.

        For the best way by a logistic regression on words of held-out writers; the others share what is left by their
        probabilities under the policy, and none gets more than the one before it.
        """
        chance = chances(ways)
        x = confidence_inputs(ways[0].score, chance[0], len(ways[0].path), len(ways[0].marks) - 1)
        out = [float(1 / (1 + np.exp(-np.clip(x @ self.calibration, -30, 30))))]
        for share in chance[1:]:
            out.append(min(out[-1], (1 - out[0]) * share / max(1 - chance[0], 1e-12)))
        return out


def chances(ways: Sequence[Way]) -> list[float]:
    """Each way's share of the probability of the best `COMPARED` ways, best first."""
    weight = np.exp([way.score - ways[0].score for way in ways])
    return [float(w) for w in weight / weight[:COMPARED].sum()]


def confidence_inputs(score: float, chance: float, moves: int, strokes: int) -> F32:
    """What the calibration looks at, ``(5,)``.

    Parameters
    ----------
    score
        Log-probability of the way under the policy.
    chance
        Its share of the probability, from `chances`.
    moves, strokes
        Half-edges and strokes of the way.
    """
    surprise = -min(score, 0.0)
    doubt = np.log(1.02 - min(chance, 1.0))
    return np.array([1.0, np.log1p(surprise), doubt, surprise / moves, np.log(strokes)], np.float32)


def array_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the arrays of one network, as the trainer writes them."""
    d, hidden, upper = config.width, config.hidden, config.upper
    shapes: dict[str, tuple[int, ...]] = {"mean": (N_EDGE,), "scale": (N_EDGE,), "letter.weight": (N_LETTERS, d)}

    def linear(name: str, n_in: int, n_out: int) -> None:
        shapes[name + ".weight"], shapes[name + ".bias"] = (n_out, n_in), (n_out,)

    def norm(name: str) -> None:
        shapes[name + ".weight"] = shapes[name + ".bias"] = (d,)

    linear("enter", N_EDGE, d)
    linear("place", N_LETTER_PLACE, d)
    for layer in (f"layers.{k}." for k in range(config.depth)):
        norm(layer + "norm1")
        norm(layer + "norm2")
        linear(layer + "qkv", d, 3 * d)
        linear(layer + "out", d, d)
        linear(layer + "up", d, config.inner)
        linear(layer + "down", config.inner, d)
        shapes[layer + "shared"], shapes[layer + "lie"] = (N_SHARED, config.heads), (N_PLACE, config.heads)
    norm("norm")
    for head, features in (("go.", N_GO), ("start.", N_START)):
        linear(head + "source", d, 2 * hidden)
        linear(head + "target", d, 2 * hidden)
        shapes[head + "no_source"] = shapes[head + "no_target"] = (hidden,)
        linear(head + "w1", features, hidden)
        linear(head + "w2", hidden, upper)
        linear(head + "w3", upper, 1)
    return shapes


def _config(text: str) -> Config:
    config = Config(**json.loads(text))
    if any(type(size) is not int or size < 1 for size in astuple(config)) or config.width % config.heads:
        raise ValueError(f"its sizes are whole numbers from 1, the width a multiple of the heads, not {config}")
    return config


def _checked(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> F32:
    if array.shape != shape or array.dtype.kind != "f":
        raise ValueError(f"its array {name!r} is {array.dtype} of shape {array.shape}, not float of shape {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"its array {name!r} holds values that are not finite")
    return np.asarray(array, np.float32)


def _guides(arrays: dict[str, NDArray[Any]], config: Config) -> tuple[Guide, ...]:
    """One guide for each of the networks 0, 1, …"""
    if config.depth > len(arrays):  # before names are made for so many layers
        raise ValueError(f"its {len(arrays)} arrays are too few for {config.depth} layers")
    shapes, n = array_shapes(config), 0
    while n == 0 or any(name.startswith(f"{n}/") for name in arrays):
        n += 1
    unknown = sorted(arrays.keys() - {f"{k}/{name}" for k in range(n) for name in shapes})
    if unknown:
        raise ValueError(f"it holds an array {unknown[0]!r} that no network has")
    return tuple(
        Guide({name: _checked(f"{k}/{name}", arrays[f"{k}/{name}"], shapes[name]) for name in shapes}, config)
        for k in range(n)
    )


@lru_cache(maxsize=4)
def _load(path: Path, _changed: int) -> Weights:
    data = path.read_bytes()
    try:
        if not zipfile.is_zipfile(io.BytesIO(data)):
            raise ValueError("it is no npz archive; was it cut short?")
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        if str(arrays.pop("format")) != FORMAT:
            raise ValueError(f"it is not of this version ({FORMAT!r})")
        config = _config(str(arrays.pop("config")))
        calibration = _checked("confidence", arrays.pop("confidence"), (N_CONFIDENCE,))
        guides = _guides(arrays, config)
    except KeyError as err:
        raise DataError(f"{path} is not a weights file of the recoverer's trainer: it holds no array {err}") from err
    except (ValueError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as err:
        raise DataError(f"{path} is not a weights file of the recoverer's trainer: {err}") from err
    return Weights(guides, calibration, hashlib.sha256(data).hexdigest())


def load_weights(path: str | os.PathLike[str] | None = None) -> Weights:
    """Read a weights file; None: the shipped one.

    Raises
    ------
    DataError
        The file is missing or is something else; an array that is not as it should be is named.
    """
    file = (models_folder() / SHIPPED if path is None else Path(path)).resolve()
    try:
        return _load(file, file.stat().st_mtime_ns)
    except OSError as err:
        raise DataError(f"the recoverer's weights cannot be read: {file}: {err.strerror}") from err
