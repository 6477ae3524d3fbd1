"""Two network namespaces with a cable between them that can be pulled: peers that vanish for real.

Needs root and `ip` (iproute2). The namespaces have no names: they end with their descriptors, even
if this process is killed.
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

_libc = ctypes.CDLL(None, use_errno=True)


def ip(*arguments: str) -> None:
    """Run `ip` in the namespace of this thread."""
    subprocess.run(["ip", *arguments], check=True)


def enter(namespace: int) -> None:
    """Move this thread: what it opens or starts from now on belongs to the namespace."""
    _check(_libc.setns(namespace, CLONE_NEWNET))


def enter_new_namespace() -> None:
    _check(_libc.unshare(CLONE_NEWNET))


def current_namespace() -> int:
    """A descriptor of this thread's namespace."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Network:
    """The calling thread lives in the near namespace while this context lasts."""

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            home = current_namespace()
            undo.callback(os.close, home)
            undo.callback(enter, home)
            enter_new_namespace()
            self._far = current_namespace()
            undo.callback(os.close, self._far)
            enter_new_namespace()
            self._near = current_namespace()
            undo.callback(os.close, self._near)
            end = f"/proc/{os.getpid()}/fd/{self._far}"
            ip(*f"link add near type veth peer name far netns {end}".split())
            self._set_up("near", HERE)
            with self._far_away():
                self._set_up("far", THERE)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    async def connect(self, port: int, receive_buffer: int | None = None) -> RawConnection:
        """A connection over the cable to a server in the near namespace."""
        with self._far_away():
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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
        with self._far_away():
            ip(*["link", "set", "far", "down"])

    def mend(self) -> None:
        """Plug the cable in again."""
        with self._far_away():
            ip(*["link", "set", "far", "up"])

    def slow_down(self, rate: str) -> None:
        """Let so much pass from the far end, such as `100kbit` a second, and drop what waits long.

        Needs the module `sch_tbf` of the kernel.
        """
        words = f"qdisc replace dev far root tbf rate {rate} burst 4kb latency 200ms"
        with self._far_away():
            subprocess.run(["tc", *words.split()], check=True)

    def be_usual(self) -> None:
        """Be as fast as the machine again."""
        with self._far_away():
            subprocess.run(["tc", "qdisc", "del", "dev", "far", "root"], check=True)

    @property
    def far_away(self) -> tuple[str, ...]:
        """A command that runs the rest of its line at the far end."""
        return "nsenter", f"--net=/proc/{os.getpid()}/fd/{self._far}"

    def _set_up(self, link: str, address: str) -> None:
        ip(*["link", "set", "lo", "up"])
        ip(*f"address add {address}/30 dev {link}".split())
        ip(*f"link set {link} up".split())

    @contextlib.contextmanager
    def _far_away(self) -> Iterator[None]:
        enter(self._far)
        try:
            yield
        finally:
            enter(self._near)
