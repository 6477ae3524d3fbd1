"""What the verbs about waiting do."""

import re

from zq.answers import Asked, VerbAnswers
from zq.features.diagnosis.service import StuckWork
from zq.features.waits import verbs
from zq.features.waits.model import QueueWhy, TimePlace
from zq.features.waits.service import Waits
from zq.features.waits.verbs import (
    OpenGroupsDocument,
    ScheduledJobsDocument,
    StuckJobsDocument,
    WaitDocument,
    group_document,
    scheduled_document,
    stuck_document,
)
from zq.model.errors import InvalidRequest
from zq.model.ids import IdCodec
from zq.model.job import MAX_TIME
from zq.model.lifecycle import NAMES
from zq.model.names import check_name
from zq.wire.ids import key_of
from zq.wire.query import QUERY, limit_in, whole_number

ANSWERS = VerbAnswers()

MOST_SCHEDULED = 500
MOST_GROUPS = 500
MOST_STUCK = 500

_PLACE = re.compile(r"(\d{1,20})-(.+)", re.ASCII)


@ANSWERS.to(verbs.WHY)
async def why(asked: Asked) -> WaitDocument:
    """Why a job does not run now: `reasons`, the strongest first.

    Each has a `code`, a `text` for people, and fields of that code: `queue`, `job`, `worker`,
    `budget`, `fair_key`, `share`, `until` (milliseconds), `count`. Codes: `finished`,
    `in_flight`, `scheduled`, `backing_off`, `expiring`, `paused`, `group` (`job` has to end
    first), `fair` (the job's key is number `count` of those that wait, or has reached a limit),
    `budget`, `concurrency`, `rate`, `server_limit`, `leaves` (its queue is for another server or a
    device, and for no worker here), `no_worker`, `workers_busy`, `ahead` (`count` jobs of its queue
    come first, counted up to 1,000), `next`.
    """
    id, ids = asked.path["id"], asked.services.ids
    verdict = await asked.services[Waits].why(key_of(id, ids), asked.reach)
    return WaitDocument(id, NAMES[verdict.status], verdict.reasons)


@ANSWERS.to(verbs.WHY_QUEUE)
async def why_of(asked: Asked) -> QueueWhy:
    """Why the jobs of a queue wait: `lines`, the strongest reason first.

    Each line has a `text` for people and, if something would help, its `remedy`: a code as in
    `GET /jobs/{id}/why`. `gates` has what holds the jobs now: its `kind` (such a code), a
    `text`, and `until` (milliseconds) if it is known when it opens. `ahead` is the number of
    its ready jobs, `slots_free` of its `workers` say how many more jobs these could run.
    """
    queue = check_name("queue", asked.path["queue"])
    return await asked.services[Waits].why_of(queue, asked.reach)


@ANSWERS.to(verbs.SCHEDULED)
async def scheduled(asked: Asked) -> ScheduledJobsDocument:
    """The scheduled jobs by their times, those that are ready first: up to `limit` (50).

    Each has `id`, `queue`, `type`, `priority`, `ready_at` and `attempts`, which are more than 0
    if the job has failed and comes again. `next` is there if more follow: as `after`, it
    begins the next page.
    """
    given, ids = asked.query, asked.services.ids
    limit = limit_in(given, 50, MOST_SCHEDULED)
    place = TimePlace(-1, -1) if "after" not in given else _place(given["after"], ids)
    found = await asked.services[Waits].scheduled(asked.reach, place, limit + 1)
    shown = [scheduled_document(job, ids) for job in found[:limit]]
    document = ScheduledJobsDocument(shown)
    if len(found) > limit:
        document.next = f"{shown[-1].ready_at}-{shown[-1].id}"
    return document


@ANSWERS.to(verbs.GROUPS)
async def groups(asked: Asked) -> OpenGroupsDocument:
    """The groups of a queue that have unfinished jobs, by name: up to `limit` (50).

    Each has `group`, `open` (the `id`, `type`, `status`, `attempts`, `ready_at` and, in flight,
    `dequeued_at` of the job that has to end first) and `behind` (how many jobs wait for it,
    counted up to 1,000). `after` leaves out the groups up to this name.
    """
    given, ids = asked.query, asked.services.ids
    limit = limit_in(given, 50, MOST_GROUPS)
    queue, after = check_name("queue", asked.path["queue"]), given.get("after", "")
    found = await asked.services[Waits].groups(queue, asked.reach, after, limit)
    documents = [group_document(each, ids) for each in found]
    return OpenGroupsDocument(documents)


@ANSWERS.to(verbs.STUCK)
async def stuck(asked: Asked) -> StuckJobsDocument:
    """Jobs in flight for more than a minute, and for more than twice the p99 of their type.

    The p99 is of the runs of a day, of the queue if the type has seldom run. Where none is
    known, an hour counts. Those that run for the longest time come first: up to `limit` (50).
    Each has the `id`, `queue`, `type`, `attempts`, `deliveries`, `dequeued_at` and, if they are
    known, `worker` and `p99_ms`. `deliveries` grow faster than `attempts` if its workers
    vanish.
    """
    given, ids = asked.query, asked.services.ids
    limit = limit_in(given, 50, MOST_STUCK)
    found = await asked.services[StuckWork].find(asked.reach, limit)
    documents = [stuck_document(each.job, each.worker, each.p99_ms, ids) for each in found]
    return StuckJobsDocument(documents)


def _place(text: str, ids: IdCodec) -> TimePlace:
    match = _PLACE.fullmatch(text)
    key = None if match is None else ids.key(match[2])
    if match is None or key is None:
        raise InvalidRequest(
            f"{QUERY}`after` must be the `next` of a page of this server, not {text[:64]!r}"
        )
    return TimePlace(whole_number("after", match[1], MAX_TIME), key)
