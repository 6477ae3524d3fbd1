"""The worker: takes jobs of an app from the server, executes them, and goes in good order."""

import asyncio
import contextlib
import inspect
import logging
import os
import signal
import socket
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any
from uuid import uuid4

from zq.client.acks import Acknowledger, follows
from zq.client.app import App
from zq.client.errors import InvalidOption, Unavailable, WaitTimeout, ZqError
from zq.client.events import Event, EventName
from zq.client.executor import AfterExecution, Executor
from zq.client.holding import give_back, renew
from zq.client.options import Seconds, milliseconds, positive_ms
from zq.client.outcome import DrainReport, Outcome
from zq.client.supply import Supply
from zq.client.values import Delivery, Held, JobQuery, Notice
from zq.client.work import Registry

log = logging.getLogger("zq.worker")

LAST_POSTS_S = 5.0
"""How long a worker that stops tries to get its last acknowledgements through."""

ABORTED_POSTS_S = 0.5
"""The same where it has to leave at once."""

LOOK_EVERY_S = 0.02


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
        self._registry = Registry(app)
        self.queues = list(self._registry.queues if queues is None else queues)
        if not self.queues:
            raise InvalidOption("the app has no tasks and no handlers: there is nothing to work on")
        for name, number in (("concurrency", concurrency), ("max_jobs", max_jobs or 1)):
            if number < 1:
                raise InvalidOption(f"{name}: {number} is less than 1")
        self._concurrency = concurrency
        self._prefetch = max(concurrency, 2 * concurrency if prefetch is None else prefetch)
        self._lease_ms = None if lease is None else positive_ms("lease", lease)
        self._shutdown_s = milliseconds("shutdown_timeout", shutdown_timeout) / 1000
        self._connect_s = milliseconds("connect_timeout", connect_timeout) / 1000
        self._threads = concurrency if threads is None else threads
        self._processes = processes
        self._burst = burst
        self._max_jobs = max_jobs
        self._after_execution = after_execution
        self._life: _Life | None = None

    async def run(self, *, handle_signals: bool = False) -> DrainReport:
        """Work until `stop`. With `handle_signals` the first SIGTERM or SIGINT stops the worker in
        good order, and a second one at once.

        Raises `Unavailable` where the server cannot be reached at the start, and what it refuses
        the stream with.
        """
        life = self._begin()
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
        life = self._begin(burst=True)
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

    def _begin(self, burst: bool | None = None) -> "_Life":
        if self._life is not None:
            raise RuntimeError("this worker runs already")
        self._registry = Registry(self.app)
        self._life = _Life(self, self._registry, self._burst if burst is None else burst)
        return self._life

    @contextlib.contextmanager
    def _signals(self, life: "_Life") -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT)
        for number in numbers:
            loop.add_signal_handler(number, life.on_signal)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


class _Life:
    """A worker from one start to its end."""

    def __init__(self, worker: Worker, registry: Registry, burst: bool) -> None:
        self._worker = worker
        self._stopping = asyncio.Event()
        self._backend = worker.app.backend
        self._acks = Acknowledger(self._backend, self._lost)
        self.executor = Executor(
            worker.app,
            registry,
            self._acks,
            threads=worker._threads,
            processes=worker._processes,
            worker_id=worker.worker_id,
            after_execution=worker._after_execution,
        )
        self._supply = Supply(
            self._backend,
            worker.queues,
            worker._prefetch,
            worker.worker_id,
            worker._lease_ms,
            self._stopping,
        )
        self._burst = burst
        # Ids in their order, and what is still wanted of them; None sends a runner home.
        self._order: asyncio.Queue[str | None] = asyncio.Queue()
        self._waiting: dict[str, Delivery] = {}
        self._left = worker._max_jobs
        self._patience = worker._shutdown_s
        self._aborted = asyncio.Event()
        self._done: asyncio.Future[DrainReport] = asyncio.get_running_loop().create_future()
        self._unstarted: list[Delivery] = []
        self._returned: list[str] = []

    # From outside

    def stop(self, patience: float | None) -> None:
        """Begin to drain."""
        if patience is not None:
            self._patience = patience
        self._begin_nothing_more()

    def on_signal(self) -> None:
        """The first one drains, the second ends it all."""
        if self._stopping.is_set():
            log.warning("leaving at once: what is not done goes back")
            self._aborted.set()
        else:
            log.info("stopping: what runs may finish")
            self._begin_nothing_more()

    async def ended(self) -> DrainReport:
        """Wait for the end."""
        return await asyncio.shield(self._done)

    def leave(self) -> None:
        """Say that it has ended, also where it never came to work."""
        if not self._done.done():
            self.executor.close()
            self._done.set_result(DrainReport(0, []))

    async def run(self) -> DrainReport:
        """From the first stream to the last acknowledgement."""
        worker = self._worker
        for warm_up in worker.app.core.startup:
            waiting = warm_up()
            if inspect.isawaitable(waiting):
                await waiting
        await self._supply.open(worker._connect_s)
        await self._emit("started")
        runners = [asyncio.create_task(self._run_jobs()) for _ in range(worker._concurrency)]
        supplying = asyncio.create_task(self._supply.run(self._on_jobs, self._on_lost))
        posting = asyncio.create_task(self._acks.run())
        helpers = [supplying, posting]
        if worker._lease_ms is not None:
            renewing = renew(self._backend, worker._lease_ms, self._held, self._drop)
            helpers.append(asyncio.create_task(renewing))
        if self._burst:
            helpers.append(asyncio.create_task(self._watch_for_idleness()))
        try:
            await self._until_stopped([*runners, *helpers])
            await self._drain(runners)
        finally:
            for task in runners:
                task.cancel()
            # What is under way is given up with its runner; what is done is still posted.
            held = [job.delivery for job, _ in self.executor.running.values()]
            await asyncio.wait(runners)
            await self._post_the_rest()
            await self._give_back([*held, *self._unstarted])
            for task in helpers:
                task.cancel()
            await asyncio.wait(helpers)
            await self._supply.close()
            self.executor.close()
            report = DrainReport(
                self.executor.finished, self._returned, self.executor.stuck, self._aborted.is_set()
            )
            self._done.set_result(report)
            await self._emit("stopped")
        return report

    # While it runs

    async def _run_jobs(self) -> None:
        while (id := await self._order.get()) is not None:
            delivery = self._waiting.pop(id, None)
            if delivery is not None:
                await self.executor.execute(delivery)

    def _on_jobs(self, arrived: Sequence[Delivery | Notice]) -> None:
        for delivery in arrived:
            if isinstance(delivery, Notice):
                self._on_notice(delivery)
                continue
            running = self.executor.running.get(delivery.id)
            if running is not None and follows(delivery, running[0].delivery):
                # It came back when a stream broke, and is still under way here: go on with it.
                running[0].delivery = delivery
            elif not self._acks.adopt(delivery):
                self._put(delivery)

    def _on_notice(self, notice: Notice) -> None:
        if notice.control == "drain":
            self._begin_nothing_more()
        else:
            event: EventName = "cancelled" if notice.control == "cancel" else "requeued"
            self._drop(Held(notice.id, notice.lease), event)

    def _drop(self, held: Held, event: EventName = "requeued") -> None:
        """A delivery has ended: begin it no more, and stop it."""
        waiting = self._waiting.get(held.id)
        if waiting is not None and waiting.lease == held.lease:
            del self._waiting[held.id]
        self.executor.drop(held.id, held.lease, event)

    def _put(self, delivery: Delivery) -> None:
        if self._stopping.is_set() or self._left == 0:
            self._unstarted.append(delivery)
            return
        self._waiting[delivery.id] = delivery
        self._order.put_nowait(delivery.id)
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self._stopping.set()

    def _on_lost(self) -> None:
        """The stream is gone, and with it what had not begun: it will come again."""
        if self._left is not None and not self._stopping.is_set():
            self._left += len(self._waiting)
        self._waiting.clear()

    async def _lost(self, id: str) -> None:
        await self.executor.lost(id)

    def _held(self) -> list[Held]:
        deliveries = [job.delivery for job, _ in self.executor.running.values()]
        return [Held(each.id, each.lease) for each in (*deliveries, *self._waiting.values())]

    async def _watch_for_idleness(self) -> None:
        """Stop once the server has nothing left that could be taken now."""
        query = JobQuery(statuses=("ready", "in_flight"), queues=tuple(self._worker.queues))
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self.executor.running or self._waiting or not self._acks.is_idle:
                continue
            with contextlib.suppress(Unavailable):
                if await self._backend.count(query) == 0:
                    self._begin_nothing_more()

    # How it ends

    async def _until_stopped(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                # None of them ends by itself but by an error.
                if task.done():
                    task.result()
        finally:
            stopping.cancel()

    def _begin_nothing_more(self) -> None:
        """Give back what has not begun, as soon as nothing can come in its place."""
        self._stopping.set()
        self._unstarted += self._waiting.values()
        self._waiting.clear()

    async def _drain(self, runners: Sequence[asyncio.Task[None]]) -> None:
        """Let those finish that have begun, and as many as were asked for."""
        with contextlib.suppress(ZqError, TimeoutError):
            async with asyncio.timeout(LAST_POSTS_S):
                await self._backend.drain(self._worker.worker_id)
        unstarted, self._unstarted = self._unstarted, []
        await self._give_back(unstarted)
        for _ in runners:
            self._order.put_nowait(None)
        finishing = asyncio.ensure_future(asyncio.wait(runners))
        aborted = asyncio.create_task(self._aborted.wait())
        await asyncio.wait(
            {finishing, aborted}, timeout=self._patience, return_when=asyncio.FIRST_COMPLETED
        )
        finishing.cancel()
        aborted.cancel()

    async def _post_the_rest(self) -> None:
        patience = LAST_POSTS_S if not self._aborted.is_set() else ABORTED_POSTS_S
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._acks.drained()

    async def _give_back(self, unfinished: Sequence[Delivery]) -> None:
        events = self._worker.app.core.events
        self._returned += await give_back(self._backend, events, unfinished)

    async def _emit(self, name: EventName) -> None:
        await self._worker.app.core.events.emit(Event(name))


def run_blocking(work: Coroutine[Any, Any, DrainReport]) -> DrainReport:
    """Run a worker in an event loop of its own: uvloop's where that is installed."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)
