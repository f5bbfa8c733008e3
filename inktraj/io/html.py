"""What self-contained HTML reports share: data that cannot leave its script element, and strokes in few characters."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FARTHEST = 1e6
"""Coordinates beyond this are drawn at it: no picture shows them, and they must fit into an integer."""


def script_json(data: Any) -> str:
    """Return JSON that cannot end the script element it stands in, whatever its texts hold."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def content_policy(template: str) -> str:
    """Return the content security policy: nothing from elsewhere, and no script or style but the template's own.

    The template has one ``<style>`` and one ``<script>`` element without attributes.
    """

    def digest(tag: str) -> str:
        (own,) = re.findall(rf"<{tag}>(.*?)</{tag}>", template, re.DOTALL)
        return base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()

    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest('style')}'; "
        f"script-src 'sha256-{digest('script')}'; base-uri 'none'; form-action 'none'"
    )


def packed(points: ArrayLike) -> list[int]:
    """Return points ``(n, 2)`` as x, y, then the steps dx, dy, …, in tenths of a unit."""
    array = np.asarray(points, dtype=np.float64).reshape(-1, 2).clip(-FARTHEST, FARTHEST)
    tenths = (array * 10).round().astype(np.int64)
    tenths[1:] -= tenths[:-1].copy()
    flat: list[int] = tenths.ravel().tolist()
    return flat


def packed_strokes(strokes: Iterable[NDArray[Any]], tolerance: float) -> list[list[int]]:
    """Pack strokes, each ``(n, 2)``, without the points that a straight line replaces within `tolerance` units."""
    return [
        packed(_thinned(np.asarray(stroke, dtype=np.float64).clip(-FARTHEST, FARTHEST), tolerance))
        for stroke in strokes
    ]


def _thinned(stroke: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    import cv2

    within = np.ascontiguousarray(stroke, dtype=np.float32)
    if len(within) > 1 and (within[0] == within[-1]).all():
        # OpenCV takes such a stroke for a closed curve and lets it begin anywhere.
        far = int(np.hypot(*(within - within[0]).T).argmax())
        if not far:
            return stroke[:1]
        halves = [_thinned(part, tolerance) for part in (stroke[: far + 1], stroke[far:])]
        return np.concatenate([halves[0], halves[1][1:]])
    return cv2.approxPolyDP(within, tolerance, False).reshape(-1, 2).astype(np.float64)
