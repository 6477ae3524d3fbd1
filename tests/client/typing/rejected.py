"""Code that type checkers must reject: exactly the lines with `# no: CODE`. Only mypy reads it."""

from typing import Any

import zq

app = zq.App("http://127.0.0.1:7890")


@app.task
async def welcome(user: int, *, locale: str = "en") -> str:
    return f"{user} {locale}"


@app.task(queue="sums")
def add(a: int, b: int = 0) -> int:
    return a + b


texts = app.queue("texts", payload=str, result=int)


async def produce() -> None:
    await welcome.enqueue("ann")  # no: arg-type
    await welcome.enqueue(1, locale=2)  # no: arg-type
    await welcome.enqueue(1, "cs")  # no: call-arg
    await welcome.enqueue()  # no: call-arg
    await welcome.call(user=1, unknown=2)  # no: call-arg
    add.enqueue_sync("1")  # no: arg-type
    add.call_sync(1, 2, 3)  # no: call-arg
    add.args(None)  # no: arg-type
    await add.enqueue_many([welcome.args(1, locale="cs"), 5])  # no: list-item
    add("1")  # no: arg-type
    welcome.options(dely=3)  # no: call-arg
    welcome.options(delay="3")  # no: arg-type
    welcome.options(on_exception={KeyError: None})  # no: call-arg
    welcome.options(unique_while="always")  # no: arg-type
    welcome.options(budgets="crm")  # no: arg-type
    welcome.options(budgets=zq.Budget("crm"))  # no: arg-type
    zq.Budget("crm", cost="2")  # no: arg-type
    zq.Budget("crm", create_with=2)  # no: arg-type
    zq.Limit(per=60)  # no: call-arg
    number: int = await welcome.call(1)  # no: assignment
    await texts.enqueue("id", 5)  # no: arg-type
    await texts.enqueue(5, "text")  # no: arg-type
    await texts.enqueue("id", "text", key="k")  # no: call-arg
    text: str = await texts.enqueue_and_wait("id", "text")  # no: assignment
    texts.sync.enqueue("id", b"text")  # no: arg-type
    texts.enqueue_sync("id", "text")  # no: attr-defined
    app.events(types="finished")  # no: arg-type
    app.events(queues="texts")  # no: call-arg
    app.on_startup(listen)  # no: type-var
    print(number, text)


@app.task(retries=3)  # no: call-overload untyped-decorator
async def wrong() -> None: ...


@app.on("finished")  # no: arg-type
def listen(event: Any) -> None: ...


zq.Worker(app, concurency=3)  # no: call-arg
zq.App("http://127.0.0.1:7890", defaults={"max_attempt": 1})  # no: arg-type
