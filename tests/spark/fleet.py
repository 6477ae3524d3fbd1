"""A made-up fleet: histories of devices whose every record is known, and their segments."""

import gzip
import hashlib
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from zq.features.history.model import (
    MANIFEST,
    AttemptOutcome,
    HistoryRecord,
    Manifest,
    Segment,
    segment_name,
)

HOUR = 3_600_000
MONDAY = 1_767_571_200_000
"""2026-01-05 00:00 UTC."""

TYPES = {"mail": ("send", "digest"), "video": ("encode",)}
ERRORS = (
    ("TimeoutError", "no answer from 10.0.0.{n} after {n}000 ms"),
    ("ValueError", "order '{n}-A' has no lines"),
)


def history(
    device: str, jobs: int, *, seed: int, start: int = MONDAY, step_back_after: int | None = None
) -> list[HistoryRecord]:
    """A device's records, in order, for that many jobs over two days.

    With `step_back_after`, its clock is set back by an hour in the midst of that job.
    """
    chance = random.Random(seed)
    records: list[HistoryRecord] = []
    for number in range(jobs):
        queue = chance.choice(list(TYPES))
        enqueued = start + chance.randrange(48 * HOUR)
        back = HOUR if number == step_back_after else 0
        attempt, ready = 1, enqueued
        while True:
            wait = int(chance.lognormvariate(7, 2))
            run = int(chance.lognormvariate(6, 1.5))
            outcome = _outcome(chance, attempt)
            ran = outcome not in (AttemptOutcome.EXPIRED, AttemptOutcome.CANCELLED)
            failed = outcome in (AttemptOutcome.FAILED, AttemptOutcome.DEAD)
            kind, text = chance.choice(ERRORS)
            finished = ready + wait + (run if ran else 0) - back
            records.append(
                HistoryRecord(
                    seq=len(records) + 1,
                    epoch=f"EPOCH-{device}",
                    device=device,
                    job_id=f"{device}-{number}",
                    queue=queue,
                    type=TYPES[queue][number % len(TYPES[queue])],
                    attempt=attempt,
                    outcome=outcome,
                    enqueued_at=enqueued,
                    ready_at=ready,
                    dequeued_at=ready + wait if ran else None,
                    finished_at=finished,
                    error_type=kind if failed else None,
                    error_message=text.format(n=number) if failed else None,
                    worker=f"worker-{number % 3}" if ran else None,
                    payload_bytes=chance.randrange(500),
                    priority=32_768,
                )
            )
            if outcome not in (AttemptOutcome.FAILED, AttemptOutcome.STALLED):
                break
            attempt += outcome is AttemptOutcome.FAILED
            ready = finished + 15_000 * attempt
    return records


def _outcome(chance: random.Random, attempt: int) -> AttemptOutcome:
    if chance.random() < 0.15:
        return AttemptOutcome.DEAD if attempt == 3 else AttemptOutcome.FAILED
    return chance.choices(
        [
            AttemptOutcome.COMPLETED,
            AttemptOutcome.CANCELLED,
            AttemptOutcome.EXPIRED,
            AttemptOutcome.STALLED,
        ],
        [94, 2, 2, 2],
    )[0]


def write_segment(folder: Path, records: Sequence[HistoryRecord]) -> Path:
    """A segment as a server exports it, with its line in the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    first, last = records[0], records[-1]
    data = gzip.compress(b"".join(msgspec.json.encode(each) + b"\n" for each in records), mtime=0)
    path = folder / segment_name(first.epoch, first.seq, last.seq)
    draft = path.with_suffix(".part")
    draft.write_bytes(data)
    draft.rename(path)  # A stream may be looking. A segment appears whole.
    segment = Segment(
        file=path.name,
        first_seq=first.seq,
        last_seq=last.seq,
        count=len(records),
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    manifest = folder / MANIFEST
    known: tuple[Segment, ...] = ()
    if manifest.exists():
        known = msgspec.json.decode(manifest.read_bytes(), type=Manifest).segments
    whole = Manifest(epoch=first.epoch, device=first.device, segments=(*known, segment))
    manifest.write_bytes(msgspec.json.encode(whole))
    return path


def write_segments(folder: Path, records: Sequence[HistoryRecord], size: int) -> list[Path]:
    """Segments of up to `size` records each."""
    return [
        write_segment(folder, records[begin : begin + size])
        for begin in range(0, len(records), size)
    ]


def rows(records: Iterable[HistoryRecord]) -> list[dict[str, object]]:
    return [msgspec.to_builtins(record) for record in records]
