"""The tabs that show live views of the operators' page: their columns and rows."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from zq.cli.output import span
from zq.cli.terminal import one_line
from zq.operators.admin.cli.columns import NAME_MOST, Cell, Column, Tone, amount, rate, share
from zq.operators.page.client import Document

SORTS = ("worst", "waiting", "failing", "name")

STATES: dict[str, tuple[str, Tone]] = {
    "no_worker": ("no worker", Tone.BAD),
    "failing": ("failing", Tone.BAD),
    "growing": ("growing", Tone.WARN),
    "stuck": ("stuck", Tone.WARN),
    "budget": ("budget", Tone.WARN),
    "paused": ("paused", Tone.QUIET),
    "old": ("old", Tone.WARN),
}
"""The word for each state of a queue."""


class LiveRow(NamedTuple):
    """One row: what it is known by, what it shows, and the queue or cause that keys act on."""

    key: str
    document: Document
    queue: str | None = None
    cause: str | None = None

    @property
    def is_paused(self) -> bool:
        """True for a queue that is paused."""
        return bool(self.document.get("paused"))


class LiveTab(NamedTuple):
    """A tab: its view, its columns and its rows."""

    title: str
    view: dict[str, str]
    columns: Sequence[Column]
    rows: Callable[[Document], Iterator[LiveRow]]
    keys: str
    nothing: str
    """The text in an empty table."""


def queue_rows(document: Document) -> Iterator[LiveRow]:
    """A row for each queue, in the server's order."""
    for name in document["order"]:
        row = document["queues"].get(name)
        if row is not None:
            yield LiveRow(name, row | {"name": name}, queue=name)


def cause_rows(document: Document) -> Iterator[LiveRow]:
    """A row for each cause of failures in the last hour, the most frequent first."""
    for cause in document["causes"]:
        yield LiveRow(cause["id"], cause, cause=cause["id"])


def worker_rows(document: Document) -> Iterator[LiveRow]:
    """A row for each open stream, the oldest first."""
    for at, worker in enumerate(document["workers"]):
        yield LiveRow(f"{worker['id']} {at}", worker)


def _state(row: Document, _now: int) -> Cell:
    code = row.get("state")
    if code is None:
        return Cell("")
    word, tone = STATES.get(code, (code, Tone.WARN))
    more = row.get("pause" if code == "paused" else "state_text", "")
    return Cell(more if more.startswith(word) else f"{word}: {more}", tone, word)


def _count(status: str) -> Callable[[Document, int], str]:
    return lambda row, _now: amount(row.get("counts", {}).get(status, 0))


def _dead(row: Document, _now: int) -> Cell:
    dead = row.get("counts", {}).get("dead", 0)
    return Cell(amount(dead), Tone.BAD if dead else Tone.QUIET)


def _since(name: str) -> Callable[[Document, int], str]:
    return lambda row, now: span(max(now - row[name], 0)) if name in row else ""


def _rate(name: str) -> Callable[[Document, int], str]:
    return lambda row, _now: rate(row.get(name, 0))


def _failed_share(row: Document, _now: int) -> Cell:
    part = row.get("failed_share", 0)
    tone = Tone.BAD if part >= 0.2 else Tone.WARN if part >= 0.01 else Tone.QUIET
    return Cell(share(part), tone) if part else Cell("")


def _wait(row: Document, _now: int) -> str:
    return span(row["wait_p95_ms"]) if "wait_p95_ms" in row else ""


QUEUE_COLUMNS = (
    Column("QUEUE", 18, lambda row, _: row["name"], right=False, most=NAME_MOST),
    Column("WAITING", 7, _count("ready")),
    Column("OLDEST", 7, _since("since")),
    Column("RUNNING", 7, _count("in_flight")),
    Column("DEAD", 6, _dead),
    Column("IN/S", 6, _rate("arrived"), needs=100),
    Column("DONE/S", 6, _rate("done")),
    Column("FAILED", 6, _failed_share),
    Column("P95", 7, _wait, needs=110),
    Column("WORKERS", 7, lambda row, _: amount(row["workers"]), needs=120),
    Column("STATE", 9, _state, right=False),
)


def _worker_state(row: Document, _now: int) -> Cell:
    for name, tone in (("stuck", Tone.BAD), ("silent", Tone.WARN), ("draining", Tone.QUIET)):
        if row.get(name):
            return Cell(name, tone)
    return Cell("")


def _busy(row: Document, _now: int) -> str:
    return f"{row['busy']} of {row['concurrency']}"


WORKER_COLUMNS = (
    Column("WORKER", 18, lambda row, _: row["id"], right=False, most=NAME_MOST),
    Column("BUSY", 9, _busy),
    Column("HOLDS", 6, lambda row, _: amount(row["held"])),
    Column("OUT/S", 6, _rate("rate")),
    Column("FAILED", 6, lambda row, _: amount(row.get("failed", 0))),
    Column("SEEN", 7, _since("seen_at")),
    Column("SINCE", 7, _since("since"), needs=100),
    Column("STATE", 8, _worker_state, right=False),
    Column("ADDRESS", 22, lambda row, _: row.get("address") or "", right=False, needs=120),
    Column("QUEUES", 8, lambda row, _: ", ".join(row["queues"]) or "all", right=False),
)


def _message(row: Document, _now: int) -> str:
    kind = row.get("error_type")
    return f"{kind}: {row['message']}" if kind else row["message"]


def _causes_queues(row: Document, _now: int) -> str:
    first, *rest = row["queues"]
    return f"{one_line(first)} +{len(rest)}" if rest else first


def _change(row: Document, _now: int) -> Cell:
    if row["is_new"]:
        return Cell("new", Tone.BAD)
    times = row.get("times", 0)
    return Cell(f"x{times:.1f}" if times else "", Tone.WARN if times >= 2 else Tone.PLAIN)


def _cause_dead(row: Document, _now: int) -> Cell:
    text = f"{amount(row['dead'])}{'+' if row.get('more_dead') else ''}"
    return Cell(text, Tone.BAD if row["dead"] else Tone.QUIET)


CAUSE_COLUMNS = (
    Column("IN 1 H", 7, lambda row, _: amount(row["count"])),
    Column("CHANGE", 6, _change),
    Column("DEAD", 7, _cause_dead),
    Column("LATEST", 7, _since("latest")),
    Column("QUEUES", 16, _causes_queues, right=False, most=NAME_MOST),
    Column("CAUSE", 20, _message, right=False),
)

LIVE_TABS = {
    "queues": LiveTab(
        "Queues",
        {"topic": "queues", "limit": "100"},
        QUEUE_COLUMNS,
        queue_rows,
        "w why · f fair keys · P pause · R requeue dead · s sort · ? help · q quit",
        "no queue has jobs: zq push QUEUE PAYLOAD stores one",
    ),
    "failures": LiveTab(
        "Failures",
        {"topic": "failures"},
        CAUSE_COLUMNS,
        cause_rows,
        "R requeue the dead of this cause · ? help · q quit",
        "no attempt has failed in the last hour",
    ),
    "workers": LiveTab(
        "Workers",
        {"topic": "workers"},
        WORKER_COLUMNS,
        worker_rows,
        "? help · q quit",
        "no worker has a stream open: zq worker MODULE:APP is one",
    ),
}
