"""`zq wait`: until a job is finished."""

import pytest

from zq.model.job import Retention

from .shell import Shell, ended

KEPT = Retention(60_000, 60_000)


@pytest.mark.parametrize("result", [None, 42, "text", {"a": [1]}])
async def test_the_result_is_printed_as_json(shell: Shell, result: object) -> None:
    (job,) = await shell.push(1, retention=KEPT)
    process = await shell.start("wait", job.id)
    await shell.finish("mail", result)
    said = await ended(process)
    assert (said.code, said.documents, said.errors) == (0, [result], "")
    (told,) = (await shell.zq("wait", job.id, "--json")).documents
    assert told == {"id": job.id, "status": "completed", "result": result}


async def test_a_dead_job_gives_1_and_its_error(shell: Shell) -> None:
    (job,) = await shell.push(1)
    await shell.finish("mail", error="no such mailbox")
    said = await shell.zq("wait", job.id, "--json")
    assert said.code == 1
    assert said.errors == (
        f"Error: {job.id} is dead after it failed once: ValueError: no such mailbox\n"
    )
    assert said.documents[0]["error"]["message"] == "no such mailbox"


async def test_a_wait_that_is_over_says_what_the_job_waits_for(shell: Shell) -> None:
    said = await shell.zq("push", "mail", "1", "--wait", "--timeout", "1ms")
    assert (said.code, 'nobody takes jobs of queue "mail"' in said.errors) == (1, True)
    assert (await shell.zq("pause", "mail", "--reason", "a test")).code == 0
    (job,) = await shell.push(2)
    said = await shell.zq("wait", job.id, "--timeout", "1ms")
    assert (said.code, 'queue "mail" is paused (a test)' in said.errors) == (1, True)


async def test_a_cancelled_job_gives_1(shell: Shell) -> None:
    (job,) = await shell.push(1, retention=KEPT)
    await shell.backend.cancel(job.id)
    said = await shell.zq("wait", job.id)
    assert said.code == 1
    assert f"{job.id} is cancelled" in said.errors


async def test_time_that_is_over_gives_1_and_what_the_job_is_doing(shell: Shell) -> None:
    (job,) = await shell.push(1)
    said = await shell.zq("wait", job.id, "--timeout", "1ms")
    assert said.code == 1
    assert f"{job.id} is still ready" in said.errors


async def test_an_unknown_job_gives_1_and_no_server_3(shell: Shell) -> None:
    assert (await shell.zq("wait", "0" * 26)).code == 1
    assert (await shell.zq("wait", "0" * 26, url="http://127.0.0.1:1")).code == 3
