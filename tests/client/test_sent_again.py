"""What is tried again: which requests are sent once more, how often, and after how long."""

import asyncio
from collections.abc import Callable

import pytest
from conformance.site import Site

from zq.client.app import App
from zq.client.errors import BackendError, ZqError
from zq.client.http.address import Address
from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.client.http.transport import LONGEST_DELAY_S, Reply, Request, Unreachable, jittered, persist
from zq.client.values import Submission

from .connections import COUNT


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


async def test_a_jobs_key_decides_whether_its_enqueue_is_safe(site: Site) -> None:
    seen: list[bool] = []

    class Watching(AioTransport):
        async def send(self, request: Request) -> Reply:
            seen.append(request.safe)
            return await super().send(request)

    address = Address(site.url)
    backend = HttpBackend(address, Watching(address))
    for scope in (None, "active", "exists"):
        key = None if scope is None else f"k-{scope}"
        await backend.enqueue([Submission("q", "t", 1, unique_key=key, unique_while=scope)])
    await backend.count()

    assert seen == [False, False, True, True]
    await backend.close()


@pytest.mark.settings(max_inbox_jobs=1)
async def test_an_enqueue_that_is_refused_for_a_moment_gets_through(site: Site) -> None:
    async with App(site.url) as app:

        @app.task
        async def work() -> None: ...

        jobs = await asyncio.gather(*(work.enqueue() for _ in range(20)))

        assert len({job.id for job in jobs}) == 20
