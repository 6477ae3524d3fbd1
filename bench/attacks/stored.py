"""What one client stores, and what it costs when it is checked, shown or delivered."""

from __future__ import annotations

import gzip
import http.client
import json
import random
from typing import Any

from bench.attacks.site import PATIENCE, Attack, Outcome, Reply, Site

MSGPACK = "application/msgpack"
MSGPACK_STREAM = "application/vnd.zizq.msgpack-stream"

SMALL_BULK = 500
"""So many jobs of a bulk hold nobody up."""

NAMES = 300_000
"""A payload with so many fields has 5.5 MB."""


def union_of_itself(site: Site, count: int) -> Outcome:
    """A bulk of payloads for a schema that is recursive over two unions."""
    inner = record("B", ["null", "A", "B"], "b")
    put_schema(site, "q", record("A", ["null", "A", inner], "a"))
    payload: dict[str, Any] = {"n": None, "a": 1, "b": 1}
    for _ in range(9):
        payload = {"n": payload, "b": 1}
    return bulk(site, [{"n": payload, "a": 1}] * count)


def thirty_fields(site: Site, count: int) -> Outcome:
    """A bulk of payloads for an honest schema of thirty fields."""
    fields = [{"name": f"f{n}", "type": ["null", "string"]} for n in range(30)]
    put_schema(site, "q", {"type": "record", "name": "R", "fields": fields})
    return bulk(site, [{f"f{n}": "x" for n in range(30)}] * count)


def hidden_words(site: Site, count: int) -> Outcome:
    """A payload that repeats a word which the page hides, and a look at the page."""
    return looked_at(site, {"note": "password" * count})


def hidden_values(site: Site, count: int) -> Outcome:
    """A payload with many values that the page hides, within texts."""
    return looked_at(site, {"note": 'password: x, "q\\ ' * count})


def pages_in_msgpack(site: Site, count: int) -> Outcome:
    """Payloads with many fields, read as MessagePack."""
    large_jobs(site, count)
    return outcome(site.request("GET", "/jobs?queue=q", headers={"Accept": MSGPACK}))


def stream_in_msgpack(site: Site, count: int) -> Outcome:
    """Payloads with many fields, taken by a stream of MessagePack."""
    large_jobs(site, count)
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE)
    try:
        head = {"Accept": MSGPACK_STREAM}
        connection.request("GET", f"/jobs/take?queue=q&prefetch={count}", headers=head)
        response = connection.getresponse()
        taken = sum(
            len(response.read(int.from_bytes(response.read(4), "big"))) for _ in range(count)
        )
        return Outcome(f"{response.status}, {taken // 2**20} MiB")
    except (OSError, http.client.HTTPException) as error:
        return Outcome(type(error).__name__)
    finally:
        connection.close()


def pages_of_messages(site: Site, count: int) -> Outcome:
    """Payloads with many fields, read at the door of queue-ti."""
    large_jobs(site, count)
    return outcome(site.request("GET", "/api/messages?topic=q"))


def statistics(site: Site, count: int) -> Outcome:
    """Queues, each with one job, and the statistics of all.

    They are filled in small bulks: a large one is an attack by itself (`jobs_of_all_kinds`).
    """
    for first in range(0, count, SMALL_BULK):
        names = [f"queue-{n}" for n in range(first, min(first + SMALL_BULK, count))]
        jobs = [{"queue": name, "type": "t", "payload": 1} for name in names]
        site.need("POST", "/jobs/bulk", json.dumps({"jobs": jobs}).encode())
    return outcome(site.request("GET", "/stats", headers={"Accept": MSGPACK}))


def jobs_of_all_kinds(site: Site, count: int) -> Outcome:
    """A bulk of jobs that have each a queue, a group, a unique key and a fair key of their own."""
    jobs = [
        {
            "queue": f"q{n}",
            "type": "t",
            "payload": 1,
            "ttl_ms": 600_000 + n,
            "group": f"g{n}",
            "unique_key": f"u{n}",
            "fair_key": f"f{n}",
        }
        for n in range(count)
    ]
    reply = site.request("POST", "/jobs/bulk", json.dumps({"jobs": jobs}).encode())
    return Outcome(f"{reply.status or reply.text}")


def schedules(site: Site, count: int) -> Outcome:
    """A group of cron entries."""
    job = {"queue": "q", "type": "t", "payload": 1}
    entries = [{"name": f"e{n}", "expression": "0 0 29 2 1", "job": job} for n in range(count)]
    body = json.dumps({"entries": entries}).encode()
    return outcome(site.request("PUT", "/crons/g", body))


def gzip_of_noise(site: Site, count: int) -> Outcome:
    """A compressed body that cannot be compressed: it is no JSON either."""
    body = gzip.compress(random.Random(1).randbytes(count), 1)
    reply = site.request("POST", "/v0/topics/t", body, headers={"Content-Encoding": "gzip"})
    return Outcome(f"{reply.status or reply.text}", len(body))


def record(name: str, branches: list[Any], number: str) -> dict[str, Any]:
    """A schema with a union and a number."""
    fields = [{"name": "n", "type": branches}, {"name": number, "type": "int"}]
    return {"type": "record", "name": name, "fields": fields}


def put_schema(site: Site, queue: str, schema: dict[str, Any]) -> None:
    """Give a queue a schema."""
    site.need("PUT", f"/queues/{queue}/schema", json.dumps({"schema": schema}).encode())


def bulk(site: Site, payloads: list[Any]) -> Outcome:
    """Send jobs with these payloads in requests of up to 10,000."""
    answers, sent = set[str](), 0
    for first in range(0, len(payloads), 10_000):
        part = payloads[first : first + 10_000]
        jobs = [{"queue": "q", "type": "t", "payload": payload} for payload in part]
        body = json.dumps({"jobs": jobs}).encode()
        reply = site.request("POST", "/jobs/bulk", body)
        answers.add(f"{reply.status or reply.text}")
        sent = max(sent, len(body))
    return Outcome(" ".join(sorted(answers)), sent)


def large_jobs(site: Site, count: int) -> None:
    """Store jobs with many fields, unless they are there already."""
    if json.loads(site.need("GET", "/jobs/count?queue=q"))["count"]:
        return
    payload = {f"k{n}": n for n in range(NAMES)}
    body = json.dumps({"queue": "q", "type": "t", "payload": payload}).encode()
    for _ in range(count):
        site.need("POST", "/jobs", body)


def looked_at(site: Site, payload: Any) -> Outcome:
    """Store a job, and have the operators' page show it."""
    site.need("POST", "/jobs", json.dumps({"queue": "q", "type": "t", "payload": payload}).encode())
    return outcome(site.request("GET", "/ui/api/jobs?queue=q&limit=1", port=site.admin_port))


def outcome(reply: Reply) -> Outcome:
    """The status of an answer and its length."""
    return Outcome(f"{reply.status or reply.text}, {len(reply.text) // 1024} KiB")


MASK = ("--ui-mask", "password|token")

ATTACKS = (
    Attack("600 payloads of a recursive union", union_of_itself, 600, 10),
    Attack("10000 payloads of 30 fields", thirty_fields, 10_000, 100),
    Attack("64 kB of a word to hide", hidden_words, 8_000, 100, MASK, parts=("admin",)),
    Attack("8 MB of values to hide", hidden_values, 400_000, 100, MASK, parts=("admin",)),
    Attack("3 payloads of 300000 fields as MessagePack", pages_in_msgpack, 3, 1),
    Attack("12 payloads of 300000 fields in a stream", stream_in_msgpack, 12, 1),
    Attack("3 payloads of 300000 fields as messages", pages_of_messages, 3, 1),
    Attack("statistics of 50000 queues", statistics, 50_000, 500),
    Attack("10000 jobs with keys of their own", jobs_of_all_kinds, 10_000, 600),
    Attack("9000 schedules", schedules, 9_000, 100),
    Attack("32 MB of noise in gzip", gzip_of_noise, 32 << 20, 1 << 16, ("--topics-gzip",)),
)
