"""`zq cron`: list, add, pause, resume, remove, next."""

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
    said = await shell.zq("cron", "add", "g", "e", "* * * * *", "q", "{")
    assert (said.code, "looks like JSON" in said.errors) == (2, True)
