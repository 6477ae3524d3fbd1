"""What the verbs about lanes do."""

from msgspec.structs import asdict

from zq.answers import Asked, VerbAnswers
from zq.features.forward import verbs
from zq.features.forward.model import check_lane
from zq.features.forward.service import Hubs, Lanes, LaneStatus
from zq.features.forward.wire import (
    HubDocument,
    LaneDocument,
    LanesDocument,
    decode_lane,
    decode_resume,
)

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.LIST)
async def lanes(asked: Asked) -> LanesDocument:
    """The lanes by which jobs leave for other servers, and how they go.

    `hubs` has what comes back from these servers: the jobs that are for this one.
    """
    now = asked.services.clock.now_ms()
    found = await asked.services[Lanes].status()
    hubs = [HubDocument(**asdict(hub)) for hub in asked.services[Hubs].all()]
    return LanesDocument([_document(each, now) for each in found], hubs)


@ANSWERS.to(verbs.GET)
async def lane(asked: Asked) -> LaneDocument:
    """One lane: its queues, what waits on it, and the last error with its reason."""
    return await _shown(asked)


@ANSWERS.to(verbs.PUT)
async def put(asked: Asked) -> LaneDocument:
    """Make a lane, or give it another rule: from now on no worker here gets jobs of its `queues`.

    A queue is named, or all queues by the beginning of their names with a star. They go to the zq
    at `url`, with the access key `token`, `batch` (500) at a time, at most `rate` a second. With
    `buffered`, answers of a hub count that a power cut may take back. New jobs are refused once
    `max_bytes` of payloads wait, or a job for `max_age_ms`; with `when_full` `drop_oldest` the
    oldest ones expire instead. With `backlog` `behind`, what was stored in the last minute goes
    first, and older jobs by the lane NAME.backlog, at most `backlog_rate` a second. With `history`
    false, the history of this server does not go there.
    """
    rule = decode_lane(asked.body, asked.codec)
    await asked.services[Lanes].put(check_lane(asked.path["name"]), rule)
    return await _shown(asked)


@ANSWERS.to(verbs.DELETE)
async def drop(asked: Asked) -> None:
    """Forget a lane: 204. Its jobs are for the workers here again.

    Those that are under way may be at the hub as well.
    """
    await asked.services[Lanes].drop(asked.path["name"])


@ANSWERS.to(verbs.PAUSE)
async def pause(asked: Asked) -> LaneDocument:
    """Stop a lane. Its jobs wait, also those that come."""
    await asked.services[Lanes].pause(asked.path["name"], paused=True)
    return await _shown(asked)


@ANSWERS.to(verbs.RESUME)
async def resume(asked: Asked) -> LaneDocument:
    """Let a paused lane go on, or let one try at once that waits after an error."""
    take_over = decode_resume(asked.body, asked.codec).take_over
    await asked.services[Lanes].pause(asked.path["name"], paused=False, take_over=take_over)
    return await _shown(asked)


async def _shown(asked: Asked) -> LaneDocument:
    name = asked.path["name"]
    found = await asked.services[Lanes].status_of(name)
    return _document(found, asked.services.clock.now_ms())


def _document(status: LaneStatus, now: int) -> LaneDocument:
    lane, progress = status.lane, status.progress
    return LaneDocument(
        name=lane.name,
        queues=lane.rule.queues,
        url=lane.rule.url,
        state=progress.state,
        declared=lane.declared,
        waiting=status.waiting,
        under_way=status.under_way,
        bytes=status.bytes,
        lag_ms=status.lag_ms(now),
        oldest_at=status.oldest_at,
        arrived=progress.arrived,
        refused=progress.refused,
        dropped=progress.dropped,
        sent_bytes=progress.sent_bytes,
        succeeded_at=progress.succeeded_at,
        failure=progress.failure,
        failed_at=progress.failed_at,
        retry_at=progress.retry_at,
        error=progress.error,
        error_code=progress.error_code,
        epoch=lane.epoch,
        next=lane.next,
    )
