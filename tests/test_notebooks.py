"""The notebooks run from top to bottom, hold no outputs, and only import and narrate."""

from __future__ import annotations

import ast
import gc
import json
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))

# The messages that Jupyter's own machinery (zmq sockets, event loops, time zones) gives on closing are not about the
# notebook; warnings inside it come in its kernel, where the test below makes them errors.
quiet_machinery = pytest.mark.filterwarnings("ignore")


class ThisPython(KernelSpecManager):
    """Offers this interpreter alone, whatever kernels are installed for the user or the machine."""

    def get_kernel_spec(self, kernel_name):
        assert kernel_name == "python3"
        argv = [sys.executable, "-W", "error::UserWarning", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def test_there_are_notebooks():
    assert NOTEBOOKS


class ThisPythonsManager(AsyncKernelManager):
    """Starts kernels of this interpreter."""

    def _kernel_spec_manager_default(self):
        return ThisPython()


@quiet_machinery
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook, kernel_name="python3", kernel_manager_class=ThisPythonsManager, timeout=180, resources=where
    )
    client.execute()
    del client
    gc.collect()  # what is left of sockets goes while their warnings are still ignored
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output.text for output in shown if output.get("name") == "stderr"]
    pages = [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert any("<img" in page for page in pages), "no picture of a page or word"
    assert any("<animate" in page for page in pages), "no strokes that replay"
    assert any("ink_token_450" in page for page in pages), "no tokens"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_is_stored_without_outputs(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        assert not cell.get("outputs"), cell["source"]
        assert cell.get("execution_count") is None, cell["source"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_holds_no_logic(path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            kinds = {type(node) for node in ast.walk(ast.parse(cell.source))}
            assert not kinds & {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.While, ast.Try}, cell.source
