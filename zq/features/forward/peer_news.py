"""Tells a hub soon what has changed: its page shows a lane that fails or was paused.

Reports are seldom: the first one after a quiet time follows its change within a minute, and each
one more waits twice as long as the one before.
"""

import asyncio
import logging

from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.features.devices.client import ServerDevices
from zq.features.devices.model import USUAL_EVERY_MS
from zq.features.forward.model import LaneRule
from zq.features.forward.peer_hub import address_of
from zq.features.forward.peer_presence import Presence
from zq.model.clock import Clock
from zq.model.errors import ZqError
from zq.store.errors import StoreError

log = logging.getLogger("zq.forward")

LOOK_S = 60.0
"""The time between two looks for changes."""

LONGEST_S = USUAL_EVERY_MS / 1000


class NewsTeller:
    """Reports changes to one hub until it is stopped."""

    def __init__(self, presence: Presence, rule: LaneRule, clock: Clock) -> None:
        """The rule names the hub, and what this device shows it."""
        self._presence = presence
        self._rule = rule
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run(), name="zq-news")

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        pause, quiet = LOOK_S, 0.0
        while True:
            await self._sleep(pause)
            try:
                told = await self._look()
            except (ZqError, StoreError) as error:
                log.info(f"a hub does not hear what has changed: {error}")
                told = True
            except Exception as error:
                log.error("the look for news has failed and is tried again", exc_info=error)
                told = True
            # What changes to and fro costs the line no more than usual reports do.
            quiet = 0.0 if told else quiet + pause
            if told:
                pause = min(2 * pause, LONGEST_S)
            elif quiet >= LONGEST_S:
                pause = LOOK_S

    async def _look(self) -> bool:
        """Report if something has changed. Return whether it was so."""
        url = str(self._rule.url)
        if not await self._presence.has_news(url):
            return False
        address = address_of(self._rule)
        transport = AioTransport(address)
        try:
            await self._presence.tell(ServerDevices(HttpBackend(address, transport).ask), url)
        finally:
            await transport.close()
        return True

    async def _sleep(self, seconds: float) -> None:
        awake = asyncio.Event()
        timer = self._clock.call_later(seconds, awake.set)
        try:
            await awake.wait()
        finally:
            timer.cancel()
