"""The tasks of the project. What they have done is in `done`."""

import asyncio
import threading
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

import zq
from contrib.framework import task

done: list[Any] = []
may_end = threading.Event()
"""Until it is set, some tasks do not end."""


class Broken(Exception):
    """An error of the project."""


@task()
def add(a: int, b: int) -> int:
    done.append(a + b)
    return a + b


@task()
async def add_later(a: int, b: int) -> tuple[int, int]:
    return (a, b)


@task(queue_name="mail", priority=-5)
def send(to: str) -> None:
    done.append(to)


@task(takes_context=True)
def told(context: Any, name: str) -> dict[str, object]:
    result = context.task_result
    return {"attempt": context.attempt, "id": result.id, "name": name, "by": result.worker_ids}


@task(priority=10, takes_context=True)
def daily(context: Any) -> str:
    done.append(context.task_result)
    return "done"


@task()
def fails(at_most: int) -> int:
    done.append("try")
    if len(done) <= at_most:
        raise Broken("it is broken")
    return len(done)


@task()
def asks_database() -> None:
    connection.cursor().execute("SELECT 1").fetchone()
    done.append(connection.connection)


@task()
async def asks_database_later() -> None:
    await sync_to_async(asks_database.func)()


@task()
def returns_what_cannot_be_stored() -> object:
    return object()


@task()
async def takes_long() -> None:
    await asyncio.sleep(60)


@task()
def waits() -> None:
    may_end.wait(60)


@task()
def waits_until_told() -> None:
    zq.current_job().cancelled.wait(60)
