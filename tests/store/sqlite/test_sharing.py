"""Other programs on the file of a running server, such as an operator's `sqlite3`."""

import sqlite3
from contextlib import closing

import pytest

from zq.model.commands import Claim, SetQueue
from zq.model.settings import QueueSettings

from ..rig import Rig


def operate(rig: Rig, sql: str) -> None:
    with closing(sqlite3.connect(rig.directory / "zq.db", isolation_level=None)) as operator:
        operator.execute(sql)


async def test_a_tick_goes_by_settings_that_somebody_else_has_changed(rig: Rig) -> None:
    await rig.keep(2)
    await rig.run(SetQueue("q", QueueSettings(lease_ms=5_000)))

    operate(rig, """UPDATE queue_settings SET settings = '{"paused":true}' WHERE queue = 'q'""")
    assert await rig.take(1) == []
    operate(rig, "DELETE FROM queue_settings")
    assert len(await rig.take(1)) == 1


async def test_settings_that_cannot_be_read_leave_the_former_ones_in_force(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    await rig.keep(1)
    await rig.run(SetQueue("q", QueueSettings(paused=True)))

    operate(rig, """UPDATE queue_settings SET settings = '{"paused":7}' WHERE queue = 'q'""")
    assert await rig.take(1) == []
    assert "settings of queues cannot be read" in caplog.text
    caplog.clear()
    assert (await rig.run(claims=[Claim(None, [(1, 1)])])).claimed == [[]]
    assert caplog.text == ""
