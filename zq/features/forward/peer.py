"""Carries the jobs of lanes to other servers, while this one runs.

A client is imported with the first lane that has an address: few servers have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zq.engine.imports import import_aside
from zq.features.forward.model import ForwardLane
from zq.features.forward.peer_links import LaneFollower, Links
from zq.features.forward.service_bounds import LaneBounds
from zq.features.forward.settings import ForwardSettings

if TYPE_CHECKING:
    from zq.features.forward.peer_pusher import LanePusher


class Pushers(LaneFollower):
    """The pushers of all lanes that have an address."""

    _running: dict[str, LanePusher]

    async def start(self) -> None:
        """Store the declared lanes, and begin to push."""
        await self._declare()
        await super().start()

    async def _declare(self) -> None:
        declared = self._services.settings[ForwardSettings].lanes()
        for lane in await self._lanes.all():
            if lane.declared and lane.name not in declared and not lane.is_backlog:
                await self._lanes.drop(lane.name)
        for name, rule in declared.items():
            await self._lanes.put(name, rule, declared=True)

    async def _follow(self, lanes: Sequence[ForwardLane], *, hurries: bool) -> None:
        """Have a pusher for each lane, and no others."""
        named = {lane.name: lane for lane in lanes}
        self._lanes.in_use = any(lane.rule.url is not None for lane in lanes)
        for name, pusher in list(self._running.items()):
            lane = named.get(name)
            if lane is None or not _pushes(lane) or lane.rule != pusher.lane.rule:
                del self._running[name]
                await pusher.stop()
        for name, lane in named.items():
            if not _pushes(lane):
                progress = self._lanes.progress(name)
                progress.state = "paused" if lane.paused else "pulled"
                progress.error = progress.error_code = None
            elif name not in self._running:
                self._running[name] = await self._push(lane)
            elif hurries:
                self._running[name].hurry()

    async def _push(self, lane: ForwardLane) -> LanePusher:
        await import_aside("zq.features.forward.peer_pusher")
        from zq.features.forward.peer_pusher import LanePusher

        pusher = LanePusher(self._services, lane)
        pusher.start()
        return pusher


def _pushes(lane: ForwardLane) -> bool:
    return lane.rule.url is not None and not lane.paused


RUNNING = (LaneBounds, Pushers, Links)
