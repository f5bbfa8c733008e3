"""How well recovered strokes match recorded pen movement.

    python benchmarks/recovery.py --inks FILE.npz --split dev

Recorded words are drawn with a round pen (or photographed on paper, ``--difficulty photo``), recovered from the pixels,
and compared with the recording; `recovery_scores` says how. The word's place in the archive seeds its picture.

Beside the figures stand those of the scribe's fast setting, of the same words told to it as text, and, for photos, of
the clean pictures (``--alone`` leaves them out). ``--sweep`` adds a table over pen width, height, noise and blur,
``--curve`` one of what quality costs, ``--peer`` one of public peers on the same words (see `recovery_peers`),
``--overlays`` pictures of the best, median and worst words.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import cv2
import record
import recovery_tables
from recovery_peers import load_peer
from recovery_scores import Words, figures_of, measure

from inktraj.errors import DataError

RECOVERERS = ("tracer", "scribe")
LIMIT, LIMIT_OF_TABLES = 2000, 200


def make_recoverer(name: str, *, quality: str = "best", marks: str = "word", **more: Any) -> Any:
    if name == "tracer":
        from inktraj.recovery.tracer import Tracer

        return Tracer(marks=marks)
    from inktraj.recovery.scribe import Scribe

    return Scribe(quality=quality, **more)


def rungs() -> dict[str, Any]:
    """Return the recoverers of the curve, from quick to good."""
    found = {"tracer": make_recoverer("tracer")}
    found |= {f"scribe {quality}": make_recoverer("scribe", quality=quality) for quality in ("fast", "best")}
    return found | {f"scribe, beam {beam}": make_recoverer("scribe", beam=beam) for beam in recovery_tables.BEAMS}


def variations(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return what else is worth measuring beside a run, in the arguments of `measure`."""
    found: dict[str, dict[str, Any]] = {}
    if args.recoverer == "scribe" and args.quality == "best":
        fast = make_recoverer("scribe", quality="fast")
        found["fast"] = {"recoverer": fast, "difficulty": args.difficulty}
        found["with text"] = {"tell_text": True, "difficulty": args.difficulty}
    if args.difficulty == "photo":
        found["clean"] = {"difficulty": "clean"}
    return found


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inks", type=Path, required=True, help="packed words (.npz)")
    parser.add_argument("--split", default="dev", choices=["train", "dev"])
    parser.add_argument("--recoverer", default="scribe", choices=RECOVERERS)
    parser.add_argument("--quality", default="best", choices=["fast", "best"], help="of the scribe")
    parser.add_argument(
        "--marks", default="word", choices=["word", "run"], help="where the tracer puts dots and bars in the order"
    )
    parser.add_argument("--difficulty", default="clean", choices=["clean", "photo"])
    parser.add_argument(
        "--limit",
        type=int,
        help=f"a seeded choice of so many words (0: all); {LIMIT}, but {LIMIT_OF_TABLES} with --sweep or --curve",
    )
    parser.add_argument("--style", help="only words of this style, e.g. CURSIVE")
    parser.add_argument("--sweep", action="store_true", help="a table over pen width, height, noise and blur")
    parser.add_argument("--curve", action="store_true", help="a table of time against quality over the recoverers")
    parser.add_argument("--alone", action="store_true", help="no other settings beside the one that was asked for")
    parser.add_argument("--peer", action="append", metavar="NAME=PATH", help="compare with a checkout of a public peer")
    parser.add_argument("--overlays", type=Path, metavar="DIR", help="write pictures of the best, median and worst")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.limit is not None and args.limit < 0:
        parser.error(f"--limit is a number of words, or 0 for all, not {args.limit}")
    if args.limit is None:
        args.limit = LIMIT_OF_TABLES if args.sweep or args.curve else LIMIT
    return args


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the record says of the run; where peers and pictures lie on this machine is nobody's business."""
    settings = {name: value for name, value in vars(args).items() if name not in ("json", "inks", "overlays", "peer")}
    settings["peer"] = [option.partition("=")[0] + "=PATH" for option in args.peer] if args.peer else None
    return settings | {"inks": str(args.inks)}


def main() -> None:
    args = parsed()
    cv2.setNumThreads(1)
    try:
        words = Words(args.inks)
    except DataError as err:
        raise SystemExit(str(err)) from err
    indices = words.choose(args.split, args.style, args.limit)
    if not len(indices):
        raise SystemExit(f"no {args.split} words of style {args.style!r} in {args.inks}")
    peers = [load_peer(option) for option in args.peer or []]  # a wrong path is told before the work
    recoverer = make_recoverer(args.recoverer, quality=args.quality, marks=args.marks)
    rows, failures = measure(words, indices, recoverer, difficulty=args.difficulty)
    figures: dict[str, Any] = figures_of(rows, failures)
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:{width}s} {recovery_tables.shown(value)}")
    for failure in failures[:20]:
        print(failure)
    print()

    tables: dict[str, recovery_tables.Table] = {}
    if not args.alone and (others := variations(args)):
        tables["beside"] = recovery_tables.beside(words, indices, rows, recoverer, others)
    if args.sweep:
        tables["sweep"] = recovery_tables.sweep(words, indices, recoverer)
    if args.curve:
        tables["curve"] = recovery_tables.curve(words, indices, rungs(), difficulty=args.difficulty)
    if peers:
        ours = {recoverer.name: rows}
        tables["peers"] = recovery_tables.compare(words, indices, ours, peers, difficulty=args.difficulty)
    for name, table in tables.items():
        print(recovery_tables.printed(name, table), end="\n\n")
    record.write(args.json, "recovery", settings_of(args), figures | tables)
    if args.overlays:
        from recovery_overlays import write_overlays

        for path in write_overlays(args.overlays, words, rows, recoverer, difficulty=args.difficulty):
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
