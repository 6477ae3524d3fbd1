"""Paths find their endpoints."""

import re
from collections.abc import Sequence
from typing import cast

import pytest

from zq.http.api.door import NativeRoutes, ZizqDoor
from zq.http.api.parts import no_server
from zq.http.app import Router
from zq.http.door import Handler, Ids, Route
from zq.model.ids import codec_of

PATHS = ("/jobs", "/jobs/bulk", "/jobs/{id}", "/jobs/{id}/errors/{attempt}", "/crons/{rest...}")


def router(paths: Sequence[str] = PATHS) -> Router:
    handler = cast(Handler, None)
    routes = [Route("GET", path, handler, None) for path in paths]
    return Router([ZizqDoor(cast(Ids, None), routes)])


@pytest.mark.parametrize(
    ("path", "found", "parameters"),
    [
        ("/jobs", "/jobs", {}),
        ("/jobs/bulk", "/jobs/bulk", {}),
        ("/jobs/j1", "/jobs/{id}", {"id": "j1"}),
        ("/jobs/a%2Fb%2525", "/jobs/{id}", {"id": "a/b%25"}),
        ("/jobs/j1/errors/2", "/jobs/{id}/errors/{attempt}", {"id": "j1", "attempt": "2"}),
        ("/crons/a/b/c", "/crons/{rest...}", {"rest": "a"}),
    ],
)
def test_a_path_is_found(path: str, found: str, parameters: dict[str, str]) -> None:
    _, methods, values = router().find(path)
    assert {method: route.path for method, route in methods.items()} == dict.fromkeys(
        ("GET", "HEAD"), found
    )
    assert values == parameters


@pytest.mark.parametrize(
    "path", ["", "/", "jobs", "/jobs/", "/jobs//", "/jobs/bulk/errors/1", "/jobs/j1/errors", "/x"]
)
def test_what_leads_nowhere_is_not_found(path: str) -> None:
    _, methods, _ = router().find(path)
    assert not methods


def test_two_names_for_one_place_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="two names"):
        router(("/jobs/{id}", "/jobs/{key}/x"))


def test_no_route_from_the_start_takes_what_is_for_a_later_one() -> None:
    """A word of a later path may stand where an earlier one takes an id, but it is no id."""
    native, ids = NativeRoutes(no_server()), codec_of("7NNNNNNNNNNZ")
    begun = Router([ZizqDoor(ids, native.quick)])
    for route in native.rest:
        path = re.sub(r"{[a-z.]+}", ids.text(1 << 40), route.path)
        _, methods, names = begun.find(path)
        assert route.method not in methods or None in map(ids.key, names.values()), path
