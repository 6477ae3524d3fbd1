"""The tick's phase of replays: copies that may be stored are stored, and others are counted."""

from collections import Counter
from collections.abc import Sequence

from zq.features.archive.model_copies import StoreCopies
from zq.model.commands import Enqueue, EnqueueResult, Entered
from zq.model.errors import KeyConflict, KeyTaken, QueueFull, ZqError
from zq.store.api import Sliced
from zq.tick.intake import enqueue_told
from zq.tick.phases import Phase, Stage
from zq.tick.work import UnitOfWork, kept_by


def store_copies(work: UnitOfWork, commands: Sequence[StoreCopies]) -> Sliced[list[object]]:
    """Store copies of completed jobs, one command after the other."""
    replies: list[object] = []
    for command in commands:
        reply = yield from _store(work, command)
        replies.append(reply)
    return replies


def _store(work: UnitOfWork, command: StoreCopies) -> Sliced[Entered | QueueFull]:
    kept = Counter[str]()
    coming: list[Enqueue] = []
    for key, job in zip(command.keys, command.jobs, strict=True):
        if (why := kept_by(work, job)) is not None:
            kept[why] += 1
            continue
        coming.append(
            Enqueue(
                keys=(key,),
                jobs=(job,),
                now=command.now,
                size=job.payload_size,
                reach=command.reach,
                defaults=command.defaults,
            )
        )
    replies = yield from enqueue_told(work, coming)
    for reply in replies:
        if isinstance(reply, QueueFull):
            reply.is_partial = any(isinstance(each, EnqueueResult) for each in replies)
            return reply
        if isinstance(reply, KeyConflict) or (isinstance(reply, EnqueueResult) and reply.known):
            kept[KeyTaken.code] += 1
        elif isinstance(reply, ZqError):
            kept[reply.code] += 1
    return Entered(len(command.jobs) - kept.total(), kept)


PHASES = (Phase(Stage.ENQUEUE, store_copies, (StoreCopies,)),)
