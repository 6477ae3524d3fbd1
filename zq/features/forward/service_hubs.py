"""How the way back from the hubs goes, for whoever looks."""

from typing import Self

import msgspec

from zq.service.services import Services


class HubProgress(msgspec.Struct):
    """How the way back from a hub goes, since the start of the server. Times are milliseconds of
    wall time."""

    url: str
    state: str = "starting"
    """`starting`, `listening`, or `waiting` after an error."""
    fetched: int = 0
    refused: int = 0
    records: int = 0
    """So many records of the history have been sent."""
    succeeded_at: int | None = None
    error: str | None = None
    error_code: str | None = None
    failed_at: int | None = None


class Hubs:
    """The hubs of this device by their addresses. The links to them keep their progress here."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The hubs of a server."""
        return cls()

    def __init__(self) -> None:
        self._found: dict[str, HubProgress] = {}

    def at(self, url: str) -> HubProgress:
        """How it goes with a hub, from now on."""
        return self._found.setdefault(url, HubProgress(url))

    def forget(self, url: str) -> None:
        """No lane names this hub any more."""
        self._found.pop(url, None)

    def all(self) -> list[HubProgress]:
        """All of them by address."""
        return [self._found[url] for url in sorted(self._found)]
