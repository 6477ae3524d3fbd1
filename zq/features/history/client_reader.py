"""Reads a server's history page by page, over the blocking transport. The objects pickle."""

import dataclasses
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from zq.client.backend import run
from zq.client.errors import BackendError
from zq.client.formats import JSON
from zq.client.http.address import Address, Tls
from zq.client.http.blocking import BlockingTransport
from zq.client.http.transport import Request, persist

LINES = dataclasses.replace(JSON, content_type="application/x-ndjson")

TIMEOUT_S = 60.0
TRIES = 6

MOST_RECORDS = 10_000
"""The most records that one request asks for."""


class HistoryGone(BackendError):
    """The retention of the record has ended. `min_seq` is the first record that is kept."""

    def __init__(self, message: str, min_seq: int) -> None:
        super().__init__(message, 410)
        self.min_seq = min_seq

    def __reduce__(self) -> tuple[type["HistoryGone"], tuple[str, int]]:
        return HistoryGone, (self.message, self.min_seq)


class HistoryPage(NamedTuple):
    """Records as NDJSON, and the range of the server's history that can be read.

    If it is empty, `min_seq` is one more than `max_seq`.
    """

    epoch: str
    recording: bool
    min_seq: int
    max_seq: int
    lines: bytes

    @property
    def first(self) -> "Mark | None":
        """The first record of the page."""
        return _mark(self.lines[: self.lines.find(b"\n")])

    @property
    def last(self) -> "Mark | None":
        """The last record of the page."""
        end = len(self.lines) - 1
        return _mark(self.lines[self.lines.rfind(b"\n", 0, end) + 1 :])


class Mark(msgspec.Struct):
    """The position of a record: its number, its device, and its attempt's end (milliseconds)."""

    seq: int
    device: str
    finished_at: int


class HistoryReader:
    """The history of one server. `tries` limits how often a failing request is sent."""

    def __init__(
        self, url: str, token: str | None = None, tries: int = TRIES, tls: Tls | None = None
    ) -> None:
        """Without `tls`, the environment's is used. Raises `InvalidOption`."""
        self.url = url
        self._tries = tries
        self._address = Address(url.rstrip("/"), token, LINES, tls or Tls.of_environment())
        self._transport = BlockingTransport(self._address)

    def __reduce__(self) -> tuple[Any, ...]:
        return HistoryReader, (self.url, self._address.token, self._tries, self._address.tls)

    def page(
        self,
        after: int | None = None,
        *,
        until: int | None = None,
        limit: int = MOST_RECORDS,
    ) -> HistoryPage:
        """Up to `limit` records with ``after < seq <= until``; after None, from the oldest one on.

        It may hold fewer than there are: continue after its last one. Raises `HistoryGone`,
        `Unavailable` or another `BackendError`.
        """
        given = {"after": after, "until": until, "limit": limit}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        request = Request("GET", f"/history?{query}", timeout=TIMEOUT_S, safe=True)
        reply = run(persist(self._transport.send, self._transport.sleep, request, self._tries))
        if reply.status == 410:
            said = msgspec.json.decode(reply.body, type=_Gone)
            raise HistoryGone(said.error, said.min_seq)
        if reply.status != 200:
            raise reply.error()
        try:
            told = [reply.headers[f"zq-{name}"] for name in ("epoch", "recording")]
            least, most = (int(reply.headers[f"zq-{name}-seq"]) for name in ("min", "max"))
        except (KeyError, ValueError) as error:
            raise BackendError(
                f"{self.url} does not serve a history: is it a zq server?"
            ) from error
        return HistoryPage(told[0], told[1] == "yes", least, most, reply.body)

    def first_since(self, time: int) -> int:
        """The number of the first record that ended at `time` (milliseconds) or later.

        It is one more than the last number if there is no such record. The search halves the range,
        as if the device's clock had never been set back.
        """
        found = self.page(limit=1)
        low, high = found.min_seq, found.max_seq + 1
        while low < high:
            middle = (low + high) // 2
            record = self.page(middle - 1, limit=1).first
            if record is not None and record.finished_at >= time:
                high = middle
            else:
                low = middle + 1
        return low

    def close(self) -> None:
        """Close the connection. The next page opens another."""
        run(self._transport.close())


class _Gone(msgspec.Struct):
    error: str
    min_seq: int


def _mark(line: bytes) -> Mark | None:
    return msgspec.json.decode(line, type=Mark) if line else None
