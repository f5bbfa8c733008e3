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
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from inktraj.errors import DataError
from inktraj.recovery.guide import F32, Config, Guide

FORMAT = "inktraj scribe 1"
SHIPPED = "scribe/weights.npz"


@dataclass(frozen=True, slots=True)
class Weights:
    """What the recoverer needs to know.

    Parameters
    ----------
    guides
        The guide networks with the policy's scorers; averaged, they err less than any one.
    calibration
        ``(5,)``: see `confidence`.
    checksum
        SHA-256 of the file.
    """

    guides: tuple[Guide, ...]
    calibration: F32
    checksum: str

    def confidence(self, score: float, chance: float, moves: int, strokes: int) -> float:
        """How probable it is that a way is right, by a logistic regression on words of held-out writers.

        Parameters
        ----------
        score
            Log-probability of the way under the policy.
        chance
            Its share of the probability of all ways found.
        moves, strokes
            Half-edges and strokes of the way.
        """
        x = confidence_inputs(score, chance, moves, strokes)
        return float(1 / (1 + np.exp(-np.clip(x @ self.calibration, -30, 30))))


def confidence_inputs(score: float, chance: float, moves: int, strokes: int) -> F32:
    """What the calibration looks at, ``(5,)``."""
    return np.array(
        [1.0, max(score, -40.0), np.log(1.02 - min(chance, 1.0)), np.log(moves), np.log(strokes)], np.float32
    )


def models_folder() -> Path:
    """The folder of shipped models: within the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "models"
    return inside if inside.is_dir() else package.parent / "models"


@lru_cache(maxsize=4)
def _load(path: Path) -> Weights:
    try:
        data = path.read_bytes()
    except OSError as err:
        raise DataError(f"the recoverer's weights cannot be read: {path}: {err.strerror}") from err
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        if str(arrays.pop("format")) != FORMAT:
            raise DataError(f"{path} is not a weights file of this version ({FORMAT!r})")
        config = Config(**json.loads(str(arrays.pop("config"))))
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError, OSError) as err:
        raise DataError(f"{path} is not a weights file of the recoverer's trainer: {err}") from err
    calibration = arrays.pop("confidence").astype(np.float32)
    members: dict[str, dict[str, F32]] = {}
    for name, array in arrays.items():
        member, _, own = name.partition("/")
        members.setdefault(member, {})[own] = array
    guides = tuple(Guide(members[member], config) for member in sorted(members))
    return Weights(guides, calibration, hashlib.sha256(data).hexdigest())


def load_weights(path: str | os.PathLike[str] | None = None) -> Weights:
    """Read a weights file; None: the shipped one.

    Raises
    ------
    DataError
        The file is missing or is something else.
    """
    return _load(models_folder() / SHIPPED if path is None else Path(path))
