"""Connections: kept open, opened again, not shared across forks; and retries."""

import asyncio
import multiprocessing
import pickle
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.backend import run
from zq.client.errors import InvalidOption
from zq.client.http.address import Address
from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.client.http.blocking import BlockingTransport
from zq.client.http.transport import (
    LONGEST_DELAY_S,
    Reply,
    Request,
    Transport,
    Unreachable,
    jittered,
    persist,
)
from zq.client.values import Submission

COUNT = Request("GET", "/jobs/count", safe=True)


@pytest.fixture(params=[AioTransport, BlockingTransport], ids=["aio", "blocking"])
async def transport(site: Site, request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    made: Transport = request.param(Address(site.url))
    yield made
    await made.close()


async def send(transport: Transport, request: Request) -> Reply:
    if isinstance(transport, BlockingTransport):
        return await asyncio.to_thread(run, transport.send(request))
    return await transport.send(request)


def accepted(site: Site) -> int:
    """Connections that the server has accepted so far."""
    return site.server.entrances[0].gate.accepted


async def test_one_connection_serves_many_requests(transport: Transport, site: Site) -> None:
    before = accepted(site)
    for _ in range(5):
        assert (await send(transport, COUNT)).status == 200

    assert accepted(site) == before + 1


async def test_a_connection_that_has_ended_is_not_used_again(
    transport: Transport, site: Site
) -> None:
    port = site.port
    request = Request("POST", "/jobs", b'{"queue":"q","type":"t","payload":1}')
    assert (await send(transport, request)).status == 201
    await site.restart(port=port)

    # It may have been stored or not, had it been sent on the old connection.
    assert (await send(transport, request)).status == 201


async def test_a_server_that_is_not_there_has_seen_nothing() -> None:
    for transport in (
        AioTransport(Address("http://127.0.0.1:1")),
        BlockingTransport(Address("http://127.0.0.1:1")),
    ):
        with pytest.raises(Unreachable) as gone:
            await send(transport, COUNT)
        assert not gone.value.sent
        assert gone.value.code == "unreachable"
        await transport.close()


async def test_a_server_that_says_nothing_may_have_seen_it() -> None:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    address = Address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    for transport in (AioTransport(address), BlockingTransport(address)):
        with pytest.raises(Unreachable) as silent:
            await send(transport, Request("GET", "/", timeout=0.05))
        assert silent.value.sent
        await transport.close()
    server.close()


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[tuple[Address, list[bytes]]]:
    """A server of few words: one for each thing that it reads, which it writes down."""
    left, read = list(answers), []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            read.append(data)
            writer.write(left.pop(0))
            if not left:
                break
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield (
        Address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/at%20%C5%BE", "secret"),
        read,
    )
    server.close()


@pytest.mark.parametrize("kind", [AioTransport, BlockingTransport])
async def test_a_request_goes_out_whole_and_at_once(kind: Any) -> None:
    async with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok") as (address, read):
        transport = kind(address)
        assert (await send(transport, Request("POST", "/jobs?a=b", b"{}"))).body == b"ok"
        await transport.close()

    host = address.url.split("/")[2]
    assert read == [
        b"POST /at%20%C5%BE/jobs?a=b HTTP/1.1\r\n"
        b"Host: " + host.encode() + b"\r\nAccept: application/json\r\n"
        b"Authorization: Bearer secret\r\n"
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    ]


@pytest.mark.parametrize("kind", [AioTransport, BlockingTransport])
@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", 200, b"to the end"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 200, b"ab"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    ],
)
async def test_answers_come_as_proxies_put_them(
    kind: Any, answer: bytes, status: int, body: bytes
) -> None:
    async with answering(answer) as (address, _):
        transport = kind(address)
        got = await send(transport, COUNT)
        assert (got.status, got.body) == (status, body)
        await transport.close()


@pytest.mark.parametrize("kind", [AioTransport, BlockingTransport])
@pytest.mark.parametrize(
    "answer", [b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n."]
)
async def test_an_answer_that_is_none_or_ends_early_leaves_the_outcome_open(
    kind: Any, answer: bytes
) -> None:
    async with answering(answer) as (address, _):
        transport = kind(address)
        with pytest.raises(Unreachable) as broken:
            await send(transport, COUNT)
        assert broken.value.sent
        await transport.close()


async def test_who_gives_up_leaves_no_answer_for_the_next() -> None:
    asked, given_up = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/first " in head:
            asked.set()
            await given_up.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n" + head[6:8])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    transport = AioTransport(Address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    asking = asyncio.create_task(transport.send(Request("POST", "/first")))
    await asyncio.wait_for(asked.wait(), PATIENCE_S)
    asking.cancel()
    await asyncio.wait([asking])
    given_up.set()

    assert (await transport.send(Request("POST", "/second"))).body == b"se"
    await transport.close()
    server.close()


@pytest.mark.parametrize("token", ["", "a b", "secret\n", "ž"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        Address("http://127.0.0.1:1", token)
    assert "secret" not in refused.value.message


def test_a_path_that_is_not_encoded_is_none() -> None:
    for path in ("/jobs/a b", "/jobs\r\nX: y", "/ž"):
        with pytest.raises(ValueError, match="not percent-encoded"):
            Address("http://127.0.0.1:1").written(Request("GET", path))


async def test_threads_do_not_share_a_connection(site: Site) -> None:
    backend = HttpBackend(Address(site.url)).blocking
    barrier = threading.Barrier(4)
    counts: list[int] = []

    def count() -> None:
        barrier.wait(PATIENCE_S)
        counts.extend(run(backend.count()) for _ in range(10))

    await asyncio.gather(*(asyncio.to_thread(count) for _ in range(4)))

    assert counts == [0] * 40
    await backend.close()


def enqueue_here(app: App, name: str, results: Any) -> None:
    results.put(app.queue("q").sync.enqueue(name, name).status)


@pytest.mark.parametrize("method", ["fork", "spawn"])
async def test_a_child_process_opens_its_own_connections(site: Site, method: Any) -> None:
    app = App(site.url)
    # A connection is open, and idle, when the child is made.
    await asyncio.to_thread(enqueue_here, app, "parent", multiprocessing.Queue())
    before = accepted(site)
    context = multiprocessing.get_context(method)
    results = context.Queue()
    child = context.Process(target=enqueue_here, args=(app, "child", results), daemon=True)
    child.start()

    assert await asyncio.to_thread(results.get, timeout=PATIENCE_S) == "queued"
    await asyncio.to_thread(child.join, PATIENCE_S)
    assert accepted(site) == before + 1
    assert (await asyncio.to_thread(app.queue("q").sync.enqueue, "parent", 1)).status == "duplicate"
    assert accepted(site) == before + 1
    await app.close()


async def test_a_fork_leaves_the_connections_of_the_parents_loop_alone(site: Site) -> None:
    before = accepted(site)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(Path(__file__).with_name("forking.py")), site.url),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        said, _ = await process.communicate()

    assert said.decode().split() == ["queued", "queued", "duplicate"]
    # Each has one connection, which the parent can still hear.
    assert accepted(site) == before + 2


def add(a: int, b: int) -> int:
    return a + b


async def test_what_programs_pass_to_executors_can_be_pickled(site: Site) -> None:
    app = App(site.url, token="secret")
    task, queue = app.task(add), app.queue("q", payload=Submission, result=set)
    queue.handler(lambda _payload: None)
    job = await task.options(key="k").enqueue(1, 2)

    copied = pickle.loads(pickle.dumps((app, task, queue.sync, job)))
    copied_app, copied_task, copied_queue, copied_job = copied

    assert (await copied_task.options(key="k").enqueue(1, 2)).id == job.id
    assert await asyncio.to_thread(copied_queue.result, "a", None) is None
    assert await copied_job.cancel() == "cancelled"
    assert copied_app.backend._address == Address(site.url, "secret")
    assert "secret" not in repr(copied_app.backend._address)
    for each in (app, copied_app, copied_task.core, copied_queue._queue.core):
        await each.backend.close()
        await each.backend.blocking.close()


def test_a_plain_script_needs_no_event_loop(tmp_path: Any) -> None:
    script = (
        "import sys, zq\n"
        "with zq.App(sys.argv[1]) as app:\n"
        "    try:\n"
        "        app.queue('q').sync.enqueue('a', 1)\n"
        "    except zq.Unavailable as error:\n"
        "        print(error.code)\n"
        "print(sorted(m for m in sys.modules if m == 'aiohttp' or m.startswith(\n"
        "    ('zq.http', 'zq.engine', 'zq.store', 'zq.runtime', 'aiosqlite', 'sqlite3', 'h2'))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, "http://127.0.0.1:1"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.stdout, done.stderr) == ("unreachable\n[]\n", "")


def test_the_package_imports_nothing_until_something_is_named() -> None:
    script = (
        "import sys, zq; print([m for m in sys.modules if m.startswith('zq.') or m == 'msgspec'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_what_uses_the_library_imports_no_server() -> None:
    script = (
        "import sys, zq, zq.client.worker.worker, zq.client.http.aio, aiohttp\n"
        "[getattr(zq, name) for name in dir(zq)]\n"
        "print(sorted(m for m in sys.modules if m.startswith(\n"
        "    ('zq.http', 'zq.engine', 'zq.store', 'zq.runtime', 'zq.cli.', 'h2', 'jq',\n"
        "     'zq.config', 'aiosqlite', 'prometheus_client', 'click', 'ulid', 'pydantic'))))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_each_public_class_and_function_says_what_it_is() -> None:
    named: dict[str, Any] = {}
    exec("from zq import *", named)
    ours = [each for each in named.values() if getattr(each, "__module__", "").startswith("zq.")]
    made = [each for each in ours if isinstance(each, type | FunctionType)]
    assert len(made) > 40
    # Editors show a parent's docstring for a class that has none.
    assert [each.__name__ for each in made if not each.__doc__] == []


def test_everything_that_the_package_names_is_there() -> None:
    for name in dir(zq):
        assert getattr(zq, name) is not None
    assert set(zq.errors.__all__) - {"refusal"} <= set(dir(zq))
    with pytest.raises(AttributeError, match="nothing_such"):
        zq.nothing_such  # noqa: B018


async def test_an_event_loop_after_another_gets_its_own_session(site: Site) -> None:
    backend = HttpBackend(Address(site.url))

    def elsewhere() -> int:
        async def count() -> int:
            found = await backend.count()
            await backend.close()
            return found

        return asyncio.run(count())

    assert await asyncio.to_thread(elsewhere) == 0
    assert await asyncio.to_thread(elsewhere) == 0
    assert await backend.count() == 0
    await backend.close()


# What is tried again


class Script:
    """Answers one after the other; remembers how long was slept between."""

    def __init__(self, *answers: Reply | Unreachable) -> None:
        self.answers = list(answers)
        self.slept: list[float] = []

    async def send(self, _: Request) -> Reply:
        answer = self.answers.pop(0)
        if isinstance(answer, Unreachable):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def reply(status: int, code: str | None = None, **headers: str) -> Reply:
    return Reply(status, headers if code is None else {"zq-error": code, **headers}, b"")


def lost(*, sent: bool) -> Unreachable:
    return Unreachable("gone", sent=sent)


OK = reply(200)
PASSING: list[tuple[Callable[[], Reply | Unreachable], bool, bool]] = [
    # what came, tried again if safe, tried again if not
    (lambda: lost(sent=False), True, True),
    (lambda: lost(sent=True), True, False),
    (lambda: reply(503, "inbox_full"), True, True),
    (lambda: reply(429, "queue_full"), True, True),
    (lambda: reply(503, "outcome_unknown"), True, False),
    (lambda: reply(500, "internal"), True, False),
    (lambda: reply(502), True, False),
    (lambda: reply(503), True, False),
    (lambda: reply(504), True, False),
    (lambda: reply(507, "storage_full"), False, False),
    (lambda: reply(400, "invalid_request"), False, False),
    (lambda: reply(404, "job_not_found"), False, False),
    (lambda: reply(409, "stale_lease"), False, False),
]


@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("case", PASSING, ids=lambda case: str(case[0]()))
async def test_only_what_can_do_no_harm_is_sent_again(
    case: tuple[Callable[[], Reply | Unreachable], bool, bool], safe: bool
) -> None:
    answer, if_safe, if_not = case
    script = Script(answer(), OK)

    try:
        got: Reply | None = await persist(
            script.send, script.sleep, Request("POST", "/", safe=safe), 3
        )
    except Unreachable:
        got = None

    again = if_safe if safe else if_not
    assert (got is OK) is again
    assert len(script.answers) == (0 if again else 1)


async def test_tries_end() -> None:
    script = Script(*[lost(sent=False)] * 5)
    with pytest.raises(Unreachable):
        await persist(script.send, script.sleep, COUNT, 3)
    assert len(script.slept) == 2
    refusals = Script(*[reply(503, "inbox_full")] * 5)
    assert (await persist(refusals.send, refusals.sleep, COUNT, 3)).status == 503


async def test_the_wait_between_tries_is_any_time_up_to_a_doubling_bound() -> None:
    for attempt in range(10):
        drawn = [jittered(attempt) for _ in range(300)]
        bound = min(LONGEST_DELAY_S, 0.1 * 2**attempt)
        assert 0 <= min(drawn) < bound * 0.2
        assert bound * 0.8 < max(drawn) <= bound
    assert jittered(10**6) <= LONGEST_DELAY_S
    # A server that asks for more time gets it, at random as well.
    assert max(jittered(0, least=3.0) for _ in range(300)) > 2


async def test_a_jobs_key_decides_whether_its_enqueue_is_safe(site: Site) -> None:
    seen: list[bool] = []

    class Watching(AioTransport):
        async def send(self, request: Request) -> Reply:
            seen.append(request.safe)
            return await super().send(request)

    address = Address(site.url)
    backend = HttpBackend(address, Watching(address))
    for scope in (None, "active", "exists"):
        key = None if scope is None else f"k-{scope}"
        await backend.enqueue([Submission("q", "t", 1, unique_key=key, unique_while=scope)])
    await backend.count()

    assert seen == [False, False, True, True]
    await backend.close()


@pytest.mark.settings(max_inbox_jobs=1)
async def test_an_enqueue_that_is_refused_for_a_moment_gets_through(site: Site) -> None:
    async with App(site.url) as app:

        @app.task
        async def work() -> None: ...

        jobs = await asyncio.gather(*(work.enqueue() for _ in range(20)))

        assert len({job.id for job in jobs}) == 20
