"""Code that type checkers must accept. Only mypy reads it."""

from datetime import timedelta
from typing import assert_type

import zq

app = zq.App("http://127.0.0.1:7890", defaults={"max_attempts": 5})


@app.task
async def welcome(user: int, *, locale: str = "en") -> str:
    return f"{user} {locale}"


@app.task(queue="sums", timeout=timedelta(seconds=3), backoff=zq.Backoff(exponent=2))
def add(a: int, b: int = 0) -> int:
    return a + b


@app.task(budgets=[zq.Budget("crm", cost=2, create_with=zq.Limit(100, per=60, burst=10))])
async def sync(contact: int) -> None: ...


texts = app.queue("texts", payload=str, result=int)


@texts.handler
async def length(text: str, job: zq.Running[str]) -> int:
    return len(text) + job.attempt


async def produce() -> None:
    assert_type(await welcome(1, locale="cs"), str)
    assert_type(add(1, b=2), int)
    assert_type(await welcome.enqueue(1, locale="cs"), zq.Job[str])
    assert_type(await (await welcome.enqueue(1)).result(), str)
    assert_type(await welcome.options(key="k", delay=30).call(1), str)
    assert_type(add.enqueue_sync(1, 2).result_sync(), int)
    assert_type(add.call_sync(1), int)
    assert_type(await add.enqueue_many(add.args(n) for n in range(3)), list[zq.Job[int]])
    await sync.options(budgets=()).enqueue(1)
    outcome = await texts.enqueue("id", "text", result_ttl=60, budgets=(zq.Budget("crm"),))
    if outcome.result is not zq.MISSING:
        assert_type(outcome.result, int)
    assert_type(await texts.enqueue_and_wait("id", "text", timeout=1), int)
    assert_type(await texts.result("id"), int)
    assert_type(await texts.result("id", None), int | None)
    assert_type(texts.sync.enqueue_and_wait("id", "text"), int)
    status = await texts.status("id")
    if status is not None:
        assert_type(status.state, zq.State)


async def listen() -> None:
    async for event in app.events(queue=["texts"], types="progress"):
        assert_type(event, zq.JobEvent)
    job = await add.enqueue(1)
    async for event in job.events():
        assert_type(event.id, str | None)


@app.on_startup
async def connect() -> None: ...


async def work() -> None:
    worker = zq.Worker(app, concurrency=3, after_execution=look)
    assert_type(await worker.run_until_idle(), list[zq.Outcome])


def look(outcome: zq.Outcome) -> None:
    if outcome.ok:
        outcome.ttl = 60
