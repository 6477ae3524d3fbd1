"""`zq cron`: list, add, pause, resume, remove, next."""

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from .shell import Shell

ADD = ("cron", "add", "billing", "nightly", "30 2 * * *", "reports")


async def test_what_is_added_is_listed_and_comes_next(shell: Shell) -> None:
    said = await shell.zq(*ADD, '{"n": 1}', "--tz", "Europe/Berlin", "--key", "k")
    assert said.code == 0, said
    assert said.output.startswith("billing/nightly fires next in ")
    said = await shell.zq("cron", "add", "app", "beat", "@yearly", "beats", "--paused")
    assert said.code == 0, said
    head, beat, nightly = (await shell.zq("cron", "list")).table
    assert head[:4] == ["GROUP", "ENTRY", "EXPRESSION", "ZONE"]
    assert beat[:4] == ["app", "beat", "@yearly", "beats"]
    assert beat[-1] == "paused"
    assert nightly[:6] == [
        *("billing", "nightly", "30 2 * * *", "Europe/Berlin", "reports", "nightly")
    ]
    (shown,) = (await shell.zq("cron", "list", "billing", "--json")).documents
    assert shown["entries"][0]["job"] == {
        "queue": "reports",
        "type": "nightly",
        "priority": 32768,
        "payload": {"n": 1},
        "unique_key": "k",
        "unique_while": "queued",
    }
    (coming,) = (await shell.zq("cron", "next", "--json")).documents
    assert (coming["group"], coming["name"]) == ("billing", "nightly")
    _, row = (await shell.zq("cron", "next")).table
    assert row[2:] == ["billing", "nightly", "reports", "nightly"]


async def test_the_times_that_follow_are_counted_in_the_zone_of_the_entry(shell: Shell) -> None:
    await shell.zq("cron", "add", "g", "noon", "0 12 * * *", "q", "--tz", "Asia/Kathmandu")
    await shell.zq("cron", "add", "g", "minutely", "* * * * *", "q")
    shown = (await shell.zq("cron", "next", "g", "--count", "3", "--json")).documents
    times = {
        name: [each["next_enqueue_at"] for each in shown if each["name"] == name]
        for name in ("noon", "minutely")
    }
    assert [later - times["minutely"][0] for later in times["minutely"]] == [0, 60_000, 120_000]
    assert [later - times["noon"][0] for later in times["noon"]] == [0, 86_400_000, 172_800_000]
    kathmandu = (
        datetime.fromtimestamp(ms / 1000, ZoneInfo("Asia/Kathmandu")) for ms in times["noon"]
    )
    assert {f"{each:%H:%M:%S}" for each in kathmandu} == {"12:00:00"}
    rows = (await shell.zq("cron", "next", "--count", "3", "--limit", "4")).table
    assert len(rows) == 5


async def test_an_entry_draws_from_budgets(shell: Shell) -> None:
    assert (await shell.zq("budgets", "set", "crm", "2")).code == 0
    said = await shell.zq(*ADD, "--budget", "crm=2")
    assert said.code == 0, said
    (shown,) = (await shell.zq("cron", "list", "--json")).documents
    assert shown["entries"][0]["job"]["budgets"] == [{"key": "crm", "cost": 2}]


async def test_entries_and_groups_are_paused_resumed_and_removed(shell: Shell) -> None:
    assert (await shell.zq(*ADD)).code == 0
    said = await shell.zq("cron", "pause", "billing", "nightly")
    assert said.output == "billing/nightly is paused\n"
    assert (await shell.zq("cron", "next", "--json")).documents == []
    assert (await shell.zq("cron", "resume", "billing")).output == "billing is resumed\n"
    assert (await shell.zq("cron", "remove", "billing", "nightly")).code == 0
    (left,) = (await shell.zq("cron", "list", "--json")).documents
    assert (left["name"], left["entries"]) == ("billing", [])
    assert (await shell.zq("cron", "remove", "billing", "--json")).documents == [
        {"group": "billing", "entry": None, "removed": True}
    ]
    said = await shell.zq("cron", "remove", "billing")
    assert (said.code, said.errors) == (1, "Error: cron group 'billing' not found\n")


async def test_what_is_wrong_is_said_in_one_line(shell: Shell) -> None:
    said = await shell.zq("cron", "add", "g", "e", "61 * * * *", "q")
    assert said.code == 1
    assert "invalid cron expression: '61 * * * *': bad minute" in said.errors
    for payload in ("{", "[" * 5000):
        said = await shell.zq("cron", "add", "g", "e", "* * * * *", "q", payload)
        assert (said.code, "looks like JSON" in said.errors) == (2, True)


async def test_an_entry_that_cannot_be_evaluated_is_listed_with_the_reason(
    shell: Shell, tmp_path: Path
) -> None:
    await shell.zq("cron", "add", "billing", "nightly", "30 2 * * *", "reports")
    with closing(sqlite3.connect(tmp_path / "data" / "zq.db", isolation_level=None)) as other:
        other.execute("UPDATE cron_entries SET timezone = 'Area/Gone'")
    said = await shell.zq("cron", "list")
    assert 'set aside: invalid timezone: "Area/Gone"' in said.output
    said = await shell.zq("cron", "next", "--json")
    assert (said.code, said.documents) == (0, [])
