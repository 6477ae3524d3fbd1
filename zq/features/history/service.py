"""The verb that reads the history of attempts, as far as it is on the disk."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import msgspec

from zq.features.history.engine import HistoryReaders
from zq.features.history.model import AttemptOutcome, HistoryRecord, StoredAttempt
from zq.model.ids import SUFFIX_LENGTH, IdCodec, minted_at
from zq.model.log import HISTORY_LOG
from zq.service.services import Services
from zq.store.api import Store


class HistoryRecords(NamedTuple):
    """Records, with their database and its range of records."""

    epoch: str
    recording: bool
    """True if attempts are recorded that end from now on."""
    min_seq: int
    max_seq: int
    records: list[HistoryRecord]


class History:
    """The log of attempts."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store, services.ids, services.engine[HistoryReaders])

    def __init__(self, store: Store, ids: IdCodec, readers: HistoryReaders) -> None:
        self._reads = store.reads
        self._epoch = store.at_start.epoch
        self._ids = ids
        self._readers = readers

    async def page(self, after: int | None, until: int, limit: int, wait_ms: int) -> HistoryRecords:
        """Up to `limit` records with ``after < seq <= until``; after None, from the oldest one on.

        If there is none yet, wait for one. Raises `RecordsGone` or `CursorAhead`.
        """
        seen = self._readers.readable
        found = await self._read(after, until, seen, limit)
        if found.records or not wait_ms or (after is not None and after >= until):
            return found
        await self._readers.wait(seen, wait_ms)
        return await self._read(after, until, self._readers.readable, limit)

    async def _read(
        self, after: int | None, until: int, readable: int, limit: int
    ) -> HistoryRecords:
        upto = min(until, readable)
        min_seq, records = await self._reads.log_page(
            HISTORY_LOG, after, upto, limit, self._records
        )
        return HistoryRecords(self._epoch, self._readers.recording, min_seq, readable, records)

    def _records(
        self, first_seq: int, shared: str, attempts: list[msgspec.Raw]
    ) -> list[HistoryRecord]:
        return list(history_records(first_seq, shared, attempts, self._epoch, self._ids))


class SharedByBatch(msgspec.Struct):
    """The fields that the attempts of a batch share. `workers` has names by stream numbers."""

    device: str
    finished_at: int
    workers: dict[int, str]
    outcome: AttemptOutcome = AttemptOutcome.COMPLETED


def id_of(ids: IdCodec, attempt: StoredAttempt) -> str:
    """The id of a job, which may be one of a device."""
    text = ids.text(attempt.key)
    return text if attempt.id_suffix is None else text[:-SUFFIX_LENGTH] + attempt.id_suffix


_attempt = msgspec.json.Decoder(StoredAttempt)
_shared = msgspec.json.Decoder(SharedByBatch)


def history_records(
    first_seq: int, shared: str, attempts: Sequence[msgspec.Raw], epoch: str, ids: IdCodec
) -> Iterator[HistoryRecord]:
    """The records of a batch from the store, with the database `epoch`. The first is `first_seq`.

    Raises msgspec.MsgspecError if the batch cannot be read.
    """
    common = _shared.decode(shared)
    for seq, raw in enumerate(attempts, start=first_seq):
        attempt = _attempt.decode(raw)
        worker = attempt.worker
        yield HistoryRecord(
            seq=seq,
            epoch=epoch,
            device=common.device,
            job_id=id_of(ids, attempt),
            queue=attempt.queue,
            type=attempt.type,
            attempt=attempt.attempt,
            outcome=attempt.outcome or common.outcome,
            enqueued_at=minted_at(attempt.key),
            ready_at=attempt.ready_at,
            finished_at=attempt.finished_at or common.finished_at,
            payload_bytes=attempt.payload_bytes,
            priority=attempt.priority,
            dequeued_at=attempt.dequeued_at,
            error_type=attempt.error_type,
            error_message=attempt.error_message,
            worker=common.workers.get(worker) if isinstance(worker, int) else worker,
        )
