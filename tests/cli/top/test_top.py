"""`zq top` on a test's terminal, with a real zq server and with the original."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from conformance.streams import PATIENCE_S, pause
from documents import code
from process.server import clean_environment

from bench.ports import free_port

from .terminal import terminal
from .watched import HOUR_MS, ORIGINAL, Display, Watched, display, original, watched

ABSENT = "the original is not at hand: name its program in ZIZQ"
BOTH = ["zq", pytest.param("zizq", marks=pytest.mark.skipif(ORIGINAL is None, reason=ABSENT))]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Watched]:
    async with watched(tmp_path / "data") as server:
        yield server


@pytest.fixture(params=BOTH)
async def either(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Watched]:
    started = watched if request.param == "zq" else original
    async with started(tmp_path / "data") as server:
        yield server


@contextlib.asynccontextmanager
async def listed(name: str, either: Watched) -> AsyncIterator[tuple[Display, list[str]]]:
    """A display of one of the three lists with forty jobs, and their ids."""
    later = {"ready_at": time.time_ns() // 1_000_000 + HOUR_MS}
    ids = await either.fill(40, **(later if name == "scheduled" else {}))
    async with AsyncExitStack() as stack:
        if name == "in_flight":
            await stack.enter_async_context(either.holding(40))
        shown = await stack.enter_async_context(display(either))
        await shown.press({"in_flight": "4", "ready": "5", "scheduled": "6"}[name])
        await shown.until(lambda: len(shown.rows) >= 10)
        column = {"in_flight": "DURATION", "ready": "DELAY", "scheduled": "DUE"}[name]
        assert column in shown.heading
        await shown.until(lambda: f"{name.replace('_', '-')} 40" in shown.head)
        # In flight, jobs that were taken together lie in the order of their ids as well.
        await shown.at(ids[0])
        yield shown, ids


async def test_every_key_in_a_list(either: Watched) -> None:
    async with listed("ready", either) as (shown, ids):
        await shown.press("j", "down", "k")
        await shown.at(ids[1])
        await shown.press("G")
        await shown.at(ids[39])
        await shown.press("g", "pagedown")
        await shown.until(lambda: shown.cursor not in ids[:3])
        await shown.press("pageup", "home")
        await shown.at(ids[0])
        await shown.press("end")
        await shown.at(ids[39])

        await shown.press("home", "slash", *"type-2", "tab", *"q2", "enter")
        await shown.at(ids[2])
        await shown.press("n")
        await shown.at(ids[20])
        await shown.press("N")
        await shown.at(ids[2])
        await shown.press("slash", "escape", "escape")
        assert shown.cursor == ids[2]

        await shown.press("i")
        await shown.until(lambda: f"id           {ids[2]}" in shown.details)
        await shown.press("i")
        assert shown.details == ""

        await shown.press("D", "n")
        await shown.press("p")
        assert "PAUSED" in shown.head
        frozen = shown.rows
        await shown.press("D", "q", "D", "y")
        await shown.until(lambda: "ready 39" in shown.head)
        assert [row[0] for row in shown.rows] == [row[0] for row in frozen]
        await shown.press("p")
        await shown.until(lambda: ids[2] not in [row[0] for row in shown.rows])

        await shown.press("right", "right")
        assert "PRIORITY" in shown.heading
        assert shown.rows[0][0] != ids[0]
        await shown.press("left", "left", "question_mark", "escape")
        await shown.press("tab", "tab", "shift+tab", "shift+tab")
        assert "DELAY" in shown.heading
        await shown.press("y")
        assert shown.app.clipboard == shown.cursor


@pytest.mark.parametrize("name", ["in_flight", "scheduled"])
async def test_the_other_lists_are_walked_shown_and_deleted_from(
    name: str, either: Watched
) -> None:
    async with listed(name, either) as (shown, ids):
        await shown.press("G")
        await shown.at(ids[39])
        await shown.press("home", "j", "j", "i")
        await shown.until(lambda: f"id           {ids[2]}" in shown.details)
        await shown.press("i", "D", "y")
        await shown.until(lambda: f"{name.replace('_', '-')} 39" in shown.head)
        await shown.until(lambda: ids[2] not in [row[0] for row in shown.rows])


async def test_the_cursor_follows_its_job_while_others_are_taken(either: Watched) -> None:
    ids = await either.fill(9)
    async with display(either) as shown:
        await shown.until(lambda: len(shown.rows) == 9)
        await shown.press(*"jjjjj")
        await shown.at(ids[5])
        async with either.holding(3):
            await shown.until(lambda: len(shown.rows) == 6)
            await shown.at(ids[5])
        await shown.until(lambda: len(shown.rows) == 9)
        await shown.at(ids[5])
        await shown.press("escape")
        async with either.holding(3):
            await shown.until(lambda: len(shown.rows) == 6)


async def test_a_list_is_read_on_beyond_what_was_asked_for_first(server: Watched) -> None:
    places = {job_id: place for place, job_id in enumerate(await server.fill(1000))}
    async with display(server) as shown:
        await shown.until(lambda: len(shown.rows) == shown.app.lists.rows > 10)

        def place() -> int:
            """Where the cursor is among all jobs, -1 where it is not in sight."""
            seen = [places[row[0]] for row in shown.rows]
            assert seen == list(range(min(seen, default=0), max(seen, default=-1) + 1))
            return places.get(shown.cursor, -1)

        async def turn(key: str, least: int, most: int) -> None:
            """Turn a page, which a line more above the table makes shorter, whenever it comes."""
            left = place()
            await shown.press(key)
            await shown.until(lambda: least < place() - left < most)

        for _ in range(8):
            await turn("pagedown", 10, 30)
        await shown.press("G")
        await shown.until(lambda: place() == 999)
        for _ in range(8):
            await turn("pageup", -30, -10)


async def test_a_search_without_a_match_says_so(either: Watched) -> None:
    await either.fill(3)
    async with display(either) as shown:
        await shown.press("n")
        await shown.until(lambda: "press /" in shown.keys)
        await shown.press("slash", *"nobody", "enter")
        await shown.until(lambda: "no such job" in shown.keys)


async def test_names_cannot_control_the_terminal(server: Watched) -> None:
    job = {"queue": "q", "type": "\x1b2J\u202e", "payload": "\x1b]0;x\x07"}
    await server.post("/jobs", job)
    async with display(server) as shown:
        await shown.until(lambda: len(shown.rows) == 1)
        await shown.press("i")
        await shown.until(lambda: "payload" in shown.details)
        assert "\x1b" not in shown.details + "".join(map("".join, shown.rows))
        assert "\\x1b2J" in shown.details


@pytest.mark.parametrize("size", [(60, 10), (80, 24), (160, 30)])
async def test_every_size_has_room_for_jobs(size: tuple[int, int], server: Watched) -> None:
    await server.fill(50)
    async with display(server, *size) as shown:
        await shown.until(lambda: len(shown.rows) == size[1] - 7)
        assert len(shown.heading) == size[0]
        await shown.pilot.resize_terminal(100, 20)
        await shown.until(lambda: len(shown.rows) == 13)


async def test_it_comes_back_when_the_server_does(tmp_path: Path) -> None:
    port = str(free_port())
    async with watched(tmp_path / "data", port) as first:
        await first.fill(3)
        stack = AsyncExitStack()
        shown = await stack.enter_async_context(display(first))
        await shown.until(lambda: len(shown.rows) == 3)
    async with stack:
        await shown.until(lambda: "! not connected" in shown.head)
        async with watched(tmp_path / "data", port):
            await shown.until(lambda: "* connected" in shown.head and len(shown.rows) == 3)


async def zq_top(*words: str, **variables: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zq.cli", "top", *words),
        env=clean_environment() | variables,
        stdout=PIPE,
        stderr=PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


async def test_a_table_for_pipes_and_a_document_for_scripts(either: Watched) -> None:
    ids = await either.fill(5)
    code, output, errors = await zq_top("--url", either.admin_url)
    assert (code, errors) == (0, f"server: {either.admin_url}\n")
    assert "in-flight 0  ready 5  scheduled 0" in output
    assert [line.split()[0] for line in output.splitlines()[-5:]] == ids
    code, output, errors = await zq_top("--url", either.admin_url, "--json", "--once")
    assert (code, errors) == (0, "")
    document = json.loads(output)
    assert document["server"]["total_ready"] == 5
    assert [job["id"] for job in document["ready"]] == ids
    assert (document["in_flight"], document["scheduled"]) == ([], [])


async def test_each_list_is_shown_up_to_its_twentieth_job(either: Watched) -> None:
    soon = {"ready_at": time.time_ns() // 1_000_000 + HOUR_MS}
    ready, scheduled = await either.fill(25), await either.fill(25, **soon)
    code, output, errors = await zq_top("--url", either.admin_url, "--json", "--once")
    assert (code, errors) == (0, "")
    document = json.loads(output)
    assert document["server"]["total_scheduled"] == 25
    shown = [[job["id"] for job in document[name]] for name in ("ready", "scheduled")]
    assert shown == [ready[:20], scheduled[:20]]
    code, output, errors = await zq_top("--url", either.admin_url)
    assert "ready: the first 20 of 25" in output.lower()
    assert "scheduled: the first 20 of 25" in output.lower()


async def test_documents_go_on_and_are_of_their_time(either: Watched) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zq.cli", "top", "--json", "-r", "50ms"),
        *("--url", either.admin_url),
        env=clean_environment(),
        stdout=PIPE,
    )
    assert process.stdout is not None
    ids: list[str] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            # Idle for some documents, then with a job more.
            for number in range(9):
                ids += await either.fill(number % 3 // 2)
                shown = None
                while shown != ids:
                    document = json.loads(await process.stdout.readline())
                    shown = [job["id"] for job in document["ready"]]
    finally:
        process.kill()
        await process.wait()


async def test_without_a_display_no_library_for_displays_is_needed(
    server: Watched, tmp_path: Path
) -> None:
    missing = 'raise ModuleNotFoundError("not installed", name="textual")'
    (tmp_path / "textual.py").write_text(missing)
    code, output, errors = await zq_top("--url", server.admin_url, PYTHONPATH=str(tmp_path))
    assert (code, errors) == (0, f"server: {server.admin_url}\n")
    assert "in-flight 0" in output


async def test_the_commands_of_the_documents(server: Watched) -> None:
    lines = code("top").splitlines()
    assert len(lines) == 2
    for line in lines:
        prompt, name, command, *words = shlex.split(line)
        assert (prompt, name, command) == ("$", "zq", "top")
        exit_code, output, errors = await zq_top(*words, ZQ_URL=server.url)
        told = f"server: {server.url}, by its admin listener {server.admin_url}\n"
        assert (exit_code, errors) == (0, "" if "--json" in words else told)
        assert "127.0.0.1" in output or '"version"' in output


async def test_no_listener_and_the_wrong_one_are_told_in_a_line(server: Watched) -> None:
    code, output, errors = await zq_top("--url", "http://127.0.0.1:1")
    assert (code, output) == (3, "")
    assert errors.startswith("Error: no zq server answers at http://127.0.0.1:1")
    code, output, errors = await zq_top("--admin-url", server.url)
    assert (code, output) == (1, "")
    assert "8901" in errors


async def test_it_draws_on_a_terminal_and_leaves_it_as_it_was(server: Watched) -> None:
    ids = await server.fill(3)
    program = (sys.executable, "-m", "zq.cli", "top", "--url", server.admin_url)
    async with terminal(*program, NO_COLOR="1") as screen:
        await screen.shows("[1 Queues]")
        screen.type("5")
        for each in ids:
            await screen.shows(each)
        screen.forget()
        screen.type("q")
        assert await screen.ended() == 0
        await screen.shows("\x1b[?1049l")  # back to what the terminal showed before


async def test_it_can_be_suspended_and_goes_on(server: Watched) -> None:
    ids = await server.fill(3)
    program = (sys.executable, "-m", "zq.cli", "top", "--url", server.admin_url)
    async with terminal(*program) as screen:
        await screen.shows("1 Queues")
        screen.type("5")
        await screen.shows(ids[2])
        screen.forget()
        screen.type("\x1a")
        await screen.shows("\x1b[?1049l")
        pid = screen.process.pid
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WSTOPPED)
        screen.forget()
        os.kill(pid, signal.SIGCONT)
        await screen.shows(ids[2])
        screen.type("\x03")
        assert await screen.ended() == 0


@pytest.mark.skipif(ORIGINAL is None, reason=ABSENT)
async def test_the_display_of_the_original_suits_our_listener(server: Watched) -> None:
    assert ORIGINAL is not None
    ids = await server.fill(9)
    async with terminal(ORIGINAL, "top", "--url", server.admin_url) as screen:
        await screen.shows("Connected")
        screen.type("\t")  # from the jobs in flight to those that are ready
        await screen.shows(ids[8])
        screen.type("jjD")
        await screen.shows("Delete job")
        screen.forget()
        screen.type("y")
        async with asyncio.timeout(PATIENCE_S):
            while await server.stored() != 8:
                await pause()
        screen.type("q")
        assert await screen.ended() == 0
