"""How a model is asked, whatever it is asked for: how much at once, for how much money, by batches or one by one."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeVar

from inktraj.errors import DataError
from inktraj.evaluation.asking import Asked, Progress, Tally, ask_all
from inktraj.evaluation.batches import ask_batches, check_nothing_open
from inktraj.evaluation.journal import Answer, Journal
from inktraj.evaluation.requests import Requests, TaskT
from inktraj.vlm import VLM, cost_of, load_model

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingPlan:
    """What does not depend on what is asked for.

    Parameters
    ----------
    limit
        Samples or questions at most, chosen by the seed; None for all.
    seed
        Of choices, such as that of examples; sent to models where `send_seed`.
    max_tokens, temperature, send_seed
        Of a request. Answers may be short, but some models think first, and thinking counts.
    connections
        Requests at once.
    max_cost
        Dollars after which nothing more is asked. Not with `batch`: what a batch costs is known when it has ended.
    batch
        Ask through the provider's batches, where it has them: for half the price, within a day.
    poll
        Seconds between looks at batches that are under way.

    Raises
    ------
    DataError
        A value is out of range.
    """

    limit: int | None = None
    seed: int = 0
    max_tokens: int = 4096
    temperature: float | None = None
    send_seed: bool = False
    connections: int = 8
    max_cost: float | None = None
    batch: bool = False
    poll: float = 60.0

    def __post_init__(self) -> None:
        check_least(self, limit=1, max_tokens=1, connections=1)
        if self.temperature is not None and not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise DataError(f"temperature is {self.temperature}, expected a number from 0 on")
        if not self.poll > 0:
            raise DataError(f"poll is {self.poll}, expected more than 0 seconds")
        if self.batch and self.max_cost is not None:
            raise DataError(
                "a limit of cost cannot be kept with batches: all is asked at once, and what it costs is known when it "
                "is answered. Set a limit of samples, see what they cost, and raise it: nothing is asked twice"
            )


def check_least(plan: AskingPlan, **least: int) -> None:
    """Raise DataError where one of the numbers is lower than named."""
    for name, lowest in least.items():
        value = getattr(plan, name)
        if value is not None and value < lowest:
            raise DataError(f"{name} is {value}, expected at least {lowest}")


def drawn(items: Sequence[ItemT], most: int | None, seed: int) -> list[ItemT]:
    """Return items in their order: so many of them, drawn by the seed; all where they are no more, or for None.

    More of them hold the fewer, so that nothing is paid in vain where a limit is raised.
    """
    if most is None or most >= len(items):
        return list(items)
    order = list(range(len(items)))
    random.Random(seed).shuffle(order)
    return [items[k] for k in sorted(order[:most])]


@contextmanager
def opened(model: str | VLM) -> Iterator[VLM]:
    """Load a model that is named, and close it at the end; one that is given stays open."""
    if not isinstance(model, str):
        yield model
        return
    vlm = load_model(model)
    try:
        yield vlm
    finally:
        vlm.close()


def called(model: VLM) -> str:
    """Return what tables call a model: recorded replies by the model that gave them."""
    return f"{model.model_id}, replayed" if model.describe()["provider"] == "replay" else model.name


def ask(
    tasks: Iterable[TaskT],
    asking: Requests[TaskT],
    journal: Journal,
    folder: Path,
    plan: AskingPlan,
    progress: Progress | None = None,
) -> Asked:
    """Ask for every task whose reply is not in the journal; errors are those of `ask_all` and `ask_batches`."""
    if plan.batch:
        return ask_batches(tasks, asking, journal, folder, poll=plan.poll, progress=progress)
    check_nothing_open(folder)
    return ask_all(tasks, asking, journal, connections=plan.connections, max_cost=plan.max_cost, progress=progress)


def costs_of(tally: Tally, answers: Iterable[Answer], model: VLM) -> dict[str, Any]:
    """Return tokens, dollars (None where a price is not known) and retries, of this run and of all replies used."""
    count, dollars, known = 0, 0.0, True
    tokens_in = tokens_out = 0
    for answer in answers:
        count += 1
        tokens_in += answer.reply.input_tokens or 0
        tokens_out += answer.reply.output_tokens or 0
        price = cost_of(answer.reply, model, day=_day(answer.at), batch=bool(answer.batch))
        known, dollars = known and price is not None, dollars + (price or 0.0)
    return {
        "replies": count,
        "replies_of_this_run": tally.answered,
        "retries": tally.retries,
        "errors": tally.errors,
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "dollars": round(dollars, 6) if known else None,
        "dollars_of_this_run": None if tally.dollars is None else round(tally.dollars, 6),
    }


def _day(at: str) -> date:
    """The day on which a reply came, at whose price it was billed; today where the record does not tell."""
    try:
        return datetime.fromisoformat(at).astimezone(UTC).date()
    except (ValueError, OverflowError):
        return datetime.now(UTC).date()
