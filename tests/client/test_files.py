"""Queues that are files: discovery, pushes, handlers, and posts."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import FormData, web
from aiohttp.test_utils import TestClient, TestServer

import zq
from zq.client.backend import run
from zq.client.files.registry import queues
from zq.testing import run_until_idle

Write = Callable[..., Path]

RECORDING = """
import zq

seen = []

def handle(payload, job):
    seen.append((payload, job))

queue = zq.queues.self()
"""


@pytest.fixture
async def app() -> AsyncIterator[zq.App]:
    async with zq.App("sqlite://:memory:") as app:
        yield app


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Writes files of a folder of its own, and forgets its modules after the test."""
    folder = tmp_path / f"queues_{tmp_path.name}"
    folder.mkdir()
    before = set(sys.modules)

    def write(**files: str) -> Path:
        for name, text in files.items():
            (folder / f"{name.replace('__', '.')}.py").write_text(text)
        return folder

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]
    queues.clear()


def module(folder: Path, alias: str) -> Any:
    return sys.modules[f"{folder.name.replace('-', '_')}.{alias}"]


async def test_a_file_is_a_queue_with_a_handler(app: zq.App, write: Write) -> None:
    folder = write(mail=RECORDING)
    (mail,) = app.discover(folder)
    assert (str(mail), mail.queue_name, mail.fifo) == ("mail", "mail", False)
    assert mail == zq.queues["mail"] == zq.queues("mail") == zq.queues.get("mail")
    assert "mail" in zq.queues
    assert list(zq.queues) == ["mail"]

    id = await mail.push({"to": "you"}, {"page": "7"}, user="u1")
    await mail({"to": "me"})
    await run_until_idle(app)

    (payload, job), (second, _) = module(folder, "mail").seen
    assert (payload, second) == ({"to": "you"}, {"to": "me"})
    assert (job.id, job.queue, job.attempt) == (id, "mail", 1)
    assert (job.params, job.user, job.group) == ({"page": "7"}, "u1", None)
    assert job.cancelled.is_set()


async def test_a_producer_imports_the_handle_from_the_file(app: zq.App, write: Write) -> None:
    folder = write(profile__fifo=RECORDING)
    app.discover(folder)
    handle: zq.FileQueue[Any] = module(folder, "profile_fifo").queue
    assert handle.fifo
    await handle.group("g").push({"n": 1})
    await run_until_idle(app)
    assert len(module(folder, "profile_fifo").seen) == 1


@pytest.mark.parametrize("payload", ["text", '{"no": "json"}', b"\x00\xff", {}, [], 0, False])
async def test_a_payload_is_what_it_was(app: zq.App, write: Write, payload: Any) -> None:
    folder = write(mail=RECORDING)
    (mail,) = app.discover(folder)
    await mail.push(payload)
    await run_until_idle(app)
    ((received, _),) = module(folder, "mail").seen
    assert received == payload
    assert type(received) is type(payload)


@pytest.mark.parametrize("payload", [None, "", b""])
async def test_nothing_is_no_payload(app: zq.App, write: Write, payload: Any) -> None:
    (mail,) = app.discover(write(mail=RECORDING))
    with pytest.raises(zq.EmptyPayload):
        await mail.push(payload)


async def test_a_fifo_queue_runs_a_group_in_order(app: zq.App, write: Write) -> None:
    folder = write(profile__fifo=RECORDING)
    (profile,) = app.discover(folder)
    with pytest.raises(zq.MissingGroup, match=r"\.group\(id\)\.push"):
        await profile.push({"n": 0})
    ann, bob = profile.group("ann"), profile.group("bob")
    for n in range(3):
        await ann.push({"n": n})
        await bob.push({"n": n})
    await run_until_idle(app)
    seen = [(job.group, payload["n"]) for payload, job in module(folder, "profile_fifo").seen]
    assert [n for group, n in seen if group == "ann"] == [0, 1, 2]
    assert [n for group, n in seen if group == "bob"] == [0, 1, 2]
    places = [job.sequence for _, job in module(folder, "profile_fifo").seen if job.group == "ann"]
    assert places == sorted(set(places))


async def test_copies_within_a_group_are_one_job(app: zq.App, write: Write) -> None:
    (profile,) = app.discover(write(profile__fifo=RECORDING))
    ann = profile.group("ann")
    first = await ann.push({"n": 1, "m": 2})
    assert await ann.push({"m": 2, "n": 1}) == first
    assert await ann.dedupe(None).push({"n": 1, "m": 2}) != first
    assert await profile.group("bob").push({"n": 1, "m": 2}) != first
    named = await ann.dedupe("order 1").push({"n": 1})
    assert await ann.dedupe("order 1").push({"n": 2}) == named


async def test_a_queue_without_order_has_no_groups(app: zq.App, write: Write) -> None:
    (mail,) = app.discover(write(mail=RECORDING))
    with pytest.raises(zq.NotFifo, match=r"no group: .*\.fifo"):
        mail.group("g")
    with pytest.raises(zq.NotFifo, match="no dedupe"):
        mail.dedupe("d")


async def test_handles_do_not_change(app: zq.App, write: Write) -> None:
    (profile,) = app.discover(write(profile__fifo=RECORDING))
    profile.group("ann")
    with pytest.raises(zq.MissingGroup):
        await profile.push({})


def test_scripts_push_without_an_event_loop(write: Write) -> None:
    with zq.App("sqlite://:memory:") as app:
        (mail,) = app.discover(write(mail=RECORDING))
        id = mail.push_sync({"n": 1})
        assert run(app.backend.blocking.get(id)).queue == "mail"


async def test_the_first_parameter_s_annotation_makes_the_payload(
    app: zq.App, write: Write
) -> None:
    folder = write(
        orders="""
from dataclasses import dataclass

seen = []

@dataclass
class Order:
    number: int

async def handle(order: Order) -> None:
    seen.append(order)
"""
    )
    (orders,) = app.discover(folder)
    await orders.push({"number": 7})
    await run_until_idle(app)
    assert module(folder, "orders").seen[0].number == 7
    await orders.push({"number": "seven"})
    (outcome,) = await run_until_idle(app, raise_failures=False)
    assert outcome.error is not None
    assert outcome.error.error_type == "InvalidPayload"


async def test_middleware_wraps_the_jobs_of_its_folder_and_warms_up_first(
    app: zq.App, write: Write
) -> None:
    folder = write(
        _middleware="""
log = []

async def warmup():
    log.append("warm")

async def outer(job, call_next):
    log.append("outer")
    return await call_next()

async def inner(job, call_next):
    log.append(f"inner {job.queue}")
    return await call_next()

middleware = [outer, inner]
""",
        mail="async def handle(payload): pass\n",
    )
    (mail,) = app.discover(folder)

    @app.task
    async def other() -> None: ...

    await mail.push({})
    await other.enqueue()
    await run_until_idle(app)
    assert module(folder, "_middleware").log == ["warm", "outer", "inner mail"]


async def test_a_config_sets_time_and_tries(app: zq.App, write: Write) -> None:
    folder = write(
        slow="""
import asyncio
import zq

config = zq.QueueConfig(timeout=1, max_attempts=1)

async def handle(payload):
    await asyncio.Event().wait()
"""
    )
    (slow,) = app.discover(folder)
    await slow.push({})
    (outcome,) = await run_until_idle(app, raise_failures=False)
    assert (outcome.status, outcome.error and outcome.error.error_type) == ("dead", "Timeout")


@pytest.mark.parametrize("timeout", [0, 0.5, 901, -1])
def test_a_time_out_has_bounds(timeout: float) -> None:
    with pytest.raises(zq.InvalidOption, match="timeout"):
        zq.QueueConfig(timeout=timeout)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"mail": "x = 1\n"}, "function handle.* is missing"),
        ({"mail": "handle = 1\n"}, "function handle.* is missing"),
        ({"mail": "def handle(p):\n    yield p\n"}, "handle is a generator function"),
        (
            {"mail": "def handle(p): ...\nconfig = {}\n"},
            "config is not a zq.QueueConfig but a dict",
        ),
        ({"mail": "def handle(:\n"}, "SyntaxError"),
        ({"mail": "import nowhere_to_be_found\n"}, "ModuleNotFoundError"),
        ({"ma il": "def handle(p): ...\n"}, "letters, digits"),
        ({"a" * 41: "def handle(p): ...\n"}, "letters, digits"),
        ({"a__b": "def handle(p): ...\n"}, "letters, digits"),
        ({"a-b": "def handle(p): ...\n", "a_b": "def handle(p): ...\n"}, "by the same name"),
        ({"_middleware": "middleware = 1\n"}, "is not a function"),
    ],
)
async def test_a_file_that_cannot_be_used_is_named(
    app: zq.App, write: Write, files: dict[str, str], reason: str
) -> None:
    folder = write(**files)
    with pytest.raises(zq.DiscoveryError, match=reason) as refused:
        app.discover(folder)
    assert str(folder) in refused.value.message


async def test_a_folder_has_to_exist(app: zq.App, tmp_path: Path) -> None:
    with pytest.raises(zq.DiscoveryError, match="folder does not exist"):
        app.discover(tmp_path / "nowhere")


async def test_names_with_an_underscore_are_passed_over(app: zq.App, write: Write) -> None:
    assert app.discover(write(_helpers="x = 1\n")) == []


def test_self_is_for_files_only() -> None:
    with pytest.raises(zq.InvalidOption, match=r"while App\.discover imports"):
        zq.queues.self()


def test_a_queue_that_no_file_makes_is_unknown() -> None:
    with pytest.raises(zq.UnknownQueue, match=r"call App\.discover first"):
        zq.queues["nobody"]


# Posting


@pytest.fixture
async def posts(app: zq.App, write: Write) -> AsyncIterator[tuple[TestClient[Any, Any], Path]]:
    """A web app with routes to two queues."""
    folder = write(mail=RECORDING, profile__fifo=RECORDING)
    app.discover(folder)
    site = web.Application()
    mail, profile = zq.queues["mail"], zq.queues["profile.fifo"]
    site.router.add_post("/mail", mail.http)
    site.router.add_post("/text", mail.web(accepts=("text/plain",)))
    site.router.add_post("/p", profile.http)
    site.router.add_post("/p/{group}", profile.web(user=lambda request: "u7"))
    site.router.add_post("/p/{group}/{dedupe}", profile.http)
    async with TestClient(TestServer(site)) as client:
        yield client, folder


Posts = tuple[TestClient[Any, Any], Path]


async def test_what_is_posted_becomes_the_payload(app: zq.App, posts: Posts) -> None:
    client, folder = posts
    form = FormData({"a": "1"})
    form.add_field("b", "2", content_type="text/plain")
    bodies: list[tuple[dict[str, Any], Any]] = [
        ({"json": {"n": 1}}, {"n": 1}),
        ({"data": b'{"n": 2}'}, {"n": 2}),
        ({"data": {"x": "1", "y": "ž"}}, {"x": "1", "y": "ž"}),
        ({"data": form}, {"a": "1", "b": "2"}),
        ({"data": "x=1&x=2&x=3", "headers": {"Content-Type": URLENCODED}}, {"x": ["1", "2", "3"]}),
        ({"data": "[1]", "headers": {"Content-Type": "text/plain; charset=utf-8"}}, "[1]"),
        ({"data": b"\xff\x00", "headers": {"Content-Type": "application/octet-stream"}}, b"\xff\0"),
    ]
    for request, _ in bodies:
        if request.get("data") == b'{"n": 2}':
            request["headers"] = {"Content-Type": "application/json"}
        answer = await client.post("/mail?page=7", **request)
        assert answer.status == 202, await answer.text()
        assert answer.headers["X-Job-Id"] == (await answer.json())["id"]
    await run_until_idle(app)
    seen = module(folder, "mail").seen
    assert [payload for payload, _ in seen] == [payload for _, payload in bodies]
    assert {job.params["page"] for _, job in seen} == {"7"}


URLENCODED = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("path", "body", "kind", "status"),
    [
        ("/mail", b"<x/>", "application/xml", 415),
        ("/text", b"{}", "application/json", 415),
        ("/mail", b"{", "application/json", 422),
        ("/mail", b"", "application/json", 422),
        ("/mail", b"null", "application/json", 422),
        ("/mail", b"\xff", "text/plain", 422),
        ("/mail", b"\xff=1", URLENCODED, 422),
        ("/mail", b"no field", URLENCODED, 422),
        ("/mail", b"no parts", "multipart/form-data; boundary=x", 422),
        ("/p", b"{}", "application/json", 422),
    ],
)
async def test_what_cannot_be_pushed_is_refused(
    app: zq.App, posts: Posts, path: str, body: bytes, kind: str, status: int
) -> None:
    client, _ = posts
    answer = await client.post(path, data=body, headers={"Content-Type": kind})
    assert answer.status == status
    assert (await answer.json())["error"]
    assert await app.backend.count() == 0


async def test_a_file_of_a_form_is_refused(posts: Posts) -> None:
    client, _ = posts
    form = FormData()
    form.add_field("photo", b"...", filename="me.png")
    answer = await client.post("/mail", data=form)
    assert answer.status == 422
    assert "post it alone" in (await answer.json())["error"]


async def test_a_route_tells_group_and_copy(app: zq.App, posts: Posts) -> None:
    client, folder = posts
    first = await client.post("/p/ann/order-1", json={"n": 1})
    again = await client.post("/p/ann/order-1", json={"n": 2})
    assert first.headers["X-Job-Id"] == again.headers["X-Job-Id"]
    await client.post("/p/bob", json={"n": 3})
    await run_until_idle(app)
    seen = module(folder, "profile_fifo").seen
    assert {job.group: (payload["n"], job.user) for payload, job in seen} == {
        "ann": (1, None),
        "bob": (3, "u7"),
    }
