"""Claimants who go away while they wait, and the jobs that were meant for them."""

import asyncio

from .claims import LEASE_MS, claim, until_claiming
from .client import Client, new_job
from .raw import RawConnection
from .streams import PATIENCE_S


async def test_fifty_claims_whose_claimants_go_away_leave_nothing_behind(
    client: Client,
) -> None:
    body = b'{"holder":"h","wait_ms":30000}'
    head = b"POST /queues/default/claim HTTP/1.1\r\nHost: q\r\nContent-Length: %d\r\n\r\n"
    job = await client.enqueue(queue="other")
    for number in range(50):
        connection = await RawConnection.open(client.site.port)
        await connection.send(head % len(body) + body)
        await until_claiming(client, 1)
        await (connection.reset() if number % 2 else connection.close())
        await until_claiming(client, 0)
    engine = client.site.server.engine
    assert engine.streams.is_empty
    issued = await client.enqueue()
    assert (await client.job(issued["id"]))["status"] == "ready"
    assert (await client.job(job["id"]))["status"] == "ready"


async def test_a_job_claimed_for_who_has_gone_away_goes_back_at_once_and_free(
    client: Client,
) -> None:
    body = b'{"holder":"h","wait_ms":30000,"max":3}'
    head = b"POST /queues/default/claim HTTP/1.1\r\nHost: q\r\nContent-Length: %d\r\n\r\n"
    for number in range(30):
        connection = await RawConnection.open(client.site.port)
        await connection.send(head % len(body) + body)
        await until_claiming(client, 1)
        # Both arrive at about the same time, in either order.
        await asyncio.gather(connection.reset(), client.post("/jobs", new_job(payload=number)))
        await until_claiming(client, 0)
        async with asyncio.timeout(PATIENCE_S):
            while not (jobs := await claim(client, max=5)):
                # Its answer had been written: only the deadline tells that nobody has read it.
                client.site.clock.advance(LEASE_MS + 1)
        assert len(jobs) == 1
        await client.succeed(jobs[0]["id"])
