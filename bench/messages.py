"""Messages of queue-ti and records of queue topics beside jobs: claimed by the hundred, and
acknowledged one by one."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from bench.actors import ID, Measure, Meter, bulk_requests
from bench.http1 import Connection, post
from bench.load import Session, Target, fill, in_own_process, run
from bench.report import Progress, Table, number
from bench.rows import WARM_UP
from bench.servers import Lab
from bench.topics import appends

CLAIMED = 100
CONSUMERS, ACKS = 4, 16
PACE = 15_000
"""Jobs a second that no server acknowledges one by one. It sizes the backlog."""


@dataclass(frozen=True)
class Dialect:
    """How a door is asked for jobs, and how one is acknowledged."""

    claim: bytes
    ack: Callable[[str], bytes]
    fill: Callable[[], list[bytes]]
    """Requests that store a thousand jobs each."""
    ids: re.Pattern[bytes] = ID


QUEUE = "queue-0"
RECORDS = f"/v0/topics/{QUEUE}"
DIALECTS = {
    "dequeue": Dialect(
        post("/api/messages/dequeue", b'{"topic":"%s","count":%d}' % (QUEUE.encode(), CLAIMED)),
        lambda id: post(f"/api/messages/{id}/ack", b"{}"),
        lambda: bulk_requests(1),
    ),
    "record": Dialect(
        post(f"{RECORDS}/claim", b'{"node":"bench","max":%d,"lease_ms":30000}' % CLAIMED),
        lambda seq: post(f"{RECORDS}/ack", b'{"node":"bench","seqs":[%s]}' % seq.encode()),
        # Its acknowledgements wait for the disk, as those of the others do.
        lambda: appends(QUEUE, type="queue", durable=True),
        re.compile(rb'"\$seq":(\d+)'),
    ),
    "claim": Dialect(
        post(f"/queues/{QUEUE}/claim", b'{"max":%d,"lease_ms":30000,"holder":"bench"}' % CLAIMED),
        lambda id: post(f"/jobs/{id}/success"),
        lambda: bulk_requests(1),
    ),
}


@dataclass(frozen=True)
class MessageRun:
    """One row once."""

    row: str
    measure: Measure


class ReadConnection(Connection):
    """A connection whose answers are read: `on_answer(connection, text)`."""

    def __init__(self, on_answer: Callable[[Connection, bytes], None]) -> None:
        super().__init__(self._complete)
        self._on_answer = on_answer
        self._text = b""

    def data_received(self, data: bytes) -> None:
        self._text += data
        super().data_received(data)

    def _complete(self, connection: Connection, _seconds: float) -> None:
        text, self._text = self._text, b""
        self._on_answer(connection, text)


class Consumer:
    """Claims jobs whenever it has none left, and acknowledges them one by one."""

    def __init__(self, meter: Meter, dialect: Dialect) -> None:
        self._meter = meter
        self._dialect = dialect
        self._ids: list[bytes] = []
        self._resting: list[Connection] = []
        self._claims: Connection | None = None

    def on_claimed(self, connection: Connection, text: bytes) -> None:
        self._claims = connection
        self._ids += self._dialect.ids.findall(text)
        self._go_on()

    def claim(self, connection: Connection) -> None:
        connection.send(self._dialect.claim)

    def use(self, connection: Connection) -> None:
        self._resting.append(connection)
        self._go_on()

    def on_acked(self, connection: Connection, seconds: float) -> None:
        self._meter.add(1, seconds)
        self.use(connection)

    def _go_on(self) -> None:
        while self._resting and self._ids:
            self._resting.pop().send(self._dialect.ack(self._ids.pop().decode()))
        if self._claims is not None and not self._ids:
            claims, self._claims = self._claims, None
            self.claim(claims)


async def consume(session: Session, consumer: Consumer) -> None:
    for _ in range(ACKS):
        consumer.use(await session.connect(lambda: Connection(consumer.on_acked)))
    consumer.claim(await session.connect(lambda: ReadConnection(consumer.on_claimed)))


async def consuming(target: Target, row: str, seconds: float) -> Measure:
    session = Session(target.port)
    try:
        dialect, meter = DIALECTS[row], Meter("acks")
        warm_up = min(WARM_UP, seconds)
        await fill(session, dialect.fill(), round(PACE * (warm_up + seconds)))
        for _ in range(CONSUMERS):
            await consume(session, Consumer(meter, dialect))
        await session.pause(warm_up)
        meter.reset()
        return meter.read(await session.lasts(seconds, lambda: meter.jobs > 0))
    finally:
        session.close()


def run_consuming(target: Target, row: str, seconds: float) -> Measure:
    return run(consuming(target, row, seconds))


def messages(lab: Lab, rounds: int, seconds: float, show: Progress) -> list[MessageRun]:
    """The rows in turn, each time on a fresh server."""
    found = []
    for turn in range(rounds):
        for row in DIALECTS:
            show.show(f"round {turn + 1}/{rounds} {row}")
            with lab.server("zq") as target:
                measure = in_own_process(run_consuming, target, row, seconds)
            found.append(MessageRun(row, measure))
    show.clear()
    return found


def messages_table(found: list[MessageRun]) -> Table:
    """Rates beside the native row."""
    rates = {row: [each.measure.rate for each in found if each.row == row] for row in DIALECTS}
    base = statistics.median(rates["claim"])
    lines = []
    for row, these in rates.items():
        middle = statistics.median(these)
        p50 = statistics.median([each.measure.p50 for each in found if each.row == row])
        cells = [row, number(middle), f"{number(min(these))}-{number(max(these))}"]
        lines.append([*cells, number(p50, 2), number(middle / base, 2)])
    return Table(["row", "acks/s", "low-high", "p50 ms", "ratio"], lines)
