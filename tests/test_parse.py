"""Replies of models: golden replies of every dialect, cut and damaged; what holds for any text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from inktraj.parse import parse

REPLIES = sorted((Path(__file__).parent / "data" / "parse").glob("*.txt"))


def read(path: Path) -> tuple[dict, str]:
    """A golden reply: what is expected, in the first line, and the reply behind it, as it is."""
    with path.open(encoding="utf-8", newline="") as file:
        head, _, reply = file.read().partition("\n")
    return json.loads(head), reply


def parsed(head: dict, reply: str):
    return parse(
        reply,
        frame=head.get("frame", "sent-px"),
        sent_size=head.get("size", (800, 600)),
        original_size=head.get("original"),
        stop_reason=head.get("stop"),
        echo=head.get("echo", ""),
        words=head.get("words"),
    )


@pytest.mark.parametrize("path", REPLIES, ids=lambda path: path.stem)
def test_golden_replies(path):
    head, reply = read(path)
    found = parsed(head, reply)
    expected = head.get("strokes", [])
    assert [s.tolist() for s in found.strokes] == [[pytest.approx(p) for p in s] for s in expected], found
    assert found.status == head["status"]
    if expected:
        assert found.dialect == head["dialect"]
        assert found.frame == head.get("reported", head.get("frame", "sent-px"))
        assert found.dialect_why
        assert found.frame_why
        assert found.starts_known == head.get("known", found.starts_known)
        assert found.starts_why == head.get("starts", found.starts_why)
    if "dropped" in head:
        assert sorted(p.kind for p in found.dropped) == sorted(head["dropped"])
    elif head["status"] == "valid":
        assert not found.dropped
    assert set(head.get("notes", [])) <= {p.kind for p in found.notes}
    if "answered" in head:
        assert sorted(found.words) == head["answered"]
