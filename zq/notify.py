"""What a service tells systemd about itself: the protocol of sd_notify(3).

Each call sends one datagram to the socket that NOTIFY_SOCKET names and returns whether systemd has
got it; without that variable nothing is sent. No call raises for a socket that does not answer:
a server must not die of a lost status line.
"""

import logging
import os
import socket

log = logging.getLogger(__name__)

# Long enough for a busy systemd, short enough for an event loop that waits.
_TIMEOUT_S = 1.0


def ready() -> bool:
    """The server answers requests."""
    return _send("READY=1")


def stopping() -> bool:
    """The server has begun to stop."""
    return _send("STOPPING=1")


def watchdog() -> bool:
    """The server is alive; due every `watchdog_interval()` seconds."""
    return _send("WATCHDOG=1")


def status(text: str) -> bool:
    """One line for `systemctl status`."""
    return _send("STATUS=" + " ".join(text.splitlines()))


def watchdog_interval() -> float | None:
    """Seconds between two calls of `watchdog()`, or None if systemd expects none.

    That is half of the time after which systemd gives the server up, as sd_watchdog_enabled(3)
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
