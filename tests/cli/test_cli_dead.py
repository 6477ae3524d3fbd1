"""`zq dead`: dead jobs, and why they died."""

from datetime import UTC, datetime, timedelta

import aiohttp

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


async def test_since_shows_those_that_died_lately_the_latest_first(shell: Shell) -> None:
    for n in (1, 2, 3):
        await shell.push(n)
        await shell.finish("mail", error="boom")
    told = (await shell.zq("dead", "--since", "1h", "--json")).documents
    assert [each["payload"] for each in told] == [3, 2, 1]
    died = [each["failed_at"] for each in told]
    assert died == sorted(died, reverse=True)
    said = await shell.zq("dead", "--since", "1h", "--limit", "1")
    assert (len(said.table), said.errors) == (2, "2 more: --limit 3 shows all\n")
    later = datetime.fromtimestamp(died[0] / 1000, UTC) + timedelta(seconds=1)
    assert (await shell.zq("dead", "--since", later.isoformat(), "--json")).documents == []


async def test_newest_and_a_cause_choose(shell: Shell) -> None:
    for n, error in enumerate(("no route", "disk is full", "no route"), 1):
        await shell.push(n)
        await shell.finish("mail", error=error)
    told = (await shell.zq("dead", "--newest", "--limit", "2", "--json")).documents
    assert [each["payload"] for each in told] == [3, 2]
    async with aiohttp.request("GET", f"{shell.url}/jobs?last_error=true&order=desc") as answer:
        cause = (await answer.json())["jobs"][0]["last_error"]["signature"]
    told = (await shell.zq("dead", "--cause", cause, "--json")).documents
    assert [each["payload"] for each in told] == [1, 3]
