"""`zq cancel`: one job that must not run."""

from zq.client.values import TakeRequest

from .shell import Shell


async def test_a_job_that_waits_is_cancelled_once(shell: Shell) -> None:
    (job,) = await shell.push(1)
    said = await shell.zq("cancel", job.id)
    assert (said.code, said.output) == (
        0,
        f"{job.id} is cancelled; zq sweeps undo 1 takes it back\n",
    )
    back = await shell.zq("sweeps", "undo", "1", "--yes")
    assert (back.code, (await shell.backend.get(job.id)).status) == (0, "ready")
    assert (await shell.zq("cancel", job.id)).code == 0
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


async def test_a_filter_that_is_given_twice_or_leaves_nothing_is_wrong_usage(
    shell: Shell,
) -> None:
    await shell.push(1, 2)
    for option, values in (
        ("--queue", ("mail", "sms")),
        ("--status", ("ready", "dead")),
        ("--id", ("a", "b")),
        ("--ready-before", ("1h", "2h")),
        ("--search", ("a", "b")),
    ):
        said = await shell.zq("cancel", option, values[0], option, values[1], "--yes")
        assert (said.code, "more than once" in said.errors) == (2, True), option
    said = await shell.zq("cancel", "--ready-after", "1h", "--ready-before", "2h", "--yes")
    assert (said.code, "no job is between" in said.errors) == (2, True)
    assert await shell.backend.count() == 2


async def test_jobs_are_cancelled_by_their_words(shell: Shell) -> None:
    await shell.push(1, 2)
    for words, many in (("nowhere", 0), ("letter", 2)):
        said = await shell.zq("cancel", "--search", words, "--yes", "--json")
        assert said.documents[0] == {"cancelled": many}, said.errors
