"""Random histories of a whole store, reopened and killed on the way, against the naive queue.

`ZQ_STATE_MACHINE=long` runs more and longer histories than a change has to wait for: about 20
minutes of a processor for each seed (`--hypothesis-seed`, with `--timeout 0`).
"""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from store.rig import FOREVER, POLICY, Rig, core_of, snapshot_of

from zq.features.budgets.model import BudgetState, Draws
from zq.features.budgets.store import list_budgets
from zq.features.history.model import HistoryRecord
from zq.features.history.service import history_records
from zq.model.commands import AnyCommand, Claim, Due, EnqueueResult, TickResult
from zq.model.effects import Traffic
from zq.model.errors import ZqError
from zq.model.filters import EVERYTHING, counted, is_counted
from zq.model.ids import IdCodec
from zq.model.job import ErrorRecord, JobRecord, show_dates
from zq.model.lifecycle import Status
from zq.model.log import HISTORY_LOG, Bounds, HistoryOptions
from zq.model.reach import EVERYWHERE
from zq.model.settling import Ending
from zq.store import lookups
from zq.store.logs import read_log
from zq.tick import slices

from .draws import SHORT_MS, Draw
from .draws_budgets import BudgetDraw
from .naive_budgets import BudgetingQueue
from .naive_jobs import Answers
from .naive_row import LARGE, Ended

HISTORY = HistoryOptions('dev"ice', Bounds())
"""Nothing of it is ever removed here."""

HELD = "iif(options -> '$.budgets' IS NULL AND (status = 0 OR held & 1), held & 1, held)"
"""What holds jobs. A job that only ages may come to its line as late as it may be claimed."""

steps_ms = st.sampled_from([0, 0, 0, 1, 50, 1_000, 4_100, 60_000, -1, -1_000, -3_600_000])


class History(RuleBasedStateMachine):
    """Does the same to a store and to the naive queue, and compares all there is to see."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = BudgetingQueue(POLICY)
        self.runner = asyncio.Runner()
        self.root = Path(tempfile.mkdtemp(prefix="zq-history-"))
        self.rig = Rig(self.root / "0", history=HISTORY)
        self.recorded: list[HistoryRecord] = []
        self.drawn: Counter[str] = Counter()
        self.lives = 0
        self.slice_rows = slices.SLICE_ROWS
        self.deadlines: Mapping[Due, int] = {}
        self.file: sqlite3.Connection
        self._open()

    def teardown(self) -> None:
        slices.SLICE_ROWS = self.slice_rows
        self._close()
        self.runner.close()
        shutil.rmtree(self.root)

    @rule(rows=st.sampled_from([1, 2, 3, 512]))
    def cut(self, rows: int) -> None:
        """From now on ticks have slices of so many rows, which changes nothing that they do."""
        slices.SLICE_ROWS = rows

    @rule(data=st.data(), later=steps_ms, durable=st.booleans())
    def produce(self, data: st.DataObject, later: int, durable: bool) -> None:
        draw = self._draw(data, later)
        self._tick(draw.enqueues(), draw.claims(), durable=durable)

    @precondition(lambda self: self.queue.keys(Status.IN_FLIGHT))
    @rule(data=st.data(), later=steps_ms, promote=st.booleans(), lapse=st.booleans())
    def settle(self, data: st.DataObject, later: int, promote: bool, lapse: bool) -> None:
        draw = self._draw(data, later)
        self._tick(draw.settlements(), draw.claims(), promote=promote, lapse=lapse)

    @precondition(lambda self: self.queue.keys())
    @rule(data=st.data(), later=steps_ms, purge=st.booleans())
    def change(self, data: st.DataObject, later: int, purge: bool) -> None:
        draw = self._draw(data, later)
        self._tick(draw.changes(), draw.claims(), purge=purge)

    @rule(data=st.data(), later=steps_ms, due=st.tuples(*[st.booleans()] * 3))
    def mix(self, data: st.DataObject, later: int, due: tuple[bool, bool, bool]) -> None:
        draw = self._draw(data, later)
        promote, purge, names = due
        commands, claims = draw.everything(), draw.claims()
        self._tick(commands, claims, promote=promote, purge=purge, names=names)

    @rule(data=st.data())
    def report_late(self, data: st.DataObject) -> None:
        """Workers lose jobs and report after all. For a job without settings that must count."""
        draw, before = self._draw(data, 0), self.queue.resumed
        self._tick([draw.enqueue_plainly()], draw.short_claims())
        draw = self._draw(data, SHORT_MS + 1)
        self._tick([], [], lapse=True)
        self._tick(draw.late_reports(), draw.claims())
        assert self.queue.resumed > before

    @rule(data=st.data(), descending=st.booleans(), limit=st.integers(1, 5))
    def look(self, data: st.DataObject, descending: bool, limit: int) -> None:
        filter = self._draw(data, 0).filter()
        now, reads = self.rig.now, self.rig.store.reads
        expected = self.queue.visible(now, filter)
        assert self.runner.run(reads.count(filter, now)) == len(expected)
        if is_counted(filter):
            counts = self.runner.run(reads.counts(now))
            assert counted(counts, filter) == len(expected)
        start = FOREVER if descending else -1
        listed = self.runner.run(reads.jobs_page(filter, start, descending, limit, now))
        assert _in_no_line(listed) == (expected[::-1] if descending else expected)[:limit]

    @precondition(lambda self: self.queue.keys())
    @rule(how=st.sampled_from(["checkpoint", "close", "kill"]))
    def interrupt(self, how: str) -> None:
        if how == "checkpoint":
            self.runner.run(self.rig.store.checkpoint())
            self.runner.run(self.rig.store.tidy())
            return
        if how == "close":
            self._close()
            self._open()
        else:
            self._kill()
        store = self.rig.store
        assert store.at_start.returned == self.queue.restart()
        assert store.at_start.claimed == self.queue.claimed()
        assert store.at_start.last_key >= max(self.queue.rows)
        assert self.file.execute("PRAGMA integrity_check").fetchone()[0] == "ok"

    @invariant()
    def store_and_naive_queue_agree(self) -> None:
        seen = _look_at_everything(self.file, self.rig.now)
        rows = self.queue.rows.values()
        counts = self.queue.counts()
        assert _in_no_line(seen.jobs) == self.queue.visible(self.rig.now)
        assert seen.keys == sorted(self.queue.rows)
        assert seen.payloads == {r.key: r.payload for r in rows if r.size > LARGE}
        assert seen.results == {
            r.key: r.result for r in rows if r.result is not None and len(r.result.encode()) > LARGE
        }
        assert seen.outcomes == {r.key: r.outcome() for r in rows if not r.expired(self.rig.now)}
        assert seen.errors == {r.key: r.errors for r in rows if r.errors}
        assert seen.kept_counts == seen.full_counts == counts
        assert seen.owners == self.queue.owners
        assert seen.names == self.queue.names
        assert seen.hosts == {r.key: (r.batch, r.revision) for r in rows if r.revision is not None}
        assert seen.held == self.queue.bits()
        hidden = Counter((r.queue, r.status) for r in rows if r.expired(self.rig.now))
        assert +seen.visible_counts == counts - hidden
        # A job that is taken leaves its expiry behind, one that is settled its lease's deadline; to
        # look once too often does no harm.
        known, due = dict(self.deadlines), dict(self.queue.deadlines())
        # A budget has a deadline only for lines that a claim has found it cannot pay.
        for deadlines in (known, due):
            deadlines.pop(Due.BUDGET, None)
        for kind in (Due.EXPIRY, Due.LEASE):
            assert known.pop(kind, FOREVER) <= due.pop(kind, FOREVER)
        assert known == due

    @invariant()
    def what_is_in_flight_costs_no_more_than_its_budgets_allow(self) -> None:
        """By the rows alone; a budget that was narrowed below what is drawn only drains."""
        seen = _look_at_tokens(self.file, self.rig.now)
        assert seen.budgets == self.queue.budgets(self.rig.now)
        assert seen.kept_in_use == {key: seen.drawn[key] for key in self.queue.purses}
        assert seen.lines == self.queue.lines()
        assert seen.in_line == seen.alone_in_line
        for budget in seen.budgets:
            if budget.policy.duration_ms is None:
                allowed = max(budget.policy.allocation, self.drawn[budget.key])
                assert seen.drawn[budget.key] <= allowed
        self.drawn = seen.drawn

    @invariant()
    def the_history_goes_on_and_never_changes(self) -> None:
        page = read_log(core_of(self.file), HISTORY_LOG, None, FOREVER, FOREVER)
        found = self.rig.store.at_start
        ids = IdCodec(found.id_suffix)
        records = [r for b in page.batches for r in history_records(*b, found.epoch, ids)]
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        assert records[: len(self.recorded)] == self.recorded
        self.recorded = records
        assert sorted(map(_ended(ids), records), key=repr) == sorted(self.queue.history, key=repr)

    def _draw(self, data: st.DataObject, later: int) -> Draw:
        self.rig.now += later
        return BudgetDraw(data, self.queue, self.rig.mint, self.rig.now)

    def _tick(self, commands: list[AnyCommand], claims: list[Claim], **flags: bool) -> None:
        # As the engine does: nothing that it knows to have lapsed is left unsaid.
        lapsed, pays = [
            self.deadlines.get(due, FOREVER) <= self.rig.now for due in (Due.EXPIRY, Due.BUDGET)
        ]
        tick = self.rig.tick(commands, claims, expire=lapsed, refill=pays, **flags)
        open_queues = _queues_of_open_lines(self.file)
        result = self.runner.run(self.rig.store.tick(tick))
        _compare(result, self.queue.tick(tick), open_queues)
        if result.deadlines is not None:
            self.deadlines = result.deadlines

    def _open(self) -> None:
        self.runner.run(self.rig.open())
        self.deadlines = self.rig.store.at_start.deadlines
        # In this thread, for a look takes less than the way to that of a reader.
        self.file = sqlite3.connect(self.rig.directory / "zq.db", isolation_level=None)

    def _close(self) -> None:
        self.file.close()
        self.runner.run(self.rig.close())

    def _kill(self) -> None:
        """Go on with what a killed server leaves: the database and its WAL, as they are now."""
        self.lives += 1
        copy = self.root / str(self.lives)
        copy.mkdir()
        # To close these files drops SQLite's locks, so they stay open as long as the store.
        with contextlib.ExitStack() as opened:
            for name in ("zq.db", "zq.db-wal"):
                file = self.rig.directory / name
                if file.exists():
                    (copy / name).write_bytes(opened.enter_context(file.open("rb")).read())
            self._close()
        self.rig.directory = copy
        self._open()


class Everything(NamedTuple):
    """All that a store holds."""

    jobs: list[JobRecord]
    keys: list[int]
    payloads: dict[int, str]
    results: dict[int, str]
    outcomes: dict[int, Ending]
    errors: dict[int, list[ErrorRecord]]
    kept_counts: dict[tuple[str, Status], int]
    full_counts: dict[tuple[str, Status], int]
    visible_counts: Counter[tuple[str, Status]]
    owners: dict[str, int]
    held: dict[int, int]
    names: dict[tuple[str, str, str], tuple[int, int]]
    hosts: dict[int, tuple[str, int]]


class Tokens(NamedTuple):
    """All that a store holds of budgets, and what its jobs say of them."""

    budgets: list[BudgetState]
    kept_in_use: dict[str, int]
    drawn: Counter[str]
    lines: dict[tuple[str, Draws], tuple[int, int]]
    in_line: set[tuple[int, str, Draws, int]]
    alone_in_line: set[tuple[int, str, Draws, int]]
    """The jobs that nothing but their budgets holds back."""


def _look_at_tokens(connection: sqlite3.Connection, now: int) -> Tokens:
    jobs = [
        (msgspec.json.decode(draws, type=Draws), *rest)
        for draws, *rest in connection.execute(
            "SELECT options -> '$.budgets', id, queue, priority, status, held FROM jobs"
            " WHERE status <= 2 AND options -> '$.budgets' IS NOT NULL"
        )
    ]
    drawn: Counter[str] = Counter()
    full: dict[tuple[str, Draws], tuple[int, int]] = {}
    for draws, _, queue, _, status, _ in jobs:
        if status == Status.IN_FLIGHT:
            drawn.update({draw.key: draw.cost for draw in draws})
        unfinished, ready = full.get((queue, draws), (0, 0))
        full[queue, draws] = (unfinished + 1, ready + (status == Status.READY))
    return Tokens(
        budgets=list_budgets(snapshot_of(connection, "zq.features.budgets"), None, now, 0),
        kept_in_use=dict(connection.execute("SELECT key, in_use FROM budgets")),
        drawn=drawn,
        lines=full,
        in_line={
            (key, queue, msgspec.json.decode(draws, type=Draws), priority)
            for key, queue, draws, priority in connection.execute(
                "SELECT jobs.id, lines.queue, draws, jobs.priority FROM lines JOIN jobs"
                " ON line = lines.id AND status = 1 AND held = 2 WHERE draws <> ''"
            )
        },
        alone_in_line={
            (key, queue, draws, priority)
            for draws, key, queue, priority, status, held in jobs
            if status == Status.READY and not held & 1
        },
    )


def _ended(ids: IdCodec) -> Callable[[HistoryRecord], Ended]:
    """A record as the naive queue has it."""

    def plain(record: HistoryRecord) -> Ended:
        key = ids.key(record.job_id)
        assert key is not None
        assert record.device == HISTORY.device
        return Ended(
            key=key,
            message=record.error_message,
            **{
                field: getattr(record, field)
                for field in Ended._fields
                if field not in ("key", "message")
            },
        )

    return plain


def _look_at_everything(connection: sqlite3.Connection, now: int) -> Everything:
    def counts(sql: str) -> dict[tuple[str, Status], int]:
        return {(queue, Status(status)): n for queue, status, n in connection.execute(sql)}

    core = core_of(connection)
    failed = [key for (key,) in connection.execute("SELECT DISTINCT job_id FROM errors")]
    jobs = lookups.list_jobs(core, EVERYTHING, -1, False, FOREVER, now)
    show_dates(jobs, 0)
    outcomes = [(job.key, lookups.get_ending(core, job.key, EVERYWHERE, now)) for job in jobs]
    return Everything(
        jobs=jobs,
        keys=[key for (key,) in connection.execute("SELECT id FROM jobs ORDER BY id")],
        payloads=dict(connection.execute("SELECT job_id, body FROM payloads")),
        results=dict(connection.execute("SELECT job_id, body FROM results")),
        outcomes={key: outcome for key, outcome in outcomes if outcome is not None},
        errors={key: lookups.errors_page(core, key, 0, False, FOREVER)[0] for key in failed},
        kept_counts=counts("SELECT queue, status, n FROM queue_counts WHERE n <> 0"),
        full_counts=counts("SELECT queue, status, count(*) FROM jobs GROUP BY queue, status"),
        visible_counts=lookups.visible_counts(core, now),
        owners=dict(connection.execute("SELECT key_lock, id FROM jobs WHERE owns_key = 1")),
        hosts={
            job: (key, revision)
            for job, key, revision in connection.execute("SELECT * FROM open_batches")
        },
        held=dict(connection.execute(f"SELECT id, {HELD} FROM jobs WHERE {HELD}")),
        names={
            (q, g, n): (k, until)
            for q, g, n, k, until in connection.execute("SELECT * FROM dedupe")
        },
    )


def _compare(result: TickResult, expected: Answers, open_queues: set[str]) -> None:
    assert [_plain(r) for r in result.replies] == [_plain(r) for r in expected.replies]
    assert sorted(result.ended) == sorted(expected.ended)
    assert sorted(result.revoked) == sorted(expected.revoked)
    assert sorted(result.lapsed) == sorted(expected.lapsed)
    assert result.buried == expected.buried
    assert result.claimed == expected.claimed
    # Who may have an open line has not asked for it yet.
    assert result.woken | open_queues >= expected.gained
    traffic = Traffic()
    for kind, counts in result.traffic:
        getattr(traffic, kind).update(counts)
    assert traffic == expected.traffic
    told = [
        (type, job.key, job.queue, job.attempts, job.unique_key or "")
        for type, jobs in result.news
        for job in jobs
    ]
    assert sorted(told) == sorted(expected.news)


def _plain(reply: object) -> object:
    """A reply in a form that can be compared: errors by kind and text, owners without payload.

    An owner that takes over a payload is shown as it was or as it is: clients see neither, nor its
    line.
    """
    if isinstance(reply, ZqError):
        return type(reply), reply.message
    if isinstance(reply, JobRecord):
        return _in_no_line([reply])[0]
    if isinstance(reply, EnqueueResult):
        hidden: dict[str, Any] = {"line": None}
        hidden |= {"payload": None, "payload_size": 0, "checksum": None}
        owners = reply.owners.items()
        plain = {i: msgspec.structs.replace(j, **hidden) for i, j in owners}
        hosts = reply.folded.items()
        folded = {i: msgspec.structs.replace(j, **hidden) for i, j in hosts}
        return plain, reply.replaced, reply.gone, reply.expiries, folded
    return reply


def _queues_of_open_lines(connection: sqlite3.Connection) -> set[str]:
    return {
        queue for (queue,) in connection.execute("SELECT queue FROM lines WHERE shut_by IS NULL")
    }


def _in_no_line(jobs: list[JobRecord]) -> list[JobRecord]:
    """Jobs without their lines, which the naive queue does not number."""
    return [msgspec.structs.replace(job, line=None) for job in jobs]


PROFILES = {
    # From the eleventh example on Hypothesis repeats parts of earlier ones, at twice the cost.
    "quick": settings(max_examples=10, stateful_step_count=40),
    "long": settings(max_examples=800, stateful_step_count=80),
}

TestHistory = History.TestCase
TestHistory.settings = settings(
    PROFILES[os.environ.get("ZQ_STATE_MACHINE", "quick")],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
