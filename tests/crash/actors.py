"""The common parts of the laboratory's clients: a notebook and a random choice of actions.

What a client does is drawn from its seed; how clients interleave is not.
"""

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from typing import Any

import httpx
from conformance.client import Client, Reply

from .history import (
    Cancel,
    Enqueue,
    Event,
    Failure,
    History,
    Listing,
    Outcome,
    Redrive,
    Retry,
    Success,
)
from .world import UNFINISHED

SHARED = ("a", "b", "c")
SINGLE = "d"
"""A queue that has one worker in some lives: what it gets can be judged for its order."""

LIMITED = "e"
"""Has bounds on jobs in flight and on those that wait."""
DYING, MOURNING = "f", "g"
"""Has a rate, and its dead go to the other one, which is paused in half of the lives."""

QUEUES = (*SHARED, SINGLE, LIMITED, DYING)
"""Those that jobs are stored in."""
STALLING = "c"
"""The only queue where jobs may die of stalls, which nobody need see."""


class Notebook:
    """The history, and what all clients of a test know beyond it."""

    def __init__(self, first: int = 1) -> None:
        self.history = History()
        self.unfinished = 0
        self._names = itertools.count(first)
        self._streams = itertools.count(first)
        self._goal = 0
        self._reached = asyncio.Event()

    def add(self, event: Event) -> None:
        self.history.add(event)
        match event:
            case Enqueue(outcome=Outcome.OK):
                self.unfinished += 1
            case (
                Success(outcome=Outcome.OK)
                | Failure(outcome=Outcome.OK, final=True)
                | Cancel(outcome=Outcome.OK)
            ):
                self.unfinished -= 1
            case Retry(outcome=Outcome.OK):
                self.unfinished += 1
            case Redrive(outcome=Outcome.OK):
                self.unfinished += event.count
            case Listing():  # some have ended by themselves
                statuses = [shown.status for shown in event.jobs.values()]
                self.unfinished = sum(status in UNFINISHED for status in statuses)
        if len(self.history) >= self._goal:
            self._reached.set()

    async def grows_by(self, events: int) -> None:
        """Wait until so many more things have happened."""
        self._goal = len(self.history) + events
        self._reached.clear()
        await self._reached.wait()

    def try_to(self, settlements: Sequence[Success | Failure]) -> None:
        """Hear what a client is about to ask for, before anybody knows how it ends."""

    def new_name(self) -> str:
        return f"job-{next(self._names)}"

    def new_stream(self) -> int:
        return next(self._streams)


def outcome(reply: Reply | None, *, done: Sequence[int], refused: Sequence[int]) -> Outcome:
    """What an answer means, None standing for none. Any other answer is a fault in itself."""
    if reply is None:
        return Outcome.UNKNOWN
    if reply.status in done:
        return Outcome.OK
    assert reply.status in refused, (reply.status, reply.body)
    return Outcome.REFUSED


class Actor(ABC):
    """A client with a connection pool and a will of its own."""

    def __init__(self, client: Client, notebook: Notebook, random: Random) -> None:
        self.client = client
        self.notebook = notebook
        self.random = random
        self.alone = False
        """Whether the server has gone away."""

    @abstractmethod
    async def run(self) -> None:
        """Do as it likes until the server has gone away."""

    async def post(self, target: str, document: Any = ...) -> Reply | None:
        """The answer, or None if there is none. Without a document the request has no body."""
        return await self.send("POST", target, document)

    async def send(self, method: str, target: str, document: Any = ...) -> Reply | None:
        """As `post`, by any method."""
        wire = self.client.wire
        try:
            if document is ...:
                return await self.client.send(method, target)
            headers = {"content-type": wire.media_type}
            return await self.client.send(method, target, wire.encode(document), headers)
        except httpx.TransportError:
            self.alone = True
            return None
