"""Django's project, with a backend on the test's server."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from conformance.streams import PATIENCE_S
from django.core.management import call_command
from django.test import override_settings

from zq.client.outcome import Outcome
from zq.client.worker.worker import Worker
from zq.testing import TestServer

from .sample import set_up

set_up()

Work = Callable[[], Awaitable[list[Outcome]]]


@pytest.fixture(scope="session")
def database() -> None:
    """The tables of the project."""
    call_command("migrate", verbosity=0)


def settings_of(server: TestServer, **more: Any) -> Any:
    """The setting TASKS for a server."""
    from .sample.settings import BACKEND

    options = {"url": server.url, **more.pop("OPTIONS", {})}
    backend = {"BACKEND": BACKEND, "QUEUES": ["default", "mail"], "OPTIONS": options, **more}
    return override_settings(TASKS={"default": backend})


@pytest.fixture
def backend(zq_server: TestServer, database: None) -> Iterator[Any]:
    """The backend, without the outbox."""
    from .framework import task_backends
    from .sample.tasks import done

    done.clear()
    with settings_of(zq_server):
        yield task_backends["default"]


@pytest.fixture
def work() -> Work:
    """Executes tasks until none is left."""

    async def run() -> list[Outcome]:
        from zq.contrib.django.execution import worker_app

        from .framework import task_backends

        async with worker_app(task_backends["default"], "w1") as app:
            return await Worker(app, queues=["default", "mail"], worker_id="w1").run_until_idle(
                PATIENCE_S
            )

    return run


async def apart(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function that blocks, as the server needs the event loop."""

    def call() -> Any:
        from django.db import connections

        try:
            return function(*args, **kwargs)
        finally:
            connections.close_all()

    return await asyncio.to_thread(call)
