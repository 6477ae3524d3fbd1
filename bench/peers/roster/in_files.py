"""The peers without a server: their jobs lie in files that producer and worker share."""

from __future__ import annotations

from bench.peers.roster.on_redis import HUEY_REDIS, NO_BULK
from bench.peers.roster.peer import Mode, Peer

FSYNC = Mode("fsync", True, "in the write-ahead log and synced (synchronous=FULL)")
SQLITE_DEFAULT = Mode("default", True, "in the write-ahead log and synced, SQLite's default")
LOOP = "a loop of {} in `concurrency` threads"
NO_RESULTS = "no results"
NO_DELAYS = "no delayed jobs"
NO_RETRIES = "counts no tries"

HUEY_SQLITE = Peer(
    name="huey-sqlite",
    adapter="huey",
    runtime="python",
    environment="huey",
    packages=HUEY_REDIS.packages,
    modes=(SQLITE_DEFAULT,),
    client="a call of the task",
    worker_note=HUEY_REDIS.worker_note,
    worker=HUEY_REDIS.worker,
    lacks=NO_BULK,
)
LITEQUEUE = Peer(
    name="litequeue",
    adapter="litequeue",
    runtime="python",
    packages=("litequeue",),
    modes=(FSYNC, Mode("default", False, "in the write-ahead log, not synced (NORMAL)")),
    client="put",
    worker_note=LOOP.format("pop and done"),
    lacks={
        **NO_BULK,
        "reply": NO_RESULTS,
        "scheduled": NO_DELAYS,
        "retries": NO_RETRIES,
    },
)
PERSIST_QUEUE = Peer(
    name="persist-queue",
    adapter="persist_queue",
    runtime="python",
    packages=("persist-queue",),
    modes=(SQLITE_DEFAULT,),
    client="put of SQLiteAckQueue, one queue for all threads",
    worker_note=LOOP.format("get and ack") + "; acknowledged rows stay in the file",
    lacks={
        **NO_BULK,
        "reply": NO_RESULTS,
        "scheduled": NO_DELAYS,
        "retries": NO_RETRIES,
    },
)
PLATFORMATIC = Peer(
    name="platformatic",
    adapter="platformatic.mjs",
    runtime="node",
    packages=("@platformatic/job-queue",),
    modes=(Mode("default", False, "written to a file of its own and renamed, not synced"),),
    client="Queue of @platformatic/job-queue over FileStorage",
    worker_note="one Queue, `concurrency`; a job is settled after it ran",
    lacks={**NO_BULK, "scheduled": NO_DELAYS},
)
PEERS = (HUEY_SQLITE, LITEQUEUE, PERSIST_QUEUE, PLATFORMATIC)
