"""Page records → one self-contained HTML file in which a person compares and replays.

The page's look and behaviour are in ``report_template.html``; its data are put in here, escaped. Pictures are
the small ones made with the records; overlay and rendering are drawn by the browser from the strokes.
"""

from __future__ import annotations

from base64 import b64encode
from html import escape
from importlib.resources import files
from typing import Any, BinaryIO

import numpy as np

from inktraj.io.html import packed, packed_strokes, script_json

SIZE_LIMIT = 80_000_000
"""Bytes after which further pages are listed without pictures and strokes, so that browsers still open the file."""

TOLERANCE = 0.2
"""Pixels by which the report's strokes may differ from the recovered ones, for the sake of fewer points."""

_PAGES = "<!-- pages -->"
_SUMMARY = "<!-- summary -->"


class Report:
    """Writes the report page by page; `finish` it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        template = files("inktraj.pseudolabel").joinpath("report_template.html").read_text(encoding="utf-8")
        head, self._tail = template.split(_PAGES)
        self._written = 0
        self._put(head)

    def _put(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        self._written += len(data)
        self._file.write(data)

    def add(self, page: dict[str, Any], picture: bytes | None) -> None:
        """Write one page; `picture` is its small JPEG."""
        verdict = escape(page["verdict"])
        facts = [f"{len(page['words'])} words"]
        facts += [
            f"{label} {page[name]:.0%}"
            for name, label in (
                ("agreement", "agreement"),
                ("ink_recall", "ink recall"),
                ("ink_precision", "ink precision"),
            )
            if page[name] is not None
        ]
        if page["pen"] is not None:
            facts.append(f"pen {page['pen']:.1f} px")
        data = ""
        if picture is not None and self._written < SIZE_LIMIT:
            data = f'<script type="application/json">{script_json(_page_data(page, picture))}</script>'
        elif picture is not None:
            facts.append("not shown here: the report has grown too large")
        self._put(
            f'<section class="page" data-verdict="{verdict}">'
            f'<h2><span class="verdict {verdict}">{verdict}</span> '
            f'<span class="id">{escape(page["page_id"])}</span></h2>'
            f'<p class="facts">{escape(" · ".join(facts))}</p><p class="reason">{escape(page["reason"])}</p>'
            f'<div class="body"></div>{data}</section>\n'
        )

    def finish(self, counts: dict[str, int], means: dict[str, float | None], settings: dict[str, Any]) -> None:
        """Write the summary and the end of the file."""
        numbers = {**counts, **{name: "–" if value is None else f"{value:.3f}" for name, value in means.items()}}
        parts = [
            f"<div><dt>{escape(k.replace('_', ' '))}</dt><dd>{escape(str(v))}</dd></div>" for k, v in numbers.items()
        ]
        told = "".join(f"<li>{escape(name)}: {escape(str(value))}</li>" for name, value in settings.items())
        summary = f"<dl>{''.join(parts)}</dl><details><summary>Settings</summary><ul>{told}</ul></details>"
        self._put(self._tail.replace(_SUMMARY, summary))


def _page_data(page: dict[str, Any], picture: bytes) -> dict[str, Any]:
    return {
        "w": page["width"],
        "h": page["height"],
        "pen": page["pen"],
        "img": b64encode(picture).decode("ascii"),
        "original": page["transcript"],
        "rendered": page["rendered_transcript"],
        "pairs": [[p["original"], p["rendered"], int(p["match"])] for p in page["alignment"]],
        "words": [
            {
                "id": word["id"],
                "t": word["text"],
                "r": word["rendered_text"],
                "m": int(word["match"]),
                "p": packed(word["polygon"]),
                "s": _strokes(word["strokes"]),
            }
            for word in page["words"]
        ],
    }


def _strokes(points: list[list[float]]) -> list[list[int]]:
    if not points:
        return []
    array = np.asarray(points, dtype=np.float64)
    return packed_strokes(np.split(array[:, :2], np.flatnonzero(array[:, 2])[1:]), TOLERANCE)
