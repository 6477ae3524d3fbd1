"""A server without a free descriptor: what needs a process is told to come back later."""

import os
import resource
from pathlib import Path
from typing import Any

import pytest
from conformance.client import Client, new_job
from rooms import needs

from .server import ServerProcess, running

HEAVY = list(range(60_000))
"""A body with so many values is read in a process of its own."""

BATCH = {"key": "k", "when": "true", "fold": "$existing + $new"}
CASES: dict[str, tuple[str, str, Any]] = {
    "a fold": ("POST", "/jobs", new_job(queue="b", payload=[2], batch=BATCH)),
    "a bulk with a fold": (
        "POST",
        "/jobs/bulk",
        {"jobs": [new_job(queue="b", payload=[2], batch=BATCH)]},
    ),
    "a schedule of a batch": (
        "PUT",
        "/crons/g",
        {"entries": [{"name": "e", "expression": "@daily", "job": new_job(batch=BATCH)}]},
    ),
    "a heavy job": ("POST", "/jobs", new_job(payload=HEAVY)),
    "heavy records": ("POST", "/v0/topics/t", {"records": [{"data": HEAVY}]}),
    "heavy metadata": (
        "POST",
        "/api/messages",
        {"topic": "m", "payload": "x", "odd": HEAVY},
    ),
}


TOPICS = needs("doors.topics")


def exhaust(server: ServerProcess) -> None:
    """Leave the server no descriptor: it keeps those that it has."""
    used = max([int(each.name) for each in Path(f"/proc/{server.pid}/fd").iterdir()]) + 1
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used, used))


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=TOPICS if case == "heavy records" else ()) for case in CASES],
)
async def test_out_of_descriptors_a_request_that_needs_a_process_is_503(
    tmp_path: Path, case: str
) -> None:
    """It was 422, as if the batch were wrong: a client does not send that again."""
    async with running(tmp_path / "data") as server, server.client() as client:
        assert (await client.call("POST", "/jobs", new_job())).status == 201
        if "fold" in case:
            host = new_job(queue="b", payload=[1], batch=BATCH)
            # The host is stored without a look, so no process of jq runs yet.
            assert (await client.call("POST", "/jobs", host)).status in (200, 201)
        await refused_and_nothing_stored(server, client, *CASES[case])


async def refused_and_nothing_stored(
    server: ServerProcess, client: Client, method: str, path: str, doc: Any
) -> None:
    before = (await client.get("/jobs/count")).doc
    for child in server.children():
        os.kill(child, 9)
    exhaust(server)
    reply = await client.call(method, path, doc)
    assert reply.status == 503, reply.body
    assert int(reply.headers["retry-after"]) >= 1
    assert (await client.get("/jobs/count")).doc == before
