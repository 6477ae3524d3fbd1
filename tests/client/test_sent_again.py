"""What is tried again: which requests are sent once more, how often, and after how long."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

from zq.client.app import App
from zq.client.errors import BackendError, ZqError
from zq.client.http.address import Address
from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.client.http.transport import LONGEST_DELAY_S, Reply, Request, Unreachable, jittered, persist
from zq.client.values import Dedupe, Submission
from zq.model.job import Retention

from .connections import COUNT
from .relay import Relay
from .workers import finish

HOUR_MS = 3_600_000


class Script:
    """Answers one after the other; remembers how long was slept between."""

    def __init__(self, *answers: Reply | Unreachable) -> None:
        self.answers = list(answers)
        self.slept: list[float] = []

    async def send(self, _: Request) -> Reply:
        answer = self.answers.pop(0)
        if isinstance(answer, Unreachable):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def reply(status: int, code: str | None = None, **headers: str) -> Reply:
    return Reply(status, headers if code is None else {"zq-error": code, **headers}, b"")


def lost(*, sent: bool) -> Unreachable:
    return Unreachable("gone", sent=sent)


OK = reply(200)

PASSING: list[tuple[Callable[[], Reply | Unreachable], bool, bool]] = [
    # what came, tried again if safe, tried again if not
    (lambda: lost(sent=False), True, True),
    (lambda: lost(sent=True), True, False),
    (lambda: reply(503, "inbox_full"), True, True),
    (lambda: reply(429, "queue_full"), True, True),
    (lambda: reply(503, "outcome_unknown"), True, False),
    (lambda: reply(500, "internal"), True, False),
    (lambda: reply(502), True, False),
    (lambda: reply(503), True, False),
    (lambda: reply(504), True, False),
    (lambda: reply(507, "storage_full"), False, False),
    (lambda: reply(400, "invalid_request"), False, False),
    (lambda: reply(404, "job_not_found"), False, False),
    (lambda: reply(409, "stale_lease"), False, False),
]


@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("case", PASSING, ids=lambda case: str(case[0]()))
async def test_only_what_can_do_no_harm_is_sent_again(
    case: tuple[Callable[[], Reply | Unreachable], bool, bool], safe: bool
) -> None:
    answer, if_safe, if_not = case
    script = Script(answer(), OK)

    try:
        got: Reply | None = await persist(
            script.send, script.sleep, Request("POST", "/", safe=safe), 3
        )
    except Unreachable:
        got = None

    again = if_safe if safe else if_not
    assert (got is OK) is again
    assert len(script.answers) == (0 if again else 1)


async def test_tries_end() -> None:
    script = Script(*[lost(sent=False)] * 5)
    with pytest.raises(Unreachable):
        await persist(script.send, script.sleep, COUNT, 3)
    assert len(script.slept) == 2
    refusals = Script(*[reply(503, "inbox_full")] * 5)
    assert (await persist(refusals.send, refusals.sleep, COUNT, 3)).status == 503


DOUBTS: list[tuple[list[Reply | Unreachable], bool]] = [
    ([lost(sent=False)] * 2, False),
    ([lost(sent=True), lost(sent=False)], True),
    ([lost(sent=False), reply(503, "inbox_full")], False),
    ([lost(sent=True), reply(503, "inbox_full")], True),
    ([reply(503, "outcome_unknown"), lost(sent=False)], True),
    ([reply(503, "inbox_full"), reply(507, "storage_full")], False),
    ([reply(503, "inbox_full"), reply(502)], True),
]


@pytest.mark.parametrize(("answers", "in_doubt"), DOUBTS, ids=str)
async def test_an_error_tells_whether_any_of_the_tries_may_have_had_an_effect(
    answers: list[Reply | Unreachable], in_doubt: bool
) -> None:
    script = Script(*answers)
    request = Request("POST", "/", safe=True)
    try:
        error: ZqError = (await persist(script.send, script.sleep, request, 2)).error()
    except Unreachable as unreachable:
        error = unreachable
    assert isinstance(error, BackendError)
    assert error.in_doubt is in_doubt


async def test_the_wait_between_tries_is_any_time_up_to_a_doubling_bound() -> None:
    for attempt in range(10):
        drawn = [jittered(attempt) for _ in range(300)]
        bound = min(LONGEST_DELAY_S, 0.1 * 2**attempt)
        assert 0 <= min(drawn) < bound * 0.2
        assert bound * 0.8 < max(drawn) <= bound
    assert jittered(10**6) <= LONGEST_DELAY_S
    # A server that asks for more time gets it, at random as well.
    assert max(jittered(0, least=3.0) for _ in range(300)) > 2


async def test_a_key_that_lasts_decides_whether_an_enqueue_is_safe(site: Site) -> None:
    seen: list[bool] = []

    class Watching(AioTransport):
        async def send(self, request: Request) -> Reply:
            seen.append(request.safe)
            return await super().send(request)

    address = Address(site.url)
    backend = HttpBackend(address, Watching(address))
    kept = Retention(completed_ms=HOUR_MS)
    lasting = {"unique_while": "exists", "retention": kept}
    cases: list[dict[str, Any]] = [
        {},
        {"unique_key": "1", "unique_while": "active", "retention": kept},
        {"unique_key": "2", **lasting},
        {"unique_key": "3", "unique_while": "exists"},
        {"unique_key": "4", "unique_while": "exists", "retention": Retention(completed_ms=1000)},
        {"unique_key": "5", "unique_while": "exists", "retention": Retention(HOUR_MS, 1000)},
        {"unique_key": "6", **lasting, "on_conflict": "replace_dead"},
        {"dedupe": Dedupe("usual")},
        {"dedupe": Dedupe("long", HOUR_MS)},
        {"dedupe": Dedupe("short", 1000)},
    ]
    for case in cases:
        await backend.enqueue([Submission("q", "t", 1, **case)])
    await backend.count()

    assert seen == [False, False, True, False, False, False, False, True, True, False, True]
    await backend.close()


@pytest.mark.parametrize("ttl", [None, 1, 3600], ids=lambda ttl: f"result_ttl={ttl}")
async def test_a_job_that_was_done_and_forgotten_meanwhile_is_not_stored_again(
    site: Site, ttl: float | None
) -> None:
    runs: list[int] = []
    async with Relay.to(site) as relay, App(relay.url) as app, App(site.url) as near:

        async def work() -> None:
            runs.append(1)

        near.task(work)
        task = app.task(key="once", unique_while="exists", result_ttl=ttl)(work)
        lost = relay.fail("POST /jobs ", "lost")
        enqueuing = asyncio.create_task(task.enqueue())
        await asyncio.wait_for(lost.wait(), PATIENCE_S)
        await finish(near)
        site.clock.advance(2000)
        relay.hang_up()
        if ttl == 3600:
            assert (await enqueuing).duplicate
        else:
            with pytest.raises(Unreachable) as raised:
                await enqueuing
            assert raised.value.in_doubt
        await finish(near)

    assert runs == [1]


@pytest.mark.settings(max_inbox_jobs=1)
async def test_an_enqueue_that_is_refused_for_a_moment_gets_through(site: Site) -> None:
    async with App(site.url) as app:

        @app.task
        async def work() -> None: ...

        jobs = await asyncio.gather(*(work.enqueue() for _ in range(20)))

        assert len({job.id for job in jobs}) == 20


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("\u00b2", 0.0), ("9" * 400, 0.0)],
)
def test_a_wait_that_cannot_be_meant_is_none(text: str, seconds: float) -> None:
    assert Reply(503, {"retry-after": text}, b"").retry_after == seconds
