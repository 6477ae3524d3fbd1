"""`zq dead`: dead jobs, and why they died."""

from .shell import Shell


async def test_dead_jobs_are_listed_with_their_last_error(shell: Shell) -> None:
    await shell.push(1, 2)
    await shell.push(3, queue="sums")
    first = await shell.finish("mail", error="no such mailbox")
    await shell.finish("sums", error="x" * 500)
    head, *rows = (await shell.zq("dead")).table
    assert head == ["ID", "QUEUE", "TYPE", "FAILED", "DIED", "REASON", "ERROR"]
    assert rows[0][:4] == [first.id, "mail", "letter", "1"]
    assert rows[0][5:] == ["killed", "ValueError: no such mailbox"]
    assert rows[1][-1].endswith("x…")
    assert len(rows) == 2


async def test_a_queue_and_a_limit_choose(shell: Shell) -> None:
    await shell.push(1, 2)
    await shell.push(3, queue="sums")
    for queue in ("mail", "mail", "sums"):
        await shell.finish(queue, error="boom")
    told = (await shell.zq("dead", "--queue", "mail", "--json")).documents
    assert [each["payload"] for each in told] == [1, 2]
    assert told[0]["error"]["message"] == "boom"
    said = await shell.zq("dead", "--limit", "1")
    assert said.errors == "2 more: --limit 3 shows all\n"


async def test_no_dead_job_is_no_failure(shell: Shell) -> None:
    said = await shell.zq("dead", "--json")
    assert (said.code, said.output, said.errors) == (0, "", "")
