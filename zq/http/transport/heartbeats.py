"""Heartbeats for a long-lived response that is silent, and a watch on its peer."""

import logging
from collections.abc import Callable
from functools import cached_property
from typing import Any

from zq.http.transport.channel import Channel, Peer
from zq.http.transport.peer import PeerWatch
from zq.http.transport.visits import Visits
from zq.model.clock import Clock

log = logging.getLogger(__name__)

SILENT_HEARTBEATS = 1.5
"""A peer is gone if TCP's acknowledgement is missing for this many heartbeats."""

STEPS = 60
"""The responses are checked this many times in each heartbeat."""


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
        """End the watch."""
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
