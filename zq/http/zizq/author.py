"""Who asks for a change by filter, and why."""

from collections.abc import Mapping

from aiohttp import web

from zq.http.guard import actor_of
from zq.http.zizq.query import FILTERS, QUERY, parameters
from zq.model.errors import InvalidRequest
from zq.model.sweeps import MOST_REASON, SweepAuthor

CHANGING = (*FILTERS, "reason")
"""The parameters of a change by filter."""


def choice(request: web.BaseRequest) -> tuple[dict[str, str], SweepAuthor]:
    """The filter of a change in its query, and its author. Raises `InvalidRequest`."""
    values = parameters(request, CHANGING)
    return values, author_of(request, values)


def author_of(request: web.BaseRequest, values: Mapping[str, str]) -> SweepAuthor:
    """The name of the request's key, and the `reason` in its query. Raises `InvalidRequest`."""
    reason = values.get("reason")
    if reason is not None and len(reason) > MOST_REASON:
        raise InvalidRequest(f"{QUERY}`reason` is longer than {MOST_REASON} characters")
    return SweepAuthor(actor_of(request), reason)
