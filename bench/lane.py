"""A device sends its backlog to a hub over loopback: how many jobs arrive in a second.

Both are servers on disks of this machine, with its cores between them. Every batch is committed by
the hub and then by the device.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from bench.load import Target
from bench.proc import cpu_seconds
from bench.report import Progress, Table, number
from bench.servers import Lab

IN_A_BULK = 5_000
LOOK_EVERY = 0.01
LONGEST_S = 300.0


@dataclass(frozen=True)
class LaneRun:
    """One backlog. Processor time is in microseconds a job."""

    batch: int
    jobs: int
    rate: float
    device_us: float
    hub_us: float
    bytes: float
    """The bytes of bodies a job, as they were sent."""


def reading(random: Random, number: int) -> dict[str, object]:
    """A job whose payload has about 100 bytes."""
    payload = {
        "sensor": f"press-{random.randrange(40):02}",
        "at": 1_750_000_000_000 + number * 250,
        "bar": round(random.gauss(82.5, 3.0), 2),
        "celsius": round(random.gauss(61.0, 1.5), 1),
        "serial": f"{random.getrandbits(48):012x}",
    }
    return {"queue": "readings", "type": "store", "payload": payload}


def ask(target: Target, method: str, path: str, doc: object = None) -> Any:
    """One request, and the document of its answer."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{target.port}{path}",
        None if doc is None else json.dumps(doc).encode(),
        {"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=LONGEST_S) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def send(lab: Lab, jobs: int, batch: int) -> LaneRun:
    """Let a new device fill up, and send all it has to a new hub."""
    with lab.server("zq") as hub, lab.server("zq") as device:
        random = Random(1)
        for start in range(0, jobs, IN_A_BULK):
            numbers = range(start, min(start + IN_A_BULK, jobs))
            bulk = [reading(random, n) for n in numbers]
            ask(device, "POST", "/jobs/bulk", {"jobs": bulk})
        before = cpu_seconds(device.pid), cpu_seconds(hub.pid)
        began = time.perf_counter()
        url = f"http://127.0.0.1:{hub.port}"
        ask(device, "PUT", "/forward/up", {"queues": ["readings"], "url": url, "batch": batch})
        while time.perf_counter() - began < LONGEST_S:
            if not ask(device, "GET", "/jobs/count")["count"]:
                break
            time.sleep(LOOK_EVERY)
        took = time.perf_counter() - began
        used = cpu_seconds(device.pid) - before[0], cpu_seconds(hub.pid) - before[1]
        arrived = ask(hub, "GET", "/jobs/count")["count"]
        if arrived != jobs:
            raise RuntimeError(f"{arrived} of {jobs} jobs are at the hub after {took:.0f} s")
        sent = ask(device, "GET", "/forward/up")["sent_bytes"]
    device_us, hub_us = (seconds / jobs * 1e6 for seconds in used)
    return LaneRun(batch, jobs, jobs / took, device_us, hub_us, sent / jobs)


def lane(lab: Lab, jobs: int, batches: Sequence[int], progress: Progress) -> list[LaneRun]:
    """A run with each size of batches."""
    found = []
    for batch in batches:
        progress.show(f"batches of {batch}")
        found.append(send(lab, jobs, batch))
    progress.clear()
    return found


def lane_table(found: list[LaneRun]) -> Table:
    """A line a size of batches."""
    header = ["batch", "jobs", "jobs/s", "device, us a job", "hub, us a job", "bytes a job"]
    lines = [
        [
            *(number(each.batch), number(each.jobs), number(each.rate)),
            *(number(each.device_us, 1), number(each.hub_us, 1), number(each.bytes, 1)),
        ]
        for each in found
    ]
    return Table(header, lines)
