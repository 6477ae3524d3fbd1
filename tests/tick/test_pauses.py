"""Pauses of queues that end by themselves."""

from store.rig import NOW, Rig, Ticker

from zq.model.commands import Due, SetQueue
from zq.model.settings import QueueSettings, SettingsPatch

PAUSED = QueueSettings(paused=True, pause_reason="r", paused_by="mia", paused_until=NOW + 500)


def settings_of(ticker: Ticker) -> object:
    (reply,) = ticker.run(SetQueue("q", SettingsPatch())).replies
    return reply


def test_a_pause_ends_at_its_time_and_takes_its_reason_along(ticker: Ticker) -> None:
    result = ticker.run(SetQueue("q", PAUSED), SetQueue("other", QueueSettings(paused=True)))
    assert result.deadlines == {Due.PAUSE: NOW + 500}
    (key,) = ticker.store(1)
    ticker.now += 499
    assert ticker.take(1) == []
    ticker.run(pause=True)
    assert settings_of(ticker) == PAUSED
    ticker.now += 1
    result = ticker.run(pause=True)
    assert "q" in result.woken and result.deadlines == {}
    assert settings_of(ticker) == QueueSettings()
    assert ticker.take(1) == [key]
    assert ticker.value("SELECT group_concat(queue) FROM queue_settings") == "other"


def test_a_pause_can_be_made_longer_and_ended_sooner(ticker: Ticker) -> None:
    ticker.run(SetQueue("q", PAUSED))
    longer = SettingsPatch(paused_until=NOW + 900)
    assert ticker.run(SetQueue("q", longer)).deadlines == {Due.PAUSE: NOW + 900}
    ended = ticker.run(SetQueue("q", SettingsPatch(paused=None)))
    assert ended.replies == [QueueSettings()] and ended.deadlines == {}


def test_what_is_said_of_a_pause_needs_one(ticker: Ticker) -> None:
    said = SettingsPatch(pause_reason="r", paused_until=NOW + 1, rate=1.0)
    assert ticker.run(SetQueue("q", said)).replies == [QueueSettings(rate=1.0)]


async def test_the_end_of_a_pause_is_known_after_a_restart(rig: Rig) -> None:
    await rig.run(SetQueue("q", PAUSED))
    await rig.reopen()
    assert rig.store.at_start.deadlines == {Due.PAUSE: NOW + 500}
