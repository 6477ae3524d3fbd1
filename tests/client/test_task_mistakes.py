"""What is easily mistaken in programs with tasks: the error says what to write."""

from functools import partial
from typing import Any

import pytest

import zq


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("retries", "give max_attempts"),
        ("countdown", "give delay"),
        ("eta", "give run_at"),
        ("expires", "ttl_ms"),
        ("retry_backoff", "backoff"),
        ("acks_late", "always acknowledged after it ran"),
        ("rate_limit", "rate"),
        ("que", r"did you mean queue\? The options are key, .*, queue, name"),
        ("colour", "the options are key, unique_while"),
    ],
)
def test_an_option_of_another_library_is_refused_with_what_replaces_it(
    name: str, remedy: str
) -> None:
    task: Any = zq.App().task
    with pytest.raises(zq.InvalidOption, match=f"^{name} is not an option: .*{remedy}"):
        task(**{name: 2})


def test_a_call_with_another_queue_is_refused_with_where_the_queue_stands() -> None:
    task: Any = zq.App().task(lambda: None)
    with pytest.raises(zq.InvalidOption, match=r"^queue is not an option: @app.task"):
        task.options(queue="mail")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("delay", "enqueue_sync"),
        ("s", "zq.chain"),
        ("apply_async", "options"),
        ("schedule", "delay="),
        ("kiq", "await enqueue"),
        ("defer_async", "await enqueue"),
        ("delay_on_commit", "zq.outbox"),
        ("nothing", ""),
    ],
)
def test_a_method_of_another_library_is_refused_with_what_replaces_it(
    name: str, remedy: str
) -> None:
    @zq.App().task
    def nothing_to_do() -> None: ...

    task: Any = nothing_to_do
    with pytest.raises(AttributeError, match=f"^a task has no '{name}'.*{remedy}"):
        getattr(task, name)
    assert not hasattr(task, name)


async def test_what_jobs_flows_apps_and_the_package_lack_is_refused_with_what_replaces_it(
    zq_app: zq.App,
) -> None:
    @zq_app.task
    async def nothing_to_do() -> None: ...

    job = await nothing_to_do.enqueue()
    flow = await zq.chain(zq.step(nothing_to_do))
    for owner, name, words in (
        (job, "get", r"^a job has no 'get': call result_sync\("),
        (job, "status", "^a job has no 'status': .*zq status ID$"),
        (job, "nothing", "^a job has no 'nothing'$"),
        (flow, "get", r"^a flow has no 'get': call result_sync\("),
        (zq_app, "send_task", "^an app has no 'send_task': .* of a task, or zq push QUEUE$"),
        (zq_app, "run_worker", "^an app has no 'run_worker': run zq worker MODULE:APP"),
        (zq_app, "nothing", "^an app has no 'nothing'$"),
        (zq, "shared_task", "^module 'zq' has no attribute 'shared_task': write @app.task"),
        (zq, "nothing", "^module 'zq' has no attribute 'nothing'$"),
    ):
        with pytest.raises(AttributeError, match=words):
            getattr(owner, name)


def generate() -> Any:
    yield 1


async def generate_later() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (generate, "generate is a generator function"),
        (generate_later, "generate_later is a generator function"),
        ("mail", "'mail' is not a function"),
        (partial(max, 1), "is not a function"),
        (zq.App().task(lambda: None), "<lambda> is a task already"),
    ],
    ids=["generator", "async generator", "text", "partial", "task"],
)
def test_what_a_worker_could_not_call_is_no_task(function: Any, words: str) -> None:
    with pytest.raises(zq.InvalidOption, match=words):
        zq.App().task(function)


def test_what_is_no_call_is_refused_with_what_to_write() -> None:
    @zq.App().task
    def add(a: int, b: int) -> int:
        return a + b

    calls: Any = [(1, 2)]
    with pytest.raises(zq.InvalidOption, match=r"^\(1, 2\) is not a call of the task: .*task.args"):
        add.enqueue_many_sync(calls)
    with pytest.raises(TypeError, match=r"add: missing a required argument: 'b'$"):
        add.args(1)  # type: ignore[call-arg]


def test_what_is_easily_mistaken_is_told_with_what_to_write() -> None:
    app: Any = zq.App()
    app.task(lambda: None)
    with pytest.raises(zq.InvalidOption, match=r"^queues: give a list, \['mail'\]"):
        zq.Worker(app, queues="mail")
    with pytest.raises(zq.InvalidOption, match=r"^'failure' is no event .* failed, failing"):
        app.on("failure")(print)
    with pytest.raises(zq.InvalidOption, match=r"^middleware: give a list"):
        zq.App(middleware=print)  # type: ignore[arg-type]
    with pytest.raises(zq.InvalidOption, match=r"^5 is not an address, such as 'http"):
        zq.App(5)  # type: ignore[arg-type]
    queue = app.queue("mail")
    with pytest.raises(AttributeError, match=r"^a queue has no 'enqueue_sync': call sync.enqueue"):
        queue.enqueue_sync("1", "a")
    with pytest.raises(AttributeError, match=r"^a queue has no 'nothing'$"):
        _ = queue.nothing
