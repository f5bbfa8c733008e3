"""Training of the embedding network: pictures of words → an embedding in which hands lie apart. Needs torch.

The network is a few convolutions; what they see is summed up, over all places with ink, as mean and standard deviation
of each channel, so that neither the word's length nor its text's order counts. It learns to name the writer from the
cosine between a word's embedding and a vector for each writer; those vectors are then left away (`inktraj.style.head`
makes better ones).

Every block of pictures is drawn with random numbers of its own, seeded by the block's number: a training that goes on
from a checkpoint ends in the same bytes as one that was never stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inktraj.errors import DataError, MissingDependency, RunError
from inktraj.ink import Ink
from inktraj.style.model import HELD_OUT, LEAST_WORDS, StyleModel, check_writers
from inktraj.style.network import NETWORK_KEY, StyleNetwork
from inktraj.style.onnx_file import BLUR, LEAST_INK, Layer, network_file
from inktraj.style.samples import held_out
from inktraj.style.shape import HEIGHT, VERSION, Look, picture

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ModuleNotFoundError as err:
    raise MissingDependency("torch", "train", "training a style network") from err

BLOCK = 16
"""Batches that are drawn together, and sorted by width, so that little of them is padding."""

CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """All settings of a training; the defaults made the shipped network."""

    pictures: int = 240_000
    batch: int = 64
    rate: float = 4e-3
    decay: float = 0.02
    warmup: float = 0.1  # of the training, with a rising rate; then it falls by a cosine
    sharpness: float = 20.0  # by which cosines are multiplied
    margin: float = 0.15  # by which the true writer's cosine must be the greatest
    channels: tuple[int, ...] = (16, 32, 64, 96, 128)
    strides: tuple[int, ...] = (2, 2, 1, 2, 1)
    dimensions: int = 128
    variation: float = 1.0  # of the pictures' slant, proportions, size, pen and smoothing
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pictures < self.batch * BLOCK:
            raise DataError(f"a training draws {self.batch * BLOCK} pictures at least, not {self.pictures}")


@dataclass(frozen=True, slots=True)
class Step:
    """How far a training is: pictures seen and to be seen, and the running means of loss and share of hits."""

    pictures: int
    total: int
    loss: float
    accuracy: float


class Network(nn.Module):  # type: ignore[misc,unused-ignore]  # where torch is not installed
    """The embedding; what `network_file` writes."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        sizes = (1, *recipe.channels)
        kernels = (5, *[3] * (len(recipe.channels) - 1))
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, k, stride, k // 2, bias=False)
            for a, b, k, stride in zip(sizes, sizes[1:], kernels, recipe.strides, strict=False)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(size) for size in recipe.channels)
        self.linear = nn.Linear(2 * recipe.channels[-1], recipe.dimensions, bias=False)
        self.norm = nn.BatchNorm1d(recipe.dimensions)
        self.cell = int(np.prod(recipe.strides))

    def forward(self, ink: Tensor) -> Tensor:
        """Pictures ``(n, 1, h, w)`` in 0–1 → embeddings ``(n, d)`` of length 1."""
        seen = ink
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            seen = functional.relu(norm(convolution(seen)))
        share = functional.avg_pool2d(ink, self.cell)
        weights = functional.avg_pool2d(share, BLUR, 1, BLUR // 2) + LEAST_INK
        total = weights.sum((2, 3))
        mean = (seen * weights).sum((2, 3)) / total
        variance = (seen * seen * weights).sum((2, 3)) / total - mean**2
        deviation = torch.sqrt(functional.relu(variance) + LEAST_INK)
        place: Tensor = self.norm(self.linear(torch.cat([mean, deviation], 1)))
        return functional.normalize(place)


def train_model(
    inks: Mapping[str, Sequence[Ink]],
    recipe: Recipe | None = None,
    *,
    share: float = HELD_OUT,
    least: int = LEAST_WORDS,
    checkpoint: Path | None = None,
    threads: int = 1,
    progress: Callable[[Step], None] | None = None,
) -> StyleModel:
    """Train a network on words by writer, and enrol the same writers in it.

    The words that are held out are seen by neither, and calibrate the model. The parameters and errors are those of
    `StyleModel.enrol` and `train_network`; the recipe's seed also chooses the words that are held out.
    """
    check_writers(inks, least, share)
    recipe = recipe or Recipe()
    out = held_out(inks, share, recipe.seed)
    learned = {
        name: [ink for ink, apart in zip(words, out[name], strict=True) if not apart] for name, words in inks.items()
    }
    data = train_network(learned, recipe, checkpoint=checkpoint, threads=threads, progress=progress)
    network = StyleNetwork.from_bytes(data)
    return StyleModel.enrol(inks, network=network, share=share, least=least, seed=recipe.seed)


def train_network(
    inks: Mapping[str, Sequence[Ink]],
    recipe: Recipe | None = None,
    *,
    checkpoint: Path | None = None,
    threads: int = 1,
    progress: Callable[[Step], None] | None = None,
) -> bytes:
    """Train an embedding on words by writer.

    Parameters
    ----------
    inks
        Words by writer, none empty.
    recipe
        The settings.
    checkpoint
        Where the state is kept every minute; a training of the same words and settings goes on from it.
    threads
        Of torch. Results differ in the last digits with their number.
    progress
        Called after every block of pictures.

    Returns
    -------
    bytes
        The network's ONNX file.

    Raises
    ------
    DataError
        Fewer than two writers.
    RunError
        The checkpoint is of another training.
    """
    inks = {name: inks[name] for name in sorted(inks)}
    if len(inks) < 2:
        raise DataError(f"an embedding learns to tell writers apart, and there are {len(inks)}")
    recipe = recipe or Recipe()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        training = _Training(inks, recipe)
        if checkpoint is not None and checkpoint.exists():
            training.resume(checkpoint)
        training.run(checkpoint, progress)
    finally:
        torch.set_num_threads(before)
    told = {
        "shape": VERSION,
        "dimensions": recipe.dimensions,
        "writers": len(inks),
        "words": sum(map(len, inks.values())),
        "recipe": asdict(recipe),
    }
    return exported(training.network, {NETWORK_KEY: json.dumps(told)})


class _Training:
    """The state of a training between two blocks."""

    def __init__(self, inks: Mapping[str, Sequence[Ink]], recipe: Recipe) -> None:
        self.recipe = recipe
        self.inks = [ink for words in inks.values() for ink in words]
        counts = np.array([len(words) for words in inks.values()])
        self.labels = np.repeat(np.arange(len(counts)), counts)
        # Between every word alike and every writer alike.
        weight = 1 / np.sqrt(counts[self.labels])
        self.chances = weight / weight.sum()
        self.aspects = np.array([_aspect(ink) for ink in self.inks])
        torch.manual_seed(recipe.seed)
        network: Any = Network(recipe)
        self.network: Network = network.to(memory_format=torch.channels_last)
        self.vectors = nn.Parameter(0.1 * torch.randn(len(counts), recipe.dimensions))
        parameters = [*self.network.parameters(), self.vectors]
        self.optimizer = torch.optim.AdamW(parameters, recipe.rate, weight_decay=recipe.decay)
        self.block, self.blocks = 0, recipe.pictures // (recipe.batch * BLOCK)
        self.loss, self.accuracy = float(np.log(len(counts))), 0.0

    def run(self, checkpoint: Path | None, progress: Callable[[Step], None] | None) -> None:
        """Go on to the end."""
        self.network.train()
        saved = time.monotonic()
        while self.block < self.blocks:
            self._one_block()
            self.block += 1
            if progress is not None:
                per_block = self.recipe.batch * BLOCK
                progress(Step(self.block * per_block, self.blocks * per_block, self.loss, self.accuracy))
            if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                self._save(checkpoint)
                saved = time.monotonic()
        self.network.eval()

    def _one_block(self) -> None:
        size = self.recipe.batch
        rng = np.random.default_rng([self.recipe.seed, self.block])
        drawn = rng.choice(len(self.inks), size * BLOCK, p=self.chances)
        drawn = drawn[np.argsort(self.aspects[drawn], kind="stable")]
        for k, part in enumerate(rng.permutation(BLOCK)):
            batch = drawn[part * size : (part + 1) * size]
            shapes = stacked([picture(self.inks[i], _look(rng, self.recipe.variation)) for i in batch])
            true = torch.from_numpy(self.labels[batch])
            for group in self.optimizer.param_groups:
                group["lr"] = self.recipe.rate * _slope((self.block + k / BLOCK) / self.blocks, self.recipe.warmup)
            cosines = self.network(shapes) @ functional.normalize(self.vectors).T
            harder = cosines - self.recipe.margin * functional.one_hot(true, len(self.vectors))
            loss = functional.cross_entropy(self.recipe.sharpness * harder, true)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call,unused-ignore]
            self.optimizer.step()
            self.loss += 0.02 * (loss.item() - self.loss)
            self.accuracy += 0.02 * (float((cosines.argmax(1) == true).float().mean()) - self.accuracy)

    def _identity(self) -> str:
        """Names the words and settings, so that a checkpoint of others is told."""
        content = hashlib.sha256(repr(self.recipe).encode())
        content.update(self.labels.tobytes() + self.aspects.tobytes())
        return content.hexdigest()

    def _save(self, path: Path) -> None:
        state = {
            "identity": self._identity(),
            "network": self.network.state_dict(),
            "vectors": self.vectors.detach(),
            "optimizer": self.optimizer.state_dict(),
            "means": (self.loss, self.accuracy),
            "block": self.block,
        }
        beside = path.with_name(path.name + ".tmp")
        torch.save(state, beside)
        os.replace(beside, path)

    def resume(self, path: Path) -> None:
        """Take up the state that was saved; RunError where it is of another training."""
        try:
            state = torch.load(BytesIO(path.read_bytes()), weights_only=True)
            identity = state["identity"]
        except Exception as err:  # torch's errors have no common class
            raise RunError(f"{path} is no checkpoint of train-style; remove it, or name another file") from err
        if identity != self._identity():
            raise RunError(
                f"{path} is the checkpoint of a training with other words or settings; remove it to begin anew"
            )
        self.network.load_state_dict(state["network"])
        self.vectors.data.copy_(state["vectors"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.loss, self.accuracy = state["means"]
        self.block = state["block"]


def stacked(pictures: Sequence[NDArray[np.uint8]]) -> Tensor:
    """Pictures as ``(n, 1, h, w)`` in 0–1, with paper to the right of those that are narrower than the widest."""
    out = np.zeros((len(pictures), 1, HEIGHT, max(p.shape[1] for p in pictures)), np.float32)
    for k, shape in enumerate(pictures):
        out[k, 0, :, : shape.shape[1]] = shape / np.float32(255)
    return torch.from_numpy(out).contiguous(memory_format=torch.channels_last)


def exported(network: Network, metadata: Mapping[str, str]) -> bytes:
    """Write a trained network as ONNX, batch normalisation folded into the maps before it."""
    layers = []
    modules: Any = zip(network.convolutions, network.norms, strict=True)
    for convolution, norm in modules:
        scale, shift = _folded(norm)
        weight = convolution.weight.detach().double() * scale[:, None, None, None]
        layers.append(Layer(_array(weight), _array(shift), convolution.stride[0]))
    scale, shift = _folded(network.norm)
    weight = network.linear.weight.detach().double() * scale[:, None]
    return network_file(layers, _array(weight), _array(shift), metadata)


def _folded(norm: Any) -> tuple[Tensor, Tensor]:
    scale = norm.weight.detach().double() / torch.sqrt(norm.running_var.double() + norm.eps)
    return scale, norm.bias.detach().double() - norm.running_mean.double() * scale


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return np.asarray(tensor.contiguous().numpy(), np.float32)


def _look(rng: np.random.Generator, variation: float) -> Look:
    """How a picture is varied: as much as one hand varies, and as recovered strokes differ from recorded ones."""
    slant, stretch, size, pen, smooth = variation * rng.normal(0, [0.06, 0.06, 0.05, 0.12, 0.3])
    return Look(slant, float(np.exp(stretch)), float(np.exp(size)), float(np.exp(pen)), float(np.exp(smooth)))


def _slope(share: float, warmup: float) -> float:
    """The rate at a share of the training, as part of the highest."""
    if share < warmup:
        return 0.04 + 0.96 * share / warmup
    return 0.5 + 0.5 * cos(pi * (share - warmup) / (1 - warmup))


def _aspect(ink: Ink) -> float:
    x0, y0, x1, y1 = ink.bounds
    return (x1 - x0) / max(y1 - y0, 1e-9)
