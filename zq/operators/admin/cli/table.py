"""Draws the jobs of a list, line by line.

It makes only the lines on the screen. textual's own tables keep every row in memory, as widgets do,
and take most of a core if rows change ten times a second
(https://github.com/Textualize/textual/issues/6457).
"""

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from zq.cli.terminal import one_line
from zq.operators.admin.cli.columns import NAME_MOST, STYLES, Cell, Column, Tone, amount, laid_out
from zq.operators.admin.cli.job_lists import JobLists, Query
from zq.operators.admin.cli.screens import FindBox, Question
from zq.operators.admin.cli.summary import TIME_COLUMNS, duration
from zq.operators.admin.model import Direction, ListName
from zq.operators.admin.wire import AdminJob


def strip(mark: str, cells: Sequence[Cell], width: int, *, selected: bool, head: bool) -> Strip:
    """One line of the screen. The row under the cursor is reversed, as the heading is."""
    base = Style(bold=head, reverse=selected or head)
    segments = [Segment(mark, base)]
    for at, cell in enumerate(cells):
        gap = " " if at else ""
        segments += [Segment(gap, base), Segment(cell.text, base + STYLES[cell.tone])]
    return Strip(segments).adjust_cell_length(width, base)


SIDE_STEP = 8


class JobTable(Widget, can_focus=True):
    """The table of the list on the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
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
        Binding("D", "delete", "Delete"),
    ]

    class Changed(Message):
        """A key has changed what is to be drawn."""

    class Asked(Message):
        """The user asks why a job does not run."""

        def __init__(self, job_id: str) -> None:
            super().__init__()
            self.job_id = job_id

    def __init__(self, lists: JobLists) -> None:
        super().__init__()
        self._lists = lists
        self._side = 0

    def on_resize(self) -> None:
        self._lists.resize(self.size.height - 1)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as the screen."""
        return container.width

    def render_line(self, y: int) -> Strip:
        """One line of the screen: the names of the columns, or a job."""
        view = self._lists.view
        width = self.size.width
        layout = laid_out(job_columns(view.name), width + self._side)
        if y == 0:
            view.scroll(max(self.size.height - 1, 1))
            return self._strip(" ", layout.heading(), selected=False, head=True)
        index = view.top + y - 1
        if index >= len(view.items):
            return Strip.blank(width)
        job = view.items[index]
        cells = layout.row(job, int(time.time() * 1000))
        if job.waits or not self._lists.shown_source.is_live:
            cells = [Cell(cell.text, Tone.QUIET) for cell in cells]
        is_selected = index == view.cursor
        mark = ">" if is_selected else "~" if job.waits else " "
        return self._strip(mark, cells, selected=is_selected, head=False)

    def _strip(self, mark: str, cells: list[Cell], *, selected: bool, head: bool) -> Strip:
        width = self.size.width
        whole = strip(mark, cells, width + self._side, selected=selected, head=head)
        if not self._side:
            return whole
        # The mark of the cursor does not scroll.
        shown = whole.crop(1 + self._side, width + self._side)
        return Strip([*whole.crop(0, 1), *shown]).adjust_cell_length(width)

    # Keys

    def _draw(self) -> None:
        self.post_message(self.Changed())

    def action_move(self, rows: int) -> None:
        self._lists.notice = ""
        self._lists.move(rows)
        self._draw()

    def action_move_page(self, pages: int) -> None:
        self.action_move(pages * max(self._lists.rows - 1, 1))

    def action_go_to_end(self, tail: bool) -> None:
        self._lists.go_to_end(tail=tail)
        self._draw()

    def action_scroll_sideways(self, steps: int) -> None:
        """Show the part further right, or left."""
        self._side = max(self._side + steps * SIDE_STEP, 0)
        self.refresh()

    def action_let_go(self) -> None:
        self._lists.notice = ""
        self._lists.let_go()
        self._draw()

    def action_toggle_detail(self) -> None:
        self._lists.toggle_detail()
        self._draw()

    def action_toggle_frozen(self) -> None:
        self._lists.toggle_frozen()
        self._draw()

    def action_find(self) -> None:
        def answered(query: Query | None) -> None:
            if query is not None:
                self._lists.notice = ""
                self._lists.find(query)
                self._draw()

        self.app.push_screen(FindBox(self._lists.query), answered)

    def action_find_next(self, direction: str) -> None:
        self._lists.notice = ""
        self._lists.find_next(Direction(direction))
        self._draw()

    def action_copy_id(self) -> None:
        job = self._lists.view.selected
        if job is not None:
            self.app.copy_to_clipboard(job.id)
            self._lists.notice = f"copied {job.id}"
            self._draw()

    def action_why(self) -> None:
        job = self._lists.view.selected
        if job is not None and self._lists.has_page:
            self.post_message(self.Asked(job.id))

    def action_delete(self) -> None:
        job = self._lists.view.selected
        if job is None:
            return

        def answered(is_sure: bool | None) -> None:
            if is_sure:
                self._lists.delete(job)
            self._draw()

        question = f" Delete {job.id} of {one_line(job.queue)}? y/n"
        self.app.push_screen(Question(question), answered)


def job_columns(name: ListName) -> tuple[Column, ...]:
    """The columns of a list."""
    return (
        Column("ID", 26, lambda job, _: job.id),
        # A priority is not an amount, so it has no separators.
        Column("PRIORITY", 8, lambda job, _: str(job.priority), needs=100),
        Column("QUEUE", 16, lambda job, _: job.queue, right=False, most=NAME_MOST),
        Column(TIME_COLUMNS[name], 9, lambda job, now: duration(job, name, now)),
        Column("ATTEMPTS", 8, _attempts),
        Column("TYPE", 8, lambda job, _: job.job_type, right=False),
    )


def _attempts(job: AdminJob, _now: int) -> Cell:
    return Cell(amount(job.attempts), Tone.WARN if job.attempts else Tone.PLAIN)
