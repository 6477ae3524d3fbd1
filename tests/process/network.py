"""Two network namespaces with a cable between them that can be pulled: peers that vanish for real.

Needs root and `ip` (iproute2).
"""

import asyncio
import contextlib
import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from conformance.raw import RawConnection

CLONE_NEWNET = 0x40000000
"""From linux/sched.h."""

# Set aside for documentation, so that it can clash with nothing.
HERE, THERE = "192.0.2.1", "192.0.2.2"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def enter(namespace: Path) -> None:
    """Move this thread: what it opens or starts from now on belongs to the namespace."""
    descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(namespace))
    finally:
        os.close(descriptor)


class Network:
    """The calling thread lives in the near namespace while this context lasts."""

    def __init__(self) -> None:
        self._near = f"zq-near-{os.getpid()}"
        self._far = f"zq-far-{os.getpid()}"

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            for name in (self._near, self._far):
                ip("netns", "add", name)
                undo.callback(ip, "netns", "delete", name)
                ip("-n", name, "link", "set", "lo", "up")
            end = ("type", "veth", "peer", "name", "far", "netns", self._far)
            ip("-n", self._near, "link", "add", "near", *end)
            for name, link, address in (
                (self._near, "near", HERE),
                (self._far, "far", THERE),
            ):
                ip("-n", name, "address", "add", f"{address}/30", "dev", link)
                ip("-n", name, "link", "set", link, "up")
            # A descriptor, because the thread's own entry changes with the move.
            home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            undo.callback(os.close, home)
            enter(self._path(self._near))
            undo.callback(enter, Path(f"/proc/self/fd/{home}"))
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    async def connect(self, port: int, receive_buffer: int | None = None) -> RawConnection:
        """A connection over the cable to a server in the near namespace."""
        with self._far_away():
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(sock, (HERE, port))
        return RawConnection(*await asyncio.open_connection(sock=sock, limit=4096))

    def limit_send_buffers(self, size: int) -> None:
        """Bytes that the near kernel keeps for a peer; the rest waits in the server."""
        Path("/proc/sys/net/ipv4/tcp_wmem").write_text(f"{size} {size} {size}")

    def cut(self) -> None:
        """Pull the cable: from now on nothing passes, and nobody is told."""
        ip("-n", self._far, "link", "set", "far", "down")

    def _path(self, namespace: str) -> Path:
        return Path("/run/netns") / namespace

    @contextlib.contextmanager
    def _far_away(self) -> Iterator[None]:
        enter(self._path(self._far))
        try:
            yield
        finally:
            enter(self._path(self._near))
