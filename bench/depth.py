"""The rate at which workers get jobs while many jobs wait."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.load import LoadResult, in_own_process, run_load
from bench.report import Progress, Table, number
from bench.rows import LARGE, ROWS
from bench.servers import Lab

WARM_UP = 2.0


@dataclass(frozen=True)
class Depth:
    """Jobs taken and acknowledged while `waiting` jobs are stored. As many enter as leave."""

    server: str
    waiting: int
    result: LoadResult

    @property
    def rate(self) -> float:
        return self.result.measures[0].rate


def depth(
    lab: Lab, servers: list[str], depths: list[int], queues: int, seconds: float, progress: Progress
) -> list[Depth]:
    """Each depth on a new server, filled through bulk enqueue."""
    found = []
    for server in servers:
        for waiting in depths:
            progress.show(f"{server}: {waiting:,} jobs waiting")
            row = replace(ROWS["life"], depth=waiting + LARGE.count * LARGE.prefetch)
            spec = replace(row.spec(queues, seconds), warm_up=WARM_UP)
            with lab.server(server) as target:
                found.append(Depth(server, waiting, in_own_process(run_load, target, spec)))
    progress.clear()
    return found


def depth_table(found: list[Depth]) -> Table:
    """The ratio is to the first depth of the same server."""
    first: dict[str, float] = {}
    lines = []
    for each in found:
        measure, base = each.result.measures[0], first.setdefault(each.server, each.rate)
        cells = [number(each.waiting), number(each.rate), number(each.rate / base, 2)]
        cells += [number(measure.p50, 2), number(measure.p99, 2), number(each.result.peak_rss_mb)]
        lines.append([each.server, *cells])
    header = ["server", "waiting", "jobs/s", "ratio", "ack p50 ms", "ack p99 ms", "peak RSS MB"]
    return Table(header, lines)
