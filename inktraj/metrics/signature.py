"""What was computed, in one line of text: two figures may be compared when their signatures are the same.

The form is sacreBLEU's (Post 2018, "A Call for Clarity in Reporting BLEU Scores")::

    dtw|cost:euclidean|norm:reference-box|step:0.01|bridge:no|v:0.1.0

The metric's name comes first, then ``name:value`` fields in the metric's fixed order; ``v`` is the version of inktraj.
The characters ``|`` and ``%``, and such as do not print, are written ``%XX``, the bytes of their UTF-8, so that every
value survives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from inktraj.errors import DataError, ParseError

_NAME = re.compile(r"[a-z][a-z0-9_-]*", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Signature:
    """A metric's name and its settings.

    Parameters
    ----------
    metric
        Name of the metric, or of the set of metrics: lower-case letters, digits, ``-`` and ``_``.
    fields
        Pairs (name, value), names as `metric`, in a fixed order.

    Raises
    ------
    DataError
        A name is of another form, or given twice; a value is no string.
    """

    metric: str
    fields: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        names = [name for name, _ in self.fields]
        for name in (self.metric, *names):
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise DataError(f"{name!r} is no name for a signature; expected such as 'dtw': a-z, 0-9, '-', '_'")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(f"the signature of {self.metric} has the field {twice[0]!r} twice")
        for name, value in self.fields:
            if not isinstance(value, str) or not _encodable(value):
                raise DataError(f"the field {name!r} of the signature of {self.metric} is {value!r}, expected text")

    @classmethod
    def of(cls, metric: str, /, **fields: Value) -> Signature:
        """Make the signature of a metric of this version of inktraj.

        Parameters
        ----------
        metric
            Its name.
        **fields
            Its settings in order; true and false become ``yes`` and ``no``, None becomes ``none``, a float its
            shortest form that comes back exactly. The version is added behind them.
        """
        from inktraj import __version__

        return cls(metric, (*((name, _text(value)) for name, value in fields.items()), ("v", __version__)))

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read what `str` wrote.

        Raises
        ------
        ParseError
            The text is not in the form.
        """
        metric, *parts = text.split("|")
        fields = []
        for part in parts:
            name, colon, value = part.partition(":")
            if not colon or _BAD_ESCAPE.search(value):
                raise ParseError(f"{part!r} is no field of a signature, expected name:value; the whole is {text!r}")
            try:
                fields.append((name, unquote(value, errors="strict")))
            except UnicodeDecodeError as err:
                raise ParseError(f"the field {part!r} of a signature does not hold UTF-8 in its %XX") from err
        try:
            return cls(metric, tuple(fields))
        except DataError as err:
            raise ParseError(f"{text!r} is no signature: {err}") from err

    def __str__(self) -> str:
        return "|".join([self.metric, *(f"{name}:{_escaped(value)}" for name, value in self.fields)])

    def __getitem__(self, name: str) -> str:
        """Return the value of a field; KeyError where there is none."""
        return dict(self.fields)[name]

    def differences(self, other: Signature) -> list[str]:
        """Say in which fields two signatures differ, one text for each; order does not count."""
        out = [] if self.metric == other.metric else [f"metric ({self.metric} and {other.metric})"]
        own, others = dict(self.fields), dict(other.fields)
        for name in dict.fromkeys([*own, *others]):
            if own.get(name) != others.get(name):
                out.append(f"{name} ({own.get(name, 'not given')} and {others.get(name, 'not given')})")
        return out


def require_same(first: Signature, second: Signature) -> None:
    """Raise DataError, with the fields that differ, where two figures may not be compared."""
    found = first.differences(second)
    if found:
        raise DataError(
            f"these figures may not be compared, for they were computed otherwise: {', '.join(found)}; compute both "
            "with the same settings"
        )


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return repr(float(value)) if isinstance(value, float) else str(value)


def _escaped(value: str) -> str:
    return "".join(
        c if c.isprintable() and c not in "|%" else "".join(f"%{byte:02X}" for byte in c.encode()) for c in value
    )


def _encodable(value: str) -> bool:
    """Say whether text can be written; lone surrogates cannot."""
    return not any("\ud800" <= c <= "\udfff" for c in value)
