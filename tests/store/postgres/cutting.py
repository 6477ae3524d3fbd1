"""A proxy in front of PostgreSQL that cuts connections at a COMMIT."""

import shutil
import socket
import tempfile
from contextlib import suppress
from enum import Enum
from pathlib import Path
from threading import Event, Thread
from urllib.parse import parse_qs, urlsplit

NAME = ".s.PGSQL.5432"
SYNC = b"S\x00\x00\x00\x04"
"""The end of what a tick sends with its COMMIT."""
READY = b"Z\x00\x00\x00\x05I"
"""The end of PostgreSQL's answer to that."""


class Cut(Enum):
    """Where a connection is cut."""

    BEFORE = "before PostgreSQL has the COMMIT"
    WITHIN = "when PostgreSQL has half of what comes with it"
    AFTER = "when it is done, and before its answer comes"
    DEAF = "like that, and PostgreSQL does not learn of it"


class Proxy:
    """A socket that leads to that of an address, until it is closed."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._target = f"{parse_qs(parts.query)['host'][0]}/{NAME}"
        self._folder = Path(tempfile.mkdtemp(prefix="zq-cut-"))
        self.address = f"{parts.scheme}://{parts.netloc}{parts.path}?host={self._folder}"
        self.cut: Cut | None = None
        """How the next COMMIT is cut. None afterwards."""
        self.is_shut = False
        """True while new connections are refused."""
        self.passes = Event()
        """Cleared while nothing passes, and nobody is told."""
        self.passes.set()
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._folder / NAME))
        self._listener.listen()
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.passes.set()
        self.end_all()
        _end(self._listener)
        shutil.rmtree(self._folder)

    def end_all(self) -> None:
        """Cut all connections."""
        for each in self._open:
            _end(each)
        self._open.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_shut or not self._join(client):
                    _end(client)

    def _join(self, client: socket.socket) -> bool:
        """Connect a client to PostgreSQL. Return False if that has no place for it."""
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._target)
        except OSError:
            server.close()
            return False
        self._open += [client, server]
        pair = _Pair(self, client, server)
        Thread(target=pair.ask, daemon=True).start()
        Thread(target=pair.answer, daemon=True).start()
        return True


class _Pair:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client, self._server = client, server
        self._cut: Cut | None = None

    def ask(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(1 << 20):
                self._proxy.passes.wait()
                if self._proxy.cut is not None and _is_commit(data):
                    self._cut, self._proxy.cut = self._proxy.cut, None
                if self._cut is Cut.BEFORE:
                    break
                if self._cut is Cut.WITHIN:
                    self._server.sendall(data[: len(data) // 2])
                    break
                self._server.sendall(data)
        if self._cut is not Cut.DEAF:
            _end(self._server)
        _end(self._client)

    def answer(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 20):
                self._proxy.passes.wait()
                if self._cut is None:
                    self._client.sendall(data)
                elif data.endswith(READY):
                    break
        _end(self._client)


def _is_commit(data: bytes) -> bool:
    return b"_COMMIT" in data[-200:] and data.endswith(SYNC)


def _end(some: socket.socket) -> None:
    with suppress(OSError):
        some.shutdown(socket.SHUT_RDWR)
    some.close()
