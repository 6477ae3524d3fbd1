"""The peers that keep their jobs in Redis, with the fsync policies of its append-only file."""

from __future__ import annotations

from bench.peers.roster.peer import Mode, Peer

AOF = ("--appendonly", "yes", "--appendfsync")
ALWAYS = Mode("always", True, "appended to the AOF and synced before the reply", (*AOF, "always"))
EVERYSEC = Mode(
    "everysec", False, "in memory; appended to the AOF, synced within a second", (*AOF, "everysec")
)
MODES = (ALWAYS, EVERYSEC)
REDIS = "redis[hiredis]"
NO_BULK = {"bulk": "no bulk call"}
PER_PROCESS = "a process a job: 100 of them do not fit two cores"

BULLMQ = Peer(
    name="bullmq",
    adapter="bullmq.mjs",
    runtime="node",
    packages=("bullmq", "ioredis"),
    server="redis",
    modes=MODES,
    client="Queue of bullmq, one connection for all callers; addBulk",
    worker_note="one Worker, `concurrency`; removeOnComplete; a job is settled after it ran",
)
RQ = Peer(
    name="rq",
    adapter="rq",
    runtime="python",
    packages=("rq", REDIS),
    server="redis",
    modes=MODES,
    client="Queue of rq; enqueue_many",
    worker_note="`rq worker-pool` of SimpleWorkers (the default forks for every job); result_ttl 0",
    worker=(
        "{bin}/rq worker-pool -n {concurrency} -w rq.worker.SimpleWorker -l WARNING "
        "--url {address} bench"
    ),
    scheduler=(
        "{bin}/rq worker --with-scheduler -w rq.worker.SimpleWorker -q --url {address} bench"
    ),
    lacks={"process-100": PER_PROCESS},
)
CELERY = Peer(
    name="celery",
    adapter="celery",
    runtime="python",
    packages=("celery[redis]", "hiredis"),
    server="redis",
    modes=MODES,
    client="apply_async",
    worker_note="`celery worker -P threads`; acks_late in always, else acknowledged before it ran",
    worker=(
        "{bin}/celery -A bench.peers.adapters.celery worker -P threads -c {concurrency} -l WARNING"
    ),
    lacks=NO_BULK,
)
DRAMATIQ = Peer(
    name="dramatiq",
    adapter="dramatiq",
    runtime="python",
    packages=("dramatiq[redis]", REDIS),
    server="redis",
    modes=MODES,
    client="actor.send",
    worker_note="`dramatiq -p 1 -t concurrency`; acknowledged after it ran",
    worker="{bin}/dramatiq bench.peers.adapters.dramatiq -p 1 -t {concurrency}",
    lacks=NO_BULK,
)
ARQ = Peer(
    name="arq",
    adapter="arq",
    runtime="python",
    packages=("arq",),
    server="redis",
    modes=MODES,
    client="enqueue_job, one pool for all callers",
    worker_note="`arq`, max_jobs; keep_result 0; polls every 0.5 s",
    worker="{bin}/arq bench.peers.adapters.arq.WorkerSettings",
    lacks=NO_BULK,
)
TASKIQ = Peer(
    name="taskiq",
    adapter="taskiq",
    runtime="python",
    packages=("taskiq", "taskiq-redis", REDIS),
    server="redis",
    modes=MODES,
    client="kiq over RedisStreamBroker, one pool for all callers",
    worker_note="`taskiq worker -w 1 --max-async-tasks`; acknowledged once its result is saved",
    worker=(
        "{bin}/taskiq worker bench.peers.adapters.taskiq:broker -w 1 --max-async-tasks "
        "{concurrency} --log-level ERROR"
    ),
    scheduler=(
        "{bin}/taskiq scheduler bench.peers.adapters.taskiq:scheduler "
        "--update-interval 1 --loop-interval 1 --log-level ERROR"
    ),
    lacks=NO_BULK,
)
HUEY_REDIS = Peer(
    name="huey-redis",
    adapter="huey",
    runtime="python",
    environment="huey",
    packages=("huey", REDIS),
    server="redis",
    modes=MODES,
    client="a call of the task",
    worker_note="`huey_consumer -k thread -w concurrency`; a job leaves the queue before it runs",
    worker=(
        "{python} -m huey.bin.huey_consumer bench.peers.adapters.huey.huey -k thread "
        "-w {concurrency} -q"
    ),
    lacks=NO_BULK,
)
PEERS = (BULLMQ, RQ, CELERY, DRAMATIQ, ARQ, TASKIQ, HUEY_REDIS)
