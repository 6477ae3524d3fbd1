"""The protocols between systemd and a service: sd_notify(3) and sd_listen_fds(3).

Each notice is one datagram to the socket in NOTIFY_SOCKET. The call returns whether it was sent.
Without that variable nothing is sent. No notice raises if the socket does not answer: a server must
not die of a lost status line.
"""

import logging
import os
import socket

log = logging.getLogger(__name__)

# Long enough for a busy systemd, short enough for an event loop that waits.
_TIMEOUT_S = 1.0

FIRST_FD = 3
"""By definition, passed descriptors follow the three standard streams."""


class ActivationError(Exception):
    """The passed descriptors cannot be used. The message says what to change in the socket unit."""


def passed_socket() -> socket.socket | None:
    """The listening socket that was passed to this process, or None.

    The variables are cleared, so that no child uses the descriptor. Raises `ActivationError` if
    there are several, or if it does not listen for TCP.
    """
    meant_for = os.environ.pop("LISTEN_PID", "")
    count = os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if meant_for != str(os.getpid()) or not count.isdecimal() or int(count) == 0:
        return None
    if int(count) > 1:
        raise ActivationError(
            f"{count} sockets were passed, one is taken: leave one ListenStream= in the socket unit"
        )
    os.set_inheritable(FIRST_FD, False)
    passed = socket.socket(fileno=FIRST_FD)
    if not _listens_for_tcp(passed):
        passed.close()
        raise ActivationError(
            "the socket passed does not listen for TCP: write ListenStream=ADDRESS:PORT and"
            " Accept=no in the socket unit"
        )
    return passed


def _listens_for_tcp(passed: socket.socket) -> bool:
    return (
        passed.family in (socket.AF_INET, socket.AF_INET6)
        and passed.type == socket.SOCK_STREAM
        and bool(passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    )


def ready() -> bool:
    """Report that the server answers requests."""
    return _send("READY=1")


def stopping() -> bool:
    """Report that the server has begun to stop."""
    return _send("STOPPING=1")


def watchdog() -> bool:
    """Report that the server is alive. It is due every `watchdog_interval()` seconds."""
    return _send("WATCHDOG=1")


def status(text: str) -> bool:
    """Send one line for `systemctl status`."""
    return _send("STATUS=" + " ".join(text.splitlines()))


def watchdog_interval() -> float | None:
    """The seconds between two calls of `watchdog()`; None if systemd expects none.

    They are half of the time after which systemd gives the server up, as sd_watchdog_enabled(3)
    advises.
    """
    limit = os.environ.get("WATCHDOG_USEC", "")
    meant_for = os.environ.get("WATCHDOG_PID") or str(os.getpid())
    if not limit.isdecimal() or int(limit) == 0 or meant_for != str(os.getpid()):
        return None
    return int(limit) / 2 / 1_000_000


def _send(state: str) -> bool:
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]  # Linux's abstract namespace
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_TIMEOUT_S)
            sender.connect(address)
            sender.send(state.encode())
    except OSError as error:
        fields = {"state": state, "error": str(error)}
        log.warning("systemd not notified", extra={"fields": fields})
        return False
    return True
