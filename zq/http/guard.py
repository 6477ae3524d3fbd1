"""Who gets in: every request passes here before its body is read."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from aiohttp import web

from zq.http.browsers import Browsers
from zq.http.credentials import key_of
from zq.http.endpoints import Route
from zq.model.errors import ScopeMissing
from zq.model.keys import Key, KeyRing, KeyScope
from zq.model.reach import EVERYWHERE, Reach

log = logging.getLogger(__name__)


class Grant(NamedTuple):
    """What a request was let in with: its key, None where none is needed, and how far it goes."""

    key: Key | None
    reach: Reach


GRANT = web.RequestKey("grant", Grant)

READING = frozenset({KeyScope.READ, KeyScope.HISTORY, None})
"""Scopes of routes that change nothing."""

ANYBODY = Grant(None, EVERYWHERE)
STRANGER = Grant(None, Reach(()))
"""For what is open to all although there are keys: it sees no queue."""


def reach_of(request: web.BaseRequest) -> Reach:
    """How far the view of a request's sender goes."""
    return request[GRANT].reach


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
            request[GRANT] = ANYBODY
        else:
            request[GRANT] = _grant(request, route, self._keys)

    def change_keys(self, keys: KeyRing) -> None:
        """Go by other keys from now on. Streams end whose key is no longer what it was."""
        self._keys = keys
        for key, end in list(self._streams.values()):
            self._end_without(key, end)

    @contextlib.contextmanager
    def while_granted(self, request: web.BaseRequest, end: Callable[[], object]) -> Iterator[None]:
        """Call `end` once the request's key is changed or revoked, as long as this lasts."""
        key = request[GRANT].key
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


def _grant(request: web.BaseRequest, route: Route | None, keys: KeyRing) -> Grant:
    if route is not None and route.scope is None:
        return STRANGER
    key = key_of(request, keys)
    if route is not None:
        _require(key, route)
    return Grant(key, key.reach)


def _require(key: Key, route: Route) -> None:
    if route.scope not in key.scopes:
        raise ScopeMissing(
            f"the key {key.name!r} has not the scope {route.scope}, which this takes"
        )
    if route.whole and key.reach is not EVERYWHERE:
        raise ScopeMissing(f"the key {key.name!r} is for some queues, and this is about all")
