"""`zq budgets`: list, show, set, remove, bind, unbind; and jobs by their budgets."""

import json
from typing import Any

import pytest

import zq
from zq.client.values import JobQuery, TakeRequest

from .shell import Shell

CRM = (zq.Budget("crm", 2).wire(),)


async def said(shell: Shell, *words: str) -> str:
    """What a command that ends well prints, its warnings included."""
    ended = await shell.zq("budgets", *words)
    assert ended.code == 0, ended
    return ended.output + ended.errors


async def test_what_is_set_is_listed_and_shown(shell: Shell) -> None:
    assert await said(shell, "set", "crm", "2") == "crm allows 2 at once\n"
    rate = ("set", "crm-rate", "1000", "--per", "90s", "--burst", "10")
    assert await said(shell, *rate) == "crm-rate allows 1,000 per 90s, burst 10\n"
    await shell.push(1, 2, budgets=CRM)
    assert (await shell.zq("budgets", "list")).table == [
        ["BUDGET", "LIMIT", "AVAILABLE", "WAITING", "UNFINISHED"],
        ["crm", "2 at once", "2", "2", "2"],
        ["crm-rate", "1,000 per 90s, burst 10", "10", "0", "0"],
    ]
    shown = (await shell.zq("budgets", "show", "crm")).table
    assert shown[:4] == [
        ["limit", "2 at once"],
        ["available", "2"],
        ["waiting", "2"],
        ["unfinished", "2"],
    ]
    assert [name for name, _ in shown[4:]] == ["created", "changed"]
    (crm, _) = (await shell.zq("budgets", "list", "--json")).documents
    assert (crm["key"], crm["strategy"]) == ("crm", {"type": "while_in_flight"})
    assert (await shell.zq("budgets", "show", "crm", "--json")).documents == [crm]


async def test_what_is_not_given_stays_as_it_is(shell: Shell) -> None:
    told = [
        await said(shell, "set", "crm", *words.split())
        for words in (
            "100 --per 1m --burst 10",
            "50",
            "--no-burst",
            "--per 500ms",
            "--at-once",
            "3 --per 1h",
        )
    ]
    assert told == [
        "crm allows 100 per 1m, burst 10\n",
        "crm allows 50 per 1m, burst 10\n",
        "crm allows 50 per 1m\n",
        "crm allows 50 per 500ms\n",
        "crm allows 50 at once\n",
        "crm allows 3 per 1h\n",
    ]
    (shown,) = (await shell.zq("budgets", "set", "crm", "4", "--json")).documents
    assert (shown["allocation"], shown["strategy"]["duration_ms"]) == (4, 3_600_000)


async def test_jobs_are_bound_found_and_unbound(shell: Shell) -> None:
    await said(shell, "set", "crm", "2")
    first, second = await shell.push(1, 2)
    (other,) = await shell.push(3, queue="sync", type="sync")

    async def drawing() -> dict[str, Any]:
        """The jobs that draw from the budget, and how much."""
        jobs = (await shell.zq("jobs", "--budget", "crm", "--json")).documents
        return {job["id"]: job["budgets"] for job in jobs}

    assert await said(shell, "bind", "crm", first.id, other.id, "--cost", "2") == "2 jobs changed\n"
    two = [{"key": "crm", "cost": 2}]
    assert await drawing() == {first.id: two, other.id: two}
    shown = (await shell.zq("status", first.id)).table
    assert ["budgets", json.dumps(two, separators=(",", ":"))] in shown
    assert await said(shell, "unbind", "crm", "--queue", "mail", "--yes") == "1 job changed\n"
    assert await said(shell, "bind", "crm", "--all", "--cost", "2", "--yes") == "2 jobs changed\n"
    assert (
        await said(shell, "unbind", "crm", "--type", "letter,sync", "--yes") == "3 jobs changed\n"
    )
    assert await drawing() == {}
    assert (await shell.zq("budgets", "bind", "crm", second.id, "--json")).documents == [
        {"changed": 1, "blocked": []}
    ]
    assert list(await drawing()) == [second.id]


async def test_a_job_is_pushed_with_what_it_draws(shell: Shell) -> None:
    for key in ("crm", "net"):
        assert (await shell.zq("budgets", "set", key, "9")).code == 0
    said = await shell.zq("push", "sync", "1", "--budget", "crm", "--budget", "net=5", "--json")
    assert said.code == 0, said
    assert said.documents[0]["budgets"] == [{"key": "crm", "cost": 1}, {"key": "net", "cost": 5}]
    for wrong in ("net=0", "net=x", "=2", ""):
        said = await shell.zq("push", "sync", "1", "--budget", wrong)
        assert said.code == 2, wrong
        assert "--budget" in said.errors


async def test_what_runs_is_named_and_left_alone(shell: Shell) -> None:
    await said(shell, "set", "crm", "2")
    (job,) = await shell.push(1, budgets=CRM)
    stream = await shell.backend.take(TakeRequest(("mail",)))
    await stream.deliveries()
    told = await said(shell, "unbind", "crm", "--all", "--yes")
    assert told == f"0 jobs changed\nin flight, and left as they are: {job.id}\n"
    await stream.close()


async def test_a_budget_that_is_needed_stays_until_nothing_needs_it(shell: Shell) -> None:
    await said(shell, "set", "crm", "2")
    await shell.push(1, budgets=CRM)
    ended = await shell.zq("budgets", "remove", "crm")
    assert ended.code == 1
    assert ended.errors.startswith("Error: budget 'crm' is referenced by 1 unfinished job. Delete")
    await said(shell, "unbind", "crm", "--all", "--yes")
    assert await said(shell, "remove", "crm") == "crm is removed\n"
    await said(shell, "set", "crm", "2")
    assert (await shell.zq("budgets", "remove", "crm", "--json")).documents == [
        {"key": "crm", "removed": True}
    ]
    assert (await shell.zq("budgets", "list", "--json")).documents == []


async def test_a_key_does_not_steer_the_terminal(shell: Shell) -> None:
    key = "crm\x1bc\x9b2J\u202ex"
    shown = r"crm\x1bc\x9b2J\u202ex"
    assert await said(shell, "set", key, "2") == f"{shown} allows 2 at once\n"
    assert (await shell.zq("budgets", "list")).table[1][0] == shown
    assert await said(shell, "remove", key) == f"{shown} is removed\n"
    ended = await shell.zq("budgets", "set", key, "--no-burst")
    assert ended.errors == f"Error: there is no budget {shown}: give ALLOCATION as well\n"


async def test_a_file_of_jobs_brings_their_budgets(shell: Shell) -> None:
    lines = [
        '{"queue": "sync", "payload": 1, "budgets": [{"key": "crm", "create_with":'
        ' {"allocation": 2, "strategy": {"type": "while_in_flight"}}}]}',
        '{"queue": "sync", "payload": 2, "budgets": [{"key": "crm", "cost": 2}]}',
    ]
    ended = await shell.zq("push", "--file", "-", stdin="\n".join(lines))
    assert ended.output == "2 jobs stored\n", ended
    jobs = (await shell.backend.jobs(JobQuery(budgets=("crm",)))).jobs
    assert [draw.cost for job in jobs for draw in job.budgets or []] == [1, 2]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("show none", 1, "budget 'none' not found"),
        ("remove none", 1, "budget 'none' not found"),
        ("unbind none --all", 1, "budget 'none' not found"),
        ("bind none --all", 1, "budget 'none' does not exist: create it first"),
        ("set none --per 1m", 1, "there is no budget none: give ALLOCATION as well"),
        ("set none 5 --burst 2", 2, "--burst goes with --per"),
        ("set crm 1000001", 2, "1000001 is not in the range 1<=x<=1000000"),
        ("set crm", 2, "say what to set: ALLOCATION, --per,"),
        ("set crm 0", 2, "0 is not in the range 1<=x<=1000000"),
        ("set crm 5 --per 0", 2, "--per is a time of at least 1ms"),
        ("set crm 5 --per 1m --at-once", 2, "--at-once goes with neither"),
        ("set crm --burst 5 --no-burst", 2, "--burst or --no-burst, not both"),
        ("bind crm", 2, "choose jobs by their ids, --queue or --type, or give --all"),
        ("unbind crm --all --queue mail", 2, "choose jobs by their ids"),
    ],
)
async def test_what_is_wrong_is_said_in_one_line(
    shell: Shell, words: str, code: int, message: str
) -> None:
    ended = await shell.zq("budgets", *words.split())
    assert (ended.code, ended.output, ended.errors.count("\n")) == (code, "", 1)
    assert message in ended.errors


async def test_a_budget_is_held_and_reopened(shell: Shell) -> None:
    await said(shell, "set", "crm", "2")
    assert (await said(shell, "hold", "crm", "20s")).startswith("crm is held until 20")
    (crm,) = (await shell.zq("budgets", "list", "--json")).documents
    assert crm["available"] == 0 and "held_until" in crm
    shown = (await shell.zq("budgets", "show", "crm")).table
    assert "held until" in [name for name, *_ in shown]
    (heads, _) = (await shell.zq("budgets", "list")).table
    assert heads[-1] == "HELD UNTIL"
    assert await said(shell, "reopen", "crm") == "crm is open\n"
    assert (await shell.zq("budgets", "hold", "none", "1s")).code == 1
