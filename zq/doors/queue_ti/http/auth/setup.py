"""What the files of the settings say: the first administrator, and the secret of tokens."""

import secrets
from importlib.util import find_spec
from pathlib import Path

from zq.doors.queue_ti.model import check_password, check_user_name
from zq.http.transport.h2.codec import LibraryMissing
from zq.model.errors import InvalidRequest
from zq.model.keys import InvalidKey

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
