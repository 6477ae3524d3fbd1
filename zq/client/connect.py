"""Makes the backend for an address."""

import os
import re

from zq.client.backend import Backend
from zq.client.errors import InvalidOption
from zq.client.formats import JSON, Codec
from zq.client.http.address import Address, Tls, check_url, split_url
from zq.client.http.backend import HttpBackend
from zq.model.urls import DEFAULT_URL

_BETWEEN = re.compile(r",(?=https?://)")


def connect(
    url: str | None,
    token: str | None = None,
    codec: Codec = JSON,
    tls: Tls | None = None,
    *,
    standby: bool = False,
    must_exist: bool = False,
) -> Backend:
    """Make the backend for an address. Nothing is opened yet.

    Servers that share a database may be named together, as in ``http://one:7890,http://two:7890``:
    the next one is asked when one does not answer.

    Without an address, the variable ``ZQ_URL`` is used, or else a server on this machine. The
    defaults of `token` and `tls` are ``ZQ_TOKEN`` and `Tls.of_environment`. For
    ``sqlite:///var/lib/zq``, a data directory, the engine runs in this process. The directory of
    ``sqlite://:memory:`` is private and removed at the end. A `standby` waits while another process
    owns the directory. With `must_exist` the directory is not made. Raises `InvalidOption`.
    """
    url = url or os.environ.get("ZQ_URL") or DEFAULT_URL
    token = token or os.environ.get("ZQ_TOKEN") or None
    if not isinstance(url, str):
        raise InvalidOption(f"{url!r} is not an address, such as {DEFAULT_URL!r}")
    parts = split_url(url)
    if parts.scheme == "sqlite":
        if parts.path and parts.netloc:
            raise InvalidOption(
                f"{url!r}: a path begins with a third slash: sqlite:///{parts.netloc}{parts.path}"
            )
        if "#" in url or "?" in url:
            raise InvalidOption(
                f"{url!r}: a path with # or ? would be cut there: name a directory without them"
            )
        return _embedded(parts.netloc + parts.path, standby, must_exist)
    urls = _BETWEEN.split(url)
    for each in urls:
        check_url(each)
    if standby:
        raise InvalidOption(
            f"standby: this is for sqlite:///…; {url!r} may have any number of clients"
        )
    first, *others = [each.rstrip("/") for each in urls]
    tls = tls or Tls.of_environment()
    return HttpBackend(Address(first, token, codec, tls, tuple(others)))


def _embedded(path: str, standby: bool, must_exist: bool) -> Backend:
    # Only programs with the engine in their process need its modules.
    from zq.client.embedded.backend import EmbeddedBackend
    from zq.client.embedded.engine import EmbeddedEngine, directory_of

    return EmbeddedBackend(EmbeddedEngine(directory_of(path, must_exist), standby=standby))
