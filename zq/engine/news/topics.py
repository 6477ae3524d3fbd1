"""Readers that wait for new records of topics.

A reader is registered before its topics are read, so no record can come in between.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from zq.engine.after_commit import Committed
from zq.model.clock import Clock
from zq.model.commands import Clear
from zq.model.topic_commands import Appended


class TopicWaiter:
    """A reader that waits for new records of one topic, up to a time."""

    def __init__(self) -> None:
        self.is_over = False
        """Whether its time is over or the server stops: it answers with the present records."""
        self._news = asyncio.Event()

    def nudge(self, topic: str) -> None:
        """Wake the reader, since a topic may have new records."""
        self.wake()

    def wake(self) -> None:
        """Wake the reader, whatever the cause."""
        self._news.set()

    def expire(self) -> None:
        """End the wait."""
        self.is_over = True
        self._news.set()

    async def news(self) -> None:
        """Return when the reader is woken, or when the wait has ended."""
        await self._news.wait()
        self._news.clear()


class TopicWatcher(TopicWaiter):
    """A reader that follows some topics for as long as it likes. At first it looks at each."""

    def __init__(self, topics: Iterable[str]) -> None:
        super().__init__()
        self._fresh = dict.fromkeys(topics)
        self.wake()

    def nudge(self, topic: str) -> None:
        """Wake the reader, since a topic may have new records."""
        self._fresh[topic] = None
        self.wake()

    def take(self) -> str | None:
        """A topic that may have new records, None where there is none. They take turns."""
        topic = next(iter(self._fresh), None)
        if topic is not None:
            del self._fresh[topic]
        return topic


class TopicReaders:
    """All waiting readers, by the names of their topics."""

    def __init__(self, clock: Clock) -> None:
        self.listens = False
        """Whether somebody has appended or waited yet. Most servers have no topics."""
        self.version = 0
        """It grows with each tick that has appended something, before any reader hears of it."""
        self._clock = clock
        self._waiting: dict[str, set[TopicWaiter]] = {}
        self._staying: dict[str, set[Callable[[], object]]] = {}
        """The functions to call when a topic is deleted."""
        self._closed = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @contextmanager
    def waiter(self, topic: str, wait_ms: int) -> Iterator[TopicWaiter]:
        """A waiter that is registered until the context ends."""
        self.listens = True
        waiter = TopicWaiter()
        self._waiting.setdefault(topic, set()).add(waiter)
        timer = self._clock.call_later(wait_ms / 1000, waiter.expire)
        if self._closed:
            waiter.expire()
        try:
            yield waiter
        finally:
            timer.cancel()
            self._leave(topic, waiter)

    @contextmanager
    def watcher(self, topics: Iterable[str]) -> Iterator[TopicWatcher]:
        """A reader of some topics that is registered until the context ends."""
        self.listens = True
        names = set(topics)
        watcher = TopicWatcher(names)
        for topic in names:
            self._waiting.setdefault(topic, set()).add(watcher)
        if self._closed:
            watcher.expire()
        try:
            yield watcher
        finally:
            for topic in names:
                self._leave(topic, watcher)

    @contextmanager
    def until_dropped(self, topic: str, call: Callable[[], object]) -> Iterator[None]:
        """Have a function called within the context whenever the topic is deleted."""
        self.listens = True
        self._staying.setdefault(topic, set()).add(call)
        try:
            yield
        finally:
            others = self._staying[topic]
            others.discard(call)
            if not others:
                del self._staying[topic]

    def learn(self, committed: Committed) -> None:
        """Wake the readers of topics to which a tick has appended, or which it has deleted."""
        result = committed.result
        if result.appended:
            for reply in result.replies:
                if type(reply) is Appended and not reply.deduped and result.durable:
                    reply.flush_s = result.flush_s
            self.version += 1
            for topic in result.appended & self._waiting.keys():
                self._wake(topic)
        dropped = result.dropped & self._staying.keys()
        listened = self._waiting or self._staying
        if listened and any(type(each) is Clear for each in committed.tick.commands):
            for topic in self._waiting:
                self._wake(topic)
            dropped = {*self._staying}
        for topic in dropped:
            for call in self._staying[topic]:
                call()

    def close(self) -> None:
        """End all waits, also those that begin later."""
        self._closed = True
        for waiters in self._waiting.values():
            for waiter in waiters:
                waiter.expire()

    def _wake(self, topic: str) -> None:
        for waiter in self._waiting[topic]:
            waiter.nudge(topic)

    def _leave(self, topic: str, waiter: TopicWaiter) -> None:
        others = self._waiting[topic]
        others.discard(waiter)
        if not others:
            del self._waiting[topic]
