"""Names, ids and the ranges of numbers."""

import re
from urllib.parse import quote

import pytest

from .client import JSON, MSGPACK, Client, Doc, ids, new_job
from .raw import exchange
from .site import Site

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
BACKOFF: Doc = {"exponent": 2.0, "base_ms": 100, "jitter_ms": 0}


async def statuses(client: Client, field: str, *values: object) -> set[int]:
    """The statuses that enqueues with these values of one field get."""
    return {(await client.post("/jobs", new_job(**{field: value}))).status for value in values}


NAMES = ["a", "a/b", "a b", "a.b", "a&b", "a=b#c", "a%2Fb", 'a"b', "жук", "🐝", " ", "~", "q" * 500]


@pytest.mark.parametrize("field", ["queue", "type"])
async def test_almost_everything_is_a_name(client: Client, field: str) -> None:
    for name in NAMES:
        job = await client.enqueue(**{field: name})
        assert (job[field], (await client.job(job["id"]))[field]) == (name, name)


@pytest.mark.parametrize("field", ["queue", "type"])
async def test_reserved_characters_are_refused_wherever_they_stand(
    client: Client, field: str
) -> None:
    for character in "?*[]{}\\,\0":
        for name in (character, f"{character}a", f"a{character}b", f"a{character}"):
            reply = await client.post("/jobs", new_job(**{field: name}))
            assert reply.status == 400, name
            assert reply.error.startswith(f"{field} must not contain "), name
    assert await client.count() == 0


@pytest.mark.parametrize(
    ("field", "most"), [("queue", 512), ("type", 512), ("group", 512), ("unique_key", 2048)]
)
async def test_a_name_has_a_bound_in_bytes(client: Client, field: str, most: int) -> None:
    for fits in ("x" * most, "é" * (most // 2), "🐝" * (most // 4)):
        assert (await client.enqueue(**{field: fits}))[field] == fits
    for over in ("x" * (most + 1), "é" * (most // 2) + "x", "x" * 3_000_000):
        for target, doc in (
            ("/jobs", new_job(**{field: over})),
            ("/jobs/bulk", {"jobs": [new_job(), new_job(**{field: over})]}),
        ):
            reply = await client.post(target, doc)
            assert (reply.status, reply.headers["zq-error"]) == (400, "invalid_request")
            assert f"{field} must not have more than {most} bytes" in reply.error
    assert await client.count() == 3


async def test_a_job_cannot_be_moved_to_a_queue_of_too_long_a_name(client: Client) -> None:
    job = await client.enqueue()
    reply = await client.patch(f"/jobs/{job['id']}", {"queue": "q" * 513})
    assert reply.status == 422
    assert "512 bytes" in reply.error


async def test_priority_is_16_bits_wide(client: Client) -> None:
    assert await statuses(client, "priority", 0, 1, 32768, 65535) == {201}
    assert await statuses(client, "priority", -1, 65536, 2**64, "5", True, [1]) == {400}


async def test_the_default_priority_is_32768(client: Client) -> None:
    assert (await client.enqueue())["priority"] == 32768


async def test_retry_limit_is_32_bits_wide(client: Client) -> None:
    assert await statuses(client, "retry_limit", 0, 2**32 - 1) == {201}
    assert await statuses(client, "retry_limit", -1, 2**32, 1.5, False) == {400}


async def test_backoff_milliseconds_are_32_bits_wide(client: Client) -> None:
    for part in ("base_ms", "jitter_ms"):
        good = [BACKOFF | {part: value} for value in (0, 2**32 - 1)]
        assert await statuses(client, "backoff", *good) == {201}
        bad = [BACKOFF | {part: value} for value in (-1, 2**32, 0.5, "1", None)]
        assert await statuses(client, "backoff", *bad) == {400}


async def test_the_backoff_exponent_is_any_number(client: Client) -> None:
    for exponent in (0, 2, 1.5, 4.0):
        job = await client.enqueue(backoff=BACKOFF | {"exponent": exponent})
        assert job["backoff"]["exponent"] == exponent
    bad = [BACKOFF | {"exponent": value} for value in ("2", None, True, [2])]
    assert await statuses(client, "backoff", *bad) == {400}


async def test_a_backoff_needs_all_three_fields(client: Client) -> None:
    for field in BACKOFF:
        partial = {name: value for name, value in BACKOFF.items() if name != field}
        assert await statuses(client, "backoff", partial) == {400}


async def test_times_and_durations_are_not_negative_integers(client: Client) -> None:
    assert await statuses(client, "ready_at", 0, 1, 2**53 + 1, 2**63 - 1) == {201}
    assert await statuses(client, "ready_at", -1, 2**64, 1.5, "now", True) == {400}
    for part in ("completed_ms", "dead_ms"):
        assert await statuses(client, "retention", {part: 0}, {part: 2**63 - 1}) == {201}
        bad = [{part: value} for value in (-1, 2**64, 1.5, "1")]
        assert await statuses(client, "retention", *bad) == {400}


async def test_large_times_come_back_exactly(client: Client) -> None:
    job = await client.enqueue(ready_at=2**53 + 1, retention={"dead_ms": 2**53 + 3})
    assert job["ready_at"] == 2**53 + 1
    assert (await client.job(job["id"]))["retention"] == {"dead_ms": 2**53 + 3}


async def test_integral_floats_are_integers(client: Client) -> None:
    backoff = {"exponent": 2, "base_ms": 15000.0, "jitter_ms": 30000.0}
    job = await client.enqueue(
        priority=5.0, retry_limit=3.0, ready_at=1000.0, backoff=backoff, retention={"dead_ms": 9.0}
    )
    stored = await client.job(job["id"])
    numbers = [
        stored["priority"],
        stored["retry_limit"],
        stored["ready_at"],
        stored["backoff"]["base_ms"],
        stored["backoff"]["jitter_ms"],
        stored["retention"]["dead_ms"],
    ]
    assert [repr(number) for number in numbers] == ["5", "3", "1000", "15000", "30000", "9"]


async def test_floats_with_a_fraction_are_no_integers(client: Client) -> None:
    for field in ("priority", "retry_limit", "ready_at"):
        assert await statuses(client, field, 1.5, 0.1, -0.5, 1e300) == {400}


async def test_integral_floats_are_integers_in_patches_and_failures(client: Client) -> None:
    job = await client.enqueue()
    assert repr((await client.change(job["id"], priority=7.0))["priority"]) == "7"
    assert (await client.patch(f"/jobs/{job['id']}", {"priority": 7.5})).status == 400
    held = await client.in_flight(queue="other")
    retry_at = client.site.now + 5_000
    assert (await client.fail(held["id"], retry_at=float(retry_at)))["ready_at"] == retry_at


async def test_ids_are_ulids_that_rise_also_within_one_request(client: Client) -> None:
    issued = [(await client.enqueue())["id"]]
    issued += await client.enqueue_many(500)
    issued += [(await client.enqueue())["id"]]
    assert all(ULID.fullmatch(job_id) for job_id in issued)
    assert issued == sorted(set(issued))


async def test_ids_rise_across_a_backward_step_of_the_clock_and_a_restart(client: Client) -> None:
    site = client.site
    issued = await client.enqueue_many(3)
    site.clock.step(-3_600_000)
    issued += await client.enqueue_many(3)
    await site.restart()
    issued += await client.enqueue_many(3)
    site.clock.step(-3_600_000)
    await client.send("POST", "/reset")
    await site.restart()
    issued += await client.enqueue_many(3)
    assert issued == sorted(set(issued))


async def test_a_job_may_have_any_id_in_a_path_and_nonsense_is_404(client: Client) -> None:
    good = (await client.enqueue())["id"]
    nonsense = ["x", "a/b", "🐝", " ", "%", good.lower() + "x", "I" * 26, "8" * 26, "0" * 5_000]
    for text in nonsense:
        for target in (f"/jobs/{quote(text, safe='')}", f"/jobs/{quote(text, safe='')}/errors"):
            reply = await client.get(target)
            assert (reply.status, reply.error) == (404, "job not found"), text


async def test_path_parameters_are_percent_decoded_once(site: Site) -> None:
    async with Client(site, JSON) as client:
        good = (await client.enqueue())["id"]

    async def status(path: str) -> tuple[int, str]:
        request = f"GET {path} HTTP/1.1\r\nHost: q\r\n\r\n"
        reply = await exchange(site.port, request.encode())
        return reply.status, reply.doc.get("error", "")

    escaped = f"%{ord(good[0]):x}{good[1:]}"
    assert await status(f"/jobs/{escaped}") == (200, "")
    assert await status(f"/jobs/{quote(escaped)}") == (404, "job not found")
    assert await status("/jobs/a%2Fb") == (404, "job not found")
    assert await status("/jobs/a%2Ferrors/errors") == (404, "job not found")
    # An escaped slash is part of the name: this is a job called "x/errors".
    assert await status(f"/jobs/{good}%2Ferrors") == (404, "job not found")
    assert await status(f"/jobs/{good}/errors") == (200, "")


ANY_JSON = [None, False, 0, "", [], {}, [None], {"": None}]


async def test_any_json_value_is_a_payload(site: Site) -> None:
    for payload in ANY_JSON:
        for wire in (JSON, MSGPACK):
            async with Client(site, wire) as client:
                job = await client.enqueue(payload=payload)
                assert repr((await client.job(job["id"]))["payload"]) == repr(payload)


async def test_path_words_can_be_names_of_queues(client: Client) -> None:
    jobs: list[Doc] = [await client.enqueue(queue=name) for name in ("take", "bulk", "a/b")]
    assert [job["queue"] for job in await client.jobs()] == ["take", "bulk", "a/b"]
    assert ids(await client.jobs(queue="a/b")) == ids(jobs[2:])
