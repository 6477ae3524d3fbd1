"""Every accepted payload is delivered equal, in both formats."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .client import JSON, MSGPACK, Client
from .site import Site
from .streams import TakeStream

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
PAYLOADS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


def exactly(value: Any) -> str:
    """A text that is equal for equal values only: 1, 1.0, true, 0.0 and -0.0 all differ."""
    return json.dumps(value, sort_keys=True)


@pytest.fixture
async def receivers(site: Site) -> AsyncIterator[list[tuple[Client, TakeStream]]]:
    """A client of each format, with a stream on a queue of its own."""
    async with Client(site, JSON) as json_client, Client(site, MSGPACK) as msgpack_client:
        clients = (json_client, msgpack_client)
        yield [(client, await client.take(queue=client.wire.name)) for client in clients]


# One server serves all examples: each settles the jobs that it made.
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(payload=PAYLOADS)
async def test_accepted_payloads_are_delivered_equal_in_both_formats(
    receivers: list[tuple[Client, TakeStream]], payload: Any
) -> None:
    expected = exactly(payload)
    for sender, _ in receivers:
        for receiver, stream in receivers:
            job = await sender.enqueue(queue=receiver.wire.name, payload=payload)
            delivered = await stream.job()
            assert delivered["id"] == job["id"]
            assert exactly(delivered["payload"]) == expected
            assert exactly((await receiver.job(job["id"]))["payload"]) == expected
            await receiver.succeed(job["id"])
