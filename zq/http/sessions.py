"""Sessions: a cookie and a token in place of a key, for a page that must not keep the key itself.

A browser sends a cookie to every port of a host, so other programs of the host may read it when
their pages are visited. Alone it is worth nothing: a session needs a token beside it, in a header
that only the page at this port can send, and that no browser adds by itself.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hmac import compare_digest
from typing import NamedTuple

from aiohttp import hdrs, web
from multidict import istr

from zq.model.clock import Clock
from zq.model.keys import Key, KeyRing, digest_of

COOKIE = "zq_session"
"""The beginning of the cookie's name. The port follows: each server of a host has its own."""

TOKEN = istr("Zq-Session")
"""The header of the token that a page got when it signed in."""

IDLE_S = 3600.0
LONGEST_S = 12 * 3600.0
MOST_PER_KEY = 20
"""A key with more sessions loses its oldest one. No key ends those of another."""

TOKEN_BYTES = 32
TOKEN_LENGTH = len(secrets.token_urlsafe(TOKEN_BYTES))


class NewSession(NamedTuple):
    """The two halves of a new session: its cookie, and the token that the page sends as a
    header."""

    cookie: str
    token: str


class OpenSession(NamedTuple):
    """One session: its key as it was at the sign-in, and monotonic times in seconds."""

    key: Key
    token: bytes
    began: float
    used: float


class Sessions:
    """The open sessions. Memory has only the hashes of what the cookie and the token are.

    A session ends an hour after its last request, twelve hours after its first, and with its key.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_digest: dict[bytes, OpenSession] = {}
        self._streams: dict[object, tuple[bytes, Callable[[], object]]] = {}
        """The sessions of streams that are open, and what ends each of these."""

    def open(self, key: Key) -> NewSession:
        """A new session of a key. The key's oldest one makes room."""
        now = self._clock.monotonic()
        for digest in [d for d, s in self._by_digest.items() if _is_over(s, now)]:
            self._end(digest)
        own = [digest for digest, s in self._by_digest.items() if s.key.name == key.name]
        for digest in own[: max(0, len(own) + 1 - MOST_PER_KEY)]:
            self._end(digest)
        new = NewSession(secrets.token_urlsafe(TOKEN_BYTES), secrets.token_urlsafe(TOKEN_BYTES))
        session = OpenSession(key, digest_of(new.token.encode()), now, now)
        self._by_digest[digest_of(new.cookie.encode())] = session
        return new

    def key_of(self, request: web.BaseRequest, keys: KeyRing) -> Key | None:
        """The key of the session that a request names, if that is open."""
        digest = self._find(request)
        if digest is None:
            return None
        session, now = self._by_digest[digest], self._clock.monotonic()
        if _is_over(session, now) or keys.named(session.key.name) != session.key:
            self._end(digest)
            return None
        self._by_digest[digest] = session._replace(used=now)
        return session.key

    def close(self, request: web.BaseRequest) -> None:
        """End the session that a request names, if there is one, and its streams."""
        digest = self._find(request)
        if digest is not None:
            self._end(digest)

    @contextmanager
    def while_open(self, request: web.BaseRequest, end: Callable[[], object]) -> Iterator[None]:
        """Within the block, call `end` once the session that a request names, if any, is over."""
        digest = self._find(request)
        if digest is None:
            yield
            return
        place = object()
        self._streams[place] = digest, end
        try:
            yield
        finally:
            del self._streams[place]

    def _end(self, digest: bytes) -> None:
        del self._by_digest[digest]
        for own, end in list(self._streams.values()):
            if own == digest:
                end()

    def _find(self, request: web.BaseRequest) -> bytes | None:
        """The place of the session whose cookie and token a request has."""
        token = request.headers.get(TOKEN)
        if token is None or not token.isascii():
            return None
        sent = digest_of(token.encode())
        for value in _cookies(request):
            digest = digest_of(value.encode())
            session = self._by_digest.get(digest)
            if session is not None and compare_digest(session.token, sent):
                return digest
        return None


def cookie_name(request: web.BaseRequest) -> str:
    """The cookie's name for the address that the browser has called."""
    _, _, port = request.headers.get(hdrs.HOST, "").rpartition(":")
    return f"{COOKIE}_{port}" if port.isascii() and port.isdigit() else COOKIE


def _is_over(session: OpenSession, now: float) -> bool:
    return now - session.used >= IDLE_S or now - session.began >= LONGEST_S


def _cookies(request: web.BaseRequest) -> Iterator[str]:
    """The values that may be a session's.

    Other programs of a host set cookies of any form, also of this name. A parser of all cookies
    would fail at one of them, or take long.
    """
    wanted = f"{cookie_name(request)}="
    for header in request.headers.getall(hdrs.COOKIE, ()):
        for pair in header.split(";"):
            name, value = pair.strip()[: len(wanted)], pair.strip()[len(wanted) :]
            if name == wanted and len(value) == TOKEN_LENGTH and value.isascii():
                yield value
