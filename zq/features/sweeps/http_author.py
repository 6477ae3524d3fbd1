"""Which jobs a change by filter is about, who asks for it, and why."""

from collections.abc import Mapping

from aiohttp import web

from zq.features.sweeps.errors import PreviewNeeded
from zq.features.sweeps.model import MOST_REASON, Confirmation, SweepAuthor
from zq.features.sweeps.service import Sweeps
from zq.features.sweeps.service_one import AFFECTED
from zq.http.api.query import is_careful, parameters
from zq.http.guard import actor_of, reach_of
from zq.model.errors import InvalidRequest
from zq.model.filters import Filter
from zq.model.job import MAX_TIME
from zq.service.services import Services
from zq.wire.query import FILTERS, QUERY, job_filter, whole_number

CHANGING = (*FILTERS, "reason", "count", "typed")
"""The parameters of a change by filter."""


class Choices:
    """Reads the choice of jobs in a query, and holds it against its preview."""

    def __init__(self, services: Services) -> None:
        self._sweeps = services[Sweeps]
        self._ids = services.ids

    async def of(
        self, request: web.BaseRequest, verb: str, *, force: bool = False
    ) -> tuple[Filter, SweepAuthor]:
        """The filter of a change, and its author.

        The operators' page has to send the `upto` and the `count` of a preview, and others may. The
        change is then refused if it would do more than what the preview has told. Raises
        `InvalidRequest`, or the errors of `Sweeps.confirm`.
        """
        values = parameters(request, CHANGING)
        author = author_of(request, values)
        filter = job_filter(values, self._ids, reach_of(request))
        if "count" in values and "upto" in values:
            count = whole_number("count", values["count"], MAX_TIME)
            confirmation = Confirmation(count, values.get("typed"))
            await self._sweeps.confirm(verb, AFFECTED[verb](filter, force), confirmation)
        elif is_careful(request) or "count" in values:
            raise PreviewNeeded(
                "this change was not looked ahead to: ask GET /sweeps/preview with the same filter"
                " and verb, and send its `upto` and `count`"
            )
        return filter, author


def author_of(request: web.BaseRequest, values: Mapping[str, str]) -> SweepAuthor:
    """The name of the request's key, and the `reason` in its query. Raises `InvalidRequest`."""
    reason = values.get("reason")
    if reason is not None and len(reason) > MOST_REASON:
        raise InvalidRequest(f"{QUERY}`reason` is longer than {MOST_REASON} characters")
    return SweepAuthor(actor_of(request), reason)
