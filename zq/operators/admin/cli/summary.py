"""The head, which is on all tabs, and the details of a job, as lines of text."""

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.text import Text

from zq.cli.output import span
from zq.cli.terminal import one_line
from zq.operators.admin.cli.columns import STYLES, Tone, fitted, rate, share
from zq.operators.admin.cli.job_lists import LISTS
from zq.operators.admin.model import ListName
from zq.operators.admin.wire import AdminJob, ServerStatus
from zq.operators.page.client import Document, Freshness

NAMES: dict[ListName, str] = {
    ListName.IN_FLIGHT: "In-Flight",
    ListName.READY: "Ready",
    ListName.SCHEDULED: "Scheduled",
}
TIME_COLUMNS: dict[ListName, str] = {
    ListName.IN_FLIGHT: "DURATION",
    ListName.READY: "DELAY",
    ListName.SCHEDULED: "DUE",
}

SIGNS = ("", "·", "!", "!!")
"""How bad a finding is."""

TONES = (Tone.PLAIN, Tone.PLAIN, Tone.WARN, Tone.BAD)

LONGEST_PAYLOAD = 2000


def connection_line(sources: Iterable[Freshness], where: str, server: str, width: int) -> Text:
    """The server, and how old what is on the screen is: as old as its oldest part."""
    shown = list(sources)
    oldest = max((each.age_s for each in shown if each.age_s is not None), default=None)
    age = "" if oldest is None else _age(oldest)
    if all(each.is_live for each in shown):
        return Text(f" {fitted(f'* connected {where} · data {age} old · {server}', width - 1)}")
    trouble = next((each.trouble for each in shown if each.trouble), "it says nothing")
    old = f", what is shown is {age} old" if age else ""
    text = f"! not connected to {where}{old}: {trouble}"
    return Text(f" {fitted(text, width - 1)}", STYLES[Tone.BAD if age else Tone.WARN])


def _age(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else span(round(seconds * 1000))


def server_words(state: ServerStatus | None, overview: Document) -> str:
    """The version of the server, and for how long it has run."""
    if state is None:
        return ""
    version = f"zq {overview['pulse']['zq']}" if "pulse" in overview else f"server {state.version}"
    return f"{one_line(version)}, up {span(state.uptime_ms)}"


def totals_line(state: ServerStatus | None, overview: Document) -> Text:
    """How many jobs there are in each list, how many are dead, and how busy the workers are."""
    if state is None:
        return Text(" ")
    parts = Text(f" {list_totals(state)}")
    if "pulse" in overview:
        dead = overview["pulse"]["totals"]["dead"]
        parts.append("  ").append(f"dead {dead:,}", STYLES[Tone.BAD if dead else Tone.PLAIN])
        tiles = overview["tiles"]
        parts.append(f"  busy {tiles['busy']:,} of {tiles['slots']:,}")
    return parts


def list_totals(state: ServerStatus) -> str:
    """How many jobs each list has."""
    return "  ".join(f"{NAMES[name].lower()} {state.total(name):,}" for name in LISTS)


def rates_line(overview: Document, wait_p95_ms: float | None) -> Text:
    """The rates of the server: in, done, failed, and how long jobs waited."""
    if "tiles" not in overview:
        return Text(" ")
    tiles: dict[str, Any] = overview["tiles"]
    line = Text(f" in {rate(tiles['arrived']) or 0}/s  done {rate(tiles['done']) or 0}/s  ")
    if "failed" in tiles:
        part = tiles["failed"]
        tone = Tone.BAD if part >= 0.2 else Tone.WARN if part >= 0.01 else Tone.PLAIN
        line.append(f"failed {share(part)}", STYLES[tone]).append("  ")
    if wait_p95_ms is not None:
        line.append(f"p95 wait {span(round(wait_p95_ms))}  ")
    if tiles["growth"] >= 0.05:
        line.append(f"growing by {rate(tiles['growth'])}/s", STYLES[Tone.WARN])
    elif tiles.get("drained_ms"):
        line.append(f"drained in {span(tiles['drained_ms'])}")
    return line


def finding_line(overview: Document, server_began: float, width: int) -> Text:
    """The worst finding, and how many more there are."""
    findings = overview.get("findings")
    if findings is None:
        return Text(" ")
    if not findings:
        return Text(" ok  nothing is wrong")
    worst = findings[0]
    since = worst.get("since")
    now = server_began + time.monotonic() * 1000
    lasts = "" if since is None else f", for {span(round(now - since))}"
    more = overview["pulse"]["findings"] - 1
    rest = f"  (+{more:,} more)" if more else ""
    text = f"{SIGNS[worst['severity']]} {worst['text']}{lasts}"
    # The number of the others stays in sight on a narrow terminal.
    line = Text(
        f" {fitted(text, max(width - len(rest) - 1, 0)).rstrip()}", STYLES[TONES[worst["severity"]]]
    )
    return line.append(rest, STYLES[Tone.PLAIN])


def details(job: AdminJob | None) -> str:
    """All known fields of a job, one on a line."""
    if job is None:
        return " no job is selected"
    return "\n".join(f" {name:<13}{value}" for name, value in _facts(job))


def _facts(job: AdminJob) -> Iterator[tuple[str, str]]:
    for name, value in job.facts().items():
        if name.endswith("_at"):
            yield name, _moment(value)
        elif name == "payload":
            yield name, one_line(bytes(value).decode()[:LONGEST_PAYLOAD])
        elif isinstance(value, str | int):
            yield name, one_line(str(value))
        else:
            yield name, msgspec.json.encode(value).decode()


def _moment(ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(ms)
    return moment.isoformat(sep=" ", timespec="milliseconds")


def duration(job: AdminJob, name: ListName, now_ms: int) -> str:
    """How long a job has run or waited, or the time until it is due."""
    if name is ListName.SCHEDULED:
        return span(job.ready_at - now_ms)
    since = job.ready_at if name is ListName.READY else job.dequeued_at
    return "" if since is None else span(now_ms - since)
