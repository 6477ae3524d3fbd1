"""A worker from one start to its end: what it does meanwhile, and in which order it goes."""

import asyncio
import contextlib
import inspect
import logging
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from zq.client.acks import Acknowledger, follows
from zq.client.app import App
from zq.client.errors import Unavailable, ZqError
from zq.client.events import Event, EventName
from zq.client.execution import INSISTING_S, watching_tasks
from zq.client.executor import Executor, Room
from zq.client.holding import Strangers, give_back, renew
from zq.client.outcome import DrainReport
from zq.client.settling import AfterExecution, Settler
from zq.client.supply import Supply
from zq.client.values import Delivery, Held, JobQuery, Notice, Wish
from zq.client.work import Handler, Registry

log = logging.getLogger("zq.worker")

LAST_POSTS_S = 5.0
"""How long a worker that stops tries to get its last words through, if it has so long."""

LEAST_S = 0.5
"""How long each step of the end may take in any case: where its time is over, or it has to leave at
once."""

CLEAN_UP_SHARE = 0.2
"""The part of the time for a stop that is for the clean-up of what does not finish."""

LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Plan:
    """How a worker is to work. Times in seconds."""

    wish: Wish
    room: Room
    shutdown_s: float
    clean_up_s: float
    connect_s: float
    burst: bool
    max_jobs: int | None
    after_execution: AfterExecution | None


class Life:
    """A worker from one start to its end."""

    def __init__(self, app: App, plan: Plan) -> None:
        self._app = app
        self._plan = plan
        self._backend = app.backend
        self._registry = Registry(app)
        self._acks = Acknowledger(self._backend, self._lost)
        self.settler = Settler(app, self._acks, plan.wish.worker, plan.after_execution)
        self._executor = Executor(
            app,
            self.settler,
            plan.room,
            plan.clean_up_s,
            on_free=self._begin_more,
            on_too_deaf=self._on_too_deaf,
        )
        self._strangers = Strangers(self._backend, app.core.events)
        self._stopping = asyncio.Event()
        self._aborted = asyncio.Event()
        self._supply = Supply(self._backend, plan.wish, self._stopping)
        # Ids in their order, and what is still wanted of them.
        self._order: deque[str] = deque()
        self._waiting: dict[str, tuple[Delivery, Handler]] = {}
        self._left = plan.max_jobs
        self._patience = plan.shutdown_s
        self._deadline: float | None = None
        self._done: asyncio.Future[DrainReport] = asyncio.get_running_loop().create_future()
        self._unstarted: list[Delivery] = []
        self._returned: list[str] = []

    # From outside

    def stop(self, patience: float | None) -> None:
        """Begin to drain."""
        if patience is not None:
            self._patience = patience
            self._deadline = None
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
            self._executor.close()
            self._done.set_result(DrainReport(0, []))

    async def run(self) -> DrainReport:
        """From the first stream to the last acknowledgement."""
        with watching_tasks():
            await self._warm_up()
            await self._supply.open(self._plan.connect_s)
            await self._emit("started")
            helpers = [asyncio.create_task(work) for work in self._helpers()]
            try:
                await self._until_stopped(helpers)
                await self._drain()
            finally:
                report = await self._end(helpers)
        await self._emit("stopped")
        return report

    # While it runs

    async def _warm_up(self) -> None:
        async def call_all() -> None:
            for function in self._app.core.startup:
                waiting = function()
                if inspect.isawaitable(waiting):
                    await waiting

        warming = asyncio.create_task(call_all())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({warming, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not warming.done():
            warming.cancel()
            raise Unavailable("the worker was stopped before it had a stream")
        warming.result()

    def _helpers(self) -> list[Coroutine[Any, Any, None]]:
        wish = self._plan.wish
        helpers = [self._supply.run(self._on_jobs, self._on_lost)]
        helpers += [self._acks.run(), self._strangers.run()]
        if wish.lease_ms is not None:
            helpers.append(renew(self._backend, wish.lease_ms, self._held, self._drop))
        if self._plan.burst:
            helpers.append(self._watch_for_idleness())
        return helpers

    def _on_jobs(self, arrived: Sequence[Delivery | Notice]) -> None:
        for delivery in arrived:
            if isinstance(delivery, Notice):
                self._on_notice(delivery)
                continue
            execution = self._executor.running.get(delivery.id)
            running = None if execution is None else execution.running
            if running and running.lost is None and follows(delivery, running.delivery):
                # It came back when a stream broke, and is still under way here: go on with it.
                running.delivery = delivery
            elif not self._acks.adopt(delivery):
                self._put(delivery)
        self._begin_more()

    def _on_notice(self, notice: Notice) -> None:
        if notice.control == "drain":
            self._begin_nothing_more()
        else:
            event: EventName = "cancelled" if notice.control == "cancel" else "stalled"
            self._drop(Held(notice.id, notice.lease), event)

    def _drop(self, held: Held, event: EventName = "requeued") -> None:
        """A delivery has ended: begin it no more, and stop it."""
        waiting = self._waiting.get(held.id)
        if waiting is not None and waiting[0].lease == held.lease:
            del self._waiting[held.id]
        self._executor.drop(held.id, held.lease, event)

    def _put(self, delivery: Delivery) -> None:
        if self._stopping.is_set() or self._left == 0:
            self._unstarted.append(delivery)
            return
        handler = self._registry.find(delivery)
        if handler is None:
            self._strangers.add(delivery)
            return
        self._waiting[delivery.id] = delivery, handler
        self._order.append(delivery.id)
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self._stopping.set()

    def _begin_more(self) -> None:
        """Begin what waits, as much as there is room for."""
        while self._order and self._executor.has_room:
            wanted = self._waiting.pop(self._order.popleft(), None)
            if wanted is not None:
                self._executor.begin(*wanted)

    def _on_lost(self) -> None:
        """The stream is gone, and with it what had not begun: it will come again."""
        if self._left is not None and not self._stopping.is_set():
            self._left += len(self._waiting)
        self._waiting.clear()

    async def _lost(self, id: str) -> None:
        await self.settler.lost(id)

    def _held(self) -> list[Held]:
        deliveries = [each.running.delivery for each in self._executor.running.values()]
        deliveries += [delivery for delivery, _ in self._waiting.values()]
        return [Held(each.id, each.lease) for each in deliveries]

    def _on_too_deaf(self) -> None:
        log.error("too much goes on here that was to end: the worker stops, to be started again")
        self._begin_nothing_more()

    async def _watch_for_idleness(self) -> None:
        """Stop once the server has nothing left that could be taken now."""
        query = JobQuery(statuses=("ready", "in_flight"), queues=tuple(self._plan.wish.queues))
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            idle = self._executor.is_idle and self._acks.is_idle and self._strangers.is_idle
            if self._waiting or not idle:
                continue
            with contextlib.suppress(Unavailable):
                if await self._backend.count(query) == 0:
                    self._begin_nothing_more()

    # How it ends

    async def _until_stopped(self, helpers: Sequence[asyncio.Task[None]]) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([stopping, *helpers], return_when=asyncio.FIRST_COMPLETED)
            for task in helpers:
                # None of them ends by itself but by an error.
                if task.done():
                    task.result()
        finally:
            stopping.cancel()

    def _begin_nothing_more(self) -> None:
        """Give back what has not begun, as soon as nothing can come in its place."""
        self._stopping.set()
        self._unstarted += [delivery for delivery, _ in self._waiting.values()]
        self._waiting.clear()
        self._left_s()

    def _left_s(self) -> float:
        """How much is left of the time for the stop, which begins now if it has not before."""
        now = asyncio.get_running_loop().time()
        if self._deadline is None:
            self._deadline = now + self._patience
        return max(self._deadline - now, 0.0)

    @property
    def _clean_up_s(self) -> float:
        """How much of it is for the clean-up of what has to be ended."""
        return min(self._plan.clean_up_s, CLEAN_UP_SHARE * self._patience)

    async def _drain(self) -> None:
        """Let those finish that have begun, and as many as were asked for."""

        async def finish() -> None:
            with contextlib.suppress(ZqError, TimeoutError):
                async with asyncio.timeout(LAST_POSTS_S):
                    await self._backend.drain(self._plan.wish.worker)
            unstarted, self._unstarted = self._unstarted, []
            await self._give_back(unstarted, LAST_POSTS_S)
            while self._waiting or not self._executor.is_idle:
                await self._executor.idle()

        time_for_it = self._left_s() - self._clean_up_s
        if time_for_it > 0 and not self._aborted.is_set():
            await self._unless_aborted(finish(), time_for_it)

    async def _end(self, helpers: Sequence[asyncio.Task[None]]) -> DrainReport:
        """Leave, whatever handlers do: each step has its time."""
        executor = self._executor
        try:
            self._begin_nothing_more()
            if not self._aborted.is_set():
                await self._end_all(max(LEAST_S, self._clean_up_s))
            if self._aborted.is_set():
                await self._end_all(LEAST_S)
            await self._unless_aborted(self._last_posts(), self._last_s())
            await self._give_back([*executor.unfinished, *self._unstarted], self._last_s())
        finally:
            for task in helpers:
                task.cancel()
            executor.close()
            await asyncio.wait(helpers, timeout=LEAST_S)
            await self._supply.close()
            report = DrainReport(
                executor.finished, self._returned, executor.stuck, self._aborted.is_set()
            )
            if not self._done.done():
                self._done.set_result(report)
        return report

    async def _end_all(self, clean_up_s: float) -> None:
        self._executor.end_all(clean_up_s)
        await self._unless_aborted(self._executor.idle(), clean_up_s + 2 * INSISTING_S)

    async def _last_posts(self) -> None:
        await self._executor.idle()
        await self._acks.drained()

    def _last_s(self) -> float:
        if self._aborted.is_set():
            return LEAST_S
        return max(LEAST_S, min(LAST_POSTS_S, self._left_s()))

    async def _unless_aborted(self, work: Coroutine[Any, Any, None], seconds: float) -> None:
        """Wait for it for so long; not, where the worker has to leave at once meanwhile."""
        task = asyncio.ensure_future(work)
        waiting: set[asyncio.Future[Any]] = {task}
        aborted = asyncio.create_task(self._aborted.wait())
        if not self._aborted.is_set():
            waiting.add(aborted)
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
            aborted.cancel()

    async def _give_back(self, unfinished: Sequence[Delivery], seconds: float) -> None:
        events = self._app.core.events
        self._returned += await give_back(self._backend, events, unfinished, seconds)

    async def _emit(self, name: EventName) -> None:
        await self._app.core.events.emit(Event(name))
