"""Draws tables for people: as wide as the terminal, and again and again if they watch."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from rich.table import Table


GAP = 3
"""Columns are this far apart."""

NAME_ROOM = 24
"""Columns are left out before names and other texts are cut down to less than this."""

LAST_ROOM = 20
"""Columns are left out before the last one, often a long text, is cut to less than this."""

SHORTEST = 12
"""No text is cut down to less than this."""

WHOLE = ("ID", "LIMIT", "EXPRESSION", "SCOPES")
"""Columns that are never cut: a part of an id or of a limit is another one."""

_WIDE = f"{__name__}.wide"

EVERY_S = 2.0
"""How often a table that is watched is read again."""


class Cells(NamedTuple):
    """The texts of a table. A column is `numeric` if it holds numbers only.

    On a terminal that is too narrow, long texts are cut, and the columns `least` are left out, in
    their order.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[bool]
    least: Sequence[str] = ()


def tabled(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that prints a table the option to print it whole."""

    def note(context: click.Context, _option: click.Parameter, is_wide: bool) -> None:
        context.meta[_WIDE] = is_wide

    return click.option(
        "--wide",
        is_flag=True,
        expose_value=False,
        callback=note,
        help="Show all columns and whole names, however wide the terminal is.",
    )(command)


def is_whole() -> bool:
    """True if the table of this command is printed whole: for a pipe, or because it was asked."""
    context = click.get_current_context(silent=True)
    return not sys.stdout.isatty() or (context is not None and context.meta.get(_WIDE, False))


def drawn(cells: Cells, width: int) -> "Table":
    """The table, not wider than the terminal if its important columns fit."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    widths = fitting(cells, width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for at, room in widths.items():
        justify = "right" if cells.numeric[at] else "left"
        look: Any = {"justify": justify, "no_wrap": True, "overflow": "ellipsis"}
        table.add_column(cells.columns[at], width=room, **look)
    for row in cells.rows:
        table.add_row(*(Text(row[at]) for at in widths))
    return table


def fitting(cells: Cells, width: int) -> dict[int, int]:
    """The columns that are shown, and their widths."""
    from rich.cells import cell_len

    needed = [max(map(cell_len, column)) for column in zip(cells.columns, *cells.rows, strict=True)]
    last = len(needed) - 1

    def least(at: int, room: int) -> int:
        is_cut = not cells.numeric[at] and cells.columns[at] not in WHOLE
        return min(needed[at], max(room, len(cells.columns[at]))) if is_cut else needed[at]

    shown = {at: least(at, LAST_ROOM if at == last else NAME_ROOM) for at in range(len(needed))}

    def spare() -> int:
        return width - sum(shown.values()) - GAP * (len(shown) - 1)

    for name in cells.least:
        if spare() >= 0:
            break
        del shown[cells.columns.index(name)]
    for at in sorted(shown, key=lambda at: -shown[at]):
        shown[at] = max(shown[at] + min(spare(), 0), least(at, SHORTEST))
    for at in shown:
        shown[at] += min(max(spare(), 0), needed[at] - shown[at])
    return shown


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


Advance = Callable[[int, int], None]
"""Takes the number of bytes or rows done, and the number of all."""


def bar_of_bytes(title: str) -> AbstractContextManager[Advance]:
    """A bar within the block, for the bytes that are done. Gives the function that moves it."""
    return _bar(title, "DownloadColumn", "TransferSpeedColumn")


def bar_of_rows(title: str) -> AbstractContextManager[Advance]:
    """A bar within the block, for the rows that are done. Gives the function that moves it."""
    return _bar(title, "MofNCompleteColumn")


@contextmanager
def _bar(title: str, *columns: str) -> Iterator[Advance]:
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich import progress as rich
    from rich.console import Console

    shown = [getattr(rich, name)() for name in ("BarColumn", *columns, "TimeRemainingColumn")]
    text = rich.TextColumn("{task.description}")
    with rich.Progress(text, *shown, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
