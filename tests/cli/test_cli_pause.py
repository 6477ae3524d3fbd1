"""`zq pause` and `zq resume`."""

from zq.model.settings import QueueSettings, SettingsPatch

from .shell import Shell


async def test_a_paused_queue_is_paused_until_it_is_resumed(shell: Shell) -> None:
    said = await shell.zq("pause", "mail")
    assert (said.code, said.output) == (0, "mail is paused\n")
    assert await shell.backend.settings("mail") == QueueSettings(paused=True)
    said = await shell.zq("resume", "mail", "--json")
    assert (said.code, said.documents) == (0, [{"queue": "mail", "paused": False}])
    assert await shell.backend.settings("mail") == QueueSettings()


async def test_what_else_is_set_stays(shell: Shell) -> None:
    await shell.backend.change_settings("a/b", SettingsPatch(rate=5))
    await shell.zq("pause", "a/b")
    await shell.zq("resume", "a/b")
    assert await shell.backend.settings("a/b") == QueueSettings(rate=5)


async def test_a_name_that_is_none_is_refused(shell: Shell) -> None:
    for command in ("pause", "resume"):
        said = await shell.zq(command, "a,b")
        assert (said.code, said.output) == (1, "")
        assert "queue must not contain" in said.errors
