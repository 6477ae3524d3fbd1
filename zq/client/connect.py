"""From an address to a backend."""

import os

from zq.client.backend import Backend
from zq.client.errors import InvalidOption
from zq.client.formats import JSON, Codec
from zq.client.http import HttpBackend
from zq.client.transport import Address, Tls
from zq.client.urls import DEFAULT_URL, check_url, split_url


def connect(
    url: str | None,
    token: str | None = None,
    codec: Codec = JSON,
    tls: Tls | None = None,
    *,
    standby: bool = False,
    must_exist: bool = False,
) -> Backend:
    """The backend for an address; nothing is opened yet.

    Without one, that of the variable ``ZQ_URL``, or a server on this machine; the key likewise is
    that of ``ZQ_TOKEN``, and `tls` is `Tls.of_environment`. ``sqlite:///var/lib/zq`` is a data
    directory, of which the engine runs in this process; ``sqlite://:memory:`` a private one that
    goes with it. A `standby` waits while another process has the data directory; one that
    `must_exist` is not made. Raises `InvalidOption`.
    """
    url = url or os.environ.get("ZQ_URL") or DEFAULT_URL
    token = token or os.environ.get("ZQ_TOKEN") or None
    parts = split_url(url)
    if parts.scheme == "sqlite":
        if parts.path and parts.netloc:
            raise InvalidOption(
                f"{url!r}: a path begins with a third slash: sqlite:///{parts.netloc}{parts.path}"
            )
        return _embedded(parts.netloc + parts.path, standby, must_exist)
    check_url(url)
    if standby:
        raise InvalidOption(f"standby: is for sqlite:///…; {url!r} has any number of clients")
    return HttpBackend(Address(url.rstrip("/"), token, codec, tls or Tls.of_environment()))


def _embedded(path: str, standby: bool, must_exist: bool) -> Backend:
    # Only who wants the engine in this process needs what it is made of.
    from zq.client.embedded.backend import EmbeddedBackend
    from zq.client.embedded.home import Home, directory_of

    return EmbeddedBackend(Home(directory_of(path, must_exist), standby=standby))
