"""Random commands that fit the state of a queue: most have an effect, some have none."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import msgspec
from hypothesis import strategies as st
from store.rig import new_job

from zq.features.batches.model_jobs import BatchPlan, HostPlace, batch_of
from zq.features.sweeps.model import SweepMark, UndoSlice
from zq.model.commands import (
    AnyCommand,
    CancelJob,
    CancelSlice,
    Claim,
    Clear,
    DeleteJob,
    DeleteSlice,
    Enqueue,
    Extend,
    Fail,
    FoldedPayload,
    PatchJob,
    PatchSlice,
    Release,
    RetainJob,
    Return,
    Revive,
    ReviveSlice,
    SetQueue,
    Succeed,
)
from zq.model.filters import Filter
from zq.model.ids import Mint
from zq.model.job import NewJob
from zq.model.leasing import Terms
from zq.model.lifecycle import TERMINAL, Status
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE
from zq.model.settling import Failure
from zq.model.unique import KeySpace, OnConflict, Scope, lock_of

from .draws_values import (
    MARKS,
    NOT_UNIQUE,
    QUEUES,
    TYPES,
    asked,
    completions,
    dedupes,
    extras,
    failures,
    filters,
    groups,
    late,
    lease_times,
    lettered,
    mostly,
    offsets,
    options,
    patches,
    payloads,
    plain_extras,
    priorities,
    queues,
    retentions,
    settings,
    settings_patches,
    unique,
    unset_or,
)
from .naive import NaiveQueue

HOLDERS = [1, 2, 3]
UNKNOWN = 7
PLAIN = "plain"
"""A queue that has no settings, for jobs that have none."""

SHORT_MS = 1

T = TypeVar("T")

# Strategies are made once: to make one costs more than to draw from it.

booleans = st.booleans()
conflicts = st.sampled_from(OnConflict)
digits = st.integers(0, 9)
delays = st.sampled_from([0, 0, 50])
few = st.integers(1, 4)
credits = st.dictionaries(st.sampled_from(HOLDERS), few, min_size=1)
holders = st.sampled_from(HOLDERS)
jobs_options = st.none() | options | lettered
latencies = st.sampled_from([0, 0, 40])
marks = st.sampled_from(MARKS)
names = st.sampled_from(["k", "k\0", ""])
new_settings = settings | settings_patches
waits = st.none() | offsets
moments = unset_or(waits)
some_unique = st.lists(unique, min_size=1, max_size=3)
spaces = st.sampled_from(KeySpace)
sweeps = st.sampled_from([1, 2])
ttls = st.sampled_from([None, None, None, 1, 40, 4_100])
types = st.sampled_from(TYPES)
with_batch, without_batch = st.none() | extras, st.none() | plain_extras


def _dealt(
    names: tuple[str, ...] | None,
    idle: dict[int, int],
    busy: dict[int, int],
    terms: dict[int, Terms] | None,
) -> Claim:
    return Claim(names, [*idle.items(), *busy.items()], EVERYWHERE, terms, len(idle))


claims = st.lists(
    st.builds(
        _dealt,
        st.none()
        | st.lists(st.sampled_from([*QUEUES, "none"]), max_size=3, unique=True).map(tuple),
        st.just(dict[int, int]()) | credits,
        credits,
        st.none() | st.dictionaries(holders, asked),
    ),
    max_size=2,
)


@cache
def _places(
    count: int, least: int, most: int | None, *, unique: bool
) -> st.SearchStrategy[list[int]]:
    """Which of so many things are taken."""
    return st.lists(st.sampled_from(range(count)), min_size=least, max_size=most, unique=unique)


class Draw:
    """Draws the commands of one tick, which settle or return a job at most once."""

    def __init__(self, data: st.DataObject, queue: NaiveQueue, mint: Mint, now: int) -> None:
        self._draw = data.draw
        self._queue = queue
        self._mint = mint
        self._now = now
        self._settled: set[int] = set()

    def settlements(self) -> list[AnyCommand]:
        ends = (self._succeed, self._fail, self._fail, self._return, self._return_unheard)
        return self._some((*ends, self._extend, self._release))

    def changes(self) -> list[AnyCommand]:
        return self._some(self._kinds_of_change())

    def _kinds_of_change(self) -> tuple[Callable[[], AnyCommand], ...]:
        kinds = (self._change, self._change, self._delete, self._change_slice, self._delete_slice)
        again = (self._retry, self._revive_slice, self._set_queue, self._set_queue)
        ends = (
            *(self._cancel, self._cancel, self._cancel_by_key, self._cancel_slice),
            *(self._undo_slice, self._retain),
        )
        return kinds + ends + again

    def enqueues(self) -> list[AnyCommand]:
        return self._some((self.enqueue,))

    def everything(self) -> list[AnyCommand]:
        """A bit of all; sometimes the end of all jobs as well."""
        commands = self.settlements() + self.changes() + self.enqueues()
        if self._draw(digits) == 9:
            commands.append(Clear(self._draw(booleans)))
        return commands[::-1] if self._draw(booleans) else commands

    def claims(self) -> list[Claim]:
        return self._draw(claims)

    def enqueue_plainly(self) -> Enqueue:
        keys = self._mint.take(1, self._now)
        return Enqueue(keys=keys, jobs=[new_job(queue=PLAIN)], now=self._now, size=1)

    def short_claims(self) -> list[Claim]:
        """Claims whose leases are over soon, also of a job that has just come without settings."""
        terms = {holder: Terms(SHORT_MS, "c") for holder in HOLDERS}
        return [
            Claim((PLAIN,), [(1, 1_000)], EVERYWHERE, terms),
            Claim(None, [(2, self._draw(few))], EVERYWHERE, terms),
        ]

    def late_reports(self) -> list[AnyCommand]:
        """Reports of the jobs that nobody has taken since they were lost."""
        rows = self._queue.rows.values()
        lost = [row.key for row in rows if row.stalls and row.status is Status.READY]
        failed = self._several(lost, 0, 2, unique=True)
        done = [key for key in lost if key not in failed]
        fails = [Fail(key, Failure("boom"), late="late") for key in failed]
        return [*fails, Succeed(done, late="late")]

    def filter(self) -> Filter:
        return self._draw(filters)

    def enqueue(self) -> Enqueue:
        jobs = [self._job(each) for each in self._draw(some_unique)]
        keys = self._mint.take(len(jobs), self._now)
        # A command may have waited a little for its tick.
        arrived = self._now - self._draw(latencies)
        command = Enqueue(keys=keys, jobs=jobs, now=arrived, size=1)
        if any(batch_of(job) is not None for job in jobs):
            return msgspec.structs.replace(command, plan=self._plan(command))
        return command

    def _plan(self, command: Enqueue) -> BatchPlan:
        """A plan from what there is before the tick, or, now and then, from what there is not."""
        places: dict[str, HostPlace | None] = {}
        folds: dict[int, int] = {}
        payloads_then: dict[int, FoldedPayload] = {}
        hosts: dict[str, int | None] = {}
        copies = self._queue.copies(command)
        for index, (key, job) in enumerate(zip(command.keys, command.jobs, strict=True)):
            rule = batch_of(job)
            waits = job.ready_at is None or job.ready_at <= command.now
            if rule is None or not waits or index in copies:
                continue
            if rule.key not in places:
                row = self._queue.host(rule.key)
                place = None if row is None else HostPlace(row.key, row.revision or 0)
                if place is not None and not self._draw(mostly):
                    place = HostPlace(place.host, place.revision + 1)
                places[rule.key] = place
                hosts[rule.key] = None if row is None else row.key
            host = hosts[rule.key]
            if host is None or not self._draw(mostly):
                hosts[rule.key] = key
                continue
            folds[index] = host
            text = self._draw(payloads)
            payloads_then[host] = FoldedPayload(text, len(text.encode()))
        return BatchPlan(folds, payloads_then, places, copies)

    def _job(self, key_and_scope: tuple[str | None, Scope | None]) -> NewJob:
        draw = self._draw
        return new_job(
            queue=draw(queues),
            type=draw(types),
            payload=draw(payloads),
            priority=draw(priorities),
            ready_at=self._then(draw(waits)),
            options=draw(jobs_options),
            unique_key=key_and_scope[0],
            unique_while=key_and_scope[1],
            on_conflict=draw(conflicts),
            # A job with a unique key has no batch.
            extras=draw(with_batch if key_and_scope == NOT_UNIQUE else without_batch),
            group=draw(groups),
            ttl_ms=draw(ttls),
            dedupe=draw(dedupes),
            unique_in=draw(spaces) if key_and_scope[0] else KeySpace.ALL,
        )

    def _succeed(self) -> AnyCommand:
        lost = [row.key for row in self._queue.rows.values() if row.stalls]
        if self._draw(booleans) and lost:
            return Succeed(self._unsettled(lost), late="late")
        keys = self._unsettled(self._keys())
        if not keys or self._draw(booleans):
            return Succeed(keys, late=self._draw(late))
        told = {key: self._draw(completions) for key in self._several(keys, unique=True)}
        return Succeed(keys, said=told, size=sum(one.result_size for one in told.values()))

    def _fail(self) -> AnyCommand:
        failure = self._draw(failures)
        failure = msgspec.structs.replace(failure, retry_at=self._then(failure.retry_at))
        keys = self._unsettled(self._keys())[:1] or [UNKNOWN]
        return Fail(keys[0], failure, late=self._draw(late))

    def _return(self) -> AnyCommand:
        holder = self._draw(holders)
        held = [row.key for row in self._queue.rows.values() if row.holder == holder]
        keys = self._unsettled(held if self._draw(booleans) else self._keys())
        return Return(holder, keys, frozenset(self._several([*keys, UNKNOWN], unique=True)))

    def _return_unheard(self) -> AnyCommand:
        leases = self._leases(self._unsettled(self._keys()))
        return Return(0, list(leases), leases=leases)

    def _extend(self) -> AnyCommand:
        keys = self._unsettled(self._keys())
        return Extend(
            keys,
            self._some_leases(keys),
            self._draw(lease_times),
            resumed=self._draw(booleans),
        )

    def _release(self) -> AnyCommand:
        keys = self._unsettled(self._keys())
        return Release(keys, self._some_leases(keys), self._draw(delays))

    def _leases(self, keys: list[int]) -> dict[int, int]:
        """Of each job a delivery, the current one as a rule."""
        rows = self._queue.rows
        current = {key: rows[key].deliveries if key in rows else 1 for key in keys}
        return {key: n if self._draw(mostly) else n + 1 for key, n in current.items()}

    def _some_leases(self, keys: list[int]) -> dict[int, int]:
        return self._leases([key for key in keys if self._draw(booleans)])

    def _change(self) -> AnyCommand:
        return PatchJob(self._key(), "ID", self._patch())

    def _change_slice(self) -> AnyCommand:
        return PatchSlice(self._keys(), self.filter(), self._patch())

    def _delete(self) -> AnyCommand:
        return DeleteJob(self._key())

    def _delete_slice(self) -> AnyCommand:
        return DeleteSlice(self._keys(), self.filter())

    def _cancel(self) -> AnyCommand:
        return CancelJob(key=self._key(), force=self._draw(booleans))

    def _cancel_by_key(self) -> AnyCommand:
        name = self._draw(names)
        queue, space = self._draw(queues), self._draw(spaces)
        return CancelJob(lock=lock_of(queue, name, space), force=self._draw(booleans))

    def _cancel_slice(self) -> AnyCommand:
        return CancelSlice(self._keys(), self.filter(), self._draw(booleans), self._mark())

    def _mark(self) -> SweepMark | None:
        return self._draw(marks)

    def _undo_slice(self) -> AnyCommand:
        cancelled = self._queue.keys(Status.CANCELLED)
        aimed = bool(cancelled) and self._draw(mostly)
        keys = cancelled if aimed else self._keys()
        return UndoSlice(keys, Filter(swept=self._draw(sweeps)))

    def _retain(self) -> AnyCommand:
        finished = self._queue.keys(*TERMINAL)
        aimed = self._draw(mostly)
        key = self._one(finished) if finished and aimed else self._key()
        return RetainJob(key, self._draw(retentions))

    def _retry(self) -> AnyCommand:
        dead = self._queue.keys(Status.DEAD)
        home = self._draw(booleans)
        key = self._one(dead) if dead and not home else self._key()
        return Revive(key, home=home)

    def _revive_slice(self) -> AnyCommand:
        filter = msgspec.structs.replace(self.filter(), revivable=True)
        return ReviveSlice(self._queue.keys() if self._draw(mostly) else self._keys(), filter)

    def _set_queue(self) -> AnyCommand:
        return SetQueue(self._draw(queues), self._draw(new_settings))

    def _patch(self) -> Patch:
        patch = self._draw(patches)
        ready_at = self._draw(moments)
        if isinstance(ready_at, int):
            ready_at += self._now
        return Patch(
            **{f: getattr(patch, f) for f in patch.__struct_fields__} | {"ready_at": ready_at}
        )

    def _then(self, offset: int | None) -> int | None:
        """A time that was drawn as its distance from now."""
        return None if offset is None else self._now + offset

    def _key(self) -> int:
        keys = self._queue.keys()
        aimed = self._draw(mostly)
        return self._one(keys) if keys and aimed else UNKNOWN

    def _keys(self) -> list[int]:
        """Keys of jobs in flight, more often than not, or of any."""
        held = self._queue.keys(Status.IN_FLIGHT)
        only_held = self._draw(mostly)
        pool = held if held and only_held else [*self._queue.keys(), UNKNOWN]
        return self._several(pool, 1, 4, unique=True)

    def _unsettled(self, keys: list[int]) -> list[int]:
        fresh = [key for key in keys if key not in self._settled]
        self._settled.update(fresh)
        return fresh

    def _some(self, kinds: tuple[Callable[[], AnyCommand], ...]) -> list[AnyCommand]:
        return [make() for make in self._several(kinds, 1, 4)]

    def _one(self, things: Sequence[T]) -> T:
        return self._several(things, 1, 1)[0]

    def _several(
        self, things: Sequence[T], least: int = 0, most: int | None = None, *, unique: bool = False
    ) -> list[T]:
        if not things:
            return []
        places = self._draw(_places(len(things), least, most, unique=unique))
        return [things[place] for place in places]
