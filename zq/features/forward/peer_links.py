"""The hubs of this device, as the rules of its lanes name them: one link to each.

A client is imported with the first of them: few servers have one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from zq.engine.imports import import_aside
from zq.features.forward.model import LaneRule
from zq.features.forward.service import Lanes
from zq.service.services import RunningService, Services

if TYPE_CHECKING:
    from zq.features.forward.peer_link import HubLink, LinkProgress


class Links(RunningService):
    """A link to each hub. A lane that is paused has one as well."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The links of a server."""
        return cls(services)

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lanes = services[Lanes]
        self._running: dict[str, HubLink] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def progress(self) -> list[LinkProgress]:
        """How each of them goes, by address."""
        return [self._running[url].progress for url in sorted(self._running)]

    async def start(self) -> None:
        """Begin."""
        await self._follow()
        self._lanes.when_changed.append(self._changed.set)
        self._task = asyncio.create_task(self._run(), name="zq-links")

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for link in self._running.values():
            await link.stop()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._follow()

    async def _follow(self) -> None:
        """Have a link to each hub that a lane names. The first lane says how it is reached."""
        rules: dict[str, LaneRule] = {}
        for lane in await self._lanes.all():
            if lane.rule.url is not None:
                rules.setdefault(lane.rule.url, lane.rule)
        for url, link in list(self._running.items()):
            if _access(link.rule) != _access(rules.get(url)):
                del self._running[url]
                await link.stop()
        for url, rule in rules.items():
            if url in self._running:
                self._running[url].hurry()
            else:
                self._running[url] = await self._link(rule)

    async def _link(self, rule: LaneRule) -> HubLink:
        await import_aside("zq.features.forward.peer_link")
        from zq.features.forward.peer_link import HubLink

        link = HubLink(self._services, rule)
        link.start()
        return link


def _access(rule: LaneRule | None) -> object:
    """How a rule reaches its hub."""
    if rule is None:
        return None
    return (rule.url, rule.token, rule.key_file, rule.ca, rule.client_cert, rule.client_key)
