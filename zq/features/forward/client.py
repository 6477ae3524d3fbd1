"""Lanes for programs: the verbs of a server about them."""

from zq.client.asking import Ask
from zq.features.forward import verbs
from zq.features.forward.wire import HubDocument as HubDocument
from zq.features.forward.wire import LaneBody as LaneBody
from zq.features.forward.wire import LaneDocument as LaneDocument
from zq.features.forward.wire import ResumeBody


class ServerLanes:
    """The lanes of one server. A missing one raises a `BackendError`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> list[LaneDocument]:
        """All lanes by name."""
        return (await self._ask(verbs.LIST)).lanes

    async def hubs(self) -> list[HubDocument]:
        """The hubs that they lead to, and what comes back from each."""
        return (await self._ask(verbs.LIST)).hubs

    async def get(self, lane: str) -> LaneDocument:
        """One lane."""
        return await self._ask(verbs.GET, name=lane)

    async def put(self, lane: str, rule: LaneBody) -> LaneDocument:
        """Make a lane, or change its rule."""
        return await self._ask(verbs.PUT, rule, name=lane)

    async def drop(self, lane: str) -> None:
        """Forget a lane, and give its jobs to the workers of the server."""
        await self._ask(verbs.DELETE, name=lane)

    async def pause(self, lane: str) -> LaneDocument:
        """Stop a lane."""
        return await self._ask(verbs.PAUSE, name=lane)

    async def resume(self, lane: str, *, take_over: bool = False) -> LaneDocument:
        """Let a lane go on, or try at once. With `take_over`, in the place of another server."""
        return await self._ask(verbs.RESUME, ResumeBody(take_over), name=lane)
