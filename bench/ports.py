"""Ports for programs that cannot say which one the kernel has given them."""

from __future__ import annotations

import socket
from pathlib import Path
from secrets import randbelow

LOOPBACK = "127.0.0.1"

LOWEST = 10_000

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The ports that the kernel gives to whoever asks for any."""


def free_port() -> int:
    """A port on which nothing listens at present.

    It is none that the kernel gives to whoever asks for any port, or for a connection: nobody
    takes it by chance before the program that it is for.
    """
    highest = int(RANGE.read_text().split()[0])
    while True:
        port = LOWEST + randbelow(highest - LOWEST)
        with socket.socket() as attempt:
            try:
                attempt.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
