"""One run of a worker: its tasks while it runs, and the order in which they end."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from zq.client.core import keep_loggers
from zq.client.errors import BackendError, Unavailable, may_pass
from zq.client.events import Event
from zq.client.outcome import DrainReport
from zq.client.running import EventName, call_all, ends_task
from zq.client.task import HasTasks
from zq.client.values import Delivery, Held, JobQuery, LeasedFailure, Notice, TakeRequest
from zq.client.worker.acks import Acknowledger, follows
from zq.client.worker.execution import INSISTING_S, watching_tasks
from zq.client.worker.executor import Capacity, Executor
from zq.client.worker.handlers import Handler, Handlers
from zq.client.worker.holding import UnknownJobs, renew, resume
from zq.client.worker.leaving import LAST_POSTS_S, Leaving
from zq.client.worker.settling import AfterExecution, Journal, Settler
from zq.client.worker.standstill import watching_loop
from zq.client.worker.supply import Supply, give_back_tired

log = logging.getLogger("zq.worker")

LEAST_S = 0.5
"""Each step of the end may take at least this long, even if the time is over."""

CLEAN_UP_SHARE = 0.2
"""The share of the stop's time that is left for the clean-up of unfinished jobs."""

LOOK_EVERY_S = 0.02
"""How often a burst worker looks whether it has work of its own."""

ASK_EVERY_S = 1.0
"""How often a burst worker without work asks for that of others, after a few quicker requests."""


@dataclass(frozen=True)
class WorkerPlan:
    """The settings of a worker. Times are in seconds."""

    request: TakeRequest
    capacity: Capacity
    shutdown_s: float
    clean_up_s: float
    connect_s: float
    burst: bool
    max_jobs: int | None
    after_execution: AfterExecution | None
    with_beginning: bool = True
    """False if the functions of `Core.beginning` are left out."""
    is_over: Callable[[], Awaitable[bool]] | None = None
    """Asked when a burst worker finds no job. It goes on if the answer is false."""


class WorkerRun:
    """One run of a worker."""

    def __init__(self, app: HasTasks, plan: WorkerPlan) -> None:
        self._app = app
        self._plan = plan
        self._backend = app.backend
        self._handlers = Handlers(app)
        self._acks = Acknowledger(self._backend, self._stored, self._lost, self._unstored)
        journal = Journal()
        self.settler = Settler(app, self._acks, journal, plan.request.worker, plan.after_execution)
        self._executor = Executor(
            app,
            self.settler,
            journal,
            plan.capacity,
            plan.clean_up_s,
            worker_id=plan.request.worker,
            on_free=self._begin_more,
            on_runaways=self._on_runaways,
        )
        self._strangers = UnknownJobs(self._backend, app.core.events)
        self._leaving = Leaving(self._backend, app.core.events, plan.request.worker)
        self._stopping = asyncio.Event()
        self._aborted = asyncio.Event()
        self._supply = Supply(self._backend, plan.request, self._stopping, plan.connect_s)
        # Ids in their order, and the jobs among them that are still wanted.
        self._order: deque[str] = deque()
        self._waiting: dict[str, tuple[Delivery, Handler]] = {}
        self._jobs_left = plan.max_jobs
        self._patience = plan.shutdown_s
        self._deadline: float | None = None
        self._done: asyncio.Future[DrainReport] = asyncio.get_running_loop().create_future()
        self._resuming: set[asyncio.Task[None]] = set()
        self._is_warm = False
        """True once the app's functions for the start have run."""

    # Calls from outside

    def stop(self, patience: float | None) -> None:
        """Begin to drain."""
        if patience is not None:
            self._patience = patience
            self._deadline = None
        self._begin_nothing_more()

    def on_signal(self) -> None:
        """The first signal drains, the second ends everything."""
        if self._stopping.is_set():
            log.warning("stopping at once: jobs that have not finished go back")
            self._aborted.set()
        else:
            log.info("stopping: running jobs may finish")
        self._begin_nothing_more()

    @property
    def counts(self) -> tuple[int, int]:
        """The executions that have finished, and those under way."""
        return self._executor.finished, self._executor.under_way

    async def ended(self) -> DrainReport:
        """Wait for the end."""
        return await asyncio.shield(self._done)

    def leave(self) -> None:
        """Set the end of the run, even if it never began to work."""
        if not self._done.done():
            self._executor.close()
            self._done.set_result(DrainReport(0, []))

    async def run(self) -> DrainReport:
        """Run from the first stream to the last acknowledgement."""
        with watching_tasks(), watching_loop():
            try:
                await self._warm_up()
                keep_loggers()
                await self._supply.open()
                await self._emit("started")
            except BaseException:
                await self._supply.close()
                if self._is_warm:
                    await self._unless_aborted(self._shut_down(), self._last_s())
                raise
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
        core = self._app.core
        beginning = core.beginning if self._plan.with_beginning else ()

        async def warm_up() -> None:
            await self._supply.reach(partial(call_all, beginning))
            await call_all(core.startup)
            self._is_warm = True

        warming = asyncio.create_task(warm_up())
        stopping = asyncio.create_task(self._stopping.wait())
        both = {warming, stopping}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not warming.done():
                raise Unavailable("the worker was stopped before it had opened a stream")
            warming.result()
        finally:
            for task in both:
                task.cancel()
            await asyncio.wait(both, timeout=LEAST_S)

    def _helpers(self) -> list[Coroutine[Any, Any, None]]:
        request = self._plan.request
        helpers = [self._supply.run(self._on_jobs, self._on_lost)]
        helpers += [self._acks.run(), self._strangers.run()]
        events = self._app.core.events
        helpers.append(give_back_tired(self._backend, events, self._behind, self._withdraw))
        if request.lease_ms is not None:
            opened_at = self._supply.opened_at
            helpers.append(
                renew(self._backend, request.lease_ms, self._held, opened_at, self._drop)
            )
        if self._plan.burst:
            helpers.append(self._watch_for_idleness())
        helpers += [_for_ever(companion()) for companion in self._app.core.companions]
        return helpers

    def _on_jobs(self, arrived: Sequence[Delivery | Notice]) -> None:
        resumed: list[Held] = []
        for delivery in arrived:
            if isinstance(delivery, Notice):
                self._on_notice(delivery)
                continue
            execution = self._executor.running.get(delivery.id)
            running = None if execution is None else execution.running
            if running and running.lost is None and follows(delivery, running.delivery):
                # It was delivered again after a stream broke, and still runs here: let it go on.
                running.delivery = delivery
                resumed.append(Held(delivery.id, delivery.lease))
            elif not self._acks.adopt(delivery):
                self._put(delivery)
        lease_ms = self._plan.request.lease_ms
        if resumed and lease_ms is not None:
            task = asyncio.create_task(resume(self._backend, resumed, lease_ms))
            self._resuming.add(task)
            task.add_done_callback(self._resuming.discard)
        self._begin_more()

    def _on_notice(self, notice: Notice) -> None:
        if notice.control == "drain":
            if not self._stopping.is_set():  # else it is the answer to the worker's own request
                self._begin_nothing_more()
        else:
            event: EventName = "cancelled" if notice.control == "cancel" else "stalled"
            self._drop(Held(notice.id, notice.lease), event)

    def _drop(self, held: Held, event: EventName = "requeued") -> None:
        """Do not begin a delivery that has ended; if it runs, stop it."""
        waiting = self._waiting.get(held.id)
        if waiting is not None and waiting[0].lease == held.lease:
            del self._waiting[held.id]
        self._executor.drop(held.id, held.lease, event)

    def _put(self, delivery: Delivery) -> None:
        if self._stopping.is_set() or self._jobs_left == 0:
            self._leaving.add(delivery)
            return
        handler = self._handlers.find(delivery)
        if handler is None or not handler.knows(delivery.payload):
            self._strangers.add(delivery, handler)
            return
        self._waiting[delivery.id] = delivery, handler
        self._order.append(delivery.id)
        if self._jobs_left is not None:
            self._jobs_left -= 1
            if self._jobs_left == 0:
                self._stopping.set()

    def _begin_more(self) -> None:
        """Begin waiting jobs, as many as there is room for."""
        while self._order and self._executor.has_room:
            wanted = self._waiting.pop(self._order.popleft(), None)
            if wanted is not None:
                self._executor.begin(*wanted)

    def _behind(self) -> list[str]:
        """The jobs that could begin in another worker."""
        return [] if self._stopping.is_set() else [*self._waiting]

    def _withdraw(self, id: str) -> Delivery:
        """Take a job that has not begun out of the line, to give it back."""
        delivery, _ = self._waiting.pop(id)
        if self._jobs_left is not None:
            self._jobs_left += 1
        return delivery

    def _on_lost(self) -> None:
        """Drop the jobs that have not begun: their stream has broken, and they will come again."""
        self._leaving.on_lost()
        if self._jobs_left is not None and not self._stopping.is_set():
            self._jobs_left += len(self._waiting)
        self._waiting.clear()

    def _stored(self, ids: Iterable[str]) -> None:
        self.settler.stored(ids)

    async def _lost(self, id: str) -> None:
        await self.settler.lost(id)

    async def _unstored(self, delivery: Delivery, failure: LeasedFailure) -> None:
        await self.settler.unstored(delivery, failure)

    def _held(self) -> list[Held]:
        deliveries = [each.running.delivery for each in self._executor.running.values()]
        deliveries += [delivery for delivery, _ in self._waiting.values()]
        deliveries += self._leaving.unstarted.values()
        return [Held(each.id, each.lease) for each in deliveries]

    def _on_runaways(self) -> None:
        log.error(
            "too many handlers go on although they were told to end: the worker stops, so that it"
            " can be started again"
        )
        self._begin_nothing_more()

    async def _watch_for_idleness(self) -> None:
        """Stop once the server has no job that could be taken now."""
        query = JobQuery(statuses=("ready", "in_flight"), queues=tuple(self._plan.request.queues))
        is_over = self._plan.is_over
        pause = LOOK_EVERY_S
        while True:
            await asyncio.sleep(pause)
            idle = self._executor.is_idle and self._acks.is_idle and self._strangers.is_idle
            if self._waiting or not idle:
                pause = LOOK_EVERY_S
                continue
            pause = min(2 * pause, ASK_EVERY_S)
            try:
                if await self._backend.count(query) == 0:
                    if is_over is None or await is_over():
                        self._begin_nothing_more()
                    pause = LOOK_EVERY_S
            except BackendError as error:
                if not may_pass(error):
                    raise

    # The end

    async def _until_stopped(self, helpers: Sequence[asyncio.Task[None]]) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([stopping, *helpers], return_when=asyncio.FIRST_COMPLETED)
            for task in helpers:
                # None of these tasks ends by itself, except by an error.
                if task.done():
                    task.result()
        finally:
            stopping.cancel()

    def _begin_nothing_more(self) -> None:
        """Return jobs that have not begun, as soon as no others can come in their place."""
        self._stopping.set()
        for delivery, _ in self._waiting.values():
            self._leaving.add(delivery)
        self._waiting.clear()
        self._left_s()

    def _left_s(self) -> float:
        """The time that is left for the stop. If the stop has not begun, it begins now."""
        now = asyncio.get_running_loop().time()
        if self._deadline is None:
            self._deadline = now + self._patience
        return max(self._deadline - now, 0.0)

    @property
    def _clean_up_s(self) -> float:
        """The part of that time for the clean-up of jobs that must be ended."""
        return min(self._plan.clean_up_s, CLEAN_UP_SHARE * self._patience)

    async def _drain(self) -> None:
        """Let running jobs finish, and as many more as were requested."""

        async def finish() -> None:
            await self._leaving.return_unstarted()
            returning = asyncio.create_task(self._leaving.return_what_comes())
            try:
                await asyncio.sleep(0)  # Python tells of a coroutine that ends before it has begun
                while self._waiting or not self._executor.is_idle:
                    await self._executor.idle()
            finally:
                returning.cancel()

        time_for_it = self._left_s() - self._clean_up_s
        if time_for_it > 0 and not self._aborted.is_set():
            await self._unless_aborted(finish(), time_for_it)

    async def _end(self, helpers: Sequence[asyncio.Task[None]]) -> DrainReport:
        """End everything, whatever handlers do. Each step has its own time."""
        executor = self._executor
        try:
            self._begin_nothing_more()
            await self._unless_aborted(self._leaving.ask_for_no_more(), self._last_s())
            if not self._aborted.is_set():
                await self._end_all(max(LEAST_S, self._clean_up_s))
            if self._aborted.is_set():
                await self._end_all(LEAST_S)
            await self._unless_aborted(self._last_posts(), self._last_s())
            await self._unless_aborted(self._shut_down(), self._last_s())
            await self._leaving.give_back(executor.unfinished, self._last_s())
        finally:
            for task in helpers:
                task.cancel()
            executor.close()
            await asyncio.wait(helpers, timeout=LEAST_S)
            await self._supply.close()
            returned = [*self._leaving.returned]
            report = DrainReport(
                executor.finished, returned, executor.stuck, self._aborted.is_set()
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
        await self.settler.told()

    async def _shut_down(self) -> None:
        await self._executor.shut_down(LAST_POSTS_S)
        try:
            await call_all(self._app.core.shutdown)
        except BaseException as error:
            if ends_task(error):
                raise
            await self._app.core.events.emit(Event("error", exception=error))

    def _last_s(self) -> float:
        if self._aborted.is_set():
            return LEAST_S
        return max(LEAST_S, min(LAST_POSTS_S, self._left_s()))

    async def _unless_aborted(self, work: Coroutine[Any, Any, None], seconds: float) -> None:
        """Wait this long for a task. End the wait if the worker must stop at once."""
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

    async def _emit(self, name: EventName) -> None:
        await self._app.core.events.emit(Event(name))


async def _for_ever(companion: Coroutine[Any, Any, None]) -> None:
    """Run a companion of the worker, which goes on when the companion ends."""
    await companion
    await asyncio.Event().wait()
