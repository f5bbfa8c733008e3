"""Small local copies of the document-VQA benchmarks, in the forms in which they are published."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

LANGUAGES = ("AR", "DE", "JA")


def png(shade: int, size: tuple[int, int] = (48, 32)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (shade % 256, 90, 200)).save(file, "PNG")
    return file.getvalue()


def mtvqa_rows(first: int = 0, each: int = 2, pairs: int = 2) -> list[dict[str, Any]]:
    return [
        {
            "id": first + k * each + i,
            "image": {"bytes": png(10 * (first + k * each + i)), "path": None},
            "lang": language,
            "qa_pairs": repr(
                [{"question": f"{language} {first} {i} {n}?", "answer": f"gold {language}{i}{n}"} for n in range(pairs)]
            ),
        }
        for k, language in enumerate(LANGUAGES)
        for i in range(each)
    ]


def mtvqa(folder: Path) -> Path:
    """Two images a language with two questions each for test, four with one each for train."""
    (folder / "data").mkdir(parents=True)
    for name, rows in (
        ("test-00000-of-00001", mtvqa_rows()),
        ("train-00000-of-00001", mtvqa_rows(first=100, each=4, pairs=1)),
    ):
        pq.write_table(pa.Table.from_pylist(rows), folder / "data" / f"{name}.parquet", row_group_size=4)
    return folder


def _records(folder: Path, rows: list[dict[str, Any]]) -> Path:
    (folder / "images").mkdir(parents=True)
    for k, name in enumerate(sorted({row["image"] for row in rows})):
        (folder / "images" / name).write_bytes(png(7 * k))
    for split in ("train", "test"):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows if row["split"] == split]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def palmleaf(folder: Path) -> Path:
    kinds = (
        ("script or collection", "classification", "Which script is this?", "Khmer"),
        ("line count", "counting", "How many lines are there?", "5"),
        ("physical condition", "attribute", "What is its condition?", ["cracks", "stains"]),
        ("binding and holes", "binary", "Are there binding holes?", "yes"),
    )
    rows = [
        {
            "id": f"{split}-{leaf}-{k}",
            "image": f"{split}{leaf}.png",
            "question": question,
            "answer": answer,
            "split": split,
            "collection": ("Khmer", "Tamil")[leaf % 2],
            "category": category,
            "task_type": task,
        }
        for split, leaves in (("train", 4), ("test", 3))
        for leaf in range(leaves)
        for k, (category, task, question, answer) in enumerate(kinds)
    ]
    return _records(folder, rows)


def indotab(folder: Path) -> Path:
    questions = (("id", "Berapa jumlahnya?"), ("en", "How many?"), ("hi", "कितने?"), ("ar", "كم العدد؟"))
    rows = [
        {
            "id": f"{split}-{table}-{language}",
            "image": f"{split}{table}.png",
            "question": question,
            "answer": str(100 + table),
            "split": split,
            "language": language,
        }
        for split, tables in (("train", 4), ("test", 3))
        for table in range(tables)
        for language, question in questions
    ]
    return _records(folder, rows)


COPIES: dict[str, Callable[[Path], Path]] = {"mtvqa": mtvqa, "palmleaf-vqa": palmleaf, "indotabvqa": indotab}
