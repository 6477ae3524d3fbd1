"""The tabs Queues and Workers: what the operators' page shows live, as lines."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar, NamedTuple
from urllib.parse import quote, urlencode

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from zq.cli.output import span
from zq.cli.terminal import one_line
from zq.cli.top.page import Document, PageClient
from zq.cli.top.screens import DeleteQuestion, HelpPage, ReasonBox
from zq.client.errors import BackendError

KEYS = "1-3 jobs  4 queues  5 workers  w why  P pause  R requeue dead  s sort  ? help  q quit"
SORTS = ("worst", "waiting", "failing", "name")
FAR = 1_000_000
NAME_WIDTH = 28


class SightRow(NamedTuple):
    """One line, and the queue that it is about, if it is about one."""

    key: str
    text: str
    queue: str | None = None
    paused: bool = False


class LiveTab(NamedTuple):
    """A tab: its view, its columns and its rows."""

    title: str
    view: dict[str, str]
    heading: str
    rows: Callable[[Document, int], Iterator[SightRow]]


def queue_rows(document: Document, now: int) -> Iterator[SightRow]:
    """A line for each queue, the worst first."""
    for name in document["order"]:
        row = document["queues"].get(name)
        if row is None:
            continue
        counts, paused = row.get("counts", {}), row.get("paused", False)
        oldest = span(now - row["since"]) if "since" in row else ""
        is_alone = counts.get("ready") and not row["workers"] and not row["delivered"]
        state = "PAUSED" if paused else "NO WORKER" if is_alone else "ok"
        yield SightRow(
            name,
            f"{_cut(name)} {counts.get('ready', 0):>9,} {oldest:>9}"
            f" {counts.get('in_flight', 0):>8,} {counts.get('dead', 0):>7,} {row['delivered']:>7}"
            f" {row['done']:>7} {row['failed']:>7} {row['workers']:>7} {state}",
            name,
            paused,
        )


def worker_rows(document: Document, now: int) -> Iterator[SightRow]:
    """A line for each open stream, the oldest first."""
    for at, worker in enumerate(document["workers"]):
        queues = ", ".join(worker["queues"]) or "all"
        state = "draining" if worker.get("draining") else "takes jobs"
        yield SightRow(
            f"{worker['id']} {at}",
            f"{_cut(worker['id'])} {worker['holds']:>6} {worker['prefetch']:>6}"
            f" {span(now - worker['since']):>9} {worker.get('unsent_bytes', 0):>8,} {state:<10}"
            f" {one_line(worker.get('address') or ''):<22} {one_line(queues)}",
        )


SIGHTS = {
    "queues": LiveTab(
        "Queues",
        {"topic": "queues", "limit": "100"},
        f"{'QUEUE':<{NAME_WIDTH}} {'WAITING':>9} {'OLDEST':>9} {'RUNNING':>8} {'DEAD':>7}"
        f" {'OUT/S':>7} {'DONE/S':>7} {'FAIL/S':>7} {'WORKERS':>7} STATE",
        queue_rows,
    ),
    "workers": LiveTab(
        "Workers",
        {"topic": "workers"},
        f"{'WORKER':<{NAME_WIDTH}} {'HOLDS':>6} {'WINDOW':>6} {'SINCE':>9} {'UNSENT':>8}"
        f" {'STATE':<10} {'ADDRESS':<22} QUEUES",
        worker_rows,
    ),
}


def _cut(name: str) -> str:
    return f"{one_line(name)[:NAME_WIDTH]:<{NAME_WIDTH}}"


class SightTable(Widget):
    """The rows of a tab. The cursor follows its row when others come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.heading = ""
        self.rows: list[SightRow] = []
        self.cursor = 0

    @property
    def selected(self) -> SightRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def show(self, heading: str, rows: list[SightRow]) -> None:
        """Show other rows."""
        key = None if self.selected is None else self.selected.key
        self.heading, self.rows = heading, rows
        found = [at for at, row in enumerate(rows) if row.key == key]
        self.cursor = found[0] if found else min(self.cursor, max(len(rows) - 1, 0))
        self.refresh()

    def move(self, step: int) -> None:
        """Move the cursor."""
        self.cursor = min(max(self.cursor + step, 0), max(len(self.rows) - 1, 0))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the screen: the names of the columns, or a row."""
        room = max(self.size.height - 1, 1)
        at = max(self.cursor - room + 1, 0) + y - 1
        if y and at >= len(self.rows):
            return Strip.blank(self.size.width)
        is_selected = y > 0 and at == self.cursor
        style = Style(bold=y == 0, reverse=is_selected or y == 0)
        text = f"{'>' if is_selected else ' '}{self.rows[at].text if y else self.heading}"
        return Strip([Segment(text, style)]).adjust_cell_length(self.size.width, style)


class SightScreen(Screen[str | None]):
    """Shows one tab. It ends with the number of the list of jobs that is wanted next."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(at), f"dismiss('{at}')", "Jobs") for at in (1, 2, 3)),
        Binding("escape", "dismiss(None)", "Back"),
        Binding("tab,shift+tab", "other", "Other"),
        Binding("4", "turn('queues')", "Queues"),
        Binding("5", "turn('workers')", "Workers"),
        Binding("down,j", "move(1)", "Down"),
        Binding("up,k", "move(-1)", "Up"),
        Binding("pagedown", "page(1)", "Down"),
        Binding("pageup", "page(-1)", "Up"),
        Binding("g,home", f"move({-FAR})", "Head"),
        Binding("G,end", f"move({FAR})", "Tail"),
        Binding("s", "sort", "Sort"),
        Binding("question_mark", "help", "Help"),
        Binding("w", "why", "Why"),
        Binding("P", "pause", "Pause"),
        Binding("R", "requeue", "Requeue"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, client: PageClient, name: str) -> None:
        super().__init__()
        self._client = client
        self._sight = SIGHTS[name]
        self._sort = 0

    def compose(self) -> ComposeResult:
        """The tabs, the rows, the keys."""
        yield Static(id="tabs", markup=False)
        yield SightTable()
        yield Static(f" {KEYS}", id="keys", markup=False)

    def on_mount(self) -> None:
        self._watch()

    def action_turn(self, name: str) -> None:
        self._sight = SIGHTS[name]
        self._watch()

    def action_other(self) -> None:
        self.action_turn("workers" if self._sight is SIGHTS["queues"] else "queues")

    def action_move(self, step: int) -> None:
        self.query_one(SightTable).move(step)

    def action_page(self, step: int) -> None:
        table = self.query_one(SightTable)
        table.move(step * max(table.size.height - 2, 1))

    def action_sort(self) -> None:
        if self._sight is SIGHTS["queues"]:
            self._sort = (self._sort + 1) % len(SORTS)
            self._watch()

    def action_help(self) -> None:
        self.app.push_screen(HelpPage())

    def action_why(self) -> None:
        row = self.query_one(SightTable).selected
        if row is not None and row.queue is not None:
            self.run_worker(self._say_why(row.queue))

    def action_pause(self) -> None:
        row = self.query_one(SightTable).selected
        if row is None or row.queue is None:
            return
        path = f"queues/{quote(row.queue, safe='')}/settings"
        if row.paused:
            self._confirm(f"Resume {one_line(row.queue)}", "PATCH", path, {"paused": None})
            return
        what = f"Pause {one_line(row.queue)}"

        def answered(reason: str | None) -> None:
            if reason is not None:
                change = {"paused": True, "pause_reason": reason or None, "paused_until": None}
                self.run_worker(self._do(what, "PATCH", path, change))

        self.app.push_screen(ReasonBox(f" {what}? Reason, then Enter; Esc leaves it: "), answered)

    def action_requeue(self) -> None:
        row = self.query_one(SightTable).selected
        if row is None or row.queue is None:
            return
        self.run_worker(self._look_ahead(row.queue))

    def _watch(self) -> None:
        sight = self._sight
        names = (
            f"[{each.title}]" if each is sight else f" {each.title} " for each in SIGHTS.values()
        )
        order = f"    by {SORTS[self._sort]}" if sight is SIGHTS["queues"] else ""
        self.query_one("#tabs", Static).update(f"  {'  '.join(names)}{order}")
        self.query_one(SightTable).show(sight.heading, [])
        show = partial(self._show, sight)
        is_sorted = sight is SIGHTS["queues"]
        view = sight.view | ({"sort": SORTS[self._sort]} if is_sorted else {})
        self.run_worker(self._client.watch(view, show), exclusive=True, group="watch")

    def _show(self, sight: LiveTab, document: Document, now: int) -> None:
        self.query_one(SightTable).show(sight.heading, list(sight.rows(document, now)))

    def _say(self, text: str) -> None:
        self.query_one("#keys", Static).update(f" {one_line(text)}")

    def _confirm(self, what: str, method: str, path: str, body: object) -> None:
        def answered(is_sure: bool | None) -> None:
            if is_sure:
                self.run_worker(self._do(what, method, path, body))

        self.app.push_screen(DeleteQuestion(f" {what}? y/n"), answered)

    async def _do(self, what: str, method: str, path: str, body: object) -> None:
        try:
            await self._client.ask(method, path, body)
        except BackendError as error:
            self._say(f"{what}: {error.message}")
        else:
            self._say(f"{what}: done")

    async def _look_ahead(self, queue: str) -> None:
        """Ask whether to requeue the dead jobs of now. Those that die later are left alone."""
        filter = {"status": "dead", "queue": queue}
        try:
            query = urlencode(filter | {"verb": "requeue"})
            seen = await self._client.ask("GET", f"sweeps/preview?{query}")
        except BackendError as error:
            self._say(f"{queue}: {error.message}")
            return
        many = f"{'' if seen['exact'] else 'at least '}{seen['count']:,}"
        path = f"jobs/requeue?{urlencode(filter | {'upto': seen['upto']})}"
        self._confirm(f"Requeue {many} dead jobs of {one_line(queue)}", "POST", path, {})

    async def _say_why(self, queue: str) -> None:
        """Why the oldest ready job of a queue waits."""
        query = urlencode({"queue": queue, "status": "ready", "limit": 1})
        try:
            jobs = (await self._client.ask("GET", f"jobs?{query}"))["jobs"]
            why = await self._client.why(jobs[0]["id"]) if jobs else "no job is ready"
        except BackendError as error:
            why = error.message
        self._say(f"{queue}: {why}")
