"""The verb that reads the history of attempts, up to what the disk has."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from zq.engine.news.waiters import HistoryReaders
from zq.model.clock import Clock
from zq.model.history import AttemptOutcome, HistoryRecord, StoredAttempt
from zq.model.ids import IdCodec, minted_at
from zq.store.api import Store


class HistoryRecords(NamedTuple):
    """Records, and which database and range of it they are from."""

    epoch: str
    recording: bool
    """Whether attempts that end from now on are recorded."""
    min_seq: int
    max_seq: int
    records: list[HistoryRecord]


class History:
    """The log of attempts."""

    def __init__(self, store: Store, clock: Clock, ids: IdCodec, readers: HistoryReaders) -> None:
        self._reads = store.reads
        self._epoch = store.epoch
        self._clock = clock
        self._ids = ids
        self._readers = readers

    async def page(self, after: int | None, until: int, limit: int, wait_ms: int) -> HistoryRecords:
        """Up to `limit` records with ``after < seq <= until``; after None, from the oldest one on.

        Where there is none yet, it waits for some. Raises `RecordsGone` or `CursorAhead`.
        """
        seen = self._readers.readable
        found = await self._read(after, until, seen, limit)
        if found.records or not wait_ms or (after is not None and after >= until):
            return found
        await self._readers.wait(seen, wait_ms, self._clock)
        return await self._read(after, until, self._readers.readable, limit)

    async def _read(
        self, after: int | None, until: int, readable: int, limit: int
    ) -> HistoryRecords:
        upto = min(until, readable)
        min_seq, records = await self._reads.history_page(after, upto, limit, self._records)
        return HistoryRecords(self._epoch, self._readers.recording, min_seq, readable, records)

    def _records(
        self, first_seq: int, shared: str, attempts: list[msgspec.Raw]
    ) -> list[HistoryRecord]:
        return list(history_records(first_seq, shared, attempts, self._epoch, self._ids))


class SharedByBatch(msgspec.Struct):
    """What the attempts of a batch have in common. `workers` has names by numbers of streams."""

    device: str
    finished_at: int
    workers: dict[int, str]
    outcome: AttemptOutcome = AttemptOutcome.COMPLETED


_attempt = msgspec.json.Decoder(StoredAttempt)
_shared = msgspec.json.Decoder(SharedByBatch)


def history_records(
    first_seq: int, shared: str, attempts: Sequence[msgspec.Raw], epoch: str, ids: IdCodec
) -> Iterator[HistoryRecord]:
    """The records of a batch, the first of which is `first_seq` of the database `epoch`.

    It is a batch as the store keeps it. Raises msgspec.MsgspecError where it cannot be read.
    """
    common = _shared.decode(shared)
    for seq, raw in enumerate(attempts, start=first_seq):
        attempt = _attempt.decode(raw)
        worker = attempt.worker
        yield HistoryRecord(
            seq=seq,
            epoch=epoch,
            device=common.device,
            job_id=ids.text(attempt.key),
            queue=attempt.queue,
            type=attempt.type,
            attempt=attempt.attempt,
            outcome=attempt.outcome or common.outcome,
            enqueued_at=minted_at(attempt.key),
            ready_at=attempt.ready_at,
            finished_at=common.finished_at,
            payload_bytes=attempt.payload_bytes,
            priority=attempt.priority,
            dequeued_at=attempt.dequeued_at,
            error_type=attempt.error_type,
            error_message=attempt.error_message,
            worker=common.workers.get(worker) if isinstance(worker, int) else worker,
        )
