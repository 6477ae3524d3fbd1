"""How fast a worker with empty handlers works off a queue that was filled before its start."""

from dataclasses import replace
from functools import partial

from bench.peers.rows.row import RATE, Figures, Metric, Row, processed
from bench.peers.trial import Trial
from bench.peers.wire import TRIES

JOBS = 100_000
CONCURRENCY = (1, 10, 100)
USUAL = 10
"""The concurrency of the other rows."""

DEEP_JOBS = 1_000_000
FILL_TIMES = 20  # as long as other rows
RETRIED_JOBS = 1_000


def process(concurrency: int, trial: Trial) -> Figures:
    filled = trial.fill(trial.size.jobs(JOBS, least=2), trial.size.seconds).jobs
    return work_off(trial, concurrency, filled, trial.size.seconds)


def depth(trial: Trial) -> Figures:
    """Memory with a million jobs waiting, and how fast a worker is served from them."""
    wanted = trial.size.jobs(DEEP_JOBS, least=2)
    filled = trial.fill(wanted, trial.size.seconds * FILL_TIMES).jobs
    # If a slow peer was not filled, its memory would belong to another depth.
    rss = trial.server_rss() if filled == wanted else None
    figures = work_off(trial, USUAL, filled, trial.size.seconds)
    return replace(figures, jobs=filled, server_rss=rss)


def retries(trial: Trial) -> Figures:
    """Jobs that always fail and are retried ten times, without a pause if possible."""
    trial.configure(failing=True)
    filled = trial.fill(trial.size.jobs(RETRIED_JOBS, least=50), trial.size.seconds).jobs
    return work_off(trial, USUAL, filled * TRIES, trial.size.seconds * 2)


def work_off(trial: Trial, concurrency: int, runs: int, seconds: float) -> Figures:
    """Start a worker, and let it run handlers so many times, for so long at most."""
    with trial.working(concurrency) as watch:
        began = watch.begin()
        ended = watch.until(runs, seconds)
        return processed(trial, watch, began, ended)


PROCESS = [
    Row(f"process-{n}", f"processing, concurrency {n}", partial(process, n), (RATE,))
    for n in CONCURRENCY
]
DEPTH = Row(
    "depth",
    f"processing with up to {DEEP_JOBS:,} jobs waiting, concurrency {USUAL}",
    depth,
    (RATE, Metric("server_rss", "server's memory", "MB", higher_wins=False)),
)
RETRIES = Row(
    "retries",
    f"jobs that fail and are retried ten times, concurrency {USUAL}",
    retries,
    (Metric("rate", "rate", "tries/s"),),
)
