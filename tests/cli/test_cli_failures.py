"""`zq failures`: why attempts fail, by cause."""

from pathlib import Path

import pytest

import zq

from .shell import Shell


async def die(shell: Shell, queue: str, *errors: str) -> None:
    """Let a job of a queue die of each of these errors."""
    for error in errors:
        await shell.push(1, queue=queue)
        await shell.finish(queue, error=error)


async def test_causes_are_counted_and_lead_to_their_dead_jobs(shell: Shell) -> None:
    await die(shell, "mail", "no route to 10.0.0.1", "disk is full", "no route to 10.0.0.7")
    await die(shell, "sms", "no route to 10.0.0.9")
    said = await shell.zq("failures")
    head, first, second = said.table
    assert head == ["ID", "COUNT", "CHANGE", "DEAD", "LATEST", "QUEUES", "CAUSE"]
    assert first[1:4] == ["3", "new", "3"]
    assert first[5:] == ["mail +1", "ValueError: no route to <n>"]
    assert (second[1], second[5]) == ("1", "mail")
    assert said.errors == "4 failures in 1h, 0 before\n"
    told = (await shell.zq("dead", "--cause", first[0], "--json")).documents
    assert sorted(each["queue"] for each in told) == ["mail", "mail", "sms"]


async def test_a_queue_a_range_and_an_order_choose(shell: Shell) -> None:
    await die(shell, "mail", "no route", "no route", "disk is full")
    await die(shell, "sms", "no route")
    words = ("--queue", "mail", "--range", "5m", "--order", "time", "--json")
    told = (await shell.zq("failures", *words)).documents
    assert [(each["message"], each["count"]) for each in told] == [
        ("disk is full", 1),
        ("no route", 2),
    ]
    assert (await shell.zq("failures", "--range", "2h")).code == 2


async def test_a_directory_without_a_server_tells_them_too(shell: Shell, tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/alone"
    with zq.App(url) as app:
        app.queue("mail").sync.enqueue("1", None)
    said = await shell.zq("failures", "--url", url)
    assert (said.code, said.errors) == (0, "0 failures in 1h, 0 before\n")


@pytest.mark.parametrize("command", ["failures", "dead"])
async def test_nothing_that_failed_is_no_failure(shell: Shell, command: str) -> None:
    said = await shell.zq(command, "--json")
    assert (said.code, said.output) == (0, "")
