"""The verbs about topics: their lives, records, routers, and sessions of readers of many topics.

A session is in memory only. It is what a reader knows too, and a server that has started anew asks
for another one.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple, Self

import msgspec

from zq.doors.topics.commands import (
    Append,
    Appended,
    DeleteRecords,
    DeleteRouter,
    DeleteTopic,
    PutRouter,
    PutTopic,
    RecordsDeleted,
    RouterPut,
    TopicDeleted,
    TopicPut,
)
from zq.doors.topics.engine import TopicReaders, TopicWaiter, TopicWatcher
from zq.doors.topics.errors import (
    RouterNotFound,
    TooManyWatches,
    TopicIsQueue,
    TopicNotFound,
    WatchNotFound,
)
from zq.doors.topics.model import (
    DEFAULT_CONFIG,
    MAX_SESSIONS,
    NO_PATCH,
    SESSION_TTL_MS,
    USUAL_PAGE_BYTES,
    NewRecord,
    PageWanted,
    TagMatch,
    TopicPage,
    TopicPatch,
    TopicState,
    WatchWanted,
    check_batch_size,
    check_nodes,
    check_topic,
    check_watched,
    configured,
    rewound,
)
from zq.doors.topics.model_routers import (
    RouterConfig,
    RoutersWanted,
    TopicRouter,
    check_ends,
    check_router,
)
from zq.doors.topics.store import TopicReads
from zq.engine.inbox import Admission, Inbox
from zq.features.producers.model import ProducerMark
from zq.features.schemas.service_running import PayloadChecks
from zq.model.clock import Clock, Timer
from zq.model.errors import InvalidRequest, ZqError
from zq.model.ids import Mint
from zq.model.reach import Reach
from zq.service.services import Services
from zq.store.api import Store


class RecordsWanted(NamedTuple):
    """A reader's request: up to `limit` records behind `after`, without those of some nodes.

    Where there is none yet, it waits for one.
    """

    after: int = 0
    limit: int = 256
    nodes: Sequence[str] = ()
    wait_ms: int = 0
    most_bytes: int = USUAL_PAGE_BYTES


EndWith = Callable[[Callable[[], object]], AbstractContextManager[None]]
"""Makes a context in which the function it is given may be called, to end a wait early."""


class Topics:
    """Topics by name. A name out of reach is refused: `QueueOutOfReach`."""

    @classmethod
    def of(cls, services: Services) -> Self:
        engine = services.engine
        return cls(
            engine.store,
            engine.clock,
            engine.inbox,
            engine[TopicReaders],
            engine.admission,
            engine.mint,
            services[PayloadChecks],
            engine.settings.max_payload,
        )

    def __init__(
        self,
        store: Store,
        clock: Clock,
        inbox: Inbox,
        readers: TopicReaders,
        admission: Admission,
        mint: Mint,
        checks: PayloadChecks,
        max_payload: int,
    ) -> None:
        self._reads = store.reads.of(TopicReads)
        self._checks = checks
        self._max_payload = max_payload
        self._mint = mint
        self._queues: set[str] = set()
        """Names of topics that were seen to be queues. Some may be those of logs by now."""
        self._clock = clock
        self._inbox = inbox
        self._readers = readers
        self._admission = admission
        self._read_at: dict[str, int] = {}
        self.until_dropped = readers.until_dropped
        """Has a function called within a context whenever a topic is deleted."""

    async def page(self, prefix: str, after: str, limit: int, reach: Reach) -> list[TopicState]:
        """Up to `limit` topics behind a name, in the order of their names."""
        return await self._reads.topics(prefix, after, limit, reach, self._clock.now_ms())

    async def count(self) -> int:
        return await self._reads.count()

    async def get(self, name: str, reach: Reach) -> TopicState:
        """One topic. Raises `TopicNotFound`."""
        reach.require([check_topic(name)])
        state = await self._reads.topic(name, self._clock.now_ms())
        if state is None:
            raise TopicNotFound(name)
        return state

    async def put(self, name: str, patch: TopicPatch, reach: Reach) -> TopicPut:
        """Create or change a topic. Raises `TopicIncompatible` or `TooManyTopics`."""
        reach.require([check_topic(name), patch])
        return await self._inbox.ask(PutTopic(name, patch))

    async def delete(self, name: str, reach: Reach, *, if_empty: bool = False) -> TopicDeleted:
        """Delete a topic and its routers. Raises `TopicNotEmpty`."""
        reach.require([check_topic(name)])
        self._read_at.pop(name, None)
        self._queues.discard(name)
        return await self._inbox.ask(DeleteTopic(name, if_empty))

    async def append(
        self,
        name: str,
        records: Sequence[NewRecord],
        reach: Reach,
        *,
        key: str | None = None,
        create: TopicPatch | None = NO_PATCH,
        mark: ProducerMark | None = None,
    ) -> Appended:
        """Append records. A topic that is not there is created with `create`, unless that is None.

        A write is recognised by its `key` for a time, or by its producer's `mark` for ever. Raises
        `InvalidRequest` for both, `TopicNotFound`, `TopicFull`, `TooManyTopics`, `PayloadTooLarge`,
        `SchemaMismatch` or `TooManyCompared`, the errors of producers, or that there is no room on
        the disk.
        """
        if key is not None and mark is not None:
            raise InvalidRequest(
                "a write is recognised by an idempotency key or by its producer's numbers: send"
                " one of the two"
            )
        reach.require([check_topic(name), create or NO_PATCH])
        check_batch_size(len(records))
        size = sum([record.size for record in records])
        config = None if create is None else configured(name, DEFAULT_CONFIG, create)
        self._admission.admit(len(records), size)
        self._readers.listens = True
        new = Append(name, records, size, config, key, mark=mark, most_payload=self._max_payload)
        if name in self._queues or (config is not None and config.type == "queue"):
            return await self._append_jobs(new)
        try:
            return await self._inbox.ask(new)
        except TopicIsQueue:
            self._queues.add(name)
            return await self._append_jobs(new)

    async def read(
        self, name: str, wanted: RecordsWanted, reach: Reach, until: EndWith | None = None
    ) -> TopicPage:
        """A page of records, as soon as there is one. Raises `TopicNotFound`."""
        check_nodes(wanted.nodes)
        reach.require([check_topic(name)])
        if not wanted.wait_ms:
            return await self._page(name, wanted)
        with (
            self._readers.waiter(name, wanted.wait_ms) as waiter,
            nullcontext() if until is None else until(waiter.end),
        ):
            return await self._patiently(name, wanted, waiter)

    async def delete_records(
        self, name: str, match: TagMatch | None, before: int | None, reach: Reach
    ) -> RecordsDeleted:
        """Delete the records that match, of those that there are by now, slice by slice.

        Raises `TopicNotFound`.
        """
        reach.require([check_topic(name)])
        total, command = 0, DeleteRecords(name, match, before)
        while True:
            part = await self._inbox.ask(command)
            total += part.deleted
            if part.is_done:
                return RecordsDeleted(total, part.upto, True, part.state)
            command = DeleteRecords(name, match, before, part.upto, part.state.id)

    def touch(self, name: str) -> None:
        """Note that somebody has looked at a topic."""
        self._read_at[name] = self._clock.now_ms()

    def read_at(self, name: str) -> int | None:
        """When somebody has looked at a topic last, since the server has started."""
        return self._read_at.get(name)

    async def _append_jobs(self, new: Append) -> Appended:
        """Append records that may become jobs, which need keys; a log leaves the keys unused."""
        if new.topic in self._checks.schemas:
            payloads = [(new.topic, record.data) for record in new.records]
            try:
                await self._checks.require(payloads, "records")
            except ZqError:
                if await self._comes_to_queue(new):
                    raise
        keys = self._mint.take(len(new.records), self._clock.now_ms())
        return await self._inbox.ask(msgspec.structs.replace(new, keys=keys))

    async def _comes_to_queue(self, new: Append) -> bool:
        """True if the records' topic is a queue, or becomes one by this write."""
        state = await self._reads.topic(new.topic, self._clock.now_ms())
        config = new.create if state is None else state.config
        return config is not None and config.type == "queue"

    async def _patiently(self, name: str, wanted: RecordsWanted, waiter: TopicWaiter) -> TopicPage:
        awaited = False
        while True:
            page = await self._page(name, wanted, awaited=awaited)
            if page.records or page.loss is not None or waiter.ended:
                return page
            # What was passed over is not looked at again.
            wanted = wanted._replace(after=page.next_seq)
            if page.next_seq >= page.head_seq:
                await waiter.wait()
            awaited = True

    async def _page(self, name: str, wanted: RecordsWanted, *, awaited: bool = False) -> TopicPage:
        place = PageWanted(wanted.after, wanted.limit, wanted.nodes, wanted.most_bytes)
        page = await self._reads.page(name, place, self._clock.now_ms(), awaited=awaited)
        if page is None:
            raise TopicNotFound(name)
        return page


class Routers:
    """Routers by name. A router is within reach if both of its ends are.

    One whose ends are out of reach is refused: `QueueOutOfReach`. Lists leave it out.
    """

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store, services.engine.inbox)

    def __init__(self, store: Store, inbox: Inbox) -> None:
        self._reads = store.reads.of(TopicReads)
        self._inbox = inbox

    async def page(self, wanted: RoutersWanted, reach: Reach) -> list[TopicRouter]:
        """Routers behind a name, in the order of their names."""
        return await self._reads.routers(wanted, reach)

    async def count(self) -> int:
        return await self._reads.count_routers()

    async def get(self, name: str, reach: Reach) -> TopicRouter:
        """One router. Raises `RouterNotFound`."""
        found = await self._reads.router(check_router(name))
        if found is None:
            raise RouterNotFound(name)
        reach.require([found.config])
        return found

    async def put(self, name: str, config: RouterConfig, reach: Reach) -> RouterPut:
        """Create or change a router. Raises the errors of `PutRouter`."""
        check_ends(config)
        reach.require([config])
        return await self._inbox.ask(PutRouter(check_router(name), config, reach))

    async def delete(self, name: str, reach: Reach) -> bool:
        """Delete a router. Returns whether there was one."""
        return await self._inbox.ask(DeleteRouter(check_router(name), reach))


class WatchSession:
    """A session, and how far its reader has come in each topic."""

    def __init__(self, wanted: WatchWanted, cursors: dict[str, int], owner: object) -> None:
        self.id = f"wid_{secrets.token_urlsafe(16)}"
        self.wanted = wanted
        self.cursors = cursors
        """Those of its latest reader, who alone moves them. The next one gets a copy."""
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

    async def read(self, wanted: WatchWanted, topic: str, after: int) -> TopicPage | None:
        """The next page of a topic, None if there is no such topic any more."""
        place = PageWanted(after, wanted.limit, wanted.nodes, wanted.most_bytes)
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
