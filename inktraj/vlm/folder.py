"""What a folder with a model tells about it before, and beside, its weights."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from inktraj.errors import DataError
from inktraj.vlm.limits import ImageLimits

_WEIGHTS = ("*.safetensors", "*.bin")
_LFS = b"version https://git-lfs"
_PROBES, _PROBE_BYTES = 256, 4096

# Kinds that need code of their own, and what to take instead.
_OWN_CODE = {
    "internvl_chat": "take the folder that its publisher offers for transformers, with a name in -HF or -hf",
    "molmo": "take Molmo 2, which transformers knows",
}


def needs_code(path: Path, kind: str) -> DataError:
    """Return the error for a model that runs by program code in its folder only, and what to do."""
    advice = _OWN_CODE.get(kind, "a newer transformers may know this model without it")
    return DataError(
        f"{path} ({kind}) needs the program code that comes with it, which is not run here: {advice}, or serve it, "
        "by vLLM for instance, and give --model local/ID"
    )


def check_folder(path: Path) -> str:
    """Return the ``model_type`` of a folder, once it is seen to hold what can be loaded without running its code.

    Raises
    ------
    DataError
        No folder with a config.json and weights, weights that were not downloaded, or a model that needs own code.
    """
    if not (path / "config.json").is_file():
        raise DataError(f"{path} is not a folder with a config.json, as models for transformers have; see its path")
    config = read_settings(path / "config.json")
    kind = str(config.get("model_type") or path.resolve().name)
    if kind in _OWN_CODE and config.get("auto_map"):
        raise needs_code(path, kind)
    weights = [file for pattern in _WEIGHTS for file in sorted(path.glob(pattern))]
    if not weights:
        raise DataError(f"{path} holds no weights (*.safetensors); the download may not have been finished")
    for file in weights:
        with file.open("rb") as stream:
            if stream.read(len(_LFS)) == _LFS:
                raise DataError(f"{file} only points to weights that Git LFS has not fetched; run: git lfs pull")
    return kind


def own_limits(processor: Any, limits: ImageLimits) -> ImageLimits:
    """Return how a model's own processor resizes images, where that is by Qwen's or Molmo 2's rule; else those given.

    Parameters
    ----------
    processor
        The image processor, as loaded.
    limits
        What is known of the kind of model.
    """

    def told(name: str) -> Any:
        return getattr(processor, name, None)

    size, made = dict(told("size") or {}), told("model_input_names") or ()
    patch, merge = told("patch_size"), told("merge_size")
    least = size.get("shortest_edge") or told("min_pixels")
    most = size.get("longest_edge") or told("max_pixels")
    if "image_grid_thw" in made and patch and merge and least and most:
        return ImageLimits("smart-resize", factor=patch * merge, min_pixels=least, max_pixels=most)
    crop, overlaps, crops = size.get("height"), told("overlap_margins"), told("max_crops")
    if "image_num_crops" in made and patch and crop and overlaps and crops:
        margin = sum(overlaps) * patch
        return ImageLimits("canvas", patch=crop // patch * patch - margin, margin=margin, tokens=crops)
    return limits


def fingerprint(folder: Path) -> str:
    """Return a SHA-256 of the settings, of all files' names and sizes, and of spots spread over the weights.

    Weights take too long to read in whole; a model that is trained on changes in most of them.
    """
    told = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            continue
        size = path.stat().st_size
        told.update(f"{path.name} {size}\n".encode())
        if path.suffix in (".json", ".jinja"):
            told.update(path.read_bytes())
        elif path.suffix in (".safetensors", ".bin"):
            with path.open("rb") as stream:
                for spot in range(_PROBES):
                    stream.seek(max(0, size - _PROBE_BYTES) * spot // (_PROBES - 1))
                    told.update(stream.read(_PROBE_BYTES))
    return told.hexdigest()


def read_settings(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
    DataError
        The file cannot be read, or holds something else.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        raise DataError(f"{path}: {err}") from err
    if not isinstance(raw, dict):
        raise DataError(f"{path}: a JSON object is expected, not {type(raw).__name__}")
    return raw
