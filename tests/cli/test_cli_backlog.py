"""`zq backlog`."""

from .shell import Shell


async def test_the_backlog_is_told_with_what_is_left_out(shell: Shell) -> None:
    for _ in range(3):
        await shell.zq("push", "q", "1", "--group", "g")
    await shell.zq("push", "q", "1")

    said = await shell.zq("backlog", "q", "--target", "1")
    text = "2 could run now, 0 in flight; left out: 2 group; workers needed: 2\n"
    assert (said.code, said.output) == (0, text)


async def test_queues_are_added_up_as_json(shell: Shell) -> None:
    for queue in ("a", "b", "c"):
        await shell.zq("push", queue, "1")
    said = await shell.zq("backlog", "a", "b", "--target", "2", "--json")
    expected = {"ready": 2, "running": 0, "jobs": 2, "workers": 1, "held": {}}
    assert said.documents == [expected]


async def test_a_queue_that_never_was_has_nothing_and_is_named(shell: Shell) -> None:
    await shell.zq("push", "mail", "1")
    said = await shell.zq("backlog", "mial")
    assert said.output == "0 could run now, 0 in flight; workers needed: 0\n"
    assert said.code == 0 and "mial" in said.errors


async def test_a_backlog_needs_a_queue_and_a_target_of_one_or_more(shell: Shell) -> None:
    assert (await shell.zq("backlog")).code == 2
    assert (await shell.zq("backlog", "q", "--target", "0")).code == 2
