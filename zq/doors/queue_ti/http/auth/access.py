"""Who sends a request: users by their tokens or passwords, and which routes need what of them."""

import base64
import binascii
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from aiohttp import hdrs, web

from zq.doors.queue_ti.http.auth.limit import LoginLimit
from zq.doors.queue_ti.http.auth.tokens import Tokens, invalid_token
from zq.doors.queue_ti.model import EVERYTHING, Permit, User
from zq.doors.queue_ti.service import Users
from zq.http.door import Handler, Route
from zq.http.guard import USER, is_bearer, is_guest, own_credentials_needed
from zq.http.transport.answer import Response
from zq.http.transport.gate import peer_of
from zq.model.errors import Unauthorized

PERMIT = web.RequestKey("permit", Permit)
"""A request has its sender's permissions under this key; it has none where there are no users."""

MOST_KNOWN = 256


class Need(Enum):
    """The rights that a route asks of its sender."""

    NOTHING = "nothing"
    USER = "a user; the handler asks for grants, for only it knows the topic"
    ADMIN = "an administrator"


NEEDS: dict[tuple[str, str], Need] = {
    ("GET", "/version"): Need.NOTHING,
    ("GET", "/openapi.json"): Need.NOTHING,
    ("GET", "/auth/status"): Need.NOTHING,
    ("POST", "/auth/login"): Need.NOTHING,
    ("POST", "/auth/refresh"): Need.USER,
    ("POST", "/messages"): Need.USER,
    ("GET", "/messages"): Need.USER,
    ("POST", "/messages/dequeue"): Need.USER,
    ("POST", "/messages/{id}/ack"): Need.USER,
    ("POST", "/messages/{id}/nack"): Need.USER,
    ("POST", "/messages/{id}/requeue"): Need.USER,
}
"""Every other route needs an administrator."""


def permit_of(request: web.BaseRequest) -> Permit:
    """The permissions of a request's sender."""
    permit: Permit = request.get(PERMIT, EVERYTHING)
    return permit


class _Known(NamedTuple):
    user: str
    hash: str


class Access:
    """Finds the users of requests and calls. Each is looked up, so a change holds at once."""

    def __init__(self, users: Users, tokens: Tokens, limit: LoginLimit) -> None:
        self._users = users
        self._tokens = tokens
        self._limit = limit
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    def guarded(self, routes: Sequence[Route]) -> list[Route]:
        """Routes that ask who somebody is. `Authorization` is the user's there."""
        return [self._guarded(route) for route in routes]

    async def user(self, header: str | None, peer: str) -> User:
        """The user whom a header `Authorization` names. Raises `Unauthorized`, `TooManyLogins`."""
        if not header:
            raise Unauthorized("missing authorization header")
        scheme, _, rest = header.partition(" ")
        match scheme.lower():
            case "bearer":
                claims = self._tokens.read(rest.strip())
                user = await self._users.find(claims.user)
                if user is None or not self._tokens.holds(claims, user):
                    raise invalid_token()
                return user
            case "basic":
                return await self._basic(rest.strip(), peer)
        raise Unauthorized("unsupported auth scheme")

    async def login(self, name: str, password: str, peer: str) -> User:
        """The user of a password. Raises `Unauthorized`, `TooManyLogins`."""
        self._limit.count(name, peer)
        user = await self._users.with_password(name, password)
        if user is None:
            raise invalid_credentials()
        self._limit.succeeded(name, peer)
        return user

    async def renewed(self, permit: Permit) -> Permit:
        """The present permissions of a caller who was let in before. Raises `Unauthorized`."""
        if permit.user is None:
            return permit
        user = await self._users.find(permit.user.id)
        if user is None or user.hash != permit.user.hash:
            raise Unauthorized("the user is not there any longer, or has another password")
        return Permit(user)

    async def _basic(self, encoded: str, peer: str) -> User:
        """As a login, except that a password that was right is known until it changes."""
        # What is remembered is no password: a dump of the memory has none that was not sent lately.
        digest = hashlib.sha256(encoded.encode(errors="surrogateescape")).digest()
        known = self._known.get(digest)
        if known is not None:
            user = await self._users.find(known.user)
            if user is not None and user.hash == known.hash:
                self._known.move_to_end(digest)
                return user
            self._known.pop(digest, None)
        try:
            name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            raise invalid_credentials() from None
        user = await self.login(name, password, peer)
        self._known[digest] = _Known(user.id, user.hash)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return user

    def _guarded(self, route: Route) -> Route:
        need = NEEDS.get((route.method, route.path), Need.ADMIN)
        if need is Need.NOTHING:
            return route
        serve = route.handler

        async def handler(request: web.BaseRequest) -> Response:
            header = request.headers.get(hdrs.AUTHORIZATION)
            if is_guest(request) and not is_bearer(header):
                raise own_credentials_needed()
            user = await self.user(header, peer_of(request.transport))
            request[PERMIT] = permit = Permit(user)
            request[USER] = user.name
            if need is Need.ADMIN:
                permit.require_admin()
            return await serve(request)

        handler.__doc__ = serve.__doc__
        guarded: Handler = handler
        return route._replace(handler=guarded, users=True)


def invalid_credentials() -> Unauthorized:
    """The error for a wrong name or password; it does not say which."""
    return Unauthorized("invalid credentials")
