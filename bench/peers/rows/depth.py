"""Depth: memory with a million jobs waiting, and how fast a worker is served from them."""

from dataclasses import replace

from bench.peers.rows.row import Figures, Metric, Row, processed
from bench.peers.trial import Trial

JOBS = 1_000_000
FILL_TIMES = 8  # as long as any other row, since it has ten times the jobs
CONCURRENCY = 10


def measure(trial: Trial) -> Figures:
    filled = trial.fill(trial.size.jobs(JOBS), trial.size.seconds * FILL_TIMES).jobs
    rss = trial.server_rss()
    with trial.working(CONCURRENCY) as watch:
        began = watch.begin()
        ended = watch.until(filled, trial.size.seconds)
        figures = processed(trial, watch, began, ended)
    return replace(figures, jobs=filled, server_rss=rss)


ROWS = [
    Row(
        "depth",
        "processing with up to 1,000,000 jobs waiting, concurrency 10",
        measure,
        (
            Metric("rate", "jobs/s over the backlog", "jobs/s"),
            Metric("server_rss", "server's memory at that depth", "MB", higher_wins=False),
        ),
    )
]
