"""What rooms do with their tables at a start and after a salvage, and what they find there."""

import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from zq.rooms import parts


class Recovery(NamedTuple):
    """The part of a room in a start. A room has it as `RECOVERY` of its `sqlite_recovery.py`."""

    begin: Callable[[sqlite3.Connection], object] | None = None
    """Called in the transaction of a start, after jobs were given back."""
    returned: Callable[[sqlite3.Connection, Sequence[int]], object] | None = None
    """Called with the keys of jobs that were given back, and wait in their lines again."""
    lost: Callable[[sqlite3.Connection], object] | None = None
    """Called when a salvage has left out jobs, so that what is kept about jobs is counted again."""
    found: Sequence[str] = ()
    """Statements of the tick. The store tells their first values as what was found."""


@cache
def recoveries() -> list[Recovery]:
    """The parts of all rooms in a start."""
    return parts("sqlite_recovery", "RECOVERY", Recovery)
