"""The push routes of the server and of the library. docs/files.md tells how they differ."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from conformance.site import Site

import zq
from zq.client.app import App
from zq.client.files.registry import queues

FORM = "application/x-www-form-urlencoded"
BYTES = "application/octet-stream"


@pytest.fixture
async def urls(app: App, site: Site, tmp_path: Path) -> AsyncIterator[tuple[str, str]]:
    """Where either takes posts for a group of the queue `profile.fifo`."""
    folder = tmp_path / f"queues_{tmp_path.name}"
    folder.mkdir()
    (folder / "profile.fifo.py").write_text("def handle(payload): ...\n")
    app.discover(folder)
    own = web.Application()
    own.router.add_post("/push/{group}", zq.queues["profile.fifo"].http)
    own.router.add_post("/push/{group}/{dedupe}", zq.queues["profile.fifo"].http)
    server = TestServer(own)
    await server.start_server()
    yield f"{site.url}/queues/profile.fifo/push", str(server.make_url("/push"))
    await server.close()
    queues.clear()


POSTS: list[tuple[str, bytes, dict[str, str]]] = [
    ("ann", b'{"b": [1.0], "a": "\xc5\xbe"}', {"Content-Type": "application/json"}),
    ("ann", b"a=1&a=2&b=", {"Content-Type": FORM}),
    ("ann?page=7&x=1", b"text", {"Content-Type": "text/plain"}),
    ("ann", b"\x00\xff", {"Content-Type": BYTES}),
    ("ann/order-1?page=7", b"{}", {"Content-Type": "application/json"}),
]


@pytest.mark.parametrize(("path", "body", "headers"), POSTS)
@pytest.mark.parametrize("server_first", [True, False])
async def test_what_either_is_sent_is_the_same_job(
    app: App, urls: tuple[str, str], path: str, body: bytes, headers: Any, server_first: bool
) -> None:
    jobs = []
    async with ClientSession() as session:
        for url in urls if server_first else urls[::-1]:
            async with session.post(f"{url}/{path}", data=body, headers=headers) as answer:
                assert answer.status == 202
                assert answer.headers["X-Job-Id"] == (await answer.json())["id"]
                jobs.append(await app.backend.get(answer.headers["X-Job-Id"]))
    first, second = jobs
    assert first.id == second.id
    assert await app.backend.count() == 1


@pytest.mark.parametrize(("path", "body", "headers"), POSTS)
async def test_a_worker_sees_no_difference(
    site: Site, urls: tuple[str, str], path: str, body: bytes, headers: Any
) -> None:
    jobs: list[Any] = []
    async with ClientSession() as session:
        for group, url in zip(("server", "library"), urls, strict=True):
            there = f"{url}/{path.replace('ann', group)}"
            async with session.post(there, data=body, headers=headers) as answer:
                id = answer.headers["X-Job-Id"]
            async with session.get(f"{site.url}/jobs/{id}") as answer:
                job = await answer.json()
            assert job["meta"]["params"].pop("group") == job["group"] == group
            jobs.append(job)
    same = ("queue", "type", "payload", "content_type", "meta", "priority", "dedupe")
    server, library = ({name: job.get(name) for name in same} for job in jobs)
    assert server == library
