"""Batches: which jobs fold into which host, when a batch closes, and what is refused."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .client import JSON, Client, Doc, Reply, new_job, to_msgpack, without_body
from .keyed import client_of, write_keys
from .streams import PATIENCE_S

APPEND = {"when": "true", "fold": "$existing + $new"}


def batched(payload: Any, key: str = "b", **fields: Any) -> Doc:
    """A job whose payload is added to that of the batch's host."""
    rule = {name: fields.pop(name) for name in ("when", "fold") if name in fields}
    return new_job(payload=payload, batch={"key": key, **APPEND, **rule}, **fields)


async def put(client: Client, payload: Any, key: str = "b", **fields: Any) -> Doc:
    """The answer to an enqueue that is stored or folded."""
    reply = await client.post("/jobs", batched(payload, key, **fields))
    assert reply.status == (200 if reply.doc["folded"] else 201), reply.doc
    job: Doc = reply.doc
    return job


async def refusal(client: Client, payload: Any, **fields: Any) -> tuple[int, str]:
    """Status and message of an enqueue that is refused."""
    reply = await client.post("/jobs", batched(payload, **fields))
    return reply.status, reply.error


async def payload_of(client: Client, job: Doc) -> Any:
    return (await client.job(job["id"]))["payload"]


async def until_folded(client: Client, job: Doc, payload: Any) -> None:
    """Wait until another request has been folded into a job."""
    async with asyncio.timeout(PATIENCE_S):
        while await payload_of(client, job) != payload:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_a_job_folds_into_the_one_that_waits(client: Client) -> None:
    host = await put(client, [1], queue="a", type="s", priority=7, retry_limit=3)
    assert (host["duplicate"], host["folded"]) == (False, False)
    folded = await put(client, [2], queue="b", type="t", priority=1)
    assert folded == host | {"folded": True}
    stored = await client.job(host["id"])
    assert stored["payload"] == [1, 2]
    assert without_body(stored) | {"duplicate": False, "folded": False} == host
    assert stored["batch"] == {"key": "b", **APPEND}
    assert await client.count() == 1


async def test_batches_with_other_keys_are_others(client: Client) -> None:
    keys = ("b", "B", " b", "é🐝", "a,b*?", "k" * 2_048, "b\0", "b\0c")
    hosts = {key: await put(client, [key], key) for key in keys}
    assert len({host["id"] for host in hosts.values()}) == len(keys)
    for key, host in hosts.items():
        assert (await put(client, ["more"], key))["id"] == host["id"]
        assert await payload_of(client, host) == [key, "more"]


async def test_a_worker_gets_what_was_folded(client: Client) -> None:
    host = await put(client, [1])
    for number in range(2, 6):
        await put(client, [number])
    stream = await client.take()
    taken = await stream.job()
    assert (taken["id"], taken["payload"]) == (host["id"], [1, 2, 3, 4, 5])
    assert taken["batch"] == host["batch"]


async def test_the_programs_of_the_host_decide(client: Client) -> None:
    host = await put(client, [1], when="($existing | length) < 3", fold="$new + $existing")
    for number in (2, 3):
        # What comes with these is only checked.
        await put(client, [number], when="false", fold='"mine"')
    assert await payload_of(client, host) == [3, 2, 1]
    sealed = await put(client, [4], fold="$existing | map(. * 2)")
    assert (sealed["folded"], sealed["id"] != host["id"]) == (False, True)
    assert await payload_of(client, host) == [3, 2, 1]
    await put(client, [5])
    assert await payload_of(client, sealed) == [8]


@pytest.mark.parametrize(
    ("when", "folds"),
    [
        ("true", True),
        ("0", True),
        ('""', True),
        ("true, error", True),
        ("true, false", True),
        ("false", False),
        ("null", False),
        ("empty", False),
        ("false, true", False),
        ('if $new == $existing then true else error("no") end', False),
        ("$existing < $new", True),
        ("$existing > $new", False),
        ("def more: $new > $existing; more", True),
        (". == null and $new == [2] # a remark", True),
    ],
)
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_the_first_output_of_when_decides(client: Client, when: str, folds: bool) -> None:
    await put(client, [1], when=when)
    assert (await put(client, [2], when=when))["folded"] is folds


@pytest.mark.parametrize("how", ["take", "delete", "schedule", "cancel", "sweep", "reset"])
async def test_a_batch_is_closed_when_its_host_leaves(client: Client, how: str) -> None:
    host = await put(client, [1])
    path = f"/jobs/{host['id']}"
    match how:
        case "take":
            await (await client.take()).job()
        case "delete":
            assert (await client.delete(path)).status == 204
        case "schedule":
            await client.change(host["id"], ready_at=client.site.now + 60_000)
        case "cancel":
            assert (await client.send("POST", f"{path}/cancel")).status == 200
        case "sweep":
            assert (await client.delete("/jobs", type=host["type"])).doc == {"deleted": 1}
        case "reset":
            assert (await client.send("POST", "/reset")).status == 204
    after = await put(client, [2], queue="other")
    assert (after["folded"], after["id"] != host["id"]) == (False, True)
    assert (await put(client, [3], queue="other"))["id"] == after["id"]
    assert await payload_of(client, after) == [2, 3]


async def test_a_batch_is_closed_when_its_host_expires(client: Client) -> None:
    host = await put(client, [1], ttl_ms=1_000)
    client.site.clock.advance(999)
    assert (await put(client, [2]))["id"] == host["id"]
    client.site.clock.advance(1)
    # Whether the server has seen to it by now or not.
    assert (await put(client, [3]))["id"] != host["id"]


@pytest.mark.parametrize("how", ["requeue", "retry", "release", "promote", "restart"])
async def test_a_host_that_comes_back_does_not_take_in_any_more(client: Client, how: str) -> None:
    host = await put(client, [1], queue="old")
    if how == "promote":
        await client.change(host["id"], ready_at=client.site.now + 60_000)
        await client.change(host["id"], ready_at=None)
    else:
        stream = await client.take(queue="old")
        await stream.job()
        match how:
            case "requeue":
                await stream.close()
            case "retry":
                await client.fail(host["id"], retry_at=client.site.now + 60_000)
            case "release":
                reply = await client.post(f"/jobs/{host['id']}/release", {"delay_ms": 60_000})
                assert reply.status < 300
            case "restart":
                await client.site.crash()
        await stream.close()
        if how in ("retry", "release"):
            await client.change(host["id"], ready_at=None)
    await client.until(host["id"], status="ready")
    assert (await put(client, [2]))["id"] != host["id"]
    assert await payload_of(client, host) == [1]


async def test_a_batch_stays_open_over_a_restart(client: Client) -> None:
    host = await put(client, [1])
    await client.site.restart()
    assert (await put(client, [2]))["id"] == host["id"]
    await client.site.crash()
    assert (await put(client, [3]))["id"] == host["id"]
    assert await payload_of(client, host) == [1, 2, 3]


async def test_a_host_that_is_moved_to_another_queue_takes_in_more(client: Client) -> None:
    host = await put(client, [1])
    await client.change(host["id"], queue="elsewhere", priority=1)
    folded = await put(client, [2])
    assert (folded["id"], folded["queue"], folded["priority"]) == (host["id"], "elsewhere", 1)


async def test_what_is_scheduled_neither_folds_nor_hosts(client: Client) -> None:
    later = client.site.now + 60_000
    scheduled = await put(client, [1], ready_at=later)
    assert scheduled["batch"] == {"key": "b", **APPEND}
    host = await put(client, [2])
    again = await put(client, [3], ready_at=later)
    assert len({scheduled["id"], host["id"], again["id"]}) == 3
    await client.change(scheduled["id"], ready_at=None)
    assert (await put(client, [4]))["id"] == host["id"]
    assert await payload_of(client, host) == [2, 4]
    assert await payload_of(client, scheduled) == [1]


async def test_a_past_time_folds(client: Client) -> None:
    host = await put(client, [1], ready_at=client.site.now - 5)
    folded = await put(client, [2], ready_at=1)
    assert (folded["id"], folded["ready_at"]) == (host["id"], host["ready_at"])


async def test_in_one_bulk_request_jobs_fold_into_earlier_ones(client: Client) -> None:
    jobs = [
        batched([1], "a"),
        new_job(payload="plain"),
        batched([2], "a"),
        batched([3], "b"),
        new_job(payload="u", unique_key="u"),
        batched([4], "a"),
        new_job(payload="v", unique_key="u"),
        batched([5], "b"),
    ]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    assert reply.status == 201
    found = reply.doc["jobs"]
    folded = [job["folded"] for job in found]
    assert folded == [False, False, True, False, False, True, False, True]
    assert [job["duplicate"] for job in found] == [False] * 6 + [True, False]
    assert found[0]["id"] == found[2]["id"] == found[5]["id"]
    assert found[3]["id"] == found[7]["id"]
    assert await payload_of(client, found[0]) == [1, 2, 4]
    assert await payload_of(client, found[3]) == [3, 5]
    assert await client.count() == 4


async def test_a_bulk_request_that_only_folds_answers_200(client: Client) -> None:
    host = await put(client, [1])
    reply = await client.post("/jobs/bulk", {"jobs": [batched([2]), batched([3])]})
    assert reply.status == 200
    assert [job["id"] for job in reply.doc["jobs"]] == [host["id"]] * 2
    await client.enqueue(unique_key="u")
    mixed = await client.post("/jobs/bulk", {"jobs": [new_job(unique_key="u"), batched([4])]})
    assert mixed.status == 200
    assert await payload_of(client, host) == [1, 2, 3, 4]


async def test_a_bulk_request_seals_and_goes_on(client: Client) -> None:
    host = await put(client, [0], when="($existing | length) < 2")
    jobs = [batched([number], when="($existing | length) < 3") for number in range(1, 8)]
    found = (await client.post("/jobs/bulk", {"jobs": jobs})).doc["jobs"]
    assert [job["folded"] for job in found] == [True, False, True, True, False, True, True]
    payloads = [await payload_of(client, job) for job in await client.jobs()]
    assert payloads == [[0, 1], [2, 3, 4], [5, 6, 7]]
    assert found[0]["id"] == host["id"]
    # The last of them is the host now.
    assert (await put(client, [8]))["folded"] is False


async def test_a_bulk_request_in_which_one_fold_fails_changes_nothing(client: Client) -> None:
    fold = 'if $new == [13] then error("unlucky") else $existing + $new end'
    host = await put(client, [1], fold=fold)
    jobs = [batched([2]), batched([5], "other"), new_job(), batched([13])]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    assert (reply.status, reply.error) == (422, "jobs[3]: batch fold: unlucky")
    assert await payload_of(client, host) == [1]
    assert await client.count() == 1
    assert (await put(client, [5], "other"))["folded"] is False


async def test_a_fold_that_fails_answers_its_own_request_alone(client: Client) -> None:
    fold = 'if $new == [13] and $existing != $new then error("unlucky") else $existing + $new end'
    host = await put(client, [0], fold=fold)
    numbers = [*range(1, 12), 13, *range(14, 30)]
    replies = await asyncio.gather(*(client.post("/jobs", batched([n])) for n in numbers))
    failed = {n: reply for n, reply in zip(numbers, replies, strict=True) if reply.status != 200}
    assert list(failed) == [13]
    assert (failed[13].status, failed[13].error) == (422, "batch fold: unlucky")
    assert sorted(await payload_of(client, host)) == [n for n in range(30) if n not in (12, 13)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"when": "("}, "batch expression: when: "),
        ({"fold": "("}, "batch expression: fold: "),
        ({"when": "$nothing"}, "batch expression: when: $nothing is not defined at line 1"),
        ({"fold": "\n no_such"}, "batch expression: fold: no_such/0 is not defined at line 2"),
        ({"when": "true) | (true"}, "batch expression: when: "),
        ({"fold": 'import "a" as a; 1'}, "batch expression: fold: "),
        ({"fold": "1 \0"}, "batch expression: fold: it contains a NUL character"),
        ({"when": 'error("why")'}, "batch dry-run: when: why"),
        ({"when": "$existing.a"}, "batch dry-run: when: "),
        ({"fold": 'error("why")'}, "batch dry-run: fold: why"),
        ({"fold": "$existing + {}"}, "batch dry-run: fold: array ([1]) and object"),
        ({"fold": "empty"}, "batch dry-run: fold: it has to give exactly one output"),
        ({"fold": "1, 2"}, "batch dry-run: fold: it has to give exactly one output"),
        ({"fold": "range(1e9)"}, "batch dry-run: fold: it has to give exactly one output"),
        ({"fold": "input"}, "batch expression: fold: input"),
        ({"fold": "halt"}, "batch dry-run: fold: halt is not available"),
        ({"when": "halt_error"}, "batch dry-run: when: halt_error is not available"),
    ],
)
async def test_rules_are_tried_before_anything_is_stored(
    client: Client, fields: Doc, message: str
) -> None:
    status, text = await refusal(client, [1], **fields)
    assert (status, text[: len(message)]) == (422, message)
    # Also where there is a host, whose own rule would do.
    host = await put(client, [0])
    assert await refusal(client, [1], **fields) == (status, text)
    assert await refusal(client, [1], ready_at=client.site.now + 60_000, **fields) == (status, text)
    bulk = {"jobs": [new_job(), batched([2]), batched([1], **fields)]}
    reply = await client.post("/jobs/bulk", bulk)
    assert (reply.status, reply.error) == (422, f"jobs[2]: {text}")
    assert await payload_of(client, host) == [0]
    assert await client.count() == 1


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"when": "true", "fold": "1"}, "key"),
        ({"key": "b", "fold": "1"}, "when"),
        ({"key": "b", "when": "true"}, "fold"),
        ({"key": 1, "when": "true", "fold": "1"}, "batch.key"),
        ({"key": "", "when": "true", "fold": "1"}, "batch.key must not be empty"),
        ({"key": "k" * 2_049, "when": "true", "fold": "1"}, "batch.key must not have more than"),
        ({"key": "b", "when": "#" * 8_193, "fold": "1"}, "batch.when must not have more than 8192"),
        ({"key": "b", "when": "1", "fold": "é" * 4_097}, "batch.fold must not have more than 8192"),
        ([], "batch"),
    ],
)
async def test_a_batch_has_three_texts(client: Client, batch: Any, message: str) -> None:
    reply = await client.post("/jobs", new_job(batch=batch))
    assert reply.status == 400
    assert message in reply.error


async def test_programs_may_be_as_long_as_that(client: Client) -> None:
    rule = {name: f"{text} #".ljust(8_192, "x") for name, text in APPEND.items()}
    host = await put(client, [1], **rule)
    assert (await put(client, [2], **rule))["folded"] is True
    assert await payload_of(client, host) == [1, 2]


async def test_a_null_batch_is_none(client: Client) -> None:
    job = await client.enqueue(batch=None)
    assert "batch" not in job


async def test_a_batch_with_a_unique_key_is_refused(client: Client) -> None:
    # Before anything is compiled.
    reply = await client.post("/jobs", batched([1], unique_key="u", when="("))
    assert (reply.status, reply.error) == (400, "unique_key and batch cannot be combined")
    reply = await client.post("/jobs/bulk", {"jobs": [new_job(), batched([1], unique_key="u")]})
    assert reply.error == "jobs[1]: unique_key and batch cannot be combined"


NUMBERS = [2**53 + 1, -(2**53) - 1, 2**64 - 1, -(2**63), 0, -1, 0.1, 1e300, 5e-324]


async def test_numbers_and_nested_data_pass_through_unchanged(client: Client) -> None:
    nested = {"a": [{"b": NUMBERS}, None, True, 'é\u0000"\\😀\u2028'], "": {}}
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    host = await put(client, [nested])
    for part in (NUMBERS, deep):
        await put(client, [part])
    assert await payload_of(client, host) == [nested, NUMBERS, deep]
    stream = await client.take()
    assert (await stream.job())["payload"] == [nested, NUMBERS, deep]


async def test_programs_may_sort_and_compare_long_integers(client: Client) -> None:
    host = await put(client, [2**53 + 1], fold="$existing + $new | unique")
    for number in (2**53, 2**53 + 1, 2**53 + 2):
        await put(client, [number])
    assert await payload_of(client, host) == [2**53, 2**53 + 1, 2**53 + 2]


@pytest.mark.settings(max_payload=2_000)
async def test_a_fold_that_gives_what_no_payload_may_be_is_refused(client: Client) -> None:
    large = "x" * 1_500
    host = await put(client, [large])
    status, message = await refusal(client, [large])
    assert status == 422
    assert message.startswith("batch fold: the payload would have 3007 bytes, but at most 2000")
    # It still takes in what there is room for, also beside what there is none for.
    replies = await asyncio.gather(*(client.post("/jobs", batched([n])) for n in (1, large, 2)))
    assert [reply.status for reply in replies] == [200, 422, 200]
    assert sorted(map(str, await payload_of(client, host))) == sorted(["1", "2", large])
    await put(client, 2**40, "product", fold="$existing * $new")
    status, message = await refusal(client, 2**40, key="product")
    assert (status, message) == (
        422,
        "batch fold: the payload would hold an integer outside of -2^63 and 2^64-1",
    )
    deep = "reduce range(70) as $_ ([$existing, $new]; [.])"
    await put(client, 1, "deep", fold=deep)
    await put(client, 1, "deep", fold=deep)
    status, message = await refusal(client, 1, key="deep", fold=deep)
    assert (status, message) == (422, "batch fold: the payload would nest deeper than 128")


@pytest.mark.settings(filter_timeout=400)
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_programs_that_do_not_end_are_refused_and_hold_up_nobody_for_long(
    client: Client,
) -> None:
    endless = "if $existing == $new then true else (def f: f; f) end"
    await put(client, [0], "endless", when=endless)
    host = await put(client, [0])
    requests = [batched([1], "endless"), batched([1])]
    replies = await asyncio.gather(*(client.post("/jobs", request) for request in requests))
    assert [reply.status for reply in replies] == [422, 200]
    assert replies[0].error == "batch fold: it takes too long"
    status, message = await refusal(client, [2], when="def f: f; f")
    assert (status, message) == (422, "batch dry-run: it took longer than 0.4 s")
    assert await payload_of(client, host) == [0, 1]


@pytest.mark.settings(max_payload=600_000)
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_a_program_that_needs_too_much_memory_is_refused(client: Client) -> None:
    status, message = await refusal(client, [1], fold='"x" * 1e9')
    assert status == 422
    assert message.startswith("batch dry-run: ")
    await put(client, [1])


async def test_large_hosts_lie_beside_their_rows_and_come_back(client: Client) -> None:
    host = await put(client, ["a" * 100])
    sizes = []
    for _ in range(8):
        await put(client, ["b" * 100])
        sizes.append(len(json.dumps(await payload_of(client, host))))
    assert sizes[0] < 512 < sizes[-1]
    small = await put(client, "x", "last", fold="$new")
    for text in ("y" * 2_000, "z"):
        await put(client, text, "last", fold="$new")
        assert await payload_of(client, small) == text
    stream = await client.take(prefetch=2)
    taken = {job["id"]: job["payload"] for job in (await stream.job(), await stream.job())}
    assert taken == {host["id"]: ["a" * 100, *["b" * 100] * 8], small["id"]: "z"}


async def test_many_at_once_are_all_folded_once(client: Client) -> None:
    count = 200
    rule = {"when": "($existing | length) < 30"}
    replies = await asyncio.gather(
        *(client.post("/jobs", batched([n], f"b{n % 3}", **rule)) for n in range(count))
    )
    assert {reply.status for reply in replies} == {200, 201}
    jobs = await client.jobs(limit=200)
    assert sorted(n for job in jobs for n in job["payload"]) == list(range(count))
    where = {n: job["id"] for job in jobs for n in job["payload"]}
    assert [reply.doc["id"] for reply in replies] == [where[n] for n in range(count)]
    assert Counter(reply.status for reply in replies)[201] == len(jobs)
    assert all(len(job["payload"]) <= 30 for job in jobs)


async def test_a_batch_is_folded_into_while_its_hosts_are_taken(client: Client) -> None:
    count = 150
    stream = await client.take(prefetch=1_000)

    async def produce(n: int) -> Reply:
        return await client.post("/jobs", batched([n]))

    replies = await asyncio.gather(*(produce(n) for n in range(count)))
    stored = sum(reply.status == 201 for reply in replies)
    delivered = [job["payload"] for job in [await stream.job() for _ in range(stored)]]
    assert sorted(n for payload in delivered for n in payload) == list(range(count))


async def test_wait_on_a_fold_waits_for_the_host(client: Client) -> None:
    host = await put(client, [0])
    folded = asyncio.create_task(client.post("/jobs?wait_ms=30000", batched([1])))
    await until_folded(client, host, [0, 1])
    stream = await client.take()
    assert (await stream.job())["id"] == host["id"]
    assert (await client.post(f"/jobs/{host['id']}/success", {"result": 5})).status == 204
    answer = (await folded).doc
    assert answer["result"] == 5
    assert (answer["job"]["id"], answer["job"]["folded"]) == (host["id"], True)


async def test_a_copy_by_name_is_not_folded_again(client: Client) -> None:
    host = await put(client, [1])
    named = batched([2], dedupe={"id": "n"})
    first = await client.post("/jobs", named)
    assert (first.status, first.doc["id"], first.doc["folded"]) == (200, host["id"], True)
    again = await client.post("/jobs", named)
    assert (again.status, again.doc["id"]) == (200, host["id"])
    assert (again.doc["duplicate"], again.doc["folded"]) == (True, False)
    bulk = [batched([3], dedupe={"id": "m"}), batched([4]), batched([3], dedupe={"id": "m"}), named]
    found = (await client.post("/jobs/bulk", {"jobs": bulk})).doc["jobs"]
    assert [job["folded"] for job in found] == [True, True, False, False]
    assert [job["duplicate"] for job in found] == [False, False, True, True]
    assert await payload_of(client, host) == [1, 2, 3, 4]
    many = [client.post("/jobs", batched([5], dedupe={"id": "same"})) for _ in range(10)]
    replies = await asyncio.gather(*many)
    assert sum(reply.doc["folded"] for reply in replies) == 1
    assert await payload_of(client, host) == [1, 2, 3, 4, 5]
    # Its window is over.
    client.site.clock.advance(300_000)
    assert (await client.post("/jobs", named)).doc["folded"] is True


async def test_a_host_of_a_group_takes_in_what_comes_and_keeps_its_place(client: Client) -> None:
    head = await client.enqueue(queue="g", group="x")
    host = await put(client, [1], queue="g", group="x")
    await put(client, [2], queue="g", group="x")
    await put(client, [3], queue="h", group="y")
    stream = await client.take(prefetch=10)
    assert (await stream.job())["id"] == head["id"]
    assert not await stream.has_frame()
    # It waits behind its group's gate, and is ready.
    await put(client, [4])
    await client.succeed(head["id"])
    taken = await stream.job()
    assert (taken["id"], taken["payload"], taken["group"]) == (host["id"], [1, 2, 3, 4], "x")


async def test_a_full_queue_takes_folds_and_no_new_hosts(client: Client) -> None:
    rule = {"when": "($existing | length) < 2", "queue": "full"}
    host = await put(client, [1], **rule)
    await client.call("PUT", "/queues/full/settings", {"max_depth": 1})
    assert (await put(client, [2], **rule))["id"] == host["id"]
    reply = await client.post("/jobs", batched([3], **rule))
    assert (reply.status, await payload_of(client, host)) == (429, [1, 2])
    both = {"jobs": [batched([4], "other", queue="free"), batched([5], **rule)]}
    assert (await client.post("/jobs/bulk", both)).status == 429
    assert await client.count() == 1
    # What was refused has not become the host.
    await client.delete(f"/jobs/{host['id']}")
    assert (await put(client, [6], **rule))["folded"] is False


async def test_a_key_neither_folds_into_nor_learns_of_a_host_beyond_its_reach(
    client: Client, tmp_path: Path
) -> None:
    keys = write_keys(tmp_path / "keys")
    await client.site.restart(keys=keys)
    async with (
        client_of(client.site, client.wire, "root") as root,
        client_of(client.site, client.wire, "shop") as shop,
    ):
        fold = "if $existing == $new then $new else error($existing | tojson) end"
        host = await put(root, ["secret"], queue="bank", fold=fold)
        inside = batched([1], queue="shop-1")
        for request in (inside, batched([1], queue="shop-1", when="false")):
            reply = await shop.post("/jobs", request)
            assert reply.status == 409
            assert reply.error == "a job that this key may not see hosts the same batch"
        bulk = {"jobs": [batched([1], "own", queue="shop-1"), inside]}
        assert (await shop.post("/jobs/bulk", bulk)).status == 409
        assert await payload_of(root, host) == ["secret"]
        own = await put(shop, [1], "own", queue="shop-1")
        assert (await put(shop, [2], "own", queue="shop-2"))["id"] == own["id"]
        # Whoever sees all folds into both.
        assert (await put(root, [3], "own", queue="bank"))["id"] == own["id"]


@pytest.mark.settings(max_inbox_jobs=1)
async def test_an_inbox_of_one_takes_one_fold_after_the_other(client: Client) -> None:
    host = await put(client, [1])
    await put(client, [2])
    replies = await asyncio.gather(*(client.post("/jobs", batched([n])) for n in range(3, 13)))
    assert {reply.status for reply in replies} <= {200, 503}
    kept = [n for n, reply in zip(range(3, 13), replies, strict=True) if reply.status == 200]
    assert kept
    assert sorted(await payload_of(client, host)) == [1, 2, *kept]
    # Nothing that waited is counted any longer.
    await put(client, [13])


async def test_folds_are_counted_and_tell_of_no_new_job(client: Client) -> None:
    events = await client.listen()
    host = await put(client, [1])
    await put(client, [2])
    other = await client.enqueue()
    named = [await events.event() for _ in range(2)]
    assert [event["id"] for event in named] == [host["id"], other["id"]]


async def test_the_numbers_may_come_in_one_format_and_leave_in_the_other(client: Client) -> None:
    body = to_msgpack(batched([2**63, -5]))
    headers = {"content-type": "application/msgpack"}
    first = await client.send("POST", "/jobs", body, headers)
    assert first.status == 201
    await put(client, [2**63 + 1])
    assert await payload_of(client, first.doc) == [2**63, -5, 2**63 + 1]
