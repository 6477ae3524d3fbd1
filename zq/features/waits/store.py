"""What a store can be asked about jobs that wait, and about those that run for long."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from zq.features.budgets.model import Account, Draw, account_of
from zq.features.budgets.model_jobs import draws_in
from zq.features.fair.model import limits_of
from zq.features.fair.model_jobs import fair_key_of
from zq.features.waits.model import (
    MOST_AHEAD,
    NOBODY,
    BudgetLine,
    BudgetWait,
    Canceller,
    FairWait,
    OpenGroup,
    StoredWaits,
    TimePlace,
    WaitingJob,
)
from zq.model.filters import Filter
from zq.model.job import JobRecord, show_dates
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.model.settings import NO_FAIR_RULE
from zq.store.lookups import get_row, settings
from zq.store.snapshot import Snapshot, SnapshotLanes

MOST_LINES = 1_000
"""The most lines of one queue that are examined for budgets that cannot pay."""

MOST_DEEP = 100_000
"""So many jobs of each are counted."""

_draws = msgspec.json.Decoder(list[Draw])

MOST_KEYS = 10_000
"""The most fair keys of a queue among which the place of one is counted."""

MOST_IN_FLIGHT = 10_000
"""The most jobs in flight that are examined for long runs."""


def waiting_job(snapshot: Snapshot, key: int, reach: Reach, now: int) -> WaitingJob | None:
    """A job without its large bodies, and what may hold it back, from a bounded number of rows.

    None if the job is not within reach, or its retention is over.
    """
    job = get_row(snapshot.core, key, reach, now)
    if job is None:
        return None
    if job.status is Status.CANCELLED:
        found = snapshot.rows("canceller_of", key=key)
        return WaitingJob(job, canceller=Canceller(*found[0]) if found else NOBODY)
    if job.status is not Status.READY:
        return WaitingJob(job)
    return WaitingJob(
        job,
        settings(snapshot.core, job.queue),
        _number(snapshot, "in_flight_of", queue=job.queue),
        _head(snapshot, job),
        list(_unpaid_of(snapshot, job, now)),
        _turn_of(snapshot, job, now),
        _ahead(snapshot, job),
    )


def stored_waits(snapshot: Snapshot, queue: str, now: int) -> StoredWaits:
    """The facts about a queue's waiting jobs, from a bounded number of rows."""
    return StoredWaits(
        settings(snapshot.core, queue),
        bool(_number(snapshot, "may_go", queue=queue)),
        _number(snapshot, "behind", queue=queue, most=MOST_AHEAD),
        unpaid_lines(snapshot, queue, MOST_LINES, now),
    )


def unpaid_lines(snapshot: Snapshot, queue: str | None, most: int, now: int) -> list[BudgetLine]:
    """The jobs of a queue, or of all, whose budgets cannot pay them now, as far as they are ready.

    At most `most` lines are looked at. Those with most jobs come first.
    """
    accounts: dict[str, Account | None] = {}
    found = []
    sql = "lines_of_all" if queue is None else "lines_of_queue"
    for name, draws, waiting, since in snapshot.rows(sql, queue=queue, most=most, deep=MOST_DEEP):
        wanted = _draws.decode(draws)
        for draw in wanted:
            if draw.key not in accounts:
                accounts[draw.key] = _account(snapshot, draw.key)
        if waits := list(_unpaid(wanted, accounts, now)):
            found.append(BudgetLine(name, waiting, since, waits))
    return sorted(found, key=lambda line: -line.waiting)


def scheduled(
    snapshot: Snapshot, reach: Reach, after: TimePlace, limit: int, ahead: int
) -> list[JobRecord]:
    """The scheduled jobs after a place in the order of times, without large payloads.

    That is the order of dates, if steady time is `ahead` of the wall.
    """
    conditions, parameters = snapshot.where(Filter(reach=reach))
    parameters |= after._asdict() | {"due_at": after.ready_at + ahead}

    def some(kind: str) -> list[JobRecord]:
        found: list[JobRecord] = []
        # In two parts: a comparison of pairs would begin at the first job of the same time.
        for name in (f"{kind}_beside", f"{kind}_beyond"):
            if len(found) < limit:
                words = {"CONDITIONS": conditions}
                found += snapshot.jobs(name, words, **parameters, limit=limit - len(found))
        return found

    def place(job: JobRecord) -> tuple[int, int]:
        return job.ready_at if job.due_at is None else job.due_at - ahead, job.key

    return sorted([*some("scheduled"), *some("waiting")], key=place)[:limit]


def running_long(snapshot: Snapshot, reach: Reach, before: int, limit: int) -> list[JobRecord]:
    """The jobs that are in flight for the longest time, without large payloads."""
    conditions, parameters = snapshot.where(Filter(reach=reach))
    parameters |= {"before": before, "limit": limit, "most": MOST_IN_FLIGHT}
    return snapshot.jobs("running_long", {"CONDITIONS": conditions}, **parameters)


def groups(snapshot: Snapshot, queue: str, after: str, limit: int) -> list[OpenGroup]:
    """The first groups of a queue beyond `after`, in the order of their names."""
    place = {"queue": queue, "after": after, "limit": limit, "most": MOST_AHEAD}
    found = []
    for name, key, type, status, *rest in snapshot.rows("groups", **place):
        found.append(OpenGroup(name, key, type, Status(status), *rest))
    return found


def _head(snapshot: Snapshot, job: JobRecord) -> int | None:
    """The job of its group for which a job waits."""
    if job.group is None or not _number(snapshot, "is_shut", key=job.key):
        return None
    return _number(snapshot, "head_of_group", queue=job.queue, group=job.group) or None


def _turn_of(snapshot: Snapshot, job: JobRecord, now: int) -> FairWait | None:
    """The turn of a job's fair key, if it has one that waits."""
    key = fair_key_of(job.options)
    if key is None:
        return None
    names = {"queue": job.queue, "key": key, "most": MOST_KEYS}
    found = snapshot.rows("turn_of", **names)
    if not found:
        return None
    in_flight, opens_at, own, weight, place, keys, weights = found[0]
    rule = settings(snapshot.core, job.queue).fair or NO_FAIR_RULE
    most = limits_of(rule, own, None).most
    opens = None if opens_at is None or opens_at <= now else opens_at
    return FairWait(key, place + 1, keys, weight / weights, in_flight, most, opens)


def _unpaid_of(snapshot: Snapshot, job: JobRecord, now: int) -> Iterator[BudgetWait]:
    draws = draws_in(job.options) or ()
    accounts = {draw.key: _account(snapshot, draw.key) for draw in draws}
    return _unpaid(draws, accounts, now)


def _unpaid(
    draws: Sequence[Draw], accounts: Mapping[str, Account | None], now: int
) -> Iterator[BudgetWait]:
    for draw in draws:
        account = accounts[draw.key]
        if account is None:
            continue
        left = account.available(now)
        if left < draw.cost:
            pays_at, held_until = account.pays(draw.cost, now), account.held_from(now)
            capacity = account.policy.capacity
            yield BudgetWait(draw.key, draw.cost, left, capacity, pays_at, held_until)


def _account(snapshot: Snapshot, key: str) -> Account | None:
    found = snapshot.rows("budget", key=key)
    return account_of(found[0]) if found else None


def _ahead(snapshot: Snapshot, job: JobRecord) -> int:
    place = {"queue": job.queue, "priority": job.priority, "key": job.key}
    counted = 0
    for name in ("more_urgent", "older", "more_urgent_lines", "first_in_line"):
        if counted < MOST_AHEAD:
            counted += _number(snapshot, name, **place, most=MOST_AHEAD - counted)
    return counted


def _number(snapshot: Snapshot, name: str, **parameters: object) -> int:
    return snapshot.value(name, **parameters) or 0


class WaitReads:
    """The reads behind the questions why a job waits, and what comes next."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def waiting(self, key: int, reach: Reach, now: int) -> WaitingJob | None:
        """One job with what it may wait for, by a bounded number of rows."""
        found = await self._lanes.looks(waiting_job, key, reach, self._lanes.steady_of(now))
        if found is None:
            return None
        self._lanes.shown_one(found.job)
        fair = found.fair
        if fair is not None and fair.opens_at is not None:
            fair = fair._replace(opens_at=self._lanes.date_of(fair.opens_at))
        return found._replace(budgets=self._dated(found.budgets), fair=fair)

    async def stored_waits(self, queue: str, now: int) -> StoredWaits:
        """The facts about a queue's waiting jobs, from a bounded number of rows."""
        found = await self._lanes.looks(stored_waits, queue, self._lanes.steady_of(now))
        return found._replace(lines=[self._line(line) for line in found.lines])

    async def unpaid_lines(self, most: int, now: int) -> list[BudgetLine]:
        """Ready jobs that their budgets cannot pay, the most first. It reads up to `most` lines."""
        found = await self._lanes.looks(unpaid_lines, None, most, self._lanes.steady_of(now))
        return [self._line(line) for line in found]

    async def scheduled(self, reach: Reach, after: TimePlace, limit: int) -> list[JobRecord]:
        """The scheduled jobs after a place, those that are ready first, without large payloads."""
        ahead = self._lanes.ahead()
        found = await self._lanes.scans(scheduled, reach, after, limit, ahead)
        show_dates(found, ahead)
        return found

    async def running_long(self, reach: Reach, before: int, limit: int) -> list[JobRecord]:
        """Some jobs in flight since before `before`, the longest first, without large payloads."""
        return self._lanes.shown(await self._lanes.scans(running_long, reach, before, limit))

    async def groups(self, queue: str, after: str, limit: int) -> list[OpenGroup]:
        """The groups of a queue beyond `after` that have unfinished jobs, in byte order."""
        return await self._lanes.scans(groups, queue, after, limit)

    def _line(self, line: BudgetLine) -> BudgetLine:
        return line._replace(waits=self._dated(line.waits))

    def _dated(self, found: Sequence[BudgetWait]) -> list[BudgetWait]:
        date_of = self._lanes.date_of
        return [
            wait._replace(
                pays_at=None if wait.pays_at is None else date_of(wait.pays_at),
                held_until=None if wait.held_until is None else date_of(wait.held_until),
            )
            for wait in found
        ]


READS = (WaitReads,)
