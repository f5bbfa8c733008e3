"""Benchmarks by name: the shipped ones, those that other packages offer, and any ``module:attribute``."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec

from inktraj.errors import DataError
from inktraj.vqa.benchmark import Benchmark

GROUP = "inktraj.vqa"
"""Entry points of other packages that name a benchmark."""

SHIPPED = {
    "mtvqa": "inktraj.vqa.mtvqa:MTVQA",
    "palmleaf-vqa": "inktraj.vqa.palmleaf:PalmLeafVQA",
    "indotabvqa": "inktraj.vqa.indotab:IndoTabVQA",
}
"""Name → ``module:attribute``."""


def benchmark_names() -> list[str]:
    """Return the names that `load_benchmark` knows."""
    return [*SHIPPED, *sorted(entry_points(group=GROUP).names)]


def load_benchmark(spec: str | Benchmark) -> Benchmark:
    """Return a benchmark.

    Parameters
    ----------
    spec
        A name, a ``module:attribute`` (a subclass of `Benchmark`, or an object), or the benchmark itself.

    Raises
    ------
    DataError
        There is none of this name, or what is named is no benchmark.
    """
    if isinstance(spec, Benchmark):
        return spec
    place = SHIPPED.get(spec) or next((e.value for e in entry_points(group=GROUP) if e.name == spec), spec)
    module, colon, attribute = place.partition(":")
    if not colon or not attribute:
        known = ", ".join(benchmark_names())
        raise DataError(f"there is no benchmark {spec!r}; known are {known}, and any module:attribute")
    try:
        if find_spec(module) is None:
            raise ImportError(f"no module is named {module!r}")
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as err:
        raise DataError(f"the benchmark {spec!r} cannot be imported: {err}") from err
    made = found() if isinstance(found, type) else found
    if not isinstance(made, Benchmark):
        raise DataError(f"{spec!r} is {made!r}, expected a subclass of inktraj.vqa.Benchmark")
    return made
