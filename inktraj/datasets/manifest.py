"""Manifests: what is known of a data set, in TOML, one file a data set.

name = "demo"                       # by which it is called
version = "1"
title = "…"                         # a line for lists
layout = "pages"                    # one of LAYOUTS: which reader it needs
references = "recorded"             # or "pseudo-label"
licence = "Apache-2.0"
citation = "…"
url = "https://…"                   # where people find it; nothing is ever downloaded
notes = "…"                         # optional

[splits]                            # optional: a part's name → the file that lists its pages, as a pattern;
test = "**/testset_f.txt"           # "" where each page's record names its split

[[files]]                           # what must be there: a path or a pattern (** for any folders) …
path = "images/*.jpg"
count = 4                           # … how many such files …
sha256 = "…"                        # … or the digest of the one

[statistics]                        # optional: published figures
pages = 537
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from inktraj.datasets.sample import REFERENCES, References
from inktraj.errors import DataError, ParseError
from inktraj.io.files import read_text

LAYOUTS = ("pages", "pseudo-labels", "iam-ondb", "none")
"""How a data set lies on disk: our page form; a run of ``build-pseudolabels``; IAM-OnDB as it is distributed; or not to
be had as files, so that only its description and figures are known."""

OWN_MANIFEST = "manifest.toml"
"""A manifest within the folder of the data set that it describes."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FileRule:
    """What files must be there: a path or pattern, how many match, and the digest of the one that does."""

    path: str
    count: int | None = None
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of a data set; the fields are those of the file.

    `place` is the manifest's own path.
    """

    name: str
    version: str
    title: str
    layout: str
    references: References
    licence: str
    citation: str
    url: str
    notes: str = ""
    splits: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    files: tuple[FileRule, ...] = ()
    statistics: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    place: str = ""


_TEXTS = ("name", "version", "title", "layout", "references", "licence", "citation", "url")
_KNOWN = {f.name for f in fields(Manifest)} - {"place"}


def read_manifest(path: str | Path) -> Manifest:
    """Read and check a manifest.

    Raises
    ------
    DataError
        It cannot be read.
    ParseError
        It is not TOML, a field is missing, unknown or not of its kind.
    """
    where = str(path)
    try:
        data = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as err:
        raise ParseError(f"{where}: not TOML ({err})") from err
    if unknown := data.keys() - _KNOWN:
        raise ParseError(f"{where}: unknown {', '.join(sorted(unknown))}; a manifest has {', '.join(sorted(_KNOWN))}")
    for key in _TEXTS:
        _text(data, key, where)
        if not data[key] and key != "url":
            raise ParseError(f"{where}: {key} is empty")
    if not _NAME.fullmatch(data["name"]):
        raise ParseError(f"{where}: the name is {data['name']!r}, expected small letters, digits and hyphens")
    for key, allowed in (("layout", LAYOUTS), ("references", REFERENCES)):
        if data[key] not in allowed:
            raise ParseError(f"{where}: {key} is {data[key]!r}, expected one of {', '.join(allowed)}")
    notes = _text({"notes": "", **data}, "notes", where)
    splits = _table(data, "splits", where)
    for name in splits:
        _text(splits, name, f"{where}, splits")
    figures = _table(data, "statistics", where)
    for name, value in figures.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ParseError(f"{where}: the figure {name} is {value!r}, expected a number")
    return Manifest(
        **{key: cast(Any, data[key]) for key in _TEXTS},
        notes=notes,
        splits=MappingProxyType(splits),
        files=tuple(_rules(data, where)),
        statistics=MappingProxyType(figures),
        place=where,
    )


def _text(data: Mapping[str, Any], key: str, where: str) -> str:
    if not isinstance(data.get(key), str):
        raise ParseError(f"{where}: {key} is {data.get(key)!r}, expected a text")
    return cast(str, data[key])


def _table(data: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise ParseError(f"{where}: {key} is {table!r}, expected a table")
    return dict(table)


def _rules(data: Mapping[str, Any], where: str) -> list[FileRule]:
    rows = data.get("files", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ParseError(f"{where}: files is no list of tables, expected [[files]]")
    rules = []
    for row in rows:
        if unknown := row.keys() - {"path", "count", "sha256"}:
            raise ParseError(f"{where}: unknown {', '.join(sorted(unknown))} in files, expected path, count, sha256")
        path, count, digest = _text(row, "path", where), row.get("count"), row.get("sha256", "")
        if not path or Path(path).is_absolute() or ".." in Path(path).parts:
            raise ParseError(f"{where}: the path {path!r} in files does not lie within the data set's folder")
        if any("**" in part and part != "**" for part in Path(path).parts):
            raise ParseError(
                f"{where}: the path {path!r} in files has a ** that is not a whole folder, expected a/**/b"
            )
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise ParseError(f"{where}: the count of {path} is {count!r}, expected a whole number from 1")
        if digest and not (isinstance(digest, str) and _SHA256.fullmatch(digest)):
            raise ParseError(f"{where}: the sha256 of {path} is {digest!r}, expected 64 hexadecimal digits")
        if digest and (count not in (None, 1) or any(c in path for c in "*?[")):
            raise ParseError(f"{where}: {path} has one sha256 for several files")
        rules.append(FileRule(path, count, digest))
    return rules


# Those that come with the package


def manifests_folder() -> Path:
    """The folder of shipped manifests: within the installed package, or beside it in a checkout."""
    return _shipped("data_manifests", "data_manifests")


def demo_folder() -> Path:
    """The folder of the shipped demo set."""
    return _shipped("demo", "examples/demo")


def _shipped(inside: str, beside: str) -> Path:
    package = Path(__file__).resolve().parents[1]
    return package / inside if (package / inside).is_dir() else package.parent / beside


def manifests() -> dict[str, Manifest]:
    """Return the shipped manifests by name, in alphabetical order.

    Raises
    ------
    DataError
        They are not there, or two have one name.
    """
    found: dict[str, Manifest] = {}
    for path in sorted(manifests_folder().glob("*.toml")):
        manifest = read_manifest(path)
        if manifest.name in found:
            raise DataError(f"{path} and {found[manifest.name].place} both describe {manifest.name!r}")
        found[manifest.name] = manifest
    if not found:
        raise DataError(f"{manifests_folder()}: there are no manifests; is the package installed as a whole?")
    return dict(sorted(found.items()))
