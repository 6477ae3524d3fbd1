"""The wires that the suite runs for, and a client for each.

Each case runs over both versions of HTTP and in both formats. Two wires see to that where a rule
is the subject, because rules lie behind versions and formats. Files whose subject is what a
connection carries run for every wire (`EVERY_WIRE`), and files about what a tick decides, whose
documents other files see to, for one (`ONE_WIRE`). In the long tier all files run for all wires.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .client import JSON, JSON_HTTP2, JSON_ZTTP, MSGPACK, MSGPACK_HTTP2, Client, Wire
from .metrics import Scraper
from .raw import RawConnection
from .site import Site

HERE = Path(__file__).parent

BOTH_OF_EACH = (JSON, MSGPACK_HTTP2)

ONE_WIRE = frozenset(("test_budget_turns", "test_cron_budgets"))

EVERY_WIRE = frozenset(
    f"test_{subject}"
    for subject in (
        *("answers", "bad_input", "browsers", "connections", "enqueue", "errors", "events", "http"),
        *("job_object", "leaks", "limits", "long_reads", "names_and_numbers", "negotiation"),
        *("pages", "push", "results", "round_trip", "take", "take_endings", "take_windows"),
        "waiting",
    )
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the other wires of a file to the long tier."""
    for item in items:
        if item.path.parent != HERE or item.path.stem in EVERY_WIRE:
            continue
        call = getattr(item, "callspec", None)
        wires = BOTH_OF_EACH[:1] if item.path.stem in ONE_WIRE else BOTH_OF_EACH
        if call is not None and call.params.get("wire", JSON) not in wires:
            item.add_marker(pytest.mark.long)


@pytest.fixture(params=[JSON, MSGPACK, JSON_HTTP2, MSGPACK_HTTP2, JSON_ZTTP], ids=str)
def wire(request: pytest.FixtureRequest) -> Wire:
    """A body format over an HTTP version: every combination that clients use.

    The second library of HTTP/2 gets one of them: what is in a body is nothing to it.
    """
    chosen: Wire = request.param
    return chosen


@pytest.fixture
def http2_engine(request: pytest.FixtureRequest) -> str:
    if "wire" not in request.fixturenames:
        return "h2"
    wire: Wire = request.getfixturevalue("wire")
    return wire.http2_engine


@pytest.fixture
async def client(site: Site, wire: Wire) -> AsyncIterator[Client]:
    async with Client(site, wire) as client:
        yield client


@pytest.fixture
async def scrape(site: Site) -> AsyncIterator[Scraper]:
    """Metrics over a connection that is open before any other."""
    async with await RawConnection.open(site.port) as connection:
        yield Scraper(connection)
