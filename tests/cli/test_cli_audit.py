"""`zq audit`: who did what."""

import re
from pathlib import Path

import zq
from zq.model.settings import SettingsPatch

from .shell import Shell


async def test_the_latest_actions_come_first_and_fit_a_narrow_terminal(shell: Shell) -> None:
    await shell.push(1, 2)
    await shell.backend.change_settings("mail", SettingsPatch(rate=1))
    await shell.zq("cancel", "--queue", "mail", "--yes", "--reason", "a reason of many words" * 9)
    head, cancelled, changed = (await shell.zq("audit")).table
    assert head == ["SEQ", "WHEN", "WHO", "FROM", "ANSWER", "ACTION"]
    assert cancelled[0] == "2" and '{"cancelled":2}' in cancelled
    assert "POST /jobs/cancel?queue=mail" in cancelled[-1]
    assert changed[-1] == "PATCH /queues/mail/settings"
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", await shell.on_terminal("audit", columns=80))
    assert max(map(len, drawn.splitlines())) <= 80
    assert "POST /jobs/cancel" in drawn


async def test_lines_are_for_scripts_and_end_where_they_are_told_to(shell: Shell) -> None:
    for rate in range(1, 5):
        await shell.backend.change_settings("mail", SettingsPatch(rate=rate))
    latest = (await shell.zq("audit", "--json", "--limit", "2")).documents
    assert [each["answer"]["rate"] for each in latest] == [4, 3]
    everything = (await shell.zq("audit", "--json", "--since", "1h")).documents
    assert [each["seq"] for each in everything] == [4, 3, 2, 1]
    assert (await shell.zq("audit", "--json", "--since", "2999-01-01")).documents == []


async def test_an_engine_without_a_server_has_its_sweeps_and_no_actions(
    shell: Shell, tmp_path: Path
) -> None:
    url = f"sqlite://{tmp_path}/alone"
    with zq.App(url) as app:
        app.queue("mail").sync.enqueue("1", None)
    for words, answer in (
        (("cancel", "--queue", "mail", "--yes"), "1 job cancelled\n"),
        (("sweeps", "undo", "1", "--yes"), "1 job brought back\n"),
    ):
        assert (await shell.zq(*words, "--url", url)).output == answer
    listed = (await shell.zq("sweeps", "list", "--json", "--url", url)).documents
    assert [(each["verb"], each.get("undone")) for each in listed] == [
        ("undo", None),
        ("cancel", 1),
    ]
    assert (await shell.zq("audit", "--json", "--url", url)).documents == []
