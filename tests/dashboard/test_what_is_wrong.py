"""What the server says of itself to a page: figures, findings by kinds, queues and workers."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from conformance.site import Site
from conformance.streams import pause

from zq.features.trends.model import MINUTE_MS
from zq.model.errors import QueueOutOfReach
from zq.model.reach import Reach
from zq.operators.page.http.views import View, Views
from zq.operators.page.service import Overviews

pytestmark = pytest.mark.settings(no_admin=False, admin_port=0)

Doc = dict[str, Any]


class Operator:
    """Somebody who sends jobs, works on them, and looks at the page."""

    def __init__(self, site: Site, http: aiohttp.ClientSession) -> None:
        self.site = site
        self.http = http

    async def send(self, method: str, path: str, body: object = None) -> Any:
        async with self.http.request(method, f"{self.site.url}{path}", json=body) as answer:
            assert answer.ok, await answer.text()
            return await answer.json() if answer.content_type == "application/json" else None

    async def push(self, queue: str, count: int = 1, **fields: Any) -> list[str]:
        jobs = [{"queue": queue, "type": "t", "payload": n} | fields for n in range(count)]
        stored = (await self.send("POST", "/jobs/bulk", {"jobs": jobs}))["jobs"]
        return [job["id"] for job in stored]

    async def look(self, topic: str, **view: Any) -> Doc:
        """The document of a topic as it is now."""
        # What was looked at lately would be shown again.
        self.site.clock.advance(6_000)
        url = f"{self.site.admin_url}/ui/look"
        async with self.http.get(url, params={"topic": topic, **view}) as answer:
            assert answer.status == 200, await answer.text()
            found: Doc = (await answer.json())["full"]
        return found

    async def codes(self) -> list[str]:
        """The kinds of what is wrong."""
        return [kind["code"] for kind in of_queues(await self.look("overview"))]

    async def until_taken(self, id: str) -> None:
        """Wait for the delivery of a job."""
        async with asyncio.timeout(60):
            while (await self.send("GET", f"/jobs/{id}"))["status"] != "in_flight":
                await pause()

    @asynccontextmanager
    async def worker(self, **view: Any) -> AsyncIterator[aiohttp.StreamReader]:
        """A worker with an open stream."""
        async with self.http.get(f"{self.site.url}/jobs/take", params=view) as answer:
            assert answer.status == 200
            yield answer.content


@pytest.fixture
async def operator(site: Site) -> AsyncIterator[Operator]:
    async with aiohttp.ClientSession(trust_env=False) as http:
        yield Operator(site, http)


def of_queues(document: Doc) -> list[Doc]:
    """What is wrong with queues. A loaded machine may have a slow disk besides."""
    return [kind for kind in document["findings"] if "queues" in kind]


def states(document: Doc) -> list[tuple[str, str]]:
    """The queues in their order, with their states."""
    return [(name, document["queues"][name].get("state", "")) for name in document["order"]]


async def test_no_worker_is_said_after_a_minute_and_of_one_kind_three_queues_are_named(
    operator: Operator,
) -> None:
    for n in range(1, 5):
        await operator.push(f"q{n}", n)
    found = await operator.look("overview")
    assert of_queues(found) == []
    assert states(found) == [("q4", ""), ("q3", ""), ("q2", ""), ("q1", "")]
    operator.site.clock.advance(MINUTE_MS)
    found = await operator.look("overview")
    (alone,) = of_queues(found)
    assert (alone["code"], alone["severity"], alone["jobs"], alone["more"]) == (
        "no_worker",
        3,
        10,
        1,
    )
    assert [(each["queue"], each["text"]) for each in alone["queues"]] == [
        *(("q4", "4 waiting"), ("q3", "3 waiting"), ("q2", "2 waiting"))
    ]
    assert {state for _, state in states(found)} == {"no_worker"}
    pulse = found["pulse"]
    assert (pulse["findings"], pulse["worst"]) == (len(found["findings"]), 3)
    assert pulse["queues"] == 4


async def test_a_queue_whose_worker_has_just_left_has_a_minute_to_get_another(
    operator: Operator,
) -> None:
    async with operator.worker(queue="q") as stream:
        await operator.push("q", 2)
        await stream.readline()
        operator.site.clock.advance(10 * MINUTE_MS)
        assert (await operator.look("overview"))["queues"]["q"]["state"] == "old"
    while (await operator.look("overview"))["pulse"]["workers"]:
        await pause()
    assert (await operator.look("overview"))["queues"]["q"]["state"] == "old"
    operator.site.clock.advance(MINUTE_MS)
    assert (await operator.look("overview"))["queues"]["q"]["state"] == "no_worker"


async def test_the_worst_queue_is_the_one_that_grows_and_not_the_one_with_old_tests(
    operator: Operator,
) -> None:
    await operator.send("PUT", "/queues/held/settings", {"paused": True})
    async with operator.worker(queue="tests,big", prefetch=1) as stream:
        await operator.push("held", 9)
        await operator.push("tests", 3)
        await stream.readline()
        operator.site.clock.advance(10 * MINUTE_MS)
        await operator.push("big", 20)
        operator.site.clock.advance(2 * MINUTE_MS)
        found = await operator.look("overview")
    assert states(found) == [("big", "growing"), ("tests", "old"), ("held", "paused")]
    assert found["queues"]["big"]["state_text"].endswith(": never drained")


async def test_the_tiles_have_what_waits_runs_fails_and_is_dead(operator: Operator) -> None:
    async with operator.worker(queue="q", prefetch=4, concurrency=2, worker="w") as stream:
        ids = await operator.push("q", 6)
        for _ in range(4):
            await stream.readline()
        await operator.send("POST", f"/jobs/{ids[0]}/success")
        killed = {"message": "no", "kill": True}
        await operator.send("POST", f"/jobs/{ids[1]}/failure", killed)
        found = await operator.look("overview")
    tiles = found["tiles"]
    assert (tiles["busy"], tiles["slots"], tiles["workers"]) == (2, 2, 1)
    assert (tiles["failed"], tiles["dead"]) == (0.5, 1)
    # Each is rounded by itself.
    assert tiles["growth"] == pytest.approx(tiles["arrived"] - tiles["done"], abs=0.02)


async def test_a_worker_says_how_many_of_its_slots_have_a_job(operator: Operator) -> None:
    async with operator.worker(queue="q", prefetch=4, concurrency=2, worker="w") as stream:
        ids = await operator.push("q", 3, priority=1)
        for _ in range(3):
            await stream.readline()
        (worker,) = (await operator.look("workers"))["workers"]
        assert (worker["held"], worker["busy"], worker["concurrency"]) == (3, 2, 2)
        assert worker["jobs"] == ids
        (shown,) = (await operator.send("GET", "/workers"))["workers"]
        assert (shown["held"], shown["busy"]) == (ids, 2)
        one = await operator.look("worker", worker="w")
        assert [(job["id"], job["type"], job["queue"]) for job in one["jobs"]] == [
            (id, "t", "q") for id in ids
        ]
        assert [stream["id"] for stream in one["streams"]] == ["w"]
        queue = await operator.look("queue", queue="q")
        assert (queue["queue"]["workers"], queue["queue"]["slots"]) == (1, 2)
        assert queue["inherited"]["retry_limit"] == 25
        assert queue["why"]["slots_free"] == 0
    nobody = await operator.look("worker", worker="nobody")
    assert nobody | {"pulse": {}} == {"pulse": {}, "streams": [], "jobs": [], "failures": []}


async def test_a_worker_is_silent_when_it_does_not_renew_the_leases_of_its_jobs(
    operator: Operator,
) -> None:
    lease = {"worker": "w", "lease_ms": 60_000, "prefetch": 2}

    async def worker() -> Doc:
        found: list[Doc] = (await operator.look("workers"))["workers"]
        return found[0]

    async with operator.worker(queue="q", **lease) as stream:
        opened = operator.site.now
        operator.site.clock.advance(10 * MINUTE_MS)
        idle = await worker()
        assert (idle["silent"], idle["seen_at"]) == (False, opened)
        (id,) = await operator.push("q")
        await stream.readline()
        operator.site.clock.advance(20_000)
        assert not (await worker())["silent"]
        await operator.send("POST", f"/jobs/{id}/extend", {"lease_ms": 60_000})
        renewed = operator.site.now
        operator.site.clock.advance(20_000)
        said = await worker()
        assert (said["silent"], said["seen_at"]) == (False, renewed)
        operator.site.clock.advance(20_000)
        assert (await worker())["silent"]
        assert (await operator.look("overview"))["tiles"]["silent"] == 1
        await operator.send("POST", f"/jobs/{id}/success")
        acknowledged = operator.site.now
        assert not (await worker())["silent"]
        assert (await worker())["seen_at"] >= acknowledged


async def test_a_worker_without_leases_is_never_silent(operator: Operator) -> None:
    async with operator.worker(queue="q") as stream:
        await operator.push("q")
        await stream.readline()
        operator.site.clock.advance(30 * MINUTE_MS)
        (worker,) = (await operator.look("workers"))["workers"]
        assert (worker["silent"], worker["busy"]) == (False, 1)


async def test_a_worker_that_holds_a_stuck_job_says_so(operator: Operator) -> None:
    async with operator.worker(queue="q", prefetch=2, worker="w") as stream:
        (usual,) = await operator.push("q")
        await stream.readline()
        operator.site.clock.advance(3_000)
        await operator.send("POST", f"/jobs/{usual}/success")
        await operator.push("q")
        await stream.readline()
        assert [w["stuck"] for w in (await operator.look("workers"))["workers"]] == [0]
        operator.site.clock.advance(90 * MINUTE_MS)
        found = await operator.look("overview")
        assert [w["stuck"] for w in (await operator.look("workers"))["workers"]] == [1]
    (stuck,) = of_queues(found)
    assert (stuck["code"], stuck["jobs"]) == ("stuck", 1)
    said = r"1 job runs up to [\d,]+ times as long as its p99 of [234] s, on w"
    assert re.fullmatch(said, stuck["queues"][0]["text"])
    assert states(found) == [("q", "stuck")]


async def test_a_worker_counts_its_failures_and_has_the_latest(operator: Operator) -> None:
    async with operator.worker(queue="q", prefetch=2, worker="w") as stream:
        ids = await operator.push("q", 2)
        for id in ids:
            await stream.readline()
            await operator.send("POST", f"/jobs/{id}/failure", {"message": f"no {id}"})
        one = await operator.look("worker", worker="w")
    assert [stream["failed"] for stream in one["streams"]] == [2]
    assert [failure["message"] for failure in one["failures"]] == [f"no {id}" for id in ids[::-1]]
    assert [(each["id"], each["queue"], each["type"]) for each in one["failures"]] == [
        *((ids[1], "q", "t"), (ids[0], "q", "t"))
    ]


async def test_failing_says_since_when_and_after_which_mark(operator: Operator) -> None:
    async def fail(count: int) -> None:
        for id in await operator.push("q", count):
            await operator.until_taken(id)
            body = {"message": "no", "kill": True}
            await operator.send("POST", f"/jobs/{id}/failure", body)

    async with operator.worker(queue="q", prefetch=50):
        operator.site.clock.advance(10 * MINUTE_MS)
        for id in await operator.push("q", 10):
            await operator.until_taken(id)
            await operator.send("POST", f"/jobs/{id}/success")
        operator.site.clock.advance(20 * MINUTE_MS)
        await operator.send("POST", "/marks", {"text": "1.8.2"})
        operator.site.clock.advance(MINUTE_MS)
        began = operator.site.now
        await fail(4)
        assert "failing" not in await operator.codes()
        await fail(6)
        operator.site.clock.advance(2 * MINUTE_MS)
        found = await operator.look("overview")
        failing = {kind["code"]: kind for kind in found["findings"]}["failing"]
        assert failing["queues"][0]["text"] == "100 % of attempts, since mark 1.8.2"
        assert failing["since"] == began - began % MINUTE_MS
        assert found["queues"]["q"]["failed_share"] == 1
        assert found["tiles"]["dead_per_minute"] > 0
        assert found["tiles"]["failed"] == 1
        operator.site.clock.advance(10 * MINUTE_MS)
        assert await operator.codes() == ["dead"]


async def test_jobs_that_their_budget_cannot_pay_are_told_of_after_a_minute(
    operator: Operator,
) -> None:
    budget = {"allocation": 2, "strategy": {"type": "while_in_flight"}}
    await operator.send("PUT", "/budgets/crm", budget)
    async with operator.worker(queue="sync", prefetch=9) as stream:
        draws = {"budgets": [{"key": "crm", "cost": 2}]}
        await operator.push("sync", 4, **draws)
        await stream.readline()
        assert await operator.codes() == []
        operator.site.clock.advance(MINUTE_MS)
        found = await operator.look("overview")
        (short,) = of_queues(found)
        assert (short["code"], short["jobs"]) == ("budget", 3)
        assert short["queues"][0]["text"] == (
            '3 wait: budget "crm" has 0 of 2 tokens free, and a job takes 2: a job has to end first'
        )
        assert states(found) == [("sync", "budget")]
        await operator.send("PUT", "/queues/sync/settings", {"paused": True})
        assert await operator.codes() == ["paused"]


async def test_a_row_has_how_many_jobs_waited_over_the_hour_and_for_how_long(
    operator: Operator,
) -> None:
    async with operator.worker(queue="other"):
        await operator.push("q", 5, ready_at=1)
        operator.site.clock.advance(20 * MINUTE_MS)
        await operator.push("q", 3)
        operator.site.clock.advance(10 * MINUTE_MS)
        found = await operator.look("overview")
    line = found["queues"]["q"]["line"]
    assert len(line) == 12
    assert line == sorted(line)
    assert (line[0], line[-1]) == (0, 8)
    assert 5 in line
    assert found["tiles"]["line"] == line
    async with operator.worker(queue="q") as stream:
        await stream.readline()
        assert (await operator.look("overview"))["queues"]["q"]["wait_p95_ms"] > MINUTE_MS


async def test_a_bounded_reach_sees_its_queues_figures_workers_and_findings_alone(
    operator: Operator,
) -> None:
    services, reach = operator.site.server.services, Reach(("mail.",))
    views = Views(services, None)

    async def seen(topic: str, **more: Any) -> Doc:
        found = await views.document(View(topic, reach, **more), await services[Overviews].take())
        answer: Doc = json.loads(json.dumps(found))
        return answer

    await operator.push("mail.a", 2)
    await operator.push("secret", 7)
    mail = operator.worker(queue="mail.b,mail.c", worker="ours")
    both = operator.worker(queue="mail.b,secret2", worker="theirs")
    async with mail as stream, both as other:
        await operator.push("mail.c")
        await operator.push("secret2", 2)
        await stream.readline()
        await other.readline()
        operator.site.clock.advance(2 * MINUTE_MS)
        overview = await seen("overview")
        assert overview["order"] == ["mail.a", "mail.c"]
        assert [each["queue"] for kind in of_queues(overview) for each in kind["queues"]] == [
            "mail.a"
        ]
        tiles = overview["tiles"]
        assert (tiles["waiting"], tiles["busy"], tiles["workers"]) == (2, 1, 1)
        assert tiles["arrived"] < 4 / 100
        assert not {"line", "failed_before"} & tiles.keys()
        assert [worker["id"] for worker in (await seen("workers"))["workers"]] == ["ours"]
        assert (await seen("worker", worker="theirs"))["streams"] == []
        assert "secret" not in json.dumps(overview)
        with pytest.raises(QueueOutOfReach):
            await seen("queue", queue="secret")


async def test_a_bounded_reach_is_told_nothing_of_the_server_itself(operator: Operator) -> None:
    lane = {"queues": ["out*"], "url": "http://127.0.0.1:1"}
    await operator.send("PUT", "/forward/secretlane", lane)
    await operator.push("out1")
    overviews = operator.site.server.services[Overviews]
    async with asyncio.timeout(60):
        while "secretlane" not in str((await operator.look("overview"))["findings"]):
            await pause()
    overview = await overviews.take()
    assert "secretlane" in str(overview.findings)
    within = overview.within(Reach(("mail.",)))
    assert (within.findings, within.kinds) == ([], [])
