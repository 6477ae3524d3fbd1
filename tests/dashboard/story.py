"""A bad night on one server: fourteen queues, most of which need somebody.

The design's pictures tell this story, and so do the pages of a server that `tell` has prepared.
"""

import contextlib
import json
import math
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from .place import Place

LONG_NAME = (
    "tenant.4f0c9a1e-7b52-4c1d-9e1a-8d2f6c03b7aa.customer-data-platform.reconciliation"
    ".nightly-eu-central-1"
)

WAITING = {
    "orders@billing": 60,
    "sms": 41,
    "search.index": 2_401,
    "sync.crm": 61,
    "accounts": 29,
    "reports": 18,
    "thumbs": 18,
    "billing.dunning": 7,
    "newsletter": 180,
    "mail": 4,
    LONG_NAME: 2,
    "webhooks": 1,
}
"""How many jobs wait in each queue at the end, beside those of the tenants."""

FAILED = {
    "sms": (60, "CarrierError", "SMTP 421 carrier rejected +49151{n}: queue {n} full"),
    "thumbs": (31, "ImageError", "cannot identify image file '/tmp/{n}.png'"),
    "billing.dunning": (19, "Declined", "card of customer {n} declined: code 51"),
    "sync.crm": (14, "Throttled", "429 try again later for /contacts/{n} (id {n})"),
    "webhooks": (9, "ConnectionError", "POST /hooks/{n}: 502 Bad Gateway"),
    "mail": (5, "TimeoutError", "no answer within 30 s from /send/{n}"),
}
"""How many jobs of a queue died, by which error."""

TENANTS = {"acme": (320, 1), "globex": (90, 2), "initech": (24, 1)}
"""How many jobs of `exports` each tenant has, and the weight of its share."""

PRODUCERS = {"device-17": ("7f3a", 40), "shop-outbox": ("01KX4Q7M0G", 12)}
"""The epoch of each producer, and how many jobs of `mail` it has stored."""

DONE = {"mail": 90, "webhooks": 60, "thumbs": 40, "sms": 30, "billing.invoices": 20, LONG_NAME: 9}

WORKERS = (
    ("sms-1", "sms", 8),
    ("index-1", "search.index", 16),
    ("index-2", "search.index", 8),
    ("mail-1", "mail", 16),
    ("hooks-1", "webhooks", 4),
    ("thumbs-1", "thumbs", 4),
    ("reports-1", "reports", 2),
    ("crm-1", "sync.crm", 8),
)
"""The name of each worker, its queue, and its slots."""


class _Teller:
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def call(self, method: str, path: str, body: Any = None) -> Any:
        reply = self._http.request(method, path, json=body)
        assert reply.is_success, (path, reply.text)
        return reply.json() if reply.content else None

    def store(self, queue: str, count: int, **fields: Any) -> None:
        job = {"queue": queue, "type": _type_of(queue)} | fields
        jobs = [job | {"payload": {"to": f"+49151{n}", "user": n}} for n in range(count)]
        self.call("POST", "/jobs/bulk", {"jobs": jobs})

    def produce(self, queue: str, name: str, epoch: str, count: int) -> None:
        job = {"queue": queue, "type": _type_of(queue), "payload": {"to": "ann"}}
        producer = {"name": name, "epoch": epoch, "seq": 1}
        made = self.call("POST", "/jobs/bulk", {"producer": producer, "jobs": [job] * count})
        for stored in made["jobs"]:
            self.call("DELETE", f"/jobs/{stored['id']}")

    def claim(self, queue: str, count: int) -> list[Any]:
        body = {"max": count, "lease_ms": 3_600_000, "holder": "w-1"}
        jobs: list[Any] = self.call("POST", f"/queues/{queue}/claim", body)["jobs"]
        return jobs

    def complete(self, queue: str, count: int) -> None:
        self.store(queue, count, retention={"completed_ms": 86_400_000})
        ids = [job["id"] for job in self.claim(queue, count)]
        self.call("POST", "/jobs/success", {"ids": ids})

    def kill(self, queue: str) -> None:
        count, error, message = FAILED[queue]
        self.store(queue, count)
        for n, job in enumerate(self.claim(queue, count)):
            failure = {"message": message.format(n=1000 + n), "error_type": error, "kill": True}
            self.call("POST", f"/jobs/{job['id']}/failure", failure | {"lease": job["lease"]})


def _type_of(queue: str) -> str:
    return "".join(word.capitalize() for word in queue.split("@")[0].split(".")[:2])


def tell(place: Place) -> None:
    """Store what happened, as clients and operators did it."""
    with httpx.Client(base_url=place.primary, trust_env=False, timeout=60) as http:
        teller = _Teller(http)
        for queue, count in DONE.items():
            teller.complete(queue, count)
        for queue in FAILED:
            teller.kill(queue)
        teller.call("PUT", "/queues/search.index/settings", {"rate": 8})
        teller.call("PUT", "/queues/accounts/settings", {"concurrency": 2})
        for queue, count in WAITING.items():
            teller.store(queue, count)
        for tenant, (count, weight) in TENANTS.items():
            teller.store("exports", count, fair_key=tenant, fair_weight=weight)
        teller.call("PUT", "/queues/exports/fair/acme", {"max_in_flight": 4, "rate": 5})
        for name, (epoch, count) in PRODUCERS.items():
            teller.produce("mail", name, epoch, count)
        teller.call("POST", "/marks", {"text": "1.8.2"})
    with httpx.Client(base_url=f"{place.ui}api/", trust_env=False) as http:
        reason = "wrong list; ask Mia before resuming"
        pause = {"paused": True, "pause_reason": reason}
        assert http.patch("queues/newsletter/settings", json=pause).is_success


def remember(database: Path) -> None:
    """An hour of traffic, for which nobody waits. In its second half, more comes than is done."""
    now = int(time.time() * 1000)
    rows = []
    for minute in range(1, 60):
        bad = minute < 31
        for queue, come in (("", 3_400 if bad else 2_160), ("search.index", 1_500 if bad else 480)):
            came = round(come * (1 + math.sin(minute * 2.1) / 40))
            done = round((2_160 if queue == "" else 480) * (1 + math.cos(minute * 1.7) / 40))
            failed = round(done * (0.1 if bad else 0.02))
            wait = {"9": 900, "13": 90, "18": 10} if bad else {"1": 900, "5": 90, "7": 10}
            at = now - now % 60_000 - minute * 60_000
            counts = (came, done, done, failed, failed // 10, 0)
            rows.append((queue, at, *counts, json.dumps(wait), json.dumps({"7": 40, "9": 9})))
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.executemany(
            "INSERT OR REPLACE INTO trends (length, queue, at, enqueued, delivered, completed,"
            " failed, died, expired, wait, run) VALUES (60000, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )


@contextlib.contextmanager
def workers(place: Place) -> Iterator[None]:
    """The workers of the story. They hold what they get."""
    with contextlib.ExitStack() as streams:
        client = httpx.Client(base_url=place.primary, trust_env=False, timeout=None)
        http = streams.enter_context(client)
        for name, queue, slots in WORKERS:
            asked: dict[str, str | int] = {
                "queue": queue,
                "worker": name,
                "concurrency": slots,
                "prefetch": slots,
            }
            answer = streams.enter_context(http.stream("GET", "/jobs/take", params=asked))
            threading.Thread(target=_read, args=(answer,), daemon=True).start()
        yield


def _read(answer: httpx.Response) -> None:
    with contextlib.suppress(httpx.HTTPError, httpx.StreamError):
        for _ in answer.iter_raw():
            pass
