"""What every benchmark writes: one JSON object with its figures and where they come from."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import stale_kernels

stale_kernels.remove()  # figures of kernels that are no longer there would be recorded


def write(path: Path | None, benchmark: str, settings: Mapping[str, Any], figures: Mapping[str, Any]) -> None:
    """Write ``{"benchmark", "commit", "date", "machine", "settings", "figures"}`` where a path is given."""
    if path is None:
        return
    record = {
        "benchmark": benchmark,
        "commit": _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain", "-uno") else ""),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "settings": dict(settings),
        "figures": dict(figures),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _git(*arguments: str) -> str:
    root = Path(__file__).parent
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def peak_mb() -> float:
    """Peak memory of this process so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if platform.system() == "Darwin" else 1024)


def table(rows: Mapping[str, Any]) -> str:
    """Return the figures for people, one a line."""
    width = max(map(len, rows))

    def shown(value: Any) -> str:
        return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)

    return "\n".join(f"{name:<{width}}  {shown(value)}" for name, value in rows.items())
