"""`zq pause` and `zq resume`."""

from zq.model.settings import QueueSettings, SettingsPatch

from .shell import Shell


async def test_a_paused_queue_is_paused_until_it_is_resumed(shell: Shell) -> None:
    said = await shell.zq("pause", "mail", "--create")
    assert (said.code, said.output) == (0, "mail is paused\n")
    assert await shell.backend.settings("mail") == QueueSettings(paused=True)
    said = await shell.zq("resume", "mail", "--json")
    assert (said.code, said.documents) == (0, [{"queue": "mail", "paused": False}])
    assert await shell.backend.settings("mail") == QueueSettings()


async def test_what_else_is_set_stays(shell: Shell) -> None:
    await shell.backend.change_settings("a/b", SettingsPatch(rate=5))
    await shell.zq("pause", "a/b", "--create")
    await shell.zq("resume", "a/b")
    assert await shell.backend.settings("a/b") == QueueSettings(rate=5)


async def test_a_name_that_is_none_is_refused(shell: Shell) -> None:
    for command in ("pause", "resume"):
        said = await shell.zq(command, "a,b")
        assert (said.code, said.output) == (1, "")
        assert "queue must not contain" in said.errors


async def test_a_pause_may_have_a_reason_and_an_end(shell: Shell) -> None:
    said = await shell.zq(
        "pause", "mail", "--create", "--for", "2h", "--reason", "the provider is down"
    )
    assert said.code == 0
    assert said.output.startswith("mail is paused until 2")
    assert said.output.endswith("Z (the provider is down)\n")
    settings = await shell.backend.settings("mail")
    assert settings.paused_until is not None and settings.pause_reason == "the provider is down"
    again = await shell.zq("pause", "mail")
    assert again.output == "mail is paused\n", "the former reason is not that of the new pause"
