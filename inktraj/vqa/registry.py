"""Benchmarks by name: shipped ones, those of other packages, and any ``module:attribute`` or ``file.py:attribute``."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

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
        A name, a ``module:attribute`` or ``file.py:attribute`` (a subclass of `Benchmark`, or an object), or the
        benchmark itself.

    Raises
    ------
    DataError
        There is none of this name, or what is named is no benchmark.
    """
    if isinstance(spec, Benchmark):
        return spec
    place = SHIPPED.get(spec) or next((e.value for e in entry_points(group=GROUP) if e.name == spec), spec)
    module, colon, attribute = place.rpartition(":")
    if not colon or not attribute:
        known = ", ".join(benchmark_names())
        raise DataError(
            f"there is no benchmark {spec!r}; known are {known}, any module:attribute and file.py:attribute"
        )
    try:
        found = getattr(_from_file(Path(module)) if module.endswith(".py") else import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, OSError, SyntaxError) as err:
        hint = "" if module.endswith(".py") else f"; a file of your own can be named as {module}.py:{attribute}"
        raise DataError(f"the benchmark {spec!r} cannot be imported: {err}{hint}") from err
    made = found() if isinstance(found, type) else found
    if not isinstance(made, Benchmark):
        raise DataError(f"{spec!r} is {made!r}, expected a subclass of inktraj.vqa.Benchmark")
    return made


def _from_file(path: Path) -> ModuleType:
    """Import a file, under a name that no other module has."""
    name = f"inktraj_benchmark_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
