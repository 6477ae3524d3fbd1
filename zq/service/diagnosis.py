"""What is wrong, the worst first: rules over the figures of one moment."""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple

from zq.model.cron.faults import NONE_FAULTY, FaultyEntries
from zq.model.trends import MINUTE_MS, TrendFlow


class Severity(IntEnum):
    """How bad a finding is."""

    NOTE = 1
    WARNING = 2
    ALARM = 3


class FindingCode(StrEnum):
    """The names of the findings, in the order of equally severe ones."""

    DATABASE_LOCKED = "database_locked"
    DAMAGED = "damaged"
    STORAGE_FULL = "storage_full"
    WAL_FULL = "wal_full"
    INBOX_FULL = "inbox_full"
    NO_WORKER = "no_worker"
    FAILING = "failing"
    CRON_FAULTY = "cron_faulty"
    SERVER_LIMIT = "server_limit"
    SLOW_DISK = "slow_disk"
    LITTLE_DISK = "little_disk"
    GROWING = "growing"
    OLD = "old"
    STUCK = "stuck"
    PAUSED = "paused"
    DEAD = "dead"


class Finding(NamedTuple):
    """One line of the diagnosis. `since` is a time in milliseconds."""

    severity: Severity
    code: FindingCode
    text: str
    queue: str | None = None
    since: int | None = None
    jobs: int | None = None


class QueueFacts(NamedTuple):
    """A queue: its ready jobs, and the traffic of a minute and of five minutes, a second."""

    queue: str
    ready: int = 0
    dead: int = 0
    ready_since: int | None = None
    workers: int = 0
    delivered_1m: float = 0.0
    delivered_5m: float = 0.0
    failed_5m: float = 0.0
    pause: str = ""
    """What there is to say of its pause, if it is paused."""
    flow: TrendFlow | None = None
    """What comes and goes; None if that is not known of this queue."""


class ServerFacts(NamedTuple):
    """The server: codes of the limits that it has reached, its disk, and its flushes."""

    reached: Sequence[str] = ()
    flush_p99_s: float | None = None
    free_bytes: int = 2**63
    reserve_bytes: int = 0
    faulty: FaultyEntries = NONE_FAULTY
    set_aside: int = 0
    """Damaged rows and logs that no operator has acknowledged."""


OLD_MS = 300_000
"""A ready job that waits for so long is worth a line."""

SLOW_FLUSH_S = 0.1
FEW_RESERVES = 4
"""Free space of less than so many reserves is worth a line."""

FAILING_SHARE = 0.2
FAILING_LEAST = 5 / 300
"""How many failures in five minutes are worth a line, if they are a share of the deliveries."""

_LIMITS = {
    FindingCode.DATABASE_LOCKED: "another program holds the database's lock: changes are refused."
    " End its transaction (lsof on zq.db names it)",
    FindingCode.STORAGE_FULL: "the disk is full: new jobs are refused. Free space on it",
    FindingCode.WAL_FULL: "the write-ahead log is over --max-wal: new jobs are refused",
    FindingCode.INBOX_FULL: "more jobs wait to be stored than --max-inbox-jobs allows",
    FindingCode.SERVER_LIMIT: "as many jobs are in flight as --global-in-flight-limit allows",
}


_RANK = {code: place for place, code in enumerate(FindingCode)}


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in their order, those of one kind by the number of jobs."""
    return sorted(
        findings, key=lambda f: (-f.severity, _RANK[f.code], -(f.jobs or 0), f.queue or "")
    )


def findings_of_server(server: ServerFacts) -> Iterator[Finding]:
    """What is wrong with the server itself."""
    if server.set_aside:
        text = (
            f"damaged and set aside: {server.set_aside:,}. `zq damage` lists them, and /health the"
            " latest"
        )
        yield Finding(Severity.ALARM, FindingCode.DAMAGED, text)
    for code, text in _LIMITS.items():
        if code in server.reached:
            is_passing = code is FindingCode.SERVER_LIMIT
            yield Finding(Severity.WARNING if is_passing else Severity.ALARM, code, text)
    if server.flush_p99_s is not None and server.flush_p99_s >= SLOW_FLUSH_S:
        ms = round(server.flush_p99_s * 1000)
        text = f"the disk is slow: 1 % of the flushes of five minutes took {ms} ms or more"
        yield Finding(Severity.WARNING, FindingCode.SLOW_DISK, text)
    if server.faulty.entries:
        first = server.faulty.named[0]
        more = f" (and {server.faulty.entries - 1:,} more)" if server.faulty.entries > 1 else ""
        text = f"the cron entry {first.group}/{first.entry}{more} is set aside: {first.reason}"
        yield Finding(Severity.WARNING, FindingCode.CRON_FAULTY, text)
    is_full = FindingCode.STORAGE_FULL in server.reached
    if not is_full and server.free_bytes < FEW_RESERVES * server.reserve_bytes:
        mib = server.free_bytes // 2**20
        text = f"the disk has {mib} MiB left: below --disk-reserve new jobs are refused"
        yield Finding(Severity.WARNING, FindingCode.LITTLE_DISK, text)


def findings_of_queue(queue: QueueFacts, now: int) -> Iterator[Finding]:
    """What is wrong with one queue. `now` is in milliseconds."""
    waits = f"{queue.ready:,} waiting"
    about = (queue.queue, queue.ready_since, queue.ready)
    if queue.ready and queue.pause:
        yield Finding(Severity.NOTE, FindingCode.PAUSED, f"{queue.pause}, {waits}", *about)
    elif queue.ready and not queue.workers and not queue.delivered_1m:
        yield Finding(Severity.ALARM, FindingCode.NO_WORKER, f"no worker, {waits}", *about)
    elif queue.ready and queue.ready_since is not None and now - queue.ready_since >= OLD_MS:
        code, text = _of_wait(queue, waits)
        yield Finding(Severity.WARNING, code, text, *about)
    if queue.failed_5m >= max(FAILING_LEAST, FAILING_SHARE * queue.delivered_5m):
        share = min(round(100 * queue.failed_5m / (queue.delivered_5m or queue.failed_5m)), 100)
        failed = round(queue.failed_5m * 300)
        text = f"{share} % of the deliveries of five minutes failed"
        yield Finding(Severity.WARNING, FindingCode.FAILING, text, queue.queue, jobs=failed)
    if queue.dead:
        text = f"dead jobs: {queue.dead:,}"
        yield Finding(Severity.NOTE, FindingCode.DEAD, text, queue.queue, jobs=queue.dead)


def _of_wait(queue: QueueFacts, waits: str) -> tuple[FindingCode, str]:
    """What to say of jobs that wait long: whether that gets worse."""
    text = f"its jobs wait long, {waits}"
    if queue.flow is None:
        return FindingCode.OLD, text
    drained = queue.flow.drained_ms(queue.ready)
    if drained is None:
        return FindingCode.GROWING, f"{text}, never drained at this rate"
    return FindingCode.OLD, f"{text}, drained in {_roughly(drained)} at this rate"


def _roughly(ms: float) -> str:
    """A duration that only changes when it matters."""
    minutes = max(round(ms / MINUTE_MS), 1)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(minutes / 60)
    return f"{hours} h" if hours < 48 else f"{round(hours / 24)} d"
