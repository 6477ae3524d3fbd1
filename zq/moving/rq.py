"""Prints what waits in queues of RQ as jobs: `python -m zq.moving.rq QUEUE... | zq push --file -`.

It reads by RQ's own methods, and removes nothing. Stop the producers and workers first. Arguments
are pickles there, and reading a pickle may run code: read only what your own programs wrote. Jobs
that wait for other jobs, and jobs that are methods of objects, are left, and they are counted.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from zq.moving.lines import WaitingCall, write


def calls(queue: Any, left: Counter[str]) -> Iterator[WaitingCall]:
    """The waiting calls, in RQ's order; then the scheduled ones."""
    left["jobs that wait for others left"] += len(queue.deferred_job_registry)
    for job in queue.get_jobs():
        yield from _call(queue.name, job, None, left)
    scheduled = queue.scheduled_job_registry
    for id in scheduled.get_job_ids():
        job = queue.fetch_job(id)
        if job is not None:
            yield from _call(queue.name, job, scheduled.get_scheduled_time(id), left)


def _call(
    queue: str, job: Any, run_at: datetime | None, left: Counter[str]
) -> Iterator[WaitingCall]:
    if job.instance is not None:
        left["methods of objects left"] += 1
        return
    function = job.func_name.rpartition(".")[2]
    retries = getattr(job, "retries_left", None) or 0
    yield WaitingCall(
        queue, function, tuple(job.args), dict(job.kwargs), f"rq:{job.id}", run_at, retries
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the jobs, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m zq.moving.rq", description=__doc__)
    parser.add_argument("queues", metavar="QUEUE", nargs="+")
    parser.add_argument("--url", default=os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
    given = parser.parse_args(arguments)
    try:
        from redis import Redis, RedisError
        from rq import Queue
    except ImportError as error:
        print(f"stopped: run this where RQ is installed: {error}", file=sys.stderr)
        return 1
    left: Counter[str] = Counter()
    try:
        with Redis.from_url(given.url) as connection:
            queues = [Queue(name, connection=connection) for name in given.queues]
            return write((call for queue in queues for call in calls(queue, left)), left)
    except RedisError as error:
        print(f"stopped: {given.url}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
