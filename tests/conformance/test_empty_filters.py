"""A filter that is given and empty: refused, but for Zizq's filters in its own reads."""

from typing import Any

import pytest

from zq.http.api.description.operations import OPERATIONS
from zq.wire.query import FILTERS, ZIZQS

from .client import Client, Reply, with_query

CHANGES = sorted(
    (method, path)
    for (method, path), operation in OPERATIONS.items()
    if method != "GET" and {*FILTERS} <= {parameter.name for parameter in operation.parameters}
)
"""The requests that change what a filter finds."""

EMPTY = [
    *((name, "") for name in FILTERS),
    *((name, text) for name in ("status", "queue", "type", "group", "id") for text in (",", ",,,")),
    *((name, "..") for name in ("priority", "ready_at", "attempts")),
    *(("filter", text) for text in (" ", "\n\t", "# nothing", "  # one\n# two\n")),
]


async def change(client: Client, method: str, path: str, **params: Any) -> Reply:
    target = with_query(path, params)
    of_budget = "{key}" in path
    body = {"cost": 1} if of_budget else {"priority": 1} if method == "PATCH" else {}
    target = target.replace("%7Bkey%7D", "b").replace("{key}", "b")
    if method == "DELETE":
        return await client.send(method, target)
    return await client.call(method, target, body)


async def states(client: Client) -> list[Any]:
    return [(job["id"], job["status"], job["priority"]) for job in await client.jobs()]


def test_every_kind_of_change_is_known() -> None:
    assert CHANGES == [
        ("DELETE", "/jobs"),
        ("DELETE", "/jobs/budgets"),
        ("DELETE", "/jobs/budgets/{key}"),
        ("PATCH", "/jobs"),
        ("PATCH", "/jobs/budgets/{key}"),
        ("POST", "/jobs/budgets/{key}"),
        ("POST", "/jobs/cancel"),
        ("POST", "/jobs/redrive"),
        ("POST", "/jobs/requeue"),
        ("PUT", "/jobs/budgets/{key}"),
    ]


async def test_what_changes_jobs_refuses_a_filter_that_filters_nothing(client: Client) -> None:
    for state in ("scheduled", "ready", "in_flight", "dead"):
        await client.make(state, queue=state)
    before = await states(client)
    for method, path in CHANGES:
        for name, text in EMPTY:
            reply = await change(client, method, path, **{name: text})
            assert reply.status == 400, (name, text)
            if name == "filter":
                assert reply.error == "invalid filter: the expression is empty"
            else:
                assert reply.error.startswith(f"invalid query parameters: `{name}` is empty")
            # Nor does a filter that does choose make up for it.
            assert (
                await change(client, method, path, **{"queue": "x"} | {name: text})
            ).status == 400
        assert await states(client) == before


async def test_a_parameter_without_a_sign_of_equality_is_empty_too(client: Client) -> None:
    await client.enqueue()
    for method, path in CHANGES:
        assert (await change(client, method, f"{path}?queue")).status == 400
        assert await client.count() == 1


async def test_lists_of_which_a_part_is_empty_choose_by_the_others(client: Client) -> None:
    for queue in "abc":
        await client.enqueue(queue=queue)
    assert (await client.delete("/jobs", queue="a,,b,")).doc == {"deleted": 2}
    assert [job["queue"] for job in await client.jobs()] == ["c"]


async def test_what_is_refused_leaves_the_request_without_a_filter_as_it_was(
    client: Client,
) -> None:
    await client.enqueue_many(3)
    assert (await client.delete("/jobs", queue="")).status == 400
    assert (await client.delete("/jobs?")).status == 400
    assert (await client.delete("/jobs")).doc == {"deleted": 3}


@pytest.mark.parametrize("path", ["/jobs", "/jobs/count"])
async def test_a_filter_that_zizq_lacks_may_not_be_empty_in_reads_either(
    client: Client, path: str
) -> None:
    for name, text in EMPTY:
        reply = await client.get(path, **{name: text})
        allowed = name in ZIZQS and name != "filter"
        assert reply.status == (200 if allowed else 400), (name, text)
        assert allowed or name in reply.error or name == "filter"
        strict = await client.send("GET", with_query(path, {name: text}), None, {"zq-strict": "1"})
        assert strict.status == 400, (name, text)


@pytest.mark.parametrize(
    "target",
    [
        *("/sweeps/preview?queue=", "/stats/history?queue=", "/events?queue=", "/events?types=,"),
        *("/suggest?field=type&queue=", "/jobs/by-key?key=k&queue=", "/failures?queue="),
    ],
)
async def test_no_read_of_zqs_own_is_wider_than_its_words(client: Client, target: str) -> None:
    reply = await client.send("GET", target)
    name = "types" if "types" in target else "queue"
    assert (reply.status, f"`{name}` is empty" in reply.error) == (400, True), target


async def test_a_repeated_filter_is_refused_with_the_way_to_name_several(client: Client) -> None:
    for path in ("/jobs", "/jobs/count", "/sweeps/preview"):
        reply = await client.send("GET", f"{path}?queue=a&queue=b")
        assert (reply.status, "`queue`: give it once, with several" in reply.error) == (400, True)
    reply = await client.send("DELETE", "/jobs?attempts=1&attempts=2")
    assert (reply.status, reply.error.endswith("`attempts`: give it once")) == (400, True)


async def test_a_filter_that_was_lost_on_the_way_changes_nothing(client: Client) -> None:
    await client.enqueue(queue="a")
    await client.call("PUT", "/crons/g", {"entries": []})
    before = await states(client)
    for method, path in [*CHANGES, ("DELETE", "/crons")]:
        target = path.replace("{key}", "b")
        own: dict[str, Any] = (
            {"cost": 1} if "{key}" in path else {"priority": 1} if method == "PATCH" else {}
        )
        form = {"content-type": "application/x-www-form-urlencoded"}
        replies = [await client.call(method, target, own | {"status": "dead"})]
        replies += [await client.send(method, target, b"status=dead&queue=b", form)]
        for lost in ("?", "?&", "?&&"):
            if method == "DELETE":
                replies.append(await client.send(method, target + lost))
            else:
                replies.append(await client.call(method, target + lost, own))
        assert [reply.status // 100 for reply in replies] == [4] * len(replies)
        assert "query" in replies[0].error
        assert await states(client) == before
        assert (await client.get("/crons")).doc == {"crons": ["g"]}


async def test_a_reset_deletes_everything_only_if_nothing_says_otherwise(client: Client) -> None:
    await client.enqueue(queue="a")
    form = {"content-type": "application/x-www-form-urlencoded"}
    replies = [
        await client.send("POST", "/reset", b"queue=b", form),
        await client.call("POST", "/reset", {"queue": "b"}),
        *[await client.send("POST", f"/reset{lost}") for lost in ("?", "?&", "?queue=b", "?x=1")],
    ]
    assert [reply.status for reply in replies] == [400] * len(replies)
    assert "DELETE /jobs?queue=" in replies[1].error
    assert await client.count() == 1
    # Clients of Zizq send an empty map.
    assert (await client.call("POST", "/reset", {})).status == 204
    assert await client.count() == 0
