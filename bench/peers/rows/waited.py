"""How long jobs wait: those that come at a steady rate, that are replied to, or that come due.

Jobs of `latency` come at fixed times whether or not the peer keeps up: one that does not is slow
here.
"""

from dataclasses import replace

from bench.peers.rows.row import (
    P50,
    P99,
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

CONCURRENCY = 10

RATE_A_SECOND = 500
STEADY_SECONDS = 20
LEAST_SECONDS = 1
CALLERS = 16
STEADY_WARM_UP = 100

CALLS = 2_000
CALLS_WARM_UP = 3

DUE_JOBS = 100_000
DUE_CONCURRENCY = 100
# RQ needs a process for each concurrent job, and two cores cannot run a hundred.
FEWER = {"rq": 10}
DUE_WARM_UP = 2
MARGIN_SECONDS = 2.0


def latency(trial: Trial) -> Figures:
    """From the time at which a job is due to be enqueued until its handler runs."""
    jobs = trial.size.jobs(RATE_A_SECOND * STEADY_SECONDS, least=RATE_A_SECOND * LEAST_SECONDS)
    trial.configure(detail=True)
    with trial.working(CONCURRENCY) as watch:
        began = warm_up(trial, watch, Order(STEADY_WARM_UP, WARM_UP_SECONDS, CALLERS))
        skipped = began.count
        seconds = max(2 * jobs / RATE_A_SECOND, trial.size.seconds)
        order = Order(jobs, seconds, CALLERS, rate=RATE_A_SECOND)
        sent = trial.enqueue(order)
        ended = watch.until(skipped + sent.jobs, trial.size.seconds)
        figures = processed(trial, watch, began, ended)
    p50, p99 = milliseconds(watch.late[skipped:])
    rate = (ended.count - skipped) / (watch.last - sent.began)
    return replace(figures, jobs=ended.count - skipped, rate=rate, p50=p50, p99=p99)


def reply(trial: Trial) -> Figures:
    """Enqueue a job, wait for the result of its handler, repeat."""
    trial.configure(results=True)
    with trial.working(CONCURRENCY) as watch:
        began = warm_up(trial, watch, Order(CALLS_WARM_UP, WARM_UP_SECONDS, call=True))
        jobs = trial.size.jobs(CALLS, least=50)
        receipt = trial.enqueue(Order(jobs, trial.size.seconds, call=True))
        ended = watch.until(began.count + receipt.jobs, trial.size.seconds)
        figures = processed(trial, watch, began, ended)
    p50, p99 = milliseconds(receipt.times)
    rate = receipt.jobs / receipt.seconds
    return replace(figures, jobs=receipt.jobs, rate=rate, p50=p50, p99=p99)


def scheduled(trial: Trial) -> Figures:
    """Many jobs that come due at the same moment, while a worker waits."""
    jobs = trial.size.jobs(DUE_JOBS, least=2)
    trial.configure(detail=True)
    concurrency = FEWER.get(trial.contender.peer.name, DUE_CONCURRENCY)
    with trial.working(concurrency, scheduler=True) as watch:
        began = warm_up(trial, watch, Order(DUE_WARM_UP, WARM_UP_SECONDS))
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
    Row("latency", f"enqueue to handler at {RATE_A_SECOND} jobs/s", latency, (P50, P99)),
    Row("reply", "request and response, one after another", reply, (P50, P99)),
    Row(
        "scheduled",
        "a burst of scheduled jobs, from when they are due",
        scheduled,
        (
            Metric("rate", "rate since they were due", "jobs/s"),
            Metric("p99", "p99 of lateness", "ms", higher_wins=False),
        ),
    ),
]
