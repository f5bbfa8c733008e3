"""The errors that inktraj raises: one root, and one class for each thing a caller may want to catch.

Every message says what was seen, what was expected, and the likely mistake.
"""

from __future__ import annotations


class InktrajError(Exception):
    """The root of all errors that inktraj raises on purpose."""


class DataError(InktrajError, ValueError):
    """Input that cannot be used: a file, an image, an array or an ink that is not what it should be."""


class ParseError(DataError):
    """Text or bytes that are not in the form that their name or place promised."""


class RunError(InktrajError):
    """A run that cannot start or go on: its folder is taken, holds other settings, or cannot be written."""


class MissingDependency(InktrajError, ImportError):
    """An optional package is needed and not installed; the message holds the install line."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f'install it with: pip install "inktraj[{extra}]"'
        )
        self.package = package
        self.extra = extra
