"""inktraj gives the pen movement back to a photo of a handwritten page, and measures how well anyone does.

>>> import inktraj
>>> page = inktraj.Page.open("page.jpg")           # doctest: +SKIP
>>> words = inktraj.segment(page).words            # doctest: +SKIP
>>> ink = inktraj.recover(words[0])                # doctest: +SKIP

Names below are loaded at first use, so that ``import inktraj`` costs next to nothing.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from inktraj.errors import DataError, InktrajError, MissingDependency, ParseError, RunError
    from inktraj.ink import Frame, Ink
    from inktraj.page import Line, Page, WordCrop
    from inktraj.pseudolabel import build_pseudolabels
    from inktraj.recovery import recover
    from inktraj.rendering import render
    from inktraj.scoring import Scores, read_scores, score
    from inktraj.segmentation import segment

_HOMES = {
    "Frame": "ink",
    "Ink": "ink",
    "Page": "page",
    "Line": "page",
    "WordCrop": "page",
    "DataError": "errors",
    "InktrajError": "errors",
    "MissingDependency": "errors",
    "ParseError": "errors",
    "RunError": "errors",
    "Scores": "scoring",
    "build_pseudolabels": "pseudolabel",
    "read_scores": "scoring",
    "recover": "recovery",
    "render": "rendering",
    "score": "scoring",
    "segment": "segmentation",
}

__all__ = [
    "DataError",
    "Frame",
    "Ink",
    "InktrajError",
    "Line",
    "MissingDependency",
    "Page",
    "ParseError",
    "RunError",
    "Scores",
    "WordCrop",
    "build_pseudolabels",
    "read_scores",
    "recover",
    "render",
    "score",
    "segment",
]


def _keep_kernels_somewhere() -> None:
    """Give numba a folder for compiled kernels where it would find none, and importing a kernel would fail.

    That is where neither the package nor the home folder can be written to. The folder is this process's own: compiled
    code that somebody else could have put there must not be loaded.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~")
    places = (os.path.dirname(__file__), home)
    if "NUMBA_CACHE_DIR" not in os.environ and not any(os.access(place, os.W_OK) for place in places):
        import atexit
        import shutil
        import tempfile

        folder = os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="inktraj-kernels-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


_keep_kernels_somewhere()


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"inktraj.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'inktraj' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
