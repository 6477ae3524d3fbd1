"""Tokens: they say who somebody is, for a quarter of an hour. What they may do is looked up.

The library is an extra, and is imported when it is used.
"""

from typing import Any

from zq.model.clock import Clock
from zq.model.errors import Unauthorized
from zq.model.users import User

LIFE_S = 15 * 60
ALGORITHM = "HS256"
CLAIMS = ["uid", "sub", "adm", "iat", "exp"]


class Tokens:
    """Signs tokens with a secret, and reads them."""

    def __init__(self, secret: bytes, clock: Clock) -> None:
        self._secret = secret
        self._clock = clock

    def issue(self, user: User) -> str:
        """A new token of a user."""
        import jwt

        now = self._clock.now_ms() // 1000
        claims = {
            "uid": user.id,
            "sub": user.name,
            # For clients that show other pages to administrators. This server does not rely on it.
            "adm": user.is_admin,
            "iat": now,
            "exp": now + LIFE_S,
        }
        return jwt.encode(claims, self._secret, ALGORITHM)

    def user_of(self, token: str) -> str:
        """The id of the user of a token. Raises `Unauthorized`."""
        import jwt

        # The library would compare with its own clock, and the server has another one in tests.
        options: Any = {"require": CLAIMS, "verify_exp": False, "verify_iat": False}
        try:
            claims = jwt.decode(token, self._secret, [ALGORITHM], options=options)
            user, end = claims["uid"], claims["exp"]
        except jwt.InvalidTokenError:
            raise invalid_token() from None
        if not isinstance(user, str) or not isinstance(end, int):
            raise invalid_token()
        if end <= self._clock.now_ms() // 1000:
            raise invalid_token()
        return user


def invalid_token() -> Unauthorized:
    """The error for a token that is not valid, or not any longer."""
    return Unauthorized("invalid or expired token")
