"""IP addresses as the system writes them: with a zone, or with IPv4 mapped into IPv6."""

from ipaddress import IPv4Address, IPv6Address, ip_address

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
