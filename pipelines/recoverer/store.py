"""The trained networks → the weights file that the package reads."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from inktraj.recovery.weights import FORMAT
from recoverer.network import Network

MOMENT = (1980, 1, 1, 0, 0, 0)  # of each member: the same training gives the same bytes


def write_weights(path: Path, networks: Sequence[Network], calibration: np.ndarray) -> None:
    """Write an ``npz`` archive; see `inktraj.recovery.weights`."""
    arrays = {
        f"{k}/{name}": tensor.detach().numpy().astype(np.float32)
        for k, network in enumerate(networks)
        for name, tensor in network.state_dict().items()
    }
    arrays["confidence"] = calibration.astype(np.float32)
    arrays["config"] = np.array(json.dumps(asdict(networks[0].config)))
    arrays["format"] = np.array(FORMAT)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in sorted(arrays.items()):
            with archive.open(zipfile.ZipInfo(name + ".npy", MOMENT), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
    partial.rename(path)
