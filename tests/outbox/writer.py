"""A program of the caller: marks numbers and enqueues a job for each, until it is killed."""

import sqlite3
import sys
import time
from typing import Any

import psycopg

import zq
from zq import outbox

PAUSE_S = 0.002
"""Leaves the processor to the relay and the server, which have several times as much to do."""

app = zq.App("http://127.0.0.1:1")  # the writer needs no server


@app.task(queue="marks")
def mark(n: int) -> None: ...


def connect(url: str) -> Any:
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite://"), timeout=30)
    return psycopg.connect(url)


def write(url: str) -> None:
    connection = connect(url)
    (last,) = connection.execute("SELECT coalesce(max(n), 0) FROM marks").fetchone()
    grouped = mark.options(group="g")
    n = int(last)
    while True:
        n += 1
        connection.execute(f"INSERT INTO marks (n) VALUES ({n})")
        outbox.enqueue(connection, grouped, n)
        connection.commit()
        outbox.enqueue(connection, grouped, -n)
        connection.rollback()
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    write(sys.argv[1])
