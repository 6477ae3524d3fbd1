"""The verbs about watch sessions: readers that follow many topics, and come back.

A session is in memory only. It is what a reader knows too, and a server that has started anew asks
for another one.
"""

import asyncio
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, Self

from zq.doors.topics.engine import TopicReaders, TopicWatcher
from zq.doors.topics.errors import TooManyWatches, TopicNotFound, WatchNotFound
from zq.doors.topics.model import PageWanted, TopicPage, TopicState, check_nodes
from zq.doors.topics.model_watching import (
    MAX_SESSIONS,
    SESSION_TTL_MS,
    WatchWanted,
    check_watched,
    rewound,
)
from zq.doors.topics.store import TopicReads
from zq.model.clock import Clock, Timer
from zq.model.reach import Reach
from zq.service.services import Services
from zq.store.api import Store


class WatchSession:
    """A session, and how far its reader has come in each topic."""

    def __init__(self, wanted: WatchWanted, cursors: dict[str, int], owner: object) -> None:
        self.id = f"wid_{secrets.token_urlsafe(16)}"
        self.wanted = wanted
        self.cursors = cursors
        self.owner = owner
        """The sender who has made the session. A door compares it with the sender of a request."""
        self.watcher: TopicWatcher | None = None
        """The reader that follows it now."""
        self.timer: Timer | None = None


class WatchMade(NamedTuple):
    """A new session, and how its topics stand."""

    session: WatchSession
    states: Mapping[str, TopicState]


class Watches:
    """Watch sessions by their ids."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The watch sessions of a server."""
        return cls(services.store, services.clock, services.engine[TopicReaders])

    def __init__(self, store: Store, clock: Clock, readers: TopicReaders) -> None:
        self._reads = store.reads.of(TopicReads)
        self._clock = clock
        self._readers = readers
        self._sessions: dict[str, WatchSession] = {}
        self._readings: dict[tuple[str, PageWanted, int], asyncio.Future[TopicPage | None]] = {}
        """The pages that are being read."""

    def __len__(self) -> int:
        return len(self._sessions)

    async def make(
        self, wanted: WatchWanted, reach: Reach, owner: object, *, lenient: bool = False
    ) -> WatchMade:
        """Make a session. If it is `lenient`, topics that are not there are left out.

        Raises `TopicNotFound`, `TooManyWatches`, or `QueueOutOfReach` for the first topic that the
        caller may not see.
        """
        check_watched(wanted.topics)
        check_nodes(wanted.nodes)
        reach.require(wanted.topics)
        if len(self._sessions) >= MAX_SESSIONS:
            raise TooManyWatches(MAX_SESSIONS)
        states: dict[str, TopicState] = {}
        for topic in wanted.topics:
            state = await self._reads.topic(topic, self._clock.now_ms())
            if state is not None:
                states[topic] = state
            elif not lenient:
                raise TopicNotFound(topic)
        cursors = {
            topic: state.head_seq if wanted.topics[topic].tail else wanted.topics[topic].after
            for topic, state in states.items()
        }
        session = WatchSession(wanted, cursors, owner)
        self._sessions[session.id] = session
        self._expect(session)
        return WatchMade(session, states)

    def session(self, id: str) -> WatchSession:
        """The session with this id. Raises `WatchNotFound`."""
        found = self._sessions.get(id)
        if found is None:
            raise WatchNotFound
        return found

    @contextmanager
    def follow(self, session: WatchSession, told: Mapping[str, int]) -> Iterator[TopicWatcher]:
        """A reader of a session within the context. The one before it ends.

        `told` has cursors to which the reader wants to go back.
        """
        if session.watcher is not None:
            session.watcher.end()
        if session.timer is not None:
            session.timer.cancel()
        session.cursors = rewound(session.cursors, told)
        with self._readers.watcher(session.cursors) as watcher:
            session.watcher = watcher
            try:
                yield watcher
            finally:
                if session.watcher is watcher:
                    session.watcher = None
                    self._expect(session)

    async def read(self, session: WatchSession, topic: str) -> TopicPage | None:
        """The next page of a topic, None if there is no such topic any more."""
        wanted = session.wanted
        place = PageWanted(session.cursors[topic], wanted.limit, wanted.nodes, wanted.most_bytes)
        # Thousands of readers may be woken at once, and most of them want the same page. One that
        # was woken later must not get a page from before.
        key = (topic, place, self._readers.version)
        reading = self._readings.get(key)
        if reading is None:
            page = self._reads.page(topic, place, self._clock.now_ms(), awaited=True)
            reading = self._readings[key] = asyncio.ensure_future(page)
            reading.add_done_callback(lambda _: self._readings.pop(key))
        return await asyncio.shield(reading)

    def _expect(self, session: WatchSession) -> None:
        """Forget a session if nobody reads it in time."""

        def forget() -> None:
            self._sessions.pop(session.id, None)

        session.timer = self._clock.call_later(SESSION_TTL_MS / 1000, forget)
