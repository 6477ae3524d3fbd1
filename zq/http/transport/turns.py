"""One connection's share of the event loop, and the figures of it.

All connections share one event loop, so a client must not be able to keep it busy. What a client
sends is therefore worked off by its cost. The unit is about a microsecond of the server's processor
time. Ordinary traffic stays below `AT_ONCE` and never waits. A connection that has sent more than
that waits with the rest: its transport is not read meanwhile, so the rest is at most one read of a
socket. The connections that wait are served in turns, with `PER_TURN` for all of them in each turn
of the loop. A request of another client passes through about five turns of the loop, so such a
flood costs it a few milliseconds. abuse.py says when a connection is cut off.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from typing import Protocol

AT_ONCE = 16_000
"""How much all connections together may cost in one turn of the loop before some have to wait. It
is enough for 150 requests over HTTP/2 that arrive together."""

PIPELINE = 2_000
"""How much of that is for one connection of HTTP/1.1: 40 requests. Clients of this version send one
request after the other, so more in one piece is no ordinary traffic."""

PER_TURN = 500
"""How much the connections that wait may cost in each turn of the loop, together."""

TURNS_AWAKE = 16
"""After so many turns of those that wait, this thread sleeps a moment. The kernel flushes a commit
on the processor that has asked for it, where a thread that never sleeps keeps it waiting for 300 ms
and more."""

REST_S = 0.00005
"""So long it sleeps. A flush takes no longer on a fast disk, and a slow one then waits for the disk
alone."""

BESIDE = 250
"""The most work that another connection may do at once while some wait: a request or two."""

CROWD = 300
"""So many small requests begin in one turn of the loop, each on a connection of its own. The others
begin in later turns, half as many in each: so newcomers need not wait behind them."""

UNCOUNTED = 32
"""So many begin before one is counted, in however many turns. A request by itself pays nothing."""

GONE = 64
"""So many handlers whose clients have gone end in one turn of the loop. Each gives back jobs or
leaves a list of listeners, and thousands of connections may end in one moment."""

HEAVY_S = 1.0
"""The time in seconds for which a connection that had to wait has no part in `AT_ONCE`."""

SMALL_READ = 1024
"""Bytes of HTTP/1.1 that are worked off at once and not counted, unless their connection waits.
Ordinary requests pay nothing for the budget."""

PIECE = 16 * 1024
"""The bytes that the parser of HTTP/1.1 reads at a time."""

PIECE_COST = 50
LINES_PER_COST = 4
"""The lines of a piece that cost one more: a piece costs 1 besides. HTTP/1.1 consists of lines: the
fields of heads, the sizes of chunks. A socket may bring 8 MB in one turn of the loop."""

REQUEST_COST = 50
"""The cost to begin a request, in both versions."""

FRAME_COST = 10
"""The cost of a frame of HTTP/2. Each byte of a block of headers or of SETTINGS costs one more."""


class Served(Protocol):
    """A connection, as its share sees it."""

    def go_on(self, most: int) -> int:
        """Work off what has arrived until that costs `most`, or nothing is left. Return the cost.

        The last step may exceed `most`.
        """

    def has_more(self) -> bool:
        """True if something that has arrived can be worked off now."""

    def hold(self) -> None:
        """Read no more from the transport."""

    def release(self) -> None:
        """Read on, unless there is another reason not to."""

    def abort(self) -> None:
        """End the connection: working it off has failed."""


class Beginner(Protocol):
    """A connection with a small request that has not begun."""

    def serve_next(self) -> None:
        """Begin the request, if it can still begin."""


class Cancellable(Protocol):
    """A handler that can be ended while it waits."""

    def cancel(self) -> object:
        """End the handler where it waits."""


class LoopTurns:
    """The turns of one event loop, and the connections that wait for theirs."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[Share, None] = OrderedDict()
        self.uncounted = UNCOUNTED
        """How many small requests begin before one has to ask whether it `may_begin`."""
        self._crowd: deque[Beginner] = deque()
        self._gone: deque[Cancellable] = deque()
        self._begun = self._ended = 0
        self._spent = 0
        self._scheduled = False
        self._awake = 0
        """How many turns those that wait have had since this thread slept."""

    def may_begin(self, connection: Beginner) -> bool:
        """True if a small request may begin now. Otherwise it is asked for again in a later
        turn."""
        self._schedule()
        self._begun += 1
        if self._begun <= CROWD:
            return True
        self._crowd.append(connection)
        return False

    def cancel(self, handler: Cancellable) -> None:
        """End a handler whose client has gone, in a later turn if many have gone in this one."""
        self._schedule()
        self._gone.append(handler)
        self._end_some()

    @property
    def left(self) -> int:
        """How much a connection that does not wait may cost now."""
        left = AT_ONCE - self._spent
        return min(left, BESIDE) if self._waiting else left

    def spend(self, cost: int) -> None:
        """Count what was worked off in this turn of the loop."""
        self._spent += cost
        self._schedule()

    def wait(self, share: Share) -> None:
        """Give a connection its next turn behind the others that wait."""
        self._waiting[share] = None
        self._schedule()

    def forget(self, share: Share) -> None:
        """Take back a turn, if there is one."""
        self._waiting.pop(share, None)

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """A new turn of the loop: serve those that wait, as far as it goes."""
        self._scheduled = False
        self._spent = self._begun = self._ended = self.uncounted = 0
        try:
            self._end_some()
            while self._crowd and self._begun < CROWD // 2:
                self._crowd.popleft().serve_next()
            self.uncounted = UNCOUNTED
            while self._waiting and self._spent < PER_TURN:
                share, _ = self._waiting.popitem(last=False)
                self._spent += share.take_turn(PER_TURN - self._spent)
        finally:
            if self._waiting or self._crowd or self._gone:
                self._schedule()
            self._rest()

    def _end_some(self) -> None:
        while self._gone and self._ended < GONE:
            self._ended += 1
            self._gone.popleft().cancel()

    def _rest(self) -> None:
        """Sleep a moment after so many turns of those that wait."""
        self._awake = self._awake + 1 if self._waiting else 0
        if self._awake >= TURNS_AWAKE:
            self._awake = 0
            time.sleep(REST_S)


class Share:
    """The allowance of one connection, and whether it waits for its turn."""

    __slots__ = ("_heavy_until", "_served", "_turns", "light", "waits")

    def __init__(self, turns: LoopTurns, served: Served) -> None:
        self._turns = turns
        self._served = served
        self._heavy_until = 0.0
        self.waits = False
        self.light = True
        """True if small things need not be counted. It is so until the connection has to wait."""

    def work(self) -> None:
        """Work off what has arrived, at once as far as possible and the rest in turns."""
        if self.waits:
            return
        if not self.light and asyncio.get_running_loop().time() >= self._heavy_until:
            self.light = True
        if self.light and (most := self._turns.left) > 0:
            cost = self._served.go_on(most)
            if cost > REQUEST_COST:
                self._turns.spend(cost)
        if self._served.has_more():
            self._wait()
        else:
            # A handler may have asked for more while the rest was still to be worked off.
            self._served.release()

    def take_turn(self, most: int) -> int:
        """Work off a part. Called when the turn of the connection has come. Return the cost."""
        self.waits = False
        try:
            cost = self._served.go_on(most)
        except BaseException:
            self._served.abort()
            raise
        if self._served.has_more():
            self._wait()
        else:
            self._served.release()
        return cost

    def end(self) -> None:
        """Wait no more: the connection is gone."""
        self.waits = False
        self._turns.forget(self)

    def _wait(self) -> None:
        self.waits = True
        self.light = False
        self._heavy_until = asyncio.get_running_loop().time() + HEAVY_S
        self._served.hold()
        self._turns.wait(self)
