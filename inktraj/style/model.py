"""The style classifier: a network and the writers it knows."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError
from inktraj.ink import Ink
from inktraj.io.files import write_bytes
from inktraj.style.head import calibration_error, fit_head, fit_temperature, log_softmax
from inktraj.style.network import F32, WRITERS_KEY, Session, StyleNetwork, read_file
from inktraj.style.onnx_file import head_file
from inktraj.style.samples import held_out
from inktraj.style.scores import Identification, StyleScore
from inktraj.style.shape import check_ink

HELD_OUT, LEAST_WORDS = 0.2, 5


@dataclass(frozen=True, slots=True)
class Writer:
    """A writer that a classifier knows.

    Parameters
    ----------
    name
        As it was given.
    words, held_out
        Words that were learned from, and held out.
    ceiling, floor
        Mean score of his held-out words, and of other writers' held-out words when they claim to be his.
    """

    name: str
    words: int
    held_out: int
    ceiling: float | None
    floor: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """What held-out words say of a classifier.

    Parameters
    ----------
    temperature
        By which the logits are divided.
    error_before, error_after
        Expected calibration error without and with the temperature, in 15 bins. The temperature is fitted on the same
        words: one number, for all of them.
    accuracy
        Share of held-out words whose writer is the most probable one.
    ceiling, floor
        Means over the writers of theirs.
    words
        Held-out words.
    """

    temperature: float
    error_before: float | None
    error_after: float | None
    accuracy: float | None
    ceiling: float | None
    floor: float | None
    words: int


class StyleModel:
    """Says how probable it is that an ink is in a writer's hand.

    Made by `enrol` or by `inktraj train-style`, read by `load`. Only an ink's shape counts; see `inktraj.style.shape`.

    Parameters
    ----------
    data
        The bytes of the ONNX file.
    name
        How errors call it.

    Raises
    ------
    DataError
        It is no style model, or one without writers.
    """

    def __init__(self, data: bytes, name: str = "the style model") -> None:
        self._data = data
        self.hash = hashlib.sha256(data).hexdigest()
        """SHA-256 of the file; its first 12 digits stand in signatures."""
        self._session = Session(data, name)
        told: dict[str, Any] | None = self._session.metadata.get(WRITERS_KEY)
        if told is None:
            raise DataError(f"{name} is a style network that knows no writers; give it some with StyleModel.enrol")
        try:
            self.details: tuple[Writer, ...] = tuple(Writer(**writer) for writer in told["writers"])
            """The writers, in the order of the file's outputs."""
            self.calibration = Calibration(**told["calibration"])
            self.seed: int = told["seed"]
        except (KeyError, TypeError) as err:
            raise DataError(f"{name} tells of its writers in another form than this version's ({err})") from err
        self._places = {writer.name: k for k, writer in enumerate(self.details)}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StyleModel:
        """Read a model's file; DataError where it is missing or is something else."""
        return cls(read_file(path), os.fspath(path))

    @classmethod
    def enrol(
        cls,
        inks: Mapping[str, Sequence[Ink]],
        *,
        network: StyleNetwork | None = None,
        share: float = HELD_OUT,
        least: int = LEAST_WORDS,
        seed: int = 0,
    ) -> StyleModel:
        """Make a classifier of writers from their words, without torch.

        Parameters
        ----------
        inks
            Words by writer, none of them empty. Repetitions of one word count as one.
        network
            The embedding; None: the shipped one.
        share
            Of each writer's words, held out to fit the calibration and to measure ceiling and floor.
        least
            Words that a writer needs.
        seed
            Chooses the words that are held out.

        Raises
        ------
        DataError
            Fewer than two writers, a writer with fewer than `least` words, an empty ink, or options out of range.
        """
        check_writers(inks, least, share)
        network = network or StyleNetwork.load()
        names = sorted(inks)
        out = held_out(inks, share, seed)
        embeddings = network.embed([ink for name in names for ink in inks[name]])
        labels = np.repeat(np.arange(len(names)), [len(inks[name]) for name in names])
        apart = np.concatenate([np.array(out[name], np.bool_) for name in names])
        return cls(_with_writers(network, names, embeddings, labels, apart, seed))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file whole or not at all; DataError where it cannot be written."""
        write_bytes(os.fspath(path), self._data)

    @property
    def writers(self) -> tuple[str, ...]:
        """Names of the writers, sorted."""
        return tuple(self._places)

    @property
    def ceiling(self) -> float | None:
        """Mean score of the writers' own held-out words."""
        return self.calibration.ceiling

    @property
    def floor(self) -> float | None:
        """Mean score, for the same claimed writers, of other writers' held-out words."""
        return self.calibration.floor

    @property
    def network(self) -> StyleNetwork:
        """The embedding, to enrol other writers in."""
        return StyleNetwork.from_bytes(self._data)

    def score(
        self, inks: Sequence[Ink], writers: Sequence[str], *, empty: Literal["raise", "zero"] = "raise"
    ) -> list[StyleScore]:
        """Score inks as their writers'.

        Parameters
        ----------
        inks
            One word each.
        writers
            The true writer of each.
        empty
            What an ink without strokes is: an error, or, as for a prediction that is not valid, the score 0.

        Raises
        ------
        DataError
            A writer is not known, an ink is empty, or there are not as many writers as inks.
        """
        if len(inks) != len(writers):
            raise DataError(f"{len(inks)} inks and {len(writers)} writers; each ink has one writer")
        if empty not in ("raise", "zero"):
            raise DataError(f'empty is "raise" or "zero", not {empty!r}')
        self.check_known(writers)
        return [self._score(k, ink, name, empty) for k, (ink, name) in enumerate(zip(inks, writers, strict=True))]

    def identify(self, inks: Sequence[Ink]) -> Identification:
        """Say whose hand several words of one writer are, by their mean log-probability.

        Raises
        ------
        DataError
            There are no inks, or one is empty.
        """
        if not inks:
            raise DataError("there are no inks to identify a writer by")
        mean = np.mean([self.log_probabilities(ink) for ink in inks], axis=0)
        order = np.argsort(-mean, kind="stable")
        names = self.writers
        ranked = {names[k]: float(mean[k]) for k in order}
        return Identification(names[order[0]], ranked, len(inks), self.hash)

    def log_probabilities(self, ink: Ink) -> NDArray[np.float64]:
        """Calibrated log-probability of each of `writers`, ``(writers,)``; DataError for an empty ink."""
        return np.asarray(log_softmax(self._session.run(["logits"], ink)[0][None].astype(np.float64))[0])

    def check_known(self, writers: Sequence[str]) -> None:
        """Raise DataError, which names near matches, where a writer is not known."""
        unknown = sorted(set(writers) - self._places.keys())
        if not unknown:
            return
        near = difflib.get_close_matches(unknown[0], self.writers, 3, 0.6)
        more = f" (and {len(unknown) - 1} others)" if len(unknown) > 1 else ""
        hint = f"; near: {', '.join(map(repr, near))}" if near else f"; it knows {self.writers[0]!r}, …"
        raise DataError(
            f"the style model knows {len(self.writers)} writers, and {unknown[0]!r}{more} is not among them{hint}. "
            "Enrol the writers of the references first"
        )

    def _score(self, index: int, ink: Ink, name: str, empty: str) -> StyleScore:
        k = self._places[name]
        check_ink(ink)
        bounds = self.details[k].ceiling, self.details[k].floor
        if not ink.strokes:
            if empty == "raise":
                raise DataError(f'ink {index} has no strokes; empty="zero" gives predictions that are not valid 0')
            return StyleScore(name, 0.0, False, None, None, *bounds, self.hash)
        logits, cosines = self._session.run(["logits", "cosines"], ink)
        chances = np.exp(log_softmax(logits[None].astype(np.float64))[0])
        best = int(chances.argmax())
        return StyleScore(name, float(chances[k]), best == k, float(cosines[k]), self.writers[best], *bounds, self.hash)


def check_writers(inks: Mapping[str, Sequence[Ink]], least: int, share: float) -> None:
    """Raise DataError where a classifier cannot be made of these words."""
    if not 0 < share < 1:
        raise DataError(f"the share of words that are held out lies between 0 and 1, not at {share}")
    if least < 2:
        raise DataError(f"a writer needs 2 words at least, one of them to be held out, not {least}")
    if len(inks) < 2:
        raise DataError(f"a classifier tells writers apart, and there are {len(inks)}; give words of two or more")
    few = sorted(name for name, words in inks.items() if len(words) < least)
    if few:
        raise DataError(
            f"writers with fewer than {least} words: {len(few)}, such as {few[0]!r} with {len(inks[few[0]])}; "
            "leave them out, or ask for fewer"
        )
    for name, words in inks.items():
        for ink in words:
            check_ink(ink)
        if not all(ink.strokes for ink in words):
            raise DataError(f"an ink of the writer {name!r} has no strokes; leave it out")
        if all(ink == words[0] for ink in words):
            raise DataError(f"all {len(words)} inks of the writer {name!r} are the same word; give others")


def _with_writers(
    network: StyleNetwork, names: Sequence[str], embeddings: F32, labels: NDArray[np.int64], apart: Any, seed: int
) -> bytes:
    """The network's file with a head behind it, fitted on words that are not `apart` and calibrated on those."""
    head = fit_head(embeddings[~apart], labels[~apart], len(names))
    logits, true = head.logits(embeddings[apart]), labels[apart]
    temperature = fit_temperature(logits, true)
    before, after = np.exp(log_softmax(logits)), np.exp(log_softmax(logits / temperature))
    ceilings, floors = _bounds(after, true)
    writers = [
        Writer(name, int((labels[~apart] == k).sum()), int((true == k).sum()), ceilings[k], floors[k])
        for k, name in enumerate(names)
    ]
    calibration = Calibration(
        temperature=temperature,
        error_before=calibration_error(before, true) if len(true) else None,
        error_after=calibration_error(after, true) if len(true) else None,
        accuracy=float((after.argmax(axis=1) == true).mean()) if len(true) else None,
        ceiling=_mean(ceilings),
        floor=_mean(floors),
        words=len(true),
    )
    cooled = head.cooled(temperature)
    told = {
        "version": 1,
        "network_bytes": len(network.data),
        "network": network.hash,
        "seed": seed,
        "calibration": asdict(calibration),
        "writers": [asdict(writer) for writer in writers],
    }
    weight, bias, centroids = (np.asarray(a, np.float32) for a in (cooled.weight, cooled.bias, cooled.centroids))
    return network.data + head_file(weight, bias, centroids, {WRITERS_KEY: json.dumps(told)})


def _bounds(chances: Any, true: NDArray[np.int64]) -> tuple[list[float | None], list[float | None]]:
    """For each writer the mean probability of him of his own words, and of the others' words."""
    ceilings: list[float | None] = []
    floors: list[float | None] = []
    for k in range(chances.shape[1]):
        own = true == k
        known = bool(own.any()) and not own.all()
        ceilings.append(float(chances[own, k].mean()) if known else None)
        floors.append(float(chances[~own, k].mean()) if known else None)
    return ceilings, floors


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
