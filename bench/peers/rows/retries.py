"""Retries: jobs that always fail and are retried ten times, without a pause if possible."""

from bench.peers.rows.row import Figures, Metric, Row, processed
from bench.peers.trial import Trial
from bench.peers.wire import TRIES

JOBS = 1_000
CONCURRENCY = 10


def measure(trial: Trial) -> Figures:
    trial.configure(failing=True)
    filled = trial.fill(trial.size.jobs(JOBS, least=50), trial.size.seconds).jobs
    with trial.working(CONCURRENCY) as watch:
        began = watch.begin()
        ended = watch.until(filled * TRIES, trial.size.seconds * 2)
        return processed(trial, watch, began, ended)


ROWS = [
    Row(
        "retries",
        "jobs that fail and are retried ten times, concurrency 10",
        measure,
        (Metric("rate", "rate", "tries/s"),),
    )
]
