"""The terminal program: one screen with a head, and the tabs under it."""

import asyncio
import time
from typing import Any, ClassVar

import msgspec
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from zq.cli.terminal import one_line
from zq.client.errors import BackendError
from zq.client.http.address import Address
from zq.operators.admin.cli import summary
from zq.operators.admin.cli.columns import BOLD, STYLES, Tone, fitted
from zq.operators.admin.cli.feed import Feed
from zq.operators.admin.cli.job_lists import LISTS, Heard, JobLists
from zq.operators.admin.cli.live_tabs import LIVE_TABS, LiveTable
from zq.operators.admin.cli.screens import HelpPage
from zq.operators.admin.cli.table import JobTable
from zq.operators.admin.wire import AdminJob
from zq.operators.page.client import Document, Freshness, PageClient

TABS = (*LIVE_TABS, *LISTS)
"""All tabs in their order; a server without the operators' page has the lists only."""

TITLES = {
    **{name: tab.title for name, tab in LIVE_TABS.items()},
    **{name.value: title for name, title in summary.NAMES.items()},
}

JOB_KEYS = "j/k move · i info · w why · / find · p freeze · D delete · ? help · q quit"

MOST_WAITING = 500
"""The most jobs waiting for budgets and groups that are read for the list."""

POLL_S = 1.0
TREND_POLL_S = 5.0


class Main(Screen[None]):
    """The head, the tabs, a table, and the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "step_tab(1)", "Next tab"),
        Binding("shift+tab", "step_tab(-1)", "Tab before"),
        *(Binding(str(at), f"turn('{name}')", "Tab") for at, name in enumerate(TABS, 1)),
        Binding("question_mark", "help", "Help"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, lists: JobLists, page: PageClient, where: str, refresh_s: float) -> None:
        super().__init__()
        self._lists = lists
        self._page = page
        self._where = where
        self._refresh_s = refresh_s
        self._overview: Document = {}
        self._overview_source = Freshness()
        self._server_began = 0.0
        """The server's clock, in milliseconds, when the monotonic one of this machine was at 0."""
        self._wait_p95_ms: float | None = None
        self._tab = "ready"
        self._has_chosen = False
        """True if the user has chosen a tab before it is known which there are."""

    def compose(self) -> ComposeResult:
        """The head, the two tables, of which one is shown, the details of a job, the keys."""
        yield Static(id="head", markup=False)
        yield JobTable(self._lists)
        yield LiveTable(self._page)
        yield Static(id="details", markup=False)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self._turn(self._tab)
        self.set_interval(self._refresh_s, self.draw)
        self.run_worker(self._look_for_page())

    def on_resize(self) -> None:
        self.draw()

    # What is drawn

    @property
    def _jobs(self) -> JobTable:
        return self.query_one(JobTable)

    @property
    def _live(self) -> LiveTable:
        return self.query_one(LiveTable)

    def draw(self) -> None:
        """Draw everything again, from the present state."""
        lists = self._lists
        is_list = self._tab in LISTS
        self.query_one("#head", Static).update(Text("\n").join(self._head()))
        details = self.query_one("#details", Static)
        details.display = lists.detail and is_list
        if details.display:
            details.update(summary.details(lists.view.selected))
        keys = JOB_KEYS if is_list else self._live.tab.keys
        notice = one_line(lists.notice)
        width = max(self.size.width - 1, 0)
        said = Text(f" {notice}") if notice else Text(f" {fitted(keys, width)}", STYLES[Tone.QUIET])
        self.query_one("#keys", Static).update(said)
        (self._jobs if is_list else self._live).refresh()

    def _head(self) -> list[Text]:
        lists, width = self._lists, self.size.width
        sources = [lists.shown_source if self._tab in LISTS else self._live.source]
        server = summary.server_words(lists.server, self._overview)
        totals = summary.totals_line(lists.server, self._overview)
        if not lists.has_page:
            line = summary.connection_line(sources, self._where, server, width)
            return [line, totals, self._tabs_line()]
        sources.append(self._overview_source)
        return [
            summary.connection_line(sources, self._where, server, width),
            totals,
            summary.rates_line(self._overview, self._wait_p95_ms),
            summary.finding_line(self._overview, self._server_began, width),
            self._tabs_line(),
        ]

    def _tabs_line(self) -> Text:
        """The tabs; on a narrow screen, only the one that is shown has its name."""
        names = {at: name for at, name in enumerate(TABS, 1) if name in self._tabs}
        is_wide = sum(len(TITLES[name]) + 4 for name in names.values()) < self.size.width
        line = Text(" ")
        for at, name in names.items():
            if name == self._tab:
                line.append(f"[{at} {TITLES[name]}]", BOLD)
            else:
                line.append(f" {at} {TITLES[name]} " if is_wide else f" {at} ", STYLES[Tone.QUIET])
        is_frozen = self._tab in LISTS and self._lists.frozen
        order = "" if self._tab in LISTS else self._live.order
        return line.append("  PAUSED" if is_frozen else f"  by {order}" if order else "")

    # Tabs

    @property
    def _tabs(self) -> tuple[str, ...]:
        return TABS if self._lists.has_page else LISTS

    def action_step_tab(self, step: int) -> None:
        tabs = self._tabs
        self.action_turn(tabs[(tabs.index(self._tab) + step) % len(tabs)])

    def action_turn(self, name: str) -> None:
        """Show the tab that the user wants."""
        if name in self._tabs:
            self._has_chosen = True
            self._turn(name)

    def _turn(self, name: str) -> None:
        self._tab = name
        shown = next((each for each in LISTS if each == name), None)
        self._jobs.display, self._live.display = shown is not None, shown is None
        if shown is not None:
            self._live.leave()
            self._lists.show(shown)
            self._jobs.focus()
        else:
            self._lists.leave()
            self._live.turn(name)
            self._live.focus()
        self._lists.notice = ""
        self.draw()

    def action_help(self) -> None:
        self.app.push_screen(HelpPage())

    # The news

    def on_job_table_changed(self) -> None:
        self.draw()

    def on_job_table_asked(self, asked: JobTable.Asked) -> None:
        self.run_worker(self._say_why(asked.job_id))

    def on_live_table_said(self, said: LiveTable.Said) -> None:
        self._lists.notice = said.text
        self.draw()

    async def _look_for_page(self) -> None:
        """The original server has no such page, and some servers of ours have none either."""
        if not await self._page.exists():
            return
        self._lists.has_page = True
        if not self._has_chosen:
            self._turn("queues")
        await asyncio.gather(
            self._page.watch({"topic": "overview"}, self._see, self._overview_source),
            self._watch_waiting(),
            self._watch_trends(),
        )

    def _see(self, overview: Document, now: int) -> None:
        self._overview = overview
        self._server_began = now - time.monotonic() * 1000

    async def _watch_waiting(self) -> None:
        """Read the jobs that wait for budgets and groups, while a list ends before them."""
        while True:
            if self._lists.wants_waiting:
                path = f"jobs?status=ready&limit={MOST_WAITING}"
                found = await self._asked(path)
                if found is not None and self._lists.wants_waiting:
                    self._lists.hold(map(_item, found["jobs"]))
            await asyncio.sleep(POLL_S)

    async def _watch_trends(self) -> None:
        """Read how long jobs have waited lately."""
        while True:
            found = await self._asked("stats/history?range=5m")
            waits = [
                point["wait"]["p95"] for point in (found or {}).get("points", ()) if "wait" in point
            ]
            self._wait_p95_ms = waits[-1] if waits else None
            await asyncio.sleep(TREND_POLL_S)

    async def _asked(self, path: str) -> Any:
        """An answer of the page's API, or None: the head tells why there is none."""
        try:
            return await self._page.ask("GET", path)
        except BackendError:
            return None

    async def _say_why(self, job_id: str) -> None:
        try:
            self._lists.notice = await self._page.why(job_id)
        except BackendError as error:
            self._lists.notice = error.message
        self.draw()


def _item(job: dict[str, Any]) -> AdminJob:
    """A job of the API as one of a list."""
    payload = msgspec.Raw(msgspec.json.encode(job.get("payload")))
    return msgspec.convert(job | {"job_type": job["type"], "payload": payload}, AdminJob)


class TopApp(App[None]):
    """`zq top` on a terminal."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Main { layout: vertical; background: transparent; }
    #head { height: auto; background: transparent; }
    JobTable, LiveTable { height: 1fr; background: transparent; }
    #details { height: auto; max-height: 50%; border-top: ascii $foreground; }
    #keys { height: auto; max-height: 4; background: transparent; }
    ModalScreen { background: transparent; }
    .line { dock: bottom; height: 1; }
    .line Label { width: auto; }
    .line Input { width: 1fr; }
    .page { dock: bottom; height: auto; border-top: ascii $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", "Quit", priority=True),
        Binding("ctrl+z", "suspend_process", "Suspend", priority=True),
    ]

    def __init__(self, address: Address, refresh_s: float) -> None:
        super().__init__(ansi_color=True)
        self.lists = JobLists(lambda message: self._feed.say(message))
        where = one_line(address.url.partition("://")[2])
        self.main = Main(self.lists, PageClient(address), where, refresh_s)
        self._feed = Feed(address, self.lists.greeting, self._hear, self.lists.source.lose)

    def get_default_screen(self) -> Screen[None]:
        """The tabs."""
        return self.main

    def on_mount(self) -> None:
        self.run_worker(self._feed.run())

    def _hear(self, heard: Heard) -> None:
        was_awaited = self.lists.awaited
        self.lists.hear(heard)
        if was_awaited and not self.lists.awaited:
            self.main.call_later(self.main.draw)
