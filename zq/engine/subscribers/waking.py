"""Readers of news, and how those who wait for the same news are woken: a few at a time.

One tick may concern thousands of listeners. If all of them ran in the same turn of the event loop,
every request would wait for all of them. So whoever has news stands in a line, and a few are served
in each turn of the loop. Nothing here, and nothing that calls it, visits all listeners at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from zq.model.clock import Clock
from zq.model.errors import ZqError
from zq.store.errors import StoreError

log = logging.getLogger(__name__)


class NewsReader:
    """A reader that is woken whenever there may be something new, until that ends."""

    def __init__(self) -> None:
        self.ended = False
        """The time is up, or the server stops: its handler answers with the present state."""
        self._wake = asyncio.Event()

    def nudge(self) -> None:
        """Wake the reader: there may be something new."""
        self._wake.set()

    def end(self) -> None:
        """End the reader. It is woken too."""
        self.ended = True
        self._wake.set()

    async def wait(self) -> None:
        """Return when the reader is woken. A wake from before the call counts too."""
        await self._wake.wait()
        self._wake.clear()


def log_failure(what: str, task: "asyncio.Task[None]") -> None:
    """Log that a read has failed: `what` it could not read stays as it is, and is read again."""
    if task.cancelled() or (error := task.exception()) is None:
        return
    is_usual = isinstance(error, ZqError | StoreError)
    log.log(
        logging.INFO if is_usual else logging.ERROR,
        f"{what} could not be read: {error}",
        exc_info=None if is_usual else error,
    )


AT_ONCE = 16
"""The most waiters that are woken in one turn of the event loop."""

SHARE = 3
"""The readers of news get one part in this many of the time while others wait in the line."""

LONGEST_REST_S = 0.05
"""Turns are at most so far apart, however much else the event loop has done in between."""

Member = TypeVar("Member")
Crowd = dict[Member, None]
"""The waiters for one subject."""


class WakeLine:
    """A line of crowds with news, which are served `AT_ONCE` members at a time.

    Between two turns the line rests, so that it takes one part in `share` of the event loop's time.
    With a share of 1 it does not rest: that is for clients who wait for one answer.
    """

    def __init__(self, clock: Clock, share: int = 1) -> None:
        self._clock = clock
        self._share = share
        self._line: deque[tuple[Crowd[Any], Callable[[Any], object]]] = deque()
        self._serving = False

    def wake(self, crowd: Crowd[Member], nudge: Callable[[Member], object]) -> None:
        """Have `nudge` called for each member, in turns. The crowd is the line's from now on.

        A member that goes away meanwhile is taken out of the crowd by its owner, or is nudged all
        the same.
        """
        if crowd:
            self._line.append((crowd, nudge))
            if not self._serving:
                self._serve()

    def _serve(self) -> None:
        self._serving = True
        began = self._clock.monotonic()
        left = AT_ONCE
        while left and self._line:
            crowd, nudge = self._line[0]
            while left and crowd:
                nudge(crowd.popitem()[0])
                left -= 1
            if not crowd:
                self._line.popleft()
        # This is called after the tasks that were woken have run, and tells how long they took.
        asyncio.get_running_loop().call_soon(self._rest, began)

    def _rest(self, began: float) -> None:
        if not self._line:
            self._serving = False
            return
        took = self._clock.monotonic() - began
        rest = min(took * (self._share - 1), LONGEST_REST_S)
        if rest > 0:
            self._clock.call_later(rest, self._serve)
        else:
            self._serve()
