"""Readers that wait for new records of topics.

A reader is registered before its topics are read, so no record can come in between. A tick that
appends to a topic wakes those who wait for it in turns, a few at a time. Whoever was woken waits
for that topic again from the moment that it looks at it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Self

from zq.doors.topics.commands import Appended
from zq.engine.after_commit import Awaited, Committed
from zq.engine.engine import Engine
from zq.engine.subscribers.waking import SHARE, Crowd, NewsReader, WakeLine
from zq.model.clock import Clock
from zq.model.commands import Clear


class TopicWaiter(NewsReader):
    """A reader that waits for new records of one topic, up to a time."""

    def __init__(self, crowds: "_Crowds", topics: Collection[str]) -> None:
        super().__init__()
        self.topics = topics
        self._crowds = crowds
        for topic in topics:
            crowds.enter(topic, self)

    def tell(self, topic: str) -> None:
        """Wake the reader, since a topic may have new records."""
        self.nudge()

    async def wait(self) -> None:
        """Return when the reader is woken. It waits on from there."""
        await super().wait()
        for topic in self.topics:
            self._crowds.enter(topic, self)

    def leave(self) -> None:
        for topic in self.topics:
            self._crowds.leave(topic, self)


class TopicWatcher(TopicWaiter):
    """A reader that follows some topics for as long as it likes. At first it looks at each."""

    def __init__(self, crowds: "_Crowds", topics: Collection[str]) -> None:
        super().__init__(crowds, topics)
        self._fresh = dict.fromkeys(topics)
        self.nudge()

    def tell(self, topic: str) -> None:
        """Wake the reader, since a topic may have new records."""
        self._fresh[topic] = None
        self.nudge()

    async def wait(self) -> None:
        """Return when the reader is woken. It waits for a topic again once it looks at it."""
        await NewsReader.wait(self)

    def take(self) -> str | None:
        """A topic that may have new records, None where there is none. They take turns."""
        topic = next(iter(self._fresh), None)
        if topic is not None:
            del self._fresh[topic]
            self._crowds.enter(topic, self)
        return topic

    def again(self, topic: str) -> None:
        """Stand in line for another look at a topic."""
        self._crowds.line_up(topic, self)


class _Crowds:
    """The waiting readers, by topic, in crowds that are woken in turns."""

    def __init__(self, line: WakeLine) -> None:
        self._line = line
        self._waiting: dict[str, Crowd[TopicWaiter]] = {}

    def enter(self, topic: str, waiter: TopicWaiter) -> None:
        self._waiting.setdefault(topic, {})[waiter] = None

    def leave(self, topic: str, waiter: TopicWaiter) -> None:
        crowd = self._waiting.get(topic)
        if crowd is not None:
            crowd.pop(waiter, None)
            if not crowd:
                del self._waiting[topic]

    def wake(self, topics: Iterable[str]) -> None:
        """Wake whoever waits for news of these topics."""
        if self._waiting:
            for topic in topics:
                if (crowd := self._waiting.pop(topic, None)) is not None:
                    self._line.wake(crowd, partial(_tell, topic))

    def wake_all(self) -> None:
        self.wake(list(self._waiting))

    def line_up(self, topic: str, waiter: TopicWaiter) -> None:
        self._line.wake({waiter: None}, partial(_tell, topic))


def _tell(topic: str, waiter: TopicWaiter) -> None:
    waiter.tell(topic)


class TopicReaders:
    """All waiting readers, by the names of their topics."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        readers = cls(engine.clock)
        engine.when_let_go.append(readers.close)
        engine.when_heard.append(readers.look_again)
        return readers

    def __init__(self, clock: Clock) -> None:
        self.listens = False
        """True if somebody has appended or waited yet. Most servers have no topics."""
        self.version = 0
        """The number of ticks that have appended something. It grows before any reader is woken."""
        self._clock = clock
        self._polls = _Crowds(WakeLine(clock))
        self._watchers = _Crowds(WakeLine(clock, SHARE))
        self._open: set[TopicWaiter] = set()
        self._staying: dict[str, set[Callable[[], object]]] = {}
        """The functions to call when a topic is deleted."""
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def waiter(self, topic: str, wait_ms: int) -> Iterator[TopicWaiter]:
        """A waiter that is registered until the context ends."""
        waiter = TopicWaiter(self._polls, [topic])
        timer = self._clock.call_later(wait_ms / 1000, waiter.end)
        try:
            with self._registered(waiter):
                yield waiter
        finally:
            timer.cancel()

    @contextmanager
    def watcher(self, topics: Iterable[str]) -> Iterator[TopicWatcher]:
        """A reader of some topics that is registered until the context ends."""
        watcher = TopicWatcher(self._watchers, set(topics))
        with self._registered(watcher):
            yield watcher

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

    def look_again(self) -> None:
        """Wake everybody, since other servers may have appended something."""
        if self._open:
            self.version += 1
            self._polls.wake_all()
            self._watchers.wake_all()

    def learn(self, committed: Committed) -> None:
        """Wake the readers of topics to which a tick has appended, or which it has deleted."""
        result = committed.result
        if result.appended:
            for reply in result.replies:
                if type(reply) is Appended and not reply.deduped and result.durable:
                    reply.flush_s = result.flush_s
            self.version += 1
            self._polls.wake(result.appended)
            self._watchers.wake(result.appended)
        dropped = result.dropped & self._staying.keys()
        listened = self._open or self._staying
        if listened and any(type(each) is Clear for each in committed.tick.commands):
            self._polls.wake_all()
            self._watchers.wake_all()
            dropped = {*self._staying}
        for topic in dropped:
            for call in self._staying[topic]:
                call()

    def close(self) -> None:
        """End all waits, also those that begin later."""
        self._closed = True
        for waiter in self._open:
            waiter.end()

    @contextmanager
    def _registered(self, waiter: TopicWaiter) -> Iterator[None]:
        self.listens = True
        self._open.add(waiter)
        if self._closed:
            waiter.end()
        try:
            yield
        finally:
            self._open.discard(waiter)
            waiter.leave()


SUBSCRIBERS = ((Awaited.BY_REQUESTS, TopicReaders),)
