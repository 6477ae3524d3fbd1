"""Sessions: a cookie in place of a key, for a page that must not keep the key itself."""

import secrets
from http.cookies import SimpleCookie
from typing import NamedTuple

from aiohttp import hdrs, web

from zq.model.clock import Clock
from zq.model.keys import Key, KeyRing, digest_of

COOKIE = "zq_session"
IDLE_S = 3600.0
LONGEST_S = 12 * 3600.0
MOST_SESSIONS = 1_000


class OpenSession(NamedTuple):
    """One session: its key as it was at the sign-in, and monotonic times in seconds."""

    key: Key
    began: float
    used: float


class Sessions:
    """The open sessions. Memory has only the hash of what the cookie holds.

    A session ends an hour after its last request, twelve hours after its first, and with its key.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_digest: dict[bytes, OpenSession] = {}

    def open(self, key: Key) -> str:
        """A new session of a key. Return what its cookie holds. The oldest one makes room."""
        now = self._clock.monotonic()
        while len(self._by_digest) >= MOST_SESSIONS:
            del self._by_digest[next(iter(self._by_digest))]
        token = secrets.token_urlsafe(32)
        self._by_digest[digest_of(token.encode())] = OpenSession(key, now, now)
        return token

    def key_of(self, request: web.BaseRequest, keys: KeyRing) -> Key | None:
        """The key of the session that a request names, if that is open."""
        digest = _digest(request)
        session = self._by_digest.get(digest)
        if session is None:
            return None
        now = self._clock.monotonic()
        if _is_over(session, now) or keys.named(session.key.name) != session.key:
            del self._by_digest[digest]
            return None
        self._by_digest[digest] = session._replace(used=now)
        return session.key

    def close(self, request: web.BaseRequest) -> None:
        """End the session that a request names, if there is one."""
        self._by_digest.pop(_digest(request), None)


def _is_over(session: OpenSession, now: float) -> bool:
    return now - session.used >= IDLE_S or now - session.began >= LONGEST_S


def _digest(request: web.BaseRequest) -> bytes:
    cookie = SimpleCookie(request.headers.get(hdrs.COOKIE, "")).get(COOKIE)
    return b"" if cookie is None else digest_of(cookie.value.encode())
