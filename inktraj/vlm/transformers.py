"""Models in a local folder, through transformers: Qwen-VL, InternVL, Molmo and others of its image-text classes.

Nothing is fetched: the folder must hold weights, configuration and tokenizer, and no code in it is run.
"""

from __future__ import annotations

import hashlib
import io
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from inktraj.errors import DataError
from inktraj.vlm.cost import Price
from inktraj.vlm.hosted import sdk
from inktraj.vlm.limits import ImageLimits
from inktraj.vlm.protocol import ModelClosed, ProviderError, Reply, Request, Text
from inktraj.vlm.table import Table


class Transformers:
    """A model in a local folder; requests are answered one after the other.

    The answer is the most probable one, token by token, unless a temperature is asked for.

    Parameters
    ----------
    folder
        As it was saved or downloaded.
    name
        As the user called it.
    frame, limits
        None: by the ``model_type`` of its config.json and the table; its own preprocessor_config.json says how many
        pixels it takes.
    device
        None: a GPU if there is one.
    table
        Of models.

    Raises
    ------
    DataError
        The folder is none, or not a model's.
    MissingDependency
        torch or transformers is not installed.
    """

    def __init__(
        self,
        folder: str,
        *,
        name: str,
        frame: str | None,
        limits: ImageLimits | None,
        device: str | None,
        table: Table,
    ) -> None:
        path = Path(folder)
        if not (path / "config.json").is_file():
            raise DataError(
                f"{folder} is not a folder with a config.json, as models for transformers have; see its path"
            )
        kind = str(_read(path / "config.json").get("model_type") or path.name)
        family = table.family(kind)
        self.name = name
        self.model_id = path.resolve().name
        self.frame = frame or family.frame
        self.limits = limits or _own_limits(path, table.limits[family.limits])
        self.prices: tuple[Price, ...] = ()
        package = sdk("transformers", "transformers", f"running {folder}")
        self._torch = sdk("torch", "transformers", f"running {folder}")
        self._lock = threading.Lock()
        self._closed = False
        self._device = device or ("cuda" if self._torch.cuda.is_available() else "cpu")
        own = {"local_files_only": True, "trust_remote_code": False}
        try:
            self._processor = package.AutoProcessor.from_pretrained(path, **own)
            model = package.AutoModelForImageTextToText.from_pretrained(path, dtype="auto", **own)
        except (OSError, ValueError, KeyError, ImportError) as err:  # a processor may need a further package
            raise DataError(f"{folder} ({kind}) cannot be loaded as an image-text model: {err}") from err
        self._told = {"transformers": str(package.__version__), "sha256": _fingerprint(path)}
        self._model = model.to(self._device).eval()

    def __repr__(self) -> str:
        return f"<Transformers {self.name} on {self._device}>"

    def ask(self, request: Request) -> Reply:
        """Ask and wait for the answer; see `inktraj.vlm.VLM`.

        Raises
        ------
        ProviderError
            The request does not fit the model, or the memory.
        """
        with self._lock:
            if self._closed:
                raise ModelClosed(f"{self.name} was closed")
            begun = time.monotonic()
            try:
                return self._ask(request, begun)
            except (RuntimeError, ValueError) as err:  # out of memory is a RuntimeError
                raise ProviderError(f"{self.name} could not answer: {err}") from err

    def describe(self) -> dict[str, Any]:
        """Return what decides the answers; see `inktraj.vlm.VLM`."""
        return {"provider": "transformers", "model": self.model_id, **self._told}

    def close(self) -> None:
        """Let the weights go, once a request under way is answered."""
        with self._lock:
            self._closed = True
            self._model = self._processor = None

    def _ask(self, request: Request, begun: float) -> Reply:
        torch = self._torch
        inputs = self._processor.apply_chat_template(
            _messages(request), add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        ).to(self._device)
        sampling: dict[str, Any] = {"do_sample": False}
        if request.temperature:
            sampling = {"do_sample": True, "temperature": request.temperature}
        if request.seed is not None:
            torch.manual_seed(request.seed)
        with torch.inference_mode():
            tokens = self._model.generate(**inputs, max_new_tokens=request.max_tokens, **sampling)
        asked = int(inputs["input_ids"].shape[1])
        answer = tokens[0, asked:]
        ends = self._model.generation_config.eos_token_id
        ends = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
        ended = len(answer) > 0 and int(answer[-1]) in ends
        return Reply(
            self._processor.decode(answer, skip_special_tokens=True),
            "end" if ended else "length" if len(answer) >= request.max_tokens else "other",
            asked,
            len(answer),
            self.model_id,
            time.monotonic() - begun,
            1,
            "eos" if ended else "max_new_tokens" if len(answer) >= request.max_tokens else "",
        )


def _messages(request: Request) -> list[dict[str, Any]]:
    from PIL import Image

    content: list[dict[str, Any]] = []
    for part in request.parts:
        if isinstance(part, Text):
            content.append({"type": "text", "text": part.text})
        else:
            content.append({"type": "image", "image": Image.open(io.BytesIO(part.data)).convert("RGB")})
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if request.system:
        messages.insert(0, {"role": "system", "content": [{"type": "text", "text": request.system}]})
    return messages


def _fingerprint(folder: Path) -> str:
    """Return a SHA-256 of the settings and of the names and sizes of all files; weights take too long to read."""
    told = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file():
            told.update(f"{path.name} {path.stat().st_size}\n".encode())
            if path.suffix in (".json", ".jinja"):
                told.update(path.read_bytes())
    return told.hexdigest()


def _own_limits(folder: Path, limits: ImageLimits) -> ImageLimits:
    """Return the limits with the numbers of pixels that the folder itself names."""
    path = folder / "preprocessor_config.json"
    if limits.rule != "smart-resize" or not path.is_file():
        return limits
    told = _read(path)
    size: Any = told.get("size")
    size = size if isinstance(size, dict) else {}
    least = told.get("min_pixels") or size.get("shortest_edge") or limits.min_pixels
    most = told.get("max_pixels") or size.get("longest_edge") or limits.max_pixels
    return replace(limits, min_pixels=least, max_pixels=most)


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        raise DataError(f"{path}: {err}") from err
    if not isinstance(raw, dict):
        raise DataError(f"{path}: a JSON object is expected, not {type(raw).__name__}")
    return raw
