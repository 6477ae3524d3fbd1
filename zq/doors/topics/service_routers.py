"""The verbs about routers."""

from typing import Self

from zq.doors.topics.commands import DeleteRouter, PutRouter, RouterPut
from zq.doors.topics.errors import RouterNotFound
from zq.doors.topics.model_routers import (
    RouterConfig,
    RoutersWanted,
    TopicRouter,
    check_ends,
    check_router,
)
from zq.doors.topics.store import TopicReads
from zq.engine.inbox import Inbox
from zq.model.reach import Reach
from zq.service.services import Services
from zq.store.api import Store


class Routers:
    """Routers by name. A router is within reach if both of its ends are.

    One whose ends are out of reach is refused: `QueueOutOfReach`. Lists leave it out.
    """

    @classmethod
    def of(cls, services: Services) -> Self:
        """The routers of a server."""
        return cls(services.store, services.engine.inbox)

    def __init__(self, store: Store, inbox: Inbox) -> None:
        self._reads = store.reads.of(TopicReads)
        self._inbox = inbox

    async def page(self, wanted: RoutersWanted, reach: Reach) -> list[TopicRouter]:
        """Routers behind a name, in the order of their names."""
        return await self._reads.routers(wanted, reach)

    async def count(self) -> int:
        """How many routers there are."""
        return await self._reads.count_routers()

    async def get(self, name: str, reach: Reach) -> TopicRouter:
        """One router. Raises `RouterNotFound`."""
        found = await self._reads.router(check_router(name))
        if found is None:
            raise RouterNotFound(name)
        reach.require([found.config])
        return found

    async def put(self, name: str, config: RouterConfig, reach: Reach) -> RouterPut:
        """Create or change a router. Raises the errors of `PutRouter`."""
        check_ends(config)
        reach.require([config])
        return await self._inbox.ask(PutRouter(check_router(name), config, reach))

    async def delete(self, name: str, reach: Reach) -> bool:
        """Delete a router. Returns whether there was one."""
        return await self._inbox.ask(DeleteRouter(check_router(name), reach))
