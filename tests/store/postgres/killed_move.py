"""A move that writes six slices, and is killed when it has sent all rows of the seventh.

`python -m store.postgres.killed_move SOURCE TARGET`, both as `zq move` has them.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from zq import instance
from zq.store import moving
from zq.store.moving import MovedTable, Row
from zq.store.postgres.moving import PostgresTarget
from zq.store.sqlite.moving import SqliteTarget

SLICES = 6


class Dying(list[Row]):
    """Rows whose reader dies behind the last one."""

    def __iter__(self) -> Iterator[Row]:
        yield from list.__iter__(self)
        os.kill(os.getpid(), signal.SIGKILL)


def move(source: str, target: str) -> None:
    kind: Any = PostgresTarget if instance.is_address(target) else SqliteTarget
    write, left = kind.write, iter(range(SLICES))

    def mortal(self: Any, table: MovedTable, rows: Sequence[Row], mark: str) -> None:
        is_last = next(left, None) is None
        write(self, table, Dying(rows) if is_last else rows, mark)

    kind.write = mortal
    instance.move(source, target, lambda done, total: None)


if __name__ == "__main__":
    moving.SLICE_ROWS = 40
    move(*sys.argv[1:])
