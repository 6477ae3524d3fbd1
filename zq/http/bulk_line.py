"""Large bodies of new jobs take turns, so that other requests pass in between.

A body is decoded, and its jobs are queued for a tick, in one go. Two hundred bodies in one turn of
the event loop would delay every other request. Jobs that are decoded long before their tick only
hold memory. So bodies wait as bytes, and their connections wait with them.
"""

import asyncio
from typing import NamedTuple

from zq.engine.inbox import Inbox
from zq.engine.turns import FairLine
from zq.model.clock import Clock
from zq.model.errors import InboxFull

SMALL = 2 * 1024
"""A body of this many bytes never waits: it is decoded as fast as it could be queued."""

TURN_BYTES = 16 * 1024
"""After this many bytes of bodies the next one waits. That is half a millisecond of decoding."""

PATIENCE_S = 5.0
"""Once a body has waited this long, more are refused, since they would wait too long."""


class _Waiting(NamedTuple):
    size: int
    since: float
    turn: asyncio.Future[None]


class BulkLine:
    """Admits large bodies, one in each turn of the event loop, while the next tick has room.

    Connections also take turns: a connection with more bodies gets no more turns. A body without
    competition does not wait.
    """

    def __init__(self, inbox: Inbox, clock: Clock) -> None:
        self._inbox = inbox
        self._clock = clock
        self._line = FairLine[_Waiting]()
        self._left = TURN_BYTES
        self._turning = False

    async def take(self, connection: object, size: int) -> None:
        """Wait until a body may go on. Raises `InboxFull` if others wait too long."""
        if size <= SMALL:
            return
        if not self._line and self._left > 0 and self._inbox.has_room:
            self._spend(size)
            return
        now = self._clock.monotonic()
        if self._line and now - self._line.first().since > PATIENCE_S:
            raise InboxFull("new jobs wait too long for the disk already: try again shortly")
        self._inbox.when_taken = self._schedule
        turn = asyncio.get_running_loop().create_future()
        self._line.add(connection, _Waiting(size, now, turn))
        await turn

    def _spend(self, size: int) -> None:
        self._left -= size
        self._schedule()

    def _schedule(self) -> None:
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._turning = False
        self._left = TURN_BYTES
        while self._line and self._inbox.has_room:
            waiting = self._line.pop()
            if not waiting.turn.done():  # its connection may be gone
                waiting.turn.set_result(None)
                # Its jobs are in the inbox in the next turn. Only then is it known whether there is
                # room.
                self._spend(waiting.size)
                break
        if not self._line:
            self._inbox.when_taken = None
