"""A database as a first start makes it, made once and then copied: most tests begin with one.

To make one takes longer than most tests. The tests of migrations make theirs, and so does every
test that starts the program.
"""

import secrets
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from zq.store.sqlite.connection import WRITER_PRAGMAS, _set_pragmas
from zq.store.sqlite.migrate import migrate


def lay_out(file: Path) -> None:
    """Put an empty database there, unless there is one."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        made, epoch = _blank()
        # Each is a database of its own, so each has an epoch of its own.
        file.write_bytes(made.replace(epoch, secrets.token_hex(len(epoch) // 2).encode()))


@cache
def _blank() -> tuple[bytes, bytes]:
    """The file, and the epoch in it."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "zq.db"
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            _set_pragmas(connection, WRITER_PRAGMAS)
            migrate(connection)
            epoch = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()[0]
        return file.read_bytes(), epoch.encode()
