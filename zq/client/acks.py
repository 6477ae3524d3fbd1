"""Acknowledgements in bulk: while one post is under way, the next one gathers.

Nothing waits for company: what finishes while no post is under way is posted at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from zq.client.backend import Backend
from zq.client.errors import StaleLease, Unavailable, ZqError
from zq.client.transport import jittered
from zq.client.values import Delivery, LeasedFailure, Refused, Success

log = logging.getLogger("zq.worker")

MOST_IN_A_POST = 2_500


class Acknowledger:
    """Sends successes, in one task, and tries until the server has answered."""

    def __init__(self, backend: Backend, on_lost: Callable[[str], Awaitable[None]]) -> None:
        """`on_lost` hears of acknowledgements that came too late."""
        self._backend = backend
        self._on_lost = on_lost
        self._pending: dict[str, Success] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, success: Success) -> None:
        """Send it with the next post."""
        self._pending[success.id] = success
        self._idle.clear()
        self._wake.set()

    def adopt(self, delivery: Delivery) -> bool:
        """Whether a job that is delivered again is done already, and only to be acknowledged.

        That is so where the first delivery ended, by a broken stream, before its post.
        """
        done = self._pending.get(delivery.id)
        if done is None:
            return False
        done.lease = delivery.lease
        return True

    @property
    def is_idle(self) -> bool:
        """Whether everything that was added is settled."""
        return self._idle.is_set()

    async def drained(self) -> None:
        """Wait until everything that was added is settled."""
        await self._idle.wait()

    async def run(self) -> None:
        """Post for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._pending:
                await self._post(self._batch())
            self._idle.set()

    def _batch(self) -> list[Success]:
        if len(self._pending) <= MOST_IN_A_POST:
            batch, self._pending = list(self._pending.values()), {}
            return batch
        ids = list(self._pending)[:MOST_IN_A_POST]
        return [self._pending.pop(id) for id in ids]

    async def _post(self, batch: Sequence[Success]) -> None:
        try:
            refused = await persistently(lambda: self._backend.succeed(batch))
        except ZqError as error:
            await self._apart(batch, error)
        else:
            for id in (*refused.stale, *refused.not_found) if refused else ():
                await self._on_lost(id)

    async def _apart(self, batch: Sequence[Success], error: ZqError) -> None:
        """One of the batch is to blame, by its result: find it, and report it as failed."""
        if len(batch) > 1:
            half = len(batch) // 2
            await self._post(batch[:half])
            await self._post(batch[half:])
            return
        (success,) = batch
        failure = LeasedFailure(
            f"the result cannot be stored: {error.message}",
            "ResultNotSerializable",
            kill=True,
            lease=success.lease,
        )
        await report(self._backend, success.id, failure, self._on_lost)


async def report(
    backend: Backend,
    id: str,
    failure: LeasedFailure,
    on_lost: Callable[[str], Awaitable[None]],
) -> bool:
    """Report a failure until the server has answered; whether it counts."""
    try:
        await persistently(lambda: backend.fail(id, failure))
    except StaleLease:
        await on_lost(id)
        return False
    except ZqError as error:
        log.error("the failure of %s is not stored: %s", id, error)
        return False
    return True


async def persistently(send: Callable[[], Awaitable[Refused | object]]) -> Refused:
    """Try for as long as the cause is a passing one. Raises what is not."""
    attempt = 0
    while True:
        try:
            answer = await send()
        except Unavailable as error:
            log.warning("trying again: %s", error)
            await asyncio.sleep(jittered(attempt))
            attempt += 1
        else:
            return answer if isinstance(answer, Refused) else Refused()
