"""Worker processes that end with the training which started them, however it ends.

A training that is killed cannot stop its workers: one would go on writing checkpoints beside the next training's.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait


def pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool of so many fresh processes."""
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_watch)


def _watch() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
