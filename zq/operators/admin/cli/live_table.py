"""The table of the tabs with live views, and what its keys do to a queue or a cause."""

from functools import partial
from typing import ClassVar
from urllib.parse import quote, urlencode

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from zq.cli.terminal import one_line
from zq.client.errors import BackendError
from zq.operators.admin.cli.columns import Cell, Layout, Tone, laid_out
from zq.operators.admin.cli.fair_keys import FairKeysPage
from zq.operators.admin.cli.live_tabs import LIVE_TABS, SORTS, LiveRow, LiveTab
from zq.operators.admin.cli.screens import Question, ReasonBox
from zq.operators.admin.cli.table import strip
from zq.operators.page.client import Document, Freshness, PageClient

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
