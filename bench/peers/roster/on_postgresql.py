"""The peers that keep their jobs in PostgreSQL, and zq on that. All get the same server."""

from __future__ import annotations

from dataclasses import replace

from bench.peers.roster import on_servers
from bench.peers.roster.in_files import NO_RESULTS, NO_RETRIES
from bench.peers.roster.on_redis import BULLMQ
from bench.peers.roster.peer import Mode, Peer

COMMITTED = (Mode("packaged", True, "committed: in PostgreSQL's log and synced"),)
STAY = "finished jobs stay in the table"

PROCRASTINATE = Peer(
    name="procrastinate",
    adapter="procrastinate",
    runtime="python",
    packages=("procrastinate", "psycopg[binary]"),
    server="postgresql",
    modes=COMMITTED,
    client="defer_async and batch_defer_async, one pool for all callers",
    worker_note=f"`procrastinate worker --concurrency`; {STAY}",
    prepare="{bin}/procrastinate --app=bench.peers.adapters.procrastinate.app schema --apply",
    worker=(
        "{bin}/procrastinate --app=bench.peers.adapters.procrastinate.app --log-level "
        "error worker --concurrency {concurrency}"
    ),
    lacks={"reply": NO_RESULTS},
)
OBAN = Peer(
    name="oban",
    adapter="oban",
    runtime="python",
    python="python3.12",
    packages=("oban",),
    server="postgresql",
    modes=COMMITTED,
    client="enqueue and enqueue_many of Oban, one pool for all callers",
    worker_note=f"`oban start --queues bench:concurrency`; {STAY}",
    prepare="{bin}/oban install --dsn {address}",
    worker=(
        "{bin}/oban start --dsn {address} --queues bench:{concurrency} --log-level ERROR "
        "--cron-modules bench.peers.adapters.oban"
    ),
    lacks={"reply": NO_RESULTS, "retries": "the pause between tries cannot be left out"},
)
AWA = Peer(
    name="awa",
    adapter="awa",
    runtime="python",
    packages=("awa-pg",),
    server="postgresql",
    modes=COMMITTED,
    client="insert and enqueue_many_copy of AsyncClient",
    worker_note=f"AsyncClient.start, one queue of `concurrency`; {STAY} until its part is emptied",
    prepare="{python} -m bench.peers.adapters.awa",
    lacks={"reply": NO_RESULTS, "retries": "the pause between tries cannot be left out"},
)
SQL_QUEUE = Peer(
    name="sql-queue",
    adapter="sql_queue",
    runtime="python",
    packages=("psycopg[binary,pool]",),
    server="postgresql",
    modes=COMMITTED,
    client="statements of pgmq's kind by psycopg, one pool for all callers",
    prepare="{python} -m bench.peers.adapters.sql_queue",
    worker_note="one loop: read `concurrency`, run them, delete them in one statement",
    lacks={"reply": NO_RESULTS, "retries": NO_RETRIES},
)
BULLMQ_POSTGRESQL = replace(
    BULLMQ,
    name="bullmq-postgresql",
    packages=("bullmq", "pg"),
    server="postgresql",
    modes=COMMITTED,
    client="Queue of bullmq with its backend for PostgreSQL; addBulk",
)


def ours() -> tuple[Peer, ...]:
    """zq as it is on its own store, with that PostgreSQL as its store."""
    mode = Mode("fsync", True, "committed: in PostgreSQL's log and synced, for a delivery too")
    return tuple(
        replace(peer, name=f"{peer.name}-postgresql", server="zq-postgresql", modes=(mode,))
        for peer in on_servers.ours()
    )


PEERS = (PROCRASTINATE, OBAN, AWA, SQL_QUEUE, BULLMQ_POSTGRESQL)
