"""Calls of huey and RQ as jobs: what is kept, what is left, what stops it all."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from huey import MemoryHuey
from redis import Redis
from rq import Queue, Retry

from zq.moving import huey, lines, rq

Told = tuple[int, list[dict[str, Any]], str]


@pytest.fixture
def tasks() -> MemoryHuey:
    return MemoryHuey("shop")


def told(capsys: pytest.CaptureFixture[str], code: int) -> Told:
    said = capsys.readouterr()
    return code, [json.loads(line) for line in said.out.splitlines()], said.err


def call(argument: object) -> lines.WaitingCall:
    return lines.WaitingCall("q", "send", (argument,), {}, "huey:2", None, None)


def test_priority_time_and_retries_come_along(
    tasks: MemoryHuey, capsys: pytest.CaptureFixture[str]
) -> None:
    @tasks.task(retries=4)
    def send(to: str) -> None: ...

    send("soon", priority=5)
    at = datetime(2040, 1, 2, 3, 4, 5, tzinfo=UTC)
    send.schedule(("later",), eta=at)
    left = Counter[str]()
    code, (soon, later), _ = told(capsys, lines.write(huey.calls(tasks, "q", left), left))
    assert code == 0
    assert (soon["queue"], soon["type"], soon["retry_limit"]) == ("q", "send", 4)
    assert (soon["priority"], soon["payload"]["args"]) == (32_768 - 5, ["soon"])
    assert later["ready_at"] == at.timestamp() * 1000
    assert soon["dedupe"]["id"] != later["dedupe"]["id"]


def test_what_nobody_wants_any_more_is_left_and_counted(
    tasks: MemoryHuey, capsys: pytest.CaptureFixture[str]
) -> None:
    @tasks.task()
    def send(to: str) -> str:
        return to

    send("revoked").revoke()
    send("expired", expires=datetime(2020, 1, 1))
    tasks.enqueue(send.s("first").then(send))
    left = Counter[str]()
    code, jobs, said = told(capsys, lines.write(huey.calls(tasks, "q", left), left))
    assert (code, jobs) == (0, [])
    for kind in ("revoked", "expired"):
        assert f"1 {kind} calls left" in said
    assert "1 calls of pipelines left" in said


def holding_itself() -> list[object]:
    ring: list[object] = []
    ring.append(ring)
    return ring


def nested(depth: int) -> object:
    value: object = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "argument",
    [
        *({1, 2}, float("nan"), float("inf"), 2**64, "\ud800", holding_itself(), nested(127)),
        *(nested(100_000), {1: "a"}, [({"a": {None: 1}},)]),
    ],
    ids=lambda argument: type(argument).__name__,
)
def test_an_argument_that_is_no_json_stops_it_all(
    argument: object, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [call("a"), call(argument)]
    code, jobs, said = told(capsys, lines.write(calls, Counter()))
    assert (code, jobs) == (1, [])
    assert "send (id huey:2) has an argument that is no JSON (" in said


def test_an_argument_that_is_json_comes_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [nested(126), 2**64 - 1, -(2**63), 0.1, True, None, "später", {"a": [{}]}]
    code, jobs, _ = told(capsys, lines.write(map(call, arguments), Counter()))
    assert (code, [job["payload"]["args"][0] for job in jobs]) == (0, arguments)


def test_an_app_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = told(capsys, huey.main(["no.such:huey"]))
    assert (code, "no.such:huey is not there" in said) == (1, True)


class Shop:
    def sell(self) -> None: ...


def test_jobs_of_rq_come_with_their_order_and_time_and_others_are_left(
    redis: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Redis.from_url(redis) as connection:
        queue = Queue("letters", connection=connection)
        queue.enqueue(len, "first", retry=Retry(max=2))
        queue.enqueue(len, "second")
        queue.enqueue_in(timedelta(hours=1), len, "later")
        queue.enqueue(Shop().sell)
        queue.enqueue(len, "after", depends_on=queue.enqueue(len, "third"))
    code, jobs, said = told(capsys, rq.main(["letters", "empty", "--url", redis]))
    assert code == 0
    assert [job["payload"]["args"] for job in jobs] == [["first"], ["second"], ["third"], ["later"]]
    assert [job.get("retry_limit") for job in jobs][:2] == [2, 0]
    assert [("ready_at" in job) for job in jobs] == [False, False, False, True]
    counts = [line.strip() for line in said.splitlines()]
    assert counts == ["4 calls", "1 jobs that wait for others left", "1 methods of objects left"]

    code, jobs, said = told(capsys, rq.main(["empty", "--url", redis]))
    assert (code, jobs, said.split()) == (0, [], ["0", "calls"])
