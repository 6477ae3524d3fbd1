"""Renews deliveries while they are held, and returns jobs."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from zq.client.backend import Backend
from zq.client.errors import ZqError
from zq.client.events import Event, Listeners
from zq.client.values import Delivery, Held
from zq.client.worker.acks import MOST_IN_A_POST, persistently
from zq.client.worker.handlers import Handler

log = logging.getLogger("zq.worker")

RENEWALS_PER_LEASE = 3

PAUSE_S = 10.0
"""How long a job of an unknown task waits before any worker gets it."""

EVERY_S = 60.0

MOST_KNOWN = 1_000
"""The most keys that are counted separately. Beyond that, the counts start over."""


async def renew(
    backend: Backend,
    lease_ms: int,
    held: Callable[[], list[Held]],
    opened_at: Callable[[], float | None],
    on_ended: Callable[[Held], None],
) -> None:
    """Renew held deliveries while this event loop runs. `on_ended` gets those that have ended.

    A renewal may take until the next one is due: a connection that says nothing costs one of them.

    `opened_at` tells when the present stream was opened, if there is one. When a stream breaks, its
    deliveries end, and those that run here come again over the next one. They have one period to
    do so: until then, a refusal does not mean that another worker has them.
    """
    loop, period = asyncio.get_running_loop(), lease_ms / 1000 / RENEWALS_PER_LEASE
    due = loop.time()
    while True:
        due = max(due + period, loop.time())
        await asyncio.sleep(due - loop.time())
        deliveries = held()
        if not deliveries or opened_at() is None:
            continue
        asked_at = loop.time()
        try:
            async with asyncio.timeout_at(due + period):
                refused = await backend.extend(deliveries, lease_ms)
        except (ZqError, TimeoutError) as error:
            log.warning("the leases could not be renewed: %s", str(error) or "it took too long")
            continue
        opened = opened_at()
        if opened is None or asked_at < opened + period:
            continue
        ended = {*refused.stale, *refused.not_found}
        for each in deliveries:
            if each.id in ended:
                on_ended(each)


async def resume(backend: Backend, held: Sequence[Held], lease_ms: int) -> None:
    """Tell that jobs go on although their stream broke: their worker has not died."""
    try:
        await backend.extend(held, lease_ms, resumed=True)
    except ZqError as error:
        log.warning("a broken connection counts as an ended worker: %s", error)


async def give_back(
    backend: Backend, events: Listeners, unfinished: Sequence[Delivery], seconds: float
) -> list[str]:
    """Give jobs back. Return their ids. If this takes too long, the end of the stream does it."""
    if not unfinished:
        return []
    try:
        async with asyncio.timeout(seconds):
            await backend.release([Held(each.id, each.lease) for each in unfinished])
    except (ZqError, TimeoutError) as error:
        log.debug("jobs could not be given back, and go back with the stream: %s", error)
    await tell_returned(events, unfinished)
    return [each.id for each in unfinished]


async def hand_back(
    backend: Backend, events: Listeners, jobs: Sequence[Delivery], delay_ms: int = 0
) -> None:
    """Give jobs back, until the server has answered, and tell listeners."""
    held = [Held(each.id, each.lease) for each in jobs]
    await persistently(partial(backend.release, held, delay_ms))
    await tell_returned(events, jobs)


async def tell_returned(events: Listeners, gone: Sequence[Delivery]) -> None:
    """Tell listeners of jobs that went back unfinished."""
    if events.wanted("requeued"):
        for each in gone:
            await events.emit(Event("requeued", each.queue, each.id, each.unique_key))


class UnknownJobs:
    """Jobs of tasks, or with arguments, that this worker does not know.

    They go back for another worker, after a pause.

    No attempt is spent. During the rollout of a new version of an app, its jobs also reach workers
    of the old version.
    """

    def __init__(self, backend: Backend, events: Listeners) -> None:
        self._backend = backend
        self._events = events
        self._limiter = LogLimiter()
        self._waiting: list[Delivery] = []
        self._wake = asyncio.Event()
        self.is_idle = True
        """True if all have gone back."""

    def add(self, delivery: Delivery, handler: Handler | None = None) -> None:
        """Return a job with the next request. Log it at most once a minute for each task.

        A `handler` is that of the task, and has no parameters for the arguments.
        """
        if times := self._limiter.count(delivery.type):
            missing = f"neither a task {delivery.type!r} nor a handler for {delivery.queue!r}"
            if handler is not None:
                missing = f"no parameters in {handler.name} for the arguments of {delivery.id}"
            log.warning(
                "this worker has %s: %s back to the queue, and no worker gets it for %g s; this"
                " does not count as an attempt",
                *(missing, "a job goes" if times == 1 else f"{times} jobs have gone", PAUSE_S),
            )
        self._waiting.append(delivery)
        self.is_idle = False
        self._wake.set()

    async def run(self) -> None:
        """Return jobs for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch = self._waiting[:MOST_IN_A_POST]
                del self._waiting[:MOST_IN_A_POST]
                await hand_back(self._backend, self._events, batch, round(PAUSE_S * 1000))
            self.is_idle = True


class LogLimiter:
    """Counts how often something happens, and limits how often it is logged."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, int]] = {}
        """The time at which each thing was logged, and how often it has happened since."""

    def count(self, thing: str) -> int:
        """How often it has happened since the last log line, if it is time to log it; else 0."""
        now = self._clock()
        told, times = self._known.get(thing, (now - EVERY_S, 0))
        due = now - told >= EVERY_S
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[thing] = (now, 0) if due else (told, times + 1)
        return times + 1 if due else 0
