"""The worker: it takes jobs of an app from the server, executes them, and stops in order."""

import asyncio
import contextlib
import faulthandler
import logging
import math
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any, Self
from uuid import uuid4

from zq.client.amounts import Seconds, milliseconds, positive_ms
from zq.client.errors import InvalidOption, Unavailable, WaitTimeout
from zq.client.events import Event
from zq.client.formats import said_by
from zq.client.outcome import DrainReport, Outcome
from zq.client.task import HasTasks
from zq.client.values import TakeRequest
from zq.client.worker.executor import Capacity
from zq.client.worker.handlers import Handlers
from zq.client.worker.settling import AfterExecution
from zq.client.worker.worker_run import WorkerPlan, WorkerRun

log = logging.getLogger("zq.worker")

CONNECT_S = 10.0
"""How long a worker waits at the start for a server that is away, if it ends by itself."""

MARGIN_S = 5.0
"""A worker that does not end in time is killed after this much more time."""

AT_ONCE_S = 3.0
"""How long executions may still take after the second signal."""

STALL_LIMIT = 2
"""A job that has ended its worker this often dies the next time: it has three tries, as one that
fails has by default."""

_STDERR = 2
_LONGEST_S = 1e6


class Worker:
    """Executes an app's jobs, `concurrency` at a time. `run` may be called again after a stop.

    ``async with Worker(app):`` works beside the block, and stops at its end.
    """

    def __init__(
        self,
        app: HasTasks,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 1,
        prefetch: int | None = None,
        worker_id: str | None = None,
        lease: Seconds | None = 30.0,
        stall_limit: int | None = STALL_LIMIT,
        shutdown_timeout: Seconds = 30.0,
        cleanup_timeout: Seconds = 5.0,
        connect_timeout: Seconds | None = None,
        threads: int | None = None,
        processes: int = 0,
        burst: bool = False,
        max_jobs: int | None = None,
        after_execution: AfterExecution | None = None,
    ) -> None:
        """By default, `queues` are those for which the app has functions.

        The worker holds at most `prefetch` jobs, running ones included; the default is twice
        `concurrency`. Those that have not begun after a second or two go back, so that another
        worker can have them. A delivery ends `lease` after this event loop has stopped renewing it.
        With a `lease` of None it ends only with the connection.

        A job dies when it ends its worker more often than `stall_limit`, unless its queue has a
        limit of its own. With None, it is tried for ever.

        A cancelled handler (its time is up, or its delivery has ended) may clean up for
        `cleanup_timeout`. If it does not end then, it is left behind, and the worker goes on. A
        stop takes `shutdown_timeout`. The last fifth of it is for such clean-ups.

        A server that is away at the start is waited for, up to `connect_timeout`. With None that is
        10 s with `burst`, and for ever without.

        Ordinary functions run in `threads` threads, or in `processes` processes if that is more
        than 0. With `burst` the worker stops when no job is left. It always stops after `max_jobs`.
        Raises `InvalidOption`.
        """
        self.app = app
        self.worker_id = worker_id or f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:6]}"
        if isinstance(queues, str):
            raise InvalidOption(f"queues: give a list, [{queues!r}], also for a single one")
        self.queues = list(Handlers(app).queues if queues is None else queues)
        if not self.queues:
            raise InvalidOption(
                "the app has no tasks and no handlers, so there is nothing to work on"
            )
        threads = concurrency if threads is None else threads
        for name, number, least in (
            ("concurrency", concurrency, 1),
            ("threads", threads, 1),
            ("processes", processes, 0),
            ("stall_limit", 0 if stall_limit is None else stall_limit, 0),
            ("max_jobs", 1 if max_jobs is None else max_jobs, 1),
        ):
            if number < least:
                raise InvalidOption(f"{name}: {number} is less than {least}")
        request = TakeRequest(
            tuple(self.queues),
            max(concurrency, 2 * concurrency if prefetch is None else prefetch),
            self.worker_id,
            None if lease is None else positive_ms("lease", lease),
            concurrency,
            stall_limit,
        )
        self._plan = WorkerPlan(
            request,
            Capacity(concurrency, threads, processes),
            milliseconds("shutdown_timeout", shutdown_timeout) / 1000,
            milliseconds("cleanup_timeout", cleanup_timeout) / 1000,
            _connect_s(connect_timeout, burst),
            burst,
            max_jobs,
            after_execution,
        )
        self._run: WorkerRun | None = None
        self._told = False
        """True if its program has told it to stop, or looks at its end."""
        self._beside: asyncio.Task[DrainReport] | None = None

    async def __aenter__(self) -> Self:
        """Begin to work in this event loop. Use `ended` to learn of an end before that of the
        block."""
        run = self._begin(self._plan)
        self._beside = asyncio.create_task(self._live(run))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop, as `stop` does. Raises the error that the worker has ended with, if it did."""
        before = self.ended.done()
        await self.stop()
        # A worker that is stopped while it waits for its server has done no wrong.
        with contextlib.suppress(*(() if before else (Unavailable,))):
            if kind is None:
                await self.ended

    @property
    def ended(self) -> "asyncio.Future[DrainReport]":
        """The end of the worker of a block, with its report or its error."""
        if self._beside is None:
            raise RuntimeError("this worker has not been entered: async with zq.Worker(…)")
        return self._beside

    async def run(self, *, handle_signals: bool = False) -> DrainReport:
        """Work until `stop`.

        With `handle_signals` the first SIGTERM or SIGINT stops the worker in good order, and a
        second one stops it at once. A process in which a handler blocks the event loop cannot end
        otherwise, so it exits with code 1.

        Raises `Unavailable` if the server cannot be reached at the start, and the error of a
        refused stream.
        """
        run = self._begin(self._plan)
        self._told = handle_signals
        listening: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if handle_signals:
            listening = _signals(run.on_signal, self._plan.shutdown_s)
        with listening:
            return await self._live(run)

    async def _live(self, run: WorkerRun) -> DrainReport:
        """Run the worker to its end. The program around it may not look at its end, so an end of
        its own is logged."""
        ends = self._plan.burst or self._plan.max_jobs is not None
        try:
            report = await run.run()
            if not self._told and not ends:
                log.warning("the worker %s was drained, and takes no more jobs", self.worker_id)
            return report
        except Exception as error:
            if not self._told:
                log.error("the worker %s has ended: %s", self.worker_id, said_by(error))
                await self.app.core.events.emit(Event("error", exception=error))
            raise
        finally:
            self._run = None
            run.leave()

    async def stop(self, timeout: Seconds | None = None) -> DrainReport | None:
        """Take no more jobs, let running jobs finish within `timeout`, and return the rest.

        By default, `timeout` is `shutdown_timeout`. Returns None if the worker does not run.
        """
        run = self._run
        if run is None:
            return None
        seconds = None if timeout is None else milliseconds("timeout", timeout) / 1000
        self._told = True
        run.stop(seconds)
        return await run.ended()

    @property
    def counts(self) -> tuple[int, int]:
        """The executions that have finished since the worker was started, and those under way."""
        return (0, 0) if self._run is None else self._run.counts

    async def run_until_idle(self, timeout: Seconds = 10.0) -> list[Outcome]:
        """Work until no job of the queues is ready or in flight. Return all outcomes.

        Jobs that are due later, also for another attempt, stay in their queues. Raises
        `WaitTimeout`.
        """
        seconds = milliseconds("timeout", timeout) / 1000
        run = self._begin(
            replace(self._plan, burst=True, connect_s=min(self._plan.connect_s, CONNECT_S))
        )
        outcomes = run.settler.outcomes = []
        try:
            async with asyncio.timeout(seconds) as limit:
                await run.run()
        except TimeoutError:
            if not limit.expired():
                raise
            raise WaitTimeout(f"jobs were left after {seconds:g} s") from None
        finally:
            self._run = None
        return outcomes

    def _begin(self, plan: WorkerPlan) -> WorkerRun:
        if self._run is not None:
            raise RuntimeError("this worker is already running")
        self._told = False
        self._run = WorkerRun(self.app, plan)
        return self._run


def _connect_s(said: Seconds | None, burst: bool) -> float:
    if said is None:
        return CONNECT_S if burst else math.inf
    return milliseconds("connect_timeout", said) / 1000


def run_blocking(work: Coroutine[Any, Any, DrainReport]) -> DrainReport:
    """Run a worker in an event loop of its own: uvloop's if it is installed.

    Closing a loop would wait for handlers that the worker has left behind. So this loop stays open
    for them.
    """
    new_event_loop: Callable[[], asyncio.AbstractEventLoop]
    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = asyncio.new_event_loop
    runner = asyncio.Runner(loop_factory=new_event_loop)
    stuck = 0
    try:
        report = runner.run(work)
        stuck = report.stuck
    finally:
        if not stuck:
            runner.close()
    return report


@contextlib.contextmanager
def _signals(on_signal: Callable[[], None], shutdown_s: float) -> Iterator[None]:
    """Call `on_signal` in the event loop for each signal. It must be entered in the main thread.

    These are Python's own handlers, since the loop's would not run while a handler blocks it. If
    the loop is not unblocked in time, the process prints the stack of each thread on stderr and
    exits with code 1. Its streams end too, so its jobs are returned.
    """
    loop = asyncio.get_running_loop()
    heard: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        counted = 0
        # The other signal may be handled at any step of this: the end that it sets must hold.
        while counted != len(heard):
            counted = len(heard)
            seconds = min(shutdown_s, _LONGEST_S) + MARGIN_S if counted == 1 else AT_ONCE_S
            faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
        loop.call_soon_threadsafe(on_signal)

    before = {each: signal.signal(each, handle) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, signal.SIG_DFL if former is None else former)
        if heard:
            faulthandler.cancel_dump_traceback_later()
