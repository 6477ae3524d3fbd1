"""The small windows that keys open: find, delete, help, and the fair keys of a queue."""

from collections.abc import Callable
from typing import ClassVar
from urllib.parse import quote

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from zq.cli.output import span
from zq.cli.terminal import one_line
from zq.client.errors import BackendError
from zq.operators.admin.cli.columns import NAME_MOST, Column, amount, laid_out, share
from zq.operators.admin.cli.job_lists import Query
from zq.operators.page.client import Document, PageClient

HELP = """\
 1 … 6, Tab, Shift-Tab   show another tab
 j k, arrows, PgUp PgDn  move the cursor; it then follows its row
 g G, Home End           go to the head or the tail
 w                       why the job, or the jobs of the queue, do not run
 Ctrl-Z, q, Ctrl-C       suspend, quit

 Queues and Failures, where the server shows them:
 s                       sort the queues by the worst, waiting, failing, name
 f                       the fair keys of the queue, by share, wait or depth
 P                       pause or resume the queue
 R                       requeue the dead jobs of the queue or the cause, after a question

 In-Flight, Ready, Scheduled (~ before a job: it waits for a budget or its group):
 i, y                    show all of a job, copy its id
 /, n, N                 find by type and queue, find the next one, the one before
 p                       freeze the display
 Esc, Left Right         follow no job, scroll sideways
 D                       delete the job, after a question

 Esc or ? closes this help."""


class FindBox(ModalScreen[Query | None]):
    """Asks what to look for."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Close")]

    def __init__(self, last: Query | None) -> None:
        super().__init__()
        self._last = last or Query("", "")

    def compose(self) -> ComposeResult:
        """Two fields in the last line."""
        with Horizontal(classes="line"):
            yield Label(" Type ")
            yield Input(self._last.type, id="type", compact=True)
            yield Label(" Queue ")
            yield Input(self._last.queue, id="queue", compact=True)

    def on_input_submitted(self) -> None:
        texts = [self.query_one(f"#{name}", Input).value for name in Query._fields]
        self.dismiss(Query(*texts))


class ReasonBox(ModalScreen[str | None]):
    """Asks why, in the last line. Nothing is a reason too; Escape does nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Close")]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question, and a field."""
        with Horizontal(classes="line"):
            yield Label(self._question, markup=False)
            yield Input(id="reason", compact=True)

    def on_input_submitted(self) -> None:
        self.dismiss(self.query_one("#reason", Input).value)


class Question(ModalScreen[bool]):
    """Asks yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes"),
        Binding("n,escape,q", "dismiss(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question in the last line."""
        yield Static(self._question, classes="line", markup=False)


class HelpPage(ModalScreen[None]):
    """Shows the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss(None)", "Close")
    ]

    def compose(self) -> ComposeResult:
        """One text."""
        yield Static(HELP, classes="page", markup=False)


ORDERS = ("share", "wait", "depth")
"""The keys that are next come first, those that wait for the longest time, those with most jobs."""

EVERY_S = 2.0
MOST_KEYS = 15
"""So many fit a screen of 24 lines."""


def _lasts(name: str) -> Callable[[Document, int], str]:
    return lambda row, _: span(round(row[name])) if name in row else ""


def _oldest(row: Document, now: int) -> str:
    return span(max(now - row["oldest_ready"], 0)) if "oldest_ready" in row else ""


COLUMNS = (
    Column("KEY", 18, lambda row, _: row["key"] or "(none)", right=False, most=NAME_MOST),
    Column("SHARE", 7, lambda row, _: share(row["share"]) if "share" in row else ""),
    Column("BEHIND", 8, _lasts("behind_ms")),
    Column("WAITING", 8, lambda row, _: amount(row["waiting"])),
    Column("RUNNING", 8, lambda row, _: amount(row["in_flight"])),
    Column("MEAN", 8, _lasts("mean_ms")),
    Column("OLDEST", 8, _oldest),
)


class FairKeysPage(ModalScreen[None]):
    """Shows the keys of a queue, and asks the server for them again while it is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f", "dismiss(None)", "Close"),
        Binding("s", "sort", "Sort"),
    ]

    def __init__(self, client: PageClient, queue: str, now: Callable[[], int]) -> None:
        """`now` is the server's time in milliseconds."""
        super().__init__()
        self._client = client
        self._queue = queue
        self._now = now
        self._order = 0

    def compose(self) -> ComposeResult:
        """Show one text, which the answer of the server replaces."""
        yield Static(" asking the server", classes="page", markup=False)

    def on_mount(self) -> None:
        self._load_keys()
        self.set_interval(EVERY_S, self._load_keys)

    def action_sort(self) -> None:
        self._order = (self._order + 1) % len(ORDERS)
        self._load_keys()

    def _load_keys(self) -> None:
        # As a call to be made: the next one may take its place before it has begun.
        self.run_worker(self._show, exclusive=True)  # type: ignore[arg-type]

    async def _show(self) -> None:
        order = ORDERS[self._order]
        path = f"queues/{quote(self._queue, safe='')}/fair?order={order}&limit={MOST_KEYS}"
        try:
            found = await self._client.ask("GET", path)
        except BackendError as error:
            text = f" {error.message}"
        else:
            text = self._text(found, order)
        self.query_one(Static).update(text)

    def _text(self, found: Document, order: str) -> str:
        name, keys = one_line(self._queue), found["keys"]
        if not keys:
            return f" No fair key of {name} has unfinished jobs. Esc closes this."
        layout, now = laid_out(COLUMNS, self.size.width - 2), self._now()
        rows = [layout.heading(), *(layout.row(key, now) for key in keys)]
        lines = [" " + " ".join(cell.text for cell in row).rstrip() for row in rows]
        shown = f"{len(keys):,} of {found['total']:,} keys" if "next" in found else "Keys"
        return "\n".join([f" {shown} of {name} by {order} · s sort · Esc close", *lines])
