"""The table of models: a dated file of facts, which a file of the user's may override.

See docs/models.md for its form.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from inktraj.errors import DataError, ParseError
from inktraj.vlm.cost import Price
from inktraj.vlm.keys import check_url
from inktraj.vlm.limits import ImageLimits

Wire = Literal["anthropic", "google", "openai"]
Frame = Literal["sent-px", "original-px", "norm1000", "norm1000-yx", "norm1", "percent"]

VARIABLE = "INKTRAJ_MODELS"
"""Environment variable with the path of a user's own table."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Who answers: the interface spoken, the address (None: the package's own) and where the key is."""

    wire: Wire
    keys: tuple[str, ...]
    base_url: str | None = None
    max_tokens_param: str = "max_completion_tokens"
    batch: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of models: patterns for their ids, the frame they write best, their image limits by name."""

    match: tuple[str, ...]
    frame: Frame
    limits: str
    image_detail: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A model by the name a user gives; what is None comes from its family."""

    provider: str
    id: str
    prices: tuple[Price, ...]
    frame: Frame | None = None
    limits: str | None = None
    source: str = ""


UNKNOWN_FRAME = "unknown"
"""The frame of a local model of whose kind nothing is known: it must be named, as a guess would look like an answer."""

UNKNOWN_FAMILY = Family(("*",), "sent-px", "none", source="nothing is known of this model")


@dataclass(frozen=True, slots=True)
class Table:
    """All that is known of models."""

    as_of: date
    providers: Mapping[str, Provider] = field(default_factory=dict)
    limits: Mapping[str, ImageLimits] = field(default_factory=dict)
    families: tuple[Family, ...] = ()
    models: Mapping[str, Entry] = field(default_factory=dict)

    def family(self, model_id: str) -> Family:
        """Return the first kind that a model's id matches; pixels as sent, any size, where there is none."""
        name = re.sub(r"[._]", "-", model_id.rstrip("/").rpartition("/")[2].lower())
        return next((f for f in self.families if any(fnmatchcase(name, p) for p in f.match)), UNKNOWN_FAMILY)

    def prices(self, provider: str, model_id: str) -> tuple[Price, ...]:
        """Return the prices of a model by its provider and id; empty where they are not known."""
        found = (e.prices for e in self.models.values() if (e.provider, e.id) == (provider, model_id))
        return next(found, ())


def load_table(path: str | os.PathLike[str] | None = None) -> Table:
    """Read the package's table, and over it the user's.

    Parameters
    ----------
    path
        The user's; None: the one named by ``INKTRAJ_MODELS``, if any.

    Raises
    ------
    DataError
        A file that cannot be read.
    ParseError
        One that is no TOML, or holds something else than it should; says where.
    """
    shipped = resources.files("inktraj.vlm").joinpath("models.toml").read_text(encoding="utf-8")
    tables = [_read(shipped, "models.toml")]
    own = os.fspath(path) if path is not None else os.environ.get(VARIABLE, "")
    if own:
        try:
            text = Path(own).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as err:
            named = "" if path is not None else f" (named by {VARIABLE})"
            raise DataError(f"table of models {own}{named}: {err}") from err
        tables.insert(0, _read(text, own, tables[0]))
    return tables[0]


def _read(text: str, where: str, base: Table | None = None) -> Table:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        raise ParseError(f"{where}: not TOML: {err}") from err
    _known(raw, {"as_of", "providers", "limits", "families", "models"}, where)
    as_of = raw.get("as_of")
    if not isinstance(as_of, date) or isinstance(as_of, datetime):
        raise ParseError(f"{where}: as_of is the day on which its facts were looked up, such as 2026-11-29")
    base = base or Table(as_of)
    providers = dict(base.providers) | {n: _provider(v, f"{where}: {n}") for n, v in _tables(raw, "providers", where)}
    limits = dict(base.limits) | {n: _limits(v, f"{where}: {n}") for n, v in _tables(raw, "limits", where)}
    listed = raw.get("families", [])
    if not isinstance(listed, list):
        raise ParseError(f"{where}: families is a list of tables, [[families]]")
    families = (*(_family(v, f"{where}: family {i}") for i, v in enumerate(listed, 1)), *base.families)
    batch = {name: provider.batch for name, provider in providers.items()}
    models = dict(base.models)
    for name, value in _tables(raw, "models", where):
        if re.search(r"[/:\s]", name):
            raise ParseError(f"{where}: a model's name has no slash, colon or space: {name!r}")
        models[name] = _entry(value, batch, f"{where}: {name}")
    for entry in models.values():
        if entry.limits is not None and entry.limits not in limits:
            raise ParseError(f"{where}: no limits are called {entry.limits!r}")
    for family in families:
        if family.limits not in limits:
            raise ParseError(f"{where}: no limits are called {family.limits!r}")
    return Table(as_of, providers, limits, families, models)


def _provider(raw: Any, where: str) -> Provider:
    _known(raw, {"wire", "keys", "base_url", "max_tokens_param", "batch", "source"}, where)
    wire = _choice(raw, "wire", get_args(Wire), where)
    url = _text(raw, "base_url", where)
    try:
        checked = None if url is None else check_url(url)
    except DataError as err:
        raise ParseError(f"{where}: {err}") from err
    return Provider(
        wire,  # type: ignore[arg-type]  # `_choice` has checked it
        _texts(raw, "keys", where),
        checked,
        _text(raw, "max_tokens_param", where) or "max_completion_tokens",
        _number(raw, "batch", where),
        _text(raw, "source", where) or "",
    )


def _limits(raw: Any, where: str) -> ImageLimits:
    _known(raw, {*ImageLimits.__dataclass_fields__, "source"}, where)
    try:
        return ImageLimits(**{name: value for name, value in raw.items() if name != "source"})
    except DataError as err:
        raise ParseError(f"{where}: {err}") from err


def _family(raw: Any, where: str) -> Family:
    _known(raw, {"match", "frame", "limits", "image_detail", "source"}, where)
    return Family(
        _texts(raw, "match", where),
        _choice(raw, "frame", get_args(Frame), where),  # type: ignore[arg-type]
        _text(raw, "limits", where) or "none",
        _text(raw, "image_detail", where),
        _text(raw, "source", where) or "",
    )


def _entry(raw: Any, batch: Mapping[str, float | None], where: str) -> Entry:
    _known(raw, {"provider", "id", "prices", "frame", "limits", "source"}, where)
    provider, model_id = _text(raw, "provider", where), _text(raw, "id", where)
    if provider is None or provider not in batch:
        raise ParseError(f"{where}: provider is one of {', '.join(batch)}, not {provider!r}")
    if not model_id:
        raise ParseError(f"{where}: id is what the provider calls the model; it is missing")
    listed = raw.get("prices")
    if listed != "unknown" and not (isinstance(listed, list) and listed):
        raise ParseError(f'{where}: prices is "unknown", or a list such as [{{ input = 2.0, output = 10.0 }}]')
    prices = () if listed == "unknown" else tuple(_price(value, batch[provider], where) for value in listed)
    if [price.since for price in prices] != sorted({price.since for price in prices}):
        raise ParseError(f"{where}: prices stand in the order of their days, one for each")
    return Entry(
        provider,
        model_id,
        prices,
        _choice(raw, "frame", get_args(Frame), where) if "frame" in raw else None,  # type: ignore[arg-type]
        _text(raw, "limits", where),
        _text(raw, "source", where) or "",
    )


def _price(raw: Any, batch: float | None, where: str) -> Price:
    _known(raw, {"input", "output", "cached", "since", "most_input"}, where)
    paid, got = _number(raw, "input", where), _number(raw, "output", where)
    if paid is None or got is None:
        raise ParseError(f"{where}: a price has input and output, in dollars per million tokens")
    since, most = raw.get("since", date.min), raw.get("most_input")
    if not isinstance(since, date) or isinstance(since, datetime):
        raise ParseError(f"{where}: since is a day, such as 2026-12-01, not {since!r}")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise ParseError(f"{where}: most_input is a whole number of tokens, not {most!r}")
    try:
        return Price(paid, got, _number(raw, "cached", where), since, most, batch)
    except DataError as err:
        raise ParseError(f"{where}: {err}") from err


def _tables(raw: Mapping[str, Any], name: str, where: str) -> list[tuple[str, Any]]:
    value = raw.get(name, {})
    if not isinstance(value, dict):
        raise ParseError(f"{where}: {name} holds one table for each name, such as [{name}.NAME]")
    return list(value.items())


def _known(raw: Any, names: set[str], where: str) -> None:
    if not isinstance(raw, dict):
        raise ParseError(f"{where}: a table is expected, not {raw!r}")
    if other := sorted(raw.keys() - names):
        raise ParseError(f"{where}: unknown: {', '.join(other)}; known are {', '.join(sorted(names))}")


def _text(raw: Mapping[str, Any], name: str, where: str) -> str | None:
    value = raw.get(name)
    if value is not None and not (isinstance(value, str) and value):
        raise ParseError(f"{where}: {name} is a text, not {value!r}")
    return value


def _texts(raw: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = raw.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(text, str) and text for text in value):
        raise ParseError(f"{where}: {name} is a list of texts, not {value!r}")
    return tuple(value)


def _number(raw: Mapping[str, Any], name: str, where: str) -> float | None:
    value = raw.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ParseError(f"{where}: {name} is a number, not {value!r}")
    return value


def _choice(raw: Mapping[str, Any], name: str, choices: tuple[str, ...], where: str) -> str:
    value = raw.get(name)
    if value not in choices:
        raise ParseError(f"{where}: {name} is one of {', '.join(choices)}, not {value!r}")
    return str(value)
