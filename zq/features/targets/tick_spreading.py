"""New jobs of queues with targets: one job for each target."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from zq.features.batches.model_jobs import batch_of
from zq.model.commands import Enqueue, EnqueueResult
from zq.model.errors import Unprocessable, ZqError
from zq.model.events import EventType
from zq.model.fixing import fixed
from zq.model.job import NO_EXTRAS, Brief, NewJob
from zq.model.lifecycle import Status
from zq.model.unique import KeySpace
from zq.store.api import Sliced
from zq.tick.fitting import ComingPayloads
from zq.tick.intake import Intake
from zq.tick.work import UnitOfWork

T = TypeVar("T")


def enqueue(work: UnitOfWork, commands: Sequence[Enqueue]) -> Sliced[list[object]]:
    """Store new jobs while some queues have targets. The replies are as for all new jobs."""
    wide: list[Enqueue | ZqError] = []
    for command in commands:
        spread = yield from _spread(work, command)
        wide.append(spread)
    intake = Intake(work, [command for command in wide if isinstance(command, Enqueue)])
    replies: list[object] = []
    for command, each in zip(commands, wide, strict=True):
        if not isinstance(each, Enqueue):
            replies.append(each)
            continue
        reply = yield from intake.take(each)
        if each is not command and isinstance(reply, EnqueueResult):
            _tell_of_twins(work, command, each, reply)
            reply = _gathered(command, each, reply)
        replies.append(reply)
    yield from intake.store()
    return replies


def _spread(work: UnitOfWork, command: Enqueue) -> Sliced[Enqueue | ZqError]:
    """The command with the jobs that its jobs become.

    A job keeps its place and its key for its first target. Its twins for other targets come behind
    all jobs of the command, with keys of their own. Defaults are fixed for the queue that the job
    named. A unique key belongs to each target by itself.
    """
    fanning = work.rulebook.fanning
    if not any(job.queue in fanning for job in command.jobs):
        return command
    if (misfit := (yield from refusal(work, command.jobs))) is not None:
        return misfit
    firsts: list[NewJob] = []
    twins: list[NewJob] = []
    for key, job in zip(command.keys, command.jobs, strict=True):
        targets = fanning.get(job.queue)
        if targets is None:
            firsts.append(job)
            continue
        if command.defaults is not None:
            job = fixed(job, work.settings_of(job.queue), command.defaults)
        extras = msgspec.structs.replace(job.extras or NO_EXTRAS, twin_of=key)
        first, *others = targets
        firsts.append(msgspec.structs.replace(job, queue=first, unique_in=KeySpace.QUEUE))
        twins += [
            msgspec.structs.replace(job, queue=other, unique_in=KeySpace.QUEUE, extras=extras)
            for other in others
        ]
    keys = [*command.keys, *work.new_keys(len(twins))]
    return msgspec.structs.replace(command, jobs=firsts + twins, keys=keys)


def refusal(
    work: UnitOfWork, jobs: Sequence[NewJob], place: str = "jobs"
) -> Sliced[ZqError | None]:
    """Why new jobs may not come to all targets of their queues. A door knows its own queue alone.

    If there are several, the error names one by its `place`.
    """
    fanning = work.rulebook.fanning
    named = {job.queue for job in jobs}
    payloads = ComingPayloads(work, {to for queue in named for to in fanning.get(queue, ())})
    for index, job in enumerate(jobs):
        targets = fanning.get(job.queue, ())
        why: ZqError | None = None
        if targets and batch_of(job) is not None:
            why = Unprocessable(
                f"the queue {job.queue!r} has targets, so its jobs cannot have a batch: enqueue the"
                " job into one of the targets, or leave the batch out"
            )
        for target in targets:
            if why is None and target != job.queue:
                why = yield from payloads.refusal(target, job.payload)
        if why is not None:
            return why if len(jobs) == 1 else why.about(index, place)
    return None


def _tell_of_twins(
    work: UnitOfWork, command: Enqueue, spread: Enqueue, result: EnqueueResult
) -> None:
    """Note the news of the twins. That of the first ones follows from the command's result."""
    joined = result.joined
    twins = [
        Brief(key, job.queue, None, Status.READY, unique_key=job.unique_key)
        for index, (key, job) in enumerate(zip(spread.keys, spread.jobs, strict=True))
        if index >= len(command.jobs) and index not in joined
    ]
    if twins:
        work.effects.news.append((EventType.ENQUEUED, twins))


def _gathered(command: Enqueue, spread: Enqueue, result: EnqueueResult) -> EnqueueResult:
    """The result of the command that was sent, from that of the one which was carried out.

    It tells of the first target of each job.
    """
    count = len(command.jobs)
    renamed = {
        index: stored.queue
        for index, (sent, stored) in enumerate(zip(command.jobs, spread.jobs, strict=False))
        if sent.queue != stored.queue
    }
    return EnqueueResult(
        _below(result.owners, count),
        {index for index in result.replaced if index < count},
        _below(result.gone, count),
        _below(result.expiries, count),
        _below(result.folded, count),
        renamed,
    )


def _below(values: Mapping[int, T], count: int) -> dict[int, T]:
    return {index: value for index, value in values.items() if index < count}
