"""One way of retrying for all providers: exponential with full jitter, and what the server asks for is kept.

The providers' SDKs are told not to retry. They differ: some ignore ``Retry-After``, none shares it between threads, and
all let a malformed body through as a bare JSON error.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from inktraj.errors import DataError
from inktraj.vlm.protocol import ModelClosed, ProviderError

T = TypeVar("T")

RETRIED = frozenset([408, 409, 425, 429])
"""Statuses below 500 that may pass by themselves; of those from 500 on all may."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to go on.

    Parameters
    ----------
    attempts
        Most calls for one request, the first included.
    first, longest
        Seconds: before the n-th retry the wait is drawn evenly from 0 to ``first · 2ⁿ⁻¹``, at most `longest`. Where
        the server names a time it is waited for in full, and the draw comes on top as far as it is below a tenth
        of it.
    total
        Seconds that one request may take, waits included. A wait which would go beyond is not begun.
    seed
        Of the draws; None for others each time.
    """

    attempts: int = 8
    first: float = 1.0
    longest: float = 60.0
    total: float = 1800.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.attempts < 1 or not (self.first >= 0 and self.longest >= 0 and self.total > 0):
            raise DataError(
                "a retry policy has at least 1 attempt, waits of at least 0 s and a total of more than 0 s, not "
                f"{self.attempts}, {self.first:g}, {self.longest:g} and {self.total:g}"
            )


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry that is about to be waited for, as told to the callback.

    Parameters
    ----------
    model
        Name of the model.
    attempt
        Number of the call that failed, from 1.
    wait
        Seconds until the next.
    error
        What went wrong.
    sample
        As the request names it.
    """

    model: str
    attempt: int
    wait: float
    error: ProviderError
    sample: str = ""


OnRetry = Callable[[Retry], None]


class Gate:
    """Shared by the threads that ask one model: one "too many requests" holds all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._opens = 0.0
        self._running: set[threading.Event] = set()

    def hold(self, seconds: float) -> None:
        """Let nobody pass for so long from now; a longer hold stays."""
        with self._lock:
            self._opens = max(self._opens, time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds until it opens; 0 where it is open."""
        with self._lock:
            return max(0.0, self._opens - time.monotonic())

    def pass_through(self) -> None:
        """Wait until it is open.

        Raises
        ------
        ModelClosed
            At once when the model is closed.
        """
        while (seconds := self.remaining()) > 0:
            self.sleep(seconds)
        self.sleep(0)

    def sleep(self, seconds: float) -> None:
        """Wait; ends at once by Ctrl-C in the main thread, and by `close` in any."""
        if self._closed.wait(seconds) if seconds > 0 else self._closed.is_set():
            raise _closed()

    def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns; it runs in a thread of its own, so that a silent server holds up nobody's end.

        Raises
        ------
        ModelClosed
            At once when the model is closed meanwhile; the work is then left to itself.
        """
        over = threading.Event()
        outcome: list[tuple[T] | BaseException] = []

        def run() -> None:
            try:
                outcome.append((work(),))
            except BaseException as err:
                outcome.append(err)
            over.set()

        with self._lock:
            if self._closed.is_set():
                raise _closed()
            self._running.add(over)
        try:
            threading.Thread(target=run, daemon=True, name="ask").start()
            over.wait()
        finally:
            with self._lock:
                self._running.discard(over)
        if not outcome:
            raise _closed()
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0][0]

    def close(self) -> None:
        """End all waits, for good."""
        with self._lock:
            self._closed.set()
            for over in self._running:
                over.set()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed.is_set()


def _closed() -> ModelClosed:
    return ModelClosed("the model was closed; the request was given up, and can be made again")


class Retrier:
    """Calls until it works or the policy says to stop; thread-safe."""

    def __init__(self, policy: RetryPolicy, name: str, on_retry: OnRetry | None = None) -> None:
        self.policy = policy
        self.gate = Gate()
        self._name = name
        self._on_retry = on_retry
        self._random = random.Random(policy.seed)
        self._lock = threading.Lock()

    def call(self, ask: Callable[[], T], sample: str = "") -> tuple[T, int, float]:
        """Return what `ask` returns, the number of calls and the seconds that the last one took.

        Raises
        ------
        ProviderError
            The last one; its message says how many calls were made. Others than `ProviderError` pass unchanged.
        """
        if (held := self.gate.remaining()) > self.policy.total:
            raise ProviderError(
                f"the server asked to wait for another {held:.0f} s, more than the limit of {self.policy.total:g} s",
                retryable=True,
                retry_after=held,
            )
        self._enter()
        end = time.monotonic() + self.policy.total
        attempt = 0
        while True:
            attempt += 1
            begun = time.monotonic()
            try:
                return ask(), attempt, time.monotonic() - begun
            except ProviderError as err:
                error = err
            wait = self._wait(error, attempt)
            if not error.retryable or attempt >= self.policy.attempts:
                raise _after(error, attempt, "")
            if error.retry_after is not None:
                self.gate.hold(error.retry_after)
            if time.monotonic() + max(wait, self.gate.remaining()) > end:
                raise _after(error, attempt, f"; another would be later than the limit of {self.policy.total:g} s")
            if self._on_retry is not None:
                self._on_retry(Retry(self._name, attempt, wait, error, sample))
            self.gate.sleep(wait)
            self._enter()

    def _enter(self) -> None:
        """Wait until the gate is open; those who were held do not all go through it in one moment."""
        while held := self.gate.remaining():
            self.gate.pass_through()
            self.gate.sleep(self._draw() * min(self.policy.first, held / 10))
        self.gate.pass_through()

    def _draw(self) -> float:
        with self._lock:
            return self._random.random()

    def _wait(self, error: ProviderError, attempt: int) -> float:
        most = min(self.policy.longest, self.policy.first * 2.0 ** min(attempt - 1, 60))
        if error.retry_after is None:
            return self._draw() * most
        return error.retry_after + self._draw() * min(most, error.retry_after / 10)


def _after(error: ProviderError, attempts: int, why: str) -> ProviderError:
    """Return the error with the number of calls in its message."""
    if attempts == 1 and not why:
        return error
    told = f"{error} (after {attempts} {'call' if attempts == 1 else 'calls'}{why})"
    return ProviderError(
        told, retryable=error.retryable, retry_after=error.retry_after, status=error.status, attempts=attempts
    )


def retry_after(headers: Mapping[str, str], body: Any = None) -> float | None:
    """Return the seconds that a server asks to wait for; None where it does not, or not legibly.

    Read are ``retry-after-ms``, ``Retry-After`` in seconds or as an HTTP date (against the server's own ``Date``, as
    clocks differ), and Google's ``RetryInfo`` in the body, in this order.
    """
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    if (milliseconds := _seconds(lower.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    told = lower.get("retry-after")
    if (seconds := _seconds(told)) is not None:
        return seconds
    if (moment := _moment(told)) is not None:
        now = _moment(lower.get("date")) or datetime.now(UTC)
        return max(0.0, (moment - now).total_seconds())
    return _retry_info(body)


def may_pass(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a request that was answered by this error status is worth making again."""
    for name, value in headers.items():
        if str(name).lower() == "x-should-retry" and value in ("true", "false"):
            return value == "true"
    return status in RETRIED or status >= 500


def refused(status: int | None) -> bool:
    """Whether an error status says that nothing was carried out; after others from 500 on it may have been."""
    return status is not None and (400 <= status < 500 or status in (503, 529))


def _seconds(told: str | None) -> float | None:
    try:
        seconds = float(told or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e9 else None


def _moment(told: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(told or "")
    except (ValueError, TypeError, IndexError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _retry_info(body: Any) -> float | None:
    error = body.get("error", body) if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else []:
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return _seconds(delay.removesuffix("s"))
    return None
