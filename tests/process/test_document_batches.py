"""The examples of the page about batches, run as printed."""

import json
from pathlib import Path
from typing import Any

from documents import SERVER, code, commands

import zq

from .server import running
from .test_first_job import Shell

ADD, SHOW = commands("batches")


async def test_the_batches_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)
        stored = [json.loads(line) for line in shell.run(ADD).splitlines()]
        assert [job["folded"] for job in stored] == [False, True, False]
        assert stored[0]["id"] == stored[1]["id"]
        payloads = [job["payload"] for job in shell.document(SHOW)["jobs"]]
        assert payloads == [[1, 2, 3], [4, 5]]


async def test_the_task_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        names: dict[str, Any] = {}
        text = code("batched task")
        exec(text.replace(SERVER, f"http://127.0.0.1:{server.port}"), names)
        app: zq.App = names["app"]
        async with app:
            assert await names["produce"]() == [False, True]
            outcomes = await zq.Worker(app).run_until_idle(20)
            assert len(outcomes) == 1
