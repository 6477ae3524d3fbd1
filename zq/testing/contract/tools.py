"""Helpers that the parts of the suite share."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from zq.client.backend import Backend, EventStream, TakeStream
from zq.client.values import (
    MISSING,
    Delivery,
    JobEvent,
    StoredJob,
    Submission,
    Success,
    TakeRequest,
)
from zq.model.job import Retention

PATIENCE_S = 30.0
"""The limit for things that have to happen. A good backend needs a fraction of it."""

EMPTY_S = 0.1
"""How long a test watches that something does not happen."""

KEPT = Retention(completed_ms=60_000, dead_ms=60_000)


def submission(payload: Any = None, **fields: Any) -> Submission:
    """A job of the queue `q` that is retained when it is finished."""
    return Submission("q", "work", payload, **{"retention": KEPT, **fields})


async def stored(backend: Backend, *payloads: Any, **fields: Any) -> list[StoredJob]:
    """Jobs with these payloads, enqueued together."""
    return await backend.enqueue([submission(payload, **fields) for payload in payloads])


def success(delivery: Delivery, result: Any = MISSING) -> Success:
    """The acknowledgement of a delivery."""
    return Success(delivery.id, delivery.lease, result)


async def heard(stream: EventStream, count: int) -> list[JobEvent]:
    """At least `count` events of a stream."""
    found: list[JobEvent] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < count:
            found += await stream.events()
    return found


class Taking:
    """Streams of the queue `q`. They end with the test."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._streams: list[TakeStream] = []

    async def open(self, prefetch: int = 1, lease_ms: int | None = None) -> TakeStream:
        """Open one more stream."""
        stream = await self._backend.take(TakeRequest(("q",), prefetch, lease_ms=lease_ms))
        self._streams.append(stream)
        return stream

    async def jobs(self, count: int = 1) -> list[Delivery]:
        """Receive `count` jobs from a new stream."""
        return await self.more(await self.open(count), count)

    async def more(self, stream: TakeStream, count: int = 1) -> list[Delivery]:
        """Receive `count` jobs from a stream."""
        found: list[Delivery] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < count:
                arrived = await stream.deliveries()
                found += [each for each in arrived if isinstance(each, Delivery)]
        return found

    async def close(self) -> None:
        for stream in self._streams:
            await stream.close()


class Contract:
    """The fixtures that all parts of the suite share."""

    @pytest.fixture
    def backend(self) -> Any:
        raise NotImplementedError("give the subclass a fixture `backend`")

    @pytest.fixture
    async def taking(self, backend: Backend) -> AsyncIterator[Taking]:
        taking = Taking(backend)
        yield taking
        await taking.close()
