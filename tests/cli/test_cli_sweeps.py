"""Commands that change many jobs: they count, ask, and leave later jobs alone; `zq sweeps`."""

import asyncio
import os
import pty
import sys

import pytest
from conformance.streams import PATIENCE_S
from process.server import clean_environment

from zq.client.values import JobQuery

from .shell import Shell


async def count(shell: Shell, status: str) -> int:
    return await shell.backend.count(JobQuery((status,), ("mail",)))  # type: ignore[arg-type]


async def asked(
    shell: Shell, *words: str, until: str, answer: str, meanwhile: object = None
) -> str:
    """What a command prints on a terminal on which its question gets an answer."""
    leader, follower = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zq.cli", *words),
        env=clean_environment() | {"ZQ_URL": shell.url, "TERM": "xterm", "COLUMNS": "200"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    text = ""
    async with asyncio.timeout(PATIENCE_S):
        while until not in text:
            text += (await asyncio.to_thread(os.read, leader, 65536)).decode()
        if meanwhile is not None:
            await meanwhile  # type: ignore[misc]
        os.write(leader, f"{answer}\n".encode())
        while True:
            try:
                text += (await asyncio.to_thread(os.read, leader, 65536)).decode()
            except OSError:  # EIO: the command has ended
                break
        await process.wait()
    os.close(leader)
    return f"{text}[{process.returncode}]"


async def test_a_job_that_arrives_between_question_and_answer_is_left_alone(shell: Shell) -> None:
    await shell.push(1, 2)
    said = await asked(
        shell,
        *("cancel", "--queue", "mail"),
        until="Go on?",
        answer="y",
        meanwhile=shell.push("late"),
    )
    assert "This cancels 2 jobs, up to " in said
    assert "2 jobs cancelled" in said
    assert (await count(shell, "cancelled"), await count(shell, "ready")) == (2, 1)


async def test_a_no_changes_nothing(shell: Shell) -> None:
    await shell.push(1)
    said = await asked(shell, "cancel", "--type", "letter", until="Go on?", answer="n")
    assert "nothing was changed" in said and said.endswith("[1]")
    assert await count(shell, "ready") == 1


async def test_who_cannot_be_asked_has_to_say_yes(shell: Shell) -> None:
    await shell.push(1)
    said = await shell.zq("cancel", "--queue", "mail")
    assert (said.code, said.output) == (1, "")
    assert "This cancels 1 job, up to " in said.errors
    assert "give --yes" in said.errors
    assert await count(shell, "ready") == 1
    # Where nothing matches, there is nothing to ask.
    assert (await shell.zq("cancel", "--queue", "other")).output == "0 jobs cancelled\n"


async def test_an_id_of_an_earlier_look_bounds_the_change(shell: Shell) -> None:
    await shell.push(1)
    seen = await shell.backend.sweeps.preview("cancel", JobQuery(queues=("mail",)))
    await shell.push(2)
    words = ("cancel", "--queue", "mail", "--upto", seen.upto, "--yes", "--json")
    assert (await shell.zq(*words)).documents == [{"cancelled": 1}]
    (sweep,) = await shell.backend.sweeps.ended(1)
    assert (sweep.counted, sweep.by["upto"]) == (1, seen.upto)


async def test_dead_jobs_are_brought_back_up_to_the_look(shell: Shell) -> None:
    await shell.push(1, 2, 3)
    for _ in range(3):
        await shell.finish("mail", error="boom")
    refused = await shell.zq("requeue", "--queue", "mail", "--limit", "2")
    assert "This requeues 2 jobs, up to" in refused.errors
    said = await shell.zq("requeue", "--queue", "mail", "--yes", "--reason", "mended")
    assert said.output == "3 jobs requeued\n"
    (sweep,) = await shell.backend.sweeps.ended(1)
    assert (sweep.verb, sweep.reason) == ("requeue", "mended")


async def test_a_cancellation_is_listed_and_taken_back(shell: Shell) -> None:
    jobs = await shell.push(1, 2, 3)
    await shell.backend.cancel(jobs[0].id)
    await shell.zq("cancel", "--queue", "mail", "--yes", "--reason", "wrong list")
    listed = await shell.zq("sweeps", "list")
    (_, row) = listed.table
    assert row[:5] == ["1", "cancel", "done", "2", "2"]
    assert "wrong list" in row
    assert "queue=mail" in row[-1]
    (document,) = (await shell.zq("sweeps", "list", "--json")).documents
    assert (document["id"], document["state"], document["undone"]) == ("1", "done", 0)
    refused = await shell.zq("sweeps", "undo", "1")
    assert refused.code == 1
    assert "This takes back 2 of 2 jobs that sweep 1 has cancelled" in refused.errors
    said = await shell.zq("sweeps", "undo", "1", "--yes", "--reason", "right after all")
    assert (said.code, said.output) == (0, "2 jobs brought back\n")
    assert (await count(shell, "ready"), await count(shell, "cancelled")) == (2, 1)
    again = await shell.zq("sweeps", "undo", "1", "--yes")
    assert (again.code, again.output) == (1, "")
    assert "2 were taken back before" in again.errors


async def test_what_stays_cancelled_is_told(shell: Shell) -> None:
    await shell.push(1, unique_key="k")
    (gone,) = await shell.push(2)
    await shell.zq("cancel", "--queue", "mail", "--yes")
    await shell.push(3, unique_key="k")
    said = await shell.zq("sweeps", "undo", "1", "--yes")
    assert said.output.splitlines() == [
        "1 job brought back",
        "1 stay cancelled, for another job has their unique key",
    ]
    assert (await shell.backend.get(gone.id)).status == "ready"


async def test_a_sweep_that_does_not_run_cannot_be_stopped(shell: Shell) -> None:
    said = await shell.zq("sweeps", "stop", "7")
    assert said.code == 1
    assert "this sweep is not running" in said.errors


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("cancel", "name either jobs by their ids, or many by an option"),
        ("cancel 0 --queue mail", "name either jobs by their ids, or many by an option"),
        ("cancel 0 --reason why", "--upto and --reason need an option such as --queue"),
        ("cancel --upto x", "name either jobs by their ids, or many by an option"),
        ("sweeps list --watch --json", "give --watch or --json, not both"),
    ],
)
async def test_nothing_is_changed_by_a_wrong_word(shell: Shell, words: str, complaint: str) -> None:
    await shell.push(1)
    said = await shell.zq(*words.split())
    assert said.code == 2
    assert complaint in said.errors
    assert await count(shell, "ready") == 1
