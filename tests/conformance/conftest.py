"""The wires that the suite runs for, and a client for each.

A wire is a format of bodies over a version of HTTP, served by one of our libraries. How many of
them a file runs for depends on its subject; in the long tier, all files run for all wires.

- A rule lies behind formats and versions. Two wires have both of each, and so they do for what a
  document looks like: a test gets one of the two by its name, and a file meets both.
- What a connection carries, and how it ends, is up to the library: three wires have all of them
  and both formats (`EVERY_LIBRARY`). In a file of rules, the mark `every_library` names the tests
  of which that is true.
- Where formats and versions meet, all wires run (`EVERY_WIRE`). The tests of framings name each
  framing, and need no wire for it.
- What a tick or a key's reach decides, about documents that other files see to, runs for one
  (`ONE_WIRE`).
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tiers import by_name, is_left_open, usual_of

from .client import JSON, JSON_HTTP2, JSON_ZTTP, MSGPACK, MSGPACK_HTTP2, Client, Wire
from .keyed import client_of
from .metrics import Scraper
from .raw import RawConnection
from .site import Site

BOTH_OF_EACH = (JSON, MSGPACK_HTTP2)

ALL_LIBRARIES = (*BOTH_OF_EACH, JSON_ZTTP)

ALL = (JSON, MSGPACK, JSON_HTTP2, MSGPACK_HTTP2, JSON_ZTTP)
"""Every combination that clients use.

The second library of HTTP/2 gets one of them: what is in a body is nothing to it.
"""

ONE_WIRE = frozenset(("test_budget_turns", "test_cron_budgets", "test_key_reach"))

EVERY_LIBRARY = frozenset(
    f"test_{subject}"
    for subject in ("answers", "browsers", "connections", "http", "leaks", "take_endings")
)

EVERY_WIRE = frozenset(("test_negotiation", "test_round_trip"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test its wires, and leave the others to the long tier."""
    if not is_left_open(metafunc, "wire"):
        return
    wires = _wires(Path(metafunc.module.__file__ or "").stem)
    if metafunc.definition.get_closest_marker("every_library"):
        wires = ALL_LIBRARIES
    if wires is BOTH_OF_EACH:
        wires = (by_name(metafunc, wires),)
    metafunc.parametrize("wire", usual_of(metafunc, wires, ALL), ids=str, indirect=True)


def _wires(file: str) -> tuple[Wire, ...]:
    if file in EVERY_WIRE:
        return ALL
    if file in EVERY_LIBRARY:
        return ALL_LIBRARIES
    return BOTH_OF_EACH[:1] if file in ONE_WIRE else BOTH_OF_EACH


@pytest.fixture
def wire(request: pytest.FixtureRequest) -> Wire:
    chosen: Wire = request.param
    return chosen


@pytest.fixture
def http2_engine(request: pytest.FixtureRequest) -> str:
    if "wire" not in request.fixturenames:
        return "h2"
    wire: Wire = request.getfixturevalue("wire")
    return wire.http2_engine


@pytest.fixture
async def root(site: Site, wire: Wire) -> AsyncIterator[Client]:
    """A client whose key may do everything, at a site with keys."""
    async with client_of(site, wire, "root") as client:
        yield client


@pytest.fixture
async def shop(site: Site, wire: Wire) -> AsyncIterator[Client]:
    """A client whose key has a prefix, at a site with keys."""
    async with client_of(site, wire, "shop") as client:
        yield client


@pytest.fixture
async def client(site: Site, wire: Wire) -> AsyncIterator[Client]:
    async with Client(site, wire) as client:
        yield client


@pytest.fixture
async def scrape(site: Site) -> AsyncIterator[Scraper]:
    """Metrics over a connection that is open before any other."""
    async with await RawConnection.open(site.port) as connection:
        yield Scraper(connection)
