"""Who sends a request: users by their tokens or passwords, and which routes need what of them.

The library of tokens and passwords is an extra, and is imported when it is used.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import math
import secrets
from collections import OrderedDict, defaultdict, deque
from collections.abc import Sequence
from enum import Enum
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import hdrs, web

from zq.doors.queue_ti.model import (
    EVERYTHING,
    Permit,
    TooManyLogins,
    User,
    check_password,
    check_user_name,
)
from zq.doors.queue_ti.service import Users
from zq.http.door import Handler, Route
from zq.http.guard import USER, is_bearer, is_guest, own_credentials_needed
from zq.http.transport.answer import Response
from zq.http.transport.gate import peer_of
from zq.http.transport.h2.codec import LibraryMissing
from zq.model.clock import Clock
from zq.model.errors import InvalidRequest, Unauthorized
from zq.model.keys import InvalidKey, digest_of

LIFE_S = 15 * 60
LONGEST_S = 12 * 3600
"""The longest time after a login for which its tokens are renewed."""

ALGORITHM = "HS256"
CLAIMS = ["uid", "sub", "adm", "iat", "exp", "auth_time", "pwd"]


class TokenClaims(NamedTuple):
    """The claims of a valid token: the id of its user, the password's mark, and when it was
    sent."""

    user: str
    password: str
    began: int
    """When the user logged in, in seconds since 1970 (`auth_time` of OpenID Connect)."""


class Tokens:
    """Signs tokens with a secret, and reads them. They end with the password of their user."""

    def __init__(self, secret: bytes, clock: Clock) -> None:
        self._secret = secret
        self._clock = clock

    def issue(self, user: User, began: int | None = None) -> str:
        """A new token of a user who logged in at `began`, or does so now."""
        import jwt

        now = self._clock.now_ms() // 1000
        began = now if began is None else began
        claims = {
            "uid": user.id,
            "sub": user.name,
            # For clients that show other pages to administrators. This server does not rely on it.
            "adm": user.is_admin,
            "iat": now,
            "exp": min(now + LIFE_S, began + LONGEST_S),
            "auth_time": began,
            "pwd": self._mark(user),
        }
        return jwt.encode(claims, self._secret, ALGORITHM)

    def read(self, token: str) -> TokenClaims:
        """The claims of a token. Raises `Unauthorized`."""
        import jwt

        # The library would compare with its own clock, and the server has another one in tests.
        options: Any = {"require": CLAIMS, "verify_exp": False, "verify_iat": False}
        try:
            claims = jwt.decode(token, self._secret, [ALGORITHM], options=options)
        except (jwt.InvalidTokenError, ValueError):
            # The library encodes the token, which fails where a header has other bytes than text.
            raise invalid_token() from None
        found = TokenClaims(claims["uid"], claims["pwd"], claims["auth_time"])
        end = claims["exp"]
        if not (isinstance(found.user, str) and isinstance(found.password, str)):
            raise invalid_token()
        if not (isinstance(found.began, int) and isinstance(end, int)):
            raise invalid_token()
        if end <= self._clock.now_ms() // 1000:
            raise invalid_token()
        return found

    def holds(self, claims: TokenClaims, user: User) -> bool:
        """True if a user still has the password with which it logged in."""
        return hmac.compare_digest(claims.password.encode(), self._mark(user).encode())

    def _mark(self, user: User) -> str:
        """A mark of a stored password, which tells nothing about it."""
        return hmac.digest(self._secret, user.hash.encode(), "sha256").hex()[:32]


def invalid_token() -> Unauthorized:
    """The error for a token that is not valid, or not any longer."""
    return Unauthorized("invalid or expired token")


MOST_PER_NAME, MOST_PER_PEER, WITHIN_S = 10, 100, 60.0
"""Many users may share the address of a proxy, so a name has a lower limit than an address."""

MOST_COUNTED = 10_000
"""With more names and addresses than this, those that have not come lately are forgotten."""

Counted = tuple[str, bytes]


class LoginLimit:
    """Counts failed attempts by name and address, and by the address of the connection alone.

    No header can change that address. An attempt counts from its beginning, so that many at once
    are counted too, until it has succeeded.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._attempts: defaultdict[Counted, deque[float]] = defaultdict(deque)

    def count(self, name: str, peer: str) -> None:
        """Count an attempt. Raises `TooManyLogins`."""
        now = self._clock.monotonic()
        if len(self._attempts) > MOST_COUNTED:
            self._forget(now)
        of_name, of_peer = (self._attempts[each] for each in _counted(name, peer))
        for attempts, most in ((of_name, MOST_PER_NAME), (of_peer, MOST_PER_PEER)):
            while attempts and attempts[0] <= now - WITHIN_S:
                attempts.popleft()
            if len(attempts) >= most:
                raise TooManyLogins(math.ceil(attempts[0] + WITHIN_S - now))
        of_name.append(now)
        of_peer.append(now)

    def succeeded(self, name: str, peer: str) -> None:
        """Count an attempt no longer, for its password was right."""
        for each in _counted(name, peer):
            attempts = self._attempts.get(each)
            if attempts:
                attempts.pop()

    def _forget(self, now: float) -> None:
        over = [
            each for each, all in self._attempts.items() if not all or all[-1] <= now - WITHIN_S
        ]
        for each in over:
            del self._attempts[each]


def _counted(name: str, peer: str) -> tuple[Counted, Counted]:
    # A name may be long, and its hash is not.
    return (peer, digest_of(name.encode())), (peer, b"")


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
        self._checking: dict[tuple[str, str, str], asyncio.Task[User]] = {}
        """The logins under way, by the address that they come from, name and password."""

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
        """The user of a password. Raises `Unauthorized`, `TooManyLogins`.

        Logins alike are one attempt while it is under way: clients begin with many requests at
        once.
        """
        said = peer, name, password
        checking = self._checking.get(said)
        if checking is None:
            checking = asyncio.create_task(self._check(name, password, peer))
            self._checking[said] = checking
            checking.add_done_callback(partial(self._checked, said))
        return await asyncio.shield(checking)

    async def _check(self, name: str, password: str, peer: str) -> User:
        self._limit.count(name, peer)
        user = await self._users.with_password(name, password)
        if user is None:
            raise invalid_credentials()
        self._limit.succeeded(name, peer)
        return user

    def _checked(self, said: tuple[str, str, str], checking: asyncio.Task[User]) -> None:
        del self._checking[said]
        # All callers may be gone when it fails.
        _ = checking.cancelled() or checking.exception()

    async def renewed(self, permit: Permit) -> Permit:
        """The present permissions of a caller who was let in before. Raises `Unauthorized`."""
        if permit.user is None:
            return permit
        user = await self._users.find(permit.user.id)
        if user is None or user.hash != permit.user.hash:
            raise Unauthorized("the user is not there any longer, or has another password")
        return Permit(user)

    async def _basic(self, encoded: str, peer: str) -> User:
        """Check a password as a login does. One that was right is known until it changes."""
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


LEAST_SECRET = 32


def require_auth() -> None:
    """Raise `LibraryMissing` unless the libraries for tokens and passwords are installed."""
    for module, package in (("jwt", "PyJWT"), ("argon2", "argon2-cffi")):
        if find_spec(module) is None:
            raise LibraryMissing(
                f"--queue-ti-auth: the package {package} is not installed: run pip install"
                " 'zq-queue[auth]', or leave it out"
            )


def read_secret(path: Path | None) -> bytes:
    """The secret in a file, or a random one. Raises `InvalidKey` if it is too short."""
    if path is None:
        return secrets.token_bytes(LEAST_SECRET)
    secret = _read(path, "--queue-ti-secret").strip()
    if len(secret) < LEAST_SECRET:
        raise InvalidKey(
            f"--queue-ti-secret {path}: the secret has {len(secret)} bytes: write at least"
            f" {LEAST_SECRET}, such as what `openssl rand -hex 32` prints"
        )
    return secret


def read_admin(path: Path) -> tuple[str, str]:
    """Name and password of the first administrator. Raises `InvalidKey`."""
    try:
        name, colon, password = _read(path, "--queue-ti-admin").decode().strip().partition(":")
        if not colon:
            raise InvalidRequest("there is no colon")
        return check_user_name(name), check_password(password, 1)
    except (UnicodeDecodeError, InvalidRequest) as error:
        raise InvalidKey(f"--queue-ti-admin {path}: write name:password ({error})") from None


def _read(path: Path, flag: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidKey(f"{flag} {path}: {error.strerror or error}") from None
