"""How the client asks for a verb, whatever carries it."""

from collections.abc import Awaitable, Mapping
from typing import Protocol, TypeVar

from zq.client.values import JobQuery
from zq.model.filters import ValueRange
from zq.verbs import Verb

T = TypeVar("T")

SWEEP_MS = 3_600_000
"""The server answers a sweep at its end, after many slices."""

NO_QUERY: Mapping[str, str] = {}


class Ask(Protocol):
    """Asks a server for a verb, with a body, parameters of the query and names for the path.

    `wait_ms` is how long the server may take beyond the usual time. A refusal raises an error.
    """

    def __call__(
        self,
        verb: Verb[T],
        body: object = None,
        query: Mapping[str, str] = NO_QUERY,
        *,
        wait_ms: int = 0,
        **path: str,
    ) -> Awaitable[T]: ...


def filters(query: JobQuery) -> dict[str, str]:
    """The parameters that filter jobs."""
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
    texts = {"upto": query.upto, "filter": query.filter, "search": query.search}
    given = {name: ",".join(values) for name, values in lists.items() if values}
    given |= {name: _written(range) for name, range in ranges.items() if range is not None}
    return given | {name: text for name, text in texts.items() if text is not None}


def _written(range: ValueRange) -> str:
    low, high = ("" if bound is None else str(bound) for bound in (range.low, range.high))
    return f"{low}..{high}"
