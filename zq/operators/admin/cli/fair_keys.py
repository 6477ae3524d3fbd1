"""The window of the fair keys of a queue: by share, wait or depth."""

from collections.abc import Callable
from typing import ClassVar
from urllib.parse import quote

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from zq.cli.output import span
from zq.cli.terminal import one_line
from zq.client.errors import BackendError
from zq.operators.admin.cli.columns import NAME_MOST, Column, amount, laid_out, share
from zq.operators.page.client import Document, PageClient

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
        self._look()
        self.set_interval(EVERY_S, self._look)

    def action_sort(self) -> None:
        self._order = (self._order + 1) % len(ORDERS)
        self._look()

    def _look(self) -> None:
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
