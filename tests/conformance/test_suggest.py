"""What completes a filter, and queues whose names are like another one."""

from pathlib import Path

import pytest

from .client import Client, Doc
from .keyed import client_of, write_keys


async def values(client: Client, **params: str) -> list[Doc]:
    reply = await client.get("/suggest", **params)
    assert reply.status == 200, reply.doc
    found: list[Doc] = reply.doc["values"]
    return found


async def test_values_begin_with_what_was_typed_or_contain_it(client: Client) -> None:
    for queue in ("mail", "email", "other"):
        await client.enqueue(queue=queue, type=f"to-{queue}", payload={f"{queue}_id": 1, "n": 2})
    await client.enqueue(queue="mail", payload=[1])
    assert await values(client, field="queue", q="MAI") == [
        {"text": "mail", "n": 2},
        {"text": "email", "n": 1},
    ]
    assert [each["text"] for each in await values(client, field="type", q="to-m")] == ["to-mail"]
    keys = await values(client, field="payload", queue="mail")
    assert [each["text"] for each in keys] == ["mail_id", "n"]
    statuses = {each["text"]: each["n"] for each in await values(client, field="status")}
    assert (statuses["ready"], statuses["dead"]) == (4, 0)


async def test_a_cause_comes_with_the_signature_that_filters_by_it(client: Client) -> None:
    job = await client.in_flight(queue="mail")
    await client.fail(job["id"], message="SMTP: no answer in 30 s")
    (cause,) = await values(client, field="cause", q="smtp")
    assert (cause["text"], cause["n"]) == ("SMTP: no answer in <n> s", 1)
    assert len(await client.jobs(error=cause["value"])) == 1


async def test_no_more_than_twenty_values_are_told(client: Client) -> None:
    for number in range(25):
        await client.enqueue(queue=f"q{number}")
    assert len(await values(client, field="queue")) == 20


@pytest.mark.parametrize("query", ["", "?field=", "?field=colour", "?field=queue&q=" + "x" * 201])
async def test_what_cannot_be_completed_is_refused(client: Client, query: str) -> None:
    assert (await client.get(f"/suggest{query}")).status == 400


async def test_a_queue_is_known_by_jobs_settings_or_workers(client: Client) -> None:
    await client.enqueue(queue="mail")
    await client.patch("/queues/mall/settings", {"rate": 1})
    await client.take(queue="mill")
    for queue in ("mail", "mall", "mill"):
        assert (await client.get(f"/queues/{queue}/near")).doc == {"known": True, "near": []}
    found = (await client.get("/queues/mial/near")).doc
    assert found["known"] is False
    assert sorted(found["near"]) == ["mail", "mall", "mill"]
    assert (await client.get("/queues/unlike/near")).doc == {"known": False, "near": []}
    long = "mail" * 100
    assert (await client.get(f"/queues/{long}/near")).doc == {"known": False, "near": []}


async def test_queues_beyond_the_reach_of_a_key_are_not_told(
    client: Client, tmp_path: Path
) -> None:
    for queue in ("shop-mail", "bank-mail"):
        await client.enqueue(queue=queue, type=queue, payload={queue: 1})
    await client.site.restart(keys=write_keys(tmp_path / "keys"))
    async with client_of(client.site, client.wire, "shop") as shop:
        for field in ("queue", "type", "payload"):
            assert [each["text"] for each in await values(shop, field=field)] == ["shop-mail"]
        assert (await shop.get("/queues/shop-mial/near")).doc["near"] == ["shop-mail"]
        assert (await shop.get("/queues/bank-mail/near")).status == 403
        assert (await shop.get("/suggest", field="type", queue="bank-mail")).status == 403
