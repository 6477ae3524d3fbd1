"""The wires that the suite runs for, and a client that speaks one."""

from collections.abc import AsyncIterator

import pytest

from .client import JSON, JSON_HTTP2, JSON_ZTTP, MSGPACK, MSGPACK_HTTP2, Client, Wire
from .metrics import Scraper
from .raw import RawConnection
from .site import Site


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
