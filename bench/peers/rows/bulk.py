"""Bulk enqueue: 1,000 jobs a call, call after call."""

from bench.peers.rows.row import RATE, Figures, Row, enqueued
from bench.peers.trial import FILL_BATCH, Trial
from bench.peers.wire import Order

JOBS = 100_000


def measure(trial: Trial) -> Figures:
    before = trial.server_cpu()
    jobs = trial.size.jobs(JOBS, least=10 * FILL_BATCH)
    receipt = trial.enqueue(Order(jobs, trial.size.seconds, batch=FILL_BATCH))
    return enqueued(trial, receipt, before)


ROWS = [Row("bulk", "bulk enqueue, 1,000 a call", measure, (RATE,))]
