"""`zq health`: is anything wrong with a server, and how much is there to do."""

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import click

from zq.cli.output import print_json, span
from zq.cli.remote import administers
from zq.cli.rooms import Section
from zq.cli.terminal import counted, one_line, say

if TYPE_CHECKING:
    from zq.client.http.address import Address


Document = dict[str, Any]

ALARMS = ("no_worker", "failing")
SEVERITIES = {**dict.fromkeys(ALARMS, 3), "paused": 1}
WARNING = 2

LIMIT_IS_REACHED = 3


def overview_of(admin: "Address") -> tuple[Document, int, Document]:
    """The overview as the page has it, as far as the API tells it; the time; the server's state.

    Each queue has one finding, the worst one.
    """
    from zq.client.http.maintenance import figures_of

    stats, status = figures_of(admin)
    now = time.time_ns() // 1_000_000
    queues: list[Document] = stats["queues"]
    totals: dict[str, int] = {}
    for queue in queues:
        for name, n in queue["counts"].items():
            totals[name] = totals.get(name, 0) + n
    findings = [_limit(code) for code in status["limits_reached"]]
    findings += [_finding(queue) for queue in queues if queue.get("state")]
    findings.sort(key=lambda each: -int(each["severity"]))
    return (
        {
            "findings": findings,
            "tiles": _tiles(queues, totals, now),
            "pulse": {"totals": totals},
        },
        now,
        status,
    )


def _finding(queue: Document) -> Document:
    code = queue["state"]
    text = f"{code.replace('_', ' ')}: {queue['queue']} {queue['state_text']}"
    return {"severity": SEVERITIES.get(code, WARNING), "code": code, "text": text}


def _limit(code: str) -> Document:
    text = f"a limit of the server is reached: {code.replace('_', ' ')}"
    return {"severity": LIMIT_IS_REACHED, "code": code, "text": text}


def _tiles(queues: list[Document], totals: dict[str, int], now: int) -> Document:
    arrived, done, failed = (
        sum(queue[flow]["per_second_5m"] for queue in queues)
        for flow in ("deliveries", "completions", "failures")
    )
    tiles: Document = {
        "waiting": totals.get("ready", 0),
        "growth": 0,
        "delivered": arrived,
        "done": done,
        "busy": totals.get("in_flight", 0),
        "dead": totals.get("dead", 0),
    }
    if done + failed:
        tiles["failed"] = failed / (done + failed)
    ages = [(q["oldest_ready_age_ms"], q["queue"]) for q in queues if "oldest_ready_age_ms" in q]
    if ages:
        age, queue = max(ages)
        tiles["oldest"] = {"since": now - age, "queue": queue}
    return tiles


SIGNS = ("", "·", "!", "!!")
"""How bad a finding is: a note, a warning, an alarm."""

ALARM = 3
EX_ALARM = 1


@click.command(
    epilog="""\b
Examples:
  zq health
  zq health --json | jq .findings
  zq health >/dev/null || echo 'zq needs somebody'

The figures and findings are those at the head of the operators' page: !! is an alarm, ! a warning,
· a note. The admin listener of the server is asked, with a key of the scope read if it has keys.
Without the page (--ui off) the API tells the worst finding of each queue, and no slots.
Exit codes: 0, 1 if there is an alarm or the server refuses, 2 for wrong usage, 3 if no server
answers.
"""
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@administers
def health(admin: "Address", as_json: bool) -> None:
    """Say what is wrong with a server, and how much it has to do."""
    overview, now, status = asyncio.run(_ask(admin))
    findings = overview["findings"]
    if as_json:
        print_json(
            {
                "findings": findings,
                "figures": overview["tiles"],
                "totals": overview["pulse"]["totals"],
            }
            | {"status": status}
        )
    else:
        for name, text in _figures(overview, now, status).items():
            say(f"{name:<9} {text}")
        for each in findings:
            say(f"{SIGNS[each['severity']]:<2} {one_line(each['text'])}{_age(each, now)}")
        if not findings:
            say("nothing is wrong")
    if any(each["severity"] >= ALARM for each in findings):
        raise click.exceptions.Exit(EX_ALARM)


async def _ask(admin: "Address") -> tuple[dict[str, Any], int, dict[str, Any]]:
    """The overview of the page, its time, and the state of the server.

    A server without the page is asked by its API.
    """
    from zq.client.errors import BackendError
    from zq.operators.page.client import PageClient

    page = PageClient(admin)
    try:
        overview, now = await page.snapshot({"topic": "overview"})
    except BackendError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise

        return overview_of(admin)
    return overview, now, await page.ask("GET", "status")


def _figures(overview: dict[str, Any], now: int, status: dict[str, Any]) -> dict[str, str]:
    tiles = overview["tiles"]
    waiting = f"{tiles['waiting']:,}"
    if "oldest" in tiles:
        oldest = tiles["oldest"]
        waiting += f", the oldest for {span(now - oldest['since'])} in {one_line(oldest['queue'])}"
    if tiles["growth"] > 0:
        waiting += f"; growing by {tiles['growth']:,.1f}/s"
    elif tiles.get("drained_ms"):
        waiting += f"; drained in {span(tiles['drained_ms'])}"
    come = "arrived" if "arrived" in tiles else "delivered"
    way = "in" if come == "arrived" else "delivered"
    flow = f"{tiles[come]:,.1f}/s {way}, {tiles['done']:,.1f}/s done"
    if "failed" in tiles:
        flow += f", {100 * tiles['failed']:.1f} % failed"
    slots = "jobs"
    if "slots" in tiles:
        slots = f"of {tiles['slots']:,} slots, {counted(tiles['workers'], 'worker')}"
    free = status["disk"].get("free_bytes")
    space = "" if free is None else f", {free / 1e9:,.1f} GB free"
    return {
        "server": f"zq {status['zq']}, up {span(now - status['since'])}{space}",
        "waiting": waiting,
        "running": f"{tiles['busy']:,} {slots}",
        "flow": f"{flow} (five minutes)",
        "dead": f"{tiles['dead']:,}",
    }


def _age(finding: dict[str, Any], now: int) -> str:
    return f", for {span(now - finding['since'])}" if "since" in finding else ""


COMMANDS = {Section.LOOK: (health,)}
