"""The metrics of the core, and one reading of all: from the store, and from the server's counters.

`python -m zq.operators.ops.http_metrics` prints the table of all, those of rooms too.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable

from zq import __version__, rooms
from zq.engine.process import storage_written
from zq.http.api.parts import ApiParts
from zq.http.metrics import REST, FigureReader, LabelledNames, Metric, Scrape, Values, markdown, one
from zq.model.lifecycle import Status
from zq.rooms import parts

MOST_QUEUES = 100
"""How many queues have a label of their own. The cost of a scrape must not grow with the queues."""


class Scraper:
    """Takes scrapes. A queue with a label keeps it as long as it has jobs."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._queues = LabelledNames(MOST_QUEUES)
        kinds = (kind for some in rooms.parts("metrics", "READERS", tuple) for kind in some)
        self._readers: list[FigureReader] = [kind(parts) for kind in kinds]

    async def scrape(self) -> Scrape:
        """Read the store and the counters. Raises `ReadTimeout`."""
        parts, services = self._parts, self._parts.services
        # A busy event loop delays each of these reads, so they are made beside each other.
        counts, found = await asyncio.gather(
            services.queues.counts(), asyncio.gather(*(reader.read() for reader in self._readers))
        )
        queues = self._queues.of(_totals(counts.items()))
        labelled = set(queues)
        jobs: Counter[tuple[str, Status]] = Counter()
        for (queue, status), n in counts.items():
            jobs[queue if queue in labelled else REST, status] += n
        waiting = [queue for queue in queues if counts[queue, Status.READY]]
        oldest = await services.queues.oldest_ready(waiting)
        return Scrape(
            now=services.clock.now_ms(),
            figures=services.admin.figures(),
            jobs=jobs,
            oldest_ready=oldest,
            refused=parts.refused,
            connections=parts.gate.open,
            accepted=parts.gate.accepted,
            body_bytes=parts.bodies.held,
            answer_bytes=parts.answers.held,
            lag=parts.lag.seconds,
            tallies=services.tallies,
            dropped_lines=parts.dropped_lines(),
            of_rooms={type(each): each for each in found},
        )


def _totals(counts: Iterable[tuple[tuple[str, Status], int]]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for (queue, _), n in counts:
        if n:
            totals[queue] += n
    return totals


def _jobs(scrape: Scrape) -> Values:
    return [((queue, status.name.lower()), n) for (queue, status), n in scrape.jobs.items()]


def _ages(scrape: Scrape) -> Values:
    return [((queue,), age) for queue, age in scrape.ages()]


def _settled(scrape: Scrape) -> Values:
    jobs = scrape.figures.jobs
    return [
        (("completed",), jobs.completed),
        (("retried",), jobs.retried),
        (("dead",), jobs.died),
        (("not_in_flight",), jobs.not_in_flight),
    ]


def _refusals(scrape: Scrape) -> Values:
    return [((code,), n) for code, n in sorted(scrape.refused.items())]


METRICS = (
    Metric(
        "zq_jobs",
        "gauge",
        f"Jobs stored. At most {MOST_QUEUES} queues by name, the rest together as `{REST}`.",
        _jobs,
        ("queue", "status"),
    ),
    Metric(
        "zq_oldest_ready_age_seconds",
        "gauge",
        "Time since the longest waiting ready job became ready, of the queues named in `zq_jobs`.",
        _ages,
        ("queue",),
    ),
    Metric(
        "zq_enqueued_total",
        "counter",
        "Jobs stored since the start.",
        lambda s: one(s.figures.jobs.stored),
    ),
    Metric(
        "zq_duplicates_total",
        "counter",
        "New jobs that were not stored because their unique key was taken.",
        lambda s: one(s.figures.jobs.duplicates),
    ),
    Metric(
        "zq_folded_total",
        "counter",
        "New jobs that were not stored because they were folded into a host.",
        lambda s: one(s.figures.jobs.folded),
    ),
    Metric(
        "zq_deliveries_total",
        "counter",
        "Jobs handed to workers.",
        lambda s: one(s.figures.jobs.delivered),
    ),
    Metric(
        "zq_returns_total",
        "counter",
        "Jobs that went back to their queue unfinished, for any reason.",
        lambda s: one(s.figures.jobs.returned),
    ),
    Metric(
        "zq_stalls_total",
        "counter",
        "Deliveries that ended without a report from their worker.",
        lambda s: one(s.figures.jobs.stalled),
    ),
    Metric(
        "zq_expired_total",
        "counter",
        "Jobs that expired because nobody took them in time.",
        lambda s: one(s.figures.jobs.expired),
    ),
    Metric(
        "zq_settlements_total",
        "counter",
        "Acknowledgements and failures: `completed`, `retried`, `dead`, `not_in_flight`.",
        _settled,
        ("outcome",),
    ),
    Metric(
        "zq_refusals_total",
        "counter",
        "Requests and connections refused, by the code of the error (header `Zq-Error`).",
        _refusals,
        ("reason",),
    ),
    Metric(
        "zq_accepting_enqueues",
        "gauge",
        "1, or 0 while the disk or the write-ahead log has no room: `/health` says which.",
        lambda s: one(s.figures.is_accepting),
    ),
    Metric(
        "zq_lock_wait_seconds",
        "gauge",
        "Time for which another program's lock on the database has been in the way; 0 if none is.",
        lambda s: one(s.figures.lock_wait_s),
    ),
    Metric(
        "zq_ticks_total",
        "counter",
        "Transactions committed.",
        lambda s: one(sum(s.figures.tick_rows.counts)),
    ),
    Metric(
        "zq_tick_rows",
        "histogram",
        "Rows changed by a transaction.",
        lambda s: s.figures.tick_rows,
    ),
    Metric(
        "zq_tick_seconds",
        "histogram",
        "Time of a transaction, including its flush if it waits for that.",
        lambda s: s.figures.tick_seconds,
    ),
    Metric(
        "zq_fsync_seconds",
        "histogram",
        "Time of a COMMIT that waits for the disk.",
        lambda s: s.figures.fsync_seconds,
    ),
    Metric(
        "zq_inbox_jobs",
        "gauge",
        "New jobs that wait to be stored (`--max-inbox-jobs`).",
        lambda s: one(s.figures.waiting_jobs),
    ),
    Metric(
        "zq_inbox_changes",
        "gauge",
        "Acknowledgements and other changes that wait to be stored.",
        lambda s: one(s.figures.waiting_changes),
    ),
    Metric(
        "zq_inbox_bytes",
        "gauge",
        "Request bodies in memory (`--max-inbox-bytes`).",
        lambda s: one(s.body_bytes),
    ),
    Metric(
        "zq_answer_bytes",
        "gauge",
        "Answers that their clients have not taken yet, in memory (`--max-answer-bytes`).",
        lambda s: one(s.answer_bytes),
    ),
    Metric(
        "zq_take_streams",
        "gauge",
        "Open take streams.",
        lambda s: one(s.figures.streams),
    ),
    Metric(
        "zq_connections",
        "gauge",
        "Open connections (`--max-connections`).",
        lambda s: one(s.connections),
    ),
    Metric(
        "zq_connections_accepted_total",
        "counter",
        "Connections accepted.",
        lambda s: one(s.accepted),
    ),
    Metric(
        "zq_set_aside",
        "gauge",
        "Damaged rows and logs that were set aside, until an operator acknowledges them.",
        lambda s: one(s.figures.quarantined),
    ),
    Metric(
        "zq_clock_steps_total",
        "counter",
        "How often the clock of the machine was set by more than a minute.",
        lambda s: one(s.figures.clock_steps),
    ),
    Metric(
        "zq_clock_ahead_seconds",
        "gauge",
        "How far the time on which durations run is ahead of the clock of the machine. It changes"
        " when the clock is set.",
        lambda s: one(s.figures.clock_ahead_ms / 1000),
    ),
    Metric(
        "zq_storage_written_bytes_total",
        "counter",
        "Bytes that the process had the kernel write to a disk, where the system counts them.",
        lambda _: [] if (written := storage_written()) is None else one(written),
    ),
    Metric(
        "zq_wal_bytes",
        "gauge",
        "Size of the write-ahead log's file (`--max-wal`).",
        lambda s: one(s.figures.wal_bytes),
    ),
    Metric(
        "zq_database_bytes",
        "gauge",
        "Size of the database's file.",
        lambda s: one(s.figures.database_bytes),
    ),
    Metric(
        "zq_disk_free_bytes",
        "gauge",
        "Space left where the data lies (`--disk-reserve`).",
        lambda s: [] if (free := s.figures.free_bytes) is None else one(free),
    ),
    Metric(
        "zq_store_dead_rows",
        "gauge",
        "Old versions of rows that PostgreSQL has not removed yet.",
        lambda s: [] if (bloat := s.figures.bloat) is None else one(bloat.dead_rows),
    ),
    Metric(
        "zq_store_oldest_snapshot_seconds",
        "gauge",
        "Age of the oldest transaction of anybody in zq's database of PostgreSQL: what it may still"
        " read cannot be removed.",
        lambda s: [] if (bloat := s.figures.bloat) is None else one(bloat.snapshot_s),
    ),
    Metric(
        "zq_loop_lag_seconds",
        "histogram",
        "How late the event loop runs a timer, measured twice a second.",
        lambda s: s.lag,
    ),
    Metric(
        "zq_log_lines_dropped_total",
        "counter",
        "Lines of the log that were dropped because nobody read it.",
        lambda s: one(s.dropped_lines),
    ),
    Metric(
        "zq_build_info",
        "gauge",
        "1, with the version as label.",
        lambda _: [((__version__,), 1)],
        ("version",),
    ),
)


def every_metric() -> list[Metric]:
    """The metrics of the core, then those of rooms, whose doors are open or not."""
    return [*METRICS, *(metric for some in parts("metrics", "METRICS", tuple) for metric in some)]


if __name__ == "__main__":
    print(markdown(metric for metric in every_metric() if not metric.door))
