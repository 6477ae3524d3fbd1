"""Depth: memory with a million jobs waiting, and how fast a worker is served from them."""

from dataclasses import replace

from bench.peers.rows.row import Figures, Metric, Row, processed
from bench.peers.trial import Trial

JOBS = 1_000_000
FILL_TIMES = 20  # as long as other rows
CONCURRENCY = 10


def measure(trial: Trial) -> Figures:
    wanted = trial.size.jobs(JOBS, least=2)
    filled = trial.fill(wanted, trial.size.seconds * FILL_TIMES).jobs
    # If a slow peer was not filled, its memory would belong to another depth.
    rss = trial.server_rss() if filled == wanted else None
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
            Metric("rate", "rate", "jobs/s"),
            Metric("server_rss", "server's memory", "MB", higher_wins=False),
        ),
    )
]
