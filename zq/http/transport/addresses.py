"""IP addresses as they come: with a zone, or with IPv4 dressed as IPv6."""

import asyncio
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address that a text is, None where it is a name."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_wildcard(text: str) -> bool:
    """Whether a text is an address that stands for all of a machine's."""
    address = parse_address(text)
    return address is not None and address.is_unspecified


def is_loopback(text: str | None) -> bool:
    """Whether a text is an address of this machine that no other one can reach."""
    address = None if text is None else parse_address(text)
    return address is not None and address.is_loopback


def peer_of(transport: asyncio.BaseTransport | None) -> str:
    """Who is on the other end: an IPv4 address, or the /64 network that one IPv6 host may fill."""
    name = None if transport is None else transport.get_extra_info("peername")
    if not isinstance(name, tuple):
        return ""
    address = str(name[0])
    if ":" not in address:
        return address
    host = IPv6Address(address.partition("%")[0])
    if host.ipv4_mapped is not None:
        return str(host.ipv4_mapped)
    return str(IPv6Network((host, 64), strict=False))
