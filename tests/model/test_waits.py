"""Why a job waits: each fact with the reason that follows from it."""

from typing import Any

import msgspec
import pytest

from zq.features.waits.model import (
    MOST_AHEAD,
    BudgetWait,
    QueueTakers,
    WaitFacts,
    WaitingJob,
    wait_reasons,
)
from zq.model.job import JobRecord
from zq.model.lifecycle import Status
from zq.model.settings import QueueSettings

NOW = 1_750_000_000_000
LATER = NOW + 60_000
AT = "2025-06-15T15:07:40Z"
"""LATER, for people."""
IDLE = QueueTakers(1, open=1)


def job(status: Status = Status.READY, **fields: Any) -> JobRecord:
    return JobRecord(7, "mail", "send", 5, status, NOW, 2, "{}", **fields)


def reasons(record: JobRecord, *, around: dict[str, Any], **facts: Any) -> list[dict[str, Any]]:
    waiting = WaitingJob(record, **around)
    told = wait_reasons(WaitFacts(NOW, waiting, **{"takers": IDLE, **facts}))
    return [msgspec.to_builtins(reason) for reason in told]


OF_READY: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}, {"code": "next", "text": "nothing holds the job: it is next in its queue"}),
    "paused": (
        {"settings": QueueSettings(paused=True)},
        {},
        {
            "code": "paused",
            "text": 'queue "mail" is paused: resume it to have its jobs delivered',
            "queue": "mail",
        },
    ),
    "group": (
        {"head": 3},
        {"head": "01X"},
        {"code": "group", "text": "job 01X of its group has to end first", "job": "01X"},
    ),
    "budget in flight": (
        {"budgets": [BudgetWait("crm", 3, 1, 5)]},
        {},
        {
            "code": "budget",
            "text": 'budget "crm" has 1 of 5 tokens free, and a job takes 3:'
            " a job has to end first",
            "budget": "crm",
        },
    ),
    "budget by time": (
        {"budgets": [BudgetWait("crm", 3, 1, 5, LATER)]},
        {},
        {
            "code": "budget",
            "text": f'budget "crm" has 1 of 5 tokens free, and a job takes 3: it can pay at {AT}',
            "budget": "crm",
            "until": LATER,
        },
    ),
    "concurrency": (
        {"settings": QueueSettings(concurrency=2), "in_flight": 2},
        {},
        {
            "code": "concurrency",
            "text": 'queue "mail" has 2 jobs in flight and may have 2',
            "queue": "mail",
            "count": 2,
        },
    ),
    "rate": (
        {"settings": QueueSettings(rate=0.5)},
        {"opens_at": LATER},
        {
            "code": "rate",
            "text": 'queue "mail" is at its rate of 0.5 jobs a second',
            "queue": "mail",
            "until": LATER,
        },
    ),
    "server limit": (
        {},
        {"is_full": True},
        {
            "code": "server_limit",
            "text": "as many jobs are in flight as --global-in-flight-limit allows",
        },
    ),
    "nobody": (
        {},
        {"takers": QueueTakers()},
        {"code": "no_worker", "text": 'nobody takes jobs of queue "mail"', "queue": "mail"},
    ),
    "one busy": (
        {},
        {"takers": QueueTakers(1)},
        {
            "code": "workers_busy",
            "text": 'the only worker of queue "mail" is busy',
            "queue": "mail",
            "count": 1,
        },
    ),
    "all busy": (
        {},
        {"takers": QueueTakers(5, draining=2, choked=1)},
        {
            "code": "workers_busy",
            "text": 'all 5 workers of queue "mail" are busy; 2 drained; 1 slow to read',
            "queue": "mail",
            "count": 5,
        },
    ),
    "one ahead": (
        {"ahead": 1},
        {},
        {"code": "ahead", "text": "1 job of its queue comes first", "queue": "mail", "count": 1},
    ),
    "many ahead": (
        {"ahead": MOST_AHEAD},
        {},
        {
            "code": "ahead",
            "text": "1,000 or more jobs of its queue come first",
            "queue": "mail",
            "count": 1000,
        },
    ),
}


@pytest.mark.parametrize("name", OF_READY)
def test_a_ready_job_waits_for_what_holds_it(name: str) -> None:
    around, facts, expected = OF_READY[name]
    assert reasons(job(), around=around, **facts) == [expected]


@pytest.mark.parametrize(
    ("around", "facts"),
    [
        ({"settings": QueueSettings(concurrency=2), "in_flight": 1}, {}),
        ({"settings": QueueSettings(rate=5.0)}, {}),
        ({"settings": QueueSettings(rate=5.0)}, {"opens_at": NOW}),
        ({}, {"opens_at": LATER}),
        ({}, {"takers": QueueTakers(3, open=1, draining=1, choked=1)}),
    ],
)
def test_what_leaves_room_is_no_reason(around: dict[str, Any], facts: dict[str, Any]) -> None:
    assert [told["code"] for told in reasons(job(), around=around, **facts)] == ["next"]


def test_gates_come_before_workers_and_these_before_the_jobs_ahead() -> None:
    settings = QueueSettings(paused=True, concurrency=1, rate=1.0)
    around = {"settings": settings, "in_flight": 1, "ahead": 4}
    around["budgets"] = [BudgetWait("crm", 1, 0, 1)]
    facts = {"opens_at": LATER, "is_full": True, "takers": QueueTakers()}
    told = reasons(job(expires_at=NOW), around=around, **facts)
    assert [reason["code"] for reason in told] == [
        *("expiring", "paused", "budget", "concurrency", "rate", "server_limit", "no_worker"),
        "ahead",
    ]
    # The jobs ahead of it in the queue are none of its group's.
    told = reasons(job(), around=around | {"head": 3}, head="01X", **facts)
    assert told[1]["code"] == "group"
    assert told[-1]["code"] == "no_worker"


def test_a_scheduled_job_waits_for_its_time_alone() -> None:
    around = {"settings": QueueSettings(paused=True)}
    scheduled = job(Status.SCHEDULED)
    scheduled.ready_at = LATER
    assert reasons(scheduled, around=around) == [
        {"code": "scheduled", "text": f"the job is scheduled for {AT}", "until": LATER}
    ]
    scheduled.attempts, scheduled.failed_at = 3, NOW
    text = f"the job backs off until {AT}: attempt 3 has failed"
    assert reasons(scheduled, around={}) == [
        {"code": "backing_off", "text": text, "until": LATER, "count": 3}
    ]
    scheduled.forgiven = 3
    assert reasons(scheduled, around={})[0]["code"] == "scheduled"


def test_a_time_beyond_all_calendars_is_told_in_milliseconds() -> None:
    far = job(Status.SCHEDULED)
    far.ready_at = 2**63 - 1
    (told,) = reasons(far, around={})
    assert told["text"] == f"the job is scheduled for {2**63 - 1} ms since 1970"


def test_a_job_in_flight_is_with_its_worker() -> None:
    held = job(Status.IN_FLIGHT, dequeued_at=LATER)
    assert reasons(held, around={}) == [
        {"code": "in_flight", "text": f"a worker without a name has the job since {AT}"}
    ]
    held.lease_until = LATER
    text = f'worker "w" has the job since {AT}, and its lease ends at {AT}'
    assert reasons(held, around={}, worker="w") == [
        {"code": "in_flight", "text": text, "worker": "w", "until": LATER}
    ]


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.DEAD, Status.CANCELLED])
def test_a_finished_job_waits_for_nothing(status: Status) -> None:
    (told,) = reasons(job(status), around={"ahead": 3}, takers=QueueTakers())
    name = status.name.lower()
    assert told == {"code": "finished", "text": f"the job is {name}: it waits for nothing"}
