"""Single enqueue: one job a call, each caller waiting for its answer."""

from functools import partial

from bench.peers.rows.row import RATE, Figures, Row, enqueued
from bench.peers.trial import Trial
from bench.peers.wire import Order

JOBS = 100_000
CALLERS = (1, 64)


def measure(callers: int, trial: Trial) -> Figures:
    before = trial.server_cpu()
    jobs = trial.size.jobs(JOBS, least=callers)
    receipt = trial.enqueue(Order(jobs, trial.size.seconds, callers))
    return enqueued(trial, receipt, before)


ROWS = [
    Row(f"single-{n}", f"single enqueue, clients at once: {n}", partial(measure, n), (RATE,))
    for n in CALLERS
]
