"""A progress bar on stderr, if that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

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
