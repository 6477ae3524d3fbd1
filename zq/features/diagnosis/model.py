"""Finds what is wrong, the worst first, by rules over the figures of one moment."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple

from zq.features.crons.model_expression import NONE_FAULTY, FaultyEntries
from zq.features.devices.model import DeviceSums
from zq.features.trends.model import MINUTE_MS, TrendFlow
from zq.features.waits.model import NEAR
from zq.model.settings import NO_SETTINGS, QueueSettings, pause_text


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
    LANE_FAILS = "lane_fails"
    DEVICE_SILENT = "device_silent"
    DEVICE_BEHIND = "device_behind"
    DEVICE_CLOCK = "device_clock"
    SERVER_LIMIT = "server_limit"
    SLOW_DISK = "slow_disk"
    LITTLE_DISK = "little_disk"
    OLD_SNAPSHOT = "old_snapshot"
    GROWING = "growing"
    STUCK = "stuck"
    BUDGET = "budget"
    OLD = "old"
    PAUSED = "paused"
    DEAD = "dead"


STATES = frozenset(
    {
        *(FindingCode.NO_WORKER, FindingCode.FAILING, FindingCode.GROWING, FindingCode.STUCK),
        *(FindingCode.BUDGET, FindingCode.OLD, FindingCode.PAUSED),
    }
)
"""The findings that are states of a queue: the worst of a queue's findings is its state."""


class Finding(NamedTuple):
    """One thing that is wrong, of a queue or of the server. `since` is a time in milliseconds.

    `text` goes behind the name of the kind and that of the queue.
    """

    severity: Severity
    code: FindingCode
    text: str
    queue: str | None = None
    since: int | None = None
    jobs: int | None = None


class FindingGroup(NamedTuple):
    """The findings of one kind: how many there are, and the first of them.

    `since` is the earliest time, `jobs` the sum of what they say.
    """

    code: FindingCode
    severity: Severity
    number: int
    first: Sequence[Finding]
    since: int | None = None
    jobs: int | None = None

    @property
    def text(self) -> str:
        """All that is shown of them, as one line."""
        if self.first[0].queue is None:
            return self.first[0].text
        named = " \N{MIDDLE DOT} ".join(f"{each.queue} {each.text}" for each in self.first)
        more = self.number - len(self.first)
        return f"{TITLES[self.code]}: {named}" + (f" \N{MIDDLE DOT} {more:,} more" if more else "")


class Beginning(NamedTuple):
    """When something began (ms), and the mark that an operator had made shortly before."""

    at: int | None = None
    mark: str = ""


class QueueFacts(NamedTuple):
    """A queue: its jobs, and the traffic of a minute and of five minutes, a second.

    Times are in milliseconds.
    """

    queue: str
    ready: int = 0
    dead: int = 0
    ready_since: int | None = None
    workers: int = 0
    alone_since: int = 0
    """When the last of its workers left, or the server began."""
    delivered_1m: float = 0.0
    completed_5m: float = 0.0
    failed_5m: float = 0.0
    in_flight: int = 0
    settings: QueueSettings = NO_SETTINGS
    flow: TrendFlow | None = None
    """The rates at which jobs come and go; None if they are not known for this queue."""
    failing: Beginning = Beginning()
    """Since when it fails, if it does."""
    leaves: bool = False
    """True if its jobs are for no worker here. Their lane and their device are told of instead."""


class ServerFacts(NamedTuple):
    """The server: codes of the limits that it has reached, its disk, and its flushes."""

    reached: Sequence[str] = ()
    flush_p99_s: float | None = None
    free_bytes: int | None = None
    """None if it is not known."""
    reserve_bytes: int = 0
    faulty: FaultyEntries = NONE_FAULTY
    set_aside: int = 0
    """Damaged rows and logs that no operator has acknowledged."""
    snapshot_s: float = 0.0
    """The age of the oldest snapshot by which somebody reads the database, in seconds."""
    holder: str = ""
    """Who reads by it."""


ALONE_MS = MINUTE_MS
"""The time, in ms, for which a queue with ready jobs may be without a worker: workers come and
go."""

GROWING_MS = MINUTE_MS
GROWING_LEAST = 10 / 300
"""How many more jobs a second must come than end, while one waits for `GROWING_MS`."""

OLD_MS = 5 * MINUTE_MS
"""The age in ms at which a ready job is a finding."""

OLD_SNAPSHOT_S = 60.0
"""A transaction that is open for so long is a finding, and an alarm after ten times as long."""

SLOW_FLUSH_S = 0.1
FEW_RESERVES = 4
"""Free space below this many reserves is a finding."""

FAILING_SHARE = 0.2
FAILING_LEAST = 5 / 300
"""How many failures a second are worth a line, if they are this share of the ended attempts."""

MOST_NAMED = 3
"""The most findings of one kind that are shown. A hundred of them must not hide what else is
wrong."""

TITLES = {
    FindingCode.NO_WORKER: "no worker",
    FindingCode.FAILING: "failing",
    FindingCode.GROWING: "growing",
    FindingCode.STUCK: "stuck",
    FindingCode.BUDGET: "no budget",
    FindingCode.OLD: "waiting long",
    FindingCode.PAUSED: "paused",
    FindingCode.DEAD: "dead",
}
"""The names of the kinds of findings that queues have."""


_LIMITS = {
    FindingCode.DATABASE_LOCKED: "another program holds the database's lock: changes are refused."
    " End its transaction (lsof on zq.db names it)",
    FindingCode.STORAGE_FULL: "the disk is full: new jobs are refused. Free space on it",
    FindingCode.WAL_FULL: "the write-ahead log is over --max-wal: new jobs are refused",
    FindingCode.INBOX_FULL: "more jobs wait to be stored than --max-inbox-jobs allows",
    FindingCode.SERVER_LIMIT: "as many jobs are in flight as --global-in-flight-limit allows",
}


_RANK = {code: place for place, code in enumerate(FindingCode)}


def place_of(finding: Finding) -> int:
    """The rank of a finding by severity, kind and number of jobs: a smaller number is worse."""
    kind = (Severity.ALARM - finding.severity) * len(_RANK) + _RANK[finding.code]
    return (kind << 40) - (finding.jobs or 0)


def grouped(findings: Iterable[Finding]) -> list[FindingGroup]:
    """The kinds of some findings that are in their order."""
    kinds: dict[FindingCode, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.code, []).append(finding)
    return [_group(those) for those in kinds.values()]


def _group(those: Sequence[Finding]) -> FindingGroup:
    times = [each.since for each in those if each.since is not None]
    jobs = [each.jobs for each in those if each.jobs is not None]
    return FindingGroup(
        those[0].code,
        those[0].severity,
        len(those),
        those[:MOST_NAMED],
        min(times, default=None),
        sum(jobs) if jobs else None,
    )


def explains(cause: Finding, effect: Finding) -> bool:
    """True if one finding of a queue is why the other one is there, so that it alone is told.

    Where most jobs that wait are short of tokens, they become more and wait long because of that.
    """
    return (
        cause.code is FindingCode.BUDGET
        and effect.code in (FindingCode.GROWING, FindingCode.OLD)
        and cause.queue == effect.queue
        and 2 * (cause.jobs or 0) >= (effect.jobs or 0)
    )


def findings_of_server(server: ServerFacts) -> Iterator[Finding]:
    """The findings about the server itself."""
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
    free = server.free_bytes
    if not is_full and free is not None and free < FEW_RESERVES * server.reserve_bytes:
        mib = free // 2**20
        text = f"the disk has {mib} MiB left: below --disk-reserve new jobs are refused"
        yield Finding(Severity.WARNING, FindingCode.LITTLE_DISK, text)
    if server.snapshot_s >= OLD_SNAPSHOT_S:
        text = (
            f"{server.holder} has a transaction open in the database for"
            f" {server.snapshot_s / 60:.0f} minutes: until it ends, no old version of a row can be"
            " removed, and everything becomes slower"
        )
        severity = Severity.ALARM if server.snapshot_s >= 10 * OLD_SNAPSHOT_S else Severity.WARNING
        yield Finding(severity, FindingCode.OLD_SNAPSHOT, text)


def findings_of_devices(devices: DeviceSums) -> Iterator[Finding]:
    """The findings about the devices that forward to this server."""
    for code, number, what, order in (
        (FindingCode.DEVICE_SILENT, devices.silent, "silent", "silence"),
        (FindingCode.DEVICE_BEHIND, devices.behind, "behind by an hour or more", "lag"),
        (FindingCode.DEVICE_CLOCK, devices.clock, "off the time by a minute or more", "name"),
    ):
        if number:
            text = (
                f"{number:,} of {devices.total:,} devices: {what}."
                f" `zq devices list --order {order}` names them"
            )
            severity = Severity.WARNING if code is FindingCode.DEVICE_SILENT else Severity.NOTE
            yield Finding(severity, code, text)


def findings_of_lanes(errors: Mapping[str, str]) -> Iterator[Finding]:
    """The findings about lanes to other servers, from those that fail and their errors."""
    for lane, error in errors.items():
        text = f"the lane {lane} waits: {error}. `zq forward status {lane}` has more"
        yield Finding(Severity.WARNING, FindingCode.LANE_FAILS, text)


def findings_of_queue(queue: QueueFacts, now: int) -> Iterator[Finding]:
    """The findings about one queue. `now` is in milliseconds."""
    waits, name = f"{queue.ready:,} waiting", queue.queue
    if queue.ready and queue.settings.paused:
        why = pause_text(queue.settings).removeprefix("paused").strip()
        text = f"{why}, {waits}" if why else waits
        yield Finding(
            *(Severity.NOTE, FindingCode.PAUSED, text, name, queue.ready_since, queue.ready)
        )
    elif queue.ready and not queue.leaves and _is_alone(queue, now):
        since = _alone_since(queue)
        yield Finding(Severity.ALARM, FindingCode.NO_WORKER, waits, name, since, queue.ready)
    elif queue.ready and not queue.leaves and (found := _of_wait(queue, now)):
        yield found
    if is_failing(queue):
        yield _of_failures(queue)
    if queue.dead:
        yield Finding(
            Severity.NOTE, FindingCode.DEAD, f"{queue.dead:,} dead", name, jobs=queue.dead
        )


def is_failing(queue: QueueFacts) -> bool:
    """True if so large a share of its attempts fails that somebody should know."""
    attempts = queue.completed_5m + queue.failed_5m
    return queue.failed_5m >= max(FAILING_LEAST, FAILING_SHARE * attempts)


def _of_failures(queue: QueueFacts) -> Finding:
    attempts = queue.completed_5m + queue.failed_5m
    since, mark = queue.failing
    text = f"{round(100 * queue.failed_5m / attempts)} % of attempts"
    if mark:
        text += f", since mark {mark}"
    jobs = round(queue.failed_5m * 300)
    return Finding(Severity.ALARM, FindingCode.FAILING, text, queue.queue, since, jobs)


def due_at(queue: QueueFacts, now: int) -> int | None:
    """When there may be more to say of a queue in which nothing happens (ms); None if never."""
    if not queue.ready or queue.settings.paused or queue.leaves:
        return None
    times = [] if queue.workers else [_alone_since(queue) + ALONE_MS]
    if queue.ready_since is not None:
        times += [queue.ready_since + GROWING_MS, queue.ready_since + OLD_MS]
    return min((time for time in times if time > now), default=None)


def _alone_since(queue: QueueFacts) -> int:
    """Since when its jobs are without a worker, if it has none."""
    return max(queue.ready_since or 0, queue.alone_since)


def _is_alone(queue: QueueFacts, now: int) -> bool:
    if queue.workers or queue.delivered_1m:
        return False
    return now - _alone_since(queue) >= ALONE_MS


def _of_wait(queue: QueueFacts, now: int) -> Finding | None:
    """The finding about jobs that wait long, if they become more or somebody should know of
    them."""
    since, flow = queue.ready_since, queue.flow
    if since is None:
        return None
    found = f"{queue.ready:,} waiting"
    about = (queue.queue, since, queue.ready)
    held = f", {limit}" if (limit := _limit(queue)) else ""
    growth = 0.0 if flow is None else flow.arrivals - flow.ends
    if now - since >= GROWING_MS and growth >= GROWING_LEAST:
        text = f"{found}, +{_pace(growth)}{held}: never drained"
        return Finding(Severity.WARNING, FindingCode.GROWING, text, *about)
    if now - since < OLD_MS:
        return None
    text = f"{found}{held}{'' if flow is None else _outlook(flow, queue.ready)}"
    return Finding(Severity.WARNING, FindingCode.OLD, text, *about)


def _limit(queue: QueueFacts) -> str:
    """The limit of its own that a queue has reached."""
    most, rate = queue.settings.concurrency, queue.settings.rate
    if most is not None and queue.in_flight >= most:
        return f"at its {most:,} in flight"
    if rate is not None and queue.delivered_1m >= NEAR * rate:
        return f"at its rate of {rate:g}/s"
    return ""


def _outlook(flow: TrendFlow, waiting: int) -> str:
    if not flow.ends:
        return ", none done in five minutes"
    drained = flow.drained_ms(waiting)
    return ", not drained at this rate" if drained is None else f", drained in {_roughly(drained)}"


def _pace(per_s: float) -> str:
    """Jobs in the largest unit of time in which they are a number that is worth saying."""
    if per_s >= 10:
        return f"{per_s:,.0f}/s"
    return f"{per_s:.1f}/s" if per_s >= 0.2 else f"{60 * per_s:.0f}/min"


def _roughly(ms: float) -> str:
    """A duration that only changes when it matters."""
    minutes = max(round(ms / MINUTE_MS), 1)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(minutes / 60)
    return f"{hours} h" if hours < 48 else f"{round(hours / 24)} d"
