"""Scheduled burst: many jobs that come due at the same moment, while a worker waits."""

from dataclasses import replace

from bench.peers.rows.row import (
    WARM_UP_SECONDS,
    Figures,
    Metric,
    Row,
    milliseconds,
    processed,
    warm_up,
)
from bench.peers.trial import Trial
from bench.peers.wire import Order

JOBS = 100_000
CONCURRENCY = 100
MARGIN_SECONDS = 2.0
WARM_UP_JOBS = 2
# RQ needs a process for each concurrent job, and two cores cannot run a hundred.
FEWER = {"rq": 10}


def measure(trial: Trial) -> Figures:
    jobs = trial.size.jobs(JOBS, least=2)
    trial.configure(detail=True)
    concurrency = FEWER.get(trial.contender.peer.name, CONCURRENCY)
    with trial.working(concurrency, scheduler=True) as watch:
        began = warm_up(trial, watch, Order(WARM_UP_JOBS, WARM_UP_SECONDS))
        skipped = began.count
        delay = trial.size.seconds + MARGIN_SECONDS
        receipt = trial.fill(jobs, trial.size.seconds, delay)
        ended = watch.until(skipped + receipt.jobs, delay + trial.size.seconds * 3)
        figures = processed(trial, watch, began, ended)
    p50, p99 = milliseconds(watch.late[skipped:])
    # The time counts from the due time, so a burst that starts late gains nothing.
    jobs = ended.count - skipped
    rate = jobs / (watch.last - receipt.began - delay)
    return replace(figures, jobs=jobs, rate=rate, p50=p50, p99=p99)


ROWS = [
    Row(
        "scheduled",
        "a burst of scheduled jobs, from when they are due",
        measure,
        (
            Metric("rate", "rate since they were due", "jobs/s"),
            Metric("p99", "p99 of lateness", "ms", higher_wins=False),
        ),
    )
]
