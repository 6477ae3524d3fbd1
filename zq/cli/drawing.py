"""Draws tables for people: as wide as the terminal, and again and again if they watch."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from rich.table import Table

GAP = 3
"""Columns are this far apart."""

SHORTEST = 12
"""The last column, which is often a long text, is cut down to no less than this."""

EVERY_S = 2.0
"""How often a table that is watched is read again."""


class Cells(NamedTuple):
    """The texts of a table. A column is `numeric` if it holds numbers only.

    On a terminal that is too narrow, the columns `least` are left out, in their order.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[bool]
    least: Sequence[str] = ()


def drawn(cells: Cells, width: int) -> "Table":
    """The table, not wider than the terminal if its important columns fit."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    kept, room = _fitting(cells, width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for at in kept:
        # A wrapped id cannot be copied.
        name = cells.columns[at]
        justify = "right" if cells.numeric[at] else "left"
        table.add_column(name, justify=justify, no_wrap=name == "ID")  # type: ignore[arg-type]
    last = len(cells.columns) - 1
    for row in cells.rows:
        texts = [Text(row[at]) for at in kept]
        if kept[-1] == last:
            texts[-1].truncate(room, overflow="ellipsis")
        table.add_row(*texts)
    return table


def _fitting(cells: Cells, width: int) -> tuple[list[int], int]:
    """The columns that are shown, and the room for the last one."""
    from rich.cells import cell_len

    needed = [max(map(cell_len, column)) for column in zip(cells.columns, *cells.rows, strict=True)]
    longest = needed[-1]
    needed[-1] = min(longest, SHORTEST)
    kept = list(range(len(needed)))

    def room() -> int:
        return width - sum(needed[at] for at in kept) - GAP * (len(kept) - 1)

    for name in cells.least:
        if room() >= 0:
            break
        kept.remove(cells.columns.index(name))
    return kept, max(min(longest, needed[-1] + room()), SHORTEST)


def draw(cells: Cells) -> None:
    """Print a table on a terminal."""
    from rich.console import Console

    console = Console()
    console.print(drawn(cells, console.width))


def watch(read: Callable[[], Cells]) -> None:
    """Show a table on the terminal, and read it again every two seconds, until Ctrl-C."""
    if not sys.stdout.isatty():
        raise click.UsageError("--watch is for terminals: leave it out for a pipe or a file")
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with Live(console=console, auto_refresh=False, screen=True) as live:
        while True:
            live.update(drawn(read(), console.width), refresh=True)
            time.sleep(EVERY_S)
