"""A worker from one start to its end: what it does meanwhile, and in which order it goes."""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from zq.client.acks import Acknowledger, follows
from zq.client.app import App
from zq.client.errors import Unavailable, ZqError
from zq.client.events import Event, EventName
from zq.client.executor import AfterExecution, Executor
from zq.client.holding import give_back, renew
from zq.client.outcome import DrainReport
from zq.client.supply import Supply
from zq.client.values import Delivery, Held, JobQuery, Notice, Wish
from zq.client.work import Registry

log = logging.getLogger("zq.worker")

LAST_POSTS_S = 5.0
"""How long a worker that stops tries to get its last acknowledgements through."""

ABORTED_POSTS_S = 0.5
"""The same where it has to leave at once."""

LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Plan:
    """How a worker is to work. Times in seconds."""

    wish: Wish
    shutdown_s: float
    connect_s: float
    threads: int
    processes: int
    burst: bool
    max_jobs: int | None
    after_execution: AfterExecution | None

    @property
    def worker_id(self) -> str:
        """What the worker is called."""
        return self.wish.worker


class Life:
    """A worker from one start to its end."""

    def __init__(self, app: App, plan: Plan) -> None:
        self._app = app
        self._plan = plan
        self._stopping = asyncio.Event()
        self._backend = app.backend
        self._acks = Acknowledger(self._backend, self._lost)
        self.executor = Executor(
            app,
            Registry(app),
            self._acks,
            threads=plan.threads,
            processes=plan.processes,
            worker_id=plan.worker_id,
            after_execution=plan.after_execution,
        )
        self._supply = Supply(self._backend, plan.wish, self._stopping)
        # Ids in their order, and what is still wanted of them; None sends a runner home.
        self._order: asyncio.Queue[str | None] = asyncio.Queue()
        self._waiting: dict[str, Delivery] = {}
        self._left = plan.max_jobs
        self._patience = plan.shutdown_s
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
        plan = self._plan
        for warm_up in self._app.core.startup:
            waiting = warm_up()
            if inspect.isawaitable(waiting):
                await waiting
        await self._supply.open(plan.connect_s)
        await self._emit("started")
        runners = [asyncio.create_task(self._run_jobs()) for _ in range(plan.wish.concurrency)]
        supplying = asyncio.create_task(self._supply.run(self._on_jobs, self._on_lost))
        posting = asyncio.create_task(self._acks.run())
        helpers = [supplying, posting]
        if plan.wish.lease_ms is not None:
            renewing = renew(self._backend, plan.wish.lease_ms, self._held, self._drop)
            helpers.append(asyncio.create_task(renewing))
        if plan.burst:
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
            event: EventName = "cancelled" if notice.control == "cancel" else "stalled"
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
        query = JobQuery(statuses=("ready", "in_flight"), queues=tuple(self._plan.wish.queues))
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
                await self._backend.drain(self._plan.worker_id)
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
        events = self._app.core.events
        self._returned += await give_back(self._backend, events, unfinished)

    async def _emit(self, name: EventName) -> None:
        await self._app.core.events.emit(Event(name))
