"""`zq top` without a terminal program: one table, or JSON lines."""

import asyncio
import time
from typing import Any

import msgspec

from zq.cli.output import print_json, print_table
from zq.cli.terminal import say
from zq.client.http.address import Address
from zq.operators.admin.cli import summary
from zq.operators.admin.cli.feed import link
from zq.operators.admin.cli.job_lists import Heard
from zq.operators.admin.model import ListName
from zq.operators.admin.wire import AdminJob

ROWS = 20
"""The number of jobs of each list that are shown."""


async def print_once(address: Address) -> None:
    """Print the totals, and the first jobs of each list that has some.

    Raises `Unavailable` or `BackendError`.
    """
    heard = await _snapshot(address)
    state = heard.server
    where = address.url.partition("://")[2]
    say(f"{where}: server {state.version}, {summary.list_totals(state)}")
    for name, window in heard.windows().items():
        if not window.items:
            continue
        say("")
        say(f"{summary.NAMES[name]}: the first {len(window.items):,} of {window.total:,}")
        columns = ("ID", "PRIORITY", "QUEUE", summary.TIME_COLUMNS[name], "ATTEMPTS", "TYPE")
        print_table(columns, (_row(job, name) for job in window.items))


async def print_lines(address: Address, refresh_s: float, *, once: bool) -> None:
    """Print the lists as JSON, one document in each interval, until interrupted.

    Raises `Unavailable` or `BackendError`.
    """
    while True:
        print_json(_document(await _snapshot(address)))
        if once:
            return
        await asyncio.sleep(refresh_s)


async def _snapshot(address: Address) -> Heard:
    """Read the first `ROWS` jobs of each list.

    A connection begins with a snapshot of the heads of all lists, at this moment. If it stayed open
    until the next document, what comes meanwhile would have to be read, or the server ends it.
    """
    async with link(address) as connection:
        while (heard := await connection.hear()).event != "job_snapshot":
            pass
    for window in heard.windows().values():
        del window.items[ROWS:]
    return heard


def _row(job: AdminJob, name: ListName) -> tuple[object, ...]:
    # A priority is not an amount, so it has no separators.
    waited = summary.duration(job, name, time.time_ns() // 1_000_000)
    return job.id, str(job.priority), job.queue, waited, job.attempts, job.job_type


def _document(heard: Heard) -> dict[str, Any]:
    lists: dict[str, Any] = {
        name: [job.facts() for job in window.items] for name, window in heard.windows().items()
    }
    return {"server": msgspec.structs.asdict(heard.server), **lists}
