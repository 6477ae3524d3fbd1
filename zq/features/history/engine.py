"""The readers that wait for more history. Each tick tells them, and nothing polls."""

from typing import Self

from zq.engine.after_commit import Awaited, Committed
from zq.engine.engine import Engine
from zq.engine.subscribers.waking import Crowd, NewsReader, WakeLine
from zq.model.clock import Clock


class HistoryReaders:
    """The end of the readable history, and the readers that wait for more.

    Records become readable once a sync has covered them. Otherwise a power cut could take a record
    back and give its number to another one.
    """

    @classmethod
    def of(cls, engine: Engine) -> Self:
        recording = bool(engine.settings.history)
        readers = cls(engine.store.logged, engine.clock, recording=recording)
        engine.when_synced.append(readers.synced)
        engine.when_let_go.append(readers.close)
        engine.when_heard.append(lambda: readers.hear(engine.store.logged))
        return readers

    def __init__(self, logged: int, clock: Clock, *, recording: bool) -> None:
        """`logged` is the last record. All records of an earlier start have been synced."""
        self._clock = clock
        self._line = WakeLine(clock)
        self.listens = self.recording = recording
        """True if attempts are recorded."""
        self.readable = logged
        self._logged = logged
        self.waiting: Crowd[NewsReader] = {}
        self._closed = False

    def learn(self, committed: Committed) -> None:
        """Note how many records a tick has added, and whether they are on the disk."""
        self._logged = max(self._logged, committed.result.logged)
        if committed.result.durable:
            self.synced()

    def hear(self, logged: int) -> None:
        """Note how many records other servers have added."""
        self._logged = max(self._logged, logged)
        self.synced()

    def synced(self) -> None:
        """Note that all commits are on the disk."""
        if self._logged > self.readable:
            self.readable = self._logged
            self._wake()

    def close(self) -> None:
        """End the wait of all readers."""
        self._closed = True
        self._wake()

    async def wait(self, after: int, wait_ms: int) -> None:
        """Wait until there is a record after `after`, for at most `wait_ms`."""
        reader = NewsReader()
        timer = self._clock.call_later(wait_ms / 1000, reader.end)
        self.waiting[reader] = None
        try:
            if self.readable <= after and not self._closed:
                await reader.wait()
        finally:
            self.waiting.pop(reader, None)
            timer.cancel()

    def _wake(self) -> None:
        waiting, self.waiting = self.waiting, {}
        self._line.wake(waiting, NewsReader.nudge)


SUBSCRIBERS = ((Awaited.BY_REQUESTS, HistoryReaders),)
