"""The examples of the page about budgets, run as printed."""

import json
from pathlib import Path
from typing import Any

from documents import SERVER, code, commands

import zq

from .server import running
from .test_first_job import Shell

(BUDGETS,) = commands("budgets")


async def test_the_budgets_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        *_, listed = Shell(server).run(BUDGETS).splitlines()
        crm, rate = json.loads(listed)["budgets"]
        assert (crm["available"], crm["waiting"]) == (2, 3)
        assert (rate["available"], rate["waiting"]) == (10, 3)


async def test_the_task_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        names: dict[str, Any] = {}
        text = code("budgeted task")
        exec(text.replace(SERVER, f"http://127.0.0.1:{server.port}"), names)
        app: zq.App = names["app"]
        async with app:
            await names["produce"]()
            crm = await app.backend.budgets.put("crm", zq.Limit(9))
            assert crm.waiting == 1
            (outcome,) = await zq.Worker(app).run_until_idle(20)
            assert outcome.result == 17
            crm, rate = await app.backend.budgets.all()
            assert (crm.allocation, crm.available, rate.strategy.burst) == (2, 2, 10)
