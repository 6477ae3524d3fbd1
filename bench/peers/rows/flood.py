"""Flood: one user has stored 100,000 jobs, and 100 others send one a second: how long these wait.

A peer without fair shares runs them after the flood, so a row of it takes as long as its drain.
"""

from dataclasses import replace

from bench.peers.rows.row import P50, P99, Figures, Row, milliseconds, processed
from bench.peers.servers import PeerError
from bench.peers.trial import Trial
from bench.peers.wire import Order

JOBS = 100_000
FILL_TIMES = 20  # as long as other rows
USERS = 100
SECONDS = 10
CALLERS = 8
CONCURRENCY = 10
DRAIN_SECONDS = 600.0
DUE_SECONDS = 1e8  # jobs of the flood were due long before


def measure(trial: Trial) -> Figures:
    trial.configure(detail=True, fair=True)
    flood = trial.fill(
        trial.size.jobs(JOBS, least=2), trial.size.seconds * FILL_TIMES, flood=True
    ).jobs
    with trial.working(CONCURRENCY) as watch:
        began = watch.begin()
        jobs = trial.size.jobs(USERS * SECONDS, least=USERS)
        order = Order(jobs, 2 * SECONDS, CALLERS, rate=USERS, users=USERS)
        sent = trial.enqueue(order).jobs
        ended = watch.until(flood + sent, DRAIN_SECONDS)
        figures = processed(trial, watch, began, ended)
        waits = [late for late in watch.late if late < DUE_SECONDS]
    if len(waits) < sent:
        raise PeerError(f"{sent - len(waits)} of {sent} jobs did not come in {DRAIN_SECONDS:.0f} s")
    p50, p99 = milliseconds(waits)
    return replace(figures, jobs=sent, p50=p50, p99=p99)


FLOOD = Row(
    "flood",
    f"the waits of {USERS} users who send a job a second, while one user's {JOBS:,} jobs run",
    measure,
    (P50, P99),
)
