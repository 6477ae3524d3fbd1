"""The interfaces of a backend's requests, and the paths that several kinds of them share."""

from collections.abc import Awaitable, Mapping
from typing import Protocol, TypeVar
from urllib.parse import quote, urlencode

from zq.client.http.transport import Reply
from zq.client.values import JobQuery
from zq.model.filters import ValueRange

T = TypeVar("T")

SWEEP_MS = 3_600_000
"""The server answers a sweep at its end, after many slices."""


class HttpCall(Protocol):
    """Sends a request and returns the answer. A refusal raises an error."""

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        safe: bool = False,
        wait_ms: int = 0,
    ) -> Awaitable[Reply]: ...


class HttpRead(Protocol):
    """Converts an answer to a value."""

    def __call__(self, reply: Reply, type: type[T]) -> T: ...


def job_path(id: str) -> str:
    """The path of one job."""
    return f"/jobs/{quote(id, safe='')}"


def with_query(path: str, parameters: Mapping[str, object]) -> str:
    """The path with parameters, if there are any."""
    return f"{path}?{urlencode(parameters)}" if parameters else path


def filtered(path: str, query: JobQuery, **more: str) -> str:
    """The path with a filter of jobs, and with `more` parameters."""
    lists = {
        "status": query.statuses,
        "queue": query.queues,
        "type": query.types,
        "id": query.ids,
        "budgets.key": query.budgets,
        "error": query.errors,
        "group": query.groups,
    }
    ranges = {
        "priority": query.priority,
        "attempts": query.attempts,
        "ready_at": query.ready_at,
        "finished_at": query.finished_at,
    }
    parameters = {name: ",".join(values) for name, values in lists.items() if values} | more
    parameters |= {name: _written(range) for name, range in ranges.items() if range is not None}
    if query.upto is not None:
        parameters["upto"] = query.upto
    if query.filter is not None:
        parameters["filter"] = query.filter
    if query.search is not None:
        parameters["search"] = query.search
    return with_query(path, parameters)


def _written(range: ValueRange) -> str:
    low, high = ("" if bound is None else str(bound) for bound in (range.low, range.high))
    return f"{low}..{high}"
