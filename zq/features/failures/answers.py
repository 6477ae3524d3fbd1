"""What the verb about failures does."""

from zq.answers import Asked, VerbAnswers
from zq.features.failures import verbs
from zq.features.failures.model import FailureOrder, FailureRange
from zq.features.failures.service import Failures
from zq.features.failures.verbs import FailuresDocument, failures_document
from zq.wire.query import choice, names

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.LIST)
async def list(asked: Asked) -> FailuresDocument:
    """Failures by their causes over a `range`: of all queues, or of those in `queue`.

    The range is `5m`, `15m`, `1h` (unless another one is given), `24h` or `7d`. It slides: its
    last minute, or hour for `24h` and `7d`, is still open. Causes that have not come in it are
    left out. The `order` is by `count`, the most frequent one first, by `queue`, or by `time`,
    the latest one first. At most 200 are shown. Each has its `message` without ids, quoted
    texts, paths and numbers. Filters of jobs take its `id` as `error`. The causes that find no
    room are counted together as `other`, in the queue `*`.
    """
    range = choice(asked.query, "range", FailureRange, FailureRange.HOUR)
    order = choice(asked.query, "order", FailureOrder, FailureOrder.COUNT)
    queues, services = names(asked.query.get("queue")), asked.services
    found = await services[Failures].groups(asked.reach, queues, range, order)
    return failures_document(range, found.first, services.ids, **found.figures)
