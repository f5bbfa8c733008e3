"""Document visual question answering: benchmarks that share the models, the runner and the report of evaluations.

A benchmark is one class with a loader, wordings, a scorer and breakdowns (`inktraj.vqa.benchmark.Benchmark`).
"""

from inktraj.vqa.benchmark import (
    Benchmark,
    Extra,
    Figure,
    Image,
    Message,
    Question,
    Questions,
    Quoted,
    Result,
    Scored,
    Skipped,
)
from inktraj.vqa.registry import benchmark_names, load_benchmark

__all__ = [
    "Benchmark",
    "Extra",
    "Figure",
    "Image",
    "Message",
    "Question",
    "Questions",
    "Quoted",
    "Result",
    "Scored",
    "Skipped",
    "benchmark_names",
    "load_benchmark",
]
