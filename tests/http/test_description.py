"""The API's description: of every route, in both forms, and never out of date."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conformance.client import JSON, MSGPACK, Client
from conformance.site import Site

from zq.http.api.description import reference
from zq.http.api.description.openapi import about, openapi
from zq.http.api.description.operations import OPERATIONS
from zq.wire.query import FILTERS, ZIZQS

PAGE = Path(reference.__file__).with_name("reference.md")
ROUTES = {(route.method, route.path): route for route in reference.routes()}
UNBUILT = {key for key in ROUTES if key[0] == "*"}
"""What is refused, whatever is sent."""


ZIZQS_READS = ("/jobs", "/jobs/count")


def document() -> Any:
    return json.loads(json.dumps(openapi(reference.routes())))


def test_every_route_is_described() -> None:
    assert ROUTES.keys() - UNBUILT == OPERATIONS.keys()


@pytest.mark.parametrize("key", sorted(ROUTES))
def test_every_route_says_what_it_does(key: tuple[str, str]) -> None:
    text = about(ROUTES[key])
    assert text.endswith("."), "its handler needs a docstring"


def test_every_type_that_is_spoken_of_is_there_and_named_publicly() -> None:
    described = document()
    names = described["components"]["schemas"].keys()
    spoken_of = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                spoken_of.add(value["$ref"].removeprefix("#/components/schemas/"))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(described)
    assert spoken_of <= names
    assert not any(name.startswith("_") for name in names)


def test_every_operation_has_a_name_of_its_own() -> None:
    operations = [each for item in document()["paths"].values() for each in item.values()]
    assert len(operations) == len(OPERATIONS)
    assert len({operation["operationId"] for operation in operations}) == len(operations)


def test_every_parameter_of_a_path_is_described() -> None:
    for path, item in document()["paths"].items():
        for operation in item.values():
            named = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
            assert path.count("{") == len(named)
            assert all(f"{{{name}}}" in path for name in named)


@pytest.mark.parametrize("wire", [JSON, MSGPACK], ids=str)
async def test_the_server_tells_its_description(site: Site, wire: Any) -> None:
    async with Client(site, wire) as client:
        assert (await client.get("/openapi.json")).doc == document()


def test_the_page_for_people_is_that_of_these_routes() -> None:
    advice = "run: python -m zq.http.api.description.reference > " + str(PAGE)
    assert PAGE.read_text(encoding="utf-8") == reference.markdown(), advice


def test_every_error_says_what_its_code_means() -> None:
    rows = re.findall(r"^\| `\d{3}` \| `\w+` \| (.*) \|$", reference.markdown(), re.MULTILINE)
    assert len(rows) > 100
    assert all(rows)


@pytest.mark.parametrize("method", ["get", "patch", "delete", "post"])
def test_zizqs_filters_may_be_empty_where_jobs_are_read_and_nowhere_else(method: str) -> None:
    paths = document()["paths"]
    filters = [
        (place, parameter)
        for place, item in paths.items()
        for operation in [item.get(method, {"parameters": []})]
        if any(parameter["name"] == "attempts" for parameter in operation["parameters"])
        for parameter in operation["parameters"]
        if parameter["name"] in FILTERS and parameter["name"] not in ("filter", "search")
    ]
    assert filters
    for place, parameter in filters:
        schema = parameter["schema"]
        may_be_empty = method == "get" and parameter["name"] in ZIZQS and place in ZIZQS_READS
        if schema["type"] == "array":
            assert schema.get("minItems", 0) == (0 if may_be_empty else 1), parameter
        else:
            empty = ("",) if parameter["name"] == "upto" else ("", "..")
            found = {re.search(schema["pattern"], text) is not None for text in empty}
            assert found == {may_be_empty}, parameter
