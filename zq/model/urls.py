"""The valid addresses of a server over HTTP."""

from urllib.parse import SplitResult, urlsplit

DEFAULT_URL = "http://127.0.0.1:7890"


def url_parts(url: str) -> SplitResult:
    """The parts of an address of any scheme. Raises ValueError, whose text says what is wrong."""
    if not url.isprintable() or " " in url:
        raise _refused(url, "it contains a space or a control character")
    try:
        return urlsplit(url)
    except ValueError as error:
        raise _refused(url, str(error)) from None


def check_url(url: str) -> None:
    """Raise ValueError unless this is the address of a server over HTTP. Its text says why."""
    parts = url_parts(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        # It may contain a secret, so the message does not repeat it.
        raise ValueError(
            f"the address of {parts.hostname} holds more than host, port and path: give the key as"
            " a token"
        )
    if parts.scheme not in ("http", "https"):
        raise _refused(url, "it begins neither with http:// nor with https://")
    host, colon, digits = parts.netloc.rpartition(":")
    if colon and not host.startswith("[") and ":" in host:
        raise _refused(url, "an IPv6 address needs brackets")
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


def _refused(url: str, reason: str) -> ValueError:
    return ValueError(
        f"{url!r} is not the address of a server: {reason}. An example is {DEFAULT_URL}"
    )
