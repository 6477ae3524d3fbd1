"""Keeping hold of deliveries, and letting go of them in good order."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from zq.client.acks import MOST_IN_A_POST, persistently
from zq.client.backend import Backend
from zq.client.errors import ZqError
from zq.client.events import Event, Events
from zq.client.seldom import Seldom
from zq.client.values import Delivery, Held

log = logging.getLogger("zq.worker")

RENEWALS_PER_LEASE = 3

PAUSE_S = 10.0
"""How long a job of a task that is not known here waits before any worker gets it."""


async def renew(
    backend: Backend,
    lease_ms: int,
    held: Callable[[], list[Held]],
    on_ended: Callable[[Held], None],
) -> None:
    """Hold what is held for as long as this event loop lives; `on_ended` hears of what is not."""
    while True:
        await asyncio.sleep(lease_ms / 1000 / RENEWALS_PER_LEASE)
        deliveries = held()
        if not deliveries:
            continue
        try:
            refused = await backend.extend(deliveries, lease_ms)
        except ZqError as error:
            log.warning("leases are not renewed: %s", error)
            continue
        ended = {*refused.stale, *refused.not_found}
        for each in deliveries:
            if each.id in ended:
                on_ended(each)


async def give_back(
    backend: Backend, events: Events, unfinished: Sequence[Delivery], seconds: float
) -> list[str]:
    """Let go of jobs; their ids. The end of the stream does so too, where this takes too long."""
    if not unfinished:
        return []
    try:
        async with asyncio.timeout(seconds):
            await backend.release([Held(each.id, each.lease) for each in unfinished])
    except (ZqError, TimeoutError) as error:
        log.debug("jobs go back with the stream: %s", error)
    await _tell(events, unfinished)
    return [each.id for each in unfinished]


async def _tell(events: Events, gone: Sequence[Delivery]) -> None:
    if events.wanted("requeued"):
        for each in gone:
            await events.emit(Event("requeued", each.queue, each.id, each.unique_key))


class Strangers:
    """Jobs of tasks that this worker does not know: they go back for another, after a pause.

    No attempt is spent on them. While a new version of an app is rolled out, its jobs come to
    workers of the old one.
    """

    def __init__(self, backend: Backend, events: Events) -> None:
        self._backend = backend
        self._events = events
        self._seldom = Seldom()
        self._waiting: list[Delivery] = []
        self._wake = asyncio.Event()
        self.is_idle = True
        """Whether all have gone back."""

    def add(self, delivery: Delivery) -> None:
        """Give it back with the next request; say so once a minute for each task."""
        if times := self._seldom.count(delivery.type):
            log.warning(
                "this worker has no task %r, and no handler of the queue %r: %s back for another"
                " worker, not to be delivered for %g s; it counts as no attempt",
                *(delivery.type, delivery.queue),
                *("a job goes" if times == 1 else f"{times} jobs have gone", PAUSE_S),
            )
        self._waiting.append(delivery)
        self.is_idle = False
        self._wake.set()

    async def run(self) -> None:
        """Give back for ever. Raises a `BackendError` that does not pass."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch = self._waiting[:MOST_IN_A_POST]
                del self._waiting[:MOST_IN_A_POST]
                held = [Held(each.id, each.lease) for each in batch]
                await persistently(partial(self._backend.release, held, round(PAUSE_S * 1000)))
                await _tell(self._events, batch)
            self.is_idle = True
