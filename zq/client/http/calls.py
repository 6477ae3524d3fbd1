"""The interfaces of a backend's requests, and the paths that several kinds of them share."""

from collections.abc import Awaitable, Mapping
from typing import Protocol, TypeVar
from urllib.parse import quote, urlencode

from zq.client.asking import filters
from zq.client.http.transport import Reply
from zq.client.values import JobQuery

T = TypeVar("T")


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
    return with_query(path, filters(query) | more)
