"""Sends answers in parts, watches their peers, and bounds the memory of all answers together.

Streams do not count here: each has a bound and heartbeats of its own.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import cached_property

from aiohttp import web

from zq.http.transport.answer import SMALL, Answer, Response
from zq.http.transport.channel import Channel, Peer, channel_of
from zq.http.transport.heartbeats import Visits
from zq.http.transport.peer import PeerWatch
from zq.model.clock import Clock
from zq.model.errors import AnswersFull

log = logging.getLogger(__name__)

LARGE = 8 * 1024 * 1024
"""After this many bytes of answers, their memory is returned to the system as soon as all are sent.
The number is less than a full page of jobs, because glibc would keep what such a page leaves at the
end of the heap."""

TRIM_AFTER_S = 1.0

CHECKS = 10
"""How often a peer is checked before it is cut off."""


class Answers:
    """Sends answers, and counts the bytes that clients have not taken yet.

    A client that takes nothing for `timeout` seconds is cut off. `give_back` is called once the
    memory of many large answers is free.
    """

    def __init__(
        self, clock: Clock, give_back: Callable[[], object], *, max_bytes: int, timeout: float
    ) -> None:
        self.held = 0
        self._most_held = 0
        self._trims = False
        self._clock = clock
        self._give_back = give_back
        self._max_bytes = max_bytes
        self._timeout = timeout

    def admit(self, size: int) -> None:
        """Raise `AnswersFull` if there is no room for an answer of about `size` bytes.

        Call this before a change that cannot be undone. While no other answer is under way, one
        of any size is admitted.
        """
        if size > SMALL and self.held and self.held + size > self._max_bytes:
            raise AnswersFull(
                "answers that their clients do not read hold as much memory as they may: try again"
                " shortly, or raise --max-answer-bytes"
            )

    @contextlib.contextmanager
    def room(self, size: int) -> Iterator[None]:
        """Count `size` bytes until the block ends."""
        self.held += size
        self._most_held = max(self._most_held, self.held)
        try:
            yield
        finally:
            self.held -= size
            if not self.held and self._most_held >= LARGE and not self._trims:
                self._trims = True
                self._clock.call_later(TRIM_AFTER_S, self._trim)

    def _trim(self) -> None:
        self._trims = False
        if not self.held:
            self._most_held = 0
            self._give_back()

    async def send(self, request: web.BaseRequest, response: Response) -> None:
        """Send the answer of a handler, unless the handler has sent it itself.

        Raises `AnswersFull` if there is no room for it and the client can simply ask again.
        """
        if not isinstance(response, Answer) or response.sent:
            return
        size = len(response.body)
        if size <= SMALL and request.version.major < 2:
            response.add_headers_of(request)
            await channel_of(request).send(request, response)
            return
        if request.method in ("GET", "HEAD"):
            self.admit(size)
        with self.room(size):
            await self.write(request, response)

    async def write(self, request: web.BaseRequest, response: Answer) -> None:
        """Write an answer that has been counted. Return when the connection has taken it."""
        response.add_headers_of(request)
        with self.watched(request) as channel:
            await channel.send(request, response)

    @contextlib.contextmanager
    def watched(self, request: web.BaseRequest) -> Iterator[Channel]:
        """Within the block, cut the peer off if it takes nothing for too long.

        Raises ConnectionError if the connection is gone.
        """
        channel = channel_of(request)
        if channel.transport is None:
            raise ConnectionResetError("the connection is gone")
        watch = _SlowPeerWatch(channel, request.path, self._clock, self._visits, self._timeout)
        try:
            yield channel
        finally:
            watch.stop()

    @cached_property
    def _visits(self) -> Visits:
        return Visits(self._clock, self._timeout / CHECKS)


class _SlowPeerWatch:
    """Cuts off a peer that takes nothing of an answer for too long. `stop` ends the watch."""

    def __init__(
        self, channel: Channel, path: str, clock: Clock, visits: Visits, timeout: float
    ) -> None:
        self._channel = channel
        self._path = path
        self._clock = clock
        self._visits = visits
        self._timeout = timeout
        self._peer: PeerWatch | None = None
        self._book()

    def stop(self) -> None:
        self._visits.cancel(self._moment, self._check)

    def _book(self) -> None:
        self._moment = self._visits.book(self._timeout / CHECKS, self._check)

    def _check(self) -> None:
        now, timeout = self._clock.monotonic(), self._timeout
        if self._peer is None:  # Most answers are gone before the first check.
            self._peer = PeerWatch(self._channel, silence=timeout, stall_timeout=timeout, now=now)
        found = self._peer.judge(now)
        if found is Peer.PRESENT:
            self._book()
            return
        fields = {"path": self._path, "peer": found.value}
        log.info("an answer is cut off", extra={"fields": fields})
        self._channel.cut_off(found)
