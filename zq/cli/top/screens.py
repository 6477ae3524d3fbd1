"""The small windows that keys open: find, delete, help."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from zq.cli.top.board import Query

HELP = """\
 Tab, Shift-Tab, 1 2 3   show another list
 j k, arrows, PgUp PgDn  move the cursor; it then follows its job
 g G, Home End           go to the head or the tail
 Esc                     follow no job
 Left Right              scroll sideways
 i                       show all of a job
 p                       freeze the display
 /                       find by type and queue
 n N                     find the next one, or the one before
 y                       copy the id
 w                       why the job does not run
 4 5                     queues and workers, where the server shows them; there,
                         P pauses or resumes, R requeues dead jobs, s sorts
 D                       delete the job, after a question
 Ctrl-Z                  suspend
 q, Ctrl-C               quit

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


class DeleteQuestion(ModalScreen[bool]):
    """Asks whether a job is to be deleted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Delete"),
        Binding("n,escape,q", "dismiss(False)", "Keep"),
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
