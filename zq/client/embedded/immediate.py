"""Handlers that run at the enqueue, on an engine of their own in memory."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, cast

import msgspec

from zq.client.backend import Backend, run
from zq.client.core import Elsewhere
from zq.client.embedded.backend import EmbeddedBackend
from zq.client.embedded.engine import EmbeddedEngine, TravelClock
from zq.client.outcome import raise_failures_of
from zq.client.task import HasTasks
from zq.client.values import JobOutcome, JobQuery, StoredJob, Submission
from zq.client.worker.handlers import Handlers
from zq.client.worker.places import CallingThread
from zq.client.worker.worker import Worker
from zq.model.filters import ValueRange

PATIENCE_S = 60.0
"""How long the jobs of one enqueue may take."""

AT_ONCE = 16
"""Handlers may wait for the results of this many others, one within the other."""

FAILED = JobQuery(statuses=("scheduled",), attempts=ValueRange(1))
"""Jobs that wait for another try."""

within: ContextVar[frozenset["_Runner"]] = ContextVar("within", default=frozenset())
"""The runners whose handlers have led here. What these enqueue is left to the present run."""


def immediate(app: HasTasks) -> Elsewhere:
    """Run handlers in this process when their jobs are enqueued, inside a block: see
    `App.immediate`."""
    clock = TravelClock()
    home = EmbeddedEngine(None, clock=clock)
    backend = EmbeddedBackend(home)
    return Elsewhere(app.core, cast(Backend, _Immediate(app, _Runner(app, home, clock), backend)))


class _Worker(Worker):
    """Works until `is_over` says so. It sets no schedules, which the moved clock would fire."""

    def __init__(self, app: HasTasks, is_over: Callable[[], Awaitable[bool]]) -> None:
        super().__init__(app, concurrency=AT_ONCE)
        self._plan = replace(self._plan, with_beginning=False, is_over=is_over)


class _Runner:
    """Runs the jobs of an app, and moves the clock for those that are tried again."""

    def __init__(self, app: HasTasks, home: EmbeddedEngine, clock: TravelClock) -> None:
        self._app = app
        self._home = home
        self._clock = clock
        self._present: asyncio.Future[None] | None = None
        self.thread: CallingThread | None = None
        """The thread that waits for the present run."""

    async def run(self) -> None:
        """Work until no job is left. Others in this event loop wait for their turn meanwhile."""
        if not Handlers(self._app).queues:
            return
        loop = asyncio.get_running_loop()
        while self._present is not None:
            if self._present.get_loop() is not loop:
                return
            await asyncio.wait([self._present])
        present = self._present = loop.create_future()
        inner = within.set(within.get() | {self})
        try:
            raise_failures_of(await _Worker(self._app, self._is_over).run_until_idle(PATIENCE_S))
        finally:
            within.reset(inner)
            self._present = None
            present.set_result(None)

    async def _is_over(self) -> bool:
        """False if a job is to be tried again. The clock is then moved to the first of these."""
        jobs = (await self._app.backend.jobs(FAILED)).jobs
        if jobs:
            ahead = min(job.ready_at for job in jobs) - self._clock.now_ms()
            await asyncio.wrap_future(self._home.submit(self._advance(max(ahead, 0))))
        return not jobs

    async def _advance(self, ms: int) -> None:
        self._clock.advance(ms)


class _Immediate:
    """An embedded backend that runs the jobs after each enqueue."""

    def __init__(self, app: HasTasks, runner: _Runner, backend: EmbeddedBackend) -> None:
        self._app, self._runner, self._backend = app, runner, backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    @property
    def blocking(self) -> "_Immediate":
        return _Blocking(self._app, self._runner, self._backend.blocking)

    async def enqueue(self, jobs: Sequence[Submission]) -> list[StoredJob]:
        stored = await self._backend.enqueue(jobs)
        await self._run()
        return stored

    async def enqueue_on(
        self, terms: Mapping[str, object], jobs: Sequence[Submission]
    ) -> list[StoredJob]:
        stored = await self._backend.enqueue_on(terms, jobs)
        await self._run()
        return stored

    async def enqueue_each(
        self, batches: Iterable[Sequence[Submission]]
    ) -> AsyncGenerator[list[StoredJob], None]:
        for batch in batches:
            yield await self.enqueue(batch)

    async def enqueue_and_wait(self, job: Submission, wait_ms: int) -> JobOutcome:
        (stored,) = await self.enqueue([job])
        outcome = await self.result(stored.id, wait_ms)
        return msgspec.structs.replace(outcome, job=stored)

    async def result(self, id: str, wait_ms: int) -> JobOutcome:
        return await self._backend.result(id, wait_ms)

    async def _run(self) -> None:
        if self._runner not in within.get():
            await self._runner.run()


class _Blocking(_Immediate):
    """Handlers at the enqueue, in a program without an event loop: its thread runs functions."""

    async def result(self, id: str, wait_ms: int) -> JobOutcome:
        thread = self._runner.thread
        if thread is None or not thread.is_here:
            return await self._backend.result(id, wait_ms)
        # A handler waits for another one, which may need this thread.
        return thread.wait_for(lambda: run(self._backend.result(id, wait_ms)))

    @property
    def blocking(self) -> "_Blocking":
        return self

    async def _run(self) -> None:
        if self._runner.thread is None and self._runner not in within.get():
            self._runner.thread = CallingThread()
            try:
                self._runner.thread.run(self._runner.run)
            finally:
                self._runner.thread = None
