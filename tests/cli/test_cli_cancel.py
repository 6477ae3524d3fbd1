"""`zq cancel`: one job that must not run."""

from zq.client.values import TakeRequest

from .shell import Shell


async def test_a_job_that_waits_is_cancelled_once(shell: Shell) -> None:
    (job,) = await shell.push(1)
    said = await shell.zq("cancel", job.id)
    assert (said.code, said.output) == (0, f"{job.id} is cancelled\n")
    again = await shell.zq("cancel", job.id)
    assert (again.code, again.output) == (1, "")


async def test_a_job_that_runs_is_cancelled_by_force_only(shell: Shell) -> None:
    (job,) = await shell.push(1)
    stream = await shell.backend.take(TakeRequest(("mail",), 1))
    await stream.deliveries()
    said = await shell.zq("cancel", job.id)
    assert said.code == 1
    assert "force" in said.errors
    said = await shell.zq("cancel", job.id, "--force", "--json")
    assert (said.code, said.documents[0]["status"]) == (0, "cancelled")
    await stream.close()


async def test_an_unknown_job_gives_1(shell: Shell) -> None:
    assert (await shell.zq("cancel", "0" * 26)).code == 1
