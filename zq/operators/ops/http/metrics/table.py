"""The metrics, in one table; `python -m zq.operators.ops.http.metrics.table` prints it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

from zq import __version__
from zq.engine.subscribers.figures import Histogram
from zq.features.trends.engine_times import MOST_NAMED
from zq.operators.ops.http.metrics.scrape import MOST_BUDGETS, MOST_QUEUES, REST, Scrape
from zq.rooms import parts

Values = Iterable[tuple[tuple[str, ...], float]]
"""Pairs of label values and a number."""


class TimesByQueue(NamedTuple):
    """Times by the names of queues, counted by their powers of two as in a trend."""

    rows: Iterable[tuple[str, Mapping[int, int]]]


class Metric(NamedTuple):
    """One row of the table. `read` takes its values from a scrape."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    read: Callable[[Scrape], Values | Histogram | TimesByQueue]
    labels: tuple[str, ...] = ()
    door: str = ""
    """The metric is there while this door is open; without a name it always is."""


def _one(value: float) -> Values:
    return [((), value)]


def _jobs(scrape: Scrape) -> Values:
    return [((queue, status.name.lower()), n) for (queue, status), n in scrape.jobs.items()]


def _ages(scrape: Scrape) -> Values:
    return [((queue,), age) for queue, age in scrape.ages()]


def _waiting(scrape: Scrape) -> Values:
    return [((key,), n) for key, n in scrape.waiting.items()]


def _tokens(scrape: Scrape) -> Values:
    return [((key,), n) for key, n in scrape.tokens.items()]


def _waits(scrape: Scrape) -> TimesByQueue:
    return TimesByQueue([(queue, trend.wait) for queue, trend in scrape.times.items()])


def _runs(scrape: Scrape) -> TimesByQueue:
    return TimesByQueue([(queue, trend.run) for queue, trend in scrape.times.items()])


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
        "zq_wait_seconds",
        "histogram",
        "Time from when a job was ready until its delivery, since the start. At most"
        f" {MOST_NAMED} queues by name, the rest together as `{REST}`.",
        _waits,
        ("queue",),
    ),
    Metric(
        "zq_run_seconds",
        "histogram",
        "Time from a delivery until a report or a cancellation ended it, since the start, of the"
        " queues named in `zq_wait_seconds`.",
        _runs,
        ("queue",),
    ),
    Metric(
        "zq_enqueued_total",
        "counter",
        "Jobs stored since the start.",
        lambda s: _one(s.figures.jobs.stored),
    ),
    Metric(
        "zq_duplicates_total",
        "counter",
        "New jobs that were not stored because their unique key was taken.",
        lambda s: _one(s.figures.jobs.duplicates),
    ),
    Metric(
        "zq_folded_total",
        "counter",
        "New jobs that were not stored because they were folded into a host.",
        lambda s: _one(s.figures.jobs.folded),
    ),
    Metric(
        "zq_deliveries_total",
        "counter",
        "Jobs handed to workers.",
        lambda s: _one(s.figures.jobs.delivered),
    ),
    Metric(
        "zq_returns_total",
        "counter",
        "Jobs that went back to their queue unfinished, for any reason.",
        lambda s: _one(s.figures.jobs.returned),
    ),
    Metric(
        "zq_stalls_total",
        "counter",
        "Deliveries that ended without a report from their worker.",
        lambda s: _one(s.figures.jobs.stalled),
    ),
    Metric(
        "zq_expired_total",
        "counter",
        "Jobs that expired because nobody took them in time.",
        lambda s: _one(s.figures.jobs.expired),
    ),
    Metric(
        "zq_cron_entries",
        "gauge",
        "Entries of cron groups.",
        lambda s: _one(s.crons),
    ),
    Metric(
        "zq_cron_faulty_entries",
        "gauge",
        "Entries that are set aside: their schedules cannot be evaluated. `/health` names some.",
        lambda s: _one(s.faulty_crons),
    ),
    Metric(
        "zq_cron_firings_total",
        "counter",
        "Entries that were due and have moved on with their job, also with a duplicate.",
        lambda s: _one(s.figures.jobs.fired),
    ),
    Metric(
        "zq_cron_put_off_total",
        "counter",
        "Times that a queue had no room for the job of an entry, or its budget was too small: it"
        " was tried again later.",
        lambda s: _one(s.figures.jobs.put_off),
    ),
    Metric(
        "zq_cron_lag_seconds",
        "gauge",
        "For how long the entry that fires next has been due.",
        lambda s: _one(s.cron_lag),
    ),
    Metric(
        "zq_budgets",
        "gauge",
        "Budgets (`--max-budgets`).",
        lambda s: _one(s.budgets),
    ),
    Metric(
        "zq_budget_waiting_jobs",
        "gauge",
        "Ready jobs that draw from a budget, each counted with all its budgets. At most"
        f" {MOST_BUDGETS} budgets by name, the rest together as `{REST}`.",
        _waiting,
        ("budget",),
    ),
    Metric(
        "zq_budget_available_tokens",
        "gauge",
        "Tokens of the budgets that are named in `zq_budget_waiting_jobs`.",
        _tokens,
        ("budget",),
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
        lambda s: _one(s.figures.is_accepting),
    ),
    Metric(
        "zq_lock_wait_seconds",
        "gauge",
        "Time for which another program's lock on the database has been in the way; 0 if none is.",
        lambda s: _one(s.figures.lock_wait_s),
    ),
    Metric(
        "zq_ticks_total",
        "counter",
        "Transactions committed.",
        lambda s: _one(sum(s.figures.tick_rows.counts)),
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
        lambda s: _one(s.figures.waiting_jobs),
    ),
    Metric(
        "zq_inbox_changes",
        "gauge",
        "Acknowledgements and other changes that wait to be stored.",
        lambda s: _one(s.figures.waiting_changes),
    ),
    Metric(
        "zq_inbox_bytes",
        "gauge",
        "Request bodies in memory (`--max-inbox-bytes`).",
        lambda s: _one(s.body_bytes),
    ),
    Metric(
        "zq_answer_bytes",
        "gauge",
        "Answers that their clients have not taken yet, in memory (`--max-answer-bytes`).",
        lambda s: _one(s.answer_bytes),
    ),
    Metric(
        "zq_take_streams",
        "gauge",
        "Open take streams.",
        lambda s: _one(s.figures.streams),
    ),
    Metric(
        "zq_connections",
        "gauge",
        "Open connections (`--max-connections`).",
        lambda s: _one(s.connections),
    ),
    Metric(
        "zq_connections_accepted_total",
        "counter",
        "Connections accepted.",
        lambda s: _one(s.accepted),
    ),
    Metric(
        "zq_set_aside",
        "gauge",
        "Damaged rows and logs that were set aside, until an operator acknowledges them.",
        lambda s: _one(s.figures.quarantined),
    ),
    Metric(
        "zq_clock_steps_total",
        "counter",
        "How often the clock of the machine was set by more than a minute.",
        lambda s: _one(s.figures.clock_steps),
    ),
    Metric(
        "zq_clock_ahead_seconds",
        "gauge",
        "How far the time on which durations run is ahead of the clock of the machine. It changes"
        " when the clock is set.",
        lambda s: _one(s.figures.clock_ahead_ms / 1000),
    ),
    Metric(
        "zq_wal_bytes",
        "gauge",
        "Size of the write-ahead log's file (`--max-wal`).",
        lambda s: _one(s.figures.wal_bytes),
    ),
    Metric(
        "zq_database_bytes",
        "gauge",
        "Size of the database's file.",
        lambda s: _one(s.figures.database_bytes),
    ),
    Metric(
        "zq_disk_free_bytes",
        "gauge",
        "Space left where the data lies (`--disk-reserve`).",
        lambda s: _one(s.figures.free_bytes),
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
        lambda s: _one(s.dropped_lines),
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


def markdown(metrics: Iterable[Metric] = METRICS) -> str:
    """A table for the documents."""
    rows = ["| Metric | Kind | Labels | Meaning |", "|---|---|---|---|"]
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(markdown())
