"""The definition of a row, and the figures of one run of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.actors import percentiles
from bench.peers.trial import Trial
from bench.peers.watch import Mark, Watch
from bench.peers.wire import Order, Receipt

PER_JOBS = 100_000
WARM_UP_SECONDS = 60.0  # some workers take many seconds to start


@dataclass(frozen=True)
class Figures:
    """`rate` in jobs/s over `jobs`; p50 and p99 in ms; CPU in seconds per 100,000 jobs; MiB.

    `server_*` is None without a server: the clients do its work.
    """

    jobs: int
    rate: float
    p50: float | None = None
    p99: float | None = None
    server_cpu: float | None = None
    client_cpu: float | None = None
    server_rss: float | None = None
    client_rss: float | None = None


@dataclass(frozen=True)
class Metric:
    """A figure worth a plot and a column of the summary."""

    figure: Literal["rate", "p50", "p99", "server_rss"]
    title: str
    unit: str
    higher_wins: bool = True


@dataclass(frozen=True)
class Row:
    """One row. The first of `metrics` decides who is first."""

    name: str
    title: str
    measure: Callable[[Trial], Figures]
    metrics: tuple[Metric, ...]


RATE = Metric("rate", "rate", "jobs/s")
P50 = Metric("p50", "p50", "ms", higher_wins=False)
P99 = Metric("p99", "p99", "ms", higher_wins=False)


def enqueued(trial: Trial, receipt: Receipt, cpu_before: float) -> Figures:
    """The figures of a producer that ran alone."""
    return Figures(
        jobs=receipt.jobs,
        rate=receipt.jobs / receipt.seconds,
        server_cpu=per_jobs(trial, trial.server_cpu() - cpu_before, receipt.jobs),
        client_cpu=receipt.cpu / receipt.jobs * PER_JOBS,
        server_rss=trial.server_peak(),
    )


def processed(trial: Trial, watch: Watch, began: Mark, ended: Mark) -> Figures:
    """The figures of a worker between two marks. The rate counts from the first job to the last.

    There are no CPU figures if the run ends before the first look.
    """
    jobs = ended.count - began.count
    return Figures(
        jobs=ended.count,
        rate=(ended.count - 1) / (watch.last - watch.first),
        server_cpu=per_jobs(trial, ended.server_cpu - began.server_cpu, jobs),
        client_cpu=(ended.worker_cpu - began.worker_cpu) / jobs * PER_JOBS if jobs else None,
        server_rss=trial.server_peak(),
        client_rss=watch.worker_peak(),
    )


def warm_up(trial: Trial, watch: Watch, order: Order) -> Mark:
    """Enqueue the first jobs of a worker that is starting, and wait until all of them have run."""
    sent = trial.enqueue(order)
    watch.begin()
    return watch.until(sent.jobs, WARM_UP_SECONDS)


def per_jobs(trial: Trial, seconds: float, jobs: int) -> float | None:
    return seconds / jobs * PER_JOBS if trial.server.pids and jobs else None


def milliseconds(seconds: Sequence[float]) -> tuple[float, float]:
    """p50 and p99."""
    p50, p99 = percentiles(list(seconds))
    return p50 * 1e3, p99 * 1e3
