"""Keeping hold of deliveries, and letting go of them in good order."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from zq.client.backend import Backend
from zq.client.errors import ZqError
from zq.client.events import Event, Events
from zq.client.values import Delivery, Held

log = logging.getLogger("zq.worker")

RENEWALS_PER_LEASE = 3

GIVING_BACK_S = 5.0
"""How long to try to give jobs back by name. The end of the stream does so too."""


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


async def give_back(backend: Backend, events: Events, unfinished: Sequence[Delivery]) -> list[str]:
    """Let go of jobs; their ids."""
    if not unfinished:
        return []
    try:
        async with asyncio.timeout(GIVING_BACK_S):
            await backend.release([Held(each.id, each.lease) for each in unfinished])
    except (ZqError, TimeoutError) as error:
        log.debug("jobs go back with the stream: %s", error)
    if events.wanted("requeued"):
        for each in unfinished:
            await events.emit(Event("requeued", each.queue, each.id, each.unique_key))
    return [each.id for each in unfinished]
