"""What cron entries cost while none is due: a server with very many of them, and one with none."""

from __future__ import annotations

import http.client
import statistics
import time
from dataclasses import dataclass

import orjson

from bench import proc
from bench.load import Target, in_own_process, run_load
from bench.report import Progress, Table, number, ratio, span
from bench.rows import ROWS
from bench.servers import Lab

SERVER = "zq"
ROW = "take-100"
GROUP = 5_000
SETTLE_SECONDS = 2.0
ONCE_A_YEAR = "0 0 29 2 *"


@dataclass(frozen=True)
class Idle:
    """A server in one round. CPU is the share of a core with nothing to do; memory in MiB."""

    entries: int
    installed_s: float
    rss_mb: float
    cpu: float
    rate: float


def entries(
    lab: Lab, count: int, rounds: int, seconds: float, progress: Progress
) -> list[tuple[Idle, Idle]]:
    """A fresh server without entries and one with `count`, by rounds, in both orders."""
    samples = []
    for turn in range(rounds):
        found = {}
        for many in (0, count) if turn % 2 else (count, 0):
            progress.show(f"round {turn + 1}/{rounds}: {many:,} entries")
            with lab.server(SERVER) as target:
                found[many] = look(target, many, seconds)
        samples.append((found[0], found[count]))
    progress.clear()
    return samples


def look(target: Target, count: int, seconds: float) -> Idle:
    """Install entries; measure the idle server, then the row."""
    began = time.perf_counter()
    install(target.port, count)
    installed = time.perf_counter() - began
    time.sleep(SETTLE_SECONDS)
    before = proc.cpu_seconds(target.pid)
    time.sleep(seconds)
    idle = (proc.cpu_seconds(target.pid) - before) / seconds
    rss = proc.rss_mb(target.pid)
    load = in_own_process(run_load, target, ROWS[ROW].spec(10, seconds))
    return Idle(count, installed, rss, idle, load.measures[0].rate)


def install(port: int, count: int) -> None:
    """Install entries by groups of `GROUP`. None of them fires within the run."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for start in range(0, count, GROUP):
        numbers = range(start, min(start + GROUP, count))
        body = orjson.dumps({"entries": [entry(number) for number in numbers]})
        path = f"/crons/group-{start // GROUP}"
        connection.request("PUT", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise ValueError(f"PUT {path}: {answer.status} {text[:200]!r}")
    connection.close()


def entry(number: int) -> dict[str, object]:
    job = {"queue": f"queue-{number % 10}", "type": "yearly", "payload": {"n": number}}
    return {"name": f"entry-{number}", "expression": ONCE_A_YEAR, "job": job}


def entries_table(samples: list[tuple[Idle, Idle]]) -> Table:
    """`ratio` is the rate of the row beside the entries over the rate without."""
    header = ["entries", "installed in s", "RSS MB", "idle CPU %", f"{ROW} /s", "ratio", "low-high"]
    ratios = [many.rate / none.rate for none, many in samples]
    lines = []
    for index, side in enumerate(zip(*samples, strict=True)):
        measures = [
            statistics.median(getattr(each, name) for each in side)
            for name in ("installed_s", "rss_mb", "cpu", "rate")
        ]
        cells = [number(measures[0], 1), number(measures[1]), number(measures[2] * 100, 2)]
        compared = [ratio(ratios), span(ratios, 2)] if index else ["", ""]
        lines.append([number(side[0].entries), *cells, number(measures[3]), *compared])
    return Table(header, lines)
