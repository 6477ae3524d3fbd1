"""The queue that one writes by hand on PostgreSQL: the table and the statements of pgmq's kind.

A message is read by making it invisible for a while (FOR UPDATE SKIP LOCKED), and deleted when its
job is done. It has no states, no retries and no workers: it is the least that such a queue costs.
"""

from __future__ import annotations

import json
import time
from typing import Any

from psycopg import Connection
from psycopg_pool import AsyncConnectionPool

from bench.peers.tally import PLACE, handle

SCHEMA = """
    CREATE TABLE IF NOT EXISTS q_bench (
        msg_id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
        read_ct integer NOT NULL DEFAULT 0,
        enqueued_at timestamptz NOT NULL DEFAULT now(),
        vt timestamptz NOT NULL,
        message jsonb
    );
    CREATE INDEX IF NOT EXISTS q_bench_vt ON q_bench (vt);
"""

SEND = """
    INSERT INTO q_bench (vt, message)
    SELECT clock_timestamp() + make_interval(secs => %s), each FROM unnest(%s::jsonb[]) AS each
"""

READ = """
    WITH chosen AS (
        SELECT msg_id FROM q_bench WHERE vt <= clock_timestamp() ORDER BY msg_id LIMIT %s
        FOR UPDATE SKIP LOCKED
    )
    UPDATE q_bench SET vt = clock_timestamp() + interval '30 s', read_ct = read_ct + 1
    FROM chosen WHERE q_bench.msg_id = chosen.msg_id
    RETURNING q_bench.msg_id, q_bench.message
"""

DELETE = "DELETE FROM q_bench WHERE msg_id = ANY(%s)"

POLL = 0.01
"""How long the worker waits where there was nothing, in seconds."""


class Client:
    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool

    async def enqueue(self, job: dict[str, Any], delay: float) -> None:
        await self.enqueue_many([job], delay)

    async def enqueue_many(self, jobs: list[dict[str, Any]], delay: float) -> None:
        async with self._pool.connection() as connection:
            await connection.execute(SEND, (delay, [json.dumps(job) for job in jobs]))

    async def close(self) -> None:
        await self._pool.close()


async def connect() -> Client:
    pool = AsyncConnectionPool(
        PLACE.address, open=False, kwargs={"autocommit": True}, min_size=1, max_size=10
    )
    await pool.open(wait=True)
    return Client(pool)


def work(concurrency: int) -> None:
    """Read as many as may run at once, run them, delete them, and read again."""
    with Connection.connect(PLACE.address, autocommit=True) as connection:
        while True:
            read = connection.execute(READ, (concurrency,)).fetchall()
            for _, message in read:
                handle(message)
            if read:
                connection.execute(DELETE, ([key for key, _ in read],))
            else:
                time.sleep(POLL)


def prepare() -> None:
    with Connection.connect(PLACE.address, autocommit=True) as connection:
        connection.execute(SCHEMA)


if __name__ == "__main__":
    prepare()
