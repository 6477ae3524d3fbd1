"""Every verb of the backend over HTTP, with both transports and in both formats."""

import asyncio
from typing import Any

import pytest
from conformance.site import Site

from zq.client import errors as library_errors
from zq.client.errors import (
    BackendError,
    InvalidPayload,
    JobCancelled,
    JobNotFound,
    JobState,
    StaleLease,
    Unavailable,
    ZqError,
    refusal,
)
from zq.client.http.backend import HttpBackend
from zq.client.values import (
    MISSING,
    JobQuery,
    LeasedFailure,
    RefusedItems,
    Submission,
    Success,
)
from zq.http.api.problems import STATUSES, problem
from zq.http.door import status_in
from zq.model import errors as model_errors
from zq.model.job import Retention
from zq.wire.codecs import JSON as WIRE_JSON

from .conftest import Caller, Take

KEPT = Retention(completed_ms=60_000, dead_ms=60_000)


def job(queue: str = "q", payload: Any = None, **fields: Any) -> Submission:
    return Submission(queue, "work", payload, retention=KEPT, **fields)


async def test_a_job_is_stored_and_shown(call: Caller) -> None:
    payload = {"text": "ž", "list": [1, 2.5, None, True], "big": 2**63}

    (stored,) = await call(call.backend.enqueue([job(payload=payload, priority=7)]))

    assert (stored.duplicate, stored.status, stored.payload) == (False, "ready", MISSING)
    shown = await call(call.backend.get(stored.id))
    assert (shown.payload, shown.priority, shown.result) == (payload, 7, MISSING)
    assert shown.created_at == shown.ready_at


async def test_many_jobs_are_stored_in_order_or_not_at_all(call: Caller) -> None:
    stored = await call(call.backend.enqueue([job(payload=n) for n in range(5)]))

    page = await call(call.backend.jobs(limit=3))
    assert [each.payload for each in page.jobs] == [0, 1, 2]
    rest = await call(call.backend.jobs(after=page.after))
    assert [each.id for each in rest.jobs] == [each.id for each in stored[3:]]
    assert rest.after is None
    with pytest.raises(BackendError) as refused:
        await call(call.backend.enqueue([job(), Submission("a,b", "work", None)]))
    assert (refused.value.code, refused.value.status) == ("invalid_request", 400)
    assert await call(call.backend.count()) == 5
    assert await call(call.backend.count(JobQuery(statuses=("dead",), queues=("q",)))) == 0
    assert await call(call.backend.queues()) == ["q"]


async def test_the_owner_of_a_key_is_found_and_cancelled(call: Caller) -> None:
    wanted = job(unique_key="a b/ž", unique_while="exists")

    (first,) = await call(call.backend.enqueue([wanted]))
    (second,) = await call(call.backend.enqueue([wanted]))

    assert (second.duplicate, second.id) == (True, first.id)
    assert (await call(call.backend.by_key("a b/ž"))).id == first.id
    assert (await call(call.backend.cancel_by_key("a b/ž"))).status == "cancelled"
    with pytest.raises(JobNotFound):
        await call(call.backend.by_key("a b/ž"))
    with pytest.raises(JobState) as finished:
        await call(call.backend.cancel(first.id, force=True))
    assert (finished.value.state, finished.value.code) == ("cancelled", "not_cancellable")
    assert (await call(call.backend.result(first.id, 0))).status == "cancelled"


async def test_results_come_back_and_none_is_one(call: Caller, take: Take) -> None:
    stored = await call(call.backend.enqueue([job(payload=n) for n in range(3)]))
    held = await take(3)
    results: list[Any] = [None, {"n": [1]}, MISSING]
    said = [
        Success(each.id, each.lease, result) for each, result in zip(held, results, strict=True)
    ]

    assert not await call(call.backend.succeed(said))

    for each, result in zip(stored, results, strict=True):
        outcome = await call(call.backend.result(each.id, 0))
        assert (outcome.status, outcome.result) == ("completed", result)
        assert outcome.is_final


async def test_a_late_acknowledgement_is_refused_by_its_lease(call: Caller, take: Take) -> None:
    await call(call.backend.enqueue([job(), job()]))
    held = await take(2)
    unknown = "0" * 26

    refused = await call(
        call.backend.succeed([Success(held[0].id, 9), Success(held[1].id, 1), Success(unknown)])
    )

    assert refused == RefusedItems([unknown], [held[0].id])
    failure = LeasedFailure("late", lease=1)
    with pytest.raises(StaleLease):
        await call(call.backend.fail(held[1].id, failure))
    failed = await call(call.backend.fail(held[0].id, LeasedFailure("no", "ValueError", "here")))
    assert (failed.status, failed.attempts) == ("scheduled", 1)
    (error,) = await call(call.backend.errors(held[0].id))
    assert (error.attempt, error.message, error.error_type) == (1, "no", "ValueError")


async def test_a_finished_job_is_kept_longer(call: Caller, take: Take) -> None:
    (stored,) = await call(call.backend.enqueue([job()]))
    with pytest.raises(JobState) as early:
        await call(call.backend.retain(stored.id, completed_ms=1))
    assert (early.value.state, early.value.code) == ("ready", "not_finished")

    (held,) = await take(1)
    await call(call.backend.succeed([Success(held.id)]))
    kept = await call(call.backend.retain(stored.id, completed_ms=500_000))

    assert kept.purge_at is not None
    assert kept.completed_at is not None
    assert kept.purge_at >= kept.completed_at + 500_000


async def test_who_enqueues_may_wait_for_the_outcome(
    call: Caller, take: Take, backend: HttpBackend
) -> None:
    asking = asyncio.create_task(call(call.backend.enqueue_and_wait(job(payload=3), 30_000)))
    (held,) = await take(1)
    await backend.fail(held.id, LeasedFailure("no", kill=True))

    outcome = await asking

    assert outcome.job is not None
    assert (outcome.job.id, outcome.status) == (held.id, "dead")
    assert not isinstance(outcome.error, str)
    assert outcome.error is not None
    assert (outcome.error.message, outcome.error.attempt) == ("no", 1)


async def test_a_payload_that_is_no_data_is_refused_before_it_is_sent(call: Caller) -> None:
    for payload in (object(), {(1, 2): 3}, lambda: None, "\ud800"):
        with pytest.raises(InvalidPayload):
            await call(call.backend.enqueue([job(payload=payload)]))
    assert await call(call.backend.count()) == 0


async def test_what_takes_no_json_is_sent_as_its_text(call: Caller) -> None:
    from datetime import UTC, datetime
    from uuid import UUID

    payload = {"at": datetime(2026, 1, 2, tzinfo=UTC), "id": UUID(int=1), "raw": b"\0\xff", 1: {2}}
    (stored,) = await call(call.backend.enqueue([job(payload=payload)]))

    shown = (await call(call.backend.get(stored.id))).payload

    assert shown == {
        "at": "2026-01-02T00:00:00Z",
        "id": str(UUID(int=1)),
        "raw": "AP8=",
        "1": [2],
    }


SERVER = ("zq.model.", "zq.http.")
"""Where the errors are that a server can answer with; programs have some of their own."""


@pytest.mark.parametrize(
    "kind", [k for k in model_errors.ZqError.__subclasses__() if k.__module__.startswith(SERVER)]
)
def test_every_error_of_the_server_reaches_the_caller_with_its_code(
    kind: type[model_errors.ZqError],
) -> None:
    from zq.client.http.transport import Reply

    def concrete(kind: type[model_errors.ZqError]) -> list[type[model_errors.ZqError]]:
        below = [each for child in kind.__subclasses__() for each in concrete(child)]
        return [kind, *below]

    for each in concrete(kind):
        if not each.__module__.startswith(SERVER):
            continue
        error = each.__new__(each)
        error.message, error.status, error.supported = "no", "dead", []  # type: ignore[attr-defined]
        assert any(base in STATUSES for base in each.__mro__), f"{each} has no status"
        answer = problem(error, WIRE_JSON)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        assert isinstance(answer.body, bytes)

        seen = Reply(status_in(STATUSES, error), headers, answer.body).error()

        assert type(seen).__name__ in library_errors.__all__
        assert (seen.code, seen.message) == (each.code, "no")
        passing = issubclass(each, (model_errors.ServiceUnavailable, model_errors.StorageFull))
        if passing:
            assert isinstance(seen, Unavailable)


def test_an_answer_of_something_else_is_an_error_too() -> None:
    from zq.client.http.transport import Reply

    seen = Reply(502, {"content-type": "text/html"}, b"<h1>Bad Gateway</h1>").error()

    assert isinstance(seen, Unavailable)
    assert (seen.code, seen.status) == ("http_502", 502)
    assert seen.message == (
        "not a zq server but a proxy, or another server, answers 502: Bad Gateway"
    )


def test_errors_survive_the_way_to_another_process() -> None:
    import pickle

    error = refusal("not_cancellable", "no", 409, "dead")

    copy = pickle.loads(pickle.dumps(error))

    assert isinstance(copy, JobState)
    assert (copy.code, copy.state, copy.message) == ("not_cancellable", "dead", "no")


async def test_nobody_there_is_unavailable(call: Caller, site: Site) -> None:
    await call(call.backend.count())
    await site.stop()

    with pytest.raises(Unavailable) as gone:
        await call(call.backend.enqueue([job()]))

    assert isinstance(gone.value, ZqError)
    cause = gone.value.__cause__
    assert isinstance(cause, OSError)
    assert not isinstance(cause.__context__, LookupError)  # its traceback has no more than it needs
    assert "zq serve" in gone.value.message


async def test_cancelled_is_told_to_who_asks_for_a_job(call: Caller) -> None:
    assert isinstance(refusal("job_cancelled", "gone", 410), JobCancelled)
