"""The embedding network: an ink → where its shape lies among hands; run by onnxruntime."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.io.files import models_folder
from inktraj.style.shape import VERSION, picture

F32 = NDArray[np.float32]

NETWORK_KEY, WRITERS_KEY = "inktraj.style.network", "inktraj.style.writers"
"""Names of the file's metadata, JSON: of the network, and of the writers."""

SHIPPED = "style/network.onnx"


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Read a model's file; DataError where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as err:
        raise DataError(f"the style model {os.fspath(path)} cannot be read: {err.strerror or err}") from err


class Session:
    """An ONNX file, ready to run on one thread, with its metadata.

    Parameters
    ----------
    data
        The file's bytes.
    name
        How errors call it.

    Raises
    ------
    DataError
        It is no model of this package, or one of another version.
    """

    def __init__(self, data: bytes, name: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what is wrong is raised
        try:
            self._run = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as err:  # onnxruntime's errors have no common class
            raise DataError(f"{name} is no ONNX file that can be run; was it cut short? ({_short(err)})") from err
        self.metadata: dict[str, Any] = {}
        for key, text in self._run.get_modelmeta().custom_metadata_map.items():
            try:
                self.metadata[key] = json.loads(text)
            except ValueError:
                continue  # not ours
        told = self.metadata.get(NETWORK_KEY)
        if not isinstance(told, dict):
            raise DataError(f"{name} is an ONNX file, but no style model: it was not written by train-style")
        if told.get("shape") != VERSION:
            raise DataError(
                f"{name} was trained on pictures of the form {told.get('shape')!r}, and this version draws "
                f"{VERSION!r}; use the version that trained it, or train it again"
            )

    def run(self, outputs: Sequence[str], ink: Ink) -> list[F32]:
        """The named outputs for one ink, without the axis of the batch.

        Inks are looked at one by one, so that nothing depends on which others there are, to the last bit.
        """
        shape = picture(ink)[None, None]
        return [np.asarray(out[0], np.float32) for out in self._run.run(list(outputs), {"shape": shape})]


def _short(err: Exception) -> str:
    return str(err).splitlines()[0][:200] if str(err) else type(err).__name__


@dataclass(frozen=True, slots=True)
class StyleNetwork:
    """A trained embedding without writers; `StyleModel.enrol` gives it some.

    Parameters
    ----------
    data
        The bytes of its ONNX file.
    session
        The file, ready to run.
    """

    data: bytes
    session: Session

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "the network") -> StyleNetwork:
        """Read the bytes of a network's file, or of a model's, whose writers are left away."""
        session = Session(data, name)
        writers = session.metadata.get(WRITERS_KEY)
        if writers is not None:
            try:
                data = data[: writers["network_bytes"]]
            except (KeyError, TypeError) as err:
                raise DataError(f"{name} does not say where its network ends ({err})") from err
            session = Session(data, name)
        return cls(data, session)

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> StyleNetwork:
        """Read a network's or a model's file; None: the shipped network.

        Raises
        ------
        DataError
            The file is missing or is something else.
        """
        file = models_folder() / SHIPPED if path is None else Path(path)
        return cls.from_bytes(read_file(file), str(file))

    @property
    def hash(self) -> str:
        """SHA-256 of the network's file."""
        return hashlib.sha256(self.data).hexdigest()

    def embed(self, inks: Sequence[Ink]) -> F32:
        """Embeddings of length 1, ``(n, d)`` float32; DataError where an ink is empty."""
        rows = [self.session.run(["embedding"], ink)[0] for ink in inks]
        return (
            np.stack(rows) if rows else np.zeros((0, int(self.session.metadata[NETWORK_KEY]["dimensions"])), np.float32)
        )
