"""HTTP/2 by each codec beside HTTP/1.1: the requests of h2load, and workers."""

from __future__ import annotations

import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.load import LoadSpec, Target, Workers, in_own_process, run_load
from bench.report import Progress, Table, number, ratio, span
from bench.servers import Lab, ServerError

HTTP1 = "HTTP/1.1"
SERVERS = {HTTP1: "zq", "h2": "zq", "zttp": "zq-zttp"}
"""The ways that are measured, and the server of each: HTTP/1.1, and HTTP/2 by each library."""
LIBRARIES = [name for name in SERVERS if name != HTTP1]

CONNECTIONS, STREAMS = 4, 32
FLAGS1 = ["--h1", "-c", str(CONNECTIONS * STREAMS), "-m", "1"]
FLAGS2 = ["-c", str(CONNECTIONS), "-m", str(STREAMS)]
REQUESTS = 5000  # requests for each second of the measured time: the size of a run of h2load
IDS = [f"01ARZ3NDEKTSV4RRFFQ69G5F{n:02d}" for n in range(50)]
FINISHED = re.compile(r"finished in .*?, ([0-9.]+) req/s")
WARM_UP = 0.5
AIMS = {"h2load: one job a request": 0.8, "h2load: single acks": 0.8}
AIMS |= {"h2load: bulk acks, 50 ids": 0.8}
AIMS |= {"workers: single acks": 0.5, "workers: bulk acks, 50 ids": 0.8}
"""Row → the ratio of HTTP/2 to HTTP/1.1 that zttp must reach. h2 is far from the first three."""

Run = Callable[[Target, bool, float], float]


@dataclass(frozen=True)
class Round:
    """One row in one round: requests or jobs a second by the keys of `SERVERS`."""

    row: str
    rates: dict[str, float]


def h2load(path: str, body: str, expected: str) -> Run:
    """Measure requests a second. h2load repeats one request; `expected` are the statuses.

    An acknowledgement finds no job (404 or 422). That is the least work behind the door, so the
    share of the door is largest.
    """

    def run(target: Target, http2: bool, seconds: float) -> float:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(body)
            file.flush()
            url = f"http://127.0.0.1:{target.port}{path}"
            count = round(REQUESTS * seconds)
            load = ["-n", str(count), "-d", file.name]
            command = ["h2load", *(FLAGS2 if http2 else FLAGS1), *load]
            command += ["-H", "content-type: application/json", url]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=True)
            except FileNotFoundError:
                raise ServerError("h2load is missing: install nghttp2-client") from None
        found = FINISHED.search(done.stdout)
        if found is None or f" {count} {expected}" not in done.stdout:
            raise ServerError(f"h2load did not end well:\n{done.stdout}")
        return float(found[1])

    return run


def workers(acks: int, pace: int) -> Run:
    """Measure jobs a second of workers whose acknowledgements share a connection, or do not."""

    def run(target: Target, http2: bool, seconds: float) -> float:
        shape = Workers(CONNECTIONS, acks * STREAMS * 2, acks, STREAMS, http2=http2)
        spec = LoadSpec(
            queues=10,
            seconds=seconds,
            warm_up=WARM_UP,
            workers=shape,
            backlog=round(pace * (seconds + WARM_UP)),
        )
        return in_own_process(run_load, target, spec).measures[0].rate

    return run


JOB = '{"type":"bench","queue":"q","payload":{"n":1}}'
BULK = '{"ids":["' + '","'.join(IDS) + '"]}'
ROWS: dict[str, Run] = {
    "h2load: one job a request": h2load("/jobs", JOB, "2xx"),
    "h2load: single acks": h2load(f"/jobs/{IDS[0]}/success", "{}", "4xx"),
    "h2load: bulk acks, 50 ids": h2load("/jobs/success", BULK, "4xx"),
    "workers: single acks": workers(1, pace=40_000),
    "workers: bulk acks, 50 ids": workers(50, pace=200_000),
}


def http2(
    lab: Lab, libraries: Sequence[str], rounds: int, seconds: float, progress: Progress
) -> list[Round]:
    """Each row on a fresh server for each way. The order changes with every round."""
    found = []
    ways = [HTTP1, *libraries]
    for turn in range(rounds):
        first = turn % len(ways)
        for row, measure in ROWS.items():
            progress.show(f"round {turn + 1}/{rounds} {row}")
            rates = {}
            for way in ways[first:] + ways[:first]:
                with lab.server(SERVERS[way]) as target:
                    rates[way] = measure(target, way != HTTP1, seconds)
            found.append(Round(row, rates))
    progress.clear()
    return found


def http2_table(found: list[Round]) -> Table:
    ways = [way for way in SERVERS if way in found[0].rates]
    lines = []
    for row, aim in AIMS.items():
        of_row = [each.rates for each in found if each.row == row]
        cells = [number(statistics.median(rates[way] for rates in of_row)) for way in ways]
        for library in ways[1:]:
            ratios = [rates[library] / rates[HTTP1] for rates in of_row]
            cells += [ratio(ratios), span(ratios, 2)]
        lines.append([row, *cells, number(aim, 1)])
    named = [name for library in ways[1:] for name in (f"{library} ratio", "low-high")]
    return Table(["row", *(f"{way} /s" for way in ways), *named, "aim"], lines)
