"""The tick's phase of new jobs."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cached_property, partial
from operator import attrgetter
from typing import NamedTuple, TypeVar, cast

import msgspec

from zq.model.aging import line_priority
from zq.model.checksums import checksum, job_checksum
from zq.model.commands import ALL_STORED, Enqueue, EnqueueResult, FoldedPayload
from zq.model.errors import KeyConflict, QueueNotRegistered
from zq.model.job import (
    INLINE_PAYLOAD,
    MAX_TIME,
    NO_EXTRAS,
    CarriedFields,
    Extras,
    JobRecord,
    JobSettings,
    NewJob,
)
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.model.settings import LONGEST_MS, fixed
from zq.model.sharing import maker, values_of
from zq.model.unique import COVERS, OnConflict, Scope
from zq.store.api import BYTES_A_ROW, Sliced, as_json
from zq.tick.depths import DepthTable
from zq.tick.duplicates import KeyTable, NameTable
from zq.tick.fitting import ComingPayloads
from zq.tick.hooks import BoundTable, FoldTable, Hold
from zq.tick.lines import HELD_IN_LINE, NewName
from zq.tick.moves import GroupChange, note_groups
from zq.tick.work import UnitOfWork, admit_new, refuse_new

T = TypeVar("T")

SLICE_JOBS = 512
"""How many jobs are decided before other tasks may have a turn."""

SLICE_BYTES = 1024 * 1024
"""The bytes of payloads whose checksums are calculated before that: about a millisecond's work."""

HELD_BY_GROUP = 1
"""The bit of `held` that is set for all jobs of a group but its head."""

_PLAIN = "id, queue, type, priority, status, ready_at, payload_size, payload, checksum"
_SIZE = 6
"""The place of `payload_size` there."""
_TUNED = _PLAIN + ", options"
_LINED = f"{_TUNED}, held, line"
_FULL = (
    f"{_TUNED}, unique_key, unique_while, owns_key, group_id, held, extras, unique_in, expires_at,"
    " ttl_ms, line"
)

_Head = tuple[int, str, str, int, int, int]
"""Key, queue, type, priority, status, ready_at."""

# Plain ints: looking up and converting members of an enum costs more than the rest of a row.
_READY, _SCHEDULED = int(Status.READY), int(Status.SCHEDULED)
_STATUSES = {int(status): status for status in (Status.READY, Status.SCHEDULED)}

_OPTIONS = attrgetter("options")
_NONE: Set[str] = frozenset()
_NOT_AGING: Mapping[str, int] = {}

_NO_LINE = (None, None)


class _Full(NamedTuple):
    """A job with unusual settings, which needs a longer row."""

    head: _Head
    job: NewJob
    expires_at: int | None = None
    ttl_ms: int | None = None
    """How long it may wait from its date on, if it waits for that."""


def enqueue(work: UnitOfWork, commands: Sequence[Enqueue]) -> Sliced[list[object]]:
    """Store jobs in order, or fold them into others.

    The reply names the owner of a duplicate, and the host of a folded job.
    """
    fan_out = work.hooks.fan_out
    if fan_out is not None and not work.rulebook.is_empty and work.rulebook.fanning:
        return (yield from fan_out.enqueue(work, commands))
    intake = Intake(work, commands)
    replies: list[object] = []
    for command in commands:
        reply = yield from intake.take(command)
        replies.append(reply)
    yield from intake.store()
    return replies


def enqueue_told(work: UnitOfWork, commands: Sequence[Enqueue]) -> Sliced[list[object]]:
    """Store jobs as `enqueue` does, for parts of other commands, and note what there is to tell."""
    replies = yield from enqueue(work, commands)
    work.effects.brought += zip(commands, replies, strict=True)
    return replies


class Intake:
    """This tick's new jobs. They are decided one after the other, then written together."""

    def __init__(self, work: UnitOfWork, commands: Sequence[Enqueue]) -> None:
        self._work = work
        self._commands = commands
        self._depths: DepthTable | None = None
        self._timed, self._aging = _NONE, _NOT_AGING
        self._keyed: Callable[[UnitOfWork, Enqueue], Sliced[Enqueue]] | None = None
        self._bounds: BoundTable | None = None
        rules = work.rulebook
        if not rules.is_empty:
            self._depths = DepthTable(work, commands)
            self._timed, self._aging = rules.timed, rules.aging
            self._keyed = work.hooks.keyed if rules.keyed else None
            if rules.leaving and work.hooks.bounds is not None:
                self._bounds = work.hooks.bounds(work)
        self._plain: list[tuple[object, ...]] = []
        self._tuned: list[tuple[object, ...]] = []
        self._lined: list[tuple[_Head, NewJob]] = []
        """Jobs with plain settings that wait in lines."""
        self._full: list[_Full] = []
        self._replaced: dict[int, NewJob | FoldedPayload] = {}
        self._contents: dict[int, Extras | None] = {}
        """The new extras of jobs whose content a duplicate has replaced, by key."""
        self._payloads: dict[str, ComingPayloads] = {}
        """The rules of queues in which duplicates from other ones have found their owners."""
        self._beside: list[tuple[int, NewJob | FoldedPayload]] = []
        self._stored: defaultdict[tuple[str, int], int] = defaultdict(int)
        """How many new jobs each queue gets in each status."""
        self._unusual = False
        """True if a job has come that may have a group, a unique key or a name."""
        self._planned = False
        """True if a command has come with a plan."""

    @cached_property
    def _keys(self) -> KeyTable:
        return KeyTable(self._work, self._commands)

    @cached_property
    def _names(self) -> NameTable:
        return NameTable(self._work, self._commands)

    @cached_property
    def _hosts(self) -> FoldTable:
        make = self._work.hooks.folds
        assert make is not None, "a command has come with a plan, and no room makes any"
        return make(self._work, self._commands)

    def take(self, command: Enqueue, *, refusable: bool = True) -> Sliced[object]:
        """Decide a command's jobs: all or none. Return an `EnqueueResult`, or why none.

        Copies of stored jobs are not `refusable`: what may refuse new jobs has let those in.
        """
        if self._keyed is not None:
            command = yield from self._keyed(self._work, command)
        drawing = any(map(_OPTIONS, command.jobs))
        is_large = len(command.jobs) > SLICE_JOBS
        refusal: object = None
        if not refusable:
            pass
        elif is_large and (drawing or self._depths is not None or command.reach is not EVERYWHERE):
            refusal = yield partial(self._refusal, command, drawing)
        else:
            refusal = self._refusal(command, drawing)
        if refusal is None and refusable and self._bounds is not None and not command.over_depth:
            refusal = yield from self._bounds.refusal(command)
        if refusal is not None:
            return refusal
        if self._depths is not None and refusable:
            # The bounds have reserved what the command brings. Now it is sure that it is stored.
            self._depths.take()
        holding: Sequence[Hold[UnitOfWork]] = ()
        if drawing:
            admit = partial(admit_new, self._work, command.jobs, command.reach.maker)
            (yield admit) if is_large else admit()
            holding = [hold for hold in self._work.holds if hold.is_used]
        if command.keys:
            self._work.highest_key = max(self._work.highest_key, command.keys[-1])
        now, timed, plain, stored = command.now, self._timed, self._plain, self._stored
        aging = self._aging
        reply, jobs = ALL_STORED, command.jobs
        if command.defaults is not None:
            work = self._work
            jobs = [fixed(job, work.settings_of(job.queue), command.defaults) for job in jobs]
        for index, (key, job) in enumerate(zip(command.keys, jobs, strict=True), 1):
            if not index % SLICE_JOBS:
                yield None
            ready_at = now if job.ready_at is None else job.ready_at
            status = _READY if ready_at <= now else _SCHEDULED
            head = (key, job.queue, job.type, job.priority, status, ready_at)
            if (
                job.unique_key is not None
                or job.group is not None
                or job.dedupe is not None
                or job.extras is not None
                or job.ttl_ms is not None
                or job.queue in timed
            ):
                if reply is ALL_STORED:
                    reply = EnqueueResult({}, set(), {}, {}, {})
                    if is_large:
                        yield self._look_up
                if not (yield from self._take_unusual(head, job, command, index - 1, reply)):
                    continue
            else:
                # Client libraries send such jobs: rows with few columns are half the work of full
                # rows.
                if aging and job.queue in aging:
                    self._lined.append((head, job))
                elif job.options is None:
                    inline = job.payload if job.payload_size <= INLINE_PAYLOAD else None
                    check = job_checksum(job.type, inline, None)
                    plain.append((*head, job.payload_size, inline, check))
                elif holding and _is_held(holding, job.options):
                    self._lined.append((head, job))
                else:
                    payload = _payload(job, job.type, None, job.options)
                    self._tuned.append((*head, *payload, as_json(job.options)))
                if job.payload_size > INLINE_PAYLOAD:
                    self._beside.append((key, job))
            stored[job.queue, status] += 1
        if command.plan is not None:
            self._planned = True
            self._replaced |= command.plan.payloads
            self._hosts.note_folds(command)
        return reply

    def _look_up(self) -> None:
        """Read which unique keys and names of the new jobs are known."""
        _ = self._keys, self._names

    def _refusal(self, command: Enqueue, drawing: bool) -> object | None:
        """Why none of a command's jobs can be stored. `drawing`: some of them have options."""
        if command.reach is not EVERYWHERE and self._keys.hides_an_owner(command):
            return KeyConflict()
        if command.registered_only:
            knows = self._work.rulebook.knows
            strangers = [job.queue for job in command.jobs if not knows(job.queue)]
            if strangers:
                return QueueNotRegistered(strangers[0])
        if command.plan is not None and (stale := self._hosts.refusal(command, self._names)):
            return stale
        if drawing:
            maker = command.reach.maker
            if (refused := refuse_new(self._work, command.jobs, maker)) is not None:
                return refused
            for admit in self._work.hooks.admits:
                if (error := admit(self._work, command)) is not None:
                    return error
        if self._depths is None:
            return None
        return self._depths.refusal(command, self._names, self._keys.is_new)

    def _take_unusual(
        self, head: _Head, job: NewJob, command: Enqueue, index: int, reply: EnqueueResult
    ) -> Sliced[bool]:
        """Decide a job with special settings, noted in `reply`. Return whether it is stored."""
        self._unusual = True
        plan = command.plan
        if plan is not None and index in plan.folds:
            host = self._hosts.host(plan.folds[index])
            self._work.effects.tally.folded += 1
            self._names.learn(job, host)
            reply.folded[index] = host
            return False
        key, _, _, _, status, ready_at = head
        lasts_ms: int | None = None
        expires_at: int | None = None
        if job.ttl_ms is not None:
            extras = msgspec.structs.replace(job.extras or NO_EXTRAS, ttl_ms=job.ttl_ms)
            job = msgspec.structs.replace(job, extras=extras)
        if job.ttl_ms or (job.ttl_ms is None and job.queue in self._timed):
            lasts_ms = _lifetime(self._work, job)
            if status == Status.READY:
                expires_at = min(self._work.steady + lasts_ms, MAX_TIME)
        known = self._names.find(job, command.reach)
        hosts = plan is not None and status == Status.READY and self._hosts.may_host(job)
        if known is None and (job.unique_key is not None or job.dedupe is not None or hosts):
            new = _stored(
                job,
                key=key,
                status=_STATUSES[status],
                ready_at=ready_at,
                expires_at=expires_at,
                payload=None,
                ttl_ms=None,
            )
            if status != Status.READY:
                new.ttl_ms = lasts_ms
            if job.unique_key is not None:
                known = yield from self._claim(new, job, index, reply)
            self._names.learn(job, known or new)
            if hosts and known is None:
                self._hosts.open(new)
        if known is not None:
            self._work.effects.tally.duplicates += 1
            if isinstance(known, JobRecord):
                reply.owners[index] = known
            else:
                reply.gone[index] = known
            return False
        if lasts_ms is not None:
            start = ready_at if expires_at is None else self._work.now
            reply.expiries[index] = min(start + lasts_ms, MAX_TIME)
        if expires_at is not None:
            lasts_ms = None
            self._work.retimed = True
        self._full.append(_Full(head, job, expires_at, lasts_ms))
        return True

    def _claim(
        self, new: JobRecord, job: NewJob, index: int, reply: EnqueueResult
    ) -> Sliced[JobRecord | None]:
        """Make a new job the owner of its key. If it is a duplicate, return the owner instead.

        An owner that waits may take what the duplicate brings. `reply` notes that.
        """
        owner = self._keys.claim(new, job.on_conflict)
        if owner is None or not _takes_payload(owner, job):
            return owner
        if not (yield from self._fits(owner, job)):
            return owner
        reply.replaced.add(index)
        self._replaced[owner.key] = job
        if job.on_conflict is OnConflict.REPLACE_CONTENT:
            return self._take_content(owner, job)
        return owner

    def _fits(self, owner: JobRecord, job: NewJob) -> Sliced[bool]:
        """True if the queue of an owner takes the payload of a duplicate from another queue."""
        if owner.queue == job.queue:
            return True
        payloads = self._payloads.get(owner.queue)
        if payloads is None:
            payloads = self._payloads[owner.queue] = ComingPayloads(self._work, [owner.queue])
        return (yield from payloads.refusal(owner.queue, job.payload)) is None

    def _take_content(self, owner: JobRecord, job: NewJob) -> JobRecord:
        """Give the owner of a key what a duplicate brings besides the payload. Return the owner."""
        extras = self._contents[owner.key] = _content(owner.extras, job.extras)
        changed = msgspec.structs.replace(owner, extras=extras)
        self._keys.follow(changed)
        self._names.follow(changed)
        return changed

    def store(self) -> Sliced[None]:
        """Write the decided jobs."""
        work = self._work
        coming = () if self._bounds is None else list(self._sizes())
        is_sure = not self._replaced
        stored = {(queue, _STATUSES[status]): n for (queue, status), n in self._stored.items()}
        if stored:
            work.effects.arrived.append(stored)
        for (queue, status), n in stored.items():
            work.effects.tally.stored += n
            work.counts[queue, status] += n
            if status is Status.READY:
                work.effects.woken.add(queue)
        if self._unusual:
            yield from _at_length(self._write_names, len(self._full))
        if self._planned:
            self._hosts.write()
        if self._plain:
            yield from work.tx.insert_by_slices("jobs", _PLAIN, self._plain)
        if self._tuned:
            yield from work.tx.insert_by_slices("jobs", _TUNED, self._tuned)
        if self._lined:
            rows = yield from _at_length(self._lined_rows, len(self._lined))
            yield from work.tx.insert_by_slices("jobs", _LINED, rows)
        if self._full:
            rows = yield from _at_length(self._full_rows, len(self._full))
            yield from work.tx.insert_by_slices("jobs", _FULL, rows)
        if self._replaced:
            yield from _at_length(self._replace_payloads, len(self._replaced))
        if self._beside:
            yield from self._store_payloads()
        if self._bounds is not None:
            yield from self._bounds.stored(coming, sure=is_sure)

    def _sizes(self) -> Iterator[tuple[str, int]]:
        """The queues of the decided jobs, and the bytes of their payloads."""
        for row in (*self._plain, *self._tuned):
            yield cast(tuple[str, int], (row[1], row[_SIZE]))
        for (_, queue, *_), job in self._lined:
            yield queue, job.payload_size
        for new in self._full:
            yield new.job.queue, new.job.payload_size

    def _write_names(self) -> None:
        """Write the groups, unique keys and names of the jobs that are about to be stored."""
        # They come after all others of their groups, so no head changes.
        note_groups(self._work, [new.job for new in self._full], GroupChange.OPENS)
        self._keys.release_former_owners()
        self._names.write()

    def _store_payloads(self) -> Sliced[None]:
        """Write the payloads that are stored apart from their jobs."""
        work = self._work
        beside: list[tuple[object, ...]] = []
        left = SLICE_BYTES
        for key, job in self._beside:
            beside.append((key, job.payload, checksum(job.payload)))
            left -= job.payload_size
            if left < 0:
                yield None
                left = SLICE_BYTES
        yield from work.tx.insert_large_by_slices("payloads", "job_id, body, checksum", beside)
        work.tx.rows += sum(job.payload_size // BYTES_A_ROW for _, job in self._beside)

    def _lined_rows(self) -> list[tuple[object, ...]]:
        """The rows of jobs with plain settings that wait in lines."""
        lines = self._lines(self._lined)
        rows: list[tuple[object, ...]] = []
        for head, job in self._lined:
            line, options = lines[head[0]]
            payload = _payload(job, job.type, None, job.options)
            rows.append((*head, *payload, options, HELD_IN_LINE, line))
        return rows

    def _lines(self, jobs: Sequence[tuple[_Head, NewJob]]) -> dict[int, tuple[int, str | None]]:
        """The lines of those jobs that wait in one, and their options as text, by the keys of the
        jobs."""
        work = self._work
        holds = [hold for hold in work.holds if hold.is_used]
        ahead = work.steady - work.now
        names: dict[int, NewName] = {}
        for (key, queue, _, priority, status, ready_at), job in jobs:
            aging_ms = self._aging.get(queue, 0)
            if job.options is None and not aging_ms:
                continue
            is_held = False
            for hold in holds:
                if hold.holds(job.options):
                    hold.bring(job, _STATUSES[status])
                    is_held = True
            if is_held or aging_ms:
                place = line_priority(priority, ready_at + ahead, aging_ms)
                names[key] = (queue, place, aging_ms, _options(job))
        if not names:
            return {}
        lines = work.lines.of_new(work.tx, list(names.values()))
        return {
            key: (line, name[-1]) for (key, name), line in zip(names.items(), lines, strict=True)
        }

    def _full_rows(self) -> list[tuple[object, ...]]:
        """The rows of jobs with unusual settings."""
        lines = self._lines([(new.head, new.job) for new in self._full])
        owning = self._keys.owning()
        return [
            self._full_row(new, lines.get(new.head[0], _NO_LINE)[0], new.head[0] in owning)
            for new in self._full
        ]

    def _full_row(self, new: _Full, line: int | None, owns_key: bool) -> tuple[object, ...]:
        """The row of a job. If another payload has replaced its own, it has that one."""
        key = new.head[0]
        # A job of a group waits behind the others, unless it becomes their head.
        held = 0 if new.job.group is None else HELD_BY_GROUP
        if line is not None:
            held |= HELD_IN_LINE
        latest = self._replaced.pop(key, new.job)
        if latest.payload_size > INLINE_PAYLOAD:
            self._beside.append((key, latest))
        extras = self._contents.pop(key, new.job.extras)
        rest = _rest(new.job, extras, owns_key, held)
        payload = _payload(latest, new.job.type, extras, new.job.options)
        return (*new.head, *payload, *rest, new.expires_at, new.ttl_ms, line)

    def _replace_payloads(self) -> None:
        """Replace the payloads of stored jobs."""
        jobs = self._replaced
        carried = {
            job.key: (job.type, self._contents.get(job.key, job.extras), job.options)
            for job in self._work.tx.jobs("read_jobs", keys=list(jobs))
        }
        jobs = {key: job for key, job in jobs.items() if key in carried}
        self._work.tx.write("delete_payloads", keys=list(jobs))
        rows = [(key, *_payload(job, *carried[key])) for key, job in jobs.items()]
        self._work.tx.write("replace_payloads", payloads=rows)
        if self._contents:
            self._work.tx.write("replace_extras", extras=list(self._contents.items()))
        beside = jobs.items()
        self._beside += [(k, job) for k, job in beside if job.payload_size > INLINE_PAYLOAD]


def _at_length(step: Callable[[], T], jobs: int) -> Sliced[T]:
    """Run a step that is about so many jobs, in the connection's thread if they are many."""
    return (yield step) if jobs > SLICE_JOBS else step()


_stored = maker(NewJob, JobRecord, "key", "status", "ready_at", "expires_at", "payload", "ttl_ms")
"""Makes the record of a new job. A payload is read where it is needed."""

_REPLACING = (OnConflict.REPLACE_PAYLOAD, OnConflict.REPLACE_CONTENT)


def _lifetime(work: UnitOfWork, job: NewJob) -> int:
    """How long a job may wait for a worker once it is ready: by its own limit, or its queue's."""
    ttl_ms = work.settings_of(job.queue).ttl_ms if job.ttl_ms is None else job.ttl_ms
    assert ttl_ms is not None
    return min(ttl_ms, LONGEST_MS)


def _takes_payload(owner: JobRecord, job: NewJob) -> bool:
    return job.on_conflict in _REPLACING and owner.status in COVERS[Scope.QUEUED]


def _content(extras: Extras | None, latest: Extras | None) -> Extras | None:
    """The extras of a job, with those parts that another job brings for its worker."""
    new = latest or NO_EXTRAS
    changed = msgspec.structs.replace(
        extras or NO_EXTRAS, meta=new.meta, **values_of(CarriedFields, new)
    )
    return None if changed == NO_EXTRAS else changed


def _payload(
    job: NewJob | FoldedPayload, type: str, extras: Extras | None, options: JobSettings | None
) -> tuple[int, str | None, int]:
    """The columns of a payload and of the row's checksum. A large payload is stored apart."""
    payload = job.payload if job.payload_size <= INLINE_PAYLOAD else None
    return job.payload_size, payload, job_checksum(type, payload, extras, options)


def _options(job: NewJob) -> str | None:
    return None if job.options is None else as_json(job.options)


def _is_held(holding: Sequence[Hold[UnitOfWork]], options: JobSettings) -> bool:
    for hold in holding:  # noqa: SIM110 - a generator costs more than the rest of a look
        if hold.holds(options):
            return True
    return False


def _rest(job: NewJob, extras: Extras | None, owns_key: bool, held: int) -> tuple[object, ...]:
    said = None if extras is None else as_json(extras)
    key = (job.unique_key, job.unique_while, owns_key)
    return _options(job), *key, job.group, held, said, int(job.unique_in)
