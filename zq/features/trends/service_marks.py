"""The verbs about marks: moments to which operators give a name, such as a deployment."""

import asyncio
from typing import Self

import msgspec

from zq.engine.inbox import Inbox
from zq.features.trends.model import TimeMark
from zq.model.clock import Clock
from zq.model.commands import WriteNote
from zq.model.errors import InvalidRequest
from zq.service.services import Services
from zq.store.api import Store

NOTE = "marks"
"""The name under which they are stored."""

MOST_MARKS = 100
MOST_CHARACTERS = 200


class Marks:
    """The latest marks, the oldest first."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The marks of a server."""
        return cls(services.store, services.clock, services.engine.inbox)

    def __init__(self, store: Store, clock: Clock, inbox: Inbox) -> None:
        self._reads = store.reads
        self._clock = clock
        self._inbox = inbox
        self._writing = asyncio.Lock()

    async def since(self, at: int) -> list[TimeMark]:
        """The marks from a time on, in milliseconds."""
        return [mark for mark in await self._all() if mark.at >= at]

    async def add(self, text: str) -> TimeMark:
        """Mark this moment. The oldest mark makes room. Raises `InvalidRequest`."""
        if not text.strip() or len(text) > MOST_CHARACTERS:
            raise InvalidRequest(f"`text` must have 1 to {MOST_CHARACTERS} characters")
        mark = TimeMark(self._clock.now_ms(), text)
        async with self._writing:
            marks = [*await self._all(), mark][-MOST_MARKS:]
            await self._inbox.ask(WriteNote(NOTE, msgspec.json.encode(marks).decode()))
        return mark

    async def _all(self) -> list[TimeMark]:
        return await self._reads.noted(NOTE, list[TimeMark]) or []
