"""`zq requeue`: dead jobs become ready again."""

import pytest

from zq.client.values import JobQuery
from zq.model.settings import SettingsPatch

from .shell import Shell


async def dead(shell: Shell, count: int) -> list[str]:
    jobs = await shell.push(*range(count))
    for _ in jobs:
        await shell.finish("mail", error="boom")
    return [job.id for job in jobs]


async def count(shell: Shell, *queues: str) -> int:
    return await shell.backend.count(JobQuery(("ready",), queues))


async def test_jobs_are_brought_back_by_their_ids(shell: Shell) -> None:
    first, second, third = await dead(shell, 3)
    said = await shell.zq("requeue", first, third)
    assert said.code == 0
    assert said.output == f"{first} is ready in mail\n{third} is ready in mail\n"
    assert (await shell.backend.get(second)).status == "dead"
    assert (await shell.backend.get(third)).attempts == 0


async def test_one_that_is_not_dead_does_not_keep_the_others(shell: Shell) -> None:
    (alive,) = await shell.push("alive", queue="sums")
    (gone,) = await dead(shell, 1)
    said = await shell.zq("requeue", alive.id, gone, "--json")
    assert said.code == 1
    assert [each["id"] for each in said.documents] == [gone]
    assert f"{alive.id}: the job is ready" in said.errors
    assert "1 of 2 jobs were not requeued" in said.errors


async def test_a_queue_is_brought_back_whole_or_in_part(shell: Shell) -> None:
    await dead(shell, 5)
    said = await shell.zq("requeue", "--queue", "mail", "--limit", "2", "--yes")
    assert (said.code, said.output) == (0, "2 jobs requeued\n")
    assert (await shell.zq("requeue", "--queue", "other", "--json", "--yes")).documents == [
        {"requeued": 0}
    ]
    assert "3 jobs requeued" in await shell.on_terminal("requeue", "--queue", "mail", "--yes")
    assert await count(shell, "mail") == 5


async def test_it_says_why_jobs_stay(shell: Shell) -> None:
    await dead(shell, 3)
    await shell.backend.change_settings("mail", SettingsPatch(max_depth=1))
    said = await shell.zq("requeue", "--queue", "mail", "--yes")
    assert said.output == ("1 job requeued\n2 stay as they are, for their queue is full\n")
    said = await shell.zq("requeue", "--queue", "mail", "--yes", "--json")
    assert said.documents == [{"requeued": 0, "kept": {"queue_full": 2}}]


async def test_what_a_dead_letter_queue_holds_goes_back(shell: Shell) -> None:
    await shell.backend.change_settings("mail", SettingsPatch(dead_letter="morgue"))
    await dead(shell, 2)
    assert await count(shell, "morgue") == 2
    await shell.zq("requeue", "--queue", "morgue", "--yes")
    assert await count(shell, "mail") == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "name either jobs by their ids, or many by an option"),
        (("0", "--queue", "mail"), "name either jobs by their ids, or many by an option"),
        (("0", "--limit", "1"), "--limit needs an option such as --queue"),
    ],
)
async def test_nothing_is_brought_back_by_mistake(
    shell: Shell, words: tuple[str, ...], complaint: str
) -> None:
    await dead(shell, 1)
    said = await shell.zq("requeue", *words)
    assert said.code == 2
    assert complaint in said.errors
    assert await count(shell) == 0
