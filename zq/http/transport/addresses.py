"""IP addresses as the system writes them: with a zone, or with IPv4 mapped into IPv6; and the
addresses of a server's listeners, as those who ask can use them."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from aiohttp import web

LOCALHOST = "localhost"
"""The name of the machine itself: both of its loopback addresses."""


def listening_hosts(host: str) -> tuple[str, ...]:
    """The addresses to listen on for a host that somebody named.

    Programs look `localhost` up in different ways, and take the IPv4 or the IPv6 address first. The
    machine's own table of names is not asked: often it has one of the two only (RFC 6761, 6.3).
    """
    return ("127.0.0.1", "::1") if host.lower() == LOCALHOST else (host,)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Read a text as an address; None if it is a name."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_wildcard(text: str) -> bool:
    """True if a text is the address that stands for all addresses of a machine."""
    address = parse_address(text)
    return address is not None and address.is_unspecified


def is_loopback(text: str | None) -> bool:
    """True if a text is an address that only programs of this machine can reach."""
    address = None if text is None else parse_address(text)
    return address is not None and address.is_loopback


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
