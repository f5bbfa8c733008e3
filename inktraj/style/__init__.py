"""Whose hand an ink is: a classifier of writers, and the style score that it gives.

    model = StyleModel.load("writers.onnx")           # of inktraj train-style, or StyleModel.enrol({"anna": inks, …})
    scores = model.score(inks, ["anna", "ben"])       # calibrated probability of the true writer of each
    summarize(scores).relative                        # between the floor (0) and the ceiling (1)

Conventions
-----------
* An ink is one word; only its shape counts (`inktraj.style.shape`). A picture is recovered first.
* A score belongs to one classifier; its hash goes with every result, and results of several are not put together.
* A model is an ONNX file: scoring and enrolling need onnxruntime, only the training of a new network needs torch.
"""

from inktraj.style.model import Calibration, StyleModel, Writer
from inktraj.style.network import StyleNetwork
from inktraj.style.samples import Samples, read_samples
from inktraj.style.scores import (
    Identification,
    StyleScore,
    StyleSummary,
    compare,
    same_model,
    summarize,
)

__all__ = [
    "Calibration",
    "Identification",
    "Samples",
    "StyleModel",
    "StyleNetwork",
    "StyleScore",
    "StyleSummary",
    "Writer",
    "compare",
    "read_samples",
    "same_model",
    "summarize",
]
