"""IP addresses as they come: with a zone, or with IPv4 dressed as IPv6."""

from ipaddress import IPv4Address, IPv6Address, ip_address


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
