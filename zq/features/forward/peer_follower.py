"""What follows the lanes of this server, as they are made, changed and dropped."""

import asyncio
import logging
from typing import Any, Self

from zq.features.forward.service import Lanes
from zq.service.services import RunningService, Services

log = logging.getLogger(__name__)

AGAIN_S = 1.0


class LaneFollower(RunningService):
    """Keeps something running for lanes: `follow` begins and ends it. Subclasses say what."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The one of a server."""
        return cls(services)

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lanes = services[Lanes]
        self._running: dict[str, Any] = {}
        """What runs by now, by name. Each has a method `stop`."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin."""
        await self._follow()
        self._lanes.when_changed.append(self._changed.set)
        self._task = asyncio.create_task(self._run(), name=f"zq-{type(self).__name__.lower()}")

    async def stop(self) -> None:
        """End. What is under way keeps its numbers."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for each in self._running.values():
            await each.stop()

    async def _follow(self) -> None:
        """Have running what the lanes need, as they are stored, and nothing else."""
        raise NotImplementedError

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._follow()
            except Exception as error:
                log.error("the lanes could not be followed; it is tried again", exc_info=error)
                self._changed.set()
                await asyncio.sleep(AGAIN_S)
