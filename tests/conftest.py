"""What all tests share: seeded numbers, real pages where they are at hand, and how Hypothesis works."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import numpy as np
import pytest
import stale_kernels
from hypothesis import settings

stale_kernels.remove()

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"

# Times differ too much between machines for deadlines. In CI the same examples are tried every time, so that a
# failure there is the change's own.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture
def rng(request):
    """Random numbers that are the same in every run, and others in every test."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(scope="session")
def shared_data():
    """Folder of real pages and recorded words that are not part of the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"real pages are not part of the project, and there are none in {SHARED_DATA}")
    return SHARED_DATA
