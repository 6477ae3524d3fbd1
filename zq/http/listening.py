"""The addresses of a server's listeners, as those who ask can use them."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp import web

from zq.http.transport.addresses import is_wildcard


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


def _named(url: str, request: web.BaseRequest) -> str:
    """The address with the name by which the sender knows this machine, if it has no other one."""
    parts = urlsplit(url)
    name = urlsplit(f"//{request.host}").hostname
    if name is None or not is_wildcard(parts.hostname or ""):
        return url
    host = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{host}:{parts.port}"
