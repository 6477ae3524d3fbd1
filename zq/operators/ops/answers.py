"""What the verbs about statistics of queues do."""

from msgspec import UNSET

from zq.answers import Asked, Rows, VerbAnswers
from zq.engine.subscribers.figures import NO_FLOW, QueueFlow
from zq.features.diagnosis.service_watched import WatchedQueue
from zq.model.lifecycle import NAMES
from zq.model.names import check_name
from zq.operators.ops import verbs
from zq.operators.ops.verbs import QUIET, FlowDocument, QueueStatsDocument, StatsDocument
from zq.operators.page.service import Overviews

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.STATS)
async def stats(asked: Asked) -> Rows[StatsDocument]:
    """Every queue that has jobs, or had traffic in the last five minutes.

    For each queue: jobs by status, the age of the longest waiting ready job, and deliveries,
    completions and failures since the start, with their rates over one and five minutes;
    how many `workers` have a stream open for it, whether it is `paused`, and its `state` (such
    as `no_worker`, `failing` or `growing`), if something is wrong with it.
    """
    found = await asked.services[Overviews].queues(asked.reach)
    return Rows("queues", found, _document)


@ANSWERS.to(verbs.STATS_OF_QUEUE)
async def stats_of_queue(asked: Asked) -> QueueStatsDocument:
    """One queue, as in `GET /stats`. A queue that does not exist is an empty one."""
    queue = check_name("queue", asked.path["queue"])
    (found,) = await asked.services[Overviews].queues(asked.reach, queue)
    return _document(found)


_NONE = dict.fromkeys(NAMES.values(), 0)


def _document(queue: WatchedQueue) -> QueueStatsDocument:
    figures, state = queue.figures, queue.state
    age, settings = figures.oldest_ready_age_ms, queue.settings
    return QueueStatsDocument(
        figures.queue,
        _NONE | {NAMES[status]: n for status, n in figures.counts.items()},
        _flow(figures.deliveries),
        _flow(figures.completions),
        _flow(figures.failures),
        UNSET if age is None else age,
        queue.taken_by.workers,
        UNSET if state is None else state,
        UNSET if state is None or queue.worst is None else queue.worst.text,
        True if settings is not None and settings.paused else UNSET,
    )


def _flow(flow: QueueFlow) -> FlowDocument:
    if flow is NO_FLOW:
        return QUIET
    return FlowDocument(flow.total, round(flow.minute, 3), round(flow.five_minutes, 3))
