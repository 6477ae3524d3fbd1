"""Heartbeats for a long-lived response that is silent, and a watch on its peer."""

import asyncio
import logging
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

from zq.http.transport.channel import Channel, Peer
from zq.http.transport.peer import PeerWatch
from zq.model.clock import Clock, Timer

log = logging.getLogger(__name__)

SILENT_HEARTBEATS = 1.5
"""A peer is gone if TCP's acknowledgement is missing for this many heartbeats."""

STEPS = 60
"""The responses are checked this many times in each heartbeat."""

Visit = Callable[[], Any]


class Visits:
    """Calls back at the first common moment after a given time, with one timer for all.

    A timer for each object would wake the event loop once for each. `step` is the time in seconds
    between two moments.
    """

    def __init__(self, clock: Clock, step: float) -> None:
        self._clock = clock
        self._step = step
        self._moments: dict[int, dict[Visit, None]] = {}
        self._next = self._gone = 0
        self._timer: Timer | None = None

    def book(self, seconds: float, visit: Visit) -> int:
        """Call back after this many seconds, or up to a step later.

        Returns the moment, by which the visit can be cancelled.
        """
        moment = math.ceil((self._clock.monotonic() + seconds) / self._step)
        # A timer may be a little early. A visit booked for the same moment would then come at once.
        moment = max(moment, self._gone + 1)
        visits = self._moments.get(moment)
        if visits is None:
            visits = self._moments[moment] = {}
            if self._timer is None or moment < self._next:
                self._set_timer(moment)
        visits[visit] = None
        return moment

    def cancel(self, moment: int, visit: Visit) -> None:
        """Cancel a visit. This has no effect after the visit."""
        self._moments.get(moment, {}).pop(visit, None)

    def _go(self) -> None:
        self._gone = self._next
        visits = self._moments[self._gone]
        while visits:  # a visit may cancel another
            visit, _ = visits.popitem()
            try:
                visit()
            except Exception as error:
                # The other visits must still happen, as with the event loop's timers.
                context = {"message": "a visit failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
        del self._moments[self._gone]
        self._timer = None
        if self._moments:
            self._set_timer(min(self._moments))

    def _set_timer(self, moment: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = moment
        delay = moment * self._step - self._clock.monotonic()
        self._timer = self._clock.call_later(max(delay, 0.0), self._go)


class Heartbeats:
    """Calls `nudge` when nothing was written for a heartbeat, and cuts off a peer that stalls.

    Times are in seconds. `fields` name the response in the log.
    """

    def __init__(
        self,
        channel: Channel,
        clock: Clock,
        visits: Visits,
        nudge: Callable[[], object],
        fields: dict[str, Any],
        *,
        heartbeat: float,
        silence: float,
        stall_timeout: float,
    ) -> None:
        self._channel = channel
        self._clock = clock
        self._visits = visits
        self._nudge = nudge
        self._fields = fields
        self._heartbeat = heartbeat
        self._silence = silence
        self._written_at = clock.monotonic()
        self.is_due = False
        """True if a heartbeat is to be written now."""
        self._stall_timeout = stall_timeout
        self._peer: PeerWatch | None = None
        """Watches the peer from the first check on: a response that ends before needs no watch."""
        self._moment = visits.book(heartbeat, self._check)

    def written(self) -> None:
        """Note that something is written now."""
        self._written_at = self._clock.monotonic()
        self.is_due = False

    def stop(self) -> None:
        self._visits.cancel(self._moment, self._check)

    def _check(self) -> None:
        now = self._clock.monotonic()
        if self._peer is None:
            self._peer = PeerWatch(
                self._channel,
                silence=self._silence,
                stall_timeout=self._stall_timeout,
                now=now,
            )
        found = self._peer.judge(now)
        if found is not Peer.PRESENT:
            log.info("a stream is cut off", extra={"fields": self._fields | {"peer": found.value}})
            self._channel.cut_off(found)
            return
        silence = now - self._written_at
        if silence >= self._heartbeat:
            # A peer that does not read gets none piled up.
            if not self._channel.unsent():
                self.is_due = True
                self._nudge()
            silence = 0.0
        self._moment = self._visits.book(self._heartbeat - silence, self._check)


class HeartbeatTimer:
    """Starts the heartbeats of responses of one kind. One timer checks them all."""

    def __init__(self, clock: Clock, *, heartbeat: float, stall_timeout: float) -> None:
        """Times are in seconds."""
        self._clock = clock
        self._heartbeat = heartbeat
        self._stall_timeout = stall_timeout

    @cached_property
    def _visits(self) -> Visits:
        return Visits(self._clock, self._heartbeat / STEPS)

    def begin(
        self,
        channel: Channel,
        nudge: Callable[[], object],
        fields: dict[str, Any],
        heartbeat: float | None = None,
    ) -> Heartbeats:
        """Start the heartbeats of one response. The caller must `stop` them.

        `heartbeat` is for a client that asks for another interval.
        """
        return Heartbeats(
            channel,
            self._clock,
            self._visits,
            nudge,
            fields,
            heartbeat=self._heartbeat if heartbeat is None else heartbeat,
            silence=self._heartbeat * SILENT_HEARTBEATS,
            stall_timeout=self._stall_timeout,
        )
