"""The guard: it checks every request before its body is read. Browsers first, then keys."""

from __future__ import annotations

import base64
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from aiohttp import hdrs, web
from multidict import istr

from zq.http.door import Route
from zq.http.sessions import Sessions
from zq.http.transport.addresses import parse_address
from zq.http.transport.tls import client_name
from zq.model.errors import ForeignHost, ForeignPage, ScopeMissing, Unauthorized
from zq.model.keys import Key, KeyRing, KeyScope
from zq.model.reach import EVERYWHERE, Reach

log = logging.getLogger(__name__)

CHALLENGE = 'Bearer realm="zq", Basic realm="zq", charset="UTF-8"'
"""The header `WWW-Authenticate` of a 401."""

KEY_BESIDE = istr("Zq-Key")
"""The header of a key where `Authorization` is a user's."""

KEY = web.RequestKey("key", Key)
"""The key of a request. It is missing if no key is needed."""

USER = web.RequestKey("user", str)
"""The name of a request's user, where a door knows users."""

REACH = web.RequestKey("reach", Reach)

GUEST = web.RequestKey("guest", bool)
"""Set on a request of a page of another site that `--allow-origin` names."""

READING = frozenset({KeyScope.READ, KeyScope.HISTORY, KeyScope.REVEAL, None})
"""Scopes of routes that change nothing, by a safe method."""

MAKING = frozenset({KeyScope.ENQUEUE, KeyScope.MANAGE})
"""Scopes of routes that may make what a key has a quota of."""

SAFE_METHODS = ("GET", "HEAD")

NOWHERE = Reach(())
"""The reach of routes that need no key, although there are keys. It covers no queue."""

SEC_FETCH_SITE = istr("Sec-Fetch-Site")

OWN_SITES = frozenset({"same-origin", "none"})
"""Requests of our own page or of the user, who has typed the address or used a bookmark."""

BROWSER = "Mozilla/"
"""The `User-Agent` of every browser begins with this."""

MOST_KNOWN = 1024


def is_guest(request: web.BaseRequest) -> bool:
    """True if a page of another site has sent a request.

    What a browser adds by itself (a cookie, a stored password, a certificate) is the user's, not
    the page's. It says nothing about what the page may do.
    """
    # Looking for what is not there costs a request as much as its JSON.
    return hdrs.ORIGIN in request.headers and GUEST in request


class Browsers:
    """Keeps web pages out: a browser sends a page's requests to every host that its user can reach.

    Four headers help. `Host` names the server that the client believes to talk to. It exposes a
    page whose own name points here (DNS rebinding). `Sec-Fetch-Site` and, from browsers that do not
    send it, `Origin` tell the site of a request. A page can set none of them, and other clients
    than browsers send neither of these two.

    Over plain http, to a name that is not a loopback name, a browser never sends `Sec-Fetch-Site`.
    It sends no `Origin` for an image, a frame, a script or a `fetch` of mode no-cors. Such a
    request looks like one from another client, except for its `User-Agent`, which no page can set
    for these either. It may read, since the browser shows the answer to no page of another site
    (and a user may have typed the address). It may change nothing, and take no job.

    `hosts` are names or addresses of this server besides the loopback ones and the address of the
    connection. `origins` are sites whose pages may use it, as guests, and `public` is the origin at
    which a proxy shows this server. With `any_address` the server accepts
    every address but the wildcard ones as its own: a port may be forwarded to it, and a page whose
    `Host` is an address was not reached by a name that could point here.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        origins: Iterable[str],
        *,
        public: str | None = None,
        any_address: bool = False,
    ) -> None:
        self._any_address = any_address
        self._hosts = frozenset(_name(host) for host in hosts)
        self._origins = frozenset(origins)
        self._public = public
        self._known: set[str | tuple[str, str]] = set()

    def check(self, request: web.BaseRequest, *, reads: bool) -> None:
        """Raise `ForeignHost` or `ForeignPage`, or do nothing. `reads`: it changes nothing."""
        headers = request.headers
        host = headers.get(hdrs.HOST)
        if host is not None and host not in self._known:
            self._check_host(host, request)
        origin = headers.get(hdrs.ORIGIN)
        if origin is not None and origin.lower() == self._public:
            return
        site = headers.get(SEC_FETCH_SITE)
        if origin is not None and origin.lower() in self._origins:
            if site not in OWN_SITES and not _is_own(origin, host):
                request[GUEST] = True
            return
        if site is not None:
            if site not in OWN_SITES:
                raise _foreign(f"Sec-Fetch-Site: {site}")
            return
        if origin is not None:
            if not _is_own(origin, host):
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


def _is_own(origin: str, host: str | None) -> bool:
    # Behind a proxy that ends TLS the schemes differ, so only the host is compared.
    return host is not None and origin.lower().partition("://")[2] == host.lower()


def _name(host: str) -> str:
    """The name or address in a `Host` header, or by itself, in the form for comparison."""
    if parse_address(host) is not None:
        return str(parse_address(host))
    bare = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return str(parse_address(bare) or bare.lower().removesuffix("."))


def _own_address(request: web.BaseRequest) -> str:
    """The address of this machine on the connection; empty once it is closed."""
    name = request.get_extra_info("sockname")
    return name[0] if isinstance(name, tuple) else ""


def _is_local_name(name: str) -> bool:
    # RFC 6761, section 6.3: names below localhost never leave the machine either.
    return name == "localhost" or name.endswith(".localhost")


def _foreign(what: str) -> ForeignPage:
    return ForeignPage(
        f"this request comes from a web page of another site ({what}); see --allow-origin"
    )


reach_of: Callable[[web.BaseRequest], Reach] = itemgetter(REACH)
"""The reach of a request's sender."""


def actor_of(request: web.BaseRequest) -> str | None:
    """The sender of a request: the name of the user or of the key, if there is one."""
    key = request.get(KEY)
    return request.get(USER) or (None if key is None else key.name)


class Admitted(NamedTuple):
    """The sender of a call: its key, if it needs one, and its reach."""

    key: Key | None
    reach: Reach


class Guard:
    """The rules about browsers, then those about keys, if there are keys."""

    def __init__(self, browsers: Browsers, keys: KeyRing | None) -> None:
        self._browsers = browsers
        self._keys = keys
        self._streams: dict[object, tuple[Key, Callable[[], object]]] = {}
        self.sessions: Sessions | None = None
        """The sessions of a page. A session's cookie stands for its key."""

    def admit(self, request: web.BaseRequest, route: Route | None) -> None:
        """Admit a request for a route, or raise `Unauthorized` or a `Forbidden`.

        If there are keys, a request for an unknown route needs a known key.
        """
        # Signing in needs no scope, and yet it changes something.
        reads = route is None or (route.scope in READING and request.method in SAFE_METHODS)
        self._browsers.check(request, reads=reads)
        if self._keys is None:
            if is_guest(request) and client_name(request) is not None:
                raise own_credentials_needed()
            request[REACH] = EVERYWHERE
        else:
            _grant(request, route, self._keys, self.sessions)

    @property
    def keys(self) -> tuple[Key, ...]:
        """All keys, if keys are needed."""
        return () if self._keys is None else self._keys.keys

    def key_of(self, request: web.BaseRequest) -> Key | None:
        """The key of a request; None if no keys are needed. Raises `Unauthorized`."""
        return None if self._keys is None else _key_or_session(request, self._keys, self.sessions)

    def opens(self, request: web.BaseRequest, scope: KeyScope) -> bool:
        """True if the sender of a request for everybody may also send those of a scope that are
        about all queues."""
        try:
            if (key := self.key_of(request)) is not None:
                _require(key, scope, whole=True)
        except (Unauthorized, ScopeMissing):
            return False
        return True

    def key_with(self, secret: str) -> Key:
        """The key with this secret. Raises `Unauthorized`."""
        key = None if self._keys is None else self._keys.with_secret(secret.encode())
        if key is None:
            raise Unauthorized("this key is not known here, or no longer")
        return key

    def admit_call(self, header: str | None, certificate: str | None, scope: KeyScope) -> Admitted:
        """Admit a call that is no request, which no browser can send.

        `header` is what `Authorization` would be, `certificate` the name in the client's. Raises
        `Unauthorized` or `ScopeMissing`.
        """
        if self._keys is None:
            return Admitted(None, EVERYWHERE)
        key = _presented(header, self._keys) if header else _certified(certificate, self._keys)
        _require(key, scope)
        return Admitted(key, key.reach)

    def change_keys(self, keys: KeyRing) -> None:
        """Use other keys from now on. Streams end if their key has changed."""
        self._keys = keys
        for key, end in list(self._streams.values()):
            self._end_without(key, end)

    @contextlib.contextmanager
    def while_granted(self, request: web.BaseRequest, end: Callable[[], object]) -> Iterator[None]:
        """Within the block, call `end` once the request's key is changed or revoked, or the session
        that it came with is over."""
        with contextlib.ExitStack() as watched:
            watched.enter_context(self.while_valid(request.get(KEY), end))
            if self.sessions is not None:
                watched.enter_context(self.sessions.while_open(request, end))
            yield

    @contextlib.contextmanager
    def while_valid(self, key: Key | None, end: Callable[[], object]) -> Iterator[None]:
        """Within the block, call `end` once a key, if there is one, is changed or revoked."""
        if key is None:
            yield
            return
        # The keys may have changed since the request was admitted.
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


def _grant(
    request: web.BaseRequest, route: Route | None, keys: KeyRing, sessions: Sessions | None
) -> None:
    if route is not None and route.scope is None:
        request[REACH] = NOWHERE
        return
    if route is not None and route.users:
        key = _key_beside(request, keys)
    elif route is not None and route.token:
        key = _key_of_stream(request, keys)
    else:
        key = _key_or_session(request, keys, sessions)
    if route is not None:
        _require(key, route.scope, whole=route.whole)
        if route.besides is not None:
            _require(key, route.besides)
    makes = route is not None and route.scope in MAKING
    request[KEY], request[REACH] = key, key.making if makes else key.reach


def _key_or_session(request: web.BaseRequest, keys: KeyRing, sessions: Sessions | None) -> Key:
    if sessions is not None and not (hdrs.AUTHORIZATION in request.headers or is_guest(request)):
        key = sessions.key_of(request, keys)
        if key is not None:
            return key
    return key_of(request, keys)


def _require(key: Key, scope: KeyScope | None, *, whole: bool = False) -> None:
    if scope not in key.scopes:
        raise ScopeMissing(
            f"the key {key.name!r} does not have the scope {scope}, which this needs"
        )
    if whole and key.reach is not EVERYWHERE:
        raise ScopeMissing(
            f"the key {key.name!r} is limited to some queues, and this is about all of them"
        )


def key_of(request: web.BaseRequest, keys: KeyRing) -> Key:
    """The key of a request. Raises `Unauthorized`."""
    header = request.headers.get(hdrs.AUTHORIZATION)
    if is_guest(request) and not is_bearer(header):
        raise own_credentials_needed()
    if header is None:
        return _certified(client_name(request), keys)
    return _presented(header, keys)


def is_bearer(header: str | None) -> bool:
    """True if a header `Authorization` is one that no browser sends by itself."""
    return header is not None and header[:7].lower() == "bearer "


def own_credentials_needed() -> Unauthorized:
    """The error for a page of another site that lets the browser say who it is."""
    return Unauthorized(
        "a page of another site needs a key or token of its own, as `Authorization: Bearer SECRET`:"
        " what the browser sends by itself does not count"
    )


def _presented(header: str, keys: KeyRing) -> Key:
    user, secret = _credentials(header)
    key = keys.with_secret(secret)
    if key is None or user not in ("", key.name):
        raise Unauthorized("this key is unknown, or it was revoked")
    return key


def _key_beside(request: web.BaseRequest, keys: KeyRing) -> Key:
    """The key of a request that has its user in `Authorization`."""
    secret = request.headers.get(KEY_BESIDE)
    if secret is not None:
        return _presented(f"Bearer {secret}", keys)
    name = None if is_guest(request) else client_name(request)
    if name is None:
        raise Unauthorized("this server wants a key besides the user: send it as `Zq-Key: SECRET`")
    return _certified(name, keys)


def _key_of_stream(request: web.BaseRequest, keys: KeyRing) -> Key:
    """The key of a request that may have it in its query. A header comes first."""
    token = request.query.get("token")
    if token is None or hdrs.AUTHORIZATION in request.headers:
        return key_of(request, keys)
    key = keys.with_secret(token.encode("utf-8", "surrogateescape"))
    if key is None:
        raise Unauthorized("this key is not known here, or no longer")
    return key


def _certified(name: str | None, keys: KeyRing) -> Key:
    if name is None:
        raise Unauthorized("this server needs a key: send it as `Authorization: Bearer SECRET`")
    key = keys.named(name)
    if key is None:
        raise Unauthorized(f"the client certificate names {name!r}, and there is no such key")
    return key


def _credentials(header: str) -> tuple[str, bytes]:
    """The user name (empty if there is none), and the secret."""
    scheme, _, rest = header.partition(" ")
    match scheme.lower():
        case "bearer" if rest.strip():
            return "", rest.strip().encode("utf-8", "surrogateescape")
        case "basic":
            try:
                user, _, secret = base64.b64decode(rest.strip(), validate=True).partition(b":")
                return user.decode(), secret
            except ValueError:
                pass  # it is no base 64, or not even ASCII
    raise Unauthorized(
        "Authorization must be `Bearer SECRET`, or Basic with the secret as its password"
    )
