"""How a benchmark's local copy lies on disk, in TOML: ``data_manifests/vqa/NAME.toml``.

name = "palmleaf-vqa"
title = "…"
version = "1"
licence = "…"
citation = "…"
url = "https://…"               # where people find it; nothing is ever downloaded
notes = "…"                     # optional

[splits]                        # a part's name → patterns of the files that hold its records (** for any folders)
test = ["**/test.json*"]

[fields]                        # what we call a field → what the files call it; the first name that is there is taken
question = ["question", "Question"]

[statistics]                    # optional: published counts
test_questions = 2224

A file ``manifest.toml`` in the data's own folder is read over it, table by table: for a copy with a renamed column it
holds one line below ``[fields]``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inktraj.datasets.manifest import OWN_MANIFEST, manifests_folder
from inktraj.errors import DataError, ParseError
from inktraj.io.files import read_text

_TEXTS = ("name", "title", "version", "licence", "citation", "url")
_TABLES = ("splits", "fields", "statistics")


@dataclass(frozen=True, slots=True)
class Layout:
    """A manifest; its fields are those of the file."""

    name: str
    title: str
    version: str
    licence: str
    citation: str
    url: str
    notes: str
    splits: Mapping[str, tuple[str, ...]]
    fields: Mapping[str, tuple[str, ...]]
    statistics: Mapping[str, int]

    def files(self, folder: Path, split: str | None) -> list[tuple[Path, str]]:
        """Return files and the split that each holds, in a stable order.

        Raises
        ------
        DataError
            The folder is not there, the split has no pattern, or no file matches.
        """
        if not folder.is_dir():
            raise DataError(f"{folder} is no folder; expected a local copy of {self.title} ({self.url})")
        wanted = [split] if split is not None else list(self.splits)
        if split is not None and split not in self.splits:
            raise DataError(f"{self.name} has no split {split!r}; its splits are {', '.join(self.splits)}")
        found: dict[Path, str] = {}
        for name in wanted:
            for pattern in self.splits[name]:
                for path in sorted(folder.glob(pattern)):
                    if path.is_file():
                        found.setdefault(path, name)
        if not found:
            sought = ", ".join(pattern for name in wanted for pattern in self.splits[name])
            raise DataError(
                f"{folder} holds no file of {self.name}; sought were {sought}. Name the copy's top folder, or write "
                f"its own patterns under [splits] into {folder / OWN_MANIFEST}"
            )
        return list(found.items())

    def value(self, record: Mapping[str, Any], name: str) -> Any:
        """Return what a record holds under any of a field's names; None where it has none of them."""
        for key in self.fields[name]:
            if key in record:
                return record[key]
        return None

    def absent(self, record: Mapping[str, Any], names: Iterable[str], where: str) -> list[str]:
        """Tell of which fields a record has none of the names: those are renamed columns, and no missing values."""
        return [
            f"{where}: no column for {name}; sought were {', '.join(self.fields[name])}, there are "
            f'{", ".join(map(str, record))}. Write {name} = "…" under [fields] into {OWN_MANIFEST}, in the folder of '
            "the data"
            for name in names
            if not any(key in record for key in self.fields[name])
        ]

    def require(self, record: Mapping[str, Any], names: Iterable[str], where: str) -> None:
        """Raise DataError where a field that must be there is `absent`."""
        if told := self.absent(record, names, where):
            raise DataError(told[0])


def read_layout(name: str, folder: Path | None = None) -> Layout:
    """Read a shipped manifest, and over it the one in the data's folder.

    Raises
    ------
    DataError
        It cannot be read.
    ParseError
        It is not TOML, or a field is missing, unknown or not of its kind.
    """
    path = manifests_folder() / "vqa" / f"{name}.toml"
    shipped = layout_of(_toml(path), str(path))
    own = folder / OWN_MANIFEST if folder is not None else None
    if own is None or not own.is_file():
        return shipped
    layout = layout_of(_over(_toml(path), _toml(own)), str(own))
    if unknown := sorted(layout.fields.keys() - shipped.fields.keys()):
        raise ParseError(f"{own}: there is no field {unknown[0]!r}; the fields are {', '.join(shipped.fields)}")
    return layout


def layout_of(data: Mapping[str, Any], where: str) -> Layout:
    """Check a manifest's content; raises ParseError, as `read_layout`."""
    if unknown := sorted(data.keys() - {*_TEXTS, *_TABLES, "notes"}):
        raise ParseError(f"{where}: unknown {', '.join(unknown)}; expected {', '.join((*_TEXTS, 'notes', *_TABLES))}")
    for key in _TEXTS:
        if not isinstance(data.get(key), str):
            raise ParseError(f"{where}: {key} is {data.get(key)!r}, expected a text")
    tables: dict[str, Mapping[str, Any]] = {key: data.get(key, {}) for key in _TABLES}
    for key, table in tables.items():
        if not isinstance(table, dict):
            raise ParseError(f"{where}: {key} is {table!r}, expected a table")
    for name, value in tables["statistics"].items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise ParseError(f"{where}: the figure {name} is {value!r}, expected a whole number")
    return Layout(
        **{key: data[key] for key in _TEXTS},
        notes=str(data.get("notes", "")),
        splits={name: _names(value, f"{where}, splits, {name}") for name, value in tables["splits"].items()},
        fields={name: _names(value, f"{where}, fields, {name}") for name, value in tables["fields"].items()},
        statistics=tables["statistics"],
    )


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as err:
        raise ParseError(f"{path}: not TOML ({err})") from err


def _over(data: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(data)
    for key, value in own.items():
        shipped = both.get(key)
        both[key] = {**shipped, **value} if isinstance(shipped, dict) and isinstance(value, dict) else value
    return both


def _names(value: Any, where: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise ParseError(f"{where}: {value!r}, expected a text or a list of texts")
    return tuple(names)
