"""The worker: takes jobs of an app from the server, executes them, and goes in good order."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from zq.client.app import App
from zq.client.errors import InvalidOption, WaitTimeout
from zq.client.executor import Room
from zq.client.life import Life, Plan
from zq.client.options import Seconds, milliseconds, positive_ms
from zq.client.outcome import DrainReport, Outcome
from zq.client.settling import AfterExecution
from zq.client.signals import signals
from zq.client.values import Wish
from zq.client.work import Registry


class Worker:
    """Executes an app's jobs, `concurrency` at a time. `run` may be called again after a stop."""

    def __init__(
        self,
        app: App,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 1,
        prefetch: int | None = None,
        worker_id: str | None = None,
        lease: Seconds | None = 30.0,
        shutdown_timeout: Seconds = 30.0,
        cleanup_timeout: Seconds = 5.0,
        connect_timeout: Seconds = 10.0,
        threads: int | None = None,
        processes: int = 0,
        burst: bool = False,
        max_jobs: int | None = None,
        after_execution: AfterExecution | None = None,
    ) -> None:
        """`queues`: by default those that the app has functions for.

        `prefetch` jobs are held at most, those under way included; by default twice `concurrency`.
        A delivery ends `lease` after this event loop has stopped renewing it; with None, only with
        the connection.
        A handler that is cancelled (its time is up, its delivery has ended) may clean up for
        `cleanup_timeout`; one that does not end then is left behind, and the worker goes on.
        A stop takes `shutdown_timeout`, the last fifth of which is for such clean-ups.
        Functions that are no coroutine functions run in so many `threads`, or where `processes` are
        asked for, in these. With `burst` the worker stops when no job is left, after `max_jobs` in
        any case. Raises `InvalidOption`.
        """
        self.app = app
        self.worker_id = worker_id or f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:6]}"
        self.queues = list(Registry(app).queues if queues is None else queues)
        if not self.queues:
            raise InvalidOption("the app has no tasks and no handlers: there is nothing to work on")
        threads = concurrency if threads is None else threads
        for name, number, least in (
            ("concurrency", concurrency, 1),
            ("threads", threads, 1),
            ("processes", processes, 0),
            ("max_jobs", 1 if max_jobs is None else max_jobs, 1),
        ):
            if number < least:
                raise InvalidOption(f"{name}: {number} is less than {least}")
        wish = Wish(
            tuple(self.queues),
            max(concurrency, 2 * concurrency if prefetch is None else prefetch),
            self.worker_id,
            None if lease is None else positive_ms("lease", lease),
            concurrency,
        )
        self._plan = Plan(
            wish,
            Room(concurrency, threads, processes),
            milliseconds("shutdown_timeout", shutdown_timeout) / 1000,
            milliseconds("cleanup_timeout", cleanup_timeout) / 1000,
            milliseconds("connect_timeout", connect_timeout) / 1000,
            burst,
            max_jobs,
            after_execution,
        )
        self._life: Life | None = None

    async def run(self, *, handle_signals: bool = False) -> DrainReport:
        """Work until `stop`. With `handle_signals` the first SIGTERM or SIGINT stops the worker in
        good order, and a second one at once; a process that cannot be ended otherwise, for a
        handler blocks the event loop, is left with code 1.

        Raises `Unavailable` where the server cannot be reached at the start, and what it refuses
        the stream with.
        """
        life = self._begin(self._plan)
        listening: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if handle_signals:
            listening = signals(life.on_signal, self._plan.shutdown_s)
        with listening:
            try:
                return await life.run()
            finally:
                self._life = None
                life.leave()

    async def stop(self, timeout: Seconds | None = None) -> DrainReport | None:
        """Take nothing more, let what runs finish within `timeout`, give back the rest.

        Without a time-out that of `shutdown_timeout` holds. None where the worker does not run.
        """
        life = self._life
        if life is None:
            return None
        seconds = None if timeout is None else milliseconds("timeout", timeout) / 1000
        life.stop(seconds)
        return await life.ended()

    async def run_until_idle(self, timeout: Seconds = 10.0) -> list[Outcome]:
        """Work until no job of the queues is ready or in flight; what came of each execution.

        Jobs that are due later, also for another try, are left. Raises `WaitTimeout`.
        """
        seconds = milliseconds("timeout", timeout) / 1000
        life = self._begin(replace(self._plan, burst=True))
        outcomes = life.settler.outcomes = []
        try:
            async with asyncio.timeout(seconds) as limit:
                await life.run()
        except TimeoutError:
            if not limit.expired():
                raise
            raise WaitTimeout(f"jobs are left after {seconds:g} s") from None
        finally:
            self._life = None
        return outcomes

    def _begin(self, plan: Plan) -> Life:
        if self._life is not None:
            raise RuntimeError("this worker runs already")
        self._life = Life(self.app, plan)
        return self._life


def run_blocking(work: Coroutine[Any, Any, DrainReport]) -> DrainReport:
    """Run a worker in an event loop of its own: uvloop's where that is installed.

    What the worker has left behind is left here too: a loop that is closed would wait for it.
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
