"""Sockets that systemd hands to a service: the protocol of sd_listen_fds(3)."""

import os
import socket

FIRST_FD = 3
"""By definition: those passed begin after the three standard streams."""


class ActivationError(Exception):
    """What was passed cannot be used; the message says what to change in the socket unit."""


def passed_socket() -> socket.socket | None:
    """The listening socket that this process was started with, or None.

    The variables are cleared, so that no child takes the descriptor for its own. Raises
    `ActivationError` where there are several or it is none that listens for TCP.
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
