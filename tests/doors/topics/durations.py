"""What lasts in topics: how it begins, and how one sees that it is over."""

from typing import Any

from conformance.client import Client, Doc

from .queues import Queue
from .records import Records

HOUR_MS = 3_600_000


async def record(client: Client) -> None:
    records = Records(client)
    await records.put("log", ttl_ms=HOUR_MS)
    await records.append("log", 1)


async def has_no_record(client: Client, _: Any) -> bool:
    return not await Records(client).seqs("log")


async def write(client: Client) -> None:
    records = Records(client)
    await records.put("log", idempotency_window_ms=HOUR_MS)
    await records.append("log", 1, idempotency_key="k")


async def is_written_again(client: Client, _: Any) -> bool:
    told = await Records(client).append("log", 1, idempotency_key="k")
    return not told.get("deduped", False)


async def nack(client: Client) -> Any:
    records = Records(client)
    await records.put("q", type="queue", durable=True)
    queue = Queue(records, "q")
    await records.append("q", 1)
    await queue.claim()
    return await queue.settle("nack", 1, delay_ms=HOUR_MS)


async def is_back(client: Client, _: Any) -> bool:
    counts: Doc = await Queue(Records(client), "q").counts()
    return bool(counts["ready"])


DURATIONS = {
    "record of a topic": (record, has_no_record),
    "window of a topic": (write, is_written_again),
    "nack": (nack, is_back),
}
