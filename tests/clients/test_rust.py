"""Zizq's own client for Rust, over HTTP/2 in clear text and in TLS, in both formats.

Who has cargo builds it with `.ci/setup dev`; where there is none, these tests are skipped.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S
from tls.authority import Authority

PROGRAM = Path(__file__).parent / "rust" / "target" / "debug" / "zq-rust-client"

pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason="there is no cargo here, with which .ci/setup builds the client"
)


@pytest.fixture
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, ...]]:
    """The URL of a server, and the CA of its certificate where it has one."""
    settings: dict[str, Any] = {}
    ca: tuple[str, ...] = ()
    if request.param == "tls":
        authority = Authority(tmp_path / "certificates")
        settings["tls_cert"], settings["tls_key"] = authority.issue("server")
        ca = (str(authority.file),)
    site = Site(tmp_path / "data", settings)
    await site.start()
    host = "https://localhost" if ca else "http://127.0.0.1"
    yield (f"{host}:{site.port}", *ca)
    await site.stop()


async def saw(what: str, *server: str) -> dict[str, Any]:
    """What the client saw: the same in MessagePack as in JSON."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM, what, *server, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    seen: dict[str, dict[str, Any]] = json.loads(output)
    assert seen["msgpack"] == seen["json"]
    return seen["json"]


in_clear_text_and_tls = pytest.mark.parametrize("server", ["clear", "tls"], indirect=True)
in_clear_text = pytest.mark.parametrize("server", ["clear"], indirect=True)


@in_clear_text_and_tls
async def test_jobs_from_their_enqueue_to_their_end(server: tuple[str, ...]) -> None:
    assert await saw("work", *server) == {
        "order": ["Bob", "Cid", "Ann"],
        "scheduled": True,
        "attempts": 1,
        "error": ["no such address", "Bounced"],
        "listed": 2,
        "matching": 1,
        "moved": ["post", "9"],
        "patched": 1,
        "queues": ["mail", "post"],
        "deleted": 1,
        "left": 0,
        "unknown": True,
    }


@in_clear_text
async def test_a_unique_key_finds_the_job_that_has_it(server: tuple[str, ...]) -> None:
    assert await saw("unique", *server) == {
        "duplicates": [False, True],
        "same": True,
        "scope": True,
    }


@in_clear_text
async def test_a_batch_takes_jobs_in_until_it_is_full(server: tuple[str, ...]) -> None:
    assert await saw("batch", *server) == {
        "folded": [False, True, True, False],
        "hosts": [True, True, False],
        "payload": {"devices": [1, 2, 3]},
    }


@in_clear_text
async def test_a_group_of_schedules_is_made_paused_and_deleted(server: tuple[str, ...]) -> None:
    assert await saw("cron", *server) == {
        "crons": ["nightly"],
        "timezones": ["Europe/Berlin", "UTC"],
        "due": True,
        "paused": [True, False, True],
        "left": 1,
        "deleted": 1,
    }


@in_clear_text
async def test_a_budget_holds_a_second_job_back(server: tuple[str, ...]) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        if (await http.get(f"{server[0]}/budgets")).status_code == 422:
            pytest.skip("this server has no budgets")
    assert await saw("budgets", *server) == {
        "made": 1,
        "order": [True, True, True],
        "wider": 2,
        "costs": [2],
        "in_use": True,
        "left": 0,
    }
