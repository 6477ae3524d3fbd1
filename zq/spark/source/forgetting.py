"""Producers of writes that nobody can run again: they are forgotten a day after their write.

A write without a `writeId` has a name of its own, so each leaves a producer for each partition.
They stay for a day, in which a copy of a task may still be on its way. Names begin with the time of
the write, so the oldest ones are found first.
"""

from collections.abc import Iterator
from urllib.parse import quote
from uuid import uuid4

import msgspec

from zq.client.backend import run
from zq.client.errors import ZqError
from zq.client.http.blocking import BlockingTransport
from zq.client.http.transport import Request
from zq.model.clock import now_ms
from zq.spark.source.options import SourceOptions

ONCE = "spark-once-"
DAY_MS = 86_400_000
PAGE = 1000


class _Producer(msgspec.Struct):
    name: str
    stored_at: int


class _Page(msgspec.Struct):
    producers: list[_Producer]
    next: str | None = None


def name_for_once() -> str:
    """The producers' name of a write without a `writeId`."""
    return f"{ONCE}{now_ms():012x}-{uuid4().hex}"


def forget_old(options: SourceOptions) -> None:
    """Forget the producers of writes that began, and have stored nothing, for more than a day.

    This needs a key that may read and manage. With another one they stay, for others to forget.
    """
    transport = BlockingTransport(options.address)
    try:
        for name in list(_old(transport)):
            path = f"/producers/{quote(name, safe='')}"
            run(transport.send(Request("DELETE", path, safe=True)))
    except ZqError:
        pass  # The jobs are stored. The next write tries again.
    finally:
        run(transport.close())


def _old(transport: BlockingTransport) -> Iterator[str]:
    before = now_ms() - DAY_MS
    end = f"{ONCE}{before:012x}"
    after: str | None = ONCE
    while after is not None:
        path = f"/producers?limit={PAGE}&from={after}"
        reply = run(transport.send(Request("GET", path, safe=True)))
        if reply.status != 200:
            return
        page = msgspec.json.decode(reply.body, type=_Page)
        for each in page.producers:
            if each.name >= end:
                return
            if each.stored_at < before:
                yield each.name
        after = page.next
