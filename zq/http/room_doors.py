"""What a room opens to clients: doors, listeners, and what it does around every request."""

from collections.abc import Mapping

from zq.config import Settings
from zq.http.api.door import NativeRoutes
from zq.http.api.parts import ApiParts
from zq.http.door import Door, Later, Route
from zq.http.guard import Guard


class RoomDoors:
    """The doors of one room on one server. A room's class overrides what the room has.

    A server calls `prepare`, `start`, then the others, and at last `stop`. A listener is `primary`
    or `admin`.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @property
    def descriptors(self) -> int:
        """How many descriptors the room's own listeners may need."""
        return 0

    def public_url(self, listener: str) -> str | None:
        """The address at which a proxy shows this listener, if the room's settings say so."""
        return None

    def prepare(self) -> None:
        """Check libraries and files before anything opens. Raises what tells of the cause."""

    async def start(self, parts: ApiParts, native: NativeRoutes) -> None:
        """Begin over the running engine. `native` has the routes of the native API."""

    def over(self, route: Route, door: Door) -> Route:
        """A route of a door, with what the room does around its requests."""
        return route

    def doors(self, listener: str, guard: Guard) -> list[Door]:
        """The doors on a listener."""
        return []

    def later(self, listener: str, guard: Guard) -> list[Later]:
        """The doors on a listener that are put together when somebody first asks for them."""
        return []

    def routes(self, listener: str, guard: Guard) -> list[Route]:
        """The routes that the room adds to the first door of a listener."""
        return []

    @property
    def ports(self) -> Mapping[str, int]:
        """The ports of the room's own listeners, by the protocol."""
        return {}

    @property
    def places(self) -> Mapping[str, str]:
        """Addresses that the log names at the start."""
        return {}

    async def stop(self, patience: float) -> None:
        """Let requests under way finish for up to `patience` seconds, then close."""
