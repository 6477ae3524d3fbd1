"""GET /failures: failures by their causes."""

from aiohttp import web

from zq.features.failures.model import FailureRange
from zq.features.failures.service import FailureOrder, Failures
from zq.features.failures.wire import failures_document
from zq.http.api.endpoints import answer, endpoint
from zq.http.api.query import parameters
from zq.http.door import Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.service.services import Services
from zq.wire.codecs import BodyCodec
from zq.wire.query import choice, names


class FailuresApi:
    """`/failures`."""

    def __init__(self, services: Services) -> None:
        self._failures, self._ids = services[Failures], services.ids

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/failures", endpoint(self.list), KeyScope.READ, query=True)]

    async def list(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Failures by their causes over a `range`: of all queues, or of those in `queue`.

        The range is `5m`, `15m`, `1h` (unless another one is given), `24h` or `7d`. It slides: its
        last minute, or hour for `24h` and `7d`, is still open. Causes that have not come in it are
        left out. The `order` is by `count`, the most frequent one first, by `queue`, or by `time`,
        the latest one first. At most 200 are shown. Each has its `message` without ids, quoted
        texts, paths and numbers. Filters of jobs take its `id` as `error`. The causes that find no
        room are counted together as `other`, in the queue `*`.
        """
        values = parameters(request, ("queue", "range", "order"))
        range = choice(values, "range", FailureRange, FailureRange.HOUR)
        order = choice(values, "order", FailureOrder, FailureOrder.COUNT)
        queues = names(values.get("queue"))
        look = await self._failures.look(reach_of(request), queues, range, order)
        document = failures_document(range, look.first, self._ids, **look.figures)
        return answer(document, accepted)
