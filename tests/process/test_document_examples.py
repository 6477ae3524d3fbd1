"""The examples of single pages: commands of a shell, and a task, run as printed."""

import json
from pathlib import Path
from typing import Any

from documents import SERVER, code, commands

import zq

from .server import ServerProcess, running
from .test_first_job import Shell

ADD, SHOW = commands("batches")
(BUDGETS,) = commands("budgets")


def names_of(program: str, server: ServerProcess) -> dict[str, Any]:
    """What a program of the documents defines, with this server for its own."""
    names: dict[str, Any] = {}
    exec(code(program).replace(SERVER, f"http://127.0.0.1:{server.port}"), names)
    return names


async def test_the_batches_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)
        stored = [json.loads(line) for line in shell.run(ADD).splitlines()]
        assert [job["folded"] for job in stored] == [False, True, False]
        assert stored[0]["id"] == stored[1]["id"]
        payloads = [job["payload"] for job in shell.document(SHOW)["jobs"]]
        assert payloads == [[1, 2, 3], [4, 5]]


async def test_the_batched_task_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        names = names_of("batched task", server)
        app: zq.App = names["app"]
        async with app:
            assert await names["produce"]() == [False, True]
            outcomes = await zq.Worker(app).run_until_idle(20)
            assert len(outcomes) == 1


async def test_the_budgets_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        *_, listed = Shell(server).run(BUDGETS).splitlines()
        crm, rate = json.loads(listed)["budgets"]
        assert (crm["available"], crm["waiting"]) == (2, 3)
        assert (rate["available"], rate["waiting"]) == (10, 3)


async def test_the_budgeted_task_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        names = names_of("budgeted task", server)
        app: zq.App = names["app"]
        async with app:
            await names["produce"]()
            crm = await app.backend.budgets.put("crm", zq.Limit(9))
            assert crm.waiting == 1
            (outcome,) = await zq.Worker(app).run_until_idle(20)
            assert outcome.result == 17
            crm, rate = await app.backend.budgets.all()
            assert (crm.allocation, crm.available, rate.strategy.burst) == (2, 2, 10)
