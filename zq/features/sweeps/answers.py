"""What the verbs do that change many jobs, or take a change back."""

import re

from zq.answers import Asked, VerbAnswers
from zq.features.sweeps import verbs
from zq.features.sweeps.model import MOST_REASON, Confirmation, PreviewNeeded, SweepAuthor
from zq.features.sweeps.service import EndedSweeps
from zq.features.sweeps.service_running import AFFECTED, Sweep, Sweeps
from zq.features.sweeps.verbs import (
    Cancelled,
    Patched,
    Redriven,
    Requeued,
    SweepDocument,
    SweepPreviewDocument,
    SweepsDocument,
    UndoneDocument,
    ended_document,
    preview_document,
    running_document,
)
from zq.model.errors import InvalidRequest
from zq.model.filters import Filter
from zq.model.ids import IdCodec
from zq.model.job import MAX_TIME
from zq.verbs import Deleted
from zq.wire.bodies import decode_cancel, decode_force, decode_patch
from zq.wire.documents import JobDocument, job_document
from zq.wire.ids import key_of
from zq.wire.query import QUERY, job_filter, limit_in, refuse_filter_in_body, switch, whole_number
from zq.wire.settings import decode_limit


async def chosen(asked: Asked, verb: str, *, force: bool = False) -> tuple[Filter, SweepAuthor]:
    """The filter of a change, and its author.

    The operators' page has to send the `upto` and the `count` of a preview, and others may. The
    change is then refused if it would do more than what the preview has told. Raises
    `InvalidRequest`, or the errors of `Sweeps.confirm`.
    """
    values, services = asked.query, asked.services
    author = author_of(asked)
    filter = job_filter(values, services.ids, asked.reach)
    if "count" in values and "upto" in values:
        count = whole_number("count", values["count"], MAX_TIME)
        confirmation = Confirmation(count, values.get("typed"))
        await services[Sweeps].confirm(verb, AFFECTED[verb](filter, force), confirmation)
    elif asked.careful or "count" in values:
        raise PreviewNeeded(
            "this change was not looked ahead to: ask GET /sweeps/preview with the same filter"
            " and verb, and send its `upto` and `count`"
        )
    return filter, author


def author_of(asked: Asked) -> SweepAuthor:
    """The name of the sender, and the `reason` in the query. Raises `InvalidRequest`."""
    reason = asked.query.get("reason")
    if reason is not None and len(reason) > MOST_REASON:
        raise InvalidRequest(f"{QUERY}`reason` is longer than {MOST_REASON} characters")
    return SweepAuthor(asked.actor, reason)


ANSWERS = VerbAnswers()

MOST_ENDED = 500

_ID = re.compile(r"[1-9]\d{0,17}", re.ASCII)

OLDER_VERBS = {"redrive": "requeue"}

# Many jobs


@ANSWERS.to(verbs.PATCH)
async def patch(asked: Asked) -> Patched:
    """Change the matching jobs. Errors in the body are reported before errors in the query.

    If some cannot enter the queue that the body names, `kept` counts them: another job has their
    unique key (`key_taken`), the queue has no room (`queue_full`), or their payloads do not match
    its schema (`schema_mismatch`). They stay as they were.
    """
    refuse_filter_in_body(asked.body, asked.codec, ("queue", "priority", "ready_at"))
    change = decode_patch(asked.body, asked.codec)
    filter, author = await chosen(asked, "patch")
    sweep = await asked.services[Sweeps].patch(filter, change, author)
    return Patched(sweep.changed, dict(sweep.kept))


@ANSWERS.to(verbs.DELETE)
async def delete(asked: Asked) -> Deleted:
    """Delete the matching jobs. Without a filter, delete all."""
    filter, author = await chosen(asked, "delete")
    return Deleted(await asked.services[Sweeps].delete(filter, author))


@ANSWERS.to(verbs.REQUEUE)
async def requeue(asked: Asked) -> Requeued:
    """Make the matching dead jobs ready again, at most `limit`: 200 with their number.

    If the query names queues, this is also about the jobs that wait in these
    queues as in dead-letter queues. Such jobs go back to the queue that they came from. A job
    whose queue has no room (`queue_full`) or a schema that it does not match (`schema_mismatch`),
    whose budget is gone (`budget_gone`), or whose unique key another job has by now (`key_taken`)
    stays as it is, and `kept` counts it.
    """
    sweep = await _requeued(asked)
    return Requeued(sweep.changed, dict(sweep.kept))


@ANSWERS.to(verbs.REDRIVE)
async def redrive(asked: Asked) -> Redriven:
    """Do as `POST /jobs/requeue` does, of which this is an older name: `redriven` counts."""
    sweep = await _requeued(asked)
    return Redriven(sweep.changed, dict(sweep.kept))


async def _requeued(asked: Asked) -> Sweep:
    refuse_filter_in_body(asked.body, asked.codec)
    limit = decode_limit(asked.body, asked.codec)
    filter, author = await chosen(asked, "requeue")
    return await asked.services[Sweeps].requeue(filter, limit, author)


@ANSWERS.to(verbs.CANCEL)
async def cancel(asked: Asked) -> Cancelled:
    """Cancel the matching jobs. Without a filter, cancel all that can be cancelled.

    The operators' page gets `undo`, the id of the sweep, too.
    """
    refuse_filter_in_body(asked.body, asked.codec)
    force = decode_force(asked.body, asked.codec)
    filter, author = await chosen(asked, "cancel", force=force)
    sweep = await asked.services[Sweeps].cancel(filter, force, author)
    done = Cancelled(sweep.changed)
    if asked.careful and sweep.changed:
        done.undo = str(sweep.id)
    return done


# One job


@ANSWERS.to(verbs.REQUEUE_ONE)
async def requeue_one(asked: Asked) -> JobDocument:
    """Make a dead job ready again where it died: 200 with the job, 409 if it is not dead.

    It is 409 also if another job has its unique key by now, 429 if its queue has no room, and 422
    if its payload does not match the schema of the queue.
    Its attempts begin anew, and its error history is kept. With `home=true` it goes back to the
    queue in which it died first, also if it waits in a dead-letter queue.
    """
    return await _requeued_one(asked)


@ANSWERS.to(verbs.RETRY_ONE)
async def retry_one(asked: Asked) -> JobDocument:
    """Do as `POST /jobs/{id}/requeue` does, of which this is an older name."""
    return await _requeued_one(asked)


async def _requeued_one(asked: Asked) -> JobDocument:
    jobs, ids = asked.services.jobs, asked.services.ids
    verb = jobs.send_home if switch("home", asked.query) else jobs.requeue
    job = await verb(key_of(asked.path["id"], ids), asked.reach)
    return job_document(job, ids, with_payload=False)


@ANSWERS.to(verbs.CANCEL_ONE)
async def cancel_one(asked: Asked) -> JobDocument:
    """Cancel one job, one in flight only by force. Its stream is told on request.

    With `undo`, which the operators' page need not say, the answer has `undo`: the id of a
    sweep that `POST /sweeps/{id}/undo` takes back, as long as the job is retained.
    """
    services, reach = asked.services, asked.reach
    force, undo = decode_cancel(asked.body, asked.codec)
    key = key_of(asked.path["id"], services.ids)
    if not (asked.careful if undo is None else undo):
        job = await services.jobs.cancel(key, force, reach)
        return job_document(job, services.ids, with_payload=False)
    job, sweep = await services[Sweeps].cancel_one(key, force, reach, SweepAuthor(asked.actor))
    document = job_document(job, services.ids, with_payload=False)
    document.undo = None if sweep is None else str(sweep)
    return document


# Sweeps


@ANSWERS.to(verbs.PREVIEW)
async def preview(asked: Asked) -> SweepPreviewDocument:
    """How many jobs a change by filter would change now, and an id of this moment: `upto`.

    The change by the same filter and this `upto` leaves alone what arrives after the look.
    `exact` is false where there are more than 10,000 jobs that are not all jobs of some queues
    and statuses: then there are at least `count`. `by` counts them by queue and status, the 50
    most frequent first, and `more` is how many of these are left out. `no_effect` counts the
    jobs that match and would stay as they are, where that is known. `verb` is the change:
    `delete` (or none), `cancel`, `requeue` or `patch`.
    """
    verb, force = asked.query.get("verb", "delete"), switch("force", asked.query)
    verb = OLDER_VERBS.get(verb, verb)
    if verb not in AFFECTED:
        raise InvalidRequest(f"`verb` must be one of {', '.join(AFFECTED)}, not {verb!r}")
    ids = asked.services.ids
    filter = job_filter(asked.query, ids, asked.reach)
    found = await asked.services[Sweeps].preview(AFFECTED[verb](filter, force), filter)
    return preview_document(found, ids)


@ANSWERS.to(verbs.RUNNING)
async def running(asked: Asked) -> SweepsDocument:
    """The sweeps under way, the oldest first, with their progress.

    `changed` counts jobs, and `counted` is what a preview of the change has counted.
    `progress` is the part of all ids that was passed, from 0 to 1.
    """
    sweeps = asked.services[Sweeps].running(asked.reach)
    return SweepsDocument([_shown(sweep, asked.services.ids) for sweep in sweeps])


@ANSWERS.to(verbs.ENDED_ONES)
async def ended(asked: Asked) -> SweepsDocument:
    """The sweeps that have changed jobs and no longer run, the latest first.

    One whose `progress` is below 1 was stopped, or its server was. `undone` counts the jobs
    that were taken back. `before` leaves out those from this id on.
    """
    given = asked.query
    before = whole_number("before", given["before"], MAX_TIME) if "before" in given else None
    limit = limit_in(given, 50, MOST_ENDED)
    found = await asked.services[EndedSweeps].latest(asked.reach, before, limit)
    return SweepsDocument([ended_document(sweep, asked.services.ids) for sweep in found])


@ANSWERS.to(verbs.GET)
async def get(asked: Asked) -> SweepDocument:
    """One sweep, which runs or has ended.

    For a cancellation that has ended, `left` is how many of its jobs are still there to be
    taken back. `exact` is false where there are more than 10,000: then there are at least so
    many.
    """
    services, id = asked.services, _sweep_id(asked)
    under_way = services[Sweeps].under_way(id, asked.reach)
    if under_way is not None:
        return _shown(under_way, services.ids)
    sweep = await services[EndedSweeps].get(id, asked.reach)
    document = ended_document(sweep, services.ids)
    if sweep.outline.verb == "cancel":
        left = await services[EndedSweeps].left(sweep)
        document.left, document.exact = left.jobs, left.exact
    return document


@ANSWERS.to(verbs.UNDO)
async def undo(asked: Asked) -> UndoneDocument:
    """Take back the jobs that a sweep has cancelled, and no others: 200 with their number.

    They wait again in their old places, with their attempts and unique keys. `kept` counts
    those that stay cancelled: another job has their unique key (`key_taken`), their time to
    live is over (`expired`), a budget is gone (`budget_gone`), their queue has no room
    (`queue_full`), or a schema that they do not match (`schema_mismatch`). `gone` counts those
    that are deleted or no longer retained. 409 if there is nothing to take back.
    """
    ended_sweeps, author = asked.services[EndedSweeps], author_of(asked)
    return UndoneDocument(*await ended_sweeps.undo(_sweep_id(asked), asked.reach, author))


@ANSWERS.to(verbs.STOP)
async def stop(asked: Asked) -> None:
    """Stop a sweep between two slices: 204. Its changes so far stay.

    The client that began it gets the number so far.
    """
    asked.services[Sweeps].cut_short(_sweep_id(asked), asked.reach)


def _sweep_id(asked: Asked) -> int:
    """The id in the path; 0 if it cannot be one. No sweep has that."""
    text = asked.path["id"]
    return int(text) if _ID.fullmatch(text) else 0


def _shown(sweep: Sweep, ids: IdCodec) -> SweepDocument:
    return running_document(sweep.id, sweep.outline, sweep.changed, sweep.passed, ids)
