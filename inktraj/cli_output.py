"""What commands say, and the codes with which they end.

Exit codes: 0 all is well; 1 some page, image, ink or sample could not be used (the others were); 2 nothing could be
done, or not to the end, with the reason on standard error; 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from inktraj.errors import DataError

SOME_FAILED, UNUSABLE, INTERRUPTED = 1, 2, 130

COMPILES = "the first run compiles, for up to a minute"
"""Said beside a bar that does not move yet."""


def complain(text: str) -> None:
    """Write a line on standard error; what would steer a terminal, as a server's message may hold, is shown as such."""
    from inktraj.io.terminal import harmless

    typer.echo(f"inktraj: {harmless(text)}", err=True)


@contextmanager
def printing() -> Iterator[None]:
    """A full disk behind standard output, or a reader that has gone, is told of; files are written by then."""
    try:
        yield
        if sys.stdout is not None:  # closed from the start: nobody wants to be told
            sys.stdout.flush()
    except (OSError, UnicodeEncodeError) as err:
        why = err.strerror if isinstance(err, OSError) else f"{err}; is it UTF-8?"
        raise DataError(f"standard output: cannot be written ({why})") from err
