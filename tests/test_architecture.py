"""The map of the package (docs/architecture.md) holds: imports point down its table, and importing is cheap."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "inktraj"
HEAVY = {
    *("torch", "transformers", "tensorflow", "ray", "matplotlib", "numba", "cv2", "onnxruntime", "skimage"),
    *("numpy", "scipy", "pyarrow", "shapely", "rapidocr", "PIL", "pypdfium2", "openai", "anthropic", "google"),
}


def table() -> dict[str, int]:
    """Layer of each module, from the table in the docs."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return {name: int(layer) for layer, name in re.findall(r"^\| (\d+) \| `(\w+)/?` \|", text, re.MULTILINE)}


LAYERS = table()
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or not path.name.startswith("__"))


def module_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imported(tree: ast.AST, package: list[str]) -> set[str]:
    """Modules of inktraj that are imported anywhere in a file, in functions too; not those that only name types."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *filter(None, [node.module])])
            names = [f"{start}.{alias.name}" for alias in node.names]
        found.update(name.split(".")[1] for name in names if name.startswith("inktraj.") and name.count("."))
        if only_for_types(node):
            assert isinstance(node, ast.If)
            for other in node.orelse:
                found |= imported(other, package)
        else:
            found |= imported(node, package)
    return found & LAYERS.keys()


def test_the_table_names_the_modules():
    assert LAYERS
    assert set(map(module_of, FILES)) == set(LAYERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    own = module_of(path)
    package = ["inktraj", *path.relative_to(PACKAGE).parts[:-1]]
    for name in imported(ast.parse(path.read_text(encoding="utf-8")), package) - {own}:
        assert LAYERS[name] < LAYERS[own], f"{own} (layer {LAYERS[own]}) imports {name} (layer {LAYERS[name]})"


def test_the_walk_sees_every_kind_of_import():
    code = """
import inktraj.codec
from inktraj import ink, Page
from .page import Line
if TYPE_CHECKING:
    from inktraj.ocr import Reading
def f():
    from inktraj.agree import check
    from . import rendering
"""
    assert imported(ast.parse(code), ["inktraj"]) == {"codec", "ink", "page", "agree", "rendering"}
    assert imported(ast.parse("from ..io import images"), ["inktraj", "recovery"]) == {"io"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_stay_small(path):
    assert path.stat().st_size <= 40_000


def test_importing_the_package_loads_nothing_heavy():
    code = "import inktraj, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert not HEAVY & {name.partition(".")[0] for name in loaded.split()}
