"""Lines of tables: cells with a tone, in columns that fit the width of the screen."""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.style import Style

from zq.cli.terminal import one_line

NARROW = 80
"""A screen of this width shows each column as wide as it must be."""

NAME_MOST = 44
"""A column of names grows up to this width on wide screens."""

LONGEST_NAME = 500
"""The most characters of a text that are looked at. Names may be longer."""


class Tone(StrEnum):
    """The meaning of a colour. No state is told by its colour alone."""

    PLAIN = ""
    BAD = "bad"
    """Somebody must act."""
    WARN = "warn"
    """A value that gets worse, or is not current."""
    QUIET = "quiet"


STYLES = {
    Tone.PLAIN: Style(),
    Tone.BAD: Style(color="red", bold=True),
    Tone.WARN: Style(color="yellow"),
    Tone.QUIET: Style(dim=True),
}

BOLD = Style(bold=True)


class Cell(NamedTuple):
    """A text with its tone, and what to show instead where it does not fit."""

    text: str
    tone: Tone = Tone.PLAIN
    brief: str = ""


class Column(NamedTuple):
    """A column of a table whose rows are documents; `cell` is given one, and the server's time.

    A screen narrower than `needs` does without it, and on a wide one it grows up to `most`. Figures
    stand at the right.
    """

    name: str
    width: int
    cell: Callable[[Any, int], Cell | str]
    right: bool = True
    needs: int = 0
    most: int = 0


class Layout(NamedTuple):
    """The columns on a screen, with their widths there."""

    columns: Sequence[Column]
    widths: Sequence[int]

    def heading(self) -> list[Cell]:
        """The names of the columns."""
        return self._line(column.name for column in self.columns)

    def row(self, document: Any, now: int) -> list[Cell]:
        """The cells of a document, each as wide as its column."""
        return self._line(column.cell(document, now) for column in self.columns)

    def _line(self, cells: Iterable[Cell | str]) -> list[Cell]:
        line = []
        for cell, column, width in zip(cells, self.columns, self.widths, strict=True):
            text, tone, brief = Cell(cell) if isinstance(cell, str) else cell
            text = brief if brief and cell_len(text) > width else text
            line.append(Cell(fitted(text, width, right=column.right), tone))
        return line


def laid_out(columns: Sequence[Column], width: int) -> Layout:
    """The columns that a screen has room for. Those of names grow, and the last has the rest."""
    shown = [column for column in columns if column.needs <= width]
    widths = [column.width for column in shown]
    room = max(width - sum(widths) - len(widths), 0)
    spare = room // 2 if width > NARROW else 0
    for at, column in enumerate(shown):
        grown = min(spare, max(column.most - column.width, 0))
        widths[at] += grown
        spare, room = spare - grown, room - grown
    widths[-1] += room
    return Layout(shown, widths)


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """A text in exactly `width` cells of the screen. A longer one ends with an ellipsis."""
    text = one_line(text[:LONGEST_NAME])
    length = cell_len(text)
    if length > width:
        return f"{set_cell_size(text, width - 1)}…" if width else ""
    pad = " " * (width - length)
    return pad + text if right else text + pad


def amount(number: float) -> str:
    """A count in at most seven characters: `12,345`, `1.2M`."""
    for size, unit in ((1e9, "G"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:,.0f}"


def rate(per_second: float) -> str:
    """A rate in at most six characters: `0.3`, `12`, `1,250`. Nothing stands for none."""
    if per_second < 0.05:
        return ""
    return f"{per_second:.1f}" if per_second < 100 else amount(round(per_second))


def share(part: float) -> str:
    """A share in percent: `0.3 %`, `12 %`."""
    return f"{100 * part:.1f} %" if 0 < part < 0.1 else f"{100 * part:.0f} %"
