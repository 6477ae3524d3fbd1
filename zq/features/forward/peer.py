"""Carries the jobs of lanes to other servers, while this one runs.

A client is imported with the first lane that has an address: few servers have one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from zq.engine.turns import end_task, import_aside
from zq.features.forward.model import ForwardLane, LaneRule, LanesMeet, TooManyLanes
from zq.features.forward.service import HistoryEpochs, Hubs, LaneBounds, Lanes
from zq.features.forward.settings import ForwardSettings, refused
from zq.features.history.engine import HistoryReaders
from zq.model.errors import DiskFailed
from zq.service.services import RunningService, Services

if TYPE_CHECKING:
    from zq.features.forward.peer_history import HistorySender
    from zq.features.forward.peer_link import HubLink
    from zq.features.forward.peer_pusher import LanePusher


log = logging.getLogger(__name__)

AGAIN_S = 1.0


class LaneFollower(RunningService):
    """Keeps something running for lanes: `follow` begins and ends it. Subclasses say what.

    Of servers that share a store, one carries all lanes. The others look from time to time whether
    that has become theirs.
    """

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services)

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lanes = services[Lanes]
        self._running: dict[str, Any] = {}
        """What runs by now, by name. Each has a method `stop`."""
        self._changed = asyncio.Event()
        self._is_asked = False
        """True if a lane was changed here. Otherwise another server may have changed one."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._follow(await self._lanes.carried(), hurries=False)
        self._lanes.when_changed.append(self._ask)
        # Never called where no other server shares the store.
        self._services.engine.when_heard.append(self._changed.set)
        self._task = asyncio.create_task(self._run(), name=f"zq-{type(self).__name__.lower()}")

    async def stop(self) -> None:
        """End. What is under way keeps its numbers."""
        await end_task(self._task)
        for each in self._running.values():
            await each.stop()

    async def _follow(self, lanes: Sequence[ForwardLane], *, hurries: bool) -> None:
        """Have running what these lanes need, and nothing else.

        If it `hurries`, what runs already waits no longer after an error.
        """
        raise NotImplementedError

    def _ask(self) -> None:
        self._is_asked = True
        self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            hurries, self._is_asked = self._is_asked, False
            try:
                await self._follow(await self._lanes.carried(), hurries=hurries)
            except DiskFailed:
                return
            except Exception as error:
                log.error("the lanes could not be followed; it is tried again", exc_info=error)
                self._changed.set()
                await asyncio.sleep(AGAIN_S)


class Links(LaneFollower):
    """A link to each hub. A lane that is paused has one as well."""

    _running: dict[str, HubLink]

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._hubs = services[Hubs]
        self._epochs = services[HistoryEpochs]
        self.senders: dict[str, HistorySender] = {}
        """The senders of this server's history, by the addresses of their hubs."""
        self._records = services.engine[HistoryReaders].recording

    async def start(self) -> None:
        """Learn the epochs of the history, and begin."""
        if self._records:
            await self._epochs.learn()
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        for sender in self.senders.values():
            await sender.stop()

    async def _follow(self, lanes: Sequence[ForwardLane], *, hurries: bool) -> None:
        """Have a link to each hub that a lane names. The first lane says how it is reached."""
        rules: dict[str, LaneRule] = {}
        for lane in lanes:
            if lane.rule.url is not None:
                rules.setdefault(lane.rule.url, lane.rule)
        for url, link in list(self._running.items()):
            if _access(link.rule) != _access(rules.get(url)):
                del self._running[url]
                await link.stop()
                self._hubs.forget(url)
                if url in self.senders:
                    await self.senders.pop(url).stop()
        for url, rule in rules.items():
            if url not in self._running:
                self._running[url] = await self._link(rule)
            elif hurries:
                self._running[url].hurry()
                if url in self.senders:
                    self.senders[url].hurry()

    async def _link(self, rule: LaneRule) -> HubLink:
        await import_aside("zq.features.forward.peer_history")
        from zq.features.forward.peer_history import HistorySender
        from zq.features.forward.peer_link import HubLink

        link = HubLink(self._services, rule)
        if rule.history and self._records:
            self.senders[link.progress.url] = sender = HistorySender(self._services, link)
            link.when_met.append(sender.restart)
        link.start()
        return link


def _access(rule: LaneRule | None) -> object:
    """How a rule reaches its hub, and what for."""
    if rule is None:
        return None
    return (
        rule.url,
        rule.token,
        rule.key_file,
        rule.ca,
        rule.client_cert,
        rule.client_key,
        rule.history,
    )


class Pushers(LaneFollower):
    """The pushers of all lanes that have an address."""

    _running: dict[str, LanePusher]

    async def start(self) -> None:
        """Store the declared lanes, and begin to push."""
        await self._declare()
        await super().start()

    async def _declare(self) -> None:
        """Raises ConfigError if a queue would be on two lanes, or if there are too many."""
        try:
            await self._lanes.declare(self._services.settings[ForwardSettings].lanes())
        except (LanesMeet, TooManyLanes) as error:
            raise refused(error) from None

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
