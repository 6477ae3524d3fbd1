"""Tokens: they say who somebody is, for a quarter of an hour. What they may do is looked up.

The library is an extra, and is imported when it is used.
"""

import hmac
from typing import Any, NamedTuple

from zq.doors.queue_ti.model import User
from zq.model.clock import Clock
from zq.model.errors import Unauthorized

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
