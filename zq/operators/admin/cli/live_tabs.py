"""The tabs that show live views of the operators' page: columns, rows, and what their keys do."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar, NamedTuple
from urllib.parse import quote, urlencode

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from zq.cli.output import span
from zq.cli.terminal import one_line
from zq.client.errors import BackendError
from zq.operators.admin.cli.columns import (
    NAME_MOST,
    Cell,
    Column,
    Layout,
    Tone,
    amount,
    laid_out,
    rate,
    share,
)
from zq.operators.admin.cli.screens import FairKeysPage, Question, ReasonBox
from zq.operators.admin.cli.table import strip
from zq.operators.page.client import Document, Freshness, PageClient

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


FAR = 1_000_000


class LiveTable(Widget, can_focus=True):
    """The rows of a tab. The cursor follows its row when others come and go."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down"),
        Binding("up,k", "move(-1)", "Up"),
        Binding("pagedown", "page(1)", "Page down"),
        Binding("pageup", "page(-1)", "Page up"),
        Binding("g,home", f"move({-FAR})", "Head"),
        Binding("G,end", f"move({FAR})", "Tail"),
        Binding("s", "sort", "Sort"),
        Binding("w", "why", "Why"),
        Binding("f", "fair", "Fair keys"),
        Binding("P", "pause", "Pause"),
        Binding("R", "requeue", "Requeue"),
    ]

    class Said(Message):
        """The result of an action, in a line."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, client: PageClient) -> None:
        super().__init__()
        self._client = client
        self._sort = 0
        self._now = 0
        self.tab: LiveTab = LIVE_TABS["queues"]
        self.source = Freshness()
        self.rows: list[LiveRow] | None = None
        """None until the server has told."""
        self.cursor = 0

    @property
    def selected(self) -> LiveRow | None:
        """The row under the cursor."""
        rows = self.rows or ()
        return rows[self.cursor] if self.cursor < len(rows) else None

    @property
    def order(self) -> str:
        """The order of the rows, if it can be chosen."""
        return SORTS[self._sort] if self.tab is LIVE_TABS["queues"] else ""

    def turn(self, name: str) -> None:
        """Show another tab."""
        self.tab = LIVE_TABS[name]
        self.cursor = 0
        self._watch()

    def leave(self) -> None:
        """Ask the server for nothing more: the tab is hidden."""
        self.workers.cancel_group(self, "watch")

    def _watch(self) -> None:
        self.rows = None
        self.source = Freshness()
        sorting = {"sort": self.order} if self.order else {}
        show = partial(self._show, self.tab)
        view = self.tab.view | sorting
        # As a call to be made: another tab may take its place before it has begun.
        watching = partial(self._client.watch, view, show, self.source)
        self.run_worker(watching, exclusive=True, group="watch")  # type: ignore[arg-type]
        self.refresh()

    def _show(self, tab: LiveTab, document: Document, now: int) -> None:
        key = None if self.selected is None else self.selected.key
        self.rows, self._now = list(tab.rows(document)), now
        found = [at for at, row in enumerate(self.rows) if row.key == key]
        self.cursor = found[0] if found else min(self.cursor, max(len(self.rows) - 1, 0))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the screen: the names of the columns, or a row."""
        width = self.size.width
        layout = laid_out(self.tab.columns, width)
        if y == 0:
            return strip(" ", layout.heading(), width, selected=False, head=True)
        if not self.rows:
            empty = "asking the server" if self.rows is None else self.tab.nothing
            said = Cell(empty if y == 2 else "", Tone.QUIET)
            return strip("  ", [said], width, selected=False, head=False)
        room = max(self.size.height - 1, 1)
        at = max(self.cursor - room + 1, 0) + y - 1
        if at >= len(self.rows):
            return Strip.blank(width)
        return self._row(at, layout, width)

    def _row(self, at: int, layout: Layout, width: int) -> Strip:
        assert self.rows is not None
        is_selected = at == self.cursor
        cells = layout.row(self.rows[at].document, self._now)
        if not self.source.is_live:
            cells = [Cell(cell.text, Tone.QUIET) for cell in cells]
        mark = ">" if is_selected else " "
        return strip(mark, cells, width, selected=is_selected, head=False)

    # Keys

    def action_move(self, step: int) -> None:
        self.cursor = min(max(self.cursor + step, 0), max(len(self.rows or ()) - 1, 0))
        self.refresh()

    def action_page(self, step: int) -> None:
        self.action_move(step * max(self.size.height - 2, 1))

    def action_sort(self) -> None:
        if self.order:
            self._sort = (self._sort + 1) % len(SORTS)
            self._watch()

    def action_why(self) -> None:
        row = self.selected
        if row is not None and row.queue is not None:
            self.run_worker(self._say_why(row.queue))

    def action_fair(self) -> None:
        row = self.selected
        if row is not None and row.queue is not None:
            self.app.push_screen(FairKeysPage(self._client, row.queue, lambda: self._now))

    def action_pause(self) -> None:
        row = self.selected
        if row is None or row.queue is None:
            return
        path = f"queues/{quote(row.queue, safe='')}/settings"
        if row.is_paused:
            self._confirm(f"Resume {one_line(row.queue)}", "PATCH", path, {"paused": None})
            return
        what = f"Pause {one_line(row.queue)}"

        def answered(reason: str | None) -> None:
            if reason is not None:
                change = {"paused": True, "pause_reason": reason or None, "paused_until": None}
                self.run_worker(self._do(what, "PATCH", path, change))

        question = f" {what}? Reason, then Enter; Esc leaves it: "
        self.app.push_screen(ReasonBox(question), answered)

    def action_requeue(self) -> None:
        row = self.selected
        if row is not None and row.queue is not None:
            self.run_worker(self._look_ahead({"queue": row.queue}, one_line(row.queue)))
        elif row is not None and row.cause is not None:
            self.run_worker(self._look_ahead({"error": row.cause}, "this cause"))

    def _say(self, text: str) -> None:
        self.post_message(self.Said(text))

    def _confirm(self, what: str, method: str, path: str, body: object) -> None:
        def answered(is_sure: bool | None) -> None:
            if is_sure:
                self.run_worker(self._do(what, method, path, body))

        self.app.push_screen(Question(f" {what}? y/n"), answered)

    async def _do(self, what: str, method: str, path: str, body: object) -> None:
        try:
            await self._client.ask(method, path, body)
        except BackendError as error:
            self._say(f"{what}: {error.message}")
        else:
            self._say(f"{what}: done")

    async def _look_ahead(self, whose: dict[str, str], name: str) -> None:
        """Ask whether to requeue the dead jobs of a queue or a cause, with their number."""
        filter = whose | {"status": "dead"}
        try:
            query = urlencode(filter | {"verb": "requeue"})
            seen = await self._client.ask("GET", f"sweeps/preview?{query}")
        except BackendError as error:
            self._say(f"{name}: {error.message}")
            return
        many = f"{'' if seen['exact'] else 'at least '}{seen['count']:,}"
        bound = {"upto": seen["upto"], "count": seen["count"]}
        path = f"jobs/requeue?{urlencode(filter | bound)}"
        self._confirm(f"Requeue {many} dead jobs of {name}", "POST", path, {})

    async def _say_why(self, queue: str) -> None:
        """Say why the jobs of a queue wait, and what would help."""
        try:
            why = await self._client.ask("GET", f"queues/{quote(queue, safe='')}/why")
        except BackendError as error:
            self._say(f"{queue}: {error.message}")
            return
        lines = [
            f"{line['text']} ({line['remedy']})" if "remedy" in line else line["text"]
            for line in why["lines"]
        ]
        self._say(f"{queue}: {'; '.join(lines) or 'nothing holds its jobs'}")
