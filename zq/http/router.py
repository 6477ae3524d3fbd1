"""Which endpoint a request is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aiohttp import web

from zq.http.endpoints import Route

Methods = Mapping[str, Route]

PATH = web.RequestKey("path", dict[str, str])
"""What the parameters in the path of a request's endpoint are."""


class Router:
    """A tree of path segments: `{name}` stands for any, `{name...}` for all that are left.

    Where a word fits too, the word wins.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for segment in route.path.split("/"):
                node = node.grow(segment)
            for method in route.methods:
                node.methods[method] = route

    def find(self, path: str) -> tuple[Methods, dict[str, str]]:
        """The routes of a path by method, none where there is no such path; and its parameters.

        `path` has slashes and percent signs of its segments escaped, and nothing else.
        """
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
                return {}, {}
        return node.methods, parameters


class _Node:
    """A place in the tree, and what may follow."""

    def __init__(self) -> None:
        self.methods: dict[str, Route] = {}
        self.words: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.name = ""
        self.takes_all = False

    def grow(self, segment: str) -> _Node:
        if not segment.startswith("{"):
            return self.words.setdefault(segment, _Node())
        name = segment.strip("{.}")
        if self.parameter is None:
            self.parameter, self.name = _Node(), name
            self.parameter.takes_all = segment.endswith("...}")
        assert name == self.name, f"a parameter has two names: {name}, {self.name}"
        return self.parameter


def _unescape(segment: str) -> str:
    return segment.replace("%2F", "/").replace("%25", "%") if "%" in segment else segment
