"""What the overview says is wrong: a table from figures to findings."""

import pytest

from zq.service.diagnosis import OLD_MS, QueueFacts, ServerFacts, diagnose

NOW = 10_000_000
FINE = ServerFacts()


def found(*queues: QueueFacts, server: ServerFacts = FINE) -> list[tuple[str, str | None]]:
    return [(each.code.value, each.queue) for each in diagnose(queues, server, NOW)]


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
        ({"delivered_5m": 1.0, "failed_5m": 0.2}, ["failing"]),
        ({"delivered_5m": 1.0, "failed_5m": 0.19}, []),
        ({"delivered_5m": 0.01, "failed_5m": 0.01}, []),
        ({"dead": 1}, ["dead"]),
    ],
    ids=str,
)
def test_a_queue_has(facts: dict[str, float], codes: list[str]) -> None:
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
    ],
    ids=str,
)
def test_a_server_has(server: ServerFacts, codes: list[str]) -> None:
    assert [code for code, _ in found(server=server)] == codes


def test_the_worst_comes_first_and_of_one_kind_the_larger() -> None:
    queues = (
        QueueFacts("dead", dead=9),
        QueueFacts("small", ready=1),
        QueueFacts("large", ready=2),
        QueueFacts("old", ready=9, workers=1, ready_since=0),
        QueueFacts("held", ready=9, pause="paused"),
    )

    assert found(*queues, server=ServerFacts(("storage_full",), 1.0)) == [
        ("storage_full", None),
        ("no_worker", "large"),
        ("no_worker", "small"),
        ("slow_disk", None),
        ("old", "old"),
        ("paused", "held"),
        ("dead", "dead"),
    ]
