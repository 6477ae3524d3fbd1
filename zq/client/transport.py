"""One HTTP exchange, whoever carries it, and when a failed one is tried again."""

import os
import random
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from zq.client.errors import InvalidOption, Unavailable, ZqError, refusal
from zq.client.formats import CODECS, JSON, Codec
from zq.client.reasons import reason_of
from zq.client.urls import check_url

_VISIBLE = re.compile(r"[!-~]+")

FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0

UNDECIDED = ("outcome_unknown", "internal")
"""Codes of refusals after which the change may have been made all the same."""


class Unreachable(Unavailable):
    """No answer. `sent` tells whether the server may have seen the request."""

    code = "unreachable"

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


def unreachable(url: str, error: Exception, *, sent: bool = True) -> Unreachable:
    """What to tell of a connection that failed."""
    reason = reason_of(url, error)
    if sent:
        return Unreachable(f"no answer from {url}: {reason}")
    return Unreachable(f"no zq server answers at {url}: {reason}", sent=False)


_FILES = ("CA", "CLIENT_CERT", "CLIENT_KEY")


@dataclass(frozen=True)
class Tls:
    """What `https` needs besides: files of PEM. Without `ca`, the machine's authorities count."""

    ca: str | Path | None = None
    """The authority that has signed the server's certificate."""
    certificate: str | Path | None = None
    """This client's, where the server demands one; with its `key`."""
    key: str | Path | None = None

    @classmethod
    def of_environment(cls) -> Self:
        """What the variables ZQ_CA, ZQ_CLIENT_CERT and ZQ_CLIENT_KEY name."""
        return cls(*(os.environ.get(f"ZQ_{name}") or None for name in _FILES))

    def context(self) -> ssl.SSLContext:
        """Raises `InvalidOption` where a file cannot be used."""
        try:
            file = self.ca
            context = ssl.create_default_context(cafile=file)
            if self.certificate is not None:
                file = self.certificate
                context.load_cert_chain(file, self.key)
        except OSError as error:
            reason = "it holds none" if isinstance(error, ssl.SSLError) else error.strerror
            raise InvalidOption(f"{file} cannot be used as a certificate: {reason}") from error
        return context


@dataclass(frozen=True)
class Address:
    """Where a server is, the key that opens it, and how to know it."""

    url: str
    token: str | None = field(default=None, repr=False)
    codec: Codec = JSON
    tls: Tls = Tls()

    def __post_init__(self) -> None:
        """Raises `InvalidOption`."""
        check_url(self.url)
        if self.token is not None and not _VISIBLE.fullmatch(self.token):
            raise InvalidOption(
                "the token has characters that no key has: has it a space, or an end of line?"
            )

    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        headers = {"Accept": self.codec.content_type}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    @cached_property
    def parts(self) -> SplitResult:
        """The URL, taken apart."""
        return urlsplit(self.url)

    def written(self, request: "Request") -> bytes:
        """A request as it goes out over HTTP/1.1: the same bytes, whichever transport sends them.

        Clients that take a request apart into headers and put it together again need as long for
        that as for all the rest.
        """
        if not _VISIBLE.fullmatch(request.path):
            raise ValueError(f"{request.path!r} is not percent-encoded")
        head = f"{request.method} {self._prefix}{request.path} HTTP/1.1\r\n{self._fields}"
        if request.body is None:
            size = "" if request.method == "GET" else "Content-Length: 0\r\n"
            return f"{head}{size}\r\n".encode()
        about = f"Content-Type: {self.codec.content_type}\r\nContent-Length: {len(request.body)}"
        return b"%b%b\r\n\r\n%b" % (head.encode(), about.encode(), request.body)

    @cached_property
    def _prefix(self) -> str:
        return quote(self.parts.path, safe="/%:@!$&'()*+,;=~")

    @cached_property
    def _fields(self) -> str:
        host = self.parts.netloc
        host = host if host.isascii() else host.encode("idna").decode()
        fields = {"Host": host, **self.headers()}
        return "".join(f"{name}: {value}\r\n" for name, value in fields.items())


@dataclass(frozen=True)
class Request:
    """`path` is percent-encoded; `timeout` in seconds is for one try.

    What is `safe` may be sent again although the server may have seen it.
    """

    method: str
    path: str
    body: bytes | None = None
    timeout: float = 30.0
    safe: bool = False


@dataclass(frozen=True)
class Reply:
    """An answer, read to its end. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def error(self, hint: str = "") -> ZqError:
        """The answer as the error that it tells of; the `hint` is said after it."""
        said = self._said()
        code = self.headers.get("zq-error") or f"http_{self.status}"
        message = (said.error or self._foreign()) + hint
        return refusal(code, message, self.status, said.status)

    @property
    def is_decided(self) -> bool:
        """Whether it is known what became of the request. A proxy's 5xx leaves that open."""
        return self.status < 500 or self.headers.get("zq-error", "internal") not in UNDECIDED

    @property
    def retry_after(self) -> float:
        """Seconds that the server asks for, 0 where it does not."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isdigit() else 0.0

    def _said(self) -> "_Said":
        codec = CODECS.get(self.headers.get("content-type", ""), JSON)
        try:
            return codec.decode(self.body, _Said)
        except msgspec.MsgspecError:
            return _Said()

    def _foreign(self) -> str:
        """What a proxy, or a server of something else, has answered."""
        text = self.body[:500].decode("utf-8", "replace")
        words = " ".join(re.sub("<[^>]*>?", " ", text).split())[:100]
        told = f"{self.status}: {words}" if words else str(self.status)
        return f"no zq server but something before it, or in its place, answers {told}"


class _Said(msgspec.Struct):
    error: str = ""
    status: str = ""


class Bytes(Protocol):
    """The body of a stream, as it arrives."""

    async def read(self) -> bytes:
        """What has come, empty at the end. Raises `Unreachable`."""

    async def close(self) -> None:
        """Hang up."""


class Transport(Protocol):
    """Carries requests over connections that it keeps open."""

    async def send(self, request: Request) -> Reply:
        """One try. Raises `Unreachable`."""

    async def open(self, path: str, headers: Mapping[str, str]) -> Bytes:
        """A stream. Raises `Unreachable`, or what the server refuses with."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def close(self) -> None:
        """Close the connections. The next request opens others."""


def jittered(attempt: int, least: float = FIRST_DELAY_S) -> float:
    """Seconds to wait after try number `attempt` (from 0): any time up to a doubling bound.

    "Full jitter": see the AWS Architecture Blog, "Exponential Backoff And Jitter", 2015.
    """
    return random.uniform(0.0, min(LONGEST_DELAY_S, least * 2.0 ** min(attempt, 16)))


async def persist(
    send: Callable[[Request], Awaitable[Reply]],
    sleep: Callable[[float], Awaitable[None]],
    request: Request,
    tries: int,
) -> Reply:
    """Send a request until it is answered otherwise than with a passing refusal.

    What may have been done already is repeated only where the request is safe.
    """
    for attempt in range(tries):
        last = attempt == tries - 1
        least = FIRST_DELAY_S
        try:
            reply = await send(request)
        except Unreachable as error:
            if last or (error.sent and not request.safe):
                raise
        else:
            if last or not _may_pass(reply, request.safe):
                return reply
            least = max(least, reply.retry_after)
        await sleep(jittered(attempt, least))
    raise ValueError("tries must be at least 1")


def _may_pass(reply: Reply, safe: bool) -> bool:
    if reply.status not in (429, 500, 502, 503, 504):
        return False
    if safe:
        return True
    return reply.status in (429, 503) and reply.headers.get("zq-error", "internal") not in UNDECIDED
