"""How fast jobs are stored, by bulks of 1,000 jobs and one job a call."""

from functools import partial

from bench.peers.rows.row import RATE, Figures, Row, enqueued
from bench.peers.trial import FILL_BATCH, Trial
from bench.peers.wire import Order

JOBS = 100_000
CALLERS = (1, 64)


def bulk(trial: Trial) -> Figures:
    """Call after call."""
    before = trial.server_cpu()
    jobs = trial.size.jobs(JOBS, least=10 * FILL_BATCH)
    receipt = trial.enqueue(Order(jobs, trial.size.seconds, batch=FILL_BATCH))
    return enqueued(trial, receipt, before)


def single(callers: int, trial: Trial) -> Figures:
    """Each caller waits for its answer."""
    before = trial.server_cpu()
    jobs = trial.size.jobs(JOBS, least=callers)
    receipt = trial.enqueue(Order(jobs, trial.size.seconds, callers))
    return enqueued(trial, receipt, before)


ROWS = [
    Row("bulk", "bulk enqueue, 1,000 a call", bulk, (RATE,)),
    *(
        Row(f"single-{n}", f"single enqueue, clients at once: {n}", partial(single, n), (RATE,))
        for n in CALLERS
    ),
]
