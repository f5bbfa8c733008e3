"""Removes numba's compiled kernels where any kernel's source has changed.

numba keeps compiled code beside a source file and looks only at that file's date. But a kernel is compiled into those
of other files that call it, and these would go on with the old one.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARK = ROOT / ".kernels"
"""Holds the hash of all sources with kernels as they were when these were compiled; not under version control."""


def remove() -> None:
    """Remove the compiled kernels of this checkout where they may be stale; they are made again at their first call."""
    told = hashlib.sha256()
    folders = set()
    for path in sorted(
        p for name in ("inktraj", "pipelines", "benchmarks", "tests") for p in (ROOT / name).rglob("*.py")
    ):
        source = path.read_bytes()
        if b"njit" in source:
            told.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + source)
            folders.add(path.parent / "__pycache__")
    digest = told.hexdigest()
    if MARK.exists() and MARK.read_text(encoding="ascii") == digest:
        return
    for folder in folders:
        for compiled in [*folder.glob("*.nbi"), *folder.glob("*.nbc")]:
            compiled.unlink(missing_ok=True)
    with suppress(OSError):  # in a checkout that cannot be written to, nothing was compiled either
        MARK.write_text(digest, encoding="ascii")
