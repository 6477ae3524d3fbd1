"""Which texts are addresses of a server."""

from urllib.parse import SplitResult, urlsplit

from zq.client.errors import InvalidOption

DEFAULT_URL = "http://127.0.0.1:7890"


def split_url(url: str) -> SplitResult:
    """The parts of an address of any scheme. Raises `InvalidOption`."""
    if not url.isprintable() or " " in url:
        raise _refused(url, "it has a space or a control character in it")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _refused(url, str(error)) from None
    if "://" not in url:
        raise InvalidOption(f"{url!r} is no address: it begins with http://, https:// or sqlite://")
    return parts


def check_url(url: str) -> None:
    """Raise `InvalidOption` unless this is the address of a server over HTTP."""
    parts = split_url(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        # It may hold a secret, so it is not said again.
        raise InvalidOption(
            f"the address of {parts.hostname} holds more than an address: give the key as a token"
        )
    if parts.scheme not in ("http", "https"):
        raise _refused(url, "it begins with neither http:// nor https://")
    host, colon, digits = parts.netloc.rpartition(":")
    if colon and not host.startswith("[") and ":" in host:
        raise _refused(url, "an IPv6 address stands in brackets")
    if (
        colon
        and not parts.netloc.endswith("]")
        and not (digits.isdecimal() and 1 <= int(digits[:9]) <= 65_535)
    ):
        raise _refused(url, "a port is a number from 1 to 65535")
    if not _is_host(parts.hostname or ""):
        raise _refused(url, "it names no host")


def _is_host(name: str) -> bool:
    if ":" in name:
        return True  # urlsplit has read it as an IPv6 address
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False


def _refused(url: str, reason: str) -> InvalidOption:
    return InvalidOption(f"{url!r} is no address of a server: {reason}. One is {DEFAULT_URL}")
