"""How many replies of models are read rightly, how many wrong ones pass for valid, and how fast hostile text is read.

    python benchmarks/parse.py [--cases FILE.jsonl] [--wrong] [--fuzz SECONDS] [--json FILE]

Cases are described in parse_cases.py, which makes those that are read without ``--cases``; to them come the replies
written by hand in parse_replies/, where models do all that they do beside answering. Points count as right
within half a pixel: conventions for where pixel 0 lies differ by that. ``seconds_per_mb`` is the slowest of the
hostile texts of a megabyte. ``--fuzz`` lets atheris (``pip install atheris``) look for texts that raise or break the
account of numbers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import parse_cases
import record

from inktraj.parse import Parsed, parse

REPLIES = Path(__file__).parent / "parse_replies"
TOLERANCE = 0.51  # pixels


def read(case: dict[str, Any]) -> Parsed:
    return parse(
        case["text"],
        frame=case.get("frame") or "auto",
        sent_size=(case["width"], case["height"]),
        original_size=case.get("original_size"),
        stop_reason=case.get("stop_reason"),
        words=case.get("words"),
    )


def is_right(found: Parsed, case: dict[str, Any]) -> bool:
    """Compare strokes where a case has them, those of each word where it is a page (by place), else the status."""
    if "page" in case:
        answered = {str(i) for i, word in found.words.items() if word.used}
        return answered == set(case["page"]) and all(
            is_right(found.words[int(i)], {"strokes": strokes}) for i, strokes in case["page"].items()
        )
    if "strokes" not in case:
        return found.status == case["status"]
    expected = [np.array(s, dtype=np.float64).reshape(-1, 2) for s in case["strokes"]]
    return len(expected) == len(found.strokes) and all(
        a.shape == b.shape and bool((np.abs(a - b) <= TOLERANCE).all())
        for a, b in zip(expected, found.strokes, strict=True)
    )


def cases_in(path: Path) -> list[dict[str, Any]]:
    """Return the cases of a file; a reply may hold other line ends than newlines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def replies() -> list[dict[str, Any]]:
    """Return the replies written by hand."""
    return [case for path in sorted(REPLIES.glob("*.jsonl")) for case in cases_in(path)]


def slowest(size: int = 1_000_000) -> tuple[float, str]:
    """Return seconds of CPU time for a megabyte of the hostile text that takes longest, the best of three."""
    worst = (0.0, "")
    for name, text in parse_cases.hostile(size).items():
        parse(text[:5000], sent_size=(1000, 800))
        seconds = min(timed(text) for _ in range(3))
        worst = max(worst, (seconds * 1e6 / max(len(text), 1), name))
    return worst


def timed(text: str) -> float:
    start = time.process_time()
    parse(text, sent_size=(1000, 800))
    return time.process_time() - start


def fuzz(seconds: float) -> None:
    """Let atheris write replies; it ends the process."""
    import atheris

    frames = ("auto", "sent-px", "norm1000-yx", "percent")

    def try_one(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        frame, stop = provider.PickValueInList(list(frames)), provider.PickValueInList([None, "end", "length"])
        text = ""
        while provider.remaining_bytes():
            text += provider.PickValueInList(parse_cases.PIECES) + provider.ConsumeUnicode(
                provider.ConsumeIntInRange(0, 3)
            )
        found = parse(text, frame=frame, sent_size=(300, 200), stop_reason=stop)
        numbers = found.numbers
        assert numbers.found == numbers.used + numbers.dropped + numbers.left
        assert all(np.isfinite(s).all() and len(s) for s in found.strokes)

    atheris.Setup([sys.argv[0], f"-max_total_time={int(seconds)}"], try_one)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--wrong", action="store_true", help="show the cases that are not read rightly")
    parser.add_argument("--fuzz", type=float, help="seconds of fuzzing in place of all else")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.fuzz:
        fuzz(arguments.fuzz)
    made = [] if arguments.cases else [*parse_cases.build(count=5, seed=1), *replies()]
    cases = cases_in(arguments.cases) if arguments.cases else made
    found = [read(case) for case in cases]
    right = [is_right(f, c) for f, c in zip(found, cases, strict=True)]
    claimed = [f.status == "valid" and not r for f, r in zip(found, right, strict=True)]
    for case, f, r in zip(cases, found, right, strict=True):
        if arguments.wrong and not r:
            print(f"{case.get('name', '')}: {f.status}, {f.dialect}: {case['text'][:300]!r}")
    seconds, where = slowest()
    figures = {
        "cases": len(cases),
        "correct": sum(right),
        "wrong_but_claimed_valid": sum(claimed),
        "seconds_per_mb": seconds,
    }
    print(record.table(figures))
    print(f"slowest hostile text: {where}")
    settings = {"cases": arguments.cases and arguments.cases.name}
    record.write(arguments.json, "parse", settings, figures)


if __name__ == "__main__":
    main()
