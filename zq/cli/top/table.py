"""Draws the jobs of a list, line by line.

It makes only the lines on the screen. textual's own tables keep every row in memory, as widgets do,
and take most of a core if rows change ten times a second
(https://github.com/Textualize/textual/issues/6457).
"""

import time

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from zq.cli.terminal import one_line
from zq.cli.top.board import Board
from zq.cli.top.messages import Item, ListName
from zq.cli.top.summary import TIME_COLUMNS, duration

QUEUE_WIDTH = 20
SIDE_STEP = 8
LONGEST_NAME = 200
"""The most characters of a queue or a type that are drawn. Names may be longer."""

_HEAD = Style(bold=True, reverse=True)
_CURSOR = Style(reverse=True)
_PLAIN = Style()


class JobTable(Widget):
    """The list on the board."""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self._board = board
        self._side = 0

    def on_resize(self) -> None:
        self._board.resize(self.size.height - 1)

    def scroll_sideways(self, steps: int) -> None:
        """Show the part further right, or left."""
        self._side = max(self._side + steps * SIDE_STEP, 0)
        self.refresh()

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as the screen."""
        return container.width

    def render_line(self, y: int) -> Strip:
        """One line of the screen: the names of the columns, or a job."""
        view = self._board.view
        width = self.size.width
        if y == 0:
            view.scroll(max(self.size.height - 1, 1))
            return self._strip(heading(view.name), _HEAD, width)
        index = view.top + y - 1
        if index >= len(view.items):
            return Strip.blank(width)
        is_selected = index == view.cursor
        line = row(view.items[index], view.name, int(time.time() * 1000), is_selected)
        return self._strip(line, _CURSOR if is_selected else _PLAIN, width)

    def _strip(self, line: str, style: Style, width: int) -> Strip:
        # The mark of the cursor does not scroll.
        shown = Strip([Segment(line[1:], style)]).crop(self._side, self._side + width - 1)
        return Strip([Segment(line[:1], style), *shown]).adjust_cell_length(width, style)


def heading(name: ListName) -> str:
    """The names of the columns."""
    return _line(" ", "ID", "PRIORITY", "QUEUE", TIME_COLUMNS[name], "ATTEMPTS", "TYPE")


def row(job: Item, name: ListName, now_ms: int, is_selected: bool) -> str:
    """A job as a line."""
    return _line(
        ">" if is_selected else " ",
        job.id,
        str(job.priority),
        _name(job.queue),
        duration(job, name, now_ms),
        str(job.attempts),
        _name(job.job_type),
    )


def _line(
    mark: str, id_: str, priority: str, queue: str, time_: str, attempts: str, type_: str
) -> str:
    cells = f"{id_:>26} {priority:>8} {queue:<{QUEUE_WIDTH}} {time_:>10} {attempts:>8} {type_}"
    return mark + cells


def _name(text: str) -> str:
    return one_line(text[:LONGEST_NAME])
