"""An evaluation's tables and report: what they tell, and that no model's reply can do anything in them."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from inktraj.datasets import load_dataset
from inktraj.evaluation import report
from inktraj.evaluation.report import write_report
from inktraj.evaluation.results import KINDS, EvaluationRun, Outcome, Row
from inktraj.evaluation.summary import print_table, summary_markdown, tell
from inktraj.ink import Frame, Ink
from inktraj.io import InkRecord
from inktraj.ocr import Reading
from inktraj.scoring import score
from inktraj.vlm import Reply

HOSTILE = 'Here: (1,2,1) </script><script>alert(1)</script><img src=x onerror=alert(2)> "\u2028\ud800 &amp; <!-- index -->'


class Parrot:
    """Reads the same in every picture."""

    name, version = "parrot", "1"

    def __call__(self, images):
        return [Reading("the", 1.0) for _ in images]


def perturbed(ink: Ink, rng, error: float, place: float) -> Ink:
    """The ink with noise, moved, with strokes in another order."""
    strokes = [s + rng.normal(0, error, s.shape) + place for s in ink.strokes]
    rng.shuffle(strokes)
    return Ink(strokes, ink.frame)


def outcome(sample, kind, rng, error=2.0, text="(1,2,1)"):
    reply = Reply(text, "end", 1200, 300, "maker/model-1", raw_stop="end_turn")
    if kind == "ok":
        far = 2000.0 if rng.random() < 0.04 else rng.normal(0, 4)
        ink = perturbed(sample.ink, rng, error, far)
        return Outcome(sample.id, "ok", "", ink, reply, "tuples", "norm1000", rng.random() < 0.9, 0.25, 1)
    if kind == "error":
        return Outcome(sample.id, "error", "the server answered 529 (overloaded) 6 times")
    return Outcome(sample.id, kind, f"this one is {kind} <b>&", reply=reply)


def make_row(samples, kinds, rng, *, model="claude", frame="sent-px", native=True, error=2.0, text="(1,2,1)", **options):
    outcomes = tuple(outcome(s, k, rng, error, text) for s, k in zip(samples, kinds, strict=True))
    extra = [{"page": s.page_id, "writer": s.writer} for s in samples]
    ref = [InkRecord(s.id, s.ink, s.text, e) for s, e in zip(samples, extra, strict=True)]
    pred = []
    for sample, found in zip(samples, outcomes, strict=True):
        page = {"page": sample.page_id}
        if found.ink is not None:
            pred.append(InkRecord(sample.id, found.ink, extra=page))
        elif found.kind == "error":  # an ink in another unit cannot be scored
            pred.append(InkRecord(sample.id, Ink(sample.ink.strokes, Frame(9, 9, "mm")), extra=page))
        elif found.kind != "incomplete":
            pred.append(InkRecord(sample.id, Ink((), sample.ink.frame), extra=page))
    return Row(model, frame, native, outcomes, score(pred, ref, **options), ("maker/model-1",))


def make_run(folder, *, rows=2, text="(1,2,1)", seed=3, **options) -> EvaluationRun:
    """A run over the demo set: three quarters of the answers are ok, the others of every other kind."""
    rng = np.random.default_rng(seed)
    dataset = load_dataset("demo")
    samples = list(dataset)
    kinds = [KINDS[1 + i // 4 % (len(KINDS) - 1)] if i % 4 == 3 else "ok" for i in range(len(samples))]
    frames = [("sent-px", True), ("norm1000", False), ("percent", False)][:rows]
    made = tuple(
        make_row(samples, kinds, rng, frame=frame, native=native, error=1.5 + 2 * i, text=text, **options)
        for i, (frame, native) in enumerate(frames)
    )
    costs = {"run": {"input_tokens": 12000, "dollars": 0.1234}, "all": {"input_tokens": 99999, "dollars": None}}
    settings = {"model": "claude", "prompt": {"input": "page", "per": "word"}, "seed": 0, "temperature": None}
    return EvaluationRun(folder, dataset, made, settings, costs, limited=5, warnings=("the key is <new>",))
