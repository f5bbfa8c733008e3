"""Worker processes that may die: each page has an answer, whatever becomes of the process that works on it."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import inktraj
from inktraj.errors import RunError
from inktraj.io.images import Source
from inktraj.pseudolabel.worker import CannotStart, Done, Start

_ONE_THREAD = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    *("NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_THREAD_LIMIT"),
)


class WorkerDied(Exception):
    """A worker process ended, or was ended, in the middle of a page; the message says how."""


class Worker:
    """One worker process.

    Parameters
    ----------
    start
        The pickled `Start`.
    page_timeout
        Seconds for one page; None for as long as it takes.
    """

    def __init__(self, start: bytes, page_timeout: float | None) -> None:
        self._page_timeout = page_timeout
        self._expired = False
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - its last lines tell why a worker died
        package = str(Path(inktraj.__file__).parent.parent)
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from inktraj.pseudolabel.worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env={**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONPATH": path},
        )
        self._ready = False
        self._send(pickle.dumps(sys.path) + start)

    def do(self, source: Source) -> Done:
        """Have a page done.

        Raises
        ------
        WorkerDied
            The process ended before it answered, or was ended since it took too long.
        RunError
            It cannot work at all.
        """
        if not self._ready:
            first = self._answer()
            if first is None or isinstance(first, CannotStart):
                raise RunError(f"a worker process cannot start: {first.reason if first else self._last_words()}")
            self._ready = True
        with self._clock():
            self._send(pickle.dumps(source))
            answer = self._answer()
        if self._expired:
            raise WorkerDied(
                f"no result within {self._page_timeout:g} s, so that its worker process was ended; does a part hang? "
                "--page-timeout gives pages more time"
            )
        if answer is None:
            raise WorkerDied(f"the worker process died on this page ({self._last_words()})")
        assert isinstance(answer, Done)
        return answer

    @contextmanager
    def _clock(self) -> Iterator[None]:
        """End the process where the block takes too long."""
        if self._page_timeout is None:
            yield
            return

        def expire() -> None:
            self._expired = True
            self._process.kill()

        clock = threading.Timer(self._page_timeout, expire)
        clock.daemon = True
        clock.start()
        try:
            yield
        finally:
            clock.cancel()
            clock.join()  # from here on it is known whether it has struck

    def _answer(self) -> Any:
        """Return the next answer; None where the process ended without one."""
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            return None

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except (OSError, ValueError):
            pass  # it is dead, or closed; reading its answer says so

    def _last_words(self) -> str:
        try:
            code: int | str = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = "unknown"
        if isinstance(code, int) and code < 0:
            name = signal.Signals(-code).name
            hint = "; often the system's way to end a process when memory is short" if name == "SIGKILL" else ""
            how = f"signal {name}{hint}"
        else:
            how = f"exit code {code}"
        self._words.seek(0)
        lines = self._words.read().decode("utf-8", "replace").strip().splitlines()
        return how + (f": {lines[-1].strip()}" if lines else "")

    def end(self) -> None:
        """End the process at once; safe to call from another thread, and twice."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and give its pipes back."""
        self.end()
        for pipe in (self._process.stdin, self._process.stdout, self._words):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was still to be sent to a dead process
                    continue


class Pool:
    """Does pages in `count` processes; use it as a context, so that no process outlives it.

    A page that takes longer than `page_timeout` seconds has its process ended; None waits for ever.
    At most `count` finished pages wait to be taken, so that memory does not grow with the number of pages.
    """

    def __init__(self, start: Start, count: int, page_timeout: float | None = None) -> None:
        try:
            self._start = pickle.dumps(start)
        except Exception as err:
            raise RunError(
                f"a part cannot be sent to a worker process ({err}); name it as module:attribute, or use workers=0 "
                "to work in this process"
            ) from err
        self._count = count
        self._page_timeout = page_timeout
        self._stop = threading.Event()
        self._results: queue.Queue[tuple[Source | None, Any]] = queue.Queue(maxsize=count)
        self._workers: dict[int, Worker] = {}
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        while any(thread.is_alive() for thread in self._threads):
            for worker in list(self._workers.values()):
                worker.end()
            try:
                self._results.get(timeout=0.02)
            except queue.Empty:
                continue

    def map(self, sources: Iterable[Source]) -> Iterator[tuple[Source, Done | WorkerDied]]:
        """Yield each source with its finished page, or with how its worker died, in the order of completion.

        Raises
        ------
        RunError
            Workers cannot start.
        """
        waiting, taking = iter(sources), threading.Lock()

        def work(slot: int) -> None:
            outcome: Any = None
            try:
                while not self._stop.is_set():
                    with taking:
                        source = next(waiting, None)
                    if source is None:
                        break
                    self._results.put((source, self._do(slot, source)))
            except BaseException as err:
                outcome = err
            finally:
                worker = self._workers.pop(slot, None)
                if worker is not None:
                    worker.close()
                self._results.put((None, outcome))

        self._threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(self._count)]
        for thread in self._threads:
            thread.start()
        running = self._count
        while running:
            source, outcome = self._results.get()
            if source is not None:
                yield source, outcome
            elif outcome is not None:
                raise outcome
            else:
                running -= 1

    def _do(self, slot: int, source: Source) -> Done | WorkerDied:
        worker = self._workers.get(slot)
        if worker is None:
            worker = self._workers[slot] = Worker(self._start, self._page_timeout)
        try:
            return worker.do(source)
        except WorkerDied as err:
            del self._workers[slot]
            worker.close()
            return err
