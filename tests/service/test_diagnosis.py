"""What the overview says is wrong: a table from figures to findings."""

import pytest

from zq.model.trends import TrendFlow
from zq.service.diagnosis import (
    OLD_MS,
    Finding,
    QueueFacts,
    ServerFacts,
    findings_of_queue,
    findings_of_server,
    worst_first,
)

NOW = 10_000_000
FINE = ServerFacts()
OLD: dict[str, object] = {"ready": 60, "workers": 1, "ready_since": NOW - OLD_MS}


def diagnosis(*queues: QueueFacts, server: ServerFacts = FINE) -> list[Finding]:
    of_queues = [finding for queue in queues for finding in findings_of_queue(queue, NOW)]
    return worst_first([*of_queues, *findings_of_server(server)])


def found(*queues: QueueFacts, server: ServerFacts = FINE) -> list[tuple[str, str | None]]:
    return [(each.code.value, each.queue) for each in diagnosis(*queues, server=server)]


@pytest.mark.parametrize(
    ("facts", "codes"),
    [
        ({}, []),
        ({"ready": 5}, ["no_worker"]),
        ({"ready": 5, "workers": 1}, []),
        ({"ready": 5, "delivered_1m": 0.1}, []),
        ({"ready": 5, "pause": "paused"}, ["paused"]),
        ({"pause": "paused"}, []),
        ({"ready": 5, "workers": 1, "ready_since": NOW - OLD_MS}, ["old"]),
        ({"ready": 5, "workers": 1, "ready_since": NOW - OLD_MS + 1}, []),
        ({"ready": 5, "ready_since": NOW - OLD_MS}, ["no_worker"]),
        (OLD | {"flow": None}, ["old"]),
        (OLD | {"flow": TrendFlow(1.0, 2.0)}, ["old"]),
        (OLD | {"flow": TrendFlow(2.0, 2.0)}, ["growing"]),
        (OLD | {"flow": TrendFlow()}, ["growing"]),
        ({"ready": 5, "workers": 1, "flow": TrendFlow(9.0, 1.0)}, []),
        ({"delivered_5m": 1.0, "failed_5m": 0.2}, ["failing"]),
        ({"delivered_5m": 1.0, "failed_5m": 0.19}, []),
        ({"delivered_5m": 0.01, "failed_5m": 0.01}, []),
        ({"dead": 1}, ["dead"]),
    ],
    ids=str,
)
def test_a_queue_has(facts: dict[str, object], codes: list[str]) -> None:
    assert [code for code, _ in found(QueueFacts("q", **facts))] == codes  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("server", "codes"),
    [
        (FINE, []),
        (ServerFacts(("storage_full",), None, 0, 100), ["storage_full"]),
        (ServerFacts(("server_limit", "wal_full")), ["wal_full", "server_limit"]),
        (ServerFacts(("inbox_full",)), ["inbox_full"]),
        (ServerFacts(flush_p99_s=0.1), ["slow_disk"]),
        (ServerFacts(flush_p99_s=0.05), []),
        (ServerFacts(free_bytes=399, reserve_bytes=100), ["little_disk"]),
        (ServerFacts(free_bytes=400, reserve_bytes=100), []),
        (ServerFacts(("storage_full",), set_aside=3), ["damaged", "storage_full"]),
    ],
    ids=str,
)
def test_a_server_has(server: ServerFacts, codes: list[str]) -> None:
    assert [code for code, _ in found(server=server)] == codes


@pytest.mark.parametrize(
    ("ready", "flow", "end"),
    [
        (60, None, "60 waiting"),
        (60, TrendFlow(1.0, 2.0), "60 waiting, drained in 1 min at this rate"),
        (60, TrendFlow(0.0, 60.0), "60 waiting, drained in 1 min at this rate"),
        (7_140, TrendFlow(0.0, 1.0), "7,140 waiting, drained in 119 min at this rate"),
        (7_200, TrendFlow(0.0, 1.0), "7,200 waiting, drained in 2 h at this rate"),
        (900_000, TrendFlow(1.0, 2.0), "900,000 waiting, drained in 10 d at this rate"),
        (60, TrendFlow(1.0, 1.0), "60 waiting, never drained at this rate"),
        (60, TrendFlow(2.0, 1.0), "60 waiting, never drained at this rate"),
    ],
)
def test_jobs_that_wait_long_say_when_that_is_over(
    ready: int, flow: TrendFlow | None, end: str
) -> None:
    queue = QueueFacts("q", ready, ready_since=NOW - OLD_MS, workers=1, flow=flow)
    assert [each.text for each in diagnosis(queue)] == [f"its jobs wait long, {end}"]


def test_the_worst_comes_first_and_of_one_kind_the_larger() -> None:
    queues = (
        QueueFacts("dead", dead=9),
        QueueFacts("small", ready=1),
        QueueFacts("large", ready=2),
        QueueFacts("old", ready=9, workers=1, ready_since=0),
        QueueFacts("worse", ready=1, workers=1, ready_since=0, flow=TrendFlow()),
        QueueFacts("held", ready=9, pause="paused"),
    )

    assert found(*queues, server=ServerFacts(("storage_full",), 1.0)) == [
        ("storage_full", None),
        ("no_worker", "large"),
        ("no_worker", "small"),
        ("slow_disk", None),
        ("growing", "worse"),
        ("old", "old"),
        ("paused", "held"),
        ("dead", "dead"),
    ]
