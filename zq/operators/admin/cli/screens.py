"""The small windows that keys open: find, delete, help."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from zq.operators.admin.cli.job_lists import Query

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
