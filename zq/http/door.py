"""A door: a prefix, its routes, its forms of ids and errors, and its words for them."""

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from aiohttp import web

from zq.http.transport.answer import Answer, Response
from zq.model.errors import ZqError
from zq.model.keys import KeyScope

Handler = Callable[[web.BaseRequest], Awaitable[Response]]

PATH = web.RequestKey("path", dict[str, str])
"""The parameters in the path of a request."""

BEFORE = web.RequestKey("before", dict[str, Any])
"""The key of a request under which its handler puts the values before a change."""


class Route(NamedTuple):
    """The path of an endpoint, and the rights that a key needs for it.

    The docstring of its handler describes it to users. A `scope` of None needs no key. A route
    about the `whole` server is not for keys with queue prefixes. `besides` is a second scope that a
    key needs. A route that `ticks` waits for a tick and hardly ever for anything else, so it needs
    no task (see `zq.http.transport.connection`). A route takes a `token` in the query for a key, if
    browsers read it by an `EventSource`, which sends no headers. A route that knows `users` has
    theirs in `Authorization`, and a key beside it. A route that reads the `query` of a request
    refuses what it does not know there.
    """

    method: str
    path: str
    handler: Handler
    scope: KeyScope | None
    whole: bool = False
    ticks: bool = False
    token: bool = False
    users: bool = False
    besides: KeyScope | None = None
    query: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it answers. GET includes HEAD."""
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)


class Ids(Protocol):
    """The ids of jobs behind a door."""

    def text(self, key: int) -> str:
        """The id of the job with this key."""

    def key(self, text: str) -> int | None:
        """The key of an id; None if no job can have this id."""


S = TypeVar("S")

Statuses = Mapping[type[ZqError], int]
"""The statuses of errors. An error without one has the status of its nearest ancestor."""


def status_in(statuses: Mapping[type[ZqError], S], error: ZqError) -> S:
    """The status of an error: that of its kind."""
    return status_of(statuses, type(error))


def status_of(statuses: Mapping[type[ZqError], S], kind: type[ZqError]) -> S:
    """The status of a kind of errors: its own, or that of its nearest ancestor."""
    return next(statuses[each] for each in kind.__mro__ if each in statuses)


class Door(ABC):
    """One API over the engine. It formats its clients' answers and holds no rules of its own.

    Its routes begin with its `prefix`. It refuses all other paths under that prefix.
    """

    prefix = ""
    refuses_queries = False
    """True if strict clients may send a query only to routes that read it."""

    def __init__(self, ids: Ids, routes: Sequence[Route]) -> None:
        self.ids = ids
        self.routes = routes

    def plain_path(self, route: Route) -> str:
        """The path of one of its routes, as the native API has it if it has the same route."""
        return self.prefix + route.path

    @abstractmethod
    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        """An error as an answer, in a format that the request accepts. `request` may be None."""

    @abstractmethod
    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        """The answer to a request that is not valid HTTP, before its meaning is known."""

    def not_found(self, request: web.BaseRequest) -> Answer:
        """The answer if no route has the request's path. It may raise an error instead."""
        return self.malformed(request, 404, "not found")

    def not_allowed(self, request: web.BaseRequest, methods: Iterable[str]) -> Answer:
        """The answer if the routes of the path have other methods."""
        return Answer(405, headers={"Allow": ", ".join(sorted(methods))})


class Later(NamedTuple):
    """A door, or more routes of one, that is put together at the first request that needs it.

    A server that nobody asks for it has neither its modules in memory nor their imports in its
    start. `make` is called once the `modules` are imported, which happens in a thread.
    """

    prefix: str
    modules: Sequence[str]
    make: Callable[[], Sequence[Door]]


_KEPT = r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|`[^`]*`|--[\w-]+|/\S+"""
"""Names and texts that are quoted, options, and paths."""


class Words:
    """The texts of errors at a door: its own for some errors, and its nouns in all others."""

    def __init__(
        self,
        nouns: Mapping[str, str],
        said: Mapping[type[ZqError], str],
        own: frozenset[type[ZqError]] = frozenset(),
    ) -> None:
        """`nouns` maps a native noun to the door's. Errors of its `own` use its nouns already."""
        self._nouns = {**nouns, **{f"{noun}s": f"{other}s" for noun, other in nouns.items()}}
        self._said = said
        self._own = own
        self._found = re.compile(rf"{_KEPT}|\b(?:{'|'.join(self._nouns)})\b")

    def of(self, error: ZqError) -> str:
        """The text of an error, as an answer can hold it."""
        if type(error) in self._own:
            text = error.message
        else:
            text = self._said.get(type(error)) or self._found.sub(self._noun, error.message)
        # A message may cite bytes of a header that are no text; an answer cannot.
        return text.encode(errors="replace").decode()

    def _noun(self, found: re.Match[str]) -> str:
        return self._nouns.get(found[0], found[0])
