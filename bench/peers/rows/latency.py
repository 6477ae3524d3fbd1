"""Latency: from the time at which a job is due to be enqueued until its handler runs.

Jobs come at fixed times whether or not the peer keeps up: a peer that does not is slow here.
"""

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

RATE_A_SECOND = 500
SECONDS = 20
LEAST_SECONDS = 2
CALLERS = 16
CONCURRENCY = 10
WARM_UP_JOBS = 100


def measure(trial: Trial) -> Figures:
    jobs = trial.size.jobs(RATE_A_SECOND * SECONDS, least=RATE_A_SECOND * LEAST_SECONDS)
    trial.configure(detail=True)
    with trial.working(CONCURRENCY) as watch:
        began = warm_up(trial, watch, Order(WARM_UP_JOBS, WARM_UP_SECONDS, CALLERS))
        skipped = began.count
        seconds = max(2 * jobs / RATE_A_SECOND, trial.size.seconds)
        order = Order(jobs, seconds, CALLERS, rate=RATE_A_SECOND)
        sent = trial.enqueue(order)
        ended = watch.until(skipped + sent.jobs, trial.size.seconds)
        figures = processed(trial, watch, began, ended)
    p50, p99 = milliseconds(watch.late[skipped:])
    rate = (ended.count - skipped) / (watch.last - sent.began)
    return replace(figures, jobs=ended.count - skipped, rate=rate, p50=p50, p99=p99)


ROWS = [
    Row(
        "latency",
        f"enqueue to handler at {RATE_A_SECOND} jobs/s",
        measure,
        (
            Metric("p50", "p50", "ms", higher_wins=False),
            Metric("p99", "p99", "ms", higher_wins=False),
        ),
    )
]
