"""Processing: a worker with empty handlers works off a queue that was filled before its start."""

from functools import partial

from bench.peers.rows.row import RATE, Figures, Row, processed
from bench.peers.trial import Trial

JOBS = 100_000
CONCURRENCY = (1, 10, 100)


def measure(concurrency: int, trial: Trial) -> Figures:
    filled = trial.fill(trial.size.jobs(JOBS, least=2), trial.size.seconds).jobs
    with trial.working(concurrency) as watch:
        began = watch.begin()
        ended = watch.until(filled, trial.size.seconds)
        return processed(trial, watch, began, ended)


ROWS = [
    Row(f"process-{n}", f"processing, concurrency {n}", partial(measure, n), (RATE,))
    for n in CONCURRENCY
]
