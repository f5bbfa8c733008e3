"""Asks for all tasks through the provider's batches, answered within a day at half the price.

``batches.jsonl`` in the run folder says which batches were begun with which requests, and what became of them. It is
written before a batch is begun and again when its id is known, each time to the disk, so that a run which ends at any
moment, even between the two, is followed by one that collects what is paid for and begins nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep as wait
from typing import Any, Generic

from inktraj.errors import DataError, ParseError, RunError
from inktraj.evaluation.asking import Asked, Progress, Tally
from inktraj.evaluation.journal import Answer, Journal, append_record, cut_torn_line
from inktraj.evaluation.requests import Requests, TaskT
from inktraj.evaluation.views import Place
from inktraj.vlm import ModelClosed, Picture, ProviderError, Reply, Request, cost_of
from inktraj.vlm.batch import BatchFailed, batch_limits, collect_batch, recent_batches, submit_batch
from inktraj.vlm.retry import refused

LEDGER = "batches.jsonl"

MOST_BYTES = 100_000_000
"""Of one batch, where the provider allows more: it is held in memory some four times while it is sent."""

SKEW = timedelta(minutes=10)
"""By which this machine's clock may be ahead of the provider's."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A request of a batch: what is needed to file its reply, whoever collects it; see `Answer`."""

    key: str
    ids: tuple[str, ...]
    frame: str
    place: Place


@dataclass(frozen=True, slots=True)
class Submission:
    """A batch whose replies were not collected yet.

    Parameters
    ----------
    number
        Its place in the ledger.
    requests
        All that it holds.
    at
        When it was about to be begun, in UTC.
    id
        As the provider calls it; "" where the run ended before that was known, and perhaps before it was begun.
    """

    number: int
    requests: tuple[Queued, ...]
    at: datetime
    id: str = ""


class Ledger:
    """The batches of a run folder.

    Parameters
    ----------
    folder
        The run folder.

    Attributes
    ----------
    open
        By number: those that were not collected.
    known
        Ids of all.

    Raises
    ------
    ParseError
        A line is damaged.
    RunError
        The file cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LEDGER
        self.open: dict[int, Submission] = {}
        self.known: set[str] = set()
        self._next = 0
        try:
            cut_torn_line(self._path)
            lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        except OSError as err:
            raise RunError(f"{self._path}: {err.strerror or err}") from err
        for number, line in enumerate(lines, 1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, IndexError) as err:
                raise ParseError(
                    f"{self._path}, line {number}: not a line as a run with --batch writes it ({err}); restore the "
                    "file: it names batches that are paid for"
                ) from err

    def begin(self, requests: Iterable[Queued]) -> Submission:
        """Note that a batch is about to be begun."""
        return self._write(
            self._next,
            "begun",
            requests=[
                {
                    "key": r.key,
                    "ids": r.ids,
                    "frame": r.frame,
                    "place": [r.place.sent, r.place.original, r.place.corner],
                }
                for r in requests
            ],
        )

    def started(self, submission: Submission, id: str) -> Submission:
        """Note a batch's id."""
        return self._write(submission.number, "started", id=id)

    def over(self, submission: Submission, why: str) -> None:
        """Note that there is nothing more to be had of a batch."""
        self._write(submission.number, "over", why=why)

    def _write(self, number: int, state: str, **more: Any) -> Submission:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        record = {"number": number, "state": state, "at": now, **more}
        append_record(self._path, record, durable=True)
        return self._take(record)

    def _take(self, record: Mapping[str, Any]) -> Submission:
        number, state = int(record["number"]), record["state"]
        self._next = max(self._next, number + 1)
        if state == "begun":
            requests = tuple(
                Queued(r["key"], tuple(r["ids"]), r["frame"], Place(*(tuple(pair) for pair in r["place"])))
                for r in record["requests"]
            )
            self.open[number] = Submission(number, requests, datetime.fromisoformat(record["at"]))
        elif state == "started":
            self.open[number] = replace(self.open[number], id=str(record["id"]))
            self.known.add(self.open[number].id)
        elif state == "over":
            return self.open.pop(number)
        else:
            raise ValueError(f"a state {state!r}")
        return self.open[number]


def check_nothing_open(folder: Path) -> None:
    """Raise RunError where batches are under way, whose requests would be asked, and paid, a second time."""
    waiting = sum(len(submission.requests) for submission in Ledger(folder).open.values())
    if waiting:
        raise RunError(
            f"{waiting} requests of {folder} are in batches that were not collected yet; go on with --batch. If the "
            f"provider no longer has these batches, remove {folder / LEDGER} to have the requests made, and paid, again"
        )


def ask_batches(
    tasks: Iterable[TaskT],
    asking: Requests[TaskT],
    journal: Journal,
    folder: Path,
    *,
    poll: float,
    progress: Progress | None = None,
) -> Asked:
    """Ask for every task whose reply is not in the journal and that is in no batch yet; wait for all batches.

    A request that failed, expired or was cancelled is noted as an error and is no answer: the next run asks again.
    Ctrl-C ends the wait, not the batches; the next run goes on waiting for them.

    Parameters
    ----------
    tasks, asking, journal, progress
        As for `inktraj.evaluation.asking.ask_all`.
    folder
        Where the ledger is.
    poll
        Seconds between looks at the batches.

    Raises
    ------
    RunError
        Journal or ledger cannot be written; the provider refuses all, or cannot be reached.
    DataError
        The model has no batches.
    """
    run = _Run(asking, journal, Ledger(folder), progress)
    try:
        run.look_up()
        run.submit(tasks)
        run.collect(poll)
    except BaseException:
        asking.model.close()
        raise
    return Asked(run.tally, run.keys)


class _Run(Generic[TaskT]):
    def __init__(self, asking: Requests[TaskT], journal: Journal, ledger: Ledger, progress: Progress | None) -> None:
        self.asking = asking
        self.model = asking.model
        self.journal = journal
        self.ledger = ledger
        self.progress = progress
        self.tally = Tally()
        self.keys: dict[tuple[str, str], str] = {}
        self.suspects: dict[int, list[str]] = {}
        """Batches of which one may be the one whose id is not known."""
        self.left: set[int] = set()
        """Numbers of those that are left to the next run."""

    def look_up(self) -> None:
        """Look whether those whose id was not noted have begun."""
        for submission in [s for s in self.ledger.open.values() if not s.id]:
            try:
                listed = recent_batches(self.model, submission.at - SKEW)
            except ProviderError as err:
                raise RunError(
                    f"an earlier run ended while it began a batch of {len(submission.requests)} requests, and whether "
                    f"that runs cannot be looked up: {err}"
                ) from err
            size = len(submission.requests)
            found = [b.id for b in listed if b.id not in self.ledger.known and b.requests in (None, size)]
            self.suspects[submission.number] = found
            self._examine(submission)

    def submit(self, tasks: Iterable[TaskT]) -> None:
        """Begin as many batches as are needed."""
        limits = batch_limits(self.model)
        most = min(limits.size, MOST_BYTES)
        taken = {request.key for submission in self.ledger.open.values() for request in submission.requests}
        chunk: dict[str, tuple[Request, Queued]] = {}
        size = 0
        for task in tasks:
            self.tally.total += 1
            ids = tuple(sample.id for sample in task.samples)
            try:
                asked = self.asking(task)
            except DataError as err:
                self._failed(ids, task.frame.name, str(err), None)
                continue
            self.keys[task.frame.name, task.name] = asked.key
            if asked.key in self.journal.keys:
                self.tally.recorded += 1
            elif asked.key not in taken and not self.tally.stopped:
                taken.add(asked.key)
                weight = _size(asked.request)
                if chunk and (size + weight > most or len(chunk) >= limits.requests):
                    self._begin(chunk)
                    chunk, size = {}, 0
                chunk[asked.key] = asked.request, Queued(asked.key, ids, task.frame.name, asked.place)
                size += weight
            self._tell()
        if chunk and not self.tally.stopped:
            self._begin(chunk)

    def _begin(self, chunk: Mapping[str, tuple[Request, Queued]]) -> None:
        submission = self.ledger.begin(queued for _, queued in chunk.values())
        try:
            id = submit_batch(self.model, {key: request for key, (request, _) in chunk.items()})
        except ProviderError as err:
            if refused(err.status):
                self.ledger.over(submission, f"refused: {err}")
                self.tally.stopped = f"a batch was refused: {err}"
            else:
                self.left.add(submission.number)
                self.tally.stopped = f"whether a batch was begun is not known, the next run looks it up: {err}"
            if not any(other.id for other in self.ledger.open.values()):
                raise RunError(self.tally.stopped) from err
            return
        self.ledger.started(submission, id)

    def collect(self, poll: float) -> None:
        """Wait until all have ended."""
        while True:
            for submission in self._waiting():
                if submission.id:
                    self._collect(submission)
                elif self._examine(submission):
                    for request in submission.requests:
                        self._failed(request.ids, request.frame, "its batch was never begun", None)
            if not self._waiting():
                return
            self._tell()
            wait(poll)

    def _waiting(self) -> list[Submission]:
        return [submission for number, submission in self.ledger.open.items() if number not in self.left]

    def _collect(self, submission: Submission) -> None:
        outcomes = self._outcomes(submission, submission.id, [request.key for request in submission.requests])
        if outcomes is None:
            return
        for request in submission.requests:
            outcome = outcomes[request.key]
            if isinstance(outcome, Reply):
                self._answered(request, outcome, submission)
            elif request.key not in self.journal.keys:
                self._failed(request.ids, request.frame, str(outcome), outcome.status)
        self.journal.sync()
        self.ledger.over(submission, "collected")

    def _outcomes(
        self, submission: Submission, id: str, keys: Collection[str]
    ) -> Mapping[str, Reply | ProviderError] | None:
        """Return what came of each request of a batch; None while it goes on, and where it is left to the next run."""
        try:
            batch = collect_batch(self.model, id, keys)
        except BatchFailed as err:
            return dict.fromkeys(keys, err)
        except ModelClosed:
            raise
        except ProviderError as err:
            if err.retryable or err.status in (401, 403):
                raise RunError(f"{err}; batches go on meanwhile, and the same command collects them") from err
            self.left.add(submission.number)
            told = (
                f"{err}; the next run looks for the batch {id} again. If it is gone for good, remove {LEDGER} from the "
                "run folder to have its requests made, and paid, again"
            )
            for request in submission.requests:
                if request.key not in self.journal.keys:
                    self._failed(request.ids, request.frame, told, err.status)
            return None
        return batch.replies if batch.ended else None

    def _examine(self, submission: Submission) -> bool:
        """Find out by the names in their results which of the suspects is the submission's batch; True: none is."""
        keys = {request.key for request in submission.requests}
        suspects = self.suspects[submission.number]
        for id in list(suspects):
            outcomes = self._outcomes(submission, id, ())
            if submission.number in self.left:
                return False
            if outcomes is None:
                continue
            if keys & outcomes.keys():
                self._collect(self.ledger.started(submission, id))
                return False
            suspects.remove(id)
        if not suspects:
            self.ledger.over(submission, "never begun")
        return not suspects

    def _answered(self, request: Queued, reply: Reply, submission: Submission) -> None:
        if request.key in self.journal.keys:
            return
        reply = replace(reply, model=reply.model or self.model.model_id)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.journal.add(Answer(request.key, request.ids, request.frame, request.place, reply, now, submission.id))
        cost = cost_of(reply, self.model, day=submission.at.date(), batch=True)
        tally = self.tally
        tally.answered += 1
        tally.input_tokens += reply.input_tokens or 0
        tally.output_tokens += reply.output_tokens or 0
        tally.dollars = None if cost is None or tally.dollars is None else tally.dollars + cost
        self._tell()

    def _failed(self, ids: tuple[str, ...], frame: str, error: str, status: int | None) -> None:
        self.journal.add_error(ids, frame, error, status)
        self.tally.errors += 1
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            self.tally.waiting = sum(len(submission.requests) for submission in self._waiting())
            self.progress(self.tally)


def _size(request: Request) -> int:
    """Bytes of a request in JSON, estimated from above."""
    size = 2000 + len(json.dumps(request.system))
    for part in request.parts:
        size += 200 + (4 * (len(part.data) // 3 + 1) if isinstance(part, Picture) else len(json.dumps(part.text)))
    return size
