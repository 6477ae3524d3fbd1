"""Which key a request comes with: in `Authorization`, or by the name on its client certificate."""

import base64
import binascii

from aiohttp import hdrs, web

from zq.http.tls import client_name
from zq.model.errors import Unauthorized
from zq.model.keys import Key, KeyRing

CHALLENGE = 'Bearer realm="zq", Basic realm="zq", charset="UTF-8"'
"""For the header `WWW-Authenticate` of a 401."""


def key_of(request: web.BaseRequest, keys: KeyRing) -> Key:
    """The key of a request. Raises `Unauthorized`."""
    header = request.headers.get(hdrs.AUTHORIZATION)
    if header is None:
        return _certified(client_name(request), keys)
    user, secret = _credentials(header)
    key = keys.with_secret(secret)
    if key is None or user not in ("", key.name):
        raise Unauthorized("this key is not known here, or no longer")
    return key


def _certified(name: str | None, keys: KeyRing) -> Key:
    if name is None:
        raise Unauthorized("this server wants a key: send it as `Authorization: Bearer SECRET`")
    key = keys.named(name)
    if key is None:
        raise Unauthorized(f"the client certificate names {name!r}, and there is no such key")
    return key


def _credentials(header: str) -> tuple[str, bytes]:
    """The user name, empty where there is none, and the secret."""
    scheme, _, rest = header.partition(" ")
    match scheme.lower():
        case "bearer" if rest.strip():
            return "", rest.strip().encode("utf-8", "surrogateescape")
        case "basic":
            try:
                user, _, secret = base64.b64decode(rest.strip(), validate=True).partition(b":")
                return user.decode(), secret
            except (binascii.Error, UnicodeDecodeError):
                pass
    raise Unauthorized(
        "Authorization must be `Bearer SECRET`, or Basic with the secret as its password"
    )
