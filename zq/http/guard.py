"""Who gets in: every request passes here before its body is read. Browsers first, then keys."""

from __future__ import annotations

import base64
import binascii
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter

from aiohttp import hdrs, web
from multidict import istr

from zq.http.door import Route
from zq.http.transport.addresses import parse_address
from zq.http.transport.tls import client_name
from zq.model.errors import ForeignHost, ForeignPage, ScopeMissing, Unauthorized
from zq.model.keys import Key, KeyRing, KeyScope
from zq.model.reach import EVERYWHERE, Reach

log = logging.getLogger(__name__)

CHALLENGE = 'Bearer realm="zq", Basic realm="zq", charset="UTF-8"'
"""For the header `WWW-Authenticate` of a 401."""

SEC_FETCH_SITE = istr("Sec-Fetch-Site")
OWN_SITES = frozenset({"same-origin", "none"})
"""Asked for by our own page, or by the user: an address typed, a bookmark."""

BROWSER = "Mozilla/"
"""What the `User-Agent` of every browser begins with."""

MOST_KNOWN = 1024


KEY = web.RequestKey("key", Key)
"""The key that a request was let in with; it has none where none is needed."""

REACH = web.RequestKey("reach", Reach)

READING = frozenset({KeyScope.READ, KeyScope.HISTORY, None})
"""Scopes of routes that change nothing."""

NOWHERE = Reach(())
"""For what is open to all although there are keys: it sees no queue."""

reach_of: Callable[[web.BaseRequest], Reach] = itemgetter(REACH)
"""How far the view of a request's sender goes."""


class Guard:
    """The rules about browsers, then those about keys, if there are keys."""

    def __init__(self, browsers: Browsers, keys: KeyRing | None) -> None:
        self._browsers = browsers
        self._keys = keys
        self._streams: dict[object, tuple[Key, Callable[[], object]]] = {}

    def admit(self, request: web.BaseRequest, route: Route | None) -> None:
        """Let a request for a route in, or raise `Unauthorized` or a `Forbidden`.

        A request for no route of ours needs a key that is known, where there are keys.
        """
        self._browsers.check(request, reads=route is None or route.scope in READING)
        if self._keys is None:
            request[REACH] = EVERYWHERE
        else:
            _grant(request, route, self._keys)

    def change_keys(self, keys: KeyRing) -> None:
        """Go by other keys from now on. Streams end whose key is no longer what it was."""
        self._keys = keys
        for key, end in list(self._streams.values()):
            self._end_without(key, end)

    @contextlib.contextmanager
    def while_granted(self, request: web.BaseRequest, end: Callable[[], object]) -> Iterator[None]:
        """Call `end` once the request's key is changed or revoked, as long as this lasts."""
        key = request.get(KEY)
        if key is None:
            yield
            return
        # The keys may have changed since the request was let in.
        self._end_without(key, end)
        place = object()
        self._streams[place] = (key, end)
        try:
            yield
        finally:
            del self._streams[place]

    def _end_without(self, key: Key, end: Callable[[], object]) -> None:
        if self._keys is None or self._keys.named(key.name) != key:
            log.info("a stream ends with its key", extra={"fields": {"key": key.name}})
            end()


def _grant(request: web.BaseRequest, route: Route | None, keys: KeyRing) -> None:
    if route is not None and route.scope is None:
        request[REACH] = NOWHERE
        return
    key = key_of(request, keys)
    if route is not None:
        _require(key, route)
    request[KEY], request[REACH] = key, key.reach


def _require(key: Key, route: Route) -> None:
    if route.scope not in key.scopes:
        raise ScopeMissing(
            f"the key {key.name!r} does not have the scope {route.scope}, which this needs"
        )
    if route.whole and key.reach is not EVERYWHERE:
        raise ScopeMissing(
            f"the key {key.name!r} is limited to some queues, and this is about all of them"
        )


class Browsers:
    """Keeps web pages out: a browser carries a page's requests to wherever its visitor can reach.

    Four headers tell. `Host` names whom the client believes to talk to: a page that had its own
    name point here (DNS rebinding) gives itself away by it. `Sec-Fetch-Site` and, from browsers
    that do not send it, `Origin` tell which site a request comes from. A page can set none of them,
    and a client that is no browser sends neither of these two.

    Over plain http to a name that is no loopback one a browser sends no `Sec-Fetch-Site` at all,
    and no `Origin` with what it gets for an image, a frame, a script or a `fetch` of mode no-cors.
    Such a request looks like that of a client that is none, but for its `User-Agent`, which no page
    can set for these either. It may read, for the browser shows the answer to no page of another
    site (and a user may have typed the address); it may change nothing, and take no job.

    `hosts` are names or addresses of this server besides the loopback ones and the address that a
    connection has come to; `origins` are sites whose pages may use it. With `any_address` the
    server goes by every address but the wildcard ones: a port may be forwarded to it, and a page
    whose `Host` is an address was reached without a name that could have been pointed here.
    """

    def __init__(
        self, hosts: Iterable[str], origins: Iterable[str], *, any_address: bool = False
    ) -> None:
        self._any_address = any_address
        self._hosts = frozenset(_name(host) for host in hosts)
        self._origins = frozenset(origins)
        self._known: set[str | tuple[str, str]] = set()

    def check(self, request: web.BaseRequest, *, reads: bool) -> None:
        """Raise `ForeignHost` or `ForeignPage`, or do nothing. `reads`: it changes nothing."""
        headers = request.headers
        host = headers.get(hdrs.HOST)
        if host is not None and host not in self._known:
            self._check_host(host, request)
        site = headers.get(SEC_FETCH_SITE)
        if site is not None:
            if site not in OWN_SITES:
                raise _foreign(f"Sec-Fetch-Site: {site}")
            return
        origin = headers.get(hdrs.ORIGIN)
        if origin is not None:
            if not self._is_own(origin, host):
                raise _foreign(f"Origin: {origin}")
        elif not reads and headers.get(hdrs.USER_AGENT, "").startswith(BROWSER):
            raise ForeignPage(
                "this request comes from a browser that does not say for which page: over plain"
                " http it may only read. Use https, or another client"
            )

    def _check_host(self, host: str, request: web.BaseRequest) -> None:
        name = _name(host)
        address = parse_address(name)
        anywhere = self._any_address and address is not None and not address.is_unspecified
        local = _is_local_name(name) or (address is not None and address.is_loopback)
        if name in self._hosts or local or anywhere:
            self._remember(host)
            return
        here = _own_address(request)
        if (host, here) in self._known:
            return
        if address is None or address != parse_address(here):
            raise ForeignHost(
                f"this server does not go by the name {name!r} (Host): start it with --allow-host"
                f" {name} if it should"
            )
        self._remember((host, here))

    def _remember(self, host: str | tuple[str, str]) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known.add(host)

    def _is_own(self, origin: str, host: str | None) -> bool:
        # Behind a proxy that ends TLS the schemes differ, so the place alone is compared.
        place = origin.lower().partition("://")[2]
        return origin.lower() in self._origins or (host is not None and place == host.lower())


def key_of(request: web.BaseRequest, keys: KeyRing) -> Key:
    """The key of a request. Raises `Unauthorized`."""
    header = request.headers.get(hdrs.AUTHORIZATION)
    if header is None:
        return _certified(client_name(request), keys)
    user, secret = _credentials(header)
    key = keys.with_secret(secret)
    if key is None or user not in ("", key.name):
        raise Unauthorized("this key is not known here, or no longer")
    return key


def _certified(name: str | None, keys: KeyRing) -> Key:
    if name is None:
        raise Unauthorized("this server wants a key: send it as `Authorization: Bearer SECRET`")
    key = keys.named(name)
    if key is None:
        raise Unauthorized(f"the client certificate names {name!r}, and there is no such key")
    return key


def _credentials(header: str) -> tuple[str, bytes]:
    """The user name, empty where there is none, and the secret."""
    scheme, _, rest = header.partition(" ")
    match scheme.lower():
        case "bearer" if rest.strip():
            return "", rest.strip().encode("utf-8", "surrogateescape")
        case "basic":
            try:
                user, _, secret = base64.b64decode(rest.strip(), validate=True).partition(b":")
                return user.decode(), secret
            except (binascii.Error, UnicodeDecodeError):
                pass
    raise Unauthorized(
        "Authorization must be `Bearer SECRET`, or Basic with the secret as its password"
    )


def _name(host: str) -> str:
    """The name or address in a `Host` header, or by itself, in the form in which it is compared."""
    if parse_address(host) is not None:
        return str(parse_address(host))
    bare = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return str(parse_address(bare) or bare.lower().removesuffix("."))


def _own_address(request: web.BaseRequest) -> str:
    """The address of this machine that the connection has come to; empty once it is closed."""
    name = request.get_extra_info("sockname")
    return name[0] if isinstance(name, tuple) else ""


def _is_local_name(name: str) -> bool:
    # RFC 6761, section 6.3: names below localhost never leave the machine either.
    return name == "localhost" or name.endswith(".localhost")


def _foreign(what: str) -> ForeignPage:
    return ForeignPage(
        f"this request comes from a web page of another site ({what}); see --allow-origin"
    )
