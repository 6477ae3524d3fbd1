"""The reason why a connection failed, and what to do about it."""

import os
import socket
import ssl
from http.client import RemoteDisconnected
from urllib.parse import urlsplit

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
