"""The programs of batches: what they decide, what they give, and which are refused."""

import asyncio
import contextlib
import os
import signal

import pytest
from engine.jq.processes import busy

from .batches import APPEND, batched, payload_of, put, refusal
from .client import JSON, Client, new_job


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


DECISIONS = [
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
]


@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_the_first_output_of_when_decides(client: Client) -> None:
    for when, folds in DECISIONS:
        await put(client, [1], when, when=when)
        assert (await put(client, [2], when, when=when))["folded"] is folds


async def test_a_fold_that_fails_answers_its_own_request_alone(client: Client) -> None:
    fold = 'if $new == [13] and $existing != $new then error("unlucky") else $existing + $new end'
    host = await put(client, [0], fold=fold)
    numbers = [*range(1, 12), 13, *range(14, 30)]
    replies = await asyncio.gather(*(client.post("/jobs", batched([n])) for n in numbers))
    failed = {n: reply for n, reply in zip(numbers, replies, strict=True) if reply.status != 200}
    assert list(failed) == [13]
    assert (failed[13].status, failed[13].error) == (422, "batch fold: unlucky")
    assert sorted(await payload_of(client, host)) == [n for n in range(30) if n not in (12, 13)]


BAD_RULES = [
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
]


async def test_rules_are_tried_before_anything_is_stored(client: Client) -> None:
    refused = []
    for fields, message in BAD_RULES:
        status, text = await refusal(client, [1], **fields)
        assert (status, text[: len(message)]) == (422, message)
        refused.append((fields, text))
    # Also where there is a host, whose own rule would do.
    host = await put(client, [0])
    later = client.site.now + 60_000
    for fields, text in refused:
        assert await refusal(client, [1], **fields) == (422, text)
        assert await refusal(client, [1], ready_at=later, **fields) == (422, text)
        bulk = {"jobs": [new_job(), batched([2]), batched([1], **fields)]}
        reply = await client.post("/jobs/bulk", bulk)
        assert (reply.status, reply.error) == (422, f"jobs[2]: {text}")
    assert await payload_of(client, host) == [0]
    assert await client.count() == 1


BAD_BATCHES = [
    ({"when": "true", "fold": "1"}, "key"),
    ({"key": "b", "fold": "1"}, "when"),
    ({"key": "b", "when": "true"}, "fold"),
    ({"key": 1, "when": "true", "fold": "1"}, "batch.key"),
    ({"key": "", "when": "true", "fold": "1"}, "batch.key must not be empty"),
    ({"key": "k" * 2_049, "when": "true", "fold": "1"}, "batch.key must not have more than"),
    ({"key": "b", "when": "#" * 8_193, "fold": "1"}, "batch.when must not have more than 8192"),
    ({"key": "b", "when": "1", "fold": "é" * 4_097}, "batch.fold must not have more than 8192"),
    ([], "batch"),
]


async def test_a_batch_has_three_texts(client: Client) -> None:
    for batch, message in BAD_BATCHES:
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


async def rest_when_busy() -> None:
    """Let endless programs rest once they are known to run: they take too long in any case."""
    while True:
        for child in busy(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)
        await asyncio.sleep(0.1)


@pytest.mark.settings(filter_timeout=4_000)
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_programs_that_do_not_end_are_refused_and_hold_up_nobody_for_long(
    client: Client,
) -> None:
    endless = "if $existing == $new then true else (def f: f; f) end"
    await put(client, [0], "endless", when=endless)
    host = await put(client, [0])
    resting = asyncio.create_task(rest_when_busy())
    requests = [batched([1], "endless"), batched([1])]
    replies = await asyncio.gather(*(client.post("/jobs", request) for request in requests))
    assert [reply.status for reply in replies] == [422, 200]
    assert replies[0].error == "batch fold: it takes too long"
    status, message = await refusal(client, [2], when="def f: f; f")
    assert (status, message) == (422, "batch dry-run: it took longer than 4 s")
    assert await payload_of(client, host) == [0, 1]
    resting.cancel()
    await asyncio.wait([resting])


@pytest.mark.settings(max_payload=600_000)
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_a_program_that_needs_too_much_memory_is_refused(client: Client) -> None:
    status, message = await refusal(client, [1], fold='"x" * 1e9')
    assert status == 422
    assert message.startswith("batch dry-run: ")
    await put(client, [1])
