"""The application: the routes of all doors, behind one guard."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

from zq.engine.turns import ASKER, import_aside
from zq.http.api.endpoints import refuse_unread_query
from zq.http.door import PATH, Door, Later, Route
from zq.http.guard import KEY, Guard
from zq.http.transport.answer import SMALL, Answer, Response
from zq.http.transport.answers import Answers
from zq.http.transport.bodies import is_withheld
from zq.http.transport.gate import peer_of
from zq.model.errors import AnswersFull, ServiceUnavailable, ZqError, unexpected

log = logging.getLogger(__name__)

Methods = Mapping[str, Route]


class Application:
    """Answers requests: it finds door and endpoint, asks the guard, and lets the door format
    errors.

    The first door answers paths outside of all prefixes. `refused` counts errors by their codes.
    """

    def __init__(
        self,
        doors: Sequence[Door],
        guard: Guard,
        answers: Answers,
        refused: Counter[str],
        over: Callable[[Route, Door], Route] | None = None,
        later: Sequence[Later] = (),
    ) -> None:
        """`over` puts something around the requests of every route, such as a record of them.

        What comes `later` joins the doors at the first request that they do not know.
        """
        self._doors = doors
        self._later = list(later)
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._answers = answers
        self._router = Router(doors, over)
        self._guard = guard
        self._refused = refused

    async def __call__(self, request: web.BaseRequest) -> Response:
        """Answer a request. Raises if its connection is lost or it is cancelled."""
        door = self._doors[0]
        try:
            path = request.rel_url.path_safe
            door, methods, parameters = self._router.find(path)
            # Where a place takes an id, a later route may have a word.
            if self._later and (
                request.method not in methods or (parameters and not _has_ids(door, parameters))
            ):
                await self._complete(path, door.prefix)
                door, methods, parameters = self._router.find(path)
            request[PATH] = parameters
            response = await self._serve(request, door, methods)
        except ZqError as error:
            response = self._refuse(request, door, error)
        except ConnectionError:
            raise
        except MemoryError as error:
            log.error("no memory for a request", extra={"fields": {"path": request.path}})
            response = self._refuse(request, door, unexpected(error))
        except Exception as error:
            log.exception("a handler failed", extra={"fields": {"path": request.path}})
            response = door.problem(request, unexpected(error))
        if not isinstance(response, Answer):
            return response
        if is_withheld(request):
            # Whether its body still comes is unknown, so nothing can follow it.
            response.closes = True
        if len(response.body) <= SMALL and request.version.major < 2:
            return response  # the connection sends it at once
        try:
            await self._answers.send(request, response)
        except AnswersFull as error:
            response = self._refuse(request, door, error)
            await self._answers.send(request, response)
        return response

    async def _complete(self, path: str, prefix: str) -> None:
        """Put together what a path belongs to, whose door so far has this prefix."""
        parts = [
            part
            for part in self._later
            if part.prefix.startswith(prefix) and f"{path}/".startswith(f"{part.prefix}/")
        ]
        if not parts:
            return
        part = max(parts, key=lambda part: len(part.prefix))
        if part.prefix not in self._joining:
            self._joining[part.prefix] = asyncio.create_task(self._join(part))
        try:
            await asyncio.shield(self._joining[part.prefix])
        except (ImportError, OSError) as error:
            # There may be no descriptors left, and some a little later.
            self._joining.pop(part.prefix, None)
            raise ServiceUnavailable(f"this part of the API cannot be loaded: {error}") from error

    async def _join(self, part: Later) -> None:
        await import_aside(*part.modules)
        self._router.add(part.make())
        self._later.remove(part)

    def malformed(self, status: int, text: str) -> Answer:
        """The answer to a request that is not valid HTTP."""
        return self._doors[0].malformed(None, status, text)

    def refusal(self, error: ZqError) -> Answer:
        """The answer for a connection on which no request was read."""
        return self._doors[0].problem(None, error)

    def _refuse(self, request: web.BaseRequest, door: Door, error: ZqError) -> Answer:
        self._refused[error.code] += 1
        return door.problem(request, error)

    async def _serve(self, request: web.BaseRequest, door: Door, methods: Methods) -> Response:
        route = methods.get(request.method) or methods.get("*")
        self._guard.admit(request, route)
        ASKER.set(partial(_asker, request))
        if route is None:
            return door.not_allowed(request, methods) if methods else door.not_found(request)
        expected = request.headers.get(hdrs.EXPECT, "100-continue")
        if expected.lower() != "100-continue" and request.version == HttpVersion11:
            return door.malformed(request, 417, "expectation failed")
        if door.refuses_queries and not route.query:
            refuse_unread_query(request)
        if not route.ticks and asyncio.current_task() is None:
            await asyncio.sleep(0)  # this makes it a task, which time-outs need
        return await route.handler(request)


def _has_ids(door: Door, parameters: Mapping[str, str]) -> bool:
    return all(door.ids.key(text) is not None for text in parameters.values())


def _asker(request: web.BaseRequest) -> object:
    """The sender that takes turns with others: a key, or an address where no keys are needed."""
    key = request.get(KEY)
    return peer_of(request.transport) if key is None else key.name


class Router:
    """A tree of path segments: `{name}` stands for any segment, `{name...}` for all that are left.

    A literal segment wins over a parameter. So a path without parameters always leads to the same
    place, and is looked up as a whole.
    """

    def __init__(
        self, doors: Sequence[Door], over: Callable[[Route, Door], Route] | None = None
    ) -> None:
        self._root = _Node(doors[0])
        self._known: dict[str, _Node] = {}
        self._over = over
        self.add(doors)

    def add(self, doors: Sequence[Door]) -> None:
        """Take in the routes of doors. One with the prefix of another adds routes to it."""
        # The places below a place belong to the same door, so the prefixes come first.
        for door in sorted(doors, key=lambda door: len(door.prefix)):
            self._place(door.prefix).door = door
        for door in doors:
            for served in door.routes:
                route = served if self._over is None else self._over(served, door)
                path = door.prefix + route.path
                place = self._place(path)
                if "{" not in path:
                    self._known[path] = place
                for method in route.methods:
                    place.methods[method] = route

    def find(self, path: str) -> tuple[Door, Methods, dict[str, str]]:
        """The door of a path, its routes by method (empty if there is no such path), and
        parameters.

        In `path`, only the slashes and percent signs within segments are escaped.
        """
        known = self._known.get(path)
        if known is not None:
            return known.door, known.methods, {}
        node = self._root
        parameters: dict[str, str] = {}
        for segment in path.split("/"):
            word = node.words.get(segment)
            if word is not None:
                node = word
            elif node.parameter is not None and segment:
                parameters[node.name] = _unescape(segment)
                node = node.parameter
                if node.takes_all:
                    break
            else:
                return node.door, {}, {}
        return node.door, node.methods, parameters

    def _place(self, path: str) -> _Node:
        node = self._root
        for segment in path.split("/") if path else ():
            node = node.grow(segment)
        return node


class _Node:
    """A place in the tree, with its door and the places below it."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.methods: dict[str, Route] = {}
        self.words: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.name = ""
        self.takes_all = False

    def grow(self, segment: str) -> _Node:
        if not segment.startswith("{"):
            return self.words.setdefault(segment, _Node(self.door))
        name = segment.strip("{.}")
        if self.parameter is None:
            self.parameter, self.name = _Node(self.door), name
            self.parameter.takes_all = segment.endswith("...}")
        assert name == self.name, f"a parameter has two names: {name}, {self.name}"
        return self.parameter


def _unescape(segment: str) -> str:
    return segment.replace("%2F", "/").replace("%25", "%") if "%" in segment else segment
