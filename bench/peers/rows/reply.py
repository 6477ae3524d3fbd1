"""Request and response: enqueue a job, wait for the result of its handler, repeat."""

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

JOBS = 2_000
CONCURRENCY = 10
WARM_UP_JOBS = 3


def measure(trial: Trial) -> Figures:
    trial.configure(results=True)
    with trial.working(CONCURRENCY) as watch:
        began = warm_up(trial, watch, Order(WARM_UP_JOBS, WARM_UP_SECONDS, call=True))
        jobs = trial.size.jobs(JOBS, least=50)
        receipt = trial.enqueue(Order(jobs, trial.size.seconds, call=True))
        ended = watch.until(began.count + receipt.jobs, trial.size.seconds)
        figures = processed(trial, watch, began, ended)
    p50, p99 = milliseconds(receipt.times)
    rate = receipt.jobs / receipt.seconds
    return replace(figures, jobs=receipt.jobs, rate=rate, p50=p50, p99=p99)


ROWS = [
    Row(
        "reply",
        "request and response, one after another",
        measure,
        (
            Metric("p50", "p50", "ms", higher_wins=False),
            Metric("p99", "p99", "ms", higher_wins=False),
        ),
    )
]
