"""Requests to an admin listener: its address, a backup, a compaction, and what was damaged."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import IO, Any

import msgspec

from zq.client.backend import run
from zq.client.errors import BackendError, Unavailable
from zq.client.http.address import Address
from zq.client.http.blocking import BlockingTransport
from zq.client.http.transport import Reply, Request
from zq.wire.archive import SIZE_HEADER

TIMEOUT_S = 3600.0
"""How long a server may copy its database before the first byte, or compact it."""

PIECE = 256 * 1024


class _Listeners(msgspec.Struct):
    here: str
    server: str
    primary: str
    admin: str | None


def admin_of(address: Address) -> Address:
    """The admin listener of the server at an address, which may be either of its listeners.

    It is asked for, and answers as that server. An address at which something else than zq answers
    is returned as it is. Raises `Unavailable` or another `BackendError`.
    """
    found = _listeners(address)
    if found is None or found.here == "admin":
        return address
    if found.admin is None:
        raise BackendError(
            f"the server at {address.url} has no admin listener, which this command asks: it was"
            " started with --no-admin, or its --admin-port was taken"
        )
    admin = replace(address, url=found.admin)
    try:
        there = _listeners(admin)
    except Unavailable as error:
        raise Unavailable(
            f"the server at {address.url} has its admin listener at {found.admin}: {error.message}."
            f" {_ELSEWHERE}"
        ) from None
    if there is None or there.server != found.server:
        raise BackendError(
            f"the server at {address.url} has its admin listener at {found.admin}, and from here"
            f" another server answers at this address. {_ELSEWHERE}"
        )
    return admin


_ELSEWHERE = (
    "Run the command on the server's machine, or give --admin-url the address at which this machine"
    " reaches the listener"
)


def _listeners(address: Address) -> _Listeners | None:
    """The description that a listener gives of its server; None if it is not zq's."""
    reply = _exchange(address, Request("GET", "/listeners"))
    if reply.status == HTTPStatus.NOT_FOUND:
        return None
    if reply.status != HTTPStatus.OK:
        raise reply.error()
    try:
        return msgspec.json.decode(reply.body, type=_Listeners)
    except msgspec.MsgspecError:
        return None


def download_backup(
    address: Address, target: IO[bytes], progress: Callable[[int, int], object]
) -> int:
    """Write a backup of a server to a file. Return its size in bytes.

    `progress` gets the received bytes of the database and their total. Raises `Unavailable` or
    another `BackendError`, also if the backup is cut off, and OSError of `target`. After an error
    the file is useless.
    """
    request = Request("POST", "/backup", timeout=TIMEOUT_S)
    with _administered(address), BlockingTransport(address).download(request) as (headers, read):
        total = headers.get(SIZE_HEADER.lower(), "")
        if not total.isdecimal():
            raise _elsewhere(address, HTTPStatus.OK)
        found = _Whole(int(total))
        while piece := read(PIECE):
            target.write(piece)
            found.feed(piece)
            progress(found.unpacked, found.total)
    found.end()
    return found.packed


def compact(address: Address) -> None:
    """Make a server give all free space back. Raises `Unavailable` or another `BackendError`."""
    _ask(address, Request("POST", "/compact", timeout=TIMEOUT_S))


def figures_of(admin: Address) -> tuple[dict[str, Any], dict[str, Any]]:
    """The queues and the state of the server that an admin listener belongs to, by its API.

    Raises `BackendError`.
    """
    found = _listeners(admin)
    api = admin if found is None else replace(admin, url=found.primary)
    stats, status = (
        msgspec.json.decode(_ask(api, Request("GET", path)).body) for path in ("/stats", "/status")
    )
    return stats, status


def damage(address: Address) -> dict[str, Any]:
    """The rows that a server has set aside, as `GET /damage` answers them. Raises
    `BackendError`."""
    found: dict[str, Any] = msgspec.json.decode(_ask(address, Request("GET", "/damage")).body)
    return found


def acknowledge_damage(address: Address) -> int:
    """Acknowledge what a server has set aside. Return how many rows. Raises `BackendError`."""
    reply = _ask(address, Request("POST", "/damage/acknowledge"))
    count: int = msgspec.json.decode(reply.body)["acknowledged"]
    return count


def _ask(address: Address, request: Request) -> Reply:
    with _administered(address):
        reply = _exchange(address, request)
        if reply.status not in (200, 204):
            raise reply.error()
        return reply


def _exchange(address: Address, request: Request) -> Reply:
    transport = BlockingTransport(address)
    try:
        return run(transport.send(request))
    finally:
        run(transport.close())


@contextmanager
def _administered(address: Address) -> Iterator[None]:
    """Say which listener is meant where another one answers."""
    try:
        yield
    except BackendError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise _elsewhere(address, error.status) from None
        raise


def _elsewhere(address: Address, status: int) -> BackendError:
    return BackendError(
        f"{address.url} is neither a zq server nor its admin listener: give another address",
        status,
    )


class _Whole:
    """Unpacks a backup as it passes, to check that it is complete."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.packed = 0
        self.unpacked = 0
        self._unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)

    def feed(self, piece: bytes) -> None:
        self.packed += len(piece)
        try:
            while piece:
                self.unpacked += len(self._unpacker.decompress(piece, PIECE * 4))
                piece = self._unpacker.unconsumed_tail
        except zlib.error as error:
            raise BackendError(f"the backup was damaged on its way: {error}") from None

    def end(self) -> None:
        if not self._unpacker.eof or self.unpacked != self.total:
            raise BackendError("the backup was cut off on its way")
