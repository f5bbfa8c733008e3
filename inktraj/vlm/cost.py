"""What asking costs, by a price table with a date; what is not known is never 0."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from inktraj.errors import DataError, RunError

if TYPE_CHECKING:
    from inktraj.vlm.protocol import VLM, Reply


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens.

    Parameters
    ----------
    input, output
        Thinking is billed as output.
    cached
        Input read from the provider's cache; None: as other input.
    since
        First day (UTC) on which it holds.
    most_input
        Holds for prompts of at most so many tokens; what a longer one costs is not known. None: for all.
    batch
        Factor for batches; None where the provider has none, or it is not known.
    """

    input: float
    output: float
    cached: float | None = None
    since: date = date.min
    most_input: int | None = None
    batch: float | None = None

    def __post_init__(self) -> None:
        amounts = [self.input, self.output, self.cached or 0.0, self.batch or 0.0]
        if not all(0 <= amount < 10_000 for amount in amounts):
            raise DataError(f"prices are dollars per million tokens, from 0 to 10000, not {amounts}")


def price_on(prices: tuple[Price, ...], day: date) -> Price | None:
    """Return the price that holds on a day (UTC); None where none is known."""
    return max((price for price in prices if price.since <= day), key=lambda price: price.since, default=None)


def cost_of(reply: Reply, model: VLM, *, day: date | None = None, batch: bool = False) -> float | None:
    """Return what a reply cost in dollars; None where the price or the number of tokens is not known.

    Failed calls before it are not counted: providers do not bill them, but one that broke off half-way may have been
    billed.

    Parameters
    ----------
    reply
        With the tokens that the server reported.
    model
        Whose `prices` are taken.
    day
        On which it was asked (UTC); None: today.
    batch
        Whether it came from a batch.
    """
    price = price_on(model.prices, day or datetime.now(UTC).date())
    if price is None or reply.input_tokens is None or reply.output_tokens is None:
        return None
    if price.most_input is not None and reply.input_tokens > price.most_input:
        return None
    if batch and price.batch is None:
        return None
    cached = reply.cached_tokens or 0 if price.cached is not None else 0
    dollars = (reply.input_tokens - cached) * price.input + reply.output_tokens * price.output
    dollars += cached * (price.cached or 0.0)
    return dollars / 1e6 * (price.batch if batch and price.batch is not None else 1.0)


class Budget:
    """Keeps count of dollars; several threads may add to it.

    Requests that are under way when it is used up are still answered and billed: with n connections at most n replies
    go beyond it.

    Parameters
    ----------
    limit
        Most dollars to spend; None: count only.
    model
        Checked for a known price where there is a limit.

    Raises
    ------
    RunError
        A limit that cannot be kept, as the model's price is not known.
    """

    def __init__(self, limit: float | None, model: VLM) -> None:
        if limit is not None and not limit > 0:
            raise DataError(f"a limit of cost is more than 0 dollars, not {limit}")
        if limit is not None and price_on(model.prices, datetime.now(UTC).date()) is None:
            raise RunError(
                f"the price of {model.name} ({model.model_id}) is not known, so a limit of ${limit:g} cannot be kept; "
                "give its price in a table of models of your own (INKTRAJ_MODELS), or set no limit"
            )
        self.limit = limit
        self._lock = threading.Lock()
        self._spent = 0.0
        self._unknown = 0

    def add(self, cost: float | None) -> None:
        """Count one reply's cost; None is counted as unknown."""
        with self._lock:
            if cost is None:
                self._unknown += 1
            else:
                self._spent += cost

    @property
    def spent(self) -> float:
        """Dollars, as far as they are known."""
        return self._spent

    @property
    def unknown(self) -> int:
        """Replies whose cost is not known."""
        return self._unknown

    @property
    def used_up(self) -> bool:
        """Whether no further request may start: the limit is reached, or with a limit some cost is not known."""
        return self.limit is not None and (self._spent >= self.limit or self._unknown > 0)
