"""The lines of text around the table: the connection, the totals, the lists, a job."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
from rich.cells import cell_len, set_cell_size

from zq import __version__
from zq.cli.output import span
from zq.cli.terminal import one_line
from zq.cli.top.board import Board
from zq.cli.top.messages import LISTS, Item, ListName, ServerState

NAMES: dict[ListName, str] = {
    "in_flight": "In-Flight",
    "ready": "Ready",
    "scheduled": "Scheduled",
}
TIME_COLUMNS: dict[ListName, str] = {
    "in_flight": "DURATION",
    "ready": "DELAY",
    "scheduled": "DUE",
}
KEYS = "Tab list  j/k move  i info  p freeze  / find  n/N next  D delete  ? help  q quit"
MARKS: dict[ListName, str] = {"in_flight": "#", "ready": "|", "scheduled": "."}
"""The marks of the bar. They can be told apart without colours."""

SIGNS = ("", "·", "!", "!!")
"""How bad a finding is."""

PAGE_TABS = ("Queues", "Workers")
"""The tabs of a server that has the operators' page."""

LONGEST_PAYLOAD = 2000


def connection_line(board: Board, url: str) -> str:
    """The state of the connection, its address, and the age of the data."""
    where = url.partition("://")[2]
    if board.server is None or board.heard_at is None:
        return f" zq {__version__}   ! not connected to {where}: {one_line(board.trouble)}"
    age = time.monotonic() - board.heard_at
    state = board.server
    return (
        f" zq {__version__}   * connected {where}   server {one_line(state.version)},"
        f" up {span(state.uptime_ms)}   data {age:.1f} s old"
    )


def finding_line(board: Board, width: int) -> str:
    """What is wrong: the worst of it, and how much more there is."""
    if board.heard_at is None or not board.diagnosis:
        return " "
    findings = board.diagnosis["findings"]
    if not findings:
        return " ok  nothing is wrong"
    worst = findings[0]
    since = worst.get("since")
    now = board.server_began + time.monotonic() * 1000
    oldest = "" if since is None else f", oldest {span(round(now - since))}"
    more = board.diagnosis["pulse"]["findings"] - 1
    rest = f"  (+{more:,} more)" if more else ""
    text = " " + one_line(f"{SIGNS[worst['severity']]} {worst['text']}{oldest}")
    # The number of the others stays in sight on a narrow terminal.
    room = max(width - len(rest), 0)
    return f"{text if cell_len(text) <= room else set_cell_size(text, room)}{rest}"


def totals_line(state: ServerState | None) -> str:
    """How many jobs each list has."""
    if state is None:
        return " "
    return " " + "  ".join(f"{NAMES[name].lower()} {state.total(name):,}" for name in LISTS)


def depth_bar(board: Board, width: int) -> str:
    """All unfinished jobs against the peak, with one mark for each list."""
    if board.server is None:
        return " "
    total = sum(map(board.server.total, LISTS))
    text = f" {total:,} jobs]"
    room = max(width - len(" Depth[") - len(text), 0)
    scale = room / max(board.peak, 1)
    bar = "".join(MARKS[name] * round(board.server.total(name) * scale) for name in LISTS)
    return f" Depth[{bar[:room]:<{room}}{text}"


def list_line(board: Board) -> str:
    """The lists, with the one that is shown in brackets."""
    names = [f"[{NAMES[name]}]" if name == board.list else f" {NAMES[name]} " for name in LISTS]
    if board.has_page:
        names += [f" {name} " for name in PAGE_TABS]
    return f" {'  '.join(names)}{'      PAUSED' if board.frozen else ''}"


def details(job: Item | None) -> str:
    """All known fields of a job, one on a line."""
    if job is None:
        return " no job is selected"
    return "\n".join(f" {name:<13}{value}" for name, value in _facts(job))


def _facts(job: Item) -> Iterator[tuple[str, str]]:
    known = {
        name: value for name, value in msgspec.structs.asdict(job).items() if value is not None
    }
    for name, value in known.items():
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


def duration(job: Item, name: ListName, now_ms: int) -> str:
    """How long a job has run or waited, or the time until it is due."""
    if name == "scheduled":
        return span(job.ready_at - now_ms)
    since = job.ready_at if name == "ready" else job.dequeued_at
    return "" if since is None else span(now_ms - since)
