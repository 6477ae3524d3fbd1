"""What the overview says is wrong: a table from figures to findings."""

from typing import Any

import pytest

from zq.features.devices.model import DeviceSums
from zq.features.diagnosis.model import (
    ALONE_MS,
    GROWING_MS,
    MOST_NAMED,
    OLD_MS,
    Finding,
    QueueFacts,
    ServerFacts,
    Severity,
    due_at,
    findings_of_devices,
    findings_of_lanes,
    findings_of_queue,
    findings_of_server,
    grouped,
    place_of,
)
from zq.features.trends.model import TrendFlow
from zq.model.settings import QueueSettings

NOW = 10_000_000
FINE = ServerFacts()
PAUSED = QueueSettings(paused=True)
ALONE: dict[str, Any] = {"ready": 5, "ready_since": NOW - ALONE_MS}
OLD: dict[str, Any] = {"ready": 60, "workers": 1, "ready_since": NOW - OLD_MS}
GROWS: dict[str, Any] = {"ready": 60, "workers": 1, "flow": TrendFlow(9.0, 1.0)}
GROWS |= {"ready_since": NOW - GROWING_MS}


def diagnosis(*queues: QueueFacts, server: ServerFacts = FINE) -> list[Finding]:
    of_queues = [finding for queue in queues for finding in findings_of_queue(queue, NOW)]
    return sorted([*of_queues, *findings_of_server(server)], key=place_of)


def found(*queues: QueueFacts, server: ServerFacts = FINE) -> list[tuple[str, str | None]]:
    return [(each.code.value, each.queue) for each in diagnosis(*queues, server=server)]


@pytest.mark.parametrize(
    ("facts", "codes"),
    [
        ({}, []),
        (ALONE, ["no_worker"]),
        (ALONE | {"ready_since": NOW - ALONE_MS + 1}, []),
        (ALONE | {"alone_since": NOW - ALONE_MS}, ["no_worker"]),
        (ALONE | {"alone_since": NOW - ALONE_MS + 1}, []),
        (ALONE | {"workers": 1}, []),
        (ALONE | {"delivered_1m": 0.1}, []),
        (ALONE | {"settings": PAUSED}, ["paused"]),
        (ALONE | {"leaves": True}, []),
        (GROWS | {"leaves": True}, []),
        (OLD | {"leaves": True, "dead": 1}, ["dead"]),
        (ALONE | {"leaves": True, "settings": PAUSED}, ["paused"]),
        ({"settings": PAUSED}, []),
        (OLD, ["old"]),
        (OLD | {"ready_since": NOW - OLD_MS + 1}, []),
        (OLD | {"workers": 0}, ["no_worker"]),
        (OLD | {"flow": TrendFlow(1.0, 2.0)}, ["old"]),
        (OLD | {"flow": TrendFlow(2.0, 2.0)}, ["old"]),
        (OLD | {"flow": TrendFlow(2.0, 1.0)}, ["growing"]),
        (OLD | {"flow": TrendFlow(9 / 300, 0.0)}, ["old"]),
        (GROWS, ["growing"]),
        (GROWS | {"ready_since": NOW - GROWING_MS + 1}, []),
        (GROWS | {"flow": TrendFlow(9.0, 9.0)}, []),
        ({"completed_5m": 0.8, "failed_5m": 0.2}, ["failing"]),
        ({"completed_5m": 0.82, "failed_5m": 0.19}, []),
        ({"completed_5m": 0.0, "failed_5m": 0.01}, []),
        ({"dead": 1}, ["dead"]),
    ],
    ids=str,
)
def test_a_queue_has(facts: dict[str, Any], codes: list[str]) -> None:
    assert [code for code, _ in found(QueueFacts("q", **facts))] == codes


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, None),
        ({"ready": 1, "ready_since": NOW, "settings": PAUSED}, None),
        ({"ready": 1, "ready_since": NOW, "leaves": True}, None),
        ({"ready": 1, "ready_since": NOW}, NOW + ALONE_MS),
        ({"ready": 1, "ready_since": NOW - OLD_MS, "alone_since": NOW - 1}, NOW + ALONE_MS - 1),
        ({"ready": 1, "ready_since": NOW, "workers": 1}, NOW + GROWING_MS),
        ({"ready": 1, "ready_since": NOW - GROWING_MS, "workers": 1}, NOW + OLD_MS - GROWING_MS),
        ({"ready": 1, "ready_since": NOW - OLD_MS, "workers": 1}, None),
    ],
    ids=str,
)
def test_a_queue_in_which_nothing_happens_is_judged_again(
    facts: dict[str, Any], due: int | None
) -> None:
    assert due_at(QueueFacts("q", **facts), NOW) == due


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
        (ServerFacts(free_bytes=None, reserve_bytes=100), []),
        (ServerFacts(snapshot_s=59.0, holder="process 7 (psql)"), []),
        (ServerFacts(snapshot_s=60.0, holder="process 7 (psql)"), ["old_snapshot"]),
        (ServerFacts(("storage_full",), set_aside=3), ["damaged", "storage_full"]),
    ],
    ids=str,
)
def test_a_server_has(server: ServerFacts, codes: list[str]) -> None:
    assert [code for code, _ in found(server=server)] == codes


LIMITED = QueueSettings(concurrency=2, rate=8.0)
PAUSED_BY = QueueSettings(paused=True, paused_by="mia", pause_reason="wrong list")


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (ALONE, "5 waiting"),
        (ALONE | {"settings": PAUSED}, "5 waiting"),
        (ALONE | {"settings": PAUSED_BY}, "by mia (wrong list), 5 waiting"),
        (OLD, "60 waiting"),
        (OLD | {"flow": TrendFlow()}, "60 waiting, none done in five minutes"),
        (OLD | {"flow": TrendFlow(1.0, 1.0)}, "60 waiting, not drained at this rate"),
        (OLD | {"flow": TrendFlow(1.0, 2.0)}, "60 waiting, drained in 1 min"),
        (OLD | {"ready": 7_140, "flow": TrendFlow(0.0, 1.0)}, "7,140 waiting, drained in 119 min"),
        (OLD | {"ready": 7_200, "flow": TrendFlow(0.0, 1.0)}, "7,200 waiting, drained in 2 h"),
        (OLD | {"ready": 900_000, "flow": TrendFlow(1.0, 2.0)}, "900,000 waiting, drained in 10 d"),
        (GROWS, "60 waiting, +8.0/s: never drained"),
        (GROWS | {"flow": TrendFlow(26.0, 9.0)}, "60 waiting, +17/s: never drained"),
        (GROWS | {"flow": TrendFlow(0.1, 0.0)}, "60 waiting, +6/min: never drained"),
        (
            GROWS | {"settings": LIMITED, "in_flight": 2},
            "60 waiting, +8.0/s, at its 2 in flight: never drained",
        ),
        (
            GROWS | {"settings": LIMITED, "delivered_1m": 7.9},
            "60 waiting, +8.0/s, at its rate of 8/s: never drained",
        ),
        (GROWS | {"settings": LIMITED, "delivered_1m": 2.0}, "60 waiting, +8.0/s: never drained"),
        ({"completed_5m": 0.58, "failed_5m": 0.42}, "42 % of attempts"),
        ({"dead": 1_727}, "1,727 dead"),
    ],
    ids=str,
)
def test_a_finding_says(facts: dict[str, Any], text: str) -> None:
    assert [each.text for each in diagnosis(QueueFacts("q", **facts))] == [text]


def test_the_worst_comes_first_and_of_one_kind_the_larger() -> None:
    queues = (
        QueueFacts("dead", dead=9),
        QueueFacts("small", ready=1, ready_since=0),
        QueueFacts("large", ready=2, ready_since=1),
        QueueFacts("tests", ready=2, workers=1, ready_since=0, flow=TrendFlow()),
        QueueFacts("fails", completed_5m=1.0, failed_5m=1.0),
        QueueFacts("grows", ready=9, workers=1, ready_since=9, flow=TrendFlow(1.0, 0.0)),
        QueueFacts("held", ready=9_000, ready_since=0, settings=PAUSED),
    )

    assert found(*queues, server=ServerFacts(("storage_full",), 1.0)) == [
        ("storage_full", None),
        ("no_worker", "large"),
        ("no_worker", "small"),
        ("failing", "fails"),
        ("slow_disk", None),
        ("growing", "grows"),
        ("old", "tests"),
        ("paused", "held"),
        ("dead", "dead"),
    ]


def test_findings_of_one_kind_are_one_line_with_the_first_of_them() -> None:
    queues = [QueueFacts(f"q{n}", ready=n, ready_since=n) for n in range(1, 6)]
    disk, alone = grouped(diagnosis(*queues, server=ServerFacts(("storage_full",))))
    assert (disk.number, disk.text) == (1, disk.first[0].text)
    assert (alone.number, alone.jobs, alone.since) == (5, 15, 1)
    assert [each.queue for each in alone.first] == ["q5", "q4", "q3"][:MOST_NAMED]
    assert alone.text == "no worker: q5 5 waiting · q4 4 waiting · q3 3 waiting · 2 more"


def test_a_lane_that_fails_is_a_line_with_the_reason() -> None:
    (found,) = findings_of_lanes({"up": "no answer from http://hub"})
    assert (found.code, found.severity) == ("lane_fails", Severity.WARNING)
    assert found.text.startswith("the lane up waits: no answer from http://hub")


def test_devices_are_a_line_a_fault() -> None:
    devices = DeviceSums(total=200, silent=3, behind=0, clock=1, jobs=9, bytes=90)
    silent, clock = findings_of_devices(devices)
    assert (silent.code, silent.severity) == ("device_silent", Severity.WARNING)
    assert silent.text.startswith("3 of 200 devices: silent")
    assert (clock.code, clock.severity) == ("device_clock", Severity.NOTE)
    assert list(findings_of_devices(DeviceSums(200, 0, 0, 0, 0, 0))) == []
