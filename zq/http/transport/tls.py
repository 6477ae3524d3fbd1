"""The server's certificate and its clients' authority. Both can be loaded again."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class CertificateError(Exception):
    """Certificates cannot be used. The message names the flags and the cause."""


class CertificateFiles(NamedTuple):
    """PEM files: a chain, its key and, if clients must show certificates, the CA of those.

    The flags that name the files begin with `prefix`.
    """

    cert: Path
    key: Path
    client_ca: Path | None = None
    prefix: str = "--"


class Certificates:
    """TLS with files that may be replaced. Raises CertificateError if they cannot be used."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self._latest = _load(files)
        self.context = _listening(lambda: self._latest)
        """The context of the listening socket."""

    def reload(self) -> None:
        """Read the files again, for new connections.

        Raises CertificateError if they cannot be used. Then the old certificates stay in use.
        """
        self._latest = _load(self._files)


def _listening(latest: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """A context that gives each new connection the certificates that were loaded last.

    A client may resume a session only in the context in which it began. So a session admits nobody
    whom the authority of today does not.
    """

    # Made here, so that a server without TLS does not load the library of `ssl`.
    class Listening(ssl.SSLContext):
        def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
            return latest().wrap_bio(*args, **kwargs)

    return Listening(ssl.PROTOCOL_TLS_SERVER)


class OverTls(Protocol):
    """A request or a transport, which knows what TLS has found out."""

    def get_extra_info(self, name: str, /) -> Any:
        """The value that the transport has under this name, or None."""


def client_name(source: OverTls) -> str | None:
    """The verified common name in the certificate of a client; None without one."""
    certificate = source.get_extra_info("peercert")
    if not certificate:
        return None
    names = (pair for part in certificate["subject"] for pair in part)
    return next((value for key, value in names if key == "commonName"), None)


def _load(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise CertificateError(
            f"{files.prefix}tls-cert {files.cert} and {files.prefix}tls-key {files.key} cannot be"
            f" used: {_why(error)}."
            " Give a PEM chain, and the unencrypted PEM key of its first certificate"
        ) from error
    if files.client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        # A resumed session would skip the check of a certificate that has expired meanwhile.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        try:
            context.load_verify_locations(files.client_ca)
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"{files.prefix}tls-client-ca {files.client_ca} cannot be used: {_why(error)}."
                " Give the PEM certificate of the CA that signs the clients' certificates"
            ) from error
    return context


def _no_password() -> str:
    """Refuse to give a password. OpenSSL would ask for one at the terminal."""
    raise ValueError("the key is encrypted")


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
