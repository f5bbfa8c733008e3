"""inktraj's own recoverer as a row among the models: a marker, as recovering ink is not asking a model."""

from __future__ import annotations

from typing import Any

from inktraj.vlm.cost import Price
from inktraj.vlm.limits import ImageLimits
from inktraj.vlm.protocol import ProviderError, Reply, Request


class Own:
    """Stands for the recoverer of this package; what evaluates models recovers the ink itself where it meets this."""

    name = "inktraj"
    model_id = "inktraj"
    frame = "original-px"
    limits = ImageLimits()
    prices: tuple[Price, ...] = ()

    def ask(self, request: Request) -> Reply:
        """Refuse.

        Raises
        ------
        ProviderError
            Always: there is nothing to ask; use `inktraj.recover`.
        """
        raise ProviderError("inktraj is no language model; its ink comes from inktraj.recover, not from a prompt")

    def describe(self) -> dict[str, Any]:
        """Return what decides the answers: the package's version."""
        import inktraj

        return {"provider": "inktraj", "model": "inktraj", "version": inktraj.__version__}

    def close(self) -> None:
        """Do nothing."""
