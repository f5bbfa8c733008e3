"""Asks a model for all tasks, in several threads, each once, and goes on where it was stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic

from inktraj.errors import DataError, RunError
from inktraj.evaluation.journal import Answer, Journal
from inktraj.evaluation.requests import AnyTask, Requests, TaskT
from inktraj.vlm import Budget, ModelClosed, Picture, ProviderError, Request, cost_of

GIVE_UP = 5
"""Requests in a row that are refused for good after which the run ends, where none was ever answered: for key, rights,
or name of the model; or as malformed, where each shows another image, as one image may be what is refused."""

_HOPELESS = frozenset([401, 403, 404])
_MALFORMED = frozenset([400, 413, 422])


@dataclass
class Tally:
    """How far a run is; told to the progress display.

    Parameters
    ----------
    total
        Tasks in all; known once all were looked at.
    recorded
        Of them, answered in an earlier run.
    answered, errors
        In this run.
    retries
        Calls that failed and were made again.
    input_tokens, output_tokens
        Of this run.
    dollars
        Of this run; None where a price or a count is not known.
    stopped
        Why nothing more is asked; "" while all goes on.
    waiting
        Requests in batches that have not ended.
    """

    total: int = 0
    recorded: int = 0
    answered: int = 0
    errors: int = 0
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0
    stopped: str = ""
    waiting: int = 0


Progress = Callable[[Tally], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """How a run went, and the key of each task's reply: by frame and name of the task."""

    tally: Tally
    keys: dict[tuple[str, str], str]


def ask_all(
    tasks: Iterable[TaskT],
    asking: Requests[TaskT],
    journal: Journal,
    *,
    connections: int,
    max_cost: float | None = None,
    progress: Progress | None = None,
) -> Asked:
    """Ask for every task whose reply is not in the journal.

    A request that fails after its retries is noted as an error and is no answer. Ctrl-C ends waits, keeps what came,
    and is raised again.

    Raises
    ------
    RunError
        The journal cannot be written; or the model refuses every request for good.
    """
    run = _Run(asking, journal, max_cost, progress)
    pool = ThreadPoolExecutor(connections, thread_name_prefix="ask")
    pending: set[Future[None]] = set()
    try:
        for task in tasks:
            run.tally.total += 1
            if run.tally.stopped and run.tally.recorded == run.before:
                continue  # else there are replies of earlier runs left, which the table is to have
            # A few more than are asked at once, so that pictures are made while answers are waited for.
            while len(pending) >= connections + 2:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                _raise_first(done)
            pending.add(pool.submit(run.one, task))
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            _raise_first(done)
    except BaseException:
        asking.model.close()
        for future in pending:
            future.cancel()
        raise
    finally:
        pool.shutdown(wait=True)
    return Asked(run.tally, run.keys)


def _raise_first(done: Iterable[Future[None]]) -> None:
    for future in done:
        future.result()


class _Run(Generic[TaskT]):
    def __init__(
        self, asking: Requests[TaskT], journal: Journal, max_cost: float | None, progress: Progress | None
    ) -> None:
        self.asking = asking
        self.journal = journal
        self.budget = Budget(max_cost, asking.model)
        self.progress = progress
        self.tally = Tally()
        self.keys: dict[tuple[str, str], str] = {}
        self.lock = threading.Lock()
        self.refused: set[object] = set()
        self.before = len(journal.keys)

    def one(self, task: TaskT) -> None:
        ids = tuple(sample.id for sample in task.samples)
        try:
            asked = self.asking(task)
        except DataError as err:
            self._failed(ids, task, str(err))
            return
        self.keys[task.frame.name, task.name] = asked.key
        if asked.key in self.journal.keys:
            with self.lock:
                self.tally.recorded += 1
            self._tell()
            return
        if self.tally.stopped:
            return
        try:
            reply = self.asking.model.ask(asked.request)
        except ModelClosed:
            return
        except ProviderError as err:
            with self.lock:
                self.tally.retries += err.attempts - 1
            refused: object = ids if err.status in _HOPELESS else None
            if err.status in _MALFORMED and not self.before:
                refused = _image(asked.request)
            self._failed(ids, task, str(err), refused, err.status)
            return
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.journal.add(Answer(asked.key, ids, task.frame.name, asked.place, reply, now))
        cost = cost_of(reply, self.asking.model)
        with self.lock:
            tally = self.tally
            self.refused.clear()
            tally.answered += 1
            tally.retries += reply.attempts - 1
            tally.input_tokens += reply.input_tokens or 0
            tally.output_tokens += reply.output_tokens or 0
            tally.dollars = None if cost is None or tally.dollars is None else tally.dollars + cost
            self.budget.add(cost)
            if self.budget.used_up:
                tally.stopped = (
                    f"what a reply cost is not known, so the limit of ${self.budget.limit:.2f} cannot be kept"
                    if self.budget.unknown
                    else f"${self.budget.spent:.2f} of at most ${self.budget.limit:.2f} were spent"
                )
        self._tell()

    def _failed(
        self, ids: tuple[str, ...], task: AnyTask, error: str, refused: object = None, status: int | None = None
    ) -> None:
        """Note an error; where it is for good, `refused` is what it may be peculiar to."""
        self.journal.add_error(ids, task.frame.name, error, status)
        with self.lock:
            self.tally.errors += 1
            if refused is not None:
                self.refused.add(refused)
            else:
                self.refused.clear()
            if len(self.refused) >= GIVE_UP and not self.tally.answered:
                raise RunError(f"{len(self.refused)} requests in a row were refused for good, so the run ends: {error}")
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(self.tally)


def _image(request: Request) -> object:
    """The last image of a request, which is the task's; the request where it shows none."""
    pictures = [part.data for part in request.parts if isinstance(part, Picture)]
    return pictures[-1] if pictures else request.key
