"""Which jobs a change by filter is about, who asks for it, and why."""

from zq.answers import Asked
from zq.features.sweeps.errors import PreviewNeeded
from zq.features.sweeps.model import MOST_REASON, Confirmation, SweepAuthor
from zq.features.sweeps.service import Sweeps
from zq.features.sweeps.service_one import AFFECTED
from zq.model.errors import InvalidRequest
from zq.model.filters import Filter
from zq.model.job import MAX_TIME
from zq.wire.query import QUERY, job_filter, whole_number


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
