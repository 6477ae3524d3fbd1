"""The address of a server: its valid forms, its TLS files, and the headers of every request."""

import os
import re
import ssl
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, quote, urlsplit

from zq.client.errors import InvalidOption
from zq.client.formats import JSON, Codec
from zq.client.http.transport import Request
from zq.model import urls

_VISIBLE = re.compile(r"[!-~]+")


def split_url(url: str) -> SplitResult:
    """The parts of an address of any scheme. Raises `InvalidOption`."""
    try:
        parts = urls.url_parts(url)
    except ValueError as error:
        raise InvalidOption(str(error)) from None
    if "://" not in url:
        raise InvalidOption(
            f"{url!r} is not an address: begin it with http://, https:// or sqlite://"
        )
    return parts


def check_url(url: str) -> None:
    """Raise `InvalidOption` unless this is the address of a server over HTTP."""
    try:
        urls.check_url(url)
    except ValueError as error:
        raise InvalidOption(str(error)) from None


_FILES = ("CA", "CLIENT_CERT", "CLIENT_KEY")


@dataclass(frozen=True)
class Tls:
    """The PEM files that `https` needs. Without `ca`, the machine's authorities are trusted."""

    ca: str | Path | None = None
    """The authority that signed the server's certificate."""
    certificate: str | Path | None = None
    """The certificate of this client, if the server requires one; with its `key`."""
    key: str | Path | None = None

    @classmethod
    def of_environment(cls) -> Self:
        """The files from the variables ZQ_CA, ZQ_CLIENT_CERT and ZQ_CLIENT_KEY."""
        return cls(*(os.environ.get(f"ZQ_{name}") or None for name in _FILES))

    def context(self) -> ssl.SSLContext:
        """Raises `InvalidOption` if a file cannot be used."""
        try:
            file = self.ca
            context = ssl.create_default_context(cafile=file)
            if self.certificate is not None:
                file = self.certificate
                context.load_cert_chain(file, self.key)
        except OSError as error:
            reason = "it does not hold one" if isinstance(error, ssl.SSLError) else error.strerror
            raise InvalidOption(f"{file} cannot be used as a certificate: {reason}") from error
        return context


@dataclass(frozen=True)
class Address:
    """The URL of a server, an access key, and what TLS needs."""

    url: str
    token: str | None = field(default=None, repr=False)
    codec: Codec = JSON
    tls: Tls = Tls()
    others: tuple[str, ...] = ()
    """The URLs of servers that have the same jobs, to be asked when this one does not answer."""

    def __post_init__(self) -> None:
        """Raises `InvalidOption`."""
        for url in self.all_urls:
            check_url(url)
        if self.token is not None and not isinstance(self.token, str):
            raise InvalidOption(f"the token is text, and {type(self.token).__name__} is none")
        if self.token is not None and not _VISIBLE.fullmatch(self.token):
            raise InvalidOption(
                "the token has characters that no key has: does it contain a space or a line break?"
            )

    @property
    def all_urls(self) -> tuple[str, ...]:
        """The URLs of all servers, in the order in which they are asked."""
        return (self.url, *self.others)

    def each(self) -> "list[Address]":
        """The address of each server."""
        return [replace(self, url=url, others=()) for url in self.all_urls]

    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        headers = {"Accept": self.codec.content_type, "Zq-Strict": "1"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    @cached_property
    def parts(self) -> SplitResult:
        """The URL in its parts."""
        return urlsplit(self.url)

    def written(self, request: Request) -> bytes:
        """The bytes of a request over HTTP/1.1. All transports send the same.

        An HTTP client that splits a request into headers and builds it again needs as long for that
        as for everything else.
        """
        if not _VISIBLE.fullmatch(request.path):
            raise ValueError(f"{request.path!r} is not percent-encoded")
        fields = self._fields + request.fields
        head = f"{request.method} {self._prefix}{request.path} HTTP/1.1\r\n{fields}"
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
