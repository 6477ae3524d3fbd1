"""What the verbs about the backlog do."""

from collections.abc import Sequence

from msgspec import UNSET

from zq.answers import Asked, VerbAnswers
from zq.features.backlog import verbs
from zq.features.backlog.service import Backlogs
from zq.features.backlog.verbs import BacklogDocument
from zq.model.names import check_name
from zq.wire.query import invalid_query, names, whole_number

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.OF_QUEUE)
async def of_queue(asked: Asked) -> BacklogDocument:
    """How many jobs of a queue could run now, and how many workers they need.

    `ready` are the jobs that could run now, `running` those in flight, `jobs` both. `held` counts
    the other ready jobs by the first of what holds them: `paused`, `group`, `fair` (a limit of
    their key), `budget`, `concurrency`; and `uncounted`, in queues where so many wait in groups or
    for limits that not all were looked at (100,000 jobs, 1,000 lines). Of a queue whose jobs leave
    for another server or a device, all are held by `leaves`, and none is running.

    `workers` is `jobs` / `target`, rounded up. Without `target` it is (`running` + `ready` ·
    min(`mean_ms` / 60,000, 1)) / `slots`, rounded up: so many workers have the ready jobs gone in
    a minute. `mean_ms` is how long jobs ran in the last hour, and without it each job counts as
    one slot. A `rate` of the queue bounds the slots by rate · mean. `slots` is how many jobs a
    connected worker runs at a time, and 1 without workers. A queue that never was has 0 of all.
    """
    return await _document(asked, [check_name("queue", asked.path["queue"])])


@ANSWERS.to(verbs.OF_QUEUES)
async def of_queues(asked: Asked) -> BacklogDocument:
    """The backlog of several queues together, as `GET /queues/{queue}/backlog` has it for one.

    It is that of the queues that `queue` names, or of those with ready or running jobs whose names
    begin with `prefix`, or of all with such jobs: up to 100. Queues whose jobs leave are only among
    those that are named. It is for workers that take from all of them.
    """
    given = asked.query
    if "queue" not in given:
        queues = await asked.services[Backlogs].named(given.get("prefix", ""), asked.reach)
    elif "prefix" in given:
        raise invalid_query("give `queue` or `prefix`, not both")
    else:
        queues = [check_name("queue", name) for name in dict.fromkeys(names(given["queue"]))]
        if not queues:
            raise invalid_query("`queue` is empty: name the queues")
    if len(queues) > verbs.MOST_QUEUES:
        raise invalid_query(
            f"these are {len(queues):,} queues, and {verbs.MOST_QUEUES} are added up at most: name"
            " fewer, or a longer prefix"
        )
    return await _document(asked, queues)


async def _document(asked: Asked, queues: Sequence[str]) -> BacklogDocument:
    text = asked.query.get("target")
    target = None if text is None else whole_number("target", text, verbs.MOST_TARGET, 1)
    found = await asked.services[Backlogs].of_queues(queues, target, asked.reach)
    jobs = found.jobs
    return BacklogDocument(
        *(jobs.ready, jobs.running, jobs.all, found.workers),
        {str(gate): n for gate, n in jobs.held.items()},
        UNSET if found.mean_ms is None else round(found.mean_ms, 1),
        UNSET if found.slots is None else round(found.slots, 2),
    )
