"""zq itself, and the peers with other servers of their own."""

from __future__ import annotations

import importlib.util

from bench.peers.roster.in_files import NO_RESULTS
from bench.peers.roster.on_redis import NO_BULK
from bench.peers.roster.peer import Mode, Peer

ZQ_FSYNC = (Mode("fsync", True, "in the write-ahead log and synced, for a delivery too"),)
ZQ_HTTP = Peer(
    name="zq-http",
    adapter="zq_http",
    runtime="ours",
    packages=("zq-queue",),
    server="zq",
    modes=ZQ_FSYNC,
    client="up to 64 keep-alive connections, requests written by hand",
    worker_note="one stream, prefetch 2 x concurrency, one acknowledgement under way",
)
ZQ_PYTHON = Peer(
    name="zq-python",
    adapter="zq_python",
    runtime="ours",
    packages=("zq-queue",),
    server="zq",
    modes=ZQ_FSYNC,
    client="tasks of the Python library; enqueue_many",
    worker_note="`zq worker -c concurrency`, prefetch twice that; results go to callers alone",
    worker=(
        "{python} -m zq.cli worker bench.peers.adapters.zq_python:app -c {concurrency} "
        "--log-level warn"
    ),
)
BEANSTALKD = Peer(
    name="beanstalkd",
    adapter="beanstalkd",
    runtime="python",
    packages=("greenstalk",),
    server="beanstalkd",
    modes=(
        Mode("f0", True, "in the binlog and synced", ("-f0",)),
        Mode("default", False, "in the binlog, synced every 50 ms"),
    ),
    client="greenstalk, a connection a caller",
    worker_note="a loop of reserve and delete in `concurrency` threads, a connection each",
    lacks={**NO_BULK, "reply": NO_RESULTS},
)


def ours() -> tuple[Peer, ...]:
    """zq, and its Python library if it is installed."""
    library = importlib.util.find_spec("zq.client")
    return (ZQ_PYTHON, ZQ_HTTP) if library else (ZQ_HTTP,)


PEERS = (BEANSTALKD,)
