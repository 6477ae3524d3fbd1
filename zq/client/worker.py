"""The worker: takes jobs of an app from the server, executes them, and goes in good order."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from zq.client.app import App
from zq.client.errors import InvalidOption, WaitTimeout
from zq.client.executor import AfterExecution
from zq.client.life import Life, Plan
from zq.client.options import Seconds, milliseconds, positive_ms
from zq.client.outcome import DrainReport, Outcome
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
        Functions that are no coroutine functions run in so many `threads`, or where `processes` are
        asked for, in these. With `burst` the worker stops when no job is left, after `max_jobs` in
        any case. Raises `InvalidOption`.
        """
        self.app = app
        self.worker_id = worker_id or f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:6]}"
        self.queues = list(Registry(app).queues if queues is None else queues)
        if not self.queues:
            raise InvalidOption("the app has no tasks and no handlers: there is nothing to work on")
        for name, number in (("concurrency", concurrency), ("max_jobs", max_jobs or 1)):
            if number < 1:
                raise InvalidOption(f"{name}: {number} is less than 1")
        wish = Wish(
            tuple(self.queues),
            max(concurrency, 2 * concurrency if prefetch is None else prefetch),
            self.worker_id,
            None if lease is None else positive_ms("lease", lease),
            concurrency,
        )
        self._plan = Plan(
            wish,
            milliseconds("shutdown_timeout", shutdown_timeout) / 1000,
            milliseconds("connect_timeout", connect_timeout) / 1000,
            concurrency if threads is None else threads,
            processes,
            burst,
            max_jobs,
            after_execution,
        )
        self._life: Life | None = None

    async def run(self, *, handle_signals: bool = False) -> DrainReport:
        """Work until `stop`. With `handle_signals` the first SIGTERM or SIGINT stops the worker in
        good order, and a second one at once.

        Raises `Unavailable` where the server cannot be reached at the start, and what it refuses
        the stream with.
        """
        life = self._begin(self._plan)
        with self._signals(life) if handle_signals else contextlib.nullcontext():
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
        life = self._begin(replace(self._plan, burst=True))
        outcomes = life.executor.outcomes = []
        try:
            async with asyncio.timeout(milliseconds("timeout", timeout) / 1000) as limit:
                await life.run()
        except TimeoutError:
            if not limit.expired():
                raise
            raise WaitTimeout(f"jobs are left after {timeout} s") from None
        finally:
            self._life = None
        return outcomes

    def _begin(self, plan: Plan) -> Life:
        if self._life is not None:
            raise RuntimeError("this worker runs already")
        self._life = Life(self.app, plan)
        return self._life

    @contextlib.contextmanager
    def _signals(self, life: Life) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT)
        for number in numbers:
            loop.add_signal_handler(number, life.on_signal)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def run_blocking(work: Coroutine[Any, Any, DrainReport]) -> DrainReport:
    """Run a worker in an event loop of its own: uvloop's where that is installed."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)
