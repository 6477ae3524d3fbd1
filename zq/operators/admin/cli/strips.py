"""Lines of tables as the screen takes them."""

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from zq.operators.admin.cli.columns import STYLES, Cell


def strip(mark: str, cells: Sequence[Cell], width: int, *, selected: bool, head: bool) -> Strip:
    """One line of the screen. The row under the cursor is reversed, as the heading is."""
    base = Style(bold=head, reverse=selected or head)
    segments = [Segment(mark, base)]
    for at, cell in enumerate(cells):
        gap = " " if at else ""
        segments += [Segment(gap, base), Segment(cell.text, base + STYLES[cell.tone])]
    return Strip(segments).adjust_cell_length(width, base)
