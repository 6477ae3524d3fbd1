"""The tick's phases of cron: it writes groups and entries, and fires entries that are due.

The scheduler read and computed the firings before the tick; here they are compared with the store
once more. The job and the entry's next time are stored in one transaction, so a crash can neither
lose nor double a firing. The jobs go through the same intake as all others.
"""

from collections.abc import Sequence
from typing import get_args

import msgspec

from zq.features.batches.model_jobs import StalePlan, batch_of
from zq.features.crons.model import (
    NEXT_FIRING,
    RETRY_MS,
    CronEntry,
    DeleteCrons,
    Fire,
    Firing,
    Template,
    WriteCron,
)
from zq.model.checksums import ChecksumMismatch, check_text, checksum
from zq.model.commands import Enqueue
from zq.model.errors import ZqError
from zq.model.job import NewJob
from zq.store.api import Sliced, as_json
from zq.tick.fitting import ComingPayloads
from zq.tick.hooks import Hooks, Options
from zq.tick.intake import enqueue_told
from zq.tick.phases import Phase, Stage
from zq.tick.work import UnitOfWork, admit_new, refuse_new

SLICE_ENTRIES = 256
"""How many entries are written before other tasks may have a turn."""

AnyCronChange = WriteCron | DeleteCrons

_template = msgspec.json.Decoder(Template)


def change_crons(work: UnitOfWork, commands: Sequence[AnyCronChange]) -> Sliced[list[object]]:
    """Write and delete groups and entries, one command after the other.

    What templates bring along for their jobs is created with them, so that a firing finds it.
    """
    work.wanted.add(NEXT_FIRING)
    replies: list[object] = []
    for command in commands:
        if isinstance(command, WriteCron):
            templates = [entry.job for entry in command.entries]
            refusal: ZqError | None = None
            if not command.same_jobs:
                refusal = refuse_new(work, templates, command.maker, "entries")
                refusal = refusal or (yield from _misfit(work, templates))
            if refusal is None:
                admit_new(work, templates, command.maker)
                yield from _write(work, command)
            replies.append(refusal)
        else:
            replies.append(_delete(work, command))
    return replies


def _misfit(work: UnitOfWork, templates: Sequence[NewJob]) -> Sliced[ZqError | None]:
    """Why the job of an entry may not come to its queue, or to a target of that."""
    payloads = ComingPayloads(work, {job.queue for job in templates})
    for index, job in enumerate(templates):
        if (why := (yield from payloads.refusal(job.queue, job.payload))) is not None:
            return why if len(templates) == 1 else why.about(index, "entries")
    fan_out = work.hooks.fan_out
    if fan_out is None or not work.rulebook.fanning:
        return None
    return (yield from fan_out.refusal(work, templates, "entries"))


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """Groups and entries are settings: they go with all others."""
    return Hooks(cleared=_clear)


def _clear(work: UnitOfWork, settings: bool) -> None:
    if not settings:
        return
    work.wanted.add(NEXT_FIRING)
    work.tx.write("clear_crons")
    work.tx.write("clear_cron_groups")


def fire(work: UnitOfWork, commands: Sequence[Fire]) -> Sliced[list[object]]:
    """Enqueue the jobs of entries that are due, and move the entries on."""
    work.wanted.add(NEXT_FIRING)
    replies: list[object] = []
    for command in commands:
        moved: object = yield from _fire(work, command.firings)
        replies.append(moved)
    return replies


def _write(work: UnitOfWork, command: WriteCron) -> Sliced[None]:
    group = command.group
    if command.whole:
        names = [entry.name for entry in command.entries]
        work.tx.write("delete_other_crons", cron=group.name, names=names)
    work.tx.write(
        "write_cron_group",
        cron=group.name,
        timezone=group.timezone,
        paused=int(group.paused),
        paused_at=group.paused_at,
        resumed_at=group.resumed_at,
    )
    for start in range(0, len(command.entries), SLICE_ENTRIES):
        entries = command.entries[start : start + SLICE_ENTRIES]
        # Each statement reads its own list of names: all of them would make this quadratic.
        kept = [entry.name for entry in entries if entry.name in command.kept]
        rows = [_row(entry) for entry in entries]
        work.tx.write("write_crons", cron=group.name, entries=rows, kept=kept)
        yield None
    moves = [(group.name, entry, next_at, None) for entry, next_at in command.times]
    for start in range(0, len(moves), SLICE_ENTRIES):
        work.tx.write("move_crons", moves=moves[start : start + SLICE_ENTRIES], now=work.now)
        yield None


def _row(entry: CronEntry) -> tuple[object, ...]:
    """The columns of an entry, except its group."""
    job = as_json(entry.job)
    return (
        entry.name,
        entry.expression,
        entry.timezone,
        int(entry.paused),
        entry.paused_at,
        entry.resumed_at,
        entry.next_at,
        entry.last_at,
        entry.timed_at,
        entry.job.queue,
        job,
        checksum(job),
    )


def _delete(work: UnitOfWork, command: DeleteCrons) -> int:
    groups = list(command.groups)
    if command.entry is not None:
        return work.tx.run("delete_cron", cron=groups[0], entry=command.entry)
    work.tx.write("delete_crons_of", groups=groups)
    return work.tx.run("delete_cron_groups", groups=groups)


def _fire(work: UnitOfWork, firings: Sequence[Firing]) -> Sliced[int | StalePlan]:
    """Return how many entries have moved on."""
    guards = [(f.group, f.entry, f.expression, f.zone, f.at) for f in firings]
    held = work.tx.table("read_guarded", firings=guards)
    jobs: dict[int, Template] = {}
    moving = set[int]()
    for index, text, stored in held:
        firing = firings[index]
        try:
            if text is not None and firing.key is not None:
                check_text("its job", text, stored)
                job = _template.decode(text)
                if batch_of(job) is not None and job != firing.job:
                    # It was planned for an earlier version of the entry.
                    continue
                jobs[index] = job
            moving.add(index)
        except (ChecksumMismatch, msgspec.MsgspecError):
            work.tx.set_aside("cron_entries", [(firing.group, firing.entry)])
    refused = yield from _enqueue(work, firings, jobs)
    if isinstance(refused, StalePlan):
        return refused
    moves = []
    for index in sorted(moving):
        firing, then, last_at = firings[index], firings[index].then, None
        if index in refused:
            later = work.now + RETRY_MS
            then = later if then is None else min(then, later)
        elif index in jobs:
            last_at = work.now
        moves.append((firing.group, firing.entry, then, last_at))
    if moves:
        work.tx.write("move_crons", moves=moves, now=work.now)
    return len(moves)


def _enqueue(
    work: UnitOfWork, firings: Sequence[Firing], jobs: dict[int, Template]
) -> Sliced[set[int] | StalePlan]:
    """Store or fold the jobs, each by itself. Return which of them their queues did not take."""
    if not jobs:
        return set()
    payloads = ComingPayloads(work, {job.queue for job in jobs.values()})
    refused = set[int]()
    for index, job in jobs.items():
        if (yield from payloads.refusal(job.queue, job.payload)) is not None:
            refused.add(index)
    coming = {index: job for index, job in jobs.items() if index not in refused}
    commands = [
        Enqueue(
            keys=(firings[index].key or 0,),
            jobs=(job,),
            now=work.now,
            size=job.payload_size,
            reach=job.reach,
            plan=firings[index].plan,
        )
        for index, job in coming.items()
    ]
    replies = yield from enqueue_told(work, commands)
    for index, reply in zip(coming, replies, strict=True):
        if isinstance(reply, StalePlan):
            return reply
        if isinstance(reply, ZqError):
            refused.add(index)
    work.effects.tally.fired += len(jobs) - len(refused)
    work.effects.tally.put_off += len(refused)
    return refused


PHASES = (
    Phase(Stage.CHANGE, change_crons, get_args(AnyCronChange)),
    Phase(Stage.ENQUEUE, fire, (Fire,)),
)
