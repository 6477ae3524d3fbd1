"""From an address to a backend."""

import os
from urllib.parse import urlsplit

from zq.client.backend import Backend
from zq.client.errors import InvalidOption
from zq.client.formats import JSON, Codec
from zq.client.http import HttpBackend
from zq.client.transport import Address, Tls

DEFAULT_URL = "http://127.0.0.1:7890"


def connect(
    url: str | None,
    token: str | None = None,
    codec: Codec = JSON,
    tls: Tls | None = None,
    *,
    standby: bool = False,
) -> Backend:
    """The backend for an address; nothing is opened yet.

    Without one, that of the variable ``ZQ_URL``, or a server on this machine; the key likewise is
    that of ``ZQ_TOKEN``, and the authority that of ``ZQ_CA``. ``sqlite:///var/lib/zq`` is a data
    directory, of which the engine runs in this process; ``sqlite://:memory:`` a private one that
    goes with it. A `standby` waits while another process has the data directory.
    """
    url = url or os.environ.get("ZQ_URL") or DEFAULT_URL
    token = token or os.environ.get("ZQ_TOKEN") or None
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return _embedded(parts.netloc + parts.path, standby)
    if standby:
        raise InvalidOption(f"standby: is for sqlite:///…; {url!r} has any number of clients")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidOption(f"{url!r} is no address of a server: write {DEFAULT_URL}, or https://…")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise InvalidOption(f"{url!r}: give the key as token=, and no query")
    tls = tls or Tls(ca=os.environ.get("ZQ_CA") or None)
    return HttpBackend(Address(url.rstrip("/"), token, codec, tls))


def _embedded(path: str, standby: bool) -> Backend:
    # Only who wants the engine in this process needs what it is made of.
    from zq.client.embedded.backend import EmbeddedBackend
    from zq.client.embedded.home import Home, directory_of

    return EmbeddedBackend(Home(directory_of(path), standby=standby))
