"""The history of jobs as the records that readers get."""

from collections.abc import Iterator, Sequence

import msgspec

from zq.model.history import AttemptOutcome, HistoryRecord
from zq.model.ids import IdCodec, minted_at


class Attempt(msgspec.Struct, array_like=True, gc=False):
    """A record as the store keeps it. `worker` is a name, or the number of a stream.

    What the attempts of a batch have in common is not told here.
    """

    key: int
    queue: str
    type: str
    attempt: int
    ready_at: int
    dequeued_at: int | None
    worker: int | str | None
    payload_bytes: int
    priority: int
    outcome: AttemptOutcome | None = None
    error_type: str | None = None
    error_message: str | None = None


class Shared(msgspec.Struct):
    """What the attempts of a batch have in common. `workers` has names by numbers of streams."""

    device: str
    finished_at: int
    workers: dict[int, str]
    outcome: AttemptOutcome = AttemptOutcome.COMPLETED


_attempt = msgspec.json.Decoder(Attempt)
_shared = msgspec.json.Decoder(Shared)


def history_records(
    first_seq: int, shared: str, attempts: Sequence[msgspec.Raw], epoch: str, ids: IdCodec
) -> Iterator[HistoryRecord]:
    """The records of a batch, the first of which is `first_seq` of the database `epoch`."""
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


class HistoryDocument(msgspec.Struct):
    """An answer: records, and which database and range of it they are from.

    `recording` tells whether attempts that end from now on are recorded.
    """

    epoch: str
    recording: bool
    min_seq: int
    max_seq: int
    records: list[HistoryRecord]


def plain(document: HistoryDocument) -> object:
    """The document as dicts, in which what has no value is null, as it is in JSON."""
    return msgspec.to_builtins(document)


def lines_of(records: Sequence[HistoryRecord]) -> bytes:
    """A record a line."""
    return _encoder.encode_lines(records)


_encoder = msgspec.json.Encoder()
