"""A server that has something in nearly every table, for tests that harm rows."""

from typing import Any

from conformance.client import Client

LONG = "x" * 600
"""A payload or a result that is stored apart."""

_AT_ONCE = {"allocation": 100, "strategy": {"type": "while_in_flight"}}
_BY_TIME = {"allocation": 100, "strategy": {"type": "time_based", "duration_ms": 1_000}}
_KEPT = {"completed_ms": 10**10, "dead_ms": 10**10}

WAITING: dict[str, dict[str, Any]] = {
    "plain": {},
    "large": {"payload": LONG},
    "drawn": {"budgets": [{"key": "b", "cost": 1, "create_with": _AT_ONCE}]},
    "timed": {"budgets": [{"key": "timed", "cost": 1, "create_with": _BY_TIME}]},
    "shared": {"fair_key": "a"},
    "limited": {"fair_key": "limited"},
    "grouped": {"group": "g"},
    "aged": {},
    "batched": {"batch": {"key": "h", "when": "true", "fold": "$existing"}},
    "named": {"group": "g", "dedupe": {"id": "n", "window_ms": 10**9}},
}
"""Queues, and what the job is like that waits in each of them."""

_JOB = {"type": "t", "payload": 1}

_LANE = {"queues": ["out*"], "url": "http://127.0.0.1:9"}
_LOG = {"records": [{"data": 1, "tag": "g", "meta": {"a": 1}}], "idempotency_key": "k"}

REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("PATCH", "/queues/aged/settings", {"priority_aging_ms": 1_000}),
    ("PATCH", "/queues/plain/settings", {"concurrency": 1_000}),
    ("PATCH", "/queues/limited/settings", {"fair": {"max_in_flight": 10, "rate": 100}}),
    ("PUT", "/queues/limited/fair/limited", {"weight": 2, "max_in_flight": 9}),
    ("PUT", "/queues/typed/schema", {"schema": "string"}),
    ("POST", "/marks", {"text": "m"}),
    ("PUT", "/crons/c", {"entries": [_ENTRY := {"name": "e", "expression": "0 0 1 1 *"}]}),
    ("PUT", "/forward/lane", _LANE),
    ("PUT", "/devices/d", {"instance": "i", "version": "1", "now": 0}),
    ("PUT", "/v0/topics/log", {"type": "log", "durable": True}),
    ("PUT", "/v0/topics/near", {"type": "queue", "durable": True}),
    ("POST", "/v0/topics/log", _LOG),
    ("POST", "/v0/topics/near", {"records": [{"data": 1, "tag": "g"}]}),
    ("PUT", "/v0/routers/r", {"source": "log", "dest": "log2"}),
    *[("POST", "/jobs", {"queue": queue, **_JOB, **job}) for queue, job in WAITING.items()],
    ("POST", "/jobs", {"queue": "later", "delay_ms": 10**9, **_JOB}),
    ("PATCH", "/jobs?queue=later", {"priority": 7}),
)
_ENTRY["job"] = {"queue": "cron", **_JOB}  # type: ignore[assignment]

EMPTY = {"lane_batches", "queue_rates", "quarantine", "user_grants", "users"}
"""Tables in which nothing is stored."""


async def furnish(client: Client) -> None:
    """Have the server of a client store something in each other table."""
    for method, path, doc in REQUESTS:
        reply = await client.call(method, path, doc)
        assert reply.status < 300, (method, path, reply.doc)
    for producer in ("p; epoch=one; seq=1", "p; epoch=two; after=one:1; seq=1"):
        body = client.wire.encode({"queue": "numbered", **_JOB})
        named = {"content-type": client.wire.media_type, "zq-producer": producer}
        assert (await client.send("POST", "/jobs", body, named)).status == 201
    await client.enqueue_many(2, queue="done", retention=_KEPT)
    wanted = {"holder": "w", "max": 2}
    held = (await client.post("/queues/done/claim", wanted)).doc["jobs"]
    await client.post(f"/jobs/{held[0]['id']}/success", {"result": LONG})
    await client.fail(held[1]["id"], error_type="E", kill=True)
