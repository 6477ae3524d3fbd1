"""`zq delete`: jobs that are to be gone for good, by their ids or by a filter."""

import pytest

from zq.client.values import JobQuery, TakeRequest

from .shell import Shell


async def stored(shell: Shell) -> list[str]:
    return [job.id for job in (await shell.backend.jobs(JobQuery())).jobs]


async def test_jobs_are_deleted_by_their_ids_also_while_they_run(shell: Shell) -> None:
    first, second, third = await shell.push(1, 2, 3)
    stream = await shell.backend.take(TakeRequest(("mail",), 1))
    await stream.deliveries()
    said = await shell.zq("delete", first.id, third.id)
    assert said.code == 0
    assert said.output == f"{first.id} is deleted\n{third.id} is deleted\n"
    assert await stored(shell) == [second.id]
    await stream.close()
    assert await stored(shell) == [second.id]


async def test_an_unknown_job_does_not_keep_the_others(shell: Shell) -> None:
    (job,) = await shell.push(1)
    unknown = "0" * 26
    said = await shell.zq("delete", unknown, job.id, "--json")
    assert (said.code, said.documents) == (1, [{"id": job.id, "deleted": True}])
    assert f"{unknown}: job not found: no job has this id" in said.errors
    assert "1 of 2 jobs were not deleted" in said.errors
    again = await shell.zq("delete", job.id)
    assert (again.code, again.output) == (1, "")


async def test_jobs_that_match_are_deleted_after_a_question(shell: Shell) -> None:
    await shell.push(1, 2)
    (kept,) = await shell.push(3, queue="sums")
    asked = await shell.zq("delete", "--queue", "mail")
    assert (asked.code, asked.output) == (1, "")
    assert "This deletes 2 jobs for good, up to " in asked.errors
    assert "give --yes" in asked.errors
    assert len(await stored(shell)) == 3
    said = await shell.zq("delete", "--queue", "mail", "--yes", "--reason", "a test")
    assert (said.code, said.output) == (0, "2 jobs deleted\n")
    assert await stored(shell) == [kept.id]
    (sweep,) = await shell.backend.sweeps.ended(1)
    assert (sweep.verb, sweep.reason, sweep.changed) == ("delete", "a test", 2)


async def test_a_job_that_arrives_after_the_preview_is_left_alone(shell: Shell) -> None:
    await shell.push(1)
    seen = await shell.backend.sweeps.preview("delete", JobQuery(queues=("mail",)))
    (late,) = await shell.push(2)
    words = ("delete", "--queue", "mail", "--upto", seen.upto, "--yes", "--json")
    assert (await shell.zq(*words)).documents == [{"deleted": 1}]
    assert await stored(shell) == [late.id]


async def test_what_has_finished_is_deleted_by_its_status(shell: Shell) -> None:
    (waits,) = await shell.push("waits", queue="sums")
    await shell.push(1)
    await shell.finish("mail", error="boom")
    said = await shell.zq("delete", "--status", "dead", "--yes")
    assert said.output == "1 job deleted\n"
    assert await stored(shell) == [waits.id]


async def test_jobs_by_their_ids_are_one_change_with_a_reason(shell: Shell) -> None:
    first, second, third = await shell.push(1, 2, 3)
    ids = f"{first.id},{third.id}"
    said = await shell.zq("cancel", "--id", ids, "--yes", "--reason", "wrong list")
    assert said.output == "2 jobs cancelled\n"
    said = await shell.zq("delete", "--id", ids, "--status", "cancelled", "--yes")
    assert said.output == "2 jobs deleted\n"
    assert await stored(shell) == [second.id]
    deleted, cancelled = await shell.backend.sweeps.ended(2)
    assert (deleted.verb, cancelled.verb) == ("delete", "cancel")
    assert cancelled.reason == "wrong list"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "name either jobs by their ids, or many by an option"),
        ("--yes", "name either jobs by their ids, or many by an option"),
        ("0 --queue mail", "name either jobs by their ids, or many by an option"),
        ("0 --reason why", "--upto and --reason need an option such as --queue"),
    ],
)
async def test_nothing_is_deleted_by_mistake(shell: Shell, words: str, complaint: str) -> None:
    (job,) = await shell.push(1)
    said = await shell.zq("delete", *words.split())
    assert said.code == 2
    assert complaint in said.errors
    assert await stored(shell) == [job.id]
