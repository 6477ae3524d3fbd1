"""`zq push`: one job, and files of them."""

import asyncio
import io
import json
import os
import pty
import re
import signal
from asyncio.subprocess import PIPE
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conformance.streams import PATIENCE_S, pause
from msgspec import Raw
from process.server import running

import zq
from zq.cli.bulk import BATCH_JOBS, JobLine, Load, Stopped
from zq.client.values import JobQuery, StoredJob

from .shell import Shell, ended

NOBODY = "http://127.0.0.1:1"


async def payloads(shell: Shell) -> list[Any]:
    return [job.payload for job in (await shell.backend.jobs(limit=2000)).jobs]


def write(shell: Shell, *lines: object) -> str:
    file = shell.directory / "jobs.ndjson"
    file.write_text(
        "".join(f"{line if type(line) is str else json.dumps(line)}\n" for line in lines)
    )
    return str(file)


async def test_a_payload_of_several_words_is_refused_with_what_to_do(shell: Shell) -> None:
    for words in (("mail", "welcome", '{"to": 1}'), ("mail", "hello", "world", "--type", "t")):
        said = await shell.zq("push", *words)
        assert (said.code, said.output) == (2, "")
        assert "put it into quotes" in said.errors and "--type" in said.errors
    assert await payloads(shell) == []


@pytest.mark.parametrize(
    ("words", "payload"),
    [
        (('{"a": [1, null]}',), {"a": [1, None]}),
        (("hello",), "hello"),
        (("17",), 17),
        (("null",), None),
        (('{"a"', "--text"), '{"a"'),
        (("17", "--text"), "17"),
        (("@letter.json",), {"to": "ann"}),
        (("-",), ["from", "stdin"]),
    ],
)
async def test_a_payload_is_json_or_else_text(
    shell: Shell, words: tuple[str, ...], payload: Any
) -> None:
    (shell.directory / "letter.json").write_text('{"to": "ann"}')
    said = await shell.zq("push", "mail", *words, stdin=b'["from", "stdin"]')
    assert said.code == 0, said
    (job,) = (await shell.backend.jobs()).jobs
    assert said.output == f"{job.id}\n"
    assert (job.queue, job.type, job.payload) == ("mail", "mail", payload)


async def test_a_terminal_is_asked_for_the_payload(shell: Shell) -> None:
    leader, follower = pty.openpty()
    process = await shell.start("push", "mail", stdin=follower)
    os.close(follower)
    os.write(leader, b"hello\n")
    said = await ended(process)
    os.close(leader)
    assert (said.code, said.errors.startswith("Payload: ")) == (0, True)
    assert await payloads(shell) == ["hello"]


async def test_options_are_those_of_the_job(shell: Shell) -> None:
    words = ("--type", "letter", "--group", "ann", "--key", "k", "--priority", "0")
    said = await shell.zq("push", "mail", "1", *words, "--delay", "1h", "--json")
    (told,) = said.documents
    job = await shell.backend.get(told["id"])
    assert (job.type, job.group, job.unique_key, job.priority) == ("letter", "ann", "k", 0)
    assert job.status == told["status"] == "scheduled"
    assert 3_590_000 < job.ready_at - job.created_at <= 3_600_000


async def test_a_copy_is_the_job_that_was_there(shell: Shell) -> None:
    first = await shell.zq("push", "mail", "1", "--dedupe", "d")
    second = await shell.zq("push", "mail", "2", "--dedupe", "d")
    assert (second.code, second.output) == (0, first.output)
    assert "existed already" in second.errors
    assert await payloads(shell) == [1]


async def test_it_waits_for_the_result(shell: Shell) -> None:
    process = await shell.start("push", "sums", "[1, 2]", "--wait")
    await shell.finish("sums", {"sum": 3})
    said = await ended(process)
    assert (said.code, said.documents) == (0, [{"sum": 3}])


async def test_who_waits_for_a_job_that_fails_is_told_why(shell: Shell) -> None:
    process = await shell.start("push", "sums", "[1]", "--wait", "--json")
    job = await shell.finish("sums", error="two are needed")
    said = await ended(process)
    assert said.code == 1
    assert said.errors == (
        f"Error: {job.id} is dead after it failed once: ValueError: two are needed\n"
    )
    assert said.documents[0]["status"] == "dead"


DEEP = "[" * 5000 + "]" * 5000
NO_TEXT = os.fsdecode(b"\xff")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "name a queue"),
        (("mail",), "give a payload"),
        (("mail", ""), "the payload is empty"),
        (("mail", "@nowhere"), "nowhere: No such file"),
        (("mail", '{"a"'), "looks like JSON but is not"),
        (("mail", DEEP), "looks like JSON but is not"),
        (("mail", NO_TEXT), "TEXT|@FILE|-]': it is no text in UTF-8"),
        (("mail", NO_TEXT, "--text"), "it is no text in UTF-8"),
        ((NO_TEXT, "1"), "it is no text in UTF-8"),
        (("mail", "1", "--group", NO_TEXT), "'--group': it is no text in UTF-8"),
        (("--queue", "mail", "hello"), "the queue stands first: zq push QUEUE PAYLOAD"),
        (("mail", "1", "--timeout", "1s"), "--wait"),
        (("mail", "1", "--from-line", "2"), "--file"),
        (("mail", "1", "--priority", "65536"), "priority"),
        (("mail", "1", "--delay", "soon"), "not a duration"),
        (("mail", "1", "--file", "-"), "not both"),
        (("--file", "-", "--payloads"), "needs a queue"),
        (("--file", "-", "--wait"), "--wait is for one job"),
        (("mail", "--file", "-", "--key", "k"), "unique_key"),
        (("mail", "--file", "nowhere"), "does not exist"),
        (("mail", "1", "--url", "ftp://here"), "not the address"),
    ],
)
async def test_a_wrong_word_gives_2_and_stores_nothing(
    shell: Shell, words: tuple[str, ...], complaint: str
) -> None:
    said = await shell.zq("push", *words)
    assert said.code == 2
    assert complaint in said.errors
    assert await payloads(shell) == []


async def test_a_refusal_gives_1_and_its_reason_on_one_line(shell: Shell) -> None:
    said = await shell.zq("push", "mail", "1", "--type", "a,b")
    assert (said.code, said.output, said.errors.count("\n")) == (1, "", 1)
    assert "type" in said.errors


async def test_no_server_gives_3_and_says_where_it_was_sought(shell: Shell) -> None:
    for words in (("mail", "1"), ("mail", "--file", write(shell, {"payload": 1}))):
        said = await shell.zq("push", *words, url=NOBODY)
        assert said.code == 3
        assert NOBODY in said.errors
        assert "zq serve" in said.errors


# Files


async def test_a_file_is_stored_in_its_order(shell: Shell) -> None:
    count = BATCH_JOBS + 500
    file = write(shell, *({"queue": "mail", "payload": n} for n in range(count)))
    said = await shell.zq("push", "--file", file)
    assert (said.code, said.output) == (0, "1,500 jobs stored\n")
    assert await payloads(shell) == list(range(count))


async def test_options_count_for_lines_that_say_nothing_else(shell: Shell) -> None:
    file = write(
        shell, {"payload": 1}, "", {"queue": "sums", "type": "add", "payload": 2, "priority": 7}
    )
    said = await shell.zq("push", "mail", "--file", file, "--priority", "0", "--json")
    assert said.documents == [{"stored": 2, "duplicates": 0}]
    first, second = (await shell.backend.jobs()).jobs
    assert (first.queue, first.type, first.priority) == ("mail", "mail", 0)
    assert (second.queue, second.type, second.priority) == ("sums", "add", 7)


async def test_lines_may_be_payloads_and_come_from_a_pipe(shell: Shell) -> None:
    lines = b'1\n\n{"queue": "x"}\n"text"'
    said = await shell.zq("push", "mail", "--file", "-", "--payloads", stdin=lines)
    assert said.code == 0, said
    assert await payloads(shell) == [1, {"queue": "x"}, "text"]


@pytest.mark.parametrize("shell", [{"max_bulk_items": 3}], indirect=True)
async def test_requests_become_as_small_as_the_server_wants_them(shell: Shell) -> None:
    file = write(shell, *range(20))
    said = await shell.zq("push", "mail", "--file", file, "--payloads")
    assert said.code == 0, said
    assert await payloads(shell) == list(range(20))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"payload": ', "truncated"),
        (f'{{"payload": {DEEP}}}', "the line is not a job"),
        ('{"payload": 1, "prio": 2}', "unknown field `prio`"),
        ('{"payload": 1, "retention": {"completd_ms": 2}}', "unknown field `completd_ms`"),
        ('{"payload": 1, "dedupe": {"id": "n", "windw_ms": 2}}', "unknown field `windw_ms`"),
        (
            '{"payload": 1, "backoff": {"exponent": 1, "base_ms": 1, "jitter_ms": 1, "max": 2}}',
            "unknown field `max`",
        ),
        ('{"queue": "mail"}', "missing required field `payload`"),
        ('{"payload": 1, "queue": "a,b"}', "queue"),
        ('{"payload": 1, "priority": 70000}', "priority"),
    ],
)
async def test_it_names_the_line_that_is_wrong_and_goes_on_from_it(
    shell: Shell, bad: str, reason: str
) -> None:
    good = [{"payload": n} for n in range(10)]
    file = write(shell, *good[:6], bad, *good[6:])
    said = await shell.zq("push", "mail", "--file", file, "--json")
    assert said.code == 1
    assert said.documents == [{"stored": 6, "duplicates": 0, "stopped_at": 7, "doubtful_to": 0}]
    assert reason in said.errors
    assert said.errors.endswith("Continue with --from-line 7\n")
    assert await payloads(shell) == list(range(6))
    write(shell, *good[:6], '{"payload": "mended"}', *good[6:])
    said = await shell.zq("push", "mail", "--file", file, "--from-line", "7")
    assert said.code == 0
    assert await payloads(shell) == [*range(6), "mended", *range(6, 10)]


async def test_a_server_that_dies_leaves_a_line_to_go_on_from(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as server:
        url = f"http://127.0.0.1:{server.port}"
        async with zq.App(url) as app:
            shell = Shell(url, app.backend, tmp_path)
            # The pipe stays open, so that the command is under way when the server dies.
            process = await shell.start("push", "mail", "--file", "-", "--payloads", stdin=PIPE)
            assert process.stdin is not None
            process.stdin.write(b"1\n" * (BATCH_JOBS * 2 + 1))
            await process.stdin.drain()
            # The second request is sent when the first one has been answered.
            async with asyncio.timeout(PATIENCE_S):
                while await shell.backend.count(JobQuery()) < BATCH_JOBS * 2:
                    await pause()
            await server.kill()
            said = await ended(process, b"2\n" * BATCH_JOBS * 2)
            assert said.code == 3
            line = int(said.errors.partition("Stopped at line ")[2].split()[0])
            assert line in (BATCH_JOBS + 1, BATCH_JOBS * 2 + 1)


async def interrupted(process: asyncio.subprocess.Process) -> int:
    """Press Ctrl-C until a process ends. Return its exit code.

    A signal that comes just before a read of a pipe begins is not seen before that ends.
    """
    async with asyncio.timeout(PATIENCE_S):
        while True:
            process.send_signal(signal.SIGINT)
            with suppress(TimeoutError):
                return await asyncio.wait_for(process.wait(), 10)


async def test_an_interruption_leaves_a_line_to_go_on_from(shell: Shell) -> None:
    process = await shell.start("push", "mail", "--file", "-", "--payloads", stdin=PIPE)
    assert process.stdin is not None
    process.stdin.write(b"1\n" * (BATCH_JOBS + 1))
    await process.stdin.drain()
    async with asyncio.timeout(PATIENCE_S):
        while await shell.backend.count(JobQuery()) < BATCH_JOBS:
            await pause()
    # The end of the pipe would be the end of the file: it stays open until the command has ended.
    code = await interrupted(process)
    said = await ended(process)
    assert code == 1
    assert said.errors.startswith("Error: interrupted. Stopped at line ")
    # Whether the answer was on its way or had arrived, all that follows was not sent.
    assert re.search("--from-line 1001( leaves them out)?\n$", said.errors)
    assert await shell.backend.count(JobQuery()) == BATCH_JOBS


class InterruptedLoad(Load):
    """A load that is interrupted when it sets an attribute after its first request."""

    at = ""

    def __setattr__(self, name: str, value: object) -> None:
        if name == self.at and self.sent:
            raise KeyboardInterrupt
        super().__setattr__(name, value)


@pytest.mark.parametrize("at", ["duplicates", "stored", "next_line"])
async def test_an_interruption_while_an_answer_is_counted_leaves_its_lines_in_doubt(
    shell: Shell, at: str
) -> None:
    with zq.App(shell.url) as app:
        backend = app.backend.blocking
        load = InterruptedLoad(backend, JobLine(queue="mail", payload=Raw(b"null")), payloads=True)
        load.at = at
        with pytest.raises(Stopped) as stopped:
            await asyncio.to_thread(load.run, io.BytesIO(b"1\n" * 3))
    assert (stopped.value.line, stopped.value.doubtful) == (1, 3)
    assert await shell.backend.count(JobQuery()) == 3


class CountedLoad(Load):
    """A load that counts its requests."""

    requests = 0

    async def _enqueue(self, jobs: list[JobLine]) -> list[StoredJob]:
        self.requests += 1
        return await super()._enqueue(jobs)


async def test_the_server_names_a_line_that_it_refuses(shell: Shell) -> None:
    lines = [b'{"queue": "mail", "type": "t", "payload": 1}\n'] * BATCH_JOBS
    lines[700] = lines[700].replace(b"mail", b"a,b")
    with zq.App(shell.url) as app:
        load = CountedLoad(app.backend.blocking, JobLine(payload=Raw(b"null")))
        with pytest.raises(Stopped) as stopped:
            await asyncio.to_thread(load.run, io.BytesIO(b"".join(lines)))
    assert stopped.value.line == 701
    assert await shell.backend.count(JobQuery()) == 700
    # Halves would take ten requests to come down to the line.
    assert load.requests == 4


async def test_lines_that_may_be_stored_are_named(shell: Shell) -> None:
    async def take_and_hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    file = write(shell, 1, 2, 3)
    async with await asyncio.start_server(take_and_hang_up, "127.0.0.1", 0) as deaf:
        url = f"http://127.0.0.1:{deaf.sockets[0].getsockname()[1]}"
        words = ("push", "mail", "--file", file, "--payloads", "--json")
        said = await shell.zq(*words, url=url)
    assert said.code == 3
    assert said.documents == [{"stored": 0, "duplicates": 0, "stopped_at": 1, "doubtful_to": 3}]
    assert "lines 1 to 3 may be stored. --from-line 1 sends them again" in said.errors
    assert said.errors.endswith("--from-line 4 leaves them out\n")


async def test_a_terminal_shows_how_far_it_is(shell: Shell) -> None:
    file = write(shell, *range(BATCH_JOBS * 3))
    said = await shell.on_terminal("push", "mail", "--file", file, "--payloads")
    assert "100%" in said
    assert said.endswith("3,000 jobs stored\r\n")
