"""The examples of single pages: commands of a shell, and a task, run as printed."""

import json
import time
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from conformance.streams import PATIENCE_S
from documents import SERVER, code, commands

import zq

from .server import ServerProcess, running
from .test_first_job import Shell

ADD, SHOW = commands("batches")
(BUDGETS,) = commands("budgets")
(HOLD,) = commands("llm over HTTP")
(FAIR,), (FAIR_SETTING,), (FAIR_KEY,) = map(commands, ("fair", "fair setting", "fair key"))
(REPORT,), (DEVICES, DEVICE) = map(commands, ("fleet: report", "fleet: devices"))
(BY_DEVICE,), (TO,), (FETCH,) = map(commands, ("fleet: fair", "fleet: to", "fleet: fetch"))
SEND, LACKING = commands("fleet: send")


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
            outcomes = await zq.Worker(app).run_until_idle(PATIENCE_S)
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
            (outcome,) = await zq.Worker(app).run_until_idle(PATIENCE_S)
            assert outcome.result == 17
            crm, rate = await app.backend.budgets.all()
            assert (crm.allocation, crm.available, rate.strategy.burst) == (2, 2, 10)


async def test_the_llm_recipe_of_the_documents(tmp_path: Path) -> None:
    """A busy interface has its budget held, and the job comes again with all its attempts."""
    answers = [
        web.Response(status=429, headers={"Retry-After": "1"}),
        web.json_response({"text": "42", "usage": {"total_tokens": 900_000}}),
    ]
    asked: list[float] = []

    async def complete(_request: web.Request) -> web.Response:
        asked.append(time.monotonic())
        return answers.pop(0)

    llm = web.Application()
    llm.router.add_post("/v1/complete", complete)
    async with running(tmp_path) as server, TestServer(llm) as interface:
        names = names_of("llm", server)
        names["LLM"] = str(interface.make_url("/v1/complete"))
        app: zq.App = names["app"]
        async with app:
            await names["ask"].enqueue("What is six times seven?")
            (outcome,) = await zq.Worker(app).run_until_idle(PATIENCE_S)
            assert (outcome.result, outcome.attempts) == ("42", 1)
            assert asked[1] - asked[0] >= 0.9
            budget = await app.backend.budgets.get("llm-tokens")
            assert budget.available is not None and budget.available < 0

            held, reopened = map(json.loads, Shell(server).run(HOLD).splitlines())
            assert held["held_until"] > held["created_at"]
            assert "held_until" not in reopened


async def test_the_fair_keys_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)
        *_, claimed, listed = shell.run(FAIR).splitlines()
        keys = sorted(job["fair_key"] for job in json.loads(claimed)["jobs"])
        assert keys == ["acme", "acme", "tiny"]
        (acme, tiny) = sorted(json.loads(listed)["keys"], key=lambda each: each["key"])
        assert (acme["waiting"], acme["in_flight"], tiny["in_flight"]) == (3, 2, 1)
        assert shell.document(FAIR_SETTING)["fair"]["key"] == "payload.tenant"
        put, shown = map(json.loads, shell.run(FAIR_KEY).splitlines())
        assert put == shown["limit"] == {"weight": 4.0, "max_in_flight": 100}


async def test_the_devices_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)
        assert shell.document(REPORT)["durability"] == "fsync"
        assert shell.document(DEVICE)["queues"] == {"readings": 3}
        assert shell.document(DEVICES)["jobs"] == 3
        assert shell.document(BY_DEVICE)["fair"] == {"key": "producer"}
        assert shell.document(TO)["queue"] == "to/device-17/commands"
        (fetched,) = shell.document(FETCH)["jobs"]
        assert (fetched["queue"], fetched["type"]) == ("commands", "reboot")
        assert shell.document(SEND) == {"group": "update-1.9", "devices": 1}
        assert shell.document(LACKING) == {"waiting": 1, "devices": ["device-17"], "missed": []}


async def test_the_fair_tasks_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        names = names_of("fair task", server)
        app: zq.App = names["app"]
        async with app:
            await names["page"].enqueue("acme", 1)
            await names["invoice"].enqueue({"shop": 7})
            stored = (await app.backend.jobs()).jobs
            assert [(job.fair_key, job.fair_weight) for job in stored] == [
                ("acme", None),
                ("shop-7", 2.0),
            ]
