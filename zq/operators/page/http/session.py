"""`/ui/session`: who looks at the page, and what the server lets them do."""

from typing import NamedTuple

import msgspec
from aiohttp import hdrs, web

from zq import __version__
from zq.http.api.endpoints import answer
from zq.http.door import Route
from zq.http.guard import Guard, is_guest
from zq.http.sessions import LONGEST_S, Sessions, cookie_name
from zq.http.transport.addresses import ListenerAddresses
from zq.http.transport.answer import Answer
from zq.http.transport.bodies import Bodies
from zq.model.clock import Clock
from zq.model.errors import InvalidRequest, ScopeMissing, Unauthorized
from zq.model.keys import Key, KeyScope
from zq.model.reach import EVERYWHERE
from zq.operators.page.http.page import SAFE
from zq.operators.page.settings import PageSettings
from zq.wire.codecs import JSON

READ_ONLY = frozenset({KeyScope.READ, KeyScope.HISTORY, KeyScope.REVEAL})

NEVER_STORED = {**SAFE, "Cache-Control": "no-store"}

CHANGING = frozenset({KeyScope.MANAGE, KeyScope.ENQUEUE})

OFFERED = READ_ONLY | CHANGING
"""The scopes of what the page can do."""


class SignIn(msgspec.Struct, forbid_unknown_fields=True):
    """The body of `POST session`."""

    key: str


class ServerNames(NamedTuple):
    """The name of the server on its page, and the address that its page's commands name."""

    name: str
    settings: PageSettings
    listeners: ListenerAddresses

    def address_for(self, request: web.BaseRequest) -> str:
        """The address at which a visitor's commands find the server."""
        if self.settings.ui == "primary" and self.settings.public_url is not None:
            return self.settings.public_url.removesuffix("/")
        return self.listeners.primary_for(request)


class SessionApi:
    """The endpoints. They need no key: without one they say so."""

    def __init__(
        self,
        guard: Guard,
        sessions: Sessions,
        bodies: Bodies,
        clock: Clock,
        settings: PageSettings,
        server: ServerNames,
    ) -> None:
        self._guard = guard
        self._sessions = sessions
        self._bodies = bodies
        self._clock = clock
        self._read_only = settings.ui_read_only
        self._environment = settings.ui_environment
        self._server = server
        self._masked = settings.ui_mask is not None
        self._behind_tls = (settings.public_url or "").startswith("https:")

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/session", self.show, None),
            Route("POST", "/session", self.sign_in, None),
            Route("DELETE", "/session", self.sign_out, None),
        ]

    async def show(self, request: web.BaseRequest) -> Answer:
        """The scopes and queues of the visitor; no scopes if a key is missing."""
        try:
            key = self._guard.key_of(request)
        except Unauthorized:
            return self._answer(request, frozenset(), None, keys=True)
        return self._of(request, key)

    async def sign_in(self, request: web.BaseRequest) -> Answer:
        """Swap a key for a session: a cookie that no script can read, and a token beside it."""
        if is_guest(request):
            raise Unauthorized("only the server's own page signs in: send the key as Bearer")
        body = await self._bodies.read(request, reserved=True)
        try:
            wanted = msgspec.json.decode(body, type=SignIn)
        except msgspec.MsgspecError as error:
            raise InvalidRequest(f'the body must be {{"key": SECRET}}: {error}') from None
        finally:
            self._bodies.release(len(body))
        key = self._guard.key_with(wanted.key)
        if KeyScope.READ not in key.scopes:
            raise ScopeMissing(
                f"the key {key.name!r} does not have the scope read, which this page needs"
            )
        new = self._sessions.open(key)
        document = self._of(request, key, token=new.token)
        cookie = self._cookie(request, new.cookie, LONGEST_S)
        document.headers = {**document.headers, "Set-Cookie": cookie}
        return document

    async def sign_out(self, request: web.BaseRequest) -> Answer:
        """End the session."""
        self._sessions.close(request)
        return Answer(204, headers={**NEVER_STORED, "Set-Cookie": self._cookie(request, "", 0)})

    def _of(self, request: web.BaseRequest, key: Key | None, **more: str) -> Answer:
        scopes = OFFERED if key is None else key.scopes & OFFERED
        shown = scopes & READ_ONLY if self._read_only else scopes
        return self._answer(request, shown, key, keys=bool(key), **more)

    def _answer(
        self,
        request: web.BaseRequest,
        scopes: frozenset[KeyScope],
        key: Key | None,
        *,
        keys: bool,
        **more: str,
    ) -> Answer:
        document = {
            **more,
            "zq": __version__,
            "environment": self._environment,
            "server": self._server.name if scopes else None,
            "url": self._server.address_for(request) if scopes else None,
            "keys": keys,
            "name": None if key is None else key.name,
            "scopes": sorted(scopes),
            "queues": [] if key is None or key.reach is EVERYWHERE else list(key.reach.prefixes),
            "read_only": self._read_only,
            "masked": self._masked,
            "now": self._clock.now_ms(),
        }
        return answer(document, JSON, headers=NEVER_STORED)

    def _cookie(self, request: web.BaseRequest, value: str, seconds: float) -> str:
        """The cookie's default path is the directory of the page, whatever lies before it."""
        text = f"{cookie_name(request)}={value}; HttpOnly; SameSite=Strict; Max-Age={seconds:.0f}"
        # A proxy may end TLS. The browser says which scheme it has used.
        origin = request.headers.get(hdrs.ORIGIN, "")
        is_safe = request.secure or self._behind_tls or origin.startswith("https:")
        return f"{text}; Secure" if is_safe else text
