"""Single enqueues of many callers: which go alone, which go together, and what each one gets."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

from zq.client.errors import BackendError, Unavailable
from zq.client.formats import JSON, MSGPACK
from zq.client.http.address import Address
from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.client.http.gathering import MOST_BYTES, MOST_JOBS
from zq.client.http.transport import Reply, Request, Unreachable
from zq.client.values import Dedupe, StoredJob, Submission

WHO = contextvars.ContextVar("WHO", default="nobody")


class Road(AioTransport):
    """The way to the server. It can be barred, and answers to batches can be lost on it."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.sent: list[str] = []
        self.senders: list[str] = []
        self.barred = False
        self.loses = False
        self._opened = asyncio.Event()
        self._came = asyncio.Event()

    async def send(self, request: Request) -> Reply:
        self.sent.append(request.path)
        self.senders.append(WHO.get())
        self._came.set()
        while self.barred:
            await self._opened.wait()
        reply = await super().send(request)
        if self.loses and request.path == "/jobs/bulk":
            raise Unreachable("the answer is lost")
        return reply

    async def came(self, count: int) -> None:
        """Wait until so many requests have been sent."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.sent) < count:
                self._came.clear()
                await self._came.wait()

    def unbar(self) -> None:
        self.barred = False
        self._opened.set()


@pytest.fixture(params=["json", "msgpack"])
async def road(site: Site, request: pytest.FixtureRequest) -> Road:
    codec = MSGPACK if request.param == "msgpack" else JSON
    return Road(Address(site.url, codec=codec))


@pytest.fixture
async def backend(road: Road) -> AsyncIterator[HttpBackend]:
    backend = HttpBackend(road._address, road)
    yield backend
    await backend.close()


def job(payload: Any = None, **fields: Any) -> Submission:
    return Submission("q", "work", payload, **fields)


def answered(told: list[StoredJob] | BaseException) -> list[StoredJob]:
    assert isinstance(told, list)
    return told


def enqueueing(backend: HttpBackend, *jobs: Submission) -> list[asyncio.Task[list[StoredJob]]]:
    """Each by a caller of its own."""
    return [asyncio.create_task(backend.enqueue([each])) for each in jobs]


async def begun(backend: HttpBackend, road: Road, *jobs: Submission) -> list[Any]:
    """The same, where the request of the first and that of the others are under way."""
    road.barred = True
    callers = enqueueing(backend, *jobs)
    await road.came(2)
    return callers


async def test_callers_of_one_turn_go_with_the_first_and_in_one_more_request(
    backend: HttpBackend, road: Road
) -> None:
    callers = enqueueing(backend, *(job({"n": n}) for n in range(20)))

    stored = [only for (only,) in await asyncio.gather(*callers)]

    assert road.sent == ["/jobs", "/jobs/bulk"]
    for n, each in enumerate(stored):
        assert (await backend.get(each.id)).payload == {"n": n}


async def test_callers_one_after_the_other_go_alone(backend: HttpBackend, road: Road) -> None:
    for n in range(5):
        await backend.enqueue([job(n)])

    assert road.sent == ["/jobs"] * 5


async def test_who_comes_while_requests_are_under_way_waits_for_none_of_them(
    backend: HttpBackend, road: Road
) -> None:
    callers = await begun(backend, road, *(job(n) for n in range(5)))
    for n in range(3):
        callers += enqueueing(backend, job(n))
        await road.came(3 + n)

    assert road.sent == ["/jobs", "/jobs/bulk"] + ["/jobs"] * 3
    road.unbar()
    assert len({only.id for (only,) in await asyncio.gather(*callers)}) == 8


async def test_a_batch_has_its_bounds_and_large_jobs_go_alone(
    backend: HttpBackend, road: Road
) -> None:
    small = [job(n) for n in range(1 + MOST_JOBS + 1)]
    heavy = [job("x" * (MOST_BYTES // 2)) for _ in range(3)]
    callers = enqueueing(backend, *small, *heavy, job("x" * MOST_BYTES))

    await asyncio.gather(*callers)

    # The last of the small ones goes with the first heavy one; then no two are left that fit.
    assert sorted(road.sent) == ["/jobs"] * 4 + ["/jobs/bulk"] * 2
    assert await backend.count() == len(callers)


async def test_a_job_that_is_refused_among_others_is_its_callers_alone(
    backend: HttpBackend, road: Road
) -> None:
    good = [job(n) for n in range(5)]
    callers = enqueueing(backend, *good, Submission("a,b", "work", None), job("last"))

    told = await asyncio.gather(*callers, return_exceptions=True)

    refused = told.pop(-2)
    assert isinstance(refused, BackendError)
    assert (refused.code, refused.status) == ("invalid_request", 400)
    assert "jobs[" not in refused.message
    assert len({only.id for (only,) in map(answered, told)}) == len(good) + 1
    assert await backend.count() == len(good) + 1


async def test_of_one_key_in_a_batch_the_second_job_is_a_duplicate_of_the_first(
    backend: HttpBackend, road: Road
) -> None:
    keyed = [job(n, unique_key="k", unique_while="active") for n in range(2)]
    callers = enqueueing(backend, job(), *keyed)

    *_, (first,), (second,) = await asyncio.gather(*callers)

    assert (first.duplicate, second.duplicate, second.id) == (False, True, first.id)
    assert (await backend.get(first.id)).payload == 0
    assert road.sent[:2] == ["/jobs", "/jobs/bulk"]


async def test_who_gives_up_before_a_batch_is_sent_is_left_out(
    backend: HttpBackend, road: Road
) -> None:
    callers = enqueueing(backend, *(job(n) for n in range(4)))
    # In the turn in which they come, and after they have come.
    asyncio.get_running_loop().call_soon(callers[2].cancel)

    await asyncio.wait(callers)

    assert callers[2].cancelled()
    payloads = [each.payload for each in (await backend.jobs()).jobs]
    assert sorted(payloads) == [0, 1, 3]


async def test_who_gives_up_while_its_batch_is_under_way_disturbs_no_other(
    backend: HttpBackend, road: Road
) -> None:
    callers = await begun(backend, road, *(job(n) for n in range(4)))
    callers[-2].cancel()

    road.unbar()
    await asyncio.wait(callers)

    (last,) = callers[-1].result()
    assert (await backend.get(last.id)).payload == 3
    assert callers[-2].cancelled()


async def test_of_a_batch_whose_answer_is_lost_only_what_is_safe_is_sent_again(
    backend: HttpBackend, road: Road
) -> None:
    road.loses = True
    safe = job("safe", dedupe=Dedupe("k"))
    callers = enqueueing(backend, job(0), job(1), safe, job(2))

    *_, first, safely, second = await asyncio.gather(*callers, return_exceptions=True)
    (found,) = answered(safely)

    assert road.sent == ["/jobs", "/jobs/bulk", "/jobs"]
    # It was stored: the caller is told so, as by a second try of its own.
    assert found.duplicate
    assert await backend.count() == 4
    for unknown in (first, second):
        assert isinstance(unknown, Unreachable)
        assert unknown.sent
    assert first is not second


async def test_a_server_that_is_gone_refuses_each_caller(
    backend: HttpBackend, road: Road, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zq.client.http.backend.TRIES", 1)
    callers = await begun(backend, road, *(job(n) for n in range(4)))
    await site.stop()

    road.unbar()
    told = await asyncio.gather(*callers, return_exceptions=True)

    assert all(isinstance(each, Unavailable) for each in told)
    assert all("zq serve" in str(each) for each in told)
    assert len(set(map(id, told))) == len(told)
    await site.start()


@pytest.mark.settings(max_bulk_items=2)
async def test_a_server_that_takes_small_batches_only_gets_every_job(
    backend: HttpBackend, road: Road
) -> None:
    callers = enqueueing(backend, *(job(n) for n in range(10)))

    assert len({only.id for (only,) in await asyncio.gather(*callers)}) == 10
    assert await backend.count() == 10


async def test_a_batch_belongs_to_the_context_of_no_caller(
    backend: HttpBackend, road: Road
) -> None:
    async def enqueue(n: int) -> None:
        WHO.set(f"caller {n}")
        await backend.enqueue([job(n)])

    await asyncio.gather(*(enqueue(n) for n in range(4)))

    assert road.senders == ["caller 0", "nobody"]


async def test_an_event_loop_that_ends_under_requests_holds_nobody_up_in_the_next(
    site: Site,
) -> None:
    found: list[StoredJob] = []

    def elsewhere() -> None:
        backend = HttpBackend(Address(site.url), road := Road(Address(site.url)))

        async def left_under_way() -> None:
            road.barred = True
            callers = enqueueing(backend, *(job(n) for n in range(3)))
            await asyncio.sleep(0)
            assert not any(each.done() for each in callers)

        async def the_next() -> None:
            road.unbar()
            found.extend(await backend.enqueue([job("next")]))
            await backend.close()

        asyncio.run(left_under_way())
        road._opened = asyncio.Event()
        asyncio.run(the_next())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await asyncio.to_thread(thread.join, PATIENCE_S)

    assert [each.duplicate for each in found] == [False]
