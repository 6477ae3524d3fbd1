"""GET /history: the records of attempts, in the order in which they were made."""

from collections.abc import Sequence

import msgspec
from aiohttp import web

from zq.features.history.model import HistoryRecord
from zq.features.history.service import History, HistoryRecords
from zq.http.api.endpoints import lines_or_codec, parameters
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_TIME
from zq.model.keys import KeyScope
from zq.model.settling import MOST_WAIT_MS
from zq.wire.framing import NDJSON
from zq.wire.query import whole_number


class HistoryDocument(msgspec.Struct):
    """An answer: records, with their database and its range of records.

    `recording` tells whether attempts that end from now on are recorded.
    """

    epoch: str
    recording: bool
    min_seq: int
    max_seq: int
    records: list[HistoryRecord]


def lines_of(records: Sequence[HistoryRecord]) -> bytes:
    """One record on each line."""
    return _encoder.encode_lines(records)


_encoder = msgspec.json.Encoder()


DEFAULT_LIMIT = 1_000
MOST_LIMIT = 10_000


class HistoryApi:
    """The history, read by record numbers."""

    def __init__(self, parts: ApiParts) -> None:
        self._history = parts.services[History]
        self._packer = parts.packer

    def routes(self) -> list[Route]:
        return [Route("GET", "/history", self.history, KeyScope.HISTORY, whole=True, query=True)]

    async def history(self, request: web.BaseRequest) -> Answer:
        """Send up to `limit` (1,000; at most 10,000) records with ``after < seq <= until``.

        Without `after` they begin with the oldest that is kept. With `wait_ms` (at most 30,000) an
        empty answer waits for a first record. JSON and MessagePack have `epoch`, `recording`,
        `min_seq`, `max_seq`, `records`. NDJSON (`application/x-ndjson`) has one record a line. All
        formats have the headers `Zq-Epoch`, `Zq-Recording`, `Zq-Min-Seq`, `Zq-Max-Seq`. The answer
        may have fewer records than there are: continue after the last one. 410 means that the
        records after `after` are past their retention (`min_seq` is the first that is not), 409
        that `after` is beyond the last record.
        """
        codec = lines_or_codec(request)
        given = parameters(request, ("after", "until", "limit", "wait_ms"))
        numbers = {
            name: whole_number(name, given[name], high)
            for name, high in _HIGHEST.items()
            if name in given
        }
        found = await self._history.page(
            numbers.get("after"),
            numbers.get("until", MAX_TIME),
            _limit(numbers),
            numbers.get("wait_ms", 0),
        )
        headers = _headers(found)
        if codec is None:
            headers["Content-Type"] = NDJSON.content_type
            return Answer(200, lines_of(found.records), headers)
        others = found._asdict()
        records = others.pop("records")
        return await self._packer.listed("records", records, _itself, codec, others, headers)


APIS = (HistoryApi,)


_HIGHEST = {"after": MAX_TIME, "until": MAX_TIME, "limit": MOST_LIMIT, "wait_ms": MOST_WAIT_MS}


def _itself(record: HistoryRecord) -> HistoryRecord:
    return record


def _limit(numbers: dict[str, int]) -> int:
    limit = numbers.get("limit", DEFAULT_LIMIT)
    if not limit:
        raise InvalidRequest(f"limit must be between 1 and {MOST_LIMIT}")
    return limit


def _headers(found: HistoryRecords) -> dict[str, str]:
    return {
        "Zq-Epoch": found.epoch,
        "Zq-Recording": "yes" if found.recording else "no",
        "Zq-Min-Seq": str(found.min_seq),
        "Zq-Max-Seq": str(found.max_seq),
    }
