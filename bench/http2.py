"""HTTP/2 beside HTTP/1.1 on the same server: acknowledgements by h2load and by workers."""

from __future__ import annotations

import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from bench.load import LoadSpec, Target, Workers, in_own_process, run_load
from bench.report import Progress, Table, number, ratio, span
from bench.servers import Lab, ServerError

CONNECTIONS, STREAMS = 4, 32
HTTP1 = ["--h1", "-c", str(CONNECTIONS * STREAMS), "-m", "1"]
HTTP2 = ["-c", str(CONNECTIONS), "-m", str(STREAMS)]
REQUESTS = 5000  # a second of the measured time: what a run of h2load is sized by
IDS = [f"01ARZ3NDEKTSV4RRFFQ69G5F{n:02d}" for n in range(50)]
FINISHED = re.compile(r"finished in .*?, ([0-9.]+) req/s")
WARM_UP = 0.5
AIMS = {"h2load: single acks": 0.5, "h2load: bulk acks, 50 ids": 0.5}
AIMS |= {"workers: single acks": 0.5, "workers: bulk acks, 50 ids": 0.8}

Run = Callable[[Target, bool, float], float]


@dataclass(frozen=True)
class Pair:
    """One row in one round: requests or jobs a second over each version."""

    row: str
    http1: float
    http2: float


def h2load(path: str, body: str) -> Run:
    """Requests a second. It repeats one request, which finds nothing to acknowledge: 404 or 422.

    That is the least work behind the door, so the door weighs most.
    """

    def run(target: Target, http2: bool, seconds: float) -> float:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(body)
            file.flush()
            url = f"http://127.0.0.1:{target.port}{path}"
            load = ["-n", str(round(REQUESTS * seconds)), "-d", file.name]
            command = ["h2load", *(HTTP2 if http2 else HTTP1), *load]
            command += ["-H", "content-type: application/json", url]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=True)
            except FileNotFoundError:
                raise ServerError("h2load is missing: install nghttp2-client") from None
        found = FINISHED.search(done.stdout)
        if found is None or " 0 errored, 0 timeout" not in done.stdout:
            raise ServerError(f"h2load did not end well:\n{done.stdout}")
        return float(found[1])

    return run


def workers(acks: int, pace: int) -> Run:
    """Jobs a second of workers whose acknowledgements are multiplexed, or are not."""

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


BULK = '{"ids":["' + '","'.join(IDS) + '"]}'
ROWS: dict[str, Run] = {
    "h2load: single acks": h2load(f"/jobs/{IDS[0]}/success", "{}"),
    "h2load: bulk acks, 50 ids": h2load("/jobs/success", BULK),
    "workers: single acks": workers(1, pace=40_000),
    "workers: bulk acks, 50 ids": workers(50, pace=200_000),
}


def http2(lab: Lab, rounds: int, seconds: float, progress: Progress) -> list[Pair]:
    """Each row on a fresh server for each version; every other round HTTP/2 goes first."""
    pairs = []
    for turn in range(rounds):
        for row, measure in ROWS.items():
            progress.show(f"round {turn + 1}/{rounds} {row}")
            rates = {}
            for version in (False, True) if turn % 2 else (True, False):
                with lab.server("zq") as target:
                    rates[version] = measure(target, version, seconds)
            pairs.append(Pair(row, rates[False], rates[True]))
    progress.clear()
    return pairs


def http2_table(pairs: list[Pair]) -> Table:
    lines = []
    for row, aim in AIMS.items():
        of_row = [pair for pair in pairs if pair.row == row]
        ratios = [pair.http2 / pair.http1 for pair in of_row]
        middle = [statistics.median(rates) for rates in zip(*map(rates_of, of_row), strict=True)]
        cells = [number(rate) for rate in middle]
        lines.append([row, *cells, ratio(ratios), span(ratios, 2), number(aim, 1)])
    return Table(["row", "HTTP/1.1 /s", "HTTP/2 /s", "ratio", "low-high", "aim"], lines)


def rates_of(pair: Pair) -> tuple[float, float]:
    return pair.http1, pair.http2
