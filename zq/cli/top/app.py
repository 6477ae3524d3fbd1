"""The terminal program: the screen, and the action of each key."""

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from zq.cli.terminal import one_line
from zq.cli.top import messages, summary
from zq.cli.top.board import Board, Query
from zq.cli.top.feed import Feed
from zq.cli.top.messages import LISTS
from zq.cli.top.page import PageClient
from zq.cli.top.screens import DeleteQuestion, FindBox, HelpPage
from zq.cli.top.sights import SightScreen
from zq.cli.top.table import JobTable
from zq.client.errors import BackendError
from zq.client.http.address import Address


class Main(Screen[None]):
    """The lists of jobs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "step_list(1)", "Next list"),
        Binding("shift+tab", "step_list(-1)", "List before"),
        *(Binding(str(at), f"show({at - 1})", "List") for at in range(1, len(LISTS) + 1)),
        Binding("down,j", "move(1)", "Down"),
        Binding("up,k", "move(-1)", "Up"),
        Binding("pagedown", "move_page(1)", "Page down"),
        Binding("pageup", "move_page(-1)", "Page up"),
        Binding("home,g", "go_to_end(False)", "Head"),
        Binding("end,G", "go_to_end(True)", "Tail"),
        Binding("left", "scroll_sideways(-1)", "Left"),
        Binding("right", "scroll_sideways(1)", "Right"),
        Binding("escape", "let_go", "Follow no job"),
        Binding("i", "toggle_detail", "Info"),
        Binding("p", "toggle_frozen", "Freeze"),
        Binding("slash", "find", "Find"),
        Binding("n", "find_next('forward')", "Next"),
        Binding("N", "find_next('backward')", "Before"),
        Binding("y", "copy_id", "Copy id"),
        Binding("w", "why", "Why"),
        Binding("4", "look('queues')", "Queues"),
        Binding("5", "look('workers')", "Workers"),
        Binding("D", "delete", "Delete"),
        Binding("question_mark", "help", "Help"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, board: Board, page: PageClient, url: str, refresh_s: float) -> None:
        super().__init__()
        self._board = board
        self._page = page
        self._url = url
        self._refresh_s = refresh_s

    def compose(self) -> ComposeResult:
        """Five lines, the table, the details of a job, the keys."""
        yield Static(id="head", markup=False)
        yield JobTable(self._board)
        yield Static(id="details", markup=False)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self.draw()
        self.set_interval(self._refresh_s, self.draw)
        self.run_worker(self._look_for_page())

    def on_resize(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Draw everything again, from the present board."""
        board = self._board
        lines = (
            summary.connection_line(board, self._url),
            summary.finding_line(board, self.size.width),
            summary.totals_line(board.server),
            summary.depth_bar(board, self.size.width),
            summary.list_line(board),
        )
        self.query_one("#head", Static).update("\n".join(lines), layout=False)
        details = self.query_one("#details", Static)
        details.display = board.detail
        if board.detail:
            details.update(summary.details(board.view.selected))
        notice = one_line(board.notice)
        self.query_one("#keys", Static).update(f" {notice or summary.KEYS}", layout=False)
        self.query_one(JobTable).refresh()

    def action_step_list(self, step: int) -> None:
        self._board.step_list(step)
        self.draw()

    def action_show(self, index: int) -> None:
        self._board.show(LISTS[index])
        self.draw()

    def action_move(self, rows: int) -> None:
        self._board.notice = ""
        self._board.move(rows)
        self.draw()

    def action_move_page(self, pages: int) -> None:
        self.action_move(pages * max(self._board.rows - 1, 1))

    def action_go_to_end(self, tail: bool) -> None:
        self._board.go_to_end(tail=tail)
        self.draw()

    def action_scroll_sideways(self, steps: int) -> None:
        self.query_one(JobTable).scroll_sideways(steps)

    def action_let_go(self) -> None:
        self._board.notice = ""
        self._board.let_go()
        self.draw()

    def action_toggle_detail(self) -> None:
        self._board.toggle_detail()
        self.draw()

    def action_toggle_frozen(self) -> None:
        self._board.toggle_frozen()
        self.draw()

    def action_find(self) -> None:
        self.app.push_screen(FindBox(self._board.query), self._find)

    def _find(self, query: Query | None) -> None:
        if query is not None:
            self._board.notice = ""
            self._board.find(query)
            self.draw()

    def action_find_next(self, direction: str) -> None:
        self._board.notice = ""
        self._board.find_next("backward" if direction == "backward" else "forward")
        self.draw()

    def action_copy_id(self) -> None:
        job = self._board.view.selected
        if job is not None:
            self.app.copy_to_clipboard(job.id)
            self._board.notice = f"copied {job.id}"
            self.draw()

    def action_delete(self) -> None:
        job = self._board.view.selected
        if job is None:
            return

        def answered(is_sure: bool | None) -> None:
            if is_sure:
                self._board.delete(job)
            self.draw()

        question = f" Delete {job.id} of {one_line(job.queue)}? y/n"
        self.app.push_screen(DeleteQuestion(question), answered)

    def action_help(self) -> None:
        self.app.push_screen(HelpPage())

    def action_why(self) -> None:
        job = self._board.view.selected
        if job is not None and self._board.has_page:
            self.run_worker(self._say_why(job.id))

    def action_look(self, name: str) -> None:
        if self._board.has_page:
            self.app.push_screen(SightScreen(self._page, name), self._return)

    def _return(self, number: str | None) -> None:
        if number is not None:
            self.action_show(int(number) - 1)

    async def _look_for_page(self) -> None:
        """The original server has no such page, and some servers of ours have none either."""
        if not await self._page.exists():
            return
        self._board.has_page = True
        self.draw()
        await self._page.watch({"topic": "overview"}, self._board.diagnose)

    async def _say_why(self, job_id: str) -> None:
        try:
            self._board.notice = await self._page.why(job_id)
        except BackendError as error:
            self._board.notice = error.message
        self.draw()


class TopApp(App[None]):
    """`zq top` on a terminal."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Main { layout: vertical; background: transparent; }
    #head { height: 5; background: transparent; }
    JobTable, SightTable { height: 1fr; background: transparent; }
    SightScreen { layout: vertical; background: transparent; }
    #tabs { height: 1; }
    #details { height: auto; max-height: 50%; border-top: ascii $foreground; }
    #keys { height: 1; }
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
        self.board = Board(lambda message: self._feed.say(message))
        self.main = Main(self.board, PageClient(address), address.url, refresh_s)
        self._feed = Feed(address, self.board.greeting, self._hear, self._lose)

    def get_default_screen(self) -> Screen[None]:
        """The lists."""
        return self.main

    def on_mount(self) -> None:
        self.run_worker(self._feed.run())

    def _hear(self, heard: messages.Heard) -> None:
        was_awaited = self.board.awaited
        self.board.hear(heard)
        if was_awaited and not self.board.awaited:
            self.main.call_later(self.main.draw)

    def _lose(self, reason: str) -> None:
        self.board.lose(reason)
        self.main.call_later(self.main.draw)
