"""A door: a prefix, routes, and how ids, formats and errors look behind it."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from aiohttp import web

from zq.http.transport.answer import Answer, Response
from zq.model.errors import ZqError
from zq.model.keys import KeyScope

Handler = Callable[[web.BaseRequest], Awaitable[Response]]

PATH = web.RequestKey("path", dict[str, str])
"""What the parameters in the path of a request's endpoint are."""


class Route(NamedTuple):
    """An endpoint's place and what a key must have for it.

    Its handler's docstring tells users what it does. A `scope` of None asks for no key. A route
    that is about the `whole` server is not for keys with queue prefixes. One that `ticks` waits for
    a tick and hardly ever for anything else: it can do without a task (see
    `zq.http.transport.connection`).
    """

    method: str
    path: str
    handler: Handler
    scope: KeyScope | None
    whole: bool = False
    ticks: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it answers: where GET is one, HEAD is another."""
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)


class Ids(Protocol):
    """How a door writes the ids of jobs."""

    def text(self, key: int) -> str:
        """The id of the job with this key."""

    def key(self, text: str) -> int | None:
        """The key that an id stands for, None where it can be no job's."""


Statuses = Mapping[type[ZqError], int]
"""Errors of a door. One that is not named has the status of its nearest named ancestor."""


def status_in(statuses: Statuses, error: ZqError) -> int:
    """The HTTP status of an error."""
    return next(statuses[kind] for kind in type(error).__mro__ if kind in statuses)


class Door(ABC):
    """One API over the one engine. It words what its clients see and holds no rules of its own.

    Its routes begin with its `prefix`; whatever else comes under that, it turns away.
    """

    prefix = ""

    def __init__(self, ids: Ids, routes: Sequence[Route]) -> None:
        self.ids = ids
        self.routes = routes

    @abstractmethod
    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        """An error as an answer, in a format that the request accepts. There may be no request."""

    @abstractmethod
    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        """The answer to what is wrong as HTTP, before anybody asks what it means."""

    def not_found(self, request: web.BaseRequest) -> Answer:
        """The answer where no route has the request's path. May raise an error instead."""
        return self.malformed(request, 404, "not found")

    def not_allowed(self, request: web.BaseRequest, methods: Iterable[str]) -> Answer:
        """The answer where the routes of the path have other methods."""
        return Answer(405, headers={"Allow": ", ".join(sorted(methods))})
