"""`/auth`: whether users are needed, logging in, and another token."""

from typing import NamedTuple

import msgspec
from aiohttp import hdrs, web

from zq.doors.queue_ti.http.auth.access import Access, permit_of
from zq.doors.queue_ti.http.auth.tokens import Tokens
from zq.doors.queue_ti.http.bodies import MessageEndpoints
from zq.doors.queue_ti.http.problems import answer
from zq.http.door import Route
from zq.http.guard import is_bearer
from zq.http.transport.answer import Answer
from zq.http.transport.gate import peer_of
from zq.model.errors import InvalidRequest


class DoorAuth(NamedTuple):
    """The parts from which the door makes its users' sign-in."""

    access: Access
    tokens: Tokens


class LoginBody(msgspec.Struct):
    username: str = ""
    password: str = ""


class AuthApi:
    """`/auth/login` and `/auth/refresh`."""

    def __init__(self, access: Access, tokens: Tokens, endpoints: MessageEndpoints) -> None:
        self._access = access
        self._tokens = tokens
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        login = self._endpoints.change(LoginBody, self.login)
        return [
            Route("POST", "/auth/login", login, None),
            Route("POST", "/auth/refresh", self.refresh, None),
        ]

    async def login(self, request: web.BaseRequest, sent: LoginBody) -> Answer:
        """A token for a name and a password."""
        if not sent.username or not sent.password:
            raise InvalidRequest("username and password are required")
        peer = peer_of(request.transport)
        user = await self._access.login(sent.username, sent.password, peer)
        return answer({"token": self._tokens.issue(user)})

    async def refresh(self, request: web.BaseRequest) -> Answer:
        """A new token in exchange for a valid one, until twelve hours after the login."""
        user = permit_of(request).user
        assert user is not None, "the route needs a user"
        header = request.headers[hdrs.AUTHORIZATION]
        # Basic is a login at each request.
        began = self._tokens.read(header[7:].strip()).began if is_bearer(header) else None
        return answer({"token": self._tokens.issue(user, began)})


def status_route(*, required: bool) -> Route:
    """The route that says whether users have to log in. Clients ask it before they do."""

    async def status(request: web.BaseRequest) -> Answer:
        """True if users have to log in."""
        return answer({"auth_required": required})

    return Route("GET", "/auth/status", status, None)
