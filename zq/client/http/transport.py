"""One HTTP exchange over any transport, and the rule when a failed one is tried again."""

import os
import random
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from http.client import RemoteDisconnected
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from zq.client.errors import PASSING, BackendError, Unavailable, ZqError, refusal
from zq.client.formats import CODECS, JSON

_OTHER_NAME = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""

_OTHER_TIME = (9, 10)
"""X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED."""

_SHOW_ONE = "name one with --client-cert and --client-key, or zq.Tls(certificate=…, key=…)"


def reason_of(url: str, error: Exception) -> str:
    """The text that follows "no answer from …:"."""
    cause = _cause(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _certificate(url, cause)
    if isinstance(cause, ssl.SSLError):
        return _tls(url, cause)
    if isinstance(cause, socket.gaierror):
        return f"there is no host {urlsplit(url).hostname!r}: check the address"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused. Is `zq serve` running?"
    if isinstance(cause, TimeoutError):
        return "it took too long"
    if _has_hung_up(cause):
        if url.startswith("https:"):
            return f"it closed the connection. If it requires a client certificate, {_SHOW_ONE}"
        return f"it closed the connection. If it serves TLS, write https{url.removeprefix('http')}"
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
        return os.strerror(cause.errno).lower()
    return str(cause) or type(cause).__name__


def _cause(error: Exception) -> BaseException:
    """The error of the socket, without the wrapper that aiohttp puts around it."""
    for name in ("certificate_error", "os_error"):
        wrapped = getattr(error, name, None)
        if isinstance(wrapped, Exception):
            return wrapped
    return error


def _has_hung_up(cause: BaseException) -> bool:
    # aiohttp has a class of its own for it. Blocking programs need not import aiohttp.
    return (
        isinstance(cause, RemoteDisconnected | ConnectionResetError | BrokenPipeError)
        or type(cause).__name__ == "ServerDisconnectedError"
    )


def _certificate(url: str, error: ssl.SSLCertVerificationError) -> str:
    host, why = urlsplit(url).hostname, error.verify_message.rstrip(".")
    if error.verify_code in _OTHER_NAME:
        return (
            f"its certificate is not valid for {host!r}: use a name that is in the certificate, or"
            f" make one for this name (zq tls server-cert --san {host})"
        )
    if error.verify_code in _OTHER_TIME:
        return f"its certificate is not valid at this time: {why}"
    return (
        f"its certificate is not trusted ({why}): name the authority that signed it, with --ca,"
        " ZQ_CA or zq.Tls(ca=…)"
    )


def _tls(url: str, error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason:
        return f"it requires a client certificate: {_SHOW_ONE}"
    if "ALERT" in reason:
        return f"it refuses this TLS client: {reason.lower().replace('_', ' ')}"
    return f"the server there does not use TLS: write http{url.removeprefix('https')}"


FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0

LASTING = (408, 507)
"""Statuses of `PASSING` that the next seconds do not change: a slow connection, a full disk."""

UNDECIDED = ("outcome_unknown", "internal")
"""Codes of refusals after which the change may still have been made."""


class Unreachable(Unavailable):
    """There is no answer. `sent` tells whether the server may have seen the request."""

    code = "unreachable"

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = self.in_doubt = sent


def unreachable(url: str, error: Exception, *, sent: bool = True) -> Unreachable:
    """The error for a connection that failed."""
    reason = reason_of(url, error)
    if sent:
        return Unreachable(f"no answer from {url}: {reason}")
    return Unreachable(f"no zq server answers at {url}: {reason}", sent=False)


@dataclass(frozen=True)
class Request:
    """`path` is percent-encoded. `timeout` is in seconds, for one try.

    A `safe` request may be sent again even if the server may have seen it.
    """

    method: str
    path: str
    body: bytes | None = None
    timeout: float = 30.0
    safe: bool = False
    fields: str = ""
    """Further fields of the header, each with the end of its line."""


@dataclass(frozen=True)
class Reply:
    """An answer, read to its end. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    doubted: bool = False
    """True if an earlier try may have had an effect."""

    def error(self, hint: str = "") -> ZqError:
        """The answer as an error. The `hint` follows its message."""
        said = self._said()
        code = self.headers.get("zq-error") or f"http_{self.status}"
        message = (str(said.pop("error", "")) or self._foreign()) + hint
        error = refusal(code, message, self.status, str(said.get("status", "")))
        error.details = said
        index = self.headers.get("zq-error-index", "")
        error.index = int(index) if index.isdecimal() else None
        if isinstance(error, BackendError):
            error.in_doubt = self.doubted or not self.is_decided
        return error

    @property
    def is_decided(self) -> bool:
        """True if the outcome of the request is known. It is not after a proxy's 5xx."""
        return self.status < 500 or self.headers.get("zq-error", "internal") not in UNDECIDED

    @property
    def retry_after(self) -> float:
        """The seconds that the server asks the client to wait, or 0. See `jittered`."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isdecimal() and len(text) < 10 else 0.0

    def _said(self) -> dict[str, object]:
        codec = CODECS.get(self.headers.get("content-type", ""), JSON)
        try:
            return codec.decode(self.body, dict[str, object])
        except msgspec.MsgspecError:
            # Some answers are text, as in Zizq. The header distinguishes zq's from a proxy's.
            ours = "zq-error" in self.headers
            return {"error": self.body.decode("utf-8", "replace") if ours else ""}

    def _foreign(self) -> str:
        """The message for an answer from a proxy or another kind of server."""
        text = self.body[:500].decode("utf-8", "replace")
        words = " ".join(re.sub("<[^>]*>?", " ", text).split())[:100]
        told = f"{self.status}: {words}" if words else str(self.status)
        return f"not a zq server but a proxy, or another server, answers {told}"


class Bytes(Protocol):
    """The body of a stream, as it arrives."""

    async def read(self) -> bytes:
        """The next bytes; empty at the end. Raises `Unreachable`."""

    async def close(self) -> None:
        """Close the connection."""


class Transport(Protocol):
    """Carries requests over connections that it keeps open."""

    @property
    def url(self) -> str:
        """The address of the server that is asked now."""

    @property
    def blocks(self) -> bool:
        """True if coroutines never suspend."""

    async def send(self, request: Request) -> Reply:
        """Send a request once. Raises `Unreachable`."""

    async def open(self, path: str, headers: Mapping[str, str]) -> Bytes:
        """Open a stream. Raises `Unreachable`, or the error of the server's refusal."""

    async def sleep(self, seconds: float) -> None:
        """Wait for a time in seconds."""

    async def close(self) -> None:
        """Close the connections. The next request opens others."""


def jittered(attempt: int, least: float = FIRST_DELAY_S) -> float:
    """Seconds to wait after try number `attempt` (from 0): any time up to a doubling bound.

    The bound is `least` at first, and never more than `LONGEST_DELAY_S`. A server's `Retry-After`
    is such a bound: the wait may be shorter.
    "Full jitter": see the AWS Architecture Blog, "Exponential Backoff And Jitter", 2015.
    """
    return random.uniform(0.0, min(LONGEST_DELAY_S, least * 2.0 ** min(attempt, 16)))


async def persist(
    send: Callable[[Request], Awaitable[Reply]],
    sleep: Callable[[float], Awaitable[None]],
    request: Request,
    tries: int,
) -> Reply:
    """Send a request until the answer is not a passing refusal.

    A request that the server may have carried out is repeated only if it is safe.
    """
    doubted = False
    for attempt in range(tries):
        last = attempt == tries - 1
        least = FIRST_DELAY_S
        try:
            reply = await send(request)
        except Unreachable as error:
            doubted = error.in_doubt = doubted or error.sent
            if last or (error.sent and not request.safe):
                raise
        else:
            if last or not _may_pass(reply, request.safe):
                return replace(reply, doubted=True) if doubted and reply.status >= 300 else reply
            doubted = doubted or not reply.is_decided
            least = max(least, reply.retry_after)
        await sleep(jittered(attempt, least))
    raise ValueError("tries must be at least 1")


def _may_pass(reply: Reply, safe: bool) -> bool:
    if reply.status not in PASSING or reply.status in LASTING:
        return False
    if safe:
        return True
    return reply.status in (429, 503) and reply.headers.get("zq-error", "internal") not in UNDECIDED
