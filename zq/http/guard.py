"""The guard: it checks every request before its body is read. Browsers first, then keys."""

from __future__ import annotations

import base64
import contextlib
import logging
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import NamedTuple

from aiohttp import hdrs, web
from multidict import istr

from zq.http.browsers import Browsers, is_guest
from zq.http.door import Route
from zq.http.sessions import Sessions
from zq.http.transport.tls import client_name
from zq.model.errors import ScopeMissing, Unauthorized
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


READING = frozenset({KeyScope.READ, KeyScope.HISTORY, KeyScope.REVEAL, None})
"""Scopes of routes that change nothing, by a safe method."""

MAKING = frozenset({KeyScope.ENQUEUE, KeyScope.MANAGE})
"""Scopes of routes that may make what a key has a quota of."""

SAFE_METHODS = ("GET", "HEAD")

NOWHERE = Reach(())
"""The reach of routes that need no key, although there are keys. It covers no queue."""

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
