"""A data directory with millions of waiting jobs, made in seconds."""

import sqlite3
from pathlib import Path

APART_MS = 1 << 20
"""So far apart are the copies of a job: the originals were all stored within that time."""


def multiply(database: Path, times: int) -> None:
    """Store each ready job of a server that does not run `times` times over, as if it had come
    before.
    """
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -500000")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(jobs)")]
    copied = ", ".join(f"jobs.{each}" for each in columns if each != "id")
    others = ", ".join(each for each in columns if each != "id")
    with connection:
        connection.execute(
            f"""
            WITH RECURSIVE series(n) AS (SELECT ? UNION ALL SELECT n - 1 FROM series WHERE n > 1)
            INSERT INTO jobs (id, {others})
            SELECT jobs.id - (series.n << 20) * ?, {copied} FROM series CROSS JOIN jobs
            """,
            (times - 1, APART_MS),
        )
        connection.execute("UPDATE queue_counts SET n = n * ?", (times,))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
