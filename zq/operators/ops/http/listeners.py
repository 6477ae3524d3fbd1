"""`/listeners`: how one of the server's listeners tells operators where the other one is."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp import web

from zq.http.api.endpoints import answer, endpoint
from zq.http.door import Route
from zq.http.guard import Guard
from zq.http.transport.addresses import is_wildcard
from zq.http.transport.answer import Answer
from zq.model.errors import ScopeMissing
from zq.model.keys import KeyScope
from zq.model.reach import EVERYWHERE
from zq.wire.codecs import BodyCodec

OPERATORS = frozenset({KeyScope.READ, KeyScope.MANAGE})
"""The scopes that open something on the admin listener."""


@dataclass(frozen=True)
class ListenerAddresses:
    """The addresses of a running server's listeners."""

    primary: Callable[[], str]
    admin: Callable[[], str | None]
    server: str = field(default_factory=lambda: secrets.token_hex(8))
    """A random text of this start. A client that finds it behind two addresses found one server."""

    def primary_for(self, request: web.BaseRequest) -> str:
        """The address of the primary listener, as the sender of a request can use it."""
        return _named(self.primary(), request)

    def document_for(self, request: web.BaseRequest) -> dict[str, str | None]:
        """Both addresses, as the sender of a request can use them."""
        admin = self.admin()
        return {
            "server": self.server,
            "primary": self.primary_for(request),
            "admin": None if admin is None else _named(admin, request),
        }


class ListenersApi:
    """The endpoint, on the listener `here`: `primary` or `admin`."""

    def __init__(self, here: str, listeners: ListenerAddresses, guard: Guard) -> None:
        self._here = here
        self._listeners = listeners
        self._guard = guard

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/listeners", endpoint(self.listeners), None)]

    async def listeners(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The addresses of the primary and the admin listener, and which of them answers: `here`.

        If the server has keys, the answer is for those that open the admin listener: with the scope
        `read` or `manage`, and without prefixes. `server` is equal on both listeners of a server.
        """
        key = self._guard.key_of(request)
        if key is not None and not (key.scopes & OPERATORS and key.reach is EVERYWHERE):
            raise ScopeMissing(
                f"the key {key.name!r} does not open the admin listener, which needs the scope read"
                " or manage, for all queues"
            )
        return answer({"here": self._here, **self._listeners.document_for(request)}, accepted)


def _named(url: str, request: web.BaseRequest) -> str:
    """The address with the name by which the sender knows this machine, if it has no other one."""
    parts = urlsplit(url)
    name = urlsplit(f"//{request.host}").hostname
    if name is None or not is_wildcard(parts.hostname or ""):
        return url
    host = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{host}:{parts.port}"
